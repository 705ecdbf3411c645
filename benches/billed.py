"""How far replays are from what the logs of the recorded sessions say: `python benches/billed.py`, for docs/bill.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recorded import files

from formatting import markdown
from recede import transcripts
from recede.costs import Bill, BillCheck, check_bill

FORMATS = {"Claude Code": "claude_code", "Codex": "codex", "pi": "pi"}
KINDS = {"cached_tokens": "read", "fresh_tokens": "not read", "cost": "dollars"}
WITHIN, WITHIN_A_SESSION = 0.05, {"cached_tokens": 0.15, "fresh_tokens": 0.15, "cost": 0.05}


def checks(pauses: str) -> list[tuple[str, BillCheck]]:
    """Each session that logs usage, with its format."""
    sessions = (one for path in files() for one in transcripts.read_all(path))
    pairs = ((one.format, check_bill(one, pauses=pauses)) for one in sessions)
    return [(name, one) for name, one in pairs if one is not None]


def off(found: Iterable[BillCheck], kind: str) -> float:
    """How far all of these are off together."""
    logged, estimated = map(Bill.total, zip(*((one.logged, one.estimated) for one in found), strict=True))
    return float(getattr(estimated, kind) / getattr(logged, kind) - 1)


def percent(share: float, sign: str = "") -> str:
    """Two digits."""
    digits = 0 if abs(share) >= 0.095 else 1
    return f"{share:{sign}.{digits}%}".replace("%", " %")


def together(found: Sequence[tuple[str, BillCheck]], kind: str) -> str:
    """Of all sessions; if that is too far off, bold, and of each format."""
    share = off((one for _, one in found), kind)
    of_formats = [
        f"{title} {percent(off((one for format_, one in found if format_ == name), kind), '-')}"
        for title, name in FORMATS.items()
    ]
    said = f"**{percent(share)}**" if abs(share) > WITHIN else percent(share)
    return f"{said}; {', '.join(of_formats)}" if any_is_off(found, kind) else said


def any_is_off(found: Sequence[tuple[str, BillCheck]], kind: str) -> bool:
    """If a format is further off than all may be."""
    parts = ((one for format_, one in found if format_ == name) for name in FORMATS.values())
    return any(abs(off(part, kind)) > WITHIN for part in parts)


def worst(found: Sequence[tuple[str, BillCheck]], kind: str) -> str:
    """The session that is furthest off, and how many are too far off."""
    errors = [
        abs(getattr(one.estimated, kind) / getattr(one.logged, kind) - 1) if getattr(one.logged, kind) else 0.0
        for _, one in found
    ]
    missed = sum(error > WITHIN_A_SESSION[kind] for error in errors)
    return percent(max(errors)) + (f"; {missed} of {len(errors)} miss" if missed else "")


def table() -> str:
    """The table."""
    ways = [checks("timed"), checks("logged")]
    inputs = [[one.input_error for _, one in found] for found in ways]
    halves = [[one.second_half_error for _, one in found if one.second_half_error is not None] for found in ways]
    rows = [
        ["input of a request, mean error over the sessions", "2 %", *(percent(sum(one) / len(one)) for one in inputs)],
        ["the same, worst session", "5 %", *(percent(max(one)) for one in inputs)],
        [
            "second half predicted from the first, sessions of six requests or more: mean",
            "10 %",
            *(percent(sum(one) / len(one)) for one in halves),
        ],
        ["the same, worst session", "10 %", *(percent(max(one)) for one in halves)],
    ]
    for kind, title in KINDS.items():
        most = f"{WITHIN_A_SESSION[kind] * 100:.0f} %"
        rows.append([f"{title}, in all", "5 %", *(together(found, kind) for found in ways)])
        rows.append([f"{title}, worst session", most, *(worst(found, kind) for found in ways)])
    return markdown(["", "meant to reach", "by rule and time stamps", "as served"], rows)


if __name__ == "__main__":
    print(table())
