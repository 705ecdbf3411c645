"""What the sessions of the corpus log of their requests, against what a plain count of their lines gives."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shared_data import CORPUS, corpus_files, each_file, need

import recede
from recede import transcripts

CLAUDE_CODE = [path for path in corpus_files() if path.parent.name == "claude_code"]
LONGEST = ("git-sync_0c2a854b89080.jsonl.gz", "git-sync_fde63c6432fc16.jsonl.gz")

_decoder = json.JSONDecoder()


def records(path: Path) -> Iterator[Any]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in text.decode().split("\n"):
        rest = line.strip()
        while rest:
            value, end = _decoder.raw_decode(rest)
            yield value
            rest = rest[end:].lstrip()


def counted(session: transcripts.Transcript) -> list[transcripts.LoggedUsage]:
    return [request.usage for request in session.requests if request.usage is not None]


@each_file("claude_code")
def test_each_message_of_claude_code_counts_once(path: Path) -> None:
    messages = {}
    for record in records(path):
        message = record.get("message") if isinstance(record, dict) else None
        if isinstance(message, dict) and message.get("usage") and message.get("model") != "<synthetic>":
            messages.setdefault(message["id"], []).append(message["usage"])
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    [session] = transcripts.read_all(path)
    usages = counted(session)
    assert len(usages) == len(session.requests) == len(messages)
    assert sum(usage.sent_tokens for usage in usages) == sum(
        lines[0].get(name, 0) for lines in messages.values() for name in names
    )
    assert sum(usage.output_tokens for usage in usages) == sum(
        max(line["output_tokens"] for line in lines) for lines in messages.values()
    )
    assert all(request.model and request.time for request in session.requests)
    times = [request.time for request in session.requests if request.time]
    assert times == sorted(times)


def test_claude_code_sessions_but_the_longest_log_785_requests_of_49_million_tokens() -> None:
    need(CORPUS)
    usages = [usage for path in CLAUDE_CODE if path.name not in LONGEST for usage in counted(transcripts.read(path))]
    assert (len(usages), sum(usage.sent_tokens for usage in usages)) == (785, 49_228_431)


@each_file("codex")
def test_the_counts_of_codex_add_up_to_its_own_total(path: Path) -> None:
    total: dict[str, int] = {}
    for record in records(path):
        info = record["payload"].get("info") if record["payload"].get("type") == "token_count" else None
        total = info["total_token_usage"] if info else total
    usages = counted(transcripts.read(path))
    assert sum(usage.sent_tokens for usage in usages) == total["input_tokens"]
    assert sum(usage.cached_tokens for usage in usages) == total["cached_input_tokens"]
    assert sum(usage.output_tokens for usage in usages) == total["output_tokens"]


@each_file("claude_code", "codex")
def test_logged_requests_are_those_that_a_replay_makes(path: Path) -> None:
    contexts = transcripts.read(path).contexts
    missing = 0
    for context in contexts:
        turns = recede.costs.replay(context.messages, ["raw"]).policies[0].turns
        played = [turn.messages for turn in turns if turn.messages >= context.shown]
        logged = [request.messages for request in context.requests]
        assert set(logged) <= set(played)
        assert len(logged) == len(set(logged))
        missing += len(played) - len(logged)
    assert missing == 0


def test_compactions_split_sessions_so_that_less_is_sent() -> None:
    need(CORPUS)
    splits = 0
    for path in corpus_files():
        for session in transcripts.read_all(path):
            if any("cleared" in warning for warning in session.warnings):
                continue  # its user began again: little is sent before
            first, *others = session.contexts
            for before, after in zip([first, *others], others, strict=False):
                assert after.requests[0].usage is not None
                last = [usage.sent_tokens for usage in counted(before)][-1]
                assert after.requests[0].usage.sent_tokens < last / 2
                splits += 1
            assert sum(len(one.messages) - one.shown for one in session.contexts) == len(session.messages)
    assert splits == 3


def test_formats_that_log_usage_give_it() -> None:
    need(CORPUS)
    logged: dict[str, int] = {}
    for path in corpus_files():
        for session in transcripts.read_all(path):
            logged[session.format] = logged.get(session.format, 0) + sum(u.sent_tokens for u in counted(session))
    assert {name: tokens for name, tokens in logged.items() if name not in ("claude_code", "codex")} == {
        "body": 23_941,
        "gemini": 131_375,
        "inspect": 15_947,
        "mini_swe": 0,
        "openhands": 970_140,
        "pi": 56_382_684,
        "swe_agent": 0,
        "tau_bench": 0,
    }
