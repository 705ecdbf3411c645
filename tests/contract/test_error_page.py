"""docs/errors.md has each kind of error in the words that users see."""

from __future__ import annotations

import pytest

from recede._errors import _STORE_WORDS, _WORDS
from support import ROOT


@pytest.mark.parametrize(("heading", "words"), [("TranscriptError", _WORDS), ("StoreError", _STORE_WORDS)])
def test_the_page_of_errors_has_each_kind(heading: str, words: dict[str, tuple[str, str]]) -> None:
    page = (
        (ROOT / "docs" / "errors.md").read_text(encoding="utf-8").split(f"## Kinds of `{heading}`")[1].split("\n## ")[0]
    )
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{kind}` | {wrong} | {advice} |".replace("\\", "\\\\") for kind, (wrong, advice) in words.items()
    ]
