"""The hybrid manager: masks observations, and from turn N on summarizes old turns."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from recede._errors import StoreError
from recede._summarizer import bound, is_async, text_of_summary
from recede.costs._prices import Prices
from recede.turns._due import due_summaries
from recede.turns._manager import TurnManager, preset
from recede.turns._turn import Summary, Turn
from recede.types import Generates

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from recede._report import BoundaryMove
    from recede.providers import Provider
    from recede.store._turn_store import TurnStore
    from recede.types import TokenCounter

__all__ = ["PRESETS", "HybridContextManager", "TurnSummarizer"]

TurnSummarizer: TypeAlias = Union[Callable[[list[Turn], Union[str, None]], Any], Callable[[list[Turn]], Any], Generates]
"""Called with unmasked turns and the previous summary (or None), with the turns alone, or with a prompt; returns the
new summary or an object with a ``.text``, or an awaitable of one."""

_PLACEHOLDER = "[Observation omitted]"
PRESETS = {"swe-agent": (10, 43, 10), "openhands": (58, 80, 58)}
_INTERRUPTED = object()
_log = logging.getLogger("recede")


class _Task(NamedTuple):
    """A summary in progress."""

    turns: list[Turn]
    previous: str | None
    end_turn: int


class HybridContextManager(TurnManager):
    """Mask, by default with a sliding boundary, and at turn N, 2N, … summarize all but the last M turns.

    Every turn is in the context exactly once: in the summary, or rendered (masked if older than W). If the summarizer
    raises or returns nothing, masking continues, the failure is counted and logged (the first with its traceback), and
    it is called again after the next turn, then after 2 more turns, 4, and so on up to 64. A summary that is no shorter
    than what it would replace in the context, or that the `store` rejects, counts as a failure.

    Args:
        summarizer_llm: ``(turns, previous_summary) -> str`` or ``(turns) -> str``, sync or async. It gets the unmasked
            turns to summarize and the previous summary. Or an object whose ``.generate(prompt)`` returns the text, or
            an object with a ``.text``. `recede.summarizers` builds one from a client.
        masking_window_w: how many of the last turns show their observation, W.
        summarize_at_n: after how many turns a summary is made, N; more than M. ``"break_even"``: when re-reading the
            older turns has cost as much as a summary, at these prices (docs/summaries.md has the rule).
        tail_window_m: how many of the last turns are never summarized, M.
        mask_chunk, boundary, provider, max_overcost, token_counter, on_move: as for `ObservationMaskingContextManager`.
            The bound on cost of a break_even `boundary` applies to break-even summaries too, and calls of the model
            count in it. A summary at a turn N is always made, and counts.
        prices: the prices for break-even; the preset ``anthropic`` by default.
        store: as for `ObservationMaskingContextManager`; it keeps summaries too.

    Raises:
        TypeError, ValueError, StoreError: as for `ObservationMaskingContextManager`.

    10 / 43 / 10 are the published values for SWE-agent ("The Complexity Trap", JetBrains Research, 2025): at turn 43 a
    masked context has as many tokens as a raw one at 21. It is thread-safe; turns can be added while a summary is being
    made.

    Example:
        >>> import recede
        >>> manager = recede.designs.HybridContextManager(
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
        provider: str | Provider = "ideal",
        max_overcost: float | None = 0.1,
        token_counter: TokenCounter | None = None,
        prices: Prices | None = None,
        store: TurnStore | None = None,
        on_move: Callable[[BoundaryMove], Any] | None = None,
    ) -> None:
        self._set_summarizer(summarizer_llm, "summarizer_llm")
        prices = Prices() if prices is None else prices
        super().__init__(
            "masking_window_w",
            masking_window_w,
            _PLACEHOLDER,
            {"mask_chunk": mask_chunk, "boundary": boundary, "provider": provider, "max_overcost": max_overcost},
            token_counter,
            prices,
            due_summaries(summarize_at_n, tail_window_m, prices),
            {
                "summarize_at_n": summarize_at_n,
                "tail_window_m": tail_window_m,
                "summary_prices": [float(prices.input), float(prices.output)],
            },
            store,
            on_move,
        )
        self._summarize_at, self._tail = summarize_at_n, tail_window_m
        self._is_summarizing = False
        self._error: Exception | None = None

    @classmethod
    def from_preset(
        cls,
        name: Literal["swe-agent", "openhands"],
        summarizer_llm: TurnSummarizer,
        *,
        mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding",
        provider: str | Provider = "ideal",
        max_overcost: float | None = 0.1,
        token_counter: TokenCounter | None = None,
        prices: Prices | None = None,
        store: TurnStore | None = None,
        on_move: Callable[[BoundaryMove], Any] | None = None,
    ) -> HybridContextManager:
        """Create a manager with the published values for an agent: 10 / 43 / 10, or 58 / 80 / 58.

        Example:
            >>> import recede
            >>> recede.designs.HybridContextManager.from_preset("openhands", recede.summarizers.builtin())
            <HybridContextManager: window 58, summary at 80, tail 58; 0 turns, 0 masked>
        """
        return cls(
            summarizer_llm,
            *preset(PRESETS, name),
            mask_chunk=mask_chunk,
            boundary=boundary,
            provider=provider,
            max_overcost=max_overcost,
            token_counter=token_counter,
            prices=prices,
            store=store,
            on_move=on_move,
        )

    # Settings

    def _numbers(self) -> str:
        return f"window {self._window}, summary at {self._summarize_at}, tail {self._tail}"

    @property
    def summarize_at(self) -> int | Literal["break_even"]:
        """After how many turns a summary is made."""
        return self._summarize_at

    @property
    def tail(self) -> int:
        """How many of the last turns are never summarized."""
        return self._tail

    @property
    def summarizer(self) -> TurnSummarizer:
        """The summarizer, as it was given; another may be assigned."""
        return self._summarizer

    @summarizer.setter
    def summarizer(self, summarizer: TurnSummarizer) -> None:
        self._set_summarizer(summarizer, "summarizer")

    def _set_summarizer(self, summarizer: TurnSummarizer, name: str) -> None:
        self._summarize = bound(name, summarizer)
        self._summarizer = summarizer

    @property
    def w(self) -> int:
        """`window` under its published name, W."""
        return self._window

    @property
    def n(self) -> int | Literal["break_even"]:
        """`summarize_at` under its published name, N."""
        return self._summarize_at

    @property
    def m(self) -> int:
        """`tail` under its published name, M."""
        return self._tail

    @property
    def last_summary_idx(self) -> int:
        """The last turn in the summary, under its published name; 0 before the first summary."""
        return self._end_turn

    # Turns

    def add_turn(self, reasoning: str, action: str, observation: str) -> int:
        """Add a turn, make a summary if one is due, and return the number of the turn, from 1.

        Raises:
            RuntimeError: the summarizer is async: use `aadd_turn`. Nothing was added.
            StoreError: the `store` rejected the turn. Nothing was added.
        """
        self._refuse_async("aadd_turn")
        number = self._add(reasoning, action, observation)
        self.maybe_create_summary()
        return number

    async def aadd_turn(self, reasoning: str, action: str, observation: str) -> int:
        """`add_turn` for an async summarizer; a sync one runs in a thread.

        Other tasks can add turns in the meantime.
        """
        number = self._add(reasoning, action, observation)
        await self.amaybe_create_summary()
        return number

    def _refuse_async(self, instead: str) -> None:
        if is_async(self._summarizer):
            raise RuntimeError(f"the summarizer is async: use {instead}")

    # Summaries

    def maybe_create_summary(self) -> bool:
        """Make a summary now if one is due or was missed, and return whether one was made.

        After a failure none is due until enough turns have been added.

        Raises:
            RuntimeError: the summarizer is async: use `amaybe_create_summary`.
        """
        self._refuse_async("amaybe_create_summary")
        task = self._begin()
        if task is None:
            return False
        text: object = _INTERRUPTED
        try:
            text = text_of_summary(self._summarize(task.turns, task.previous))
            if inspect.iscoroutine(text):
                text.close()
        except Exception as error:
            text = error
        finally:
            made = self._end(task, text)
        return made

    async def amaybe_create_summary(self) -> bool:
        """`maybe_create_summary` for an async summarizer; a sync one runs in a thread."""
        task = self._begin()
        if task is None:
            return False
        text: object = None
        try:
            if is_async(self._summarizer):
                text = self._summarize(task.turns, task.previous)
            else:
                text = await asyncio.to_thread(self._summarize, task.turns, task.previous)
            text = text_of_summary(await text if inspect.isawaitable(text) else text)
        except Exception as error:
            text = error
        finally:
            made = self._end(task, text)
        return made

    def _begin(self) -> _Task | None:
        """Start a summary if one is due and none is in progress."""
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
        """Finish a summary: the summarizer returned, raised, was interrupted, or was cancelled (None)."""
        with self._lock:
            self._is_summarizing = False
            if not isinstance(text, str) or not text.strip():
                self._fail(task.end_turn, text)
                return False
            summary = Summary(task.end_turn, text)
            block = _block(summary)
            replaced = self._kept.replaced_chars(task.end_turn)
            if len(block) >= replaced:
                words = f"the summary has {len(block):,} characters, and what it would replace only {replaced:,}"
                self._fail(task.end_turn, ValueError(words))
                return False
            try:
                given = self._kept.raw_tokens(task.turns[0].turn - 1, task.end_turn) + self._count(task.previous or "")
                self._kept.summarize(summary, len(block), self._count(block), given + self._count(text))
            except StoreError as error:
                self._fail(task.end_turn, error)
                return False
            return True

    def _fail(self, end_turn: int, text: object) -> None:
        if text is _INTERRUPTED:  # not the summarizer's fault: it may be called again at once
            text = ValueError("the summarizer was interrupted")
        else:
            self._kept.summary_failed()
        if text is None or isinstance(text, str):
            text = ValueError("the summarizer returned no text")
        elif not isinstance(text, Exception):
            text = TypeError(f"the summarizer must return a string, not {type(text).__name__}")
        self._failures += 1
        self._error = text
        first = text if self._failures == 1 else None
        _log.warning("no summary of turns %d to %d: %s", self._end_turn + 1, end_turn, text, exc_info=first)

    @property
    def _end_turn(self) -> int:
        return self._kept.summary.end_turn if self._kept.summary else 0

    @property
    def _content(self) -> str | None:
        return self._kept.summary.content if self._kept.summary else None

    @property
    def summaries(self) -> list[Summary]:
        """All summaries, as a new list; the last one is in the context."""
        with self._lock:
            return self._kept.summaries()

    @property
    def phase(self) -> Literal["masking", "summarizing"]:
        """``"summarizing"`` from the first summary on."""
        return "summarizing" if self._kept.summary else "masking"

    @property
    def summary_failures(self) -> int:
        """How often the summarizer raised or returned nothing since this manager was created."""
        return self._failures

    @property
    def summarizer_error(self) -> Exception | None:
        """The error of its most recent failure."""
        return self._error

    # Contexts

    def get_context(self, system_prompt: str, user_prompt: str) -> str:
        """The two prompts, the summary, and the turns after it, the old ones masked."""
        with self._lock:
            return self._rendered(f"{system_prompt}\n{user_prompt}{_block(self._kept.summary)}")

    def get_messages(self, system_prompt: str, user_prompt: str) -> list[dict[str, str]]:
        """The same as chat messages: system, user (with the summary), then an assistant and a user message per turn."""
        with self._lock:
            return self._messages(system_prompt, user_prompt + _block(self._kept.summary), self._end_turn)


def _block(summary: Summary | None) -> str:
    """The summary as rendered in a context, after another text."""
    return "" if summary is None else f"\n\n[Summary through turn {summary.end_turn}:\n{summary.content}\n]"
