"""The ledger of requests: when each was last sent, and whether the prompt cache was cold then; and its kind of file."""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from recede._errors import StoreError
from recede._files import identity, write_whole
from recede._forks import lock_of

try:
    import fcntl
except ImportError:  # no such locks: one process a file
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger("recede")

_HEADER = b"recede: cold requests, 1\n".ljust(28)
# The key of a request, how many messages precede it, and twice the milliseconds since 1970, plus 1 if it was cold.
_RECORD = struct.Struct("<16sIQ")
_MAX_KEYS = 65_536
_LEAST_WASTE = 4_096  # records of a file that are replaced before it is written again
_SERVED = 1 << 31  # in the place of the messages: a record that the cache has served a request
_LOCK_SECONDS = 0.2  # a request takes microseconds under the lock, unless the process was stopped there


def _served_key(point: tuple[int, bytes]) -> bytes:
    messages, key = point
    return key + (messages | _SERVED).to_bytes(4, "little")


class ColdRequests:
    """Times of requests, by what precedes each, so that conversations need not be identified.

    A request is identified by a hash of the roles and result ids before it. A request that is sent again has the answer
    that it had, so a retry sends the same bytes. At most 65,536 requests are kept, those sent last.

    Args:
        path: a file to which each request appends 28 bytes, which other processes may use at the same time, except on
            Windows; without one, everything is in memory. It has no text of any message.

    Raises:
        StoreError: the file cannot be read, or has something else (kind ``ledger``), which is left alone.

    What cannot be written, on a full disk, is logged and written with a later request. Each call takes time linear in
    the number of points.

    Example:
        >>> from recede.proxy import ColdRequests
        >>> ledger = ColdRequests()
        >>> first, second = (1, b"a" * 16), (3, b"b" * 16)
        >>> ledger.cold_requests([first], ttl_seconds=300, now=0), ledger.cold_requests([first, second], 300, now=900)
        ([], [3])
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._entries: dict[bytes, int] = {}  # by key and messages; the one sent last is the last
        self._unwritten = b""
        self._is_in_memory = False  # as the last line of the log says
        self._lock = lock_of(self, threading.Lock)
        self._file = None if path is None else SharedFile(os.fspath(path), self._take)

    def _after_fork(self, *, was_changing: bool) -> None:
        self._unwritten = b""  # the parent writes it

    def __len__(self) -> int:
        return len(self._entries)

    def cold_requests(
        self,
        points: Sequence[tuple[int, bytes]],
        ttl_seconds: float,
        now: float,
        note: bool = True,
        is_cold: bool = False,
    ) -> list[int]:
        """Find which requests of a history found the cache cold, and note the newest as sent.

        Args:
            points: for each request of the history, how many messages precede it, and their key of 16 bytes.
            ttl_seconds: how long the cache lives after its last use.
            now: seconds since 1970.
            note: False only looks the newest request up.
            is_cold: the newest request has no cache, whenever the one before it was sent.

        Returns:
            How many messages precede each request with a cold cache.

        Raises:
            Nothing: a ledger that cannot be written is logged.
        """
        if not points:
            return []
        keys = [key + messages.to_bytes(4, "little") for messages, key in points]
        with self._lock, self._shared():
            known = [self._entries.get(key) for key in keys]
            *earlier, newest = known
            if newest is None:
                last = next((entry for entry in reversed(earlier) if entry is not None), None)
                is_cold = is_cold or (last is not None and now - (last >> 1) / 1_000 > ttl_seconds)
            else:
                is_cold = bool(newest & 1)
            if note:
                self._note(keys[-1], int(now * 1_000) << 1 | is_cold)
        cold = [messages for (messages, _), entry in zip(points[:-1], earlier, strict=True) if entry and entry & 1]
        return [*cold, points[-1][0]] if is_cold else cold

    def note_served(self, point: tuple[int, bytes], now: float) -> None:
        """Note that a request without cache marks was served from a cache, so that its conversation has one."""
        with self._lock, self._shared():
            self._note(_served_key(point), int(now * 1_000) << 1)

    def was_served(self, points: Sequence[tuple[int, bytes]]) -> bool:
        """Whether an earlier request of these was; the newest is left out, since it may be sent again."""
        with self._lock, self._shared():
            return any(_served_key(point) in self._entries for point in points[:-1])

    def close(self) -> None:
        """Close the file; from then on everything is in memory."""
        with self._lock:
            self._file = None

    def _note(self, key: bytes, value: int) -> None:
        self._set(key, value)
        if self._file is not None:
            self._unwritten = self._unwritten[-_MAX_KEYS * _RECORD.size :] + key + value.to_bytes(8, "little")

    def _set(self, key: bytes, value: int) -> None:
        self._entries.pop(key, None)
        self._entries[key] = value
        if len(self._entries) > _MAX_KEYS:
            del self._entries[next(iter(self._entries))]

    # The file

    @contextlib.contextmanager
    def _shared(self) -> Iterator[None]:
        """Inside the block, entries of other processes are visible; on exit ours become visible to them."""
        with contextlib.ExitStack() as stack:
            file = self._file
            try:
                if file is not None:
                    stack.enter_context(file.locked())
            except OSError as error:
                self._warn(error)
                file = None
            yield
            try:
                if file is not None:
                    self._write(file)
                    self._is_in_memory = False
            except OSError as error:
                self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._is_in_memory and self._file is not None:
            _log.warning("%s: requests are noted in memory alone: %s", self._file.path, error.strerror or error)
        self._is_in_memory = True

    def _take(self, file: SharedFile, new: bytes, is_whole: bool) -> None:
        """Read what was appended; cut off what a crash left in the middle of a record."""
        if is_whole:
            header, new = new[: len(_HEADER)], new[len(_HEADER) :]
            if header != _HEADER:
                if not _HEADER.startswith(header):
                    raise StoreError("ledger", path=file.path)
                file.cut(len(header))
                file.append(_HEADER)
        if torn := len(new) % _RECORD.size:
            file.cut(torn)
        for key, messages, value in _RECORD.iter_unpack(new[: len(new) - torn]):
            self._set(key + messages.to_bytes(4, "little"), value)

    def _write(self, file: SharedFile) -> None:
        if self._unwritten:
            file.append(self._unwritten)
            self._unwritten = b""
            if file.size // _RECORD.size > 2 * len(self._entries) + _LEAST_WASTE:
                file.replace([_HEADER, *(key + value.to_bytes(8, "little") for key, value in self._entries.items())])


class SharedFile:
    """A file that several processes append to, for its owner alone; it is made if it is missing.

    Under its lock each is given what the others have written: `take` gets this file, what is new, and whether that is
    all of it: it is another file than before, or was cut. A StoreError where it cannot be opened.
    """

    def __init__(self, path: str, take: Callable[[SharedFile, bytes, bool], None]) -> None:
        self.path = path
        self.size = 0  # bytes that are read
        self._take = take
        self._file = -1  # while it is locked
        self._identity: tuple[int, int] | None = None
        try:
            with self.locked():
                pass
        except StoreError:
            raise
        except OSError as error:
            raise StoreError("io", path=path, what="open", errno=error.errno, said=error.strerror) from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock it, and read what is new; an OSError where another process keeps it locked."""
        while True:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
            try:
                _lock_file(self._file)
                if identity(self._file) != identity(self.path):
                    continue  # replaced or deleted: the lock is one of the old file
                size = os.fstat(self._file).st_size
                is_whole = identity(self._file) != self._identity or size < self.size
                start, self.size, self._identity = 0 if is_whole else self.size, size, None
                self._take(self, self._read(size - start, start), start == 0)
                self._identity = identity(self._file)
                yield
                return
            finally:
                if fcntl is not None:
                    fcntl.flock(self._file, fcntl.LOCK_UN)  # a child that was forked meanwhile has it, too
                os.close(self._file)

    def _read(self, size: int, start: int) -> bytes:
        """Read as many of these bytes as there are."""
        os.lseek(self._file, start, os.SEEK_SET)  # appends are at the end wherever this is
        pieces = []
        while size > 0 and (piece := os.read(self._file, size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def append(self, data: bytes) -> None:
        """Append to it while it is locked; on a full disk nothing is appended."""
        if os.write(self._file, data) < len(data):
            self.cut(0)
            raise OSError(28, "no space left on the device")
        self.size += len(data)

    def cut(self, count: int) -> None:
        """Cut off the last of the bytes that are read."""
        self.size -= count
        os.ftruncate(self._file, self.size)

    def replace(self, pieces: list[bytes]) -> None:
        """Write it again while it is locked."""
        write_whole(self.path, pieces)
        self._identity, self.size = identity(self.path), sum(map(len, pieces))


def _lock_file(file: int) -> None:
    until = time.monotonic() + _LOCK_SECONDS
    while fcntl is not None:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise OSError(error.errno, "another process has locked it") from None
            time.sleep(0.001)
