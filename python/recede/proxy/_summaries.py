"""Summaries of old turns in requests, each of the first messages of a history, whoever sends it; and their file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recede._encodable import encodable
from recede._engine import wait_after
from recede._errors import StoreError
from recede._forks import lock_of
from recede._summarizer import ENDED, LastUsed
from recede.proxy._shared_file import SharedFile
from recede.reduction._policy import SUMMARY_CHARS

_MAX_BYTES = 48 << 20
_MAX_FILE_BYTES = 64 << 20  # then it is written again
_OWN_BYTES = 256  # of a summary besides its text
_RECENT_SECONDS = 60 * 60.0
_MOST_UNFINISHED = 2  # answers in a row: the same question gets them again, and each is paid
_NO_END = 1 << 60  # requests
_TOUCH_SECONDS = 600.0  # after which a use is written down again

At = list[tuple[int, int]]
Mask = Callable[[At, list[tuple[int, str]]], tuple[Any, Any, Any]]
"""Masks a request that has summaries at these requests, with these texts by their keys: `Request.mask` of the core."""


@dataclass(eq=False)
class Summary:
    """A summary of the first messages of a history: asked for, failed, or there.

    Attributes:
        messages: up to the last one that it tells of.
        key: the core's.
        text: None until it is there.
        used_at: how many messages preceded the first request that has it; others after a rewind, and after a request
            that had no answer.
        seconds: since 1970, of its last use.
        failures: in a row.
        unfinished: answers of a model, the last failures in a row.
        pause: requests for which no other one is asked for.
    """

    messages: int
    key: int
    text: str | None = None
    used_at: set[int] = field(default_factory=set)
    seconds: float = 0.0
    is_asked: bool = False
    failures: int = 0
    unfinished: int = 0
    pause: int = 0

    @property
    def size(self) -> int:
        """Bytes that it counts."""
        return _OWN_BYTES + len((self.text or "").encode("utf-8", "replace"))


class AskedSummary(NamedTuple):
    """A summary of old turns that pays; see `RequestMasker.give`.

    Attributes:
        messages: what it has to tell of, as they came.
        previous: the text of the summary before, which it takes the place of; None for the first.
        name: its name for `give`.

    Example:
        >>> import recede
        >>> recede.proxy.AskedSummary([{"role": "user", "content": "Go."}], None, b"").previous is None
        True
    """

    messages: list[Any]
    previous: str | None
    name: bytes


class Summaries:
    """The summaries of all conversations, by a keyed hash of what they tell of; a file keeps them over a restart."""

    def __init__(self, path: str | None = None, clock: Callable[[], float] = time.time) -> None:
        self._known: LastUsed[bytes, Summary] = LastUsed()
        self._lengths: Counter[int] = Counter()
        self._bytes = 0
        self._clock = clock
        self._lock = lock_of(self, threading.Lock)
        self._file = None if path is None else SummaryFile(path)
        self._secret = os.urandom(32) if self._file is None else self._file.secret
        for record in [] if self._file is None else self._file.read():
            self._take(record)

    def _after_fork(self, *, was_changing: bool) -> None:
        """Nothing is open."""

    def mask(
        self,
        request: Any,
        mask: Mask,
        whose: bytes,
        points: Collection[int],
        *,
        is_sent: bool,
        history: Callable[[], list[Any]] | None,
    ) -> tuple[Any, bool, AskedSummary | None]:
        """The reduction of a request with the summaries of its first messages; whether one is new; the one to ask for.

        `whose` summaries they are is a part of their names; `points` say how many messages precede each request that
        this one implies. `is_sent`: it goes to a model, and the history does not end with an answer. Without its
        `history` no summary is asked for.
        """
        end = request.messages
        with self._lock:
            found = self._of(request, whose, end)
            known = [one for one in found.values() if one.text is not None]
            used = [one for one in known if not one.used_at.isdisjoint(points)]
            # One that was used later only is none: this request was sent before, without it.
            late = [one for one in known if is_sent and one not in used and max(one.used_at, default=0) < end]
            waiting = late[-1:]
            is_waiting = any(one.is_asked or one.pause for one in found.values())
            may_ask = is_sent and len(used) == len(known) and not is_waiting
            for one in found.values():
                one.pause = max(0, one.pause - is_sent)
            at = sorted((min(one.used_at.intersection(points)), one.messages) for one in used)
            texts = [(one.key, one.text or "") for one in known]
        # Whether one would pay now is found out with the view that is sent: mostly it does not, and this is that view.
        asks = history is not None and may_ask
        new = [(end, end)] if asks else [(end, one.messages) for one in waiting]
        wanted: tuple[int, Any] | None = None  # the key of one that would, and what it has to tell
        done, standing, told = mask([*at, *new], texts)
        if done is None and new:
            if not asks:  # since it was asked for, a window has let go of a turn that it does not tell of
                with self._lock:
                    for of in [of for of, one in found.items() if one in waiting]:
                        self._drop(of)
                waiting = []
            wanted = (standing[1], told) if asks and standing[0] == end else None
            done, standing, told = mask(at, texts)
        if done is None:  # with these options other turns are hidden, of which no text tells
            with self._lock:
                for of in [of for of, one in found.items() if one in used]:
                    self._drop(of)
            used, wanted = [], None
            done, standing, told = mask([(end, end)] if asks else [], [])
            if done is None:
                wanted = standing[1], told
                done, standing, _ = mask([], [])
        with self._lock:
            for of, one in found.items():
                is_first = one in waiting and standing == (end, one.key)
                if (is_first or one in used) and of in self._known:
                    self._use(of, one, end if is_first else None)
        is_new = standing is not None and standing[0] == end
        if history is None or wanted is None or wanted[1][3] == 0:
            return done, is_new, None
        key, (places, before, previous, length) = wanted
        name = self._want(request, whose, key, length, found)
        if name is None:
            return done, is_new, None
        messages, text = history(), next((one.text for one in found.values() if one.key == before), None)
        asked = AskedSummary([messages[place] for place in places], previous if text is None else text, name)
        return done, is_new, asked

    def give(self, of: bytes, text: str | None, *, unfinished: bool) -> None:
        """Take the text of a summary that is wanted; None: there is none, perhaps since an answer is unfinished."""
        with self._lock:
            summary = self._known.get(of)
            if summary is None or not summary.is_asked:
                return
            summary.is_asked, summary.seconds = False, self._clock()
            if text is None or not text.strip():
                summary.failures += 1
                summary.unfinished = summary.unfinished + 1 if unfinished else 0
                summary.pause = _NO_END if summary.unfinished == _MOST_UNFINISHED else wait_after(summary.failures)
                if summary.pause == _NO_END:
                    _log.warning("%s", ENDED)
                return
            self._bytes -= summary.size
            summary.text, summary.failures = encodable(text)[: SUMMARY_CHARS + 1], 0
            self._bytes += summary.size
            self._write(of, summary, text=summary.text)

    # Which there are

    def _of(self, request: Any, whose: bytes, end: int) -> dict[bytes, Summary]:
        """Those whose messages a request begins with, the shortest first."""
        lengths = sorted(length for length in self._lengths if length <= end)
        names = self._names(request, whose, lengths) if lengths else []
        found = ((of, self._known.get(of)) for of in names)
        return {of: one for of, one in found if one is not None}

    def _names(self, request: Any, whose: bytes, lengths: list[int]) -> list[bytes]:
        """The keyed hashes of so many first messages."""
        key = hashlib.blake2b(whose, key=self._secret, digest_size=32).digest()
        names: list[bytes] = request.names(key, lengths)
        return names

    def _want(self, request: Any, whose: bytes, key: int, length: int, found: dict[bytes, Summary]) -> bytes | None:
        """Note that a summary of so many messages is asked for: its name; None if it was, or no other can be kept."""
        (of,) = self._names(request, whose, [length])
        with self._lock:
            known = self._known.get(of)
            if (known is not None and not known.failures) or not self._has_room():
                return None
            failed = [name for name, one in found.items() if one.failures]
            failures, unfinished = max(
                ((found[name].failures, found[name].unfinished) for name in failed), default=(0, 0)
            )
            for name in failed:
                self._drop(name)
            asked = Summary(length, key, seconds=self._clock(), is_asked=True, failures=failures)
            asked.unfinished = unfinished
            self._put(of, asked)
        return of

    def _put(self, of: bytes, summary: Summary) -> None:
        self._drop(of)
        self._known[of] = summary
        self._lengths[summary.messages] += 1
        self._bytes += summary.size

    def _drop(self, of: bytes) -> None:
        summary = self._known.pop(of, None)
        if summary is None:
            return
        self._bytes -= summary.size
        self._lengths[summary.messages] -= 1
        if not self._lengths[summary.messages]:
            del self._lengths[summary.messages]

    def _has_room(self) -> bool:
        """Whether another one can be kept: what was used last goes last, and nothing that was used in the last hour."""
        while self._known and self._bytes + _OWN_BYTES + SUMMARY_CHARS > _MAX_BYTES:
            of, oldest = next(iter(self._known.items()))
            if oldest.seconds > self._clock() - _RECENT_SECONDS:
                return False
            self._drop(of)
        return True

    def _use(self, of: bytes, summary: Summary, used_at: int | None) -> None:
        """Note a use; `used_at`: by another first request."""
        self._known.use(of)
        now, new = self._clock(), {} if used_at is None else {"used_at": [used_at]}
        summary.used_at.update(*new.values())
        if new or now - summary.seconds > _TOUCH_SECONDS:
            summary.seconds = now
            self._write(of, summary, **new)

    # The file

    def _write(self, of: bytes, summary: Summary, **facts: Any) -> None:
        if self._file is not None:
            for other in self._file.write(_record_of(of, summary, **facts)):
                self._take(other)
            if self._file.size > _MAX_FILE_BYTES:
                there = ((of, one) for of, one in self._known.items() if one.text is not None)
                self._file.replace(_record_of(of, one, text=one.text, used_at=sorted(one.used_at)) for of, one in there)

    def _take(self, record: Record) -> None:
        """Add what a file has, of this process before or of another one."""
        of = bytes.fromhex(record["of"])
        known = self._known.get(of)
        one = Summary(record["messages"], record["key"]) if known is None else known
        text = record.get("text", one.text)
        if text is None:
            return
        self._drop(of)
        one.text, one.is_asked, one.failures = text, False, 0
        one.used_at.update(record.get("used_at", ()))
        one.seconds = max(one.seconds, record["seconds"])
        self._put(of, one)


def _record_of(of: bytes, one: Summary, **facts: Any) -> Record:
    return {"of": of.hex(), "messages": one.messages, "key": one.key, "seconds": one.seconds, **facts}


_log = logging.getLogger("recede")

Record = dict[str, Any]

_KIND = "recede: summaries, 1"
_NUMBERS = {"messages": (int,), "key": (int,), "seconds": (int, float)}


class SummaryFile:
    """Lines of JSON, which several processes append to; a StoreError if it is another file, which is left alone."""

    def __init__(self, path: str) -> None:
        self._new: list[Record] = []
        self._was_said = False
        self.secret = os.urandom(32)
        self._file = SharedFile(path, self._take)

    @property
    def size(self) -> int:
        return self._file.size

    def read(self) -> list[Record]:
        """Return what others have written since the last call."""
        new, self._new = self._new, []
        return new

    def write(self, record: Record) -> list[Record]:
        """Append a record, and return what others have written. What cannot be written is logged once."""
        try:
            with self._file.locked():
                self._file.append(_line(record))
        except OSError as error:
            if not self._was_said:
                self._was_said = True
                _log.warning("%s: summaries are kept in memory alone: %s", self._file.path, error.strerror or error)
        return self.read()

    def replace(self, records: Iterable[Record]) -> None:
        """Write it again, with these, and with what others have just written."""
        with contextlib.suppress(OSError), self._file.locked():
            self._file.replace([self._head(), *map(_line, records), *map(_line, self._new)])

    def _head(self) -> bytes:
        return _line({"kind": _KIND, "secret": self.secret.hex()})

    def _take(self, file: SharedFile, new: bytes, is_whole: bool) -> None:
        if not file.size:
            file.append(self._head())
        if not new:
            return
        lines = new.split(b"\n")
        if is_whole:
            self._take_head(file, lines.pop(0))
        self._new += filter(None, map(_record, lines))
        if lines and lines[-1]:  # half a line, of a crash
            file.append(b"\n")

    def _take_head(self, file: SharedFile, line: bytes) -> None:
        try:
            head = json.loads(line)
            if head["kind"] != _KIND:
                raise KeyError
            self.secret = bytes.fromhex(head["secret"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise StoreError("ledger", path=file.path) from None


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
