"""Transcripts without their long texts: a replay, a check and the counters are those of the whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transcript_files import answer, block, claude, item, lines, said, use

from recede import costs, transcripts
from recede.designs import mask_observation, mask_observations
from support import call, result, user

MASKED = "[observation masked — 5 chars]"
DISPATCH = "a" * 2_000 + "BEGIN_DISPATCH_RESULT\n" + "kept " * 300 + "\nEND_DISPATCH_RESULT" + "b" * 2_000
# What rules look for in a text stays; the others are only counted.
KEPT = ["short", DISPATCH, mask_observation(DISPATCH)]
LEFT_OUT = [
    "one line\n" * 400,
    "\u00e4\U0001f600" * 900,
    "[1, 2]" * 300,
    "[cleared]" * 300,
    MASKED * 60,
    "x" * 1_000,
    "x" * 1_001,
]
TEXTS = [*LEFT_OUT, *KEPT, *LEFT_OUT, "y" * 999]
POLICIES = [
    *costs.replay_policies(windows=[2], chunks=[1, 3], keep_last=[4]),
    "clear_tool_uses:trigger=500,keep=1",
    "clip:chars=300",
    "summary:every=4,tail=2",
]


def codex(number: str, text: str) -> list[Any]:
    output: Any = text if number != "0" else [{"type": "input_text", "text": text}]
    return [
        item(type="function_call", name="run", arguments="{}", call_id=number),
        item(type="function_call_output", call_id=number, output=output),
    ]


def claude_code(number: str, text: str) -> list[Any]:
    # A block that is logged twice is one; another of the same length is another one.
    first, second = said("I think. " * 200), said("I thank. " * 200)
    return [block(f"m{number}", first), block(f"m{number}", first, second, use(number)), answer(number, text)]


def pi(number: str, text: str) -> list[Any]:
    made = {"type": "toolCall", "id": number, "name": "read", "arguments": {"text": text}}
    messages = [
        {"role": "assistant", "content": [made]},
        {"role": "toolResult", "toolCallId": number, "content": [said(text)]},
        {"role": "bashExecution", "command": "ls", "output": text},
    ]
    return [{"type": "message", "message": message} for message in messages]


def json_lines(number: str, text: str) -> list[Any]:
    return [call(number), result(number, text)]


FORMATS: dict[str, tuple[Any, Callable[[str, str], list[Any]]]] = {
    "codex": ({"type": "session_meta", "payload": {"id": "x"}}, codex),
    "claude_code": (claude("user", user("Look.")), claude_code),
    "pi": ({"type": "session", "id": "x", "cwd": "/home"}, pi),
    "json_lines": (user("Look."), json_lines),
}


def both(name: str) -> tuple[transcripts.Transcript, transcripts.Transcript]:
    first, step = FORMATS[name]
    data = lines(first, *(record for number, text in enumerate(TEXTS) for record in step(str(number), text)))
    [whole] = transcripts.read_all(data)
    [light] = transcripts.read_all(data, keep_texts=False)
    assert (whole.format, whole.has_texts, light.has_texts) == (name, True, False)
    return whole, light


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for part in parts for text in texts(part)]


@pytest.mark.parametrize("name", FORMATS)
def test_a_replay_reads_of_long_texts_only_their_length(name: str) -> None:
    whole, light = both(name)
    assert costs.replay_transcript(light, POLICIES) == costs.replay_transcript(whole, POLICIES)
    assert (light.turns, light.warnings, light.records) == (whole.turns, whole.warnings, whole.records)
    tools = [mask_observations(one.messages, keep_results=1).tools for one in (whole, light)]
    assert tools[0] == tools[1] != {}
    found = texts(light.messages)
    assert [len(text) for text in found] == [len(text) for text in texts(whole.messages)]
    said = {"".join(text) for text in found}  # a join takes the characters that are there
    assert set(KEPT) <= said
    assert said.isdisjoint(LEFT_OUT) or name == "pi"


def test_what_reads_texts_is_refused() -> None:
    whole, light = both("codex")
    for policies, summary_chars in ((["budget:tokens=2000"], 500), (["summary:every=4,tail=2"], 0)):
        with pytest.raises(ValueError, match="keep_texts=True"):
            costs.replay_transcript(light, policies, summary_chars=summary_chars)
        costs.replay_transcript(whole, policies, summary_chars=summary_chars)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_large_session_is_replayed_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    with path.open("wb") as file:
        file.write(lines(FORMATS["codex"][0]))
        for number in range(200):
            file.write(lines(*codex(str(number), f"{number}\n" + "x" * 200_000)))
    code = (
        "import sys; from recede.cli.replay import replay; replay(sys.argv[1:], standalone_mode=False); "
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path), "-q"], capture_output=True, check=True)
    *_, peak = run.stdout.split()
    assert b"200 requests" in run.stdout
    assert int(peak) < 65_000  # kilobytes; the file has 40 MB
