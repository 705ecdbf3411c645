"""Google ADK: `Runner`, with a scripted model."""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import LlmRequest, LlmResponse
from google.adk.models.base_llm import BaseLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types
from sessions import LAST, TASK, Call, Turn, asked_for
from unions import LONG

from recede.integrations.google_adk import RecedePlugin

sys.path.append(str(Path(__file__).parents[1]))

from provider_rules import signed

WAYS = ("async", "stream")
HAS_ERRORS = False
PROVIDERS = ("anthropic", "openai", "gemini")


def _said(turn: Turn) -> types.Content:
    said = [types.Part(text=turn.said)] if turn.said else []
    made = [types.FunctionCall(id=one.id, name=one.name, args=one.args) for one in turn.calls]
    calls = [types.Part(function_call=call) for call in made]
    if calls:  # as Gemini signs them
        calls[0].thought_signature = base64.b64decode(signed(turn.calls[0].name))
    return types.Content(role="model", parts=[*said, *calls])


def reasoned(answer: Any, thought: str) -> Any:
    part = types.Part(text=thought, thought=True, thought_signature=f"of {thought}".encode())
    return answer.model_copy(update={"parts": [part, *answer.parts]})


def thoughts(message: Any) -> list[str]:
    return [part.text for part in message.parts if part.thought]


def _part(id: str, response: dict[str, Any]) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=id, name="run", response=response))


def history(turns: list[Turn]) -> list[Any]:
    contents = [types.Content(role="user", parts=[types.Part(text=TASK)])]
    for turn in turns:
        contents.append(_said(turn))
        if turn.results:
            parts = [_part(one.id, {"result": one.text}) for one in turn.results.values()]
            contents.append(types.Content(role="user", parts=parts))
    return contents


def dicts(turns: list[Turn]) -> list[dict[str, Any]]:
    return [one.model_dump(exclude_none=True) for one in history(turns)]


def masking(**options: Any) -> RecedePlugin:
    return RecedePlugin(**options)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    request = LlmRequest(model=model, contents=messages)
    asyncio.run(masking.before_model_callback(callback_context=None, llm_request=request))
    return request.contents


def _responses(messages: list[Any]) -> list[Any]:
    parts = (part for one in messages for part in (one["parts"] if isinstance(one, dict) else one.parts))
    found = (one.get("function_response") if isinstance(one, dict) else one.function_response for one in parts)
    return [types.FunctionResponse(**one) if isinstance(one, dict) else one for one in found if one]


def results(messages: list[Any]) -> list[tuple[str, str]]:
    return [(one.id, str(next(iter(one.response.values()), ""))) for one in _responses(messages)]


def contents(messages: list[Any]) -> dict[str, Any]:
    return {one.id: next(iter(one.response.values()), "") for one in _responses(messages)}


def calls(messages: list[Any]) -> list[str]:
    return [part.function_call.id for one in messages for part in one.parts if part.function_call]


# Thinking is not counted.
UNCOUNTED = {"thought"}
KEPT: set[str] = set()


def typed_results() -> dict[str, list[Any]]:
    before = history([Turn("", [Call("1", "run", {})])])
    responses = {"result": {"result": LONG}, "output": {"output": LONG}, "keys": {"a": LONG, "b": [LONG]}}
    return {name: [*before, types.Content(role="user", parts=[_part("1", one)])] for name, one in responses.items()}


def typed_messages() -> dict[str, list[Any]]:
    parts = {
        "text": types.Part(text=LONG),
        "thought": types.Part(text=LONG, thought=True),
        "function_call": types.Part(function_call=types.FunctionCall(id="2", name="run", args={"key": LONG})),
        "inline_data": types.Part(inline_data=types.Blob(data=b"x" * 99, mime_type="image/png")),
        "file_data": types.Part(file_data=types.FileData(file_uri="gs://a/b", mime_type="image/png")),
        "executable_code": types.Part(executable_code=types.ExecutableCode(code=LONG, language="PYTHON")),
        "code_execution_result": types.Part(
            code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK", output=LONG)
        ),
    }
    return {name: [*history([]), types.Content(role="model", parts=[part])] for name, part in parts.items()}


def body(messages: list[Any]) -> tuple[str, dict[str, Any]]:
    contents = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in messages]
    return "gemini", {"contents": contents}


def reloaded(messages: list[Any]) -> list[Any]:
    return [types.Content.model_validate_json(one.model_dump_json(exclude_none=True)) for one in messages]


class Scripted(BaseLlm):
    """Plays the turn whose number is that of its own messages in the request."""

    turns: list[Any]
    requests: list[Any]
    base_url: str = ""  # as a `Gemini` has it

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
        self.requests.append(list(llm_request.contents))
        turn = asked_for(self.turns, self.requests)
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=9_000, cached_content_token_count=8_900, candidates_token_count=10
        )
        if stream and turn.said:
            said = types.Content(role="model", parts=[types.Part(text=turn.said)])
            yield LlmResponse(content=said, partial=True, usage_metadata=usage)
        yield LlmResponse(content=_said(turn), partial=False, usage_metadata=usage)


def run(masking: Any, turns: list[Turn], way: str, **options: Any) -> tuple[list[list[Any]], list[Any]]:
    by_id = {name: result for turn in turns for name, result in turn.results.items()}

    def run(command: str, place: int, quiet: bool, tool_context: ToolContext) -> str:
        """Run a command."""
        return by_id[str(tool_context.function_call_id)].text

    model = Scripted(model="m", turns=[*turns, LAST], requests=[], **options)
    agent = LlmAgent(name="worker", model=model, tools=[FunctionTool(run)])
    runner = InMemoryRunner(agent=agent, app_name="app", plugins=[masking])
    config = RunConfig(streaming_mode=StreamingMode.SSE if way == "stream" else StreamingMode.NONE, max_llm_calls=0)
    given = types.Content(role="user", parts=[types.Part(text=TASK)])

    async def in_loop() -> list[Any]:
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=given, run_config=config):
            pass
        session = await runner.session_service.get_session(app_name="app", user_id="u", session_id=session.id)
        return [event.content for event in session.events if event.content]

    return model.requests, asyncio.run(in_loop())
