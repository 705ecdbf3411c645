"""Requests that each hold their whole history, joined into conversations: bodies of a gateway, spans of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from recede.transcripts._draft import Draft, digest, fields, last_writes

_SAID = ("developer", "system", "user")  # roles of what may be said twice, without being one conversation


class Request(NamedTuple):
    """A request, with the history that it sent."""

    trace: Any  # or the conversation, that it belongs to; "" for any; None: it belongs to no other
    time: float | None
    sent: list[Any]
    answer: list[Any]
    usage: Any = None  # with names that `usage_of` knows
    model: Any = None
    line: int = 0
    name: str | None = None  # of its record: the last write of one counts


def by_time(requests: Iterable[Request]) -> list[Request]:
    """The requests by time, each as it was written last."""
    return sorted(last_writes(requests, lambda one: one.name), key=lambda one: one.time or 0.0)


def joined(requests: Iterable[Request], *, with_unpaid: bool = True) -> Iterator[Draft]:
    """Make conversations: a request continues the latest earlier one whose messages it begins with.

    A first prompt alone identifies none where no trace does. Requests without usage may be left out of the bill.
    """
    drafts: dict[int, Draft] = {}  # in the order of their last requests
    ends: dict[tuple[Any, str], list[int]] = {}  # their numbers, by trace and what their last requests sent
    answers: dict[Draft, Request] = {}  # their last requests
    for number, request in enumerate(requests):
        names = [] if request.trace is None else [(request.trace, name) for name in _prefixes(request.sent)]
        may_be_whole = request.trace or any(fields(one).get("role") not in _SAID for one in request.sent)
        places = range(len(names) if may_be_whole else len(names) - 1, 0, -1)
        at = next((place for place in places if ends.get(names[place - 1])), 0)
        draft = drafts.pop(ends[names[at - 1]].pop()) if at else Draft()
        draft.records += 1
        for message in request.sent[at:]:
            draft.add(message, request.line)
        if with_unpaid or request.usage is not None:
            draft.request(request.usage, request.model, request.time, request.line)
        drafts[number], answers[draft] = draft, request
        for name in names[-1:]:
            ends.setdefault(name, []).append(number)
    for draft in drafts.values():
        for message in answers[draft].answer:  # earlier ones are in the request after them
            draft.add(message, answers[draft].line)
        yield draft


def _prefixes(messages: list[Any]) -> list[str]:
    """A name of each beginning of a list of messages; marks of the prompt cache move, and do not count."""
    names: list[str] = []
    for message in messages:
        names.append(digest(names[-1:], _without_marks(message)))
    return names


def _without_marks(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_marks(one) for one in value]
    if isinstance(value, dict):
        return {name: _without_marks(held) for name, held in value.items() if name != "cache_control"}
    return value
