"""Pydantic AI: a capability that changes the messages of a model request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

from recede._recall import RECALL_DESCRIPTION
from recede.integrations._shared import (
    NO_REASONING,
    Masking,
    base_url,
    is_kept,
    json_chars,
    missing,
    plain_dict,
    running,
)
from recede.masker import Facts

try:
    from pydantic_ai import FunctionToolset, RunContext, exceptions
    from pydantic_ai.capabilities import AbstractCapability, WrapModelRequestHandler
    from pydantic_ai.messages import (
        BinaryContent,
        FileUrl,
        ModelMessage,
        ModelRequest,
        ModelResponse,
        RetryPromptPart,
        SystemPromptPart,
        TextPart,
        ThinkingPart,
        ToolCallPart,
        ToolReturnPart,
        UploadedFile,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
except ImportError as error:
    raise missing("pydantic_ai", "pydantic-ai-slim 2.0 or newer") from error

__all__ = ["RecedeCapability"]

# By class: what a URL has no suffix for cannot be asked for its `media_type`.
_FILES = (BinaryContent, FileUrl, UploadedFile)
# Settings by which OpenAI keeps the history: a changed message would make the framework send all of it again.
_KEPT = ("openai_previous_response_id", "openai_conversation_id")
_SIGNING = {"anthropic", "bedrock"}  # providers that verify the reasoning of Claude
# Fields that are for the framework, or identify something.
_NOT_SENT = frozenset(
    "dynamic_ref id kind metadata part_kind provider_details provider_name timestamp timestamps tool_call_id tool_kind "
    "ttl vendor_metadata".split()
)


class _Messages:
    def facts(self, message: ModelMessage) -> Facts:
        chars = images = 0
        calls: list[tuple[Any, ...]] = []
        results: list[tuple[Any, ...]] = []
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                text, files = _read(part)
                is_error = getattr(part, "outcome", "success") != "success"
                lines = text.count("\n") + 1
                # A kind of part with data that the framework reads itself: of tool search, or of loading capabilities.
                is_pinned = getattr(part, "tool_kind", None) is not None
                results.append((part.tool_call_id, part.tool_name, len(text), lines, files, is_error, is_pinned))
            elif isinstance(part, RetryPromptPart) and part.tool_name is not None:  # an error, and short
                results.append((part.tool_call_id, part.tool_name, len(str(part.content)), 1, 0, True, True))
            elif isinstance(part, ToolCallPart):
                calls.append((part.tool_call_id, part.tool_name, json_chars(part.args)))
            elif not isinstance(part, ThinkingPart):
                more, files = _counted(part)
                chars, images = chars + more, images + files
        if isinstance(message, ModelResponse):
            return Facts("assistant", chars, calls, (), images, any(map(_is_signed, message.parts)))
        is_system = all(isinstance(part, SystemPromptPart) for part in message.parts)
        return Facts("system" if message.parts and is_system else "user", chars, results=results, images=images)

    def masked(self, message: ModelMessage, texts: Mapping[int, str]) -> ModelMessage:
        parts: list[Any] = list(message.parts)
        places = [place for place, part in enumerate(parts) if _is_result(part)]
        for result, text in texts.items():
            parts[places[result]] = replace(parts[places[result]], content=text)
        request: Any = message  # of either kind, with parts of that
        masked: ModelMessage = replace(request, parts=parts)
        return masked

    def unsigned(self, message: ModelMessage) -> ModelMessage:
        request: Any = message
        left = [part for part in message.parts if not _is_signed(part)]
        unsigned: ModelMessage = replace(request, parts=left or [TextPart(NO_REASONING)])
        return unsigned

    def plain(self, message: ModelMessage) -> dict[str, Any]:
        parts: list[Any] = []
        every: list[Any] = list(message.parts)
        for part in every:
            if _is_result(part):
                text = _read(part)[0] if isinstance(part, ToolReturnPart) else str(part.content)
                parts.append((part.tool_call_id, text))
            elif isinstance(part, ToolCallPart):
                parts.append((part.tool_call_id, part.tool_name, part.args))
            elif isinstance(part, (RetryPromptPart, SystemPromptPart, TextPart, UserPromptPart)):
                content: Any = part.content
                parts += [content] if isinstance(content, str) else [one for one in content if isinstance(one, str)]
        return plain_dict(self.facts(message).role, parts)

    def summary(self, text: str) -> ModelMessage:
        return ModelRequest(parts=[UserPromptPart(text)])

    def text(self, message: ModelMessage, result_index: int) -> str:
        part = _results(message)[result_index]
        return _read(part)[0] if isinstance(part, ToolReturnPart) else str(part.content)


def _is_signed(part: Any) -> bool:
    """Whether a part is reasoning that its provider may verify: OpenAI's stays in place."""
    if not isinstance(part, ThinkingPart) or not part.signature:
        return False
    details = getattr(part, "provider_details", None) or {}
    return part.provider_name in _SIGNING or str(details.get("format")).startswith("anthropic-")


def _results(message: ModelMessage) -> list[Any]:
    return [part for part in message.parts if _is_result(part)]


def _is_result(part: Any) -> bool:
    return isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name is not None)


def _read(part: ToolReturnPart[Any]) -> tuple[str, int]:
    """Return the text of a result, and how many files it has."""
    content: Any = part.content
    files = sum(isinstance(one, _FILES) for one in (content if isinstance(content, list) else [content]))
    if files:
        return "".join(one for one in part.content_items(mode="str") if isinstance(one, str)), files
    return content if isinstance(content, str) else part.model_response_str(), 0


def _counted(value: Any) -> tuple[int, int]:
    """Count the characters and files of a part or content of any other type."""
    chars = files = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            chars += len(one)
        elif isinstance(one, _FILES):
            files += 1
        elif isinstance(one, Mapping):
            waiting += [*one, *one.values()]
        elif isinstance(one, (list, tuple)):
            waiting += one
        elif is_dataclass(one):
            waiting += [getattr(one, field.name) for field in fields(one) if field.name not in _NOT_SENT]
    return chars, files


class RecedeCapability(Masking, AbstractCapability[Any]):
    """Masks old tool returns in what is sent to the model; the message history keeps all of them.

    Args:
        recall: adds a tool `recall` to the agent, with which it can fetch a masked return; placeholders then name the
            handle of the return.

    The other options are those of its `masker`, a `recede.masker.Masker`; wrong ones are a TypeError or ValueError.
    One object serves any number of runs and conversations.

    Example::

        agent = Agent(model, capabilities=[RecedeCapability(keep=10)])
    """

    _reads = _Messages()

    def _begin(self, **options: Any) -> None:
        super()._begin(**options)
        self._has_recall = options.get("recall")

    def get_toolset(self) -> Any:
        """Return the tool `recall`, if it is on."""
        if not self._has_recall:
            return None
        toolset: FunctionToolset[Any] = FunctionToolset()

        @toolset.tool(description=RECALL_DESCRIPTION)
        def recall(ctx: RunContext[Any], handle: str) -> Any:
            return self.recalled(ctx.messages, handle)

        return toolset

    def _content(self, message: ModelMessage, place: int) -> Any:
        part = _results(message)[place]
        if not isinstance(part, ToolReturnPart):
            return str(part.content)
        text, files = _read(part)
        return part.content if files else text

    async def _masked(self, request_context: ModelRequestContext) -> ModelRequestContext:
        """The request with the view of its messages."""
        running.set(None)
        if is_kept(request_context.model_settings or {}, _KEPT):
            return request_context
        around = partial(_around, request_context)
        model = request_context.model
        view = await self._asent(list(request_context.messages), model.model_name, around, base_url(model))
        return replace(request_context, messages=view)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Report the usage of the answer."""
        usage = response.usage
        # Without a cache it says 0 as well: then nothing is said of it.
        cached = usage.cache_read_tokens if usage.cache_read_tokens or usage.cache_write_tokens else None
        self._report_tokens(running.get(), usage.input_tokens, usage.output_tokens, cached, usage.cache_write_tokens)
        return response

    # What other hooks are given may become the history. Older releases have no hook after all of these.
    if hasattr(AbstractCapability, "prepare_model_request"):

        async def prepare_model_request(
            self, ctx: RunContext[Any], request_context: ModelRequestContext
        ) -> ModelRequestContext:
            """Send the view."""
            return await self._masked(request_context)

        async def on_model_request_error(
            self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
        ) -> ModelResponse:
            """Try again, once, without the reasoning that the provider has refused."""
            settings: Mapping[str, Any] = {"thinking": (request_context.model_settings or {}).get("anthropic_thinking")}
            retry: Any = getattr(exceptions, "RetryModelRequest", None)  # older releases have none
            if retry is not None and self._is_mended(running.get() or [], error, settings):
                raise retry from error
            raise error
    else:

        async def wrap_model_request(
            self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: WrapModelRequestHandler
        ) -> ModelResponse:
            """Send the view."""
            return await handler(await self._masked(request_context))


def _around(request_context: ModelRequestContext) -> dict[str, Any]:
    """The instructions and the tools of a request; those that are loaded later say so, as they do to Claude."""
    parameters = request_context.model_request_parameters
    introduced = getattr(parameters, "introduced_tool_names", ())  # older releases have none
    tools: list[dict[str, Any]] = []
    for one in (*parameters.function_tools, *parameters.output_tools):
        later = {"defer_loading": True} if one.defer_loading or one.name in introduced else {}
        schema = {"input_schema": one.parameters_json_schema}
        tools.append({"name": one.name, "description": one.description, **schema, **later})
    tools += [{"type": one.kind} for one in parameters.native_tools]
    return {"system": getattr(request_context.messages[-1], "instructions", None), "tools": tools}
