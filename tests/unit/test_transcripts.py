"""Every format of `recede.transcripts`, in small invented files, whole and damaged."""

from __future__ import annotations

import contextlib
import gzip
import json
import pickle
import random
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import published
import pytest
from agent_files import AGENTS
from dataset_files import (
    LANGCHAIN,
    LANGSMITH,
    NEBIUS,
    OPENHANDS_V1,
    OPENINFERENCE,
    OPENINFERENCE_ROWS,
    OTEL,
    OTEL_SPANS,
    SHAREGPT,
    TAU2,
)
from transcript_files import (
    BAD,
    CHAT,
    CLAUDE,
    CODEX,
    DAMAGED,
    FILES,
    GEMINI,
    INSPECT,
    MINI,
    OPENHANDS,
    OPENHANDS_EARLY,
    PI,
    SWE_TEXT,
    SWE_TOOLS,
    TAU,
    answer,
    block,
    claude,
    event,
    item,
    lines,
    mutated,
    said,
    told,
    use,
)

import recede
from recede import transcripts
from recede.transcripts import _formats, _source
from support import assistant, dumps, mask, user

every_file = pytest.mark.parametrize("name", FILES)


def observations(messages: list[Any]) -> list[str]:
    """The texts of the results, as a template that shows them would count them."""
    found = []
    for message in messages:
        for part in [message, *(message["content"] if isinstance(message.get("content"), list) else [])]:
            if "tool_call_id" in part or part.get("pairRole") == "result" or "tool_use_id" in part:
                text = part["content"]
                found.append(text if isinstance(text, str) else "".join(p["text"] for p in text))
            elif str(part.get("type")).endswith("_output"):
                found.append(part["output"])
    return found


@every_file
def test_a_format_is_told_by_the_content(name: str, tmp_path: Path) -> None:
    format, data, histories, records, messages, turns, texts = FILES[name]
    path = tmp_path / "any name.txt"
    path.write_bytes(data)
    for source in (data, bytearray(data), memoryview(data), gzip.compress(data), path, str(path)):
        assert transcripts.detect(source) == format
        found = transcripts.read_all(source)
        assert [one.format for one in found] == [format] * histories
        assert [one.index for one in found] == list(range(histories))
        assert sum(one.records for one in found) == records
        first = found[0]
        assert len(first.messages) == messages
        assert first.turns == turns
        assert observations(first.messages) == texts
        assert first.source == (str(path) if source in (path, str(path)) else "bytes")
        assert transcripts.read_all(source, format)[0] == first


@every_file
def test_the_reducer_reads_what_comes_out(name: str) -> None:
    transcript = transcripts.read(FILES[name][1])
    figures = published.mask_observations(transcript.messages, keep_results=0).tools.values()
    assert sum(tool.observations for tool in figures) == len(FILES[name][6])
    assert sum(tool.chars for tool in figures) == sum(map(len, FILES[name][6]))
    assert {finding.kind for finding in recede.check_pairs(transcript.messages).findings} <= (
        {"result_without_call"} if name == "inspect" else set()
    )
    as_bytes = published.mask_observations_json(dumps(transcript.messages), keep_results=0)
    assert as_bytes.turns == transcript.turns


def test_read_gives_the_first_of_several_and_says_so() -> None:
    transcript = transcripts.read(dumps(TAU))
    assert transcript.messages == CHAT
    assert transcript.warnings == ("the first of 2 histories in the file: read_all gives them all",)


def test_a_file_without_a_history_is_an_empty_one() -> None:
    transcript = transcripts.read(dumps({**INSPECT, "samples": []}))
    assert (transcript.messages, transcript.records) == ([], 0)
    assert transcript.warnings == ("the file contains no history",)
    assert transcripts.read(b"[]").messages == []


IN_LINES = {
    name: (format, data)
    for name, (format, data, *_) in {**FILES, **AGENTS}.items()
    if format in {one.name for one in _formats.LINES} - {"json_lines"}
    and all(line.startswith(b"{") for line in data.splitlines())
}
OTHERS = {
    "a message": {"role": "user", "content": "The prompt of the harness."},
    "an event": {"level": "info", "event": "start", "pid": 7},
    "a body": {"model": "m", "messages": []},
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", IN_LINES)
def test_one_line_of_another_program_hides_no_result(name: str, other: str) -> None:
    format, data = IN_LINES[name]
    results = [observations(one.messages) for one in transcripts.read_all(data)]
    found = transcripts.read_all(lines(OTHERS[other]) + data)
    assert (found[0].format, [observations(one.messages) for one in found]) == (format, results)


@pytest.mark.parametrize("name", IN_LINES)
def test_records_in_an_envelope_are_read_like_those_without(name: str) -> None:
    format, data = IN_LINES[name]
    records = [json.loads(line) for line in data.splitlines()]
    for held in (records, [json.dumps(record) for record in records]):
        found = transcripts.read_all(lines(*({"at": 5, "stream": "stdout", "line": one} for one in held)))
        assert found == transcripts.read_all(data)
        assert found[0].format == format


def test_every_format_has_an_example_here() -> None:
    assert {format for format, *_ in [*FILES.values(), *AGENTS.values()]} == set(transcripts.FORMATS)


# Claude Code


def test_lines_of_one_answer_are_one_message() -> None:
    messages = transcripts.read(lines(*CLAUDE)).messages
    assert messages[1] == {"role": "assistant", "content": [said("I look."), use("1"), use("2")]}
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user", "assistant"]


def test_a_result_before_its_call_is_put_behind_it() -> None:
    transcript = transcripts.read(lines(claude("user", user("Look.")), answer("1"), block("m1", use("1"))))
    assert [message["role"] for message in transcript.messages] == ["user", "assistant", "user"]
    assert transcript.warnings == ("result before its call, moved after it: line 3",)
    assert recede.check_pairs(transcript.messages).is_whole


def test_subagents_are_histories_of_their_own_after_the_main_one() -> None:
    side = [claude("user", user("Search."), isSidechain=True), block("m9", said("Found."), isSidechain=True)]
    main, agent = transcripts.read_all(lines(*side, *CLAUDE))
    assert main == transcripts.read(lines(*CLAUDE))
    assert (main.context, agent.context, agent.index) == (None, "", 1)
    [alone] = transcripts.read_all(lines(*side))
    assert [message["content"] for message in alone.messages] == ["Search.", [said("Found.")]]
    assert alone.messages == agent.messages


def test_subagents_are_told_apart_by_name_or_by_their_chain() -> None:
    def side(text: str, **fields: Any) -> dict[str, Any]:
        return claude("user", user(text), isSidechain=True, **fields)

    chains = [
        side("A.", uuid="a", parentUuid=None),
        side("B.", uuid="b", parentUuid=None),
        side("A on.", uuid="a2", parentUuid="a"),
        side("B on.", uuid="b2", parentUuid="b"),
        side("A still.", uuid="a3", parentUuid="a2"),
    ]
    found = [(one.context, [m["content"] for m in one.messages]) for one in transcripts.read_all(lines(*chains))]
    assert found == [("a", ["A.", "A on.", "A still."]), ("b", ["B.", "B on."])]
    named = [{**record, "agentId": name} for record, name in zip(chains, "xyxyx", strict=True)]
    assert [one.context for one in transcripts.read_all(lines(*named))] == ["x", "y"]


def test_copies_are_left_out_and_unknown_records_are_named() -> None:
    new = {"type": "brand-new", "sessionId": "s"}
    odd = claude("echo", user("Hm."))
    transcript = transcripts.read(lines(*CLAUDE, CLAUDE[1], new, odd, {**new, "subtype": "compact_boundary"}))
    assert transcript.warnings == (
        "copy of an earlier record left out: line 9",
        "record of unknown type 'brand-new' left out, since it holds no message: 2 times, first in line 10",
        "record of unknown type 'echo' kept: line 11",
    )
    assert transcript.messages[-1] == {"role": "user", "content": "Hm."}


# Other formats


def test_codex_items_are_untouched_and_copies_left_out() -> None:
    compacted = {"type": "compacted", "payload": {"message": "", "replacement_history": [CODEX[1]["payload"]]}}
    strange = item(type="hologram")
    transcript = transcripts.read(lines(*CODEX, compacted, strange, {"type": "x", "payload": {}}))
    items = [line["payload"] for line in CODEX if line["type"] == "response_item"]
    assert transcript.messages == [*items, {"type": "hologram"}]
    assert len(transcript.warnings) == 3, "the strange item is a message that was not understood"
    assert "compacted" in transcript.warnings[0]


def test_pi_results_keep_their_error() -> None:
    transcript = transcripts.read(lines(*PI, {"type": "message", "message": {"role": "oracle", "content": "?"}}, {}))
    assert transcript.messages[2]["content"][0]["is_error"] is True
    assert transcript.messages[3] == {"role": "user", "content": "Ran `ls`\na"}
    assert transcript.messages[-1] == {"role": "oracle", "content": "?"}
    assert [warning.split(":")[0] for warning in transcript.warnings] == [
        "aborted answer left out, as pi does when it resumes",
        "the session was compacted; the messages before it are kept",
        "message of unknown role 'oracle' kept",
        "entry of unknown type '' left out, since it holds no message",
        "1 message was not understood",
    ]


def test_swe_agent_text_becomes_pairs() -> None:
    messages = transcripts.read(dumps(SWE_TEXT)).messages
    assert messages[1] == user("A demonstration.")
    assert messages[4]["pairId"] == messages[3]["pairId"]
    view = mask([*messages[:4], {**messages[4], "content": "x" * 99}], keep_results=0).messages
    assert view[4]["content"] == "[observation masked — 99 chars]"
    assert view[2] == user("Look.")


def test_openhands_parallel_calls_are_one_message() -> None:
    second = event(7, "agent", action="run", args={}, tool_call_metadata=told("2", "r"))
    lost = event(8, "agent", observation="browse", content="?")
    transcript = transcripts.read(dumps([*OPENHANDS, second, lost, event(9, "agent", action=None)]))
    [message] = [message for message in transcript.messages if "tool_calls" in message]
    assert [made["id"] for made in message["tool_calls"]] == ["1", "2"]
    assert message["tool_calls"][0]["function"] == {"name": "execute_bash", "arguments": '{"command": "ls"}'}
    assert len(transcript.warnings) == 2


def test_early_openhands_pairs() -> None:
    history = OPENHANDS_EARLY["history"]
    paired = {"history": [[history[0], {"observation": "null"}], history[1:3], [history[3], {"observation": "null"}]]}
    assert len(transcripts.read(dumps(paired)).messages) == 4


def test_a_chat_about_shells_is_no_mini_swe() -> None:
    assert transcripts.detect(dumps([user("How?"), assistant("```bash\nls\n```"), user("Thanks.")])) == "messages"


@pytest.mark.parametrize(
    "prompt", ["Also the docs.", [{"type": "text", "text": "Also the docs."}]], ids=["text", "blocks"]
)
def test_what_the_user_said_meanwhile_stands_where_it_was_sent(prompt: Any) -> None:
    queued = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}
    records = [
        claude("user", user("Fix it."), uuid="u0", parentUuid=None),
        block("m1", use("c1"), uuid="u1", parentUuid="u0"),
        claude("user", user([answer("c1")]), uuid="u2", parentUuid="u1"),
        claude("attachment", uuid="u3", parentUuid="u2", attachment=queued),
        claude("attachment", uuid="u4", parentUuid="u3", attachment={"type": "task_reminder", "content": "Go on."}),
        block("m2", said("Both."), uuid="u5", parentUuid="u4"),
    ]
    messages = transcripts.read(lines(*records, records[3])).messages
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user", "assistant"]
    assert messages[3] == {"role": "user", "content": prompt}


# Glued, cut, foreign


def test_glued_records_are_both_read() -> None:
    data = lines(*CODEX[:2])[:-1] + lines(*CODEX[2:])
    transcript = transcripts.read(data)
    assert transcript.messages == transcripts.read(lines(*CODEX)).messages
    assert transcript.warnings == ("several records on one line, all read: line 2",)
    assert transcripts.read(lines(*CHAT).replace(b"\n", b"")).messages == CHAT


ALMOST = {
    "bad escape": (r'"output": "a \***@***.*** b"', r"a \***@***.*** b"),
    "hex escape": (r'"output": "a\x1b[0m\u12 b\\"', "a\\x1b[0m\\u12 b\\"),
    "raw tab": ('"output": "a\tb\x1b"', "a\tb\x1b"),
    "NaN": ('"output": "a b", "seconds": NaN', "a b"),
    "infinity": ('"output": "a b", "seconds": -Infinity', "a b"),
}


@pytest.mark.parametrize("name", ALMOST)
def test_a_line_that_is_almost_json_is_read_and_named(name: str, tmp_path: Path) -> None:
    written, said = ALMOST[name]
    whole = lines(*CODEX)
    data = whole.replace(b'"output": "a b"', written.encode())
    assert data != whole
    transcript = transcripts.read(data)
    expected = [dict(one) for one in transcripts.read(whole).messages]
    expected[3]["output"] = said
    if "seconds" in written:
        expected[3]["seconds"] = None
    assert transcript.messages == expected
    assert transcript.warnings == ("line that is almost JSON read, with its bad escapes and numbers mended: line 6",)
    assert transcript.skipped_lines == 0
    path = tmp_path / "own.jsonl"
    path.write_bytes(dumps({"role": "user", "content": "Go."}) + b"\n" + rb'{"role": "user", "content": "\*"}')
    reduced = subprocess.run([sys.executable, "-m", "recede", "reduce", path], capture_output=True, check=True)
    assert [json.loads(line)["content"] for line in reduced.stdout.splitlines()] == ["Go.", r"\*"]


@pytest.mark.parametrize("name", BAD)
def test_what_is_damaged_is_named(name: str) -> None:
    data, message = BAD[name]
    with pytest.raises(recede.TranscriptError) as raised:
        transcripts.read_all(data, name="bad")
    assert str(raised.value).startswith(message)
    assert raised.value.source == "bad"
    assert vars(pickle.loads(pickle.dumps(raised.value))) == vars(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_line_is_skipped_and_the_session_stays(name: str) -> None:
    data, lost, first = DAMAGED[name]
    transcript = transcripts.read(data)
    whole = [
        line["payload"] for index, line in enumerate(CODEX) if index not in lost and line["type"] == "response_item"
    ]
    assert [message for message in transcript.messages if message] == whole
    skipped = [said for said in transcript.warnings if said.startswith(("damaged line skipped", "its last line is"))]
    assert len(skipped) == 1 and transcript.skipped_lines
    assert skipped[0].endswith(f"line {first}") or not data.endswith(b"\n")
    assert transcripts.detect(data) == "codex"


class _Counting(json.JSONDecoder):
    """A decoder that counts the characters it may read."""

    chars = 0

    def raw_decode(self, s: str, idx: int = 0) -> Any:
        self.chars += len(s) - idx
        return super().raw_decode(s, idx)


def test_a_damaged_line_is_not_read_again_from_each_of_its_places(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    for opened in (1_000, 2_000):
        counting = _Counting()
        monkeypatch.setattr(_source, "decoder", counting)
        pieces, damage = _source.pieces_of(b'{"type": [' * opened, set())
        assert (pieces, damage) == ([], 0)
        sizes.append(counting.chars)
    assert sizes[1] < 2.2 * sizes[0]


def test_what_precedes_a_cut_of_gzip_data_is_read(tmp_path: Path) -> None:
    data = lines(*CODEX)
    packed = gzip.compress(data, mtime=0)
    whole = [line["payload"] for line in CODEX if line["type"] == "response_item"]
    read = 0
    for end in range(len(packed) - 1, len(packed) // 2, -3):
        text = zlib.decompressobj(31).decompress(packed[:end])
        transcript = transcripts.read(packed[:end])
        assert transcript.messages == transcripts.read(text).messages == whole[: len(transcript.messages)]
        assert transcript.warnings[-1] == "its gzip data is truncated or damaged: what precedes that was read"
        assert transcript.skipped_lines == 1
        read += len(transcript.messages) not in (0, len(whole))
    assert read
    for damaged in (packed + b"xx", packed[:-8] + bytes(8)):
        assert (transcripts.read(damaged).messages, transcripts.read(damaged).skipped_lines) == (whole, 1)


@pytest.mark.parametrize(("order", "first"), [((0, 1, 0, 1), 2), ((1, 0, 0, 1), 1), ((1, 1, 0, 0), 1)])
def test_a_line_without_a_history_is_skipped_among_others(order: tuple[int, ...], first: int) -> None:
    kinds = {"messages": [user("Go.")]}, {"event": "health check", "status": 200}
    found = transcripts.read_all(lines(*(kinds[kind] for kind in order)))
    assert [one.messages for one in found] == [[user("Go.")]] * 2
    assert (found[0].skipped_lines, found[1].skipped_lines) == (2, 0)
    assert found[0].warnings == (f"line without a history skipped: 2 times, first in line {first}",)


def test_a_file_without_a_whole_line_names_the_first(tmp_path: Path) -> None:
    with pytest.raises(recede.TranscriptError, match="ends in the middle of a value"):
        transcripts.read(b'{"type": "us\n{"type": "us\n')


@every_file
def test_another_format_than_the_named_one_is_an_error(name: str) -> None:
    format, data, *_ = FILES[name]
    for wrong in set(transcripts.FORMATS) - {format, "messages", "body", "body_lines", "json_lines", "mini_swe"}:
        with pytest.raises(recede.TranscriptError, match="does not have the given format"):
            transcripts.read(data, format=wrong)
    with pytest.raises(ValueError, match="format must be one of"):
        transcripts.read(data, format="clay")


@every_file
def test_text_beyond_a_limit_is_refused_packed_or_not(name: str, tmp_path: Path) -> None:
    data = FILES[name][1]
    plain = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    whole = transcripts.read_all(plain)
    for form in (plain, gzip.compress(plain), gzip.compress(plain[:9]) + gzip.compress(plain[9:])):
        path = tmp_path / "file"
        path.write_bytes(form)
        for source in (form, path):
            found = transcripts.read_all(source, max_bytes=len(plain))
            assert [one.messages for one in found] == [one.messages for one in whole]
            for limit in {1, len(plain) // 2, len(plain) - 1}:
                with pytest.raises(recede.TranscriptError, match="max_bytes") as caught:
                    transcripts.read_all(source, name="log", max_bytes=limit)
                error = caught.value
                assert (error.kind, error.offset, error.source) == ("size", limit, "log")
                assert "--max-bytes" in str(error)
    with pytest.raises(recede.TranscriptError, match="max_bytes"):
        transcripts.detect(plain, max_bytes=1)
    with pytest.raises(recede.TranscriptError, match="max_bytes"):
        transcripts.read(plain, max_bytes=1)


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (None, TypeError)])
def test_the_limit_is_checked(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="max_bytes"):
        transcripts.read(b"[]", max_bytes=value)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("line_end", [b"", b"\n"])
def test_what_unpacks_to_too_much_takes_no_memory(tmp_path: Path, line_end: bytes) -> None:
    """400 MB in 400 KB, in one line or in many."""
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(400):
            file.write(b" " * 999_999 + (line_end or b" "))
    code = (
        "import sys; from recede import TranscriptError, transcripts\n"
        "try: transcripts.read(sys.argv[1], max_bytes=20_000_000)\n"
        "except TranscriptError as error: print(error.kind)\n"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    kind, peak = subprocess.check_output([sys.executable, "-c", code, str(path)]).split()
    assert kind == b"size" and int(peak) < 120_000


GEMINI_HEAD = {"sessionId": "1", "projectHash": "ab", "startTime": "2026-05-01T10:00:00Z", "kind": "main"}


def gemini_line(identity: str, text: Any, type: str = "user", **fields: Any) -> dict[str, Any]:
    return {"id": identity, "timestamp": "2026-05-01T10:00:01Z", "type": type, "content": text, **fields}


def gemini_texts(*records: Any) -> list[str]:
    found = transcripts.read(lines(GEMINI_HEAD, *records))
    assert (found.format, found.warnings) == ("gemini", ())
    assert all(message["content"] for message in found.messages)
    return [block["text"] for message in found.messages for block in message["content"] if "text" in block]


def test_a_message_of_gemini_that_is_written_again_takes_its_place() -> None:
    ran = {"id": "c", "name": "run", "args": {}, "status": "success", "result": [{"text": "ran"}]}
    answer = gemini_line("b", "Run it.", "gemini", model="flash")
    found = transcripts.read(
        lines(
            GEMINI_HEAD,
            gemini_line("a", [{"text": "Go."}]),
            {"$set": {"lastUpdated": "2026-05-01T10:00:02Z"}},
            answer,
            {**answer, "tokens": {"input": 90, "cached": 40, "output": 7}},
            gemini_line("n", "update available", "info"),
            {**answer, "tokens": {"input": 90, "cached": 40, "output": 7}, "toolCalls": [ran]},
        )
    )
    assert [message["role"] for message in found.messages] == ["user", "assistant", "user"]
    assert found.messages[2]["content"][0]["content"] == "ran"
    [request] = found.requests
    assert (request.messages, request.usage and request.usage[:2], found.warnings) == (1, (50, 40), ())


def test_lines_of_gemini_take_messages_back() -> None:
    said = [gemini_line("a", "one"), gemini_line("b", "two", "gemini"), gemini_line("c", "three")]
    assert gemini_texts(*said, {"$rewindTo": "b"}, gemini_line("d", "four")) == ["one", "four"]
    assert gemini_texts(*said, {"$rewindTo": "gone"}, gemini_line("d", "four")) == ["four"]


def test_lines_of_gemini_replace_the_history() -> None:
    thought = {"text": "Hm.", "thought": True}
    now = [
        gemini_line("s", [{"text": "So far."}]),
        gemini_line(
            "b", [thought, {"text": "two"}, {"functionCall": {"name": "run"}}], "gemini", toolCalls=[{"id": "c"}]
        ),
        gemini_line("r", [{"functionResponse": {"id": "c"}}]),
    ]
    assert gemini_texts(gemini_line("a", "one"), {"$set": {"messages": now}}, gemini_line("e", "on")) == [
        "So far.",
        "two",
        "on",
    ]


def test_what_a_line_of_gemini_holds_besides_is_named() -> None:
    call = gemini_line("b", [{"functionCall": {"name": "run"}}], "gemini")
    found = transcripts.read(lines(GEMINI_HEAD, {"other": 1}, call))
    assert found.warnings == (
        "record of unknown type left out, since it holds no message: line 2",
        "call without its record left out: line 3",
    )


def test_a_path_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        transcripts.read(tmp_path / "missing")


GEMINI_LINES = [
    GEMINI_HEAD,
    gemini_line("a", "one"),
    {"$rewindTo": "a"},
    {"$set": {"messages": [gemini_line("a", "one")]}},
]
DOCUMENTS: list[tuple[Any, Callable[[Any], bytes]]] = [
    *((value, dumps) for value in (NEBIUS, SHAREGPT, OPENINFERENCE, OPENINFERENCE_ROWS, OTEL, OTEL_SPANS)),
    *((value, dumps) for value in (LANGSMITH, LANGCHAIN, OPENHANDS_V1, TAU2)),
    *((value, lambda records: lines(*records)) for value in (OPENINFERENCE, LANGSMITH, OPENHANDS_V1)),
    *((value, dumps) for value in (SWE_TOOLS, SWE_TEXT, MINI, OPENHANDS, OPENHANDS_EARLY, INSPECT, TAU, GEMINI)),
    *((value, lambda records: lines(*records)) for value in (CLAUDE, CODEX, PI, CHAT, GEMINI_LINES)),
]


@pytest.mark.parametrize("seed", range(len(DOCUMENTS)))
def test_values_of_other_types_are_read_or_refused(seed: int) -> None:
    """Whatever stands in a field, the reader gives a history or says what is wrong."""
    value, written = DOCUMENTS[seed]
    chance = random.Random(seed)
    for _ in range(300):
        data = written(mutated(value, chance))
        with contextlib.suppress(recede.TranscriptError):
            for transcript in transcripts.read_all(data):
                recede.count_chars(transcript.messages)


@every_file
def test_every_cut_is_read_or_refused(name: str) -> None:
    data = FILES[name][1]
    for end in range(0, len(data), 7):
        with contextlib.suppress(recede.TranscriptError):
            transcripts.read_all(data[:end])


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_lines_are_read_in_a_stream(tmp_path: Path, engine: str) -> None:
    """A session of 120 MB, most of which the model never saw, takes far less memory."""
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        for number in range(120):
            file.write(lines({**answer(str(number)), "toolUseResult": "x" * 1_000_000}))
    code = (
        "import sys; from recede import transcripts; found = transcripts.read(sys.argv[1]); "
        "print(found.records, open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    records, peak = subprocess.check_output([sys.executable, "-c", code, str(path)]).split()
    assert int(records) == 120
    assert int(peak) < 60_000
