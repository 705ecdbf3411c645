"""Turns of (reasoning, action, observation), and the manager that masks the observations of the old ones."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from recede import _engine
from recede._errors import no_such
from recede.reduction._api import count_tokens
from recede.reduction._policy import optional_function, turn_policy
from recede.reduction._report import ContextReport, TurnTokens
from recede.turns._log import Turns

if TYPE_CHECKING:
    from typing import Literal

    from recede.costs._prices import Prices
    from recede.store._turn_store import TurnStore
    from recede.turns._log import Turn
    from recede.types import TokenCounter

__all__ = ["ObservationMaskingContextManager", "TokenSavings", "TurnManager", "apply_observation_masking"]

# The window that is best for an agent, by the research (docs/managers.md has the source).
_PRESETS = {"swe-agent": 10, "openhands": 58}
_PLACEHOLDER = "[Observation omitted for brevity]"


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


_Manager = TypeVar("_Manager", bound="TurnManager")


class TurnManager:
    """What the managers share: turns are stored whole, and shown masked."""

    def __init__(
        self,
        window_name: str,
        window: int,
        placeholder: str,
        mask_chunk: int | None,
        boundary: str,
        token_counter: TokenCounter | None,
        prices: Prices | None = None,
        summaries: tuple[Any, ...] | None = None,
        summary_options: Mapping[str, Any] | None = None,
        store: TurnStore | None = None,
    ) -> None:
        optional_function("token_counter", token_counter)
        engine = _engine.core(type(self).__name__)
        paid = {} if prices is None else {"cache_read": prices.cached, "cache_write": prices.write}
        options = {"mask_chunk": mask_chunk, "boundary": boundary, **paid}
        policy = turn_policy(engine, window_name, window, placeholder, options, summaries)
        self._counter = token_counter
        self._lock = threading.RLock()
        self._is_counting = False
        named = {window_name: window, "placeholder": placeholder, **options, **(summary_options or {})}
        self._kept = Turns(policy, store, named)
        self._kept.resume(self._tokens)

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def __repr__(self) -> str:
        with self._lock:
            masked = self._kept.figures()[0]
            return f"<{type(self).__name__}: {len(self):,} turns, {masked:,} masked>"

    @property
    def trajectory(self) -> list[Turn]:
        """The turns so far, unmasked: a new list."""
        with self._lock:
            return self._turns(0, len(self))

    def _turns(self, start: int, end: int) -> list[Turn]:
        with self._lock:
            return self._kept.turns(start, end)

    def _add(self, reasoning: str, action: str, observation: str) -> int:
        _check(reasoning, action, observation)
        with self._lock:
            self._refuse_callbacks()
            return self._kept.add(reasoning, action, observation, self._tokens(reasoning, action, observation))

    def _tokens(self, reasoning: str, action: str, observation: str) -> tuple[int, int, int] | None:
        """Tokens of a turn without its observation, of that, and of its placeholder; None for words."""
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
        """The lock lets the thread in that has it, so its own counter as well."""
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
        """As chat messages, from the turn behind the first ones on."""
        prompts = [{"role": "system", "content": system_prompt}, {"role": "user", "content": user_prompt}]
        return prompts + self._kept.messages(first)

    def report(self, price_per_token: float = 0.00001) -> ContextReport:
        """What the requests of the turns so far sent, and what that saved.

        Args:
            price_per_token: of a token sent.

        Prompts are not counted: they are the same with and without masking.
        """
        with self._lock:
            turns = tuple(TurnTokens(turn, *tokens) for turn, tokens in enumerate(self._kept.requests(), 1))
            return ContextReport(turns, self._kept.spent_tokens, price_per_token)


class ObservationMaskingContextManager(TurnManager):
    """Shows the observations of the last turns, and a placeholder for those before.

    Turns are stored whole. Before each turn ask for the context; the same turns always give the same text.

    Args:
        window_size_m: how many of the last turns show their observation: turn i is masked when i < t - M, t being the
            turn about to be taken. 10 is best for SWE-agent, 58 for OpenHands ("The Complexity Trap", JetBrains
            Research, 2025).
        placeholder: the text for a masked observation, used where it is shorter; ``{turn}``, ``{chars}`` and
            ``{lines}`` may stand in it. ``"[Observation omitted for brevity]"`` by default.
        mask_chunk: mask so many turns at once, so that a prompt cache serves those in between.
        boundary: ``"sliding"`` (one turn at a time), ``"stepped"`` (with `mask_chunk`) or ``"break_even"`` (when it has
            paid for itself under prompt caching; docs/caching.md).
        token_counter: ``text -> tokens`` for the figures; words by default.
        store: a `TurnStore` that keeps the turns instead of memory, which then does not grow with them. A manager made
            with a store that has turns goes on where that was last synced, if its options are the same; when it syncs
            is the store's to say (``sync_every``).

    Raises:
        TypeError, ValueError: an argument is of the wrong type or out of range, or the store has turns of a manager
            with other options, or no turns but messages.
        StoreError: what the store holds cannot be read.

    It may be used from several threads. To add a turn and to ask for the context costs the same at any length, but for
    copying the text out: what has been masked is rendered once.

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
        token_counter: TokenCounter | None = None,
        store: TurnStore | None = None,
    ) -> None:
        text = _PLACEHOLDER if placeholder is None else placeholder
        super().__init__("window_size_m", window_size_m, text, mask_chunk, boundary, token_counter, store=store)

    @classmethod
    def from_preset(
        cls,
        name: Literal["swe-agent", "openhands"],
        *,
        placeholder: str | None = None,
        mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding",
        token_counter: TokenCounter | None = None,
        store: TurnStore | None = None,
    ) -> ObservationMaskingContextManager:
        """A manager with the window that the research found best for an agent.

        Example:
            >>> import recede
            >>> recede.ObservationMaskingContextManager.from_preset("openhands")
            <ObservationMaskingContextManager: 0 turns, 0 masked>
        """
        window = preset(_PRESETS, name)
        return cls(
            window, placeholder, mask_chunk=mask_chunk, boundary=boundary, token_counter=token_counter, store=store
        )

    def add_turn(self, reasoning: str, action: str, observation: str) -> int:
        """Store a turn, unmasked; its number, from 1.

        Raises:
            StoreError: the `store` could not take it. Nothing was added.
        """
        return self._add(reasoning, action, observation)

    async def aadd_turn(self, reasoning: str, action: str, observation: str) -> int:
        """`add_turn`, where turns are added by `await`."""
        return self._add(reasoning, action, observation)

    def get_masked_context(self, system_prompt: str, user_prompt: str) -> str:
        """The two prompts and the turns, the old ones masked."""
        with self._lock:
            return self._kept.context(f"{system_prompt}\n{user_prompt}")

    def get_masked_messages(self, system_prompt: str, user_prompt: str) -> list[dict[str, str]]:
        """The same as chat messages: system, user, then for each turn an assistant and a user message.

        The list is new; its messages are the same objects as the last time, as long as they are the same and there is
        no `store`.
        """
        with self._lock:
            return self._messages(system_prompt, user_prompt, 0)

    def estimate_token_savings(self) -> TokenSavings:
        """What masking saves in the context of the turn about to be taken, counted turn by turn.

        ``total_obs_tokens`` are those of all observations; ``estimated_saved_tokens`` those of the masked ones, less
        what their placeholders have; ``reduction_percent`` is the second of the first.

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


def _check(reasoning: object, action: object, observation: object) -> None:
    for name, text in (("reasoning", reasoning), ("action", action), ("observation", observation)):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a string, not {type(text).__name__}")


def preset(presets: dict[str, Any], name: str) -> Any:
    """The preset of this name."""
    if name not in presets:
        raise ValueError(f"there is no preset {name!r}; give one of {', '.join(map(repr, presets))}")
    return presets[name]


def apply_observation_masking(
    trajectory: Iterable[tuple[str, str, str]],
    current_turn: int,
    window_size_m: int = 10,
    placeholder: str | None = None,
) -> list[tuple[str, str, str]]:
    """The rule of `ObservationMaskingContextManager` alone, as a function.

    Args:
        trajectory: (reasoning, action, observation) of each turn; the first is turn 1.
        current_turn: the turn about to be taken, t.
        window_size_m: M; the observation of turn i is masked when i < t - M.
        placeholder: as for the manager.

    Returns:
        The turns, old observations masked where the placeholder is shorter; the others as they were.

    Raises:
        TypeError, ValueError: an argument is of the wrong type or out of range.

    Example:
        >>> import recede
        >>> turns = [("Look.", "ls", "file " * 20), ("Read.", "cat", "text " * 20)]
        >>> recede.apply_observation_masking(turns, current_turn=3, window_size_m=1)[0]
        ('Look.', 'ls', '[Observation omitted for brevity]')
    """
    if not isinstance(current_turn, int) or isinstance(current_turn, bool):
        raise TypeError(f"current_turn must be a whole number, not {type(current_turn).__name__}")
    manager = ObservationMaskingContextManager(window_size_m, placeholder)
    shown = []
    for number, (reasoning, action, observation) in enumerate(trajectory, 1):
        _check(reasoning, action, observation)
        masked = manager._kept.masked_text(observation) if number < current_turn - window_size_m else None
        shown.append((reasoning, action, observation if masked is None else masked))
        manager._add("", "", "")
    return shown
