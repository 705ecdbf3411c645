"""Both ends of a proxy, an upstream that records requests and answers with given bytes; and the proxy itself."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import recede
from recede.proxy.server import Proxy

Headers = list[tuple[str, str]]
# What depends on the connection, and not on the message.
OF_CONNECTIONS = frozenset({"connection", "host", "keep-alive", "transfer-encoding"})


@dataclass
class Request:
    """A request as it was received."""

    method: str
    target: str
    headers: Headers
    body: bytes

    def named(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def compared(self) -> tuple[Any, ...]:
        headers = sorted((n.lower(), v) for n, v in self.headers if n.lower() not in OF_CONNECTIONS)
        return self.method, self.target, headers, self.body


Piece = bytes | threading.Event
Answer = Iterable[Piece]


@dataclass
class Upstream:
    """Answers each request with the pieces of `answer`; it waits for events among them, and closes at the end.

    What a proxy that starts asks it is not among the requests.
    """

    answer: Callable[[Request], Answer]
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)  # who asked has gone, in the middle of an answer


def answer_of(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A whole answer."""
    head = [f"HTTP/1.1 {status}", *headers, "Connection: close", f"Content-Length: {len(body)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


@contextlib.contextmanager
def recording(answer: Callable[[Request], Answer]) -> Iterator[Upstream]:
    upstream = Upstream(answer)
    listener = socket.create_server(("127.0.0.1", 0))
    upstream.url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as file:
            request = read_request(file)
            if request is None:
                return
            if request.target.startswith("/recede/ring?"):
                connection.sendall(answer_of(b"", "404 Not Found"))
                return
            upstream.requests.append(request)
            for piece in upstream.answer(request):
                if isinstance(piece, threading.Event):
                    while not piece.wait(0.02):
                        connection.setblocking(False)
                        with contextlib.suppress(BlockingIOError):
                            if connection.recv(1, socket.MSG_PEEK) == b"":
                                upstream.gone.set()
                                return
                        connection.setblocking(True)
                    connection.setblocking(True)
                else:
                    connection.sendall(piece)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield upstream
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def read_request(file: Any) -> Request | None:
    line = file.readline().decode("latin-1").split()
    if len(line) != 3:
        return None
    headers: Headers = []
    while (header := file.readline().decode("utf-8", "surrogateescape").rstrip("\r\n")) != "":
        name, _, value = header.partition(":")
        headers.append((name, value.strip()))
    request = Request(line[0], line[1], headers, b"")
    if "chunked" in (request.named("transfer-encoding") or ""):
        while (line := file.readline()) and (size := int(line, 16)):
            request.body += file.read(size)
            file.readline()
        if not line:  # it broke off
            return None
        file.readline()
    else:
        request.body = file.read(int(request.named("content-length") or 0))
    return request


@contextlib.contextmanager
def proxying(upstream: str | None, masker: recede.proxy.RequestMasker | None = None, **options: Any) -> Iterator[Proxy]:
    """A proxy that runs in a thread of its own."""
    masker = masker or recede.proxy.RequestMasker(keep=10)
    proxy = Proxy(masker, upstream=upstream, **{"port": 0, **options})
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait(work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(40)

    try:
        wait(proxy.start())
        yield proxy
    finally:
        wait(proxy.stop())
        wait(loop.shutdown_default_executor())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        masker.close()


@dataclass
class Response:
    status: int
    reason: str
    headers: Headers
    body: bytes

    def named(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def compared(self) -> tuple[Any, ...]:
        headers = sorted((n.lower(), v) for n, v in self.headers if n.lower() not in OF_CONNECTIONS)
        return self.status, self.reason, headers, self.body


def ask(
    url: str, method: str, target: str, body: bytes | None = None, headers: Iterable[tuple[str, str]] = ()
) -> Response:
    """One request with these headers and no others; a body without a length is chunked."""
    given = list(headers)
    names = {name.lower() for name, _ in given}
    connection = http.client.HTTPConnection(url.partition("://")[2], timeout=20)
    with contextlib.closing(connection):
        connection.putrequest(method, target, skip_host="host" in names, skip_accept_encoding=True)
        for name, value in given:
            connection.putheader(name, value)
        if body is not None and "transfer-encoding" not in names:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        if body is not None:
            if "transfer-encoding" in names:
                connection.send(chunked(body[:1000], body[1000:]) if len(body) > 1000 else chunked(body))
                connection.send(b"0\r\n\r\n")
            else:
                connection.send(body)
        found = connection.getresponse()
        return Response(found.status, found.reason, found.getheaders(), found.read())


def stats(proxy: Proxy) -> Any:
    return json.loads(ask(proxy.url, "GET", "/recede/stats").body)
