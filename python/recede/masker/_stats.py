"""The figures of a `Masker`."""

from __future__ import annotations

from typing import NamedTuple


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
