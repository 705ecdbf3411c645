"""Pydantic AI: `Agent`, with its model of OpenAI, which asks the played server."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, BinaryContent, RunContext, messages
from pydantic_ai.messages import (
    CachePoint,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage, UsageLimits
from sessions import IMAGE, TASK, Call, Result, Turn
from unions import LONG, members

from recede.integrations.pydantic_ai import RecedeCapability

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import serving
from scripts import DEFAULTS, script_of  # noqa: F401 (the contract asks a case for the former)

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


def reasoned(answer: Any, thought: str) -> Any:
    part = ThinkingPart(thought, signature=f"of {thought}", provider_name="anthropic")
    return replace(answer, parts=[part, *answer.parts])


def thoughts(message: Any) -> list[str]:
    return [part.content for part in message.parts if isinstance(part, ThinkingPart)]


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
        model=_of_views(model),
        messages=messages,
        model_settings=None,
        model_request_parameters=ModelRequestParameters(),
    )

    async def call() -> None:
        if hasattr(masking, "prepare_model_request"):  # newer releases
            await handler(await masking.prepare_model_request(None, request))
        else:
            await masking.wrap_model_request(None, request_context=request, handler=handler)

    asyncio.run(call())
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


def _contents() -> dict[str, Any]:
    """Values of the types of content, which are classes here."""
    address = "https://example.com/signed?token=1"  # without a suffix, so that the framework cannot tell a media type
    made: dict[str, Any] = {
        "str": LONG,
        "CachePoint": CachePoint(),
        "BinaryContent": BinaryContent(b"x" * 2_000, media_type="image/png"),
        "UploadedFile": UploadedFile(file_id="f", provider_name="openai"),
        **{name: getattr(messages, name)(address) for name in ("ImageUrl", "AudioUrl", "DocumentUrl", "VideoUrl")},
        "TextContent": messages.TextContent(LONG),
    }
    if hasattr(messages, "StructuredContent"):
        made["StructuredContent"] = messages.StructuredContent({"key": LONG})
    assert made.keys() == {one.__name__ for one in members(messages.UserContent)}
    return made


def typed_results() -> dict[str, list[Any]]:
    before = history([Turn("", [Call("1", "run", {})])])
    given = {name: one for name, one in _contents().items() if name != "CachePoint"}
    given |= {f"a list with {name}": ["see", one] for name, one in given.items()}
    given |= {"a dict": {"key": LONG}, "a list with a dict and a file": [{"key": LONG}, given["BinaryContent"]]}
    return {name: [*before, ModelRequest(parts=[ToolReturnPart("run", one, "1")])] for name, one in given.items()}


# Thinking is not counted (docs/semantics.md); what is left is for the framework alone.
UNCOUNTED = {"CachePoint", "ThinkingPart"}
KEPT: set[str] = set()


def typed_messages() -> dict[str, list[Any]]:
    parts: dict[str, Any] = {name: UserPromptPart([one]) for name, one in _contents().items()}
    parts["SystemPromptPart"] = messages.SystemPromptPart(LONG)
    answers: dict[str, Any] = {
        "TextPart": TextPart(LONG),
        "ThinkingPart": messages.ThinkingPart(LONG),
        "ToolCallPart": ToolCallPart("run", {"key": LONG}, "2"),
        "FilePart": messages.FilePart(_contents()["BinaryContent"]),
        "NativeToolCallPart": messages.NativeToolCallPart("search", {"query": LONG}, "3"),
        "NativeToolReturnPart": messages.NativeToolReturnPart("search", {"found": [LONG]}, "3"),
        "CompactionPart": messages.CompactionPart(LONG),
    }
    if hasattr(messages, "SpeechPart"):
        answers["SpeechPart"] = messages.SpeechPart(speaker="assistant", transcript=LONG)
    known = answers.keys() | {"ToolSearchCallPart", "LoadCapabilityCallPart"}  # kinds of the same
    known |= {"NativeToolSearchCallPart", "NativeToolSearchReturnPart"}
    assert {one.__name__ for one in members(messages.ModelResponsePart)} <= known
    requests = {name: ModelRequest(parts=[part]) for name, part in parts.items()}
    responses = {name: ModelResponse(parts=[part]) for name, part in answers.items()}
    return {name: [*history([]), message] for name, message in {**requests, **responses}.items()}


def reloaded(messages: list[Any]) -> list[Any]:
    return list(ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages)))


class Recording(OpenAIResponsesModel):
    """The model of the framework, which remembers the messages that it is given."""

    def __init__(self, url: str, name: str = "m") -> None:
        self.to_close = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        super().__init__(name, provider=OpenAIProvider(openai_client=self.to_close))
        self.requests: list[list[Any]] = []

    async def request(self, messages: list[Any], *given: Any, **named: Any) -> ModelResponse:
        self.requests.append(list(messages))
        return await super().request(messages, *given, **named)

    @asynccontextmanager
    async def request_stream(self, messages: list[Any], *given: Any, **named: Any) -> AsyncIterator[Any]:
        self.requests.append(list(messages))
        async with super().request_stream(messages, *given, **named) as streamed:
            yield streamed


@functools.cache
def _of_views(name: str) -> Recording:
    return Recording("http://127.0.0.1", name)


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    with serving(*script_of(turns)) as server:
        model = Recording(server.url)
        stored = _stored(model, masking, turns, way)
    assert server.refusals == []
    assert len(server.requests) == len(model.requests)
    return model.requests, stored


def _stored(model: Recording, masking: Any, turns: list[Turn], way: str) -> list[Any]:
    by_id = {name: result for turn in turns for name, result in turn.results.items()}
    capabilities = masking if isinstance(masking, list) else [masking]
    agent: Any = Agent(model, capabilities=capabilities)

    @agent.tool(name="run")
    def run_tool(ctx: RunContext[Any], command: str, place: int, quiet: bool) -> Any:
        return _content(by_id[str(ctx.tool_call_id)])

    async def consumed(ctx: Any, events: Any) -> None:
        async for _ in events:
            pass

    async def in_loop() -> list[Any]:
        limits = UsageLimits(request_limit=None)
        handler = {"event_stream_handler": consumed} if way == "stream" else {}
        async with model.to_close:
            return list((await agent.run(TASK, usage_limits=limits, **handler)).all_messages())

    if way != "sync":
        return asyncio.run(in_loop())
    loop = asyncio.new_event_loop()  # `run_sync` wants one, and leaves it open
    asyncio.set_event_loop(loop)
    stored = agent.run_sync(TASK, usage_limits=UsageLimits(request_limit=None)).all_messages()
    asyncio.set_event_loop(None)
    loop.run_until_complete(model.to_close.close())
    loop.close()
    return list(stored)
