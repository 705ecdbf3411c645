"""Agent Framework: `Agent`, with its client of OpenAI, which asks the played server."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    ChatContext,
    ChatResponse,
    Content,
    InMemoryHistoryProvider,
    Message,
    tool,
)
from agent_framework.openai import OpenAIChatCompletionClient
from sessions import IMAGE, TASK, Call, Result, Turn, results_by_arguments
from unions import LONG

from recede.integrations.agent_framework import RecedeMiddleware

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import serving
from scripts import DEFAULTS, script_of  # noqa: F401 (the contract asks a case for the former)

WAYS = ("async", "stream")
IMAGE_URI = f"data:image/png;base64,{IMAGE}"


def _contents(turn: Turn) -> list[Content]:
    said = [Content.from_text(turn.said)] if turn.said else []
    return [*said, *(Content.from_function_call(one.id, one.name, arguments=one.args) for one in turn.calls)]


def _said(turn: Turn) -> Message:
    return Message("assistant", _contents(turn))


def _items(result: Result) -> list[Content]:
    image = [Content.from_uri(IMAGE_URI, media_type="image/png")] if result.has_image else []
    return [Content.from_text(result.text), *image]


def _returned(result: Result) -> Message:
    error = "failed" if result.is_error else None
    return Message("tool", [Content.from_function_result(result.id, result=_items(result), exception=error)])


def reasoned(answer: Any, thought: str) -> Any:
    reasoning = Content.from_text_reasoning(text=thought, protected_data=f"of {thought}")
    return Message("assistant", [reasoning, *answer.contents])


def thoughts(message: Any) -> list[str]:
    return [str(one.text) for one in message.contents if one.type == "text_reasoning"]


def history(turns: list[Turn]) -> list[Any]:
    messages = [Message("user", [TASK])]
    for turn in turns:
        messages += [_said(turn), *map(_returned, turn.results.values())]
    return messages


def masking(**options: Any) -> RecedeMiddleware:
    return RecedeMiddleware(**options)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    context: Any = ChatContext(Recording("http://127.0.0.1"), messages, {"model": model})  # type: ignore[arg-type]
    context.result = ChatResponse(messages=[])

    async def call_next() -> None:
        pass

    asyncio.run(masking.process(context, call_next))
    return list(context.messages)


def _of_type(messages: list[Any], kind: str) -> list[Any]:
    return [one for message in messages for one in message.contents if one.type == kind]


def results(messages: list[Any]) -> list[tuple[str, str]]:
    return [
        (one.call_id, "".join(item.text or "" for item in one.items)) for one in _of_type(messages, "function_result")
    ]


def contents(messages: list[Any]) -> dict[str, Any]:
    found = {one.call_id: list(one.items) for one in _of_type(messages, "function_result")}
    return {id: items if items[-1].type != "text" else items[0].text for id, items in found.items()}


def comparable(messages: list[Any]) -> list[Any]:
    return [message.to_dict() for message in messages]


def calls(messages: list[Any]) -> list[str]:
    return [one.call_id for one in _of_type(messages, "function_call")]


UNCOUNTED = {"text_reasoning"}
KEPT: set[str] = set()


def _samples() -> dict[str, Content]:
    return {
        "text": Content.from_text(LONG),
        "uri": Content.from_uri(IMAGE_URI, media_type="image/png"),
        "data": Content.from_data(IMAGE.encode(), media_type="image/png"),
        "hosted_file": Content.from_hosted_file("file_1"),
    }


def typed_results() -> dict[str, list[Any]]:
    before = history([Turn("", [Call("1", "run", {})])])
    returned = {name: Content.from_function_result("1", result=[one]) for name, one in _samples().items()}
    return {name: [*before, Message("tool", [one])] for name, one in returned.items()}


def typed_messages() -> dict[str, list[Any]]:
    parts = {
        **_samples(),
        "text_reasoning": Content.from_text_reasoning(text=LONG),
        "error": Content.from_error(message=LONG),
        "function_call": Content.from_function_call("2", "run", arguments={"key": LONG}),
    }
    return {name: [*history([]), Message("assistant", [part])] for name, part in parts.items()}


def reloaded(messages: list[Any]) -> list[Any]:
    return [Message.from_dict(json.loads(json.dumps(message.to_dict()))) for message in messages]


class Recording(OpenAIChatCompletionClient):  # type: ignore[type-arg]
    """The client of the framework, which remembers the messages that it is given."""

    def __init__(self, url: str) -> None:
        calling: Any = {"max_iterations": 1_000}
        super().__init__("m", api_key="none", base_url=f"{url}/v1", function_invocation_configuration=calling)
        self.requests: list[Any] = []

    def _inner_get_response(self, *, messages: Any, **given: Any) -> Any:
        self.requests.append(list(messages))
        return super()._inner_get_response(messages=messages, **given)


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    left = results_by_arguments(turns)

    @tool(name="run", approval_mode="never_require")
    def run_tool(command: str, place: int, quiet: bool) -> Any:
        """Run a command."""
        return _items(left[command, place].pop(0))

    async def in_loop(url: str) -> tuple[list[Any], list[Any]]:
        client = Recording(url)
        tools = [run_tool, masking.recall_tool]
        agent = Agent(client, tools=tools, middleware=[masking], context_providers=[InMemoryHistoryProvider()])
        session = agent.create_session()
        if way == "stream":
            async for _ in agent.run(TASK, session=session, stream=True):
                pass
        else:
            await agent.run(TASK, session=session)
        await client.client.close()
        return client.requests, list(session.state["in_memory"]["messages"])

    with serving(*script_of(turns)) as server:
        requests, stored = asyncio.run(in_loop(server.url))
    assert server.refusals == []
    assert len(server.requests) == len(requests)
    return requests, stored
