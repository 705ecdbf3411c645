"""The rows of a unit, in batches that a worker can hold: where each is, and its history as bytes of JSON."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from recede import TranscriptError, transcripts
from recede.cli.batch.spans import find
from recede.cli.batch.units import Unit, opened
from recede.cli.errors import BadFile
from recede.cli.files import read as read_file
from recede.cli.reading import Reading

COLUMNS = ("messages", "body.messages", "params.messages", "conversations", "trajectory", "traj", "body.input", "input")
"""Where a history is, if no column is named: the first of them that a row has."""

_BATCH_BYTES = 32 << 20
_BATCH_ROWS = 8_192
_MOST_SAMPLE_BYTES = 4_000_000_000
_ZSTD = 93  # a method of zip files that Python before 3.14 does not know


class Row(NamedTuple):
    """A history.

    Attributes:
        place: where it is: the file, and the line, the row or the index of the history in it.
        data: its bytes; None where there is no history, or an error.
        line: its line, where it is in one.
        start: where it begins there.
        end: where it ends.
        is_text: whether it is JSON in a string.
        error: why there is none: a kind, and words.
    """

    place: dict[str, Any]
    data: bytes | None
    line: bytes = b""
    start: int = 0
    end: int = 0
    is_text: bool = False
    error: tuple[str, str] | None = None


def batches(unit: Unit, column: str | None, *, text_mode: bool, most_rows: int = _BATCH_ROWS) -> Iterator[list[Row]]:
    """The rows of lines, sessions and logs."""
    rows = _lines(unit, column) if unit.kind == "lines" else _histories(unit, text_mode=text_mode)
    batch: list[Row] = []
    held = 0
    for row in rows:
        batch.append(row)
        held += len(row.data or b"") + len(row.line)
        if held >= _BATCH_BYTES or len(batch) >= most_rows:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _lines(unit: Unit, column: str | None) -> Iterator[Row]:
    [path] = unit.paths
    paths = [tuple(name.split(".")) for name in ([column] if column else COLUMNS)]
    for number, line in _lines_between(path, unit):
        place = {"file": path, **number}
        if not line.strip():
            yield Row(place, None, line)
            continue
        try:
            span = find(line.rstrip(b"\r\n"), paths)
        except TranscriptError as error:
            yield Row(place, None, line, error=(error.kind, str(error)))
            continue
        if span is None:
            what = f"no field {column!r}" if column else f"none of the fields {', '.join(COLUMNS)}"
            yield Row(place, None, line, error=("history", f"the line has {what}: name another with --column"))
            continue
        start, end = span
        data, is_text = line[start:end], line[start : start + 1] == b'"'
        if is_text:
            data = str(json.loads(data)).encode("utf-8", "surrogatepass")
        yield Row(place, data, line, start, end, is_text)


def _lines_between(path: str, unit: Unit) -> Iterator[tuple[dict[str, int], bytes]]:
    """The lines that begin in the part of the file; of a part that is not the first, places are bytes."""
    with opened(path, unit.packed) as stream:
        at = unit.start
        if at:
            stream.seek(at - 1)
            at += len(stream.readline()) - 1
        number = 0
        while unit.packed or at < unit.end:
            line = stream.readline()
            if not line:
                return
            number += 1
            yield {"byte": at} if unit.start else {"line": number}, line
            at += len(line)


def _histories(unit: Unit, *, text_mode: bool) -> Iterator[Row]:
    """The histories of sessions and logs, in a shape that the reducer reads."""
    for path in unit.paths:
        try:
            for place, history in _samples(path) if unit.kind == "eval" else _sessions(path, text_mode=text_mode):
                if isinstance(history, tuple):
                    yield Row(place, None, error=history)
                else:
                    yield Row(place, _dumped(history))
        except BadFile as error:
            yield Row({"file": path}, None, error=("file", error.message))
        except (OSError, EOFError, zipfile.BadZipFile) as error:
            yield Row({"file": path}, None, error=("file", str(error)))


def _sessions(path: str, *, text_mode: bool) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    for history in read_file(path, Reading(text_mode=text_mode)):
        yield {"file": path, "index": history.index, "format": history.format}, history.parsed()


def _samples(path: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """The samples of a log of inspect_ai, which is a zip file with a file for each."""
    with zipfile.ZipFile(path) as log:
        names = [info for info in log.infolist() if info.filename.startswith("samples/") and not info.is_dir()]
        for info in names:
            place = {"file": path, "sample": info.filename, "format": "inspect"}
            if info.file_size > _MOST_SAMPLE_BYTES:
                yield place, ("size", str(TranscriptError("size")))
                continue
            sample = _member(log, info)
            document = b'{"version": 2, "status": "success", "eval": {}, "samples": [' + sample + b"]}"
            try:
                [found] = transcripts.read_all(document, "inspect", name=f"{path}: {info.filename}")
            except TranscriptError as error:
                yield place, (error.kind, str(error))
                continue
            yield place, found.messages


def _member(log: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type != _ZSTD:
        return log.read(info)
    import pyarrow

    file = log.fp
    assert file is not None, "the log is open"
    file.seek(info.header_offset)
    header = file.read(30)
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    packed = file.read(info.compress_size)
    with pyarrow.input_stream(pyarrow.py_buffer(packed), compression="zstd") as stream:
        return bytes(stream.read())


def _dumped(messages: Sequence[Any]) -> bytes:
    return json.dumps(messages, separators=(",", ":")).encode()


def converted(data: bytes, *, text_mode: bool) -> bytes | None:
    """A history in a shape that the reducer reads; None if `data` is in one, or in none that is known."""
    try:
        found = transcripts.read(data, text_mode=text_mode)
    except (TranscriptError, OSError):
        return None
    if not text_mode and found.format in ("body", "messages"):
        return None
    return _dumped(found.messages)


# Parquet


def column_of(names: Iterable[str], column: str | None) -> str | None:
    """The column with the histories."""
    names = list(names)
    return next((name for name in ([column] if column else COLUMNS) if name in names), None)


def parquet_batches(unit: Unit, *, most_rows: int = _BATCH_ROWS) -> Iterator[tuple[int, Any]]:
    """The number of the first row in the file, and a table."""
    import pyarrow.parquet

    [path] = unit.paths
    # Without pre_buffer, which holds the packed bytes of a whole row group.
    with pyarrow.parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
        groups = range(unit.start, unit.end)
        metadata = file.metadata
        row = sum(metadata.row_group(group).num_rows for group in range(unit.start))
        rows = sum(metadata.row_group(group).num_rows for group in groups)
        size = sum(metadata.row_group(group).total_byte_size for group in groups)
        count = max(1, min(most_rows, _BATCH_BYTES * rows // max(size, 1)))
        for batch in file.iter_batches(batch_size=count, row_groups=list(groups), use_threads=False):
            table = pyarrow.Table.from_batches([batch])
            # What a dictionary or the compression has hidden is worked on in pieces.
            step = max(1, table.num_rows * _BATCH_BYTES // max(table.nbytes, _BATCH_BYTES))
            for start in range(0, table.num_rows, step):
                yield row + start, table.slice(start, step)
            row += table.num_rows
            del batch, table  # before the next one is read
