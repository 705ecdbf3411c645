"""Which rows of docs/coming-from.md a test types; tests/contract/test_coming_from_rows.py holds that no row is without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])

TYPED: dict[str, str] = {}
"""The first cell of each row that a test types -> the name of the test."""


def row(*designs: str) -> Callable[[Test], Test]:
    """Mark a test of these rows, named by their first cells."""

    def mark(test: Test) -> Test:
        for design in designs:
            assert design not in TYPED, design
            TYPED[design] = test.__name__
        return test

    return mark
