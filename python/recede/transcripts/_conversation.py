"""A conversation in the shape of Chat Completions that grows event by event."""

from __future__ import annotations

from typing import Any

from recede._usage import usage_of
from recede.transcripts._draft import Draft, call, objects, result, texts


class Conversation:
    """A history under construction: texts and calls of an answer become one message, however many events they are."""

    def __init__(self, context: str | None = None) -> None:
        self.draft = Draft(context)
        self.model: Any = None  # of the next answer, if the log names it apart from that
        self.calls: dict[Any, Any] = {}  # the names of those so far, by identifier
        self._answer: dict[str, Any] | None = None

    def message(self, role: str, content: Any, line: int | None = None) -> None:
        self._answer = None
        self.draft.add({"role": role, "content": "" if content is None else content}, line)

    def begin(self, line: int | None = None, *, usage: Any = None, model: Any = None, time: Any = None) -> None:
        """Begin an answer, with what the log says of its request."""
        self.draft.request(usage, model or self.model, time, line)
        self._answer = {"role": "assistant", "content": ""}
        self.draft.add(self._answer, line)

    def say(self, words: Any, line: int | None = None, time: Any = None) -> None:
        """Add a text to the answer; begin one after a result or a message."""
        self._current(line, time)["content"] += texts(words)

    def call(self, call_id: Any, name: Any, arguments: Any, line: int | None = None, time: Any = None) -> None:
        self._current(line, time).setdefault("tool_calls", []).append(call(call_id, name, arguments))
        if isinstance(call_id, str):
            self.calls[call_id] = name

    def result(self, call_id: Any, content: Any, line: int | None = None) -> None:
        """Add the result of a call; what follows is another answer."""
        self._answer = None
        name = self.calls.get(call_id) if isinstance(call_id, str) else None
        self.draft.add(result(call_id, _content(content), name), line)

    def answer(self, content: Any, line: int | None = None) -> bool:
        """Add the result of a call that the last answer made in its text; False: there is no such answer."""
        last = self.draft.messages[-1] if self.draft.messages else {}
        if last.get("role") != "assistant" or "tool_calls" in last:
            return False
        self._answer = None
        self.draft.answer(texts(content), line)
        return True

    def count(self, usage: Any, line: int | None = None) -> None:
        """Record the tokens of the last request, which are logged after its answer."""
        if self.draft.requests:
            found = usage_of(usage, lambda what: self.draft.note(what, line))
            self.draft.requests[-1] = self.draft.requests[-1]._replace(usage=found)

    def _current(self, line: int | None, time: Any) -> dict[str, Any]:
        if self._answer is None:
            self.begin(line, time=time)
        assert self._answer is not None
        return self._answer


def _content(value: Any) -> Any:
    """A text, or parts of types that the reducer knows; of any other value its JSON."""
    parts = objects(value)
    is_content = (
        bool(parts) and len(parts) == len(value) and all(part.get("type") in ("text", "image") for part in parts)
    )
    return value if is_content else texts(value)
