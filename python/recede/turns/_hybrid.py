"""The hybrid: observations are masked first, and from turn N on old turns become a summary."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from recede._errors import StoreError
from recede.costs._prices import SUMMARY_CHARS, SUMMARY_PROMPT_CHARS, Prices
from recede.turns._log import Summary, Turn
from recede.turns._masking import TurnManager, preset

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from recede.store._turn_store import TurnStore
    from recede.types import TokenCounter

__all__ = ["HybridContextManager", "TurnSummarizer"]

TurnSummarizer: TypeAlias = Callable[[list[Turn], Union[str, None]], Union[str, Awaitable[str]]]
"""Gets turns, unmasked, and the summary so far (or None); gives the new text, or what gives it when awaited."""

_PLACEHOLDER = "[Observation omitted]"
_PRESETS = {"swe-agent": (10, 43, 10), "openhands": (58, 80, 58)}
_INTERRUPTED = object()
_log = logging.getLogger("recede")


class _Task(NamedTuple):
    """A summary that is being made."""

    turns: list[Turn]
    previous: str | None
    end_turn: int


class HybridContextManager(TurnManager):
    """Masks old observations until turn N; then turns before the last M become a summary, again at 2N, 3N and so on.

    Every turn is in the context exactly once: in the summary, or shown (masked where it is older than W). A summarizer
    that raises, or returns nothing, loses nothing: masking goes on, the failure is counted and logged, and it is asked
    again after the next turn; if it fails again, after 2 more turns, then 4, and so on up to 64. A summary that the
    `store` could not take is one that failed.

    Args:
        summarizer_llm: ``(turns, previous_summary) -> str``, plain or async. It gets the turns that are to be
            summarized, unmasked, and the summary so far. `recede.summarizers` makes one of a client.
        masking_window_w: how many of the last turns show their observation, W.
        summarize_at_n: after how many turns a summary is made, N; more than M. ``"break_even"``: when what the older
            turns cost to read again has paid for it, at these prices (docs/summaries.md has the rule).
        tail_window_m: how many of the last turns no summary takes, M.
        mask_chunk, boundary, token_counter: as for `ObservationMaskingContextManager`.
        prices: what break-even reckons with; those of `PRESETS`' ``anthropic`` by default.
        store: as for `ObservationMaskingContextManager`; it keeps summaries too.

    Raises:
        TypeError, ValueError, StoreError: as for `ObservationMaskingContextManager`.

    10 / 43 / 10 are the research's values for SWE-agent ("The Complexity Trap", JetBrains Research, 2025): at turn 43 a
    masked context holds as many tokens as a raw one at 21. It may be used from several threads; turns can be added
    while a summary is being made.

    Example:
        >>> import recede
        >>> manager = recede.HybridContextManager(
        ...     recede.summarizers.builtin(), masking_window_w=2, summarize_at_n=4, tail_window_m=2)
        >>> for name in "abcd":
        ...     number = manager.add_turn("I must look.", f"cat {name}.py", f"the text of {name}.py")
        >>> print(manager.get_context("You are careful.", "Find the bug."))
        You are careful.
        Find the bug.
        <BLANKLINE>
        [Summary through turn 2:
        Conversation summary:
        - outcome: cat a.py: the text of a.py
        - outcome: cat b.py: the text of b.py
        ]
        <BLANKLINE>
        Turn 3:
        Reasoning: I must look.
        Action: cat c.py
        Observation: the text of c.py
        <BLANKLINE>
        <BLANKLINE>
        Turn 4:
        Reasoning: I must look.
        Action: cat d.py
        Observation: the text of d.py
        <BLANKLINE>
    """

    def __init__(
        self,
        summarizer_llm: TurnSummarizer,
        masking_window_w: int = 10,
        summarize_at_n: int | Literal["break_even"] = 43,
        tail_window_m: int = 10,
        *,
        mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding",
        token_counter: TokenCounter | None = None,
        prices: Prices | None = None,
        store: TurnStore | None = None,
    ) -> None:
        if not callable(summarizer_llm):
            raise TypeError(f"summarizer_llm must be callable, not {type(summarizer_llm).__name__}")
        prices = Prices() if prices is None else prices
        super().__init__(
            "masking_window_w",
            masking_window_w,
            _PLACEHOLDER,
            mask_chunk,
            boundary,
            token_counter,
            prices,
            _summaries(summarize_at_n, tail_window_m, prices),
            {
                "summarize_at_n": summarize_at_n,
                "tail_window_m": tail_window_m,
                "summary_prices": [float(prices.input), float(prices.output)],
            },
            store,
        )
        self._summarizer = summarizer_llm
        self._is_summarizing = False
        self._failures = 0
        self._error: Exception | None = None

    @classmethod
    def from_preset(
        cls,
        name: Literal["swe-agent", "openhands"],
        summarizer_llm: TurnSummarizer,
        *,
        mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding",
        token_counter: TokenCounter | None = None,
        prices: Prices | None = None,
        store: TurnStore | None = None,
    ) -> HybridContextManager:
        """A manager with the research's values for an agent: 10 / 43 / 10, or 58 / 80 / 58.

        Example:
            >>> import recede
            >>> recede.HybridContextManager.from_preset("openhands", recede.summarizers.builtin())
            <HybridContextManager: 0 turns, 0 masked>
        """
        return cls(
            summarizer_llm,
            *preset(_PRESETS, name),
            mask_chunk=mask_chunk,
            boundary=boundary,
            token_counter=token_counter,
            prices=prices,
            store=store,
        )

    # Turns

    def add_turn(self, reasoning: str, action: str, observation: str) -> int:
        """Store a turn, unmasked, and make a summary if one is due; the turn's number, from 1.

        Raises:
            RuntimeError: the summarizer is async, so that it must be awaited: use `aadd_turn`. Nothing was added.
            StoreError: the `store` could not take the turn. Nothing was added.
        """
        self._refuse_async("aadd_turn")
        number = self._add(reasoning, action, observation)
        self.maybe_create_summary()
        return number

    async def aadd_turn(self, reasoning: str, action: str, observation: str) -> int:
        """`add_turn` with an async summarizer, which is awaited; a plain one runs in a thread.

        Turns that other tasks add meanwhile do not wait for it.
        """
        number = self._add(reasoning, action, observation)
        await self.amaybe_create_summary()
        return number

    def _refuse_async(self, instead: str) -> None:
        if _is_async(self._summarizer):
            raise RuntimeError(f"the summarizer is async: use {instead}")

    # Summaries

    def maybe_create_summary(self) -> bool:
        """Make a summary now, if one is due or was missed; whether one was made.

        After a failure none is due until enough turns are new.

        Raises:
            RuntimeError: the summarizer is async: use `amaybe_create_summary`.
        """
        self._refuse_async("amaybe_create_summary")
        task = self._begin()
        if task is None:
            return False
        text: object = _INTERRUPTED
        try:
            text = self._summarizer(task.turns, task.previous)
            if inspect.iscoroutine(text):
                text.close()
        except Exception as error:
            text = error
        finally:
            made = self._end(task, text)
        return made

    async def amaybe_create_summary(self) -> bool:
        """`maybe_create_summary` with an async summarizer, or with a plain one in a thread."""
        task = self._begin()
        if task is None:
            return False
        text: object = None
        try:
            if _is_async(self._summarizer):
                text = self._summarizer(task.turns, task.previous)
            else:
                text = await asyncio.to_thread(self._summarizer, task.turns, task.previous)
            if inspect.isawaitable(text):
                text = await text
        except Exception as error:
            text = error
        finally:
            made = self._end(task, text)
        return made

    def _begin(self) -> _Task | None:
        """What is to be summarized, if a summary is due and nobody makes one."""
        with self._lock:
            self._refuse_callbacks()
            end_turn = self._kept.summary_due()
            if self._is_summarizing or end_turn is None:
                return None
            try:
                task = _Task(self._turns(self._end_turn, end_turn), self._content, end_turn)
            except StoreError as error:
                self._fail(end_turn, error)
                return None
            self._is_summarizing = True
            return task

    def _end(self, task: _Task, text: object) -> bool:
        """The summarizer has answered, or raised, or was interrupted, or cancelled (None)."""
        with self._lock:
            self._is_summarizing = False
            if not isinstance(text, str) or not text.strip():
                self._fail(task.end_turn, text)
                return False
            summary = Summary(task.end_turn, text)
            block = _block(summary)
            try:
                given = self._kept.raw_tokens(task.turns[0].turn - 1, task.end_turn) + self._count(task.previous or "")
                self._kept.summarize(summary, len(block), self._count(block), given + self._count(text))
            except StoreError as error:
                self._fail(task.end_turn, error)
                return False
            return True

    def _fail(self, end_turn: int, text: object) -> None:
        if text is _INTERRUPTED:  # by a person, which says nothing of the summarizer: it may be asked again at once
            text = ValueError("the summarizer was interrupted")
        else:
            self._kept.summary_failed()
        if text is None or isinstance(text, str):
            text = ValueError("the summarizer returned no text")
        elif not isinstance(text, Exception):
            text = TypeError(f"the summarizer must return a string, not {type(text).__name__}")
        self._failures += 1
        self._error = text
        _log.warning("no summary of turns %d to %d: %s", self._end_turn + 1, end_turn, text)

    @property
    def _end_turn(self) -> int:
        return self._kept.summary.end_turn if self._kept.summary else 0

    @property
    def _content(self) -> str | None:
        return self._kept.summary.content if self._kept.summary else None

    @property
    def summaries(self) -> list[Summary]:
        """Those that were made, the last of which stands in the context: a new list."""
        with self._lock:
            return self._kept.summaries()

    @property
    def phase(self) -> Literal["masking", "summarizing"]:
        """``"summarizing"`` from the first summary on."""
        return "summarizing" if self._kept.summary else "masking"

    @property
    def summary_failures(self) -> int:
        """How often the summarizer raised, or returned nothing, since this manager was made."""
        return self._failures

    @property
    def summarizer_error(self) -> Exception | None:
        """What went wrong when it failed last."""
        return self._error

    # Contexts

    def get_context(self, system_prompt: str, user_prompt: str) -> str:
        """The two prompts, the summary, and the turns behind it, the old ones masked."""
        with self._lock:
            return self._kept.context(f"{system_prompt}\n{user_prompt}{_block(self._kept.summary)}")

    def get_messages(self, system_prompt: str, user_prompt: str) -> list[dict[str, str]]:
        """The same as chat messages: system, user (with the summary), then an assistant and a user message a turn."""
        with self._lock:
            return self._messages(system_prompt, user_prompt + _block(self._kept.summary), self._end_turn)


def _block(summary: Summary | None) -> str:
    """The summary as it stands in a context, behind another text."""
    return "" if summary is None else f"\n\n[Summary through turn {summary.end_turn}:\n{summary.content}\n]"


def _summaries(at: Any, tail: Any, prices: Prices) -> tuple[Any, ...]:
    """When summaries are made, as the engine takes it."""
    numbers = {"a whole number": ("tail_window_m", tail)}
    if at != "break_even":
        numbers["a whole number or 'break_even'"] = ("summarize_at_n", at)
    for wanted, (name, turns) in numbers.items():
        if not isinstance(turns, int) or isinstance(turns, bool):
            raise TypeError(f"{name} must be {wanted}, not {type(turns).__name__}")
    if tail < 0:
        raise ValueError(f"tail_window_m must be at least 0, not {tail}")
    if at == "break_even":
        paid = float(prices.cached), float(prices.write), float(prices.input), float(prices.output)
        return None, paid, tail, (SUMMARY_CHARS, SUMMARY_PROMPT_CHARS)
    if at <= tail:
        raise ValueError(f"summarize_at_n ({at}) must be more than tail_window_m ({tail})")
    return (at, at), None, tail, None


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
