"""Inspect: hooks, which change the messages of a model call."""

from __future__ import annotations

import dataclasses
import operator
from contextvars import ContextVar
from typing import Any

from recede._recall import RECALL_DESCRIPTION
from recede.integrations._shared import NO_REASONING, Masking, base_url, json_chars, missing, plain_dict, running
from recede.masker import Facts

try:
    from inspect_ai.hooks import Hooks, hooks
    from inspect_ai.model import ChatMessageUser, model_roles
    from inspect_ai.model._model import active_model
    from inspect_ai.tool import ToolDef
except ImportError as error:
    raise missing("inspect_ai", "inspect-ai 0.3.240 or newer") from error

__all__ = ["RecedeHooks"]

_IMAGES = {"image", "audio", "video", "document"}
# The view of the model call that is running: a retry begins with it, and so with masks.
_sent: ContextVar[tuple[Any, list[Any]]] = ContextVar("recede_sent", default=(None, []))


def _parts(message: Any) -> tuple[str, int, int]:
    """The text of a message, the length of its other content, and how many files it has."""
    if getattr(message, "error", None):
        return message.error.message, 0, 0  # which providers send in place of the content
    parts = [] if isinstance(message.content, str) else message.content
    others = [one.model_dump(exclude={"type"}) for one in parts if one.type in ("data", "tool_use")]
    return message.text, sum(map(json_chars, others)), sum(one.type in _IMAGES for one in parts)


def _is_signed(part: Any) -> bool:
    """Whether a part is reasoning that its provider may verify: OpenAI's, whose signature is an id, stays in place."""
    is_of_openai = str(getattr(part, "signature", None)).startswith("rs_")
    return getattr(part, "type", "") == "reasoning" and bool(part.redacted or part.signature) and not is_of_openai


def _url(name: str) -> str:
    """Find the base URL of the task's model, or of one of its roles, by `name`; "" if several have one of their own."""
    roles = (one for given in model_roles().values() for one in (given if isinstance(given, list) else [given]))
    urls = {base_url(one.api) for one in (active_model(), *roles) if one is not None and str(one) == name}
    return urls.pop() if len(urls) == 1 else ""


class _Messages:
    def facts(self, message: Any) -> Facts:
        text, more, files = _parts(message)
        if message.role == "tool":
            result = (message.tool_call_id, None, len(text) + more, text.count("\n") + 1, files, bool(message.error))
            return Facts("tool", results=[result])
        made = getattr(message, "tool_calls", None) or ()
        calls = [(one.id, one.function, json_chars(one.arguments)) for one in made]
        parts = message.content if message.role == "assistant" and not isinstance(message.content, str) else ()
        is_signed = any(map(_is_signed, parts))
        return Facts(message.role, len(text) + more, calls, (), files, is_signed)

    def masked(self, message: Any, texts: Any) -> Any:
        error = message.error and dataclasses.replace(message.error, message=texts[0])
        return message.model_copy(update={"content": texts[0], "error": error})

    def unsigned(self, message: Any) -> Any:
        left = [part for part in message.content if not _is_signed(part)]
        content = left or ("" if message.tool_calls else NO_REASONING)
        return message.model_copy(update={"content": content})

    def text(self, message: Any, result_index: int) -> str:
        return _parts(message)[0]

    def plain(self, message: Any) -> dict[str, Any]:
        text = _parts(message)[0]
        if message.role == "tool":
            return plain_dict("user", [(message.tool_call_id, text)])
        made = getattr(message, "tool_calls", None) or ()
        return plain_dict(message.role, [text, *((one.id, one.function, one.arguments) for one in made)])

    def summary(self, text: str) -> Any:
        return ChatMessageUser(content=text)

    def same(self, old: Any, new: Any) -> bool:
        names = ("role", "content", "tool_calls", "tool_call_id", "error")  # not its id, which may be new
        return all(getattr(old, name, None) == getattr(new, name, None) for name in names)


class RecedeHooks(Masking):
    """Masks old tool results in what is sent to models: ``RecedeHooks(keep=10).register()``, once in a process.

    It takes the options of a `recede.masker.Masker`. The messages of samples keep all results.
    """

    _reads = _Messages()

    def recall_tool(self) -> Any:
        """The tool `recall`, for the tools of an agent; with ``recall=True`` placeholders name handles for it."""

        async def recall(handle: str) -> Any:
            return self.recall(handle)

        return ToolDef(recall, "recall", RECALL_DESCRIPTION, {"handle": "The handle in the placeholder."}).as_tool()

    def register(self) -> RecedeHooks:
        """Mask the calls of all models in this process, in place of what was registered before."""
        names = ("on_before_model_generate", "on_model_usage")
        registered = type("Recede", (Hooks,), {name: staticmethod(getattr(self, name)) for name in names})
        hooks(name="recede", description="masks old tool results")(registered)
        return self

    async def on_before_model_generate(self, data: Any) -> None:
        """Put the view in the place of the messages of a model call."""
        given, (masking, before) = data.input, _sent.get()
        if masking is self and len(given) == len(before) and all(map(operator.is_, given, before)):
            return
        around = lambda: {"tools": [one.model_dump() for one in data.tools]}  # noqa: E731
        given[:] = view = await self._asent(list(given), data.model_name, around, _url(data.model_name))
        _sent.set((self, view))

    async def on_model_usage(self, data: Any) -> None:
        """Report the usage of an answer."""
        read, written = data.usage.input_tokens_cache_read, data.usage.input_tokens_cache_write or 0
        sent = data.usage.input_tokens + (read or 0) + written
        self._report_tokens(running.get(), sent, data.usage.output_tokens, read, written)

    def _content(self, message: Any, place: int) -> Any:
        text, more, files = _parts(message)
        return list(message.content) if more or files else text
