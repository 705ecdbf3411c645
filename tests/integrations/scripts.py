"""The script of the played server for a session."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sessions import LAST, Turn

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import Answer, Failure


def script_of(turns: list[Turn], *, is_failing: bool = False) -> list[Any]:
    """An answer for each turn and the last one; before each a failure, if it is failing."""
    script: list[Any] = []
    for turn in [*turns, LAST]:
        script += [Failure(500, headers={"retry-after-ms": "1"})] * is_failing
        said = [{"type": "text", "text": turn.said}] if turn.said else []
        calls = [{"type": "tool_use", "id": one.id, "name": one.name, "input": one.args} for one in turn.calls]
        script.append(Answer([*said, *calls], "tool_use" if calls else "end_turn"))
    return script
