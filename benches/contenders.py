"""Who is compared on what: a history in both forms, recede and its rivals, and whether their answers are the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # the oracle

import orjson
import product

import histories
import oracle
import recede
import rivals
import tuned
from histories import Message, Shape, Style
from recede.reduction._policy import compiled

Contender = Callable[[], Any]

ORACLE_LIMIT = 10_000  # beyond, the oracle is too slow to be worth the wait

# Names that the table asks for again.
REDUCE_JSON = "**recede.reduce_json**"
ORACLE = "the oracle in plain Python"
ORJSON_TUNED = "orjson + tuned loop, same telemetry"
ORJSON_SIMPLEST = "orjson + simplest loop"
JSON_TUNED = "json + tuned loop, same telemetry"
MSGSPEC_COUNTING = "msgspec, raw contents, characters counted"
MSGSPEC_BYTES = "msgspec, raw contents, bytes instead of characters"
WARM_COPY = "(copy into warm memory)"
FRESH_COPY = "(copy into new memory)"
REDUCE = "**recede.reduce**"
TUNED = "tuned loop, same telemetry"
SIMPLEST_DISPATCH = "simplest loop, dispatch blocks kept"


class Case(NamedTuple):
    """A history in both forms, and a budget that only masking meets."""

    data: bytes
    messages: list[Message]
    budget: int
    shape: Shape = "openai"


def make_case(size: int, shape: Shape = "openai", style: Style = "compact", seed: int = 0) -> Case:
    """The messages are parsed from the bytes, as an agent would hold them."""
    data = histories.serialized(size, shape=shape, style=style, seed=seed)
    messages = orjson.loads(data)
    return Case(data, messages, recede.count_chars(messages) - 1, shape)


def oracle_reduce(case: Case) -> Any:
    """`recede.reduce` by the oracle."""
    return oracle.reduce(case.messages, compiled(oracle, "reduce", {"max_input_chars": case.budget}))


def oracle_reduce_json(case: Case) -> Any:
    """`recede.reduce_json` by the oracle."""
    return oracle.reduce_json(case.data, False, compiled(oracle, "reduce", {"max_input_chars": case.budget}))


def agree(name: str, theirs: object, ours: object) -> None:
    """Stop where an answer differs: there is nothing to measure."""
    if theirs != ours:
        raise SystemExit(f"{name} gives another answer than recede, so the times would mean nothing")


# Of the figures of recede: rivals drop and clip nothing, mark no boundary, and list no places and reasons.
_NOT_OF_RIVALS = {
    *("dropped", "clipped_count", "clipped_chars", "mask_places", "cut_places", "unmasked", "boundary_message"),
    *("provider", "request", "json"),
}


def own_figures(ours: Any) -> tuple[Any, ...]:
    """A result as rivals give it."""
    return tuple(value for name, value in zip(ours._fields, ours, strict=True) if name not in _NOT_OF_RIVALS)


def compare_answers(case: Case) -> None:
    """Every rival gives the view of recede, the tuned ones its telemetry too."""
    data, messages, budget, shape = case
    ours = product.reduce(messages, max_input_chars=budget)
    ours_json = product.reduce_json(data, max_input_chars=budget)
    agree("reduce_json and reduce", (json.loads(ours_json.json), *ours_json[1:-1]), tuple(ours)[:-1])
    agree("simplest", rivals.SIMPLEST[shape](messages), ours.messages)
    answer = rivals.orjson_tuned(data, max_input_chars=budget, shape=shape)
    agree("orjson_tuned", (json.loads(answer[0]), *answer[1:]), own_figures(ours))
    agree("tuned", tuned.TUNED[shape](messages, max_input_chars=budget), own_figures(ours))
    if shape != "openai":
        return
    careless = tuned.tuned(messages, max_input_chars=budget, dispatch=False)
    agree("tuned without dispatch", careless, own_figures(ours))
    agree("simplest with dispatch", rivals.simplest_dispatch(messages), ours.messages)
    for rival in (rivals.orjson_simplest, rivals.orjson_simplest_dispatch, rivals.json_simplest):
        agree(rival.__name__, json.loads(rival(data)), ours.messages)
    answer = rivals.json_tuned(data, max_input_chars=budget)
    agree("json_tuned", (json.loads(answer[0]), *answer[1:]), own_figures(ours))
    counted = rivals.msgspec_counting(data)
    agree("msgspec_counting", json.loads(counted), ours.messages)
    agree("msgspec_bytes", rivals.same_but_for_sizes(rivals.msgspec_bytes(data), counted), True)
    if len(messages) <= ORACLE_LIMIT:
        agree("oracle", tuple(oracle_reduce(case)), tuple(ours))
        agree("oracle of reduce_json", tuple(oracle_reduce_json(case)), tuple(ours_json))


def bytes_contenders(case: Case) -> dict[str, Contender]:
    """Bytes in, bytes out."""
    data, _, budget, shape = case
    contenders: dict[str, Contender] = {
        REDUCE_JSON: lambda: product.reduce_json(data, max_input_chars=budget),
        ORJSON_TUNED: lambda: rivals.orjson_tuned(data, max_input_chars=budget, shape=shape),
        ORJSON_SIMPLEST: lambda: orjson.dumps(rivals.SIMPLEST[shape](orjson.loads(data))),
    }
    if shape != "openai":
        return contenders
    contenders |= {
        "orjson + simplest loop, dispatch blocks kept": lambda: rivals.orjson_simplest_dispatch(data),
        JSON_TUNED: lambda: rivals.json_tuned(data, max_input_chars=budget),
        "json + simplest loop": lambda: rivals.json_simplest(data),
        MSGSPEC_COUNTING: lambda: rivals.msgspec_counting(data),
        MSGSPEC_BYTES: lambda: rivals.msgspec_bytes(data),
        "(orjson.loads alone)": lambda: orjson.loads(data),
        WARM_COPY: rivals.warm_copy(data),
        FRESH_COPY: lambda: rivals.fresh_copy(data),
    }
    if len(case.messages) <= ORACLE_LIMIT:
        contenders[ORACLE] = lambda: oracle_reduce_json(case)
    return contenders


def dict_contenders(case: Case) -> dict[str, Contender]:
    """List of dicts in, list of dicts out."""
    _, messages, budget, shape = case
    contenders: dict[str, Contender] = {
        REDUCE: lambda: product.reduce(messages, max_input_chars=budget),
        TUNED: lambda: tuned.TUNED[shape](messages, max_input_chars=budget),
    }
    if shape != "openai":
        return contenders
    contenders |= {
        "tuned loop, no look for dispatch blocks": lambda: tuned.tuned(
            messages, max_input_chars=budget, dispatch=False
        ),
        SIMPLEST_DISPATCH: lambda: rivals.simplest_dispatch(messages),
        "simplest loop: no telemetry, no check": lambda: rivals.simplest(messages),
        "(copy of the list)": messages.copy,
    }
    if len(messages) <= ORACLE_LIMIT:
        contenders[ORACLE] = lambda: oracle_reduce(case)
    return contenders
