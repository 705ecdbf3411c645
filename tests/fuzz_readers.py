"""The readers of files that another may have made: saved sessions, records of a store, pages of a store and its log.

Whatever is in them, they raise `TranscriptError` or `StoreError`, or can be used: no other exception, no panic, no
crash, no memory without bound, no endless work. `make fuzz SECONDS=600 SEED=7` runs each target for so long; every
fault is reported with its seed, and `python tests/fuzz_readers.py --target NAME --seed N --cases 1` repeats it. The
targets know only what is public: `History.save` and `load`, `History(store=...)`, managers with a store, `TurnStore`;
and of the bytes of a store what docs/store-format.md says. Short runs belong to the tests
(tests/integration/test_readers.py).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import logging
import random
import resource
import selectors
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent / folder) for folder in (".", "data", "integration")]

import fuzz
import recede
from recede import History, StoreError, TranscriptError
from recede.store import TurnStore
from store_reader import header_of
from support import Message, call, result, user

_MOST_MEMORY = 1 << 30  # bytes that a child may take beside what it has at its start
MOST_SECONDS = 60  # for one case; the slowest takes a few
_MOST_SECONDS_TO_BEGIN = 600
_MOST_FAULTS = 20
_PAGE = 4_096

_NUMBERS = (0, 1, 2, 3, 16, 255, 1_024, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 47, (1 << 63) - 1, 1 << 63)
_VALUES = (
    None,
    True,
    False,
    -1,
    1.5,
    -0.0,
    "",
    "x",
    "\ud83d",
    [],
    {},
    [[]],
    {"a": 1},
    [None],
    *_NUMBERS,
    1 << 64,
    10**400,
)


class WrongError(Exception):
    """Something was not as it should be, without an exception of its own."""


# What is damaged


def _session(rng: random.Random, turns: int) -> list[Message]:
    """Turns as agents make them, among histories of any shape."""
    messages: list[Message] = []
    for number in range(turns):
        if rng.random() < 0.1:
            messages += fuzz._history(rng)
        messages += [call(str(number)), result(str(number), "line of a log\n" * rng.choice((1, 20, 60)))]
        if rng.random() < 0.1:
            messages.append(user("Go on."))
    return messages


_BUDGETS: list[dict[str, Any]] = [
    {"max_input_tokens": 1_500, "keep": 3},
    {"max_input_tokens": 1_200, "keep": 2, "boundary": "sliding", "recall": True},
    {"max_input_tokens": 1_000, "boundary": 3, "keep_by_tool": {"bash": 2, "r*": None}},
    {"max_input_tokens": 1_250, "provider": "ideal", "cold": [40, 80], "keep_errors": True},
]
_OF_BUDGET: dict[str, Any] = {"threshold_tokens": 900, "cold": True}
_BLOCKS: list[dict[str, Any]] = [
    {},
    {"keep": 3, "boundary": 1},
    {"keep": 5, "recall": True, "exclude_tools": ["bash"]},
    {"provider": recede.Provider.of("openai"), "cold": True},
    _OF_BUDGET,
]


def _words(text: str) -> int:
    return len(text.split())


def _summarizer(messages: list[Any], previous: str | None) -> str:
    return f"{len(messages)} messages, and {previous!r}."[:900]


class Saved(NamedTuple):
    """A file of `History.save`, and the functions that it is loaded with."""

    data: bytes
    functions: dict[str, Any]


@functools.cache
def _saved() -> list[Saved]:
    files = []
    for seed, options in enumerate(_BUDGETS + _BLOCKS):
        rng = random.Random(seed)
        functions: dict[str, Any] = {"token_counter": _words} if seed % 3 == 0 else {}
        if options in _BUDGETS and seed % 2:
            functions["summarizer"] = _summarizer
        for turns in (0, 3, 40):
            design = {**options, **functions}
            history = recede.designs.Budget(**design).history() if options is _OF_BUDGET else History(**design)
            for message in _session(rng, turns):
                history.append(message)
                if rng.random() < 0.3:
                    history.view()
            with tempfile.TemporaryDirectory() as folder:
                history.save(Path(folder, "session"))
                files.append(Saved(Path(folder, "session").read_bytes(), functions))
    return files


class Stored(NamedTuple):
    """A store as its writer left it, with the log where that did not close it; and what opens it."""

    file: bytes
    log: bytes | None
    opens: Callable[[TurnStore], Any]


def _hybrid(store: TurnStore) -> Any:
    return recede.designs.HybridContextManager(recede.summarizers.builtin(), 6, 40, 5, store=store)


_OPENERS: list[Callable[[TurnStore], Any]] = [
    lambda store: History(store=store),
    lambda store: History(store=store, keep=3, boundary=1),
    lambda store: History(store=store, keep=3, token_counter=_words),
    lambda store: History(store=store, **_BUDGETS[0]),
    lambda store: History(store=store, **_BUDGETS[3], token_counter=_words, summarizer=_summarizer),
    lambda store: recede.designs.ObservationMaskingContextManager(5, store=store),
    lambda store: recede.designs.ObservationMaskingContextManager(5, "{turn}: {chars}", store=store),
    _hybrid,
]


@functools.cache
def _stored() -> list[Stored]:
    stores = []
    for seed, opens in enumerate(_OPENERS):
        for count, closes in ((20, True), (600, True), (600, False)):
            rng = random.Random(seed)
            # The same time in every run.
            with tempfile.TemporaryDirectory() as folder, mock.patch("time.time", return_value=1.5e9):
                path = Path(folder, "session.store")
                store = TurnStore(path)
                kept = opens(store)
                if isinstance(kept, History):
                    for message in _session(rng, count if seed < 3 else count // 5):
                        kept.append(message)
                        if rng.random() < 0.1:
                            kept.view()
                else:
                    for number in range(count):
                        kept.add_turn("Think.", f"cat {number}", "a word\n" * rng.choice((1, 30, 900)))
                store.sync()
                if closes:
                    store.close()
                log = path.with_name(path.name + "-log")
                whole = _without_chance(
                    bytearray(path.read_bytes()), bytearray(log.read_bytes()) if log.exists() else None
                )
                stores.append(whole._replace(opens=opens))
                store.close()
    return stores


# How it is damaged


def _one_of(rng: random.Random, value: Any) -> Any:
    """A value in the place of another."""
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
        return value + rng.choice((-2, -1, 1, 2))
    return rng.choice(_VALUES)


def _damage_value(rng: random.Random, value: Any) -> Any:
    """A JSON value with something else in one place of it."""
    while isinstance(value, (dict, list)) and value and rng.random() < 0.9:
        # Along a way down; what is on it is changed where it ends.
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        how = rng.random()
        if how < 0.1:
            del value[key]
        elif how < 0.2 and isinstance(value, list):
            value[key:key] = [rng.choice((value[key], *_VALUES))] * rng.choice((1, 1, 2, 40))
        elif how < 0.2 and isinstance(value, dict):
            value[rng.choice(("store", "self", "token_counter", "messages", "x", *value))] = value[key]
        elif how < 0.3:
            other = rng.choice(keys)
            value[key], value[other] = value[other], value[key]
        elif how < 0.5 or not isinstance(value[key], (dict, list)):
            value[key] = _one_of(rng, value[key])
        else:
            value = value[key]
            continue
        return


def _spelled(rng: random.Random, value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=rng.random() < 0.8)
    if rng.random() < 0.2:  # what a dict cannot hold, and numbers that json does not write
        piece = rng.choice(
            ('"options": {}, ', '"past": [], ', '"x": NaN, ', '"x": 1e999, ', '"x": 1' + "0" * 5_000 + ", ")
        )
        at = rng.choice([place for place, character in enumerate(text) if character == "{"] or [0])
        text = text[: at + 1] + piece + text[at + 1 :]
    if rng.random() < 0.05:
        text = text.replace("[]", "[" * 1_010 + "]" * 1_010, 1)
    return text.encode("utf-8", "surrogatepass")


def _damaged(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Bytes that were changed, as what they are if they are options, JSON or numbers, or as mere bytes."""
    how = rng.random()
    if how < 0.9 and data[:8] == b"recede s":
        return header_of(_damaged(rng, data[10:], others), rng.choice((2, 2, 2, 1, 3)))
    if how < 0.5 and data[:1] in (b"{", b"["):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(data)
            for _ in range(rng.choice((1, 1, 2))):
                _damage_value(rng, value)
            return _spelled(rng, value)
    if how < 0.7 and len(data) >= 8 and len(data) % 4 == 0:
        changed, width = bytearray(data), rng.choice((4, 8, 8))
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(data) // width) * width
            before = int.from_bytes(data[at : at + width], "little")
            number = rng.choice((before + rng.choice((-1, 1)), rng.choice(_NUMBERS), (1 << 64) - rng.choice((1, 2, 9))))
            changed[at : at + width] = (number % (1 << 8 * width)).to_bytes(width, "little")
        return bytes(changed)
    if how < 0.8:
        other = rng.choice(others)
        return rng.choice(
            (other, b"", data + other, data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :])
        )
    return fuzz._damaged(rng, data)


# How it is used


def _try(work: Callable[[], Any], *documented: type[Exception]) -> Any:
    """What it gives, or None where it raises what is documented."""
    try:
        return work()
    except documented:
        return None
    except ValueError as error:
        # Of a store that is another's. What derives from it, as JSONDecodeError does, is not meant.
        if StoreError in documented and type(error) is ValueError and ".store " in str(error):
            return None
        raise


def _loads(raw: bytes) -> Any:
    return json.loads(raw.decode("utf-8", "surrogatepass"))


def _use_history(rng: random.Random, history: History, *documented: type[Exception]) -> None:
    """All that can be asked of a history, with more messages in between."""
    for more in ([], _session(rng, rng.choice((1, 9))), fuzz._history(rng)):
        for message in more:
            _try(lambda message=message: history.append(message), *documented)
        for ask in rng.sample((history.view, history.view_json, history.stats, lambda: history[-1:]), 4):
            _try(ask, *documented)
        view, raw = _try(history.view, *documented), _try(history.view_json, *documented)
        if view is not None and raw is not None and view != _loads(raw):
            raise WrongError("the view and its bytes differ")
        stats = _try(history.stats, *documented)
        if stats is not None:
            _try(lambda moves=stats.boundary_moves: list(moves), *documented)
            repr(stats), repr(history)
            if min(stats[:7]) < 0 or max(stats[:7]) >= 1 << 62:
                raise WrongError(f"absurd figures: {stats}")
        messages, raw = _try(lambda: list(history), *documented), _try(history.to_json, *documented)
        if messages is not None and raw is not None and messages != _loads(raw):
            raise WrongError("the messages and their bytes differ")
        for asked in (0, 1, 2, 17, len(history), 1 << 31, "0", "17", "call_0_0", "none"):
            _try(lambda asked=asked: history.recall(asked), LookupError, *documented)
        if len(history):
            _try(lambda: history[rng.randrange(len(history))], *documented)


def _use_manager(rng: random.Random, manager: Any) -> None:
    documented = (StoreError, TranscriptError)
    asks: list[Callable[[], Any]] = [
        lambda: manager.trajectory,
        lambda: repr(manager),
        manager.report,
        lambda: [manager.recall(turn) for turn in (1, len(manager) // 2, len(manager))],
        lambda: manager.recall(rng.choice((0, 7, len(manager) + 1, 1 << 31))),
    ]
    if isinstance(manager, recede.designs.HybridContextManager):
        asks += [lambda: manager.summaries, lambda: manager.phase, lambda: manager.get_context("s", "u")]
        asks += [manager.maybe_create_summary]
    else:
        asks += [lambda: manager.get_masked_context("s", "u"), manager.estimate_token_savings]
    for more in (0, 3, rng.choice((0, 50, 300))):
        for number in range(more):
            _try(
                lambda number=number: manager.add_turn("Think.", f"ls {number}", "a word\n" * (number % 40)),
                *documented,
            )
        for ask in rng.sample(asks, len(asks)):
            _try(ask, LookupError, *documented)


def _use_store(rng: random.Random, store: TurnStore) -> None:
    numbers = (1, 2, 17, len(store), len(store) + 1)
    asks: list[Callable[[], Any]] = [
        store.verify,
        store.stats,
        lambda: repr(store),
        lambda: sum(1 for _ in store.turns(1, 2_000)),
        *(lambda kind=kind: sum(map(len, store.records(kind))) for kind in ("turn", "message", "summary", "session")),
        *(lambda turn=turn: store.get(turn) for turn in numbers),
        *(lambda turn=turn: store.recall(turn) for turn in numbers),
        lambda: store.append("a", "b", "c" * rng.choice((1, 900, 9_000)), sync=rng.random() < 0.5),
        lambda: store.append_record("session", [b"x" * rng.choice((1, 900, 9_000))] * rng.choice((1, 3))),
        lambda: store.replace_record("turn", rng.choice(numbers), [b"x", b"y", b"12345678", b"z" * 3_000]),
        lambda: store.mask_before(rng.choice(numbers)),
        store.sync,
        store.compact,
    ]
    for ask in rng.choices(asks, k=12):
        _try(ask, StoreError, LookupError)


def _use(rng: random.Random, path: Path, opens: Callable[[TurnStore], Any] | None) -> bool:
    """Open a store, and what it is of, and use that; whether it could be opened."""
    store = _try(lambda: TurnStore(path, read_only=rng.random() < 0.2), StoreError)
    if store is None:
        return False
    try:
        kept = None
        if opens is None or rng.random() < 0.2:
            _use_store(rng, store)
        if opens is not None:
            opens = rng.choice(_OPENERS) if rng.random() < 0.2 else opens
            kept = _try(lambda: opens(store), StoreError, TranscriptError)
            if isinstance(kept, History):
                _use_history(rng, kept, StoreError, TranscriptError)
                _try(lambda: kept.save(path.with_name("saved")), StoreError, TranscriptError)
            elif kept is not None:
                _use_manager(rng, kept)
        return opens is None or kept is not None
    finally:
        _try(store.close, StoreError)
        store.close(sync=False)


# The targets: each is a case of damage, and says whether it was accepted


def saved_session(rng: random.Random, folder: Path) -> bool:
    """A file of `History.save`."""
    data, functions = rng.choice(_saved())
    path, how, pages = folder / "session", rng.random(), bytearray(data)
    if how >= 0.7:
        pages = _damage_pages(rng, data, rng.choice(_saved()).data)
        if how < 0.9:
            sealed(pages)
    path.write_bytes(pages)
    if how < 0.7:
        with TurnStore(path) as store:
            for _ in range(rng.choice((1, 1, 2))):
                _damage_record(rng, store)
    history = _try(lambda: History.load(path, **functions), TranscriptError, StoreError)
    if history is None:
        return False
    _use_history(rng, history, TranscriptError)  # of numbers that Python cannot read
    view = history.view_json()
    history.save(path)
    if History.load(path, **functions).view_json() != view:
        raise WrongError("the view is another one after a restart")
    return True


_KINDS: Any = ("session", "session", "summary", "message", "turn")


def _damage_record(rng: random.Random, store: TurnStore) -> None:
    """A record is another one, or there is one more."""
    kinds = [kind for kind in _KINDS if store.count_records(kind)]
    kind = "session" if "session" in kinds and rng.random() < 0.4 else rng.choice(kinds)
    last = store.count_records(kind)
    number = rng.choice((1, last, last, rng.randint(1, last)))
    fields = list(store.record(kind, number))
    others = [*store.record(rng.choice(kinds), 1), *store.record(kind, rng.randint(1, last))]
    how, place = rng.random(), rng.randrange(len(fields))
    if how < 0.1 and len(fields) > 1:
        del fields[place]
    elif how < 0.15:
        fields.insert(place, rng.choice(others))
    else:
        fields[place] = _damaged(rng, fields[place], others)
    if rng.random() < 0.2:
        store.append_record(rng.choice(_KINDS), fields)
    else:
        store.replace_record(kind, number, fields)


def store_records(rng: random.Random, folder: Path) -> bool:
    """Records that were written as a store writes them, and hold something else."""
    stored = rng.choice([stored for stored in _stored() if stored.log is None])
    path = folder / "session.store"
    path.write_bytes(stored.file)
    with TurnStore(path) as store:
        for _ in range(rng.choice((1, 1, 2, 4))):
            _damage_record(rng, store)
    return _use(rng, path, stored.opens)


def sealed(data: bytearray) -> None:
    """Make the checksums of pages right, as whoever made the file could have done."""
    for at in range(0, len(data) - _PAGE + 1, _PAGE):
        number = struct.pack("<I", at // _PAGE)
        data[at : at + 4] = struct.pack("<I", zlib.crc32(number + data[at + 4 : at + _PAGE]))


def _frames(log: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """Of each frame of a log: where it begins, its page, and how many bytes of that it has."""
    at = _PAGE
    while at + 20 <= len(log):
        number, length = struct.unpack_from("<IH", log, at)
        if length > _PAGE or at + 20 + length > len(log):
            return
        yield at, number, length
        at += 20 + length
        if number == 0:
            at = -(-at // _PAGE) * _PAGE


def _without_chance(file: bytearray, log: bytearray | None) -> Stored:
    """A store with the id, and its log with the salt, that it has in every run."""
    file[40:48] = bytes(8)
    sealed(file)
    if log is not None:
        log[24:32] = log[40:48] = bytes(8)
        for at, number, _ in _frames(log):
            log[at + 12 : at + 16] = bytes(4)
            if number == 0:
                log[at + 60 : at + 68] = bytes(8)
        sealed_log(log)
    return Stored(bytes(file), None if log is None else bytes(log), lambda store: None)


def sealed_log(data: bytearray) -> None:
    """The same for the frames of a log, as far as there are any; and for the pages in them."""
    if len(data) < _PAGE:
        return
    sum_before = zlib.crc32(data[:48])
    data[48:52] = struct.pack("<I", sum_before)
    for at, number, length in _frames(data):
        page = data[at + 20 : at + 20 + length].ljust(_PAGE, b"\0")
        data[at + 20 : at + 24] = struct.pack("<I", zlib.crc32(struct.pack("<I", number) + page[4:]))
        sum_before = zlib.crc32(data[at + 20 : at + 20 + length], zlib.crc32(data[at : at + 16], sum_before))
        data[at + 16 : at + 20] = struct.pack("<I", sum_before)


def _damage_pages(rng: random.Random, data: bytes, other: bytes) -> bytearray:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        page = rng.choice((0, rng.randrange(max(1, len(changed) // _PAGE)))) * _PAGE
        how = rng.random()
        if how < 0.5:
            # Numbers stand in the header of a page, and where its content begins; of page 0, up to 152.
            at = page + 4 * rng.randrange(1, 40)
            width = rng.choice((1, 2, 4, 8))
            number = rng.choice((*_NUMBERS, len(data) // _PAGE, len(data) // _PAGE - 1, rng.randrange(1 << 16)))
            changed[at : at + width] = (number % (1 << 8 * width)).to_bytes(width, "little")
        elif how < 0.7:
            at = rng.randrange(max(1, len(changed)))
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif how < 0.8:
            at = rng.randrange(max(1, len(other) // _PAGE)) * _PAGE
            changed[page : page + _PAGE] = other[at : at + _PAGE]
        elif how < 0.85:
            changed[page : page + _PAGE] = bytes(_PAGE)
        elif how < 0.9:
            del changed[rng.choice((page, rng.randint(0, len(changed)))) :]
        elif how < 0.95:
            changed[page:page] = changed[page : page + rng.choice((1, 2)) * _PAGE]
        else:
            del changed[page : page + _PAGE]
    return changed


def store_pages(rng: random.Random, folder: Path) -> bool:
    """Pages and logs that were flipped, cut and spliced, half of them with checksums that are right."""
    stored, other = rng.choice(_stored()), rng.choice(_stored())
    file, log = bytearray(stored.file), stored.log and bytearray(stored.log)
    path = folder / "session.store"
    seals = rng.random() < 0.6
    if log is None or rng.random() < 0.5:
        file = _damage_pages(rng, stored.file, other.file)
        if seals:
            sealed(file)
    if stored.log is not None and rng.random() < 0.6:
        log = _damage_pages(rng, stored.log, other.log or other.file)
        if seals:
            sealed_log(log)
    path.write_bytes(file)
    if log is not None:
        path.with_name("session.store-log").write_bytes(log)
    return _use(rng, path, stored.opens if rng.random() < 0.5 else None)


SCRIPT = __file__  # what a child runs
TARGETS: dict[str, Callable[[random.Random, Path], bool]] = {
    target.__name__: target for target in (saved_session, store_records, store_pages)
}


# A run. Each target runs in a child, which may crash, hang or take all memory


class Found(NamedTuple):
    """What a run found."""

    cases: int
    accepted: int
    faults: list[str]


def _child(name: str, seeds: Iterator[int]) -> None:
    """Run cases, and say which one is being run, and what became of it."""
    target = TARGETS[name]
    logging.disable()
    (_saved if target is saved_session else _stored)()
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + _MOST_MEMORY,) * 2)
    for seed in seeds:
        print("case", seed, flush=True)
        try:
            with tempfile.TemporaryDirectory() as folder:
                was_accepted = target(random.Random(seed), Path(folder))
        except BaseException as error:  # a panic of the core is none of Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            print("fault", json.dumps("".join(traceback.format_exception(error)[-6:])), flush=True)
        else:
            print("accepted" if was_accepted else "refused", flush=True)


def run(name: str, first: int, cases: int | None, seconds: float) -> Found:
    """The cases of a target from this seed on, until the time is over or twenty are faulty."""
    end = time.monotonic() + seconds
    seed, accepted, faults = first, 0, []
    while (cases is None or seed < first + cases) and time.monotonic() < end and len(faults) < _MOST_FAULTS:
        left = [] if cases is None else ["--cases", str(first + cases - seed)]
        arguments = ["--child", "--target", name, "--seed", str(seed), "--seconds", str(end - time.monotonic()), *left]
        with contextlib.ExitStack() as stack:
            said = stack.enter_context(tempfile.TemporaryFile())
            child = subprocess.Popen(
                [sys.executable, SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=said, bufsize=0
            )
            assert child.stdout is not None
            stack.enter_context(child.stdout)
            selector = stack.enter_context(selectors.DefaultSelector())
            selector.register(child.stdout, selectors.EVENT_READ)
            has_ended, limit, line = True, _MOST_SECONDS_TO_BEGIN, b"-"
            while selector.select(limit) and (line := child.stdout.readline()):
                limit = MOST_SECONDS
                kind, _, rest = line.decode().strip().partition(" ")
                has_ended = kind != "case"
                if kind == "case":
                    seed = int(rest)
                    continue
                seed += 1
                accepted += kind == "accepted"
                if kind == "fault":
                    faults.append(f"{name}, seed {seed - 1}: {json.loads(rest)}")
                    if len(faults) >= _MOST_FAULTS:
                        break
            if line:  # it did not close its output: it hangs, or enough faults are known
                child.kill()
            status = child.wait()
            said.seek(0)
            words = said.read().decode(errors="replace")[-2_000:]
            if not has_ended:
                faults.append(f"{name}, seed {seed}: the process crashed, or went on without end ({status}) {words}")
                seed += 1
            elif status != 0 and len(faults) < _MOST_FAULTS:
                raise RuntimeError(words)
    return Found(seed - first, accepted, faults)


def main() -> None:
    """Run, and tell what was found."""
    parser = argparse.ArgumentParser(description="Give damaged files to the readers of recede.")
    parser.add_argument("--target", choices=list(TARGETS), help="all of them, one after another, if none is named")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = [arguments.target] if arguments.target else list(TARGETS)
    if arguments.child:
        _child(names[0], fuzz._seeds(arguments.seed, arguments.cases, arguments.seconds))
        return
    is_faulty = False
    for name in names:
        start = time.monotonic()
        found = run(name, arguments.seed, arguments.cases, arguments.seconds)
        print(
            f"{name}: {found.cases} cases from seed {arguments.seed} in {time.monotonic() - start:.0f} s, "
            f"{found.accepted} accepted; {len(found.faults)} faults",
            flush=True,
        )
        for fault in found.faults:
            print(fault)
        is_faulty |= bool(found.faults)
    sys.exit(is_faulty)


if __name__ == "__main__":
    main()
