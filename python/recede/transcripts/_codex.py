"""Codex sessions: JSON Lines whose `response_item` payloads are items of the OpenAI Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from recede.transcripts._draft import Draft, at, digest, fields, objects, text
from recede.transcripts._requests import Shown
from recede.transcripts._source import Record

# Events repeat items for display; contexts and metadata are settings.
_LEFT_OUT = frozenset(["event_msg", "session_meta", "token_usage_record", "turn_context", "world_state"])
_MOST_KEPT_CHARS = 80_000  # of the user's messages, in a compaction
# What names a session in its first record, and the one that it continues: a fork, or the child of an agent.
_PARENTS = ("forked_from_id", "parent_thread_id")


def recognizes(record: dict[str, Any]) -> bool:
    kind = text(record.get("type"))
    return isinstance(record.get("payload"), dict) and kind in ("response_item", "compacted", *_LEFT_OUT)


def read(records: Iterable[Record]) -> Iterator[Draft]:
    session = _Session()
    for record in records:
        session.read(record)
    session.answered(None)
    session.count_alone()
    session.bill("response")
    yield session.draft


class _Answer(NamedTuple):
    """An answer that was begun, and is not counted yet."""

    messages: int
    time: Any
    line: int
    items: list[Any]  # what identifies each


class _Counted(NamedTuple):
    """A record of the tokens of a response, which an event may repeat."""

    response: str
    usage: dict[str, Any]
    time: Any
    line: int


class _Session:
    def __init__(self) -> None:
        self.draft = Draft()
        self._model: Any = None
        self._tier: Any = None  # how requests are served from here on
        self._answer: _Answer | None = None
        self._total: Any = None
        self._last: Any = None  # the usage of the last answer
        self._root = ""  # the session whose requests this one may begin with
        self._turns: list[int] = []  # where the user spoke, by the messages before it
        self._responses: list[_Counted] = []  # responses that no event has counted yet
        self._early: tuple[int, Any, Any, int] | None = None  # a count before its answer: messages, usage, time, line

    def read(self, record: Record) -> None:
        value, line = record
        kind, payload, time = text(value.get("type")), fields(value.get("payload")), value.get("timestamp")
        if kind == "response_item" and isinstance(value.get("payload"), dict):
            self._item(payload, time, line)
        elif kind == "compacted":
            self._compacted(payload, time, line)
        elif kind == "session_meta":
            self._named(payload)
        elif kind == "token_usage_record":
            self._response(payload, time, line)
        elif kind == "turn_context":
            self._model = payload.get("model", self._model)
            self._tier = payload.get("service_tier", self._tier)
        elif kind == "event_msg":
            self._event(payload, time, line)
        elif kind not in _LEFT_OUT:
            self.draft.unknown("record", "type", kind, value, line, why=", since it holds no item")

    def _item(self, payload: dict[str, Any], time: Any, line: int) -> None:
        draft, item = self.draft, text(payload.get("type"))
        if item == "ghost_snapshot":  # it is not sent
            return
        if item == "message" and payload.get("role") != "assistant":
            self.answered(None)
            if payload.get("role") == "user" and not _is_of_program(payload):
                self._turns.append(draft.end)
        elif item.endswith("_output"):
            if self._responses:
                self.answered(None)
        else:
            if self._answer is None:
                self._answer = _Answer(draft.end, time, line, [])
            self._answer.items.append(payload)
        draft.records += 1
        draft.add(payload, line)

    def _event(self, payload: dict[str, Any], time: Any, line: int) -> None:
        kind = payload.get("type")
        if kind == "thread_settings_applied":
            self._tier = fields(payload.get("thread_settings")).get("service_tier", self._tier)
        elif kind == "token_count":
            self._tier = payload.get("service_tier", self._tier)
            info = payload.get("info")
            if isinstance(info, dict) and info.get("total_token_usage") != self._total:  # else it is a repetition
                before, self._total = self._total, info.get("total_token_usage")
                usage = info.get("last_token_usage")
                if self._answer is None and _adds(before, usage, self._total):
                    self.count_alone()
                    self._early = self.draft.end, usage, time, line
                else:
                    self.answered(usage)
            self.draft.plan = text(fields(payload.get("rate_limits")).get("plan_type")) or self.draft.plan
        elif kind == "thread_rolled_back" and type(count := payload.get("num_turns")) is int and count > 0:
            self.answered(None)
            begun = self._turns[-count] if count <= len(self._turns) else next(iter(self._turns), self.draft.end)
            del self._turns[-count:]
            self.draft = self.draft.back_to(begun)

    # Tokens

    def _named(self, payload: dict[str, Any]) -> None:
        """The first record names the session; a fork has those of the sessions before it too, the oldest last."""
        spawned = fields(at(payload, "source", "subagent", "thread_spawn"))
        names = [*(one.get(name) for one in (payload, spawned) for name in _PARENTS), payload.get("id")]
        self._root = next((name for name in names if isinstance(name, str) and name), self._root)
        self.draft.host = payload.get("model_provider", self.draft.host)

    def _response(self, payload: dict[str, Any], time: Any, line: int) -> None:
        """Keep the tokens of a response: of an answer, which an event counts too, or of a compaction."""
        usage, response = payload.get("usage"), text(payload.get("response_id"))
        is_known = any(one.response == response for one in self._responses[-8:] if response)
        if isinstance(usage, dict) and not is_known and not (self._answer is None and usage == self._last):
            self._responses.append(_Counted(response, usage, time, line))

    def count_alone(self) -> None:
        """Record a count that no answer followed."""
        if self._early is not None:
            messages, usage, time, line = self._early
            self._early = None
            self.draft.note("tokens of a request whose answer is not in the log", line)
            self.draft.request(self._served(usage), self._model, time, line, messages, content=usage)

    def answered(self, usage: Any) -> None:
        """Complete an answer: its usage was logged, or never will be."""
        if self._answer is None:
            return
        if usage is None and not self._responses and self._early is not None:
            usage, self._early = self._early[1], None
        self.count_alone()
        messages, time, line, items = self._answer
        self._answer = None
        if usage is None and self._responses:
            usage = self._responses.pop(0).usage
        elif usage is not None:
            self._responses = [one for one in self._responses if one.usage != usage]
            self._last = usage
        # A fork begins with the items and counters of its parent, at other times.
        is_named = self._root and usage is not None
        name = digest(self._root, [_named(item) for item in items], self._total, usage) if is_named else None
        self.draft.request(self._served(usage), self._model, time, line, messages, name)

    def _served(self, usage: Any) -> Any:
        """The usage, with how it was served where only the session says that."""
        return {"service_tier": self._tier, **usage} if self._tier and isinstance(usage, dict) else usage

    def _compacted(self, payload: dict[str, Any], time: Any, line: int) -> None:
        self.answered(None)
        self.bill("compaction")
        history, summary = payload.get("replacement_history"), payload.get("message")
        draft, end = self.draft, self.draft.end
        if isinstance(history, list) or not text(summary):
            draft.compacted(line, objects(history))
            return
        # Codex makes the history of what the user said and the summary.
        content = [{"type": "input_text", "text": summary}]
        said = {"type": "message", "role": "user", "content": content}
        draft.compacted(line, Shown(lambda: [*_newest_of_user(draft.path(0, end)), said]))

    def bill(self, kind: str) -> None:
        for response, usage, time, line in self._responses:
            name = digest(self._root, response) if self._root and response else None
            self.draft.billed(kind, self._model, usage, line, time, name)
        self._responses.clear()


def _adds(before: Any, usage: Any, total: Any) -> bool:
    """Whether a usage is what the total of a session has more than before, so that it is no repetition."""
    counts = "input_tokens", "output_tokens"
    held = [[one.get(name, 0) if isinstance(one, dict) else 0 for name in counts] for one in (before, usage, total)]
    return (
        all(type(count) is int for one in held for count in one)
        and [first + more for first, more in zip(held[0], held[1], strict=True)] == held[2]
    )


def _is_of_program(message: dict[str, Any]) -> bool:
    """Whether a user message is of the program, which counts those of the user as turns."""
    said = next((text(part.get("text")) for part in objects(message.get("content"))), "").lstrip()
    return said.startswith(("<", "# AGENTS.md"))


def _newest_of_user(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of the user that a compaction keeps: the newest, as far as they are not too many."""
    kept: list[dict[str, Any]] = []
    chars = 0
    for message in reversed(messages):
        if message.get("role") == "user" and not _is_of_program(message):
            chars += sum(len(text(part.get("text"))) for part in objects(message.get("content")))
            if chars > _MOST_KEPT_CHARS:
                break
            kept.append(message)
    return kept[::-1]


def _named(item: dict[str, Any]) -> Any:
    names = [item.get(name) for name in ("type", "call_id", "name")]
    return [*names, item.get("arguments", item.get("input")), item.get("content"), item.get("encrypted_content")]
