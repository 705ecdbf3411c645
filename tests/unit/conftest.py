"""Every unit test runs through both engines."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _both_engines(engine: str) -> str:
    return engine
