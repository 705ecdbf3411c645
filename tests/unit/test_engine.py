"""Loading the core."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import recede


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )


SHOW = "import recede; print(recede._engine.engine.__name__)"


def test_a_scanner_that_is_not_there_is_refused() -> None:
    for name in ("ruby", "WORD", " word", "word ", "\udcff"):
        done = run(SHOW, RECEDE_SCANNER=name)
        assert done.returncode == 1 and not done.stdout
        assert f"ImportError: RECEDE_SCANNER is {name!r}; on this CPU it can be 'word'" in done.stderr
    for name in ("", "word"):
        assert run(SHOW, RECEDE_SCANNER=name).stdout.split() == ["recede._core"]


def test_a_missing_core_is_an_error_that_says_how_to_build_it() -> None:
    done = run("import sys; sys.modules['recede._core'] = None\n" + SHOW)
    assert done.returncode == 1
    assert "ImportError: recede's Rust core is not built" in done.stderr
    assert "make build" in done.stderr


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        assert version("recede") == recede.__version__
    except PackageNotFoundError:
        pytest.skip("recede is not installed")
