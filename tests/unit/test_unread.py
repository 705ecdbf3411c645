"""What is not understood is said on the screen and by each command, and never taken for nothing."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import recede_command
from transcript_files import CODEX, lines

import recede
from recede import transcripts
from support import SHARED, assistant, dumps, tool_result, tool_use, user

PARTS = [{"role": "user", "content": "Go."}, {"role": "agent", "content": [{"type": "part", "said": "Next."}]}]


@pytest.mark.parametrize(
    ("messages", "kinds"),
    [
        (PARTS, ("role agent", "type part")),
        ([user("Go."), {"role": "assistant", "parts": [{"kind": "text", "text": "Next."}]}], ()),
        ([user("Go."), {"role": "assistant", "parts": [{"kind": "data", "data": 5}]}], ("field kind, data",)),
        ([user("Go."), {"role": "assistant", "thought": "Next.", "call": "ls"}], ("field thought, call alone",)),
        ([user("Go."), {"type": "agent.tool_use", "name": "bash"}], ("type agent.tool_use",)),
        ([user("Go."), {"speaker": "agent", "said": "Next."}], ("field speaker, said",)),
        ([user("Go."), assistant([{"type": "tool-call", "toolCallId": "1"}])], ("type tool-call",)),
        ([user("Go."), tool_use("1"), user([tool_result("1", "a")])], ()),
        ([user("Go."), assistant([{"type": "web_search_tool_result", "content": []}])], ()),
        ([{"type": "function_call_output", "call_id": "1", "result": "a"}], ("field result",)),
        ([{"type": "function_call_output", "call_id": "1", "status": "failed"}], ()),
        ([user([{"type": "tool_result", "tool_use_id": "1", "text": "a", "is_error": False}])], ("field text",)),
        ([user([{"type": "tool_result", "tool_use_id": "1"}])], ()),
        ([{"role": "user", "parts": [{"functionResponse": {"name": "f", "result": {}}}]}], ("field result",)),
        ([{"role": "user", "content": [{"toolResult": {"toolUseId": "1", "text": "a"}}]}], ("field text",)),
        ([{"type": "shell_call_output", "output": "a"}, {"type": "reasoning"}, {"role": "x", "pairRole": "call"}], ()),
        ([user([{"text": "Go."}, {"cachePoint": {}}]), assistant([{"toolUse": {"toolUseId": "1"}}])], ()),
    ],
)
def test_what_is_unknown_of_messages_is_named(messages: list[Any], kinds: tuple[str, ...]) -> None:
    read = transcripts.read(dumps(messages))
    assert (read.unread.kinds, read.unread.messages) == (kinds, min(1, len(kinds)))
    assert bool(read.warnings) == bool(kinds)


def test_results_that_all_lose_their_text_are_said() -> None:
    """A version of a log that names the text of its results otherwise."""
    results = [{"functionResponse": {"id": str(one), "name": "f", "response": {"output": "a"}}} for one in range(2)]
    turns = [
        {"type": "gemini", "content": "", "toolCalls": [{"id": str(one), "name": "f", "result": [result]}]}
        for one, result in enumerate(results)
    ]
    data = dumps({"sessionId": "1", "messages": turns})
    assert transcripts.read(data).warnings == ()
    renamed = transcripts.read(data.replace(b"response", b"answer"))
    assert renamed.warnings == ("none of its 2 results has text: the log may be of another version than is read",)


def said_of(path: Path, data: bytes, code: int = 0) -> list[str]:
    """What `stats`, `replay` and `reduce` say of a file."""
    path.write_bytes(data)
    said = []
    for command in (["stats"], ["replay"], ["reduce", "--keep", "2", "-o", path.parent / "out"]):
        done = recede_command(command[0], path, *command[1:])
        assert done.returncode == code, done.stderr
        said.append(done.stdout.decode() + done.stderr.decode())
    return said


@pytest.mark.parametrize("write", [dumps, lambda messages: lines(*messages)])
def test_each_command_says_what_was_not_understood(write: Any, tmp_path: Path) -> None:
    words = "no results were found; 1 message was not understood: role agent, type part"
    for said in said_of(tmp_path / "log", write([*PARTS, assistant("a")])):
        assert words in said and "no tool results to mask" not in said
    found = [tool_use("1"), user([tool_result("1", "a")])]
    for said in said_of(tmp_path / "log", write([*PARTS, *found])):
        assert "1 message was not understood: role agent, type part" in said and "no results were found" not in said


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (
            lines({"type": "a.started"}, {"type": "b"}),
            "lines of the types a.started, b",
        ),
        (lines({"event": 1}, {"data": 2}), "lines with the fields event, data"),
        (dumps({"type": "result", "result": "Done."}), "lines of the type result"),
        (b'{\n"trajectory": []}', "an object with the fields trajectory"),
        (lines({"type": "\x1b[2J" * 99}), "lines of the type \\u001b[2J"),
        (lines({}, {}), "lines of objects without fields"),
    ],
)
def test_what_is_of_no_known_format_is_refused_with_what_was_seen(data: bytes, seen: str, tmp_path: Path) -> None:
    for source in (data, gzip.compress(data)):
        with pytest.raises(recede.TranscriptError) as caught:
            transcripts.read(source)
        assert str(caught.value).startswith(f"bytes: not a history, but {seen}")
    for said in said_of(tmp_path / "log", data, code=1):
        assert f"not a history, but {seen}" in said


def test_the_screen_counts_what_could_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(*CODEX)[:-9])
    (tmp_path / "b.jsonl").write_bytes(lines(*CODEX[:4]) + b"\0\0\n{\n" + lines(*CODEX[4:]))
    (tmp_path / "c.jsonl").write_bytes(b'{"type": "a.started"}\n')
    shown = recede_command("replay", tmp_path).stdout.decode()
    assert "  1 session could not be read; 3 damaged lines were skipped\n" in shown


def renamed(value: Any, name: str, kind: str | None = None) -> Any:
    """The value with another name of a field; with a kind, with another kind where the field has it."""
    if isinstance(value, list):
        return [renamed(one, name, kind) for one in value]
    if not isinstance(value, dict):
        return value
    changed = {}
    for key, held in value.items():
        if key != name:
            changed[key] = renamed(held, name, kind)
        elif kind is None:
            changed[f"{key}New"] = renamed(held, name, kind)
        else:
            changed[key] = f"{kind}_new" if held == kind else renamed(held, name, kind)
    return changed


def names_in(value: Any) -> set[tuple[str, str | None]]:
    """The fields of all objects in a value, and the kinds that some of them name."""
    if isinstance(value, list):
        return set().union(*map(names_in, value))
    if not isinstance(value, dict):
        return set()
    kinds = {(name, held) for name, held in value.items() if name in KINDS and isinstance(held, str)}
    return {*((name, None) for name in value), *kinds}.union(*map(names_in, value.values()))


KINDS = ("event", "from", "kind", "part_kind", "role", "run_type", "source", "status", "type")
NO_LOGS = {"272-question-for-a-summary.json"}  # numbers from which a history is made
LOGS = [
    pytest.param(
        path,
        id=path.name,
        marks=pytest.mark.xfail(
            path.name == "264-images-in-function-response-gemini.json",
            reason="images in a functionResponse count nothing",
            strict=True,
        ),
    )
    for path in sorted((SHARED / "cases").rglob("*.json*"))
    if path.suffix in (".json", ".jsonl") and path.name not in NO_LOGS
]


@pytest.mark.parametrize("path", LOGS or [pytest.param(None, id="absent")])
def test_a_newer_version_of_a_log_never_loses_its_text_without_a_word(path: Path | None) -> None:
    """Each field and each kind of the logs of strangers gets another name, as an update of the agent may do."""
    if path is None:
        pytest.skip("needs the cases beside the project")
    is_lines = path.suffix == ".jsonl"
    values = list(whole_lines(path)) if is_lines else json.loads(path.read_bytes())
    if not any(has_text(read) for read in transcripts.read_all(path)):
        return
    for name, kind in names_in(values):
        changed = renamed(values, name, kind)
        try:
            found = transcripts.read_all(lines(*changed) if is_lines else dumps(changed))
        except recede.TranscriptError:
            continue
        is_said = any(read.unread.messages or "none of its" in " ".join(read.warnings) for read in found)
        assert is_said or any(map(has_text, found)), (name, kind)


def whole_lines(path: Path) -> Iterator[Any]:
    """The values of the lines that are JSON."""
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def has_text(read: transcripts.Transcript) -> bool:
    """Whether any result of a history has text."""
    return any(tool.chars for tool in recede.reduce(read.messages, boundary="sliding").tools.values())
