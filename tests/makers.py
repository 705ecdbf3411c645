"""A network in which every host is one server on this machine: a proxy for HTTPS whose certificates a test CA signs."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from proxied import Answer, Request, read_request


@dataclass
class Makers:
    """What it received: the host that a client asked for, and the request.

    `environment` sends the clients of a child there, and has them trust its CA.
    """

    answer: Callable[[Request], Answer]
    environment: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, Request]] = field(default_factory=list)

    def hosts(self) -> set[str]:
        """The hosts that got a request."""
        return {host for host, _ in self.requests}


class _Certificates:
    """Contexts of TLS by host, made when a host is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock, self._made = folder, threading.Lock(), dict[str, ssl.SSLContext]()
        self._run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Test CA", "-keyout",
                  "ca.key", "-out", "ca.pem", "-addext", "basicConstraints=critical,CA:TRUE")  # fmt: skip
        self._run(
            "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=host", "-keyout", "host.key", "-out", "host.csr"
        )

    def _run(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self._folder, check=True, capture_output=True, timeout=60)

    def context(self, host: str) -> ssl.SSLContext:
        with self._lock:
            if host not in self._made:
                (self._folder / "host.ext").write_text(f"subjectAltName=DNS:{host}\n")
                self._run("x509", "-req", "-in", "host.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                          "-days", "2", "-extfile", "host.ext", "-out", "host.pem")  # fmt: skip
                made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                made.load_cert_chain(self._folder / "host.pem", self._folder / "host.key")
                self._made[host] = made
            return self._made[host]


@contextlib.contextmanager
def makers(folder: Path, answer: Callable[[Request], Answer]) -> Iterator[Makers]:
    """Run it. Clients that look up a host themselves find none: they are not in this network."""
    folder.mkdir(exist_ok=True)
    certificates, listener = _Certificates(folder), socket.create_server(("127.0.0.1", 0))
    url, ca = f"http://127.0.0.1:{listener.getsockname()[1]}", str(folder / "ca.pem")
    own = "127.0.0.1,localhost"
    found = Makers(answer, {
        "HTTPS_PROXY": url, "https_proxy": url, "HTTP_PROXY": url, "http_proxy": url, "NO_PROXY": own, "no_proxy": own,
        "SSL_CERT_FILE": ca, "NODE_EXTRA_CA_CERTS": ca, "REQUESTS_CA_BUNDLE": ca, "CODEX_CA_CERTIFICATE": ca,
        "NODE_USE_ENV_PROXY": "1",
    })  # fmt: skip

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            head = b""
            while not head.endswith(b"\r\n\r\n") and (more := connection.recv(1)):
                head += more
            if not head.endswith(b"\r\n\r\n"):  # it has gone again
                return
            method, target, *_ = head.split(b" ")
            host = target.decode().rpartition(":")[0]
            if method != b"CONNECT":
                found.requests.append((target.decode(), Request(method.decode(), target.decode(), [], b"")))
                return
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            secured = certificates.context(host).wrap_socket(connection, server_side=True)
            with secured, secured.makefile("rb") as file:
                request = read_request(file)
                if request is not None:
                    found.requests.append((host, request))
                    for piece in found.answer(request):
                        assert isinstance(piece, bytes)
                        secured.sendall(piece)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield found
    finally:
        listener.close()
