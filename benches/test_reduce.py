"""Single comparisons: `pytest benches/test_reduce.py --benchmark-columns=min,rounds --benchmark-group-by=param:size`.

Look at the minimum: it moves least with what else the machine does. The whole table is that of `benches/table.py`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import contenders
import histories
import recede
import rivals

pytestmark = pytest.mark.benchmark(disable_gc=True, min_rounds=5, max_time=1.0, warmup=False)

SIZES = (100, 1_000, 10_000, 100_000)
MIRROR = "recede's pure-Python mirror"
# The contenders do not depend on the case but in their closures; a small one gives their names.
BYTES_NAMES = tuple(contenders.bytes_contenders(contenders.Case(b"[]", [], 0)))
DICT_NAMES = tuple(contenders.dict_contenders(contenders.Case(b"[]", [], 0)))


@functools.lru_cache(maxsize=1)
def _case(size: int) -> contenders.Case:
    """One at a time: the largest takes a gigabyte."""
    return contenders.make_case(size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.timeout(600)
def test_answers_agree(size: int) -> None:
    contenders.compare_answers(_case(size))


@pytest.mark.parametrize("shape", histories.SHAPES)
def test_answers_agree_in_every_shape(shape: histories.Shape) -> None:
    contenders.compare_answers(contenders.make_case(300, shape))


def _plant(messages: list[histories.Message], shape: histories.Shape) -> None:
    """Change some old observations into the texts that masking treats in another way."""
    block = "BEGIN_DISPATCH_RESULT kept END_DISPATCH_RESULT"
    texts = [
        f"{'x' * 99}{block}{'y' * 99}{block}",
        f"x{block}",
        block,
        "BEGIN_DISPATCH_RESULT never closed " * 9,
        "[observation masked — 5 chars]",
        f"[dispatch output masked — 7 chars]\n{block}",
        "short",
        "",
    ]
    holders = [
        block if shape == "anthropic" else message
        for message in messages[:-8]
        for block in (message["content"] if isinstance(message["content"], list) else [message])
        if message["role"] == "tool" or block.get("type") == "tool_result"
    ]
    for holder, text in zip(holders[3:], texts, strict=False):
        holder["content"] = text


@pytest.mark.parametrize("shape", rivals.TUNED)
@pytest.mark.parametrize("damage", ["none", "texts", "dropped_result", "dropped_call", "cut", "repeated_ids"])
def test_tuned_loops_answer_as_recede_on_odd_histories(shape: histories.Shape, damage: str) -> None:
    messages = histories.history(60, shape=shape, seed=7)
    if damage == "texts":
        _plant(messages, shape)
    elif damage in ("dropped_result", "dropped_call"):
        del messages[21 if messages[20]["role"] == "assistant" and damage == "dropped_result" else 20]
    elif damage == "cut":
        last_result = max(index for index, message in enumerate(messages) if message["role"] == "assistant")
        del messages[last_result + 1 :]
    elif damage == "repeated_ids":
        ids: dict[str, str] = {}
        text = re.sub(
            "call_[0-9a-f]{16}", lambda found: ids.setdefault(found[0], f"call_{len(ids) % 3}"), json.dumps(messages)
        )
        messages = json.loads(text)
    budget = recede.count_chars(messages) - 1
    ours = tuple(recede.reduce(messages, max_input_chars=budget))
    assert rivals.clear(messages, max_input_chars=budget) == ours
    assert rivals.TUNED[shape](messages, max_input_chars=budget) == ours


def _measure(
    benchmark: Any, racing: Callable[[contenders.Case], dict[str, contenders.Contender]], name: str, size: int
) -> None:
    if name == MIRROR and size > contenders.MIRROR_LIMIT:
        pytest.skip("the mirror is an oracle and takes minutes here")
    contender = racing(_case(size))[name]
    benchmark(contender)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BYTES_NAMES)
@pytest.mark.parametrize("size", SIZES)
def test_bytes_to_bytes(benchmark: Any, size: int, name: str) -> None:
    _measure(benchmark, contenders.bytes_contenders, name, size)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", DICT_NAMES)
@pytest.mark.parametrize("size", SIZES)
def test_dicts_to_dicts(benchmark: Any, size: int, name: str) -> None:
    _measure(benchmark, contenders.dict_contenders, name, size)
