"""The tests of frameworks themselves, with the adapter in place: those of the source archive of the installed release.

A test that cannot pass so is in `DIFFERENT`, with its reason. Left out for their time are
the two largest files of the runs of the OpenAI Agents SDK.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest

from support import ROOT

SOURCES = ROOT / ".venvs" / "sources"
SECONDS = 300
IN_PLACE = Path(__file__).parent / "in_place"


class Suite(NamedTuple):
    """What is run of a source archive, and how many of its tests pass at least."""

    package: str
    files: tuple[str, ...]
    passed: int
    options: tuple[str, ...] = ()


SUITES = {
    "langchain": Suite(
        "langchain",
        ("tests/unit_tests/agents/middleware/implementations/test_context_editing.py",),
        passed=2,
        options=("--noconftest", "-o", "addopts="),  # of fixtures and plugins that this file does without
    ),
    "openai_agents": Suite(
        "openai-agents",
        (
            "tests/test_agent_runner_sync.py",
            "tests/test_call_model_input_filter.py",
            "tests/test_call_model_input_filter_unit.py",
            "tests/test_handoff_tool.py",
            "tests/test_run_hooks.py",
            "tests/test_server_conversation_tracker.py",
        ),
        passed=90,
    ),
    "strands": Suite(
        "strands-agents",
        (
            "tests/strands/agent/test_agent.py",
            "tests/strands/agent/test_agent_cancellation.py",
            "tests/strands/agent/test_agent_hooks.py",
            "tests/strands/agent/test_agent_limits.py",
            "tests/strands/agent/test_agent_retry.py",
            "tests/strands/agent/test_agent_structured_output.py",
            "tests/strands/agent/test_snapshot.py",
            "tests/strands/event_loop",
            "tests/strands/middleware",
        ),
        passed=600,
    ),
}
_NO_TRIGGER = "recede masks by the window and the cache, not by a number of tokens"
_SHORT = "a mask removes at least 64 characters, and these results have 65"
DIFFERENT = {
    "test_respects_keep_last_tool_results": _SHORT,
    "test_respects_keep_last_tool_results_async": _SHORT,
    "test_clear_tool_outputs_and_inputs": "recede never changes the arguments of calls",
    "test_clear_tool_outputs_and_inputs_async": "recede never changes the arguments of calls",
    "test_exclude_tools_prevents_clearing": "a result that is shorter than the placeholder stays",
    "test_exclude_tools_prevents_clearing_async": "a result that is shorter than the placeholder stays",
    "test_custom_token_counter_forces_clearing": _NO_TRIGGER,
    "test_custom_token_counter_forces_clearing_async": _NO_TRIGGER,
    "test_custom_token_counter_takes_precedence_over_method": _NO_TRIGGER,
    "test_baggage_attributes_stamped_on_agent_span": "it needs the exporters of OpenTelemetry",
}

ONLY = os.environ.get("RECEDE_INTEGRATION")
IS_ASKED = os.environ.get("RECEDE_RELEASE") == "newest" and importlib.util.find_spec("pytest_asyncio") is not None


def source(package: str) -> Path:
    """The folder of the source archive, which is fetched once."""
    name = f"{package}-{version(package)}"
    folder = SOURCES / name
    if not folder.is_dir():
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        done = subprocess.run([*download, "--dest", SOURCES, name.replace(f"{package}-", f"{package}==")], check=False)
        if done.returncode:
            pytest.skip(f"the source archive of {name} cannot be had")
        (archive,) = SOURCES.glob(f"{package.replace('-', '_')}-{version(package)}.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(SOURCES / "opened", filter="data")
        (SOURCES / "opened" / archive.name.removesuffix(".tar.gz")).rename(folder)
    return folder


@pytest.mark.timeout(SECONDS + 200)
@pytest.mark.parametrize("name", [name for name in SUITES if IS_ASKED and name == ONLY])
def test_the_own_tests_of_a_framework_pass_with_the_adapter_in_place(name: str) -> None:
    suite = SUITES[name]
    different = [part for test in DIFFERENT for part in ("--deselect", f"{suite.files[0]}::{test}")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", f"{name}_in_place", *different]
    done = subprocess.run(
        [*command, "-o", "asyncio_mode=auto", *suite.options, *suite.files],
        cwd=source(suite.package),
        env={**os.environ, "PYTHONPATH": str(IN_PLACE)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-1_000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) >= suite.passed
