"""The page of each adapter, and its example, in an environment that has its framework."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest
from frameworks import is_installed

from support import ROOT

# Framework -> its module.
PAGES = {
    "agent_framework": "agent_framework",
    "anthropic": "anthropic",
    "crewai": "crewai",
    "google_adk": "google.adk",
    "http": "openai",
    "inspect_ai": "inspect_ai",
    "langchain": "langchain",
    "litellm": "litellm",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "strands": "strands",
}
IMPORTS_NOTHING = {"http"}
ELSEWHERE = {"openai"}  # importing these says where it is
ONLY = os.environ.get("RECEDE_INTEGRATION")
HERE = [name for name, module in PAGES.items() if (ONLY is None or name == ONLY) and is_installed(module)]

pytestmark = pytest.mark.filterwarnings("default")


def test_each_adapter_has_a_page_an_example_an_extra_and_pinned_releases() -> None:
    modules = {path.stem for path in (ROOT / "python/recede/integrations").glob("[a-z]*.py")} - ELSEWHERE
    assert modules == PAGES.keys()
    extras = (ROOT / "pyproject.toml").read_text()
    for name in modules:
        assert (ROOT / "docs/integrations" / f"{name}.md").is_file()
        assert (ROOT / "examples" / f"{name}_agent.py").is_file()
        assert ("\n{} = [".format(name.replace("_", "-")) in extras) != (name in IMPORTS_NOTHING)
        for which in ("newest", "oldest"):
            assert (Path(__file__).parent / "requirements" / f"{name}-{which}.txt").is_file()


def test_the_table_names_the_releases_that_are_pinned() -> None:
    rows = (ROOT / "docs/integrations/README.md").read_text().splitlines()
    for name in PAGES:
        (row,) = [one for one in rows if one.endswith(f"[{name}.md]({name}.md) |")]
        package, releases = row.split(" | ")[-2].split(" ", 1)
        pins = [Path(__file__).parent / "requirements" / f"{name}-{which}.txt" for which in ("oldest", "newest")]
        pinned = [one for path in pins for one in path.read_text().splitlines()]
        tried = [line.partition("==")[2] for line in pinned if line.startswith(f"{package[1:-1]}==")]
        assert releases.split(", ") == [*dict.fromkeys(tried)], name


@pytest.mark.skipif(ONLY is not None, reason="it needs no framework, so it runs once")
def test_the_blocks_of_the_page_for_other_frameworks_run() -> None:
    page = ROOT / "docs/integrations/own.md"
    done = doctest.testfile(str(page), module_relative=False)
    assert done.attempted > 10 and done.failed == 0


@pytest.mark.parametrize("name", HERE)
def test_the_blocks_of_the_page_run(name: str) -> None:
    page = ROOT / "docs/integrations" / f"{name}.md"
    done = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert done.attempted > 5 and done.failed == 0


@pytest.mark.parametrize("name", HERE)
def test_the_example_runs_and_sends_less_than_it_stores(name: str) -> None:
    script = ROOT / "examples" / f"{name}_agent.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()[-2:]  # a framework may say something of its own first
    sent, stored = [int(line.split(", ")[1].split()[0].replace(",", "")) for line in lines]
    assert sent < stored / 2
