"""The conversations that a `Masker` remembers, and its figures."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from recede.masker._conversation import KnownConversation

_log = logging.getLogger("recede")


class MaskerStats(NamedTuple):
    """Figures of the calls of a `Masker`; no answer depends on them.

    Attributes:
        conversations: how many it remembers.
        continued: calls whose list began with a whole conversation that it remembered.
        rewound: calls whose list departed from one within its newest messages.
        forked: calls whose list departed from one before them, of which a copy was made.
        begun: calls with a list that was not known.
        evicted: conversations that it forgot, since there were more than `most`, or they took more than `max_bytes`.

    Example:
        >>> import recede
        >>> masker = recede.masker.Masker()
        >>> messages = [{"role": "user", "content": "Find the bug."}]
        >>> masker.view(messages) == masker.view(messages) == messages
        True
        >>> masker.stats()
        MaskerStats(conversations=1, continued=1, rewound=0, forked=0, begun=1, evicted=0)
    """

    conversations: int = 0
    continued: int = 0
    rewound: int = 0
    forked: int = 0
    begun: int = 0
    evicted: int = 0


class Remembered:
    """A number of conversations, and of bytes; of more, those used longest ago are evicted."""

    def __init__(self, most: int, max_bytes: int) -> None:
        self._most, self._max_bytes = most, max_bytes
        self._bytes = 0
        self._conversations: OrderedDict[KnownConversation, None] = OrderedDict()  # the one used last is at the end
        self._by_key: dict[Hashable, list[KnownConversation]] = {}
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._conversations)

    def newest_first(self) -> Iterator[KnownConversation]:
        """The conversations, the one used last first."""
        return reversed(self._conversations)

    def of_key(self, key: Hashable) -> Iterator[KnownConversation]:
        """The conversations of a key, the one added last first."""
        return reversed(self._by_key.get(key, ()))

    def use(self, conversation: KnownConversation) -> None:
        self._conversations.move_to_end(conversation)

    def add(self, conversation: KnownConversation) -> KnownConversation:
        self._conversations[conversation] = None
        self._by_key.setdefault(conversation.key, []).append(conversation)
        self._bytes += conversation.bytes
        if len(self) > self._most:
            self._evict()
        return conversation

    def grow(self, added_bytes: int) -> None:
        """The one used last has grown by these bytes."""
        self._bytes += added_bytes
        while self._bytes > self._max_bytes and len(self) > 1:
            self._evict()

    def forget(self, conversation: KnownConversation) -> None:
        del self._conversations[conversation]
        self._bytes -= conversation.bytes
        alike = self._by_key[conversation.key]
        alike.remove(conversation)
        if not alike:
            del self._by_key[conversation.key]

    def _evict(self) -> None:
        if self.evicted == 0:
            _log.warning(
                "there are more conversations than most=%d or max_bytes=%d allows: those used longest ago are "
                "forgotten, and read from the start when they come again",
                self._most,
                self._max_bytes,
            )
        self.forget(next(iter(self._conversations)))
        self.evicted += 1
