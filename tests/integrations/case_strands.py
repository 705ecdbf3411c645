"""Strands Agents: `Agent`, with a scripted model."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncGenerator
from typing import Any, get_type_hints

from sessions import IMAGE, LAST, TASK, Call, Result, Turn, asked_for
from strands import Agent, ModelRetryStrategy, ToolContext, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.middleware import InvokeModelContext
from strands.models import BedrockModel, Model
from strands.types.content import ContentBlock
from strands.types.exceptions import ModelThrottledException
from strands.types.tools import ToolResultContent
from unions import LONG, _sample

from recede.integrations.strands import RecedePlugin

WAYS = ("sync", "async", "stream", "failing")


def _said(turn: Turn) -> dict[str, Any]:
    said: list[Any] = [{"text": turn.said}] if turn.said else []
    calls = [{"toolUse": {"toolUseId": one.id, "name": one.name, "input": one.args}} for one in turn.calls]
    return {"role": "assistant", "content": [*said, *calls]}


def _content(result: Result) -> list[Any]:
    image = {"image": {"format": "png", "source": {"bytes": IMAGE.encode()}}}
    return [{"text": result.text}, *([image] if result.has_image else [])]


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
        context: Any = InvokeModelContext(None, messages, None, [], None, {}, Scripted([], model_id=model))  # type: ignore[arg-type]
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


class Scripted(Model):
    """Plays the turn whose number is that of its own messages in the request."""

    def __init__(self, turns: list[Turn], model_id: str = "m", is_failing: bool = False) -> None:
        self.turns, self.model_id, self.is_failing = turns, model_id, is_failing
        self.requests: list[Any] = []

    def update_config(self, **_: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {"model_id": self.model_id}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        yield {}

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        self.requests.append(messages)
        if self.is_failing and len(self.requests) % 2:
            raise ModelThrottledException("try again")
        turn = asked_for(self.turns, self.requests, is_failing=self.is_failing)
        yield {"messageStart": {"role": "assistant"}}
        if turn.said:
            yield {"contentBlockDelta": {"delta": {"text": turn.said}}}
            yield {"contentBlockStop": {}}
        for call in turn.calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": call.id, "name": call.name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(call.args)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if turn.calls else "end_turn"}}
        usage = {"inputTokens": 100, "outputTokens": 10, "totalTokens": 9_010, "cacheReadInputTokens": 8_900}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    by_id = {name: result for turn in turns for name, result in turn.results.items()}

    @tool(name="run", context=True)
    def run_tool(command: str, place: int, quiet: bool, tool_context: ToolContext[Any]) -> Any:
        """Run a command."""
        result = by_id[tool_context.tool_use["toolUseId"]]
        return {"status": "error" if result.is_error else "success", "content": _content(result)}

    model = Scripted([*turns, LAST], is_failing=way == "failing")
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
    return model.requests, agent.messages
