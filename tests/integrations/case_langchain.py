"""LangChain: `create_agent`, with its model of Anthropic, which asks the played server, and a checkpointer."""

from __future__ import annotations

import asyncio
import functools
import sys
from pathlib import Path
from typing import Annotated, Any

import anthropic
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.tools import InjectedToolCallId, tool
from langchain_anthropic import ChatAnthropic
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.content import ContentBlock
from langgraph.checkpoint.memory import InMemorySaver
from sessions import IMAGE, TASK, Call, Result, Turn
from unions import samples

from recede.integrations.langchain import RecedeMiddleware

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import serving
from scripts import DEFAULTS, script_of  # noqa: F401 (the contract asks a case for the former)

WAYS = ("sync", "async", "stream", "failing")


def _said(turn: Turn) -> AIMessage:
    calls = [{"id": call.id, "name": call.name, "args": call.args, "type": "tool_call"} for call in turn.calls]
    usage = {
        "input_tokens": 9_000,
        "output_tokens": 10,
        "total_tokens": 9_010,
        "input_token_details": {"cache_read": 8_900},
    }
    return AIMessage(turn.said, tool_calls=calls, usage_metadata=usage)


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


def masking(**options: Any) -> RecedeMiddleware:
    return RecedeMiddleware(**options)


def view(
    masking: Any, messages: list[Any], model: Any = "m", answer: AIMessage | None = None, **settings: Any
) -> list[Any]:
    """What the middleware hands on, as the framework calls it."""
    sent: list[Any] = []

    def handler(request: Any) -> Any:
        sent.append(request.messages)
        return ModelResponse(result=[answer or AIMessage("Done.")])

    named = _of_views(model) if isinstance(model, str) else model
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


class Recording(ChatAnthropic):
    """The model of the framework, which remembers the messages that it is given."""

    requests: list[Any]

    def _get_request_payload(self, input_: Any, **given: Any) -> Any:
        self.requests.append(list(input_))
        return super()._get_request_payload(input_, **given)


class Kept(Recording):
    use_previous_response_id: bool


def recording(url: str = "http://127.0.0.1", name: str = "m", kind: type[Recording] = Recording, **more: Any) -> Any:
    # A connection is one of a loop, and each run has a loop of its own.
    given: dict[str, Any] = {"api_key": "none", "default_headers": {"connection": "close"}, "max_retries": 0}
    return kind(model=name, base_url=url, max_tokens=99, requests=[], **given, **more)


@functools.cache
def _of_views(name: str) -> Any:
    return recording(name=name)


class Retry(AgentMiddleware[Any, Any]):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except anthropic.RateLimitError:
            return handler(request)


def tool_of(by_id: dict[str, Result]) -> Any:
    @tool("run")
    def run_tool(command: str, place: int, quiet: bool, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Run a command."""
        return _returned(by_id[tool_call_id])

    return run_tool


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    by_id = {name: result for turn in turns for name, result in turn.results.items()}
    middleware = [Retry(), masking] if way == "failing" else [masking]
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 1_000}
    given = {"messages": [HumanMessage(TASK)]}
    with serving(*script_of(turns, failing=429 if way == "failing" else None)) as server:
        model = recording(server.url)
        agent: Any = create_agent(model, [tool_of(by_id)], middleware=middleware, checkpointer=InMemorySaver())
        if way == "async":
            asyncio.run(agent.ainvoke(given, config))
        elif way == "stream":
            for _ in agent.stream(given, config, stream_mode="messages"):
                pass
        else:
            agent.invoke(given, config)
    assert server.refusals == []
    assert len(server.requests) == len(model.requests)
    return model.requests, agent.get_state(config).values["messages"]
