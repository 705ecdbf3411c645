"""Messages of which nothing was recognized: their shape is unknown, and they count as an empty history."""

from __future__ import annotations

from recede._bodies import history_of
from recede.reduction._counting import count_chars

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from typing import Any

__all__ = ["unrecognized", "warn_if_unrecognized"]

_CONTENTS = ("content", "parts", "output")
_MAX_FIELDS, _MAX_FIELD_CHARS = 12, 40


def unrecognized(messages: list[Any]) -> str | None:
    """What to say of a history in which nothing was recognized.

    None if it has characters, or no messages, or all of them have a content that is empty.
    """
    if count_chars(messages):
        return None
    objects = [message for message in messages if isinstance(message, dict)]
    if all(map(_is_blank, objects)):
        return None
    fields = list(dict.fromkeys(str(field)[:_MAX_FIELD_CHARS] for message in objects for field in message))
    shown = ", ".join(fields[:_MAX_FIELDS]) + (", …" if len(fields) > _MAX_FIELDS else "")
    return (
        f"nothing was recognized in {len(objects):,} messages with the fields "
        f"{shown.encode(errors='backslashreplace').decode()}: "
        "convert them to a shape that recede reads, such as role and content"
    )


def warn_if_unrecognized(history: list[Any] | bytes) -> None:
    """Log a warning, once for the same fields, if nothing was recognized: a view would silently be the history."""
    try:
        said = unrecognized(history_of(history) if isinstance(history, bytes) else history)
    except (RecursionError, ValueError):  # the core reads JSON that Python does not: deeper levels, longer numbers
        return
    if said is not None:
        from recede._encodable import warn_once  # lazily: logging takes longer to import than all of recede

        warn_once(said)


def _is_blank(message: dict[str, Any]) -> bool:
    return any(field in message and not message[field] for field in _CONTENTS)
