"""`SharedFile`: a file that several processes append to."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from recede._errors import StoreError
from recede._files import identity, write_whole

try:
    import fcntl
except ImportError:  # no such locks: one process a file
    fcntl = None  # type: ignore[assignment]

_LOCK_SECONDS = 0.2  # a request takes microseconds under the lock, unless the process was stopped there


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
                if identity(self._file) != identity(self.path):
                    continue  # it was written again, in another format
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
