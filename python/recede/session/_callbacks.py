"""The caller's functions: token counter, summarizer and `on_move`. They may read the `History` but not change it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from recede._bodies import loads
from recede._summarizer import Asking
from recede.reduction._counting import costs_of, counted, cut_costs
from recede.reduction._on_move import report_move
from recede.session._options import HistoryOptions
from recede.session._stats import stats_of

if TYPE_CHECKING:
    from recede._report import BoundaryMove

__all__ = ["Callbacks"]

_log = logging.getLogger("recede")


_AWAIT = "await history.aview() before each request"


class Callbacks:
    """The functions, and what became of the calls."""

    def __init__(self, options: HistoryOptions, on_move: Any) -> None:
        self._options = options
        self._on_move = on_move
        self.is_loading = False  # the moves up to the next view were reported before the session was stored
        self.is_running = False  # one of them, or a summary is awaited
        self._said = ""
        self.asking = None if options.summarizer is None else Asking(options.summarizer, _AWAIT)

    @property
    def summary_failures(self) -> int:
        """How many summaries have failed."""
        return 0 if self.asking is None else self.asking.failures

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call something that calls one of them."""
        self.is_running = True
        try:
            return function(*arguments)
        finally:
            self.is_running = False

    def refuse(self) -> None:
        """Refuse what they may not do. They run in the thread that holds the lock, which is reentrant."""
        if self.is_running:
            raise RuntimeError(
                "the token_counter or the summarizer of this history is at work: until it returns, messages may be "
                "read, but none appended, and no view or figures asked for"
            )

    def costs(self, session: Any, data: bytes, surrogates: bool) -> tuple[Any, Any]:
        """The costs of a message to be appended, if tokens are counted, and of its results as a limit cuts them."""
        if not self._options.counts:
            return None, None
        sent = session.texts_to_count(data, surrogates)  # validates them for json
        engine = self._options.engine
        # Whole: whether a result is exempt from cuts, the session knows, which has its call.
        (own,) = engine.texts([loads(data)], self._options.policy, whole=True)
        shown = [
            one._replace(text=one.text if cut is None else cut, masked=masked)
            for one, (cut, masked) in zip(own.observations, sent, strict=True)
        ]
        texts = [own._replace(observations=shown)]
        (cost,), observations = self._called(costs_of, texts, self._options.counter, self._options.image_chars)
        return (cost, observations), [*self._called(cut_costs, [own], self._options.counter).items()]

    def report_moves(self, moves: list[BoundaryMove]) -> None:
        """Report new moves."""
        if not self.is_loading:
            for move in moves:
                self._called(report_move, move, self._on_move)

    def report_view(self, session: Any) -> None:
        """Say in the debug log what the view masks, or why it masks nothing, if that is new."""
        if _log.isEnabledFor(logging.DEBUG):
            said = stats_of(session, self.summary_failures).reason
            if said != self._said:
                _log.debug("a view: %s", said)
            self._said = said

    def counted(self, texts: list[str]) -> list[tuple[str, int]]:
        """The cost of each text."""
        found: list[tuple[str, int]] = self._called(counted, texts, self._options.counter)
        return found
