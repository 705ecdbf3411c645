"""What the readers give of the requests of a session: usage, model, time; compactions and contexts."""

from __future__ import annotations

from typing import Any

import pytest
from transcript_files import answer, block, claude, item, lines, said, told, use

from recede import transcripts
from recede.transcripts import Compaction, LoggedRequest, LoggedUsage
from support import assistant, dumps, system, user

AT = "2026-05-14T19:25:02.500Z"
TIME = 1778786702.5


def anthropic(output: int, read: int = 10, written: int = 20, **fields: Any) -> dict[str, Any]:
    return {
        "input_tokens": 3,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": output,
        **fields,
    }


def answered(identity: str, *blocks: Any, usage: Any = None, model: Any = "opus", at: Any = AT) -> dict[str, Any]:
    record = block(identity, *blocks, timestamp=at)
    record["message"] |= {"model": model, "usage": usage}
    return record


def counted(total: int, **last: int) -> dict[str, Any]:
    info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": last}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def said_by(role: str, text: str) -> dict[str, Any]:
    return item(type="message", role=role, content=[{"type": "input_text", "text": text}])


def codex(*records: Any) -> transcripts.Transcript:
    return transcripts.read(lines({"type": "turn_context", "payload": {"model": "gpt"}}, *records))


# Claude Code


def test_the_lines_of_an_answer_are_one_request_with_its_largest_output() -> None:
    session = transcripts.read(
        lines(
            claude("user", user("Look.")),
            answered("m1", said("I look."), usage=anthropic(1)),
            answered("m1", use("1"), usage=anthropic(95), at="2026-05-14T19:25:09Z"),
            answered("m1", use("2"), usage=anthropic(7)),
            answer("1"),
            answer("2"),
            answered(
                "m2", said("Done."), usage=anthropic(4, read=30, cache_creation={"ephemeral_1h_input_tokens": 15})
            ),
        )
    )
    assert [request[:4] for request in session.requests] == [
        (1, "opus", TIME, LoggedUsage(3, 10, 20, 0, 95)),
        (4, "opus", TIME, LoggedUsage(3, 30, 5, 15, 4)),
    ]
    assert session.requests[1].usage is not None
    assert session.requests[1].usage.sent_tokens == 53


def test_a_request_keeps_its_place_where_a_result_is_moved_after_its_call() -> None:
    records = [
        claude("user", user("Look.")),
        answer("1"),
        answered("m1", use("1"), usage=anthropic(5)),
        answered("m2", said("Done."), usage=anthropic(6)),
    ]
    session = transcripts.read(lines(*records))
    assert [message["role"] for message in session.messages] == ["user", "assistant", "user", "assistant"]
    assert [request.messages for request in session.requests] == [1, 3]


def test_an_error_of_the_program_is_no_request() -> None:
    error = answered("m2", said("API error"), usage=anthropic(0, 0, 0, input_tokens=0), model="<synthetic>")
    session = transcripts.read(
        lines(claude("user", user("Go.")), answered("m1", said("A."), usage=anthropic(2)), error)
    )
    assert len(session.messages) == 3
    assert [request.model for request in session.requests] == ["opus"]


@pytest.mark.parametrize("usage", [7, "many", ["input_tokens"], True])
def test_usage_of_a_wrong_type_is_ignored_with_a_warning(usage: Any) -> None:
    session = transcripts.read(lines(claude("user", user("Go.")), answered("m1", said("A."), usage=usage)))
    assert [request[:4] for request in session.requests] == [(1, "opus", TIME, None)]
    assert session.warnings == ("usage of wrong type ignored: line 2",)


@pytest.mark.parametrize("count", [-1, "7", 1.5, True, [], {}, 1 << 60])
def test_a_count_of_a_wrong_type_is_ignored_with_a_warning(count: Any) -> None:
    usage = anthropic(4, input_tokens=count)
    session = transcripts.read(lines(claude("user", user("Go.")), answered("m1", said("A."), usage=usage)))
    assert session.requests[0].usage == LoggedUsage(0, 10, 20, 0, 4)
    assert session.warnings == ("token count of wrong type ignored: line 2",)


@pytest.mark.parametrize("at", [None, "yesterday", -5, 1e300, [], True, "9999-99-99T00:00:00Z"])
def test_a_time_that_is_none_is_none(at: Any) -> None:
    record = answered("m1", said("A."), usage=anthropic(4), model=7, at=at)
    assert transcripts.read(lines(claude("user", user("Go.")), record)).requests[0][1:3] == (None, None)


def test_a_compaction_begins_a_new_context_once() -> None:
    session = transcripts.read(
        lines(
            claude("user", user("Look.")),
            answered("m1", said("I look."), usage=anthropic(1)),
            claude("system", subtype="compact_boundary"),
            claude("user", user("So far: looked."), isCompactSummary=True),
            answered("m2", said("Done."), usage=anthropic(2)),
        )
    )
    assert session.compactions == (Compaction(2, []),)
    before, after = session.contexts
    assert [len(one.messages) for one in (session, before, after)] == [4, 2, 2]
    assert [[request.messages for request in one.requests] for one in (session, before, after)] == [[1, 3], [1], [1]]
    assert (before.turns, after.turns, after.shown, after.compactions) == (1, 1, 0, ())
    assert session.warnings == ("the session was compacted; the messages before it are kept: line 3",)


def test_a_summary_without_a_boundary_is_a_compaction_too() -> None:
    summary = claude("user", user("So far."), isCompactSummary=True)
    session = transcripts.read(lines(claude("user", user("Look.")), summary))
    assert session.compactions == (Compaction(1, []),)


def test_the_main_conversation_is_its_only_context_where_nothing_was_compacted() -> None:
    session = transcripts.read(lines(claude("user", user("Look.")), answered("m1", said("A."), usage=anthropic(1))))
    assert session.contexts == (session,)


# Codex


def test_codex_tokens_belong_to_the_items_since_the_last_count() -> None:
    call = item(type="function_call", name="run", arguments="{}", call_id="1")
    session = codex(
        said_by("user", "Look."),
        {**item(type="reasoning", summary=[]), "timestamp": AT},
        call,
        item(type="function_call_output", call_id="1", output="a b"),
        counted(100, input_tokens=100, cached_input_tokens=60, output_tokens=9, reasoning_output_tokens=5),
        {"type": "turn_context", "payload": {"model": "gpt-2"}},
        said_by("assistant", "Done."),
        counted(250, input_tokens=150, cached_input_tokens=100, output_tokens=4),
        counted(250, input_tokens=150, cached_input_tokens=100, output_tokens=4),
    )
    assert session.requests == (
        LoggedRequest(1, "gpt", TIME, LoggedUsage(40, 60, 0, 0, 9)),
        LoggedRequest(4, "gpt-2", None, LoggedUsage(50, 100, 0, 0, 4)),
    )


def test_a_repeated_count_of_codex_is_not_that_of_the_next_answer() -> None:
    before = said_by("user", "Look."), said_by("assistant", "I look."), counted(9, input_tokens=9)
    repeated = said_by("assistant", "Done."), counted(9, input_tokens=9), counted(30, input_tokens=21)
    usages = [request.usage for request in codex(*before, *repeated).requests]
    assert [usage.sent_tokens for usage in usages if usage is not None] == [9, 21]


def test_an_answer_that_codex_did_not_count_has_no_usage() -> None:
    session = codex(
        said_by("user", "Look."),
        said_by("assistant", "I lo"),
        said_by("user", "Stop."),
        said_by("assistant", "Yes."),
        counted(9, input_tokens=9),
        said_by("user", "Why?"),
        said_by("assistant", "Because"),
    )
    found = [(request.messages, request.usage is not None) for request in session.requests]
    assert found == [(1, False), (3, True), (5, False)]


def test_codex_shows_its_own_history_after_a_compaction() -> None:
    shown = [said_by("user", "Look.")["payload"], said_by("assistant", "Looked.")["payload"]]
    session = codex(
        said_by("user", "Look."),
        said_by("assistant", "I look."),
        counted(9, input_tokens=9),
        {"type": "compacted", "payload": {"message": "", "replacement_history": shown}},
        counted(9, input_tokens=0, output_tokens=0),
        said_by("user", "Go on."),
        said_by("assistant", "Done."),
        counted(19, input_tokens=10),
    )
    _, after = session.contexts
    assert after.messages == [*shown, *session.messages[2:]]
    assert [request.messages for request in after.requests] == [3]
    assert (after.shown, len(session.messages)) == (2, 4)


@pytest.mark.parametrize("payload", [{}, {"replacement_history": 7}, {"replacement_history": ["x"]}])
def test_a_compaction_whose_history_is_not_logged_begins_a_context(payload: Any) -> None:
    session = codex(said_by("user", "Look."), {"type": "compacted", "payload": payload}, said_by("user", "On."))
    assert session.compactions == (Compaction(1, []),)


@pytest.mark.parametrize("info", [None, 7, [], {}, {"last_token_usage": 7, "total_token_usage": {"input_tokens": 1}}])
def test_a_damaged_count_of_codex_is_no_usage(info: Any) -> None:
    broken = {"type": "event_msg", "payload": {"type": "token_count", "info": info}}
    session = codex(said_by("user", "Look."), said_by("assistant", "Done."), broken)
    assert [request.usage for request in session.requests] == [None]


# Other formats


def test_gemini_tokens_of_thoughts_are_output_and_those_of_tools_input() -> None:
    tokens = {"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 2, "total": 114}
    made = {"type": "gemini", "content": "Done.", "model": "flash", "timestamp": AT, "tokens": tokens}
    session = {"sessionId": "x", "messages": [{"type": "user", "content": "Look."}, made]}
    assert transcripts.read(dumps(session)).requests == (
        LoggedRequest(1, "flash", TIME, LoggedUsage(42, 60, 0, 0, 12)),
    )
    made["tokens"] = {**tokens, "thoughts": "few"}
    damaged = transcripts.read(dumps(session))
    assert damaged.requests[0].usage == LoggedUsage(42, 60, 0, 0, 0)
    assert damaged.warnings == ("token count of wrong type ignored",)


def pi(role: str, text: str, usage: Any = None, **fields: Any) -> dict[str, Any]:
    message = {"role": role, "content": [said(text)], "model": "opus", "usage": usage, **fields}
    return {"type": "message", "timestamp": AT, "message": message}


def test_pi_aborted_answers_count_where_they_were_billed() -> None:
    usage = {"input": 3, "output": 4, "cacheRead": 10, "cacheWrite": 20}
    zeros = dict.fromkeys(usage, 0)
    session = transcripts.read(
        lines(
            pi("user", "Look."),
            pi("assistant", "I", usage, stopReason="aborted"),
            pi("assistant", "", zeros, stopReason="error"),
            pi("assistant", "Done.", usage),
        )
    )
    assert session.requests == (LoggedRequest(1, "opus", TIME, LoggedUsage(3, 10, 20, 0, 4)),) * 2


@pytest.mark.parametrize("by_number", [True, False])
def test_pi_shows_the_summary_and_what_it_kept_after_a_compaction(by_number: bool) -> None:
    first = {"firstKeptEntryIndex": 2} if by_number else {"firstKeptEntryId": "kept"}
    session = transcripts.read(
        lines(
            {"type": "session", "cwd": "/"},
            pi("user", "Look."),
            {**pi("assistant", "I look."), "id": "kept"},
            {"type": "compaction", "summary": "Looked.", **first},
            pi("user", "Go on."),
            pi("assistant", "Done."),
        )
    )
    assert session.compactions == (Compaction(2, [user("Looked."), session.messages[1]]),)
    assert [request.messages for request in session.contexts[1].requests] == [3]


def test_mini_swe_agent_keeps_the_response_beside_the_message() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 60}}
    extra = {"response": {"model": "gpt", "usage": usage}, "timestamp": TIME}
    data = {"trajectory_format": "mini-swe-agent-1", "messages": [user("Look."), {**assistant("A."), "extra": extra}]}
    assert transcripts.read(dumps(data)).requests == (LoggedRequest(1, "gpt", TIME, LoggedUsage(40, 60, 0, 0, 9)),)


def test_openhands_counts_a_response_once() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "cache_read_input_tokens": 60}
    usage |= {"cache_creation_input_tokens": 30, "prompt_tokens_details": {"cached_tokens": 60}}

    def run(number: int, call_id: str, **fields: Any) -> dict[str, Any]:
        metadata = told(call_id, "r")
        metadata["model_response"] |= {"model": "opus", "usage": usage}
        return {"id": number, "source": "agent", "timestamp": AT, "tool_call_metadata": metadata, **fields}

    events = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Look."}},
        run(1, "1", action="run", args={"command": "ls"}),
        run(2, "2", action="run", args={"command": "ls"}),
        run(3, "1", observation="run", content="a b", cause=1),
        run(4, "2", observation="run", content="a b", cause=2),
    ]
    expected = LoggedRequest(1, "opus", TIME, LoggedUsage(10, 60, 30, 0, 9))
    assert transcripts.read(dumps(events)).requests == (expected,)


def test_a_logged_body_is_one_request() -> None:
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 9}
    body = {"model": "gpt", "messages": [system("Be brief."), user("Look.")], "timestamp": TIME}
    assert transcripts.read(dumps(body)).requests == ()
    logged = transcripts.read(dumps({**body, "response": {"usage": usage}}))
    assert logged.requests == (LoggedRequest(2, "gpt", TIME, LoggedUsage(40, 60, 0, 0, 9)),)
    assert logged.contexts == (logged,), "its answer is not in the history"


@pytest.mark.parametrize("identity", ["x", None])
def test_inspect_requests_are_those_whose_answer_is_in_the_sample(identity: str | None) -> None:
    done = {**assistant("Done."), "id": identity}

    def called(message: Any, **usage: int) -> dict[str, Any]:
        output = {"model": "gpt", "usage": usage, "choices": [{"message": message}]}
        return {"event": "model", "input": [user("Look.")], "output": output, "completed": AT}

    usage = {"input_tokens": 40, "input_tokens_cache_read": 30, "output_tokens": 9}
    graded = called({**assistant("Good."), "id": identity and "y"}, **usage)
    apart = called(done, **usage, input_tokens_cache_write=20, total_tokens=99)
    for events, expected in (
        ([called(done, **usage, total_tokens=49), graded], LoggedUsage(10, 30, 0, 0, 9)),
        ([graded, apart], LoggedUsage(40, 30, 20, 0, 9)),
    ):
        sample = {"messages": [user("Look."), done], "events": events}
        log = {"version": 2, "status": "success", "eval": {}, "samples": [sample]}
        assert transcripts.read(dumps(log)).requests == (LoggedRequest(1, "gpt", TIME, expected),)
