"""The command that measures the adapters runs, and compares the views first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from support import ROOT

# Framework -> the modules that measuring it needs.
NEEDS = {
    "langchain": ["langchain"],
    "openai_agents": ["agents.extensions.tool_output_trimmer"],
    "pydantic_ai": ["pydantic_ai", "pydantic_ai_harness"],
}
ONLY = os.environ.get("RECEDE_INTEGRATION")


def is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


# The newest releases are measured: the oldest have other constructors.
IS_MEASURED = os.environ.get("RECEDE_RELEASE") != "oldest"
HERE = [
    name
    for name, needs in NEEDS.items()
    if IS_MEASURED and (ONLY is None or name == ONLY) and all(map(is_there, needs))
]


@pytest.mark.parametrize("name", HERE)
def test_the_adapter_changes_fewer_prefixes_and_costs_less_than_the_framework(name: str) -> None:
    command = [sys.executable, ROOT / "benches/adapters.py", "--here", name, "--turns", "40"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, _, _, hooks, changes, costs = json.loads(done.stdout.splitlines()[-1])
    assert hooks.keys() == {"same", "copied", "loaded", "reducer"}
    assert changes["alone"] == 0 < changes["recede"] < 10
    assert costs["recede"] < min(costs["alone"], costs["reducer"])
