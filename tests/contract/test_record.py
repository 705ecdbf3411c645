"""Screen, list and page are drawn from one record, which `--json` prints: each number of them is in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_logs import TALK, claude_log, codex_log, gemini_log
from children import recede_command
from shared_data import CORPUS, need

from recede.cli.tables import compact, gain, money, percent, tenths
from support import dumps, put, turns, turns_of, user

NUMBER = re.compile(r"\$?\d[\d,]*(?:\.\d+)?(?:e-\d+)?[kMG]?(?: %| times)?")


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers_in(one)
    elif isinstance(value, list):
        yield float(len(value))
        for one in value:
            yield from numbers_in(one)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from texts_in(one)
    elif isinstance(value, str):
        yield value


def written(record: Any) -> set[str]:
    """Each number of a record in every way in which a screen writes one, and the numbers in its texts."""
    found = {word for text in texts_in(record) for word in NUMBER.findall(text)}
    for number in numbers_in(record):
        found |= {f"{abs(number):,.0f}", money(abs(number)), compact(abs(number)), percent(number), tenths(number)}
        found |= set(NUMBER.findall(gain(number)))
    return found


def record_of(report: dict[str, Any]) -> dict[str, Any]:
    """What the report has of the screen, with what follows from two of its numbers."""
    screen, sessions = report["total"]["screen"], [one["screen"] for one in report["histories"]]
    record: dict[str, Any] = {**screen, "sessions": sessions, "requests": report["total"]["requests"]}
    raw, silent = screen["raw"], screen["unpriced"]
    shares = [choice["largest_tokens"] / screen["context_window"] for choice in (raw, screen["masked"]) if choice]
    if screen["with_more_turns"] is not None:
        shares.append(screen["with_more_turns"] / raw["dollars"])
    if silent is not None:
        shares.append(silent["masked_tokens"] / silent["tokens"])
    return {**record, "shares": shares}


def sessions_in(folder: Path, kind: str) -> list[Path]:
    logs = {
        "agents": [claude_log(), codex_log(), gemini_log()],
        "summaries": [claude_log(*TALK)],
        "own": [dumps([user("Fix."), *turns(60, chars=4_000)]), dumps([user("Hello."), *turns(3, chars=50)])],
        "short": [dumps([user("Hello."), *turns(3, chars=50)])],
        "words": [dumps(turns_of([(6_000, 60)] * 300))],
    }[kind]
    return [put(folder / f"{chr(97 + number)}.jsonl", log) for number, log in enumerate(logs)]


@pytest.mark.parametrize("options", [[], ["--subscription"], ["--set", "elongation=0.5"]])
@pytest.mark.parametrize("kind", ["agents", "summaries", "own", "short", "words"])
def test_each_number_of_the_screen_is_in_the_json(kind: str, options: list[str], tmp_path: Path) -> None:
    files = sessions_in(tmp_path, kind)
    shown = recede_command("replay", *files, *options).stdout.decode()
    known = written(record_of(json.loads(recede_command("replay", *files, *options, "--json").stdout)))
    missing = [word for word in NUMBER.findall(shown) if word not in known]
    assert not missing, f"{missing} in\n{shown}"
    assert len(NUMBER.findall(shown)) > 3


def test_each_number_of_the_list_and_the_page_is_in_the_json(tmp_path: Path) -> None:
    files = sessions_in(tmp_path, "agents")
    page = recede_command("replay", *files, "--html", "-").stdout.decode()
    known = written(record_of(json.loads(recede_command("replay", *files, "--json").stdout)))
    table = re.search(r'<table class="sessions">.*?</table>', page, re.S)
    assert table is not None
    cells = re.findall(r"<td>([^<]*)</td>", table[0])
    assert len(cells) == 9 and all(word in known for cell in cells for word in NUMBER.findall(cell)), cells


def test_sessions_of_the_corpus_have_their_numbers_in_the_json(tmp_path: Path) -> None:
    need(CORPUS)
    files = sorted((CORPUS / "claude_code").iterdir())[:6]
    shown = recede_command("replay", *files).stdout.decode()
    known = written(record_of(json.loads(recede_command("replay", *files, "--json").stdout)))
    assert not [word for word in NUMBER.findall(shown) if word not in known], shown
