"""The manager that masks the observations of old turns (reasoning, action, observation)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recede.reduction._signature import takes
from recede.turns._manager import TurnManager
from recede.turns._options import OPTIONS, preset
from recede.turns._report import TokenSavings

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack

    from recede.turns._options import ManagerOptions

__all__ = ["ObservationMaskingContextManager"]

_PLACEHOLDER = "[Observation omitted for brevity]"


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
        provider, max_overcost: for ``"break_even"``: whose cache and prices are assumed, and how much more than the raw
            history all requests so far may cost at any of them; None: no promise. As for `mask_observations`.
        token_counter: ``text -> tokens`` for the statistics; words by default.
        on_move: called with the `BoundaryMove` when a context, or the addition of a turn, first has it; the log gets a
            line in any case. What it raises is logged.
        recall: placeholders name the turn (``[Observation omitted for brevity: recall 7]``), so that the agent can ask
            for it with the tool of `tool_definition`, which `recall` answers.
        store: a `TurnStore` that keeps the turns, so that memory does not grow with them. With a store that has turns,
            a manager resumes with all of them, however its process ended (docs/store.md); its options must be the same.

    Raises:
        TypeError, ValueError: an argument is of the wrong type or out of range, or the store has turns of a manager
            with other options, or no turns but messages.
        StoreError: the store cannot be read.

    It is thread-safe. Adding a turn and rendering the context take constant time, apart from copying the text: each
    masked turn is rendered once.

    Example:
        >>> import recede
        >>> manager = recede.designs.ObservationMaskingContextManager(window_size_m=1)
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

    @takes(OPTIONS)
    def __init__(
        self, window_size_m: int = 10, placeholder: str | None = None, **options: Unpack[ManagerOptions]
    ) -> None:
        text = _PLACEHOLDER if placeholder is None else placeholder
        super().__init__(("window_size_m", window_size_m), text, options)

    @classmethod
    @takes(OPTIONS)
    def from_preset(
        cls,
        name: Literal["swe-agent", "openhands"],
        *,
        placeholder: str | None = None,
        **options: Unpack[ManagerOptions],
    ) -> ObservationMaskingContextManager:
        """Create a manager with the best published window for an agent.

        Example:
            >>> import recede
            >>> recede.designs.ObservationMaskingContextManager.from_preset("openhands")
            <ObservationMaskingContextManager: window 58; 0 turns, 0 masked>
        """
        return cls(preset(name)[0], placeholder, **options)

    @property
    def m(self) -> int:
        """`window` under its published name, M."""
        return self._window

    def add_turn(self, reasoning: str, action: str, observation: str) -> int:
        """Add a turn and return its number, from 1.

        Raises:
            StoreError: the `store` rejected it. Nothing was added.
        """
        return self._add(reasoning, action, observation).turn

    async def aadd_turn(self, reasoning: str, action: str, observation: str) -> int:
        """`add_turn` as a coroutine."""
        return self._add(reasoning, action, observation).turn

    def get_masked_context(self, system_prompt: str, user_prompt: str) -> str:
        """The two prompts and the turns, the old ones masked."""
        with self._lock:
            return self._rendered(f"{system_prompt}\n{user_prompt}")

    def get_masked_messages(self, system_prompt: str, user_prompt: str) -> list[dict[str, str]]:
        """The context as chat messages: system, user, then for each turn an assistant and a user message.

        The list is new. Without a `store`, unchanged messages are the same objects as last time.
        """
        with self._lock:
            return self._chat_messages(system_prompt, user_prompt)

    def estimate_token_savings(self) -> TokenSavings:
        """Estimate what masking saves in the context of the next turn, counted turn by turn.

        ``total_obs_tokens`` counts all observations; ``estimated_saved_tokens`` the masked ones minus their
        placeholders; ``reduction_percent`` is the ratio of the two.

        Example:
            >>> import recede
            >>> manager = recede.designs.ObservationMaskingContextManager(window_size_m=1)
            >>> for number in range(4):
            ...     number = manager.add_turn("Think.", "act", "a word " * 50)
            >>> manager.estimate_token_savings()["reduction_percent"]
            72.0
        """
        with self._lock:
            stats = self._session.stats()
        saved, total = stats.masked_tokens - stats.placeholder_tokens, stats.observation_tokens
        return {
            "total_obs_tokens": total,
            "masked_turns": stats.masked_turns,
            "visible_turns": len(self) - stats.masked_turns,
            "estimated_saved_tokens": saved,
            "reduction_percent": 100 * saved / total if total else 0.0,
        }
