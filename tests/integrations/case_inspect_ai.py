"""Inspect: the loop of a model, an agent and a task of an evaluation, with a scripted model."""

from __future__ import annotations

import asyncio
import tempfile
from types import SimpleNamespace
from typing import Any

import inspect_ai
import tenacity
from inspect_ai.agent import as_solver, react
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ContentAudio,
    ContentData,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    ContentToolUse,
    ContentVideo,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolCall, ToolCallError, ToolDef, ToolError
from pydantic import TypeAdapter
from sessions import IMAGE, LAST, TASK, Call, Result, Turn, asked_for, results_by_arguments
from unions import LONG

from recede.integrations.inspect_ai import RecedeHooks

WAYS = ("sync", "async", "failing")
AT_ONCE = ("sync",)  # a process runs one evaluation at a time
IMAGE_URI = f"data:image/png;base64,{IMAGE}"


def _said(turn: Turn) -> ChatMessageAssistant:
    made = [ToolCall(one.id, one.name, one.args) for one in turn.calls]
    return ChatMessageAssistant(content=turn.said, tool_calls=made or None)


def _content(result: Result) -> Any:
    return [ContentText(text=result.text), ContentImage(image=IMAGE_URI)] if result.has_image else result.text


def _returned(one: Result) -> ChatMessageTool:
    error = ToolCallError("unknown", one.text) if one.is_error else None
    content = "" if one.is_error else _content(one)
    return ChatMessageTool(content=content, tool_call_id=one.id, function="run", error=error)


def reasoned(answer: Any, thought: str) -> Any:
    part = ContentReasoning(reasoning=f"of {thought}", summary=thought, redacted=True)
    said = [ContentText(text=answer.content)] if answer.content else []
    return answer.model_copy(update={"content": [part, *said]})


def thoughts(message: Any) -> list[str]:
    parts = [] if isinstance(message.content, str) else message.content
    return [str(part.summary) for part in parts if part.type == "reasoning"]


def history(turns: list[Turn]) -> list[Any]:
    messages: list[Any] = [ChatMessageUser(content=TASK)]
    for turn in turns:
        messages += [_said(turn), *map(_returned, turn.results.values())]
    return messages


def masking(**options: Any) -> RecedeHooks:
    return RecedeHooks(**options)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    data = SimpleNamespace(input=list(messages), model_name=model, tools=[])
    asyncio.run(masking.on_before_model_generate(data))
    return data.input


def results(messages: list[Any]) -> list[tuple[str, str]]:
    return [(one.tool_call_id, one.error.message if one.error else one.text) for one in messages if one.role == "tool"]


def contents(messages: list[Any]) -> dict[str, Any]:
    return {one.tool_call_id: one.content for one in messages if one.role == "tool"}


def calls(messages: list[Any]) -> list[str]:
    return [call.id for message in messages for call in getattr(message, "tool_calls", None) or ()]


UNCOUNTED = {"reasoning"}
KEPT: set[str] = set()


def _samples() -> dict[str, Any]:
    return {
        "text": ContentText(text=LONG),
        "image": ContentImage(image=IMAGE_URI),
        "audio": ContentAudio(audio="data:audio/mp3;base64,AA", format="mp3"),
        "video": ContentVideo(video="data:video/mp4;base64,AA", format="mp4"),
        "document": ContentDocument(document="data:application/pdf;base64,AA"),
        "data": ContentData(data={"key": LONG}),
        "reasoning": ContentReasoning(reasoning=LONG),
        "tool_use": ContentToolUse(tool_type="mcp_call", id="1", name="n", arguments="{}", result=LONG),
    }


def typed_results() -> dict[str, list[Any]]:
    before = history([Turn("", [Call("1", "run", {})])])
    parts = {name: one for name, one in _samples().items() if name not in ("reasoning", "tool_use")}
    return {name: [*before, ChatMessageTool(content=[one], tool_call_id="1")] for name, one in parts.items()}


def typed_messages() -> dict[str, list[Any]]:
    return {name: [*history([]), ChatMessageAssistant(content=[one])] for name, one in _samples().items()}


def reloaded(messages: list[Any]) -> list[Any]:
    kind = TypeAdapter(list[inspect_ai.model.ChatMessage])
    return kind.validate_json(kind.dump_json(messages))


class BusyError(Exception):
    """The provider could not answer."""


@modelapi(name="scripted")
class Scripted(ModelAPI):
    """Plays the turn whose number is that of its own messages in the request."""

    def __init__(self, model_name: str, turns: list[Turn], is_failing: bool, **options: Any) -> None:
        super().__init__(model_name, **options)
        self.turns, self.is_failing = turns, is_failing
        self.requests: list[Any] = []

    def should_retry(self, ex: BaseException) -> bool:
        return isinstance(ex, BusyError)

    def tool_result_images(self) -> bool:
        return True

    def retry_wait(self) -> Any:
        return tenacity.wait_none()

    async def generate(self, input: Any, **_: Any) -> ModelOutput:
        self.requests.append(list(input))
        if self.is_failing and len(self.requests) % 2:
            raise BusyError
        message = _said(asked_for(self.turns, self.requests, is_failing=self.is_failing))
        usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=9_010, input_tokens_cache_read=8_900)
        output = ModelOutput.from_message(message, "tool_calls" if message.tool_calls else "stop")
        output.usage = usage
        return output


def run(masking: Any, turns: list[Turn], way: str, **options: Any) -> tuple[list[list[Any]], list[Any]]:
    left = results_by_arguments(turns)

    async def run_tool(command: str, place: int, quiet: bool) -> Any:
        result = left[command, place].pop(0)
        if result.is_error:
            raise ToolError(result.text)
        return _content(result)

    named = dict.fromkeys(("command", "place", "quiet"), "One of them.")
    tools = [ToolDef(run_tool, "run", "Run a command.", named).as_tool(), masking.recall_tool()]
    config = GenerateConfig(max_tool_output=10_000_000, max_retries=3)
    script = {"turns": [*turns, LAST], "is_failing": way == "failing"}
    model = get_model("scripted/m", config=config, memoize=False, **script, **options)
    api: Any = model.api
    masking.register()

    async def in_loop() -> list[Any]:
        messages: list[Any] = [ChatMessageUser(content=TASK)]
        return messages + (await model.generate_loop(messages, tools=tools))[0]

    if way != "async":
        return api.requests, asyncio.run(in_loop())
    agent = react(prompt=None, tools=tools, submit=False)
    with tempfile.TemporaryDirectory() as folder:
        task = inspect_ai.Task(dataset=[Sample(input=TASK)], solver=as_solver(agent), config=config)
        (log,) = inspect_ai.eval(task, model=model, display="none", log_dir=folder)
        assert log.status == "success" and log.samples
        return api.requests, list(log.samples[0].messages)
