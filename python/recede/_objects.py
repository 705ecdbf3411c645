"""Objects of clients (pydantic models of `anthropic`, `openai` and others): fields, JSON forms, copies; responses.

recede plans over plain dicts. An object is converted once, read as the dict that its client would send, and put back:
what is unchanged in a view is the caller's own object, what is masked is a copy of its own kind.
"""

from __future__ import annotations

from operator import is_
from typing import Any

# Clients and the reducer accept a few levels more, which leaves room for what encloses the value.
MOST_LEVELS = 200
# The key under which the form of a message has its place in the history; a copy of the form keeps it.
_PLACE = "recede_place"
# A message without these fields has no result and no list of calls, so no view has it otherwise.
_CHANGED = {"content", "output", "parts", "result", "role"}


def is_object(value: Any) -> bool:
    return hasattr(value, "model_dump") and not isinstance(value, type)


def read(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def changed(value: Any, /, **updates: Any) -> Any:
    if isinstance(value, dict):
        return {**value, **updates}
    if hasattr(value, "model_copy"):
        return value.model_copy(update=updates)
    import copy

    other = copy.copy(value)
    for name, field in updates.items():
        setattr(other, name, field)
    return other


def plain(value: Any, level: int = 0) -> Any:
    """Convert objects of a client to plain JSON values, with only the fields that came over the wire."""
    if level > MOST_LEVELS:
        return value  # `encodable` refuses it
    if hasattr(value, "model_dump"):
        try:
            return _dumped(value, warnings=False)
        except ValueError:  # pydantic refuses to dump deeply nested values
            fields = {**vars(value), **(value.model_extra or {})}
            return {name: plain(fields[name], level + 1) for name in fields if name in value.model_fields_set}
    if isinstance(value, dict):
        return {name: plain(field, level + 1) for name, field in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(element, level + 1) for element in value]
    if hasattr(value, "__dict__"):
        return {name: plain(field, level + 1) for name, field in vars(value).items()}
    return value


def sent_form(value: Any) -> Any:
    """Return what the client of an object sends for it; None if a field has a type that the client does not expect."""
    try:
        return _dumped(value, warnings="error")
    except Exception:  # of pydantic, or of a value that it cannot dump
        return None


def _dumped(value: Any, *, warnings: Any) -> Any:
    """Return the fields of an object that its client sends: without fields that only a response has."""
    hidden = getattr(value, "__api_exclude__", None)
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=hidden, warnings=warnings)


def plain_message(message: Any) -> Any:
    """Convert a message to the form that its provider accepts; unchanged if it is plain already, or no message."""
    if not is_object(message):
        return _unwrapped(message, 0)
    if type(message).__module__.startswith("langchain_core."):
        raise TypeError(
            f"{type(message).__name__} is a message of LangChain: recede.integrations.langchain masks those of an "
            "agent (RecedeMiddleware); or convert them (langchain_core.messages.convert_to_openai_messages)"
        )
    form = plain(message)
    if isinstance(form, dict) and "type" not in form:
        form = {name: field for name, field in form.items() if field is not None or name == "content"}
    return form if isinstance(form, dict) and form.keys() & {"role", "type", "parts"} else message


def _unwrapped(value: Any, level: int) -> Any:
    """Replace objects in a value by their plain forms; unchanged if there are none."""
    if value is None or isinstance(value, (str, int, float)) or level > MOST_LEVELS:
        return value
    if isinstance(value, dict):
        fields = {name: _unwrapped(field, level + 1) for name, field in value.items()}
        return value if all(fields[name] is value[name] for name in fields) else fields
    if isinstance(value, list):
        elements = [_unwrapped(element, level + 1) for element in value]
        return value if all(map(is_, elements, value)) else elements
    return plain(value) if is_object(value) else value


def restored(original: Any, before: Any, after: Any) -> Any:
    """Apply the change from the plain form `before` to `after` to the original object; unchanged parts are kept."""
    if after is before or after == before:
        return original
    if isinstance(after, list) and isinstance(before, list) and isinstance(original, list):
        own = {id(form): part for part, form in zip(original, before, strict=True)}
        if len(after) != len(before):  # blocks came or went: those that stay are the same objects
            return [own.get(id(form), form) for form in after]
        return [
            own[id(form)] if id(form) in own else restored(part, old, form)
            for part, old, form in zip(original, before, after, strict=True)
        ]
    is_readable = isinstance(original, dict) or is_object(original)
    # A block may have got the cache mark of what was masked in it.
    is_copied = isinstance(after, dict) and isinstance(before, dict) and after.keys() >= before.keys()
    if is_readable and is_copied and _may_have(original, after.keys() - before.keys()):
        names = _names_of(original)
        fields: dict[str, Any] = {}
        for key, form in after.items():
            name = str(names.get(key, key))
            old = before.get(key)
            if form is not old and form != old:
                fields[name] = restored(read(original, name), old, form)
        return changed(original, **fields)
    return after


def _may_have(value: Any, names: set[str]) -> bool:
    """Whether a copy of the object may have these fields, too, and be sent with them."""
    return (
        isinstance(value, dict)
        or names <= _names_of(value).keys()
        or (getattr(value, "model_config", None) or {}).get("extra") == "allow"
    )


def _names_of(value: Any) -> dict[str, str]:
    """Map the JSON names of an object's fields to its attributes."""
    fields: dict[str, Any] = getattr(type(value), "model_fields", None) or {}
    return {field.serialization_alias or field.alias or name: name for name, field in fields.items()}


class Forms:
    """The plain dicts of a history with objects: `messages`, in the same order."""

    def __init__(self, history: list[Any], forms: list[Any]) -> None:
        self._history = history
        # An item that no view changes is found by itself: of one that recede does not know every character counts.
        made = [(form, place) for place, form in enumerate(forms) if form is not history[place]]
        self._places = {id(form): place for form, place in made if _is_unchanged(form)}
        self.messages = [
            form if form is message or id(form) in self._places else {**form, _PLACE: place}
            for place, (message, form) in enumerate(zip(history, forms, strict=True))
        ]

    @classmethod
    def of(cls, history: Any) -> Forms | None:
        """Make the plain forms; None if the history holds no objects."""
        if not isinstance(history, list):
            return None
        history = list.copy(history)
        forms = list(map(plain_message, history))
        return None if all(map(is_, forms, history)) else cls(history, forms)

    def restored(self, view: list[Any]) -> list[Any]:
        return [self._restored(message) for message in view]

    def _restored(self, message: Any) -> Any:
        place = message.get(_PLACE, self._places.get(id(message)))
        if place is None:
            return message
        own = restored(self._history[place], self.messages[place], message)
        return {name: field for name, field in own.items() if name != _PLACE} if own is message else own


def _is_unchanged(form: dict[str, Any]) -> bool:
    fields = _CHANGED & form.keys()
    return not fields or (fields == {"result"} and form.get("type") != "function_result")


# Responses, read alike without importing either client


# The stop reasons of an answer that was cut off: a call in it may be incomplete.
CUT = frozenset({"max_tokens", "length", "model_context_window_exceeded", "refusal", "content_filter"})


_NO_RESPONSES = (
    "takes chat completions of OpenAI: pass client.chat.completions.create. For client.responses.create make the loop "
    "yourself, with a recede.History for its items"
)
_NO_GOOGLE = (
    "takes no client of Google: make the loop yourself, with a recede.History for the steps of its interactions"
)


def check_create(create: Any, name: str) -> None:
    """Raise TypeError unless the value is a function, and no method of a client whose answers are not messages."""
    if not callable(create):
        raise TypeError(f"create must be a function such as client.messages.create, not {type(create).__name__}")
    owner = type(getattr(create, "__self__", None))
    if owner.__module__.partition(".")[0] == "openai" and "Completions" not in owner.__name__:
        raise TypeError(f"{name} {_NO_RESPONSES}")
    if owner.__module__.startswith("google.genai"):
        raise TypeError(f"{name} {_NO_GOOGLE}")


def is_openai(response: Any) -> bool:
    """Whether a response is an OpenAI chat completion; otherwise it must be an Anthropic message."""
    choices = read(response, "choices")
    if choices and isinstance(choices, (list, tuple)):
        return True
    if isinstance(read(response, "content"), (list, tuple, str)):
        return False
    if read(response, "object") == "response":
        raise TypeError(f"create returned a response of OpenAI's Responses; this {_NO_RESPONSES}")
    raise TypeError(
        f"create returned a {type(response).__name__} that is not a response: neither a message with a list of content "
        "blocks nor a chat completion with choices"
    )


def choice_of(response: Any) -> Any:
    choices = read(response, "choices")
    return choices[0] if choices and isinstance(choices, (list, tuple)) else None


def blocks_of(response: Any) -> list[Any]:
    """Return the content blocks of an Anthropic message; some gateways return a plain string."""
    content = read(response, "content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, (list, tuple)) else []


def stop_reason(response: Any) -> str | None:
    """Return why an answer ended: `stop_reason`, or the `finish_reason` of the first choice."""
    choice = choice_of(response)
    reason = read(response, "stop_reason") if choice is None else read(choice, "finish_reason")
    return reason if isinstance(reason, str) else None


def messages_of(response: Any) -> list[Any]:
    """Return the messages of a client's object: a response, a message, or an item of one."""
    if hasattr(response, "choices"):
        message = read(choice_of(response), "message")
        if message is None:
            raise ValueError("a chat completion without choices holds no message")
        return [message]
    if read(response, "object") == "response":
        return list(response.output)
    if isinstance(read(response, "steps"), list) and hasattr(response, "status"):  # an interaction of google-genai
        return list(response.steps)
    if hasattr(response, "stop_reason"):  # as the provider takes it back: without the fields around a message
        return [{"role": read(response, "role") or "assistant", "content": response.content}]
    return [response]


def model_of(response: Any) -> Any:
    """Return the model that a client's response names; None of any other object."""
    is_response = hasattr(response, "choices") or hasattr(response, "stop_reason") or hasattr(response, "output")
    return getattr(response, "model", None) if is_response else None


def text_of(message: dict[str, Any] | None) -> str:
    if message is None:
        return ""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(block.get("text") or "" for block in content if block.get("type") == "text")
    return content or message.get("refusal") or ""
