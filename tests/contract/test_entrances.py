"""What Python can call of the core, read off the sources: no panic gets through, and no lock waits for Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import ROOT

FILES = sorted((ROOT / "src" / "py").rglob("*.rs"))
# A block of methods, or one function: its attribute, up to the brace that closes it at the same indentation.
_ENTRANCES = re.compile(r"^#\[(pymethods|pyfunction|pymodule)(?:\(.*\))?\]\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r"^( *)fn (\w+)(.*?)^\1\}$", re.MULTILINE | re.DOTALL)


def entrances(path: Path) -> list[tuple[str, str]]:
    """The name and the text of each function that Python can call."""
    found = [text + "}" for _, text in _ENTRANCES.findall(path.read_text())]
    return [(name, text) for block in found for _, name, text in _FUNCTION.findall(block)]


def test_there_are_entrances() -> None:
    names = [name for path in FILES for name, _ in entrances(path)]
    assert {"reduce", "reduce_json", "append", "chunks", "append_turn", "_core", "__len__", "new"} <= set(names)
    marked = sum(len(re.findall(r"#\[py(?:function|module)\b", path.read_text())) for path in FILES)
    assert len(names) > marked > 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_turns_a_panic_into_an_error(path: Path) -> None:
    """All of its body is in `guarded` (src/py/guard.rs): a panic in Python is no `Exception`."""
    assert [name for name, text in entrances(path) if not is_guarded(text.partition("{\n")[2].strip())] == []


def is_guarded(body: str) -> bool:
    """Whether it is one call of `guarded`."""
    depth = 0
    for place, character in enumerate(body):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and character == ")":
            return body.startswith("guarded(|| ") and place + 1 == len(body)
    return False


@pytest.mark.parametrize(
    "body",
    ["", "self.len()", "guarded(|| Ok(1))?;\nOk(self.len())", "let x = 1;\nguarded(|| {\n Ok(x)\n})", "guarded(||"],
)
def test_what_is_not_guarded_is_seen(body: str) -> None:
    assert not is_guarded(body)
    assert is_guarded("guarded(|| {\n    Ok((1, self.len()))\n})")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_none_waits_for_a_lock_that_does_not_know_python(path: Path) -> None:
    """Python may run while a value is made, and another thread that waits for that would keep Python from it."""
    assert not re.search(r"\b(OnceLock|LazyLock|LazyCell|Once)\b", path.read_text().replace("PyOnceLock", ""))
