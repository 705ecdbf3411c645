"""Tests of recorded sessions in a clone that cannot see any: each is skipped, with its reason. `make test-bare`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as Tree
from pathlib import Path

import pytest
from newcomers import clone, environment

from recede import _core

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_tests_of_sessions_are_skipped_where_there_are_none(tmp_path: Path) -> None:
    """Slow ones, too. Its Python code is that of the clone, with the core that is built here."""
    checkout, report = clone(tmp_path / "alone"), tmp_path / "report.xml"
    shutil.copy2(_core.__file__, checkout / "python/recede")
    tests = sorted(checkout.glob("tests/*/test_*.py"))
    readers = [path for path in tests if "\nfrom shared_data import" in path.read_text("utf-8")]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--junitxml", report]
    options = {"cwd": checkout, "env": environment(tmp_path / "home", PYTHONPATH=str(checkout / "python"))}
    done = subprocess.run([*command, *readers], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    reason = re.escape(str(checkout.parent / "shared")) + r"/\S+ is not there"
    skipped = {path.stem: 0 for path in readers}
    for case in Tree.parse(report).iter("testcase"):
        for one in case.iter("skipped"):
            assert re.search(reason, one.get("message", "")), case.attrib
            skipped[case.get("classname", "").rpartition(".")[2]] += 1
    assert readers and all(skipped.values()), skipped
