"""A `History` with a store whose process is killed, and that goes on; and what a long one holds in memory."""

from __future__ import annotations

import os
import random
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from children import killed, kilobytes_of

import recede
from recede import History
from support import call, recalled, result


def summary_of(messages: list[Any], previous: str | None) -> str:
    """One that fails now and then."""
    if len(messages) % 5 == 0:
        raise ValueError("no summary")
    return f"{len(messages)} messages, and {previous!r:.40}"


OPTIONS: dict[str, dict[str, Any]] = {
    "masked": {"keep": 3},
    "summarized": {"max_input_tokens": 1_500, "summarizer": summary_of},
}


def message(number: int) -> dict[str, Any]:
    """The messages of the session; some calls are answered late, or never."""
    turn, is_result = divmod(number, 2)
    if not is_result:
        return call(f"c{turn}", name="run")
    return result(f"c{turn - 60 if turn % 9 == 8 else turn}", f"{turn} " * (turn * 37 % 400))


def work(path: str, options: dict[str, Any], pipe: int) -> None:
    """Goes on with the session until it is killed, and tells how many messages are stored."""
    history = History(store=recede.store.TurnStore(path), **options)
    while True:
        history.append(message(len(history)))
        os.write(pipe, b"%d\n" % len(history))
        if len(history) % 7 == 0:
            history.view_json()


def kill(kind: str, folder: Path, rounds: int, seed: int) -> int:
    """Kills so many that go on with one store; how many messages there are then."""
    chance, options = random.Random(seed), OPTIONS[kind]
    path = str(folder / "session.store")
    plain, events = History(**options), 0
    for number in range(rounds):
        messages = chance.randrange(1, 60) if number % 3 else 0  # 0: killed while it opens the store, mostly
        confirmed = killed(partial(work, path, options), messages, chance.random() * 0.004)
        with recede.store.TurnStore(path) as store:
            stored = History(store=store, **options)
            assert len(stored) >= max(confirmed, len(plain))
            # A summary is asked for where a view is taken: they must be taken where the child took them.
            while len(plain) < len(stored):
                plain.append(message(len(plain)))
                if len(plain) % 7 == 0:
                    plain.view_json()
            assert stored.view_json() == plain.view_json()
            events = store.count_records("summary")
            assert stored.messages == plain.messages
            assert stored.stats()[:3] == plain.stats()[:3]
            for place in chance.sample(range(len(plain)), min(9, len(plain))):
                identity = f"c{place // 2}"
                assert recalled(stored, identity) == recalled(plain, identity)
            assert store.verify().is_sound
    assert bool(events) == (kind == "summarized")
    return len(plain)


def work_and_rewind(path: str, options: dict[str, Any], seed: int, pipe: int) -> None:
    """The same with a view of each message, and now and then some of them are taken back."""
    chance = random.Random(seed)
    history = History(store=recede.store.TurnStore(path), **options)
    while True:
        if chance.random() < 0.1:
            history.rewind(max(0, len(history) - chance.choice((1, 2, 5, 40))))
        else:
            history.append(message(len(history)))
        history.view_json()
        os.write(pipe, b"%d\n" % len(history))


def kill_rewinding(kind: str, folder: Path, rounds: int, seed: int) -> int:
    """The same."""
    chance, options = random.Random(seed), OPTIONS[kind]
    path = str(folder / "session.store")
    most = 0
    for number in range(rounds):
        work = partial(work_and_rewind, path, options, seed * 1_000 + number)
        confirmed = killed(work, chance.randrange(1, 60), chance.random() * 0.004)
        with recede.store.TurnStore(path) as store:
            stored, plain = History(store=store, **options), History(**options)
            assert len(stored) >= confirmed - 40, "a rewind that was not confirmed may be there"
            for place in range(len(stored)):
                plain.append(message(place))
                plain.view_json()
            assert stored.view_json() == plain.view_json()
            assert stored.messages == plain.messages
            assert stored.stats()[:3] == plain.stats()[:3]
            for turn in chance.sample(range(len(plain)), min(9, len(plain))):
                assert recalled(stored, f"c{turn // 2}") == recalled(plain, f"c{turn // 2}")
            assert store.verify().is_sound
            most = max(most, len(stored))
    return most


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and killed by a signal")
@pytest.mark.parametrize("kind", OPTIONS)
def test_a_history_goes_on_after_it_was_killed(tmp_path: Path, kind: str) -> None:
    kill(kind, tmp_path, rounds=12, seed=1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and killed by a signal")
@pytest.mark.parametrize("kind", OPTIONS)
def test_a_history_that_is_rewound_goes_on_after_it_was_killed(tmp_path: Path, kind: str) -> None:
    kill_rewinding(kind, tmp_path, rounds=12, seed=3)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and killed by a signal")
@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("seed", range(2, 8))
def test_a_history_goes_on_however_often_it_was_killed(tmp_path: Path, kind: str, seed: int) -> None:
    kill(kind, tmp_path, rounds=40, seed=seed)


# Memory

LONG = """
import json, random, sys, recede

path, turns, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
before = resident('VmRSS')
with recede.store.TurnStore(path, sync_every=1_000) as store:
    history = recede.History(store=store, **options)
    for number in range(1, turns + 1):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        history.append({"role": "assistant", "content": "I must look again.", "tool_calls": [call]})
        content = f"line {number} of the log\\n" * 40
        history.append({"role": "tool", "tool_call_id": f"call_{number}", "content": content})
        if options or number < 2_000 and number % 97 == 0:
            history.view_json()
    assert history.stats().turns == turns
del history
with recede.store.TurnStore(path) as store:
    history = recede.History(store=store, **options)
    for number in random.Random(1).sample(range(1, turns + 1), 1_000):
        assert history.recall(number).startswith(f"line {number} of the log")
        assert history.recall(f"call_{number}").startswith(f"line {number} of the log")
        assert f'"call_{number}"' in json.dumps(history[2 * number - 2])
    assert len(history) == 2 * turns and history.stats().turns == turns
print(resident('VmHWM') - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by /proc")
@pytest.mark.parametrize("options", ["{}", '{"max_input_tokens": 12500}'])
def test_memory_is_that_of_the_raw_history(tmp_path: Path, options: str) -> None:
    """Of 15,000 turns, whose messages are 17 MB of JSON."""
    assert kilobytes_of(LONG, tmp_path / "session.store", 15_000, options) < 80 << 10
