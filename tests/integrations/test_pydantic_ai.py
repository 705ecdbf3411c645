"""What is Pydantic AI's own: results that are no text, requests with several parts, streams, usage."""

from __future__ import annotations

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
sys.path.insert(0, str(Path(__file__).parent))

import case_pydantic_ai as case
from pydantic_ai import Agent, BinaryContent, FunctionToolset, ImageUrl, capabilities
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.usage import UsageLimits
from sessions import session

from provider_server import serving, text
from recede.integrations.pydantic_ai import RecedeCapability, _Messages

pytestmark = pytest.mark.filterwarnings("default")


def test_results_that_are_no_text_are_read_as_the_model_sees_them() -> None:
    rows = [{"line": number, "text": "a line of the log"} for number in range(50)]
    request = ModelRequest(parts=[ToolReturnPart("run", rows, "1")])
    text = request.parts[0].model_response_str()
    (result,) = _Messages().facts(request).results
    assert result[2] == len(text) and _Messages().text(request, 0) == text
    messages: list[Any] = [
        ModelRequest(parts=[UserPromptPart("Go.")]),
        ModelResponse(parts=[ToolCallPart("run", {}, "1")]),
    ]
    shown = [
        *messages,
        request,
        ModelResponse(parts=[TextPart("I see.")]),
        ModelRequest(parts=[UserPromptPart("And?")]),
    ]
    masked = RecedeCapability(keep=0, boundary="sliding").masker.view(shown)[2]
    assert masked.parts[0].content == "[old tool output cleared to save context]"
    assert request.parts[0].content is rows


@pytest.mark.parametrize(
    "image", [BinaryContent(b"x" * 900, media_type="image/png"), ImageUrl("https://example.com/plan.png")]
)
def test_a_file_that_a_tool_returns_itself_counts_as_one_in_a_list(image: Any) -> None:
    alone, listed = (ModelRequest(parts=[ToolReturnPart("run", content, "1")]) for content in (image, [image]))
    (result,) = _Messages().facts(alone).results
    assert result == _Messages().facts(listed).results[0]
    assert result[4] == 1 and _Messages().text(alone, 0) == ""


def test_other_parts_of_a_request_stay_at_their_place() -> None:
    parts: Any = [
        ToolReturnPart("run", "x" * 190, "1"),
        RetryPromptPart("wrong", tool_name="run", tool_call_id="2"),
        UserPromptPart("And?"),
        ToolReturnPart("run", "y" * 180, "3"),
    ]
    calls = [ToolCallPart("run", "{}", name) for name in "123"]
    messages: list[Any] = [ModelRequest(parts=[SystemPromptPart("Be brief."), UserPromptPart("Go.")])]
    messages += [ModelResponse(parts=[ThinkingPart("hm"), *calls]), ModelRequest(parts=parts)]
    messages += [ModelResponse(parts=[TextPart("I see.")]), ModelRequest(parts=[UserPromptPart("Go on.")])]
    view = RecedeCapability(keep=0, boundary="sliding").masker.view(messages)
    assert view[:2] == messages[:2]
    masked = view[2].parts
    assert [masked[0].content, masked[3].content] == [
        "[old tool output cleared to save context]",
        "[old tool output cleared to save context]",
    ]
    assert masked[1] is parts[1] and masked[2] is parts[2]


def test_results_that_the_framework_reads_itself_stay() -> None:
    if "tool_kind" not in ToolReturnPart.__dataclass_fields__:
        pytest.skip("this release has no such parts")
    part = ToolReturnPart("search", "x" * 190, "1", tool_kind="of-ours")
    messages: list[Any] = [ModelRequest(parts=[UserPromptPart("Go.")])]
    messages += [ModelResponse(parts=[ToolCallPart("search", "{}", "1")]), ModelRequest(parts=[part])]
    assert RecedeCapability(keep=0, boundary="sliding").masker.view(messages)[2] is messages[2]


def test_a_stream_of_a_run_sends_the_view() -> None:
    masking = RecedeCapability(keep=4, boundary="sliding")
    history = case.history(session())

    async def read(model: Any) -> None:
        agent: Any = Agent(model, capabilities=[masking])
        async with model.to_close, agent.run_stream("And?", message_history=history) as running:
            await running.get_output()

    with serving(text("Done.")) as server:
        model = case.Recording(server.url)
        asyncio.run(read(model))
    assert case.results(model.requests[0]) == case.results(masking.masker.view(history)) != case.results(history)
    assert len(server.requests) == 1 and not server.refusals


@pytest.mark.parametrize("setting", ["openai_previous_response_id", "openai_conversation_id"])
def test_a_history_that_openai_keeps_is_sent_as_it_is_and_said_once(
    setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    history = case.history(session(5))

    async def ask(model: Any) -> None:
        agent: Any = Agent(model, capabilities=[RecedeCapability(keep=0, boundary="sliding")])
        async with model.to_close:
            for _ in range(2):
                await agent.run("And?", message_history=history, model_settings={setting: "auto"})

    with serving(text("Done."), text("Done.")) as server:
        model = case.Recording(server.url)
        asyncio.run(ask(model))
    assert [case.results(request) for request in model.requests] == [case.results(history)] * 2
    assert len(server.requests) == 2 and not server.refusals
    assert caplog.text.count(f"requests with {setting!r} are sent as they are") == 1


@pytest.mark.skipif(os.environ.get("RECEDE_RELEASE") == "oldest", reason="it counts before a capability is asked")
def test_the_counting_of_tokens_before_a_request_counts_the_view() -> None:
    masking = RecedeCapability(keep=4, boundary="sliding")
    history = case.history(session())
    limits = UsageLimits(count_tokens_before_request=True, input_tokens_limit=10**6)

    async def ask(model: Any) -> None:
        agent: Any = Agent(model, capabilities=[masking])
        async with model.to_close:
            await agent.run("And?", message_history=history, usage_limits=limits)

    with serving(text("Counted."), text("Done.")) as server:
        model = case.Recording(server.url)
        asyncio.run(ask(model))
    counted, sent = (body["input"] for body in server.requests)
    assert counted == sent and not server.refusals
    assert case.results(model.requests[0]) == case.results(masking.masker.view(history)) != case.results(history)


@pytest.mark.parametrize("way", ["async", "sync"])
def test_usage_is_reported_with_the_messages_of_its_request(way: str) -> None:
    heard: list[Any] = []
    masking: Any = RecedeCapability(keep=4)
    masking.masker.reported = lambda usage, messages: heard.append((usage["prompt_tokens_details"], len(messages)))
    case.run(masking, session(4), way)
    assert heard == [({"cached_tokens": 3}, length) for length in (1, 3, 5, 7, 9)]


async def _prepared(ctx: Any, definitions: list[Any]) -> list[Any]:
    return definitions


async def _consumed(ctx: Any, events: Any) -> None:
    async for _ in events:
        pass


async def _looked_up(query: str) -> str:
    return query


# How a capability is made that takes more than nothing; OpenAI neither fetches pages nor searches X.
MADE: dict[str, Any] = {
    "CombinedCapability": lambda kind: kind([capabilities.Hooks()]),
    "DynamicCapability": lambda kind: kind(lambda ctx: capabilities.Hooks()),
    "FileUnderstanding": lambda kind: kind("test"),
    "HandleDeferredToolCalls": lambda kind: kind(lambda ctx, requests: None),
    "LocalWorkspace": lambda kind: kind("."),
    "MCP": lambda kind: kind(url="https://example.com/mcp", native=True, local=False),
    "ModelFallback": lambda kind: kind("test"),
    "NativeOrLocalTool": lambda kind: kind(native=WebSearchTool()),
    "NativeTool": lambda kind: kind(WebSearchTool()),
    "PrefixTools": lambda kind: kind(capabilities.Toolset(FunctionToolset()), "ns"),
    "PrepareOutputTools": lambda kind: kind(_prepared),
    "PrepareTools": lambda kind: kind(_prepared),
    "ProcessEventStream": lambda kind: kind(_consumed),
    "ProcessHistory": lambda kind: kind(lambda messages: messages),
    "RequestInput": lambda kind: kind(lambda ctx, requests, question: None),
    "ResolveModelId": lambda kind: kind(lambda ctx, *, model_id: None),
    "SelectModel": lambda kind: kind(lambda ctx: ctx.model),
    "ThreadExecutor": lambda kind: kind(ThreadPoolExecutor(1)),
    "Toolset": lambda kind: kind(FunctionToolset()),
    "UseThreadExecutor": lambda kind: kind(ThreadPoolExecutor(1)),
    "WebFetch": lambda kind: kind(local=_looked_up),
    "WrapperCapability": lambda kind: kind(capabilities.Hooks()),
    "XSearch": lambda kind: kind(local=_looked_up),
}
# The base of all; one whose requests wait for the batch of a provider.
LEFT_OUT = {"AbstractCapability", "BatchModelRequests"}
KINDS = {
    name: kind
    for name, kind in vars(capabilities).items()
    if isinstance(kind, type) and issubclass(kind, capabilities.AbstractCapability) and name not in LEFT_OUT
}


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("name", KINDS)
def test_beside_each_other_capability_requests_are_masked_and_the_history_is_not(name: str, place: str) -> None:
    turns, masking = session(20), RecedeCapability(keep=4, boundary="sliding")
    other = MADE.get(name, lambda kind: kind())(KINDS[name])
    requests, stored = case.run([other, masking] if place == "before" else [masking, other], turns, "async")
    assert "old tool output cleared" in repr(requests[-1])
    assert case.results(stored) == case.results(case.history(turns))
