"""Reads histories in any of their file forms and writes them whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import shutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from recede import TranscriptError, reduce_json

__all__ = ["Transcript", "read", "write"]

_Result = TypeVar("_Result")

# Errors of a `TranscriptError` in what is well-formed JSON.
_WRONG_SHAPES = ("duplicate_key", "history", "message", "content", "part")


@dataclass(frozen=True)
class Transcript:
    """A history as it came from a file.

    Attributes:
        name: the file, as errors name it.
        data: its bytes, unpacked.
        json: the array or the request body. JSON Lines become an array with one message a line.
        lines: the numbers of the lines that hold a message, from 1; None where the file is no JSON Lines.
    """

    name: str
    data: bytes
    json: bytes
    lines: list[int] | None

    def run(self, function: Callable[[bytes], _Result]) -> _Result:
        """Call it with the JSON; a `TranscriptError` becomes a line that names the place in the file."""
        try:
            return function(self.json)
        except TranscriptError as error:
            if self.lines is None or error.message_index is None or error.offset is None:
                raise _failure(self.name, str(error)) from None
            # Malformed lines were found by `read`; this one has a wrong shape.
            in_line = error.offset - (self.json.rfind(b"\n", 0, error.offset) + 1)
            line = self.lines[error.message_index]
            raise _line_failure(self.name, line, error, in_line, error.message_index) from None

    def count(self) -> int:
        """How many messages it holds; for what recede has read without an error."""
        if self.lines is not None:
            return len(self.lines)
        value = json.loads(self.json)
        if isinstance(value, dict):
            value = value["messages"] if isinstance(value.get("messages"), list) else value["input"]
        return len(value)

    def file_form(self, view: bytes) -> bytes:
        """A view of the JSON in the form of the file."""
        if view is self.json:
            return self.data
        if self.lines is None:
            return view
        # JSON strings hold no raw line end, so each message still has a line of its own.
        lines = (line.removesuffix(b",") for line in view[1:-1].split(b"\n"))
        return b"".join(line + b"\n" for line in lines if line)


def read(path: str) -> Transcript:
    """Read a file, or standard input where the path is `-`; what cannot be read ends the command."""
    name = "standard input" if path == "-" else path
    try:
        data = _bytes(path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _failure(name, f"the gzip data is cut or damaged ({error})") from None
    except OSError as error:
        raise _failure(name, error.strerror or str(error)) from None
    if not data.strip():
        raise _failure(name, "the file is empty: an empty history is written []")
    if not _is_json_lines(data):
        return Transcript(name, data, data, None)
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    for number, line in lines:
        fault = _error(line)
        if fault is not None and fault.kind not in _WRONG_SHAPES:
            raise _line_failure(name, number, fault, fault.offset, None)
    array = b"[\n" + b",\n".join(line for _, line in lines) + b"\n]"
    return Transcript(name, data, array, [number for number, _ in lines])


def _bytes(path: str) -> bytes:
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


def _is_json_lines(data: bytes) -> bool:
    """Whether each line is a message; else the whole is one value, an array or a request body."""
    first, _, rest = data.lstrip().partition(b"\n")
    if first.startswith(b"["):
        return False
    # In one value, an object that begins a line stands behind one of these.
    if rest.lstrip().startswith(b"{") and not first.rstrip().endswith((b"[", b",", b":")):
        return True
    # Or the first line is an object by itself and looks like a message, not like a request body.
    error = _error(first)
    if error is None or error.kind != "history" or not first.startswith(b"{"):
        return False
    return not {"role", "type"}.isdisjoint(json.loads(first))


def write(path: str | None, data: bytes) -> None:
    """Write a file whole or not at all, or to standard output; a name that ends in .gz is gzipped."""
    try:
        if path is None or path == "-":
            with open(1, "wb", closefd=False) as file:
                file.write(data)
        else:
            _replace(Path(os.path.realpath(path)), gzip.compress(data, mtime=0) if path.endswith(".gz") else data)
    except BrokenPipeError:
        raise  # whoever read standard output has seen enough: click ends the command without a word
    except OSError as error:
        raise _failure(path or "standard output", f"cannot be written: {error.strerror or error}") from None


def _replace(target: Path, data: bytes) -> None:
    if target.exists() and not target.is_file():  # a pipe or a device cannot be replaced; a directory is an error
        target.write_bytes(data)
        return
    temporary = target.with_name(f".recede-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class _Failure(click.ClickException):
    """Ends the command with exit code 1 and one line on standard error."""

    def show(self, file: object = None) -> None:
        click.echo(f"recede: {self.message}", err=True)


def _failure(name: str, reason: str) -> _Failure:
    return _Failure(f"{name if name.isprintable() else ascii(name)}: {reason}")


def _line_failure(
    name: str, line: int, error: TranscriptError, offset: int | None, message_index: int | None
) -> _Failure:
    """A failure whose byte is counted from the beginning of the line."""
    there = TranscriptError(error.kind, offset=offset, message_index=message_index, field=error.field)
    return _failure(name, f"line {line}: {there}")
