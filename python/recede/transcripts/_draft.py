"""A history under construction, and tolerant accessors for values that some agent wrote."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from recede.transcripts._requests import Compaction, LoggedRequest, time_of, usage_of

__all__ = ["Draft", "call", "fields", "kept", "objects", "parsed", "result", "text", "texts"]


class Draft:
    """A history that a reader is building.

    Attributes:
        messages: in a shape that the reducer knows.
        lines: the line of each message, if the file has one record per line.
        records: the number of message records read, before merging.
        requests: what the log says of each request, in order.
        compactions: where the agent replaced the history.
        context: the name of a subagent; None for the main conversation.
        plan: the subscription that pays for the requests; None: none is named.
    """

    def __init__(self, context: str | None = None) -> None:
        self.requests: list[LoggedRequest] = []
        self.compactions: list[Compaction] = []
        self.context = context
        self.plan: str | None = None
        self.messages: list[dict[str, Any]] = []
        self.lines: list[int | None] = []
        self.records = 0
        self._notes: dict[str, tuple[int, int | None]] = {}

    def add(self, message: dict[str, Any], line: int | None = None) -> None:
        """Append a message."""
        self.messages.append(message)
        self.lines.append(line or None)

    def answer(self, content: Any, line: int | None = None) -> None:
        """Append a result of a call that the last message made in its text, as a pair that can be masked."""
        pair_id = f"text-{len(self.messages)}"
        self.messages[-1].update(pairRole="call", pairId=pair_id)
        self.add({"role": "tool", "content": content, "pairRole": "result", "pairId": pair_id}, line)

    def pair_texts(self) -> None:
        """Turn each user message after an agent's message into its result, where neither has calls or results."""
        messages, lines = self.messages, self.lines
        self.messages, self.lines = [], []
        for message, line in zip(messages, lines, strict=True):
            last = self.messages[-1] if self.messages else None
            if _is_text(last, "assistant") and _is_text(message, "user"):
                self.answer(message.get("content"), line)
            else:
                self.add(message, line)

    def request(
        self,
        usage: Any,
        model: Any,
        time: Any,
        line: int | None = None,
        messages: int | None = None,
        id: str | None = None,
    ) -> None:
        """Record a request whose answer follows, or follows that many messages; fields as the log has them."""
        messages = len(self.messages) if messages is None else messages
        found = usage_of(usage, lambda what: self.note(what, line))
        self.requests.append(LoggedRequest(messages, text(model) or None, time_of(time), found, id))

    def compacted(self, line: int | None = None, shown: list[dict[str, Any]] | None = None) -> None:
        """Record a compaction: from here on the model sees `shown`, and the messages that follow."""
        self.compactions.append(Compaction(len(self.messages), shown or []))
        self.note("the session was compacted; the messages before it are kept", line)

    def note(self, what: str, line: int | None = None) -> None:
        """Count something that the user should know; the first line is kept."""
        count, first = self._notes.get(what, (0, line or None))
        self._notes[what] = count + 1, first

    def warnings(self) -> tuple[str, ...]:
        """Return each kind of note once, with its count and first line."""
        return tuple(_warning(what, *places) for what, places in self._notes.items())


def _warning(what: str, count: int, line: int | None) -> str:
    if count == 1:
        return what if line is None else f"{what}: line {line}"
    return f"{what}: {count} times" if line is None else f"{what}: {count} times, first in line {line}"


def _is_text(message: Any, role: str) -> bool:
    if fields(message).get("role") != role or message.get("tool_calls") or "pairRole" in message:
        return False
    return not any(text(part.get("type")).startswith("tool_") for part in objects(message.get("content")))


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; empty if it is not a list."""
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """A string unchanged; empty for anything else."""
    return value if isinstance(value, str) else ""


def fields(value: Any) -> dict[str, Any]:
    """An object unchanged; empty for anything else."""
    return value if isinstance(value, dict) else {}


def parsed(value: Any) -> Any:
    """The value of a JSON text; anything else unchanged, also a text that is not JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def texts(value: Any) -> str:
    """A text, or the texts of a list of parts; of any other value its JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    parts = [part.get("text", part.get("content")) for part in objects(value)]
    said = [part for part in parts if isinstance(part, str)]
    if said and len(said) == len(value):
        return "".join(said)
    return json.dumps(value, ensure_ascii=False)


_LEFT_OUT = frozenset("id kind model name provider role source timestamp type usage".split())  # in `kept`


def kept(message: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """The message of a record; the record itself where it has a text in a field that no reader knows.

    So the text is counted, and the fields are named to the user.

    Example:
        >>> from recede.transcripts._draft import kept
        >>> kept({"role": "user", "content": ""}, {"role": "user", "body": "Go."})
        {'role': 'user', 'body': 'Go.'}
    """
    if message.get("content") or message.get("tool_calls"):
        return message
    to_visit = [held for name, held in record.items() if name not in _LEFT_OUT]
    for value in to_visit:
        if isinstance(value, (dict, list)):
            to_visit += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str) and value.strip():
            return record
    return message


def call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """A tool call in the shape of Chat Completions."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(call_id: Any, content: Any, name: Any = None) -> dict[str, Any]:
    """A tool result in the shape of Chat Completions."""
    named = {} if name is None else {"name": name}
    return {"role": "tool", "tool_call_id": call_id, **named, "content": content}
