"""Summarizers for every door that takes one, and for `HybridContextManager`, with or without a model.

Each is called with the messages or turns to summarize and the previous summary; it returns the new summary.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Union

from recede import _engine
from recede._models import model_row
from recede._objects import plain
from recede._question import (
    PROMPT,
    SUMMARY_TOKENS,
    answer_tokens,
    checked_answer,
    effort_field,
    question,
    read_answer,
    room_for_question,
)
from recede._serving import host_name
from recede.reduction._kinds import CLIENT_PACKAGES
from recede.reduction._planning import reduced
from recede.reduction._policy import compiled
from recede.turns._records import Turn

__all__ = ["PROMPT", "anthropic", "builtin", "gemini", "openai"]

# An outcome is labeled by the first line of its action, which may be a whole program.
_ACTION_CHARS = 60
_FIRST_LINE = "Conversation summary:"
_OWN_HOSTS = {"anthropic": "api.anthropic.com", "openai": "api.openai.com"}

Summarize = Callable[[Sequence[Any], Union[str, None]], str]
Asks = Callable[[Sequence[Any], Union[str, None]], Union[str, Awaitable[str]]]


def anthropic(
    client: Any,
    model: str,
    *,
    max_tokens: int = SUMMARY_TOKENS,
    prompt: str = PROMPT,
    window_tokens: int | None = None,
    **request: Any,
) -> Asks:
    """A summarizer that uses an ``anthropic.Anthropic`` client, or an async one with ``anthropic.AsyncAnthropic``.

    Args:
        client: the client.
        model: the name of the model.
        max_tokens: the limit of the text; a model that reasons is allowed 6,000 more, at its lowest effort.
        prompt: the system prompt; `PROMPT` by default.
        window_tokens: the tokens that a request may have. By default what is known of the model; of one that recede
            does not know 32,000. The question is cut to fit.
        **request: further arguments of ``client.messages.create``, such as ``timeout``.

    Raises:
        TypeError, ValueError: it is a client, or a model, of another company.
        AttributeError: the client has no such method. Errors of the client are raised by the summarizer;
            `HybridContextManager` and `reduce` then continue without a summary.

    Example:
        >>> import recede
        >>> def make(client):
        ...     summarizer = recede.summarizers.anthropic(client, "claude-haiku-4-5", timeout=60)
        ...     return recede.designs.HybridContextManager(summarizer)
    """
    most, told = _asking(client, model, "anthropic", max_tokens, prompt, window_tokens)
    effort = effort_field(model, "anthropic")
    own = {"extra_body": effort} if effort else {}
    options = {"model": model, "max_tokens": most, "system": prompt, **own, **request}

    def asked(items: Sequence[Any], previous: str | None) -> dict[str, Any]:
        return {**options, "messages": [{"role": "user", "content": told(items, previous)}]}

    return _summarizer(client, client.messages.create, asked, prompt)


def openai(
    client: Any,
    model: str,
    *,
    max_tokens: int = SUMMARY_TOKENS,
    prompt: str = PROMPT,
    window_tokens: int | None = None,
    **request: Any,
) -> Asks:
    """A summarizer that uses chat completions of an ``openai.OpenAI`` client, or async ones of ``openai.AsyncOpenAI``.

    Args:
        client: the client.
        model: the name of the model.
        max_tokens: the limit of the text; a model that reasons is allowed 6,000 more, at its lowest effort.
        prompt: the system prompt; `PROMPT` by default.
        window_tokens: the tokens that a request may have. By default what is known of the model; of one that recede
            does not know 32,000. The question is cut to fit.
        **request: further arguments of ``client.chat.completions.create``, such as ``timeout``.

    Raises:
        TypeError, ValueError: it is a client, or a model, of another company.
        AttributeError: the client has no such method. Errors of the client are raised by the summarizer.

    Example:
        >>> import recede
        >>> def make(client):
        ...     return recede.designs.HybridContextManager(recede.summarizers.openai(client, "gpt-5-mini"))
    """
    most, told = _asking(client, model, "openai", max_tokens, prompt, window_tokens)
    options = {"model": model, "max_completion_tokens": most, **effort_field(model, "chat"), **request}

    def asked(items: Sequence[Any], previous: str | None) -> dict[str, Any]:
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": told(items, previous)}]
        return {**options, "messages": messages}

    return _summarizer(client, client.chat.completions.create, asked, prompt)


def gemini(
    client: Any,
    model: str,
    *,
    max_tokens: int = SUMMARY_TOKENS,
    prompt: str = PROMPT,
    window_tokens: int | None = None,
    **config: Any,
) -> Asks:
    """A summarizer that uses a ``google.genai.Client``, or an async one with its ``aio``.

    Args:
        client: the client, or ``client.aio``.
        model: the name of the model.
        max_tokens: the limit of the text; a model that reasons is allowed 6,000 more, at its lowest effort.
        prompt: the system prompt; `PROMPT` by default.
        window_tokens: the tokens that a request may have. By default what is known of the model; of one that recede
            does not know 32,000. The question is cut to fit.
        **config: further fields of ``config``, such as ``thinking_config``.

    Raises:
        TypeError, ValueError: it is a client, or a model, of another company.
        AttributeError: the client has no such method. Errors of the client are raised by the summarizer.

    Example:
        >>> import recede
        >>> def make(client):
        ...     return recede.History(summarizer=recede.summarizers.gemini(client, "gemini-2.5-flash"))
    """
    most, told = _asking(client, model, "gemini", max_tokens, prompt, window_tokens)
    own = {"system_instruction": prompt, "max_output_tokens": most, **effort_field(model, "genai")}
    options = {"model": model, "config": {**own, **config}}

    def asked(items: Sequence[Any], previous: str | None) -> dict[str, Any]:
        return {**options, "contents": told(items, previous)}

    return _summarizer(client, client.models.generate_content, asked, prompt)


def builtin() -> Summarize:
    """The deterministic built-in summary of `reduce`, without a model: the most recent outcomes of actions.

    Example:
        >>> import recede
        >>> summarize = recede.summarizers.builtin()
        >>> print(summarize([recede.turns.Turn(1, "I must look.", "ls", "a.py", 0.0)], None))
        Conversation summary:
        - outcome: ls: a.py
    """
    return _built_in


def _built_in(items: Sequence[Any], previous: str | None) -> str:
    messages: list[Any] = []
    if previous is not None:
        headed = previous if previous.startswith(_FIRST_LINE) else f"{_FIRST_LINE}\n{previous}"
        messages.append({"role": "system", "content": headed})
    for item in items:
        if isinstance(item, Turn):
            function = {"name": item.action.strip().partition("\n")[0][:_ACTION_CHARS], "arguments": "{}"}
            calls = [{"id": str(item.turn), "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": item.reasoning, "tool_calls": calls})
            messages.append({"role": "tool", "tool_call_id": str(item.turn), "content": item.observation})
        else:
            messages.append(item)
    options = {"max_input_chars": 0, "preserve_recent_raw_turns": 0, "observation_masking": False, "fill": None}
    asking = compiled(_engine.engine, "reduce", {**options, "summarizer": _built_in})
    text: str = reduced(messages, asking).built_in
    return text


def _check(client: Any, model: Any, maker: str) -> None:
    """Refuse a client of another company, and a model of another one where the client asks its own company."""
    if not isinstance(model, str):
        raise TypeError(f"model must be the name of a model, not {type(model).__name__}")
    packages = {base.__module__.partition(".")[0] for base in type(client).__mro__}
    other = next((name for name, package in CLIENT_PACKAGES.items() if package in packages), maker)
    if other != maker:
        raise TypeError(f"client is one of {other}: recede.summarizers.{other}(client, MODEL) takes it")
    row, host = model_row(model), host_name(str(getattr(client, "base_url", "")))
    is_own = maker == "gemini" or host == _OWN_HOSTS[maker]
    if row is not None and is_own and row.provider in CLIENT_PACKAGES and row.provider != maker:
        raise ValueError(
            f"{model!r} is a model of {row.provider}, and the client asks {maker}: give a client of {row.provider} to "
            f"recede.summarizers.{row.provider}"
        )


def _asking(
    client: Any, model: Any, maker: str, text_tokens: int, prompt: str, window_tokens: int | None
) -> tuple[int, Summarize]:
    """The tokens that an answer may have, and what the user says in a question that fits the model.

    Raises:
        TypeError, ValueError: it is a client, or a model, of another company.
    """
    _check(client, model, maker)
    most = answer_tokens(model, text_tokens)
    room = room_for_question(model, most, prompt, window_tokens)
    return most, lambda items, previous: question(items, previous, room)


def _summarizer(client: Any, create: Any, asked: Any, prompt: str) -> Asks:
    # Both clients name their async class so; their methods are wrapped and cannot be inspected.
    if not type(client).__name__.startswith("Async"):
        return lambda items, previous: checked_answer(*read_answer(plain(create(**asked(items, previous)))), prompt)

    async def summarize(items: Sequence[Any], previous: str | None) -> str:
        return checked_answer(*read_answer(plain(await create(**asked(items, previous)))), prompt)

    return summarize
