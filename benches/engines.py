"""What reducing Parquet costs in each engine: `recede.arrow`, a Python function for each row, and rows through dicts.

`python benches/engines.py --mb 200` generates so much JSON in a temporary folder, runs each engine in its environment
of `make test-engines` (others in this one), compares the views, and prints the table of docs/corpora.md: CPU seconds
of the process and of all that it starts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TOKENS = 32_000
FILES = 4
WAYS = {
    "copy": "read and write alone",
    "arrow": "`recede.arrow`",
    "rows": "a function for each row",
    "dicts": "the same through dicts",
}
TICKS = os.sysconf("SC_CLK_TCK")

# What is mapped. All is imported in the environment of the engine, and by its workers.


def by_row(text: str | None) -> str | None:
    """The view of a row; None where it is no history."""
    import recede

    try:
        view = recede.reduce(text or "", max_input_tokens=TOKENS)
    except recede.TranscriptError:
        return None
    return view.json.decode() if view.chars_before else None


def by_dicts(text: str | None) -> str | None:
    """The same, as it is done where messages are dicts."""
    import recede

    try:
        view = recede.reduce(json.loads(text or ""), max_input_tokens=TOKENS)
    except (recede.TranscriptError, ValueError, RecursionError):
        return None
    return json.dumps(view.messages, ensure_ascii=False, separators=(",", ":")) if view.chars_before else None


def as_is(text: str | None) -> str | None:
    """The row."""
    return text


ROWS: dict[str, Callable[[str | None], str | None]] = {"rows": by_row, "dicts": by_dicts, "copy": as_is}


def operator() -> Any:
    """The same for a batch."""
    from recede.arrow import Reducer

    return Reducer(max_input_tokens=TOKENS)


def in_pyarrow(way: str, source: Path, out: Path) -> None:
    """One file after the other, a row group at a time; what that costs without imports is printed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def mapped(batch: Any) -> Any:
        if way == "copy":
            return batch
        texts = [ROWS[way](text) for text in batch.column("messages").to_pylist()]
        place = batch.schema.get_field_index("messages")
        return batch.set_column(place, "messages", pa.array(texts, pa.large_string()))

    change = operator() if way == "arrow" else mapped
    start = time.process_time()
    for path in source.iterdir():
        with pq.ParquetFile(path) as file:
            tables = (change(file.read_row_group(group, use_threads=False)) for group in range(file.num_row_groups))
            first = next(tables)
            with pq.ParquetWriter(out / path.name, first.schema, compression="zstd") as writer:
                writer.write_table(first)
                for table in tables:
                    writer.write_table(table)
    print("work", time.process_time() - start)


def in_polars(way: str, source: Path, out: Path) -> None:
    """Lazily, in a stream."""
    import polars as pl

    lazy = pl.scan_parquet(source / "*.parquet")
    if way == "arrow":
        reducer = operator()
        empty = pl.DataFrame(schema=lazy.collect_schema()).to_arrow()
        lazy = lazy.map_batches(
            lambda frame: pl.from_arrow(reducer(frame.to_arrow())),
            schema=pl.from_arrow(reducer(empty)).schema,
            streamable=True,
        )
    elif way != "copy":
        lazy = lazy.with_columns(pl.col("messages").map_elements(ROWS[way], return_dtype=pl.String))
    lazy.sink_parquet(out / "all.parquet")


def in_duckdb(way: str, source: Path, out: Path) -> None:
    """By a reader of Arrow batches, or by a scalar function."""
    import duckdb
    import pyarrow as pa

    files = f"'{source}/*.parquet'"
    if way == "arrow":
        reducer = operator()
        batches = duckdb.sql(f"FROM {files}").to_arrow_reader(1_000)
        reduced = pa.RecordBatchReader.from_batches(reducer.schema(batches.schema), map(reducer, batches))
        duckdb.connect().register("reduced", reduced).sql(
            f"COPY (FROM reduced) TO '{out}/all.parquet' (COMPRESSION zstd)"
        )
        return
    connection = duckdb.connect()
    column = "messages"
    if way != "copy":
        connection.create_function("view", ROWS[way], ["VARCHAR"], "VARCHAR", null_handling="special")  # needs numpy
        column = "view(messages) AS messages"
    connection.sql(f"COPY (SELECT id, model, {column} FROM {files}) TO '{out}/all.parquet' (COMPRESSION zstd)")


def in_spark(way: str, source: Path, out: Path) -> None:
    """Two local workers."""
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import udf
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    # By default a batch has 10,000 rows, however long they are; a JVM of 1 GB does not even hold 100 of each task.
    settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": "100", "spark.driver.memory": "4g"}
    settings["spark.ui.enabled"] = "false"
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    rows = spark.read.parquet(str(source))
    if way == "arrow":
        reducer = operator()
        schema = from_arrow_schema(reducer.schema(to_arrow_schema(rows.schema)))
        rows = rows.mapInArrow(lambda batches: map(reducer, batches), schema)
    elif way != "copy":
        rows = rows.withColumn("messages", udf(ROWS[way], "string")("messages"))
    rows.write.mode("overwrite").option("compression", "zstd").parquet(str(out))
    spark.stop()


def in_ray(way: str, source: Path, out: Path) -> None:
    """Two local workers; what the tasks cost by themselves is printed."""
    import ray
    import ray.data

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    rows = ray.data.read_parquet(str(source))
    if way == "arrow":
        rows = rows.map_batches(operator(), batch_format="pyarrow", batch_size=None, zero_copy_batch=True)
    elif way != "copy":
        change = ROWS[way]
        rows = rows.map(lambda row: {**row, "messages": change(row["messages"])})
    rows.write_parquet(str(out), compression="zstd")
    stats = (getattr(rows, "_write_ds", None) or rows).stats()
    spent = re.findall(r"Remote cpu time: .*?, ([0-9.]+)(us|ms|s) total", stats)
    print("work", sum(float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1}[unit] for number, unit in spent))
    ray.shutdown()


ENGINES = {"pyarrow": in_pyarrow, "Polars": in_polars, "DuckDB": in_duckdb, "Spark": in_spark, "Ray": in_ray}

# How it is measured


def cpu_seconds(pid: int, seen: dict[int, float]) -> None:
    """Notes the CPU seconds of a process and of all that came of it, also of those that end."""
    parents: dict[int, tuple[int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS
    seen.setdefault(pid, 0.0)
    has_more = True
    while has_more:
        has_more = False
        for child, (parent, _) in parents.items():
            if parent in seen and child not in seen:
                seen[child], has_more = 0.0, True
    for child in seen:
        if child in parents:
            seen[child] = max(seen[child], parents[child][1])


def digest(out: Path) -> str:
    """A hash over all views by id; those that went through dicts are compared as values."""
    import pyarrow.parquet as pq

    total = hashlib.sha256()
    rows: list[tuple[str, str | None]] = []
    for path in out.glob("**/*.parquet"):
        table = pq.ParquetFile(path).read(columns=["id", "messages"])
        rows += zip(table["id"].to_pylist(), table["messages"].to_pylist(), strict=True)
    for name, view in sorted(rows, key=lambda row: (row[0], row[1] or "")):
        value = None if view is None else json.dumps(json.loads(view))
        total.update(f"{name}\0{value}\n".encode())
    return total.hexdigest()


def measured(engine: str, way: str, source: Path, out: Path) -> tuple[float, str]:
    """CPU seconds of a run in the engine's environment, and what it prints."""
    python = ROOT / ".engines" / engine / "bin" / "python"
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'benches'}",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    }
    out.mkdir()
    program = str(python) if python.exists() else sys.executable
    environment["PYSPARK_PYTHON"] = program  # else Spark's workers are the first python3 of the path
    command = [program, __file__, "--run", engine, way, source, out]
    seen: dict[int, float] = {}
    # Not pipes: Spark says more than one holds, and nobody reads meanwhile.
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(command, env=environment, stdout=printed, stderr=said)
        while child.poll() is None:
            cpu_seconds(child.pid, seen)
            time.sleep(0.05)
        printed.seek(0)
        said.seek(0)
        if child.returncode:
            raise SystemExit(f"{engine}, {way}: {said.read()[-2_000:]}")
        return sum(seen.values()), printed.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=200, help="megabytes of JSON (default: 200)")
    parser.add_argument("--only", nargs="*", default=list(ENGINES), choices=ENGINES, help="engines (default: all)")
    parser.add_argument("--run", nargs=4, metavar=("ENGINE", "WAY", "IN", "OUT"), help="one run, which is not measured")
    given = parser.parse_args()
    if given.run:
        engine, way, source, out = given.run
        ENGINES[engine](way, Path(source), Path(out))
        return

    from corpora import generate

    from formatting import markdown, measured_here

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in")
        source.mkdir()
        made = [generate(source / f"{number}.parquet", given.mb / FILES, seed=number) for number in range(FILES)]
        rows, digests, work = [], {}, {}
        for engine in given.only:
            times: dict[str, float] = {}
            for way in WAYS:
                out = Path(folder, f"{engine}-{way}")
                spent, printed = measured(engine, way, source, out)
                times[way] = spent
                if way != "copy":
                    digests[engine, way] = digest(out)
                if way == "arrow" and engine in ("pyarrow", "Ray"):
                    work[engine] = float(printed.split()[-1])
                print(f"{engine} {way} {spent:.1f}", file=sys.stderr, flush=True)
            share = f"{times['arrow'] / times['copy']:.2f}"
            rows.append([engine, share, *(f"{spent:.1f}" for spent in times.values())])
        if len(set(digests.values())) != 1:
            raise SystemExit(f"views differ: {digests}")
        sizes = f"{sum(one.rows for one in made):,} rows, {sum(one.json_bytes for one in made) / 1e6:,.0f} MB of JSON"
        header = ["CPU s", f"{WAYS['arrow']} / {WAYS['copy']}", *WAYS.values()]
        print(f"{measured_here()} {sizes}.\n\n{markdown(header, rows)}")
        if len(work) == 2:
            tasks, local = work["Ray"], work["pyarrow"]
            said = f"Ray's tasks with recede.arrow: {tasks:.1f} CPU s, {tasks / local:.2f} of pyarrow in one process"
            print(said, file=sys.stderr)


if __name__ == "__main__":
    main()
