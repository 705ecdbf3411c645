"""The cost of a limit over every long recorded session: `python benches/limits.py`; docs/budgets.md has its table.

Each request finds in the cache the messages with which the request before began, and pays for the others what writing
them costs. The door that masks is compared with forced moves of other sizes, by which alone its boundary would move.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from operator import ne
from typing import Any, NamedTuple

from economy import long_sessions

import recede
from formatting import markdown
from recede.masker import Masker

LIMITS = (8_000, 16_000, 64_000)
FREE = (0.0, 0.125, 0.25, 0.5, 0.75)
"""The parts of the limit that the other forced moves leave free."""
READ, WRITE = 0.1, 1.25
SYSTEM_CHARS = 12_000
LONG_CHARS = 4_000

History = list[Any]
View = Callable[[History], History]


class Cost(NamedTuple):
    """The cost of requests, in characters of input; and how many did not begin as the request before."""

    paid: float
    changes: int


def requests(messages: History) -> list[History]:
    """The messages of each request: all before a run of the model."""
    is_start = [_is_of_model(after) and not _is_of_model(before) for before, after in pairwise(messages)]
    starts = [place for place, found in enumerate(is_start, 1) if found]
    return [messages[:end] for end in (starts if _is_of_model(messages[-1]) else [*starts, len(messages)])]


def _is_of_model(message: Any) -> bool:
    kind = str(message.get("type"))
    return message.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def cost(sent: list[History], view_of: View) -> Cost:
    """The cost of these requests, each with its view."""
    sizes: dict[int, tuple[int, Any]] = {}  # with what is measured, whose address is then nobody else's

    def size(message: Any) -> int:
        if id(message) not in sizes:
            sizes[id(message)] = len(json.dumps(message, ensure_ascii=False)), message
        return sizes[id(message)][0]

    before: History = []
    paid, changes = SYSTEM_CHARS * (WRITE - READ), 0
    for messages in sent:
        view = view_of(messages)
        differs = map(ne, view, before)
        same = next((place for place, found in enumerate(differs) if found), min(len(view), len(before)))
        new = sum(map(size, view[same:]))
        paid += READ * (SYSTEM_CHARS + sum(map(size, view[:same]))) + WRITE * new
        changes += same < len(before)
        before = view
    return Cost(paid, changes)


class ForcedMoves:
    """A door that masks only where a limit forces it to: oldest first, until a part of the limit is free."""

    def __init__(self, messages: History, limit: int, free: float) -> None:
        self.most, self.target = 4 * limit, 4 * limit * (1 - free)
        self.view = list(messages)
        self.masked = recede.reduce(messages, keep=0, boundary="sliding").messages
        self.cut = recede.reduce(messages, keep=len(messages), max_result_chars=LONG_CHARS).messages
        self.chars: dict[int, int] = {}  # by the address of a message that one of these lists has

    def __call__(self, messages: History) -> History:
        """The view of the next request."""
        end = len(messages)
        newest = max((place for place in range(1, end) if _is_of_model(messages[place - 1])), default=0)
        total = sum(map(self.size, self.view[:end]))
        if total > self.most and not self.moved(newest, total):
            self.cut_until_it_fits(end, total)
        return self.view[:end]

    def moved(self, newest: int, total: int) -> bool:
        """Whether masks of messages before the newest turn make the view fit; they are kept then."""
        view = list(self.view)
        for place in range(newest):
            if total <= self.target:
                break
            total -= self.size(view[place]) - self.size(self.masked[place])
            view[place] = self.masked[place]
        if total <= self.most:
            self.view = view
        return total <= self.most

    def cut_until_it_fits(self, end: int, total: int) -> None:
        """Long results are cut, the longest first."""
        for place in sorted(range(end), key=lambda place: -self.size(self.view[place])):
            if total <= self.most:
                break
            if self.view[place] not in (self.cut[place], self.masked[place]):
                total -= self.size(self.view[place]) - self.size(self.cut[place])
                self.view[place] = self.cut[place]

    def size(self, message: Any) -> int:
        """The characters that count towards the limit."""
        if id(message) not in self.chars:
            self.chars[id(message)] = recede.count_chars([message])
        return self.chars[id(message)]


class Played(NamedTuple):
    """The cost of all sessions under a limit, of raw, by each door; and the changes of a beginning."""

    of_raw: dict[str, float]
    changes: dict[str, int]


def played(limit: int, sessions: Iterable[History]) -> Played:
    """Sessions under a limit. Fails where a view is too long that a door said to fit, or changes without a move."""
    paid: dict[str, float] = {}
    changes: dict[str, int] = {}
    for messages in sessions:
        sent = requests(messages)
        history, moves = recede.History(max_input_tokens=limit), list[Any]()
        masker: Masker[Any] = Masker(max_input_tokens=limit, on_move=moves.append)
        doors: dict[str, View] = {
            "raw": list,
            "reduce": lambda given: checked(recede.reduce(given, max_input_tokens=limit), limit),
            "History": partial(next_view, history),
            "masking": masker.view,
            **{f"free {free:.0%}": ForcedMoves(messages, limit, free) for free in FREE},
        }
        for name, view_of in doors.items():
            found = cost(sent, view_of)
            paid[name] = paid.get(name, 0) + found.paid
            changes[name] = changes.get(name, 0) + found.changes
            if name == "masking" and found.changes > len(moves):
                raise AssertionError(f"{found.changes} beginnings changed at {len(moves)} moves")
    return Played({name: one / paid["raw"] for name, one in paid.items()}, changes)


def checked(reduction: Any, limit: int) -> History:
    """The view, which is within the limit where the reduction says so."""
    if reduction.within_limit != (recede.count_chars(reduction.messages) <= 4 * limit):
        raise AssertionError("a view is not as long as it is said to be")
    return list(reduction.messages)


def next_view(history: recede.History, messages: History) -> History:
    """The view of a session that goes on."""
    history.extend(messages[len(history) :])
    return list(history.view())


def main() -> None:
    """Print the table."""
    rows = []
    for limit in LIMITS:
        of_raw, changes = played(limit, long_sessions())
        free = min((name for name in of_raw if name.startswith("free")), key=of_raw.__getitem__)
        cells = [f"{of_raw[name]:.2f}, {changes[name]}" for name in ("reduce", "History", "masking", free)]
        rows.append([f"{limit:,}", *cells, free.removeprefix("free ")])
    header = ["limit", "`reduce` before each request", "`History`", "a door that masks", "forced moves alone", "free"]
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
