"""HTTP clients of the SDKs of Anthropic and OpenAI: `httpx2`, in older releases `httpx`; imports neither."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from recede._bodies import SENT_AGAIN, refuses_reasoning
from recede._off import is_off
from recede._steps import Call, drive, drive_async
from recede._summarizer import Asking, Steps
from recede.integrations._shared import BATCHES_WORDS, say
from recede.proxy import MaskedRequest, RequestMasker
from recede.proxy._answers import text_of
from recede.proxy._masked import Door
from recede.reduction._options import OPTIONS
from recede.reduction._policy import refuse_unknown
from recede.reduction._signature import takes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recede.types import Options, Summarizer

__all__ = ["Requests", "recede_client"]

_log = logging.getLogger("recede")

_Client = TypeVar("_Client")

_WAITS, _RETRIES = Door(waits=True), Door(waits=True, retries=True)
# The length and the encoding of a body, which a masked one does not have.
_OF_BODY = {"content-length", "content-encoding", "transfer-encoding"}


class Requests:
    """The masker of requests of a client, and who is asked for summaries."""

    def __init__(
        self, masker: RequestMasker | None, summarizer: Summarizer | None, options: dict[str, Any], otherwise: str
    ) -> None:
        """Take a masker, or options for one; `otherwise` is what to do where an async summarizer cannot be awaited."""
        refuse_unknown(options, {"summarizer": None})
        if masker is not None and options:
            raise TypeError(f"give the options to the masker: RequestMasker({next(iter(options))}=...)")
        if masker is not None and masker.summarizes != (summarizer is not None):
            raise TypeError("a masker with summaries=True needs a summarizer, and a summarizer such a masker")
        self._asking = None if summarizer is None else Asking(summarizer, otherwise)
        self._masker = masker or RequestMasker(summaries=summarizer is not None, **options)

    def masked(self, request: Any) -> Any:
        """Return the request to send: the one given, or one with another body."""
        return drive(self._steps(request, request.read(), _WAITS))[0] if _has_json(request) else request

    async def amasked(self, request: Any) -> Any:
        """Return the same for an async client."""
        if not _has_json(request):
            return request
        return (await drive_async(self._steps(request, await request.aread(), _WAITS)))[0]

    def answer(self, request: Any, send: Callable[[Any], Any]) -> Any:
        """Send a request, masked, and once more if its reasoning is refused; return the answer."""
        if not _has_json(request):
            return send(request)
        return drive(self._answered(request, request.read(), send, _read))

    async def aanswer(self, request: Any, send: Callable[[Any], Any]) -> Any:
        """Do the same for an async client."""
        if not _has_json(request):
            return await send(request)
        return await drive_async(self._answered(request, await request.aread(), send, _aread))

    def _answered(
        self, request: Any, body: bytes, send: Callable[[Any], Any], read: Callable[[Any], Any]
    ) -> Steps[Any]:
        sent, masked = yield from self._steps(request, body, _RETRIES)
        response = yield Call("send", send, (sent,))
        if response.status_code == 400 and masked.has_reasoning:
            said = text_of((yield Call("read", read, (response,))), response.headers.get("content-encoding", ""))
            if refuses_reasoning(400, said):
                mended = self._masker._masked(*_given(request, body), door=_RETRIES._replace(was_refused=True))
                if mended.body != masked.body:
                    _log.warning("%s", SENT_AGAIN.format(said))
                    response = yield Call("send", send, (_with_body(request, mended.body),))
        return response

    def _steps(self, request: Any, body: bytes, door: Door) -> Steps[tuple[Any, MaskedRequest]]:
        """Return the request to send, and what was done."""
        given = _given(request, body)
        masked = self._masker._masked(*given, door=door)
        if masked.asked is not None:
            answer: Any = False
            if self._asking is not None:
                answer = yield from self._asking.steps(masked.asked.messages.copy, masked.asked.previous)
            text = answer[0] if isinstance(answer, tuple) else None
            self._masker.give(masked.asked, text, unfinished=answer is True)
            masked = self._masker._masked(*given, door=door._replace(waits=False))
        if masked.changed:
            return _with_body(request, masked.body), masked
        if request.url.path.endswith("/batches") and "x-recede" not in dict(given[2]):
            say(BATCHES_WORDS)
        return request, masked


def _given(request: Any, body: bytes) -> tuple[str, str, list[tuple[str, str]], bytes, str]:
    """What a `RequestMasker` is given of a request."""
    # What is off is not masked; reasoning that a mask has voided stays out.
    headers = [*request.headers.multi_items(), *([("x-recede", "off")] if is_off() else [])]
    return request.method, request.url.path, headers, body, str(request.url).partition("?")[0]


def _with_body(request: Any, body: bytes) -> Any:
    headers = [pair for pair in request.headers.multi_items() if pair[0] not in _OF_BODY]
    return type(request)(request.method, request.url, headers=headers, content=body, extensions=request.extensions)


def _read(response: Any) -> bytes:
    """Read an answer as it came; it can be read again."""
    data = b"".join(response.stream)
    response.stream.close()
    return _read_again(response, data)


async def _aread(response: Any) -> bytes:
    """Do the same for an async client."""
    data = b"".join([piece async for piece in response.stream])
    await response.stream.aclose()
    return _read_again(response, data)


def _read_again(response: Any, data: bytes) -> bytes:
    package = sys.modules[type(response).__module__.partition(".")[0]]
    response.stream = package.ByteStream(data)
    return data


class _Transport:
    """The transport of a client, which is sent masked requests; the client keeps its own for redirects and retries."""

    def __init__(self, transport: Any, requests: Requests) -> None:
        self._transport = transport
        self._requests = requests

    def handle_request(self, request: Any) -> Any:
        return self._requests.answer(request, self._transport.handle_request)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> _Transport:
        self._transport.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._transport.__exit__(*failure)

    async def handle_async_request(self, request: Any) -> Any:
        return await self._requests.aanswer(request, self._transport.handle_async_request)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def __aenter__(self) -> _Transport:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> None:
        await self._transport.__aexit__(*failure)


def _has_json(request: Any) -> bool:
    """Whether a body should be read; files are not, since they may be streams."""
    is_json: bool = request.headers.get("content-type", "").startswith("application/json")
    return request.method == "POST" and is_json


@takes(OPTIONS)
def recede_client(
    http_client: _Client,
    masker: RequestMasker | None = None,
    *,
    summarizer: Summarizer | None = None,
    **options: Unpack[Options],
) -> _Client:
    """An HTTP client, for ``http_client=`` of an SDK, that masks old observations in the bodies that it sends.

    It is the client given, with its proxies, limits and timeouts; whatever the SDK sends through it is masked as by
    `recede proxy`, retries too.

    Args:
        http_client: ``DefaultHttpxClient()`` or ``DefaultAsyncHttpxClient()`` of the SDK, or a `Client` or
            `AsyncClient` of `httpx2` or `httpx`, as the SDK takes them.
        masker: the `recede.proxy.RequestMasker` to use; by default one with these options.
        summarizer: called before a request for which a summary of old turns pays; see `recede.summarizers`. An async
            client takes an async one too. A given masker must have ``summaries``.
        **options: as for `reduce`. No message is ever dropped.

    Raises:
        TypeError, ValueError: it is no such client, it masks already, an option is wrong, or given beside a masker.

    Example::

        client = Anthropic(http_client=recede_client(DefaultHttpxClient(), keep=10))
    """
    client: Any = http_client
    if not hasattr(client, "_transport") or not hasattr(client, "_mounts"):
        raise TypeError(
            f"http_client must be a Client or AsyncClient of httpx2 or httpx, not {type(client).__name__}; for a "
            "client of an SDK there is recede.wrap"
        )
    if isinstance(client._transport, _Transport):
        raise TypeError("http_client masks already")
    requests = Requests(masker, summarizer, {**options}, "give the client of an async SDK")
    client._transport = _Transport(client._transport, requests)
    # Those of proxies; None is the transport above.
    client._mounts = {url: one and _Transport(one, requests) for url, one in client._mounts.items()}
    return http_client
