"""Summarizers for `HybridContextManager`, `reduce` and `History`: of a client, or without any model.

Each is called with what is to be summarized, turns or messages, and the summary so far; it gives the new text.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Union

from recede import _engine
from recede._response import answer_of, encodable, text_of
from recede.reduction._policy import compiled
from recede.turns._log import Turn

__all__ = ["PROMPT", "anthropic", "builtin", "openai"]

# An outcome is named by the first line of the action, which may be a whole program.
_ACTION_CHARS = 60

Summarize = Callable[[Sequence[Any], Union[str, None]], str]
Asks = Callable[[Sequence[Any], Union[str, None]], Union[str, Awaitable[str]]]

PROMPT = """\
You keep the memory of a software agent whose history grows too long. Write the summary that takes the place of the
turns below, so that the agent can go on as if it still had them. Use these headings; leave out one that has nothing:

Goal: what was asked for, with every constraint, in the words of the user where they matter.
State: what is done, what is being done, and what was observed last.
Decisions: what was decided, and why; what was tried and given up.
Open points: what is still to do, and what is not understood.
Files: each file that matters, by its path, with what was changed or found in it.
Errors: each error that is not solved, word for word.

Keep names, paths, numbers, commands and messages exactly as they are. Carry on what the summary so far says, where it
still holds. Do not invent anything, and do not address anybody: give the summary alone."""
"""What `anthropic` and `openai` ask a model for."""


def anthropic(client: Any, model: str, *, max_tokens: int = 2_000, prompt: str = PROMPT, **request: Any) -> Asks:
    """A summarizer of an ``anthropic.Anthropic`` client, or an async one of an ``anthropic.AsyncAnthropic``.

    Args:
        client: the client.
        model: the name of the model.
        max_tokens: of the summary.
        prompt: what the model is asked for; `PROMPT` by default.
        **request: more for ``client.messages.create``, such as ``timeout``.

    Raises:
        AttributeError: the client has no such method. What a client raises later, the summarizer raises, and
            `HybridContextManager` and `reduce` continue without a summary.

    Example:
        >>> import recede
        >>> def make(client):
        ...     summarizer = recede.summarizers.anthropic(client, "claude-haiku-4-5", timeout=60)
        ...     return recede.HybridContextManager(summarizer)
    """
    options = {"model": model, "max_tokens": max_tokens, "system": prompt, **request}

    def asked(items: Sequence[Any], previous: str | None) -> dict[str, Any]:
        return {**options, "messages": [{"role": "user", "content": _told(items, previous)}]}

    return _summarizer(client, client.messages.create, asked)


def openai(client: Any, model: str, *, max_tokens: int = 2_000, prompt: str = PROMPT, **request: Any) -> Asks:
    """A summarizer of an ``openai.OpenAI`` client, or an async one of an ``openai.AsyncOpenAI``, by chat completions.

    Args:
        client: the client.
        model: the name of the model.
        max_tokens: of the answer, sent as ``max_completion_tokens``.
        prompt: what the model is asked for; `PROMPT` by default.
        **request: more for ``client.chat.completions.create``, such as ``timeout``.

    Raises:
        AttributeError: the client has no such method. What a client raises later, the summarizer raises.

    Example:
        >>> import recede
        >>> def make(client):
        ...     return recede.HybridContextManager(recede.summarizers.openai(client, "gpt-5-mini"))
    """
    options = {"model": model, "max_completion_tokens": max_tokens, **request}

    def asked(items: Sequence[Any], previous: str | None) -> dict[str, Any]:
        told = [{"role": "system", "content": prompt}, {"role": "user", "content": _told(items, previous)}]
        return {**options, "messages": told}

    return _summarizer(client, client.chat.completions.create, asked)


def builtin() -> Summarize:
    """The deterministic summary of `reduce`, so that nothing needs a model: the latest outcomes of actions.

    Example:
        >>> import recede
        >>> summarize = recede.summarizers.builtin()
        >>> print(summarize([recede.turns.Turn(1, "I must look.", "ls", "a.py", 0.0)], None))
        Conversation summary:
        - outcome: ls: a.py
    """
    return _built_in


def _built_in(items: Sequence[Any], previous: str | None) -> str:
    messages: list[Any] = [] if previous is None else [{"role": "system", "content": _headed(previous)}]
    for item in items:
        if isinstance(item, Turn):
            function = {"name": item.action.strip().partition("\n")[0][:_ACTION_CHARS], "arguments": "{}"}
            calls = [{"id": str(item.turn), "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": item.reasoning, "tool_calls": calls})
            messages.append({"role": "tool", "tool_call_id": str(item.turn), "content": item.observation})
        else:
            messages.append(item)
    engine = _engine.engine
    options = {"max_input_chars": 0, "preserve_recent_raw_turns": 0, "observation_masking": False}
    asking = compiled(engine, "reduce", {**options, "summarizer": _built_in})
    text: str = engine.reduce(messages, asking).built_in
    return text


def _headed(summary: str) -> str:
    first_line = "Conversation summary:"
    return summary if summary.startswith(first_line) else f"{first_line}\n{summary}"


def _summarizer(client: Any, create: Any, asked: Any) -> Asks:
    # Both clients name their asynchronous form so, and their methods are wrapped beyond recognition.
    if not type(client).__name__.startswith("Async"):
        return lambda items, previous: _summary(create(**asked(items, previous)))

    async def summarize(items: Sequence[Any], previous: str | None) -> str:
        return _summary(await create(**asked(items, previous)))

    return summarize


def _summary(answer: Any) -> str:
    """The text of an answer; of a refusal none."""
    message = answer_of(answer)
    return "" if message is None or message.get("refusal") else text_of(message)


def _told(items: Sequence[Any], previous: str | None) -> str:
    """What is to be summarized, as a model reads it."""
    parts = [] if previous is None else [f"The summary so far:\n\n{previous}"]
    parts += map(_item, items)
    told: str = encodable("\n\n".join(parts))  # or no client could send it
    return told


def _item(item: Any) -> str:
    if isinstance(item, Turn):
        return f"Turn {item.turn}:\nReasoning: {item.reasoning}\nAction: {item.action}\nObservation: {item.observation}"
    return json.dumps(item, ensure_ascii=False)
