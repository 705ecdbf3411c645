"""What is to be reached, and how much is measured to see it."""

from __future__ import annotations

from typing import NamedTuple

from formatting import ratio, time


class Claim(NamedTuple):
    """A line of what is to be reached. Met is None where it has no target, or was not measured."""

    line: str
    what: str
    figure: str
    target: str = ""
    is_met: bool | None = None


class Section(NamedTuple):
    """What a part of the run found."""

    claims: list[Claim]
    details: str


class Plan(NamedTuple):
    """How much is measured."""

    seconds: float  # for each table and size
    byte_sizes: dict[str, int]  # messages of compact OpenAI chat of about such a size
    dict_sizes: tuple[int, ...]
    form_share: float  # of the 20 MB of the other forms
    copies: dict[str, int]
    hostile_scale: float
    memory: dict[str, int]  # pieces of 20 MB
    instruction_sizes: tuple[int, ...]
    turns: tuple[int, ...]
    stored: int  # turns on disk
    stored_marks: tuple[int, ...]
    starts: int
    masker_turns: tuple[int, ...]
    builds_wheel: bool


FULL = Plan(
    seconds=8.0,
    byte_sizes={"0.1 MB": 44, "2 MB": 870, "20 MB": 9_200, "200 MB": 92_000},
    dict_sizes=(100, 1_000, 10_000, 100_000),
    form_share=1.0,
    copies={"1 MB": 450, "256 MB": 117_000},
    hostile_scale=1.0,
    memory={"20 MB": 1, "200 MB": 10, "1 GB": 51},
    instruction_sizes=(1_000, 10_000, 100_000),
    turns=(100, 1_000, 10_000, 50_000),
    stored=100_000,
    stored_marks=(10_000, 100_000, 1_000_000),
    starts=60,
    masker_turns=(2_000, 10_000),
    builds_wheel=True,
)
QUICK = FULL._replace(
    seconds=1.0,
    byte_sizes={"0.1 MB": 44, "2 MB": 870, "20 MB": 9_200},
    dict_sizes=(1_000, 10_000),
    form_share=0.2,
    copies={"1 MB": 450, "32 MB": 14_700},
    hostile_scale=0.1,
    memory={"20 MB": 1, "200 MB": 10},
    instruction_sizes=(1_000, 10_000),
    turns=(100, 1_000, 10_000),
    stored=20_000,
    stored_marks=(1_000, 10_000, 100_000),
    starts=15,
    masker_turns=(2_000,),
    builds_wheel=False,
)


def at_least(line: str, what: str, found: float, wanted: float, against: str, hoped: str = "") -> Claim:
    """Recede is so many times as fast as something."""
    times = f"{found:.2f}x" if found < 10 else ratio(found)  # near the target, one digit could hide a miss
    return Claim(line, what, f"{times} ({against})", f"at least {wanted:g}x{hoped}", found >= wanted)


def both_times(times: dict[str, float], ours: str, theirs: str) -> str:
    """The times behind a ratio."""
    return f"{time(times[ours])} against {time(times[theirs])}"
