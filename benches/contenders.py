"""Who is compared on what: a history in both forms, recede and its rivals, and whether their answers are the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # the oracle

import orjson

import histories
import oracle
import recede
import rivals
import tuned
from histories import Message, Shape, Style
from recede.reduction._policy import own_policy

Contender = Callable[[], Any]

ORACLE_LIMIT = 10_000  # beyond, the oracle is too slow to be worth the wait

# Names that the table asks for again.
REDUCE = "**recede.reduce**"
ORACLE = "the oracle in plain Python"
ORJSON_TUNED = "orjson + tuned loop, same telemetry"
ORJSON_SIMPLEST = "orjson + simplest loop"
JSON_TUNED = "json + tuned loop, same telemetry"
MSGSPEC = "msgspec, contents that stay bytes"
WARM_COPY = "(copy into warm memory)"
FRESH_COPY = "(copy into new memory)"
TUNED = "tuned loop, same telemetry"
SIMPLEST = "simplest loop: no telemetry, no check"

# What is measured: the rule that a plain loop has, since no loop of ours decides when masking pays.
OPTIONS: dict[str, Any] = {"keep": tuned.KEEP, "boundary": "sliding", "provider": "none"}


class Case(NamedTuple):
    """A history in both forms."""

    data: bytes
    messages: list[Message]
    shape: Shape = "openai"


def make_case(size: int, shape: Shape = "openai", style: Style = "compact", seed: int = 0) -> Case:
    """The messages are parsed from the bytes, as an agent would hold them."""
    data = histories.serialized(size, shape=shape, style=style, seed=seed)
    return Case(data, orjson.loads(data), shape)


def reduced(history: list[Message] | bytes | str | bytearray) -> Any:
    """`recede.reduce` as it is measured."""
    return recede.reduce(history, **OPTIONS)


def oracle_reduce(messages: list[Message]) -> Any:
    """The same by the oracle."""
    return oracle.reduce(messages, own_policy(oracle, OPTIONS, reduces=True))


def oracle_reduce_json(data: bytes) -> Any:
    """The same of bytes."""
    return oracle.reduce_json(data, False, own_policy(oracle, OPTIONS, reduces=True))


def agree(name: str, theirs: object, ours: object) -> None:
    """Stop where an answer differs: there is nothing to measure."""
    if theirs != ours:
        raise SystemExit(f"{name} gives another answer than recede, so the times would mean nothing")


# Of the figures of recede: rivals drop and clip nothing, mark no boundary, and list no places and reasons.
_NOT_OF_RIVALS = {
    *("dropped", "clipped_count", "clipped_chars", "mask_places", "cut_places", "unmasked", "boundary_message"),
    *("reasoning_dropped", "provider", "request", "json"),
}


def own_figures(ours: Any) -> tuple[Any, ...]:
    """A result as rivals give it."""
    return tuple(value for name, value in zip(ours._fields, ours, strict=True) if name not in _NOT_OF_RIVALS)


def compare_answers(case: Case) -> None:
    """Every rival gives the view of recede, the tuned ones its telemetry too."""
    data, messages, shape = case
    ours, ours_json = reduced(messages), reduced(data)
    agree("reduce of bytes", (json.loads(ours_json.json), *ours_json[1:-1]), tuple(ours)[:-1])
    agree("simplest", rivals.SIMPLEST[shape](messages), ours.messages)
    answer = rivals.orjson_tuned(data, shape)
    agree("orjson_tuned", (json.loads(answer[0]), *answer[1:]), own_figures(ours))
    agree("tuned", tuned.TUNED[shape](messages), own_figures(ours))
    if shape != "openai":
        return
    for rival in (rivals.orjson_simplest, rivals.json_simplest, rivals.msgspec_raw):
        agree(rival.__name__, json.loads(rival(data)), ours.messages)
    answer = rivals.json_tuned(data)
    agree("json_tuned", (json.loads(answer[0]), *answer[1:]), own_figures(ours))
    if len(messages) <= ORACLE_LIMIT:
        agree("oracle", tuple(oracle_reduce(messages)), tuple(ours))
        agree("oracle of bytes", tuple(oracle_reduce_json(data)), tuple(ours_json))


def bytes_contenders(case: Case) -> dict[str, Contender]:
    """Bytes in, bytes out."""
    data, _, shape = case
    contenders: dict[str, Contender] = {
        REDUCE: lambda: reduced(data),
        ORJSON_TUNED: lambda: rivals.orjson_tuned(data, shape),
        ORJSON_SIMPLEST: lambda: orjson.dumps(rivals.SIMPLEST[shape](orjson.loads(data))),
    }
    if shape != "openai":
        return contenders
    contenders |= {
        JSON_TUNED: lambda: rivals.json_tuned(data),
        "json + simplest loop": lambda: rivals.json_simplest(data),
        MSGSPEC: lambda: rivals.msgspec_raw(data),
        "(orjson.loads alone)": lambda: orjson.loads(data),
        WARM_COPY: rivals.warm_copy(data),
        FRESH_COPY: lambda: rivals.fresh_copy(data),
    }
    if len(case.messages) <= ORACLE_LIMIT:
        contenders[ORACLE] = lambda: oracle_reduce_json(data)
    return contenders


def dict_contenders(case: Case) -> dict[str, Contender]:
    """List of dicts in, list of dicts out."""
    _, messages, shape = case
    contenders: dict[str, Contender] = {
        REDUCE: lambda: reduced(messages),
        TUNED: lambda: tuned.TUNED[shape](messages),
    }
    if shape != "openai":
        return contenders
    contenders |= {
        SIMPLEST: lambda: rivals.simplest(messages),
        "(copy of the list)": messages.copy,
    }
    if len(case.messages) <= ORACLE_LIMIT:
        contenders[ORACLE] = lambda: oracle_reduce(messages)
    return contenders
