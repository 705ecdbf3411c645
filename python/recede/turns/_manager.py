"""What all managers of turns have: their turns, settings and figures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from recede import _engine
from recede._errors import no_such
from recede.providers import checked_provider, saved_provider
from recede.reduction._counting import count_tokens
from recede.reduction._kinds import optional_function
from recede.reduction._policy import turn_policy
from recede.turns._log import Turns
from recede.turns._report import ContextReport

if TYPE_CHECKING:
    from typing import Literal

    from recede._report import BoundaryMove
    from recede.costs._prices import Prices
    from recede.store._turn_store import TurnStore
    from recede.turns._turn import Turn
    from recede.types import TokenCounter

__all__ = ["TurnManager", "TurnStats", "check_texts", "preset"]

_UNSAID = (("provider", "ideal"), ("max_overcost", 0.1))


class TurnStats(NamedTuple):
    """The figures of a manager, for a status line.

    Attributes:
        turns: turns that were added.
        masked_turns: turns whose observation is masked, those in the summary too.
        summarized_turns: turns that the summary of the next context replaces.
        summaries: summaries that were made.
        summary_failures: how often the summarizer failed since this manager was created.

    Example:
        >>> import recede
        >>> recede.designs.ObservationMaskingContextManager().stats()
        TurnStats(turns=0, masked_turns=0, summarized_turns=0, summaries=0, summary_failures=0)
    """

    turns: int
    masked_turns: int
    summarized_turns: int
    summaries: int
    summary_failures: int


_SUMMARIES = "give summarizer_llm, a function (turns, previous_summary) -> text; summarize_at_n says when it is asked"
_CONTEXTS = "override get_context, or of the masking manager get_masked_context"
# Methods of the published managers that are not called here, and what to do instead.
_INSTEAD = {
    "_generate_summary": _SUMMARIES,
    "_create_summary": _SUMMARIES,
    "_check_phase_transition": _SUMMARIES,
    "_get_context": _CONTEXTS,
    "_apply_masking": f"{_CONTEXTS}; the window and placeholder= say what is masked",
    "_apply_hybrid": f"{_CONTEXTS}; the window and placeholder= say what is masked",
    "_add_turn": "override add_turn, or give run_agent on_turn=, which is called with each turn",
    "_build_result": "override run_agent, and change what super().run_agent(...) returns",
}


class TurnManager:
    """Base of the managers: turns are stored in full and rendered masked."""

    _failures = 0

    def __init__(
        self,
        window_name: str,
        window: int,
        placeholder: str,
        options: Mapping[str, Any],
        token_counter: TokenCounter | None,
        prices: Prices | None = None,
        summaries: tuple[Any, ...] | None = None,
        summary_options: Mapping[str, Any] | None = None,
        store: TurnStore | None = None,
        on_move: Callable[[BoundaryMove], Any] | None = None,
    ) -> None:
        optional_function("token_counter", token_counter)
        self._on_move = optional_function("on_move", on_move)
        engine = _engine.engine
        if prices is not None:
            provider = checked_provider("provider", options["provider"])
            options = {**options, "provider": provider._replace(read=prices.cached, write=prices.write)}
        policy = turn_policy(engine, window_name, window, placeholder, options, summaries)
        self._counter = token_counter
        self._lock = threading.RLock()
        self._is_counting = False
        # A store names what differs from this, so that an older one is opened again.
        named_options = {**options, "provider": saved_provider(options["provider"])}
        said = {name: value for name, value in named_options.items() if (name, value) not in _UNSAID}
        named = {window_name: window, "placeholder": placeholder, **said, **(summary_options or {})}
        self._window, self._placeholder = window, placeholder
        self._boundary = options["boundary"] if options["mask_chunk"] is None else "stepped"
        self._kept = Turns(policy, store, named)
        self._kept.resume(self._tokens)

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Refuse methods of the published class that are named otherwise here: an override would not be called."""
        super().__init_subclass__(**arguments)
        for name, instead in _INSTEAD.items():
            if hasattr(cls, name):
                raise TypeError(f"{cls.__name__}.{name} would never be called: {instead}")

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def __repr__(self) -> str:
        with self._lock:
            masked = self._kept.stats().masked_turns
            return f"<{type(self).__name__}: {self._numbers()}; {len(self):,} turns, {masked:,} masked>"

    def _numbers(self) -> str:
        return f"window {self._window}"

    # Settings

    def __setattr__(self, name: str, value: object) -> None:
        """Assign an attribute; a read-only one only its own value, as classes of the designs restate settings."""
        try:
            object.__setattr__(self, name, value)
        except AttributeError:
            if not hasattr(self, name) or getattr(self, name) != value:
                words = "is read-only: the settings of a manager are the arguments of its constructor"
                raise AttributeError(f"{name} {words}") from None

    @property
    def window(self) -> int:
        """How many of the last turns show their observation."""
        return self._window

    @property
    def placeholder(self) -> str:
        """The text, or template, for a masked observation."""
        return self._placeholder

    @property
    def boundary(self) -> Literal["sliding", "stepped", "break_even"]:
        """When observations are masked; with a `mask_chunk`, ``"stepped"``."""
        return self._boundary  # type: ignore[return-value]

    # Turns

    def stats(self) -> TurnStats:
        """The figures of this manager; `report` has those of its requests."""
        with self._lock:
            masked, kept = self._kept.stats().masked_turns, self._kept
            summarized = kept.summary.end_turn if kept.summary else 0
            return TurnStats(len(self), masked, summarized, kept.summary_count, self._failures)

    @property
    def trajectory(self) -> list[Turn]:
        """All turns, unmasked, as a new list."""
        with self._lock:
            return self._turns(0, len(self))

    def _turns(self, start: int, end: int) -> list[Turn]:
        with self._lock:
            return self._kept.turns(start, end)

    def _add(self, reasoning: str, action: str, observation: str) -> int:
        check_texts(reasoning, action, observation)
        with self._lock:
            self._refuse_callbacks()
            number = self._kept.add(reasoning, action, observation, self._tokens(reasoning, action, observation))
            self._report_moves()
            return number

    def _tokens(self, reasoning: str, action: str, observation: str) -> tuple[int, int, int] | None:
        """Tokens of a turn without its observation, of the observation, and of its placeholder; None to count words."""
        if self._counter is None:
            return None
        frame = f"\n\nTurn {len(self) + 1}:\nReasoning: {reasoning}\nAction: {action}\nObservation: \n"
        masked = self._kept.masked_text(observation) or ""
        return self._count(frame), self._count(observation), self._count(masked)

    def _count(self, text: str) -> int:
        if self._counter is None:
            return len(text.split())
        self._is_counting = True
        try:
            return count_tokens(self._counter, text)
        finally:
            self._is_counting = False

    def _refuse_callbacks(self) -> None:
        """Refuse calls from the callbacks, which run in the thread that has the (reentrant) lock."""
        if self._is_counting:
            raise RuntimeError(
                "the token_counter or on_move of this manager has called it: it may read turns and contexts, but "
                "neither add turns nor make a summary"
            )

    def recall(self, turn: int) -> str:
        """The full observation of a turn, masked or not.

        Args:
            turn: its number, from 1.

        Raises:
            LookupError: there is no such turn.
        """
        with self._lock:
            if not 0 < turn <= len(self):
                raise no_such("turn", turn)
            return self._kept.recall(turn)

    def _report_moves(self) -> None:
        self._is_counting = True
        try:
            self._kept.report_moves(self._on_move)
        finally:
            self._is_counting = False

    def _rendered(self, before: str) -> str:
        """The text that precedes the turns, and the turns."""
        context = self._kept.context(before)
        self._report_moves()
        return context

    def _messages(self, system_prompt: str, user_prompt: str, first: int) -> list[dict[str, str]]:
        """The turns after the first `start` as chat messages."""
        prompts = [{"role": "system", "content": system_prompt}, {"role": "user", "content": user_prompt}]
        turns = self._kept.messages(first)
        self._report_moves()
        return prompts + turns

    def report(self, price_per_token: float = 0.00001) -> ContextReport:
        """Report the tokens that all requests so far sent, and the savings.

        Args:
            price_per_token: the price of a token sent.

        Prompts are not counted: they are the same with and without masking.
        """
        with self._lock:
            return ContextReport(self._kept.requests(), self._kept.spent_tokens, price_per_token)


def check_texts(reasoning: object, action: object, observation: object) -> None:
    for name, text in (("reasoning", reasoning), ("action", action), ("observation", observation)):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a string, not {type(text).__name__}")


def preset(presets: dict[str, Any], name: str) -> Any:
    """The preset of this name."""
    if name not in presets:
        raise ValueError(f"there is no preset {name!r}; give one of {', '.join(map(repr, presets))}")
    return presets[name]
