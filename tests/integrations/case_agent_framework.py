"""Agent Framework: `Agent`, with a scripted client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatContext,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    ResponseStream,
    tool,
)
from sessions import IMAGE, LAST, TASK, Call, Result, Turn, asked_for, results_by_arguments
from unions import LONG

from recede.integrations.agent_framework import RecedeMiddleware

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
    context: Any = ChatContext(Scripted([]), messages, {"model": model})  # type: ignore[arg-type]
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


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[misc]
    """Plays the turn whose number is that of its own messages in the request."""

    def __init__(self, turns: list[Turn]) -> None:
        super().__init__(function_invocation_configuration={"max_iterations": 1_000})
        self.turns = turns
        self.requests: list[Any] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        self.requests.append(list(messages))
        turn = asked_for(self.turns, self.requests)
        usage: Any = {"input_token_count": 9_000, "output_token_count": 10, "cache_read_input_token_count": 8_900}

        async def whole() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", _contents(turn))], usage_details=usage)

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            for one in _contents(turn):
                yield ChatResponseUpdate(contents=[one], role="assistant")

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates) if stream else whole()


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    left = results_by_arguments(turns)

    @tool(name="run", approval_mode="never_require")
    def run_tool(command: str, place: int, quiet: bool) -> Any:
        """Run a command."""
        return _items(left[command, place].pop(0))

    client = Scripted([*turns, LAST])
    agent = Agent(
        client,
        tools=[run_tool, masking.recall_tool],
        middleware=[masking],
        context_providers=[InMemoryHistoryProvider()],
    )

    async def in_loop() -> list[Any]:
        session = agent.create_session()
        if way == "stream":
            async for _ in agent.run(TASK, session=session, stream=True):
                pass
        else:
            await agent.run(TASK, session=session)
        return list(session.state["in_memory"]["messages"])

    return client.requests, asyncio.run(in_loop())
