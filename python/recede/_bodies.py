"""Whole requests: the field that has their messages, and those by which a provider keeps the history itself; JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from recede._errors import TranscriptError

BODY_KEYS = ("messages", "input", "contents")
"""Fields of a request body that may be the history, by precedence."""

KEPT_BY_PROVIDER = ("previous_response_id", "previous_interaction_id", "conversation", "thread")
"""Fields by which a provider keeps the history: such a request sends the rest, and is not masked."""

KEPT_INTERACTION = (*KEPT_BY_PROVIDER, "agent")
"""The same for Gemini's Interactions, whose agents keep their history."""

CONTINUED = "continuation_token"
"""The field by which an interaction without input goes on."""


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


_REFUSAL = "bound to a different conversation"
MOST_REFUSALS = 2
"""Refusals of reasoning in a conversation; from then on none is sent."""
SENT_AGAIN = "the provider has refused reasoning, so the request is sent again without it: {}"


def refuses_reasoning(status: object, said: str) -> bool:
    """Whether an answer refuses reasoning, as made from other messages than the ones that are sent."""
    return status == 400 and _REFUSAL in said


def asks_for_refusals(request: Mapping[str, Any]) -> bool:
    """Whether a request says itself that reasoning which was made from other messages is to be refused."""
    thinking = request.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, dict) else None
    return isinstance(binding, dict) and binding.get("prefix_mismatch_behavior") == "error"


def history_of(raw: bytes) -> list[Any]:
    history: list[Any] = messages_of(loads(raw))
    return history


def kept_words(request: Mapping[str, Any], fields: Iterable[str] = KEPT_BY_PROVIDER) -> str | None:
    """Word the warning for a request whose history the provider keeps, as one of these fields says; else None."""
    kept = next((name for name in fields if request.get(name)), None)
    return kept and f"requests with {kept!r} are sent as they are, since the provider keeps their history"


def unique(raw: bytes) -> dict[str, Any]:
    """Parse a strict JSON object without duplicate keys at any depth; a ValueError if it is none, or too deep."""
    import json

    try:
        value = json.loads(raw.decode("utf-8", "surrogatepass"), parse_constant=_refuse, object_pairs_hook=_once)
    except RecursionError:
        raise TranscriptError("depth") from None
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a duplicate key")
    return value
