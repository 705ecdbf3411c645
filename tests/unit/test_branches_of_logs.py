"""Branches, forks and compactions in the logs of other agents than Claude Code, and readers that are linear."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from transcript_files import lines

from recede import costs, transcripts
from recede.cli.played import Session, logged, without_copies
from recede.transcripts import Transcript
from support import SHARED


def texts(messages: Any) -> list[str]:
    def text(part: Any) -> str:
        return part if isinstance(part, str) else part.get("text") or part.get("id") or str(part.get("content"))

    contents = [one.get("content", one.get("call_id")) for one in messages]
    return [one if isinstance(one, str) else " ".join(map(text, one)) for one in contents]


def histories(session: Transcript) -> list[list[str]]:
    contexts = session.each_context()
    return [texts(context.messages[: one.messages]) for context in contexts for one in context.requests]


# Codex


def item(**payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "timestamp": "2026-07-01T10:00:00Z", "payload": payload}


def asks(text: str) -> dict[str, Any]:
    return item(type="message", role="user", content=[{"type": "input_text", "text": text}])


def says(text: str) -> dict[str, Any]:
    return item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])


def counts(total: int, sent: int = 10) -> dict[str, Any]:
    info = {
        "total_token_usage": {"input_tokens": total},
        "last_token_usage": {"input_tokens": sent, "output_tokens": 1},
    }
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, **fields}}


def meta(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "session_meta", "payload": {"id": name, **fields}}


MODEL = {"type": "turn_context", "payload": {"model": "gpt-5.4"}}
PARENT = [meta("p"), MODEL, asks("A"), says("a"), counts(10), asks("B"), says("b"), counts(20)]


def bill_of(read: list[Transcript]) -> costs.Bill:
    """What sessions cost that are read together."""
    sessions = []
    for place, one in enumerate(read):
        replay, log = costs.replay_transcript(one, ["raw"]), logged(one, {}, is_checked=False)
        sessions.append(Session(str(place), one.format, replay, {}, log=log))
    kept = [one.log for one, _ in without_copies(sessions) if one is not None]
    return costs.Bill.total(log.bill for log in kept if log is not None)


def billed(*files: list[Any]) -> tuple[float, float]:
    """The requests and the input of sessions that are read together."""
    bill = bill_of([transcripts.read(lines(*records)) for records in files])
    return bill.requests, bill.input_tokens


@pytest.mark.parametrize(
    ("child", "requests"),
    [
        # A fork replays its parent, at another time, and continues its counters.
        ([meta("f", forked_from_id="p"), *PARENT, asks("C"), says("c"), counts(30)], 3),
        ([meta("g", forked_from_id="f"), meta("f", forked_from_id="p"), *PARENT, asks("C"), says("c"), counts(30)], 3),
        (PARENT, 2),
        # A child with counters of its own is not reduced.
        ([meta("f", forked_from_id="p"), MODEL, asks("A"), says("a"), asks("C"), says("c"), counts(10)], 3),
        (
            [
                meta("f", source={"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}),
                *[MODEL, asks("C"), says("c"), counts(10)],
            ],
            3,
        ),
        # Another session with the same words was paid for too.
        ([meta("q"), *PARENT[1:]], 4),
    ],
)
def test_a_fork_of_codex_is_counted_once_over_all_files(child: list[Any], requests: int) -> None:
    assert billed(PARENT, child) == billed(child, PARENT) == (requests, 10 * requests)


def test_a_thread_that_was_rolled_back_has_the_history_before() -> None:
    program = asks("<environment_context>")
    back = event("thread_rolled_back", num_turns=1)
    session = transcripts.read(lines(*PARENT[:5], program, *PARENT[5:], back, asks("C"), says("c"), counts(30)))
    a = ["A", "a", "<environment_context>"]
    assert histories(session) == [["A"], [*a, "B"], [*a, "C"]]
    assert texts(session.messages) == [*a, "C", "c"]
    far = event("thread_rolled_back", num_turns=9)
    assert texts(transcripts.read(lines(*PARENT, far, asks("C"))).messages) == ["C"]


def test_a_compaction_of_codex_without_a_history_keeps_what_the_user_said() -> None:
    shorter = {"type": "compacted", "payload": {"message": "So far."}}
    program, large = asks("<environment_context>"), asks("x" * 80_000)
    session = transcripts.read(
        lines(*PARENT[:2], large, *PARENT[2:], program, shorter, asks("C"), says("c"), counts(30))
    )
    assert histories(session)[-1] == ["A", "B", "So far.", "C"]
    session = transcripts.read(lines(*PARENT, shorter, asks("C"), says("c"), shorter, asks("D"), says("d"), counts(30)))
    assert histories(session)[-1] == ["A", "B", "C", "So far.", "D"]
    none = {"type": "compacted", "payload": {"message": "So far.", "replacement_history": []}}
    assert histories(transcripts.read(lines(*PARENT, none, asks("C"), says("c"), counts(30))))[-1] == ["C"]


def response(name: str, sent: int, **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": sent, "output_tokens": 1}
    return {"type": "token_usage_record", "payload": {"response_id": name, "usage": usage, **fields}}


@pytest.mark.parametrize(
    ("records", "sent"),
    [
        # An event repeats the record of an answer, before or after it.
        ([asks("A"), says("a"), response("1", 10), counts(10)], [10]),
        ([asks("A"), says("a"), counts(10), response("1", 10)], [10]),
        ([asks("A"), says("a"), response("1", 7), asks("B"), says("b"), response("2", 9)], [7, 9]),
        # No event has the tokens of a compaction.
        ([*PARENT, response("c", 90), {"type": "compacted", "payload": {"compaction_response_id": "c"}}], [10, 10, 90]),
        ([*PARENT, response("c", 90), response("c", 90)], [10, 10, 90]),
    ],
)
def test_the_tokens_of_every_response_of_codex_count_once(records: list[Any], sent: list[int]) -> None:
    session = transcripts.read(lines(meta("p"), MODEL, *records))
    usages = [usage for one in session.requests for usage in (one.usage, *(part.usage for part in one.beside)) if usage]
    assert [usage.sent_tokens for usage in usages] == sent


# Qwen Code


def qwen(name: str, parent: str | None, text: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "parts": [{"text": text}]}
    usage = {"usageMetadata": {"promptTokenCount": 5}, "type": "assistant"} if text.islower() else {"type": "user"}
    return {"uuid": name, "parentUuid": parent, "sessionId": "s", "message": message, **usage, **fields}


def test_a_session_of_qwen_code_that_went_back_has_the_history_of_each_request() -> None:
    rows = [qwen("1", None, "A"), qwen("2", "1", "a"), qwen("3", "2", "B"), qwen("4", "3", "b")]
    back = {"uuid": "5", "parentUuid": "2", "sessionId": "s", "type": "system", "subtype": "rewind"}
    inner = [qwen("i", None, "I", isSidechain=True, agentId="x"), qwen("j", "i", "i", isSidechain=True, agentId="x")]
    rows += [back, qwen("6", "5", "C"), qwen("7", "6", "c"), qwen("8", "4", "D"), qwen("9", "8", "d"), *inner]
    session, agent = transcripts.read_all(lines(*rows))
    found = [
        ["".join(part["text"] for one in context.messages[: request.messages] for part in one["parts"])]
        for context in session.each_context()
        for request in context.requests
    ]
    assert sorted(found) == [["A"], ["AaB"], ["AaBbD"], ["AaC"]]
    history = {"compressedHistory": [{"role": "user", "parts": [{"text": "So far."}]}]}
    shorter = {**back, "uuid": "k", "parentUuid": "4", "subtype": "chat_compression", "systemPayload": history}
    session = transcripts.read(lines(*rows[:4], shorter, qwen("l", "k", "E"), qwen("m", "l", "e"), *rows[7:9]))
    seen = [
        "".join(part["text"] for one in context.messages[: request.messages] for part in one["parts"])
        for context in session.each_context()
        for request in context.requests
    ]
    assert sorted(seen) == ["A", "AaB", "AaBbD", "So far.E"]
    assert (len(session.messages), len(session.requests), agent.context, len(agent.messages)) == (6, 4, "x", 2)


# pi


def entry(name: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "id": name, "parentId": parent, **fields}


def pi_says(name: str, parent: str, text: str) -> dict[str, Any]:
    usage = {"input": 10, "output": 1, "cacheRead": 0, "cacheWrite": 0}
    content = [{"type": "text", "text": text}]
    return entry(name, parent, message={"role": "assistant", "content": content, "model": "m", "usage": usage})


def pi_asks(name: str, parent: str | None, text: str) -> dict[str, Any]:
    return entry(name, parent, message={"role": "user", "content": text})


def test_a_session_of_pi_is_a_tree() -> None:
    head = {"type": "session", "id": "s", "cwd": "/w"}
    summary = {"type": "branch_summary", "id": "e", "parentId": "b", "summary": "Tried B."}
    compaction = {"type": "compaction", "id": "h", "parentId": "g", "summary": "So far.", "firstKeptEntryId": "f"}
    records = [pi_asks("a", None, "A"), pi_says("b", "a", "1"), pi_asks("c", "b", "B"), pi_says("d", "c", "2"), summary]
    records += [
        pi_asks("f", "e", "C"),
        pi_says("g", "f", "3"),
        compaction,
        pi_asks("i", "h", "D"),
        pi_says("j", "i", "4"),
    ]
    found = transcripts.read(lines(head, *records))
    assert histories(found) == [
        ["A"],
        ["A", "1", "B"],
        ["A", "1", "Tried B.", "C"],
        ["So far.", "C", "3", "D"],
    ]
    assert texts(found.messages) == ["A", "1", "Tried B.", "C", "3", "D", "4"]
    for number in (8, 10):  # back to before the compaction, right after it or later
        back = transcripts.read(lines(head, *records[:number], pi_asks("k", "g", "E"), pi_says("l", "k", "5")))
        assert histories(back)[-1] == ["A", "1", "Tried B.", "C", "3", "E"]


# Gemini


def gemini(name: str, text: str, kind: str = "user", **fields: Any) -> dict[str, Any]:
    return {"id": name, "type": kind, "content": text, "timestamp": "2026-05-01T10:00:01Z", **fields}


def gemini_says(name: str, text: str) -> dict[str, Any]:
    return gemini(name, text, "gemini", model="gemini-2.5-flash", tokens={"input": 10, "output": 1})


def test_what_a_rewind_of_gemini_removes_was_paid() -> None:
    head = {"sessionId": "s", "projectHash": "h"}
    records = [gemini("a", "A"), gemini_says("b", "1"), gemini("c", "B"), gemini_says("d", "2"), {"$rewindTo": "c"}]
    records += [gemini("e", "C"), gemini_says("f", "3"), gemini_says("f", "4")]
    found = transcripts.read(lines(head, *records))
    assert histories(found) == [["A"], ["A", "1", "B"], ["A", "1", "C"]]
    assert texts(found.messages) == ["A", "1", "C", "4"]
    again = [*records, {"$set": {"messages": [gemini("s", "So far."), gemini_says("f", "4")]}}, gemini("g", "D")]
    found = transcripts.read(lines(head, *again, gemini_says("h", "5")))
    assert (texts(found.messages), len(found.requests)) == (["So far.", "4", "D", "5"], 4)


# Linear


def spans(size: int, *, one_trace: bool) -> list[dict[str, Any]]:
    return [
        {
            "start_time": number,
            "context": {"trace_id": "t" if one_trace else str(number)},
            "attributes": {
                "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": f"{number}"}]}],
                "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}],
            },
        }
        for number in range(size)
    ]


def pi_compacted(size: int) -> list[dict[str, Any]]:
    head = [{"type": "session", "id": "s", "cwd": "/w"}, pi_asks("a", None, "A")]
    names = ["a", *(f"{kind}{number}" for number in range(size) for kind in "xyz")]
    made: list[dict[str, Any]] = []
    for before, name in pairwise(names):
        compaction = {"type": "compaction", "id": name, "parentId": before, "summary": "S", "firstKeptEntryId": "a"}
        kinds = {"x": pi_asks(name, before, "B"), "y": pi_says(name, before, "1"), "z": compaction}
        made.append(kinds[name[0]])
    return head + made


def gemini_rewound(size: int) -> list[dict[str, Any]]:
    head = {"sessionId": "s", "projectHash": "h"}
    kept = [gemini(f"k{number}", "A") for number in range(size)]
    return [head, *kept, *(one for n in range(size) for one in (gemini(f"r{n}", "B"), {"$rewindTo": f"r{n}"}))]


def steps(work: Callable[[], Any]) -> int:
    """How many instructions Python runs for some work: the same number each time."""
    count = 0

    def trace(frame: Any, what: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += what == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "make",
    [
        lambda size: spans(size, one_trace=True),
        lambda size: spans(size, one_trace=False),
        pi_compacted,
        gemini_rewound,
    ],
    ids=["spans of a trace", "spans of many traces", "compactions of pi", "rewinds of Gemini"],
)
def test_reading_takes_steps_in_proportion(make: Callable[[int], list[Any]]) -> None:
    small, large = (lines(*make(size)) for size in (60, 240))
    transcripts.read_all(small)  # what is imported and compiled at first is not counted
    assert steps(lambda: transcripts.read_all(large)) < 4.6 * steps(lambda: transcripts.read_all(small))


def test_what_compactions_show_again_takes_memory_once() -> None:
    import tracemalloc

    def peak(size: int) -> int:
        data = lines(*pi_compacted(size))
        tracemalloc.start()
        transcripts.read_all(data)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    assert peak(1_200) < 6 * peak(300)


# The cases of public reports, where they are at hand


CASES = SHARED / "cases"


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not at hand")
@pytest.mark.parametrize(
    ("name", "bill"),
    [
        ("108-openai-cache-writes.jsonl", (2, 40_000, 20_000, 200, 0.15)),
        ("108c-codex-cache-writes.jsonl", (2, 19_000, 21_400, 200, 0.12)),
        ("01-codex-fork", (4, 30_848, 11_352, 420, 0.04)),
        ("05-cc-fast-mode.jsonl", (3, 40_600, 21_209, 360, 0.32)),
        ("60-cc-advisor.jsonl", (3, 40_600, 121_209, 4_360, 0.70)),
        ("63-gemini-tool-tokens.json", (2, 9_000, 12_400, 130, 0.03)),
        ("64-codex-compaction-usage.jsonl", (5, 100_224, 24_776, 3_400, 0.14)),
        ("70-cc-id-constant.jsonl", (3, 40_600, 21_209, 360, 0.16)),
        ("76-cc-synthetic.jsonl", (3, 40_600, 21_209, 360, 0.16)),
        ("10-claude-stream-json.jsonl", (12, 280_000, 7_236, 900, 0.35)),
        ("102-cc-rewind.jsonl", (6, 132_200, 44_218, 360, 0.35)),
        ("79-cc-microcompact.jsonl", (5, 58_600, 39_715, 600, 0.29)),
        ("03-codex-repeated-token-count.jsonl", (3, 20_224, 10_776, 300, 0.04)),
        ("04-codex-totals-restart.jsonl", (6, 40_448, 21_552, 600, 0.07)),
        ("06-cc-partial-no-requestid.jsonl", (2, 20_000, 20_606, 1_850, 0.19)),
        ("61-cc-branch-doubled.jsonl", (3, 40_600, 21_209, 360, 0.16)),
        ("61b-cc-parent-and-branch", (4, 61_800, 21_812, 480, 0.18)),
        ("61c-cc-fork-fresh-uuids", (3, 40_600, 21_209, 360, 0.16)),
        ("75-cc-sidechain-both", (6, 81_200, 42_418, 720, 0.32)),
        ("105-codex-reasoning-inside-output.jsonl", (2, 9_984, 11_216, 2_000, 0.06)),
        ("106-cc-second-compact-recopies.jsonl", (5, 58_600, 37_315, 560, 0.28)),
    ],
)
def test_what_the_cases_of_public_reports_cost(name: str, bill: tuple[float, ...]) -> None:
    path = CASES / name
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    found = bill_of([one for file in files for one in transcripts.read_all(file)])
    tokens = found.cached_tokens, found.fresh_tokens, found.output_tokens
    assert (found.requests, *tokens, round(found.cost, 2)) == bill


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not at hand")
def test_the_histories_of_the_cases_of_public_reports() -> None:
    session = transcripts.read(CASES / "102-cc-rewind.jsonl")
    assert (session.requests[4].messages, len(session.messages), len(session.requests)) == (5, 8, 6)
    session = transcripts.read(CASES / "79-cc-microcompact.jsonl")
    assert json.dumps(session.contexts[-1].messages).count("[Old tool result content cleared]") == 2


def test_copies_of_pi_and_gemini_in_another_file_count_once() -> None:
    head = {"type": "session", "id": "s", "cwd": "/w"}
    parent = [head, pi_asks("a", None, "A"), {**pi_says("b", "a", "1"), "timestamp": "2026-07-01T10:00:00Z"}]
    fork = [*parent, pi_asks("c", "b", "B"), {**pi_says("d", "c", "2"), "timestamp": "2026-07-01T11:00:00Z"}]
    assert billed(parent, fork) == billed(fork, parent) == (2, 20)
    head = {"sessionId": "s", "projectHash": "h"}
    chat = [head, gemini("a", "A"), gemini_says("b", "1")]
    assert billed(chat, [*chat, gemini("c", "B"), gemini_says("d", "2")]) == (2, 20)
