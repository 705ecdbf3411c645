"""Choosing the engine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import recede
from support import engine_module


@pytest.fixture
def engine() -> str:
    """Processes of their own choose their engine themselves."""
    return recede.reduction.ENGINE


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "RECEDE_ENGINE"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**clean, **environment})


SHOW = "import recede; print(recede.reduction.ENGINE, recede._engine.engine.__name__)"


def test_the_mirror_is_chosen_by_the_environment() -> None:
    assert run(SHOW, RECEDE_ENGINE="python").stdout.split() == ["python", "recede._pure"]


def test_the_core_is_the_default() -> None:
    engine_module("rust")
    for environment in ({}, {"RECEDE_ENGINE": "rust"}, {"RECEDE_ENGINE": ""}):
        assert run(SHOW, **environment).stdout.split() == ["rust", "recede._core"]


def test_another_name_is_refused() -> None:
    done = run(SHOW, RECEDE_ENGINE="ruby")
    assert done.returncode == 1
    assert "RECEDE_ENGINE is 'ruby'; it can be 'rust' (the default) or 'python'" in done.stderr


def test_a_scanner_that_is_not_there_is_refused() -> None:
    engine_module("rust")
    for name in ("ruby", "WORD", " word", "word ", "\udcff"):
        done = run(SHOW, RECEDE_SCANNER=name)
        assert done.returncode == 1 and not done.stdout
        assert f"ImportError: RECEDE_SCANNER is {name!r}; on this CPU it can be 'word'" in done.stderr
        assert run(SHOW, RECEDE_SCANNER=name, RECEDE_ENGINE="python").stdout.split()[0] == "python"
    for name in ("", "word"):
        assert run(SHOW, RECEDE_SCANNER=name).stdout.split()[0] == "rust"


def test_who_asked_for_the_core_gets_it_or_an_error_that_says_how_to_build_it() -> None:
    hidden = "import sys; sys.modules['recede._core'] = None\n" + SHOW
    for environment in ({}, {"RECEDE_ENGINE": "rust"}):
        done = run(hidden, **environment)
        assert done.returncode == 1
        assert "ImportError: recede's Rust core is not built" in done.stderr
        assert "make build" in done.stderr
    assert run(hidden, RECEDE_ENGINE="python").stdout.split() == ["python", "recede._pure"]


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        assert version("recede") == recede.__version__
    except PackageNotFoundError:
        pytest.skip("recede is not installed")
