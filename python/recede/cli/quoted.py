"""Quotations from old results, as `recede replay` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recede.cli.notices import counted
from recede.cli.played import MASKED, Session
from recede.cli.tables import prose, table
from recede.cli.words import money, percent, tenths
from recede.costs import Quotation, Replay, WindowCurve, quoted_share

_MOST_CHARS = 100

RECORDED = 0.042
"""The share under `MASKED` in recorded sessions of 30 results or more (`benches/misses.py --table break_even`)."""


def listed(sessions: Sequence[Session], policy: str) -> list[tuple[str, Quotation]]:
    """Requests that quote what a policy had hidden, in order: the number and name of the session, the oldest source."""
    found = []
    for number, session in enumerate(sessions, 1):
        if session.replay.misses is not None:
            oldest: dict[int, Quotation] = {}
            for one in sorted(session.replay.misses.quoted, key=lambda one: one.distance):
                oldest[one.request] = one
            requests = sorted(session.replay.misses.by_policy[policy])
            found += [(f"{number} {session.name}", oldest[request]) for request in requests]
    return found


def list_table(found: Sequence[tuple[str, Quotation]]) -> str:
    """A row for each quotation; requests and results count from 1, as people do."""
    rows = [
        [
            session,
            one.tool or "(unknown)",
            f"{one.request + 1:,}",
            f"{one.distance:,}",
            one.text if len(one.text) <= _MOST_CHARS else f"{one.text[: _MOST_CHARS - 1]}…",
        ]
        for session, one in found
    ]
    return table(["session", "tool", "request", "results ago", "text"], rows, names=2, is_last_name=True)


def misses_text(sessions: Sequence[Session], policy: str) -> str:
    """The list, and whether the share of requests that quote is low or high beside that of the recorded sessions."""
    share = quoted_share([session.replay for session in sessions], MASKED)
    said = "quoted: no texts were read"
    if share is not None:
        high = "low" if share < RECORDED / 2 else "high" if share > 2 * RECORDED else "usual"
        said = f"quoted: {tenths(share)} with a window of 10 is {high}: recorded sessions have {tenths(RECORDED)}"
    return f"{list_table(listed(sessions, policy))}\n{prose([said, ''])}"


def quoted_lines(sessions: Sequence[Session]) -> list[str]:
    """What the column `quoted` counts, and what was not measured."""
    measured = [session.replay.misses for session in sessions if session.replay.misses is not None]
    silent = len(sessions) - len(measured)
    lines = []
    if measured:
        examined = counted(sum(one.examined for one in measured), "request")
        sampled = ", a sample," if any(one.examined < one.requests for one in measured) else ""
        lines.append(
            f"quoted: the share of {examined}{sampled} that wrote again, word for word, what only results had that the "
            "choice had hidden by then"
        )
    if silent:
        lines.append(
            f"quoted: {counted(silent, 'session')} not measured, whose texts were not read (--misses reads them)"
        )
    return lines


def quoted_shares(replays: Sequence[Replay]) -> dict[str, float]:
    """The share of requests that quote what a policy had hidden, by policy, where that is known."""
    shares = {policy.policy: quoted_share(replays, policy.policy) for policy in replays[0].policies}
    return {policy: share for policy, share in shares.items() if share is not None}


def curve_text(curve: WindowCurve, sessions: Sequence[Session]) -> str:
    rows = [
        [f"{one.window}", money(one.cost.cost), percent(one.cost.of_raw), tenths(one.quoted)] for one in curve.choices
    ]
    drawn = table(["window", "cost", "of raw", "quoted"], rows)
    return f"{drawn}\n{prose([advice(curve), *quoted_lines(sessions), ''])}"


def advice(curve: WindowCurve) -> str:
    best = curve.advised()
    if best is not None:
        return (
            f"window: {best.window} saves most for each quotation of what it hides: "
            f"{percent(best.cost.of_raw)} of raw, {tenths(best.quoted)} quoted"
        )
    return f"window: no advice: it needs a saving, and five sessions with 30 results or more, here are {curve.sessions}"


def curve_as_json(curve: WindowCurve) -> dict[str, Any]:
    best = curve.advised()
    windows = [
        {"window": one.window, "cost": one.cost.cost, "of_raw": one.cost.of_raw, "quoted": one.quoted}
        for one in curve.choices
    ]
    return {"window": None if best is None else best.window, "sessions": curve.sessions, "windows": windows}


def misses_as_json(session: Session) -> dict[str, Any] | None:
    found = session.replay.misses
    if found is None:
        return None
    quoted = [one._asdict() for one in found.quoted]
    return {"requests": found.requests, "results": found.results, "examined": found.examined, "quoted": quoted}
