"""The same job on a Ray cluster: the only place that imports Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import ray.data
from ray.data.checkpoint import CheckpointConfig

from recede.cli.batch.units import Unit
from recede.cli.batch.work import DONE, PREFIX, Job, Outcome, Sums, of_table
from recede.costs import Usage

_FIGURES = ("sessions", *Usage._fields)


class _Mapped(NamedTuple):
    """What a task does with its rows; without a batch size Ray reads, maps and writes in the same one."""

    job: Job
    id_column: str | None

    def __call__(self, table: Any) -> Any:
        """The result for a table."""
        sums = Sums()
        ids = table.column(self.id_column).to_pylist() if self.id_column else [None] * table.num_rows
        result = of_table(self.job, table, [{"id": one} for one in ids], sums)
        return _usage(self.job, table.schema, sums.outcome()) if self.job.replays else result


def run(job: Job, units: Sequence[Unit], id_column: str | None, unit_bytes: int) -> Iterator[Outcome]:
    """Do the job on the cluster that `ray.init` finds, or on one that it starts here.

    With a column of ids a stopped job resumes by the checkpoints of Ray; otherwise it begins again. A task reads row
    groups of up to `unit_bytes`, of one file or of several.
    """
    done = Path(job.out, DONE, "done")
    if not done.exists():
        if id_column is None:
            for left in Path(job.out).glob("*.parquet"):
                left.unlink()
        else:
            checkpoints = Path(job.out, DONE, "checkpoints").resolve()
            ray.data.DataContext.get_current().checkpoint_config = CheckpointConfig(
                id_column, str(checkpoints), delete_checkpoint_on_success=False
            )
        with suppress(ImportError):  # threads of Ray import it at once, and fail where it is not yet there
            import_module("fsspec.implementations.http")
        os.environ["RAY_DATA_PARQUET_BIN_PACKING_BYTES"] = str(unit_bytes)  # Ray has no argument for it
        paths = [str(Path(path).resolve()) for path in dict.fromkeys(unit.paths[0] for unit in units)]
        rows = ray.data.read_parquet(paths)
        # An id must be in the result; usage is then that of each row.
        wanted = job._replace(by=(*job.by, id_column)) if id_column and id_column not in job.by else job
        mapped = rows.map_batches(
            _Mapped(wanted if job.replays else job, id_column),
            batch_format="pyarrow",
            batch_size=None,
            zero_copy_batch=True,
        )
        mapped.write_parquet(str(Path(job.out).resolve()), compression="zstd")
        done.touch()
    return _outcomes(job, id_column)


def _usage(job: Job, schema: Any, outcome: Outcome) -> Any:
    """Usage and errors as a table."""
    import pyarrow as pa

    rows = [[*row, None, None] for row in outcome.usage]
    for failed in outcome.failed:
        key = [failed["id"] if name == (job.by or ("",))[-1] else None for name in job.by]
        rows.append([*key, None, *[None] * len(_FIGURES), failed["kind"], failed["error"]])
    fields = [schema.field(name) for name in job.by]
    fields += [pa.field(PREFIX + "policy", pa.string()), *(pa.field(PREFIX + name, pa.int64()) for name in _FIGURES)]
    fields += [pa.field(PREFIX + name, pa.string()) for name in ("error_kind", "error")]
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _outcomes(job: Job, id_column: str | None) -> Iterator[Outcome]:
    """What came of each file of the results."""
    import pyarrow.parquet

    for path in sorted(Path(job.out).glob("*.parquet")):
        with pyarrow.parquet.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield _outcome(job, file, group, str(path), id_column)


def _outcome(job: Job, file: Any, group: int, path: str, id_column: str | None) -> Outcome:
    names = [name for name in file.schema_arrow.names if name.startswith(PREFIX) or name in (*job.by, id_column)]
    table = file.read_row_group(group, columns=names)
    kinds, words = (table.column(PREFIX + name).to_pylist() for name in ("error_kind", "error"))
    ids = table.column(id_column).to_pylist() if id_column else None
    failed = [
        {"file": path, **({"id": ids[row]} if ids else {"row": row}), "kind": kind, "error": said}
        for row, (kind, said) in enumerate(zip(kinds, words, strict=True))
        if kind is not None
    ]
    if not job.replays:
        sums = Sums()
        sums.count(table)
        good = table.num_rows - table.column(PREFIX + "messages").null_count
        return Outcome(good + len(failed), dict(sums.figures), [], failed)
    columns = [*job.by, PREFIX + "policy", *(PREFIX + name for name in _FIGURES)]
    usage = [
        list(row)
        for row in zip(*(table.column(name).to_pylist() for name in columns), strict=True)
        if row[len(job.by)] is not None
    ]
    sessions = sum(row[len(job.by) + 1] for row in usage if row[len(job.by)] == "raw")
    return Outcome(sessions + len(failed), {}, usage, failed)
