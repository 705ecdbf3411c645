"""What the requests of a session with a budget send, by a `History` of its own."""

from __future__ import annotations

from typing import Any

import recede
from recede.costs import Prices
from recede.costs._prices import SUMMARY_PROMPT_CHARS

SYSTEM = 500


def check_replay(
    history: list[Any], summary_chars: int, prices: Prices, *, unit: str, budget: int, fill: float | None
) -> int:
    """Compares each request of a replay under a budget with a `History`. Returns how many summaries that asked for."""
    spelled = "none" if fill is None else fill
    [raw, policy] = recede.costs.replay(
        history,
        [f"budget:{unit}={budget},fill={spelled}"],
        prices=prices._replace(min_cached_tokens=0),
        system_chars=SYSTEM,
        summary_chars=summary_chars,
    ).policies
    calls: list[int] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        calls.append(recede.count_chars(messages) + len(previous or "") + SUMMARY_PROMPT_CHARS)
        return "x" * summary_chars

    options: dict[str, Any] = {f"max_input_{unit}": budget, "fill": fill}
    options["summarizer"] = summarizer if summary_chars else None
    session = recede.History(cache_read=float(prices.cached), cache_write=float(prices.write), **options)
    before: list[Any] = []
    for turn, whole in zip(policy.turns, raw.turns, strict=True):
        session.extend(history[len(session) : turn.messages])
        made = len(calls)
        view, stats = session.view(), session.stats()
        assert turn.view_chars == SYSTEM + recede.count_chars(view) == SYSTEM + stats.view_chars
        assert turn.masked_count == stats.masked_count
        same = 0
        while same < min(len(before), len(view)) and before[same] == view[same]:
            same += 1
        assert turn.cached_chars == (SYSTEM + recede.count_chars(view[:same]) if turn is not policy.turns[0] else 0)
        assert turn.written_chars == turn.view_chars - turn.cached_chars
        assert turn.summary_input_chars == sum(calls[made:])
        assert turn.summary_output_chars == summary_chars * len(calls[made:])
        assert turn.answer_chars == whole.answer_chars
        shown = recede.reduce(view, max_input_chars=0, enabled=False).turns
        assert turn.summarized_turns == stats.turns - shown
        before = view
    return len(calls)
