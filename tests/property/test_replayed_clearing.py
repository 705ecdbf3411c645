"""Clearing and clipping that others do, replayed: against what they document, message by message."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import recede

Turns = list[tuple[int, int]]
"""Of each turn the characters of the answer and of the result."""

SIZES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 400)), min_size=1, max_size=12)
CALL = 25  # characters of a call: its name, its arguments, and 20 more
ANTHROPIC = "[Old tool result content cleared]"


def history_of(turns: Turns) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for number, (said, seen) in enumerate(turns):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        history.append({"role": "assistant", "content": "y" * said, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": f"call_{number}", "content": "x" * seen})
    return history


def replayed(turns: Turns, policy: str, system_chars: int = 0) -> list[tuple[int, int]]:
    """The characters of each request without the system prompt, and how many results it does not show whole."""
    found = recede.costs.replay(history_of(turns), [policy], system_chars=system_chars).policies[1].turns
    return [(turn.view_chars - system_chars, turn.masked_count) for turn in found]


def views(turns: Turns, cleared_of: Any) -> list[tuple[int, int]]:
    """The same, where `cleared_of` gives the characters of the results that a request shows, of those before it."""
    found = []
    for request in range(len(turns)):
        raw = [seen for _, seen in turns[:request]]
        shown = cleared_of(raw)
        own = 3 + sum(CALL + said for said, _ in turns[:request])
        found.append((own + sum(shown), sum(one != other for one, other in zip(raw, shown, strict=True))))
    return found


def cleared(size: int, placeholder: str) -> int:
    return min(size, len(placeholder))


@given(
    turns=SIZES,
    trigger=st.integers(1, 500),
    keep=st.integers(0, 4),
    at_least=st.integers(0, 90),
    system=st.integers(0, 800),
)
def test_clear_tool_uses_clears_all_but_the_newest_when_the_context_is_over_its_trigger(
    turns: Turns, trigger: int, keep: int, at_least: int, system: int
) -> None:
    done: list[int] = []  # sizes of the results as the request before had them

    def shown(raw: list[int]) -> list[int]:
        now = [*done, *raw[len(done) :]]
        own = system + 3 + sum(CALL + said for said, _ in turns[: len(raw)])
        after = [cleared(size, ANTHROPIC) for size in now[: max(0, len(now) - keep)]]
        after += now[len(after) :]
        if own + sum(now) > 4 * trigger and sum(now) - sum(after) >= 4 * at_least:
            now = after
        done[:] = now
        return now

    policy = f"clear_tool_uses:trigger={trigger},keep={keep},at_least={at_least}"
    expected = views(turns, shown)
    # A system prompt that alone is over the trigger clears at each request, and so does one that just reaches it.
    assert replayed(turns, policy, system) == expected


@given(turns=SIZES, chars=st.integers(60, 300))
def test_clip_cuts_results_from_their_first_request_on_and_never_changes_the_prefix(turns: Turns, chars: int) -> None:
    policy = f"clip:chars={chars}"
    cut = views(turns, lambda raw: [min(size, chars) for size in raw])
    # What is cut is not masked.
    assert replayed(turns, policy) == [(view_chars, 0) for view_chars, _ in cut]
    options: dict[str, Any] = {"prices": recede.costs.Prices(min_cached_tokens=0), "cache": "ideal", "system_chars": 0}
    clipped = recede.costs.replay(history_of(turns), [policy], **options).policies[1].turns
    assert [turn.cached_chars for turn in clipped] == [0, *(turn.view_chars for turn in clipped[:-1])]
