"""`cache_breakpoint="boundary"`: which block gets a mark, which mark gives way, and what is copied."""

from __future__ import annotations

from typing import Any

import published
import pytest

import recede
from support import call, dumps, loads, mask, mask_json, masked, reduce, result, tool_result, tool_use, user

LONG = "x" * 500
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def session(turns: int, calls: int = 1) -> list[dict[str, Any]]:
    """Messages 2n + 1 and 2n + 2 are turn n."""
    history: list[dict[str, Any]] = [user([{"type": "text", "text": "task"}])]
    for turn in range(turns):
        ids = [f"{turn}.{call}" for call in range(calls)]
        history += [tool_use(*ids), user([tool_result(one, LONG) for one in ids])]
    return history


def marked(history: list[dict[str, Any]], *messages: int, mark: Any = MARK) -> list[dict[str, Any]]:
    """With a mark on the last block of each of these messages."""
    for message in messages:
        history[message]["content"][-1]["cache_control"] = mark
    return history


def marks(view: list[dict[str, Any]]) -> dict[int, Any]:
    return {
        index: block["cache_control"]
        for index, message in enumerate(view)
        for block in message["content"]
        if "cache_control" in block
    }


def pin(history: list[dict[str, Any]], **options: Any) -> dict[int, Any]:
    return marks(mask(history, cache_breakpoint="boundary", **{"keep_results": 2, **options}).messages)


def reduce_request(body: dict[str, Any], **options: Any) -> Any:
    return recede.reduce(body, **options).request


def in_body(history: list[dict[str, Any]], tools: int, system: int, **options: Any) -> Any:
    mark = {"cache_control": MARK}
    body = {"tools": [{"name": "a"}, {"name": "b", **(mark if tools else {})}], "messages": history}
    body["system"] = [{"type": "text", "text": "s", **(mark if system else {})}]
    options = {"keep_results": 2, "cache_breakpoint": "boundary", **options}
    return loads(published.mask_observations_json(dumps(body), **options).json)


def test_a_boundary_that_stays_has_the_mark() -> None:
    # Masked are the results of turns 0 to 3, at this request and the one before.
    assert pin(marked(session(7), 14), mask_chunk=4) == {8: MARK, 14: MARK}


def test_at_a_move_the_old_boundary_has_it() -> None:
    assert pin(marked(session(6), 12)) == {6: MARK, 12: MARK}
    assert pin(marked(session(10), 20), mask_chunk=4) == {8: MARK, 20: MARK}


def test_at_the_first_move_there_is_no_old_boundary() -> None:
    assert pin(marked(session(3), 6)) == {6: MARK}


def test_without_marks_of_the_client_there_are_none() -> None:
    history = session(7)
    assert mask(history, keep_results=2, cache_breakpoint="boundary") == mask(history, keep_results=2)


@pytest.mark.parametrize("mark", [MARK, HOUR])
def test_automatic_caching_gets_a_pin_with_its_lifetime(mark: Any) -> None:
    body = {"cache_control": mark, "messages": session(7)}
    options: dict[str, Any] = {"keep": 2, "boundary": 4}
    view = reduce_request(body, **options)
    assert view["cache_control"] == mark
    assert marks(view["messages"]) == {8: mark}
    assert loads(recede.reduce(dumps(body), **options).json) == view


def test_automatic_caching_takes_one_of_four_marks() -> None:
    body = {"cache_control": MARK, "messages": marked(session(9), 12, 14, 16)}
    for kept in (reduce_request(body, keep=2, boundary=4), loads(recede.reduce(dumps(body), keep=2, boundary=4).json)):
        assert marks(kept["messages"]) == {8: MARK, 14: MARK, 16: MARK}
    newest = {"cache_control": MARK, "messages": marked(session(7), 14)}
    assert marks(reduce_request(newest, keep=2, boundary=4)["messages"]) == {8: MARK, 14: MARK}


def test_a_run_of_calls_or_results_is_one_position_of_the_lookback() -> None:
    """Message 82 ends 2 positions after message 80: nothing is carried."""
    ids = [f"long.{call}" for call in range(20)]
    calls = tool_use(*ids)
    history = [*session(40), calls, user([tool_result(one, LONG) for one in ids])]
    options: dict[str, Any] = {"keep_results": 10, "mask_chunk": 30, "marks_elsewhere": 1}
    assert pin(marked(history, 82), **options) == {60: MARK, 82: MARK}
    text = {"type": "text", "text": "hm"}
    calls["content"] = [block for call in calls["content"] for block in (call, text)]  # 20 runs
    assert pin(history, **options) == {60: MARK, 80: MARK, 82: MARK}


def test_keep_leaves_marks_alone() -> None:
    view = mask(marked(session(7), 14), keep_results=2).messages
    assert marks(view) == {14: MARK}


def test_a_pin_stands_only_before_a_mark_of_the_client() -> None:
    assert pin(marked(session(7), 4)) == {4: MARK}
    assert pin(marked(session(7), 10), mask_chunk=4) == {8: MARK, 10: MARK}


def test_a_block_that_has_a_mark_keeps_it() -> None:
    history = marked(marked(session(7), 14), 8, mark=HOUR)
    assert pin(history, mask_chunk=4) == {8: HOUR, 14: MARK}


def test_the_value_is_that_of_the_mark_behind_it() -> None:
    assert pin(marked(session(7), 14, mark=HOUR), mask_chunk=4) == {8: HOUR, 14: HOUR}


def test_it_is_that_of_the_oldest_mark_of_a_block_that_has_two() -> None:
    """Anthropic refuses a mark of an hour behind one of five minutes."""
    history = marked(session(7), 14)
    history[14]["content"][-1]["content"] = [{"type": "text", "text": LONG, "cache_control": HOUR}]
    options: dict[str, Any] = {"mask_chunk": 4, "marks_elsewhere": 0}
    assert pin(history, **options) == {8: HOUR, 14: MARK}
    assert marks(in_body(history, tools=0, system=0, mask_chunk=4)["messages"]) == {8: HOUR, 14: MARK}


def test_the_mark_before_gives_way_where_four_would_be_passed() -> None:
    assert pin(marked(session(7), 12, 14), mask_chunk=4) == {8: MARK, 14: MARK}
    assert pin(marked(marked(session(7), 12, mark=HOUR), 14), mask_chunk=4) == {8: MARK, 14: MARK}


def test_it_stays_where_the_newest_does_not_find_its_entry() -> None:
    assert pin(marked(with_long_run(), 14, 16), mask_chunk=4) == {14: MARK, 16: MARK}
    assert pin(marked(with_long_run(), 12, 16), mask_chunk=4) == {12: MARK, 16: MARK}


def test_marks_on_tools_go_first_where_the_system_prompt_has_one() -> None:
    view = in_body(marked(session(7), 12, 14), tools=1, system=1, mask_chunk=4)
    assert marks(view["messages"]) == {8: MARK, 12: MARK, 14: MARK}
    assert view["tools"] == [{"name": "a"}, {"name": "b"}]
    assert "cache_control" in view["system"][0]


@pytest.mark.parametrize(("tools", "system"), [(1, 0), (0, 1), (0, 0)])
def test_otherwise_they_stay(tools: int, system: int) -> None:
    view = in_body(marked(session(7), 12, 14), tools=tools, system=system, mask_chunk=4)
    assert marks(view["messages"]) == {8: MARK, 12: MARK, 14: MARK}
    assert ("cache_control" in view["tools"][1]) is bool(tools)


def with_long_run(blocks: int = 24, calls: int = 1) -> list[dict[str, Any]]:
    """Message 16 ends so many blocks after message 14; the boundary, in message 8, stays."""
    texts = [{"type": "text", "text": "hm"}] * (blocks - 2)
    run = {"role": "assistant", "content": [*texts, *tool_use("long")["content"]]}
    return [*session(7, calls), run, user([tool_result("long", LONG)])]


def test_a_block_that_is_wanted_twice_is_marked_once() -> None:
    """The last masked result, at the end of the request before."""
    run = {"role": "assistant", "content": [{"type": "text", "text": "hm"}] * 22}
    history = marked([*session(3), run, user([{"type": "text", "text": "Go on."}])], 8)
    options: dict[str, Any] = {"keep_results": 0, "cache_breakpoint": "boundary", "marks_elsewhere": 0}
    view = mask_json(dumps(history), **options).json
    assert marks(loads(view)) == {6: MARK, 8: MARK}
    assert view.count(b"cache_control") == 2


def test_of_two_marks_of_a_masked_block_one_counts() -> None:
    history = marked(session(7), 2, 14)
    history[2]["content"][0]["content"] = [{"type": "text", "text": LONG, "cache_control": MARK}]
    assert pin(history, mask_chunk=4) == {8: MARK, 14: MARK}


def test_after_an_answer_the_request_before_is_that_before_its_run() -> None:
    history = [*marked(with_long_run(), 16), {"role": "assistant", "content": [{"type": "text", "text": "And"}]}]
    assert pin(history, mask_chunk=4, marks_elsewhere=1) == {8: MARK, 14: MARK, 16: MARK}


def test_only_blocks_of_anthropic_get_marks() -> None:
    history: list[Any] = []
    for turn in range(7):
        used, content = {"toolUseId": str(turn)}, [{"text": LONG}]
        history += [{"role": "assistant", "content": [{"toolUse": {**used, "name": "run", "input": {}}}]}]
        history += [user([{"toolResult": {**used, "content": content}}])]
    assert pin(marked(history, 13), mask_chunk=4) == {13: MARK}


def test_a_mark_is_carried_to_the_end_of_the_request_before() -> None:
    view = in_body(marked(with_long_run(), 16), tools=0, system=1, mask_chunk=4)
    assert marks(view["messages"]) == {8: MARK, 14: MARK, 16: MARK}


@pytest.mark.parametrize(("calls", "boundary"), [(1, 8), (2, 12)])
def test_it_is_carried_where_the_newest_looks_back_too_few_blocks(calls: int, boundary: int) -> None:
    # The newest mark looks at 20 blocks, its own the first of them.
    near, far = (marked(with_long_run(blocks, calls), 16) for blocks in (19, 20))
    assert pin(near, mask_chunk=4, marks_elsewhere=1) == {boundary: MARK, 16: MARK}
    assert pin(far, mask_chunk=4, marks_elsewhere=1) == {boundary: MARK, 14: MARK, 16: MARK}


def test_the_mark_before_gives_way_only_where_the_newest_finds_its_entry() -> None:
    options: dict[str, Any] = {"mask_chunk": 4}
    assert pin(marked(with_long_run(19), 14, 16), **options) == {8: MARK, 16: MARK}
    assert pin(marked(with_long_run(20), 14, 16), **options) == {14: MARK, 16: MARK}
    # The 20 blocks end in a later message than the 19th.
    longer = [*with_long_run(19), tool_use("next"), user([tool_result("next", LONG)])]
    assert pin(marked(longer, 14, 18), **options) == {14: MARK, 18: MARK}


@pytest.mark.parametrize(("parts", "expected"), [(2, [20, 22, 26]), (3, [2, 20, 26])])
def test_the_place_of_a_mark_is_that_in_the_history(parts: int, expected: list[int]) -> None:
    """In the view the message of the tool has one part, which is nearer to the mark before."""
    content = [{"type": "text", "text": LONG} for _ in range(parts)]
    content[-1]["cache_control"] = MARK  # type: ignore[assignment]
    history = [*session(9), call("chat"), result("chat", content), *session(3)[1:]]
    options: dict[str, Any] = {"keep_results": 1, "marks_elsewhere": 1, "cache_breakpoint": "boundary"}
    view = mask(marked(history, 2, 26), **options).messages
    assert [index for index, message in enumerate(view) if "cache_control" in str(message)] == expected


def test_an_escaped_key_is_a_mark_too() -> None:
    raw = dumps(marked(session(7), 12, 14))
    escaped = raw.replace(b"cache_control", b"cache\\u005fcontrol")
    options: dict[str, Any] = {"keep_results": 2, "mask_chunk": 4, "cache_breakpoint": "boundary"}
    views = [loads(published.mask_observations_json(one, **options).json) for one in (raw, escaped)]
    assert marks(views[0]) == marks(views[1]) == {8: MARK, 14: MARK}


def test_where_four_would_be_passed_the_carried_mark_displaces_the_pin() -> None:
    assert pin(marked(with_long_run(), 16), mask_chunk=4) == {14: MARK, 16: MARK}
    # Also where a mark of the client could give way.
    view = pin(marked(with_long_run(), 4, 6, 16), mask_chunk=4, marks_elsewhere=0)
    assert view == {4: MARK, 6: MARK, 14: MARK, 16: MARK}


def test_marks_in_a_message_that_is_replaced_stay() -> None:
    # Its parts become one, with the newest of their marks, which is one of four, and so message 14 loses its own.
    parts = [{"type": "text", "text": LONG, "cache_control": mark} for mark in (MARK, MARK, HOUR)]
    history = [*session(4), call("chat"), result("chat", parts), *session(3)[1:]]
    options: dict[str, Any] = {"keep_results": 1, "marks_elsewhere": 1}
    view = mask(marked(history, 14, 16), cache_breakpoint="boundary", **options).messages
    assert view[10]["content"] == [{"type": "text", "text": masked(3 * 500), "cache_control": HOUR}]
    assert marks(view[10:11] + view[11:]) == {0: HOUR, 2: MARK, 6: MARK}


def test_a_result_that_is_cut_is_not_the_boundary() -> None:
    """It is in the window of its tool: that of turn 4, where that of turn 5 is too short to be masked."""
    history = marked(session(9), 18)
    history[9]["content"][0]["name"] = "look"
    history[12]["content"][0]["content"] = "ok"
    view = reduce(
        history,
        max_input_chars=1_800,
        keep_results=2,
        keep_by_tool={"look": 9},
        clip_results=100,
        fill=None,
        cache_breakpoint="boundary",
    ).messages
    assert len(view[10]["content"][0]["content"]) == 100
    assert marks(view) == {8: MARK, 18: MARK}


def test_nothing_is_carried_at_a_move() -> None:
    assert pin(marked(with_long_run(), 16), keep_results=4) == {6: MARK, 16: MARK}


def test_in_bytes_fields_come_and_go() -> None:
    raw = dumps(marked(session(7), 12, 14)).replace(
        b'"cache_control": {"type": "ephemeral"}}', b'"cache_control":{"a":1} }'
    )
    options = {"keep_results": 2, "mask_chunk": 4}
    plain = published.mask_observations_json(raw, **options).json
    view = published.mask_observations_json(raw, **options, cache_breakpoint="boundary").json
    gone, field = b', "cache_control":{"a":1} }', b',"cache_control":{"a":1}'
    older, behind = plain.split(b'"id": "4.0"')
    place = older.rindex(b"chars]") + len(b'chars]"')
    assert view == older[:place] + field + older[place:] + b'"id": "4.0"' + behind.replace(gone, b" }", 1)


def test_the_message_with_the_boundary_is_told() -> None:
    reduction = mask(session(7), keep_results=2)
    assert reduction.boundary_message == 10
    assert mask(session(2), keep_results=2).boundary_message is None


def holders(marked: bool) -> list[dict[str, Any]]:
    """Blocks with a part that may have a mark."""
    part = {"type": "text", "text": "x", **({"cache_control": MARK} if marked else {})}
    source = {"type": "content", "content": [part]}
    return [
        {"type": "mcp_tool_result", "tool_use_id": "m", "content": [part]},
        {"type": "search_result", "source": "s", "title": "t", "content": [part]},
        {"type": "document", "source": source},
        {"type": "tool_result", "tool_use_id": "6.0", "content": [{"type": "document", "source": source}]},
    ]


@pytest.mark.parametrize("kind", range(4))
def test_marks_in_parts_of_other_blocks_are_counted(kind: int) -> None:
    history = marked(session(7), 14)
    block, without = holders(True)[kind], holders(False)[kind]
    history[14]["content"].insert(0, block)
    for view in (
        mask(history, cache_breakpoint="boundary", keep_results=2, mask_chunk=4).messages,
        loads(mask_json(dumps(history), cache_breakpoint="boundary", keep_results=2, mask_chunk=4).json),
    ):
        assert dumps(view).count(b'"cache_control"') == 2, "of four with two elsewhere"
        assert marks(view) == {8: MARK, 14: MARK}
        assert view[14]["content"][0] == without
