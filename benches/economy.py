"""The section of the table that says what a boundary costs by the providers' rules, on recorded sessions.

`python benches/economy.py` prints it alone, with `--table` as docs/measured.md has it, with `--bound` how near it comes
to a boundary that knows the future.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from optimum import SYSTEM_CHARS, least_cost
from recorded import corpus
from replayed import percent

import recede
from claims import Claim, Plan, Section
from formatting import markdown
from recede import transcripts
from recede.costs import Prices, Replay, compare_costs, replay

CORPUS = corpus()
MIN_OBSERVATIONS = 30
PRICES = Prices(output=0)
PINNED = "break_even:window=10,cache_breakpoint=boundary"
# Format, characters of system prompt and tools -> the most of raw that all sessions together may cost.
TARGETS = {
    ("claude_code", 12_000): 0.60,
    ("codex", 12_000): 0.52,
    ("claude_code", 90_000): 0.70,
    ("codex", 90_000): 0.61,
}


def economy(_: Plan) -> Section:
    """Line 11: what sessions of 30 observations or more cost, of raw, at Anthropic's prices and by its cache's rule."""
    if not CORPUS.is_dir():
        return Section(
            [Claim("11", "what recorded sessions cost", f"not measured: there is no {CORPUS} (make corpus)")], ""
        )
    claims = []
    for (name, system_chars), most in TARGETS.items():
        cost = _cost([_replayed(one, PINNED, "anthropic", system_chars) for one in _long(name)])
        what = f"{name}, {system_chars:,} characters before the messages: {PINNED} / raw"
        figure = f"{cost.of_raw:.3f} (worst session {cost.worst_of_raw:.2f}, worst moment {cost.worst_moment:.2f})"
        is_met = cost.of_raw <= most and cost.worst_of_raw <= 1.1 and cost.worst_moment <= 1.1
        claims.append(Claim("11", what, figure, f"at most {most:.2f}, no session over 1.10", is_met))
    cost = _cost(_paused())
    what = f"claude_code, the same with 12,000 and the pauses of the logs: {PINNED} / raw"
    claims.append(Claim("11", what, f"{cost.of_raw:.3f}", "at most 0.57", cost.of_raw <= 0.57))
    cost, of_least = _of_least(every_session(), 10)
    figure = f"{of_least:.3f} (worst session {cost.worst_of_raw:.2f} of raw)"
    is_met = of_least <= 1.04 and cost.worst_of_raw <= 1.1
    what = "all sessions, an ideal cache: break_even:window=10 / lower bound"
    claims.append(Claim("11", what, figure, "at most 1.04, no session over 1.10", is_met))
    return Section(claims, "")


def _replayed(messages: list[Any], policy: str, cache: str, system_chars: int) -> Replay:
    return replay(messages, [policy], prices=PRICES, cache=cache, system_chars=system_chars)


def _of_least(sessions: Iterable[list[Any]], window: int) -> tuple[Any, float]:
    """What break-even costs under an ideal cache, and that as a multiple of the lower bound."""
    replays, least = [], 0.0
    for messages in sessions:
        replays.append(_replayed(messages, f"break_even:window={window}", "ideal", SYSTEM_CHARS))
        least += least_cost(messages, window, PRICES)
    cost = _cost(replays)
    return cost, cost.cost / least


def bound() -> str:
    """How near break-even comes to the lower bound, as docs/measured.md has it."""
    rows = []
    for window in (4, 10, 20, 58):
        for name, sessions in (("all", every_session()), ("30 results or more", long_sessions())):
            cost, of_least = _of_least(sessions, window)
            shares = percent(cost.of_raw), percent(cost.of_raw / of_least), percent(cost.worst_of_raw)
            rows.append([f"{window}, {name}", *shares, f"{of_least:.3f}"])
    header = [
        "window, sessions",
        "break-even, of raw",
        "lower bound, of raw",
        "break-even in its worst session",
        "one / the other",
    ]
    return markdown(header, rows)


def _cost(replays: list[Replay]) -> Any:
    return compare_costs(replays)[1]


def _long(name: str) -> Iterator[list[Any]]:
    return long_of(CORPUS / name)


def long_of(folder: Path) -> Iterator[list[Any]]:
    """The recorded sessions of a folder with many observations."""
    return (one.messages for one in _sessions(folder) if is_long(one.messages))


def long_sessions() -> Iterator[list[Any]]:
    """The recorded sessions with many observations."""
    return filter(is_long, every_session())


def is_long(messages: list[Any]) -> bool:
    """Whether a session has many observations."""
    tools = recede.reduce(messages, keep=0, boundary="sliding").tools.values()
    return sum(tool.observations for tool in tools) >= MIN_OBSERVATIONS


def every_session() -> Iterator[list[Any]]:
    """The recorded sessions that have a history."""
    folders = (folder for folder in sorted(CORPUS.iterdir()) if folder.is_dir())
    return (one.messages for folder in folders for one in _sessions(folder))


def _times(session: transcripts.Transcript) -> dict[int, float]:
    return {request.messages: request.time for request in session.requests if request.time is not None}


def _sessions(folder: Path) -> Iterator[transcripts.Transcript]:
    for path in sorted(folder.iterdir()):
        try:
            found = transcripts.read_all(path)
        except (ValueError, OSError):
            continue  # no history
        yield from found


def table() -> str:
    """What the first claims say, as docs/measured.md has it."""
    rows = []
    for system_chars in sorted({chars for _, chars in TARGETS}):
        costs = [
            _cost([_replayed(one, PINNED, "anthropic", system_chars) for one in _long(name)])
            for name in ("claude_code", "codex")
        ]
        worst = max(cost.worst_moment for cost in costs)
        rows.append([f"{system_chars:,}", *(f"{cost.of_raw:.3f}" for cost in costs), f"{worst:.2f}"])
    rows.append(["12,000, with the pauses of the logs", f"{_cost(_paused()).of_raw:.3f}", "", ""])
    header = ["characters of system prompt and tools", "Claude Code", "Codex", "worst moment of any session"]
    return markdown(header, rows)


def _paused() -> list[Replay]:
    return [
        replay(one.messages, [PINNED], prices=PRICES, system_chars=12_000, times=_times(one))
        for one in _sessions(CORPUS / "claude_code")
        if is_long(one.messages)
    ]


if __name__ == "__main__":
    from claims import FULL

    if "--table" in sys.argv:
        sys.exit(print(table()))
    if "--bound" in sys.argv:
        sys.exit(print(bound()))
    for claim in economy(FULL).claims:
        print(f"{'met' if claim.is_met else 'missed'}: {claim.what}: {claim.figure}; {claim.target}")
