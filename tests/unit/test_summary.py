"""Stage 2: the built-in summary, the callback, and summaries of earlier reductions."""

from __future__ import annotations

from typing import Any

import published
import pytest

import recede
import support
from support import (
    Message,
    assistant,
    call,
    dumps,
    facts,
    function_call,
    function_call_output,
    loads,
    masked,
    result,
    system,
    tool_result,
    tool_use,
    turns,
    user,
)

HEAD = "Conversation summary:"


def reduce(messages: list[Any], **options: Any) -> recede.Reduction:
    """By the published rule."""
    return support.reduce(messages, **{"fill": None, **options})


def summarize(history: list[Message], **options: Any) -> recede.Reduction:
    return recede.designs.summarize_history(history, **{"preserve_recent_raw_turns": 1, **options})


def summary_of(history: list[Message], **options: Any) -> list[str]:
    """The lines of the built-in summary of everything but an added last message."""
    # The last one is neither a task nor part of a run.
    filler = [assistant("filler " * 400), {"role": "critic", "content": "last"}]
    reduction = summarize([*history, *filler], **options)
    assert reduction.reduction_stage == "summarization"
    (summary,) = [message for message in reduction.messages if str(message["content"]).startswith(HEAD)]
    return str(summary["content"]).split("\n")


# The built-in summary


def test_it_has_lines_for_objective_unresolved_outcome_and_constraint() -> None:
    history = [
        user("Fix the test.", tags=["constraint"]),
        assistant("Is it flaky?", tags=["unresolved"]),
        call("1", name="bash"),
        result("1", "2 failed"),
        result("nobody", "1 passed"),
        user("Do not touch the API.", tags=["other", "constraint"]),
    ]
    assert summary_of(history) == [
        HEAD,
        "- objective: Fix the test.",
        "- unresolved: Is it flaky?",
        "- outcome: bash: 2 failed",
        "- outcome: 1 passed",
        "- constraint: Fix the test.",
        "- constraint: Do not touch the API.",
    ]


def test_with_nothing_to_say_it_is_its_first_line() -> None:
    assert summary_of([assistant("no user, no tools")]) == [HEAD]


def test_it_is_deterministic() -> None:
    history = [user("task", tags=["constraint", "unresolved"]), *turns(9)]
    assert summary_of(history) == summary_of(history)


def test_white_space_runs_become_one_space() -> None:
    spaces = " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2005\u200a\u2028\u2029\u202f\u205f\u3000"
    history = [user(spaces + "a" + spaces + "b" + spaces), call("1"), result("1", "x\n\n  y")]
    assert summary_of(history) == [HEAD, "- objective: a b", "- outcome: run: x y"]
    assert summary_of([user("a\u200bb\u2060c\ufeffd\x08e")])[1] == "- objective: a\u200bb\u2060c\ufeffd\x08e"


def test_a_late_result_of_a_hidden_call_is_shown_then_told() -> None:
    history = [user("Go."), *turns(40, 200)]
    before = recede.reduce(history, max_input_tokens=500).messages
    assert before[0]["content"].startswith("Conversation summary:\n- outcome: run: ")
    history.append(result("0", "a late word"))
    view = recede.reduce(history, max_input_tokens=500).messages
    assert call("0") not in before and call("0") in view and history[-1] in view
    history += [assistant("y" * 1_200), user("And now?")]
    assert "- outcome: run: a late word" in recede.reduce(history, max_input_tokens=500).messages[0]["content"]


def test_texts_are_cut() -> None:
    history = [
        user("é" * 300, tags=["constraint"]),
        assistant("u" * 300, tags=["unresolved"]),
        call("1"),
        result("1", "o" * 300),
    ]
    assert summary_of(history) == [
        HEAD,
        "- objective: " + "é" * 220,
        "- unresolved: " + "u" * 120,
        "- outcome: run: " + "o" * 120,
        "- constraint: " + "é" * 120,
    ]


def test_up_to_6_unresolved_6_outcomes_and_8_constraints_the_latest() -> None:
    history = [user("task")]
    for number in range(20):
        history += [
            assistant(f"q{number}", tags=["unresolved"]),
            user(f"c{number}", tags=["constraint"]),
            call(str(number)),
            result(str(number), f"o{number}"),
        ]
    assert summary_of(history) == [
        HEAD,
        "- objective: task",
        *[f"- unresolved: q{number}" for number in range(14, 20)],
        *[f"- outcome: run: o{number}" for number in range(14, 20)],
        *[f"- constraint: c{number}" for number in range(12, 20)],
    ]


def test_doubles_and_empty_lines_are_left_out() -> None:
    history = [
        user("task"),
        *[assistant("again", tags=["unresolved"]), assistant(" again\n", tags=["unresolved"])],
        assistant(" \n", tags=["unresolved", "constraint"]),
        call("1", "2", "3", "4"),
        result("1", "ok"),
        result("2", " ok "),
        result("3", ""),
        result("4", "no"),
    ]
    assert summary_of(history) == [
        HEAD,
        "- objective: task",
        "- unresolved: again",
        "- outcome: run: ok",
        "- outcome: run: no",
    ]


def test_doubles_do_not_count_for_the_newest() -> None:
    history = [user("task")]
    for number, text in enumerate(["a", "b", "c", "d", "e", "f", "f", "f", "f"]):
        history += [call(str(number)), result(str(number), text)]
    assert summary_of(history)[2:] == [f"- outcome: run: {text}" for text in "abcdef"]


def test_outcomes_come_from_the_observations_not_from_their_placeholders() -> None:
    history = [user("task " * 40), call("1"), result("1", "FAILED " * 100), assistant("x" * 500), user("end")]
    reduction = reduce(history, max_input_chars=450, preserve_recent_raw_turns=1)
    assert reduction.reduction_stage == "summarization"
    summary = reduction.messages[0]["content"]
    assert ("FAILED " * 100)[:120] in summary
    assert "masked" not in summary
    assert reduction.masked_count == 1


def test_tags_are_a_list_of_strings() -> None:
    for tags in ("unresolved", {"unresolved": 1}, None, [["unresolved"]], ["Unresolved"], [None, 5]):
        assert summary_of([user("task"), assistant("q", tags=tags)]) == [HEAD, "- objective: task"]
    assert "- unresolved: q" in summary_of([user("task"), assistant("q", tags=[None, 5, "unresolved"])])


def test_only_dropped_messages_are_summarized_but_the_objective_is_the_first_user_message() -> None:
    history = [user("task"), assistant("x " * 400), user("kept", tags=["constraint"])]
    (summary, _) = summarize(history).messages
    assert summary["content"] == f"{HEAD}\n- objective: task"


def test_a_tagged_message_gives_its_text_in_all_its_pieces() -> None:
    blocks = [{"type": "text", "text": "one "}, {"type": "image"}, {"type": "text", "text": "two"}]
    assert "- constraint: one two" in summary_of([user(blocks, tags=["constraint"])])


def test_anthropic_and_responses_outcomes() -> None:
    history = [
        user("task"),
        tool_use("1", name="grep"),
        user([tool_result("1", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])]),
        function_call("2", "ls"),
        function_call_output("2", "c"),
        function_call_output("2", {"not": "text"}),
    ]
    lines = summary_of(history)
    assert lines[2].startswith("- outcome: grep: a")
    assert lines[3:] == ["- outcome: ls: c"]


# Where it stands, and in which role


def test_it_stands_right_after_the_leading_system_messages() -> None:
    history = [
        system("one"),
        {"role": "developer", "content": "two"},
        user("task " * 50),
        system("three"),
        assistant("old"),
        user("last"),
    ]
    view = summarize(history, summarizer=lambda messages, previous: "s").messages
    assert view == [history[0], history[1], system(f"{HEAD}\ns"), history[3], history[5]]


def test_role_is_system_or_user_where_the_provider_wants_it() -> None:
    end = user("end")
    for extra, role in (
        ([], "system"),
        (turns(1), "system"),
        ([tool_use("1"), user([tool_result("1", "")])], "user"),
        ([function_call("1"), function_call_output("1", "")], "user"),
        ([{"type": "reasoning"}, user("go on")], "user"),
        ([{"type": "web_search_call"}], "user"),
        ([{"type": "message", "role": "assistant", "content": "x"}], "system"),
    ):
        view = summarize([user("task " * 50), *extra, end], summarizer=lambda messages, previous: "s").messages
        assert view == [{"role": role, "content": f"{HEAD}\ns"}, end]


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
def test_summary_role_decides_otherwise(role: str) -> None:
    history = [user("task " * 50), tool_use("1"), user([tool_result("1", "")]), assistant("end")]
    view = summarize(history, summarizer=lambda messages, previous: "s", summary_role=role).messages
    assert view[0] == {"role": role, "content": f"{HEAD}\ns"}


# Clipping


def test_it_is_clipped() -> None:
    history = [user("x" * 3_000), *turns(8, chars=300), assistant("end")]
    for limit in (30, 100, 300):
        content = summarize(history, summary_max_chars=limit).messages[0]["content"]
        assert len(content) == limit
        assert content.startswith(HEAD + "\n- objective"[: limit - 21])
    own = summarize(history, summary_max_chars=40, summarizer=lambda messages, previous: "é" * 100)
    assert own.messages[0]["content"] == f"{HEAD}\n" + "é" * 18


def test_it_is_clipped_at_1400_chars() -> None:
    own = summarize([user("x" * 9_000), assistant("end")], summarizer=lambda messages, previous: "é" * 5_000)
    assert own.messages[0]["content"] == f"{HEAD}\n" + "é" * (1_400 - 22)


def test_it_must_be_shorter_than_what_it_replaces() -> None:
    def three(messages: list[Any], previous: str | None) -> str:
        return "abc"

    # With its first line: 25 characters.
    for chars, stage in ((26, "summarization"), (25, None), (10, None)):
        history = [user("x" * chars), assistant("end")]
        reduction = summarize(history, summarizer=three)
        assert reduction.reduction_stage == stage
        if stage is None:
            assert reduction.messages is history


def test_with_nothing_to_summarize_the_input_comes_back() -> None:
    for history in ([], [system("s"), user("u")], [system("s")]):
        reduction = summarize(history, preserve_recent_raw_turns=5)
        assert reduction.messages is history
        assert (reduction.reduction_stage, reduction.reduced) == (None, False)


# The callback


def test_the_summarizer_gets_the_unmasked_messages_to_be_dropped() -> None:
    history = [system("s"), user("task"), call("1"), result("1", "x" * 900), call("2"), result("2", "y"), user("last")]
    seen: list[tuple[list[Any], str | None]] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        seen.append((messages, previous))
        return "done"

    options: dict[str, Any] = {"max_input_chars": 60, "preserve_recent_raw_turns": 1, "fill": None}
    reduction = published.reduce(history, **options, summarizer=summarizer)
    assert reduction.reduction_stage == "summarization"
    assert seen == [(history[1:6], None)]
    assert all(ours is theirs for ours, theirs in zip(seen[0][0], history[1:6], strict=True))
    published.reduce_json(dumps(history), **options, summarizer=summarizer)
    assert seen[1] == seen[0]


def test_the_summarizer_is_not_called_without_need() -> None:
    def summarizer(messages: list[Any], previous: str | None) -> str:
        raise AssertionError("called")

    history = [user("task"), *turns(6, chars=300)]
    for options in ({"max_input_chars": 99_999}, {"max_input_chars": 1_500}, {"max_input_chars": 1, "enabled": False}):
        assert published.reduce(history, **options, summarizer=summarizer).summarizer_error is None
    reduction = published.reduce(history[:3], max_input_chars=1, fill=None, summarizer=summarizer)
    assert reduction.reduction_stage == "fallback" and reduction.summarizer_error is None


def test_the_first_line_is_put_before_its_text_once() -> None:
    history = [user("x" * 900), assistant("end")]
    for text, content in (
        ("done", f"{HEAD}\ndone"),
        (f"{HEAD}\ndone", f"{HEAD}\ndone"),
        (HEAD, HEAD),
        (f"{HEAD} done", f"{HEAD}\n{HEAD} done"),
        ("a\n\n  b\n", f"{HEAD}\na\n\n  b\n"),
    ):
        view = summarize(history, summarizer=lambda messages, previous, text=text: text).messages
        assert view[0]["content"] == content


def test_a_summarizer_that_raises_leads_to_the_next_stage_and_its_error_is_kept() -> None:
    history = [user("task"), assistant("old " * 100), user("next"), assistant("end")]
    options: dict[str, Any] = {"max_input_chars": 100, "preserve_recent_raw_turns": 1, "fill": None}
    error = RuntimeError("no network")

    def summarizer(messages: list[Any], previous: str | None) -> str:
        raise error

    for reduction in (
        published.reduce(history, **options, summarizer=summarizer),
        published.reduce_json(dumps(history), **options, summarizer=summarizer),
    ):
        assert reduction.summarizer_error is error
        assert reduction.reduction_stage == "fallback"
    alone = summarize(history, summarizer=summarizer)
    assert alone.messages is history
    assert alone.summarizer_error is error and alone.reduction_stage is None


@pytest.mark.parametrize("answer", [None, 5, b"bytes", ["text"], "", " \n"])
def test_a_summarizer_must_return_some_text(answer: Any) -> None:
    history = [user("task"), assistant("old " * 100), user("next"), assistant("end")]
    reduction = reduce(history, max_input_chars=100, preserve_recent_raw_turns=1, summarizer=lambda m, p: answer)
    assert reduction.reduction_stage == "fallback"
    assert isinstance(reduction.summarizer_error, (TypeError, ValueError))


def test_what_is_no_exception_of_a_summarizer_passes_through() -> None:
    def summarizer(messages: list[Any], previous: str | None) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        summarize([user("x" * 900), assistant("end")], summarizer=summarizer)


def test_a_text_with_odd_characters_survives_both_entrances() -> None:
    history = [user("x" * 900), assistant("end")]
    text = 'é—😀 "quoted" \\ \n\t\x00\x7f\u2028 \ud800 end'
    reduction = reduce(history, max_input_chars=300, preserve_recent_raw_turns=1, summarizer=lambda m, p: text)
    assert reduction.messages[0]["content"] == f"{HEAD}\n{text}"


# Summaries of earlier reductions


OLD = (
    f"{HEAD}\n- objective: the old task\n- unresolved: old question\n- outcome: bash: old\n"
    "- constraint: no API\nfree text"
)


def test_an_earlier_summary_is_replaced_and_carried_on() -> None:
    history = [
        system("s"),
        system(OLD),
        user("new talk", tags=["constraint"]),
        call("1"),
        result("1", "new"),
        assistant("x" * 999),
        user("last"),
    ]
    reduction = summarize(history)
    assert reduction.messages == [
        history[0],
        system(
            f"{HEAD}\n- objective: the old task\nfree text\n- unresolved: old question\n- outcome: bash: old\n"
            "- outcome: run: new\n- constraint: no API\n- constraint: new talk"
        ),
        history[6],
    ]
    assert reduction.dropped_count == 5, "the earlier summary counts as well"


def test_the_summarizer_gets_what_an_earlier_reduction_left() -> None:
    seen: list[Any] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        seen.append((messages, previous))
        return "newer"

    history = [system(f"{HEAD}\nolder\nlines"), user("talk " * 99), user("last")]
    reduction = summarize(history, summarizer=summarizer)
    assert seen == [([history[1]], "older\nlines")]
    assert reduction.messages == [system(f"{HEAD}\nnewer"), history[2]]
    summarize([user(HEAD), user("talk " * 99), user("last")], summarizer=summarizer)
    assert seen[1][1] == ""


def test_several_earlier_summaries_become_one() -> None:
    history = [
        system(f"{HEAD}\none"),
        system("s"),
        system(f"{HEAD}\ntwo"),
        user(f"{HEAD}\nthree"),
        user("x" * 99),
        user("last"),
    ]
    seen: list[Any] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        seen.append(previous)
        return "all"

    view = summarize(history, summarizer=summarizer).messages
    assert seen == ["one\ntwo\nthree"]
    assert view == [history[1], system(f"{HEAD}\nall"), history[5]]


@pytest.mark.parametrize(
    "text", ["Conversation summary: talk", "conversation summary:\nx", f" {HEAD}\nx", f"x\n{HEAD}"]
)
def test_it_is_known_by_its_first_line(text: str) -> None:
    history = [user(text), user("x" * 500), user("last")]
    reduction = summarize(history, summarizer=lambda messages, previous: repr(previous))
    assert reduction.messages[0]["content"] == f"{HEAD}\nNone"
    assert reduction.dropped_count == 2


def test_an_earlier_summary_stands_among_the_leading_system_messages_or_right_after_them() -> None:
    later = [user("talk"), user(f"{HEAD}\nlater"), user("x" * 500), user("last")]
    reduction = summarize(later, summarizer=lambda messages, previous: repr(previous))
    assert reduction.messages[0]["content"] == f"{HEAD}\nNone"
    with_results = [{**result("1", f"{HEAD}\nno"), "tool_call_id": "1"}, user("x" * 500), user("last")]
    reduction = summarize(with_results, summarizer=lambda messages, previous: repr(previous))
    assert reduction.messages[0]["content"] == f"{HEAD}\nNone"


def test_summaries_never_pile_up() -> None:
    history: list[Message] = [system("s"), user("the task")]
    for number in range(12):
        history += [
            call(str(number)),
            result(str(number), f"outcome {number} " * 30),
            assistant(f"step {number} " * 20),
        ]
        reduction = recede.designs.summarize_history(history, preserve_recent_raw_turns=2)
        history = reduction.messages
        assert sum(str(message["content"]).startswith(HEAD) for message in history) <= 1
    summary = history[1]["content"]
    assert summary.startswith(f"{HEAD}\n- objective: the task\n")
    assert summary.count("- outcome: ") == 6


def test_a_fallback_keeps_an_earlier_summary() -> None:
    history = [system("s"), user(f"{HEAD}\nolder"), user("task"), assistant("x" * 99), user("last")]
    view = recede.designs.truncate_history(history, preserve_recent_raw_turns=1).messages
    assert view == [history[0], history[1], history[2], history[4]]


# Bytes


def test_summaries_are_the_same_in_bytes() -> None:
    history = [system("s"), user("task"), *turns(9, chars=300), {"role": "user", "content": "é" * 500}, user("last")]
    for options in (
        {},
        {"fill": None},
        {"summary_role": "user"},
        {"summary_max_chars": 60},
        {"summarizer": lambda m, p: f"{len(m)} é"},
    ):
        ours = published.reduce(history, max_input_chars=400, preserve_recent_raw_turns=1, **options)
        theirs = published.reduce_json(dumps(history), max_input_chars=400, preserve_recent_raw_turns=1, **options)
        assert ours.reduction_stage in ("summarization", "fallback")
        assert loads(theirs.json) == ours.messages
        assert facts(theirs) == facts(ours)


def test_masked_placeholder_of_a_kept_pair_stays_masked_beside_the_summary() -> None:
    history = [user("t" * 400), call("1", "2"), result("1", "x" * 300), user("n" * 300), result("2", "y")]
    reduction = reduce(history, max_input_chars=350, preserve_recent_raw_turns=1, summarizer=lambda m, p: "s")
    assert reduction.messages == [system(f"{HEAD}\ns"), history[1], result("1", masked(300)), history[4]]


FREE = recede.Provider("free", cache="none", read=1.0, write=1.0, min_tokens=0, output=0.0)
LINE = "It was read, and it was found. "
FILL = LINE * 129  # 3,999 characters, so a summary ends within


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (FILL + FILL, "found."),
        (FILL.replace(". ", "! ") + FILL, "found!"),
        ("x" * 3_000 + "\n" + "y" * 3_000, "x"),
        ("x" * 3_000 + "\n\n## State\n**Errors:**\n" + "y" * 3_000, "x"),
        ("Goal: a. b" + "x" * 5_000, "x"),
        ("é" * 3_000 + ". " + "é" * 3_000, "é."),
        ("é. " * 3_000, "é."),
    ],
    ids=["sentences", "exclamations", "a line", "headings", "one word", "accents", "short sentences"],
)
@pytest.mark.parametrize("counter", [None, lambda text: len(text) // 4], ids=["characters", "tokens"])
def test_a_long_summary_is_cut_at_a_sentence(text: str, end: str, counter: Any) -> None:
    messages = [user("Go.")]
    for number in range(60):
        messages += [{**call(str(number)), "content": "I look. " * 100}, result(str(number), "a line\n" * 90)]
    options: dict[str, Any] = {"token_counter": counter, "max_input_tokens": 10**9} if counter else {}
    done = recede.reduce(messages, summarizer=lambda *_: text, keep=2, provider=FREE, max_overcost=None, **options)
    [summary] = [one["content"] for one in done.messages if "Conversation summary:" in str(one["content"])]
    assert summary.endswith(end) and 1_000 - 30 < len(summary) <= 4_000
    assert summary.partition("\n")[2] == text[: len(summary) - len("Conversation summary:\n")]
