"""Events of OpenHands V1 (its software agent SDK), each with a `kind`: one per line, file, or list element."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recede.transcripts._draft import Draft, at, call, fields, objects, result, text, texts
from recede.transcripts._source import Record

# What the model does not see, and the summary, which is with the condensation as well.
_LEFT_OUT = frozenset(
    """CondensationRequest CondensationSummaryEvent ConversationErrorEvent ConversationStateUpdateEvent
    HookExecutionEvent InterruptEvent LLMCompletionLogEvent PauseEvent SecurityAnalysisEvent StreamingDeltaEvent
    TokenEvent""".split()
)
_FACTS = frozenset(["command", "content", "kind", "metadata", "output", "path", "text"])  # of an observation
_RESULTS = frozenset(["AgentErrorEvent", "ObservationEvent", "UserRejectObservation"])
_KINDS = _LEFT_OUT | _RESULTS | {"ActionEvent", "Condensation", "MessageEvent", "SystemPromptEvent"}


def recognizes_line(record: dict[str, Any]) -> bool:
    return text(record.get("kind")) in _KINDS and "source" in record


def recognizes(value: Any) -> bool:
    return any(map(recognizes_line, _events(value)))


def read(value: Any) -> Iterator[Draft]:
    """Read actions as calls and observations as results, in the shape of Chat Completions."""
    return read_lines(Record(event, 0) for event in _events(value))


def read_lines(records: Iterable[Record]) -> Iterator[Draft]:
    reader = _Reader()
    for value, line in records:
        reader.draft.records += 1
        reader.read(value, line)
    yield reader.draft


def _events(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return objects(value)
    row = fields(value)
    found = next((row[name] for name in ("history", "events", "items") if isinstance(row.get(name), list)), None)
    return objects(found)


class _Reader:
    def __init__(self) -> None:
        self.draft = Draft()
        self._view: list[tuple[Any, dict[str, Any]]] = []  # what the model sees: id of the event, message
        self._answers: dict[str, dict[str, Any]] = {}  # id of an answer of the model -> its message

    def read(self, event: dict[str, Any], line: int) -> None:
        kind = text(event.get("kind"))
        if kind == "SystemPromptEvent":
            said = [at(event, name, "text") for name in ("system_prompt", "dynamic_context")]
            self._add(event, {"role": "system", "content": "\n".join(map(text, filter(None, said)))}, line)
        elif kind == "MessageEvent":
            self._message(event, line)
        elif kind == "ActionEvent":
            self._action(event, line)
        elif kind in _RESULTS:
            self._add(event, result(event.get("tool_call_id"), _output(event), event.get("tool_name")), line)
        elif kind == "Condensation":
            self._condense(event, line)
        elif kind not in _LEFT_OUT:
            self.draft.unknown("event", "kind", kind, event, line)

    def _add(self, event: dict[str, Any], message: dict[str, Any], line: int) -> None:
        self.draft.add(message, line)
        self._view.append((event.get("id"), message))

    def _message(self, event: dict[str, Any], line: int) -> None:
        said = fields(event.get("llm_message"))
        role = text(said.get("role")) or ("user" if event.get("source") == "user" else "assistant")
        parts = [part for found in (said.get("content"), event.get("extended_content")) for part in objects(found)]
        content = said["content"] if isinstance(said.get("content"), str) else texts(parts)
        if role == "assistant":
            self.draft.request(None, None, event.get("timestamp"), line)
        self._add(event, {"role": role, "content": content}, line)

    def _action(self, event: dict[str, Any], line: int) -> None:
        made = fields(event.get("tool_call"))
        arguments = made.get("arguments", fields(event.get("action")))
        own = call(event.get("tool_call_id", made.get("id")), made.get("name", event.get("tool_name")), arguments)
        response = text(event.get("llm_response_id"))
        answer = self._answers.get(response)
        if answer is not None:  # one answer with several calls
            answer["tool_calls"].append(own)
            return
        answer = {"role": "assistant", "content": texts(event.get("thought") or ""), "tool_calls": [own]}
        self.draft.request(None, None, event.get("timestamp"), line)
        self._add(event, answer, line)
        if response:
            self._answers[response] = answer

    def _condense(self, event: dict[str, Any], line: int) -> None:
        """Replace the events that the model no longer sees by their summary."""
        forgotten = event.get("forgotten_event_ids")
        gone = [one for one in forgotten if isinstance(one, str)] if isinstance(forgotten, list) else []
        self._view = [(identity, message) for identity, message in self._view if identity not in gone]
        place = event.get("summary_offset")
        if text(event.get("summary")):
            at = place if isinstance(place, int) and 0 <= place <= len(self._view) else 0
            self._view.insert(at, (None, {"role": "user", "content": event["summary"]}))
        self.draft.compacted(line, [message for _, message in self._view])


def _output(event: dict[str, Any]) -> str:
    """The text of a tool's answer that the model sees."""
    observation = fields(event.get("observation"))
    content = [observation.get(name) for name in ("content", "output", "text")]
    content += [event.get(name) for name in ("error", "rejection_reason")]
    said = next((texts(one) for one in content if one), "")
    others = {name: held for name, held in observation.items() if name not in _FACTS}
    if not said and any(isinstance(held, str) and held for held in others.values()):
        said = texts(others)  # fields of a tool that is not known
    return said + texts(event.get("extended_content") or "")
