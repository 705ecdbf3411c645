"""LangChain: middleware for `create_agent` and deepagents, whose `view` serves nodes of LangGraph too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from recede._recall import RECALL_DESCRIPTION
from recede.integrations._shared import (
    NO_REASONING,
    Masking,
    base_url,
    content_facts,
    content_text,
    is_kept,
    json_chars,
    masked_content,
    missing,
    plain_dict,
    recalled_content,
    reference_chars,
    say,
)
from recede.masker import Facts

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.tools import ToolRuntime, tool
    from langchain_core.messages import (
        AIMessage,
        AnyMessage,
        BaseMessage,
        HumanMessage,
        ToolMessage,
        convert_to_messages,
    )
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as error:
    raise missing("langchain", "langchain 1.0 or newer") from error

__all__ = ["RecedeMiddleware"]

_ROLES = {"ai": "assistant", "human": "user"}
_NAMES = ("model_name", "model", "model_id")
_GENERAL = "general-purpose"  # the subagent that deepagents adds by itself
# How deepagents begins what replaces a result that it moved to a file: the path in it must stay.
_FILED = ("Tool result too large", "Message content too large")


def _read(message: Any) -> BaseMessage:
    """Convert a message in any form that a LangChain model takes, such as a dict."""
    return message if isinstance(message, BaseMessage) else convert_to_messages([message])[0]


def _name_of(model: Any) -> str | None:
    """Return the name of a chat model; packages differ in the field."""
    names = (model, *(getattr(model, field, None) for field in _NAMES))
    name = next((name for name in names if isinstance(name, str)), None)
    bound = getattr(model, "bound", None)  # the model inside of one with retries
    return _name_of(bound) if name is None and bound is not None else name


def _settings(request: ModelRequest[Any]) -> dict[str, Any]:
    thinking = getattr(request.model, "thinking", None)
    kwargs, settings = getattr(request.model, "model_kwargs", None), getattr(request, "model_settings", None)
    return {"thinking": thinking, **(kwargs or {}), **(settings or {})}


def _is_kept(request: ModelRequest[Any]) -> bool:
    settings = _settings(request)
    settings.setdefault("previous_response_id", getattr(request.model, "use_previous_response_id", False))
    return is_kept(settings)


def _starts_subagents(tool: Any) -> bool:
    return str(getattr(getattr(tool, "func", None), "__module__", "")).startswith("deepagents.middleware.subagents")


def _is_signed(block: Any) -> bool:
    """Whether a block is reasoning that a provider may verify, in the form of one of LangChain's packages."""
    if not isinstance(block, dict):
        return False
    kind, value = block.get("type"), block.get("value")
    if kind == "reasoning":  # as LangChain 1 has that of Claude
        return "signature" in (block.get("extras") or {})
    if kind == "non_standard" and isinstance(value, dict):
        return _is_signed(value)
    return kind in ("thinking", "redacted_thinking", "reasoning_content")


def _is_of_claude(field: str, value: Any) -> bool:
    """Whether a field of a gateway's answer has signed reasoning."""
    formats = [one.get("format") for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    is_named = any(str(one).startswith("anthropic-") for one in formats)
    return bool(value) if field == "thinking_blocks" else field == "reasoning_details" and is_named


def _unsigned(message: AIMessage) -> tuple[Any, dict[str, Any]]:
    """Return the content and the additional fields of a message without its signed reasoning."""
    content, fields = message.content, message.additional_kwargs
    if isinstance(content, list) and any(map(_is_signed, content)):
        content = [block for block in content if not _is_signed(block)]
    return content, {name: value for name, value in fields.items() if not _is_of_claude(name, value)}


class _Messages:
    def facts(self, message: Any) -> Facts:
        message = _read(message)
        content, fields = message.content, message.additional_kwargs
        if isinstance(message, AIMessage):
            content, fields = _unsigned(message)
        chars, images = content_facts(content)
        if isinstance(message, ToolMessage):
            text = content_text(message.content)
            is_error, is_pinned = message.status == "error", text.startswith(_FILED)
            lines = text.count("\n") + 1
            kept = reference_chars(message.content)
            result = (message.tool_call_id, message.name, chars - kept, lines, images, is_error, is_pinned)
            return Facts("tool", kept, results=[result])
        calls: list[Any] = []
        if isinstance(message, AIMessage):  # blocks of calls in its content are the same calls, and no text
            calls = [*message.tool_calls, *message.invalid_tool_calls]
        named = [(call.get("id"), call.get("name"), json_chars(call.get("args"))) for call in calls]
        is_signed = content is not message.content or len(fields) < len(message.additional_kwargs)
        return Facts(_ROLES.get(message.type, message.type), chars, named, (), images, is_signed)

    def masked(self, message: Any, texts: Mapping[int, str]) -> BaseMessage:
        read = _read(message)
        edit = {"context_editing": {"cleared": True, "strategy": "recede"}}  # where LangChain's own edits say so
        metadata = {**read.response_metadata, **edit}
        return read.model_copy(
            update={"content": masked_content(read.content, texts[0]), "response_metadata": metadata}
        )

    def unsigned(self, message: Any) -> BaseMessage:
        read: Any = _read(message)
        content, fields = _unsigned(read)
        update = {"content": content if content or read.tool_calls else NO_REASONING, "additional_kwargs": fields}
        unsigned: BaseMessage = read.model_copy(update=update)
        return unsigned

    def text(self, message: Any, result_index: int) -> str:
        return content_text(_read(message).content)

    def plain(self, message: Any) -> dict[str, Any]:
        read: Any = _read(message)
        text = content_text(read.content)
        if isinstance(read, ToolMessage):
            return plain_dict("user", [(read.tool_call_id, text)])
        calls = [*getattr(read, "tool_calls", ()), *getattr(read, "invalid_tool_calls", ())]
        named = [(call.get("id"), call.get("name"), call.get("args")) for call in calls]
        return plain_dict(_ROLES.get(read.type, read.type), [text, *named])

    def summary(self, text: str) -> BaseMessage:
        return HumanMessage(text)

    def same(self, old: Any, new: Any) -> bool:
        """Compare two messages as ``==`` does, in half of the time."""
        if not isinstance(old, BaseMessage):
            return bool(old == new)
        if type(old) is not type(new) or old.__pydantic_extra__ != new.__pydantic_extra__:
            return False
        return bool(old.__dict__ == new.__dict__)


class RecedeMiddleware(Masking, AgentMiddleware[Any, Any]):
    """Masks old tool results in what is sent to the model; the messages in the state stay as they are.

    Args:
        recall: adds a tool `recall` to the agent, with which it can fetch a masked result; placeholders then name the
            handle of the result.

    The other options are those of its `masker`, a `recede.masker.Masker`; wrong ones are a TypeError or ValueError.
    One object serves any number of threads and conversations.

    Example::

        agent = create_agent(model, tools, middleware=[RecedeMiddleware(keep=10)])
    """

    _reads = _Messages()

    def _begin(self, **options: Any) -> None:
        AgentMiddleware.__init__(self)
        super()._begin(**options)
        self.tools = [self._recall_tool()] if options.get("recall") else []
        self._has_subagents = False

    def view(
        self, messages: Sequence[AnyMessage], model: Any = None, request: Mapping[str, Any] | None = None
    ) -> list[AnyMessage]:
        """The messages to send: for a node that calls the model itself.

        Args:
            messages: of the state; they may be dicts, as models take them.
            model: the chat model, or its name, which says whose prompt cache it is.
            request: what else is sent, as ``system`` and ``tools``, which count towards a limit.
        """
        return self._sent(list(messages), _name_of(model), lambda: request or {}, base_url(model))

    async def aview(
        self, messages: Sequence[AnyMessage], model: Any = None, request: Mapping[str, Any] | None = None
    ) -> list[AnyMessage]:
        """`view`, awaiting a summarizer that is async."""
        return await self._asent(list(messages), _name_of(model), lambda: request or {}, base_url(model))

    def _is_sent_raw(self, request: ModelRequest[Any]) -> bool:
        """Whether a request has no view; warns about this, and about subagents."""
        if _is_kept(request):
            return True
        if not self._has_subagents and any(map(_starts_subagents, request.tools or ())):
            say(
                "subagents of deepagents do not inherit this middleware and send raw messages: "
                "create_deep_agent(..., subagents=middleware.for_subagents(subagents))"
            )
        return False

    def count_tokens(self, messages: Sequence[AnyMessage]) -> int:
        """The approximate tokens of the view: the ``token_counter`` for a `SummarizationMiddleware`.

        Without it that counts what is not sent, and summarizes too early.
        """
        return self.masker.count_tokens(list(messages))

    def for_subagents(self, subagents: Sequence[Any] = ()) -> list[Any]:
        """The subagents for `create_deep_agent`, each with this middleware, which they do not inherit.

        The general-purpose subagent that deepagents adds by itself is among them, unless one of that name is given.
        Compiled and remote subagents are left as they are, with a warning.
        """
        self._has_subagents = True
        given = [*subagents]
        if all(one["name"] != _GENERAL for one in given):
            given[:0] = self._general_subagent()
        return list(map(self._added_to, given))

    def _general_subagent(self) -> list[Any]:
        try:
            from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT
        except ImportError:
            say(f"this release of deepagents hides its subagent {_GENERAL!r}, which sends raw: define it")
            return []
        return [GENERAL_PURPOSE_SUBAGENT]

    def _added_to(self, subagent: Any) -> Any:
        own = subagent.get("middleware", ())
        if any(isinstance(one, RecedeMiddleware) for one in own):
            return subagent
        if "runnable" in subagent or "graph_id" in subagent:
            say(
                f"the subagent {subagent['name']!r} is compiled or remote, and sends raw messages unless its own "
                "create_agent has this middleware"
            )
            return subagent
        return {**subagent, "middleware": [*own, self]}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        """Send the view."""
        if self._is_sent_raw(request):
            return self._reported(request, handler(request))

        def sent() -> ModelResponse[Any]:
            view = self._sent(list(request.messages), *_of_request(request))
            return handler(request.override(messages=view))

        try:
            return self._reported(request, sent())
        except Exception as error:
            if not self._is_mended(list(request.messages), error, _settings(request)):
                raise
        return self._reported(request, sent())

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | AIMessage:
        """Send the view."""
        if self._is_sent_raw(request):
            return self._reported(request, await handler(request))

        async def sent() -> ModelResponse[Any]:
            view = await self._asent(list(request.messages), *_of_request(request))
            return await handler(request.override(messages=view))

        try:
            return self._reported(request, await sent())
        except Exception as error:
            if not self._is_mended(list(request.messages), error, _settings(request)):
                raise
        return self._reported(request, await sent())

    def _reported(self, request: ModelRequest[Any], response: ModelResponse[Any]) -> ModelResponse[Any]:
        """The response, whose usage is reported."""
        inner = getattr(response, "model_response", response)
        for message in [] if _is_kept(request) else getattr(inner, "result", [inner]):
            usage = getattr(message, "usage_metadata", None) or {}
            details = usage.get("input_token_details") or {}
            cached = details.get("cache_read"), details.get("cache_creation")
            self._report_tokens(request.messages, usage.get("input_tokens"), usage.get("output_tokens"), *cached)
        return response

    def _recall_tool(self) -> Any:
        @tool("recall", description=RECALL_DESCRIPTION)
        def recall(handle: str, runtime: ToolRuntime) -> Any:
            return self.recalled(runtime.state["messages"], handle)

        return recall

    def _content(self, message: Any, place: int) -> Any:
        return recalled_content(_read(message).content)


def _of_request(request: ModelRequest[Any]) -> tuple[str | None, Callable[[], dict[str, Any]], str]:
    """The name of the model of a request, what is around its messages, and the address."""
    return _name_of(request.model), partial(_around, request), base_url(request.model)


def _around(request: ModelRequest[Any]) -> dict[str, Any]:
    """The system prompt and the tools of a request."""
    system = getattr(request, "system_message", None)
    tools = [one if isinstance(one, dict) else convert_to_openai_tool(one) for one in request.tools or ()]
    return {"system": None if system is None else system.content, "tools": tools or None}
