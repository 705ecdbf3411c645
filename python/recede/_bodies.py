"""Whole requests: the field that has their messages."""

from __future__ import annotations

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BODY_KEYS", "body_key", "history_of", "loads", "messages_of"]

BODY_KEYS = ("messages", "input", "contents")
"""Fields of a request body that may be the history, by precedence."""


def body_key(value: Any) -> str | None:
    """Return the field of a request that has its messages; None if the value is not a request."""
    if not isinstance(value, dict):
        return None
    return next((key for key in BODY_KEYS if isinstance(value.get(key), list)), None)


def messages_of(value: Any) -> Any:
    """Return the messages of a request; any other value unchanged."""
    key = body_key(value)
    return value if key is None else value[key]


def loads(raw: bytes) -> Any:
    """Parse a JSON text, which may have lone surrogates."""
    import json

    return json.loads(raw.decode("utf-8", "surrogatepass"))


def history_of(raw: bytes) -> list[Any]:
    """Parse the messages of a serialized list or request."""
    history: list[Any] = messages_of(loads(raw))
    return history
