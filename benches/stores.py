"""Turns on disk: `TurnStore` against sqlite3 and the dbm of the standard library. Contenders, jobs, and the section.

All write the same turns into a folder of the disk that `TMPDIR` names. What is said of a sync holds for that disk:
where it has a cache that it does not empty, syncs are quick and prove nothing.
"""

from __future__ import annotations

import dbm
import functools
import json
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import formatting
import measuring
import recede
from claims import Claim, Plan, Section, at_least, both_times
from formatting import megabytes, ratio, time
from measuring import in_child

Turn = tuple[str, str, str]

OURS = "recede.store.TurnStore"
FULL, NORMAL, DBM = "sqlite3, WAL, FULL", "sqlite3, WAL, NORMAL", "dbm"
VISIBLE = 10  # turns whose observation a masked view shows
VIEW = 1_000  # turns of a view
MOST_MEMORY = 64 << 20


def some_turns(count: int, seed: int = 5) -> Iterator[Turn]:
    """Turns of the research's mix: about 84 % of the characters are observations, of very different lengths."""
    chance = random.Random(seed)
    words = [f"{word}{chance.randrange(100)} " for word in ("file", "error", "line", "value", "test", "path") * 40]
    text = "".join(chance.choices(words, k=20_000))

    def piece(length: int) -> str:
        start = chance.randrange(len(text) - length)
        return text[start : start + length]

    for _ in range(count):
        observation = min(60_000, int(chance.lognormvariate(6.8, 1.2)))
        yield piece(chance.randrange(60, 500)), piece(chance.randrange(20, 220)), piece(observation)


class Contender(Protocol):
    """Turns on disk, in some form."""

    def write(self, turn: Turn) -> None:
        """Add one, and return when it outlives the process, if that is promised."""

    def append(self, turns: list[Turn]) -> None:
        """Add them, and return when they are as safe as it makes them."""

    def get(self, turn: int) -> Turn:
        """A turn by its number."""

    def view(self, first: int, visible: int, end: int) -> list[tuple[str | None, ...]]:
        """Turns of which those before `visible` show no observation."""

    def close(self) -> None:
        """Leave whole files."""


class Ours:
    """recede."""

    def __init__(self, path: Path) -> None:
        self.store = recede.store.TurnStore(path)

    def write(self, turn: Turn) -> None:
        self.store.append(*turn)

    def append(self, turns: list[Turn]) -> None:
        *before, last = turns
        for turn in before:
            self.store.append(*turn)
        self.store.append(*last, sync=True)

    def get(self, turn: int) -> Turn:
        found = self.store.get(turn)
        return found.reasoning, found.action, found.observation or ""

    def view(self, first: int, visible: int, end: int) -> list[tuple[str | None, ...]]:
        return [turn[1:4] for turn in self.store.turns(first, end)]

    def close(self) -> None:
        self.store.close()


class Sqlite:
    """A table whose last column is not read where it is not asked for; a transaction for what is appended together."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute(f"PRAGMA synchronous = {synchronous}")
        columns = "id INTEGER PRIMARY KEY, reasoning TEXT, action TEXT, observation TEXT"
        self.database.execute(f"CREATE TABLE IF NOT EXISTS turns ({columns})")

    def write(self, turn: Turn) -> None:
        self.append([turn])

    def append(self, turns: list[Turn]) -> None:
        insert = "INSERT INTO turns (reasoning, action, observation) VALUES (?, ?, ?)"
        if len(turns) == 1:
            self.database.execute(insert, turns[0])
            return
        self.database.execute("BEGIN")
        for turn in turns:
            self.database.execute(insert, turn)
        self.database.execute("COMMIT")

    def get(self, turn: int) -> Turn:
        found: Turn = self.database.execute(
            "SELECT reasoning, action, observation FROM turns WHERE id = ?", (turn,)
        ).fetchone()
        return found

    def view(self, first: int, visible: int, end: int) -> list[tuple[str | None, ...]]:
        masked = "SELECT reasoning, action, NULL FROM turns WHERE id >= ? AND id < ? ORDER BY id"
        shown = "SELECT reasoning, action, observation FROM turns WHERE id >= ? AND id < ? ORDER BY id"
        older = self.database.execute(masked, (first, visible)).fetchall()
        return older + self.database.execute(shown, (visible, end)).fetchall()

    def close(self) -> None:
        self.database.close()


class Dbm:
    """A JSON array for each turn. Nothing of it is atomic, and only GNU's syncs."""

    def __init__(self, path: Path) -> None:
        self.database: Any = dbm.open(str(path), "c")  # noqa: SIM115  closed by `close`
        self.count = len(self.database)

    def write(self, turn: Turn) -> None:
        self.count += 1
        self.database[str(self.count)] = json.dumps(turn)

    def append(self, turns: list[Turn]) -> None:
        for turn in turns:
            self.write(turn)
        if hasattr(self.database, "sync"):
            self.database.sync()

    def get(self, turn: int) -> Turn:
        reasoning, action, observation = json.loads(self.database[str(turn)])
        return reasoning, action, observation

    def view(self, first: int, visible: int, end: int) -> list[tuple[str | None, ...]]:
        turns = [self.get(turn) for turn in range(first, end)]
        return [turn if first + place >= visible else (*turn[:2], None) for place, turn in enumerate(turns)]

    def close(self) -> None:
        self.database.close()


def contenders() -> dict[str, Any]:
    """What opens each of them at a path."""
    return {
        OURS: Ours,
        FULL: functools.partial(Sqlite, synchronous="FULL"),
        NORMAL: functools.partial(Sqlite, synchronous="NORMAL"),
        DBM: Dbm,
    }


# Jobs


def store_appends(turns: int, together: int, rounds: int) -> dict[str, float]:
    """Seconds for a turn, appended so many together with a sync behind them: the best of some rounds, in turns.

    With 0 together, each is written by itself, and nobody syncs.
    """
    texts = list(some_turns(turns))
    times = dict.fromkeys(contenders(), float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for name, opened in contenders().items():
                place = Path(folder, f"{number}-{len(name)}")
                place.mkdir()
                with closing(opened(place / "turns")) as contender:
                    start = perf_counter()
                    if together:
                        for first in range(0, turns, together):
                            contender.append(texts[first : first + together])
                    else:
                        for turn in texts:
                            contender.write(turn)
                    times[name] = min(times[name], (perf_counter() - start) / turns)
                    assert contender.get(turns) == texts[-1] and contender.get(1) == texts[0]
    return times


def store_reads(turns: int, gets: int, seconds: float) -> dict[str, Any]:
    """Seconds of a get, of a masked view and of opening, with stores of so many turns; and their bytes."""
    texts = list(some_turns(turns))
    ids = random.Random(3).choices(range(1, turns + 1), k=gets)
    first, visible, end = turns + 1 - VIEW, turns + 1 - VISIBLE, turns + 1
    raw = sum(len(text) for turn in texts for text in turn)
    found: dict[str, Any] = {"raw": raw, "bytes": {}}
    with tempfile.TemporaryDirectory() as folder:
        stores = {name: (opened, Path(folder, str(place))) for place, (name, opened) in enumerate(contenders().items())}
        for name, (opened, place) in stores.items():
            place.mkdir()
            with closing(opened(place / "turns")) as contender:
                for start in range(0, turns, 1_000):
                    contender.append(texts[start : start + 1_000])
            found["bytes"][name] = sum(file.stat().st_blocks * 512 for file in place.iterdir())
        ready = {name: opened(place / "turns") for name, (opened, place) in stores.items()}
        wanted = [texts[turn - 1] for turn in ids]
        for contender in ready.values():
            assert [contender.get(turn) for turn in ids] == wanted
        getting = {name: functools.partial(_all, one, ids) for name, one in ready.items()}
        found["get"] = _best(getting, seconds, gets)
        ready[OURS].store.mask_before(visible)
        ready[OURS].store.sync()
        shown = [(*turn[:2], turn[2] if first + place >= visible else None) for place, turn in enumerate(texts[-VIEW:])]
        for contender in ready.values():
            assert contender.view(first, visible, end) == shown
        views = {name: functools.partial(one.view, first, visible, end) for name, one in ready.items()}
        found["view"] = _best(views, seconds, 1)
        for contender in ready.values():
            contender.close()
        opening = {name: functools.partial(_open, *stores[name]) for name in stores}
        found["open"] = _best(opening, seconds, 1)
    return found


def _all(contender: Contender, ids: list[int]) -> None:
    for turn in ids:
        contender.get(turn)


def _open(opened: Any, place: Path) -> None:
    with closing(opened(place / "turns")) as contender:
        contender.get(1)


def _best(racing: dict[str, Any], seconds: float, share: int) -> dict[str, float]:
    return {name: best / share for name, best in measuring.best_times(racing, seconds).items()}


def store_growth(marks: list[int]) -> dict[str, Any]:
    """Memory, load and chains while a store grows, and the time that opening takes then; commits of 1,000 turns."""
    measuring.forget_peak()
    found: dict[str, Any] = {"before": measuring.resident(), "marks": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "turns")
        store = recede.store.TurnStore(path, sync_every=1_000)
        loads, chains = [], []
        start = perf_counter()
        for number, turn in enumerate(some_turns(marks[-1]), 1):
            store.append(*turn)
            if number % 1_000 == 0:
                store.mask_before(number - VISIBLE)
                stats = store.stats()
                loads.append(stats.load)
                chains.append(stats.chain_pages)
            if number in marks:
                seconds = perf_counter() - start
                store.close()
                opening = min(_timed_open(path) for _ in range(20))
                store = recede.store.TurnStore(path, sync_every=1_000)
                found["marks"][str(number)] = {
                    "peak": measuring.peak(),
                    "load": (min(loads), max(loads)),
                    "chain": (min(chains), max(chains)),
                    "open": opening,
                    "bytes": path.stat().st_size,
                    "seconds": seconds,
                }
                loads, chains = [], []
        chance = random.Random(1)
        for _ in range(2_000):
            store.recall(chance.randrange(1, marks[-1]))
        found["peak"] = measuring.peak()
        found["longest"] = store.verify().longest_chain
        store.close()
    return found


def _timed_open(path: Path) -> float:
    start = perf_counter()
    with recede.store.TurnStore(path) as store:
        store.get(1)
    return perf_counter() - start


# The section


def stores(plan: Plan) -> Section:
    """Line 10: turns on disk."""
    claims, rows = [], []
    for together, turns, what, rival in (
        (0, plan.stored // 20, "append, no sync", NORMAL),
        (1, plan.stored // 50, "append, a sync every turn", FULL),
        (100, plan.stored // 5, "append, a sync every 100 turns", None),
    ):
        times = in_child("store_appends", turns=turns, together=together, rounds=5)
        rows.append([what, *map(time, times.values())])
        if rival is not None:
            share = times[OURS] / times[rival]
            figure = f"{share:.2f} of its time ({both_times(times, OURS, rival)})"
            claims.append(Claim("10", f"{what}: {rival}", figure, "at most its time", share <= 1))
    found = in_child("store_reads", turns=plan.stored, gets=5_000, seconds=plan.seconds)
    for key, what in (
        ("get", f"get a turn of {plan.stored:,}"),
        ("view", f"the masked view of the last {VIEW:,} of {plan.stored:,} turns"),
        ("open", f"open, get, close with {plan.stored:,} turns"),
    ):
        times = found[key]
        rows.append([what, *map(time, times.values())])
        least = 1 if key == "get" else None
        claim = at_least("10", f"{what}: sqlite3", times[FULL] / times[OURS], 1, both_times(times, OURS, FULL))
        claims.append(claim if least else claim._replace(target="", is_met=None))
    shares = [f"{size / found['raw']:.2f}" for size in found["bytes"].values()]
    rows.append([f"bytes on disk / characters stored ({megabytes(found['raw'])})", *shares])
    growth, growing = _growth(plan)
    header = ["", *contenders()]
    details = f"## Turns on disk\n\n{formatting.markdown(header, rows)}\n\n{growing}"
    return Section([*claims, *growth], details)


def _growth(plan: Plan) -> tuple[list[Claim], str]:
    if not measuring.can_measure_memory():
        return [Claim("10", "memory of a store", "not measured: this system does not tell it")], ""
    marks = list(plan.stored_marks)
    found = in_child("store_growth", marks=marks)
    told = {int(mark): value for mark, value in found["marks"].items()}
    rows = [
        [
            f"{mark:,} turns",
            megabytes(value["bytes"]),
            megabytes(value["peak"]),
            f"{value['load'][0]:.2f} to {value['load'][1]:.2f}",
            f"{value['chain'][0]:.2f} to {value['chain'][1]:.2f}",
            time(value["open"]),
        ]
        for mark, value in told.items()
    ]
    first, last = told[marks[0]], told[marks[-1]]
    grown = last["open"] / first["open"]
    level = max(value["load"][1] for value in told.values())
    chains = last["chain"][1] / first["chain"][1]
    peak = found["peak"]
    where = f"at {marks[-1]:,} turns, {megabytes(last['bytes'])}"
    claims = [
        Claim("10", f"resident memory {where}", megabytes(peak), "at most 64 MiB", peak <= MOST_MEMORY),
        Claim("10", f"open at {marks[-1]:,} / at {marks[0]:,} turns", f"{grown:.2f}", "at most 1.5", grown <= 1.5),
        Claim("10", f"highest load up to {marks[-1]:,} turns", f"{level:.2f}", "at most 0.85", level <= 0.85),
        Claim(
            "10",
            f"pages of a bucket, the worst average: {marks[-1]:,} / {marks[0]:,} turns",
            f"{ratio(chains)} (longest chain {found['longest']} pages)",
            "at most 1.2x",
            chains <= 1.2,
        ),
    ]
    header = ["growing to", "file", "peak memory", "load", "pages of a bucket", "open, get, close"]
    return claims, formatting.markdown(header, rows)
