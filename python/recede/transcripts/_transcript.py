"""Transcripts: a history, and what its log says of the requests that were made of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from recede.transcripts._requests import Branch, Compaction, LoggedRequest, last_compaction, path_of
from recede.transcripts._source import FACTS
from recede.transcripts._unread import NOTHING, Unread


@dataclass(frozen=True)
class Transcript:
    """A history that an agent wrote, in a shape that the reducer supports.

    Attributes:
        messages: the history, oldest first: what the model saw, in the shape that `recede.reduce` takes.
        turns: the number of turns (runs of agent messages).
        format: one of `FORMATS`.
        source: the file, as errors name it.
        warnings: what was repaired, kept although unknown, or left out.
        records: the number of message records read, before merging.
        index: the index of the history in the file, from 0.
        context: the name of the subagent whose history it is; None for the main conversation.
        skipped_lines: of how many lines of the file something was skipped, since they are damaged; the first history of
            a file has them.
        unread: the messages that were not understood.
        requests: what the log says of each request, in order; empty if it says nothing.
        compactions: where the agent replaced the history; `contexts` splits it there.
        shown: how many messages at the beginning replace a compacted history; there were no requests between them.
        has_texts: whether the messages have all their texts (`keep_texts`).
        plan: the subscription that paid for the requests; None where the log names none.
        branches: the parts of a session whose user went back, in the order of the log; empty if it has one history.
        branch: the number of the branch whose history is `messages`: the newest.
        before: of a context: how many messages of the branch's history precede those that are its own.

    Example:
        >>> from recede import transcripts
        >>> transcript = transcripts.read(b'[{"role": "user", "content": "hello"}]')
        >>> transcript.format, transcript.turns, transcript.records
        ('messages', 0, 1)
    """

    messages: list[dict[str, Any]] = field(repr=False)
    turns: int
    format: str
    source: str
    warnings: tuple[str, ...] = ()
    records: int = 0
    index: int = 0
    context: str | None = None
    skipped_lines: int = field(default=0, repr=False)
    unread: Unread = field(default=NOTHING, repr=False)
    requests: tuple[LoggedRequest, ...] = field(default=(), repr=False)
    compactions: tuple[Compaction, ...] = field(default=(), repr=False)
    shown: int = field(default=0, repr=False)
    has_texts: bool = field(default=True, repr=False)
    plan: str | None = field(default=None, repr=False)
    branches: tuple[Branch, ...] = field(default=(), repr=False)
    branch: int = field(default=0, repr=False)
    before: int = field(default=0, repr=False)

    @property
    def contexts(self) -> tuple[Transcript, ...]:
        """The contexts of the session: for each branch the first, and one more after each compaction.

        Example:
            >>> from recede import transcripts
            >>> lines = [
            ...     b'{"type": "message", "message": {"role": "user", "content": "Go."}}',
            ...     b'{"type": "compaction", "summary": "Went."}',
            ...     b'{"type": "message", "message": {"role": "user", "content": "On."}}',
            ... ]
            >>> session = transcripts.read(b"\\n".join(lines))
            >>> [[message["content"] for message in context.messages] for context in session.contexts]
            [['Go.'], ['Went.', 'On.']]
        """
        return tuple(self.each_context())

    def each_context(self) -> Iterator[Transcript]:
        """The contexts, made one after the other: what several of them show takes memory once."""
        answers = [one for one in self.requests if one.usage is not None or not one.beside]
        if not self.compactions and not self.branches:
            yield self if len(answers) == len(self.requests) else replace(self, requests=tuple(answers))
            return
        branches = self.branches or (Branch(None, 0, self.messages),)
        marks: list[list[Compaction]] = [[] for _ in branches]
        requests: list[list[LoggedRequest]] = [[] for _ in branches]
        for compaction in self.compactions:
            marks[compaction.branch].append(compaction)
        for request in answers:
            requests[request.branch].append(request)
        for of_branch in marks:  # a result that was moved after its call may have changed the order
            of_branch.sort(key=attrgetter("messages"))
        for number, branch in enumerate(branches):
            requests[number].sort(key=attrgetter("messages"))
            starts = [last_compaction(branches, marks, branch.parent, branch.start), *marks[number]]
            ends = [*(mark.messages for mark in marks[number]), branch.start + len(branch.messages)]
            for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
                last = place == len(ends) - 1  # where a request may have no answer
                first, stop = (
                    bisect_left(requests[number], at, key=attrgetter("messages")) for at in (start.messages, end + last)
                )
                yield self._between(branches, number, start, end, requests[number][first:stop])

    def _between(
        self, branches: Sequence[Branch], number: int, start: Compaction, end: int, requests: Sequence[LoggedRequest]
    ) -> Transcript:
        first = max(start.messages, branches[number].start)
        shown = [*start.shown, *path_of(branches, number, start.messages, first)]
        moved = len(shown) - first
        messages = [*shown, *path_of(branches, number, first, end)]
        return replace(
            self,
            messages=messages,
            turns=FACTS.reduce(messages).turns,
            requests=tuple(request._replace(messages=request.messages + moved) for request in requests),
            compactions=(),
            shown=len(shown),
            branches=(),
            branch=number,
            before=first,
        )
