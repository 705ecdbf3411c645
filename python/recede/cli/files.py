"""Read histories in every file format, or say what a file looks like instead; write files atomically."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import click

from recede import History, TranscriptError, transcripts
from recede._errors import printable
from recede._files import identity, is_same_file, write_whole
from recede.cli.notices import BadFile, bad_file, errors_of, line_of, name_of
from recede.cli.sessions import Reading
from recede.reduction._unrecognized import unrecognized
from recede.transcripts._source import FACTS, WRONG_SHAPES, open_source
from recede.transcripts._unread import NOTHING, Unread, notes_of_lines, unread_in

_Result = TypeVar("_Result")

# Formats that a view is written in.
_OWN_FORMS = ("body", "json_lines", "messages")

# Of a larger file only the lengths of long texts are kept where they will do; smaller ones are read faster with them.
_LARGE_BYTES = 16 << 20
_PRIVATE = 0o600  # for data that was read from a pipe
_EVENT = re.compile(r"(?:event-)?(\d{1,9})(?:-|$)")  # 17.json; of newer versions event-00017-<id>.json
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class InputHistory:
    """A history read from a file."""

    name: str  # of the file, in errors
    format: str
    data: bytes  # decompressed, if the view takes the form of the file
    json: bytes  # the array or the request body, JSON Lines as an array; empty where a reader gave a session
    messages: int
    records: int  # of messages in the file, before merging
    lines: list[int] | None = None  # the numbers of the lines with a message; None unless the file is JSON Lines
    index: int = 0  # of the history in the file
    siblings: int = 1  # how many histories are in the file
    is_own_form: bool = True  # whether a view takes the form of the file
    path: str = "-"  # as given
    warnings: tuple[str, ...] = ()
    skipped_lines: int = 0  # of the file, since they are damaged; its first history has them
    unread: Unread = NOTHING
    session: transcripts.Transcript | None = None  # what the reader gave; None where the bytes are the history

    def run(self, function: Callable[[bytes], _Result]) -> _Result:
        """Call it with the JSON; a `TranscriptError` becomes a line that names the place in the file."""
        data = self.json
        if self.session is not None:
            data = b"[\n" + b",\n".join(json.dumps(message).encode() for message in self.session.messages) + b"\n]\n"
        try:
            return function(data)
        except TranscriptError as error:
            raise _failure(error, self.name, data, self.lines) from None

    def parsed(self) -> list[Any]:
        return self.run(_messages_of) if self.session is None else self.session.messages

    def file_form(self, view: bytes) -> bytes:
        """A view of the JSON in the form of the file, where that is one for histories; else an array."""
        if view is self.json:
            return self.data
        if self.lines is None:
            return view
        # JSON strings hold no raw line end, so each message still has a line of its own.
        lines = (line.removesuffix(b",") for line in view[1:-1].split(b"\n"))
        return b"".join(line + b"\n" for line in lines if line)


def read(path: str, reading: Reading, *, is_found: bool = False) -> list[InputHistory]:
    """Read the histories of a file, of a folder of events, or of standard input where the path is `-`.

    Of a file that was found, not named, less is read.
    """
    name = name_of(path)
    with errors_of(name):
        if is_found:
            reading = reading.of_found(Path(path).stat().st_size)
        try:
            return [replace(history, path=path) for history in _histories(path, name, reading)]
        except TranscriptError as error:
            if is_found and error.kind == "size":
                raise bad_file(name, "it has more text than is read of a file that is found: name the file") from None
            raise line_of(error) from None


def _histories(path: str, name: str, reading: Reading) -> list[InputHistory]:
    source: str | bytes = path
    format, most = reading.format, reading.max_line_bytes
    limits = {"max_bytes": reading.max_bytes, "max_line_bytes": most}
    try:
        if path == "-" or not Path(path).is_file():
            is_folder = path != "-" and Path(path).is_dir()
            source = _joined(Path(path), most) if is_folder else read_bytes(path, reading.max_bytes)
        elif is_saved_history(_head(path)):
            return [_saved(path)]
        # A file is read in a stream; what can be read only once, such as standard input or a pipe, is held.
        found = None
        if reading.path is None and not reading.text_mode and format in (None, *_OWN_FORMS):
            found = transcripts.detect(source, name=name, **limits)
        if found in _OWN_FORMS and format in (None, found):
            if found == "json_lines":
                return [_own_lines(name, source, most)]
            return [_own_form(name, found, source if isinstance(source, bytes) else read_bytes(path, most))]
        if isinstance(source, bytes) or Path(path).stat().st_size < _LARGE_BYTES:
            reading = reading._replace(keep_texts=True)
        histories = transcripts.read_all(source, name=name, **reading._asdict())
    except TranscriptError as error:
        if error.kind == "size":
            raise
        raise _misread(error, name, source) from None
    return [_converted(history, len(histories)) for history in histories]


def _head(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(HEAD_BYTES)


def _joined(folder: Path, most: int) -> bytes:
    """The events of OpenHands, each of which is a file with its number in the name, as one array."""
    numbered = ((_EVENT.match(path.stem), path) for path in folder.glob("*.json") if path.is_file())
    files = [path for _, path in sorted((int(found[1]), path) for found, path in numbered if found)]
    if not files:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if sum(path.stat().st_size for path in files) > most:
        raise TranscriptError("size", source=str(folder), offset=most)
    return b"[" + b",".join(path.read_bytes() for path in files) + b"]"


def _saved(path: str) -> InputHistory:
    """Read a history that `History.save` wrote."""
    try:
        data = History.load(path).to_json()
    except TranscriptError as error:
        if error.kind != "session":
            raise
        raise bad_file(path, "it is a store without the messages of a history: see recede store info") from None
    messages = len(json.loads(data))
    return InputHistory(path, "history", data, data, messages, messages, is_own_form=False)


def _misread(error: TranscriptError, name: str, source: str | bytes) -> BadFile:
    """The error of a reader, or what the file looks like where that is no JSON at all."""
    looks = None
    if error.kind not in ("gzip", *WRONG_SHAPES):
        looks = likeness(source[:HEAD_BYTES] if isinstance(source, bytes) else _head(source))
    if looks is None:
        return line_of(error)
    return bad_file(name, f"it looks like {looks}; histories are JSON or JSON Lines")


def _own_form(name: str, format: str, data: bytes) -> InputHistory:
    """A file whose bytes the reducer accepts directly."""
    try:
        messages = _messages_of(data)
    except TranscriptError as error:
        raise _failure(error, name, data, None) from None
    unread, warnings = _understood(messages)
    return InputHistory(name, format, data, data, len(messages), len(messages), warnings=warnings, unread=unread)


def _own_lines(name: str, source: str | bytes, most: int) -> InputHistory:
    """Messages, one per line; the view has the form of the file, without lines that are damaged."""
    texts, numbers, messages = [], [], []
    with open_source(source, name, most) as opened:
        for message, line in opened.records():
            texts.append(opened.text.removesuffix(b"\n"))
            numbers.append(line)
            messages.append(message)
        skipped, is_mended = len(opened.skipped), bool(opened.mended)
        warnings = notes_of_lines(opened)
    data = b"\n".join([*texts, b""])
    if not skipped and not is_mended:
        data = source if isinstance(source, bytes) else read_bytes(source, most)
    unread, said = _understood(messages)
    array = b"[\n" + b",\n".join(texts) + b"\n]"
    found = InputHistory(name, "json_lines", data, array, len(texts), len(texts), numbers)
    return replace(found, warnings=(*warnings, *said), skipped_lines=skipped, unread=unread)


def _understood(messages: list[Any]) -> tuple[Unread, tuple[str, ...]]:
    """The messages that are not understood, and the warning; an error in them is reported later."""
    unread = unread_in(messages)
    said = unrecognized(messages)
    if said is None and unread.messages:
        try:
            has_results = bool(FACTS.reduce(messages).tools)
        except TranscriptError:
            return unread, ()
        said = unread.words(has_results=has_results)
    return unread, (said,) if said else ()


def _converted(history: transcripts.Transcript, siblings: int) -> InputHistory:
    names = ("format", "records", "index", "warnings", "skipped_lines", "unread")
    same = {name: getattr(history, name) for name in names}
    own: dict[str, Any] = {"data": b"", "json": b"", "is_own_form": False, "session": history}
    return InputHistory(history.source, messages=len(history.messages), siblings=siblings, **same, **own)


def read_bytes(path: str, max_bytes: int = transcripts.MAX_BYTES) -> bytes:
    """Read the bytes of a file, or of standard input where the path is `-`, unpacked where they are gzipped."""
    is_input = path == "-"
    with open(0 if is_input else path, "rb", closefd=not is_input) as file:
        size = os.fstat(file.fileno()).st_size
        packed = file.peek(2)[:2] == _GZIP
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=file) if packed else file)
        pieces: list[bytes] = []
        read = 0
        # A file that is not gzipped is one piece, which is not copied again.
        while piece := stream.read(min(max(read, size, 1 << 20), max_bytes + 1 - read)):
            pieces.append(piece)
            read += len(piece)
            if read > max_bytes:
                raise TranscriptError("size", source=name_of(path), offset=max_bytes)
    return b"".join(pieces)


def is_gzipped(path: str) -> bool:
    """Whether the content of a file is gzipped, whatever its name."""
    return _head(path).startswith(_GZIP)


def keep_apart(option: str, path: str | None, sources: Iterable[str], instead: str = "take another name") -> None:
    """Refuse to overwrite an input file."""
    if path is None or path == "-":
        return
    for source in sources:
        if is_same_file(path, source) or (source == "-" and identity(path) == identity(0) is not None):
            raise click.UsageError(f"{option} would write over {source}, which is read: {instead}")


def _messages_of(data: bytes) -> list[Any]:
    return FACTS.reduce_json(data).messages


def write(
    path: str | None, data: bytes | Iterable[bytes], sources: Sequence[str] = (), *, packs: bool | None = None
) -> None:
    """Write a file whole or not at all, or to standard output; gzipped as `packs` says, else as its name does.

    The data may come in pieces, of which only a few are then in memory, but for a file that is gzipped. Those alone can
    read a new file who may read all of its sources.
    """
    pieces = [data] if isinstance(data, bytes) else data
    with errors_of(path or "standard output", "cannot be written: "):
        if path is None or path == "-":
            with open(1, "wb", closefd=False) as file:
                file.writelines(pieces)
        else:
            if path.endswith(".gz") if packs is None else packs:
                pieces = [gzip.compress(b"".join(pieces), mtime=0)]
            write_whole(path, pieces, _mode_of(sources))


def for_screen(data: bytes) -> bytes:
    """A text that others wrote, as it is; on a terminal with escapes for all that it would interpret."""
    if not sys.stdout.isatty():
        return data
    return printable(data.decode(errors="replace").replace("\r\n", "\n"), keep="\n\t").encode()


def write_json(value: Any) -> None:
    write(None, json.dumps(value, indent=2).encode() + b"\n")


def _mode_of(sources: Sequence[str]) -> int:
    """The permissions that all of them grant; only the owner's for a pipe or without files."""
    granted = 0o666 if sources else _PRIVATE
    for source in sources:
        try:
            facts = os.fstat(0) if source == "-" else Path(source).stat()
        except OSError:
            return _PRIVATE
        granted &= facts.st_mode if stat.S_ISREG(facts.st_mode) else _PRIVATE
    return granted


def _failure(error: TranscriptError, name: str, data: bytes, lines: list[int] | None) -> BadFile:
    """A failure whose byte is counted from the beginning of the line, where there are lines."""
    places = {**error.places, "source": name}
    if lines is not None and error.message_index is not None and error.offset is not None:
        places["line"] = lines[error.message_index]
        places["offset"] = error.offset - (data.rfind(b"\n", 0, error.offset) + 1)
    return line_of(TranscriptError(error.kind, **places))


HEAD_BYTES = 512

_SIGNATURES = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd: unpack it first"),
    (b"\xfd7zXZ", "packed by xz: unpack it first"),
    (b"BZh", "packed by bzip2: unpack it first"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
    (b"\xef\xbb\xbf", "text with a byte order mark: save it as UTF-8 without one"),
)
_SAVED = b"recede store\r\n\x1a\n"


def is_saved_history(head: bytes) -> bool:
    return head[16 : 16 + len(_SAVED)] == _SAVED


def likeness(head: bytes) -> str | None:
    """Name the kind of a file; None for JSON, however damaged, and for what is gzipped."""
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "a WebP image"
    if head[257:262] == b"ustar":
        return "a tar archive: unpack it first"
    if re.match(rb"\s*\[?\s*\{\s*'", head):
        return "the repr of Python objects: write them with json.dump"
    if head.lstrip(b" \t\r\n\0")[:1] in (b"{", b"[", b"") or head.startswith(b"\x1f\x8b"):
        return None
    is_text = all(byte >= 32 or byte in b"\t\n\r\f\x1b" for byte in head)
    return "plain text" if is_text and head.decode(errors="ignore").encode()[:400] == head[:400] else "binary data"
