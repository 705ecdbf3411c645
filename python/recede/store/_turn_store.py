"""Turns on disk: a session that outgrows memory and outlives its process."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from recede import _engine
from recede._errors import StoreError, no_such
from recede.reduction._policy import whole_number

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["StoreFault", "StoreReport", "StoreStats", "StoredTurn", "TurnStore"]

_KINDS = {"turn": 1, "message": 2, "summary": 3, "session": 4}
_BATCH = 256  # turns or records that are read at once


class StoredTurn(NamedTuple):
    """A turn as it was stored.

    Attributes:
        turn_id: its number, from 1.
        reasoning, action: as they were appended.
        observation: the same; None of a masked turn, whose observation `TurnStore.recall` fetches.
        timestamp: seconds since the epoch, when it was appended.

    Example:
        >>> import recede
        >>> recede.store.StoredTurn(1, "Look around.", "ls", None, 1.5e9).masked
        True
    """

    turn_id: int
    reasoning: str
    action: str
    observation: str | None
    timestamp: float | None

    @property
    def masked(self) -> bool:
        """Whether its observation is masked."""
        return self.observation is None


class StoreStats(NamedTuple):
    """The figures of a `TurnStore`.

    Attributes:
        turns, messages, summaries, sessions: records of each kind.
        masked_turns: turns whose observation is masked.
        buckets: buckets of the hash table.
        overflow_pages: pages that buckets have beyond their first.
        load: bytes of the records in buckets, as a share of the buckets' first pages; a bucket is split above 0.8.
        splits: how often a bucket was split.
        pages: pages of 4,096 bytes.
        free_pages: pages in use by nothing, which will be used again.
        text_pages: pages of texts that lie in no bucket.
        commits: how many times something was made to last.
        file_bytes, log_bytes: size of the file, and of the log beside it.

    Example:
        >>> import pathlib, recede, tempfile
        >>> with recede.TurnStore(pathlib.Path(tempfile.mkdtemp(), "session.store")) as store:
        ...     _ = store.append("Look around.", "ls", "README.md")
        ...     store.stats().turns, store.stats().buckets, store.stats().chain_pages
        (1, 1, 1.0)
    """

    turns: int
    messages: int
    summaries: int
    sessions: int
    masked_turns: int
    buckets: int
    overflow_pages: int
    load: float
    splits: int
    pages: int
    free_pages: int
    text_pages: int
    commits: int
    file_bytes: int
    log_bytes: int

    @property
    def chain_pages(self) -> float:
        """Pages of a bucket, on average."""
        return (self.buckets + self.overflow_pages) / self.buckets


class StoreFault(NamedTuple):
    """Something in a store that is not as it must be.

    Attributes:
        page: the page of 4,096 bytes, from 0; None where no page is meant.
        what: what is wrong with it.

    Example:
        >>> import recede
        >>> str(recede.store.StoreFault(7, "its checksum is wrong"))
        'page 7: its checksum is wrong'
    """

    page: int | None
    what: str

    def __str__(self) -> str:
        return self.what if self.page is None else f"page {self.page}: {self.what}"


class StoreReport(NamedTuple):
    """What `TurnStore.verify` found.

    Attributes:
        turns, messages, summaries, sessions: whole records of each kind.
        longest_chain: pages of the longest bucket.
        faults: what is not as it must be, the first thousand of it.

    Example:
        >>> import pathlib, recede, tempfile
        >>> with recede.TurnStore(pathlib.Path(tempfile.mkdtemp(), "session.store")) as store:
        ...     store.verify()
        StoreReport(turns=0, messages=0, summaries=0, sessions=0, longest_chain=1, faults=())
    """

    turns: int
    messages: int
    summaries: int
    sessions: int
    longest_chain: int
    faults: tuple[StoreFault, ...]

    @property
    def is_sound(self) -> bool:
        """Whether there is no fault."""
        return not self.faults


class TurnStore:
    """The turns of a session on disk, in a linear hash table: any number of them, each found at once.

    Memory does not grow with the session. A turn is appended, and read by its number, in constant time. Masking a
    turn moves its observation out of the way: what is read of masked turns never touches their observations, and
    `recall` fetches one. What was synced survives a crash of the process or of the machine; a crash leaves the state of
    the last sync, never a mixture (docs/store.md says exactly what is promised). Needs the Rust core.

    Args:
        path: the file; it is made if there is none, readable by its owner alone. While it is open for writing, a log
            lies beside it, of the same mode and owner.
        sync_every: after so many records, appended or changed, all is synced. 1 is every turn; None, the default,
            leaves it to `sync` and to the `sync` of `append`.
        read_only: read what was last synced, also beside a writer. Nothing is written.

    Raises:
        StoreError: the file is no store, is damaged, or has another writer; says which page or file.
        ImportError: the engine in use is the plain-Python mirror, which has no store.

    It may be used from several threads: each call is done whole before the next. Close it, or use it as a context
    manager: what was not synced when the process ends is lost.

    Example:
        >>> import pathlib, recede, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "session.store")
        >>> with recede.TurnStore(path) as store:
        ...     for number in range(1, 101):
        ...         _ = store.append("Look again.", f"cat log.{number}", "a line of the log\\n" * 200, sync=True)
        ...     store.mask_before(91)
        90
        >>> with recede.TurnStore(path, read_only=True) as store:
        ...     len(store), store.get(1).masked, store.get(91).masked, len(store.recall(1))
        (100, True, False, 3600)
    """

    def __init__(self, path: str | os.PathLike[str], *, sync_every: int | None = None, read_only: bool = False) -> None:
        whole_number(1, optional=True)("sync_every", sync_every)
        if not hasattr(_engine.engine, "Store"):
            raise ImportError("TurnStore needs recede's Rust core: its plain-Python mirror has no store")
        self._read_only = read_only
        self._path = str(Path(path).resolve())  # a log has to lie beside the file, by whatever link it is reached
        self._store = _engine.engine.Store(self._path, read_only, sync_every)

    # Writing

    def append(
        self, reasoning: str, action: str, observation: str, *, sync: bool = False, timestamp: float | None = None
    ) -> int:
        """Add a turn behind the last one; its number, from 1.

        Args:
            reasoning: what the agent thought.
            action: what it did.
            observation: what it saw.
            sync: return only when this turn, and all before it, are on disk.
            timestamp: seconds since the epoch; None is now.

        Raises:
            StoreError: it could not be stored. Where the store can go on (see `can_go_on`), it is as it was before.
        """
        now = time.time() if timestamp is None else timestamp
        turn: int = self._store.append_turn(reasoning, action, observation, now, sync)
        return turn

    def mask_before(self, turn_id: int) -> int:
        """Mask the turns before this one; how many were masked by it.

        What is masked stays so: a smaller number changes nothing. It costs as much as there are turns to mask.

        Raises:
            StoreError: it failed; some of the turns may be masked.
        """
        masked: int = self._store.mask_before(max(0, turn_id))
        return masked

    def sync(self) -> None:
        """Return when all that was done is on disk.

        Raises:
            StoreError: it could not be, or the file or its log was deleted or replaced. `can_go_on` tells whether it
                can be tried again, on a disk with more room for example; else what was synced before is there when the
                store is opened anew.
        """
        self._store.sync()

    # Reading

    def __len__(self) -> int:
        count: int = self._store.count(_KINDS["turn"])
        return count

    def get(self, turn_id: int) -> StoredTurn:
        """A turn; of a masked one, the observation is None and is not read.

        Raises:
            LookupError: there is no such turn.
            StoreError: it is damaged, or cannot be read.
        """
        turns = self._store.turns(max(0, turn_id), 1) if turn_id > 0 else []
        if not turns:
            raise no_such("turn", turn_id)
        return StoredTurn._make(turns[0])

    def recall(self, turn_id: int) -> str:
        """The full observation of a turn, masked or not.

        Raises:
            LookupError: there is no such turn.
            StoreError: it is damaged, or cannot be read.
        """
        observation: str | None = self._store.recall(turn_id) if turn_id > 0 else None
        if observation is None:
            raise no_such("turn", turn_id)
        return observation

    def turns(self, start: int = 1, stop: int | None = None) -> Iterator[StoredTurn]:
        """The turns from `start` up to and without `stop`, in their order; a few at a time are in memory."""
        first = max(1, start)
        end = len(self) + 1 if stop is None else stop
        chars = 0
        while first < end:
            turns = list(map(StoredTurn._make, self._store.turns(first, min(_BATCH, end - first))))
            chars += sum(len(text or "") for turn in turns for text in turn[1:4])
            self._check_length(chars)
            yield from turns
            if not turns:
                return
            first += len(turns)

    def __iter__(self) -> Iterator[StoredTurn]:
        return self.turns()

    @property
    def masked_before(self) -> int:
        """Turns with a smaller number are masked."""
        turn: int = self._store.masked_before()
        return turn

    # Records of any kind, for what keeps more than turns

    def append_record(
        self, kind: Literal["turn", "message", "summary", "session"], fields: Sequence[bytes], *, sync: bool = False
    ) -> int:
        """Add a record of bytes; its number among those of its kind, from 1. Its last field may lie aside."""
        number: int = self._store.append(_KINDS[kind], list(fields), sync)
        return number

    def replace_record(
        self, kind: Literal["turn", "message", "summary", "session"], number: int, fields: Sequence[bytes]
    ) -> None:
        """Put other fields into a record; LookupError where there is none. It lasts from the next sync on."""
        if number < 1 or not self._store.replace(_KINDS[kind], number, list(fields)):
            raise no_such(kind, number)

    def records(
        self, kind: Literal["turn", "message", "summary", "session"], start: int = 1
    ) -> Iterator[tuple[bytes, ...]]:
        """The fields of all records of a kind from this number on, in their order."""
        first, size = max(1, start), 0
        while records := self._store.records(_KINDS[kind], first, _BATCH):
            size += sum(map(len, itertools.chain(*records)))
            self._check_length(size)
            yield from records
            first += len(records)

    def _check_length(self, size: int) -> None:
        """A damaged store may say of many records that they are the same long text, more than any memory holds."""
        if size > self._store.most_bytes():
            raise StoreError("damaged", path=self._path, what="its records are longer than its file")

    def record(self, kind: Literal["turn", "message", "summary", "session"], number: int) -> tuple[bytes, ...]:
        """The fields of a record; LookupError where there is none."""
        records: list[tuple[bytes, ...]] = self._store.records(_KINDS[kind], number, 1) if number > 0 else []
        if not records:
            raise no_such(kind, number)
        return records[0]

    def count_records(self, kind: Literal["turn", "message", "summary", "session"]) -> int:
        """How many records of a kind there are."""
        count: int = self._store.count(_KINDS[kind])
        return count

    # The whole

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    @property
    def files(self) -> tuple[str, ...]:
        """The names that are its own: of the file, of its log, and of a file that is to take its place."""
        return (self._path, f"{self._path}-log", f"{self._path}-new")

    @property
    def is_read_only(self) -> bool:
        """Whether it was opened for reading alone."""
        return self._read_only

    @property
    def can_go_on(self) -> bool:
        """Whether it can be written to after what has failed so far; False once it is closed."""
        can: bool = self._store.can_go_on()
        return can

    def stats(self) -> StoreStats:
        """How large it is. Costs the same at any length."""
        return StoreStats(*(figure for part in self._store.stats() for figure in part))

    def verify(self) -> StoreReport:
        """Read everything, and tell what is not as it must be; of damage, no exception is made."""
        records, longest, faults = self._store.verify()
        return StoreReport._make((*records, longest, tuple(map(StoreFault._make, faults))))

    def compact(self) -> None:
        """Write all that is there into a new file without gaps, which then takes the place of this one.

        Raises:
            StoreError: it failed, or the store is being read; the store is as it was.
        """
        self._store.compact()

    def close(self, *, sync: bool = True) -> None:
        """Sync, and leave one regular file that holds everything. A store that is closed stays so.

        Args:
            sync: False gives up what was not synced, as a crash would; what was may stay in the log, where the next
                writer finds it.

        Raises:
            StoreError: it failed. The store stays open where it can go on, to be closed again.
        """
        if sync:
            self._store.close()
        else:
            self._store.abandon()

    def __enter__(self) -> TurnStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        told = f"{len(self):,} turns" if self._store.is_open() else "closed"
        return f"<TurnStore: {told}, {self._path}>"

    def __reduce__(self) -> Any:
        raise TypeError("a TurnStore is an open file: open it again by its path")
