"""Columns of histories: types of text, errors as values, and schemas."""

from __future__ import annotations

import json
import pickle
import threading
from contextlib import suppress
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import recede
from definitions import columns
from recede import costs
from recede.arrow import Reducer, Stats, to_json
from support import CLEARED, assistant, call, result, user

LONG = "x" * 300
HISTORY = [user("Fix it."), *(step for n in range(6) for step in (call(str(n)), result(str(n), LONG)))]
GOOD = json.dumps([*HISTORY, assistant("Done.")]).encode()
DEEP = b'[{"role":"user","content":"x","extra":' + b"[" * 1_100 + b"]" * 1_100 + b"}]"
POISON = {
    "eof": GOOD[:-5],
    "syntax": b'[{"role":user}]',
    "control": b'[{"role":"user","content":"\n"}]',
    "escape": b'[{"role":"user","content":"\\x"}]',
    "utf8": b'[{"role":"user","content":"\xff"}]',
    "depth": DEEP,
    "number": b'[{"role":"user","content":"","n":01}]',
    "trailing": GOOD + b"]",
    "duplicate_key": b'[{"role":"user","role":"user","content":""}]',
    "history": b"{}",
    "message": b"[5]",
    "content": b'[{"role":"user","content":5}]',
    "part": b'[{"role":"user","content":[5]}]',
    "empty": b'[{"from":"human","value":"hi"},{"from":"gpt","value":"hello"}]',
}
ROWS = [GOOD, None, *POISON.values(), b"[]", b'[{"role":"user","content":""}]', GOOD]
TEXT = [row for row in ROWS if row != POISON["utf8"]]


def as_rows(result: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result.to_pylist()
    for row in rows:
        view = row.pop("text")
        row["view"] = view.encode() if isinstance(view, str) else view
    return rows


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "options",
    [{"keep": 2, "boundary": "sliding"}, {"max_input_tokens": 225}, {"keep": 2, "max_input_tokens": 90}],
    ids=str,
)
def test_rows_have_the_answers_of_a_plain_loop(options: dict[str, Any], threads: int) -> None:
    reducer = Reducer("text", prefix="", threads=threads, **options)
    result = reducer(pa.table({"text": pa.array(ROWS, pa.binary())}))
    assert as_rows(result) == [columns.reduced(row, **options) for row in ROWS]


def words_of(text: str) -> int:
    if "refused" in text:
        raise ValueError("no tokenizer for this")
    return len(text.split())


def test_rows_are_counted_by_a_token_counter() -> None:
    options: dict[str, Any] = {"keep": 2, "max_input_tokens": 60, "token_counter": words_of}
    table = pa.table({"text": pa.array(ROWS, pa.binary())})
    result = as_rows(Reducer("text", prefix="", **options)(table))
    assert result == [columns.reduced(row, **options) for row in ROWS]
    assert result != as_rows(Reducer("text", prefix="", keep=2, max_input_tokens=60)(table))
    refused = json.dumps([user("refused")]).encode()
    failed, good = as_rows(
        Reducer("text", prefix="", **options)(pa.table({"text": pa.array([refused, GOOD], pa.binary())}))
    )
    assert (failed["error_kind"], failed["error"]) == ("failed", "ValueError: no tokenizer for this")
    assert good == columns.reduced(GOOD, **options)


@pytest.mark.parametrize("threads", [1, 2])
def test_stats_are_those_of_a_plain_loop(threads: int) -> None:
    result = Stats("text", prefix="", threads=threads, keep=2)(pa.table({"text": pa.array(ROWS, pa.binary())}))
    assert result.to_pylist() == [columns.sizes(row, 2) for row in ROWS]


def test_each_kind_of_error_is_a_value_and_spares_its_neighbors() -> None:
    table = pa.table({"id": list(POISON), "messages": pa.array(POISON.values(), pa.binary())})
    result = Reducer(keep=1)(table)
    assert result["recede_error_kind"].to_pylist() == list(POISON)
    assert result["messages"].null_count == len(POISON)
    assert "fields from, value" in result["recede_error"].to_pylist()[-1]


@pytest.mark.parametrize(
    ("kind", "view"),
    [
        (pa.string(), pa.large_string()),
        (pa.large_string(), pa.large_string()),
        (pa.string_view(), pa.large_string()),
        (pa.binary(), pa.large_binary()),
        (pa.large_binary(), pa.large_binary()),
        (pa.binary_view(), pa.large_binary()),
        (pa.dictionary(pa.int8(), pa.string()), pa.large_string()),
        (pa.dictionary(pa.int32(), pa.binary()), pa.large_binary()),
        (pa.run_end_encoded(pa.int32(), pa.string()), pa.large_string()),
        (pa.json_(), pa.large_string()),
    ],
    ids=str,
)
def test_every_type_of_text_is_read(kind: Any, view: Any) -> None:
    if pa.types.is_dictionary(kind):
        array = pa.array(TEXT, pa.binary()).cast(kind.value_type).dictionary_encode().cast(kind)
    elif pa.types.is_run_end_encoded(kind):
        array = pa.compute.run_end_encode(pa.array(TEXT, pa.binary()).cast(pa.string()))
    else:
        array = pa.array(TEXT, pa.binary()).cast(pa.string()).cast(kind)
    reducer = Reducer("text", keep=1, boundary="sliding", prefix="")
    expected = [columns.reduced(row, keep=1, boundary="sliding") for row in TEXT]
    table = pa.table({"text": array})
    assert as_rows(reducer(table)) == expected
    assert reducer(table).schema == reducer.schema(table.schema)
    assert reducer.schema(table.schema).field("text").type == view
    chunked = pa.table({"text": pa.chunked_array([array.slice(0, 3), array.slice(3, 0), array.slice(3)])})
    assert as_rows(reducer(chunked)) == expected
    if not pa.types.is_run_end_encoded(kind):
        batch = pa.record_batch({"text": array}).slice(2, 5)
        result = reducer(batch)
        assert isinstance(result, pa.RecordBatch)
        assert as_rows(result) == expected[2:7]


def test_columns_without_rows_or_text() -> None:
    for empty in (pa.table({"messages": pa.nulls(3)}), pa.table({"messages": pa.array([], pa.string())})):
        result = Reducer(keep=1)(empty)
        assert result.num_rows == empty.num_rows
        assert result["messages"].null_count == empty.num_rows
        assert result["recede_error"].null_count == empty.num_rows
    no_chunks = pa.table({"messages": pa.chunked_array([], pa.string())})
    assert Stats()(no_chunks).schema == Stats().schema(no_chunks.schema)
    batch = pa.record_batch({"messages": pa.array([], pa.binary())})
    assert [Reducer(keep=1)(batch).num_rows, Stats()(batch).num_rows] == [0, 0]


def test_the_result_is_whole_arrow() -> None:
    """Offsets, bits and lengths are what Arrow demands, nulls at any place."""
    for rows in (ROWS, [None] * 17, [GOOD] * 9, [*[None] * 8, GOOD]):
        for operator in (Reducer("text", keep=1), Stats("text")):
            operator(pa.table({"text": pa.array(rows, pa.binary())})).validate(full=True)


def test_other_columns_are_kept_and_metadata_is_not() -> None:
    schema = pa.schema([("id", pa.int8()), ("messages", pa.string()), ("more", pa.bool_())], metadata={"a": "b"})
    table = pa.table([[1, 2], [GOOD.decode(), None], [True, None]], schema=schema)
    result = Reducer(keep=1, prefix="r.")(table)
    assert result.column_names[:4] == ["id", "messages", "more", "r.messages"]
    assert result.select(["id", "more"]).equals(table.select(["id", "more"]).replace_schema_metadata(None))
    assert result.schema.metadata is None
    assert Stats(prefix="r.")(table).column_names[:3] == ["id", "more", "r.messages"]


def test_lone_surrogates_stay_escapes() -> None:
    row = json.dumps([user("\ud800 lone"), *HISTORY])
    view = Reducer(keep=1)(pa.table({"messages": [row]}))["messages"][0].as_py()
    assert "\\ud800 lone" in view


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Reducer(keep=-1), "keep must be at least 0"),
        (lambda: Reducer(max_input_tokens="9"), "max_input_tokens must be a whole number"),
        (lambda: Reducer(keep=1, placeholder="{x}"), "unknown field"),
        (lambda: Reducer(keep_resluts=1), "did you mean"),
        (lambda: Reducer(keep=1, threads=0), "threads must be at least 1"),
        (lambda: Reducer(5, keep=1), "column must be a string"),
        (lambda: Stats(keep=-1), "keep must be at least 0"),
    ],
)
def test_options_are_checked_when_it_is_made(make: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_a_schema_that_does_not_fit_is_an_error_with_advice() -> None:
    reducer = Reducer(keep=1)
    with pytest.raises(ValueError, match="one column 'messages'; there are id, text"):
        reducer(pa.table({"id": [1], "text": ["[]"]}))
    with pytest.raises(TypeError, match=r"recede\.arrow\.to_json"):
        reducer.schema(pa.schema([("messages", pa.list_(pa.struct([("role", pa.string())])))]))
    with pytest.raises(TypeError, match="must hold text"):
        reducer(pa.table({"messages": [1]}))
    with pytest.raises(ValueError, match="choose another prefix"):
        reducer(pa.table({"messages": ["[]"], "recede_turns": [1]}))
    with pytest.raises(TypeError, match=r"pyarrow\.Table or RecordBatch, not dict"):
        reducer({"messages": ["[]"]})


def test_operators_are_pickled_with_their_options() -> None:
    table = pa.table({"messages": pa.array(ROWS, pa.binary()), "id": range(len(ROWS))})
    for operator in (
        Reducer(keep_by_tool={"run": 1}, keep=0, exclude_tools=["read"], threads=2),
        Stats(keep=1, prefix="p_"),
    ):
        assert pickle.loads(pickle.dumps(operator))(table).equals(operator(table))


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_of_any_depth_are_read_on_a_small_stack(threads: int) -> None:
    rows = [GOOD]
    for depth in (1_000, 1_023, 1_024, 1_025, 100_000):
        rows += [b"[" * depth, b"[" * depth + b"]" * depth]
        rows += [b'[{"role":"user","content":"x","a":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}]"]
    table = pa.table({"messages": pa.array(rows, pa.binary())})
    results: list[Any] = []

    def work() -> None:
        results.append(Reducer(keep=1, threads=threads)(table))
        for row in rows:
            with suppress(recede.TranscriptError):
                results.append(costs.replay_json(row, ["break_even:window=3", "hybrid:window=3,at=11"]))

    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    kinds = results[0]["recede_error_kind"].to_pylist()
    assert kinds[0] is None
    assert {"depth", "eof", "message"} <= set(kinds)
    assert len(results) - 1 == kinds.count(None)


@pytest.mark.slow
def test_a_row_of_a_gigabyte_is_reduced() -> None:
    row = b'[{"role":"tool","tool_call_id":"1","content":"%s"},{"role":"assistant"}]' % (b"x" * 10**9)
    array = pa.array([row, GOOD], pa.large_binary())
    del row
    reduced = Reducer("text", keep=0, boundary="sliding", prefix="")(pa.table({"text": array}))
    assert reduced["chars_before"][0].as_py() == 10**9
    assert reduced["text"][0].as_py() == (
        b'[{"role":"tool","tool_call_id":"1","content":"%s"},{"role":"assistant"}]' % CLEARED.encode()
    )


# Nested columns


def test_structs_are_written_without_their_nulls() -> None:
    rows = [[user("hi"), {"role": "assistant", "content": None, "n": 5}], None, []]
    nested = pa.array(rows, pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), ("n", pa.int8())])))
    text = to_json(pa.chunked_array([nested, nested.slice(1)]))
    assert text.type == pa.large_string()
    first = '[{"role":"user","content":"hi"},{"role":"assistant","n":5}]'
    assert text.to_pylist() == [first, None, "[]", None, "[]"]


def test_values_that_json_lacks_are_text() -> None:
    import datetime

    row = [{"role": "user", "content": "hi", "at": datetime.datetime(2026, 1, 2), "raw": b"\xffa", "n": float("nan")}]
    text = to_json(pa.array([row]))
    assert '"at":"2026-01-02 00:00:00","raw":"\ufffda"' in text[0].as_py()
    assert "n" not in json.loads(text[0].as_py())[0]
