"""The cost of a limit over every long recorded session: `python benches/limits.py`; docs/budgets.md has its table.

`python benches/limits.py --words` prints how much of what the users said later the last views still have.

Each request finds in the cache the messages with which the request before began, and pays for the others what writing
them costs. The door that masks is compared with forced moves of other sizes, by which alone its boundary would move.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from operator import ne
from typing import Any, NamedTuple

from counted import counts_of
from economy import every_session, long_sessions

import recede
from formatting import markdown
from recede.costs import PRESETS, SYSTEM_CHARS, replay
from recede.masker import Masker

LIMITS = (8_000, 16_000, 64_000)
FREE = (0.0, 0.125, 0.25, 0.5, 0.75)
"""The parts of the limit that the other forced moves leave free."""
PRICES = PRESETS["anthropic"]
LONG_CHARS = 4_000

History = list[Any]
View = Callable[[History], History]


class Cost(NamedTuple):
    """The cost of requests, by characters; and how many did not begin as the request before."""

    paid: float
    changes: int


class Sizes:
    """The characters of messages, each counted once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Any]] = {}  # with the message, whose address is then nobody else's

    def __call__(self, message: Any) -> int:
        """The characters of a message."""
        if id(message) not in self._known:
            self._known[id(message)] = recede.count_chars([message]), message
        return self._known[id(message)][0]


def requests(messages: History) -> list[History]:
    """The messages of each request."""
    return [messages[: turn.messages] for turn in replay(messages, []).policies[0].turns]


def cost(sent: list[History], view_of: View, size: Sizes) -> Cost:
    """The cost of these requests, each with its view."""
    before: History = []
    paid, changes = SYSTEM_CHARS * (PRICES.write - PRICES.cached), 0
    for messages in sent:
        view = view_of(messages)
        differs = map(ne, view, before)
        same = next((place for place, found in enumerate(differs) if found), min(len(view), len(before)))
        read = SYSTEM_CHARS + sum(map(size, view[:same]))
        paid += PRICES.cached * read + PRICES.write * sum(map(size, view[same:]))
        changes += same < len(before)
        before = view
    return Cost(paid, changes)


class ForcedMoves:
    """A door that masks only where a limit forces it to: oldest first, until a part of the limit is free."""

    def __init__(self, messages: History, limit: float, free: float, size: Sizes) -> None:
        self.size = size
        self.most, self.target = 4 * limit, 4 * limit * (1 - free)
        self.view = list(messages)
        self.masked = recede.reduce(messages, keep=0, boundary="sliding").messages
        self.cut = recede.reduce(messages, keep=len(messages), max_result_chars=LONG_CHARS).messages
        self.sent = 0  # messages of the last request; later ones are the newest turn

    def __call__(self, messages: History) -> History:
        """The view of the next request."""
        newest, end = self.sent, len(messages)
        self.sent = end
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


class Played(NamedTuple):
    """The cost of all sessions under a limit, of raw, by each door; and the changes of a beginning."""

    of_raw: dict[str, float]
    changes: dict[str, int]


def played(limit: int, sessions: Iterable[History]) -> Played:
    """Sessions under a limit. Fails where a view is too long that a door said to fit, or changes without a move."""
    paid: dict[str, float] = {}
    changes: dict[str, int] = {}
    for messages in sessions:
        sent, size = requests(messages), Sizes()
        counted = counts_of(messages, None, {len(messages)})[len(messages)]
        own = limit * recede.count_chars(messages) / counted  # forced moves count characters
        history, moves = recede.History(max_input_tokens=limit), list[Any]()
        masker: Masker[Any] = Masker(max_input_tokens=limit, on_move=moves.append)
        doors: dict[str, View] = {
            "raw": list,
            "reduce": lambda given: checked(recede.reduce(given, max_input_tokens=limit), limit, given),
            "History": partial(next_view, history),
            "masking": masker.view,
            **{f"free {free:.0%}": ForcedMoves(messages, own, free, size) for free in FREE},
        }
        for name, view_of in doors.items():
            found = cost(sent, view_of, size)
            paid[name] = paid.get(name, 0) + found.paid
            changes[name] = changes.get(name, 0) + found.changes
            if name == "masking" and found.changes > len(moves):
                raise AssertionError(f"{found.changes} beginnings changed at {len(moves)} moves")
    return Played({name: one / paid["raw"] for name, one in paid.items()}, changes)


def checked(reduction: Any, limit: int, given: History) -> History:
    """The view, which is within the limit where the reduction says so; what is given tells how its texts count."""
    before, after = len(given), len(given) + len(reduction.messages)
    counted = counts_of([*given, *reduction.messages], None, {before, after})
    if reduction.within_limit != (counted[after] - counted[before] <= 4 * limit):
        raise AssertionError("a view is not as long as it is said to be")
    return list(reduction.messages)


def next_view(history: recede.History, messages: History) -> History:
    """The view of a session that goes on."""
    history.extend(messages[len(history) :])
    return list(history.view())


def said_by(messages: History) -> list[str]:
    """The texts of the user's messages, without results, in order."""
    found = []
    for message in messages:
        content = message.get("content") if message.get("role") == "user" else None
        parts = [{"text": content}] if isinstance(content, str) else content or []
        if all("text" in part for part in parts):
            found.append("".join(part["text"] for part in parts))
    return [text for text in found if text]


def words() -> None:
    """Print the share of users' later messages of up to 2,000 characters that the last view of a session has."""
    rows = []
    for limit in LIMITS:
        said = kept = sessions = 0
        for messages in every_session():
            history = recede.History(max_input_tokens=limit)
            for sent in requests(messages):
                view = next_view(history, sent)
            if len(history) == len(view):
                continue  # masks were enough
            shown, later = said_by(view), [text for text in said_by(history.messages)[1:] if len(text) <= 2_000]
            sessions, said = sessions + 1, said + len(later)
            kept += sum(text in shown for text in later)
        rows.append([f"{limit:,}", str(sessions), str(said), f"{kept / said:.0%}"])
    print(markdown(["limit", "sessions that drop messages", "later messages of users", "still in the last view"], rows))


def main() -> None:
    """Print the table."""
    if "--words" in sys.argv[1:]:
        return words()
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
