"""Recorded sessions played again with summaries: one engine against the other."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from budgets import check_replay
from shared_data import CORPUS, each_file, need

import recede
from recede import transcripts
from support import ENGINES, using

SUMMARY = 60
PRICES = recede.costs.Prices(min_cached_tokens=0)
OPTIONS: dict[str, Any] = {"prices": PRICES, "cache": "ideal", "system_chars": 1_000, "summary_chars": SUMMARY}
POLICIES = (
    "summary:every=10,tail=5",
    "summary:every=break_even,tail=5",
    "hybrid:window=5,at=20,tail=8",
    "hybrid:window=5,at=20,tail=8,boundary=break_even",
    "hybrid:window=5,at=break_even,tail=8,boundary=break_even",
)
# More takes the oracle too long.
MOST_REQUESTS = 60


@each_file()
def test_each_turn_is_shown_once_and_the_engines_agree(path: Path) -> None:
    need(CORPUS)
    for transcript in transcripts.read_all(path):
        history: list[Any] = transcript.messages[:]
        replayed = recede.costs.replay(history, POLICIES, **OPTIONS)
        for policy in replayed.policies[1:]:
            check_turns(policy, tail=5 if policy.policy.startswith("summary") else 8)
            if policy.policy.endswith("at=break_even,tail=8,boundary=break_even"):
                # The masks and the summaries have each paid for themselves.
                assert policy.usage.cost(PRICES) <= 3 * replayed.policies[0].usage.cost(PRICES)
        if len(replayed.policies[0].turns) > MOST_REQUESTS:
            continue
        for engine_name in ENGINES:
            with using(engine_name):
                assert recede.costs.replay(history, POLICIES, **OPTIONS) == replayed


@each_file()
def test_a_budget_is_that_of_a_history(path: Path) -> None:
    need(CORPUS)
    for transcript in transcripts.read_all(path):
        for tokens, fill, summary_chars in ((8_000, 0.5, SUMMARY), (20_000, 0.5, 0)):
            check_replay(transcript.messages, summary_chars, PRICES, unit="tokens", budget=tokens, fill=fill)


def check_turns(policy: recede.costs.PolicyReplay, tail: int) -> None:
    """Summaries stand for more and more turns, but for the tail; each is paid for, and none makes a view larger."""
    counts = [0, *(turn.summarized_turns for turn in policy.turns)]
    for taken, ((before, now), turn) in enumerate(zip(pairwise(counts), policy.turns, strict=True)):
        assert before <= now <= max(0, taken - tail)
        assert (now > before) == (turn.summary_input_chars > 0) == (turn.summary_output_chars > 0)
        assert turn.cached_chars + turn.written_chars == turn.view_chars
