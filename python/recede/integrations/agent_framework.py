"""Microsoft's Agent Framework: chat middleware, which changes the messages of a request."""

from __future__ import annotations

import copy
from typing import Any

from recede._bodies import KEPT_BY_PROVIDER
from recede.integrations._shared import NO_REASONING, Masking, base_url, is_kept, json_chars, missing, plain_dict
from recede.masker import Facts

try:
    from agent_framework import ChatMiddleware, Content, Message, tool
except ImportError as error:
    raise missing("agent_framework", "agent-framework-core 1.0 or newer") from error

__all__ = ["RecedeMiddleware"]

_IMAGES = {"data", "uri", "hosted_file"}
_NO_TEXT = {"function_call", "function_result", "text_reasoning", *_IMAGES}
_USAGE = ("input_token_count", "output_token_count", "cache_read_input_token_count", "cache_creation_input_token_count")


def _results(message: Message) -> list[Any]:
    return [one for one in message.contents if one.type == "function_result"]


def _is_signed(one: Any) -> bool:
    """Whether a content is reasoning that its provider may verify: OpenAI's, which has an id, stays in place."""
    is_of_openai = str(getattr(one, "id", None)).startswith("rs_")
    return one.type == "text_reasoning" and bool(getattr(one, "protected_data", None)) and not is_of_openai


class _Messages:
    def facts(self, message: Message) -> Facts:
        results, parts = [], message.contents
        for one in _results(message):
            text, files = one.result or "", sum(item.type in _IMAGES for item in one.items or ())
            results.append((one.call_id, None, len(text), text.count("\n") + 1, files, one.exception is not None))
        calls = [(one.call_id, one.name, json_chars(one.arguments)) for one in parts if one.type == "function_call"]
        chars = sum(len(one.text or "") or json_chars(one.to_dict()) for one in parts if one.type not in _NO_TEXT)
        images = sum(one.type in _IMAGES for one in parts)
        return Facts(message.role, chars, calls, results, images, any(map(_is_signed, parts)))

    def masked(self, message: Message, texts: Any) -> Message:
        masked = copy.copy(message)
        masked.contents = [copy.copy(one) if one.type == "function_result" else one for one in message.contents]
        for place, text in texts.items():
            vars(_results(masked)[place]).update(result=text, items=[Content.from_text(text)])
        return masked

    def unsigned(self, message: Message) -> Message:
        unsigned = copy.copy(message)
        left = [one for one in message.contents if not _is_signed(one)]
        unsigned.contents = left or [Content.from_text(NO_REASONING)]
        return unsigned

    def text(self, message: Message, result_index: int) -> str:
        return _results(message)[result_index].result or ""

    def plain(self, message: Message) -> dict[str, Any]:
        parts: list[Any] = []
        for one in message.contents:
            if one.type == "function_call":
                parts.append((one.call_id, one.name, one.arguments))
            elif one.type == "function_result":
                parts.append((one.call_id, one.result or ""))
            elif one.type not in _NO_TEXT:
                parts.append(one.text or "")
        return plain_dict(message.role, parts)

    def summary(self, text: str) -> Message:
        return Message("user", [Content.from_text(text)])

    def same(self, old: Message, new: Message) -> bool:
        return bool(old.role == new.role and old.contents == new.contents)


class RecedeMiddleware(Masking, ChatMiddleware):
    """Masks old function results in what is sent: ``Agent(client, middleware=[RecedeMiddleware(keep=10)])``.

    It takes the options of a `recede.masker.Masker`. The histories of sessions keep all results.
    """

    _reads = _Messages()

    def _begin(self, **options: Any) -> None:
        super()._begin(**options)
        self.recall_tool = tool(self.recall)  # for ``tools=``, with ``recall=True``

    async def process(self, context: Any, call_next: Any) -> Any:
        """Send the view, and report the usage of the answer."""
        given, options = list(context.messages), dict(context.options or {})
        if is_kept(options, ("conversation_id", *KEPT_BY_PROVIDER)):
            return await call_next()
        model = options.get("model") or getattr(context.client, "model", None)
        tools = [one.to_json_schema_spec() for one in options.get("tools") or () if hasattr(one, "to_json_schema_spec")]
        around = {"system": options.get("instructions"), "tools": tools}
        context.messages = await self._asent(given, model, lambda: around, base_url(context.client))
        context.stream_result_hooks.append(lambda answer: self._report_usage(given, answer.usage_details, _USAGE))
        await call_next()
        if not context.stream:
            self._report_usage(given, context.result.usage_details, _USAGE)

    def _content(self, message: Message, place: int) -> Any:
        one = _results(message)[place]
        return list(one.items) if any(item.type in _IMAGES for item in one.items or ()) else one.result
