"""Strands Agents: `Agent`, with its model of Anthropic, which asks the played server."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, get_type_hints

from sessions import IMAGE, TASK, Call, Result, Turn
from strands import Agent, ModelRetryStrategy, ToolContext, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.middleware import InvokeModelContext
from strands.models import BedrockModel
from strands.models.anthropic import AnthropicModel
from strands.types.content import ContentBlock
from strands.types.tools import ToolResultContent
from unions import LONG, _sample

from recede.integrations.strands import RecedePlugin

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import serving
from scripts import DEFAULTS, script_of  # noqa: F401 (the contract asks a case for the former)

WAYS = ("sync", "async", "stream", "failing")


def _said(turn: Turn) -> dict[str, Any]:
    said: list[Any] = [{"text": turn.said}] if turn.said else []
    calls = [{"toolUse": {"toolUseId": one.id, "name": one.name, "input": one.args}} for one in turn.calls]
    return {"role": "assistant", "content": [*said, *calls]}


def _content(result: Result) -> list[Any]:
    image = {"image": {"format": "png", "source": {"bytes": IMAGE.encode()}}}
    said = [{"text": result.text}] if result.text or not result.has_image else []  # an empty one is refused
    return [*said, *([image] if result.has_image else [])]


def _block(result: Result) -> dict[str, Any]:
    status = "error" if result.is_error else "success"
    return {"toolResult": {"toolUseId": result.id, "content": _content(result), "status": status}}


def reasoned(answer: Any, thought: str) -> Any:
    reasoning = {"reasoningContent": {"reasoningText": {"text": thought, "signature": f"of {thought}"}}}
    return {**answer, "content": [reasoning, *answer["content"]]}


def thoughts(message: Any) -> list[str]:
    blocks = [block["reasoningContent"] for block in message["content"] if "reasoningContent" in block]
    return [block["reasoningText"]["text"] for block in blocks]


def history(turns: list[Turn]) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": [{"text": TASK}]}]
    for turn in turns:
        messages.append(_said(turn))
        if turn.results:
            messages.append({"role": "user", "content": list(map(_block, turn.results.values()))})
    return messages


dicts = history


def masking(**options: Any) -> RecedePlugin:
    return RecedePlugin(**options)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    sent: list[Any] = []

    async def next_fn(context: Any) -> AsyncGenerator[Any, None]:
        sent.append(context.messages)
        yield None

    async def call() -> None:
        context: Any = InvokeModelContext(None, messages, None, [], None, {}, _of_views(model))  # type: ignore[arg-type]
        async for _ in masking._masked(context, next_fn):
            pass

    asyncio.run(call())
    given: list[Any] = sent[0]
    return given


def _blocks(messages: list[Any], kind: str) -> list[Any]:
    return [block[kind] for message in messages for block in message["content"] if kind in block]


def results(messages: list[Any]) -> list[tuple[str, str]]:
    return [(one["toolUseId"], _text(one["content"])) for one in _blocks(messages, "toolResult")]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def contents(messages: list[Any]) -> dict[str, Any]:
    return {one["toolUseId"]: one["content"] for one in _blocks(messages, "toolResult")}


def calls(messages: list[Any]) -> list[str]:
    return [one["toolUseId"] for one in _blocks(messages, "toolUse")]


UNCOUNTED = {"cachePoint", "reasoningContent"}
KEPT: set[str] = set()


def _samples(kind: Any) -> dict[str, Any]:
    return {name: {name: _sample(hint, 0)} for name, hint in get_type_hints(kind, include_extras=True).items()}


def typed_results() -> dict[str, list[Any]]:
    before = history([Turn("", [Call("1", "run", {})])])
    result = {"toolUseId": "1", "status": "success"}
    return {
        name: [*before, {"role": "user", "content": [{"toolResult": {**result, "content": [part]}}]}]
        for name, part in {**_samples(ToolResultContent), "json": {"json": {"key": LONG}}}.items()
    }


def typed_messages() -> dict[str, list[Any]]:
    parts = {name: part for name, part in _samples(ContentBlock).items() if name not in ("toolUse", "toolResult")}
    return {name: [*history([]), {"role": "assistant", "content": [part]}] for name, part in parts.items()}


def body(messages: list[Any]) -> tuple[str, dict[str, Any]]:
    return "converse", {"messages": _model()._format_bedrock_messages(messages)}


@functools.cache
def _model() -> BedrockModel:
    return BedrockModel(region_name="us-east-1")


def reloaded(messages: list[Any]) -> list[Any]:
    as_text = json.dumps(messages, default=lambda value: {"bytes": value.decode()})
    loaded: list[Any] = json.loads(
        as_text,
        object_hook=lambda one: one["bytes"].encode() if [*one] == ["bytes"] and isinstance(one["bytes"], str) else one,
    )
    return loaded


class Recording(AnthropicModel):
    """The model of the framework, which remembers the messages that it is given."""

    def __init__(self, url: str, name: str = "m") -> None:
        # A connection is one of a loop, and each run has a loop of its own.
        given = {"api_key": "none", "base_url": url, "max_retries": 0, "default_headers": {"connection": "close"}}
        super().__init__(client_args=given, model_id=name, max_tokens=99)
        self.requests: list[Any] = []

    async def stream(self, messages: Any, *given: Any, **named: Any) -> AsyncGenerator[Any, None]:
        self.requests.append(messages)
        async for event in super().stream(messages, *given, **named):
            yield event


@functools.cache
def _of_views(name: str) -> Recording:
    return Recording("http://127.0.0.1", name)


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    by_id = {name: result for turn in turns for name, result in turn.results.items()}

    @tool(name="run", context=True)
    def run_tool(command: str, place: int, quiet: bool, tool_context: ToolContext[Any]) -> Any:
        """Run a command."""
        result = by_id[tool_context.tool_use["toolUseId"]]
        return {"status": "error" if result.is_error else "success", "content": _content(result)}

    def stored_of(model: Recording) -> list[Any]:
        agent = Agent(
            model,
            tools=[run_tool],
            plugins=[masking],
            callback_handler=None,
            retry_strategy=ModelRetryStrategy(max_attempts=3, initial_delay=0, max_delay=0),
            conversation_manager=NullConversationManager(),
        )

        async def streamed() -> None:
            async for _ in agent.stream_async(TASK):
                pass

        if way == "async":
            asyncio.run(agent.invoke_async(TASK))
        elif way == "stream":
            asyncio.run(streamed())
        else:
            agent(TASK)
        stored: list[Any] = agent.messages
        return stored

    with serving(*script_of(turns, failing=429 if way == "failing" else None)) as server:
        model = Recording(server.url)
        stored = stored_of(model)
    assert server.refusals == []
    assert len(server.requests) == len(model.requests)
    return model.requests, stored
