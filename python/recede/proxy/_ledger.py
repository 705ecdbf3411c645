"""The ledger of requests: when each was last sent, and whether the prompt cache was cold then."""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import threading
import time
from collections.abc import Iterator, Sequence

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
_LOCK_SECONDS = 0.2  # a request takes microseconds under the lock, unless the process was stopped there


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
        self._path = None if path is None else os.fspath(path)
        self._entries: dict[bytes, int] = {}  # by key and messages; the one sent last is the last
        self._file = -1
        self._read_bytes = 0
        self._unwritten = b""
        self._is_in_memory = False  # as the last line of the log says
        self._lock = lock_of(self, threading.Lock)
        if self._path is not None:
            with opened(self._path), self._locked():
                pass

    def _after_fork(self, *, was_changing: bool) -> None:
        """Open the file again in a child: through that of the parent, both would have its lock."""
        self._unwritten = b""  # the parent writes it
        self._shut()

    def __len__(self) -> int:
        return len(self._entries)

    def cold_requests(
        self, points: Sequence[tuple[int, bytes]], ttl_seconds: float, now: float, note: bool = True
    ) -> list[int]:
        """Find which requests of a history found the cache cold, and note the newest as sent.

        Args:
            points: for each request of the history, how many messages precede it, and their key of 16 bytes.
            ttl_seconds: how long the cache lives after its last use.
            now: seconds since 1970.
            note: False only looks the newest request up.

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
                is_cold = last is not None and now - (last >> 1) / 1_000 > ttl_seconds
            else:
                is_cold = bool(newest & 1)
            if note:
                value = int(now * 1_000) << 1 | is_cold
                self._set(keys[-1], value)
                if self._path is not None:
                    new = keys[-1] + value.to_bytes(8, "little")
                    self._unwritten = self._unwritten[-_MAX_KEYS * _RECORD.size :] + new
        cold = [messages for (messages, _), entry in zip(points[:-1], earlier, strict=True) if entry and entry & 1]
        return [*cold, points[-1][0]] if is_cold else cold

    def close(self) -> None:
        """Close the file; from then on everything is in memory."""
        with self._lock:
            self._path = None
            self._shut()

    def _set(self, key: bytes, value: int) -> None:
        self._entries.pop(key, None)
        self._entries[key] = value
        if len(self._entries) > _MAX_KEYS:
            del self._entries[next(iter(self._entries))]

    # The file

    @contextlib.contextmanager
    def _shared(self) -> Iterator[None]:
        """Inside the block, entries of other processes are visible; on exit ours become visible to them."""
        if self._path is None:
            yield
            return
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self._locked())
            except OSError as error:
                self._warn(error)
            yield
            try:
                if self._file >= 0:
                    self._write()
                    self._is_in_memory = False
            except OSError as error:
                self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._is_in_memory:
            _log.warning("%s: requests are noted in memory alone: %s", self._path, error.strerror or error)
        self._is_in_memory = True
        self._shut()

    def _shut(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        assert self._path is not None
        while True:
            if self._file < 0:
                self._file, self._read_bytes = open_shared(self._path), 0
            lock_file(self._file)
            if identity(self._file) == identity(self._path):
                break
            self._shut()  # replaced or deleted: the lock is one of the old file
        try:
            self._read()
            yield
        finally:
            if fcntl is not None and self._file >= 0:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _read(self) -> None:
        """Read what was appended; cut off what a crash left in the middle of a record."""
        size = os.fstat(self._file).st_size
        if size < self._read_bytes:  # cut by someone else
            records = (size - len(_HEADER)) // _RECORD.size
            self._read_bytes = 0 if records < 0 else len(_HEADER) + records * _RECORD.size
        if self._read_bytes == 0:
            header = pread(self._file, len(_HEADER), 0)
            if header != _HEADER:
                if not _HEADER.startswith(header):
                    self._shut()
                    raise StoreError("ledger", path=self._path or "")
                os.ftruncate(self._file, 0)
                os.write(self._file, _HEADER)
                size = len(_HEADER)
            self._read_bytes = len(_HEADER)
        torn = (size - self._read_bytes) % _RECORD.size
        if torn:
            os.ftruncate(self._file, size - torn)
        new = pread(self._file, size - torn - self._read_bytes, self._read_bytes)
        for key, messages, value in _RECORD.iter_unpack(new):
            self._set(key + messages.to_bytes(4, "little"), value)
        self._read_bytes = size - torn

    def _write(self) -> None:
        if not self._unwritten:
            return
        append_whole(self._file, self._unwritten, self._read_bytes)
        self._read_bytes += len(self._unwritten)
        self._unwritten = b""
        records = (self._read_bytes - len(_HEADER)) // _RECORD.size
        if records > 2 * len(self._entries) + _LEAST_WASTE:
            write_whole(
                self._path or "",
                [_HEADER, *(key + value.to_bytes(8, "little") for key, value in self._entries.items())],
            )


@contextlib.contextmanager
def opened(path: str) -> Iterator[None]:
    """Raise a StoreError where a file cannot be opened."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise StoreError("io", path=path, what="open", errno=error.errno, said=error.strerror) from None


def open_shared(path: str) -> int:
    """Open a file that several processes append to, for its owner alone; it is made if it is missing."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)


def append_whole(file: int, data: bytes, end: int) -> None:
    """Append to a file that ends here; on a full disk nothing is appended."""
    written = os.write(file, data)
    if written < len(data):
        os.ftruncate(file, end)
        raise OSError(28, "no space left on the device")


def lock_file(file: int) -> None:
    until = time.monotonic() + _LOCK_SECONDS
    while fcntl is not None:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise OSError(error.errno, "another process has locked it") from None
            time.sleep(0.001)


def pread(file: int, size: int, offset: int) -> bytes:
    """Read as many of these bytes as there are."""
    os.lseek(file, offset, os.SEEK_SET)  # appends are at the end wherever this is
    pieces = []
    while size > 0 and (piece := os.read(file, size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
