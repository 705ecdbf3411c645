"""Shared parts of adapters: options, answers of the tool `recall`, contents, usage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from recede._bodies import KEPT_BY_PROVIDER, kept_words, refuses_reasoning
from recede._encodable import warn_once
from recede._errors import without_text
from recede._objects import plain_message
from recede._off import is_off
from recede._recall import RECALL_DESCRIPTION
from recede._report import BoundaryMove
from recede.clients._requests import ModelProvider
from recede.masker import Masker
from recede.providers import model_verifies, verifies
from recede.reduction._counting import MARKS, unmarked
from recede.reduction._options import OPTIONS
from recede.reduction._policy import refuse_unknown
from recede.reduction._share import has_limits
from recede.reduction._signature import takes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recede.types import Options, Summarizer

BATCHES_WORDS = "batches are sent as they are: mask their messages with a recede.masker.Masker first"

_TEXTS = {"text", "input_text", "output_text"}
_IMAGES = {
    *("image", "image_url", "input_image", "document", "file", "input_file"),
    *("input_audio", "audio", "video", "video_url", "computer_screenshot"),
}
_THINKING = {"thinking", "redacted_thinking"}
NO_REASONING = "[reasoning not sent again]"
"""The text of a message that has nothing else than signed reasoning."""
# A framework names the calls beside the content, too.
_CALLS = {"custom_tool_call", "function_call", "invalid_tool_call", "tool_call", "tool_call_chunk", "tool_use"}
_CALL_KEYS = ("id", "name", "input")
_SCALAR_CHARS = 4
# What frameworks call the base URL of a model, and what in it may have one.
_URLS = ("base_url", "openai_api_base", "azure_endpoint", "anthropic_api_url", "api_base", "endpoint_url")
_CLIENTS = ("client_args", "client", "_client", "bound", "wrapped", "meta", "_additional_args")
_MOST_HELD = 12
# The messages of the model call that is running, for the tool `recall` where a framework does not give them to tools.
running: ContextVar[list[Any] | None] = ContextVar("recede_running", default=None)


def unknown(error: LookupError) -> str:
    """Return the answer of the tool `recall` where it finds nothing."""
    return f"{error}: call the tool again"


def missing(module: str, needs: str) -> ImportError:
    return ImportError(f'recede.integrations.{module} needs {needs}: pip install "recede[{module.replace("_", "-")}]"')


def say(words: str) -> None:
    """Warn about what is sent raw, once in a process for each cause, unless masking is off."""
    if not is_off():
        warn_once(words)


def is_kept(request: Mapping[str, Any], fields: Iterable[str] = KEPT_BY_PROVIDER, more: str = "") -> bool:
    """Whether the provider keeps the history of a request, as one of these fields says; warns that it is sent raw."""
    words = kept_words(request, fields)
    if words is not None:
        say(words + more)
    return words is not None


def base_url(model: Any) -> str:
    """Find the base URL of a framework's `model`, in its fields or in the client that it holds; "" if it has none.

    Example:
        >>> from types import SimpleNamespace
        >>> from recede.integrations._shared import base_url
        >>> base_url(SimpleNamespace(client=SimpleNamespace(base_url="https://api.deepseek.com")))
        'https://api.deepseek.com'
    """
    waiting = [model]
    for one in islice(waiting, _MOST_HELD):  # it grows meanwhile
        held = one if isinstance(one, dict) else {}
        for name in _URLS:
            url = str(held.get(name) or field_of(one, name))
            if url.startswith("http"):
                return url
        waiting += [found for name in _CLIENTS if (found := field_of(one, name)) is not None]
    return ""


def field_of(one: Any, name: str) -> Any:
    """Read a field of an object of others; None if there is none, or reading it fails."""
    try:
        return getattr(one, name, None)
    except Exception:
        return None


class Masking:
    """The base of adapters: takes the options of a `Masker`, and answers the tool `recall`.

    One object serves any number of conversations; a copy has the options, and remembers none. Wrong options are a
    TypeError or ValueError. The `masks` and `stats` are those of its `masker`.
    """

    masker: Masker[Any]
    _reads: ClassVar[Any] = None  # the adapter of the masker; None: messages are dicts
    _provider: ClassVar[str | None] = None  # whose cache and prices are assumed, if the options do not say

    @takes(OPTIONS)
    def __init__(
        self,
        *,
        recall: bool = False,
        on_move: Callable[[BoundaryMove], Any] | None = None,
        calibrate: bool = False,
        summarizer: Summarizer | None = None,
        most: int = 128,
        max_bytes: int = 256_000_000,
        **options: Unpack[Options],
    ) -> None:
        """Take the options of every door, and those of a `Masker` for what it remembers."""
        own: dict[str, Any] = {"recall": recall, "on_move": on_move, "calibrate": calibrate, "summarizer": summarizer}
        own |= {"most": most, "max_bytes": max_bytes}
        refuse_unknown(options, own)
        self._given: dict[str, Any] = {**own, **options}
        self._begin(**self._given)

    def __reduce__(self) -> Any:
        return partial(type(self), **self._given), ()

    def _begin(self, **options: Any) -> None:
        self._provider_of = ModelProvider(self._provider, options, by_name=True)
        self._has_limits = has_limits(options)
        self._verifies = verifies(options.get("provider", "auto"))
        self.masker = Masker(self._reads, **self._provider_of.assumed(options))

    def recalled(self, messages: Sequence[Any], handle: str) -> Any:
        """Answer a call of the tool `recall`.

        Args:
            messages: those of the run that asks.
            handle: that of the placeholder.

        Returns:
            The text of the result; its content in the parts of the framework, if that is more than text; or words for
            the model that it must call the tool again.
        """
        try:
            index, place = self.masker.place(list(messages), handle)
            return self._content(messages[index], place) or unknown(without_text(handle))
        except LookupError as error:
            return unknown(error)

    def recall(self, handle: str) -> Any:
        """Answer the tool `recall` for the messages of the model call that is running; the model reads this line."""
        return self.recalled(running.get() or [], handle)

    recall.__doc__ = RECALL_DESCRIPTION

    def _sent(
        self, messages: list[Any], model: Any, around: Callable[[], Mapping[str, Any]] = dict, url: str = ""
    ) -> list[Any]:
        """The view to send to a model at a URL; `around` gives the system prompt and tools of the request."""
        return self.masker.view(messages, **self._begun(messages, model, around, url))

    async def _asent(
        self, messages: list[Any], model: Any, around: Callable[[], Mapping[str, Any]] = dict, url: str = ""
    ) -> list[Any]:
        return await self.masker.aview(messages, **self._begun(messages, model, around, url))

    def _begun(
        self, messages: list[Any], model: Any, around: Callable[[], Mapping[str, Any]], url: str
    ) -> dict[str, Any]:
        """The options of a view, whose model call is running from now on."""
        running.set(messages)
        provider, request = self._provider_of.of(model, url), None
        if self._has_limits or model_verifies(model) or self._verifies:
            request = {"model": model, **{name: value or None for name, value in around().items()}}
        return {"provider": provider, "request": request}

    def _is_mended(self, messages: list[Any], error: Exception, settings: Mapping[str, Any]) -> bool:
        """Whether messages are to be sent again after this error, without the reasoning that it refuses."""
        cause: BaseException | None = error
        while cause is not None:
            said, status = str(cause), getattr(cause, "status_code", 400)  # frameworks wrap errors of clients
            if refuses_reasoning(status, said):
                return self.masker._is_mended(messages, said, settings)
            cause = cause.__cause__
        return False

    def _report_usage(
        self, messages: list[Any] | None, usage: Mapping[str, Any] | None, names: tuple[str, str, str, str]
    ) -> None:
        """Report the usage of an answer, whose fields for input, output, read and written tokens have these names."""
        self._report_tokens(messages, *((usage or {}).get(name) for name in names))

    def _report_tokens(
        self, messages: list[Any] | None, sent: int | None, output: int | None, read: int | None, written: int | None
    ) -> None:
        """Report what was counted; `sent` has the tokens that were read from the cache or written to it, too."""
        if messages and sent:
            details = None if read is None else {"cached_tokens": read}
            usage = {"prompt_tokens": sent, "completion_tokens": output or 0, "prompt_tokens_details": details}
            more = {"cache_creation_input_tokens": written} if written else {}
            self.masker.reported({**usage, **more}, messages)

    def _content(self, message: Any, place: int) -> Any:
        """The content of a result: a text, or parts that hold more than text. Here of a dict."""
        form = plain_message(message)
        content = form.get("output", form.get("content"))
        blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
        results = [one for one in blocks if one.get("type") == "tool_result"]
        if results:
            content = results[place].get("content")
        return recalled_content(content)


def json_chars(value: Any) -> int:
    """Estimate the length of a value as compact JSON, as the core counts arguments; a string has its own length."""
    if value is None or isinstance(value, str):
        return len(value or "")
    chars = 0
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            chars += len(value) + 2
        elif value is False:
            chars += len("false")
        elif isinstance(value, dict):
            chars += 2 + max(0, len(value) - 1) + sum(len(str(key)) + 3 for key in value)
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            chars += 2 + max(0, len(value) - 1)
            waiting += value
        else:
            chars += _SCALAR_CHARS
    return chars


def content_text(content: Any) -> str:
    """Return the text of a content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else _text(part) for part in content or ())


def _text(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) and part.get("type", "text") in _TEXTS else None
    return text if isinstance(text, str) else ""


def plain_dict(role: str, parts: Iterable[str | tuple[Any, ...]]) -> dict[str, Any]:
    """Write a message as a dict; `parts` are texts, calls as (id, name, arguments), and results as (id, text)."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, str):
            blocks.append({"type": "text", "text": part})
        elif len(part) == len(_CALL_KEYS):
            blocks.append({"type": "tool_use", **dict(zip(_CALL_KEYS, part, strict=True))})
        else:
            blocks.append({"type": "tool_result", "tool_use_id": part[0], "content": part[1]})
    return {"role": role, "content": blocks}


def recalled_content(content: Any) -> Any:
    """Return a content for the tool `recall`: its text, or its parts if they hold more than text."""
    parts = content if isinstance(content, list) else []
    has_more = any(isinstance(part, dict) and part.get("type", "text") not in _TEXTS for part in parts)
    return content if has_more else content_text(content)


def content_facts(content: Any) -> tuple[int, int]:
    """Count the characters of a content, parts of unknown types as JSON, and its images and documents."""
    if isinstance(content, str):
        return len(content), 0
    parts = [part for part in content or () if isinstance(part, dict)]
    images = sum(map(_is_image, parts))
    known = _TEXTS | _THINKING | _CALLS
    others = [part for part in parts if part.get("type", "text") not in known and not _is_image(part)]
    return len(content_text(content)) + sum(json_chars(unmarked(part)) for part in others), images


def reference_chars(content: Any) -> int:
    """Count the characters of the parts of a content that name tools, which masking keeps."""
    return sum(json_chars(part) for part in _references(content))


def _references(content: Any) -> list[Any]:
    """Find the parts of a content that name tools, without their marks."""
    parts = content if isinstance(content, list) else []
    return [unmarked(part) for part in parts if isinstance(part, dict) and part.get("type") == "tool_reference"]


def _is_image(part: dict[str, Any]) -> bool:
    source = part.get("source")
    has_text = isinstance(source, dict) and source.get("type") in ("text", "content")
    return part.get("type") in _IMAGES and not (part.get("type") == "document" and has_text)


def masked_content(content: Any, text: str) -> Any:
    """Replace a content by a text; cache marks of its parts stay, as do parts that name tools."""
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    marks = [{name: part[name]} for part in parts for name in MARKS if part.get(name) is not None]
    references = _references(parts)
    if not marks and not references:
        return text
    return [{"type": "text", "text": text, **(marks[-1] if marks else {})}, *references]
