"""OpenAI Agents SDK: `Runner`, with a fake model and its own session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, get_args

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage
from openai.types.responses import Response, ResponseCompletedEvent, ResponseFunctionToolCall, ResponseOutputMessage
from openai.types.responses.response_output_text import ResponseOutputText
from openai.types.responses.response_usage import InputTokensDetails
from sessions import IMAGE, LAST, TASK, Call, Result, Turn
from unions import samples

from recede.integrations.openai_agents import RecedeInputFilter

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

    agent: Any = Agent(name="a", model=model)
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


def body(messages: list[Any]) -> tuple[str, dict[str, Any]]:
    return "responses", {"model": "m", "input": messages}


def reloaded(messages: list[Any]) -> list[Any]:
    async def through_session() -> list[Any]:
        session = SQLiteSession("one")
        await session.add_items(messages)
        loaded: list[Any] = list(await session.get_items())
        session.close()
        return loaded

    return asyncio.run(through_session())


class Scripted(Model):
    """Plays the turn that follows the last output in the input."""

    def __init__(self, turns: list[Turn]) -> None:
        self.turns = turns
        self.after = {name: place + 1 for place, turn in enumerate(turns) for name in turn.results}
        self.after |= {call.id: place + 1 for place, turn in enumerate(turns) for call in turn.calls}
        self.requests: list[list[Any]] = []

    def _asked(self, given: Any) -> ModelResponse:
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        self.requests.append(list(items))
        last = results(items)[-1:]
        details = InputTokensDetails.model_construct(cached_tokens=8_900)
        usage = Usage(
            requests=1, input_tokens=9_000, output_tokens=10, total_tokens=9_010, input_tokens_details=details
        )
        return ModelResponse(_said(self.turns[self.after[last[0][0]] if last else 0]), usage, None)

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        return self._asked(input)

    async def stream_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        answer = self._asked(input)
        body: Any = {"id": "r", "created_at": 0, "model": "m", "object": "response", "tools": [], "tool_choice": "auto"}
        whole = Response(**body, output=answer.output, parallel_tool_calls=True)
        yield ResponseCompletedEvent(type="response.completed", response=whole, sequence_number=0)


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
    model = Scripted([*turns, LAST])
    agent: Any = Agent(name="a", model=model, tools=[tool_of(by_id), masking.recall_tool])
    given: Any = {
        "max_turns": 1_000,
        "hooks": masking,
        "run_config": RunConfig(call_model_input_filter=masking, tracing_disabled=True),
    }

    async def streamed() -> Any:
        running = Runner.run_streamed(agent, TASK, **given)
        async for _ in running.stream_events():
            pass
        return running

    if way == "stream":
        done = asyncio.run(streamed())
    elif way == "async":
        done = asyncio.run(Runner.run(agent, TASK, **given))
    else:
        loop = asyncio.new_event_loop()  # `run_sync` wants one, and leaves it open
        asyncio.set_event_loop(loop)
        done = Runner.run_sync(agent, TASK, **given)
        asyncio.set_event_loop(None)
        loop.close()
    return model.requests, done.to_input_list()
