"""Pages that say how to install recede are true from the first release on, and until then say what else to type."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import ROOT

# Delete this test with the release, and the line from each page: `grep -rl "Until the first release" README.md docs`.
UNTIL = "Until the first release: `pip install "
_INSTALLS = re.compile(r"pip install '?\"?recede\b")
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if _INSTALLS.search(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_an_install_page_says_once_what_to_type_until_the_release(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count(UNTIL) == 1
    assert "until there is a release" not in text.lower()


def test_pages_without_it_do_not_say_how_to_install() -> None:
    others = {page for page in ROOT.glob("docs/**/*.md") if UNTIL in page.read_text(encoding="utf-8")} - set(PAGES)
    assert len(PAGES) >= 9 and others == set()
