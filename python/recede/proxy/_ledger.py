"""The ledger of requests: when each was last sent, with a cold cache or not, and what its view showed; and its file."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from recede._errors import StoreError
from recede._forks import lock_of
from recede.providers import Provider
from recede.proxy._shared_file import SharedFile

_log = logging.getLogger("recede")

_HEADER = b"recede: requests, 2\n".ljust(28)
_HEADER_1 = b"recede: cold requests, 1\n".ljust(28)
_RECORD_1 = struct.Struct("<16sIQ")
# A record: its kind, the length of what it says, that, and a checksum of all three.
_BEGIN, _CHECK = struct.Struct("<BB"), struct.Struct("<I")
_PAUSE, _SENT, _PROVIDER = 1, 2, 3
_KIND = re.compile(b"[\x01-\x03]")
# The key of a request, how many messages precede it, twice the milliseconds since 1970, plus 1 if it was cold; and the
# number of its provider, or 0.
_PAUSE_RECORD = struct.Struct("<20sQI")
# The key of what precedes a request, the digest of what its view showed otherwise, the first message with reasoning.
_SENT_RECORD = struct.Struct("<16sQI")
_MAX_KEYS = 65_536
_MAX_VIEWS = 4  # of one request; if they differ, no other can agree with all
_LEAST_WASTE = 4_096  # records of a file that are replaced before it is written again
# In the place of the messages: a record that the cache has served a request, and that its reasoning was refused.
_SERVED, _REFUSED = 1 << 31, 1 << 30

Views = tuple[tuple[int, int], ...]
"""Of each view of a request the digest of what it showed otherwise, and the first message with signed reasoning."""


class Known(NamedTuple):
    """What a ledger knows of a history: a provider, and for each of its requests the views."""

    provider: Provider | None
    views: list[Views]
    refusals: int = 0  # of reasoning in its requests


class _Pause(NamedTuple):
    value: int  # twice the milliseconds since 1970, plus 1 if the cache was cold
    provider: int  # its number; 0 if it is not known


def _key_of(point: tuple[int, bytes], what: int = 0) -> bytes:
    messages, key = point
    return key + (messages | what).to_bytes(4, "little")


class ColdRequests:
    """What is known of requests that were sent, by what precedes each, so that conversations need not be identified.

    A request is identified by a hash of the roles and result ids before it. A request that is sent again has the answer
    that it had, so a retry sends the same bytes. What its view showed is found by a second hash, of all that precedes
    it. At most 65,536 requests are kept, those sent last, and as many views, those looked up last.

    Args:
        path: a file to which each request appends 38 bytes, and 34 if it may have signed reasoning, which other
            processes may use at the same time, except on Windows; without one, everything is in memory. It has no text
            of any message.

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
        self._entries: dict[bytes, _Pause] = {}  # by key and messages; the one sent last is the last
        self._views: dict[bytes, Views] = {}  # by key; the one looked up last is the last
        self._providers: dict[int, Provider] = {}
        self._unwritten: list[bytes] = []
        self._records = 0  # in the file
        self._is_in_memory = False  # as the last line of the log says
        self._lock = lock_of(self, threading.Lock)
        self._file = None if path is None else SharedFile(os.fspath(path), self._take)

    def _after_fork(self, *, was_changing: bool) -> None:
        self._unwritten = []  # the parent writes it

    def __len__(self) -> int:
        return len(self._entries)

    def cold_requests(
        self,
        points: Sequence[tuple[int, bytes]],
        ttl_seconds: float,
        now: float,
        note: bool = True,
        is_cold: bool = False,
        provider: Provider | None = None,
    ) -> list[int]:
        """Find which requests of a history found the cache cold, and note the newest as sent.

        Args:
            points: for each request of the history, how many messages precede it, and their key of 16 bytes.
            ttl_seconds: how long the cache lives after its last use.
            now: seconds since 1970.
            note: False only looks the newest request up.
            is_cold: the newest request has no cache, whenever the one before it was sent.
            provider: by whose prices it is sent, for `look_up`.

        Returns:
            How many messages precede each request with a cold cache.

        Raises:
            Nothing: a ledger that cannot be written is logged.
        """
        if not points:
            return []
        keys = list(map(_key_of, points))
        with self._lock, self._shared():
            known = [self._entries.get(key) for key in keys]
            *earlier, newest = known
            if newest is None:
                last = next((entry for entry in reversed(earlier) if entry is not None), None)
                is_cold = is_cold or (last is not None and now - (last.value >> 1) / 1_000 > ttl_seconds)
            else:
                is_cold = bool(newest.value & 1)
            if note:
                number = newest.provider if newest is not None else 0
                self._note(keys[-1], int(now * 1_000) << 1 | is_cold, number or self._number_of(provider))
        cold = [
            messages for (messages, _), entry in zip(points[:-1], earlier, strict=True) if entry and entry.value & 1
        ]
        return [*cold, points[-1][0]] if is_cold else cold

    def note_served(self, point: tuple[int, bytes], now: float) -> None:
        """Note that a request without cache marks was served from a cache, so that its conversation has one."""
        with self._lock, self._shared():
            self._note(_key_of(point, _SERVED), int(now * 1_000) << 1, 0)

    def note_refused(self, point: tuple[int, bytes], now: float) -> None:
        """Note that a provider has refused the reasoning of a request."""
        with self._lock, self._shared():
            self._note(_key_of(point, _REFUSED), int(now * 1_000) << 1, 0)

    def was_served(self, points: Sequence[tuple[int, bytes]]) -> bool:
        """Whether an earlier request of these was; the newest is left out, since it may be sent again."""
        with self._lock, self._shared():
            return any(_key_of(point, _SERVED) in self._entries for point in points[:-1])

    def look_up(self, points: Sequence[tuple[int, bytes]], keys: Sequence[bytes] = ()) -> Known:
        """Find with which provider the requests of a history were noted, and what their views showed.

        Args:
            points: as for `cold_requests`. The first one names no provider: other conversations may begin so.
            keys: for each request the key of all that precedes it. A look-up keeps their views longer.

        Returns:
            The provider of the newest request that was noted with one, the views of each key, and in how many requests
            reasoning was refused, if there are keys.
        """
        with self._lock, self._shared():
            entries = (self._entries.get(_key_of(point)) for point in reversed(points[1:]))
            numbers = (entry.provider for entry in entries if entry is not None)
            provider = next((self._providers[number] for number in numbers if number in self._providers), None)
            found = [self._views.get(key, ()) for key in keys]
            for key, views in zip(keys, found, strict=True):
                if views:
                    self._views[key] = self._views.pop(key)
            refusals = sum(_key_of(point, _REFUSED) in self._entries for point in points) if keys else 0
        return Known(provider, found, refusals)

    def note_view(self, key: bytes, digest: int, reasoning_from: int) -> None:
        """Note what the view of a request shows; one that is sent again in another way has both."""
        with self._lock, self._shared():
            if self._add_view(key, (digest, reasoning_from)):
                self._append(_SENT, _SENT_RECORD.pack(key, digest, reasoning_from))

    def close(self) -> None:
        """Close the file; from then on everything is in memory."""
        with self._lock:
            self._file = None

    def _note(self, key: bytes, value: int, provider: int) -> None:
        self._set(key, _Pause(value, provider))
        self._append(_PAUSE, _PAUSE_RECORD.pack(key, value, provider))

    def _set(self, key: bytes, pause: _Pause) -> None:
        self._entries.pop(key, None)
        self._entries[key] = pause
        _let_go(self._entries)

    def _add_view(self, key: bytes, view: tuple[int, int]) -> bool:
        views = self._views.pop(key, ())
        is_new = view not in views and len(views) < _MAX_VIEWS
        self._views[key] = (*views, view) if is_new else views
        _let_go(self._views)
        return is_new

    def _number_of(self, provider: Provider | None) -> int:
        """The number of a provider, which is noted with the first request that has it."""
        if provider is None:
            return 0
        written = _written(provider)
        number = zlib.crc32(written) or 1
        if number not in self._providers and len(written) < 256:
            self._providers[number] = provider
            self._append(_PROVIDER, written)
        return number

    def _append(self, kind: int, said: bytes) -> None:
        if self._file is not None:
            self._unwritten = [*self._unwritten[-2 * _MAX_KEYS :], _record(kind, said)]

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
            self._records = 0
            header, new = new[: len(_HEADER)], new[len(_HEADER) :]
            if header == _HEADER_1:
                return self._take_over(file, new)
            if header != _HEADER:
                if not _HEADER.startswith(header):
                    raise StoreError("ledger", path=file.path)
                file.cut(len(header))
                file.append(_HEADER)
        whole = 0
        for end, kind, said in _records_in(new):
            whole = end
            self._records += 1
            if kind == _PAUSE:
                key, *pause = _PAUSE_RECORD.unpack(said)
                self._set(key, _Pause(*pause))
            elif kind == _SENT:
                key, digest, reasoning_from = _SENT_RECORD.unpack(said)
                self._add_view(key, (digest, reasoning_from))
            elif (provider := _provider_in(said)) is not None:
                self._providers[zlib.crc32(said) or 1] = provider
        if whole < len(new):
            file.cut(len(new) - whole)

    def _take_over(self, file: SharedFile, new: bytes) -> None:
        """Take the pauses of a file of format 1, and write it again in this one."""
        for key, messages, value in _RECORD_1.iter_unpack(new[: len(new) - len(new) % _RECORD_1.size]):
            self._set(_key_of((messages, key)), _Pause(value, 0))
        file.replace(self._written())

    def _write(self, file: SharedFile) -> None:
        if self._unwritten:
            file.append(b"".join(self._unwritten))
            self._records += len(self._unwritten)
            self._unwritten = []
            if self._records > 2 * (len(self._entries) + len(self._views)) + _LEAST_WASTE:
                file.replace(self._written())

    def _written(self) -> list[bytes]:
        """The whole file."""
        used = {pause.provider for pause in self._entries.values()}
        providers = [_record(_PROVIDER, _written(one)) for number, one in self._providers.items() if number in used]
        pauses = [_record(_PAUSE, _PAUSE_RECORD.pack(key, *pause)) for key, pause in self._entries.items()]
        views = [_record(_SENT, _SENT_RECORD.pack(key, *view)) for key, views in self._views.items() for view in views]
        self._records = len(providers) + len(pauses) + len(views)
        return [_HEADER, *providers, *pauses, *views]


def _let_go(known: dict[bytes, Any]) -> None:
    if len(known) > _MAX_KEYS:
        del known[next(iter(known))]


def _record(kind: int, said: bytes) -> bytes:
    begun = _BEGIN.pack(kind, len(said)) + said
    return begun + _CHECK.pack(zlib.crc32(begun))


def _records_in(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Where each whole record ends, its kind, and what it says; what was damaged is left out."""
    at, sizes = 0, {_PAUSE: _PAUSE_RECORD.size, _SENT: _SENT_RECORD.size}
    while begins := _KIND.search(data, at):
        at = begins.start()
        kind, length = data[at], data[at + 1] if at + 1 < len(data) else 0
        end = at + _BEGIN.size + length
        check = data[end : end + _CHECK.size]
        is_whole = len(check) == _CHECK.size and length == sizes.get(kind, length)
        if is_whole and check == _CHECK.pack(zlib.crc32(data[at:end])):
            yield end + _CHECK.size, kind, data[at + _BEGIN.size : end]
            at = end + _CHECK.size
        else:
            at += 1


def _written(provider: Provider) -> bytes:
    return json.dumps(provider._asdict(), separators=(",", ":")).encode()


def _provider_in(written: bytes) -> Provider | None:
    """The provider that a record has; None of one that this version does not know."""
    try:
        return Provider(**json.loads(written))
    except (ValueError, TypeError):
        return None
