"""Verified reasoning where threads share a conversation, and where a process is killed: nothing is ever refused."""

from __future__ import annotations

import contextlib
import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")
pytest.importorskip("anthropic", reason="the client is not installed")
pytest.importorskip("httpx2", reason="the client is not installed")

from children import killed
from planted.anthropic_rows import thinking_turn
from test_verified_bodies import DOORS, MODEL, OPTIONS, PATH, RULES, TASK, TOOL, Body, Send, Wire

import recede
from provider_rules import NEW
from recede.proxy import RequestMasker

AROUND: Body = {"model": MODEL, "max_tokens": 99, "system": "You are an agent.", "tools": [TOOL]}
THREADS = 6


def taken(sent: Body) -> int:
    """How many thoughts a request has, which the provider takes."""
    found = RULES.take(sent, NEW)
    assert found.fault is None and not found.dropped, (found.fault, found.dropped)
    return json.dumps(sent["messages"]).count('"thinking": "Part')


def gone_on(history: list[Body], sent: Body, number: int, name: str) -> list[Body]:
    """The history after the answer to a request, in which an agent says its name."""
    step = thinking_turn(number)
    said = [*step.answer[0]["content"][:1], {"type": "text", "text": name}, *step.answer[0]["content"][1:]]
    return [*history, {"role": "assistant", "content": RULES.answered(sent, said, NEW)}, *step.after]


@pytest.mark.parametrize("door", [door for door in DOORS if door != "async wrap"])
def test_threads_of_a_conversation_and_its_branches_are_never_refused(door: str, tmp_path: Path) -> None:
    wire, history, kept = Wire(), [TASK], [0]

    def ask(send: Send, history: list[Body], name: str) -> Body:
        return send({**AROUND, "messages": history}, {"x-branch": name})

    def branch(send: Send, history: list[Body], name: str) -> list[int]:
        thoughts = []
        for number in range(12, 24):
            sent = ask(send, history, name)
            thoughts.append(taken(sent))
            history = gone_on(history, sent, number, name)
        return thoughts

    names = [f"agent {number}" for number in range(THREADS)]
    with DOORS[door](tmp_path / "state", wire, **OPTIONS) as send, ThreadPoolExecutor(THREADS) as pool:
        for number in range(12):
            first, *others = pool.map(partial(ask, send, history), names)
            assert all(sent["messages"] == first["messages"] for sent in others)
            kept.append(taken(first))
            history = gone_on(history, first, number, "all")
        branches = list(pool.map(partial(branch, send, history), names))
    assert wire.refused == 0 and max(kept) >= 4
    assert all(thoughts == branches[0] for thoughts in branches) and max(branches[0]) >= 4, branches


# A process that is killed


def work(state: Path, log: Path, pipe: int) -> None:
    """Goes on with the conversation of a file until it is killed: a request is noted, answered, and written there."""
    masker, history = RequestMasker(state=state, **OPTIONS), read(log)
    while True:
        sent = masked(masker, history)
        os.write(pipe, b"%d\n" % len(history))  # here it is noted, and not answered
        new = gone_on(history, sent, len(history) // 2, "all")[len(history) :]
        with log.open("a") as file:
            file.write(json.dumps(new) + "\n")
        history += new


def read(log: Path) -> list[Body]:
    """The history: the answers that were written whole."""
    history = [TASK]
    for line in log.read_text().splitlines() if log.exists() else ():
        with contextlib.suppress(ValueError):
            history += json.loads(line)
    return history


def masked(masker: RequestMasker, history: list[Body]) -> Body:
    body: Body = json.loads(masker.mask("POST", PATH, {}, json.dumps({**AROUND, "messages": history}).encode()).body)
    return body


def damaged(state: Path, chance: random.Random) -> None:
    """Some bytes of the ledger are others, or it ends early, or is gone."""
    data = bytearray(state.read_bytes())
    deed = chance.randrange(3)
    if deed == 0:
        return state.unlink()
    if deed == 1:
        del data[chance.randrange(28, len(data)) :]
    else:
        for _ in range(9):
            data[chance.randrange(28, len(data))] ^= 1 << chance.randrange(8)
    state.write_bytes(data)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and killed by a signal")
@pytest.mark.parametrize("damage", [False, True], ids=["whole", "damaged"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_conversation_of_a_killed_process_is_never_refused(seed: int, damage: bool, tmp_path: Path) -> None:
    chance, state, log = random.Random(seed), tmp_path / "state", tmp_path / "log"
    kept = []
    for number in range(12):
        if damage and number % 3 == 2:
            damaged(state, chance)
        killed(partial(work, state, log), chance.randrange(1, 6), chance.random() * 0.004)
        text = log.read_text() if log.exists() else ""
        log.write_text(text[: text.rfind("\n") + 1])  # an answer that was cut off is no answer
        masker = RequestMasker(state=state, **OPTIONS)
        kept.append(taken(masked(masker, read(log))))
        masker.close()
    assert max(kept) >= (1 if damage else 4) and len(read(log)) > 20, kept


def work_on_store(path: Path, pipe: int) -> None:
    """The same with a `History` and its store, which has the answers, too."""
    history = stored(recede.store.TurnStore(path))
    while True:
        sent = {**AROUND, "messages": history.view()}
        os.write(pipe, b"%d\n" % len(history))  # here the view is noted, and not answered
        history.extend(gone_on([], sent, len(history) // 2, "all"))


def stored(store: recede.store.TurnStore) -> recede.History:
    history = recede.History(provider=MODEL, store=store, **OPTIONS)
    if len(history) == 0:
        history.append(TASK)
    if history[-1]["role"] == "assistant":  # its results were not written
        history.rewind(len(history) - 1)
    return history


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and killed by a signal")
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_stored_history_of_a_killed_process_is_never_refused(seed: int, tmp_path: Path) -> None:
    chance, path, kept = random.Random(seed), tmp_path / "history", []
    for _ in range(12):
        killed(partial(work_on_store, path), chance.randrange(1, 6), chance.random() * 0.004)
        with recede.store.TurnStore(path) as store:
            history = stored(store)
            kept.append(taken({**AROUND, "messages": history.view()}))
            length = len(history)
    assert max(kept) >= 4 and length > 20, kept
