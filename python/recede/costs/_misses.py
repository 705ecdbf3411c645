"""Quotations from old tool results: in the requests of one session, and by window over several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from recede._bodies import messages_of
from recede.costs._check import replay_transcript
from recede.costs._compare import PolicyCost
from recede.costs._quotations import Misses
from recede.costs._replay import Replay, compare_costs, replay, replay_json

if TYPE_CHECKING:
    from recede.reduction._input import Json
    from recede.transcripts import Transcript

CURVE_WINDOWS = (1, 2, 3, 5, 7, 10, 14, 20, 30, 43, 58, 80, 100)
"""The windows of a curve."""

LONG_SESSION = 30
"""The results from which on a session is long: masking begins to pay. Of 170 recorded sessions with fewer none saves
half a percent at Anthropic's prices, and 4 do at their own; of those with more half do.
`pytest tests/integration/test_measured_figures.py -k begins_to_pay` holds the former."""

# One session does not predict itself, so advice needs several; and fewer misses do not differ from chance.
_LEAST_SESSIONS = 5
_CHANCE = 0.02
LEAST_WINDOW = 3
"""The smallest window that is advised."""


class WindowChoice(NamedTuple):
    """A window: what it costs, and what it hides.

    Attributes:
        window: how many of the newest results stay raw: `keep`.
        cost: the cost of a mask with this window whose boundary moves when that breaks even.
        quoted: the share of requests that quote what it had hidden; None if no texts were read.

    Example:
        >>> from recede.costs import curve_policies, replay, window_curve
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> choice = window_curve([replay(history, curve_policies(), with_misses=True)]).choices[5]
        >>> choice.window, choice.cost.policy, choice.quoted
        (10, 'break_even:window=10', 0.0)
    """

    window: int
    cost: PolicyCost
    quoted: float | None


class WindowCurve(NamedTuple):
    """Cost and quoted share by window, over several sessions.

    Attributes:
        choices: a `WindowChoice` for each window, the smallest first.
        sessions: how many sessions have the 30 results or more that advice needs.

    Example:
        >>> from recede.costs import WindowCurve
        >>> WindowCurve((), sessions=4).advised() is None
        True
    """

    choices: tuple[WindowChoice, ...]
    sessions: int

    def advised(self) -> WindowChoice | None:
        """Find the window of 3 or more that saves most for each quotation of a result it hides.

        Shares under 2 % count as 2 %: fewer do not differ from what agents would have written anyway.

        Returns:
            The choice; of equals the one with the largest window. None if none saves, if no texts were read, or if
            fewer than five sessions have 30 results or more: one session does not predict the next.
        """
        saved = [
            ((1 - one.cost.of_raw) / max(one.quoted, _CHANCE), one.window, one)
            for one in self.choices
            if one.window >= LEAST_WINDOW and one.quoted is not None and one.cost.of_raw < 1
        ]
        return max(saved)[2] if saved and self.sessions >= _LEAST_SESSIONS else None


def curve_policies() -> tuple[str, ...]:
    """List the policies that `window_curve` compares: for each window a mask whose boundary breaks even.

    Example:
        >>> from recede.costs import curve_policies
        >>> curve_policies()[5]
        'break_even:window=10'
    """
    return tuple(f"break_even:window={window}" for window in CURVE_WINDOWS)


def window_curve(replays: Sequence[Replay]) -> WindowCurve:
    """Add up cost and quoted share by window.

    Args:
        replays: sessions that were replayed under `curve_policies`, and maybe others, with misses; at least one.

    Raises:
        ValueError: there are none, or their policies differ.

    Example:
        >>> from recede.costs import curve_policies, replay, window_curve
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> curve = window_curve([replay(history, curve_policies(), with_misses=True)])
        >>> len(curve.choices), curve.sessions
        (13, 0)
    """
    choices = tuple(
        WindowChoice(cost.window, cost, quoted_share(replays, cost.policy))
        for cost in sorted(compare_costs(replays), key=lambda cost: cost.window or 0)
        if cost.window is not None and cost.policy in curve_policies()
    )
    long = [one for one in replays if one.misses is not None and one.misses.results >= LONG_SESSION]
    return WindowCurve(choices, len(long))


def quoted_share(replays: Sequence[Replay], policy: str) -> float | None:
    """Compute the share of requests of several sessions that quote what a policy hid; None if unknown.

    Args:
        replays: the sessions, replayed with misses.
        policy: its name in the replays.

    Raises:
        ValueError: there are no replays.

    Example:
        >>> from recede.costs import quoted_share, replay
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> quoted_share([replay(history)], "raw") is None, quoted_share([replay(history, with_misses=True)], "raw")
        (True, 0.0)
    """
    if not replays:
        raise ValueError("there is no session to compare")
    return quoted_part([(one, policy) for one in replays])


def quoted_part(replays: Sequence[tuple[Replay, str]]) -> float | None:
    """The same for sessions that have a policy each."""
    found = [(one.misses, name) for one, name in replays if one.misses is not None and name in one.misses.by_policy]
    examined = sum(one.examined for one, _ in found)
    quoted = sum(len(one.by_policy[name]) for one, name in found)
    return None if not found else quoted / examined if examined else 0.0


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
    elif isinstance(history, (bytes, bytearray, memoryview, str)):
        found = replay_json(history, ["raw"], with_misses=True).misses
    else:
        found = replay(messages_of(history), ["raw"], with_misses=True).misses
    assert found is not None, "it was asked for"
    return found
