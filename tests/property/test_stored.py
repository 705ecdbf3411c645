"""A turn store against a dictionary: any steps, with closing, reopening and crashes among them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import recede

# Around the lengths where a record moves out of its bucket, or a text into the next page.
TEXTS = st.one_of(
    st.text(max_size=40),
    st.builds(lambda text, length: (text * length)[:length], st.text(min_size=1, max_size=3), st.integers(0, 1_100)),
    st.builds(lambda length: "é" * length, st.integers(2_000, 9_000)),
    st.just("\ud800 alone"),
)
Turn = tuple[str, str, str]


class Stored(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.path = Path(self.folder, "session.store")
        self.turns: dict[int, Turn] = {}
        self.masked_before = 1
        self.notes: list[bytes] = []

    @initialize(sync_every=st.sampled_from([None, 1, 3]))
    def open(self, sync_every: int | None) -> None:
        self.sync_every = sync_every
        self.store = recede.store.TurnStore(self.path, sync_every=sync_every)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close(sync=False)
        shutil.rmtree(self.folder)

    @rule(turn=st.tuples(TEXTS, TEXTS, TEXTS), sync=st.booleans(), times=st.sampled_from([1, 1, 1, 20]))
    def append(self, turn: Turn, sync: bool, times: int) -> None:
        for _ in range(times):
            number = self.store.append(*turn, sync=sync)
            assert number == len(self.turns) + 1
            self.turns[number] = turn

    @rule(note=st.binary(max_size=6_000), place=st.integers(0, 3))
    def keep(self, note: bytes, place: int) -> None:
        if place < len(self.notes):
            self.store.replace_record("session", place + 1, [b"note", note])
            self.notes[place] = note
        else:
            assert self.store.append_record("session", [b"note", note]) == len(self.notes) + 1
            self.notes.append(note)

    @rule(share=st.floats(0, 1.1))
    def mask(self, share: float) -> None:
        turn = int(share * len(self.turns)) + 1
        before = self.masked_before
        self.masked_before = max(before, min(turn, len(self.turns) + 1))
        assert self.store.mask_before(turn) == self.masked_before - before

    @rule()
    def sync(self) -> None:
        self.store.sync()

    @rule()
    def compact(self) -> None:
        self.store.compact()
        assert self.store.stats().free_pages == 0

    @rule()
    def close_and_open(self) -> None:
        self.store.close()
        assert [file.name for file in Path(self.folder).iterdir()] == ["session.store"]
        self.open(self.sync_every)

    @rule()
    def crash(self) -> None:
        """The process ends without a word."""
        self.store.close(sync=False)
        self.open(self.sync_every)

    @rule()
    def verify(self) -> None:
        report = self.store.verify()
        assert report.is_sound and report.turns == len(self.turns)

    @rule(share=st.floats(0, 1))
    def read_one(self, share: float) -> None:
        if self.turns:
            number = int(share * (len(self.turns) - 1)) + 1
            turn = self.store.get(number)
            reasoning, action, observation = self.turns[number]
            masked = number < self.masked_before
            assert turn[:4] == (number, reasoning, action, None if masked else observation)
            assert turn.masked is masked and self.store.recall(number) == observation

    @rule()
    def read_all_beside_the_writer(self) -> None:
        with contextlib.closing(recede.store.TurnStore(self.path, read_only=True)) as reader:
            seen = {turn.turn_id: (turn.reasoning, turn.action, reader.recall(turn.turn_id)) for turn in reader}
            assert (seen, reader.masked_before) == (self.turns, self.masked_before)
            assert [note for _, note in reader.records("session")] == self.notes

    @invariant()
    def counts(self) -> None:
        if hasattr(self, "store"):
            stats = self.store.stats()
            assert (len(self.store), stats.turns, stats.masked_turns) == (
                len(self.turns),
                len(self.turns),
                self.masked_before - 1,
            )


class TestStored(Stored.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(stateful_step_count=40)
