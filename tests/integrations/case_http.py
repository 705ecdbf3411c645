"""The HTTP client of an SDK: OpenAI's, in a loop of one's own."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from chat_messages import calls, reloaded, results  # noqa: F401 (the contract asks a case for them)
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI
from sessions import LAST, TASK, Turn

from recede.integrations.http import recede_client

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import serving
from scripts import DEFAULTS, script_of  # noqa: F401 (the contract asks a case for the former)

WAYS = ("sync", "async", "stream", "failing")
HAS_ERRORS = False  # its results have no flag
PROVIDERS = {"openai"}


def _said(turn: Turn) -> dict[str, Any]:
    functions = [(call.id, {"name": call.name, "arguments": json.dumps(call.args)}) for call in turn.calls]
    made = [{"id": id, "type": "function", "function": function} for id, function in functions]
    return {"role": "assistant", "content": turn.said or None, **({"tool_calls": made} if made else {})}


def _returned(turn: Turn) -> list[Any]:
    # A tool message of OpenAI has texts alone; that of the result with an image is one of two parts.
    return [
        {"role": "tool", "tool_call_id": one.id, "content": _parts(one.text) if one.has_image else one.text}
        for one in turn.results.values()
    ]


def _parts(text: str) -> list[Any]:
    half = len(text) // 2
    return [{"type": "text", "text": text[:half]}, {"type": "text", "text": text[half:]}]


def history(turns: list[Turn]) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for turn in turns:
        messages += [_said(turn), *_returned(turn)]
    return messages


dicts = history  # recede reads them itself


class Masking:
    """The options, and a client whose provider says what it was sent."""

    def __init__(self, **options: Any) -> None:
        kind: Any = DefaultHttpxClient
        httpx = sys.modules[kind.__mro__[1].__module__.partition(".")[0]]

        def echo(request: Any) -> Any:
            message = {"role": "assistant", "content": json.dumps(json.loads(request.content)["messages"])}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            return httpx.Response(
                200, json={"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
            )

        self.options = options
        http_client = recede_client(kind(transport=httpx.MockTransport(echo)), **options)
        self.client = OpenAI(api_key="none", http_client=http_client)


def masking(**options: Any) -> Masking:
    return Masking(**options)


def view(masking: Masking, messages: list[Any], model: str = "m") -> list[Any]:
    answer = masking.client.chat.completions.create(model=model, messages=messages)
    given: list[Any] = json.loads(answer.choices[0].message.content or "")
    return given


def run(masking: Masking, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    messages = history([])

    async def in_loop(url: str) -> None:
        http_client = recede_client(DefaultAsyncHttpxClient(), **masking.options)
        async with AsyncOpenAI(api_key="none", base_url=url, http_client=http_client) as client:
            for turn in [*turns, LAST]:
                await client.chat.completions.create(model="m", messages=messages)
                messages.extend([_said(turn), *_returned(turn)])

    with serving(*script_of(turns, failing=500 if way == "failing" else None)) as server:
        url = f"{server.url}/v1"
        if way == "async":
            asyncio.run(in_loop(url))
        else:
            http_client = recede_client(DefaultHttpxClient(), **masking.options)
            with OpenAI(api_key="none", base_url=url, http_client=http_client, max_retries=1) as client:
                for turn in [*turns, LAST]:
                    answer: Any = client.chat.completions.create(model="m", messages=messages, stream=way == "stream")
                    if way == "stream":
                        list(answer)
                    messages += [_said(turn), *_returned(turn)]
    assert server.refusals == []
    return [body["messages"] for body in server.requests], messages
