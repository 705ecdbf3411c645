"""The manager that masks the observations of old turns (reasoning, action, observation)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from recede import _engine
from recede._errors import no_such
from recede.reduction._counting import count_tokens
from recede.reduction._options import optional_function
from recede.reduction._policy import turn_policy
from recede.turns._log import Turns
from recede.turns._report import ContextReport, TurnTokens

if TYPE_CHECKING:
    from typing import Literal

    from recede.costs._prices import Prices
    from recede.store._turn_store import TurnStore
    from recede.turns._log import Turn
    from recede.types import TokenCounter

__all__ = ["ObservationMaskingContextManager", "TokenSavings", "TurnManager", "TurnStats", "check_texts", "preset"]

# The best published window for each agent (docs/managers.md has the source).
_PRESETS = {"swe-agent": 10, "openhands": 58}
_PLACEHOLDER = "[Observation omitted for brevity]"
_UNSAID = (("cache", "ideal"), ("warranty", 0.1))


class TokenSavings(TypedDict):
    """What masking saves in one context; see `ObservationMaskingContextManager.estimate_token_savings`.

    Example:
        >>> import recede
        >>> savings: recede.turns.TokenSavings = recede.ObservationMaskingContextManager().estimate_token_savings()
        >>> savings["masked_turns"]
        0
    """

    total_obs_tokens: int
    masked_turns: int
    visible_turns: int
    estimated_saved_tokens: int
    reduction_percent: float


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
        >>> recede.ObservationMaskingContextManager().stats()
        TurnStats(turns=0, masked_turns=0, summarized_turns=0, summaries=0, summary_failures=0)
    """

    turns: int
    masked_turns: int
    summarized_turns: int
    summaries: int
    summary_failures: int


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
    ) -> None:
        optional_function("token_counter", token_counter)
        engine = _engine.core(type(self).__name__)
        paid = {} if prices is None else {"cache_read": prices.cached, "cache_write": prices.write}
        options = {**options, **paid}
        policy = turn_policy(engine, window_name, window, placeholder, options, summaries)
        self._counter = token_counter
        self._lock = threading.RLock()
        self._is_counting = False
        # A store names what differs from this, so that an older one is opened again.
        said = {name: value for name, value in options.items() if (name, value) not in _UNSAID}
        named = {window_name: window, "placeholder": placeholder, **said, **(summary_options or {})}
        self._window, self._placeholder = window, placeholder
        self._boundary = options["boundary"] if options["mask_chunk"] is None else "stepped"
        self._kept = Turns(policy, store, named)
        self._kept.resume(self._tokens)

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def __repr__(self) -> str:
        with self._lock:
            masked = self._kept.figures()[0]
            return f"<{type(self).__name__}: {self._numbers()}; {len(self):,} turns, {masked:,} masked>"

    def _numbers(self) -> str:
        return f"window {self._window}"

    # Settings

    def __setattr__(self, name: str, value: object) -> None:
        """Assign an attribute; a read-only one only to what it is, as classes of the designs state their settings."""
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
            masked, kept = self._kept.figures()[0], self._kept
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
            return self._kept.add(reasoning, action, observation, self._tokens(reasoning, action, observation))

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
        """Refuse calls from the token counter, which runs in the thread that has the (reentrant) lock."""
        if self._is_counting:
            raise RuntimeError(
                "the token_counter of this manager has called it: it may read turns and contexts, but neither add "
                "turns nor make a summary"
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

    def _messages(self, system_prompt: str, user_prompt: str, first: int) -> list[dict[str, str]]:
        """The turns after the first `start` as chat messages."""
        prompts = [{"role": "system", "content": system_prompt}, {"role": "user", "content": user_prompt}]
        return prompts + self._kept.messages(first)

    def report(self, price_per_token: float = 0.00001) -> ContextReport:
        """Report the tokens that all requests so far sent, and the savings.

        Args:
            price_per_token: the price of a token sent.

        Prompts are not counted: they are the same with and without masking.
        """
        with self._lock:
            turns = tuple(TurnTokens(turn, *tokens) for turn, tokens in enumerate(self._kept.requests(), 1))
            return ContextReport(turns, self._kept.spent_tokens, price_per_token)


class ObservationMaskingContextManager(TurnManager):
    """Show the observations of the last turns, and placeholders for older ones; by default with a sliding boundary.

    Turns are stored in full. Get the context before each turn; the same turns always produce the same text.

    Args:
        window_size_m: how many of the last turns show their observation: turn i is masked when i < t - M, where t is
            the next turn. 10 is best for SWE-agent, 58 for OpenHands ("The Complexity Trap", JetBrains Research, 2025).
        placeholder: the text for a masked observation, used where it is shorter; it may contain ``{turn}``, ``{chars}``
            and ``{lines}``. ``"[Observation omitted for brevity]"`` by default.
        mask_chunk: mask this many turns at once, so that the prompt cache serves the requests in between.
        boundary: ``"sliding"`` (one turn at a time), ``"stepped"`` (with `mask_chunk`) or ``"break_even"`` (when the
            move pays off under prompt caching; docs/caching.md).
        cache, warranty: for ``"break_even"``: which cache is reckoned with, and how much more than the raw history all
            requests so far may cost at any of them; None: no promise. As for `mask_observations`.
        token_counter: ``text -> tokens`` for the statistics; words by default.
        store: a `TurnStore` that keeps the turns, so that memory does not grow with them. With a store that has turns,
            a manager resumes from the last sync; its options must be the same. ``sync_every`` of the store decides when
            it syncs.

    Raises:
        TypeError, ValueError: an argument is of the wrong type or out of range, or the store has turns of a manager
            with other options, or no turns but messages.
        StoreError: the store cannot be read.

    It is thread-safe. Adding a turn and rendering the context take constant time, apart from copying the text: each
    masked turn is rendered once.

    Example:
        >>> import recede
        >>> manager = recede.ObservationMaskingContextManager(window_size_m=1)
        >>> for name in ("a.py", "b.py"):
        ...     number = manager.add_turn("I must look.", f"cat {name}", f"the whole long text of {name}, as it is")
        >>> print(manager.get_masked_context("You are careful.", "Find the bug."))
        You are careful.
        Find the bug.
        <BLANKLINE>
        Turn 1:
        Reasoning: I must look.
        Action: cat a.py
        Observation: [Observation omitted for brevity]
        <BLANKLINE>
        <BLANKLINE>
        Turn 2:
        Reasoning: I must look.
        Action: cat b.py
        Observation: the whole long text of b.py, as it is
        <BLANKLINE>
        >>> manager.recall(1)
        'the whole long text of a.py, as it is'
    """

    def __init__(
        self,
        window_size_m: int = 10,
        placeholder: str | None = None,
        *,
        mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding",
        cache: Literal["ideal", "prefix", "breakpoints"] = "ideal",
        warranty: float | None = 0.1,
        token_counter: TokenCounter | None = None,
        store: TurnStore | None = None,
    ) -> None:
        text = _PLACEHOLDER if placeholder is None else placeholder
        options = {"mask_chunk": mask_chunk, "boundary": boundary, "cache": cache, "warranty": warranty}
        super().__init__("window_size_m", window_size_m, text, options, token_counter, store=store)

    @classmethod
    def from_preset(
        cls,
        name: Literal["swe-agent", "openhands"],
        *,
        placeholder: str | None = None,
        mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding",
        cache: Literal["ideal", "prefix", "breakpoints"] = "ideal",
        warranty: float | None = 0.1,
        token_counter: TokenCounter | None = None,
        store: TurnStore | None = None,
    ) -> ObservationMaskingContextManager:
        """Create a manager with the best published window for an agent.

        Example:
            >>> import recede
            >>> recede.ObservationMaskingContextManager.from_preset("openhands")
            <ObservationMaskingContextManager: window 58; 0 turns, 0 masked>
        """
        window = preset(_PRESETS, name)
        return cls(
            window,
            placeholder,
            mask_chunk=mask_chunk,
            boundary=boundary,
            cache=cache,
            warranty=warranty,
            token_counter=token_counter,
            store=store,
        )

    @property
    def m(self) -> int:
        """`window` under its published name, M."""
        return self._window

    def add_turn(self, reasoning: str, action: str, observation: str) -> int:
        """Add a turn and return its number, from 1.

        Raises:
            StoreError: the `store` rejected it. Nothing was added.
        """
        return self._add(reasoning, action, observation)

    async def aadd_turn(self, reasoning: str, action: str, observation: str) -> int:
        """`add_turn` as a coroutine."""
        return self._add(reasoning, action, observation)

    def get_masked_context(self, system_prompt: str, user_prompt: str) -> str:
        """The two prompts and the turns, the old ones masked."""
        with self._lock:
            return self._kept.context(f"{system_prompt}\n{user_prompt}")

    def get_masked_messages(self, system_prompt: str, user_prompt: str) -> list[dict[str, str]]:
        """The same as chat messages: system, user, then for each turn an assistant and a user message.

        The list is new. Without a `store`, unchanged messages are the same objects as last time.
        """
        with self._lock:
            return self._messages(system_prompt, user_prompt, 0)

    def estimate_token_savings(self) -> TokenSavings:
        """Estimate what masking saves in the context of the next turn, counted turn by turn.

        ``total_obs_tokens`` counts all observations; ``estimated_saved_tokens`` the masked ones minus their
        placeholders; ``reduction_percent`` is the ratio of the two.

        Example:
            >>> import recede
            >>> manager = recede.ObservationMaskingContextManager(window_size_m=1)
            >>> for number in range(4):
            ...     number = manager.add_turn("Think.", "act", "a word " * 50)
            >>> manager.estimate_token_savings()["reduction_percent"]
            72.0
        """
        with self._lock:
            masked_turns, total, masked, shown = self._kept.figures()
        return {
            "total_obs_tokens": total,
            "masked_turns": masked_turns,
            "visible_turns": len(self) - masked_turns,
            "estimated_saved_tokens": masked - shown,
            "reduction_percent": 100 * (masked - shown) / total if total else 0.0,
        }


def check_texts(reasoning: object, action: object, observation: object) -> None:
    for name, text in (("reasoning", reasoning), ("action", action), ("observation", observation)):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a string, not {type(text).__name__}")


def preset(presets: dict[str, Any], name: str) -> Any:
    """The preset of this name."""
    if name not in presets:
        raise ValueError(f"there is no preset {name!r}; give one of {', '.join(map(repr, presets))}")
    return presets[name]
