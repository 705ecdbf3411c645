"""The last request of a session before and after masking, by tool, in the tokens of its replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from recede.costs import Replay, calibrate
from recede.reduction import Reduction, reduce
from recede.transcripts import Transcript

FIXED = "system prompt, tool schemas, hidden reasoning"
TEXT = "text and calls"

_EVERYTHING = 1 << 60


class Part(NamedTuple):
    """The part of the last request that a tool, or another source, has.

    Attributes:
        name: the tool, `TEXT` or `FIXED`.
        before: its tokens in the raw request.
        after: its tokens in the masked one.
    """

    name: str
    before: float
    after: float


class LastRequest(NamedTuple):
    """The last request of a session.

    Attributes:
        parts: its parts, the largest first.
        before: its tokens as it was sent.
        after: its tokens when masked.
    """

    parts: tuple[Part, ...]
    before: int
    after: int


def last_request(messages: Sequence[Any], session: Transcript | None, replay: Replay, policy: str) -> LastRequest:
    """Split the last request of a replay by tool; the tokens are those of the replay, so all pictures have one scale.

    Args:
        messages: the history.
        session: as its log has it; None where there is no log.
        replay: its replay, under `policy` too.
        policy: the mask.
    """
    turns, masked = (next(one.turns for one in replay.policies if one.policy == name) for name in ("raw", policy))
    if not turns:
        return LastRequest((), 0, 0)
    scale, end = 0.25, turns[-1].messages
    if session is not None:
        context = session.contexts[-1]
        if session.compactions:
            end += context.shown - session.compactions[-1].messages
        messages, found = context.messages, calibrate(context)
        scale = scale if found is None else found.tokens_per_char
    sent = list(messages[:end])
    raw, view = reduce(sent, keep=_EVERYTHING), _masked(sent, masked[-1].masked_count)
    removed = {name: tool.removed_chars * scale for name, tool in view.tools.items()}
    tools = [Part(name, tool.chars * scale, tool.chars * scale - removed[name]) for name, tool in raw.tools.items()]
    words = (raw.chars_before - sum(tool.chars for tool in raw.tools.values())) * scale
    fixed = max(0.0, turns[-1].view_tokens - words - sum(part.before for part in tools))
    parts = [*tools, Part(TEXT, words, words), Part(FIXED, fixed, fixed)]
    parts.sort(key=lambda part: -part.before)
    return LastRequest(tuple(parts), turns[-1].view_tokens, masked[-1].view_tokens)


def _masked(messages: list[Any], count: int) -> Reduction:
    """The view with so many masked results, the oldest."""
    results = reduce(messages, keep=_EVERYTHING).tools.values()
    low, high = 0, sum(tool.observations for tool in results)  # how many of the newest stay raw
    while low < high:
        keep = (low + high) // 2
        if reduce(messages, keep=keep, boundary="sliding").masked_count > count:
            low = keep + 1
        else:
            high = keep
    return reduce(messages, keep=low, boundary="sliding")
