"""What the history of a request was: sessions that went back, were compacted, cleared, forked or repeated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from transcript_files import lines

from recede import costs, transcripts
from recede.transcripts import Transcript

OPUS = "claude-opus-4-8"


class Log:
    """A session of Claude Code under construction: each record names the one before it."""

    def __init__(self, **fields: Any) -> None:
        self.records: list[dict[str, Any]] = []
        self.at: str | None = None
        self.fields = fields

    def add(self, identity: str, kind: str, message: Any = None, **fields: Any) -> Log:
        parent = fields.pop("parentUuid", self.at)
        time = f"2026-08-01T10:{len(self.records):02}:00Z"
        record = {"type": kind, "uuid": identity, "parentUuid": parent, "timestamp": time, "sessionId": "s"}
        self.records.append({**record, **({} if message is None else {"message": message}), **self.fields, **fields})
        self.at = identity
        return self

    def asks(self, identity: str, text: str, **fields: Any) -> Log:
        return self.add(identity, "user", {"role": "user", "content": text}, **fields)

    def calls(self, identity: str, *names: str, answer: Any = "", sent: int = 100, **fields: Any) -> Log:
        """An answer with a line for each call."""
        for name in names:
            block = {"type": "tool_use", "id": name, "name": "Read", "input": {"path": name}}
            self.answers(f"{identity}{name}", block, answer=answer or f"m{identity}", sent=sent, **fields)
        return self

    def answers(self, identity: str, *blocks: Any, answer: Any = None, sent: int = 100, **fields: Any) -> Log:
        usage = {"input_tokens": sent, "output_tokens": 5, "cache_read_input_tokens": 0}
        message = {"id": answer, "role": "assistant", "model": OPUS, "content": [*blocks], "usage": usage}
        message |= fields.pop("changes", {})
        return self.add(identity, "assistant", message, **{"requestId": answer and f"r{answer}", **fields})

    def says(self, identity: str, text: str = "Done.", **fields: Any) -> Log:
        return self.answers(identity, {"type": "text", "text": text}, **{"answer": f"m{identity}", **fields})

    def gets(self, identity: str, name: str, **fields: Any) -> Log:
        block = {"type": "tool_result", "tool_use_id": name, "content": f"{name}: text"}
        return self.add(identity, "user", {"role": "user", "content": [block]}, **fields)

    def read(self) -> Transcript:
        return transcripts.read(lines(*self.records))


def shown(messages: Any) -> list[str]:
    """The messages as their texts."""
    return [
        one["content"]
        if isinstance(one["content"], str)
        else " ".join(block.get("text") or block.get("content") or block["id"] for block in one["content"])
        for one in messages
    ]


def histories(session: Transcript) -> list[list[str]]:
    """What each request was sent, by the contexts."""
    return [
        shown(context.messages[: request.messages])
        for context in session.each_context()
        for request in context.requests
    ]


# Claude Code


def test_a_rewound_session_has_the_history_of_each_request_and_all_that_was_paid() -> None:
    log = Log().asks("a", "A").calls("b", "1").gets("c", "1").says("d").asks("e", "B").says("f", "Wrong.")
    session = log.asks("g", "C", parentUuid="d").says("h").read()
    assert shown(session.messages) == ["A", "1", "1: text", "Done.", "C", "Done."]
    assert [request.messages for request in session.requests] == [1, 3, 5, 5]
    a = ["A", "1", "1: text", "Done."]
    assert histories(session) == [["A"], a[:3], [*a, "B"], [*a, "C"]]
    turns = costs.replay_transcript(session, ["raw"]).policies[0].turns
    assert [(turn.branch, turn.messages) for turn in turns] == [(0, 1), (0, 3), (0, 5), (1, 5)]
    check = costs.check_bill(session)
    assert check is not None and check.logged.requests == 4


def test_two_that_resume_one_session_at_once_are_two_branches() -> None:
    log = Log().asks("a", "A").says("b")
    for name, parents in (("c", ("b", "b")), ("d", ("c0", "c1")), ("e", ("d0", "d1"))):
        for side, parent in enumerate(parents):
            who = f"{name}{side}"
            (log.says if name == "d" else log.asks)(who, f"{who}.", parentUuid=parent)
    session = log.says("f", parentUuid="e0").read()
    assert len(session.branches) == 2
    assert shown(session.messages) == ["A", "Done.", "c0.", "d0.", "e0.", "Done."]
    assert histories(session)[-2:] == [["A", "Done.", "c0.", "d0.", "e0."], ["A", "Done.", "c1."]]


@pytest.mark.parametrize("named", ["r1", "r2", "p", "s"])
def test_all_results_of_an_answer_precede_the_next_whichever_is_named(named: str) -> None:
    log = Log().asks("a", "A").calls("b", "1", "2").gets("r1", "1", parentUuid="b1").gets("r2", "2", parentUuid="b2")
    log.add("p", "progress", parentUuid="b1").add("s", "system", parentUuid="r1", subtype="stop_hook_summary")
    session = log.says("c", parentUuid=named).read()
    assert session.branches == ()
    assert shown(session.messages) == ["A", "1 2", "1: text", "2: text", "Done."]


@pytest.mark.parametrize(("early", "late"), [(2, 1), (3, 2), (4, 1)])
def test_a_record_that_was_written_before_the_one_it_names_follows_it(early: int, late: int) -> None:
    log = Log().asks("a", "A").calls("b", "1").gets("c", "1").says("d").asks("e", "B").says("f", "Yes.")
    log.asks("g", "C", parentUuid="d").says("h").asks("x", "D", parentUuid="y").asks("y", "E", parentUuid="x")
    right = [["A"], ["A", "1", "1: text"], ["A", "1", "1: text", "Done.", "B"], ["A", "1", "1: text", "Done.", "C"]]
    assert histories(log.read()) == right
    log.records.insert(late, log.records.pop(early))
    assert histories(log.read()) == right


def test_an_answer_that_was_tried_again_is_in_no_later_history() -> None:
    log = Log().asks("a", "A").says("b", "Half of").says("c", "All of it.", parentUuid="a").asks("d", "B").says("e")
    assert histories(log.read()) == [["A"], ["A"], ["A", "All of it.", "B"]]


def test_a_new_root_begins_anew_and_records_without_parents_do_not() -> None:
    log = Log().asks("a", "A").says("b").add("p", "progress", parentUuid=None).asks("c", "The plan.").says("d")
    assert histories(log.read()) == [["A"], ["The plan."]]
    flat = Log().asks("a", "A").says("b", parentUuid=None).asks("c", "B", parentUuid=None).says("d", parentUuid=None)
    assert histories(flat.read()) == [["A"], ["A", "Done.", "B"]]
    unknown = Log().asks("a", "A").says("b").says("c", parentUuid="elsewhere")
    assert len(histories(unknown.read())[-1]) == 2


def compacted(**details: Any) -> Log:
    log = Log().asks("a", "A").calls("b", "1").gets("c", "1").says("d").asks("e", "B").says("f", "Yes.")
    log.add("x", "system", subtype="compact_boundary", parentUuid=None, logicalParentUuid="f", compactMetadata=details)
    return log.asks("y", "So far.", isCompactSummary=True)


@pytest.mark.parametrize(
    ("details", "then", "history"),
    [
        ({}, "y", ["So far.", "C"]),
        (
            {"preservedSegment": {"headUuid": "e", "tailUuid": "f", "anchorUuid": "y"}},
            "f",
            ["So far.", "B", "Yes.", "C"],
        ),
        (
            {"preservedSegment": {"headUuid": "e", "tailUuid": "f", "anchorUuid": "x"}},
            "f",
            ["B", "Yes.", "So far.", "C"],
        ),
        ({"preservedMessages": {"uuids": ["f"], "allUuids": ["e", "f"]}}, "f", ["So far.", "B", "Yes.", "C"]),
        ({"preservedSegment": {"headUuid": "?", "tailUuid": 7}}, "y", ["So far.", "C"]),
    ],
)
def test_a_compaction_may_keep_a_tail(details: Any, then: str, history: list[str]) -> None:
    session = compacted(**details).asks("z", "C", parentUuid=then).says("w").read()
    assert histories(session)[-1] == history
    assert session.branches == () and len(session.requests) == 4


def test_a_tail_that_is_written_again_after_a_compaction_was_kept() -> None:
    log = compacted()
    log.asks("e", "B", parentUuid="y").says("f", "Yes.").asks("z", "C").says("w")
    assert histories(log.read())[-1] == ["So far.", "B", "Yes.", "C"]
    again = compacted()
    again.records += again.records[:6]  # copies, as they were
    assert histories(again.asks("z", "C", parentUuid="y").says("w").read())[-1] == ["So far.", "C"]


def test_a_branch_goes_on_after_the_compaction_before_it() -> None:
    log = compacted().asks("z", "C", parentUuid="y").says("w").asks("v", "D", parentUuid="y").says("u")
    assert histories(log.read())[-2:] == [["So far.", "C"], ["So far.", "D"]]
    log = compacted().asks("z", "C", parentUuid="y").says("w").asks("v", "D", parentUuid="d").says("u")
    assert histories(log.read())[-1] == ["A", "1", "1: text", "Done.", "D"]


def test_a_branch_may_leave_right_before_a_compaction() -> None:
    log = compacted().says("z", "Well.").asks("v", "C", parentUuid="f").says("u").asks("t", "D", parentUuid="y")
    session = log.says("s").read()
    assert histories(session)[-3:] == [
        ["So far."],
        ["A", "1", "1: text", "Done.", "B", "Yes.", "C"],
        ["So far.", "D"],
    ]
    assert len(session.requests) == 6


def test_results_that_the_agent_cleared_are_sent_no_more() -> None:
    cleared = "[Old tool result content cleared]"
    log = Log().asks("a", "A").calls("b", "1").gets("c", "1").calls("d", "2").gets("e", "2").says("f")
    for number, names in enumerate((["1"], ["2", 7], "1")):
        details = {"compactedToolIds": names}
        log.add(f"x{number}", "system", subtype="microcompact_boundary", microcompactMetadata=details)
        log.asks(f"y{number}", "More.").says(f"z{number}")
    session = log.read()
    sent = [[text for text in history if "text" in text or text == cleared] for history in histories(session)[-3:]]
    assert sent == [[cleared, "2: text"], [cleared, cleared], [cleared, cleared]]
    assert [text for text in shown(session.messages) if "text" in text] == ["1: text", "2: text"]
    assert costs.replay_transcript(session, ["raw"]).policies[0].turns[-1].messages == len(session.messages) - 1


# Answers


@pytest.mark.parametrize("name", ["msg_local", "", None])
def test_answers_whose_identifier_repeats_or_is_missing_are_requests_of_their_own(name: Any) -> None:
    log, fields = Log().asks("a", "A"), {"answer": name, "requestId": None}
    for number in range(3):
        log.calls(str(number), f"x{number}", f"y{number}", sent=100 + number, **fields)
        log.gets(f"r{number}", f"x{number}").gets(f"q{number}", f"y{number}")
    session = log.read()
    assert [request.usage and request.usage.input_tokens for request in session.requests] == [100, 101, 102]
    assert shown(session.messages)[1::3] == ["x0 y0", "x1 y1", "x2 y2"]
    assert len({request.id for request in session.requests}) == 3
    assert [request.id for request in log.read().requests] == [request.id for request in session.requests]


def test_answers_of_the_same_size_under_one_identifier_are_two_if_the_user_spoke_between_them() -> None:
    log = Log().asks("a", "A").calls("b", "1", "2", answer="m", requestId=None).gets("c", "1")
    log.calls("d", "3", answer="m", requestId=None).gets("e", "2").gets("f", "3")
    log.asks("g", "B").says("h", answer="m", requestId=None)
    session = log.read()
    assert [request.messages for request in session.requests] == [1, 6]
    assert shown(session.messages)[1] == "1 2 3"


def test_an_answer_that_is_written_again_under_its_identifier_is_one() -> None:
    log = Log().asks("a", "A").says("b", "I lo", answer="m")
    call = {"type": "tool_use", "id": "1", "name": "Read", "input": {}}
    log.answers("c", {"type": "text", "text": "I look."}, {**call, "input": {}}, answer="m")
    log.answers("d", {"type": "text", "text": "I look."}, {**call, "input": {"path": "x"}}, answer="m")
    session = log.read()
    assert session.messages[1]["content"] == [{"type": "text", "text": "I look."}, {**call, "input": {"path": "x"}}]
    assert len(session.requests) == 1


def test_what_a_program_says_as_an_answer_is_no_request() -> None:
    log = Log().asks("a", "A").calls("b", "1").gets("c", "1")
    session = log.says("d", "API Error: 529", changes={"model": "<synthetic>"}).asks("e", "Go on.").says("f").read()
    assert (
        len(session.requests) == session.turns == len(costs.replay_transcript(session, ["raw"]).policies[0].turns) == 2
    )


def test_what_the_program_says_was_paid_in_all_is_what_was_paid() -> None:
    log = Log().asks("a", "A").says("b").asks("c", "B").says("d")
    usage = {"inputTokens": 200, "outputTokens": 90, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0}
    small = {**usage, "inputTokens": 1_000}
    result = {"type": "result", "total_cost_usd": 0.35, "modelUsage": {OPUS: usage, "claude-haiku-4-5": small}}
    early = {"type": "result", "total_cost_usd": 0.1, "modelUsage": {}}
    bill = costs.logged_bill(transcripts.read(lines(*log.records, early, result)).requests)
    assert (bill.requests, bill.input_tokens, bill.output_tokens) == (2, 1_200, 180)
    assert bill.cost == pytest.approx(0.35)
    [without] = ({"usage": {"input_tokens": 260, "output_tokens": 44}, "type": "result"},)
    bill = costs.logged_bill(transcripts.read(lines(*log.records, without)).requests)
    assert (bill.input_tokens, bill.output_tokens) == (260, 44)
    twice = {**result, "total_cost_usd": 0.05}
    bill = costs.logged_bill(transcripts.read(lines(*log.records, result, twice)).requests)
    assert bill.cost == pytest.approx(0.4)


def test_calls_of_a_subagent_in_a_stream_are_a_context_of_their_own() -> None:
    log = Log().asks("a", "A").calls("b", "task").asks("c", "Look.", parent_tool_use_id="task")
    log.says("d", parent_tool_use_id="task").gets("e", "task").says("f")
    main, agent = transcripts.read_all(lines(*log.records))
    assert (agent.context, shown(agent.messages)) == ("task", ["Look.", "Done."])
    assert shown(main.messages) == ["A", "task", "task: text", "Done."]


# Sizes, counted


class Counted(dict[str, Any]):
    """A record that counts how often a value of it is read."""

    reads = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counted.reads += 1
        return super().get(key, default)


def reads(records: list[dict[str, Any]]) -> int:
    from recede.transcripts import _claude_code
    from recede.transcripts._source import Record

    def counted(value: Any) -> Any:
        if isinstance(value, dict):
            return Counted({key: counted(one) for key, one in value.items()})
        return [counted(one) for one in value] if isinstance(value, list) else value

    Counted.reads = 0
    found = [Record(counted(json.loads(json.dumps(record))), number) for number, record in enumerate(records)]
    list(_claude_code.read(found))
    return Counted.reads


def of_one_answer(size: int) -> Iterator[dict[str, Any]]:
    log = Log().asks("a", "A")
    for number in range(size):
        log.calls("b", f"n{number}")
    yield from log.records


def rewound(size: int) -> Iterator[dict[str, Any]]:
    log = Log().asks("a", "A")
    for number in range(size):
        log.says(f"b{number}").asks(f"c{number}", "B", parentUuid=f"b{number // 2}")
    yield from log.records


@pytest.mark.parametrize("make", [of_one_answer, rewound])
def test_reading_is_linear(make: Any) -> None:
    small, large = (reads(list(make(size))) for size in (200, 800))
    assert large < 4.4 * small
