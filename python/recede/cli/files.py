"""Reads histories in any of their file forms and writes them whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from recede import TranscriptError, reduce_json, transcripts

__all__ = ["BadFile", "Transcript", "bad_file", "read", "read_bytes", "write"]

_Result = TypeVar("_Result")

# Formats that a view is written in.
_OWN_FORMS = ("body", "json_lines", "messages")

# Errors of a `TranscriptError` in what is well-formed JSON.
_WRONG_SHAPES = ("duplicate_key", "history", "message", "content", "part")


@dataclass(frozen=True)
class Transcript:
    """A history as it came from a file.

    Attributes:
        name: the file, as errors name it.
        format: the name that `recede.transcripts` has for its format.
        data: its bytes, unpacked, where the view takes the form of the file; else the same as `json`.
        json: the array or the request body. JSON Lines become an array with one message a line.
        messages: how many messages it holds.
        records: how many message records of the file they come from.
        lines: the numbers of the lines that hold a message, from 1; None where the file is no JSON Lines.
        index: which history of the file it is, from 0.
        siblings: how many histories the file holds.
        warnings: what the reader mended, left out, or did not know.
    """

    name: str
    format: str
    data: bytes
    json: bytes
    messages: int
    records: int
    lines: list[int] | None = None
    index: int = 0
    siblings: int = 1
    warnings: tuple[str, ...] = ()

    def run(self, function: Callable[[bytes], _Result]) -> _Result:
        """Call it with the JSON; a `TranscriptError` becomes a line that names the place in the file."""
        try:
            return function(self.json)
        except TranscriptError as error:
            raise _failure(error, self.name, self.json, self.lines) from None

    def file_form(self, view: bytes) -> bytes:
        """A view of the JSON in the form of the file, where that is one for histories; else an array."""
        if view is self.json:
            return self.data
        if self.lines is None:
            return view
        # JSON strings hold no raw line end, so each message still has a line of its own.
        lines = (line.removesuffix(b",") for line in view[1:-1].split(b"\n"))
        return b"".join(line + b"\n" for line in lines if line)


def read(path: str, format: str | None = None) -> list[Transcript]:
    """Read the histories of a file, or of standard input where the path is `-`."""
    name = "standard input" if path == "-" else path
    try:
        # A file is read in a stream; what can be read only once, such as standard input or a pipe, is held.
        source = path if path != "-" and Path(path).is_file() else read_bytes(path)
        found = transcripts.detect(source, name=name) if format is None else format
        if found in _OWN_FORMS and (format is None or transcripts.detect(source, name=name) == format):
            return [_own_form(name, found, source if isinstance(source, bytes) else read_bytes(path))]
        histories = transcripts.read_all(source, format, name=name)
    except TranscriptError as error:
        raise BadFile(str(error)) from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise BadFile(str(TranscriptError("gzip", source=name))) from None
    except OSError as error:
        raise bad_file(name, error.strerror or str(error)) from None
    return [_converted(history, len(histories)) for history in histories]


def _own_form(name: str, format: str, data: bytes) -> Transcript:
    """A file whose bytes the reducer takes as they are."""
    if format != "json_lines":
        try:
            messages = _count(data)
        except TranscriptError as error:
            raise _failure(error, name, data, None) from None
        return Transcript(name, format, data, data, messages, messages)
    lines: list[tuple[int, bytes]] = []
    warnings = []
    for number, line in enumerate(data.split(b"\n"), 1):
        values = _values(name, number, line) if line.strip() else []
        if len(values) > 1:
            warnings.append(f"several records on one line, all read: line {number}")
        lines += ((number, value) for value in values)
    array = b"[\n" + b",\n".join(value for _, value in lines) + b"\n]"
    numbers = [number for number, _ in lines]
    return Transcript(name, format, data, array, len(lines), len(lines), numbers, warnings=tuple(warnings))


def _converted(history: transcripts.Transcript, siblings: int) -> Transcript:
    data = b"[\n" + b",\n".join(json.dumps(message).encode() for message in history.messages) + b"\n]\n"
    return Transcript(
        history.source,
        history.format,
        data,
        data,
        len(history.messages),
        history.records,
        index=history.index,
        siblings=siblings,
        warnings=history.warnings,
    )


def _values(name: str, number: int, line: bytes) -> list[bytes]:
    """The values on a line: one, or those that a writer has glued."""
    values = []
    at = 0
    while line[at:].strip():
        fault = _error(line[at:])
        malformed = fault is not None and fault.kind not in _WRONG_SHAPES
        if fault is not None and malformed and fault.kind != "trailing":
            places = {**fault.places, "offset": at + (fault.offset or 0), "message_index": None}
            raise BadFile(str(TranscriptError(fault.kind, **{**places, "source": name, "line": number})))
        end = at + (fault.offset or 0) if fault is not None and malformed else len(line)
        values.append(line[at:end])
        at = end
    return values


def read_bytes(path: str) -> bytes:
    """All bytes of a file, or of standard input where the path is `-`, unpacked where they are gzipped."""
    if path == "-":
        with open(0, "rb", closefd=False) as file:
            data = file.read()
    else:
        data = Path(path).read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def _error(value: bytes) -> TranscriptError | None:
    """What keeps this from being a history, if anything does."""
    try:
        reduce_json(value, max_input_chars=0, enabled=False)
    except TranscriptError as error:
        return error
    return None


def _count(data: bytes) -> int:
    fault = _error(data)
    if fault is not None:
        raise fault
    value = json.loads(data)
    if isinstance(value, dict):
        value = value["messages"] if isinstance(value.get("messages"), list) else value["input"]
    return len(value)


def write(path: str | None, data: bytes | Iterable[bytes]) -> None:
    """Write a file whole or not at all, or to standard output; a name that ends in .gz is gzipped.

    The data may come in pieces, of which only a few are then in memory, but for a file that is gzipped.
    """
    pieces = [data] if isinstance(data, bytes) else data
    try:
        if path is None or path == "-":
            with open(1, "wb", closefd=False) as file:
                file.writelines(pieces)
        else:
            packed = [gzip.compress(b"".join(pieces), mtime=0)] if path.endswith(".gz") else pieces
            _replace(Path(os.path.realpath(path)), packed)
    except BrokenPipeError:
        raise  # whoever read standard output has seen enough: click ends the command without a word
    except OSError as error:
        raise bad_file(path or "standard output", f"cannot be written: {error.strerror or error}") from None


def _replace(target: Path, pieces: Iterable[bytes]) -> None:
    if target.exists() and not target.is_file():  # a pipe or a device cannot be replaced; a directory is an error
        target.write_bytes(b"".join(pieces))
        return
    temporary = target.with_name(f".recede-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class BadFile(click.ClickException):
    """Ends the work on a file with one line on standard error, and the command with exit code 1."""

    def show(self, file: object = None) -> None:
        """Print the line."""
        click.echo(f"recede: {self.message}", err=True)


def bad_file(name: str, reason: str) -> BadFile:
    """What is said of a file that cannot be read or written."""
    return BadFile(f"{name if name.isprintable() else ascii(name)}: {reason}")


def _failure(error: TranscriptError, name: str, data: bytes, lines: list[int] | None) -> BadFile:
    """A failure whose byte is counted from the beginning of the line, where there are lines."""
    places = {**error.places, "source": name}
    if lines is not None and error.message_index is not None and error.offset is not None:
        places["line"] = lines[error.message_index]
        places["offset"] = error.offset - (data.rfind(b"\n", 0, error.offset) + 1)
    return BadFile(str(TranscriptError(error.kind, **places)))
