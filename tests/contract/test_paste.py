"""The line that a replay gives to paste does what the policy did."""

from __future__ import annotations

from typing import Any

import pytest

import recede
from recede.cli.paste import line_for
from support import turns, user

HISTORY = [user("Fix the test."), *turns(60, chars=3_000)]
MASKS = [
    "sliding:window=10",
    "sliding:window=0",
    "stepped:window=5,chunk=10",
    "break_even:window=20",
    "break_even:window=20,cache_breakpoint=boundary",
    "hybrid:window=7,at=never,tail=10,boundary=break_even",
    "hybrid:window=7,at=never,tail=10,boundary=stepped,chunk=4",
    "keep_last:messages=20",
]
HYBRIDS = [
    "hybrid:window=10,at=43,tail=10",
    "hybrid:window=10,at=43,tail=10,boundary=break_even",
    "hybrid:window=5,at=break_even,tail=10,boundary=stepped,chunk=5",
]


def pasted(line: str, **names: Any) -> dict[str, Any]:
    """The names after the line was run as a user would."""
    names["recede"] = recede
    exec(line, names)
    return names


@pytest.mark.parametrize("prices", ["anthropic", "openai", "anthropic,cached=1,write=6"])
@pytest.mark.parametrize("policy", MASKS)
def test_a_pasted_line_sends_at_each_request_what_the_replay_counted(policy: str, prices: str) -> None:
    paid = recede.costs.Prices.parse(prices)
    session = recede.costs.replay(HISTORY, [policy], prices=paid, system_chars=0)
    line = line_for(session.policies[1].policy, paid, session.cache)
    assert line is not None
    raw, masked = (replayed.turns for replayed in session.policies)
    assert masked[-1].view_chars < raw[-1].view_chars
    for turn in masked:
        view = pasted(line, messages=HISTORY[: turn.messages])["view"]
        assert recede.count_chars(view) == turn.view_chars


@pytest.mark.parametrize("policy", HYBRIDS)
def test_a_pasted_manager_has_the_numbers_of_the_policy(policy: str) -> None:
    line = line_for(policy, recede.costs.Prices())
    assert line is not None
    manager = pasted(line)["manager"]
    values = dict(part.split("=") for part in policy.partition(":")[2].split(","))
    shown = [str(value) for value in (manager.window, manager.summarize_at, manager.tail)]
    assert shown == [values["window"], values["at"], values["tail"]]
    assert manager.boundary == values.get("boundary", "sliding")


def test_every_policy_compared_by_default_has_a_line_or_is_named() -> None:
    without = {
        policy.partition(":")[0]
        for policy in recede.costs.replay_policies()
        if line_for(policy, recede.costs.Prices()) is None
    }
    assert without == {"raw", "summary"}
