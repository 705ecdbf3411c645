"""The fixture `case`: each framework that is installed."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from frameworks import LIMITS, installed

from recede._encodable import warn_once

# CrewAI waits for a site of its own, and asks whether to trace at the first run in a home.
os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", CREWAI_TESTING="true")


@pytest.fixture(autouse=True)
def _says_all_anew() -> None:
    warn_once.cache_clear()


@pytest.fixture(params=installed())
def case(request: pytest.FixtureRequest) -> Any:
    limit = LIMITS.get((request.param, request.node.originalname))
    if limit is not None:
        pytest.skip(limit)
    return importlib.import_module(f"case_{request.param}")
