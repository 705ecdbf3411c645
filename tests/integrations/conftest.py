"""The fixture `case`: each framework that is installed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from frameworks import LIMITS, installed


@pytest.fixture(params=installed())
def case(request: pytest.FixtureRequest) -> Any:
    limit = LIMITS.get((request.param, request.node.originalname))
    if limit is not None:
        pytest.skip(limit)
    module = importlib.import_module(f"case_{request.param}")
    options = getattr(request.node, "callspec", None)
    named = options.params.get("options", {}).keys() if options else set()
    if not named <= getattr(module, "TAKES", named):
        pytest.skip(f"it takes {', '.join(module.TAKES)} alone")
    return module
