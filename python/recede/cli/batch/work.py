"""The work of a task: read, apply the operator, write a temporary file, and rename it."""

from __future__ import annotations

import io
import json
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from recede import TranscriptError, arrow, transcripts
from recede._files import write_whole
from recede.cli.batch.spans import find
from recede.cli.batch.tasks import Task
from recede.cli.files import WRONG_SHAPES

COLUMNS = ("messages", "body.messages", "params.messages", "conversations", "trajectory", "traj", "body.input", "input")
"""Columns of a history, if none is named: the first of them that a row has."""

_HISTORY, _PREFIX = "messages", "recede_"
_NO_HISTORY = b"null"
_BATCH_BYTES = 32 << 20
_BATCH_ROWS = 8_192
# Errors of what may be in a shape that `recede.transcripts` reads.
_OTHER_SHAPES = frozenset(["content", "empty", "history", "message", "part"])


class Job(NamedTuple):
    """The work of a job on each row: reduce it, or measure it. The column is None for the usual names."""

    operator: Callable[[str], Any]
    has_views: bool
    column: str | None = None
    text_mode: bool = False


class Outcome:
    """The outcome of a task: numbers of histories and bad rows, sums of figures, or why there is no result."""

    def __init__(self, error: str | None = None) -> None:
        """Start with nothing."""
        self.rows, self.error = 0, error
        self.figures: Counter[str] = Counter()
        self.failed: list[dict[str, Any]] = []

    def add(self, result: Any, places: list[dict[str, Any]]) -> None:
        """Add the result of rows with these numbers."""
        import pyarrow as pa

        kinds, words = (result.column(_PREFIX + name).to_pylist() for name in ("error_kind", "error"))
        found = zip(places, kinds, words, strict=True)
        self.failed += ({**place, "kind": kind, "error": said} for place, kind, said in found if kind)
        self.rows += sum(map(bool, kinds)) + result.num_rows - result.column(_PREFIX + "messages").null_count
        for field in result.schema:
            if field.name.startswith(_PREFIX) and pa.types.is_int64(field.type):
                numbers = result.column(field.name).to_pylist()
                self.figures[field.name.removeprefix(_PREFIX)] += sum(filter(None, numbers))


def do(job: Job, task: Task) -> Outcome:
    """Run a task. Its result appears whole or not at all, after the list of its bad rows."""
    outcome, target = Outcome(), Path(task.target)
    aside = target.with_name(f".{target.name}-{secrets.token_hex(4)}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if task.group is None:
            _do_lines(job, task, aside, outcome)
        else:
            _do_parquet(job, task, aside, outcome)
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        if outcome.failed:
            write_whole(task.errors, map(_json, outcome.failed), 0o666)
        else:
            Path(task.errors).unlink(missing_ok=True)
        aside.replace(target)
    except Exception as error:  # of the disk, of pyarrow, of a damaged file: the other tasks are still done
        return Outcome(str(error) or type(error).__name__)
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
    return outcome


def _applied(job: Job, table: Any, column: str) -> Any:
    """Apply the operator to a table, then to rows that only `recede.transcripts` can read."""
    operator = job.operator(column)
    result = operator(table)
    kinds = result.column(_PREFIX + "error_kind").to_pylist()
    other = [row for row, kind in enumerate(kinds) if job.text_mode or kind in _OTHER_SHAPES]
    again = _converted(table, column, other, text_mode=job.text_mode) if other else None
    return result if again is None else operator(again)


def _converted(table: Any, column: str, rows: Any, *, text_mode: bool) -> Any:
    """Convert these rows of a table to a shape that the reducer reads; None if none can be converted."""
    import pyarrow as pa

    place = table.schema.get_field_index(column)
    field, old = table.schema.field(place), table.column(place)
    chunks: list[Any] = []  # rows that stay are not copied
    end = 0
    for row in rows:
        value = old[row].as_py()
        if value is None:
            continue
        found = _as_messages(value if isinstance(value, bytes) else value.encode(), text_mode=text_mode)
        if found is not None:
            value = found if isinstance(value, bytes) else found.decode()
            chunks += [*old.slice(end, row - end).chunks, pa.array([value], field.type)]
            end = row + 1
    if not chunks:
        return None
    return table.set_column(place, field, pa.chunked_array([*chunks, *old.slice(end).chunks], field.type))


def _as_messages(data: bytes, *, text_mode: bool) -> bytes | None:
    """Convert a history to a shape that the reducer reads; None if it is in one already, or in no known shape."""
    try:
        found = transcripts.read(data, text_mode=text_mode)
    except (TranscriptError, OSError):
        return None
    if not text_mode and found.format in ("body", "messages"):
        return None
    return json.dumps(found.messages, separators=(",", ":")).encode()


# Parquet


def _do_parquet(job: Job, task: Task, aside: Path, outcome: Outcome) -> None:
    import pyarrow as pa

    writer = None
    try:
        for first, table in parquet_batches(task):
            names = table.schema.names
            column = next((name for name in ([job.column] if job.column else COLUMNS) if name in names), None)
            if column is None:
                raise ValueError(f"there is no column {job.column or 'messages'!r}; there are {', '.join(names)}")
            place = names.index(column)
            if pa.types.is_nested(table.schema.field(place).type):
                table = table.set_column(place, column, arrow.to_json(table.column(place)))
            result = _applied(job, table, column)
            outcome.add(result, [{"file": task.path, "row": first + row} for row in range(table.num_rows)])
            writer = writer or _parquet_writer(aside, result)
            writer.write_table(result)
            del table, result  # before the next one is read
    finally:
        if writer is not None:
            writer.close()


def parquet_batches(task: Task) -> Iterator[tuple[int, Any]]:
    """Iterate over tables, each with the file's number of its first row; at least one table."""
    import pyarrow.parquet

    # Without pre_buffer, which holds the packed bytes of a whole row group; a scan of pyarrow.dataset holds more, too.
    with pyarrow.parquet.ParquetFile(task.path, buffer_size=1 << 20, pre_buffer=False) as file:
        group = file.metadata.row_group(task.group) if file.metadata.num_row_groups else None
        if group is None or not group.num_rows:
            yield task.first_row, file.schema_arrow.empty_table()
            return
        row = task.first_row
        count = max(1, min(_BATCH_ROWS, _BATCH_BYTES * group.num_rows // max(group.total_byte_size, 1)))
        for batch in file.iter_batches(batch_size=count, row_groups=[task.group], use_threads=False):
            table = pyarrow.Table.from_batches([batch])
            # What a dictionary or the compression has hidden is worked on in pieces.
            step = max(1, table.num_rows * _BATCH_BYTES // max(table.nbytes, _BATCH_BYTES))
            for start in range(0, table.num_rows, step):
                yield row + start, table.slice(start, step)
            row += table.num_rows
            del batch, table  # before the next one is read


def _parquet_writer(path: Path, result: Any) -> Any:
    import pyarrow.parquet

    # Pages of about a megabyte: a reader must hold one, and pyarrow looks at their size after this many rows.
    rows = max(1, min(1_024, result.num_rows * (1 << 20) // max(result.nbytes, 1)))
    # Views are of a large type, and each is another: a dictionary would be a copy of them, as would statistics.
    small = [field.name for field in result.schema if not str(field.type).startswith("large_")]
    options: dict[str, Any] = {"use_dictionary": small, "write_statistics": small, "write_batch_size": rows}
    return pyarrow.parquet.ParquetWriter(path, result.schema, compression="zstd", **options)


# Lines


class Row(NamedTuple):
    """A line, its history, and the span of the history. An empty line has none; a bad line has what shows the error."""

    line: bytes
    data: bytes | None
    start: int = 0
    end: int = 0

    def with_view(self, view: bytes | None) -> bytes:
        """Return the line with the view in place of the history; a bad row is unchanged."""
        if view is None or view == self.data:
            return self.line
        if self.line.startswith(b'"', self.start):
            view = json.dumps(view.decode("utf-8", "surrogatepass")).encode()
        return self.line[: self.start] + view + self.line[self.end :]


def _do_lines(job: Job, task: Task, aside: Path, outcome: Outcome) -> None:
    import pyarrow as pa

    number = 1
    with (
        pa.input_stream(task.path, compression=task.packed) as stream,
        io.BufferedReader(stream, 1 << 20) as lines,
        pa.output_stream(str(aside), compression=task.packed) as file,
    ):
        for rows in _batches(lines, job.column):
            table = pa.table({_HISTORY: pa.array([row.data for row in rows], pa.large_binary())})
            result = _applied(job, table, _HISTORY)
            places = [{"file": task.path, "line": number + place} for place in range(len(rows))]
            outcome.add(result, places)
            if job.has_views:
                views = result.column(_HISTORY).to_pylist()
                file.write(b"".join(row.with_view(view) for row, view in zip(rows, views, strict=True)))
            else:
                figures = result.rename_columns(
                    [name.removeprefix(_PREFIX) for name in result.schema.names]
                ).to_pylist()
                found = zip(rows, places, figures, strict=True)
                file.write(b"".join(_json({**place, **of_row}) for row, place, of_row in found if row.data))
            number += len(rows)


def _batches(lines: Iterable[bytes], column: str | None) -> Iterator[list[Row]]:
    """Iterate over the lines of a file in batches that fit in memory."""
    paths = [tuple(name.split(".")) for name in ([column] if column else COLUMNS)]
    batch: list[Row] = []
    held = 0
    for line in lines:
        batch.append(_row(line, paths))
        held += len(batch[-1].data or b"") + len(line)
        if held >= _BATCH_BYTES or len(batch) >= _BATCH_ROWS:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _row(line: bytes, paths: list[tuple[str, ...]]) -> Row:
    if not line.strip():
        return Row(line, None)
    text = line.rstrip(b"\r\n")
    try:
        span = find(text, paths)
    except TranscriptError as error:
        return Row(line, _NO_HISTORY if error.kind in WRONG_SHAPES else text)
    data = _NO_HISTORY if span is None else line[slice(*span)]
    if data.startswith(b'"'):
        data = str(json.loads(data)).encode("utf-8", "surrogatepass")
    return Row(line, data, *(span or ()))


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"
