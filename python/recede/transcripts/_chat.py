"""Arrays of messages, request bodies, and JSON Lines of either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recede._bodies import BODY_KEYS
from recede.transcripts._draft import Draft, text
from recede.transcripts._source import Record

_ITEMS = frozenset(["message", "reasoning"])


def recognizes(record: dict[str, Any]) -> bool:
    kind = text(record.get("type"))
    return "role" in record or "pairRole" in record or kind in _ITEMS or kind.endswith(("_call", "_call_output"))


def read_lines(records: Iterable[Record]) -> Iterator[Draft]:
    draft = Draft()
    for value, line in records:
        draft.records += 1
        draft.add(value, line)
    yield draft


def is_messages(value: Any) -> bool:
    """Whether the value is an array; elements that are not messages are errors when it is read."""
    return isinstance(value, list)


def is_body(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in BODY_KEYS)


def read_messages(value: Any) -> Iterator[Draft]:
    return read_lines(Record(message, 0) for message in value)


def read_body(value: Any) -> Iterator[Draft]:
    for draft in read_messages(next(value[key] for key in BODY_KEYS if isinstance(value.get(key), list))):
        response = value.get("response")
        if isinstance(response, dict) and response.get("usage") is not None:
            # A log of requests keeps the answer beside the body.
            time = value.get("timestamp", response.get("created", response.get("created_at")))
            draft.request(response["usage"], response.get("model", value.get("model")), time)
        yield draft
