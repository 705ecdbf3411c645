"""Texts that are left out of messages: of a long one, a replay reads only how long it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recede.reduction._stages import mask_observation

__all__ = ["omit_texts"]

_LONG_CHARS = 1_000


class OmittedText(str):
    """A str of the length of a text, equal to those of the same text only, without its characters."""

    __slots__ = ("_chars",)
    _chars: int

    def __new__(cls, text: str) -> OmittedText:
        """Of a text."""
        made = super().__new__(cls, hash(text))
        made._chars = len(text)
        return made

    def __len__(self) -> int:
        """The characters of the text."""
        return self._chars


def omit_texts(record: Any, texts_at: Iterable[str]) -> None:
    """Leave out the long texts in a part of a record, except for what masking reads: placeholders, dispatch blocks."""
    for field in texts_at:
        record = record.get(field) if isinstance(record, dict) else None
    to_visit = [record]
    while to_visit:
        parent = to_visit.pop()
        fields = parent.items() if isinstance(parent, dict) else enumerate(parent) if isinstance(parent, list) else ()
        for key, value in fields:
            if isinstance(value, (dict, list)):
                to_visit.append(value)
            elif isinstance(value, str) and len(value) >= _LONG_CHARS and _is_plain(value):
                parent[key] = OmittedText(value)  # of a key that exists, which the loop may meet


def _is_plain(text: str) -> bool:
    """Whether all that masking leaves of a text is its length."""
    return mask_observation(text) == f"[observation masked — {len(text)} chars]"
