"""The hybrid manager: masks observations, and at turn N, 2N, … summarizes old turns."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Union

from recede._errors import StoreError
from recede._steps import Call, drive, drive_async
from recede._strict import are_numbers, unique
from recede._summarizer import bound, is_async, text_of_summary
from recede.reduction._kinds import whole_number
from recede.turns._manager import TurnManager, preset
from recede.turns._turn import Summary, Turn
from recede.types import Generates

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from recede.store._turn_store import TurnStore

__all__ = ["HybridContextManager", "TurnSummarizer"]

TurnSummarizer: TypeAlias = Union[Callable[[list[Turn], Union[str, None]], Any], Callable[[list[Turn]], Any], Generates]
"""Called with unmasked turns and the previous summary (or None), with the turns alone, or with a prompt; returns the
new summary or an object with a ``.text``, or an awaitable of one."""

_PLACEHOLDER = "[Observation omitted]"
_MAX_WAIT = 64  # turns between failed summaries
_INTERRUPTED = ValueError("the summarizer was interrupted")
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
        store: as for `ObservationMaskingContextManager`; it keeps summaries too.
        recall: as for `ObservationMaskingContextManager`.

    Raises:
        TypeError, ValueError, StoreError: as for `ObservationMaskingContextManager`.

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
        whole = whole_number()
        at, tail = whole("summarize_at_n", summarize_at_n) or 0, whole("tail_window_m", tail_window_m) or 0
        if at <= tail:
            raise ValueError(f"summarize_at_n ({at}) must be more than tail_window_m ({tail})")
        self._summarize_at, self._tail = at, tail
        self._is_summarizing = False
        self._failed_at: list[int] = []  # how many turns there were at each failure since the last summary
        self._error: Exception | None = None
        window = "masking_window_w", masking_window_w
        super().__init__(window, _PLACEHOLDER, store, recall, summarize_at_n=at, tail_window_m=tail)

    @classmethod
    def from_preset(
        cls,
        name: Literal["swe-agent", "openhands"],
        summarizer_llm: TurnSummarizer,
        *,
        store: TurnStore | None = None,
        recall: bool = False,
    ) -> HybridContextManager:
        """Create a manager with the published values for an agent: 10 / 43 / 10, or 58 / 80 / 58."""
        return cls(summarizer_llm, *preset(name), store=store, recall=recall)

    # Settings

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
        turns, failed = self._end_turn + len(self._parts) // 3, self._failed_at
        end = turns // self._summarize_at * self._summarize_at - self._tail
        if end <= self._end_turn or self._is_summarizing:
            return None
        return None if failed and turns - failed[-1] < min(1 << (len(failed) - 1), _MAX_WAIT) else end

    def _summarizing(self) -> Generator[Call, Any, bool]:
        """The steps of a summary, if one is due and none is in progress."""
        with self._lock:
            end = self._due()
            if end is None:
                return False
            previous = self._summaries[-1].content if self._summaries else None
            try:
                turns = list(self._between(self._end_turn, end))
            except StoreError as error:
                return self._fail(end, error)
            self._is_summarizing = True
        text: Any = _INTERRUPTED
        try:
            call = Call("the summarizer", self._summarize, (turns, previous), "aadd_turn", not self._is_async)
            text = text_of_summary((yield call))
        except Exception as error:
            text = error
        finally:
            made = self._finish(end, text)
        return made

    def _finish(self, end: int, text: object) -> bool:
        """Finish a summary of the turns up to this one: the summarizer returned, raised or was interrupted."""
        with self._lock:
            self._is_summarizing = False
            if not isinstance(text, str) or not text.strip():
                return self._fail(end, text)
            summary = Summary(end, text)
            replaced = len(self._block()) + sum(map(len, self._parts[: 3 * (end - self._end_turn)]))
            if len(str(summary)) >= replaced:
                words = f"the summary has {len(str(summary)):,} characters, and what it would replace only {replaced:,}"
                return self._fail(end, ValueError(words))
            try:
                self._store_event(summary)
            except StoreError as error:
                return self._fail(end, error)
            self._happened(len(self), summary)
            return True

    def _fail(self, end: int, text: object) -> bool:
        if text is not _INTERRUPTED:  # else not the summarizer's fault: it may be called again at once
            self._happened(len(self), None)
            with contextlib.suppress(StoreError):  # losing this record costs one call after a restart
                self._store_event(None)
        if text is None or isinstance(text, str):
            text = ValueError("the summarizer returned no text")
        elif not isinstance(text, Exception):
            text = TypeError(f"the summarizer must return a string, not {type(text).__name__}")
        self._failures += 1
        self._error = text
        first = text if self._failures == 1 else None
        _log.warning("no summary of turns %d to %d: %s", self._end_turn + 1, end, text, exc_info=first)
        return False

    def _happened(self, turns: int, summary: Summary | None) -> None:
        if summary is None:
            self._failed_at.append(turns)
            return
        self._mask()
        replaced = summary.end_turn - self._end_turn
        del self._parts[: 3 * replaced], self._chat[: 2 * replaced]
        self._end_turn = summary.end_turn
        self._failed_at.clear()
        self._summaries.append(summary)
        self._made_at.append(turns)

    def _store_event(self, summary: Summary | None) -> None:
        if self._store is not None and not self._store.is_read_only:
            end, content = summary or (0, "")
            head = json.dumps({"made_at": len(self), "end_turn": end}).encode()
            self._write(self._store).append_record("summary", [head, content.encode("utf-8", "surrogatepass")])

    def _stored_events(self, store: TurnStore) -> list[tuple[int, Summary | None]]:
        events: list[tuple[int, Summary | None]] = []
        last = before = 0
        for fields in store.records("summary"):
            try:
                head, text = fields
                numbers = unique(head)
                at, end = numbers["made_at"], numbers["end_turn"]
                if not are_numbers((at, end)) or not last <= at <= len(store):
                    raise ValueError("a number out of range")
                if (end and (not before < end <= at or (end + self._tail) % self._summarize_at)) or (text and not end):
                    raise ValueError("a summary of other turns")
                events.append((at, Summary(end, text.decode("utf-8", "surrogatepass")) if end else None))
            except (LookupError, ValueError):
                what = f"summary {len(events) + 1} in it is invalid"
                raise StoreError("damaged", path=store.path, what=what) from None
            last, before = at, end or before
        return events

    @property
    def summaries(self) -> list[Summary]:
        """The summaries, as a new list; the last one is in the context."""
        with self._lock:
            return self._summaries.copy()

    @property
    def phase(self) -> Literal["masking", "summarizing"]:
        """``"summarizing"`` from the first summary on."""
        return "summarizing" if self._summaries else "masking"

    @property
    def summary_failures(self) -> int:
        """How often the summarizer raised or returned nothing since this manager was created."""
        return self._failures

    @property
    def summarizer_error(self) -> Exception | None:
        """The error of its most recent failure."""
        return self._error

    # Contexts

    def _block(self) -> str:
        """The summary in a context, after another text."""
        return str(self._summaries[-1]) if self._summaries else ""

    def get_context(self, system_prompt: str, user_prompt: str) -> str:
        """The two prompts, the summary, and the turns after it, the old ones masked."""
        with self._lock:
            return self._context(f"{system_prompt}\n{user_prompt}{self._block()}")

    def get_messages(self, system_prompt: str, user_prompt: str) -> list[dict[str, str]]:
        """The context as chat messages: system, user (with the summary), then an assistant and a user one per turn."""
        with self._lock:
            return self._messages(system_prompt, user_prompt + self._block())
