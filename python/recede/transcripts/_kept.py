"""Compactions that keep a tail of the history, or that clear results alone: those of Claude Code, and of opencode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recede.transcripts._draft import Draft, Place, fields, objects
from recede.transcripts._requests import Shown, last_compaction

_CLEARED = "[Old tool result content cleared]"


class Kept:
    """The compactions of a conversation, as far as they keep something."""

    def __init__(self) -> None:
        self._draft: Draft | None = None  # where the last compaction is
        self._end = 0  # of the history before it
        self._first = 0  # of the messages that it keeps
        self._is_after = True  # whether they follow the summary
        self._names: set[Any] = set()  # of records that it keeps
        self._gone_on = 0  # where the history continues after them
        self._cleared: dict[Any, int] = {}  # results, in the order in which they were cleared

    def begin(
        self, draft: Draft, boundary: str | None, details: dict[str, Any], places: Mapping[str, Place | None]
    ) -> None:
        """A boundary: it may name the first and the last record that it keeps, or all of them."""
        segment, listed = fields(details.get("preservedSegment")), fields(details.get("preservedMessages"))
        names = listed.get("allUuids", listed.get("uuids"))
        names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        ends = [segment.get("headUuid"), segment.get("tailUuid")]
        self._names = {*names, *(name for name in ends if isinstance(name, str))}
        found = [place for name in self._names if (place := places.get(name)) is not None]
        self._draft, self._end, self._gone_on = draft, draft.end, draft.end
        self._first = min((place.messages - 1 for place in found), default=draft.end)
        self._is_after = boundary is None or boundary not in (segment.get("anchorUuid"), listed.get("anchorUuid"))
        self._show(draft.end)

    def summarized(self, draft: Draft) -> None:
        if self._draft is draft and draft.end == self._end + 1:
            self._gone_on = draft.end
            self._show(draft.end if self._is_after else self._end)

    def again(self, draft: Draft, name: str, place: Place) -> None:
        """A record before the last compaction is written again after it: it was kept."""
        if self._draft is draft and draft.end == self._gone_on and place.messages <= self._end:
            self._names.add(name)
            self._first = min(self._first, max(0, place.messages - 1))
            self._show(draft.end if self._is_after else self._end)

    def place(self, name: Any) -> Place | None:
        """The place of a record that follows one which was kept."""
        is_kept = isinstance(name, str) and name in self._names
        return Place(self._draft, self._gone_on, None) if is_kept and self._draft is not None else None

    def _show(self, at: int) -> None:
        draft, first, end = self._draft, self._first, self._end
        if draft is None or first >= end:
            return
        draft.compacted_again(at, Shown(lambda: [*draft.path(end, at), *draft.path(first, end)]))

    def clear(self, draft: Draft, names: list[Any], line: int = 0) -> None:
        """Results were cleared, from here on."""
        for name in names:
            if isinstance(name, str):
                self._cleared.setdefault(name, len(self._cleared))
        count, end, cleared = len(self._cleared), draft.end, self._cleared
        before = last_compaction(draft.branches, [one.marks for one in draft.branches], draft.number, end)
        while isinstance(before.shown, Shown) and before.shown.before is not None:
            before = before.shown.before
        shown = Shown(
            lambda: [_without(one, cleared, count) for one in (*before.shown, *draft.path(before.messages, end))],
            before,
        )
        draft.compacted(line, shown, "results were cleared by the agent; they are kept")


def _without(message: dict[str, Any], cleared: Mapping[Any, int], count: int) -> dict[str, Any]:
    """A message without the texts of results that were cleared."""
    content = message.get("content")

    def is_cleared(block: Any) -> bool:
        name = fields(block).get("tool_use_id", fields(block).get("tool_call_id"))
        return isinstance(name, str) and cleared.get(name, count) < count

    if is_cleared(message):
        return {**message, "content": _CLEARED}
    if not any(map(is_cleared, objects(content))):
        return message
    blocks = [{**block, "content": _CLEARED} if is_cleared(block) else block for block in content or ()]
    return {**message, "content": blocks}
