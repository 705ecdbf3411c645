"""The page of `recede proxy`, under ``/recede/``: what is saved while it runs, also as JSON and for Prometheus."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from recede.proxy._totals import Totals

_PAGE = Path(__file__).with_name("page.html")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Page:
    """Answers what is asked under ``/recede``; `is_ring` says of providers and proxies whether requests come back."""

    def __init__(self, totals: Totals, is_ring: Callable[[list[str], list[str]], Awaitable[bool]]) -> None:
        self._totals, self._is_ring = totals, is_ring
        self._changed, self._is_stopping = asyncio.Event(), False

    def update(self) -> None:
        """Show that the totals have changed."""
        self._changed.set()

    def stop(self) -> None:
        self._is_stopping = True
        self._changed.set()

    async def answer(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="recede proxy: only GET\n", headers={"Allow": "GET"})
        if path == "/recede":
            return web.Response(status=307, headers={"Location": "/recede/"})
        if path == "/recede/":
            page = _PAGE.read_text("utf-8").replace(">null<", f">{self._stats()}<", 1)
            return web.Response(text=page, content_type="text/html", headers=_HEADERS)
        if path == "/recede/stats":
            return web.Response(text=self._stats(), content_type="application/json", headers=_HEADERS)
        if path == "/recede/metrics":
            return web.Response(text=self._totals.metrics(), content_type="text/plain", headers=_HEADERS)
        if path == "/recede/events":
            return await self._events(request)
        if path == "/recede/ring":
            providers, via = (request.query.get(name, "").split(",") for name in ("providers", "via"))
            return web.Response(status=508 if await self._is_ring(providers, via) else 204)
        return web.Response(status=404, text="recede proxy: there are /recede/, /recede/stats and /recede/metrics\n")

    def _stats(self) -> str:
        # Without `<`, which could end the script of the page that they are in.
        return json.dumps(self._totals.shown(), separators=(",", ":")).replace("<", "\\u003c")

    async def _events(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send the figures as server-sent events: now, and after changes, at most twice a second."""
        stream = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await stream.prepare(request)
        sent = -1
        with contextlib.suppress(ConnectionError):
            while not self._is_stopping:
                if sent != self._totals.version:
                    sent = self._totals.version
                    await stream.write(f"data: {self._stats()}\n\n".encode())
                self._changed.clear()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), 15)
                if sent == self._totals.version:
                    await stream.write(b": alive\n\n")
                await asyncio.sleep(0.0 if self._is_stopping else 0.5)
        return stream
