"""Every unit test of a rule runs through both engines; `tests/conftest.py` names what has no oracle."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _both_engines(engine: str) -> str:
    return engine
