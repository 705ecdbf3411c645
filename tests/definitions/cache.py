"""What a provider's prompt cache serves of each request, to the letter: its entries are whole prefixes.

A view is a list of messages, and a message one of content blocks. A block is equal to another one if it shows the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from oracle.outline import Message
from oracle.placeholder import Masked

Block = tuple[object, int]
"""What a content block shows, and its chars."""


class Seen(NamedTuple):
    """A message as a view shows it: its place in the history, its blocks, and where the last masked one ends."""

    place: int
    blocks: tuple[Block, ...]
    masked_end: int = 0
    is_agent_made: bool = False

    @property
    def chars(self) -> int:
        return sum(chars for _, chars in self.blocks)


@dataclass(frozen=True)
class Sent:
    """A request as sent."""

    view: list[Seen]
    end: int  # messages of the history before it
    masked: int = 0
    summarized: int = 0
    call: tuple[int, int] = (0, 0)  # characters that a model was given for a summary, and wrote
    needed: str = ""

    @property
    def chars(self) -> int:
        return sum(message.chars for message in self.view)


def seen(message: Message, masked: dict[int, Masked], image_chars: int, cut: Masked | None = None) -> Seen:
    """A message with some observations masked, or cut. Text outside of observations counts for the first block."""
    count = max(message.blocks, len(message.calls), len(message.results), 1)
    texts, chars = [""] * count, [0] * count
    chars[0] = message.own_chars(image_chars) if cut is None else cut.chars
    texts[0] = "" if cut is None else cut.text or ""
    masked_end = 0
    for result in message.results:
        one, block = masked.get(result.index), min(result.block, count - 1)
        chars[block] += result.text.chars(image_chars) if one is None else one.chars
        if one is not None:
            texts[block], masked_end = one.text or "", block + 1
    blocks = tuple(((message.index, block, texts[block]), chars[block]) for block in range(count))
    return Seen(message.index, blocks, masked_end, message.is_agent_made)


Served = tuple[int, int, int]
"""Chars of a request, those that it reads from the cache, and those that it writes to it."""


def served(cache: Any, sent: list[Sent], is_pinned: bool) -> list[Served]:
    """What each request reads and writes."""
    sessions = {"breakpoints": partial(_Breakpoints, is_pinned=is_pinned), "entries": _Entries}
    session = sessions.get(cache.rule, _Prefix)(cache)
    found = []
    for one in sent:
        view = cache.system_chars + one.chars
        read = session.request(one, seconds(cache, one.end))
        found.append((view, read, view - read if takes(cache, view) else 0))
    return found


def seconds(cache: Any, end: int) -> float:
    """When the request after so many messages was made: what is known last, or for the first ones first."""
    first = [time for _, time in cache.times][:1]
    known = [time for messages, time in cache.times if messages <= end]
    return [0.0, *first, *known][-1]


def is_alive(cache: Any, used: float, now: float) -> bool:
    return bool(now - used <= cache.ttl_seconds)


def takes(cache: Any, chars: int) -> bool:
    """Whether so many chars are enough for an entry."""
    return math.floor(chars / cache.chars_per_token) >= cache.min_tokens


def stepped(cache: Any, chars: int) -> int:
    """What is served of a prefix of so many chars, where prefixes are served in steps."""
    tokens = math.floor(chars / cache.chars_per_token)
    if tokens < cache.min_tokens:
        return 0
    if not cache.step_tokens:
        return chars
    while (tokens - cache.min_tokens) % cache.step_tokens:
        tokens -= 1
    return math.floor(tokens * cache.chars_per_token)


class _Prefix:
    """The cache has the whole request before."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache
        self.before: tuple[list[Seen], float] | None = None

    def request(self, sent: Sent, now: float) -> int:
        before, self.before = self.before, (sent.view, now)
        if before is None or not is_alive(self.cache, before[1], now):
            return 0
        whole = self.cache.system_chars + sum(message.chars for message in before[0])
        if not takes(self.cache, whole):
            return 0
        same = 0
        while same < min(len(before[0]), len(sent.view)) and before[0][same].blocks == sent.view[same].blocks:
            same += 1
        return stepped(self.cache, self.cache.system_chars + sum(message.chars for message in sent.view[:same]))


class _Breakpoints:
    """The cache has the prefixes that earlier requests had marked."""

    def __init__(self, cache: Any, is_pinned: bool) -> None:
        self.cache, self.is_pinned = cache, is_pinned
        self.entries: dict[tuple[Block, ...], float] = {}  # and when each was last used
        self.before: Sent | None = None

    def request(self, sent: Sent, now: float) -> int:
        system = [(("system",), self.cache.system_chars)] if self.cache.system_chars else []
        blocks = (*system, *(block for message in sent.view for block in message.blocks))
        marked = [blocks[: len(system) + mark] for mark in self._marks(sent)]
        marked = [prefix for prefix in marked if prefix and takes(self.cache, _chars(prefix))]
        self.before = sent
        # As with `_Prefix`, what the request before did not begin with is forgotten, even if a later one should.
        self.entries = {prefix: used for prefix, used in self.entries.items() if blocks[: len(prefix)] == prefix}
        hits = [hit for prefix in marked for hit in self._hits(prefix, now)]
        used = max(hits, key=lambda prefix: (_chars(prefix), len(prefix)), default=())
        self.entries.update((prefix, now) for prefix in (used, *marked) if prefix)
        return _chars(used)

    def _marks(self, sent: Sent) -> list[int]:
        """How many blocks of the view come before each mark.

        None but the system prompt; all; all of the request before; those up to the boundary, at a move the old one.
        """
        whole = sum(len(message.blocks) for message in sent.view)
        end = 0 if self.before is None else self.before.end
        marks = [0, whole, sum(len(message.blocks) for message in sent.view if message.place < end)]
        if self.is_pinned:
            now, before = _boundary(sent), None if self.before is None else _boundary(self.before)
            stays = self.before is None or self.before.summarized != sent.summarized or before == now
            marks.append((now if stays else before) or 0)
        return marks

    def _hits(self, prefix: tuple[Block, ...], now: float) -> list[tuple[Block, ...]]:
        """The longest entry that ends at a mark or a few blocks before it, if there is one."""
        lengths = range(len(prefix), max(0, len(prefix) - self.cache.lookback_blocks), -1)
        found = (prefix[:length] for length in lengths)
        alive = (one for one in found if one in self.entries and is_alive(self.cache, self.entries[one], now))
        return [one for one in [next(alive, None)] if one is not None]


class _Entries:
    """The cache has whole requests, and a request finds those of a few before it.

    If it `shares_prefixes`, a request with its answer is an entry as well, and so is what two requests in a row share.
    """

    def __init__(self, cache: Any) -> None:
        self.cache = cache
        self.requests = 0
        self.before: Sent | None = None
        self.ends: dict[tuple[Block, ...], int] = {}  # the last request that ended so
        self.used: dict[tuple[Block, ...], float] = {}

    def request(self, sent: Sent, now: float) -> int:
        blocks = tuple(block for message in sent.view for block in message.blocks)
        # As with `_Prefix`, what the request before did not begin with is forgotten, even if a later one should.
        self.ends = {end: request for end, request in self.ends.items() if blocks[: len(end)] == end}
        if self.cache.shares_prefixes and self.before is not None:
            self._answer(self.before, sent)
        near = [end for end, request in self.ends.items() if self.requests - request <= self.cache.lookback_blocks]
        found = [end for end in near if is_alive(self.cache, self.used[end], now)]
        longest = max(found, key=len, default=None)
        if longest is not None:
            self.used[longest] = now
        shared = self._shared(sent) if self.cache.shares_prefixes else None
        for end in [blocks] if shared is None else [shared, blocks]:
            if takes(self.cache, self.cache.system_chars + _chars(end)):
                self.ends[end], self.used[end] = self.requests, now
        self.requests, self.before = self.requests + 1, sent
        return 0 if longest is None else self.cache.system_chars + _chars(longest)

    def _answer(self, before: Sent, sent: Sent) -> None:
        """The entry of the request before ends after its answer too."""
        said = [message for message in sent.view if message.place >= before.end]
        answer = takewhile(lambda message: message.is_agent_made, said)
        end = _blocks_of(before.view)
        if end in self.ends:
            answered = (*end, *_blocks_of(answer))
            self.ends[answered], self.used[answered] = self.ends[end], self.used[end]

    def _shared(self, sent: Sent) -> tuple[Block, ...] | None:
        """What the request shares with the one before; None if that is all of it, or nothing."""
        if self.before is None:
            return None
        pairs = zip(self.before.view, sent.view, strict=False)
        same = [one for one, other in takewhile(lambda pair: pair[0].blocks == pair[1].blocks, pairs)]
        return None if len(same) == len(self.before.view) or not same else _blocks_of(same)


def _blocks_of(view: Iterable[Seen]) -> tuple[Block, ...]:
    return tuple(block for message in view for block in message.blocks)


def _boundary(sent: Sent) -> int:
    """How many blocks of a view come before the end of the last masked result."""
    before = boundary = 0
    for message in sent.view:
        if message.masked_end:
            boundary = before + message.masked_end
        before += len(message.blocks)
    return boundary


def _chars(blocks: tuple[Block, ...]) -> int:
    return sum(chars for _, chars in blocks)
