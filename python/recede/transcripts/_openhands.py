"""Events of OpenHands: of V0, a list of actions and observations; of V1 (its SDK), each with a `kind`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recede.transcripts._draft import Draft, at, call, fields, first_fields, objects, result, text, texts
from recede.transcripts._source import Record

# State of the program, and what it recalls: the model gets that as text that the events do not contain.
_LEFT_OUT = frozenset(
    """agent_state_changed change_agent_state condensation condensation_request null recall
    request_condensation""".split()
)
_NO_ARGUMENTS = frozenset(
    """action action_risk args cause confirmation_state final_thought id is_confirmed kernel_init_code keep_prompt
    message source thought timeout timestamp tool_call_metadata""".split()
)


def recognizes(value: Any) -> bool:
    """Whether the value contains events: objects with an action or an observation."""
    events = _events(value)
    return any(isinstance(event.get("action", event.get("observation")), str) for event in events) and all(
        "role" not in event and ("action" in event or "observation" in event) for event in events
    )


def read(value: Any) -> Iterator[Draft]:
    """Read actions as calls and observations as results, in the shape of Chat Completions."""
    reader = _Reader()
    for event in _events(value):
        reader.draft.records += 1
        reader.read(event)
    yield reader.draft


def _events(value: Any) -> list[dict[str, Any]]:
    history = value.get("history") if isinstance(value, dict) else value
    if not isinstance(history, list):
        return []
    # Early versions wrote pairs of an action and its observation.
    pairs = [event for element in history if isinstance(element, list) for event in objects(element)]
    return pairs or objects(history)


class _Reader:
    def __init__(self) -> None:
        self.draft = Draft()
        self._calls: dict[int, Any] = {}  # event id -> id of the call
        self._answers: dict[str, dict[str, Any]] = {}  # id of an answer of the model -> its message
        self._last: tuple[str, str] | None = None  # kind and call of the last action

    def read(self, event: dict[str, Any]) -> None:
        action, observation = event.get("action"), event.get("observation")
        if text(action) in _LEFT_OUT or text(observation) in _LEFT_OUT:
            return
        if isinstance(action, str):
            self._action(action, event)
        elif isinstance(observation, str):
            self._observation(observation, event)
        else:
            what = "event of unknown kind left out, since it is neither action nor observation"
            self.draft.left_out(what, first_fields(event), event)

    def _request(self, event: dict[str, Any]) -> None:
        response = fields(at(event, "tool_call_metadata", "model_response"))
        self.draft.request(response.get("usage"), response.get("model"), event.get("timestamp"))

    def _action(self, action: str, event: dict[str, Any]) -> None:
        arguments = event["args"] if isinstance(event.get("args"), dict) else event
        if action == "system":
            self.draft.add({"role": "system", "content": texts(arguments.get("content"))})
        elif action == "message":
            source = event.get("source") or ("agent" if self.draft.messages else "user")
            role = "user" if source == "user" else "assistant"
            if role == "assistant":
                self._request(event)
            self.draft.add({"role": role, "content": texts(arguments.get("content"))})
        elif action in ("finish", "reject"):
            # No result follows: the model sees its own message.
            self._request(event)
            said = arguments.get("final_thought") or arguments.get("thought") or event.get("message")
            self.draft.add({"role": "assistant", "content": text(said)})
        else:
            self._call(action, arguments, event)

    def _call(self, action: str, arguments: dict[str, Any], event: dict[str, Any]) -> None:
        metadata = fields(event.get("tool_call_metadata"))
        response = fields(metadata.get("model_response"))
        choices = objects(response.get("choices"))
        said = fields(choices[0].get("message")) if choices else {}
        call_id = metadata.get("tool_call_id") or f"event-{self.draft.records}"
        own: Any = {name: value for name, value in arguments.items() if name not in _NO_ARGUMENTS}
        for made in objects(said.get("tool_calls")):
            if made.get("id") == call_id:
                own = fields(made.get("function")).get("arguments", own)
        made = call(call_id, metadata.get("function_name") or action, own)
        answer = self._answers.get(text(response.get("id")))
        if answer is None:
            self._request(event)
            content = text(said.get("content")) or text(arguments.get("thought"))
            answer = {"role": "assistant", "content": content, "tool_calls": [made]}
            self.draft.add(answer)
            if text(response.get("id")):
                self._answers[response["id"]] = answer
        else:
            answer["tool_calls"].append(made)
        if isinstance(event.get("id"), int):
            self._calls[event["id"]] = call_id
        self._last = action, call_id

    def _observation(self, observation: str, event: dict[str, Any]) -> None:
        call_id = at(event, "tool_call_metadata", "tool_call_id")
        cause = event.get("cause")
        if call_id is None and isinstance(cause, int):
            call_id = self._calls.get(cause)
        if call_id is None and cause is None and self._last is not None and self._last[0] == observation:
            call_id = self._last[1]
            self._last = None
        if call_id is not None:
            self.draft.add(result(call_id, texts(event.get("content"))))
            return
        if observation != "error":  # the agent gets its own errors as user messages
            self.draft.note(f"observation {observation!r} without its action kept as a user message")
        self.draft.add({"role": "user", "content": texts(event.get("content"))})


# V1


# What the model does not see, and the summary, which is with the condensation as well.
_NOT_SEEN = frozenset(
    """CondensationRequest CondensationSummaryEvent ConversationErrorEvent ConversationStateUpdateEvent
    HookExecutionEvent InterruptEvent LLMCompletionLogEvent PauseEvent SecurityAnalysisEvent StreamingDeltaEvent
    TokenEvent""".split()
)
_FACTS = frozenset(["command", "content", "kind", "metadata", "output", "path", "text"])  # of an observation
_RESULTS = frozenset(["AgentErrorEvent", "ObservationEvent", "UserRejectObservation"])
_KINDS = _NOT_SEEN | _RESULTS | {"ActionEvent", "Condensation", "MessageEvent", "SystemPromptEvent"}


def recognizes_v1_line(record: dict[str, Any]) -> bool:
    return text(record.get("kind")) in _KINDS and "source" in record


def recognizes_v1(value: Any) -> bool:
    return any(map(recognizes_v1_line, _events_of_v1(value)))


def read_v1(value: Any) -> Iterator[Draft]:
    """Read actions as calls and observations as results, in the shape of Chat Completions."""
    return read_v1_lines(Record(event, 0) for event in _events_of_v1(value))


def read_v1_lines(records: Iterable[Record]) -> Iterator[Draft]:
    reader = _ReaderOfV1()
    for value, line in records:
        reader.draft.records += 1
        reader.read(value, line)
    yield reader.draft


def _events_of_v1(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return objects(value)
    row = fields(value)
    found = next((row[name] for name in ("history", "events", "items") if isinstance(row.get(name), list)), None)
    return objects(found)


class _ReaderOfV1:
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
        elif kind not in _NOT_SEEN:
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
        gone = {one for one in forgotten if isinstance(one, str)} if isinstance(forgotten, list) else set()
        self._view = [(name, message) for name, message in self._view if not (isinstance(name, str) and name in gone)]
        place = event.get("summary_offset")
        if text(event.get("summary")):
            place = place if isinstance(place, int) and 0 <= place <= len(self._view) else 0
            self._view.insert(place, (None, {"role": "user", "content": event["summary"]}))
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
