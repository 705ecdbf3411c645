"""recede beside its oracle, the same reducer in plain Python: answers first, then times; `make bench ONLY=python`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from claims import Claim, Plan, Section
from contenders import ORACLE, REDUCE
from formatting import markdown, time
from measuring import in_child

_SIZES = (100, 1_000, 10_000)
_WAYS: dict[str, dict[str, Any]] = {
    "dicts": {"job": "from_dicts"},
    "bytes": {"job": "from_bytes", "style": "compact", "names": [REDUCE, ORACLE]},
}


def python(plan: Plan) -> Section:
    """The table, and what pytest-benchmark says of all contenders."""
    rows = []
    for size in _SIZES:
        for form, way in _WAYS.items():
            times = in_child(**way, messages=size, shape="openai", seconds=plan.seconds / 4)["times"]
            ratio = f"{times[ORACLE] / times[REDUCE]:.0f}"
            rows.append([f"{size:,}", form, time(times[REDUCE]), time(times[ORACLE]), ratio])
    table = markdown(["messages", "reduce of", "core", "oracle in plain Python", "times as fast"], rows)
    options = ["-q", "--benchmark-columns=min,rounds", "--benchmark-group-by=param:size", "-k", "not 100000"]
    single = [sys.executable, "-m", "pytest", str(Path(__file__).with_name("test_reduce.py")), *options]
    done = subprocess.run(single, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    claim = Claim("python", "the core against the oracle, at the least", f"{min(int(row[-1]) for row in rows)} times")
    return Section([claim], f"## Core and oracle\n\n{table}\n\n```text\n{done.stdout.strip()}\n```")
