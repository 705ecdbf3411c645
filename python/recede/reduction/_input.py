"""Histories as the engine takes them: bytes of JSON, and plain forms of the objects of clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from recede import _engine
from recede._bodies import body_key, messages_of
from recede._errors import TranscriptError

if TYPE_CHECKING:
    from recede._objects import Forms

    Json: TypeAlias = Union[bytes, bytearray, memoryview, str]

_FILES = (".json", ".jsonl", ".gz", ".traj", ".txt", ".log")


def ask_engine(name: str, messages: list[Any], *rest: Any) -> tuple[Any, Forms | None]:
    """The engine's answer about a history, and its plain forms where it holds objects of a client."""
    function = getattr(_engine.engine, name)
    try:
        return function(messages, *rest), None
    except TranscriptError as fault:
        forms = forms_of(messages, fault)
    return function(forms.messages, *rest), forms


def ask_about(name: str, history: Any, *rest: Any) -> Any:
    """The engine's answer about a list, a request, or the JSON of either, which it scans."""
    if isinstance(history, (bytes, bytearray, memoryview, str)):
        raw, surrogates = as_bytes(history)
        return getattr(_engine.engine, name)(raw, *rest, surrogates)
    return ask_engine(name, messages_of(history), *rest)[0]


def forms_of(messages: list[Any], fault: TranscriptError) -> Forms:
    """The plain forms of a history that the engine has refused, if it holds objects.

    The engine reads plain dicts and refuses what it cannot read, so a history without objects is never searched.
    """
    from recede._objects import Forms  # lazily: few histories hold objects

    forms = Forms.of(messages)
    if hasattr(messages, "__fspath__"):
        raise TypeError(f"give what the file holds, not its path: Path({str(messages)!r}).read_bytes()") from fault
    if forms is None and isinstance(getattr(messages, "messages", None), (list, tuple)):
        again = "; to reduce again give the history, not a view" if hasattr(messages, "masked_count") else ""
        raise TypeError(f"give the messages of the {type(messages).__name__}: its .messages{again}") from fault
    if body_key(messages) is not None:
        raise TranscriptError("request") from fault
    if forms is None:
        raise not_a_list(messages) if fault.kind == "history" else fault
    return forms


def not_a_list(value: Any) -> TranscriptError:
    """The error for a value that is no list of messages, which names what it is."""
    name = type(value).__name__
    seen = "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
    if isinstance(value, dict):
        fields = ", ".join(map(repr, list(value)[:5]))
        seen = "one message (put it in a list)" if "role" in value else f"a dict with the fields {fields or 'of none'}"
    elif hasattr(value, "to_dict"):
        seen += " (its list is .to_dict('records'))"
    elif hasattr(value, "tolist"):
        seen += " (its list is .tolist())"
    elif hasattr(value, "read"):
        seen = "an open file (give what its .read() returns)"
    elif hasattr(value, "__iter__") and not isinstance(value, (str, bytes)):
        seen += " (make a list of it)"
    elif hasattr(value, "__aiter__"):
        seen += " (make a list of it: [one async for one in it])"
    return TranscriptError("history", seen=seen)


def copy_of(messages: list[Any]) -> list[Any]:
    """Copy the caller's list, which a callback or another thread may change."""
    return list.copy(messages) if isinstance(messages, list) else messages


def as_bytes(data: Json) -> tuple[bytes, bool]:
    """The UTF-8 form, and whether it has lone surrogates."""
    if type(data) is bytes:
        return data, False
    if isinstance(data, str):
        refuse_path(data)
        try:
            return data.encode(), False
        except UnicodeEncodeError:
            return data.encode("utf-8", "surrogatepass"), True
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data), False
    raise TypeError(f"data must be bytes, bytearray, memoryview or str, not {type(data).__name__}")


def refuse_path(data: Json) -> None:
    """Raise a TypeError for the path of a file, which is no JSON."""
    end = bytes(data[-6:]).decode(errors="replace") if not isinstance(data, str) else data
    if end.endswith(_FILES):
        path = data if isinstance(data, str) else bytes(data).decode(errors="replace")
        if not set(path).intersection('[]{}"\n'):
            raise TypeError(f"give what the file holds, not its path: Path({path!r}).read_bytes()")


def caches_messages(body: dict[str, Any], messages: list[Any]) -> bool:
    """Whether a message of a body has a cache mark, or the body has one for its end."""
    return body.get("cache_control") is not None or any(map(_has_mark, reversed(messages)))


def _has_mark(value: Any) -> bool:
    """Whether a message, a block or a part has a cache mark, or something in its content."""
    if isinstance(value, str) or value is None:
        return False
    if isinstance(value, (list, tuple)):
        return any(map(_has_mark, value))
    fields = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return (
        fields.get("cache_control") is not None or _has_mark(fields.get("content")) or _has_mark(fields.get("source"))
    )


def automatic_mark(body: Mapping[str, Any]) -> str | None:
    """The cache mark that a body has for its last block, as JSON; None if it has none, or one that is no JSON."""
    mark = body.get("cache_control")
    if mark is None:
        return None
    import json  # lazily: few bodies have one

    try:
        return json.dumps(mark)
    except (TypeError, ValueError):
        return None


def marks_elsewhere(body: dict[str, Any]) -> int:
    """How many cache marks a body has besides those of its messages: on `system`, on `tools`, and its own."""
    lists = [list_ for list_ in (body.get("system"), body.get("tools")) if isinstance(list_, (list, tuple))]
    marked = [body, *(element for list_ in lists for element in list_)]
    return sum(isinstance(one, dict) and one.get("cache_control") is not None for one in marked)
