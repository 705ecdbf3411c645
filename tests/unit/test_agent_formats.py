"""Logs of agents of 2026: read with their results, or refused by name; nothing of them is lost without a word."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from agent_files import AGENTS, CODEX_EXEC, COPILOT, OPENCODE, QWEN, TURNS
from children import recede_command
from transcript_files import CODEX, lines, mutated

import recede
from recede import costs, transcripts
from support import SHARED

CASES = SHARED / "cases"


@pytest.mark.parametrize("name", AGENTS)
def test_a_log_is_read_with_its_results(name: str) -> None:
    format, data, turns, usage = AGENTS[name]
    assert transcripts.detect(data) == format
    [read] = transcripts.read_all(data)
    reduction = recede.reduce(read.messages, keep=0, boundary="sliding")
    results = sum(tool.observations for tool in reduction.tools.values())
    assert (read.format, read.turns, results, reduction.orphans) == (format, turns, 2, ())
    assert (read.unread.messages, read.warnings) == (0, ())
    assert reduction.chars_before > 10
    assert not recede.check_pairs(read.messages).findings or format in ("cline", "turns", "atif")
    counts = [request.usage for request in read.requests]
    assert (counts[0] if counts else None) == usage


@pytest.mark.parametrize("name", AGENTS)
def test_values_of_other_types_are_read_or_refused(name: str) -> None:
    data = AGENTS[name][1]
    chance = random.Random(name)
    try:
        value, write = json.loads(data), json.dumps
    except ValueError:
        value, write = [json.loads(line) for line in data.splitlines()], lambda rows: lines(*rows).decode()
    for _ in range(120):
        with contextlib.suppress(recede.TranscriptError):
            for read in transcripts.read_all(write(mutated(value, chance)).encode()):
                recede.count_chars(read.messages)
    for end in range(0, len(data), 31):
        with contextlib.suppress(recede.TranscriptError):
            transcripts.read_all(data[:end])


def test_subagents_have_contexts_of_their_own() -> None:
    inner = {**QWEN[2], "uuid": "x", "isSidechain": True, "agentId": "explore-1"}
    found = transcripts.read_all(lines(*QWEN, inner))
    assert [(one.context, one.turns) for one in found] == [(None, 1), ("explore-1", 1)]
    said = {**COPILOT[3], "data": {"content": "Inside.", "parentToolCallId": "a"}}
    found = transcripts.read_all(lines(*COPILOT, said))
    assert [one.context for one in found] == [None, "a"]
    inside = {"type": "assistant", "message": {"role": "assistant", "content": "In."}, "parent_tool_use_id": "a"}
    data = AGENTS["claude stream"][1] + lines({**inside, "session_id": "s"})
    assert [one.context for one in transcripts.read_all(data)] == [None, "a"]


def test_compactions_split_the_contexts() -> None:
    history = [{"role": "user", "parts": [{"text": "So far."}]}]
    compressed = {"type": "system", "subtype": "chat_compression", "systemPayload": {"compressedHistory": history}}
    read = transcripts.read(lines(*QWEN, {**compressed, "uuid": "c", "sessionId": "s"}, QWEN[2]))
    assert [len(one.messages) for one in read.contexts] == [3, 2]
    summary = {"info": {"role": "assistant", "summary": True}, "parts": [{"type": "text", "text": "So far."}]}
    exported = {**OPENCODE, "messages": [*OPENCODE["messages"], summary, OPENCODE["messages"][0]]}  # type: ignore[misc]
    read = transcripts.read(json.dumps(exported).encode())
    assert [one.messages[0]["content"] for one in read.contexts] == ["Go.", "So far."]
    done = {"type": "session.compaction_complete", "data": {"success": True, "summaryContent": "So far."}}
    assert len(transcripts.read(lines(*COPILOT, done, *COPILOT[1:])).contexts) == 2


READ = "[read_file for 'x'] Result:\nText."


@pytest.mark.parametrize(
    ("messages", "results"),
    [
        # A result whose call is not in the file, one in a plain text, and more results than calls.
        ([{"role": "user", "content": [{"type": "text", "text": READ}]}, {"role": "assistant", "content": "A."}], 0),
        ([{"role": "user", "content": READ}, {"role": "assistant", "content": "A."}], 0),
        ([{"role": "assistant", "content": "<read_file>"}, {"role": "user", "content": READ}], 1),
        (
            [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "read_file", "input": {}}]},
                {"role": "user", "content": [{"type": "text", "text": READ}, {"type": "text", "text": READ}]},
            ],
            1,
        ),
        # An identifier of a wrong type.
        (
            [
                {"role": "assistant", "content": [{"type": "tool_use", "id": [5], "name": "read_file", "input": {}}]},
                {"role": "user", "content": [{"type": "text", "text": READ}]},
            ],
            1,
        ),
    ],
)
def test_a_result_of_cline_is_read_with_its_call_or_without(messages: Any, results: int) -> None:
    read = transcripts.read(json.dumps(messages).encode())
    reduction = recede.reduce(read.messages, keep=0, boundary="sliding")
    assert (read.format, sum(tool.observations for tool in reduction.tools.values())) == ("cline", results)
    assert json.dumps(read.messages).count("Text.") == json.dumps(messages).count("Text.")


def test_results_of_a_request_of_pydantic_ai_keep_their_order() -> None:
    calls = [{"part_kind": "tool-call", "tool_name": "f", "args": "{}", "tool_call_id": name} for name in "ab"]
    retry = {"part_kind": "retry-prompt", "tool_name": "f", "content": "Again.", "tool_call_id": "a"}
    done = {"part_kind": "tool-return", "tool_name": "f", "content": "Done.", "tool_call_id": "b"}
    user = {"part_kind": "user-prompt", "content": "And?"}
    history = [{"kind": "response", "parts": calls}, {"kind": "request", "parts": [retry, done, user]}]
    read = transcripts.read(json.dumps(history).encode())
    assert [one["content"] for one in read.messages] == ["", "Again.", "Done.", "And?"]
    assert recede.check_pairs(read.messages).is_whole


def opencode(role: str, *parts: dict[str, Any], **info: Any) -> dict[str, Any]:
    return {"info": {"role": role, **info}, "parts": list(parts)}


def test_opencode_sends_no_answer_that_failed_and_its_own_words_for_parts_of_the_user() -> None:
    said, tokens = {"type": "text", "text": "Half."}, {"input": 9, "output": 1}
    failed, aborted = {"name": "APIError"}, {"name": "MessageAbortedError"}
    messages = [
        opencode("user", {"type": "subtask", "prompt": "Look."}),
        opencode("assistant", said, error=failed, tokens=tokens),
        opencode("assistant", {"type": "reasoning", "text": "Hm."}, error=aborted),
        opencode("assistant", said, error=aborted),
        opencode("user", {"type": "compaction"}),
    ]
    read = transcripts.read(json.dumps({"info": {}, "messages": messages}).encode())
    assert [one["content"] for one in read.messages] == [
        "The following tool was executed by the user",
        "Half.",
        "What did we do so far?",
    ]
    assert read.warnings == ("answer that failed left out, as opencode does: 2 times",)
    assert costs.logged_bill(read.requests)[:2] == (1, 9)


def test_results_that_opencode_cleared_are_sent_no_more() -> None:
    def answer(name: str, created: int, cleared: int | None = None) -> dict[str, Any]:
        time = {"start": created, "end": created, "compacted": cleared}
        state = {"status": "completed", "input": {}, "output": f"{name}: text", "time": time}
        part = {"type": "tool", "callID": name, "tool": "read", "state": state}
        return opencode("assistant", part, time={"created": created})

    messages = [answer("a", 1_000, 3_000), answer("b", 2_000, 4_500), answer("c", 3_500), answer("d", 5_000)]
    read = transcripts.read(json.dumps({"info": {}, "messages": messages}).encode())
    assert [one["content"] for one in read.messages[1::2]] == ["a: text", "b: text", "c: text", "d: text"]
    sent = [
        [one["content"] for one in context.messages[: request.messages] if one["role"] == "tool"]
        for context in read.each_context()
        for request in context.requests
    ]
    gone = "[Old tool result content cleared]"
    assert sent == [[], ["a: text"], [gone, "b: text"], [gone, gone, "c: text"]]


def test_what_copilot_says_of_a_run_at_its_end_is_what_was_paid() -> None:
    usage = {"inputTokens": 900, "outputTokens": 5, "cacheReadTokens": 700, "cacheWriteTokens": 100}
    end = {"type": "session.shutdown", "data": {"modelMetrics": {"gpt-5": {"usage": usage}, "x": {"usage": 7}}}}
    read = transcripts.read(lines(*COPILOT, end, end))
    bill = costs.logged_bill(read.requests)
    assert (bill.input_tokens, bill.cached_tokens, bill.written_tokens, bill.output_tokens) == (200, 1_400, 200, 10)


def test_steps_that_an_atif_trajectory_copies_are_counted_where_they_were_made() -> None:
    step = {"source": "agent", "message": "A.", "metrics": {"prompt_tokens": 9, "completion_tokens": 1}}
    history = {"schema_version": "ATIF-v1.6", "steps": [{**step, "is_copied_context": True}, step]}
    read = transcripts.read(json.dumps(history).encode())
    assert (len(read.messages), [request.messages for request in read.requests]) == (2, [1])


@pytest.mark.parametrize(
    ("data", "warning"),
    [
        (json.dumps({"task": "Mend it, please.", "trajectory": TURNS}).encode(), "field 'task' left out"),
        (json.dumps([{**TURNS[0], "error": "It broke down."}, TURNS[1]]).encode(), "field 'error' left out"),
        (
            lines(*CODEX_EXEC, {"type": "turn.completed", "usage": {"input_tokens": 5}}),
            "tokens are counted for the whole",
        ),
        (
            lines(*CODEX_EXEC, {"type": "item.completed", "item": {"id": "z", "type": "dream"}}),
            "item of unknown type 'dream'",
        ),
        (lines(*COPILOT, {"type": "dream.begin", "data": {}}), "event of unknown type 'dream.begin' left out"),
        (
            json.dumps({"messages": [{"info": {"role": "user"}, "parts": [{"type": "dream"}]}]}).encode(),
            "part of unknown",
        ),
    ],
)
def test_what_is_unknown_or_left_out_is_said(data: bytes, warning: str) -> None:
    assert any(said.startswith(warning) for said in transcripts.read(data).warnings)


def test_a_trajectory_of_a_manager_is_read_as_turns() -> None:
    manager = recede.designs.ObservationMaskingContextManager()
    for number in range(40):
        manager.add_turn("I look.", f"ls {number}", f"a {number}" * 99)
    turns = [dict(turn) for turn in manager.trajectory]
    for data in (json.dumps(turns).encode(), json.dumps(turns, indent=1).encode(), lines(*turns)):
        read = transcripts.read(data)
        assert (read.format, read.turns) == ("turns", 40)
        assert recede.reduce(read.messages, keep=10, boundary="sliding").masked_count == 30


@pytest.mark.parametrize(
    "turns",
    [
        [{"task": "Go."}, *TURNS],
        [*TURNS, {"turn": 3, "reasoning": "Done.", "action": "finish"}],
        [{**TURNS[0], "reasoning": None}, {**TURNS[1], "action": {"command": "ls"}, "observation": {"out": "a"}}],
        {"trajectory": TURNS},
        {"history": TURNS},
    ],
)
def test_turns_are_read_however_they_are_kept(turns: Any) -> None:
    read = transcripts.read(json.dumps(turns, indent=1).encode())
    reduction = recede.reduce(read.messages, keep=0)
    assert (read.format, sum(tool.observations for tool in reduction.tools.values())) == ("turns", 2)


# Parts that are not understood


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [{"role": "user", "parts": [{"type": "text", "text": "Go."}]}]},
        [{"role": "user", "parts": [{"type": "text", "text": "Go."}]}],
        {"info": {}, "messages": [{"info": {"author": "user"}, "parts": [{"type": "text", "text": "Go."}]}]},
        {"sessionId": "s", "messages": [{"speaker": "user", "words": "Go."}]},
        {"sessionId": "s", "messages": [{"type": "user", "words": "Go."}]},
        {"sessionId": "s", "messages": [{"type": "user", "content": [{"note": "Go."}]}]},
        {"history": [{"role": "assistant", "thought": "Go."}]},
        {"version": 2, "status": "success", "eval": {}, "samples": [{"messages": [{"role": "user", "text": "Go."}]}]},
        [{"id": 0, "action": "message", "source": "user", "args": {"content": [{"type": "text", "text": "Go."}]}}],
        [{"attributes": {"llm": {"input_messages": [{"message": {"role": "user", "body": "Go."}}]}}}],
        [{"kind": "ObservationEvent", "source": "environment", "tool_call_id": "a", "observation": {"stdout": "Go."}}],
        {"trajectory_format": "mini-swe-agent-1.1", "messages": [{"type": "x_output", "output": "Go."}]},
    ],
)
def test_a_text_is_never_0_characters(value: Any) -> None:
    for data in (json.dumps(value, indent=1).encode(), json.dumps(value).encode()):
        read = transcripts.read(data)
        assert "Go." in json.dumps(read.messages)
        assert recede.count_chars(read.messages) >= 3, read


def test_a_claude_code_record_with_other_messages_is_no_claude_code() -> None:
    record = {"uuid": "u", "sessionId": "s", "type": "user", "message": {"role": "user", "body": ["Go."]}}
    with pytest.raises(recede.TranscriptError, match="not a history, but lines of the type user"):
        transcripts.read(lines(record, record))


@pytest.mark.parametrize("data", ["x = 1\n" * 99, {"title": "x", "snippet": "y" * 99}])
def test_a_document_of_cohere_counts_its_text(data: Any) -> None:
    content = [{"type": "document", "document": {"data": data, "id": "1"}}]
    call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "read", "arguments": "{}"}}]}
    history = [call, {"role": "tool", "tool_call_id": "a", "content": content}]
    assert 99 < recede.count_chars(history) < 800
    assert [tool.observations for tool in recede.reduce(history, keep=0).tools.values()] == [1]


# Many strange files


def test_a_folder_of_strange_files_is_told_one_by_one(tmp_path: Path) -> None:
    """Of 300 files that are cut, mixed up and unknown each is a history, or a warning that says why not."""
    chance = random.Random(58)
    sources = [data for _, data, *_ in AGENTS.values()] + [lines(*CODEX)]
    for number in range(300):
        data = chance.choice(sources)
        kind = number % 6
        if kind == 1:
            data = data[: chance.randrange(1, len(data))]
        elif kind == 2:
            at = chance.randrange(len(data))
            data = data[:at] + bytes(chance.randrange(256) for _ in range(9)) + data[at:]
        elif kind == 3:
            data = data[chance.randrange(len(data)) :] + data
        elif kind == 4:
            data = bytes(chance.randrange(256) for _ in range(99))
        elif kind == 5:
            data = json.dumps({"type": f"strange.{number}", "data": {"n": number}}).encode() + b"\n"
        (tmp_path / f"{number:03}.jsonl").write_bytes(data)
    done = recede_command("stats", "--json", tmp_path)
    report = json.loads(done.stdout)
    read = {Path(one["file"]).name for one in report["histories"]}
    failed = {Path(one.split(": ")[0]).name for one in report["failed"]}
    assert len(read | failed) == 300 and not read & failed
    assert b"Traceback" not in done.stderr
    shown = recede_command("replay", tmp_path)
    assert shown.returncode == 0 and b"sessions could not be read" in shown.stdout


# The cases of public reports


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not there")
@pytest.mark.parametrize(
    ("name", "format", "turns", "results"),
    [
        ("10-claude-stream-json.jsonl", "claude_code", 12, 12),
        ("10c-claude-json-verbose.json", "claude_code", 12, 12),
        ("11-codex-exec-json.jsonl", "codex_exec", 13, 12),
        ("12-gemini-stream-json.jsonl", "gemini_stream", 13, 12),
        ("13-opencode-export.json", "opencode", 12, 12),
        ("15-atif.json", "atif", 12, 12),
        ("18-pydantic-ai.json", "pydantic_ai", 12, 12),
        ("19-langchain-dict.json", "langsmith", 12, 12),
        ("20-qwen-code.jsonl", "qwen_code", 12, 12),
        ("21-copilot-cli-events.jsonl", "copilot", 12, 12),
        ("22-cline-xml.json", "cline", 12, 12),
        ("23b-managed-agents-events.jsonl", "managed_agents", 12, 12),
        ("28-cohere-v2.json", "messages", 12, 12),
        ("30-amp-thread.json", "amp", 12, 12),
        ("77-cc-torn-line-middle.jsonl", "claude_code", 3, 3),
    ],
)
def test_the_cases_have_their_right_values(name: str, format: str, turns: int, results: int) -> None:
    read = transcripts.read(CASES / name)
    reduction = recede.reduce(read.messages, keep=10, boundary="sliding")
    assert (read.format, read.turns) == (format, turns)
    assert sum(tool.observations for tool in reduction.tools.values()) == results
    assert sum(tool.chars for tool in reduction.tools.values()) < 10_000
    assert reduction.masked_count == max(0, results - 10)
    assert read.unread.messages == 0
