"""What masking decides: which results are shown as which text."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Mask", "Masks"]


class Mask(NamedTuple):
    """One masked result.

    Attributes:
        message_index: the place of its message in the history.
        result_index: its place among the results of that message, from 0.
        text: what replaces its observation.

    Example:
        >>> import recede
        >>> history = [{"role": "tool", "tool_call_id": "1", "content": "x" * 90}]
        >>> recede.Masker(keep=0, boundary="sliding").masks(history).masks
        [Mask(message_index=0, result_index=0, text='[observation masked — 90 chars]')]
    """

    message_index: int
    result_index: int
    text: str


class Masks(NamedTuple):
    """The masked results of a view, and where it departs from the previous one.

    Attributes:
        first_changed: the first message that the previous view of the conversation showed otherwise or did not have.
        masks: in order.

    Example:
        >>> import recede
        >>> masker = recede.Masker()
        >>> messages = [{"role": "user", "content": "Find the bug."}]
        >>> masker.masks(messages)
        Masks(first_changed=0, masks=[])
        >>> masker.masks([*messages, {"role": "assistant", "content": "It is in line 3."}])
        Masks(first_changed=1, masks=[])
    """

    first_changed: int
    masks: list[Mask]
