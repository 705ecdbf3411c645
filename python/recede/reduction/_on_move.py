"""Reporting of the moves of a boundary."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from recede._report import BoundaryMove

_log = logging.getLogger("recede")


def report_move(move: BoundaryMove, on_move: Callable[[BoundaryMove], Any] | None) -> None:
    """Log a move, and call the callback with it, whose error is logged: a view is worth more than a report of it."""
    _log.info(
        "the boundary moved at request %s: %s observations masked, %s characters removed, %s written again",
        move.request,
        move.masked_count,
        move.removed_chars,
        move.written_chars,
    )
    if on_move is not None:
        try:
            on_move(move)
        except Exception:
            _log.exception("on_move raised an error")
