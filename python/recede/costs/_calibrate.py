"""Fitting of a replay to the tokens that the log of a session has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, isclose
from operator import mul
from statistics import fmean as mean
from statistics import median
from typing import TYPE_CHECKING

from recede.costs._calibration import Calibration
from recede.costs._replay import replay
from recede.costs._turn import ReplayedTurn

if TYPE_CHECKING:
    from recede.transcripts import LoggedRequest, Transcript

_TOKENS_PER_CHAR = 0.25  # where two requests or none say anything else
_LEAST, _MOST = 0.02, 2.0  # of a slope that is no accident: English text has 0.2 to 0.3, digits and Chinese 1
_ROUNDS = 30
_SAME = 1e-11  # relative: a line that moves less from one round to the next stays where it is
SERVED = 0.95  # of the request before: less is a miss
_ALIKE = 1e-4  # relative errors below this count the same


def calibrate(transcript: Transcript, *, requests: int | None = None) -> Calibration | None:
    """Fit the characters of a session to the tokens that its log has.

    The line minimizes the mean relative error, so a few requests that do not fit (a compaction that the log hides, an
    image) hardly move it. Answers count by their characters, or by their logged output tokens if that fits better.

    Args:
        transcript: one context of a session (`Transcript.contexts`).
        requests: fit to this many of the first requests only; None: to all.

    Returns:
        A `Calibration` for `replay`; None if the log has no usage.

    Raises:
        TranscriptError: the messages are not a history.

    Example:
        >>> import json
        >>> from recede import costs, transcripts
        >>> def answer(text, sent):
        ...     return {"type": "gemini", "content": text, "tokens": {"input": sent, "output": 2}}
        >>> asked = [{"type": "user", "content": "x" * 400}, {"type": "user", "content": "y" * 800}]
        >>> messages = [asked[0], answer("Done.", 9_200), asked[1], answer("Done.", 9_602)]
        >>> session = transcripts.read(json.dumps({"sessionId": "1", "messages": messages}).encode())
        >>> found = costs.calibrate(session)
        >>> found.prefix_tokens, round(found.tokens_per_char, 2), found.output_tokens
        (9000, 0.5, {1: 2, 3: 2})
    """
    logged = [request for request in transcript.requests if request.usage is not None]
    if not logged:
        return None
    turns = replay(transcript.messages, ["raw"], system_chars=0).policies[0].turns
    tokens = {request.messages: request.usage.output_tokens for request in logged if request.usage is not None}
    sizes = _sizes(turns, tokens)
    points = [
        (*sizes[request.messages], request.usage.sent_tokens)
        for request in logged[:requests]
        if request.usage is not None and request.messages in sizes
    ]
    if not points:
        return None
    plain = _fitted([(chars, sent, sent) for chars, _, _, sent in points])
    hidden = _fitted([(chars - said, sent - answered, sent) for chars, said, answered, sent in points])
    has_hidden = hidden[2] < plain[2] - _SAME  # of equals, the plain one
    prefix, slope, error = hidden if has_hidden else plain
    first = logged[0].usage
    return Calibration(
        prefix_tokens=round(prefix),
        tokens_per_char=slope,
        has_hidden=has_hidden,
        has_cache=len(logged) == 1 or any(sum(request.usage[1:4]) for request in logged if request.usage),
        warm_tokens=0 if first is None else first.cached_tokens,
        output_tokens=tokens,
        misses=_misses(transcript.requests),
        shown=transcript.shown,
        error=error,
    )


def _misses(requests: Sequence[LoggedRequest]) -> dict[int, tuple[int, float]]:
    found = {}
    for before, after in pairwise(requests):
        if before.usage is not None and after.usage is not None and before.usage.sent_tokens:
            share = after.usage.cached_tokens / min(before.usage.sent_tokens, max(1, after.usage.sent_tokens))
            if share < SERVED:
                found[after.messages] = after.usage.cached_tokens, share
    return found


def _sizes(turns: Sequence[ReplayedTurn], tokens: dict[int, int]) -> dict[int, tuple[int, int, int]]:
    """Count for each request its characters, and the characters and tokens of the logged answers before it."""
    found = {}
    answer_chars = answer_tokens = 0
    for turn in turns:
        found[turn.messages] = turn.view_chars, answer_chars, answer_tokens
        if turn.messages in tokens:
            answer_chars += turn.answer_chars
            answer_tokens += tokens[turn.messages]
    return found


def _fitted(points: Sequence[tuple[int, int, int]]) -> tuple[float, float, float]:
    """Where the line through (characters, tokens) begins, its slope, and its mean error, which is the least.

    Errors are relative to the third number of each point.
    """
    xs, ys, wholes = zip(*points, strict=True)
    scales = [max(1, whole) for whole in wholes]
    weights = [1 / scale**2 for scale in scales]
    prefix = slope = inf
    for _ in range(_ROUNDS):
        last = prefix, slope
        prefix, slope = _least_squares(xs, ys, weights)
        if isclose(prefix, last[0], rel_tol=_SAME) and isclose(slope, last[1], rel_tol=_SAME):
            break
        # Least squares with these weights minimize absolute errors.
        errors = _errors(xs, ys, scales, prefix, slope)
        weights = [1 / (scale * scale * max(_ALIKE, error)) for scale, error in zip(scales, errors, strict=True)]
    if not _LEAST <= slope <= _MOST:
        slope = _TOKENS_PER_CHAR
        prefix = median(y - slope * x for x, y, _ in points)
    if prefix < 0:  # no system prompt is negative: the line goes through zero
        prefix, slope = 0.0, min(_MOST, max(_LEAST, median(y / max(1, x) for x, y, _ in points)))
    return prefix, slope, mean(_errors(xs, ys, scales, prefix, slope))


def _errors(xs: Sequence[int], ys: Sequence[int], scales: Sequence[int], prefix: float, slope: float) -> list[float]:
    return [abs(prefix + slope * x - y) / scale for x, y, scale in zip(xs, ys, scales, strict=True)]


def _least_squares(xs: Sequence[int], ys: Sequence[int], weights: Sequence[float]) -> tuple[float, float]:
    total = sum(weights)
    x_mean = sum(map(mul, weights, xs)) / total
    y_mean = sum(map(mul, weights, ys)) / total
    distances = [x - x_mean for x in xs]
    weighted = list(map(mul, weights, distances))
    spread = sum(map(mul, weighted, distances))
    slope = sum(map(mul, weighted, [y - y_mean for y in ys])) / spread if spread else _TOKENS_PER_CHAR
    return y_mean - slope * x_mean, slope
