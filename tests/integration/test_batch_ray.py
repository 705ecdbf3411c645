"""`recede batch --engine ray` on a real Ray: the answers of the local engine, and a job that was killed goes on.

`make test-engines` runs it in an environment with Ray.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-engines")
import pyarrow as pa
import pyarrow.parquet as pq

from support import ROOT, call, result, user

pytestmark = pytest.mark.timeout(600)

ROWS, FILES = 40, 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of histories, two rows of them bad."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        texts = [
            json.dumps(
                [user("Look."), *(one for n in range(id % 9) for one in (call(str(n)), result(str(n), "x" * id)))]
            )
            for id in ids
        ]
        if number == 3:
            texts[5], texts[6] = "[1]", '[{"said": "x"}]'
        table = pa.table({"id": ids, "model": ["a", "b"] * (ROWS // 2), "messages": texts})
        pq.write_table(table, inputs / f"{number:02}.parquet")
    return inputs


def started(*arguments: Any, **variables: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", **variables}
    command = [sys.executable, "-m", "recede.cli", "batch", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True
    )


def run(*arguments: Any) -> str:
    """What it prints; it has bad rows."""
    return printed(started(*arguments))


def printed(child: subprocess.Popen[bytes]) -> str:
    out, err = child.communicate(timeout=500)
    assert child.returncode == 1, err.decode()
    return out.decode()


def wait_for(condition: Callable[[], object], child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 200
    while not condition() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


def wait_for_a_file(out: Path, child: subprocess.Popen[bytes]) -> None:
    wait_for(lambda: list(out.glob("*.parquet")), child)


def rows_of(out: Path) -> list[dict[str, Any]]:
    tables = [pq.read_table(path) for path in out.glob("*.parquet")]
    return sorted((row for table in tables for row in table.to_pylist()), key=lambda row: row["id"])


def test_the_answers_are_those_of_the_local_engine(folder: Path, tmp_path: Path) -> None:
    for command, flags in (("reduce", ["--keep", 2]), ("replay", ["--policy", "sliding:window=3", "--by", "model"])):
        local, ray = tmp_path / f"{command}-local", tmp_path / f"{command}-ray"
        expected = run(command, folder, "-o", local, *flags)
        assert run(command, folder, "-o", ray, *flags, "--engine", "ray", "--id", "id") == expected
        summaries = [json.loads((out / "summary.json").read_bytes()) for out in (local, ray)]
        assert summaries[0] == summaries[1]
        kinds = [
            [json.loads(line)["kind"] for line in (out / "errors.jsonl").read_bytes().splitlines()]
            for out in (local, ray)
        ]
        assert kinds == [["message", "empty"]] * 2
        if command == "reduce":
            assert rows_of(local) == rows_of(ray)
        else:
            usage = [sorted((out / "usage.jsonl").read_bytes().splitlines()) for out in (local, ray)]
            assert usage[0] == usage[1]


@pytest.mark.parametrize("command", ["reduce", "replay"])
def test_a_job_that_was_killed_resumes_with_distinct_ids_and_the_right_sums(
    command: str, folder: Path, tmp_path: Path
) -> None:
    flags = ["--keep", 2] if command == "reduce" else ["--policy", "sliding:window=3"]
    out = tmp_path / "out"
    arguments = [command, folder, "-o", out, *flags, "--engine", "ray", "--id", "id"]
    child = started(*arguments)
    wait_for_a_file(out, child)
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    run(*arguments)
    local = tmp_path / "local"
    run(command, folder, "-o", local, *flags)
    summaries = [json.loads((one / "summary.json").read_bytes()) for one in (local, out)]
    assert summaries[0] == summaries[1]
    rows = rows_of(out)
    keys = [(row["id"], row.get("recede_policy")) for row in rows]
    assert len(keys) == len(set(keys))
    assert {key for key, _ in keys} == set(range(ROWS * FILES))


def test_a_raylet_that_is_removed_by_force_loses_no_row(folder: Path, tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    each = {"num_cpus": 1, "object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**each, "include_dashboard": False})
    out, local = tmp_path / "out", tmp_path / "local"
    flags = ["--id", "id", "--unit-bytes", 1]  # a task for each file
    try:
        other = cluster.add_node(**each)
        cluster.wait_for_nodes()
        child = started("suggest", folder, "-o", out, "--engine", "ray", *flags, RAY_ADDRESS=cluster.address)
        wait_for_a_file(out, child)
        wait_for(lambda: works(other), child)
        before = len(list(out.glob("*.parquet")))
        cluster.remove_node(other, allow_graceful=False)
        assert 0 < before < FILES - 1, "both had work, and more was left"
        printed(child)
    finally:
        cluster.shutdown()
    run("suggest", folder, "-o", local)
    summaries = [json.loads((one / "summary.json").read_bytes()) for one in (local, out)]
    assert summaries[0] == summaries[1]
    keys = [(row["id"], row["recede_policy"]) for row in rows_of(out)]
    assert len(keys) == len(set(keys)) and {key for key, _ in keys} == set(range(ROWS * FILES))


def works(node: Any) -> bool:
    """Whether a worker of the raylet is in the task that replays."""
    raylet = node.all_processes["raylet"][0].process.pid
    children = Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()
    return any(b"MapBatches" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children)
