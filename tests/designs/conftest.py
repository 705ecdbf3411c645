"""What the rows of docs/coming-from.md are typed with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support import ROOT


@pytest.fixture
def read_page() -> Callable[[str], str]:
    """The text of a page of docs."""
    return lambda name: (ROOT / "docs" / name).read_text()
