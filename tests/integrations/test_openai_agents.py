"""What is the OpenAI Agents SDK's own: continued conversations, identity of items, usage by hooks."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed")
sys.path.insert(0, str(Path(__file__).parent))

import case_openai_agents as case
from agents import Agent, FunctionTool, RunConfig, Runner, ToolOutputFileContent, ToolOutputText
from sessions import TASK, Call, Result, Turn, session

from provider_server import serving
from recede.integrations.openai_agents import RecedeInputFilter
from scripts import script_of
from support import handle_of

pytestmark = pytest.mark.filterwarnings("default")


def test_input_that_continues_a_stored_response_is_left_as_it_is_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    masking = RecedeInputFilter(keep=0, boundary="sliding")
    outputs = [item for item in case.history(session()) if item.get("type") == "function_call_output"]
    for items in (outputs, [{"role": "user", "content": "Go."}, *outputs], []):
        view = case.view(masking, items)
        assert view == items
        assert all(one is given for one, given in zip(view, items, strict=True))
    assert caplog.text.count("is sent as it is: OpenAI keeps the rest") == 1


def test_usage_is_reported_with_the_input_of_its_call() -> None:
    heard: list[Any] = []
    masking: Any = RecedeInputFilter(keep=4)
    masking.masker.reported = lambda usage, items: heard.append((usage["prompt_tokens_details"], len(items)))
    case.run(masking, session(4), "async")
    assert heard == [({"cached_tokens": 3}, length) for length in (1, 3, 6, 9, 15)]


def test_a_document_is_recalled_as_the_sdk_stores_it() -> None:
    masking = RecedeInputFilter(keep=0, boundary="sliding", recall=True)
    call = Turn("", [Call("doc", "run", {})], {"doc": Result("doc", "see")})
    again = Turn("", [Call("again", "recall", {"handle": handle_of("doc", "see")})], {})
    turns = [call, session(1)[0], again]

    async def run_tool(context: Any, arguments: str) -> Any:
        if context.tool_call_id != "doc":
            return "a line of the log\n" * 20
        return [ToolOutputText(text="see"), ToolOutputFileContent(file_data="JVBERi0=", filename="a.pdf")]

    schema = {"type": "object", "properties": {}}
    tool = FunctionTool("run", "Run a command.", schema, run_tool, strict_json_schema=False)
    config = RunConfig(call_model_input_filter=masking, tracing_disabled=True)
    with serving(*script_of(turns)) as server:
        agent: Any = Agent(name="a", model=case.Recording(server.url), tools=[tool, masking.recall_tool])
        items = asyncio.run(Runner.run(agent, TASK, run_config=config)).to_input_list()
    assert server.refusals == []
    assert "old tool output cleared" in str(agent.model.requests[-1])
    outputs = case.contents(items)
    assert [part["type"] for part in outputs["again"]] == ["input_text", "input_file"]
    assert outputs["again"] == outputs["doc"]


def test_the_tools_of_the_agent_count_towards_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    async def run_tool(context: Any, arguments: str) -> str:
        return ""

    schema: Any = {"type": "object", "properties": {}}
    for description, said in (("Run a command.", 0), ("long " * 12_000, 1)):
        tool = FunctionTool("run", description, schema, run_tool, strict_json_schema=False)
        masking = RecedeInputFilter(max_input_tokens=10_000)
        config = RunConfig(call_model_input_filter=masking, tracing_disabled=True)
        with serving(*script_of([])) as server:
            agent: Any = Agent(name="a", model=case.Recording(server.url), tools=[tool])
            asyncio.run(Runner.run(agent, TASK, run_config=config))
        assert len(server.requests) == 1 and not server.refusals
        assert caplog.text.count("a request is over max_input_tokens") == said


def test_recall_is_of_the_run_that_asks() -> None:
    masking = RecedeInputFilter(keep=4, boundary="sliding", recall=True)

    async def asked(handle: str) -> Any:
        return await masking.recall_tool.on_invoke_tool(None, json.dumps({"handle": handle}))  # type: ignore[arg-type]

    async def run(seed: int) -> None:
        await case.aview(masking, case.history(session(10, seed)))
        await asyncio.sleep(0)  # the other runs are filtered meanwhile
        for other in (1, 2, 3):
            result = next(iter(session(10, other)[1].results.values()))
            handle = handle_of(result.id, result.text)
            words = f"there is no observation {handle!r}: call the tool again"
            assert await asked(handle) == (result.text if other == seed else words)

    async def at_once() -> None:
        await asyncio.gather(*map(run, (1, 2, 3)))

    asyncio.run(at_once())
    assert "call the tool again" in asyncio.run(asked("3f9c2a1b07de"))  # outside of a run
