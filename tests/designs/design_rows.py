"""Which rows of docs/coming-from.md a test types; tests/contract/test_coming_from_rows.py compares them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])


def row(*designs: str) -> Callable[[Test], Test]:
    """Mark a test of these rows, named by their first cells."""
    return lambda test: test
