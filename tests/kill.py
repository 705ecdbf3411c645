"""Kills writers of a turn store, and looks at what is left: `python tests/kill.py --rounds 500 --seed 7`.

`--of` takes writers that are sessions with a store instead, as tests/integration/test_stored_histories_kill.py and
test_stored_managers_kill.py have them; of those 40 go on with one store.

In each round a child goes on with a session, and tells through a pipe when a step begins and when it returned. It is
killed at a random moment (SIGKILL); the store is opened again, read whole, and held against what must be in it: every
step that returned, synced or not, and either all or nothing of the one that was going on. A store is gone on with for
some rounds.

Each turn is three steps: it is appended, older ones are masked, and a record is replaced that says how many turns there
are. Prints its tally as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent / folder) for folder in (".", "integration")]

import recede

ROUNDS_WITH_ONE_STORE = 40
LONGEST_SECONDS = 0.02


def observation(turn: int) -> str:
    """What must stand in a turn: of a length that takes all forms of a record, and told by the number alone."""
    length = (turn * 7_919) % (12_000 if turn % 11 == 0 else 1_500)
    return f"turn {turn}: " + "abcdefghijklmnopqrstuvwxyz"[turn % 26] * length


def masked_before(turns: int) -> int:
    return max(1, turns - 10)


State = tuple[int, int, int]


def state(step: int) -> State:
    """After this step: the number of turns, the first turn that is not masked, and the turns that the record says."""
    turns, left = -(-step // 3), -step % 3
    return turns, masked_before(turns - (left == 2)), turns - (left > 0)


def state_of(store: recede.store.TurnStore) -> State:
    record = next(store.records("session"), None)
    return len(store), store.masked_before, 0 if record is None else json.loads(record[0])


def step_of(found: State) -> int:
    """The first step with this state."""
    return next((step for step in range(max(0, 3 * found[0] - 2), 3 * found[0] + 1) if state(step) == found), -1)


def take(store: recede.store.TurnStore, step: int) -> None:
    turns, masked, record = state(step)
    if step % 3 == 1:
        store.append(f"reasoning {turns}", f"action {turns}", observation(turns))
    elif step % 3 == 2:
        store.mask_before(masked)
    elif store.count_records("session"):
        store.replace_record("session", 1, [json.dumps(record).encode() + b" " * (turns % 5_000)])
    else:
        store.append_record("session", [json.dumps(record).encode()])


def work(path: str, seed: int, pipe: int) -> None:
    """Goes on with the session until it is killed."""
    chance = random.Random(seed)

    def begun(step: int) -> None:
        os.write(pipe, b"<%d\n" % step)

    def returned(step: int) -> None:
        os.write(pipe, b">%d\n" % step)

    while True:
        begun(0)  # opening makes a store, or takes up its log
        store = recede.store.TurnStore(path, sync_every=chance.choice((None, None, 1, 20)))
        step = step_of(state_of(store))
        returned(step)
        for _ in range(chance.randrange(300)):
            step += 1
            begun(step)
            take(store, step)
            returned(step)
            deed = chance.randrange(150)
            if deed == 0:
                store.compact()
            elif deed == 1:
                store._store.checkpoint()
            elif deed < 15:
                store.sync()
        begun(step)
        if chance.random() < 0.8:
            store.close()
        else:
            del store  # its log is left
        returned(step)


class Tally:
    """What the rounds came to."""

    def __init__(self) -> None:
        self.rounds = self.inside_a_step = self.turns = self.steps = 0
        self.kept_though_not_returned = 0
        self.lost: list[str] = []
        self.not_opened: list[str] = []
        self.mixtures: list[str] = []

    def as_dict(self) -> dict[str, object]:
        return vars(self)


def one_round(path: str, seed: int, before: int, tally: Tally) -> int:
    """Kills one child; the step after which the store is then."""
    chance = random.Random(-seed - 1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            work(path, seed, writing)
        finally:
            os._exit(3)
    os.close(writing)
    time.sleep(chance.random() * LONGEST_SECONDS)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode().split()
    name = f"seed {seed}, {path}"
    if not os.WIFSIGNALED(status):
        tally.not_opened.append(f"{name}: the child ended by itself")
    returned = max([before, *(int(line[1:]) for line in told if line[0] == ">")])
    begun = max([returned, *(int(line[1:]) for line in told if line[0] == "<")])
    tally.rounds += 1
    tally.steps += sum(line[0] == ">" for line in told)
    tally.inside_a_step += bool(told) and told[-1][0] == "<"
    try:
        store = recede.store.TurnStore(path)
    except recede.StoreError as error:
        tally.not_opened.append(f"{name}: {error}")
        return before
    with contextlib.closing(store):
        found = state_of(store)
        if found < state(returned):
            tally.lost.append(f"{name}: {found} of {state(returned)}")
        elif found not in (state(returned), state(begun)):
            tally.mixtures.append(f"{name}: {found}, where {state(returned)} or {state(begun)} was stored")
        tally.kept_though_not_returned += found > state(returned)
        tally.turns += found[0] - state(before)[0]
        wrong = mixture(store)
        if wrong:
            tally.mixtures.append(f"{name}: {wrong}")
    if Path(path + "-log").exists():
        tally.mixtures.append(f"{name}: a closed store is more than one file")
    return step_of(found)


def mixture(store: recede.store.TurnStore) -> str | None:
    """What does not fit together."""
    report = store.verify()
    if not report.is_sound:
        return str(report.faults[:3])
    for turn in store:
        shown = turn.observation if turn.observation is not None else store.recall(turn.turn_id)
        wanted = (f"reasoning {turn.turn_id}", f"action {turn.turn_id}", observation(turn.turn_id))
        if (turn.reasoning, turn.action, shown) != wanted or turn.masked != (turn.turn_id < store.masked_before):
            return f"turn {turn.turn_id} is another"
    return None


def run(rounds: int, seed: int) -> Tally:
    """Kill so many children."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        step = 0
        for number in range(rounds):
            if number % ROUNDS_WITH_ONE_STORE == 0:
                step = 0
                for old in Path(folder).iterdir():
                    old.unlink()
            path = str(Path(folder).resolve() / f"{number // ROUNDS_WITH_ONE_STORE}.store")
            step = one_round(path, seed * 1_000_003 + number, step, tally)
    return tally


def run_sessions(of: str, rounds: int, seed: int) -> Tally:
    """Kill so many children that have a session; the first fault ends the rounds with that store."""
    import test_stored_histories_kill as histories
    import test_stored_managers_kill as managers

    kinds: dict[str, Callable[[Path, int, int], int]] = {
        "managers": managers.kill,
        **{kind: functools.partial(histories.kill, kind) for kind in histories.OPTIONS},
        **{f"{kind}-rewound": functools.partial(histories.kill_rewinding, kind) for kind in histories.OPTIONS},
    }
    tally = Tally()
    for number in range(-(-rounds // ROUNDS_WITH_ONE_STORE)):
        with tempfile.TemporaryDirectory() as folder:
            try:
                tally.turns += kinds[of](Path(folder), ROUNDS_WITH_ONE_STORE, seed * 1_000_003 + number)
            except Exception:
                tally.lost.append(f"{of}, store {number}: {traceback.format_exc()}")
        tally.rounds += ROUNDS_WITH_ONE_STORE
    return tally


def main() -> None:
    """Run, and print the tally."""
    parser = argparse.ArgumentParser(description="Kill writers of a turn store, and look at what is left.")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--of",
        choices=("store", "masked", "summarized", "masked-rewound", "summarized-rewound", "managers"),
        default="store",
    )
    arguments = parser.parse_args()
    run_one = run if arguments.of == "store" else functools.partial(run_sessions, arguments.of)
    tally = run_one(arguments.rounds, arguments.seed)
    print(json.dumps(tally.as_dict(), indent=2))
    sys.exit(bool(tally.lost or tally.not_opened or tally.mixtures))


if __name__ == "__main__":
    main()
