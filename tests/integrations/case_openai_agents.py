"""OpenAI Agents SDK: `Runner`, with its model of OpenAI, which asks the played server, and its own session."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

from agents import Agent, FunctionTool, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession
from openai import AsyncOpenAI
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage
from openai.types.responses.response_output_text import ResponseOutputText
from sessions import IMAGE, TASK, Call, Result, Turn
from unions import samples

from recede.integrations.openai_agents import RecedeInputFilter

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import serving
from scripts import DEFAULTS, script_of  # noqa: F401 (the contract asks a case for the former)

WAYS = ("sync", "async", "stream")
HAS_ERRORS = False  # its results have no flag


def _said(turn: Turn) -> list[Any]:
    items: list[Any] = []
    if turn.said:
        part = ResponseOutputText(text=turn.said, type="output_text", annotations=[], logprobs=[])
        given: Any = {"id": "m", "role": "assistant", "status": "completed", "type": "message"}
        items.append(ResponseOutputMessage(content=[part], **given))
    for call in turn.calls:
        arguments = json.dumps(call.args)
        one = ResponseFunctionToolCall(call_id=call.id, name=call.name, arguments=arguments, type="function_call")
        items.append(one)
    return items


def _returned(result: Result) -> Any:
    if not result.has_image:
        return result.text
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"}
    return [{"type": "input_text", "text": result.text}, image]


def history(turns: list[Turn]) -> list[Any]:
    items: list[Any] = [{"content": TASK, "role": "user"}]
    for turn in turns:
        items += [item.model_dump(exclude_unset=True) for item in _said(turn)]
        for result in turn.results.values():
            items.append({"call_id": result.id, "output": _returned(result), "type": "function_call_output"})
    return items


dicts = history  # recede reads them itself


def masking(**options: Any) -> RecedeInputFilter:
    return RecedeInputFilter(**options)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    return asyncio.run(aview(masking, messages, model))


async def aview(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    from agents.run import CallModelData, ModelInputData

    agent: Any = Agent(name="a", model=_of_views(model))
    data: Any = CallModelData(model_data=ModelInputData(input=messages, instructions=None), agent=agent, context=None)
    given: list[Any] = (await masking(data)).input
    return given


def results(messages: list[Any]) -> list[tuple[str, str]]:
    return [(item["call_id"], _text(item["output"])) for item in messages if item.get("type") == "function_call_output"]


def _text(output: Any) -> str:
    return output if isinstance(output, str) else "".join(part.get("text", "") for part in output)


def contents(messages: list[Any]) -> dict[str, Any]:
    return {item["call_id"]: item["output"] for item in messages if item.get("type") == "function_call_output"}


def calls(messages: list[Any]) -> list[str]:
    return [item["call_id"] for item in messages if item.get("type") == "function_call"]


def typed_results() -> dict[str, list[Any]]:
    from openai.types.responses.response_function_call_output_item_list_param import (
        ResponseFunctionCallOutputItemListParam,
    )

    (part_of,) = get_args(ResponseFunctionCallOutputItemListParam)
    before = history([Turn("", [Call("1", "run", {})])])
    return {
        name: [*before, {"type": "function_call_output", "call_id": "1", "output": [part]}]
        for name, part in samples(part_of).items()
    }


UNCOUNTED = {"ResponseReasoningItemParam", "ResponseComputerToolCallParam"}  # thoughts; no text but ids
KEPT: set[str] = set()


def typed_messages() -> dict[str, list[Any]]:
    from openai.types.responses.response_input_item_param import ResponseInputItemParam

    return {name: [*history([]), item] for name, item in samples(ResponseInputItemParam).items()}


def reloaded(messages: list[Any]) -> list[Any]:
    async def through_session() -> list[Any]:
        session = SQLiteSession("one")
        await session.add_items(messages)
        loaded: list[Any] = list(await session.get_items())
        session.close()
        return loaded

    return asyncio.run(through_session())


class Recording(OpenAIResponsesModel):
    """The model of the framework, which remembers the input that it is given."""

    def __init__(self, url: str, name: str = "m") -> None:
        # A connection is one of a loop, and each run has a loop of its own.
        given: Any = {"max_retries": 0, "default_headers": {"connection": "close"}}
        super().__init__(name, AsyncOpenAI(base_url=f"{url}/v1", api_key="none", **given))
        self.requests: list[list[Any]] = []

    def _asked(self, given: Any) -> None:
        self.requests.append([{"role": "user", "content": given}] if isinstance(given, str) else list(given))

    async def get_response(self, system_instructions: Any, input: Any, *given: Any, **named: Any) -> Any:
        self._asked(input)
        return await super().get_response(system_instructions, input, *given, **named)

    async def stream_response(
        self, system_instructions: Any, input: Any, *given: Any, **named: Any
    ) -> AsyncIterator[Any]:
        self._asked(input)
        async for event in super().stream_response(system_instructions, input, *given, **named):
            yield event


@functools.cache
def _of_views(name: str) -> Recording:
    return Recording("http://127.0.0.1", name)


def tool_of(by_id: dict[str, Result]) -> FunctionTool:
    async def run(context: Any, arguments: str) -> Any:
        from agents import ToolOutputImage, ToolOutputText

        result = by_id[context.tool_call_id]
        if not result.has_image:
            return result.text
        return [ToolOutputText(text=result.text), ToolOutputImage(image_url=f"data:image/png;base64,{IMAGE}")]

    schema = {"type": "object", "properties": {}}
    return FunctionTool("run", "Run a command.", schema, run, strict_json_schema=False)


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    by_id = {name: result for turn in turns for name, result in turn.results.items()}
    given: Any = {
        "max_turns": 1_000,
        "hooks": masking,
        "run_config": RunConfig(call_model_input_filter=masking, tracing_disabled=True),
    }

    async def streamed(agent: Any) -> Any:
        running = Runner.run_streamed(agent, TASK, **given)
        async for _ in running.stream_events():
            pass
        return running

    def done(agent: Any) -> Any:
        if way == "stream":
            return asyncio.run(streamed(agent))
        if way == "async":
            return asyncio.run(Runner.run(agent, TASK, **given))
        loop = asyncio.new_event_loop()  # `run_sync` wants one, and leaves it open
        asyncio.set_event_loop(loop)
        finished = Runner.run_sync(agent, TASK, **given)
        asyncio.set_event_loop(None)
        loop.close()
        return finished

    with serving(*script_of(turns)) as server:
        model = Recording(server.url)
        stored = done(Agent(name="a", model=model, tools=[tool_of(by_id), masking.recall_tool])).to_input_list()
    assert server.refusals == []
    assert len(server.requests) == len(model.requests)
    return model.requests, stored
