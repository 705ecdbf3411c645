"""The server of `recede proxy`, between agents and providers. It needs ``recede[cli]``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import time
import urllib.parse
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.http import HttpProcessingError
from yarl import URL

from recede._agents import Agent
from recede._hosts import host_row
from recede.proxy._answers import AnswerReader
from recede.proxy._http import Answer, Request, Server, answering, body_of, error_of, passed_on
from recede.proxy._keys import RefusedError, refused_key, refused_model
from recede.proxy._masked import Door, MaskedRequest
from recede.proxy._masker import MAX_BODY_BYTES, RequestMasker
from recede.proxy._page import Page
from recede.proxy._routes import (
    UNKNOWN,
    UPSTREAMS,
    Route,
    Target,
    checked_upstream,
    form_of,
    is_address,
    name_of,
    network_proxies,
    origin_of,
    place_of,
    provider_of,
    route_of,
    taken_off,
)
from recede.proxy._summary_calls import SummaryCalls
from recede.proxy._totals import Totals

__all__ = ["UPSTREAMS", "Proxy"]

_log = logging.getLogger("recede.proxy")

_CONNECT_SECONDS = 10
_SILENCE_SECONDS = 600
_SHUTDOWN_SECONDS = 30.0
_SHORT_BYTES = 1 << 18  # of a body that is masked in less than a millisecond
_RING_SECONDS = 2
_MAX_ROW = 16  # proxies one after the other
_SIZES: dict[str, Any] = {"max_line_size": 1 << 16, "max_field_size": 1 << 16, "max_headers": 1_000}
_USUAL_ROWS = {name: host_row(url) for name, url in UPSTREAMS.items()}
_NOT_SENT = frozenset({"host", "content-length", "expect", "x-recede"})
_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")  # by aiohttp, unless it is asked not to


class Proxy:
    """A proxy for the APIs of Anthropic, OpenAI and Gemini, which masks old observations.

    Args:
        masker: what masks the requests.
        upstream: where all requests go; by default to their provider, by path and headers.
        upstreams: where requests of a provider go instead, by its name in `UPSTREAMS`.
        host: the address to listen on.
        port: the port; 0: any that is free.
        observe: requests are sent raw, and what masking would have saved is estimated.
        folder: the name of the folder that the command works in, for the page.
        summaries: the model that writes summaries of old turns, for a masker that asks for them; "": that of the
            conversation.
        of_command: all requests are of one command; those of no known provider go where its others go.
        agent: the agent that the command starts, if it is known.
        addresses: addresses of the agent's own, by the word before whose paths ``/@WORD`` stands.
        command: what starts it, for the lines to type that refusals end with.
    """

    def __init__(
        self,
        masker: RequestMasker,
        *,
        upstream: str | None = None,
        upstreams: Mapping[str, str] | None = None,
        host: str = "127.0.0.1",
        port: int = 8787,
        observe: bool = False,
        of_command: bool = False,
        agent: Agent | None = None,
        addresses: Mapping[str, str] | None = None,
        command: str = "",
        folder: str = "",
        summaries: str = "",
    ) -> None:
        """Take the settings; `start` begins to listen."""
        self.totals = Totals(observe, folder, compacts=agent is not None and agent.compacts)
        self.url = ""  # where it listens, once it does
        self._masker = masker
        chosen = {name: (upstreams or {}).get(name) or upstream or url for name, url in UPSTREAMS.items()}
        self.upstreams = {name: checked_upstream(url) for name, url in chosen.items()}
        self._addresses = {word: checked_upstream(url) for word, url in (addresses or {}).items()}
        self.has_requests = False  # whether a request to a provider has come
        self._is_of_command = of_command
        self._of_command = {agent.provider} if agent is not None and agent.provider is not None else set()
        self._host, self._port, self._command = host, port, command
        self._proxies = network_proxies([*self.upstreams.values(), *self._addresses.values()])
        self._summaries = SummaryCalls(masker, self.totals, summaries, self._proxies)
        self._page = Page(self.totals, self._is_ring)
        self._name = secrets.token_hex(8)
        self._runner: web.ServerRunner | None = None
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Start to listen.

        Raises:
            OSError: the address cannot be listened on.
            ValueError: requests to an upstream, or to the proxy of the network, would come back to this proxy.
        """
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listener = socket.create_server((self._host, self._port), family=family, backlog=512)
        self._port = listener.getsockname()[1]
        name = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http://{'127.0.0.1' if self._host == '0.0.0.0' else name}:{self._port}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS),
            auto_decompress=False,
            request_class=Request,
            **_SIZES,
        )
        server = Server(self._answer, handler_cancellation=True, auto_decompress=False, access_log=None, **_SIZES)
        self._runner = web.ServerRunner(server, shutdown_timeout=2 * _SHUTDOWN_SECONDS)  # it waits for each step of it
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()
        place = await self._place_of_ring([*self.upstreams], [])
        for url in self._proxies.values():
            is_own_port = urllib.parse.urlsplit(url).port == self._port
            if place is None and is_own_port and await self._leads_back(url, [], []):
                place = url
        if place is not None:
            await self.stop()
            raise ValueError(
                f"requests to {place_of(place)} would come back to this proxy; give the address of the provider "
                "(--upstream), or of the proxy of the network (HTTPS_PROXY)"
            )

    async def stop(self) -> None:
        """Accept no more requests, and wait up to half a minute for running ones."""
        self._page.stop()
        self._summaries.cancel()
        if self._runner is not None:
            late = asyncio.get_running_loop().call_later(_SHUTDOWN_SECONDS, self.break_off)
            await self._runner.cleanup()
            late.cancel()
        if self._session is not None:
            await self._session.close()

    def break_off(self) -> None:
        """Close every connection at once, so that `stop` waits for nothing."""
        for connection in getattr(self._runner and self._runner.server, "connections", ()):
            if connection.transport is not None:
                connection.transport.abort()

    # Requests

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        refusal = self._refusal(request)
        if refusal is not None:
            return web.Response(status=403, text=f"recede proxy: {refusal}\n")
        path = request.raw_path if request.raw_path.startswith("/") else "/" + request.raw_path
        place = path.partition("?")[0]
        if place == "/recede" or place.startswith("/recede/"):
            return await self._page.answer(request, place)
        if request.method == "CONNECT":
            text = "this is no proxy of the network; set the base URL of the client to its address\n"
            return web.Response(status=405, text=f"recede proxy: {text}", headers={"Allow": "GET, POST"})
        found = taken_off(path, self._addresses)
        if found is None:
            return web.Response(status=404, text="recede proxy: there is no such address\n")
        path, address = found
        self.has_requests = True
        route = route_of(path)
        target = self._target(request, path, route, address)
        provider = "openai" if target is None else target.provider
        if request.headers.get("Upgrade", "").lower() == "websocket":
            # Codex then falls back to HTTP at once; another status costs it seconds.
            answer = error_of(provider, 426, "WebSockets are not passed on; use HTTP")
            answer.headers["Connection"] = "close"
            return answer
        if target is None:
            return self._refuse(request, provider, UNKNOWN)
        form, headers = form_of(provider, path), request.headers.items()
        why = refused_key(target.row, target.is_usual, form, path, headers, self._command)
        if why is not None:
            return self._refuse(request, provider, why)
        self._of_command |= {provider} if self._is_of_command and address is None else set()
        try:
            return await self._forward(request, path, target, route if request.method == "POST" else None)
        except RefusedError as error:
            return self._refuse(request, provider, str(error))

    def _refuse(self, request: web.BaseRequest, provider: str, why: str) -> web.Response:
        """Answer a request that is not sent on, in the form of its provider."""
        _log.warning("%s %s is refused: %s", request.method, request.raw_path.partition("?")[0], why)
        self._note_error()
        return error_of(provider, 400, why)

    def _target(self, request: web.BaseRequest, path: str, route: Route | None, address: str | None) -> Target | None:
        """Find where a request goes. Nothing is guessed: a request has a key, which is for one provider alone."""
        found = provider_of(request.method, path, request.headers, route)
        if found is None and (address is not None or len(set(self.upstreams.values())) == 1):
            found = "openai"  # all go to one place
        if found is None and len(self._of_command) == 1:
            (found,) = self._of_command
        if found is None:
            return None
        url = address or self.upstreams[found]
        usual = next((name for name, one in UPSTREAMS.items() if one == (origin_of(url) if address else url)), None)
        row = host_row(url) if usual is None else _USUAL_ROWS[usual]
        return Target(found, url, row, is_usual=usual is not None, is_whole=address is not None)

    def _check_model(self, target: Target, path: str, model: str | None) -> None:
        """Refuse, by default upstreams, what names the model of another maker."""
        why = target.row and refused_model(target.row, form_of(target.provider, path), model, self._command)
        if why is not None:
            raise RefusedError(why)

    def _refusal(self, request: web.BaseRequest) -> str | None:
        """Say why a browser may have been tricked into this request; None if it was not.

        A page of another site has its own Origin, or says that it is one; one whose name was bound to this address has
        its own Host.
        """
        host = name_of(request.headers.get("Host", ""))
        if host != "localhost" and host != self._host.lower() and not is_address(host):
            return "the Host of the request must be an IP address or localhost"
        sites = {value.strip().lower() for value in request.headers.getall("Sec-Fetch-Site", ())}
        if sites & {"cross-site", "same-site"}:  # a GET of a page has no Origin
            return "requests of pages of other sites are refused"
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("Host", ""):
            return "requests of pages of other origins are refused"
        return None

    async def _forward(
        self, request: web.BaseRequest, path: str, target: Target, route: Route | None
    ) -> web.StreamResponse:
        assert self._session is not None
        began = time.monotonic()
        headers = passed_on(request.headers, _NOT_SENT)
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body: bytes | AsyncIterator[bytes] | None = None
        masked, is_masked = MaskedRequest(b""), False
        mask_again: Callable[[], MaskedRequest] | None = None  # without its reasoning
        if route is not None:
            given = await body_of(request, MAX_BODY_BYTES)
            if given is None:
                return error_of(target.provider, 413, f"a request has at most {MAX_BODY_BYTES >> 20} MB")
            check = partial(self._check_model, target, path) if target.is_usual else None
            headers_given, door = tuple(request.headers.items()), Door(observes=self.totals.is_observing, retries=True)
            mask = partial(self._masker._mask_on, route, path, headers_given, given, target.url, check)
            # The event loop is for work of a millisecond; unpacking, and counting of tokens, may take long.
            is_long = len(given) > _SHORT_BYTES or "Content-Encoding" in request.headers or self._masker.counts_tokens
            masked = await asyncio.to_thread(mask, door=door) if is_long else mask(door=door)
            is_masked = masked.changed and not door.observes
            body = masked.body if is_masked else given
            if masked.has_reasoning and not door.observes:
                mask_again = partial(mask, door=door._replace(was_refused=True))
            del given, mask
            if is_masked:
                headers.popall("Content-Encoding", None)
            self._summaries.ask(self._session, target, path, request.headers, masked)
            masked = masked._replace(body=b"", asked=None)
        else:
            body = request.content.iter_any() if request.body_exists else None
            if "Content-Length" in request.headers:
                headers["Content-Length"] = request.headers["Content-Length"]
        answer: Answer | None = None
        reader: AnswerReader | None = None
        status, is_whole = 0, False
        send = partial(
            self._session.request,
            request.method,
            URL(target.url_of(path), encoded=True),
            skip_auto_headers=_ADDED,
            allow_redirects=False,
            proxy=self._proxies.get(target.url),
        )
        try:
            async with answering(send, headers, body, mask_again) as (found, pieces, again):
                del body, mask_again
                if again is not None:
                    self.totals.refusals += 1
                    masked, is_masked = again, True
                status = found.status
                head = passed_on(found.headers)
                if is_masked:
                    head["x-recede"] = f"masked; {masked.chars_before}->{masked.chars_after}"
                answer = Answer(status=status, reason=found.reason, headers=head)
                if masked.provider is not None and status == 200 and not masked.counted:
                    reader = AnswerReader(found.content_type, found.headers.get("Content-Encoding", ""))
                await answer.prepare(request)
                async for piece in pieces:
                    if reader is not None:
                        reader.feed(piece)
                    await answer.write(piece)
                await answer.write_eof()
                is_whole = True
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as error:
            fault, is_gone = request.content.exception(), isinstance(error, ConnectionResetError)
            if isinstance(fault, HttpProcessingError) and not is_gone:  # of the client: its body is no body
                raise fault from None
            if answer is None or not answer.prepared:
                return self._unreachable(target, path, error)
            why = "the client has gone" if is_gone else f"the answer broke off: {type(error).__name__}"
            return self._break(request, answer, path, status, why)
        finally:
            if reader is not None:
                reader.end()
                if is_whole or reader.usage is not None:  # agents leave as soon as they have read what they wait for
                    has_price = target.has_price(request.headers)
                    self.totals.answered(masked, reader.usage, reader.model, has_price, reader.dropped_reasoning)
                    self._masker.reported(masked, reader.usage)
                    self._page.update()
        if reader is None:
            self.totals.passed_on(masked, status)
            self._page.update()
        self._log_request(request.method, path, status, masked, time.monotonic() - began)
        return answer

    def _note_error(self) -> None:
        self.totals.errors += 1
        self.totals.version += 1
        self._page.update()

    def _log_request(self, method: str, path: str, status: int, masked: MaskedRequest, seconds: float) -> None:
        done = ""
        if masked.changed:
            done = f", {masked.masked_count} results masked, {masked.chars_before:,} -> {masked.chars_after:,} chars"
            done += ", the boundary moved" if masked.moved else ""
        # Without its query, which may have a key.
        _log.info("%s %s: %s, %.1f s%s", method, path.partition("?")[0], status, seconds, done)

    def _unreachable(self, target: Target, path: str, error: BaseException) -> web.Response:
        is_late = isinstance(error, (asyncio.TimeoutError, TimeoutError))
        host = urllib.parse.urlsplit(target.url).hostname
        why = "did not answer in time" if is_late else "could not be reached, or did not answer"
        _log.warning("%s: %s %s (%s)", path.partition("?")[0], host, why, type(error).__name__)
        self._note_error()
        return error_of(target.provider, 504 if is_late else 502, f"{host} {why} ({type(error).__name__})")

    def _break(
        self, request: web.BaseRequest, answer: web.StreamResponse, path: str, status: int, why: str
    ) -> web.StreamResponse:
        """Close the connection, so that half an answer does not look whole."""
        _log.warning("%s: %s; %s", path.partition("?")[0], status, why)
        self._note_error()
        if request.transport is not None:
            request.transport.close()
        return answer

    # Rings

    async def _is_ring(self, providers: list[str], via: list[str]) -> bool:
        is_own = self._name in via or len(via) > _MAX_ROW
        return is_own or await self._place_of_ring(providers, via) is not None

    async def _place_of_ring(self, providers: list[str], via: list[str]) -> str | None:
        """Find an upstream that sends requests for these providers back to this proxy, or to an earlier one."""
        chosen = {name: self.upstreams[name] for name in providers if name in self.upstreams}
        # An address of the agent's own is in this row, too, once it is asked for all that go through it.
        for url in {*chosen.values(), *self._addresses.values()}:
            if await self._leads_back(url, [name for name in chosen if chosen[name] == url] or [*UPSTREAMS], via):
                return url
        return None

    async def _leads_back(self, url: str, providers: list[str], via: list[str]) -> bool:
        """Whether requests for these providers sent to a URL come back, according to the proxy there.

        Asked at the start, since requests have nothing by which one that comes back is known: of a ring, the proxy that
        starts last finds it. These proxies speak plain HTTP, so no other upstream is asked.
        """
        assert self._session is not None
        if not url.startswith("http://"):
            return False
        asked = {"providers": ",".join(providers), "via": ",".join([*via, self._name])}
        limit = aiohttp.ClientTimeout(total=_RING_SECONDS)
        with contextlib.suppress(aiohttp.ClientError, OSError, asyncio.TimeoutError):
            async with self._session.get(f"{place_of(url)}/recede/ring", params=asked, timeout=limit) as answer:
                return answer.status == 508
        return False
