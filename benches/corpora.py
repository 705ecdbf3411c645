"""Many histories in a parquet file: what reading, writing and reducing cost, in CPU seconds of one process.

`python benches/corpora.py --mb 2500` generates so much JSON in a temporary folder, compares the answers with those of a
plain loop over the rows, and prints the table of docs/corpora.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import histories
import recede
from formatting import markdown, measured_here
from recede.arrow import Reducer, Stats

BUDGET = 32_000  # tokens
_LARGEST_POOL, _ROW_GROUP_BYTES = 200, 64 << 20
_POISON = (b"[" * 1_100, b'[{"role":"user"', b'[{"from":"human","value":"hi"}]')
_MOST_DICTS = 400


class _Corpus(NamedTuple):
    path: Path
    json_bytes: int
    rows: int


def generate(path: Path, megabytes: float, seed: int = 0) -> _Corpus:
    """Histories of 4 to 900 messages; the median row has 120 KB, the mean 190 KB, and a few are no histories."""
    rng = random.Random(seed)
    count = min(_LARGEST_POOL, 5 + int(megabytes))
    lengths = [min(900, max(4, int(rng.lognormvariate(4.2, 0.9)))) for _ in range(count)]
    pool = [histories.serialized(length, seed=number) for number, length in enumerate(lengths)]
    schema = pa.schema([("id", pa.string()), ("model", pa.string()), ("messages", pa.string())])
    total = rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while total < megabytes * 1e6:
            texts: list[bytes] = []
            while sum(map(len, texts)) < min(_ROW_GROUP_BYTES, megabytes * 1e6 - total):
                texts.append(rng.choice(_POISON) if rng.random() < 0.001 else rng.choice(pool))
            ids = [f"session-{rows + number}" for number in range(len(texts))]
            models = rng.choices(("gpt-5.4", "claude-sonnet-4-6", None), k=len(texts))
            columns = [pa.array(ids), pa.array(models, pa.string()), pa.array(texts, pa.binary()).cast(pa.string())]
            writer.write_table(pa.table(columns, schema=schema))
            total, rows = total + sum(map(len, texts)), rows + len(texts)
    return _Corpus(path, total, rows)


def batches(corpus: _Corpus) -> Iterator[Any]:
    """One row group after the other."""
    with pq.ParquetFile(corpus.path, pre_buffer=False) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, use_threads=False)


def written(tables: Iterator[Any], path: Path) -> None:
    """Writes the tables as they come."""
    writer = None
    for one in tables:
        writer = writer or pq.ParquetWriter(path, one.schema, compression="zstd")
        writer.write_table(one)
    if writer is not None:
        writer.close()


def digest(pairs: Iterator[tuple[str, bytes | None]]) -> str:
    """A hash over all views by id."""
    total = hashlib.sha256()
    for name, view in sorted(pairs, key=lambda pair: pair[0]):
        total.update(name.encode() + b"\0" + (b"null" if view is None else view) + b"\n")
    return total.hexdigest()


def plain_loop(corpus: _Corpus) -> Iterator[tuple[str, bytes | None]]:
    """The views of the rows by `reduce`, one at a time."""
    for one in batches(corpus):
        for name, text in zip(one["id"].to_pylist(), one["messages"].cast(pa.binary()).to_pylist(), strict=True):
            try:
                result = recede.reduce(text, max_input_tokens=BUDGET)
                yield name, result.json if b'"role"' in text else None  # of other rows nothing is recognized
            except recede.TranscriptError:
                yield name, None


def views(tables: Iterator[Any]) -> Iterator[tuple[str, bytes | None]]:
    """The views of reduced tables."""
    for one in tables:
        yield from zip(one["id"].to_pylist(), one["messages"].cast(pa.large_binary()).to_pylist(), strict=True)


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of all threads."""
    start = process_time()
    work()
    return process_time() - start


def exhaust(items: Iterator[Any]) -> None:
    """Takes all, one by one."""
    for _ in items:
        pass


def _through_dicts(texts: list[str]) -> None:
    for text in texts:
        try:
            json.dumps(recede.reduce(json.loads(text), max_input_tokens=BUDGET).messages)
        except (recede.TranscriptError, ValueError, RecursionError):
            continue


def measure(corpus: _Corpus, folder: Path, threads: int) -> list[tuple[str, float, float, float]]:
    """(what, CPU time as a multiple of reading as much, CPU s, GB of JSON a CPU s), after the answers were compared."""
    reducer = Reducer(max_input_tokens=BUDGET, threads=threads)
    out = folder / "reduced.parquet"
    written(map(reducer, batches(corpus)), out)
    if digest(views(batches(corpus._replace(path=out)))) != digest(plain_loop(corpus)):
        raise SystemExit("the views of recede.arrow are not those of a plain loop")
    found: list[tuple[str, float, float, float]] = []

    def note(what: str, spent: float, size: float = corpus.json_bytes) -> float:
        found.append((what, spent / size * corpus.json_bytes / read, spent, size / 1e9 / spent))
        return spent

    kernel = stored = 0.0
    read = seconds(lambda: exhaust(batches(corpus)))
    for one in batches(corpus):
        # Cast beforehand: the types of the column are not the kernel.
        texts = one.set_column(2, "messages", one["messages"].combine_chunks().cast(pa.large_binary()))
        reduced: list[Any] = []
        kernel += seconds(lambda texts=texts, reduced=reduced: reduced.append(reducer(texts)))
        stored += seconds(
            lambda reduced=reduced: pq.write_table(reduced[0], folder / "part.parquet", compression="zstd")
        )
    note("read", read)
    note("read, and write what was reduced", read + stored)
    note("reduce, in memory", kernel)
    local = note("read, reduce, write", seconds(lambda: written(map(reducer, batches(corpus)), out)))
    found.append(("the last / the two before", local / (read + stored + kernel), 0.0, 0.0))
    note("read, stats", seconds(lambda: exhaust(map(Stats(threads=threads), batches(corpus)))))
    note("a plain loop of `reduce`, nothing written", seconds(lambda: exhaust(plain_loop(corpus))))
    first = next(batches(corpus))
    sample = first["messages"].slice(0, _MOST_DICTS).to_pylist()
    note(
        "through dicts (json.loads, reduce, json.dumps)", seconds(lambda: _through_dicts(sample)), sum(map(len, sample))
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=100, help="megabytes of JSON (default: 100)")
    parser.add_argument("--threads", type=int, default=1, help="threads of an operator (default: 1)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = generate(Path(folder, "corpus.parquet"), given.mb)
        stored = corpus.path.stat().st_size
        sizes = f"{corpus.json_bytes / 1e6:,.0f} MB of JSON, {stored / 1e6:,.0f} MB of parquet (zstd)"
        rows = [
            [what, f"{share:.2f}", f"{spent:.2f}" if spent else "", f"{rate:.2f}" if rate else ""]
            for what, share, spent, rate in measure(corpus, Path(folder), given.threads)
        ]
    peak = f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB"
    print(f"{measured_here()} {corpus.rows:,} rows, {sizes}; {peak}.\n")
    print(markdown(["", "/ read", "CPU s", "GB of JSON a CPU s"], rows))


if __name__ == "__main__":
    main()
