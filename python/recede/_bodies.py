"""Whole requests: the field that has their messages."""

from __future__ import annotations

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BODY_KEYS", "body_key", "history_of", "loads", "messages_of"]

BODY_KEYS = ("messages", "input", "contents")
"""Fields of a request body that may be the history, by precedence."""


def body_key(value: Any) -> str | None:
    """The field of a whole request that has its messages; None for what is no request."""
    if not isinstance(value, dict):
        return None
    return next((key for key in BODY_KEYS if isinstance(value.get(key), list)), None)


def messages_of(value: Any) -> Any:
    """The messages of a whole request; what is none, as it is."""
    key = body_key(value)
    return value if key is None else value[key]


def loads(raw: bytes) -> Any:
    """The value of a JSON text, which may have lone surrogates."""
    import json

    return json.loads(raw.decode("utf-8", "surrogatepass"))


def history_of(raw: bytes) -> list[Any]:
    """The messages of a serialized list or request."""
    history: list[Any] = messages_of(loads(raw))
    return history
