"""The listings of docs/integrations/listings.md: each is run as it stands, in the agent of its framework."""

from __future__ import annotations

import asyncio
import gc
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from frameworks import is_installed

from support import ROOT

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import call, calls, serving, text

TURNS, KEEP, TASK = 48, 10, "Find the bug."
PLACEHOLDER = "[old tool output cleared to save context]"
PAGE = ROOT / "docs/integrations/listings.md"

pytestmark = pytest.mark.filterwarnings("default")


def page_text(page: int) -> str:
    return f"page {page}: a line of the log\n" * 80


def read_log(page: int) -> str:
    """Read a page of the log.

    Args:
        page: its number.
    """
    return page_text(page)


def autogen(made: dict[str, Any]) -> list[str]:
    async def run() -> Any:
        await made["agent"].run(task=TASK)
        return await made["agent"].save_state()

    messages = asyncio.run(run())["llm_context"]["messages"]
    contents = [message["content"] for message in messages if message["type"] == "FunctionExecutionResultMessage"]
    return [one["content"] for results in contents for one in results]


def smolagents(made: dict[str, Any]) -> list[str]:
    made["agent"].run(TASK)
    return [step.observations for step in made["agent"].memory.steps if getattr(step, "observations", None)][:-1]


def haystack(made: dict[str, Any]) -> list[str]:
    from haystack.dataclasses import ChatMessage

    messages = made["agent"].run(messages=[ChatMessage.from_user(TASK)])["messages"]
    return [one.result for message in messages for one in message.tool_call_results]


def llama_index(made: dict[str, Any]) -> list[str]:
    from llama_index.core.workflow import Context

    async def run() -> Any:
        context = Context(made["agent"])
        await made["agent"].run(TASK, ctx=context, max_iterations=100)
        return (await context.store.get("memory")).get_all()

    return [message.content for message in asyncio.run(run()) if message.role == "tool"]


def openhands(made: dict[str, Any]) -> list[str]:
    from openhands.sdk import Conversation
    from openhands.sdk.event import ObservationEvent

    conversation = Conversation(agent=made["agent"], workspace=Path.cwd(), visualizer=None)
    conversation.send_message(TASK)
    conversation.run()
    events = [one for one in conversation.state.events if isinstance(one, ObservationEvent)]
    return [one.observation.text for one in events]


def mini_swe_agent(made: dict[str, Any]) -> list[str]:
    made["agent"].run(TASK)
    return [one["content"] for one in made["agent"].messages if one["role"] == "tool"]


def agno(made: dict[str, Any]) -> list[str]:
    return [one.content for one in made["agent"].run(TASK).messages if one.role == "tool"]


class Listing(NamedTuple):
    """A framework: the title of its listing, its module, and its agent, which returns the texts that are stored."""

    title: str
    module: str
    run: Callable[[dict[str, Any]], list[str]]


LISTINGS = [
    Listing("AutoGen", "autogen_agentchat", autogen),
    Listing("smolagents", "smolagents", smolagents),
    Listing("Haystack", "haystack", haystack),
    Listing("LlamaIndex", "llama_index.core", llama_index),
    Listing("OpenHands", "openhands.sdk", openhands),
    Listing("mini-swe-agent", "minisweagent", mini_swe_agent),
    Listing("Agno", "agno", agno),
]


def code(title: str) -> str:
    (section,) = re.findall(rf"^## {title}$(.*?)(?=^## )", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (block,) = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return str(block)


def tool_for(title: str) -> Any:
    """`read_log` as the framework has its tools."""
    if title == "smolagents":
        from smolagents import tool

        return tool(read_log)
    if title == "Haystack":
        from haystack.tools import create_tool_from_function

        return create_tool_from_function(read_log)
    if title == "OpenHands":
        from openhands.sdk import Action, Observation, ToolDefinition, register_tool
        from openhands.sdk.tool import ToolExecutor

        class ReadLogAction(Action):  # type: ignore[misc]
            page: int

        class ReadLogObservation(Observation):  # type: ignore[misc]
            pass

        class ReadLogExecutor(ToolExecutor):  # type: ignore[misc]
            def __call__(self, action: ReadLogAction, conversation: Any = None) -> Any:
                return ReadLogObservation.from_text(page_text(action.page))

        class ReadLog(ToolDefinition):  # type: ignore[misc]
            @classmethod
            def create(cls, *_: Any, **__: Any) -> Any:
                types = {"action_type": ReadLogAction, "observation_type": ReadLogObservation}
                return [cls(description="Read a page of the log.", executor=ReadLogExecutor(), **types)]

        register_tool("ReadLog", ReadLog)
    return read_log


def script(title: str) -> list[Any]:
    """The answers of the model: a page each, and an end as the framework wants it."""
    if title == "mini-swe-agent":
        lines = "; yes 'page {}: a line of the log' | head -80"
        ended = calls(call("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}))
        return [*(calls(call("bash", {"command": "true" + lines.format(page)})) for page in range(TURNS)), ended]
    made = [calls(call("read_log", {"page": page})) for page in range(TURNS)]
    return [*made, calls(call("final_answer", {"answer": "Page 7."})) if title == "smolagents" else text("Page 7.")]


def sent_results(body: dict[str, Any]) -> list[str]:
    """The tool results of a request; where they have no role of their own, they are recognized by their words."""
    if "input" in body:
        return [item["output"] for item in body["input"] if item.get("type") == "function_call_output"]
    found = []
    for message in body["messages"]:
        said = _said(message.get("content") or "")
        if message["role"] == "tool" or (message["role"] == "user" and ("Observation:" in said or said == PLACEHOLDER)):
            found.append(said)
    return found


def _said(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def test_the_table_names_the_releases_that_are_pinned() -> None:
    folder = Path(__file__).parent / "requirements"
    pinned = "".join((folder / f"{name}-newest.txt").read_text() for name in ("listings", "openhands"))
    rows = re.findall(r"^\| \[(.*?)\].*? \| `(\S+)` (\S+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [title for title, _, _ in rows] == [one.title for one in LISTINGS]
    for _, package, release in rows:
        assert f"\n{package}=={release}\n" in pinned


def test_each_listing_has_at_most_thirty_lines() -> None:
    for one in LISTINGS:
        assert len(code(one.title).splitlines()) <= 30, one.title


HERE = [(one, "gpt-5") for one in LISTINGS if is_installed(one.module)]
# OpenHands sends to the models that OpenAI serves by Responses in that form, and to others as chats.
HERE += [(one, "gpt-4o") for one, _ in HERE if one.title == "OpenHands"]


@pytest.mark.parametrize(("listing", "model"), HERE, ids=[f"{one.title}-{model}" for one, model in HERE])
def test_what_is_sent_is_masked_and_what_is_stored_is_not(
    listing: Listing, model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    title = listing.title
    monkeypatch.chdir(tmp_path)
    with serving(*script(title)) as server:
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            monkeypatch.setenv(name, f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        monkeypatch.setenv("MSWEA_COST_TRACKING", "ignore_errors")
        made: dict[str, Any] = {"__name__": "listing", "read_log": tool_for(title), "api_key": "none"}
        exec(code(title).replace("gpt-5", model), made)
        stored = listing.run(made)
    made.clear()
    gc.collect()  # what a framework leaves open is said here, where a warning is none of ours
    assert server.refusals == []
    requests = [sent_results(body) for body in server.requests]
    assert [len(results) for results in requests] == list(range(TURNS + 1))
    for page, whole in enumerate(stored[:TURNS]):
        assert page_text(page).strip() in whole
    for results in requests:
        is_masked = [one == PLACEHOLDER for one in results]
        assert is_masked == sorted(is_masked, reverse=True)
        assert not any(is_masked[-KEEP:])
        assert all(f"page {page}:" in one for page, one in enumerate(results) if one != PLACEHOLDER)
    assert requests[-1].count(PLACEHOLDER) > TURNS / 2
    changes = sum(after[: len(before)] != before for before, after in pairwise(requests))
    assert 0 < changes < TURNS / 2  # a window that slides changes nearly all
