"""Pydantic AI: `Agent`, with a `FunctionModel`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent, BinaryContent, RunContext
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits
from sessions import IMAGE, LAST, TASK, Result, Turn

from recede.integrations.pydantic_ai import RecedeCapability

WAYS = ("sync", "async", "stream")


def _said(turn: Turn) -> ModelResponse:
    said: list[Any] = [TextPart(turn.said)] if turn.said else []
    calls = [ToolCallPart(call.name, call.args, call.id) for call in turn.calls]
    usage = RequestUsage(input_tokens=9_000, cache_read_tokens=8_900, output_tokens=10)
    return ModelResponse(parts=[*said, *calls], usage=usage)


def _content(result: Result) -> Any:
    image = BinaryContent(IMAGE.encode(), media_type="image/png")
    return [result.text, image] if result.has_image else result.text


def _returned(result: Result) -> ToolReturnPart:
    outcome: Any = "failed" if result.is_error else "success"
    return ToolReturnPart("run", _content(result), result.id, outcome=outcome)


def history(turns: list[Turn]) -> list[Any]:
    messages: list[Any] = [ModelRequest(parts=[UserPromptPart(TASK)])]
    for turn in turns:
        messages.append(_said(turn))
        if turn.results:
            messages.append(ModelRequest(parts=[_returned(result) for result in turn.results.values()]))
    return messages


def masking(**options: Any) -> RecedeCapability:
    return RecedeCapability(**options)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    """What the capability hands on, as the framework calls it."""
    sent: list[Any] = []

    async def handler(request: Any) -> ModelResponse:
        sent.append(request.messages)
        return ModelResponse(parts=[])

    request = ModelRequestContext(
        model=FunctionModel(lambda messages, info: ModelResponse(parts=[]), model_name=model),
        messages=messages,
        model_settings=None,
        model_request_parameters=ModelRequestParameters(),
    )
    asyncio.run(masking.wrap_model_request(None, request_context=request, handler=handler))
    given: list[Any] = sent[0]
    return given


def results(messages: list[Any]) -> list[tuple[str, str]]:
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return [(part.tool_call_id, _text(part.content)) for part in parts]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(one for one in content if isinstance(one, str))


def contents(messages: list[Any]) -> dict[str, Any]:
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return {part.tool_call_id: part.content for part in parts}


def calls(messages: list[Any]) -> list[str]:
    return [part.tool_call_id for message in messages for part in message.parts if isinstance(part, ToolCallPart)]


def reloaded(messages: list[Any]) -> list[Any]:
    return list(ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages)))


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    by_id = {name: result for turn in turns for name, result in turn.results.items()}
    played = [*turns, LAST]
    requests: list[list[Any]] = []

    def asked(messages: list[Any]) -> Turn:
        requests.append(list(messages))
        return played[sum(isinstance(message, ModelResponse) for message in messages)]

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        return _said(asked(messages))

    async def streamed(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        turn = asked(messages)
        if turn.said:
            yield turn.said
        if turn.calls:
            yield {
                place: DeltaToolCall(call.name, json.dumps(call.args), tool_call_id=call.id)
                for place, call in enumerate(turn.calls)
            }

    agent: Any = Agent(FunctionModel(answer, stream_function=streamed), capabilities=[masking])

    @agent.tool(name="run")
    def run_tool(ctx: RunContext[Any], command: str, place: int, quiet: bool) -> Any:
        return _content(by_id[str(ctx.tool_call_id)])

    async def consumed(ctx: Any, events: Any) -> None:
        async for _ in events:
            pass

    async def in_loop() -> list[Any]:
        limits = UsageLimits(request_limit=None)
        handler = {"event_stream_handler": consumed} if way == "stream" else {}
        return list((await agent.run(TASK, usage_limits=limits, **handler)).all_messages())

    if way != "sync":
        return requests, asyncio.run(in_loop())
    loop = asyncio.new_event_loop()  # `run_sync` wants one, and leaves it open
    asyncio.set_event_loop(loop)
    stored = agent.run_sync(TASK, usage_limits=UsageLimits(request_limit=None)).all_messages()
    asyncio.set_event_loop(None)
    loop.close()
    return requests, list(stored)
