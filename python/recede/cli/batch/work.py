"""What a worker does with a unit: read, apply the operator, write aside, rename, and note that it is done."""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

from recede import arrow
from recede._files import write_whole
from recede.cli.batch.rows import Row, batches, column_of, converted, parquet_batches
from recede.cli.batch.units import Unit

DONE = ".recede"
"""The folder in OUT that says which units are done."""

PREFIX = "recede_"
"""What the names of the columns begin with that an operator adds."""

_HISTORY, _ROW = "messages", PREFIX + "row"
# Errors of what may be in a shape that `recede.transcripts` reads.
_OTHER_SHAPES = frozenset(["content", "empty", "history", "message", "part"])


class Job(NamedTuple):
    """What is done with each row.

    Attributes:
        command: ``reduce``, ``stats``, ``replay`` or ``suggest``.
        out: the folder of the results.
        operator: makes the operator for a column; of a replay, for the columns by which usage is added up, too.
        column: the column or the path of the histories; None for the usual ones.
        text_mode: as for `recede.transcripts.read`.
        by: columns of Parquet by which usage is added up.
    """

    command: str
    out: str
    operator: Callable[..., Any]
    column: str | None = None
    text_mode: bool = False
    by: tuple[str, ...] = ()

    @property
    def replays(self) -> bool:
        """Whether the result is usage, which adds up, and not a row for each row."""
        return self.command in ("replay", "suggest")


class Outcome(NamedTuple):
    """The outcome of a unit; written as JSON.

    Attributes:
        rows: how many histories there were, bad ones too.
        figures: sums of the figures of the rows.
        usage: usage by the columns of `Job.by` and policy: values, policy, sessions, figures.
        failed: the bad rows: places, kinds, words.
    """

    rows: int
    figures: dict[str, int]
    usage: list[list[Any]]
    failed: list[dict[str, Any]]


def do(job: Job, unit: Unit, skipped: frozenset[int] | None, announce: Callable[[int], None]) -> Outcome:
    """Do a unit.

    Args:
        job: what.
        unit: with what.
        skipped: None at first; after a worker has died the rows that killed one, and each row is announced.
        announce: called with the number of a row before it.
    """
    most = {} if skipped is None else {"most_rows": 1}
    sums = Sums()
    with _target(job, unit) as write:
        if unit.kind == "parquet":
            for first, table in parquet_batches(unit, **most):
                if skipped is not None:
                    announce(first)
                place = {"file": unit.paths[0]}
                places = [{**place, "row": first + number} for number in range(table.num_rows)]
                write.table(of_table(job, table, places, sums, is_skipped=first in (skipped or ())))
                del table  # before the next one is read
        else:
            number = 0
            for rows in batches(unit, job.column, text_mode=job.text_mode, **most):
                if skipped is not None:
                    announce(number)
                if number in (skipped or ()):
                    rows = [row._replace(data=None, error=_DIED) for row in rows]
                write.rows(rows, _of_rows(job, rows, sums))
                number += len(rows)
    outcome = sums.outcome()
    done = Path(job.out, DONE, f"{unit.name}.json")
    write_whole(done, [json.dumps(outcome._asdict()).encode()], 0o666)
    return outcome


_DIED = ("died", "the worker died on this row: too little memory, or a fault of recede, which is worth a report")


class Sums:
    """What is added up over the batches of a unit, and over units.

    Attributes:
        rows: histories, bad ones too.
        figures: sums by name.
        usage: sums by the columns of `Job.by` and policy.
        failed: the bad rows.
    """

    def __init__(self) -> None:
        """Nothing at first."""
        self.rows = 0
        self.figures: Counter[str] = Counter()
        self.usage: dict[tuple[Any, ...], list[int]] = {}
        self.failed: list[dict[str, Any]] = []

    def count(self, table: Any) -> None:
        """Add the columns of figures."""
        import pyarrow as pa

        for field in table.schema:
            if field.name.startswith(PREFIX) and pa.types.is_int64(field.type):
                self.figures[field.name.removeprefix(PREFIX)] += sum(filter(None, table.column(field.name).to_pylist()))

    def use(self, key: Iterable[Any], figures: Sequence[int]) -> None:
        """Add the usage of a group and a policy."""
        held = self.usage.setdefault(tuple(key), [0] * len(figures))
        held[:] = map(add, held, figures)

    def add(self, outcome: Outcome, by: int) -> None:
        """Add those of a unit, whose usage is by this many columns and policy."""
        self.rows += outcome.rows
        self.figures.update(outcome.figures)
        for row in outcome.usage:
            self.use(row[: by + 1], row[by + 1 :])
        self.failed += outcome.failed

    def outcome(self) -> Outcome:
        """The sums, as they are written."""
        usage = [[*key, *figures] for key, figures in self.usage.items()]
        return Outcome(self.rows, dict(self.figures), usage, self.failed)


def _of_rows(job: Job, rows: list[Row], sums: Sums) -> Any:
    """The result for rows that are no table."""
    import pyarrow as pa

    table = pa.table({_HISTORY: pa.array([row.data for row in rows], pa.large_binary())})
    errors = {number: row.error for number, row in enumerate(rows) if row.error is not None}
    return _applied(job, table, _HISTORY, [row.place for row in rows], errors, sums)


def of_table(job: Job, table: Any, places: list[dict[str, Any]], sums: Sums, *, is_skipped: bool = False) -> Any:
    """The result for a table with the columns of Parquet files."""
    import pyarrow as pa

    column = column_of(table.schema.names, job.column)
    if column is None:
        raise ValueError(f"there is no column {job.column or 'messages'!r}, but {', '.join(table.schema.names)}")
    place = table.schema.get_field_index(column)
    if pa.types.is_nested(table.schema.field(place).type):
        table = table.set_column(place, column, arrow.to_json(table.column(place)))
    if is_skipped:
        field = table.schema.field(place)
        table = table.set_column(place, field, pa.nulls(len(places), field.type))
    return _applied(job, table, column, places, dict.fromkeys(range(len(places)), _DIED) if is_skipped else {}, sums)


def _applied(
    job: Job,
    table: Any,
    column: str,
    places: list[dict[str, Any]],
    errors: dict[int, tuple[str, str]],
    sums: Sums,
) -> Any:
    """The operator on a table, and once more on what it cannot read, but `recede.transcripts` can.

    Args:
        job: what is done.
        table: the histories, null where there is none.
        column: where they are in it.
        places: where each row is.
        errors: what is wrong with rows that are null for that reason.
        sums: what came of it is added to them.
    """
    import pyarrow as pa

    operator = job.operator(column, by=[*job.by, _ROW]) if job.replays else job.operator(column)
    count = table.num_rows - table.column(column).null_count + len(errors)
    if job.replays:
        table = table.select([column, *job.by]).append_column(_ROW, pa.array(range(table.num_rows), pa.int64()))
    if job.text_mode:
        table = _converted(table, column, range(table.num_rows), text_mode=True) or table
    result = operator(table)
    found = dict(_errors(job, result))
    other = [row for row, (kind, _) in found.items() if kind in _OTHER_SHAPES]
    if other and (again := _converted(table, column, other, text_mode=job.text_mode)) is not None:
        result = operator(again)
        found = dict(_errors(job, result))
    failed = {**errors, **found}
    sums.rows += count
    sums.failed += ({**places[row], "kind": kind, "error": said} for row, (kind, said) in sorted(failed.items()))
    if job.replays:
        _add_usage(job, result, sums)
    else:
        sums.count(result)
    return result


def _converted(table: Any, column: str, rows: Any, *, text_mode: bool) -> Any:
    """The table with these rows in a shape that the reducer reads; None where none of them can be."""
    import pyarrow as pa

    place = table.schema.get_field_index(column)
    field, old = table.schema.field(place), table.column(place)
    changed: dict[int, Any] = {}
    for row in rows:
        value = old[row].as_py()
        if value is not None:
            found = converted(value if isinstance(value, bytes) else value.encode(), text_mode=text_mode)
            if found is not None:
                changed[row] = found if isinstance(value, bytes) else found.decode()
    if not changed:
        return None
    # Rows that stay are not copied.
    chunks: list[Any] = []
    end = 0
    for row, run in _runs(changed):
        chunks += [*old.slice(end, row - end).chunks, pa.array(run, field.type)]
        end = row + len(run)
    return table.set_column(place, field, pa.chunked_array([*chunks, *old.slice(end).chunks], field.type))


def _runs(values: dict[int, Any]) -> list[tuple[int, list[Any]]]:
    """The values of consecutive rows together, after the first of the rows."""
    runs: list[tuple[int, list[Any]]] = []
    for row, value in values.items():
        if runs and row == runs[-1][0] + len(runs[-1][1]):
            runs[-1][1].append(value)
        else:
            runs.append((row, [value]))
    return runs


def _errors(job: Job, result: Any) -> Iterator[tuple[int, tuple[str, str]]]:
    kinds, words = (result.column(PREFIX + name).to_pylist() for name in ("error_kind", "error"))
    rows = result.column(_ROW).to_pylist() if job.replays else range(len(kinds))
    for row, kind, said in zip(rows, kinds, words, strict=True):
        if kind is not None:
            yield row, (kind, said)


def _add_usage(job: Job, result: Any, sums: Sums) -> None:
    names = [name for name in result.schema.names if name not in (_ROW, PREFIX + "error_kind", PREFIX + "error")]
    for row in zip(*(result.column(name).to_pylist() for name in names), strict=True):
        key, figures = row[: len(job.by) + 1], row[len(job.by) + 1 :]
        if key[-1] is not None:
            sums.use(key, figures)


# Writing


class _Nothing:
    """Of a replay, whose result is in what says that the unit is done."""

    def table(self, result: Any) -> None:
        pass

    def rows(self, rows: list[Row], result: Any) -> None:
        pass


class _Parquet(_Nothing):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def table(self, result: Any) -> None:
        import pyarrow.parquet

        if self._writer is None:
            # Pages of about a megabyte: a reader must hold one, and pyarrow looks at their size after this many rows.
            rows = max(1, min(1_024, result.num_rows * (1 << 20) // max(result.nbytes, 1)))
            # Views are of a large type, and each is another: a dictionary would be a copy of them, as would statistics.
            small = [field.name for field in result.schema if not str(field.type).startswith("large_")]
            self._writer = pyarrow.parquet.ParquetWriter(
                self._path,
                result.schema,
                compression="zstd",
                write_batch_size=rows,
                use_dictionary=small,
                write_statistics=small,
            )
        self._writer.write_table(result)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _Lines(_Nothing):
    """Lines with the view in the place of the history; or the figures of each row."""

    def __init__(self, file: Any, command: str, kind: str) -> None:
        self._file = file
        self._has_views = command == "reduce"
        self._keeps_lines = kind == "lines"

    def rows(self, rows: list[Row], result: Any) -> None:
        if self._has_views:
            views = result.column(_HISTORY).to_pylist()
            self._file.writelines(self._line(row, view) for row, view in zip(rows, views, strict=True))
            return
        for row, figures in zip(rows, result.to_pylist(), strict=True):
            if row.data is not None or row.error is not None:
                found = {name.removeprefix(PREFIX): value for name, value in figures.items()}
                if row.error is not None:
                    found["error_kind"], found["error"] = row.error
                self._file.write(_json({**row.place, **found}))

    def _line(self, row: Row, view: bytes | None) -> bytes:
        if not self._keeps_lines:
            return b"" if view is None else _json(row.place)[:-2] + b', "messages": ' + view + b"}\n"
        if view is None or view == row.data:  # a bad row stays as it is
            return row.line
        if row.is_text:
            view = json.dumps(view.decode("utf-8", "surrogatepass")).encode()
        return row.line[: row.start] + view + row.line[row.end :]


def _json(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


@contextmanager
def _target(job: Job, unit: Unit) -> Iterator[Any]:
    """What writes the output of a unit, which appears whole or not at all."""
    import pyarrow

    if job.replays:
        yield _Nothing()
        return
    packed = unit.packed if job.command == "reduce" else None
    suffix = ".parquet" if unit.kind == "parquet" else ".jsonl" + {"gzip": ".gz", "zstd": ".zst"}.get(packed or "", "")
    aside = Path(job.out, DONE, f"{unit.name}-{secrets.token_hex(4)}.part")
    try:
        if unit.kind == "parquet":
            parquet = _Parquet(aside)
            try:
                yield parquet
            finally:
                parquet.close()
        else:
            with pyarrow.output_stream(str(aside), compression=packed) as file:
                yield _Lines(_Buffered(file), job.command, unit.kind)
        if aside.exists():
            with aside.open("rb") as file:
                os.fsync(file.fileno())
            aside.replace(Path(job.out, unit.name + suffix))
    finally:
        aside.unlink(missing_ok=True)


class _Buffered:
    """Writes to a stream of pyarrow, which takes no lists."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def writelines(self, lines: Any) -> None:
        self._file.write(b"".join(lines))
