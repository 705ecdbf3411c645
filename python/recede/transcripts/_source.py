"""A stream of JSON records from files and bytes, decompressed; errors name line and byte. Long texts may be omitted."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, Union, cast

from recede._errors import TranscriptError
from recede.reduction._kinds import whole_number
from recede.reduction._reducer import HistoryReducer, mask_observation
from recede.transcripts._draft import at

# Whole records of a line that a writer did not finish, or that has several


PADDING = b" \t\r\n\0"
"""Bytes between records; a file system that lost power leaves zeros."""

_MOST_OPENING = 100
_MOST_TRIES = 100  # places of a damaged line at which a record may begin: each may be read to the end of the line
_OPENING = re.compile(rb'\{\s*"[^"\\]{1,80}"\s*:')
_RECORD = re.compile(f"[^{PADDING.decode()}]")
_NO_UTF8 = re.compile("[\udc80-\udcff]")


class Piece(NamedTuple):
    """A record of a damaged line, and its bytes."""

    value: dict[str, Any]
    text: bytes


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


decoder = json.JSONDecoder(parse_constant=_refuse)
# Takes what is almost JSON: control characters in strings, and numbers that are none, as null.
_LENIENT = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')


def _mended(line: bytes) -> Any:
    """The value of a line that is almost JSON; None if it is damaged in another way."""
    if b"\0" in line:  # a file system that lost power, not a writer
        return None
    try:
        text = _ESCAPE.sub(lambda found: found[0] if len(found[0]) > 1 else "\\\\", line.decode())
        return _LENIENT.decode(text)
    except (ValueError, RecursionError):
        return None


def opening_of(line: bytes) -> bytes:
    """How a record begins: its first key. Records of one writer often begin alike."""
    found = _OPENING.match(line[:_MOST_OPENING])
    return found[0] if found else b""


def pieces_of(line: bytes, openings: set[bytes]) -> tuple[list[Piece], int | None]:
    """The records of a line, and the byte at which the first damage is; None: there is none.

    After a damaged record another is found where it begins as records of the same file do.
    """
    begins = [one.decode(errors="surrogateescape") for one in {*openings, opening_of(line.lstrip(PADDING))} if one]
    text = line.decode(errors="surrogateescape")
    pieces: list[Piece] = []
    damage, at, tries = None, 0, 0
    while (at := _skip(text, at)) < len(text) and tries < _MOST_TRIES:
        found = _piece(text, at)
        if found is not None and (damage is None or _ends(text, found[1], begins)):
            value, end = found
            pieces.append(Piece(value, text[at:end].encode(errors="surrogateescape")))
            at = end
            continue
        tries += 1
        damage = at if damage is None else damage
        later = [place for place in (text.find(one, at + 1) for one in begins) if place > 0]
        at = min(later, default=len(text))
    damage = text.find("\0") if damage is None else damage
    return pieces, len(text[:damage].encode(errors="surrogateescape")) if damage >= 0 else None


def _skip(text: str, at: int) -> int:
    found = _RECORD.search(text, at)
    return found.start() if found else len(text)


def _ends(text: str, end: int, begins: list[str]) -> bool:
    """Whether a record may end there: what is inside of a damaged one ends before a comma or a bracket."""
    end = _skip(text, end)
    return end == len(text) or any(text.startswith(one, end) for one in begins)


def _piece(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    """The object that begins there, and where it ends."""
    if text[at : at + 1] != "{":
        return None
    try:
        value, end = decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return (value, end) if isinstance(value, dict) and not _NO_UTF8.search(text, at, end) else None


# Validates a history, and counts; its parser says where a fault is.
FACTS = HistoryReducer(max_input_chars=0, enabled=False)

MAX_BYTES = 4_000_000_000  # decompressed: a gzip file of a few megabytes can hold any number of gigabytes

Input = Union[str, "PathLike[str]", bytes, bytearray, memoryview]

_PIECE = 1 << 20  # of a long line

# Kinds of errors in well-formed JSON.
WRONG_SHAPES = frozenset({"duplicate_key", "history", "message", "content", "part"})
_SPACE = b" \t\r\n"
_MARK = b"\xef\xbb\xbf"
_MOST_WORDS = 20  # lines of words before the first record, as programs write them to the same pipe
_MOST_OPENINGS = 16


class Record(NamedTuple):
    """A JSON value of a file with one per line, and its line."""

    value: Any
    line: int


class _Line(NamedTuple):
    """A line, and the bytes of the empty lines before it."""

    number: int
    text: bytes
    before: int


class _Unpacked(io.RawIOBase):
    """The text of gzip data, as far as it is whole."""

    def __init__(self, packed: BinaryIO) -> None:
        self._file = gzip.GzipFile(fileobj=packed)
        self.is_cut = False  # whether the data was found to be truncated or damaged

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = b"" if self.is_cut else self._file.read1(len(buffer))
        except (EOFError, gzip.BadGzipFile, zlib.error):
            self.is_cut, data = True, b""
        buffer[: len(data)] = data
        return len(data)


class Source:
    """An open file; what detection has read is kept for the reader."""

    def __init__(
        self, name: str, stream: BinaryIO, max_bytes: int, max_line_bytes: int, packed: _Unpacked | None = None
    ) -> None:
        self.name = name  # in errors
        self._packed = packed
        self._max_bytes = max_bytes
        self._max_line_bytes = max_line_bytes
        self.skipped: list[TranscriptError] = []  # one for each line of which something was skipped so far
        self.glued: list[int] = []  # the lines with several values so far
        self.mended: list[int] = []  # those that are almost JSON
        self.ends_early = False  # whether the last of the skipped lines is the last one, without a line end
        self.text = b""  # of the record that was read last
        self._openings: set[bytes] = set()
        self._lines = self._numbered(stream)
        self._head: list[_Line] = []
        if not any(map(self._first, range(_MOST_WORDS))):
            raise TranscriptError("gzip" if self.is_cut else "empty", source=name)
        self.has_lines = self._begins_lines()  # whether each line is a value; otherwise the whole file is one

    def records(self) -> Iterator[Record]:
        """Iterate over the objects of the lines; only the current line is in memory. What is damaged is skipped."""
        while self._head:
            yield from self._of_line(self._head.pop(0))
        for line in self._lines:
            yield from self._of_line(line)
        if self.is_cut and not self.ends_early:
            self.skipped.append(TranscriptError("gzip", source=self.name))
            self.ends_early = True

    @property
    def is_cut(self) -> bool:
        """Whether the file is gzip data that is truncated or damaged, and what precedes that has been read."""
        return self._packed is not None and self._packed.is_cut

    def _first(self, index: int) -> bytes:
        """One of the first lines, without the space around it; empty after the last."""
        self._head += islice(self._lines, max(0, index + 1 - len(self._head)))
        return self._head[index].text.strip(PADDING) if index < len(self._head) else b""

    def _begins_lines(self) -> bool:
        """Whether each line is a record. The first may be damaged, or words of the program that wrote the file."""
        first = self._first(0).removeprefix(_MARK)  # a byte order mark is named in line 1
        if first.startswith(b"{"):
            found = _fault_of(first)
            if found is None or found.kind == "trailing":
                return True
            second, third = self._first(1), self._first(2)
            if third and _is_record(second):
                return third.startswith(b"{")
            # Within a single value, an object at the start of a line follows one of these.
            return second.startswith(b"{") and not first.endswith((b"[", b",", b":"))
        is_value = first.startswith(b"[") or _fault_of(first) is None
        return not is_value and any(_is_record(self._first(index)) for index in range(1, _MOST_WORDS))

    def document(self) -> Any:
        # Empty lines count in the offset of an error.
        data = b"".join(self._pieces())
        if self.is_cut:
            raise TranscriptError("gzip", source=self.name, offset=len(data))
        try:
            return _loads(data)
        except (ValueError, RecursionError) as error:
            self._fail(_fault(data, error), None)

    def _pieces(self) -> Iterator[bytes]:
        """Read a file that is one value, in pieces; it is held whole, so it has the limit of a line."""
        read = 0
        for line in chain(self._head, self._lines):
            read += line.before + len(line.text)
            if read > self._max_line_bytes:
                raise TranscriptError("size", source=self.name, offset=self._max_line_bytes)
            yield b"\n" * line.before
            yield line.text

    def _numbered(self, stream: BinaryIO) -> Iterator[_Line]:
        read = number = before = 0
        while line := self._line(stream, read):
            number += 1
            read += len(line)
            if line.strip(_SPACE):
                yield _Line(number, line, before)
                before = 0
            else:
                more = self._empty(stream, read)
                number, read, before = number + more, read + more, before + len(line) + more

    def _empty(self, stream: Any, read: int) -> int:
        """Skip the empty lines that follow, which may be very many; return how many are in the buffer."""
        ahead = stream.peek(1)
        return len(stream.read(min(len(ahead) - len(ahead.lstrip(b"\n")), self._max_bytes - read)))

    def _line(self, stream: BinaryIO, read: int) -> bytes:
        """Read the next line in pieces, so that a line over the limit is refused before it is assembled."""
        most = min(self._max_line_bytes, self._max_bytes - read)
        pieces: list[bytes] = []
        size = 0
        while True:
            piece = stream.readline(min(_PIECE, most + 1 - size))
            size += len(piece)
            if size > most:
                raise TranscriptError("size", source=self.name, offset=read + most)
            pieces.append(piece)
            if not piece or piece.endswith(b"\n"):
                return piece if len(pieces) == 1 else b"".join(pieces)

    def _of_line(self, line: _Line) -> Iterator[Record]:
        text = line.text
        try:
            value = _loads(text)
        except (ValueError, RecursionError) as error:
            if not isinstance(value := _mended(text), dict):
                yield from self._of_damaged(line, error)
                return
            self.mended.append(line.number)
            text = json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"
        if not isinstance(value, dict):
            self._skip(TranscriptError("message", source=self.name, line=line.number, offset=0), line)
            return
        if len(self._openings) < _MOST_OPENINGS:
            self._openings.add(opening_of(text))
        self.text = text
        yield Record(value, line.number)

    def _of_damaged(self, line: _Line, error: Exception) -> Iterator[Record]:
        """The whole records of a line, as a writer that was killed leaves it, or several writers do."""
        if line.number == 1 and line.text.startswith(_MARK):
            self._fail(_fault(line.text, error), 1)
        pieces, damage = pieces_of(line.text, self._openings)
        if damage is not None:
            fault = _fault(line.text[damage:].rstrip(PADDING), error)
            offset = None if fault.offset is None else fault.offset + damage
            self._skip(TranscriptError(fault.kind, source=self.name, line=line.number, offset=offset), line)
        if len(pieces) > 1:
            self.glued.append(line.number)
        for piece in pieces:
            self.text = piece.text
            yield Record(piece.value, line.number)

    def _skip(self, error: TranscriptError, line: _Line) -> None:
        self.skipped.append(error)
        self.ends_early = error.kind in ("eof", "utf8") and not line.text.endswith(b"\n")

    def _fail(self, error: TranscriptError, line: int | None) -> NoReturn:
        raise TranscriptError(error.kind, source=self.name, line=line, offset=error.offset) from None


@contextmanager
def open_source(source: Input, name: str | None, max_bytes: int, max_line_bytes: int | None = None) -> Iterator[Source]:
    """Open a path or bytes, decompressed if gzipped; the text and each line have a maximum size."""
    max_bytes = whole_number(1)("max_bytes", max_bytes)
    limits = (max_bytes, max_bytes if max_line_bytes is None else whole_number(1)("max_line_bytes", max_line_bytes))
    if isinstance(source, (bytes, bytearray, memoryview)):
        raw = cast(io.RawIOBase, io.BytesIO(source))
        name = name or "bytes"
    else:
        path = Path(fspath(source))
        name = name or str(path)
        raw = path.open("rb", buffering=0)
    with io.BufferedReader(raw) as stream:
        if stream.peek(2)[:2] != b"\x1f\x8b":
            yield Source(name, stream, *limits)
            return
        packed = _Unpacked(stream)
        yield Source(name, io.BufferedReader(packed, _PIECE), *limits, packed)


def _is_record(line: bytes) -> bool:
    return line.startswith(b"{") and _fault_of(line) is None


def _loads(data: bytes) -> Any:
    return decoder.decode(data.decode())


def _fault(data: bytes, error: Exception) -> TranscriptError:
    """Make the error for a value that Python's parser rejects, located by the core's parser if that rejects it too."""
    found = _fault_of(data)
    if found is not None and (found.kind != "trailing" or isinstance(error, json.JSONDecodeError)):
        return found
    if isinstance(error, UnicodeDecodeError):
        return TranscriptError("utf8", offset=error.start)
    return TranscriptError("depth" if isinstance(error, RecursionError) else "number")


def _fault_of(data: bytes) -> TranscriptError | None:
    try:
        FACTS.reduce_json(data)
    except TranscriptError as error:
        return None if error.kind in WRONG_SHAPES else error
    return None


# Long texts are replaced by their length, which is all that a replay reads


_LONG_CHARS = 1_000
_CUT = "[… "  # a cut text has this in its middle, and is not cut again


class OmittedText(str):
    """A str with the length of a text and without its characters; equal only for equal texts."""

    __slots__ = ("_chars",)
    _chars: int

    def __new__(cls, text: str) -> OmittedText:
        made = super().__new__(cls, hash(text))
        made._chars = len(text)
        return made

    def __len__(self) -> int:
        return self._chars


def omit_texts(record: Record, texts_at: Iterable[str]) -> Record:
    """Omit long texts in a part of a record, except placeholders, cut texts and texts with dispatch blocks."""
    to_visit = [at(record.value, *texts_at)]
    while to_visit:
        parent = to_visit.pop()
        fields = parent.items() if isinstance(parent, dict) else enumerate(parent) if isinstance(parent, list) else ()
        for key, value in fields:
            if isinstance(value, (dict, list)):
                to_visit.append(value)
            elif isinstance(value, str) and len(value) >= _LONG_CHARS and _is_plain(value):
                parent[key] = OmittedText(value)  # of a key that exists, which the loop may meet
    return record


def _is_plain(text: str) -> bool:
    """Whether masking and cutting need only the length of a text."""
    return _CUT not in text and mask_observation(text) == f"[observation masked — {len(text)} chars]"
