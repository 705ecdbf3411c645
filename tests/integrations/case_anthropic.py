"""Anthropic's client and its tool runner, against a provider on this machine."""

from __future__ import annotations

import asyncio
import copy
import inspect
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool
from anthropic._models import FinalRequestOptions
from anthropic.lib.tools import ToolError
from sessions import IMAGE, LAST, TASK, Call, Result, Turn, shown
from unions import samples

from recede.integrations.anthropic import RecedeMiddleware
from recede.providers import UNKNOWN

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import Answer, Failure, serving

WAYS = ("sync", "async", "stream", "failing")
PROVIDERS = {"anthropic"}
# What is taken where neither the host, which is this machine, nor the model is known.
DEFAULTS = {"provider": UNKNOWN}


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    said = [{"type": "text", "text": turn.said}] if turn.said else []
    return [*said, *({"type": "tool_use", "id": call.id, "name": call.name, "input": call.args} for call in turn.calls)]


def _content(result: Result) -> Any:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
    texts = [{"type": "text", "text": result.text}] if result.text else []  # an empty one is refused
    return [*texts, image] if result.has_image else result.text


def history(turns: list[Turn]) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for turn in turns:
        messages.append({"role": "assistant", "content": _blocks(turn)})
        if turn.results:
            results = [
                {"type": "tool_result", "tool_use_id": one.id, "content": _content(one), "is_error": one.is_error}
                for one in turn.results.values()
            ]
            messages.append({"role": "user", "content": results})
    return messages


dicts = history  # recede reads them itself


def masking(**options: Any) -> RecedeMiddleware:
    return RecedeMiddleware(**options)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    """What the middleware hands on, as the client calls it."""
    from anthropic._request import APIRequest

    body = {"model": model, "max_tokens": 9, "messages": messages}
    options = FinalRequestOptions.construct(method="post", url="/v1/messages", json_data=body)
    answer = SimpleNamespace(http_response=SimpleNamespace(is_success=False, status_code=500))
    sent: list[Any] = []
    client = SimpleNamespace(base_url="http://127.0.0.1")

    def call_next(request: Any) -> Any:
        assert client
        sent.append(request.options.json_data["messages"])
        return answer

    masking.handle(APIRequest(options=options, cast_to=object), call_next)
    given: list[Any] = sent[0]
    return given


def results(messages: list[Any]) -> list[tuple[str, str]]:
    return shown(messages)


def contents(messages: list[Any]) -> dict[str, Any]:
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    return {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}


def calls(messages: list[Any]) -> list[str]:
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    return [block["id"] for block in blocks if block["type"] == "tool_use"]


def typed_results() -> dict[str, list[Any]]:
    from anthropic.types.beta import beta_tool_result_block_param

    task, said = history([Turn("", [Call("1", "run", {})])])
    return {
        name: [
            task,
            said,
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [part]}]},
        ]
        for name, part in samples(beta_tool_result_block_param.Content).items()
    }


# Thinking is not counted (docs/semantics.md), and a fallback may have no text.
UNCOUNTED = {"BetaThinkingBlockParam", "BetaRedactedThinkingBlockParam", "BetaFallbackBlockParam"}
# A tool that a search has found stays: the model may call it.
KEPT = {"BetaToolReferenceBlockParam"}


def typed_messages() -> dict[str, list[Any]]:
    from anthropic.types.beta.beta_content_block_param import BetaContentBlockParam

    parts = samples(BetaContentBlockParam)
    return {name: [*history([]), {"role": "assistant", "content": [part]}] for name, part in parts.items()}


def reloaded(messages: list[Any]) -> list[Any]:
    return copy.deepcopy(messages)


def tool_of(by_id: dict[str, Result], *, is_async: bool) -> Any:
    """The results in order: tools are not told the id of their call."""
    waiting = iter(by_id.values())

    def run(command: str, place: int, quiet: bool) -> Any:
        """Run a command."""
        result = next(waiting)
        if result.is_error:
            raise ToolError(_content(result))
        return _content(result)

    async def async_run(command: str, place: int, quiet: bool) -> Any:
        """Run a command."""
        return run(command, place, quiet)

    return beta_async_tool(async_run, name="run") if is_async else beta_tool(run, name="run")


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    by_id = {name: result for turn in turns for name, result in turn.results.items()}
    script: list[Any] = []
    for turn in [*turns, LAST]:
        script += [Failure(500, headers={"retry-after-ms": "1"})] * (way == "failing")
        script.append(Answer(_blocks(turn), "tool_use" if turn.calls else "end_turn"))
    given: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": history([])}
    if "thread" in inspect.signature(Anthropic(api_key="none").beta.messages.tool_runner).parameters:
        given["thread"] = False  # the provider would keep the history

    async def in_loop(url: str) -> Any:
        async with AsyncAnthropic(api_key="none", base_url=url, middleware=[masking]) as client:
            tools = [tool_of(by_id, is_async=True), masking.async_recall_tool]
            runner = client.beta.messages.tool_runner(tools=tools, **given)
            await runner.until_done()
            return runner

    with serving(*script) as server:
        if way == "async":
            runner: Any = asyncio.run(in_loop(server.url))
        else:
            with Anthropic(api_key="none", base_url=server.url, middleware=[masking], max_retries=1) as client:
                tools = [tool_of(by_id, is_async=False), masking.recall_tool]
                runner = client.beta.messages.tool_runner(tools=tools, stream=way == "stream", **given)
                runner.until_done()
    assert server.refusals == []
    return [body["messages"] for body in server.requests], _plain(runner._params["messages"])


def _plain(messages: Any) -> list[Any]:
    """Answers are in the history as objects of the client."""

    def plain(content: Any) -> Any:
        if isinstance(content, str):
            return content
        return [block if isinstance(block, dict) else block.to_dict() for block in content]

    return [{"role": message["role"], "content": plain(message["content"])} for message in messages]
