"""The hybrid manager: masks observations, and from turn N on summarizes old turns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from recede._errors import StoreError
from recede._steps import awaited, drive, drive_async, not_awaited
from recede._summarizer import bound, is_async, text_of_summary
from recede.reduction._signature import takes
from recede.turns._manager import TurnManager
from recede.turns._options import PRICED_OPTIONS, preset
from recede.turns._turn import Summary, Turn
from recede.types import Generates

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from typing_extensions import Unpack

    from recede.turns._options import HybridOptions

__all__ = ["Call", "HybridContextManager", "TurnSummarizer"]

TurnSummarizer: TypeAlias = Union[Callable[[list[Turn], Union[str, None]], Any], Callable[[list[Turn]], Any], Generates]
"""Called with unmasked turns and the previous summary (or None), with the turns alone, or with a prompt; returns the
new summary or an object with a ``.text``, or an awaitable of one."""

_PLACEHOLDER = "[Observation omitted]"
_INTERRUPTED = ValueError("the summarizer was interrupted")
_log = logging.getLogger("recede")


class Call(NamedTuple):
    """A step of a manager: a call of a function that was given, by its name."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    instead: str = "arun_agent"  # what awaits it
    in_thread: bool = False  # of async callers

    def run(self) -> Any:
        """The result; TypeError if the function is async."""
        return not_awaited(self.function(*self.arguments), self.name, self.instead)

    async def run_async(self) -> Any:
        """The result, awaited if it is awaitable."""
        if self.in_thread:
            return await awaited(await asyncio.to_thread(self.function, *self.arguments))
        return await awaited(self.function(*self.arguments))


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
        mask_chunk, boundary, provider, max_overcost, token_counter, on_move, recall: as for
            `ObservationMaskingContextManager`.
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

    @takes(PRICED_OPTIONS)
    def __init__(
        self,
        summarizer_llm: TurnSummarizer,
        masking_window_w: int = 10,
        summarize_at_n: int | Literal["break_even"] = 43,
        tail_window_m: int = 10,
        **options: Unpack[HybridOptions],
    ) -> None:
        self._set_summarizer(summarizer_llm, "summarizer_llm")
        self._summarize_at, self._tail = summarize_at_n, tail_window_m
        self._is_summarizing = False
        self._error: Exception | None = None
        summaries = {"summarize_at_n": summarize_at_n, "tail_window_m": tail_window_m}
        super().__init__(("masking_window_w", masking_window_w), _PLACEHOLDER, options, summaries)

    @classmethod
    @takes(PRICED_OPTIONS)
    def from_preset(
        cls,
        name: Literal["swe-agent", "openhands"],
        summarizer_llm: TurnSummarizer,
        **options: Unpack[HybridOptions],
    ) -> HybridContextManager:
        """Create a manager with the published values for an agent: 10 / 43 / 10, or 58 / 80 / 58.

        Example:
            >>> import recede
            >>> recede.designs.HybridContextManager.from_preset("openhands", recede.summarizers.builtin())
            <HybridContextManager: window 58, summary at 80, tail 58; 0 turns, 0 masked>
        """
        return cls(summarizer_llm, *preset(name), **options)

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
        turn = self._add(reasoning, action, observation)
        self.maybe_create_summary()
        return turn.turn

    async def aadd_turn(self, reasoning: str, action: str, observation: str) -> int:
        """`add_turn` for an async summarizer; a sync one runs in a thread.

        Other tasks can add turns in the meantime.
        """
        turn = self._add(reasoning, action, observation)
        await self.amaybe_create_summary()
        return turn.turn

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
        return drive(self._summarizing(), Call.run)

    async def amaybe_create_summary(self) -> bool:
        """`maybe_create_summary` for an async summarizer; a sync one runs in a thread."""
        return await drive_async(self._summarizing(), Call.run_async)

    def _summarizing(self) -> Generator[Call, Any, bool]:
        """The steps of a summary, if one is due and none is in progress."""
        with self._lock:
            self._refuse_callbacks()
            end_turn = self._session.summary_due()
            if self._is_summarizing or end_turn is None:
                return False
            previous = self._last_summary
            try:
                turns = self._turns(self._end_turn, end_turn)
            except StoreError as error:
                return self._fail(end_turn, error)
            self._is_summarizing = True
        text: Any = _INTERRUPTED
        given = turns, previous.content if previous else None
        try:
            call = Call("the summarizer", self._summarize, given, "aadd_turn", not is_async(self._summarizer))
            text = text_of_summary((yield call))
        except Exception as error:
            text = error
        finally:
            made = self._end(turns, given[1] or "", text)
        return made

    def _end(self, turns: list[Turn], previous: str, text: object) -> bool:
        """Finish a summary of these turns: the summarizer returned, raised or was interrupted."""
        with self._lock:
            self._is_summarizing = False
            start, end_turn = turns[0].turn - 1, turns[-1].turn
            if not isinstance(text, str) or not text.strip():
                return self._fail(end_turn, text)
            summary = Summary(end_turn, text)
            block = _block(summary)
            replaced = self._session.replaced_chars(end_turn)
            if len(block) >= replaced:
                words = f"the summary has {len(block):,} characters, and what it would replace only {replaced:,}"
                return self._fail(end_turn, ValueError(words))
            try:
                before, after = (self._session.requests(turn, turn + 1)[0].raw_tokens for turn in (start, end_turn))
                # A damaged store may have any numbers.
                spent = max(0, int(after - before)) + self._count(previous) + self._count(text)
                self._replace_by(summary, len(block), self._count(block), spent)
            except StoreError as error:
                return self._fail(end_turn, error)
            return True

    def _fail(self, end_turn: int, text: object) -> bool:
        if text is not _INTERRUPTED:  # else not the summarizer's fault: it may be called again at once
            self._summary_failed()
        if text is None or isinstance(text, str):
            text = ValueError("the summarizer returned no text")
        elif not isinstance(text, Exception):
            text = TypeError(f"the summarizer must return a string, not {type(text).__name__}")
        self._failures += 1
        self._error = text
        first = text if self._failures == 1 else None
        _log.warning("no summary of turns %d to %d: %s", self._end_turn + 1, end_turn, text, exc_info=first)
        return False

    @property
    def summaries(self) -> list[Summary]:
        """The summaries, as a new list; the last one is in the context."""
        with self._lock:
            return self._all_summaries()

    @property
    def phase(self) -> Literal["masking", "summarizing"]:
        """``"summarizing"`` from the first summary on."""
        return "summarizing" if self._last_summary else "masking"

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
            return self._rendered(f"{system_prompt}\n{user_prompt}{_block(self._last_summary)}")

    def get_messages(self, system_prompt: str, user_prompt: str) -> list[dict[str, str]]:
        """The context as chat messages: system, user (with the summary), then an assistant and a user one per turn."""
        with self._lock:
            return self._chat_messages(system_prompt, user_prompt + _block(self._last_summary))


def _block(summary: Summary | None) -> str:
    """The summary as rendered in a context, after another text."""
    return "" if summary is None else f"\n\n[Summary through turn {summary.end_turn}:\n{summary.content}\n]"
