"""Single comparisons: `pytest benches/test_reduce.py --benchmark-columns=min,rounds --benchmark-group-by=param:size`.

Look at the minimum: it moves least with what else the machine does. The whole table is that of `benches/table.py`; that
the answers are the same is shown by benches/test_answers.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import contenders

pytestmark = pytest.mark.benchmark(disable_gc=True, min_rounds=5, max_time=1.0, warmup=False)

SIZES = (100, 1_000, 10_000, 100_000)
# The contenders do not depend on the case but in their closures; a small one gives their names.
BYTES_NAMES = tuple(contenders.bytes_contenders(contenders.Case(b"[]", [])))
DICT_NAMES = tuple(contenders.dict_contenders(contenders.Case(b"[]", [])))


@functools.lru_cache(maxsize=1)
def _case(size: int) -> contenders.Case:
    """One at a time: the largest takes a gigabyte."""
    return contenders.make_case(size)


def _measure(
    benchmark: Any, racing: Callable[[contenders.Case], dict[str, contenders.Contender]], name: str, size: int
) -> None:
    if name == contenders.ORACLE and size > contenders.ORACLE_LIMIT:
        pytest.skip("the oracle is an oracle and takes minutes here")
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
