"""The manager that masks the observations of old turns, and its rule as a function of a list of turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from recede.reduction._kinds import whole_number
from recede.turns._manager import TEXTS, TurnManager, check_texts, preset
from recede.turns._records import TokenSavings, Turn

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Self

    from recede.store._turn_store import TurnStore

_PLACEHOLDER = "[Observation omitted for brevity]"
_PROMPTS = ("system", "developer", "user")


class ObservationMaskingContextManager(TurnManager):
    """Show the observations of the last turns, and placeholders for older ones; turns are stored in full.

    Args:
        window_size_m: how many of the last turns show their observation: turn i is masked when i < t - M, where t is
            the next turn. 10 is best for SWE-agent, 58 for OpenHands ("The Complexity Trap", JetBrains Research, 2025).
        placeholder: the text for a masked observation, used where it is shorter; it may contain ``{turn}``, ``{chars}``
            and ``{lines}``. ``"[Observation omitted for brevity]"`` by default.
        store: a `TurnStore` that keeps the turns; observations that are masked are only there. With a store that has
            turns, a manager resumes with all of them, however its process ended; its other arguments must be the same.
        recall: placeholders name the turn (``[Observation omitted for brevity: recall 7]``), so that the agent can ask
            for it with the tool of `tool_definition`, which `recall` answers.

    A store with turns of a manager with other arguments, or with messages, is a ValueError. It is thread-safe. Each
    turn is rendered once, and a context joins the parts.

    Example:
        >>> import recede
        >>> manager = recede.designs.ObservationMaskingContextManager(window_size_m=1)
        >>> for name in ("a.py", "b.py"):
        ...     number = manager.add_turn("I must look.", f"cat {name}", f"the whole long text of {name}, as it is")
        >>> print(manager.get_masked_context("You are careful.", "Find the bug.").partition("\\n\\nTurn 2:")[0])
        You are careful.
        Find the bug.
        <BLANKLINE>
        Turn 1:
        Reasoning: I must look.
        Action: cat a.py
        Observation: [Observation omitted for brevity]
        <BLANKLINE>
        >>> manager.recall(1)
        'the whole long text of a.py, as it is'
    """

    def __init__(
        self,
        window_size_m: int = 10,
        placeholder: str | None = None,
        *,
        store: TurnStore | None = None,
        recall: bool = False,
    ) -> None:
        window: int = whole_number()("window_size_m", window_size_m)
        text = _PLACEHOLDER if placeholder is None else placeholder
        super().__init__(window, text, store, recall, {"window_size_m": window})

    @classmethod
    def from_preset(
        cls,
        name: Literal["swe-agent", "openhands"],
        *,
        placeholder: str | None = None,
        store: TurnStore | None = None,
        recall: bool = False,
    ) -> Self:
        """Create a manager with the best published window for an agent: 10, or 58."""
        return cls(preset(name)[0], placeholder, store=store, recall=recall)

    @property
    def m(self) -> int:
        """`window` under its published name, M."""
        return self._window

    def add_turn(self, reasoning: str, action: str, observation: str) -> int:
        """Add a turn and return its number, from 1; a StoreError, and nothing is added, if the `store` rejects it."""
        return self._add(reasoning, action, observation).turn

    def get_masked_context(self, system_prompt: str, user_prompt: str) -> str:
        """The two prompts and the turns, the old ones masked."""
        return self._context(system_prompt, user_prompt)

    def estimate_token_savings(self) -> TokenSavings:
        """Estimate what masking saves in the context of the next turn, counted turn by turn, in words."""
        with self._lock:
            words = self._counted()
            total = sum(seen for _, seen, _ in words)
            saved = sum(seen - old for _, seen, old in words[: max(0, len(words) - self._window)])
            return {
                "total_obs_tokens": total,
                "masked_turns": self._masked_turns,
                "visible_turns": len(words) - self._masked_turns,
                "estimated_saved_tokens": saved,
                "reduction_percent": 100 * saved / total if total else 0.0,
            }


def apply_observation_masking(
    trajectory: Iterable[Any], current_turn: int, window_size_m: int = 10, placeholder: str | None = None
) -> list[Any]:
    """Apply the masking rule of `ObservationMaskingContextManager` to a list of turns.

    The first turn is turn 1. Where the list begins with prompts, it is numbered by slots from 0, as the published code
    does: the prompts are in slots 0 and 1, the first turn is turn 2, and ``current_turn`` is the length of the list.

    Args:
        trajectory: each turn as (reasoning, action, observation), as a dict with these keys, or as an entry of a
            manager's `trajectory`. Prompts are recognized by their role (``system``, ``developer`` or ``user``): a dict
            or object that has one, or a pair (role, text). They are never masked. Three texts are always a turn.
        current_turn: the next turn, t.
        window_size_m: M; the observation of turn i is masked when i < t - M.
        placeholder: as for the manager.

    Returns:
        The entries in the form they came in, with old observations masked where the placeholder is shorter.

    Raises:
        TypeError, ValueError: an argument is of the wrong type or out of range.

    Example:
        >>> import recede
        >>> turns = [("Look.", "ls", "file " * 20), ("Read.", "cat", "text " * 20)]
        >>> recede.designs.apply_observation_masking(turns, current_turn=3, window_size_m=1)[0]
        ('Look.', 'ls', '[Observation omitted for brevity]')
    """
    if not isinstance(current_turn, int) or isinstance(current_turn, bool):
        raise TypeError(f"current_turn must be a whole number, not {type(current_turn).__name__}")
    manager = ObservationMaskingContextManager(window_size_m, placeholder)
    entries, shown = list(trajectory), []
    for number, entry in enumerate(entries, 0 if entries and _is_prompt(entries[0]) else 1):
        observation = "" if _is_prompt(entry) else _observation(number, entry)
        is_old = number < current_turn - window_size_m
        masked = manager._placeholder_of(number, observation) if is_old else None  # also of a prompt's ""
        shown.append(entry if masked is None else _with_observation(entry, masked))
    return shown


def _is_prompt(entry: Any) -> bool:
    if isinstance(entry, Mapping):
        role = entry.get("role")
    elif isinstance(entry, (tuple, list)) and len(entry) == 2:
        role = entry[0]
    else:
        role = getattr(entry, "role", None)
    return role in _PROMPTS


def _observation(number: int, entry: Any) -> str:
    texts: Any = entry
    if isinstance(entry, Turn):
        texts = entry[1:4]
    elif isinstance(entry, Mapping):
        texts = [entry.get(name) for name in TEXTS]
    if isinstance(texts, str) or not hasattr(texts, "__len__") or len(texts) != 3:
        raise TypeError(
            f"entry {number} must be (reasoning, action, observation), or a prompt with its role, such as "
            f"{{'role': 'user', 'content': ...}}, not {type(entry).__name__}"
        )
    check_texts(*texts)
    return str(texts[2])


def _with_observation(entry: Any, observation: str) -> Any:
    if isinstance(entry, Turn):
        return entry._replace(observation=observation)
    if isinstance(entry, Mapping):
        return {**entry, "observation": observation}
    return (entry[0], entry[1], observation)
