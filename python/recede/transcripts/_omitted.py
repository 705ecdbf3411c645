"""Long texts of messages are replaced by their length, which is all that a replay reads."""

from __future__ import annotations

from collections.abc import Iterable

from recede.reduction._stages import mask_observation
from recede.transcripts._draft import at
from recede.transcripts._source import Record

_LONG_CHARS = 1_000
_CUT = "[… "  # a cut text has this in its middle, and is not cut again


class OmittedText(str):
    """A str with the length of a text and without its characters; equal only for equal texts."""

    __slots__ = ("_chars",)
    _chars: int

    def __new__(cls, text: str) -> OmittedText:
        made = super().__new__(cls, hash(text))
        made._chars = len(text)
        return made

    def __len__(self) -> int:
        return self._chars


def omit_texts(record: Record, texts_at: Iterable[str]) -> Record:
    """Omit long texts in a part of a record, except placeholders, cut texts and texts with dispatch blocks."""
    to_visit = [at(record.value, *texts_at)]
    while to_visit:
        parent = to_visit.pop()
        fields = parent.items() if isinstance(parent, dict) else enumerate(parent) if isinstance(parent, list) else ()
        for key, value in fields:
            if isinstance(value, (dict, list)):
                to_visit.append(value)
            elif isinstance(value, str) and len(value) >= _LONG_CHARS and _is_plain(value):
                parent[key] = OmittedText(value)  # of a key that exists, which the loop may meet
    return record


def _is_plain(text: str) -> bool:
    """Whether masking and cutting need only the length of a text."""
    return _CUT not in text and mask_observation(text) == f"[observation masked — {len(text)} chars]"
