"""What a reduction says about itself."""

from __future__ import annotations

import published

import recede
from recede.reduction import ToolReport
from recede.types import Finding, PairReport
from support import assistant, call, dumps, mask, reduce, result, system, tool_result, tool_use, turns, user


def test_figures_before_and_after() -> None:
    reduction = mask([user("task"), *turns(3)], keep_results=1)
    assert (reduction.chars_before, reduction.chars_after) == (4 + 3 * 125, 4 + 3 * 125 - 2 * 68)
    assert (reduction.masked_count, reduction.masked_chars, reduction.dropped_count) == (2, 136, 0)
    assert reduction.turns == 3


def test_chars_after_are_those_of_the_view() -> None:
    history = [system("s"), user("task"), *turns(9, chars=300), assistant("end")]
    for budget in (9_999, 2_000, 1_000, 700, 200, 0):
        reduction = reduce(history, max_input_chars=budget)
        assert reduction.chars_after == recede.count_chars(reduction.messages)
        assert reduction.chars_before == recede.count_chars(history)
        assert reduction.within_limit is (reduction.chars_after <= budget)


def test_tools_in_order_of_their_first_observation() -> None:
    history = [
        call("1", name="b"),
        call("2", name="a"),
        call("3", name="unused"),
        result("2", "x" * 100),
        result("1", "x" * 50),
        result("nobody", "x" * 40),
        result("1", "ok"),
    ]
    reduction = mask(history, keep_results=0)
    assert list(reduction.tools.items()) == [
        ("a", ToolReport(1, 1, 100, 68)),
        ("b", ToolReport(2, 1, 52, 50 - 31)),
        ("", ToolReport(1, 1, 40, 40 - 31)),
    ]
    assert reduction.masked_chars == sum(tool.removed_chars for tool in reduction.tools.values())


def test_tools_count_images_and_are_there_when_nothing_was_masked() -> None:
    history = [
        tool_use("1", name="look"),
        user([tool_result("1", [{"type": "image"}, {"type": "text", "text": "abc"}])]),
    ]
    assert mask(history, keep_results=1).tools == {"look": ToolReport(1, 0, 6_403, 0)}
    # "[observation masked — 3 chars, 1 images]" has 40 characters.
    assert mask(history, keep_results=0).tools == {"look": ToolReport(1, 1, 6_403, 6_363)}
    assert reduce(history, max_input_chars=9_999, image_chars=7).tools == {"look": ToolReport(1, 0, 10, 0)}


def test_first_changed_is_the_first_message_that_differs() -> None:
    history = [user("task"), *turns(4)]
    assert mask(history, keep_results=0).first_changed == 2
    assert mask(history, keep_results=4).first_changed is None
    assert mask(history, keep_results=0, keep_by_tool={"run": 4}).first_changed is None
    history[2]["content"] = "ok"
    assert mask(history, keep_results=0).first_changed == 4


def test_first_changed_where_messages_are_dropped() -> None:
    history = [system("s"), user("task"), assistant("a"), user("b"), user("last")]
    assert recede.designs.truncate_history(history, preserve_recent_raw_turns=1).first_changed == 2
    assert recede.designs.truncate_history(history, preserve_recent_raw_turns=2).first_changed == 2
    assert recede.designs.truncate_history(history, preserve_recent_raw_turns=3).first_changed is None


def test_first_changed_of_a_prefix_is_its_length() -> None:
    history = [user("task"), assistant("a"), assistant("b")]
    reduction = recede.designs.truncate_history(history, preserve_recent_raw_turns=0)
    assert reduction.messages == [history[0]]
    assert reduction.first_changed == 1


def test_first_changed_of_a_summary_is_its_place() -> None:
    history = [system("s"), user("x" * 900), user("last")]
    reduction = recede.designs.summarize_history(history, preserve_recent_raw_turns=1)
    assert reduction.first_changed == 1


def test_a_message_equal_to_another_is_still_another() -> None:
    history = [user("same"), user("same"), user("same")]
    reduction = recede.designs.truncate_history(history, preserve_recent_raw_turns=1)
    assert reduction.messages == [history[0], history[2]]
    assert reduction.dropped_count == 1
    assert reduction.messages[1] is history[2]


def test_orphans_are_reported_where_nothing_was_done() -> None:
    assert reduce([result("nobody", "x")], max_input_chars=99).orphans == (0,)
    assert reduce([call("1"), user("")], max_input_chars=99, enabled=False).orphans == (0,)


def test_turns_are_runs() -> None:
    history = [user(""), assistant(""), assistant(""), user(""), call("1"), result("1", ""), assistant("")]
    assert reduce(history, max_input_chars=99).turns == 3
    assert reduce([user("")], max_input_chars=99).turns == 0


def test_reductions_are_the_same_by_value() -> None:
    history = turns(5)
    assert mask(history, keep_results=1) == mask(turns(5), keep_results=1)
    assert published.mask_observations_json(dumps(history), keep_results=1)._fields[1:] == recede.Reduction._fields[1:]


def test_repr_is_one_line() -> None:
    history = [result("nobody", "x" * 90), *turns(3)]
    assert repr(mask(history, keep_results=1)) == (
        "<Reduction: 7 messages, stage='masking', chars 465 -> 270, masked 3, dropped 0, orphans 1>"
    )
    assert repr(reduce(turns(1), max_input_chars=3)) == (
        "<Reduction: 2 messages, stage='fallback', chars 125 -> 125, masked 0: the only result is in the window, "
        "or not shown yet (a smaller keep masks sooner), dropped 0, OVER LIMIT>"
    )

    def broken(messages: object, previous: object) -> str:
        raise ValueError("no")

    reduction = published.reduce_json(
        b'[{"content":"x"},{"content":"y"}]', max_input_chars=1, preserve_recent_raw_turns=1
    )
    assert repr(reduction).startswith("<JsonReduction: ")
    broken_one = reduce(
        [user("x" * 99), user("y")], max_input_chars=9, fill=None, preserve_recent_raw_turns=1, summarizer=broken
    )
    assert "summarizer_error=ValueError('no')" in repr(broken_one)


def test_pair_report() -> None:
    findings = (Finding("open_call", 3, "a"), Finding("result_without_call", 0, None), Finding("not_adjacent", 1, "b"))
    report = PairReport(findings)
    assert report.orphans == (findings[1],)
    assert not report.is_whole
    assert PairReport(findings[:1]).is_whole
    assert PairReport(()).is_whole
