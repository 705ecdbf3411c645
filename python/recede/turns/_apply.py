"""The masking rule of the managers as a function of a list of turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recede.turns._manager import check_texts
from recede.turns._masking import ObservationMaskingContextManager
from recede.turns._turn import Turn

__all__ = ["apply_observation_masking"]

_TEXTS = ("reasoning", "action", "observation")
_PROMPTS = ("system", "developer", "user")


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
        >>> slots = [("system", "You are careful."), ("user", "Find the bug."), *turns]
        >>> recede.designs.apply_observation_masking(slots, current_turn=4, window_size_m=1)[2]
        ('Look.', 'ls', '[Observation omitted for brevity]')
    """
    if not isinstance(current_turn, int) or isinstance(current_turn, bool):
        raise TypeError(f"current_turn must be a whole number, not {type(current_turn).__name__}")
    manager = ObservationMaskingContextManager(window_size_m, placeholder)
    entries = list(trajectory)
    shown = []
    for number, entry in enumerate(entries, 0 if entries and _is_prompt(entries[0]) else 1):
        if _is_prompt(entry):
            shown.append(entry)
        else:
            observation = _observation(number, entry)
            masked = manager._session.masked_text(observation) if number < current_turn - window_size_m else None
            shown.append(entry if masked is None else _with_observation(entry, masked))
        if number > 0:
            manager._add("", "", "")  # so that the placeholder of the next entry has its number
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
        texts = [entry.get(name) for name in _TEXTS]
    if isinstance(texts, str) or not hasattr(texts, "__len__") or len(texts) != 3:
        raise TypeError(
            f"entry {number} must be (reasoning, action, observation), or a prompt with its role, such as "
            f"{{'role': 'user', 'content': ...}}, not {type(entry).__name__}"
        )
    check_texts(*texts)
    observation: str = texts[2]
    return observation


def _with_observation(entry: Any, observation: str) -> Any:
    if isinstance(entry, Turn):
        return entry._replace(observation=observation)
    if isinstance(entry, Mapping):
        return {**entry, "observation": observation}
    return (entry[0], entry[1], observation)
