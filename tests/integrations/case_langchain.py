"""LangChain: `create_agent`, with a fake model and a checkpointer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.tools import InjectedToolCallId, tool
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.content import ContentBlock
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from sessions import IMAGE, LAST, TASK, Call, Result, Turn, asked_for
from unions import samples

from recede.integrations.langchain import RecedeMiddleware

WAYS = ("sync", "async", "stream", "failing")


def _said(turn: Turn, kind: type[AIMessage] = AIMessage) -> Any:
    calls = [{"id": call.id, "name": call.name, "args": call.args, "type": "tool_call"} for call in turn.calls]
    usage = {
        "input_tokens": 9_000,
        "output_tokens": 10,
        "total_tokens": 9_010,
        "input_token_details": {"cache_read": 8_900},
    }
    if kind is AIMessage:
        return AIMessage(turn.said, tool_calls=calls, usage_metadata=usage)
    chunks = [
        {"id": call.id, "name": call.name, "args": json.dumps(call.args), "index": place, "type": "tool_call_chunk"}
        for place, call in enumerate(turn.calls)
    ]
    return AIMessageChunk(turn.said, tool_call_chunks=chunks, usage_metadata=usage)


def _returned(result: Result) -> ToolMessage:
    parts: list[Any] = [{"type": "text", "text": result.text}]
    if result.has_image:
        parts.append({"type": "image", "base64": IMAGE, "mime_type": "image/png"})
    content = parts if result.has_image else result.text
    status: Any = "error" if result.is_error else "success"
    return ToolMessage(content, tool_call_id=result.id, name="run", status=status)


def reasoned(answer: Any, thought: str) -> Any:
    said = [{"type": "text", "text": answer.content}] if answer.content else []
    return answer.model_copy(
        update={"content": [{"type": "thinking", "thinking": thought, "signature": f"of {thought}"}, *said]}
    )


def thoughts(message: Any) -> list[str]:
    blocks = message.content if isinstance(message.content, list) else []
    return [block["thinking"] for block in blocks if block["type"] == "thinking"]


def history(turns: list[Turn]) -> list[Any]:
    messages: list[Any] = [HumanMessage(TASK)]
    for turn in turns:
        messages += [_said(turn), *map(_returned, turn.results.values())]
    return [message.model_copy(update={"id": f"m{place}"}) for place, message in enumerate(messages)]


def body(messages: list[Any]) -> tuple[str, dict[str, Any]]:
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model="claude-opus-5-5", api_key="none", max_tokens=9)
    return "anthropic", model._get_request_payload(messages)


if not find_spec("langchain_anthropic"):  # beside the oldest release
    del body


def masking(**options: Any) -> RecedeMiddleware:
    return RecedeMiddleware(**options)


def view(masking: Any, messages: list[Any], model: Any = "m", **settings: Any) -> list[Any]:
    """What the middleware hands on, as the framework calls it."""
    sent: list[Any] = []

    def handler(request: Any) -> Any:
        sent.append(request.messages)
        return ModelResponse(result=[AIMessage("Done.")])

    named = Named(turns=[], requests=[], model_name=model) if isinstance(model, str) else model
    given: dict[str, Any] = {
        "system_prompt": None,
        "tool_choice": None,
        "tools": [],
        "response_format": None,
        **settings,
    }
    request = ModelRequest(model=named, messages=messages, state={}, runtime=None, **given)  # type: ignore[arg-type,typeddict-item]
    masking.wrap_model_call(request, handler)
    view: list[Any] = sent[0]
    return view


def results(messages: list[Any]) -> list[tuple[str, str]]:
    return [(message.tool_call_id, str(message.text)) for message in messages if isinstance(message, ToolMessage)]


def contents(messages: list[Any]) -> dict[str, Any]:
    return {message.tool_call_id: message.content for message in messages if isinstance(message, ToolMessage)}


def calls(messages: list[Any]) -> list[str]:
    return [call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]


# What is a call is counted where the framework has it, in `tool_calls`.
UNCOUNTED = {"InvalidToolCall", "ToolCall", "ToolCallChunk"}
KEPT: set[str] = set()


def typed_results() -> dict[str, list[Any]]:
    before = history([Turn("", [Call("1", "run", {})])])
    parts = {name: part for name, part in samples(ContentBlock).items() if name not in UNCOUNTED}
    return {name: [*before, ToolMessage([part], tool_call_id="1")] for name, part in parts.items()}


def typed_messages() -> dict[str, list[Any]]:
    return {name: [*history([]), AIMessage([part])] for name, part in samples(ContentBlock).items()}


def reloaded(messages: list[Any]) -> list[Any]:
    return [load(dumpd(message), allowed_objects="all") for message in messages]


class Scripted(BaseChatModel):
    """Plays the turn whose number is that of its own messages in the request."""

    turns: list[Any]
    requests: list[list[BaseMessage]]
    is_failing: bool = False

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _asked(self, messages: list[BaseMessage]) -> Turn:
        self.requests.append(messages)
        if self.is_failing and len(self.requests) % 2:
            raise ConnectionError("try again")
        if any(str(message.content).startswith("Conversation summary:") for message in messages):
            return asked_for(self.turns, self.requests, is_failing=self.is_failing)
        turn: Turn = self.turns[sum(isinstance(message, AIMessage) for message in messages)]  # subagents share it
        return turn

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_said(self._asked(messages)))])


class Named(Scripted):
    model_name: str


class Kept(Scripted):
    use_previous_response_id: bool


class Streaming(Scripted):
    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> Iterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=_said(self._asked(messages), AIMessageChunk))


class Retry(AgentMiddleware[Any, Any]):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except ConnectionError:
            return handler(request)


def tool_of(by_id: dict[str, Result]) -> Any:
    @tool("run")
    def run_tool(command: str, place: int, quiet: bool, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Run a command."""
        return _returned(by_id[tool_call_id])

    return run_tool


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    by_id = {name: result for turn in turns for name, result in turn.results.items()}
    kind = Streaming if way == "stream" else Scripted
    model = kind(turns=[*turns, LAST], requests=[], is_failing=way == "failing")
    middleware = [Retry(), masking] if way == "failing" else [masking]
    agent: Any = create_agent(model, [tool_of(by_id)], middleware=middleware, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 1_000}
    given = {"messages": [HumanMessage(TASK)]}
    if way == "async":
        asyncio.run(agent.ainvoke(given, config))
    elif way == "stream":
        for _ in agent.stream(given, config, stream_mode="messages"):
            pass
    else:
        agent.invoke(given, config)
    return model.requests, agent.get_state(config).values["messages"]
