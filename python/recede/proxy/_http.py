"""Replacements for what a proxy must not do and aiohttp does: add headers, drop bytes, reveal parts of requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.http import HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy

from recede._bodies import SENT_AGAIN, refuses_reasoning
from recede.proxy._answers import text_of
from recede.proxy._masked import MaskedRequest

_log = logging.getLogger("recede.proxy")
_of_aiohttp = logging.getLogger("recede.proxy.aiohttp")
_of_aiohttp.disabled = True  # its lines have bytes of requests

_HOP_BY_HOP = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    "upgrade".split()
)


class Request(aiohttp.ClientRequest):
    """A request of the client, to which nothing is added and from which nothing is dropped."""

    GET_METHODS = {*aiohttp.ClientRequest.GET_METHODS, "DELETE"}  # noqa: RUF012 - a DELETE has no Content-Length of 0

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        if _has_other_bytes(self.headers.values()):
            self._continue = asyncio.get_running_loop().create_future()  # or there is no `write_bytes` without a body
        return await super().send(conn)

    async def write_bytes(self, writer: Any, conn: Any, content_length: int | None = None) -> None:
        """Send the body, before which the headers were not sent."""
        if _has_other_bytes(self.headers.values()):
            self._continue = None
            first_line = writer._headers_buf.partition(b"\r\n")[0]
            writer._headers_buf = _head(first_line, self.headers.items())
        await super().write_bytes(writer, conn, content_length)


class Answer(web.StreamResponse):
    """An answer with the headers that the provider gave it."""

    async def _prepare_headers(self) -> None:
        given = {name.lower() for name in self.headers}
        await super()._prepare_headers()
        for name in {"Content-Type", "Date", "Server"} & {name for name in self.headers if name.lower() not in given}:
            del self.headers[name]

    async def _write_headers(self) -> None:
        if not _has_other_bytes([self.reason, *self.headers.values()]):
            return await super()._write_headers()
        self._send_headers_immediately = False
        await super()._write_headers()
        assert self._req is not None
        writer: Any = self._payload_writer
        version = self._req.version
        first_line = f"HTTP/{version[0]}.{version[1]} {self.status} {self.reason}"
        writer._headers_buf = _head(first_line.encode("utf-8", "surrogateescape"), self.headers.items())
        writer.send_headers()


def _has_other_bytes(values: Iterable[str]) -> bool:
    """Whether there are bytes that are not UTF-8: aiohttp reads them, but does not write them."""
    return any(not value.isascii() and any("\udc80" <= one <= "\udcff" for one in value) for value in values)


def _head(first_line: bytes, headers: Iterable[tuple[str, str]]) -> bytes:
    """Encode a head that aiohttp has built and checked, with all of its bytes."""
    lines = [first_line, *(f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in headers)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


class Server(web.Server):
    """A server whose refusals repeat nothing of what was sent to it."""

    def __call__(self) -> web.RequestHandler:
        return _Handler(self, loop=self._loop, logger=_of_aiohttp, **self._kwargs)


class _Handler(web.RequestHandler):
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        fault = next((getattr(message, "exc", None) for message, _ in self._messages), None)
        if fault is None:
            return
        # It waits until the request is answered in whose body it is, and that one for the rest of its body.
        current = [] if self._current_request is None else [self._current_request.content]
        for body in (*current, *(body for _, body in self._messages)):
            if not body.is_eof():
                body.set_exception(fault)

    def handle_error(self, request: web.BaseRequest, status: int = 500, exc: Any = None, message: Any = None) -> Any:
        status = 400 if isinstance(exc, HttpProcessingError) else status
        _log.warning("a request is answered with %s: %s", status, type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("half an answer is sent already")
        what = "this is no request of HTTP" if status == 400 else "an error of the proxy"
        answer = web.Response(status=status, text=f"recede proxy: {what} ({type(exc).__name__})\n")
        answer.force_close()
        return answer


async def body_of(request: web.BaseRequest, max_bytes: int) -> bytes | None:
    """Read the body of a request; None if it is longer than this."""
    pieces, size = [], 0
    async for piece in request.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            return None
    return b"".join(pieces)


Send = Callable[..., AbstractAsyncContextManager[aiohttp.ClientResponse]]


@asynccontextmanager
async def answering(
    send: Send, headers: CIMultiDict[str], body: Any, mask_again: Callable[[], MaskedRequest] | None
) -> AsyncIterator[tuple[aiohttp.ClientResponse, AsyncIterator[bytes], MaskedRequest | None]]:
    """Send a request, and once more without its reasoning if the answer refuses that.

    `mask_again` masks it so; None: the first answer stands. Yields the answer, the pieces of its body, and how the
    request was masked the second time.
    """
    async with send(headers=headers, data=body) as answer:
        pieces: AsyncIterator[bytes] = answer.content.iter_any()
        again: MaskedRequest | None = None
        if mask_again is not None and answer.status == 400:
            begun, pieces = await _begun_of(pieces)
            said = text_of(begun, answer.headers.get("Content-Encoding", ""))
            again = await asyncio.to_thread(mask_again) if refuses_reasoning(400, said) else None
        if again is None or again.body == body:
            del body, mask_again  # an answer may take minutes
            yield answer, pieces, None
            return
    _log.warning("%s", SENT_AGAIN.format(said))
    headers.popall("Content-Encoding", None)
    data, again = again.body, again._replace(body=b"", asked=None)
    async with send(headers=headers, data=data) as answer:
        del body, data, mask_again
        yield answer, answer.content.iter_any(), again


_MOST_BEGUN_BYTES = 1 << 16


async def _begun_of(pieces: AsyncIterator[bytes]) -> tuple[bytes, AsyncIterator[bytes]]:
    """Read the beginning of an answer; also return all of it."""
    begun: list[bytes] = []
    async for piece in pieces:
        begun.append(piece)
        if sum(map(len, begun)) > _MOST_BEGUN_BYTES:
            break

    async def whole() -> AsyncIterator[bytes]:
        for piece in begun:
            yield piece
        async for piece in pieces:
            yield piece

    return b"".join(begun), whole()


def passed_on(headers: CIMultiDictProxy[str], left_out: frozenset[str] = frozenset()) -> CIMultiDict[str]:
    """Return the headers without these, and without the headers of the connection itself."""
    named = ",".join(headers.getall("Connection", ())).lower().replace(",", " ").split()
    left_out = _HOP_BY_HOP.union(left_out, named)
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out)


def error_of(provider: str, status: int, message: str) -> web.Response:
    """Make an error of the proxy in the provider's own format."""
    message = f"recede proxy: {message}"
    body: dict[str, Any]
    if provider == "anthropic":
        kinds = {400: "invalid_request_error", 413: "request_too_large", 504: "timeout_error"}
        kind = kinds.get(status, "api_error")
        body = {"type": "error", "error": {"type": kind, "message": message}}
    elif provider == "gemini":
        kind = {400: "INVALID_ARGUMENT", 413: "INVALID_ARGUMENT", 504: "DEADLINE_EXCEEDED"}.get(status, "UNAVAILABLE")
        body = {"error": {"code": status, "message": message, "status": kind}}
    else:
        kind = "invalid_request_error" if status in (400, 413) else "server_error"
        body = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return web.json_response(body, status=status)
