"""Decisions of masking: which results are shown as which text, and the report of a move of the boundary."""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Any, NamedTuple, overload

from recede._report import BoundaryMove


class Mask(NamedTuple):
    """A masked result.

    Attributes:
        message_index: the place of its message in the history.
        result_index: its place among the results of that message, from 0.
        text: what replaces its observation.

    Example:
        >>> import recede
        >>> history = [{"role": "tool", "tool_call_id": "1", "content": "x" * 900}, {"role": "assistant"}]
        >>> recede.masker.Masker(keep=0, boundary="sliding").masks(history).masks
        [Mask(message_index=0, result_index=0, text='[old tool output cleared to save context]')]
    """

    message_index: int
    result_index: int
    text: str


class MaskColumns(Sequence[Mask]):
    """The masks of a conversation, of which there may be many thousands: in columns, from which each is made."""

    __slots__ = ("_ends", "_messages", "_places", "_texts")

    def __init__(self) -> None:
        self._messages, self._places, self._ends = array("I"), array("I"), array("I")
        self._texts = b""  # one after the other; objects of their own would be the most of what a conversation takes

    def replaced(self, first: int, messages: bytes, places: bytes, sizes: bytes, texts: bytes) -> MaskColumns:
        """These, with other ones from this message on."""
        end = bisect_left(self._messages, first)
        if end == len(self) and not messages:
            return self
        other = MaskColumns()
        other._messages, other._places, other._ends = self._messages[:end], self._places[:end], self._ends[:end]
        other._messages.frombytes(messages)
        other._places.frombytes(places)
        start = self._start(end)
        other._ends.extend(islice(accumulate(memoryview(sizes).cast("I"), initial=start), 1, None))
        other._texts = self._texts[:start] + texts
        return other

    def of_messages(self, first: int, end: int) -> list[Mask]:
        return self[bisect_left(self._messages, first) : bisect_left(self._messages, end)]

    def _start(self, index: int) -> int:
        return self._ends[index - 1] if index else 0

    def _of(self, places: Iterable[int]) -> Iterator[Mask]:
        texts: dict[bytes, str] = {}  # placeholders repeat: equal ones are one object
        for place in places:
            raw = self._texts[self._start(place) : self._ends[place]]
            text = texts.get(raw) or texts.setdefault(raw, raw.decode("utf-8", "surrogatepass"))
            yield Mask(self._messages[place], self._places[place], text)

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> Mask: ...
    @overload
    def __getitem__(self, index: slice) -> list[Mask]: ...
    def __getitem__(self, index: int | slice) -> Mask | list[Mask]:
        if isinstance(index, slice):
            return list(self._of(range(len(self))[index]))
        return next(self._of([range(len(self))[index]]))

    def __iter__(self) -> Iterator[Mask]:
        return self._of(range(len(self)))

    def __eq__(self, other: Any) -> bool:
        return list(self) == list(other) if isinstance(other, (list, MaskColumns)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


class SummaryPlace(NamedTuple):
    """A summary of hidden messages.

    Attributes:
        message_index: before which message of the history it stands.
        text: what its message says, with the first line by which it is known.
        joins: the message of the history that has the text as its last block instead, where the provider refuses
            messages of one role in a row (Converse); None: it is a message of its own.

    Example:
        >>> import recede
        >>> recede.masker.Masks(0, []).summary is None
        True
    """

    message_index: int
    text: str
    joins: int | None = None


class Masks(NamedTuple):
    """The masked results of a view, and where it departs from the previous one.

    Attributes:
        first_changed: the first message that the previous view of the conversation rendered differently or did not
            have.
        masks: in order; none of hidden messages.
        hidden: the messages that it does not have, ascending; some only where there is a `summarizer`.
        summary: what stands for them.
        unsigned: the messages that it shows without their signed reasoning, where the model verifies that.

    Example:
        >>> import recede
        >>> masker = recede.masker.Masker()
        >>> messages = [{"role": "user", "content": "Find the bug."}]
        >>> masker.masks(messages)
        Masks(first_changed=0, masks=[], hidden=(), summary=None, unsigned=())
        >>> masker.masks([*messages, {"role": "assistant", "content": "It is in line 3."}]).first_changed
        1
    """

    first_changed: int
    masks: Sequence[Mask]
    hidden: Sequence[int] = ()
    summary: SummaryPlace | None = None
    unsigned: Sequence[int] = ()


def _asdict(self: Masks) -> dict[str, Any]:
    """The fields as `json.dumps` takes them: the masks as a list."""
    return {**dict(zip(self._fields, self, strict=True)), "masks": [*self.masks]}


Masks._asdict = _asdict  # type: ignore[assignment, method-assign]  # the body of a named tuple may not define it


_log = logging.getLogger("recede")


def report_move(move: BoundaryMove, on_move: Callable[[BoundaryMove], Any] | None) -> None:
    """Log a move, and call the callback with it, whose error is logged: a view is worth more than a report of it."""
    _log.info(
        "the boundary moved at request %s: %s observations masked, %s characters removed, %s written again%s",
        move.request,
        move.masked_count,
        move.removed_chars,
        move.written_chars,
        f", {move.reasoning_dropped} messages without their reasoning" if move.reasoning_dropped else "",
    )
    if on_move is not None:
        try:
            on_move(move)
        except Exception:
            _log.exception("on_move raised an error")
