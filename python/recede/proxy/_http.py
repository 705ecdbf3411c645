"""What aiohttp would do by itself, and a proxy must not: add headers, and say what is in a request."""

from __future__ import annotations

import logging
from typing import Any

import aiohttp
from aiohttp import web

__all__ = ["Answer", "Request", "Server"]

_log = logging.getLogger("recede.proxy")
_of_aiohttp = logging.getLogger("recede.proxy.aiohttp")
_of_aiohttp.disabled = True  # its lines have bytes of requests


class Request(aiohttp.ClientRequest):
    """A request of the client, to which nothing is added."""

    GET_METHODS = {*aiohttp.ClientRequest.GET_METHODS, "DELETE"}  # noqa: RUF012 - a DELETE has no Content-Length of 0


class Answer(web.StreamResponse):
    """An answer with the headers that the provider gave it."""

    async def _prepare_headers(self) -> None:
        given = {name.lower() for name in self.headers}
        await super()._prepare_headers()
        for name in {"Content-Type", "Date", "Server"} & {name for name in self.headers if name.lower() not in given}:
            del self.headers[name]


class Server(web.Server):
    """A server whose refusals have nothing of what was sent to it."""

    def __call__(self) -> web.RequestHandler:
        """The handler of a connection."""
        return _Handler(self, loop=self._loop, logger=_of_aiohttp, **self._kwargs)


class _Handler(web.RequestHandler):
    def handle_error(self, request: web.BaseRequest, status: int = 500, exc: Any = None, message: Any = None) -> Any:
        _log.warning("a request is answered with %s: %s", status, type(exc).__name__)
        what = "this is no request of HTTP" if status == 400 else "an error of the proxy"
        answer = web.Response(status=status, text=f"recede proxy: {what} ({type(exc).__name__})\n")
        answer.force_close()
        return answer
