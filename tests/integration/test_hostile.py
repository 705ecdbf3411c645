"""Inputs made to hurt: large, deep, cut, and all alike. They end, soon, with an answer or an error."""

from __future__ import annotations

import json
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import published
import pytest
import threads

import recede
from support import (
    ENGINES,
    assistant,
    call,
    dumps,
    elements,
    engine_module,
    facts,
    loads,
    result,
    tool_result,
    tool_use,
    turns,
    user,
    using,
)

# The oracle is some hundred times slower than the core.
SIZES = {"core": 5_000, "oracle": 500}
HUGE = {"core": 1_000_000, "oracle": 20_000}

BOTH = pytest.mark.parametrize("engine_name", ENGINES)
SIZE = pytest.mark.parametrize(
    "sizes", [SIZES, pytest.param(HUGE, marks=[pytest.mark.slow, pytest.mark.timeout(900)])], ids=["normal", "huge"]
)


# What is tested is masked whenever it may be.
ALL_OLD: dict[str, Any] = {"boundary": "sliding"}


def everything(history: list[Any]) -> recede.Reduction:
    """Every function at once; gives the reduction to almost nothing."""
    raw = dumps(history)
    recede.check_pairs(history)
    recede.repair_pairs(history)
    recede.designs.truncate_history(history)
    masked = published.mask_observations(history, keep_results=1, **ALL_OLD)
    serialized = published.mask_observations_json(raw, keep_results=1, **ALL_OLD)
    assert facts(serialized) == facts(masked)
    assert loads(serialized.json) == masked.messages
    reduction = published.reduce(history, max_input_chars=10)
    assert facts(published.reduce_json(raw, max_input_chars=10)) == facts(reduction)
    return reduction


@SIZE
@BOTH
def test_many_parallel_calls_in_one_message(engine_name: str, sizes: dict[str, int]) -> None:
    size = min(sizes[engine_name], 100_000)
    ids = [str(number) for number in range(size)]
    with using(engine_name):
        everything([call(*ids), *(result(call_id, "x" * 40) for call_id in reversed(ids))])
        reduction = everything([tool_use(*ids), user([tool_result(call_id, "x" * 40) for call_id in ids])])
        assert reduction.orphans == ()
        assert everything([call(*ids), user("go on")]).orphans == (0,)
        assert len(recede.repair_pairs([call(*ids), user("go on")])) == 2 + size


@SIZE
@BOTH
def test_calls_with_one_id(engine_name: str, sizes: dict[str, int]) -> None:
    size = sizes[engine_name]
    with using(engine_name):
        assert everything([call("x") for _ in range(size)]).orphans == ()
        assert everything([call(str(number)) for number in range(size // 4)]).orphans == ()
        assert everything([*(call("x") for _ in range(size)), user("end")]).orphans == tuple(range(size))
        history = [call("x"), *(result("x", "y" * 40) for _ in range(size))]
        assert len(recede.designs.truncate_history(history, preserve_recent_raw_turns=1).messages) == size + 1
        everything([*(call("x") for _ in range(size // 2)), *(result("x", "y") for _ in range(size // 2))])


@SIZE
@BOTH
def test_no_ids(engine_name: str, sizes: dict[str, int]) -> None:
    size = sizes[engine_name] // 2
    with using(engine_name):
        history: list[Any] = [{"role": "assistant", "tool_calls": [{}]}, {"role": "tool", "content": "x" * 40}] * size
        assert not everything(history).orphans, "calls and results pair by place"


@SIZE
@BOTH
def test_empty_messages(engine_name: str, sizes: dict[str, int]) -> None:
    size = sizes[engine_name]
    with using(engine_name):
        assert everything([{} for _ in range(size)]).chars_before == 0
        history: list[Any] = [{"role": "tool"} for _ in range(size)]
        assert recede.designs.truncate_history(history, preserve_recent_raw_turns=1).dropped_count == size - 1
        assert everything([{"role": "system", "content": ""} for _ in range(size)]).dropped_count == 0
        for role in ("system", "user"):
            everything([{"role": role, "content": "Conversation summary:\nold"} for _ in range(size // 4)])


@SIZE
@BOTH
@pytest.mark.parametrize("role", ["assistant", "user"])
@pytest.mark.parametrize("shift", [0, 1])
def test_calls_and_results_in_one_message(engine_name: str, role: str, shift: int, sizes: dict[str, int]) -> None:
    """Answers of every second call are missing."""
    size = sizes[engine_name] // 4
    history: list[Any] = [
        {"role": role, "content": [tool_result(f"{n - shift}", "x" * 40), *tool_use(f"{n}")["content"][: 1 - n % 2]]}
        for n in range(size)
    ]
    with using(engine_name):
        assert len(everything([*history, user("end")]).orphans) >= size // 2


@SIZE
@BOTH
def test_a_chain_of_mates(engine_name: str, sizes: dict[str, int]) -> None:
    history: list[Any] = [tool_use("0")]
    for number in range(1, sizes[engine_name] // 4):
        history += [tool_use(str(number)), user([tool_result(str(number), ""), tool_result(str(number - 1), "")])]
    with using(engine_name):
        assert recede.designs.truncate_history(history, preserve_recent_raw_turns=1).dropped_count == 0
        everything(history)


@SIZE
@BOTH
def test_open_brackets(engine_name: str, sizes: dict[str, int]) -> None:
    size = max(sizes[engine_name], 2_000)
    for raw in (
        b"[" * size,
        b'{"a":' * size,
        b'[{"x":' + b"[" * size,
        b"[" * size + b"]" * size,
        b'[{"content":' * size,
    ):
        with using(engine_name), pytest.raises(recede.TranscriptError) as caught:
            published.reduce_json(raw, max_input_chars=1)
        assert caught.value.kind == "depth"


def test_depth_in_a_thread_with_a_small_stack() -> None:
    """Nesting up to the limit, and far beyond it, with 256 kilobytes of stack."""
    deep = b'[{"x":' + b"[" * 1_022 + b"]" * 1_022 + b"}]"
    call_of_depth = b'[{"type":"a_call","call_id":"1","arguments":' + b"[" * 1_022 + b"]" * 1_022 + b"}]"
    seen: list[Any] = []
    engine = "core"

    def work() -> None:
        try:
            assert published.reduce_json(deep, max_input_chars=1).json is deep
            assert published.reduce_json(call_of_depth, max_input_chars=9_999).chars_before == 20 + 2 * 1_022
            for raw in (b"[" * 1_000_000, b'{"a":' * 1_000_000, b'[{"x":' + b"[" * 1_000_000):
                with pytest.raises(recede.TranscriptError):
                    published.reduce_json(raw, max_input_chars=1)
            nested: Any = []
            for _ in range(1_015):
                nested = [nested]
            recede.count_chars([{"type": "a_call", "call_id": "1", "arguments": nested}])
            seen.append("done")
        except BaseException as error:
            seen.append(error)

    before = threading.stack_size(256 * 1_024)
    try:
        with using(engine):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    finally:
        threading.stack_size(before)
    assert seen == ["done"]


@SIZE
@BOTH
@pytest.mark.parametrize(
    "text",
    [
        lambda n: "BEGIN_DISPATCH_RESULT" * n,
        lambda n: "END_DISPATCH_RESULT" * n,
        lambda n: "BEGIN_DISPATCH_RESULTEND_DISPATCH_RESULT" * n,
        lambda n: "BEGIN_DISPATCH_RESUL" * n,
        lambda n: "[dispatch output masked — 5 chars]" + "\nBEGIN_DISPATCH_RESULTEND_DISPATCH_RESULT" * n + "x",
        lambda n: "[observation masked — " + "9" * 20 * n,
        lambda n: "[observation masked — 5 chars]" * n,
        lambda n: "\\" * 20 * n,
        lambda n: "\x00é😀\ud800x" * 4 * n,
        lambda n: "\n" * 20 * n,
    ],
    ids=["begin", "end", "blocks", "almost", "form", "digits", "placeholders", "escapes", "mixed", "lines"],
)
def test_long_texts(engine_name: str, sizes: dict[str, int], text: Callable[[int], str]) -> None:
    size = sizes[engine_name] // 4
    value = text(size)
    with using(engine_name):
        history = [result("1", value), result("2", [{"type": "text", "text": value}] * 2)]
        for options in ({}, {"placeholder": "<{tool}{id}{tool} {chars}{lines}>"}, {"max_observation_chars": 60}):
            masked = published.mask_observations(history, keep_results=0, **options, **ALL_OLD)
            serialized = published.mask_observations_json(dumps(history), keep_results=0, **options, **ALL_OLD)
            assert facts(serialized) == facts(masked)
            assert (
                published.mask_observations(masked.messages, keep_results=0, **options, **ALL_OLD).messages
                is masked.messages
            )


@SIZE
@BOTH
def test_templates_with_many_wildcards(engine_name: str, sizes: dict[str, int]) -> None:
    """Recognising a placeholder takes time in the length of the text, whatever the template."""
    size = min(sizes[engine_name], 100_000)
    template = "a{tool}" * 20 + "{chars}{lines}{images}{turn}" * 5 + "b"
    with using(engine_name):
        for value in ("a" * size, "a" * size + "1" * size, "a1" * (size // 2) + "b", "1" * size):
            recede.designs.mask_observation(value, placeholder=template)


@SIZE
@BOTH
def test_patterns_with_many_wildcards(engine_name: str, sizes: dict[str, int]) -> None:
    name = "a" * min(sizes[engine_name], 50_000)
    history = [call("1", name=name), result("1", "x" * 90), assistant("Seen.")]
    with using(engine_name):
        assert (
            published.mask_observations(
                history, keep_results=0, exclude_tools=["*a" * 20 + "b"], boundary="sliding"
            ).masked_count
            == 1
        )
        assert (
            published.mask_observations(
                history, keep_results=0, keep_by_tool={"a*" * 20 + "?" * 5: None}, boundary="sliding"
            ).masked_count
            == 0
        )


@SIZE
@BOTH
def test_many_tools_and_many_patterns(engine_name: str, sizes: dict[str, int]) -> None:
    size = min(sizes[engine_name] // 4, 20_000)
    history: list[Any] = []
    for number in range(size):
        history += [call(str(number), name=f"tool {number}"), result(str(number), "x" * 40)]
    history.append(assistant("All seen."))
    with using(engine_name):
        windows: dict[str, int | None] = {f"tool {number}": 0 for number in range(0, size, 2)}
        reduction = published.mask_observations(history, keep_results=size, keep_by_tool=windows, **ALL_OLD)
        assert reduction.masked_count == -(-size // 2)
        assert len(reduction.tools) == size


@SIZE
@BOTH
@pytest.mark.parametrize("option", ["keep_by_tool", "exclude_tools"])
def test_a_tool_is_looked_up_once_among_any_number_of_names(
    engine_name: str, option: str, sizes: dict[str, int]
) -> None:
    """If each of the tools were compared with each of the names, the large size would take many minutes."""
    size = min(sizes[engine_name], 50_000)
    rules = 20 * size
    names = dict.fromkeys((f"tool {number}" for number in range(size // 2, size // 2 + rules)), 0)
    history = [message for number in range(size) for message in tool_turn(number)] + [assistant("All seen.")]
    options: dict[str, Any] = {option: names if option == "keep_by_tool" else [*names]}
    with using(engine_name):
        masked = published.mask_observations(
            history, keep_results=size if option == "keep_by_tool" else 0, **options, boundary="sliding"
        )
        assert masked.masked_count == size // 2


@SIZE
@BOTH
def test_a_tool_is_looked_up_once_and_not_at_each_request(engine_name: str, sizes: dict[str, int]) -> None:
    """As many tools as requests: if all were looked up at each, the large size would take many minutes."""
    size = min(sizes[engine_name], {"core": 60_000, "oracle": 2_000}[engine_name])
    history = [message for number in range(size) for message in tool_turn(number)]
    options: dict[str, Any] = {"exclude_tools": [f"other {number}*" for number in range(20)]}
    with using(engine_name):
        view = recede.designs.mask_old_observations(history, keep=3, boundary="break_even", **options)
        assert sum("masked" in str(message["content"]) for message in view) > size // 2
        if engine_name == "core":  # the oracle plans a session anew for each view
            session = published.History(keep=3, **options)
            for message in history:
                session.append(message)
            assert session.view() == view


def tool_turn(number: int) -> tuple[Any, Any]:
    return call(str(number), name=f"tool {number}"), result(str(number), "x" * 200)


def test_the_oracle_holds_no_list_of_newer_results_for_each_result() -> None:
    def peak(size: int) -> int:
        history = [message for number in range(size) for message in (call(str(number)), result(str(number), "x" * 40))]
        tracemalloc.start()
        published.mask_observations(history, keep_results=1, keep_by_tool={"run": 1}, **ALL_OLD)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    with using("oracle"):
        assert peak(800) < 2.7 * peak(400)


@BOTH
def test_digits_beside_the_numbers_of_a_template(engine_name: str) -> None:
    """Each split of the digits is possible, and there are more of them than can be tried."""
    template = "<" + "{chars}1" * 12 + "x"
    with using(engine_name):
        assert recede.designs.mask_observation("<" + "1" * 5_000 + "x", placeholder=template) == "<" + "1" * 5_000 + "x"
        assert recede.designs.mask_observation("<" + "1" * 5_000 + "y", placeholder=template) != "<" + "1" * 5_000 + "y"


@SIZE
@BOTH
def test_many_members_and_parts(engine_name: str, sizes: dict[str, int]) -> None:
    size = sizes[engine_name]
    with using(engine_name):
        wide = {"role": "user", **{f"key {number}": number for number in range(size)}}
        raw = dumps([wide])
        assert published.reduce_json(raw, max_input_chars=1).json is raw
        parts: list[Any] = [{"type": "text", "text": "x"}] * size
        history = [user(parts), result("1", parts), user([tool_result("1", parts)] * 3)]
        reduction = published.mask_observations(history, keep_results=0, **ALL_OLD)
        assert reduction.chars_before == 5 * size
        assert facts(published.mask_observations_json(dumps(history), keep_results=0, **ALL_OLD)) == facts(reduction)


# Cut input


def small(text: str) -> list[Any]:
    return [
        {"role": "system", "content": text},
        *turns(1, chars=40),
        tool_use("a\n", value={"n": [-1.5e10, True, None]}),
        user([tool_result("a\n", [{"type": "text", "text": "x" * 40}, {"type": "image"}], is_error=True)]),
        {"type": "function_call", "call_id": "\u2028", "arguments": {"a": {"b": []}}},
        {"type": "function_call_output", "call_id": "\u2028", "output": "y" * 40},
        {"extra": [0, -0.1, 1e5, '\\ " /']},
    ]


SPELLINGS = [
    json.dumps(small("é — 😀 \ud83d"), indent=1).encode(),
    json.dumps(small("é — 😀"), ensure_ascii=False).encode(),
]


@BOTH
@pytest.mark.parametrize(
    "raw", [*SPELLINGS, b'{"model": "m", "messages": %s, "n": 1}' % SPELLINGS[1]], ids=["escapes", "utf8", "body"]
)
def test_a_cut_history_is_refused_at_every_byte(engine_name: str, raw: bytes) -> None:
    with using(engine_name):
        published.reduce_json(raw, max_input_chars=1)
        for length in range(len(raw)):
            with pytest.raises(recede.TranscriptError) as caught:
                published.reduce_json(raw[:length], max_input_chars=1)
            assert caught.value.kind in ("eof", "utf8")
            if caught.value.kind == "eof":
                assert caught.value.offset == length
            else:
                assert length - 3 <= (caught.value.offset or 0) < length


@pytest.mark.parametrize("byte", [0x00, 0x20, 0x22, 0x2C, 0x5B, 0x5C, 0x5D, 0x7B, 0x7D, 0x80, 0xFF])
def test_one_wrong_byte_at_every_place_never_panics(byte: int) -> None:
    raw = bytearray(SPELLINGS[1])
    offsets: list[int | None] = []
    for place in range(len(raw)):
        before, raw[place] = raw[place], byte
        try:
            output = published.mask_observations_json(bytes(raw), keep_results=0, **ALL_OLD).json
        except recede.TranscriptError as error:
            offsets.append(error.offset)
        else:
            elements(output.decode())
        raw[place] = before
    assert all(offset is not None and 0 <= offset <= len(raw) for offset in offsets)


def test_threads_may_share_an_engine() -> None:
    """The same reduction in eight threads gives the same bytes, with the GIL let go or not."""
    raw = dumps([user("task"), *turns(400, chars=500)])
    expected = recede.reduce(raw, max_input_tokens=12_500).json
    answers: list[bytes] = []

    def work() -> None:
        for _ in range(5):
            answers.append(recede.reduce(raw, max_input_tokens=12_500).json)

    with using("core"):
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(answers) == 40 and set(answers) == {expected}


def test_threads_may_share_a_session_and_its_store() -> None:
    """See tests/threads.py."""
    tally, faults = threads.run(seconds=0, seed=5, seconds_a_round=0.3)
    assert faults == []
    assert tally["rounds"] == threads.KINDS and tally["calls"] > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_threads_may_share_a_session_for_a_minute() -> None:
    assert threads.run(seconds=60, seed=6)[1] == []


def test_a_bytearray_that_changes_meanwhile_is_copied_first() -> None:
    data = bytearray(dumps([user("x" * 100_000)] * 20))
    stop = threading.Event()

    def scribble() -> None:
        while not stop.is_set():
            data[1_000] = 0x79
            data[1_000] = 0x78

    thread = threading.Thread(target=scribble)
    with using("core"):
        thread.start()
        try:
            for _ in range(20):
                assert recede.reduce(data, max_input_tokens=1 << 40).chars_before == 2_000_000
        finally:
            stop.set()
            thread.join()


def test_engines_are_modules_of_the_same_functions() -> None:
    names = [{name for name in dir(engine_module(engine)) if not name.startswith("_")} for engine in ENGINES]
    needed = {"Policy", "check_pairs", "count_chars", "mask_observation", "reduce", "reduce_json", "repairs", "texts"}
    assert all(needed <= found for found in names)
