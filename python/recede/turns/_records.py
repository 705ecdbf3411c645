"""What managers return: turns, summaries, figures, reports and runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict


class Turn(NamedTuple):
    """A turn of an agent, as it was added; ``turn["action"]`` is ``turn.action``, and ``dict(turn)`` is for JSON.

    Example:
        >>> import recede
        >>> recede.turns.Turn(1, "I must look.", "ls", "a.py b.py", 1.5e9)["action"]
        'ls'
    """

    turn: int  # from 1
    reasoning: str
    action: str
    observation: str  # unmasked
    timestamp: float  # when it was added, in seconds since 1970

    def __getitem__(self, key: Any) -> Any:
        return _item(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """The item of this name, as of a dict."""
        return getattr(self, key) if key in self._fields else default

    def keys(self) -> tuple[str, ...]:
        """The names of the items, so that ``dict(...)`` and ``**`` take it."""
        return self._fields


class Summary(NamedTuple):
    """A summary that replaces old turns; ``summary["content"]`` is ``summary.content``.

    Example:
        >>> import recede
        >>> recede.turns.Summary(33, "All files were read.")["end_turn"]
        33
    """

    end_turn: int  # the last turn in it
    content: str

    def __getitem__(self, key: Any) -> Any:
        return _item(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """The item of this name, as of a dict."""
        return getattr(self, key) if key in self._fields else default

    def keys(self) -> tuple[str, ...]:
        """The names of the items, so that ``dict(...)`` and ``**`` take it."""
        return self._fields

    def __str__(self) -> str:
        """The summary in a context, after another text."""
        return f"\n\n[Summary through turn {self.end_turn}:\n{self.content}\n]"


def _item(row: Any, key: Any) -> Any:
    """An item of a named tuple, also by the name that published designs use as a key."""
    if not isinstance(key, str):
        return tuple.__getitem__(row, key)
    if key not in row._fields:
        raise KeyError(f"a {type(row).__name__.lower()} has no {key!r}; it has {', '.join(row._fields)}")
    return getattr(row, key)


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
    """The result of `ObservationMaskingContextManager.estimate_token_savings`.

    Example:
        >>> import recede
        >>> manager = recede.designs.ObservationMaskingContextManager(window_size_m=1)
        >>> for number in range(4):
        ...     number = manager.add_turn("Think.", "act", "a word " * 50)
        >>> manager.estimate_token_savings()["reduction_percent"]
        72.0
    """

    total_obs_tokens: int  # of all observations
    masked_turns: int
    visible_turns: int
    estimated_saved_tokens: int  # of the masked observations, minus those of their placeholders
    reduction_percent: float  # the saved tokens of all


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

    turns: int
    raw_tokens: int  # that all requests would have sent without masking
    sent_tokens: int  # that they sent, summaries too
    summarizer_tokens: int  # that summarizers read and wrote
    price_per_token: float  # of each of these tokens
    masking_turns: int  # for which masks alone were enough: those before the first summary

    @property
    def saved_tokens(self) -> int:
        """The difference; negative if placeholders have more tokens than what they replace."""
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

    def __repr__(self) -> str:
        return (
            f"<ContextReport: {self.turns:,} turns, {self.raw_tokens:,} tokens raw, {self.sent_tokens:,} sent, "
            f"{self.saved_tokens:,} saved ({100 * self.efficiency_score:.0f} %), "
            f"cost {self.cost:.2g} instead of {self.raw_cost:.2g}>"
        )


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


def words_of(text: str) -> int:
    return len(text.split())


def words_sent(
    turns: Sequence[tuple[int, int, int]], window: int, summaries: Sequence[tuple[int, Summary]]
) -> tuple[int, int, int]:
    """The words of all requests, raw and sent, and what summarizers read and wrote.

    Of each turn these are the words around its observation, those of that, and what an old turn shows of it; each
    summary follows the number of turns that there were when it was made.
    """
    later = deque(summaries)
    raw_sum = sent_sum = summarizer = 0
    raw = sent = 0  # of the next request
    end = told = 0  # the last turn in the summary, and its words
    for number, (around, observation, _) in enumerate(turns, 1):
        raw_sum, sent_sum = raw_sum + raw, sent_sum + sent
        raw, sent = raw + around + observation, sent + around + observation
        old = number - window  # the turn that leaves the window
        if old > end:
            sent += turns[old - 1][2] - turns[old - 1][1]
        while later and later[0][0] == number:
            summary = later.popleft()[1]
            summarizer += sum(a + o for a, o, _ in turns[end : summary.end_turn]) + told + words_of(summary.content)
            end, told = summary.end_turn, words_of(summary.content)
            shown = enumerate(turns[end:number], end + 1)
            sent = words_of(str(summary)) + sum(a + (masked if turn <= old else o) for turn, (a, o, masked) in shown)
    return raw_sum, sent_sum, summarizer
