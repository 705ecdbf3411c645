"""What requests quote from old tool results: of one session, and by window over several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from recede._bodies import messages_of
from recede.costs._check import replay_transcript
from recede.costs._quotations import Misses
from recede.costs._replay import replay
from recede.reduction._input import value_of

if TYPE_CHECKING:
    from recede.reduction._input import Json
    from recede.transcripts import Transcript

__all__ = ["misses"]


def misses(history: Transcript | list[Any] | dict[str, Any] | Json) -> Misses:
    """Find what the requests of a finished session quote from old tool results, which a mask would have hidden.

    A quotation is 31 characters or more that an agent wrote again, word for word, when nothing in its context had them
    but tool results. Each context between compactions counts alone.

    Args:
        history: a transcript, as `recede.transcripts.read` returns it, or a history as for `reduce`: a list of
            messages, a whole request, or the JSON of either.

    Returns:
        The `Misses`.

    Raises:
        TranscriptError: the input is not a history.
        ValueError: the texts of the transcript were left out (`Transcript.has_texts`).

    Time is linear in the text, about 100 MB a second; memory is about 50 MB at most, beside the history itself.

    Example:
        >>> import recede
        >>> def call(number, tool, argument, result):
        ...     function = {"name": tool, "arguments": '{"argument": "%s"}' % argument}
        ...     asked = {"role": "assistant", "tool_calls": [{"id": number, "type": "function", "function": function}]}
        ...     return [asked, {"role": "tool", "tool_call_id": number, "content": result}]
        >>> read = call("0", "read", "sums.py", "def total(rows: list[Row]) -> float:" + 9 * " # how to sum it up")
        >>> others = [call(str(number), "run", f"test {number}", "passed " * 20) for number in range(1, 8)]
        >>> edit = call("9", "edit", "def total(rows: list[Row]) -> float:", "done")
        >>> found = recede.costs.misses([{"role": "user", "content": "Fix it."}, *read, *sum(others, []), *edit])
        >>> found.requests, found.quoted
        (9, [Quotation(request=8, result=0, tool='read', distance=7, text='def total(rows: list[Row]) -> float:')])
        >>> round(found.share(window=5), 2), found.share(window=10)
        (0.11, 0.0)
    """
    if getattr(history, "contexts", None) is not None:
        found = replay_transcript(cast("Transcript", history), ["raw"], with_misses=True).misses
    else:
        found = replay(messages_of(value_of(history)), ["raw"], with_misses=True).misses
    assert found is not None, "it was asked for"
    return found
