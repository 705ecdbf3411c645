"""Counts: the characters of a history, the tokens of its texts by the caller's counter, and what is sent besides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recede import _engine
from recede._bodies import loads
from recede._errors import TranscriptError
from recede.reduction._input import ask_about, ask_engine
from recede.reduction._kinds import CHARS_PER_TOKEN, tokens_of
from recede.reduction._policy import compiled, image_chars_of

if TYPE_CHECKING:
    from recede.providers import Tokenizers
    from recede.reduction._exchange import MessageTexts
    from recede.reduction._input import Json
    from recede.types import TokenCounter


# Far more than any model has, without overflow in the core.
_MAX_TOKENS = 1 << 40


def count_chars(messages: list[Any] | dict[str, Any] | Json, *, image_chars: int = 6_400) -> int:
    """The characters of a history, as budgets count them: Unicode code points of decoded text.

    Texts and observations count their length; a call its name, its arguments and 20; an image or document
    `image_chars`. Reasoning counts to limits alone.

    Args:
        messages: as for `reduce`, or a whole request, of which its messages count; also as JSON, in bytes or a str.
        image_chars: about the 1,600 tokens of a large picture by default.

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: `image_chars` is no whole number from 0.

    Example:
        >>> import recede
        >>> recede.count_chars([{"role": "user", "content": "naïve"}])
        5
    """
    chars: int = ask_about("count_chars", messages, image_chars_of({"image_chars": image_chars}))
    return chars


def approx_tokens(what: list[Any] | str | int) -> int:
    """The approximate tokens of a history, a text, or a number of characters: a quarter of the characters.

    Args:
        what: a history, a text, or a number of characters; rounded up.

    Raises:
        TranscriptError: a list that is no history.
        TypeError, ValueError: something else, or a number below 0.

    Example:
        >>> import recede
        >>> recede.designs.approx_tokens("hello"), recede.designs.approx_tokens(8), recede.designs.approx_tokens([])
        (2, 2, 0)
    """
    if isinstance(what, str):
        chars = len(what)
    elif isinstance(what, list):
        chars = count_chars(what)
    elif isinstance(what, int) and not isinstance(what, bool):
        chars = what
    else:
        raise TypeError(f"give a list of messages, a text or a number of characters, not {type(what).__name__}")
    if chars < 0:
        raise ValueError(f"a number of characters is at least 0, not {chars}")
    return tokens_of(chars)


def history_tokens(messages: list[Any], counter: TokenCounter | None) -> int:
    """The tokens of a history by the caller's counter, or approximate ones."""
    if counter is None:
        return approx_tokens(messages)
    texts, _ = ask_engine("texts", messages, compiled(_engine.engine, "truncate", {}))
    unmasked = [own._replace(observations=[one._replace(masked=None) for one in own.observations]) for own in texts]
    costs, observations = costs_of(unmasked, counter, image_chars_of({}))
    return tokens_of(sum(own for own, _ in costs) + sum(raw for raw, _ in observations))


def costs_of(
    texts: list[MessageTexts], counter: TokenCounter, image_chars: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Costs in quarter tokens: of messages and of their reasoning; of observations, raw and masked."""

    def cost(text: str) -> int:
        return CHARS_PER_TOKEN * count_tokens(counter, text)

    messages, observations = [], []
    for own in texts:
        itself = cost(own.text) + own.constant_chars + own.images * image_chars
        messages.append((itself, cost(own.reasoning) + own.sealed_chars))
        for one in own.observations:
            raw = cost(one.text) + one.images * image_chars
            observations.append((raw, raw if one.masked is None else cost(one.masked)))
    return messages, observations


def all_costs(texts: list[MessageTexts], counter: TokenCounter, image_chars: int) -> Any:
    """The costs of a history, and of its long results as a limit cuts them."""
    return *costs_of(texts, counter, image_chars), cut_costs(texts, counter)


def cut_costs(texts: list[MessageTexts], counter: TokenCounter) -> dict[str, int]:
    cut = (one.cut for own in texts for one in own.observations)
    return dict(counted([text for text in cut if text is not None], counter))


def counted(texts: list[str], counter: TokenCounter) -> list[tuple[str, int]]:
    """Count texts: each with its budget units; see `costs_of`."""
    return [(text, CHARS_PER_TOKEN * count_tokens(counter, text)) for text in texts]


def count_tokens(counter: TokenCounter, text: str) -> int:
    if not text:
        return 0
    tokens = counter(text)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise TypeError(f"token_counter must return a whole number from 0, not {tokens!r}")
    return min(tokens, _MAX_TOKENS)


OVER_LIMIT = "a request is over max_input_tokens although {}"
MASKED = (
    "all that may be masked or cut is: its smallest view is sent; only recede.reduce and recede.History drop messages, "
    "or the compaction of the framework or agent"
)
LEAST = (
    "all that may be masked, cut or hidden is: its smallest view is sent; what is left is system messages, a part of "
    "the task, and what no request has shown"
)

_FIELDS = ("system", "instructions", "systemInstruction", "system_instruction", "tools", "toolConfig", "functions")
"""The fields of requests, of all providers, that have the system prompt and the tools."""

MARKS = ("prompt_cache_breakpoint", "cache_control")
"""The fields of cache marks: OpenAI's, and that of all others."""

_FREE_VALUES, _LEAST_BYTES = 1 << 16, 32  # as the scanner of a request bounds those of its history


def static_cost(
    request: Mapping[str, Any], counter: TokenCounter | None = None, tokenizers: Tokenizers | None = None
) -> int:
    """The system prompt and tools of a request: a string by its text, all else as compact JSON.

    In quarter tokens by a `counter` or by `tokenizers`, else in characters. Cache marks do not count: they come and go.
    """
    from recede._objects import plain

    tokenizer = None if tokenizers is None else tokenizers[1].get(_shape_of(request), tokenizers[0])
    cost = CHARS_PER_TOKEN * tokenizer.tools if tokenizer is not None and request.get("tools") else 0
    for name in _FIELDS:
        value = request.get(name)
        if value is not None:
            text = value if isinstance(value, str) else _compact(unmarked(plain(value)))
            if counter is not None:
                cost += CHARS_PER_TOKEN * count_tokens(counter, text)
            else:
                cost += len(text) if tokenizer is None else int(tokenizer.scale * _engine.engine.weight(text))
    return cost


def _shape_of(request: Mapping[str, Any]) -> str:
    """The shape of a request, by the fields that have its system prompt and its tools; "" for chat."""
    tools = request.get("tools")
    tool = tools[0] if isinstance(tools, (list, tuple)) and tools and isinstance(tools[0], Mapping) else {}
    has = {name for name in _FIELDS if request.get(name) is not None}
    if "toolConfig" in has:
        return "converse"
    if has & {"systemInstruction", "system_instruction"} or {"functionDeclarations", "function_declarations"} & {*tool}:
        return "gemini"
    if "system" in has or "input_schema" in tool:
        return "anthropic"
    return "responses" if "instructions" in has or (tool and "function" not in tool) else ""


def static_cost_of_json(
    data: bytes,
    surrogates: bool,
    counter: TokenCounter | None = None,
    tokenizers: Tokenizers | None = None,
    *,
    is_bounded: bool = False,
) -> int:
    """The static cost of a serialized request; if it is bounded, very many small values in it are a `TranscriptError`.

    They take memory by their number, as objects of Python do.
    """
    values = _engine.engine.fields(data, surrogates, list(_FIELDS))
    if is_bounded:
        count = sum(value.count(mark) for value in values if value is not None for mark in b",[{")
        if count > _FREE_VALUES + len(data) // _LEAST_BYTES:
            raise TranscriptError("size")
    found = {name: loads(value) for name, value in zip(_FIELDS, values, strict=True) if value is not None}
    return static_cost(found, counter, tokenizers)


def unmarked(value: Any) -> Any:
    """A value without its cache marks, which move while the history stays."""
    if isinstance(value, dict):
        return {name: unmarked(one) for name, one in value.items() if name not in MARKS}
    return list(map(unmarked, value)) if isinstance(value, (list, tuple)) else value


def _compact(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
