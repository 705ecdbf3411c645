"""Replays of the corpus against what its logs say was paid."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from functools import cache

import pytest
from shared_data import CORPUS, corpus_files, need

from recede import costs, transcripts
from recede.costs import Bill, BillCheck

FILES = corpus_files()

# What the log of a session shows, and no rule predicts: requests that OpenAI or Google served from another machine,
# pauses that a cache of an hour outlived, a change of the model or of the tools.
REASONS = ("without a pause", "after which it was kept", "compaction that the log hides")


@cache
def checks(pauses: str) -> dict[str, BillCheck]:
    found = {}
    for path in FILES:
        for session in transcripts.read_all(path):
            check = costs.check_bill(session, pauses=pauses)
            if check is not None:
                found[f"{path.parent.name}/{path.name}#{session.index}"] = check
    return found


def off(logged: float, estimated: float) -> float:
    return abs(estimated / logged - 1) if logged else 0.0


def sums(found: dict[str, BillCheck]) -> tuple[Bill, Bill]:
    return Bill.total(one.logged for one in found.values()), Bill.total(one.estimated for one in found.values())


def test_input_tokens_are_within_two_percent_on_average_and_five_at_worst() -> None:
    need(CORPUS)
    errors = [one.input_error for one in checks("logged").values()]
    assert len(errors) == 56
    assert sum(errors) / len(errors) < 0.011
    assert max(errors) < 0.041


def test_the_second_half_of_a_session_is_predicted_from_the_first() -> None:
    need(CORPUS)
    halves = [one.second_half_error for one in checks("logged").values() if one.second_half_error is not None]
    assert len(halves) > 45
    assert max(halves) < 0.081


def test_output_is_as_logged() -> None:
    need(CORPUS)
    for one in checks("logged").values():
        assert one.estimated.output_tokens == pytest.approx(one.logged.output_tokens, abs=one.logged.requests)


def test_tokens_by_kind_and_dollars_are_those_of_the_logs() -> None:
    need(CORPUS)
    found = checks("logged")
    paid, estimated = sums(found)
    for kind in ("cached_tokens", "fresh_tokens", "cost"):
        assert off(getattr(paid, kind), getattr(estimated, kind)) < 0.05, kind
    for name, one in found.items():
        for kind in ("cached_tokens", "fresh_tokens", "cost"):
            assert off(getattr(one.logged, kind), getattr(one.estimated, kind)) < 0.15, (name, kind)


def test_by_rule_and_time_stamps_alone_the_dollars_agree_and_reasons_are_named() -> None:
    need(CORPUS)
    found = checks("timed")
    paid, estimated = sums(found)
    assert off(paid.cached_tokens, estimated.cached_tokens) < 0.05
    assert off(paid.cost, estimated.cost) < 0.05
    claude = {name: one for name, one in found.items() if name.startswith("claude_code/")}
    paid, estimated = sums(claude)
    for kind in ("cached_tokens", "fresh_tokens", "cost"):
        assert off(getattr(paid, kind), getattr(estimated, kind)) < 0.05, kind
    for name, one in found.items():
        kinds = ("cached_tokens", "fresh_tokens", "cost")
        if any(off(getattr(one.logged, kind), getattr(one.estimated, kind)) > 0.15 for kind in kinds):
            assert any(reason in note for reason in REASONS for note in one.notes), name


def test_models_of_the_large_sessions_have_prices() -> None:
    need(CORPUS)
    unknown = {
        model for one in checks("logged").values() for model in one.prices.models if not costs.model_prices(model)
    }
    assert unknown == {"meta-llama/llama-4-maverick", "llama3.1"}


def test_a_replay_of_the_corpus_says_what_was_paid() -> None:
    need(CORPUS)
    paths = [path for path in FILES if path.parent.name == "claude_code"]
    command = [sys.executable, "-m", "recede.cli", "replay", "--json", "--policy", "raw", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, check=True)
    total = json.loads(done.stdout)["total"]
    paid = Bill.total(costs.logged_bill(transcripts.read(path).requests) for path in paths)
    assert paid.requests == 1_614
    assert math.isclose(total["policies"][0]["cost"], paid.cost, rel_tol=0.02)
