"""Inspect: the loop of a model, an agent and an evaluation, with its model of OpenAI, which asks the played server."""

from __future__ import annotations

import asyncio
import functools
import sys
import tempfile
from contextvars import copy_context
from pathlib import Path
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
    get_model,
    modelapi,
)
from inspect_ai.model._model import init_active_model
from inspect_ai.model._providers.openai import OpenAIAPI
from inspect_ai.tool import ToolCall, ToolCallError, ToolDef, ToolError
from pydantic import TypeAdapter
from sessions import IMAGE, TASK, Call, Result, Turn, results_by_arguments
from unions import LONG

from recede.integrations.inspect_ai import RecedeHooks

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import serving
from scripts import DEFAULTS, script_of  # noqa: F401 (the contract asks a case for the former)

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


@functools.cache
def _of_views(name: str) -> Any:
    return recording(name)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    asked = _of_views(model)
    data = SimpleNamespace(input=list(messages), model_name=str(asked), tools=[])

    def call() -> None:
        init_active_model(asked, GenerateConfig())
        asyncio.run(masking.on_before_model_generate(data))

    copy_context().run(call)
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


@modelapi(name="recording")
class Recording(OpenAIAPI):
    """The model of the framework, which remembers the messages that it is given."""

    def __init__(self, model_name: str, **options: Any) -> None:
        super().__init__(model_name, **options)
        self.requests: list[Any] = []

    def retry_wait(self) -> Any:
        return tenacity.wait_none()

    async def generate(self, input: Any, *given: Any, **named: Any) -> Any:
        self.requests.append(list(input))
        return await super().generate(input, *given, **named)


def recording(name: str = "m", url: str = "http://127.0.0.1/v1") -> Any:
    # Without `reasoning_summary` it asks first whether it may have summaries.
    config = GenerateConfig(max_tool_output=10_000_000, max_retries=3, reasoning_summary="none")
    given: dict[str, Any] = {"api_key": "none", "responses_api": True, "max_retries": 0}  # the framework retries
    return get_model(f"recording/{name}", config=config, memoize=False, base_url=url, **given)


def run(masking: Any, turns: list[Turn], way: str, base_url: str | None = None) -> tuple[list[list[Any]], list[Any]]:
    left = results_by_arguments(turns)

    async def run_tool(command: str, place: int, quiet: bool) -> Any:
        result = left[command, place].pop(0)
        if result.is_error:
            raise ToolError(result.text)
        return _content(result)

    named = dict.fromkeys(("command", "place", "quiet"), "One of them.")
    tools = [ToolDef(run_tool, "run", "Run a command.", named).as_tool(), masking.recall_tool()]
    masking.register()

    def stored_of(model: Any) -> list[Any]:
        async def in_loop() -> list[Any]:
            init_active_model(model, GenerateConfig())
            messages: list[Any] = [ChatMessageUser(content=TASK)]
            async with model:
                return messages + (await model.generate_loop(messages, tools=tools))[0]

        if way != "async":
            return asyncio.run(in_loop())
        agent = react(prompt=None, tools=tools, submit=False)
        with tempfile.TemporaryDirectory() as folder:
            task = inspect_ai.Task(dataset=[Sample(input=TASK)], solver=as_solver(agent), config=model.config)
            (log,) = inspect_ai.eval(task, model=model, display="none", log_dir=folder)
            assert log.status == "success" and log.samples
            return list(log.samples[0].messages)

    with serving(*script_of(turns, failing=500 if way == "failing" else None)) as server:
        model = recording(url=f"{server.url}/v1")
        model.api.base_url = base_url or model.api.base_url
        stored = stored_of(model)
    assert server.refusals == []
    assert len(server.requests) == len(model.api.requests)
    return model.api.requests, stored
