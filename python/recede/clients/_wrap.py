"""`wrap`: a client whose requests send the view of their messages, and which is the same in everything else."""

# The clients call these hooks of theirs, whatever method, form of response or resource a request is of: `request` with
# its parts, `_prepare_options` each time that it is sent, `_prepare_request` once it is built, `_process_response_data`
# with the data of an answer or of an event. So what is not masked is seen here as well, and nothing is sent unseen.

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from recede._bodies import kept_words, refuses_reasoning
from recede._encodable import warn_once
from recede._off import is_off
from recede._report import BoundaryMove
from recede._steps import drive, drive_async
from recede.clients._genai import is_genai, wrapped_genai
from recede.clients._requests import (
    SOCKETS,
    Answered,
    ModelProvider,
    history_key,
    is_covered,
    only_counts,
    refuse_messages,
)
from recede.masker import Masker
from recede.reduction._options import OPTIONS
from recede.reduction._policy import refuse_unknown
from recede.reduction._signature import takes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recede.types import Options, Summarizer

_log = logging.getLogger("recede")

_Client = TypeVar("_Client")

# The masker and the history of the request that is being prepared.
_preparing: ContextVar[tuple[Any, list[Any]] | None] = ContextVar("recede_preparing", default=None)
# Its model, for the summarizer "model".
_model: ContextVar[Any] = ContextVar("recede_model", default=None)
_EXTENSION = "recede"


def _class_of(kind: Any, masker: Masker[Any], providers: ModelProvider) -> Any:
    """The class of a client, with our hooks; `with_options` makes clients of the same class, so they have them too."""

    class Wrapped(kind):  # type: ignore[misc]
        _recede_masker = masker

        def _process_response_data(self, *, data: Any, cast_to: Any, response: Any) -> Any:
            _report(data, response)
            return super()._process_response_data(data=data, cast_to=cast_to, response=response)

        def _is_mended(self, options: Any, error: Exception) -> bool:
            return refuses_reasoning(getattr(error, "status_code", None), str(error)) and (
                (asked := _asked(providers, options, str(self.base_url))) is not None
                and masker._is_mended(asked.history, str(error), asked.request, is_sent=asked.around["is_sent"])
            )

    class Sync(Wrapped):
        def request(self, cast_to: Any, options: Any, **how: Any) -> Any:
            try:
                return super().request(cast_to, options, **how)
            except Exception as error:
                if not self._is_mended(options, error):
                    raise
            return super().request(cast_to, options, **how)

        def _prepare_options(self, options: Any) -> Any:
            asked = _asked(providers, options, str(self.base_url))
            if asked is not None:
                options = _sent(masker, options, asked, drive(masker._viewing(asked.history, **asked.around)))
            return super()._prepare_options(options)

        def _prepare_request(self, request: Any) -> None:
            _note(request)
            super()._prepare_request(request)

    class Async(Wrapped):
        async def request(self, cast_to: Any, options: Any, **how: Any) -> Any:
            try:
                return await super().request(cast_to, options, **how)
            except Exception as error:
                if not self._is_mended(options, error):
                    raise
            return await super().request(cast_to, options, **how)

        async def _prepare_options(self, options: Any) -> Any:
            asked = _asked(providers, options, str(self.base_url))
            if asked is not None:
                view = await drive_async(masker._viewing(asked.history, **asked.around))
                options = _sent(masker, options, asked, view)
            return await super()._prepare_options(options)

        async def _prepare_request(self, request: Any) -> None:
            _note(request)
            await super()._prepare_request(request)

    wrapped: Any = Async if inspect.iscoroutinefunction(kind._prepare_options) else Sync
    wrapped.__name__, wrapped.__qualname__, wrapped.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return wrapped


class _NoSockets:
    """The address for WebSockets of a wrapped client: no address for the functions that open one."""

    def __init__(self, address: Any) -> None:
        self.address = address

    def __repr__(self) -> str:
        return SOCKETS


def _address(client: Any) -> Any:
    address = vars(client).get("websocket_base_url")
    return address if is_off() else _NoSockets(address)


def _set_address(client: Any, address: Any) -> None:
    vars(client)["websocket_base_url"] = address.address if isinstance(address, _NoSockets) else address


class _Asked(NamedTuple):
    """A request whose history is to be masked: the field that has it, all that is sent, and the options of its view."""

    key: str
    history: list[Any]
    request: dict[str, Any]
    around: dict[str, Any]


def _sent(masker: Masker[Any], options: Any, asked: _Asked, view: list[Any]) -> Any:
    """The options of the request, with the view in place of the history."""
    options = copy.copy(options)  # a retry begins with the history again
    body = options.json_data if options.json_data is not None else options.content
    options.json_data = {**body, asked.key: view}
    _preparing.set((masker, asked.history))
    return options


def _asked(providers: ModelProvider, options: Any, url: str) -> _Asked | None:
    """What is to be masked of a request; None if nothing is."""
    _preparing.set(None)
    if is_off() or options.method.lower() != "post":
        return None
    body: Any = options.json_data if options.json_data is not None else getattr(options, "content", None)
    key = history_key(str(options.url), body)
    refuse_messages(str(options.url), getattr(options, "extra_json", None))
    if key is None:
        if isinstance(body, dict) and is_covered(str(options.url)) and (kept := kept_words(body)):
            warn_once(kept)
        return None
    history = body[key]
    extra = getattr(options, "extra_json", None)  # the client adds it to the body
    sent = {**body, **(extra or {})}
    _model.set(sent.get("model"))
    around = {**providers.around(sent, history, url), "is_sent": not only_counts(str(options.url))}
    return _Asked(key, history, sent, around)


def _own_summarizer(client: Any, package: str) -> Any:
    """A summarizer that asks the client itself, for the model of the request."""
    from recede import summarizers  # lazily: it loads what few need

    make = getattr(summarizers, package)

    def summarize(messages: list[Any], previous: str | None) -> Any:
        return make(client, str(_model.get()))(messages, previous)

    async def awaited(messages: list[Any], previous: str | None) -> Any:
        return await summarize(messages, previous)

    is_async = inspect.iscoroutinefunction(
        client.models.generate_content if package == "gemini" else client._prepare_options
    )
    return awaited if is_async else summarize


def _note(request: Any) -> None:
    """Keep with the request what its answer is reported to."""
    preparing = _preparing.get()
    if preparing is not None:
        request.extensions[_EXTENSION] = (*preparing, Answered())


def _report(data: Any, response: Any) -> None:
    """Report usage. An answer is worth more than that, whatever it may hold."""
    try:
        masker, history, answered = response.request.extensions[_EXTENSION]
        usage = answered.usage(data)
        if usage is not None:
            masker.reported(usage, history)
    except KeyError:
        return
    except Exception as error:
        _log.warning("what the provider counted is lost: %s", error)


def _wrapped(client: Any, masker: Masker[Any] | None = None, **options: Any) -> Any:
    kind = type(client)
    package = {base.__module__.partition(".")[0] for base in kind.__mro__} & _PROVIDERS
    if hasattr(client, "_recede_masker"):
        raise TypeError("the client is wrapped already: wrap the original one")
    of_google = is_genai(client)
    if not of_google and (not package or not all(hasattr(client, hook) for hook in _HOOKS)):
        raise TypeError(
            f"client must be one of Anthropic, OpenAI or google-genai, or its async variant, not {kind.__name__}; for "
            "the messages of others use a recede.masker.Masker"
        )
    providers = ModelProvider(None, options)
    if masker is None:
        name = "gemini" if of_google else package.pop()
        if options.get("summarizer") == "model":
            options["summarizer"] = _own_summarizer(client, name)
        providers = ModelProvider(name, options)
        masker = Masker(**providers.assumed(options))
    elif options:
        raise TypeError(f"give the options to the masker: Masker({next(iter(options))}=...)")
    elif not isinstance(masker, Masker):
        raise TypeError(f"masker must be a recede.masker.Masker or None, not {type(masker).__name__}")
    if of_google:
        return wrapped_genai(client, masker, providers)
    wrapped = client.copy()
    wrapped.__class__ = _class_of(kind, masker, providers)
    if hasattr(client, "websocket_base_url"):
        wrapped.__class__.websocket_base_url = property(_address, _set_address)
    return wrapped


_HOOKS = ("request", "_prepare_options", "_prepare_request", "_process_response_data", "copy")
_PROVIDERS = {"anthropic", "openai"}  # the packages of their clients


@takes(OPTIONS)
def wrap(
    client: _Client,
    masker: Masker[Any] | None = None,
    *,
    recall: bool = False,
    on_move: Callable[[BoundaryMove], Any] | None = None,
    calibrate: bool = False,
    summarizer: Summarizer | Literal["model"] | None = None,
    **options: Unpack[Options],
) -> _Client:
    """A client of Anthropic, OpenAI or google-genai whose requests send views; by default with a break-even boundary.

    It is a copy of the client with the same type and methods, and shares its connections. It masks the messages of
    `messages.create` and `.stream` of Anthropic, those of ``beta`` too, of `chat.completions.create`, `.parse` and
    `.stream`, and the input of `responses.create`, `.parse` and `.stream`; also with `with_options`,
    `with_raw_response` and `with_streaming_response`, and where they are only counted. The lists that are given stay as
    they are: pass the whole history each time. An input that continues a response which OpenAI has stored is sent as it
    is. Of google-genai it masks the steps of `interactions.create`, also of ``client.aio`` and streamed, unless the
    provider keeps the history (``previous_interaction_id``, ``agent``, ``continuation_token`` without input).

    The boundary moves where that pays at the prices of the model that a conversation's first request names, or the
    provider's usual ones, unless a `provider` is named; later requests keep them, so that views do not change where the
    model does. As long as no message of Anthropic's has a cache mark, and neither has the top level of the request,
    there is no cache to spare: views are those for ``provider="none"``, until an answer shows that there is one.

    Any other call that would send messages (batches, threads, `responses.compact`, WebSockets, `generate_content`)
    raises a TypeError.
    With ``RECEDE_OFF=1`` in the environment everything is sent as it is given.

    Args:
        client: an `Anthropic` or `OpenAI`, an async one, or one of their variants, such as `AzureOpenAI`; a
            ``google.genai.Client``, or its ``aio``.
        masker: the `Masker` to use, for its `masks`, `count_tokens` and `recall`; by default one with the options.
        recall: as for `Masker`: placeholders name handles, for the tool `recede.masker.recall_tool`. Give a masker to
            answer its calls with `Masker.recall`.
        on_move: as for `Masker`. Give a masker for its other options.
        calibrate: as for `Masker`: usage in answers is reported to it.
        summarizer: as for `Masker`, sync or async as the client is; ``"model"``: the client itself is asked, for the
            model of the request, before the request that has the summary. Its prompt is `recede.summarizers.PROMPT`.
        **options: as for `reduce`; ``provider="auto"`` is that of the client, at the prices of the model.

    Raises:
        TypeError, ValueError: it is no such client, or an option is wrong.

    A request costs what `Masker.view` costs.

    Example:
        >>> import recede
        >>> recede.wrap("https://api.example.com")
        Traceback (most recent call last):
        TypeError: client must be one of Anthropic, OpenAI or google-genai, or its async variant, not str; for the...
    """
    own = {"recall": recall, "on_move": on_move, "calibrate": calibrate, "summarizer": summarizer}
    refuse_unknown(options, own)
    return _wrapped(client, masker, **{name: value for name, value in own.items() if value}, **options)  # type: ignore[no-any-return]
