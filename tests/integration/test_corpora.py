"""The listings of docs/corpora.md: each engine has the views of a plain loop.

Engines that are not installed are skipped; `make test-engines` runs each in an environment of its own, for the engine
that `RECEDE_LISTING` names.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import recede
from support import ROOT, assistant, call, result, user

PAGE = ROOT / "docs" / "corpora.md"
LISTINGS = dict(re.findall(r"^### (\w+)\n\n```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
MODULES = {"pyarrow": "pyarrow", "Polars": "polars", "DuckDB": "duckdb", "Spark": "pyspark", "Ray": "ray"}
ONLY = os.environ.get("RECEDE_LISTING")
DEEP = '[{"role":"user","content":"x","deep":' + "[" * 1_100 + "]" * 1_100 + "}]"
BAD = ('[{"role"', '[{"from":"human","value":"hi"}]', DEEP, None)


def rows() -> list[str | None]:
    found: list[str | None] = []
    for number in range(40):
        steps = [(call(str(n)), result(str(n), f"é{number} " * 400)) for n in range(number % 17 + 1)]
        found.append(
            json.dumps([user("Fix it."), *(message for step in steps for message in step), assistant("Done.")])
        )
        found += BAD[number % 4 : number % 4 + 1]
    return found


def digest(views: dict[int, str | None]) -> str:
    return hashlib.sha256(json.dumps(sorted(views.items())).encode()).hexdigest()


def plain_loop(row: str | None) -> str | None:
    try:
        done = recede.reduce(row or "", max_input_tokens=8_000)
        return done.json.decode() if '"role"' in (row or "") else None  # of other rows nothing is recognized
    except recede.TranscriptError:
        return None


def test_the_page_has_a_listing_for_each_engine() -> None:
    assert list(LISTINGS) == list(MODULES)


def test_the_model_on_the_page_is_what_its_script_prints() -> None:
    script = [sys.executable, str(ROOT / "benches" / "cluster.py")]
    printed = subprocess.run(script, text=True, capture_output=True, check=True).stdout
    assert printed in PAGE.read_text()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine_name", MODULES)
def test_a_listing_has_the_views_of_a_plain_loop(engine_name: str, tmp_path: Path) -> None:
    if ONLY not in (None, engine_name):
        pytest.skip(f"RECEDE_LISTING is {ONLY}")
    if ONLY is None and importlib.util.find_spec(MODULES[engine_name]) is None:
        pytest.skip(f"{engine_name} is not installed: make test-engines")
    texts = rows()
    (tmp_path / "sessions").mkdir()
    for part in range(3):
        ids = range(part, len(texts), 3)
        table = pa.table({"id": pa.array(ids, pa.int64()), "messages": pa.array([texts[n] for n in ids])})
        pq.write_table(table, tmp_path / "sessions" / f"{part}.parquet", row_group_size=7)
    (tmp_path / "listing.py").write_text(LISTINGS[engine_name])
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "listing.py"], cwd=tmp_path, env=environment, text=True, capture_output=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    reduced = ds.dataset(tmp_path / "reduced", format="parquet").to_table()
    views = dict(zip(reduced["id"].to_pylist(), reduced["messages"].to_pylist(), strict=True))
    assert len(views) == reduced.num_rows == len(texts)
    assert digest(views) == digest({number: plain_loop(text) for number, text in enumerate(texts)})
    assert set(reduced["recede_error_kind"].to_pylist()) == {None, "eof", "empty", "depth"}


def test_the_example_reduces_each_file_of_parquet(tmp_path: Path) -> None:
    texts = rows()
    paths = [tmp_path / f"{part}.parquet" for part in range(2)]
    for part, path in enumerate(paths):
        pq.write_table(pa.table({"id": range(part, len(texts), 2), "messages": texts[part::2]}), path)
    (tmp_path / "out").mkdir()
    script = [sys.executable, str(ROOT / "examples" / "reduce_parquet.py"), "out", *map(str, paths)]
    done = subprocess.run(script, cwd=tmp_path, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    for part in range(2):
        reduced = pq.read_table(tmp_path / "out" / f"{part}.parquet")
        for number, view in zip(reduced["id"].to_pylist(), reduced["messages"].to_pylist(), strict=True):
            text = texts[number]
            reduced_json = None if text is None or text in BAD else recede.reduce(text, max_input_tokens=32_000).json
            assert view == (reduced_json and reduced_json.decode())
