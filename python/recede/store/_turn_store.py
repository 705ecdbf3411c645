"""The turn store: a session on disk that outgrows memory and outlives its process."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from recede import _engine
from recede._errors import StoreError, no_such
from recede.reduction._kinds import whole_number

if TYPE_CHECKING:
    from types import TracebackType

_Kind = Literal["turn", "message", "summary", "session"]
_KINDS = {"turn": 1, "message": 2, "summary": 3, "session": 4}
_BATCH = 256  # turns or records read at once


class StoredTurn(NamedTuple):
    """A turn as it was stored.

    Attributes:
        turn_id: its number, from 1.
        reasoning, action: as they were appended.
        observation: the same; None for a masked turn, whose observation `TurnStore.recall` fetches.
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
        """Whether the observation is masked."""
        return self.observation is None


class StoreStats(NamedTuple):
    """Statistics of a `TurnStore`.

    Attributes:
        turns, messages, summaries, sessions: the number of records of each kind.
        masked_turns: turns whose observation is masked.
        buckets: buckets of the hash table.
        overflow_pages: pages of buckets beyond their first.
        load: bytes of records in buckets divided by the capacity of their first pages; a bucket is split above 0.8.
        splits: the number of bucket splits.
        pages: pages of 4,096 bytes.
        free_pages: unused pages, which will be reused.
        text_pages: pages of texts stored outside of buckets.
        commits: the number of commits.
        file_bytes, log_bytes: size of the file and of its log.

    Example:
        >>> import pathlib, recede, tempfile
        >>> with recede.store.TurnStore(pathlib.Path(tempfile.mkdtemp(), "session.store")) as store:
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
        """The average number of pages per bucket."""
        return (self.buckets + self.overflow_pages) / self.buckets


class StoreFault(NamedTuple):
    """A fault in a store.

    Attributes:
        page: the number of the 4,096-byte page, from 0; None if no single page is at fault.
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
    """The result of `TurnStore.verify`.

    Attributes:
        turns, messages, summaries, sessions: the number of intact records of each kind.
        longest_chain: the number of pages of the longest bucket.
        faults: the first thousand faults.

    Example:
        >>> import pathlib, recede, tempfile
        >>> with recede.store.TurnStore(pathlib.Path(tempfile.mkdtemp(), "session.store")) as store:
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
        """Whether there are no faults."""
        return not self.faults


class TurnStore:
    """The turns of a session on disk, in a linear hash table: any number of turns, constant-time access.

    Memory does not grow with the session. Appending a turn and reading one by its number take constant time. Masking
    moves an observation out of its turn: reading masked turns does not touch their observations, which `recall`
    fetches. Each append or change is written before the call returns: the end of the process loses nothing, that of the
    machine nothing that was synced (docs/store.md has the exact guarantees).

    Args:
        path: the file; created if missing, readable only by its owner. While it is open for writing, a log with the
            same mode and owner is next to it.
        sync_every: wait for the disk after this many records were appended or changed, 1 for every turn: fewer than
            these may be lost with the machine. By default only `sync`, `close`, `append` with ``sync=True``, and 32 MiB
            of log wait.
        read_only: read what was last written, even while a writer is active. Nothing is written.

    Raises:
        StoreError: the file is not a store, is damaged, or has another writer; names the page or file.

    It is thread-safe: calls are serialized. Close it, or use it as a context manager: then everything is in one file.

    Example:
        >>> import pathlib, recede, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "session.store")
        >>> with recede.store.TurnStore(path) as store:
        ...     for number in range(1, 101):
        ...         _ = store.append("Look again.", f"cat log.{number}", "a line of the log\\n" * 200, sync=True)
        ...     store.mask_before(91)
        90
        >>> with recede.store.TurnStore(path, read_only=True) as store:
        ...     len(store), store.get(1).masked, store.get(91).masked, len(store.recall(1))
        (100, True, False, 3600)
    """

    def __init__(self, path: str | os.PathLike[str], *, sync_every: int | None = None, read_only: bool = False) -> None:
        whole_number(1, optional=True)("sync_every", sync_every)
        self._read_only = read_only
        self._path = os.path.realpath(Path(path))  # the log must be next to the file, whichever link leads to it
        try:
            self._store = _engine.engine.Store(self._path, read_only, sync_every)
        except StoreError as error:
            if error.kind in ("io", "missing") and not Path(self._path).parent.is_dir():
                raise StoreError("folder", path=self._path) from None
            raise

    # Writing

    def append(
        self, reasoning: str, action: str, observation: str, *, sync: bool = False, timestamp: float | None = None
    ) -> int:
        """Append a turn and return its number, from 1.

        Args:
            reasoning: what the agent thought.
            action: what it did.
            observation: what it saw.
            sync: return only when this turn and all before it are on disk.
            timestamp: seconds since the epoch; None is now.

        Raises:
            StoreError: it could not be stored. If the store stays usable (see `is_usable`), it is unchanged.
        """
        now = time.time() if timestamp is None else timestamp
        return self._store.append_turn(reasoning, action, observation, now, sync)

    def mask_before(self, turn_id: int) -> int:
        """Mask the turns before this one and return how many were newly masked.

        Masked turns stay masked: a smaller number changes nothing. Time is linear in the number of newly masked turns.

        Raises:
            StoreError: it failed; some of the turns may be masked.
        """
        return self._store.mask_before(max(0, turn_id))

    def sync(self) -> None:
        """Return when all changes are on disk, so that they survive the end of the machine.

        Raises:
            StoreError: the sync failed, or the file or its log was deleted or replaced. If `is_usable` is true, it can
                be retried, for example after freeing disk space; otherwise reopen the store, which then has what was
                synced before.
        """
        self._store.sync()

    # Reading

    def __len__(self) -> int:
        return self._store.count(_KINDS["turn"])

    def __bool__(self) -> bool:
        return any(map(self._store.count, _KINDS.values()))  # that of a `History` has no turns

    def get(self, turn_id: int) -> StoredTurn:
        """A turn; the observation of a masked one is None and is not read.

        Raises:
            LookupError: there is no such turn.
            StoreError: it is damaged, or cannot be read.
        """
        turns: list[StoredTurn] = self._store.turns(max(0, turn_id), 1) if turn_id > 0 else []
        if not turns:
            raise no_such("turn", turn_id)
        return turns[0]

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
        """The turns from `start` up to but excluding `stop`, in order, a few at a time in memory."""
        first = max(1, start)
        end = len(self) + 1 if stop is None else stop
        chars = 0
        while first < end:
            turns = self._store.turns(first, min(_BATCH, end - first))
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
        """The first unmasked turn; all turns with a smaller number are masked."""
        return self._store.masked_before()

    # Records of any kind, for sessions and managers

    def append_record(self, kind: _Kind, fields: Sequence[bytes], *, sync: bool = False) -> int:
        """Append a record and return its number within its kind, from 1. Its last field may be stored apart."""
        return self._store.append(_KINDS[kind], list(fields), sync)

    def replace_record(self, kind: _Kind, number: int, fields: Sequence[bytes]) -> None:
        """Replace the fields of a record; LookupError if it is missing."""
        if number < 1 or not self._store.replace(_KINDS[kind], number, list(fields)):
            raise no_such(kind, number)

    def records(self, kind: _Kind, start: int = 1) -> Iterator[tuple[bytes, ...]]:
        """The fields of all records of a kind from this number on, in order."""
        first, size = max(1, start), 0
        while records := self._store.records(_KINDS[kind], first, _BATCH):
            size += sum(map(len, itertools.chain(*records)))
            self._check_length(size)
            yield from records
            first += len(records)

    def _check_length(self, size: int) -> None:
        """Guard against a damaged store in which many records refer to one long text, more than fits in memory."""
        if size > self._store.max_bytes():
            raise StoreError("damaged", path=self._path, what="its records are longer than its file")

    def record(self, kind: _Kind, number: int) -> tuple[bytes, ...]:
        """The fields of a record; LookupError if it is missing."""
        records: list[tuple[bytes, ...]] = self._store.records(_KINDS[kind], number, 1) if number > 0 else []
        if not records:
            raise no_such(kind, number)
        return records[0]

    def count_records(self, kind: _Kind) -> int:
        """The number of records of a kind."""
        return self._store.count(_KINDS[kind])

    # The store as a whole

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    @property
    def files(self) -> tuple[str, ...]:
        """The paths it owns: the file, its log, and the temporary file of a compaction."""
        return (self._path, f"{self._path}-log", f"{self._path}-new")

    @property
    def is_read_only(self) -> bool:
        """Whether it was opened read-only."""
        return self._read_only

    @property
    def is_usable(self) -> bool:
        """Whether it can still be written to after earlier failures; False once it is closed."""
        return self._store.is_usable()

    def stats(self) -> StoreStats:
        """Size statistics, in constant time."""
        return self._store.stats()

    def verify(self) -> StoreReport:
        """Read everything and report all faults; damage raises no exception."""
        return self._store.verify()

    def compact(self) -> None:
        """Compact: copy all records into a new file without gaps, which then replaces this one.

        Raises:
            StoreError: it failed, or the store is being read; the store is unchanged.
        """
        self._store.compact()

    def close(self, *, sync: bool = True) -> None:
        """Sync, and leave one regular file with everything. Closing a closed store does nothing.

        Args:
            sync: False does not wait for the disk, and leaves the log, in which the next writer finds every change, as
                after the end of the process.

        Raises:
            StoreError: it failed. If the store is still usable, it stays open, and `close` can be retried.
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
        state = f"{len(self):,} turns" if self._store.is_open() else "closed"
        return f"<TurnStore: {state}, {self._path}>"

    def __reduce__(self) -> Any:
        raise TypeError("a TurnStore is an open file: open it again by its path")
