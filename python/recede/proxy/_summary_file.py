"""The file of summaries: lines of JSON, which several processes append to."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any

from recede._errors import StoreError
from recede._files import identity, write_whole
from recede.proxy._ledger import append_whole, lock_file, open_shared, opened, pread

_log = logging.getLogger("recede")

Record = dict[str, Any]

_KIND = "recede: summaries, 1"
_NUMBERS = {"messages": (int,), "key": (int,), "seconds": (int, float)}


class SummaryFile:
    """See the module; a StoreError if it is another file, which is left alone. Its owner alone can read it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity: tuple[int, int] | None = None
        self._new: list[Record] = []
        self._was_said = False
        self.secret = os.urandom(32)
        self.size = 0  # bytes that are read
        with opened(path), self._locked():
            pass

    def read(self) -> list[Record]:
        """Return what others have written since the last call."""
        new, self._new = self._new, []
        return new

    def write(self, record: Record) -> list[Record]:
        """Append a record, and return what others have written. What cannot be written is logged once."""
        try:
            with self._locked() as file:
                self._append(file, _line(record))
        except OSError as error:
            if not self._was_said:
                self._was_said = True
                _log.warning("%s: summaries are kept in memory alone: %s", self._path, error.strerror or error)
        return self.read()

    def replace(self, records: Iterable[Record]) -> None:
        """Write it again, with these, and with what others have just written."""
        with contextlib.suppress(OSError), self._locked():
            lines = [self._head(), *map(_line, records), *map(_line, self._new)]
            write_whole(self._path, lines)
            self._identity, self.size = identity(self._path), sum(map(len, lines))

    def _head(self) -> bytes:
        return _line({"kind": _KIND, "secret": self.secret.hex()})

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Open and lock it, and read what is new."""
        while True:
            file = open_shared(self._path)
            try:
                lock_file(file)
                if identity(file) != identity(self._path):
                    continue  # replaced or deleted
                self._catch_up(file)
                yield file
                return
            finally:
                os.close(file)

    def _catch_up(self, file: int) -> None:
        size = os.fstat(file).st_size
        if identity(file) != self._identity or size < self.size:
            self._identity, self.size = identity(file), 0
        if size == 0:
            self._append(file, self._head())
        elif size > self.size:
            lines = pread(file, size - self.size, self.size).split(b"\n")
            if self.size == 0:
                self._take_head(lines.pop(0))
            self._new += filter(None, map(_record, lines))
            self.size = size
            if lines and lines[-1]:  # half a line, of a crash
                self._append(file, b"\n")

    def _take_head(self, line: bytes) -> None:
        try:
            head = json.loads(line)
            if head["kind"] != _KIND:
                raise KeyError
            self.secret = bytes.fromhex(head["secret"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise StoreError("ledger", path=self._path) from None

    def _append(self, file: int, line: bytes) -> None:
        append_whole(file, line, self.size)
        self.size += len(line)


def _line(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _record(line: bytes) -> Record | None:
    """What a line says; None if it was damaged."""
    try:
        found = json.loads(line)
        bytes.fromhex(found["of"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    numbers = all(type(found.get(name)) in kinds and 0 <= found[name] < 1 << 64 for name, kinds in _NUMBERS.items())
    places = found.get("used_at", [])
    are_places = isinstance(places, list) and all(type(place) is int for place in places)
    return found if numbers and are_places and isinstance(found.get("text", ""), str) else None
