"""A conversation that a `Masker` remembers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from itertools import groupby
from typing import Any

from recede.reduction._masks import Mask
from recede.session._reported import Reports

__all__ = ["NEWEST", "Conversation"]

NEWEST = 16
"""So many of the newest messages are compared even if their objects are those of the last call."""


class Conversation:
    """The messages of the last call, and what is masked in them."""

    def __init__(self, reader: Any, session: Any, key: Hashable, *, check: bool) -> None:
        self._reader = reader
        self._check = check
        self.key = key
        self.session = session
        self.messages: list[Any] = []
        self.masks: list[Mask] = []
        self.changed_from = 0  # since this was asked last
        self.epoch = 0  # as long as it is the same, views only grow
        self.reports = Reports()
        self._snapshots: list[Any] = []  # of the newest messages
        self._copies: dict[int, Any] = {}  # masked messages, by place
        self._copied_from = 0  # later messages with masks have no copy yet
        self._stale: list[int] = []  # nor do these have a current one

    def fork(self, key: Hashable) -> Conversation:
        """Another conversation that begins with the same messages."""
        other = Conversation(self._reader, self.session.copy(), key, check=self._check)
        other.messages, other.masks = list(self.messages), list(self.masks)
        other._snapshots = list(self._snapshots)
        other._copies, other._copied_from, other._stale = dict(self._copies), self._copied_from, list(self._stale)
        return other

    def prefix(self, messages: list[Any]) -> tuple[int, list[int]]:
        """How many of the first messages are those of the last call, and which of these differ in their cache marks."""
        first = len(self.messages) - len(self._snapshots)
        is_copied = first == 0 and self._reader.copies
        same, marked = (len(messages), []) if is_copied else self._reader.prefix(self.messages, messages)
        if same > first:
            unchanged, more = self._reader.unchanged(self._snapshots, messages[first:same])
            same, marked = first + unchanged, [*marked, *(first + place for place in more)]
        return same, [place for place in marked if place < same]

    def sync(self, messages: list[Any], same: int, marked: list[int]) -> None:
        """Take the messages of this call, of which the first are known."""
        if same < len(self.messages):
            self.session.rewind(same)
        if same < len(messages):
            self._reader.extend(self.session, messages, same)
        self._take_snapshots(messages, same, marked)
        known, self.messages = len(self.messages), messages
        first, masks = self.session.changed_masks()
        first = min(first, same)
        del self.masks[bisect_left(self.masks, (first,)) :]
        self.masks += map(Mask._make, masks)
        self.changed_from = min(self.changed_from, first)
        self._copied_from = min(self._copied_from, first)
        if first < known:
            self.epoch += 1
            self._copies = {place: copy for place, copy in self._copies.items() if place < first}
        self._stale = [place for place in {*self._stale, *marked} if place in self._copies]

    def _take_snapshots(self, messages: list[Any], same: int, marked: list[int]) -> None:
        before = len(self.messages) - len(self._snapshots)
        start = 0 if self._check else max(0, len(messages) - NEWEST)
        snapshots = self._reader.snapshots
        if start < before:  # rewound to before them
            self._snapshots = snapshots(messages[start:])
            return
        self._snapshots = self._snapshots[start - before : max(0, same - before)] + snapshots(
            messages[max(same, start) :]
        )
        for place in marked:
            if place >= start:
                (self._snapshots[place - start],) = snapshots([messages[place]])

    def view(self) -> list[Any]:
        """The messages, with copies of those that have masks."""
        for place in self._stale:
            masks = self.masks[bisect_left(self.masks, (place,)) : bisect_left(self.masks, (place + 1,))]
            self._copies[place] = self._masked(place, masks)
        new = self.masks[bisect_left(self.masks, (self._copied_from,)) :]
        for place, of_message in groupby(new, lambda mask: mask.message_index):
            self._copies[place] = self._masked(place, of_message)
        self._stale, self._copied_from = [], len(self.messages)
        view = list(self.messages)
        for place, copy in self._copies.items():
            view[place] = copy
        return view

    def _masked(self, place: int, masks: Any) -> Any:
        return self._reader.masked(self.messages[place], {mask.result_index: mask.text for mask in masks})
