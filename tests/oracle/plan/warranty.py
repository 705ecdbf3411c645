"""What the requests of a history cost under the cache that the rule assumes, and the warranty of the boundary.

What only the provider knows is taken at its worst: the raw history is served all that it can be, the view no more than
what the request before had marked.
"""

from __future__ import annotations

from typing import NamedTuple

_STEP_REST_CHARS = 4 * 128 - 1
_MIN_CHARS = {"ideal": 0, "prefix": 4 * 1_024, "breakpoints": 4 * 2_048}


class Charged(NamedTuple):
    """Chars that requests read from the cache, and write to it."""

    read: int = 0
    written: int = 0

    def and_(self, other: Charged) -> Charged:
        return Charged(self.read + other.read, self.written + other.written)

    def cost(self, read: float, write: float) -> float:
        return self.read * read + self.written * write

    def and_written(self, chars: int) -> Charged:
        return Charged(self.read, self.written + chars)

    @property
    def chars(self) -> int:
        return self.read + self.written


class Bill(NamedTuple):
    """What a request is charged: with the raw history, with the boundary where it is, and with a move."""

    raw: Charged
    stay: Charged
    move: Charged
    again: int  # chars of the system prompt that the move may write again


def charged(chars: int, read: int) -> Charged:
    """A request of `chars` characters, `read` of them from the cache."""
    return Charged(read, chars - read)


def served(cache: str, chars: int) -> int:
    """What is served, at the least, of a prefix of this many characters."""
    if chars < _MIN_CHARS[cache]:
        return 0
    return chars - _STEP_REST_CHARS if cache == "prefix" else chars


def again(cache: str, kept: int, is_cold: bool) -> int:
    """Chars of a system prompt that may be written again with a view of whose beginning the cache keeps so many.

    Where these are too few, and those of the prompt as well.
    """
    return 0 if is_cold or served(cache, kept) else _MIN_CHARS[cache]


def raw_request(cache: str, sent: int, chars: int, is_cold: bool) -> Charged:
    """What the raw history is charged, at the least; below the minimum nothing is cached."""
    return charged(chars, chars if chars < _MIN_CHARS[cache] else 0 if is_cold else sent)


def stays_cached(cache: str, raw: Charged, view: Charged, part: float, read: float, write: float) -> bool:
    """Whether at each request to come the view is served nearly as much of it as the raw history would be."""
    lost = _STEP_REST_CHARS if cache == "prefix" else 0
    saved = (raw.chars - view.chars) * read + part * (raw.chars * read)
    return view.chars >= _MIN_CHARS[cache] and saved >= lost * (write - read)
