"""Any table has the answers of a loop over its rows, whatever its chunks, its slices and its threads."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from generated import histories
from strategies import json_values, mutated, own_options

from definitions import columns
from recede.arrow import Reducer, Stats


@st.composite
def rows(draw: st.DrawFn) -> list[bytes | None]:
    """Histories, some of them damaged, other values, and nulls."""
    written = (histories() | json_values()).map(lambda value: json.dumps(value, ensure_ascii=draw(st.booleans())))
    sound = written.map(lambda text: text.encode("utf-8", "surrogatepass"))
    return draw(st.lists(st.none() | sound | sound.flatmap(mutated), max_size=6))


@st.composite
def columns_of(draw: st.DrawFn, texts: list[bytes | None]) -> Any:
    """The rows as a column with slices of larger arrays as its chunks."""
    kind = draw(st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()]))
    cuts = [0, *sorted(draw(st.lists(st.integers(0, len(texts)), max_size=3))), len(texts)]
    chunks = []
    for start, end in pairwise(cuts):
        before = draw(st.lists(st.none() | st.just(b"{"), max_size=9))
        chunk = pa.array([*before, *texts[start:end], b"["], pa.binary()).cast(kind)
        chunks.append(chunk.slice(len(before), end - start))
    return pa.chunked_array(chunks, kind)


@given(st.data(), rows(), own_options(reduces=True), st.integers(1, 3))
def test_a_column_has_the_answers_of_its_rows(
    data: st.DataObject, texts: list[bytes | None], options: dict[str, Any], threads: int
) -> None:
    table = pa.table({"view": data.draw(columns_of(texts))})
    result = Reducer("view", prefix="", threads=threads, **options)(table)
    result.validate(full=True)
    assert result.to_pylist() == [columns.reduced(text, **options) for text in texts]


@given(st.data(), rows(), st.integers(0, 3), st.integers(1, 3))
def test_stats_have_the_figures_of_the_rows(
    data: st.DataObject, texts: list[bytes | None], keep: int, threads: int
) -> None:
    table = pa.table({"text": data.draw(columns_of(texts))})
    result = Stats("text", prefix="", threads=threads, keep=keep)(table)
    assert result.to_pylist() == [columns.sizes(text, keep) for text in texts]
