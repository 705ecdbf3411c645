"""CrewAI: a crew of one agent, whose model is asked by OpenAI's form at a provider on this machine."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from pathlib import Path
from typing import Any

import httpx
from case_http import PROVIDERS  # noqa: F401 (the contract asks a case for them)
from chat_messages import calls, reloaded, results  # noqa: F401
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from sessions import TASK, Turn, results_by_arguments

from recede.integrations.crewai import RecedeInterceptor

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import serving
from scripts import DEFAULTS, script_of  # noqa: F401 (the contract asks a case for the former)

WAYS = ("sync", "async", "stream", "failing")
HAS_ERRORS = False  # its results have no flag


@functools.cache
def _head() -> list[Any]:
    """What an agent sends before the first answer: its own words, and the task."""
    requests, _ = run(RecedeInterceptor(), [], "sync")
    return requests[0]


def history(turns: list[Turn]) -> list[Any]:
    messages: list[Any] = [dict(one) for one in _head()]
    for turn in turns:
        functions = [(call.id, {"name": call.name, "arguments": json.dumps(call.args)}) for call in turn.calls]
        made = [{"id": id, "type": "function", "function": function} for id, function in functions]
        messages.append(
            {"role": "assistant", "content": None if made else turn.said, **({"tool_calls": made} if made else {})}
        )
        for one in turn.results.values():
            messages.append({"role": "tool", "tool_call_id": one.id, "name": "run", "content": one.text})
    return messages


dicts = history  # recede reads them itself


def masking(**options: Any) -> RecedeInterceptor:
    return RecedeInterceptor(**options)


def view(masking: RecedeInterceptor, messages: list[Any], model: str = "m") -> list[Any]:
    url = "https://api.openai.com/v1/chat/completions"
    request = httpx.Request("POST", url, json={"model": model, "messages": messages})
    given: list[Any] = json.loads(masking.on_outbound(request).content)["messages"]
    return given


def run(masking: RecedeInterceptor, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    left = results_by_arguments(turns)

    @tool("run")
    def run_tool(command: str, place: int, quiet: bool) -> str:
        """Run a command."""
        return left[(command, place)].pop(0).text

    run_tool.cache_function = lambda *_: False
    with serving(*script_of(turns, failing=500 if way == "failing" else None)) as server:
        options = {"base_url": f"{server.url}/v1", "api_key": "none", "interceptor": masking}
        llm = LLM(model="m", provider="openai", stream=way == "stream", **options)
        # Without what CrewAI does by the size of the messages that it stores: it would cut long results, and summarize.
        sizes = {"respect_context_window": False, "use_better_compaction": False, "max_iter": 200}
        agent = Agent(role="Finder", goal=TASK, backstory="Careful.", llm=llm, tools=[run_tool], **sizes)
        crew = Crew(agents=[agent], tasks=[Task(description=TASK, expected_output="The line.", agent=agent)])

        async def in_loop() -> Any:
            out = await crew.akickoff()
            await llm._async_client.close()
            return out

        out = asyncio.run(in_loop()) if way == "async" else crew.kickoff()
        llm._client.close()
    assert server.refusals == []
    return [body["messages"] for body in server.requests], out.tasks_output[0].messages
