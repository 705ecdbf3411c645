"""Calibration: the token counts of a session's log, in a form that a replay can use."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from recede.costs._policies import parse_policy
from recede.costs._turn import ReplayedTurn
from recede.reduction._kinds import CHARS_PER_TOKEN


class Calibration(NamedTuple):
    """How the provider counted the requests of one session: a straight line from characters to tokens.

    A request of `n` characters had about `prefix_tokens + tokens_per_char * n` tokens.

    Attributes:
        prefix_tokens: the system prompt and the tool schemas, which logs omit.
        tokens_per_char: tokens per character of the view.
        has_hidden: whether an answer counts in later requests by its output tokens, not by its characters: it had
            reasoning that the log omits.
        has_cache: whether the provider cached anything at all.
        warm_tokens: what the first request read from the cache, which an earlier session had written.
        output_tokens: tokens of each answer, by how many messages came before it.
        misses: requests that found less in the cache than the request before had left there, by the same key: the
            tokens that they read, and these as a share of the previous request. The cache was cold after a pause, or
            the provider sent the request to another machine; it is as cold under every policy.
        shown: how many messages at the beginning replace a compacted history; there were no requests between them.
        error: how far the line is from the logged tokens of a request, as a share of them, on average.

    Example:
        >>> from recede.costs import Calibration
        >>> Calibration(35_000, 0.4).tokens(10_000)
        39000.0
    """

    prefix_tokens: int
    tokens_per_char: float
    has_hidden: bool = False
    has_cache: bool = True
    warm_tokens: int = 0
    output_tokens: Mapping[int, int] = {}
    misses: Mapping[int, tuple[int, float]] = {}
    shown: int = 0
    error: float = 0.0

    @property
    def system_chars(self) -> int:
        """The size of the prefix (system prompt and tools) in characters."""
        return round(self.prefix_tokens / self.tokens_per_char)

    def served_chars(self, messages: int, before: float) -> float:
        """The most characters that the cache can serve, if the previous request had this many."""
        read, share = self.misses.get(messages, (0, 1.0))
        # What is no more than the system prompt is there whatever a policy does with the messages.
        return read / self.tokens_per_char if read <= self.prefix_tokens and share < 1 else before * share

    def tokens(self, chars: float) -> float:
        """Estimate the tokens of a request with this many characters."""
        return self.prefix_tokens + self.tokens_per_char * chars


def calibrated(turns: Sequence[ReplayedTurn], policy: str, found: Calibration) -> tuple[ReplayedTurn, ...]:
    """Convert the requests of a policy from characters to quarters of the provider's tokens."""
    turns = [turn for turn in turns if turn.messages >= found.shown]
    starts = [turn.messages for turn in turns]
    kind, values = parse_policy(policy)
    # The characters that the tokens of an answer exceed those of its text by: its reasoning.
    answers = [found.output_tokens.get(turn.messages) for turn in turns]
    hidden = [
        0.0 if tokens is None or not found.has_hidden else tokens / found.tokens_per_char - turn.answer_chars
        for turn, tokens in zip(turns, answers, strict=True)
    ]
    before = [0.0, *accumulate(hidden)]
    made = []
    scale = CHARS_PER_TOKEN * found.tokens_per_char  # comparable to the characters of any other replay
    last_view = last_extra = 0.0
    for place, (turn, tokens) in enumerate(zip(turns, answers, strict=True)):
        dropped = turn.summarized_turns  # the oldest answers that the view no longer has
        if kind == "keep_last":
            dropped = bisect_left(starts, turn.messages - int(values["messages"]))
        extra = before[place] - before[min(place, dropped)]
        view = turn.view_chars + extra
        is_written = found.has_cache and turn.written_chars > 0
        if not found.has_cache:
            cached = 0.0
        elif place == 0:
            cached = min(view, found.warm_tokens / found.tokens_per_char) if is_written else 0.0
        else:
            # Of the hidden text it served as much as of what is seen.
            cached = turn.cached_chars + last_extra * min(1.0, turn.cached_chars / last_view if last_view else 0.0)
            cached = min(cached, found.served_chars(turn.messages, last_view + last_extra))
        answer = turn.answer_chars if tokens is None else tokens / found.tokens_per_char
        sent, read = round(scale * view), round(scale * cached)
        made.append(
            turn._replace(
                view_chars=sent,
                cached_chars=read,
                written_chars=sent - read if is_written else 0,
                answer_chars=round(scale * answer),
                summary_input_chars=round(scale * turn.summary_input_chars),
                summary_output_chars=round(scale * turn.summary_output_chars),
            )
        )
        last_view, last_extra = turn.view_chars, extra
    return tuple(made)
