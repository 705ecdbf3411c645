"""LiteLLM: a loop of one's own around its functions, with a provider of one's own."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import os
from collections.abc import AsyncIterator
from typing import Any, get_args

from chat_messages import calls, reloaded, results  # noqa: F401 (the contract asks a case for them)
from sessions import IMAGE, LAST, TASK, Call, Turn, asked_for
from unions import samples

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # do not load prices when it is imported

import litellm
from litellm.types.llms.openai import AllMessageValues, ChatCompletionToolMessage, OpenAIMessageContentListBlock
from litellm.utils import custom_llm_setup
from typing_extensions import get_type_hints

from recede.integrations.litellm import RecedeCallback

AT_ONCE = ("sync",)  # callbacks are those of the process
WAYS = ("sync", "async", "stream")
HAS_ERRORS = False  # its results have no flag


def _call(call: Any) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": json.dumps(call.args)},
    }


def _said(turn: Turn) -> dict[str, Any]:
    made = {"tool_calls": [_call(call) for call in turn.calls]} if turn.calls else {}
    return {"role": "assistant", "content": turn.said or None, **made}


def _content(result: Any) -> Any:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}
    return [{"type": "text", "text": result.text}, image] if result.has_image else result.text


def _returned(turn: Turn) -> list[Any]:
    return [
        {"role": "tool", "tool_call_id": result.id, "content": _content(result)} for result in turn.results.values()
    ]


def reasoned(answer: Any, thought: str) -> Any:
    return {**answer, "thinking_blocks": [{"type": "thinking", "thinking": thought, "signature": f"of {thought}"}]}


def thoughts(message: Any) -> list[str]:
    return [block["thinking"] for block in message.get("thinking_blocks") or ()]


def history(turns: list[Turn]) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for turn in turns:
        messages += [_said(turn), *_returned(turn)]
    return messages


dicts = history  # recede reads them itself


def contents(messages: list[Any]) -> dict[str, Any]:
    return {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}


def typed_results() -> dict[str, list[Any]]:
    hint = get_type_hints(ChatCompletionToolMessage)["content"]
    (parts,) = [get_args(one)[0] for one in get_args(hint) if one is not str]
    before = history([Turn("", [Call("1", "run", {})])])
    return {
        name: [*before, {"role": "tool", "tool_call_id": "1", "content": [part]}]
        for name, part in samples(parts).items()
    }


UNCOUNTED: set[str] = set()
KEPT = {"ChatCompletionToolReferenceObject"}  # as with Anthropic


def typed_messages() -> dict[str, list[Any]]:
    parts = {name: {"role": "user", "content": [part]} for name, part in samples(OpenAIMessageContentListBlock).items()}
    return {name: [*history([]), message] for name, message in {**parts, **samples(AllMessageValues)}.items()}


def body(messages: list[Any]) -> tuple[str, dict[str, Any]]:
    tool = {"name": "read", "input_schema": {"type": "object"}}  # the oldest release refuses calls without one
    given: Any = {"optional_params": {"max_tokens": 9, "tools": [tool]}, "litellm_params": {}, "headers": {}}
    config = litellm.AnthropicConfig()
    return "anthropic", config.transform_request(model="claude-opus-5-5", messages=copy.deepcopy(messages), **given)


def masking(**options: Any) -> RecedeCallback:
    return RecedeCallback(**options)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    request = {"model": f"somewhere/{model}", "messages": messages}
    hook = masking.async_pre_call_deployment_hook(request, litellm.types.utils.CallTypes.acompletion)
    given: list[Any] = (asyncio.run(hook) or request)["messages"]
    return given


_runs = itertools.count()


class Scripted(litellm.CustomLLM):
    """A provider that plays the turn whose number is that of its own messages; it fails at first if it is asked to."""

    def __init__(self, turns: list[Turn], *, is_failing: bool = False) -> None:
        super().__init__()
        self.turns, self.is_failing = turns, is_failing
        self.requests: list[list[Any]] = []

    def _asked(self, messages: list[Any]) -> dict[str, Any]:
        self.requests.append(messages)
        if self.is_failing and len(self.requests) % 2:
            raise ConnectionError("try again")
        return _said(asked_for(self.turns, self.requests, is_failing=self.is_failing))

    def completion(self, model: str, messages: list[Any], *_: Any, **__: Any) -> Any:
        answer = litellm.Message(**self._asked(messages))
        details = {"cached_tokens": 8_900}
        usage = litellm.Usage(prompt_tokens=9_000, completion_tokens=10, prompt_tokens_details=details)
        return litellm.ModelResponse(choices=[litellm.Choices(message=answer)], usage=usage)

    async def acompletion(self, *arguments: Any, **options: Any) -> Any:
        return self.completion(*arguments, **options)

    async def astreaming(self, model: str, messages: list[Any], *_: Any, **__: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        said = self._asked(messages)
        chunk = {"finish_reason": "", "index": 0, "is_finished": False, "tool_use": None, "usage": None}
        yield {**chunk, "text": said["content"] or ""}
        for place, call in enumerate(said.get("tool_calls", ())):
            yield {**chunk, "text": "", "tool_use": {**call, "index": place}}
        yield {**chunk, "text": "", "finish_reason": "stop", "is_finished": True}


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    provider = Scripted([*turns, LAST], is_failing=way == "failing")
    name = f"scripted{next(_runs)}"  # runs at once have providers of their own
    litellm.custom_provider_map.append({"provider": name, "custom_handler": provider})
    custom_llm_setup()
    litellm.callbacks = [masking]
    messages: list[Any] = history([])

    async def loop() -> None:
        for turn in [*turns, LAST]:
            given: dict[str, Any] = {"model": f"{name}/m", "messages": messages}
            if way == "stream":
                async for _ in await litellm.acompletion(**given, stream=True):
                    pass
            elif way == "async":
                await litellm.acompletion(**given)
            elif way == "failing":
                await litellm.acompletion(**given, fallbacks=[f"{name}/other"])
            else:
                masking.completion(**given)
            messages.extend([_said(turn), *_returned(turn)])
            for call in turn.calls:
                if call.name == "recall":
                    text = masking.recalled(messages, call.args["handle"])
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": text})

    try:
        asyncio.run(loop())
    finally:
        litellm.callbacks = []
    return provider.requests, messages
