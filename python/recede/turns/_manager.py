"""The base of the managers of turns: settings, turns, contexts and figures."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recede import _engine
from recede._errors import no_such
from recede._recall import turn_tool
from recede.costs._prices import Prices
from recede.providers import checked_provider, saved_provider
from recede.reduction._counting import count_tokens
from recede.reduction._kinds import optional_function
from recede.reduction._on_move import report_move
from recede.reduction._policy import turn_policy
from recede.turns._options import OPTIONS, PRICED_OPTIONS, due_summaries
from recede.turns._report import ContextReport, TurnStats
from recede.turns._turn import Turn, text_of
from recede.turns._turns import Turns

if TYPE_CHECKING:
    from typing import Literal

__all__ = ["TurnManager", "check_texts"]

_UNSAID = (("provider", "ideal"), ("max_overcost", 0.1))
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


class TurnManager(Turns):
    """Base of the managers: turns are stored in full and rendered masked."""

    _failures = 0

    def __init__(
        self,
        window: tuple[str, int],
        placeholder: str,
        given: Mapping[str, Any],
        summaries: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin with a window by its name, a placeholder, options, and when summaries are made, by names, if at all."""
        declared = OPTIONS if summaries is None else PRICED_OPTIONS
        for name in given.keys() - declared.keys():
            raise TypeError(f"{type(self).__name__} has no option {name!r}; it takes {', '.join(declared)}")
        values = {**{name: option.default for name, option in declared.items()}, **given}
        self._on_move = optional_function("on_move", values.pop("on_move"))
        self._counter = optional_function("token_counter", values.pop("token_counter"))
        self._recalls = OPTIONS["recall"].check("recall", values.pop("recall"))
        if self._recalls and isinstance(placeholder, str) and "{turn}" not in placeholder:
            placeholder = f"{placeholder.removesuffix(']')}: recall {{turn}}]"
        store, prices = values.pop("store"), values.pop("prices", None) or Prices()
        # A store names what differs from this, so that an older one is opened again.
        said = {**values, "provider": saved_provider(values["provider"])}
        said = {name: value for name, value in said.items() if (name, value) not in _UNSAID}
        named = {window[0]: window[1], "placeholder": placeholder, **said, **(summaries or {})}
        due = None
        if summaries is not None:
            due = due_summaries(summaries, prices)
            named["summary_prices"] = [float(prices.input), float(prices.output)]
            provider = checked_provider("provider", values["provider"])
            values["provider"] = provider._replace(read=prices.cached, write=prices.write)
        policy = turn_policy(_engine.engine, *window, placeholder, values, due)
        self._lock = threading.RLock()
        self._is_counting = False
        self._window, self._placeholder = window[1], placeholder
        self._boundary = "stepped" if values["mask_chunk"] is not None else values["boundary"]
        self._open(policy, store, named)

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Refuse methods of the published class that are named otherwise here: an override would not be called."""
        super().__init_subclass__(**arguments)
        for name, instead in _INSTEAD.items():
            if hasattr(cls, name):
                raise TypeError(f"{cls.__name__}.{name} would never be called: {instead}")

    def __len__(self) -> int:
        with self._lock:
            return super().__len__()

    def __repr__(self) -> str:
        with self._lock:
            masked = self._session.stats().masked_turns
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
            masked = self._session.stats().masked_turns
            return TurnStats(len(self), masked, self._end_turn, self._summary_count, self._failures)

    @property
    def trajectory(self) -> list[Turn]:
        """The turns, unmasked, as a new list."""
        with self._lock:
            return self._turns(0, len(self))

    def _add(self, reasoning: str, action: str, observation: str) -> Turn:
        check_texts(reasoning, action, observation)
        with self._lock:
            self._refuse_callbacks()
            turn = Turn(len(self) + 1, reasoning, action, observation, time.time())
            self._append(turn, self._tokens(turn))
            self._report_moves()
            return turn

    def _tokens(self, turn: Turn) -> tuple[int, int, int] | None:
        if self._counter is None:
            return None
        masked = self._session.masked_text(turn.observation) or ""
        return self._count(text_of(turn._replace(observation=""))), self._count(turn.observation), self._count(masked)

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
            if self._store is not None and turn <= self._evicted:
                return self._store.recall(turn)
            return self._turns(turn - 1, turn)[0].observation

    def tool_definition(self, shape: str = "openai") -> dict[str, Any]:
        """The schema of a tool that fetches the observation of a turn; its ``turn`` is the argument of `recall`.

        Args:
            shape: ``"openai"`` (chat completions), ``"responses"``, or ``"anthropic"``.

        Raises:
            ValueError: there is no such shape.
        """
        return turn_tool(shape)

    def _report_moves(self) -> None:
        self._is_counting = True
        try:
            for move in self._session.new_moves():
                report_move(move, self._on_move)
        finally:
            self._is_counting = False

    def _rendered(self, before: str) -> str:
        """The text that precedes the turns, and the turns."""
        context = self._context(before)
        self._report_moves()
        return context

    def _chat_messages(self, system_prompt: str, user_prompt: str) -> list[dict[str, str]]:
        """The prompts and the turns after the summary as chat messages."""
        prompts = [{"role": "system", "content": system_prompt}, {"role": "user", "content": user_prompt}]
        turns = self._messages(self._end_turn)
        self._report_moves()
        return prompts + turns

    def report(self, price_per_token: float = 0.00001) -> ContextReport:
        """Report the tokens that all requests so far sent, and the savings.

        Args:
            price_per_token: the price of a token sent.

        Prompts are not counted: they are the same with and without masking.
        """
        with self._lock:
            requests = tuple(self._session.requests(0, len(self)))
            return ContextReport(requests, self._spent_tokens, price_per_token, self._turns_before_summaries)


def check_texts(reasoning: object, action: object, observation: object) -> None:
    for name, text in (("reasoning", reasoning), ("action", action), ("observation", observation)):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a string, not {type(text).__name__}")
