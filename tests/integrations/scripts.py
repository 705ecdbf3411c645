"""The script of the played server for a session, and what its address says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sessions import LAST, Turn

from recede import Provider
from recede.costs import PRESETS

sys.path.append(str(Path(__file__).parents[1]))

from provider_server import Answer, Failure

_PRICES = PRESETS["openai"]
# Of a model of no known name at an address of this machine.
DEFAULTS = {
    "provider": Provider.of("openai")._replace(read=_PRICES.cached / _PRICES.input, write=_PRICES.write / _PRICES.input)
}


def script_of(turns: list[Turn], *, failing: int | None = None) -> list[Any]:
    """An answer for each turn and the last one; before each a failure of this status, if there is one."""
    script: list[Any] = []
    for turn in [*turns, LAST]:
        if failing is not None:
            script.append(Failure(failing, headers={"retry-after-ms": "1"}))
        said = [{"type": "text", "text": turn.said}] if turn.said else []
        calls = [{"type": "tool_use", "id": one.id, "name": one.name, "input": one.args} for one in turn.calls]
        script.append(Answer([*said, *calls], "tool_use" if calls else "end_turn"))
    return script
