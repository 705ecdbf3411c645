"""Turns and summaries as a manager keeps them in memory."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

__all__ = ["Summary", "Turn", "TurnsInMemory", "chat_messages"]


class Turn(NamedTuple):
    """A turn of an agent, as it was added.

    Attributes:
        turn: its number, from 1.
        reasoning: what the agent thought.
        action: what it did.
        observation: what came of it, unmasked.
        timestamp: when it was added, in seconds since 1970.

    Example:
        >>> import recede
        >>> manager = recede.ObservationMaskingContextManager()
        >>> manager.add_turn("I must look.", "ls", "a.py b.py")
        1
        >>> manager.trajectory[0].observation
        'a.py b.py'
    """

    turn: int
    reasoning: str
    action: str
    observation: str
    timestamp: float


class Summary(NamedTuple):
    """A summary that stands for old turns.

    Attributes:
        end_turn: the last turn in it.
        content: its text.

    Example:
        >>> import recede
        >>> manager = recede.HybridContextManager(
        ...     lambda turns, previous: f"{len(turns)} turns.", summarize_at_n=3, tail_window_m=1)
        >>> for number in range(3):
        ...     number = manager.add_turn("Think.", "act", "seen")
        >>> manager.summaries
        [Summary(end_turn=2, content='2 turns.')]
    """

    end_turn: int
    content: str


class TurnsInMemory:
    """Every turn and summary, and how contexts show them."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._timestamps: list[float] = []
        self._summaries: list[Summary] = []
        self._chat: list[dict[str, str]] = []  # two messages a turn, as they were shown last
        self._masked = 0  # turns that are masked in them
        self.masking_turns: int | None = None  # turns that there were at the first summary
        self.spent_tokens = 0  # that summarizers were given and wrote

    def __len__(self) -> int:
        return len(self._timestamps)

    # Turns

    def add(self, reasoning: str, action: str, observation: str, tokens: tuple[int, int, int] | None) -> int:
        """The next turn comes; its number. Its tokens are words, where they are not given."""
        self._log.add(reasoning, action, observation, tokens)
        self._timestamps.append(time.time())
        return len(self)

    def masked_text(self, observation: str) -> str | None:
        """What masking would put in the place of this observation, if it came now; None where it stays."""
        text: str | None = self._log.masked_text(observation)
        return text

    def turns(self, start: int, end: int) -> list[Turn]:
        """The turns behind the first `start` ones, up to and with `end`."""
        return [
            Turn._make((number, *self._log.turn(number), self._timestamps[number - 1]))
            for number in range(start + 1, end + 1)
        ]

    def recall(self, turn: int) -> str:
        """The observation of a turn that there is."""
        observation: str = self._log.turn(turn)[2]
        return observation

    # Contexts

    def context(self, before: str) -> str:
        """The context of the next request, behind what stands before its turns."""
        context: str = self._log.context(before)
        return context

    def messages(self, start: int) -> list[dict[str, str]]:
        """The turns behind the first ones as chat messages; the same objects as long as they are the same."""
        for turn in self.turns(len(self._chat) // 2, len(self)):
            self._chat += chat_messages(turn.reasoning, turn.action, turn.observation)
        masked = self._log.masked(self._masked)
        for turn, text in masked:
            self._chat[2 * turn - 1] = {"role": "user", "content": text}
        self._masked += len(masked)
        return self._chat[2 * start :]

    # Summaries

    def summary_due(self) -> int | None:
        """How many turns, from the first on, the summary is to stand for that is due before the next request."""
        due: int | None = self._log.summary_due()
        return due

    def summarize(self, summary: Summary, chars: int, tokens: int, spent_tokens: int) -> None:
        """A summary, of so many characters and tokens in a context, stands for the turns up to its last one."""
        self._summaries.append(summary)
        self._log.summarize_through(summary.end_turn, chars, tokens)
        self.spent_tokens += spent_tokens
        if self.masking_turns is None:
            self.masking_turns = len(self)

    @property
    def summary(self) -> Summary | None:
        """The one that stands in the context."""
        return self._summaries[-1] if self._summaries else None

    @property
    def summary_count(self) -> int:
        """How many were made."""
        return len(self._summaries)

    def summaries(self) -> list[Summary]:
        """All of them: a new list."""
        return self._summaries.copy()

    # Figures

    def figures(self) -> tuple[int, int, int, int]:
        """Turns that are masked; tokens of all observations, of those masked, and of what stands there."""
        figures: tuple[int, int, int, int] = self._log.figures()
        return figures

    def requests(self) -> list[tuple[int, int]]:
        """Of the request before each turn: tokens of all turns before it, and of those sent."""
        requests: list[tuple[int, int]] = self._log.requests()
        return requests[: len(self)]

    def sums(self) -> tuple[int, int]:
        """The sums of `requests`."""
        requests = self.requests()
        return sum(raw for raw, _ in requests), sum(sent for _, sent in requests)

    def raw_tokens(self, start: int, end: int) -> int:
        """Tokens of the turns behind the first `start` ones, up to and with `end`."""
        requests = self._log.requests()
        tokens: int = requests[end][0] - requests[start][0]
        return tokens


def chat_messages(reasoning: str, action: str, observation: str) -> list[dict[str, str]]:
    """A turn as two messages."""
    return [
        {"role": "assistant", "content": f"Reasoning: {reasoning}\nAction: {action}"},
        {"role": "user", "content": observation},
    ]
