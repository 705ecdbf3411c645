"""The hybrid manager: masks observations, and at turn N, 2N, … summarizes old turns."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Union

from recede._bodies import unique
from recede._engine import wait_after
from recede._errors import StoreError
from recede._steps import Call, drive, drive_async
from recede._summarizer import bound, checked_text, is_async
from recede.reduction._kinds import whole_number
from recede.turns._manager import PARTS, TurnManager, preset
from recede.turns._records import Summary, Turn
from recede.types import Generates

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from typing_extensions import Self

    from recede.store._turn_store import TurnStore

TurnSummarizer: TypeAlias = Union[Callable[[list[Turn], Union[str, None]], Any], Callable[[list[Turn]], Any], Generates]
"""Called with unmasked turns and the previous summary (or None), with the turns alone, or with a prompt; returns the
new summary or an object with a ``.text``, or an awaitable of one."""

_PLACEHOLDER = "[Observation omitted]"
_log = logging.getLogger("recede")


class HybridContextManager(TurnManager):
    """Mask observations, and at turn N, 2N, … summarize all but the last M turns.

    Every turn is in the context exactly once: in the summary, or rendered (masked if older than W). If the summarizer
    raises or returns nothing, masking continues, the failure is counted and logged (the first with its traceback), and
    it is called again after the next turn, then after 2 more turns, 4, and so on up to 64. A summary that is no shorter
    than what it would replace in the context, or that the `store` rejects, counts as a failure.

    Args:
        summarizer_llm: ``(turns, previous_summary) -> str`` or ``(turns) -> str``, sync or async. It gets the unmasked
            turns to summarize and the previous summary. Or an object whose ``.generate(prompt)`` returns the text, or
            an object with a ``.text``. `recede.summarizers` builds one from a client.
        masking_window_w: how many of the last turns show their observation, W.
        summarize_at_n: after how many turns a summary is made, N; more than M.
        tail_window_m: how many of the last turns are never summarized, M.
        store, recall: as for `ObservationMaskingContextManager`; the store keeps summaries too.

    10 / 43 / 10 are the published values for SWE-agent ("The Complexity Trap", JetBrains Research, 2025): at turn 43 a
    masked context has as many tokens as a raw one at 21. It is thread-safe; turns can be added while a summary is being
    made.

    Example:
        >>> import recede
        >>> manager = recede.designs.HybridContextManager(lambda turns: "Two files were read.", 1, 3, 1)
        >>> for name in "abc":
        ...     number = manager.add_turn("I must look.", f"cat {name}.py", f"the text of {name}.py")
        >>> print(manager.get_context("You are careful.", "Find the bug.").partition("\\n\\nTurn 3:")[0])
        You are careful.
        Find the bug.
        <BLANKLINE>
        [Summary through turn 2:
        Two files were read.
        ]
    """

    def __init__(
        self,
        summarizer_llm: TurnSummarizer,
        masking_window_w: int = 10,
        summarize_at_n: int = 43,
        tail_window_m: int = 10,
        *,
        store: TurnStore | None = None,
        recall: bool = False,
    ) -> None:
        self._set_summarizer(summarizer_llm, "summarizer_llm")
        window, at, tail = masking_window_w, summarize_at_n, tail_window_m
        numbers = {"masking_window_w": window, "summarize_at_n": at, "tail_window_m": tail}
        for name, number in numbers.items():
            whole_number()(name, number)
        if at <= tail:
            raise ValueError(f"summarize_at_n ({at}) must be more than tail_window_m ({tail})")
        self._summarize_at, self._tail = at, tail
        self._is_summarizing = False
        self._failed_at: list[int] = []  # how many turns there were at each failure since the last summary
        self.summarizer_error: Exception | None = None  # of the most recent failure
        super().__init__(window, _PLACEHOLDER, store, recall, numbers)

    @classmethod
    def from_preset(
        cls,
        name: Literal["swe-agent", "openhands"],
        summarizer_llm: TurnSummarizer,
        *,
        store: TurnStore | None = None,
        recall: bool = False,
    ) -> Self:
        """Create a manager with the published values for an agent: 10 / 43 / 10, or 58 / 80 / 58."""
        return cls(summarizer_llm, *preset(name), store=store, recall=recall)

    # Settings and state

    def _numbers(self) -> str:
        return f"window {self._window}, summary at {self._summarize_at}, tail {self._tail}"

    @property
    def summarize_at(self) -> int:
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
        self._summarizer, self._is_async = summarizer, is_async(summarizer)

    @property
    def w(self) -> int:
        """`window` under its published name, W."""
        return self._window

    @property
    def n(self) -> int:
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

    @property
    def summaries(self) -> list[Summary]:
        """The summaries, as a new list; the last one is in the context."""
        with self._lock:
            return [summary for _, summary in self._made]

    @property
    def phase(self) -> Literal["masking", "summarizing"]:
        """``"summarizing"`` from the first summary on."""
        return "summarizing" if self._made else "masking"

    # Turns

    def add_turn(self, reasoning: str, action: str, observation: str) -> int:
        """Add a turn, make a summary if one is due, and return the number of the turn, from 1.

        Raises:
            RuntimeError: the summarizer is async: use `aadd_turn`. Nothing was added.
            StoreError: the `store` rejected the turn. Nothing was added.
        """
        self._refuse_async("aadd_turn")
        turn = self._add(reasoning, action, observation)
        if self._due() is not None:
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
        if self._is_async:
            raise RuntimeError(f"the summarizer is async: use {instead}")

    def get_context(self, system_prompt: str, user_prompt: str) -> str:
        """The two prompts, the summary, and the turns after it, the old ones masked."""
        return self._context(system_prompt, user_prompt)

    # Summaries

    def maybe_create_summary(self) -> bool:
        """Make a summary now if one is due or was missed, and return whether one was made.

        After a failure none is due until enough turns have been added.

        Raises:
            RuntimeError: the summarizer is async: use `amaybe_create_summary`.
        """
        self._refuse_async("amaybe_create_summary")
        return drive(self._summarizing())

    async def amaybe_create_summary(self) -> bool:
        """`maybe_create_summary` for an async summarizer; a sync one runs in a thread."""
        return await drive_async(self._summarizing())

    def _due(self) -> int | None:
        """The last turn of the summary that is due, if one is."""
        turns, failed = self._end_turn + len(self._parts) // PARTS, self._failed_at
        end = turns // self._summarize_at * self._summarize_at - self._tail
        if end <= self._end_turn or self._is_summarizing:
            return None
        return None if failed and turns - failed[-1] < wait_after(len(failed)) else end

    def _summarizing(self) -> Generator[Call, Any, bool]:
        """The steps of a summary, if one is due and none is in progress."""
        with self._lock:
            end = self._due()
            if end is None:
                return False
            self._is_summarizing = True
            previous = self._made[-1][1].content if self._made else None
        try:
            turns = list(self._between(self._end_turn, end))
            answer = yield Call("the summarizer", self._summarize, (turns, previous), "aadd_turn", not self._is_async)
            with self._lock:
                summary = self._checked(end, answer)
                self._store_event(summary)
                self._happened(len(self), summary)
            return True
        except Exception as error:
            with self._lock:
                self._fail(end, error)
            return False
        finally:  # after an interrupt, which is not the summarizer's fault, it may be called again at once
            self._is_summarizing = False

    def _checked(self, end: int, answer: object) -> Summary:
        """The summary of the turns up to this one; an error where the answer is none, or no shorter than they are."""
        if answer is None:
            raise ValueError("the summarizer returned no text")
        summary = Summary(end, checked_text(answer))
        replaced = sum(map(len, self._parts[: PARTS * (end - self._end_turn)]))
        replaced += len(str(self._made[-1][1])) if self._made else 0
        if len(str(summary)) >= replaced:
            words = f"the summary has {len(str(summary)):,} characters, and what it would replace only {replaced:,}"
            raise ValueError(words)
        return summary

    def _fail(self, end: int, error: Exception) -> None:
        self._happened(len(self), None)
        with contextlib.suppress(StoreError):  # losing this record costs one call after a restart
            self._store_event(None)
        self._failures += 1
        self.summarizer_error = error
        first = error if self._failures == 1 else None
        _log.warning("no summary of turns %d to %d: %s", self._end_turn + 1, end, error, exc_info=first)

    def _happened(self, turns: int, summary: Summary | None) -> None:
        if summary is None:
            self._failed_at.append(turns)
            return
        del self._parts[: PARTS * (summary.end_turn - self._end_turn)]
        self._end_turn = summary.end_turn
        self._failed_at.clear()
        self._made.append((turns, summary))

    # Summaries in a store

    def _store_event(self, summary: Summary | None) -> None:
        if self._store is not None and not self._store.is_read_only:
            end, content = summary or (0, "")
            head = json.dumps({"made_at": len(self), "end_turn": end}).encode()
            self._store_settings(self._store)
            self._store.append_record("summary", [head, content.encode("utf-8", "surrogatepass")])

    def _stored_events(self, store: TurnStore) -> list[tuple[int, Summary | None]]:
        events: list[tuple[int, Summary | None]] = []
        last = before = 0
        for fields in store.records("summary"):
            try:
                head, text = fields
                numbers = unique(head)
                at, end = numbers["made_at"], numbers["end_turn"]
                if not type(at) is type(end) is int or not last <= at <= len(store):
                    raise ValueError("a number out of range")
                if (end and (not before < end <= at or (end + self._tail) % self._summarize_at)) or (text and not end):
                    raise ValueError("a summary of other turns")
                events.append((at, Summary(end, text.decode("utf-8", "surrogatepass")) if end else None))
            except (LookupError, ValueError):
                what = f"summary {len(events) + 1} in it is invalid"
                raise StoreError("damaged", path=store.path, what=what) from None
            last, before = at, end or before
        return events
