"""docs/operating.md has each log line and each metric."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from support import ROOT

PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
_PLACEHOLDER = re.compile(r"%[\d.]*[sdf]")
_LEAST_LETTERS = 15  # with fewer of its own, a line is one of the HTTP server, which the page shows by example


def log_lines() -> Iterator[str]:
    """The texts that the package logs, without their figures."""
    for path in (ROOT / "python" / "recede").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            logger, text = node.func.value, node.args[0]
            is_log = isinstance(logger, ast.Name) and logger.id == "_log"
            if is_log and isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield _PLACEHOLDER.sub("…", text.value)


def test_each_log_line_is_on_the_page() -> None:
    lines = {line for line in log_lines() if sum(map(str.isalpha, line)) >= _LEAST_LETTERS}
    assert len(lines) >= 10
    shown = PAGE.replace("`", "")
    # A line may be cut after the figures that identify it, and begin with what the page leaves out.
    missing = [line for line in lines if line.partition(": recede.")[0].lstrip("… ") not in shown]
    assert missing == [], "add them to the table of log lines in docs/operating.md"


def test_each_metric_is_on_the_page() -> None:
    pytest.importorskip("aiohttp")
    from recede.proxy._totals import Totals

    metrics = re.findall(r"^# TYPE recede_(\w+) (counter|gauge)$", Totals().metrics(), re.MULTILINE)
    table = PAGE.partition("## Metrics of the proxy\n")[2].partition("\n## ")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert named == {name.removesuffix("_total") for name, _ in metrics}
    assert {name for name, kind in metrics if kind == "gauge"} == {"saved_tokens", "saved_usd"}
    for name in re.findall(r"`recede_(\w+)`", PAGE.partition("## What to alert at\n")[2]):
        assert name in dict(metrics)
