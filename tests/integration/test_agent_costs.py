"""Real agents at the makers of their settings: what masking costs of raw, in all and at the worst moment.

Run by `make test-agents`, which prints the table of docs/proxy.md; where the agents come from says test_agents.py.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

from test_agent_addresses import PATH, SETUPS, program, run

from played import LAST, TURNS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

# Set-ups of test_agent_addresses.py, and what lets each agent call its tool.
TRIED = {
    "claude, nothing": ("--allowedTools", "Bash"),
    "claude, settings": ("--allowedTools", "Bash"),
    "claude, environment": ("--allowedTools", "Bash"),
    "codex, nothing": (),
    "codex, model_providers": (),
    "gemini, .env": (),
    "opencode, nothing": (),
    "opencode, built-in provider": (),
    "qwen, nothing": ("--yolo",),
    "qwen, environment": ("--yolo",),
    "pi": (),
    "kimi": (),
    "grok": ("--always-approve",),
    "vibe": ("--auto-approve",),
    "cline": (),
}
ROWS: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def table(pytestconfig: pytest.Config) -> Iterator[None]:
    """Print the table of docs/proxy.md, after the last test."""
    yield
    with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\n\n| agent | host | model | cost | worst moment |\n|---|---|---|--:|--:|", *ROWS, sep="\n")


def _version(name: str) -> str:
    environment = {**os.environ, "PATH": PATH}
    said = subprocess.run([program(name), "--version"], capture_output=True, text=True, timeout=60, env=environment)
    found = re.search(r"\d+\.\d+\.\d+", said.stdout)
    return found[0] if found else ""


@pytest.mark.parametrize("name", TRIED)
def test_60_calls_at_a_maker_cost_little_more_than_raw_at_worst(name: str, tmp_path: Path) -> None:
    setup = SETUPS[name]
    setup = setup._replace(command=(*setup.command, *TRIED[name]))
    raw, sent = (run(setup, tmp_path / folder, options, TURNS) for folder, options in (("raw_", None), ("sent", ())))
    for one in (raw, sent):
        assert one.code == 0 and LAST in one.said and one.model.refused == [], one.said[-2_000:]
    assert TURNS < len(raw.model.costs) == len(sent.model.costs) < TURNS + 10
    sums = [list(accumulate(one.model.costs)) for one in (sent, raw)]
    worst = max(with_proxy / without for with_proxy, without in zip(*sums, strict=True))
    cost = sums[0][-1] / sums[1][-1]
    body = raw.model.bodies[-1]
    model = body.get("model") or raw.model.requests[-1].target.rpartition("/")[2].partition(":")[0]
    agent = setup.command[0]
    ROWS.append(f"| {agent} {_version(agent)} | `{setup.host}` | `{model}` | {cost:.2f} | {worst:.2f} |")
    # Where no mask pays, times and ids in both runs differ. Less than half would be raw requests without a cache.
    assert 0.5 < cost <= 1.001 and worst <= 1.1 + 0.01
