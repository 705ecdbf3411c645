"""What the requests of a history cost under the cache that the rule assumes, and the bound on cost of the boundary.

What only the provider knows is taken at its worst: the raw history is served all that it can be, the view no more than
what the request before had marked.
"""

from __future__ import annotations

from typing import NamedTuple

from oracle.provider import ProviderCache


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
    rewrites_system: bool = False  # the move writes the system prompt again, which has no entry of its own
    is_cold: bool = False  # the cache has nothing


def charged(chars: int, read: int) -> Charged:
    """A request of `chars` characters, `read` of them from the cache."""
    return Charged(read, chars - read)


def served(cache: ProviderCache, chars: int) -> int:
    """What is served, at the least, of a prefix of this many characters."""
    return 0 if chars < cache.min_chars else max(0, chars - cache.step_rest_chars)


def again(cache: ProviderCache, kept: int, is_cold: bool) -> int:
    """Chars of a system prompt that may be written again with a view of whose beginning the cache keeps so many.

    Where these are too few, and those of the prompt as well.
    """
    return 0 if is_cold or served(cache, kept) else cache.min_chars


def raw_request(cache: ProviderCache, sent: int, chars: int, is_cold: bool) -> Charged:
    """What the raw history is charged, at the least; below the minimum nothing is cached."""
    return charged(chars, chars if chars < cache.min_chars else 0 if is_cold else sent)


def system_excess(cache: ProviderCache, requests: int, rewrites: int, part: float, read: float, write: float) -> float:
    """What the longest system prompt costs beyond the bound; views wrote it once more for each of `rewrites`."""
    of_raw = write + (requests - 1) * read
    return cache.system_chars * max(0.0, rewrites * (write - read) - part * of_raw)


def stays_cached(cache: ProviderCache, raw: Charged, view: Charged, part: float, read: float, write: float) -> bool:
    """Whether at each request to come the view is served nearly as much of it as the raw history would be."""
    saved = (raw.chars - view.chars) * read + part * (raw.chars * read)
    return view.chars >= cache.min_chars and saved >= cache.step_rest_chars * (write - read)
