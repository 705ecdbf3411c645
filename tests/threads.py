"""Threads that share one session and its store, under free use: `python tests/threads.py --seconds 600 --seed 7`.

In each round eight threads do whatever they like with a `History` that compacts, or with a manager, beside its store.
Nothing but what is documented may be raised; afterwards the store is sound, and what is resumed from it is the same.
Prints its tally as JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import recede
from recede import History
from recede.store import TurnStore

THREADS = 8
MOST_SECONDS_OF_A_CALL = 120
MOST_MESSAGES = 3_000  # or a plain view of all of them takes the time

_HISTORIES: list[dict[str, Any]] = [
    {"keep": 3},
    {"keep": 4, "max_input_tokens": 1_500},
    {"keep": 4, "max_input_tokens": 1_000, "boundary": 3},
    {"max_input_tokens": 2_000, "summarizer": lambda messages, previous: f"{len(messages)}, {previous!r}"[:300]},
]


_OF_WHAT_IS_GONE = ("there is no", "range object", "messages must be at most", "empty")
KINDS = len(_HISTORIES) + 1


def _of_history(history: History, store: TurnStore, folder: Path, chance: random.Random) -> list[Callable[[], Any]]:
    """What may be done, the commoner more often."""

    def add() -> None:
        name = f"{threading.get_ident()}-{chance.randrange(1 << 40)}"
        if len(history) < MOST_MESSAGES:
            function = {"name": "run", "arguments": "{}"}
            history.append(
                {"role": "assistant", "tool_calls": [{"id": name, "type": "function", "function": function}]}
            )
            history.append({"role": "tool", "tool_call_id": name, "content": "a line\n" * chance.randrange(200)})

    def rewind() -> None:
        history.rewind(max(0, len(history) - chance.choice((0, 1, 2, 5, 60))))

    asks = [history.view, history.view_json, history.view_chunks, history.stats, history.to_json]
    places = [lambda: history[chance.randrange(len(history))], lambda: history.recall(chance.randrange(1, 99))]
    saves = [lambda: history.save(folder / f"{threading.get_ident()}"), lambda: list(history), lambda: repr(history)]
    return [*[add] * 16, *asks, history.view_json, rewind, *places, *saves, *_of_store(store, "message", chance)]


def _of_manager(manager: Any, store: TurnStore, chance: random.Random) -> list[Callable[[], Any]]:
    def add() -> None:
        if len(manager) < MOST_MESSAGES:
            manager.add_turn("Think.", f"cat {chance.random()}", "a word\n" * chance.randrange(300))

    asks = [lambda: manager.get_context("s", "u"), manager.stats, manager.report]
    more = [lambda: manager.summaries, lambda: manager.recall(chance.randrange(1, 99)), lambda: manager.trajectory]
    return [*[add] * 12, *asks, *more, manager.maybe_create_summary, *_of_store(store, "turn", chance)]


def _of_store(store: TurnStore, kind: Any, chance: random.Random) -> list[Callable[[], Any]]:
    def read() -> None:
        count = store.count_records(kind)
        if count:
            store.record(kind, chance.randrange(1, count + 1))

    return [read, read, store.sync, store.verify, store.stats, store.compact, lambda: len(store)]


def _one_round(seconds: float, seed: int, folder: Path, tally: Counter[str], faults: list[str]) -> None:
    """Threads use one session; then it must be in its store."""
    path, ends, kind = folder / "session.store", time.monotonic() + seconds, seed % KINDS
    opens: Callable[[TurnStore], Any] = partial(_history, _HISTORIES[kind]) if kind < len(_HISTORIES) else _hybrid
    with TurnStore(path) as store:
        session = opens(store)

        def use(number: int) -> None:
            chance = random.Random(seed * THREADS + number)
            deeds = (
                _of_history(session, store, folder, chance)
                if isinstance(session, History)
                else _of_manager(session, store, chance)
            )
            while time.monotonic() < ends and not faults:
                try:
                    chance.choice(deeds)()
                    tally["calls"] += 1
                except (LookupError, ValueError) as error:
                    # Of what another thread has taken back meanwhile, or nobody has added yet.
                    is_gone = str(error).startswith(
                        ("there is no", "range object", "messages must be at most", "empty")
                    )
                    if not is_gone:
                        faults.append(f"kind {kind}, seed {seed}: {traceback.format_exc()}")
                except Exception:
                    faults.append(f"kind {kind}, seed {seed}: {traceback.format_exc()}")

        threads = [threading.Thread(target=use, args=(number,), daemon=True) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + MOST_SECONDS_OF_A_CALL)
            if thread.is_alive():
                faults.append(f"kind {kind}, seed {seed}: a call does not end")
                return
        before = _seen(session)
        tally["summaries"] += store.count_records("summary")
        if not store.verify().is_sound:
            faults.append(f"kind {kind}, seed {seed}: the store is not sound")
    with TurnStore(path) as store:
        if _seen(opens(store)) != before:
            faults.append(f"kind {kind}, seed {seed}: the session in the store is another one")
    tally["rounds"] += 1


def _history(options: dict[str, Any], store: TurnStore) -> History:
    return History(store=store, **options)


def _hybrid(store: TurnStore) -> Any:
    return recede.designs.HybridContextManager(recede.summarizers.builtin(), 4, 16, 6, store=store)


def _seen(session: Any) -> list[Any]:
    if isinstance(session, History):
        return [session.view_json(), session.to_json(), session.stats()[:6]]
    return [
        session.get_context("s", "u"),
        session.report(),
        session.summaries,
        [turn[:4] for turn in session.trajectory],
    ]


def run(seconds: float, seed: int, seconds_a_round: float = 5) -> tuple[Counter[str], list[str]]:
    """A round of each kind, and more until so many seconds are over; or until there is a fault."""
    tally, faults, start = Counter[str](), list[str](), time.monotonic()
    while not faults and (tally["rounds"] < KINDS or time.monotonic() - start < seconds):
        with tempfile.TemporaryDirectory() as folder:
            _one_round(seconds_a_round, seed + tally["rounds"], Path(folder), tally, faults)
    return tally, faults


def main() -> None:
    """Run, and print the tally."""
    parser = argparse.ArgumentParser(description="Let threads share a session and its store.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    tally, faults = run(arguments.seconds, arguments.seed)
    print(json.dumps({**tally, "faults": faults}, indent=2))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
