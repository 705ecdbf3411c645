"""A request of a replayed session."""

from __future__ import annotations

from typing import NamedTuple

from recede.costs._prices import Usage
from recede.reduction._kinds import tokens_of


class ReplayedTurn(NamedTuple):
    """A request of a session under one policy, and its answer.

    Attributes:
        messages: the number of messages before it.
        view_chars: characters sent, including the system prompt.
        cached_chars: the part that a prompt cache would serve.
        written_chars: the part that would be written to the cache: the rest, or nothing if the request is too short.
        answer_chars: characters of the answer.
        masked_count: the number of masked observations in the view.
        summarized_turns: the number of turns that the summary replaces; with a budget, that the view no longer has.
        summary_input_chars: characters sent for a new summary before this request; 0 without one.
        summary_output_chars: characters of that summary.
        needed: over a budget ``masks``, ``cuts``, ``summary`` or ``truncation``, by what the view shows; else "".
        branch: of a session with branches, the number of that which it belongs to.
        hidden: the results that it hides and the request before it showed: masked, cut or in a hidden message. They are
            numbered from 0 in the order of the history of its context.
        shown: the results that it shows again, as where a policy changed.

    Example:
        >>> import recede
        >>> recede.costs.ReplayedTurn(1, 12_400, 12_000, 400, 80, 0).view_tokens
        3100
    """

    messages: int
    view_chars: int
    cached_chars: int
    written_chars: int
    answer_chars: int
    masked_count: int
    summarized_turns: int = 0
    summary_input_chars: int = 0
    summary_output_chars: int = 0
    needed: str = ""
    branch: int = 0
    hidden: tuple[int, ...] = ()
    shown: tuple[int, ...] = ()

    @property
    def usage(self) -> Usage:
        """The usage of this request."""
        return Usage(1, *self[1:5], int(self.summary_input_chars > 0), *self[7:9])

    @property
    def view_tokens(self) -> int:
        """The approximate number of tokens sent, at four characters each."""
        return tokens_of(self.view_chars)
