"""Results of managers of turns: figures, reports and runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

from recede.turns._turn import Summary, Turn

__all__ = [
    "AgentRun",
    "ContextReport",
    "EfficiencyReport",
    "TokenSavings",
    "TurnStats",
    "TurnTokens",
    "tokens_of",
    "words_of",
]


class TurnStats(NamedTuple):
    """The figures of a manager, for a status line.

    Example:
        >>> import recede
        >>> recede.designs.ObservationMaskingContextManager().stats()
        TurnStats(turns=0, masked_turns=0, summarized_turns=0, summaries=0, summary_failures=0)
    """

    turns: int
    masked_turns: int  # with a masked observation, those in the summary too
    summarized_turns: int  # that the summary of the next context replaces
    summaries: int
    summary_failures: int  # since this manager was created


class TokenSavings(TypedDict):
    """The saving of masking in one context; see `ObservationMaskingContextManager.estimate_token_savings`.

    Example:
        >>> import recede
        >>> recede.designs.ObservationMaskingContextManager().estimate_token_savings()["masked_turns"]
        0
    """

    total_obs_tokens: int
    masked_turns: int
    visible_turns: int
    estimated_saved_tokens: int
    reduction_percent: float


class TurnTokens(NamedTuple):
    """Tokens of the request for one turn: of all turns before it, unmasked; and those sent, of a summary too.

    Example:
        >>> import recede
        >>> recede.turns.TurnTokens(3, raw_tokens=100, sent_tokens=30).saved_tokens
        70
    """

    turn: int  # from 1
    raw_tokens: int
    sent_tokens: int

    @property
    def saved_tokens(self) -> int:
        """The difference; negative if placeholders have more tokens than what they replace."""
        return self.raw_tokens - self.sent_tokens


class ContextReport(NamedTuple):
    """Tokens of all requests of a session, and how many masking and summaries saved. Prompts are not counted.

    Example:
        >>> import recede
        >>> manager = recede.designs.ObservationMaskingContextManager(window_size_m=1)
        >>> for number in range(4):
        ...     number = manager.add_turn("Think.", "act", "a word " * 50)
        >>> manager.report()
        <ContextReport: 4 turns, 642 tokens raw, 354 sent, 288 saved (45 %), cost 0.0035 instead of 0.0064>
    """

    turns: tuple[TurnTokens, ...]
    summarizer_tokens: int  # that summarizers read and wrote
    price_per_token: float  # of each of these tokens
    masking_turns: int = 0  # for which masks alone were enough: those before the first summary

    @property
    def raw_tokens(self) -> int:
        """Tokens that all requests would have sent without masking."""
        return sum(turn.raw_tokens for turn in self.turns)

    @property
    def sent_tokens(self) -> int:
        """Tokens that the requests sent."""
        return sum(turn.sent_tokens for turn in self.turns)

    @property
    def saved_tokens(self) -> int:
        """The difference."""
        return self.raw_tokens - self.sent_tokens

    @property
    def efficiency_score(self) -> float:
        """Saved tokens as a share of the raw ones; 0.0 without raw tokens."""
        return self.saved_tokens / self.raw_tokens if self.raw_tokens else 0.0

    @property
    def raw_cost(self) -> float:
        """The cost without masking."""
        return self.raw_tokens * self.price_per_token

    @property
    def cost(self) -> float:
        """The cost, including calls of the summarizer."""
        return (self.sent_tokens + self.summarizer_tokens) * self.price_per_token

    def as_dict(self) -> dict[str, Any]:
        """Every figure, for JSON."""
        names = ("raw_tokens", "sent_tokens", "saved_tokens", "efficiency_score", "raw_cost", "cost")
        turns = [{**turn._asdict(), "saved_tokens": turn.saved_tokens} for turn in self.turns]
        return {**self._asdict(), **{name: getattr(self, name) for name in names}, "turns": turns}

    def __repr__(self) -> str:
        """The figures in a line."""
        return (
            f"<ContextReport: {len(self.turns):,} turns, {self.raw_tokens:,} tokens raw, {self.sent_tokens:,} sent, "
            f"{self.saved_tokens:,} saved ({self.efficiency_score:.0%}), "
            f"cost {self.cost:.2g} instead of {self.raw_cost:.2g}>"
        ).replace("%)", " %)")


def words_of(text: str) -> int:
    """Tokens of a text, as managers count them."""
    return len(text.split())


def tokens_of(
    words: Sequence[tuple[int, int, int]], window: int, summaries: Sequence[tuple[int, Summary]]
) -> tuple[list[TurnTokens], int]:
    """The tokens of each request, and of what summarizers read and wrote.

    `words` has those of each turn without its observation, of that, and of what an old turn shows of it; `summaries`
    each with the number of turns when it was made.
    """
    requests, events = [], deque(summaries)
    raw = sent = spent = start = told = 0  # the summary is of `start` turns, and has `told` words
    for number, (own, seen, _) in enumerate(words, 1):
        requests.append(TurnTokens(number, raw, sent))
        raw, sent, old = raw + own + seen, sent + own + seen, number - window
        if old > start:
            sent += words[old - 1][2] - words[old - 1][1]
        while events and events[0][0] == number:
            summary = events.popleft()[1]
            spent += sum(row[0] + row[1] for row in words[start : summary.end_turn]) + told + words_of(summary.content)
            start, told = summary.end_turn, words_of(summary.content)
            shown = (row[0] + row[2 if turn <= old else 1] for turn, row in enumerate(words[start:number], start + 1))
            sent = words_of(str(summary)) + sum(shown)
    return requests, spent


class EfficiencyReport(TypedDict):
    """The result of `ProductionHybridContextManager.get_efficiency_report`.

    Example:
        >>> import recede
        >>> agent = recede.designs.ProductionHybridContextManager(str, lambda turns: "", execute=str.upper)
        >>> agent.get_efficiency_report()["savings"]
        {'tokens': 0, 'estimated_cost': 0.0}
    """

    phases: dict[str, int]  # turns: masking, summarizing
    summaries: dict[str, float]  # count, frequency
    savings: dict[str, float]  # tokens, estimated_cost
    efficiency_score: float


class AgentRun(TypedDict):
    """The result of `ProductionHybridContextManager.run_agent`.

    Example:
        >>> import recede
        >>> agent = recede.designs.ProductionHybridContextManager(
        ...     lambda context: ("Think.", "act"), lambda turns: "", execute=str.upper)
        >>> run: recede.turns.AgentRun = agent.run_agent("Work.", max_turns=2)
        >>> run["hit_limit"], run["turns"], run["trajectory"][-1].observation
        (True, 2, 'ACT')
    """

    completed: bool
    hit_limit: bool
    turns: int
    trajectory: list[Turn]
    report: EfficiencyReport
