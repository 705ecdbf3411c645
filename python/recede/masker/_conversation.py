"""A conversation that a `Masker` remembers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping
from itertools import groupby, islice
from typing import Any

from recede._off import is_off
from recede._report import BoundaryMove
from recede.reduction._counting import counted
from recede.reduction._exchange import CountRequest, FactsUpdate, SummaryRequest
from recede.reduction._masks import MaskColumns, Masks, SummaryPlace
from recede.reduction._unrecognized import warn_of_unnamed_model
from recede.session._known import NEWEST, KnownMessages
from recede.session._stats import Reported, Reports

# A message of more parts than this counts as if it had no more: it may be a cycle.
_MOST_PARTS = 10_000
_OWN_BYTES = 500  # of a message besides its texts
_SCALARS = frozenset({int, float, bool, type(None)})


def bytes_of(message: Any) -> int:
    """About how many bytes a message takes: those of its texts, which are nearly all."""
    size, parts = _OWN_BYTES, [message]
    for part in islice(parts, _MOST_PARTS):  # it grows meanwhile
        if isinstance(part, (str, bytes)):
            size += len(part)
        elif isinstance(part, dict):
            parts += part.values()
        elif isinstance(part, (list, tuple)):
            parts += part
        elif type(part) not in _SCALARS and hasattr(part, "__dict__"):
            parts.append(vars(part))
    return size


class KnownConversation:
    """The messages of the last call, and what is masked in them."""

    def __init__(
        self, reader: Any, session: Any, key: Hashable, known: KnownMessages, *, options: Mapping[str, Any]
    ) -> None:
        self._reader = reader
        self.options = options  # with the provider of the first request that names one
        self.has_provider = False  # as named by a request
        self.key = key
        self.session = session
        self.known = known
        self.masks = MaskColumns()
        self.uncached: tuple[int, ...] = ()  # messages before each request that was taken to have no cache
        self.served_at: int | None = None  # messages of the request whose answer has shown that there is one
        self.around_chars = 0  # of system prompt and tools, where there seems to be no cache
        self.around: bytes | None = None  # a key of system prompt and tools, once a model has verified its reasoning
        self.refusals = 0  # of reasoning that it has sent
        self.static = 0  # system prompt and tools of its requests, in quarter tokens
        self.counts: Callable[[list[Any]], Any] | None = None  # the costs of messages
        self.counter: Any = None  # if it counts the text of a summary
        self.update = FactsUpdate(0, b"", b"", b"", b"", 0, 0, 0, 0, False, True, 0, None)
        self.asked: SummaryRequest | None = None  # what the view needs before it is one
        self.hidden: list[int] = []
        self.summary: SummaryPlace | None = None
        self._summary_message: Any = None
        self._summary_key: int | None = None
        self._remarked: list[int] = []  # messages with other marks since the last update
        self._viewed = self._same = 0  # how many messages the update knew, and how many of these are the same since
        self.changed_from = 0  # since this was asked last
        self.epoch = 0  # as long as it is the same, views only grow
        self.reports = Reports()
        self.sums: list[int] = []  # of what was reported
        self._reported_moves: int | None = None  # no view was made yet
        self._copies: dict[int, Any] = {}  # masked messages, by place
        self._copied_from = 0  # later messages with masks have no copy yet
        self._stale: list[int] = []  # nor do these have a current one
        self._is_plain = True  # all messages are plain dicts
        self.unsigned: frozenset[int] = frozenset()  # messages without their signed reasoning
        self._marked: set[int] = set()  # these may have cache marks, once views have some
        self._sizes: list[int] = []
        self.bytes = 0  # of the messages

    def fork(self, key: Hashable) -> KnownConversation:
        other = copy.copy(self)
        other.key, other.session, other.known = key, self.session.copy(), self.known.copy()
        other.asked, other.changed_from, other.epoch, other.reports = None, 0, 0, Reports()
        # What is changed in place; of the rest each change is another object.
        other._copies, other._sizes = dict(self._copies), list(self._sizes)
        return other

    def note_uncached(self, around_chars: int) -> None:
        """Note that the request of this view is taken to have no cache, if that is so."""
        self.around_chars, count = around_chars, len(self.known.messages)
        if self.options["provider"].cache == "none" and count not in self.uncached[-1:]:
            self.uncached = (*self.uncached, count)

    def note_served(self) -> None:
        """Note that a request without marks was served from a cache: the later ones have one."""
        if self.uncached and self.served_at is None:
            self.served_at = len(self.known.messages)

    def report(self, reported: Reported, calibrates: bool) -> None:
        """Take what the provider counted for the request of this view."""
        self.sums, is_cold = self.reports.add(self.sums, reported)
        counted = reported.counted(self.sums, self.static) if calibrates else None
        if counted is not None or is_cold:
            self.session.report(counted, is_cold)

    def is_served(self, messages: int) -> bool:
        """Whether a request with so many messages has a cache: one that is sent again keeps its view."""
        return self.served_at is not None and messages > self.served_at

    def sync(self, messages: list[Any], same: int, marked: list[int], summary: tuple[Any, int, bool]) -> int:
        """Take the messages of this call, of which the first are known, a summary with its key, and whether it is sent.

        Returns how many bytes more it takes. `asked` is set if the view needs a summary.
        """
        bytes_before = self.bytes
        self._same = min(self._same, same)
        if same < len(self.known.messages):
            self.session.rewind(same)
            self.uncached = tuple(count for count in self.uncached if count <= same)
            self.hidden, self.summary, self._summary_key = [], None, None
        if same < len(messages):
            self._is_plain &= self._reader.extend(self.session, messages, same)
            if self.counts is not None:
                self.session.give_costs(self.counts(messages[same:]))
        self.known.take(messages, same, marked)
        self._remarked = [*self._remarked, *marked]
        new = list(map(bytes_of, messages[same:]))
        self.bytes += sum(new) - sum(self._sizes[same:])
        self._sizes[same:] = new
        update = self._updated(summary)
        self.asked = update if isinstance(update, SummaryRequest) else None
        if self.asked is None:
            self._take_update(update)
        return self.bytes - bytes_before

    def _updated(self, summary: tuple[Any, int, bool]) -> Any:
        while isinstance(update := self.session.update(*summary), CountRequest):
            self.session.give_text_costs(counted(update.texts, self.counter))
        return update

    def _take_update(self, update: FactsUpdate) -> None:
        marked, self._remarked = self._remarked, []
        messages, before, same = self.known.messages, self._viewed, self._same
        self._viewed = self._same = len(messages)
        had_pins, reasoning_from = self.update.pins_boundary, self.update.reasoning_from
        self.update = update
        if update.reasoning_from != reasoning_from or (reasoning_from and same < before):
            self.unsigned = frozenset(self.session.unsigned())
        if update.pins_boundary:
            known = min(same, len(messages) - NEWEST) if had_pins else 0  # these are taken to be unchanged
            newest = range(max(0, known), len(messages))
            self._marked = {*(place for place in self._marked if place < same), *marked, *newest}
        columns = update.message_indices, update.result_indices, update.text_sizes, update.texts
        self.masks = self.masks.replaced(update.first_changed, *columns)
        first = min(update.first_changed, same)
        self.changed_from = min(self.changed_from, first)
        self._copied_from = min(self._copied_from, first)
        if first < before:
            self.epoch += 1
            self._copies = {place: one for place, one in self._copies.items() if place < first}
        self._stale = [place for place in {*self._stale, *marked} if place in self._copies]
        if (update.hidden_count, update.summary_key) != (len(self.hidden), self._summary_key):
            self._hide(update.summary_key)
        if same < before and self._reported_moves is not None:
            self._reported_moves = min(self._reported_moves, update.settled_moves)

    def _hide(self, key: int | None) -> None:
        self.hidden, summary = self.session.hidden()
        self._summary_key, self.summary = key, None
        if summary is not None:
            place, text, message, joins = summary
            self.summary = SummaryPlace(place, text, joins)
            self._summary_message = self._reader.summary(text, message)

    def new_moves(self) -> list[BoundaryMove]:
        """The moves of the boundary that no view had; for the first view only that of the newest request."""
        moves: list[BoundaryMove] = self.session.moves(self._reported_moves or 0)
        if self._reported_moves is None:
            self._reported_moves, moves = len(moves), moves[self.update.settled_moves :]
        else:
            self._reported_moves += len(moves)
        if moves and self.options.get("provider", "auto") == "auto":
            warn_of_unnamed_model(self.known.messages, self._reader.is_signed)
        return moves

    def take_masks(self) -> Masks:
        """The masks; its `first_changed` is since they were taken last."""
        if is_off():
            self.changed_from = 0
            return Masks(0, [])
        first, self.changed_from = self.changed_from, len(self.known.messages)
        unsigned = tuple(sorted(self.unsigned.difference(self.hidden)))
        return Masks(first, self.masks, tuple(self.hidden), self.summary, unsigned)

    def view(self) -> list[Any]:
        """The messages, with copies of those that have masks."""
        for place in self._stale:
            self._copies[place] = self._masked(place, self.masks.of_messages(place, place + 1))
        new = self.masks.of_messages(self._copied_from, len(self.known.messages))
        for place, of_message in groupby(new, lambda mask: mask.message_index):
            self._copies[place] = self._masked(place, of_message)
        for place in self.unsigned.difference(self._copies):
            self._copies[place] = self._masked(place, [])
        self._stale, self._copied_from = [], len(self.known.messages)
        view = list(self.known.messages)
        for place, masked in self._copies.items():
            view[place] = masked
        if not self.hidden:
            return view
        shown: list[Any]
        shown, place = self.session.laid_out(view, self._summary_message)
        if place is not None:
            shown[place] = self._reader.joined(shown[place], self._summary_message)
        return shown

    def pinned_view(self, marks_elsewhere: int, automatic: Any = None) -> list[Any] | None:
        """The view with marks at the boundary, if its provider takes some; None if that needs plain dicts.

        `automatic` is the mark that the request has for its last block.
        """
        if not self.update.pins_boundary or self.hidden:  # where messages are hidden, the marks of the client stay
            return self.view()
        if not self._is_plain:
            return None
        view, messages = self.view(), self.known.messages
        self._marked = set(self.session.pin(view, messages, sorted(self._marked), marks_elsewhere, automatic))
        return view

    def _masked(self, place: int, masks: Any) -> Any:
        message, texts = self.known.messages[place], {mask.result_index: mask.text for mask in masks}
        if place in self.unsigned:
            return self._reader.unsigned(message, texts)
        return self._reader.masked(message, texts)
