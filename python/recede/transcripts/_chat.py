"""Arrays of messages, request bodies, and JSON Lines of either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recede._bodies import BODY_KEYS
from recede.transcripts._draft import Draft, text
from recede.transcripts._source import Record

_ITEMS = frozenset(["message", "reasoning"])


def recognizes(record: dict[str, Any]) -> bool:
    """Whether a line is a message."""
    kind = text(record.get("type"))
    return "role" in record or "pairRole" in record or kind in _ITEMS or kind.endswith(("_call", "_call_output"))


def read_lines(records: Iterable[Record]) -> Iterator[Draft]:
    """Read messages, one per line."""
    draft = Draft()
    for value, line in records:
        draft.records += 1
        draft.add(value, line)
    yield draft


def is_messages(value: Any) -> bool:
    """Whether the value is an array; elements that are not messages are errors when it is read."""
    return isinstance(value, list)


def is_body(value: Any) -> bool:
    """Whether the value is a request body."""
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in BODY_KEYS)


def read_messages(value: Any) -> Iterator[Draft]:
    """Read an array of messages."""
    draft = Draft()
    for message in value:
        draft.add(message)
    draft.records = len(value)
    yield draft


def read_body(value: Any) -> Iterator[Draft]:
    """Read the array of messages in a request body."""
    for draft in read_messages(next(value[key] for key in BODY_KEYS if isinstance(value.get(key), list))):
        response = value.get("response")
        if isinstance(response, dict) and response.get("usage") is not None:
            # A log of requests keeps the answer beside the body.
            time = value.get("timestamp", response.get("created", response.get("created_at")))
            draft.request(response["usage"], response.get("model", value.get("model")), time)
        yield draft
