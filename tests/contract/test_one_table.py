"""What is known of providers stands in one table: no other source has a price, minimum, lifetime or number of marks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from recede._models import MODEL_ROWS
from recede.providers import PROVIDERS
from support import ROOT

TABLE = {"providers.py", "_models.py"}
_KNOWN = [one for one in PROVIDERS.values() if one.cache in ("marks", "prefix")]
_OF_CACHE = r"cached|ttl_|prefix|breakpoint|anthropic|openai|gemini|bedrock"
# Numbers of the table, and the words with which they would be facts about a provider.
FACTS: list[tuple[set[float], str]] = [
    ({one.min_tokens for one in [*_KNOWN, *MODEL_ROWS.values()]} - {0}, f"token|{_OF_CACHE}"),
    ({one.ttl_seconds for one in _KNOWN}, f"seconds|minute|hour|live|{_OF_CACHE}"),
    ({one.step_tokens for one in _KNOWN} - {0}, f"step|token|{_OF_CACHE}"),
    ({one.lookback_blocks for one in _KNOWN}, r"blocks|lookback"),
    ({one.most_marks for one in _KNOWN}, r"marks"),
    ({0.1, 1.25}, f"read|write|{_OF_CACHE}"),
]
_NUMBER = re.compile(r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?![\w.])")
_CHECKED = [path for path in sorted((ROOT / "python" / "recede").rglob("*.py")) if path.name not in TABLE]
_CHECKED += [path for path in sorted((ROOT / "src").rglob("*.rs")) if path.parent.name != "store"]  # pages of a file


def is_fact(number: float, text: str) -> bool:
    text = text.replace("CHARS_PER_TOKEN", "")
    return any(number in numbers and re.search(f"(?i){words}", text) for numbers, words in FACTS)


def in_python(source: str) -> Iterator[str]:
    tree, lines = ast.parse(source), source.splitlines()
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        for node in ast.walk(statement):
            if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
                continue
            text = f"{lines[statement.lineno - 1]} {lines[node.lineno - 1]}".partition("#")[0]
            if is_fact(float(str(node.value)), text):
                yield f"{node.lineno}: {lines[node.lineno - 1].strip()}"


def in_rust(source: str) -> Iterator[str]:
    for place, line in enumerate(source.splitlines(), start=1):
        code = line.partition("//")[0]
        if any(is_fact(float(number.replace("_", "")), code) for number in _NUMBER.findall(code)):
            yield f"{place}: {line.strip()}"


def found(path: Path) -> list[str]:
    source = path.read_text(encoding="utf-8")
    return sorted(set(in_python(source) if path.suffix == ".py" else in_rust(source)))


@pytest.mark.parametrize("path", _CHECKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_fact_about_a_provider_stands_elsewhere(path: Path) -> None:
    assert not found(path), "read it from recede.providers"


@pytest.mark.parametrize(
    "line",
    [
        "_MIN_CACHED_TOKENS = 2_048",
        "ttl_seconds: float = 300.0",
        "_MINUTES, _HOUR = 300.0, 3_600.0",
        '_MIN_CHARS = {"prefix": 4 * 1_024}',
        "_STEP_REST_CHARS = 4 * 128 - 1",
        "LOOKBACK_BLOCKS = 20",
        "_MOST_MARKS = 4",
        '"openai": Cache(step=128)',
        "write = input_price * 1.25",
        "cache_read = 0.1",
    ],
)
def test_such_a_fact_is_found(line: str) -> None:
    assert list(in_python(f"{{{line}}}" if line.startswith('"') else line))


@pytest.mark.parametrize(
    "line",
    [
        "pub const MOST_MARKS: usize = 4;",
        "CacheModel::Prefix => CHARS_PER_TOKEN * 1_024,",
        "const STEP_REST_CHARS: usize = CHARS_PER_TOKEN * 128 - 1;",
        "pub(super) const LOOKBACK_BLOCKS: usize = 20;",
    ],
)
def test_such_a_fact_of_the_core_is_found(line: str) -> None:
    assert list(in_rust(line))


def test_the_page_for_users_has_each_provider_with_its_prices() -> None:
    page = (ROOT / "docs" / "caching.md").read_text(encoding="utf-8").partition("\n## The providers\n")[2]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith('| `"')
    ]
    shown = {row[0].strip('`"'): (float(row[2]), float(row[3])) for row in rows}
    assert shown == {name: (one.write, one.read) for name, one in PROVIDERS.items()}
