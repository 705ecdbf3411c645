"""Whole requests: the field that has their messages."""

from __future__ import annotations

from typing import Any

from recede._errors import TranscriptError

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
    """Parse JSON that the core accepted, of which Python refuses some. It may have lone surrogates."""
    import json

    try:
        return json.loads(raw.decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise TranscriptError("depth") from None
    except ValueError:  # an integer of over 4,300 digits
        raise TranscriptError("number") from None


def dumps(value: Any, default: Any = None) -> str:
    """Serialize messages compactly; `default` converts what JSON does not have."""
    import json

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default)
    except ValueError as error:
        if "digits" not in str(error):
            raise
        raise TranscriptError("number") from None


def history_of(raw: bytes) -> list[Any]:
    """Parse the messages of a serialized list or request."""
    history: list[Any] = messages_of(loads(raw))
    return history
