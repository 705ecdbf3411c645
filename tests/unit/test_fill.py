"""`fill`: what is kept of a history that is over the budget, and what the task and the summary get of it."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from random import Random
from typing import Any

import published
import pytest

import recede
from support import (
    ROOT,
    Message,
    assistant,
    call,
    contents,
    masked,
    reduce,
    result,
    system,
    tool_result,
    tool_use,
    turns,
    user,
)

MARKER = re.compile(r"\[… ([0-9]+) chars omitted …\]")


def failing(messages: list[Any], previous: str | None) -> str:
    raise ValueError("no summary")


def long(messages: list[Any], previous: str | None) -> str:
    return "word " * 999


def said(count: int, chars: int = 1) -> list[Message]:
    """Answers of the model, a unit each."""
    return [message for _ in range(count) for message in (assistant("a" * chars), user("u" * chars))]


# The cliff


@pytest.fixture(scope="module")
def session() -> list[Message]:
    messages: list[Message] = json.loads((ROOT / "examples" / "session.json").read_text())
    return messages


def test_a_token_less_than_the_masked_view_drops_next_to_nothing(session: list[Message]) -> None:
    assert published.reduce(session, max_input_tokens=20_078).dropped_count == 0
    design = published.reduce(session, max_input_tokens=20_077, fill=None)
    assert (design.dropped_count, design.chars_after) == (472, 2_662)
    evenly = published.reduce(session, max_input_tokens=20_077)
    assert (evenly.dropped_count, evenly.reduction_stage) == (0, "masking")
    assert evenly.chars_after > 4 * 20_000


def test_each_budget_is_used(session: list[Message]) -> None:
    for tokens in (16_000, 8_000, 4_000, 2_000):
        view = published.reduce(session, max_input_tokens=tokens)
        assert 0.6 * 4 * tokens < view.chars_after <= 4 * tokens


# Which entrances have it


def test_functions_fill_and_the_published_class_does_not() -> None:
    history = [user("task"), *said(50, 100), assistant("end")]
    size = {"max_input_chars": 5_000}
    evenly = published.reduce(history, **size)
    design = published.reduce(history, **size, fill=None)
    assert (len(evenly.messages), len(design.messages)) == (36, 5)
    assert recede.designs.HistoryReducer(**size).reduce(history).messages == design.messages
    assert recede.designs.HistoryReducer(**size, fill=0.9).reduce(history).messages == evenly.messages
    assert json.loads(published.reduce_json(json.dumps(history), **size).json) == evenly.messages
    stage = recede.designs.summarize_history(history)
    assert [len(stage.messages), len(recede.designs.truncate_history(history).messages)] == [5, 5]


# The window gives way


def test_results_in_the_window_are_masked_before_a_message_is_dropped() -> None:
    history = [user("task"), *turns(6, chars=1_000)]
    view = reduce(history, max_input_chars=2_500, preserve_recent_raw_turns=8)
    assert (view.reduction_stage, view.dropped_count, view.masked_count, view.boundary) == ("masking", 0, 4, 4)
    assert contents(view.messages)[-6:] == [None, masked(1_000), None, "x" * 1_000, None, "x" * 1_000]
    design = reduce(history, max_input_chars=2_500, preserve_recent_raw_turns=8, fill=None)
    assert design.dropped_count > 0


def test_the_newest_turn_is_never_masked_for_the_budget() -> None:
    history = [user("task"), *turns(5, chars=1_000), call("a", "b"), result("a", "x" * 500), result("b", "x" * 500)]
    view = reduce(history, max_input_chars=900)
    assert contents(view.messages)[2] == masked(1_000) and view.masked_count == 1
    assert contents(view.messages)[-2:] == ["x" * 500, "x" * 500]
    assert not view.within_limit


def test_exempt_results_are_not_masked_for_the_budget() -> None:
    history = [user("task"), call("1"), result("1", "x" * 900), call("2", name="read"), result("2", "x" * 900)]
    history += [call("3"), result("3", "x" * 100)]
    view = reduce(history, max_input_chars=1_900, preserve_recent_raw_turns=6, exclude_tools=["run"])
    assert (view.masked_count, view.tools["read"].masked) == (1, 1)


def test_without_masking_the_window_does_not_give_way() -> None:
    history = [user("task"), *turns(6, chars=1_000)]
    view = reduce(history, max_input_chars=3_000, preserve_recent_raw_turns=4, observation_masking=False)
    assert (view.masked_count, view.reduction_stage, view.dropped_count) == (0, "summarization", 8)


def test_with_a_least_gain_the_window_gives_way_until_that_is_reached_or_not_at_all() -> None:
    history = [user("task"), *turns(6, chars=1_000)]
    options: dict[str, Any] = {"preserve_recent_raw_turns": 12, "max_input_chars": 6_000}
    for least, count in ((0, 1), (967, 1), (2_000, 3), (4_835, 5), (4_836, 0)):
        assert reduce(history, **options, min_masked_chars=least).masked_count == count


# What is dropped: whole units, the oldest first


def test_the_newest_units_stay_as_far_as_the_budget_is_filled() -> None:
    # Half of 400 is 200: 4 for the task, 50 for a summary, 10 for the window, 136 for units of 10.
    history = [user("task"), *[assistant("a" * 10) if n % 2 else user("u" * 10) for n in range(1, 99)]]
    view = reduce(history, max_input_chars=400, fill=0.5, preserve_recent_raw_turns=1, summarizer=failing)
    assert view.messages == [history[0], *history[-14:]]


def test_a_unit_that_is_too_large_ends_it_also_where_an_older_one_would_fit() -> None:
    history = [user("task"), assistant("a" * 900), user("u"), assistant("b" * 900), user("end")]
    view = reduce(history, max_input_chars=1_100, preserve_recent_raw_turns=1, summarizer=failing)
    assert contents(view.messages) == ["task", "end"]


def kept(history: list[Message], budget: int) -> list[int]:
    """Which messages stay where all of the budget is filled, but for a summary that nobody writes."""
    options: dict[str, Any] = {"fill": 1.0, "preserve_recent_raw_turns": 1, "summarizer": failing}
    view = reduce(history, max_input_chars=budget, **options).messages
    return [place for place, message in enumerate(history) if any(message is other for other in view)]


def test_a_run_and_its_results_are_one_unit() -> None:
    history = [user("task"), assistant("o" * 300), user("q"), assistant("I see."), call("1", "2")]
    history += [result("1", "x"), result("2", "y"), assistant("u"), user("v")]
    # Of the budget a quarter is for a summary, 4 for the task, 1 for the window; 1 and 58 for the two newest units.
    assert kept(history, 86) == [0, 3, 4, 5, 6, 7, 8]
    assert kept(history, 85) == [0, 7, 8]


def test_runs_that_one_message_answers_are_one_unit() -> None:
    history = [user("task"), tool_use("1"), user("u" * 300), tool_use("2")]
    history += [user([tool_result("1", "late"), tool_result("2", "y")]), assistant("v" * 9)]
    # Of the budget a quarter is for a summary, 4 for the task, 9 for the window, 55 for the unit.
    assert kept(history, 91) == [0, 1, 3, 4, 5]
    assert kept(history, 90) == [0, 5]


@pytest.mark.parametrize("fill", [0.9, 0.51, 0.1])
def test_a_budget_that_is_one_larger_never_keeps_less(fill: float) -> None:
    # A long task, and units of one character: what the room holds is seen exactly. Shares rounded by themselves fail.
    history = [user("t" * 2_000), *[assistant("a") if n % 2 else user("u") for n in range(1, 20 + int(480 * fill))]]
    options: dict[str, Any] = {"fill": fill, "preserve_recent_raw_turns": 1, "summarizer": failing}
    counts = [len(published.reduce(history, max_input_chars=budget, **options).messages) for budget in range(906, 917)]
    assert counts == sorted(counts) and counts[-1] < len(history)


# The task


def test_the_task_stays_beside_a_summary_and_is_not_summarized() -> None:
    history = [system("s"), user("Fix the test."), *said(90, 20), user("end")]
    given: list[list[Message]] = []

    def summarizer(messages: list[Message], previous: str | None) -> str:
        given.append(messages)
        return "Tried much."

    view = reduce(history, max_input_chars=900, summarizer=summarizer)
    assert contents(view.messages)[:3] == ["s", "Conversation summary:\nTried much.", "Fix the test."]
    assert history[1] not in given[0]
    assert given[0] == history[2 : 2 + len(given[0])]
    assert len(view.messages) + len(given[0]) == len(history) + 1


def test_the_built_in_summary_leaves_out_the_objective_where_the_task_stays() -> None:
    history = [user("Fix the test."), *turns(30), user("end")]
    view = reduce(history, max_input_chars=900)
    assert view.reduction_stage == "summarization"
    assert "- objective:" not in view.messages[0]["content"] and "- outcome: run:" in view.messages[0]["content"]
    assert view.messages[1] is history[0]
    assert "- objective: Fix the test." in reduce(history, max_input_chars=900, fill=None).messages[0]["content"]


def test_a_long_task_is_cut_to_its_share() -> None:
    text = "".join(f"line {number}\n" for number in range(2_000))
    history = [user(text, name="kept"), *said(90, 20), user("end")]
    view = reduce(history, max_input_chars=4_000, summarizer=failing)
    cut = view.messages[0]
    found = MARKER.search(cut["content"])
    assert found is not None and len(cut["content"]) == 1_000
    beginning, end = cut["content"][: found.start()], cut["content"][found.end() :]
    assert text.startswith(beginning) and text.endswith(end) and len(beginning) - len(end) in (0, 1)
    assert int(found[1]) == len(text) - len(beginning) - len(end)
    assert list(cut) == list(history[0]) and cut["name"] == "kept"
    assert (view.masked_count, view.clipped_count, view.first_changed) == (0, 1, 0)


@pytest.mark.parametrize(("fill", "share"), [(1.0, 1_000), (0.5, 1_000), (0.4, 800), (0.1, 220)])
def test_the_share_of_the_task_is_half_of_what_is_filled_up_to_a_quarter(fill: float, share: int) -> None:
    history = [user("t" * 9_000), *said(90, 20), user("end")]
    view = reduce(history, max_input_chars=4_000, fill=fill, summarizer=failing)
    assert len(view.messages[0]["content"]) == share


def test_of_the_task_220_characters_stay_in_any_case() -> None:
    history = [user("t" * 9_000), *said(9, 400), user("end")]
    for budget in (0, 1, 900):
        view = reduce(history, max_input_chars=budget)
        assert view.messages[0]["role"] == "user" and len(view.messages[0]["content"]) == 220
    short = [user("t" * 100), *said(9, 400), user("end")]
    assert reduce(short, max_input_chars=0).messages[0] is short[0]


def test_the_newest_message_of_the_task_goes_first() -> None:
    # As Codex begins: the environment, then the task.
    history = [user("e" * 3_000), user("t" * 700), *said(60, 100), user("end")]
    options: dict[str, Any] = {"summarizer": failing, "preserve_recent_raw_turns": 1}
    for budget, sizes in ((12_000, [2_300, 700]), (3_040, [60, 700]), (3_036, [700]), (2_000, [500]), (100, [220])):
        view = reduce(history, max_input_chars=budget, **options)
        of_task = [message["content"] for message in view.messages[:-1] if message["content"][0] in "et"]
        assert [len(text) for text in of_task] == sizes


def test_where_the_agent_begins_the_first_user_message_is_the_task() -> None:
    history = [assistant("Hello."), user("Fix the test."), *said(60, 100), user("end")]
    view = reduce(history, max_input_chars=2_000, summarizer=failing)
    assert view.messages[0] is history[1]


def test_a_task_in_parts_with_an_image_is_cut_to_text() -> None:
    parts = [{"type": "text", "text": "a" * 500}, {"type": "image_url"}, {"type": "text", "text": "b" * 500}]
    history = [user(parts), *said(60, 100), user("end")]
    view = reduce(history, max_input_chars=2_000, summarizer=failing)
    [part] = view.messages[0]["content"]
    assert part == {"type": "text", "text": "a" * 238 + "[… 6924 chars omitted …]" + "b" * 238}
    wide = reduce(history, max_input_chars=6_000, summarizer=failing)
    assert wide.messages[0]["content"][0]["text"] == "a" * 500 + "b" * 500 + "[… 6400 chars omitted …]"


def test_before_a_message_of_the_task_that_is_cut_none_is_shown() -> None:
    # Cut, the newest has 74 characters of 500. Were the older one shown, a budget for the image would drop it.
    image = [{"type": "text", "text": "t" * 50}, {"type": "image_url"}]
    history = [user("e" * 300), user(image), *said(60, 100), user("end")]
    view = reduce(history, max_input_chars=2_000, summarizer=failing)
    assert view.messages[0]["content"] == [{"type": "text", "text": "t" * 50 + "[… 6400 chars omitted …]"}]
    assert history[0] not in view.messages


MARK = {"type": "ephemeral"}
LONG = "é" * 3_000
CUT = "é" * 238 + "[… 2524 chars omitted …]" + "é" * 238
CUT_IMAGE = "é" * 238 + "[… 8924 chars omitted …]" + "é" * 238
TEXT, IMAGE, OTHER = {"type": "text", "text": LONG}, {"type": "image", "source": {}}, {"type": "thinking", "é": [1, {}]}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # What does not count stays, the part with the text keeps its fields.
        ([OTHER, {"x": 1, **TEXT}, OTHER], [OTHER, {"x": 1, "type": "text", "text": CUT}, OTHER]),
        ([IMAGE, TEXT, OTHER], [{"type": "text", "text": CUT_IMAGE}, OTHER]),
        # All text is in the first part that has some.
        (
            [
                {"type": "text", "text": ""},
                {"type": "text", "text": LONG[:2_000]},
                OTHER,
                {**TEXT, "text": LONG[2_000:]},
            ],
            [{"type": "text", "text": ""}, {"type": "text", "text": CUT}, OTHER],
        ),
        # It takes over the last mark of those that go, unless it has one.
        (
            [{**TEXT, "text": LONG[:9]}, {**TEXT, "text": LONG[9:], "cache_control": MARK}],
            [{"type": "text", "text": CUT, "cache_control": MARK}],
        ),
        (
            [TEXT, {**IMAGE, "cache_control": MARK}, {**OTHER, "cache_control": {"type": "two"}}],
            [
                {**TEXT, "text": CUT_IMAGE, "cache_control": MARK},
                {**OTHER, "cache_control": {"type": "two"}},
            ],
        ),
        (
            [{**TEXT, "cache_control": MARK}, {**IMAGE, "cache_control": {"type": "other"}}],
            [{**TEXT, "text": CUT_IMAGE, "cache_control": MARK}],
        ),
        # Before or after a part with a type, one without is no text, or is.
        ([TEXT, {"text": "untyped"}], [{**TEXT, "text": CUT.replace("2524", "2542")}]),
        ([{"text": "é"}, {"type": "x", "text": LONG[1:]}, {"cachePoint": 1}], [{"text": CUT}, {"cachePoint": 1}]),
    ],
)
def test_a_cut_task_keeps_its_other_parts_and_its_mark(parts: list[Message], expected: list[Message]) -> None:
    history = [user(parts), *said(60, 100), user("end")]
    view = reduce(history, max_input_chars=2_000, summarizer=failing)
    assert view.messages[0]["content"] == expected
    assert view.chars_after == recede.count_chars(view.messages)
    assert [list(part) for part in view.messages[0]["content"]] == [list(part) for part in expected]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            {"role": "user", "content": [{"text": LONG}, {"image": {}}, {"cachePoint": {"type": "default"}}]},
            {"role": "user", "content": [{"text": CUT_IMAGE}, {"cachePoint": {"type": "default"}}]},
        ),
        (
            {"parts": [{"fileData": {}}, {"text": "a thought", "thought": True}, {"text": LONG}], "role": "user"},
            {"parts": [{"text": "a thought", "thought": True}, {"text": CUT_IMAGE}], "role": "user"},
        ),
        (
            {"role": "user", "content": [{"type": "input_text", "text": LONG}, {"type": "thinking", "x": ""}]},
            {"role": "user", "content": [{"type": "input_text", "text": CUT}, {"type": "thinking", "x": ""}]},
        ),
    ],
    ids=["converse", "gemini", "responses"],
)
def test_parts_of_other_shapes_stay_too(task: Message, expected: Message) -> None:
    view = reduce([task, *said(60, 100), user("end")], max_input_chars=2_000, summarizer=failing)
    assert view.messages[0] == expected
    assert view.chars_after == recede.count_chars(view.messages)


def test_a_task_of_images_alone_becomes_a_text() -> None:
    view = reduce([user([IMAGE, OTHER]), *said(60, 100), user("end")], max_input_chars=2_000, summarizer=failing)
    assert view.messages[0]["content"] == "[… 6400 chars omitted …]"


def test_bytes_of_the_parts_of_a_cut_task_stay() -> None:
    image = '{"type":"image","cache_control": {"type":  "e"} }'
    parts = '[ {"é" :1.0,"text" :"%s","type":"text" } , ' + image + ',{"type": "thinking" } ]'
    raw = '[{"role":"user","content" : ' + parts % ("\\u00e9" * 3_000) + " }," + json.dumps(said(60, 100))[1:]
    view = published.reduce_json(raw, max_input_chars=2_000, summarizer=failing).json.decode()
    text = "\\u00e9" * 238 + "[… 8924 chars omitted …]" + "\\u00e9" * 238
    part = '{"é" :1.0,"text" :"%s","type":"text" ,"cache_control":{"type":  "e"}}' % text
    assert view.startswith('[{"role":"user","content" : [' + part + ',{"type": "thinking" }] }')


@pytest.mark.parametrize(
    ("task", "field"),
    [
        ({"role": "user", "parts": [{"text": "é" * 3_000}], "note": 1}, "parts"),
        ({"role": "user", "content": [{"text": "é" * 1_500}, {"text": "é" * 1_500}], "note": 1}, "content"),
        ({"note": 1, "role": "user", "content": [{"type": "text", "text": "é" * 3_000}]}, "content"),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "é" * 3_000}]},
            "content",
        ),
        ({"role": "user", "content": "é" * 3_000}, "content"),
    ],
    ids=["gemini", "converse", "anthropic", "responses", "chat"],
)
def test_a_cut_task_is_written_as_its_shape_has_it(task: Message, field: str) -> None:
    history = [task, *said(60, 100), user("end")]
    cut = reduce(history, max_input_chars=2_000, summarizer=failing).messages[0]
    text = "é" * 238 + "[… 2524 chars omitted …]" + "é" * 238
    of_parts = isinstance(task[field], list)
    assert cut == {**task, field: [{**task[field][0], "text": text}] if of_parts else text}
    assert list(cut) == list(task)


def test_bytes_of_a_cut_task_keep_their_escapes() -> None:
    escaped = "\\u00e9\\ud83d\\ude00" * 500
    raw = f'[{{"role" : "user",\n "content" :  "{escaped}" , "x":1.0}},' + json.dumps(said(60, 100))[1:]
    view = published.reduce_json(raw, max_input_chars=2_000, summarizer=failing).json.decode()
    pair = "\\u00e9\\ud83d\\ude00"
    text = pair * 119 + "\\u00e9" + "[… 523 chars omitted …]" + pair * 119
    assert view.startswith(f'[{{"role" : "user",\n "content" :  "{text}" , "x":1.0}},')


# The summary


def test_a_summary_has_a_quarter_of_what_is_filled_at_most() -> None:
    history = [user("task"), *said(60, 100), user("end")]

    for budget, chars in ((2_000, 450), (9_000, 1_400)):
        summary = reduce(history, max_input_chars=budget, summarizer=long).messages[0]["content"]
        assert len(summary) == chars and summary.startswith("Conversation summary:\nword")
    tail = {"preserve_recent_raw_turns": 1}
    assert reduce(history, max_input_chars=133, summarizer=long, **tail).reduction_stage == "fallback"
    assert reduce(history, max_input_chars=134, summarizer=long, **tail).reduction_stage == "summarization"


def test_a_reserved_summary_that_is_short_changes_nothing_that_is_kept() -> None:
    history = [user("task"), *said(60, 100), user("end")]
    short = reduce(history, max_input_chars=4_000, summarizer=lambda messages, previous: "s").messages
    failed = reduce(history, max_input_chars=4_000, summarizer=failing)
    assert short[1:] == failed.messages
    assert (failed.reduction_stage, failed.within_limit) == ("fallback", True)
    assert isinstance(failed.summarizer_error, ValueError)


def test_where_the_window_is_over_the_budget_nobody_is_asked() -> None:
    asked = []
    history = [user("task"), *said(9, 100), user("end" * 900)]
    view = reduce(history, max_input_chars=1_000, summarizer=lambda messages, previous: asked.append(1) or "s")
    assert (asked, view.reduction_stage, view.within_limit) == ([], "fallback", False)


@pytest.mark.parametrize("of_role", [system, user])
def test_an_earlier_summary_is_replaced_and_stays_where_there_is_no_new_one(of_role: Any) -> None:
    earlier = of_role("Conversation summary:\n- objective: old\n- outcome: run: ok")
    history = [system("s"), earlier, user("task"), *said(60, 100), user("end")]
    seen: list[str | None] = []

    def summarizer(messages: list[Message], previous: str | None) -> str:
        seen.append(previous)
        assert earlier not in messages
        return "new"

    view = reduce(history, max_input_chars=4_000, summarizer=summarizer)
    assert contents(view.messages)[:3] == ["s", "Conversation summary:\nnew", "task"]
    assert set(seen) == {"- objective: old\n- outcome: run: ok"}
    failed = reduce(history, max_input_chars=4_000, summarizer=failing)
    assert failed.messages[:3] == history[:3]
    assert "- objective:" not in reduce(history, max_input_chars=4_000).messages[1]["content"]


def test_an_earlier_summary_that_does_not_fit_goes() -> None:
    earlier = system("Conversation summary:\n" + "- outcome: run: ok\n" * 50)
    history = [earlier, user("task"), *said(60, 100), user("end")]
    view = reduce(history, max_input_chars=1_000, summarizer=failing)
    assert (view.messages[0], view.within_limit) == (history[1], True)


def test_earlier_summaries_that_are_all_there_is_stay() -> None:
    history = [user("Conversation summary:\n" + "- outcome: run: ok\n" * 50)]
    assert reduce(history, max_input_chars=100, fill=0.9, keep_messages=0).messages == history


def test_a_summary_has_what_the_window_and_the_task_leave() -> None:
    history = [user("task"), *said(60, 100), user("e" * 900)]
    for budget, chars in ((904 + 29, 0), (904 + 30, 30), (904 + 100, 100), (904 + 300, 270)):
        view = reduce(history, max_input_chars=budget, preserve_recent_raw_turns=1, summarizer=long)
        first = view.messages[0]["content"]
        assert len(first if first.startswith("Conversation summary:") else "") == chars


def test_nobody_is_asked_for_a_summary_that_has_no_room() -> None:
    asked: list[int] = []

    def counted(messages: list[Message], previous: str | None) -> str:
        asked.append(len(messages))
        return "s"

    history = [user("task"), *said(60, 100), user("e" * 900)]
    for budget in (904 + 29, 904 + 30):
        published.reduce(history, max_input_chars=budget, preserve_recent_raw_turns=1, summarizer=counted)
    assert asked == [120]


def test_a_summary_may_be_as_long_as_what_is_dropped_and_cut_off_the_task() -> None:
    history = [user("t" * 3_000), assistant("a" * 10), user("u" * 200), *said(2, 100)]
    summary = "Conversation summary:\n" + "s" * 278
    view = reduce(history, max_input_chars=1_400, summarizer=lambda messages, previous: summary)
    assert contents(view.messages)[0] == summary and view.dropped_count == 2


def test_an_earlier_summary_stays_where_it_fits_to_the_character() -> None:
    earlier = system("Conversation summary:\n- outcome: run: ok")
    history = [earlier, user("task"), *said(60, 100), user("e" * 900)]
    for budget, first in ((904 + 40, earlier), (904 + 39, history[1])):
        view = reduce(history, max_input_chars=budget, fill=0.1, preserve_recent_raw_turns=1, summarizer=failing)
        assert (view.messages[0], view.within_limit) == (first, True)


def test_with_strict_pairs_an_orphan_of_the_window_leaves_no_summary() -> None:
    history = [user("task"), *said(60, 100), result("of no call", "x"), user("end")]
    assert reduce(history, max_input_chars=2_000).reduction_stage == "summarization"
    assert reduce(history, max_input_chars=2_000, strict_pairs=True).reduction_stage == "fallback"


# Token counters


def test_with_a_counter_a_cut_task_and_a_summary_cost_what_it_says() -> None:
    history = [user("word " * 2_000), *said(60, 100), user("end")]
    counted: list[str] = []

    def words(text: str) -> int:
        counted.append(text)
        return len(text.split())

    view = published.reduce(history, max_input_tokens=400, token_counter=words, fill=0.5)
    cut = next(message for message in view.messages if "word " in message["content"])
    assert MARKER.search(cut["content"]) and cut["content"] in counted
    assert 60 < len(cut["content"].split()) <= 100
    assert view.within_limit and sum(len(message["content"].split()) for message in view.messages) <= 400


def test_with_a_counter_a_character_of_the_task_costs_as_much_as_on_average() -> None:
    """What is decided depends on no text of a view; what that costs is told."""
    history = [user("a b " * 500 + "x" * 20_000 + " c d" * 500), *said(60, 100), user("end")]
    view = published.reduce(history, max_input_tokens=1_000, token_counter=lambda text: len(text.split()), fill=0.4)
    [cut] = [message["content"] for message in view.messages if "omitted" in message["content"]]
    # Half of 0.4 of 1,000, of a text with 2,001.
    assert len(cut) == len(history[0]["content"]) * 200 // 2_001
    assert len(cut.split()) > 1_000 and not view.within_limit


@pytest.mark.parametrize(("dear", "chars"), [("omitted", 400), ("word", 220)])
def test_a_counter_that_never_has_enough_is_asked_once_for_each_text(dear: str, chars: int) -> None:
    history = [user("word " * 2_000), *said(60, 100), user("end")]
    view = published.reduce(
        history, max_input_tokens=400, token_counter=lambda text: 10**6 if dear in text else len(text) // 4
    )
    assert not view.within_limit
    [task] = [message["content"] for message in view.messages if "word" in message["content"]]
    assert len(task) == chars


def test_with_a_counter_a_summary_that_costs_more_than_its_share_is_cut_again() -> None:
    history = [user("task"), *said(60, 100), user("end")]
    view = published.reduce(
        history, max_input_tokens=1_000, token_counter=len, summarizer=long, preserve_recent_raw_turns=1
    )
    # A quarter of 0.9 of 1,000.
    assert view.reduction_stage == "summarization"
    assert 30 < len(view.messages[0]["content"]) <= 225


def test_a_short_task_stays_whole_whatever_it_costs() -> None:
    history = [user("first"), user("t" * 200), *said(60, 100), user("end")]
    view = published.reduce(
        history, max_input_tokens=400, token_counter=lambda text: 10**6 if "tt" in text else len(text) // 4
    )
    assert history[1] in view.messages and history[0] not in view.messages


def test_a_text_that_costs_more_is_cut_by_a_quarter_and_one_at_least() -> None:
    history = [user("task"), *said(60, 100), user("end")]
    asked: list[int] = []

    def counter(text: str) -> int:
        if text.startswith("Conversation summary:"):
            asked.append(len(text))
            return 226 if len(text) > 170 else 170
        return len(text)

    published.reduce(
        history, max_input_tokens=1_000, token_counter=counter, summarizer=long, preserve_recent_raw_turns=1
    )
    expected = [len("Conversation summary:\n" + long([], None))]
    while expected[-1] > 170:
        expected.append(expected[-1] - expected[-1] // 4 - 1)
    assert asked == expected


@pytest.mark.parametrize("has_summarizer", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_roles_alternate_in_converse_at_each_limit(seed: int, has_summarizer: bool) -> None:
    rng = Random(seed)
    messages: list[Any] = []
    for question in range(6):
        messages.append({"role": "user", "content": [{"text": "Why? " * rng.randint(1, 60)}]})
        for number in range(rng.randint(0, 3)):
            use = {"toolUseId": f"{question}.{number}", "name": "run", "input": {}}
            of_call = {"toolUseId": use["toolUseId"], "content": [{"text": "x" * rng.randint(0, 900)}]}
            messages.append({"role": "assistant", "content": [{"toolUse": use}]})
            messages.append({"role": "user", "content": [{"toolResult": of_call}]})
        messages.append({"role": "assistant", "content": [{"text": "So. " * rng.randint(1, 60)}]})
    messages.append({"role": "user", "content": [{"text": "And now?"}]})
    options: dict[str, Any] = {"keep": 1, "summarizer": (lambda *_: "Done.") if has_summarizer else None}
    for limit in range(30, 1_200, 30):
        view = recede.reduce(messages, max_input_tokens=limit, **options).messages
        roles = [message["role"] for message in view]
        assert all(one != other for one, other in pairwise(roles)), (limit, roles)
        assert view[-1] == messages[-1]
