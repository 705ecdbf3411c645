"""Messages of which nothing was recognized: their shape is unknown, and they count as an empty history."""

from __future__ import annotations

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["unrecognized"]

_CONTENTS = ("content", "parts", "output")
_MAX_FIELDS, _MAX_FIELD_CHARS = 12, 40


def unrecognized(messages: Iterable[Any]) -> str | None:
    """What to say of messages that have no characters; None if each of them has an empty content, or there are none.

    Ask only of a history with no characters: text in any field that is read has some.
    """
    objects = [message for message in messages if isinstance(message, dict)]
    if all(map(_is_blank, objects)):
        return None
    fields = list(dict.fromkeys(field[:_MAX_FIELD_CHARS] for message in objects for field in message))
    shown = ", ".join(fields[:_MAX_FIELDS]) + (", …" if len(fields) > _MAX_FIELDS else "")
    return (
        f"nothing was recognized in {len(objects):,} messages with the fields {shown}: "
        "convert them to a shape that recede reads, such as role and content"
    )


def _is_blank(message: dict[str, Any]) -> bool:
    return any(field in message and not message[field] for field in _CONTENTS)
