"""Claude Code sessions: JSON Lines, one line per block of an answer."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

from recede.transcripts._claude_answers import Answer, sent_of, settle
from recede.transcripts._draft import Draft, Place, fields, objects, text
from recede.transcripts._kept import Kept
from recede.transcripts._source import Record

# State of the program: its screen, files and queue. The model does not see these records, or sees them as text that
# the session does not contain (most attachments).
_LEFT_OUT = frozenset(
    """agent-name agent-setting ai-title attachment attribution-snapshot bridge-session custom-title
    file-history-snapshot last-prompt mode permission-mode pr-link progress queue-operation summary system tag
    worktree-state""".split()
)
_MOST_AHEAD = 16  # lines
_MARKS = ("sessionId", "session_id", "leafUuid", "snapshot", "uuid")


def recognizes(record: dict[str, Any]) -> bool:
    kind = text(record.get("type"))
    if not any(mark in record for mark in _MARKS):
        return False
    content = fields(record.get("message")).get("content")
    return kind in _LEFT_OUT or (kind in ("user", "assistant") and isinstance(content, (str, list)))


def is_list(value: Any) -> bool:
    """Whether the value is what `claude --output-format json --verbose` prints: the records of a session."""
    records = objects(value)
    return any(map(recognizes, records)) and all(
        isinstance(record.get("type"), str) and "role" not in record and any(mark in record for mark in _MARKS)
        for record in records
    )


def read_list(value: Any) -> Iterator[Draft]:
    return read(Record(record, 0) for record in objects(value))


def read(records: Iterable[Record]) -> Iterator[Draft]:
    """Read the main conversation, then the conversations of subagents, each with a context of its own."""
    main = _Session(None)
    agents: dict[str, _Session] = {}
    agent_of: dict[Any, str] = {}  # identifier of a record -> its subagent
    results: list[dict[str, Any]] = []
    name = ""
    moved = "record before the one that it names, moved after it"
    for record in _in_order(records, lambda line: main.draft.note(moved, line)):
        value = record.value
        caller = _name(value.get("parent_tool_use_id"))
        if value.get("type") == "result" and "message" not in value:
            results.append(value)
        elif caller or value.get("isSidechain") is True:
            # Early versions do not name the agent: its records are a chain that begins with one without a parent.
            identity, parent = _name(value.get("uuid")), value.get("parentUuid")
            began = identity if parent is None and identity not in agent_of else None
            known = agent_of.get(parent) if isinstance(parent, str) else None
            name = _name(value.get("agentId")) or caller or known or began or name
            agent_of[identity] = name
            agents.setdefault(name, _Session(name)).read(record)
        else:
            main.read(record)
    drafts = [session.finish() for session in (main, *agents.values())]
    if results:
        settle(drafts, results)
    return iter([draft for draft in drafts if draft.end] or drafts[:1])


def _in_order(records: Iterable[Record], note: Callable[[int], None]) -> Iterator[Record]:
    """Move a record after the one that it names, if that follows within a few lines: several writers share a log."""
    ahead: deque[tuple[Record, Any, Any]] = deque()
    coming: Counter[Any] = Counter()  # what identifies the records ahead
    known: set[Any] = set()
    waiting: dict[Any, list[tuple[Record, Any, Any]]] = {}  # records, by the one that they name
    names: set[Any] = set()  # of those that wait
    for record in chain(records, repeat(None, _MOST_AHEAD)):
        if record is not None:
            ahead.append((record, _name(record.value.get("uuid")), _name(record.value.get("parentUuid"))))
            coming[ahead[-1][1]] += 1
            if len(ahead) <= _MOST_AHEAD:
                continue
        if not ahead:
            break
        first = ahead.popleft()
        coming[first[1]] -= 1
        parent = first[2]
        if parent is not None and parent not in known and (coming[parent] > 0 or parent in names):
            waiting.setdefault(parent, []).append(first)
            names.add(first[1])
            note(first[0].line)
            continue
        ready = [first]
        while ready:
            one, name, _ = ready.pop()
            known.add(name)
            yield one
            ready += reversed(waiting.pop(name, []))
    for left in waiting.values():  # they name each other
        yield from (one for one, _, _ in left)


class _Session:
    """The conversation of the agent or of a subagent: a tree, each of whose records names the one before it."""

    def __init__(self, context: str | None) -> None:
        self.draft = Draft(context)
        self._places: dict[str, Place | None] = {}  # where records are followed; None: nowhere
        self._parents: dict[str, Any] = {}
        self._is_tree = False  # whether any record names one that is known
        self._answers: dict[str, Answer] = {}
        self._answered: set[Any] = set()
        self._newest: dict[Draft, Answer] = {}  # the last answer of a branch, while only its results follow it
        self._kept = Kept()

    def read(self, record: Record) -> None:
        value = record.value
        kind, message = text(value.get("type")), value.get("message")
        queued = _queued(value)
        if queued is not None:
            kind, message = "user", queued
        if kind in _LEFT_OUT:
            self._left_out(value, record.line)
            return
        if not isinstance(message, dict) or not isinstance(message.get("role", kind), str):
            self.draft.unknown("record", "type", kind, value, record.line, why=", since it holds no message")
            return
        if kind not in ("user", "assistant"):
            self.draft.note(f"record of unknown type {kind!r} kept", record.line)
        identity = _name(value.get("uuid"))
        if identity is not None and identity in self._places:
            self._again(identity, value, record.line)
            return
        if message.get("model") == "<synthetic>":  # an error, which the program logs as an answer: it speaks
            message = {**message, "role": "user"}
        answer = self._continued(value, message)
        if answer is None:
            self._go_on(value, record.line)
        else:
            self.draft = answer.draft
        self.draft.records += queued is None
        self._append(value, message, answer, record.line)
        if identity is not None:
            self._places[identity] = self.draft.here()
            self._parents[identity] = value.get("parentUuid")

    def _append(self, value: dict[str, Any], message: dict[str, Any], answer: Answer | None, line: int) -> None:
        role, content = message.get("role", value.get("type")), message.get("content")
        is_summary = value.get("isCompactSummary") is True
        results = {_name(block.get("tool_use_id")) for block in objects(content)} - {None}
        self._answered |= results
        if is_summary:
            self._compacted(line)
        if role == "assistant":
            self._answer(value, message, answer, line)
            return
        self.draft.add(_message(role, message), line)
        if not results:
            self._newest.pop(self.draft, None)
        if is_summary:
            self._kept.summarized(self.draft)

    # What a record follows

    def _left_out(self, value: dict[str, Any], line: int) -> None:
        identity, kind = _name(value.get("uuid")), value.get("subtype")
        if identity is not None and identity in self._places:
            return
        if kind == "compact_boundary":
            self._compacted(line)
            self._kept.begin(self.draft, identity, fields(value.get("compactMetadata")), self._places)
            if identity is not None:
                self._places[identity] = Place(self.draft, self.draft.end, None)
            return
        if kind == "microcompact_boundary":
            names = fields(value.get("microcompactMetadata")).get("compactedToolIds")
            self._kept.clear(self.draft, names if isinstance(names, list) else [], line)
        if identity is not None:  # a record without a message is where the one before it is
            place = self._place(value)
            self._places[identity] = place and place._replace(marks=None)

    def _again(self, identity: str, value: dict[str, Any], line: int) -> None:
        """A record that is written again is a copy; after a compaction, with another parent, it was kept."""
        place, parent = self._places[identity], value.get("parentUuid")
        if place is not None and (parent != self._parents.get(identity) or self._kept.place(parent) is not None):
            self._kept.again(self.draft, identity, place)
        self.draft.note("copy of an earlier record left out", line)

    def _place(self, value: dict[str, Any]) -> Place | None:
        """The place that a record follows: where the log is if it names none that is known; None: a new history."""
        parent = value.get("parentUuid", "")
        if not isinstance(parent, str):
            return None
        self._is_tree |= parent in self._places
        return self._kept.place(parent) or self._places.get(parent, self.draft.here())

    def _go_on(self, value: dict[str, Any], line: int) -> None:
        place = self._place(value)
        if place is None:
            if self._is_tree and self.draft.end and value.get("isCompactSummary") is not True:
                self.draft.compacted(line, what="the history was cleared; the messages before it are kept")
                self._newest.pop(self.draft, None)
            return
        newest = self._newest.get(place.draft)
        # All results of an answer follow it, whichever of them is named.
        end = place.draft.end if newest is None else newest.end
        self.draft = place.draft if place.messages >= end else place.go_on()

    def _compacted(self, line: int) -> None:
        # A boundary and the summary after it are one compaction.
        draft = self.draft
        if [(one.messages, one.branch) for one in draft.compactions[-1:]] != [(draft.end, draft.number)]:
            draft.compacted(line)
        self._newest.pop(draft, None)

    # Answers

    def _continued(self, value: dict[str, Any], message: dict[str, Any]) -> Answer | None:
        """The answer that a line continues; gateways give many answers one identifier, or an empty one."""
        if message.get("role", value.get("type")) != "assistant":
            return None
        identity, asked = _name(message.get("id")), _name(value.get("requestId"))
        sent, newest = sent_of(message.get("usage")), self._newest.get(self.draft)
        is_next = newest is not None and newest.end == self.draft.end
        if not identity:
            is_same = is_next and newest is not None and sent is not None and newest.sent == sent
            return newest if is_same else None
        answer = self._answers.get(identity)
        if answer is None or answer.asked != asked:
            return None
        place = self._places.get(_name(value.get("parentUuid")) or "")
        is_after = False
        if place is not None and place.messages > answer.end:  # it follows its results, or what comes after these
            is_after = sent is None or (asked is None and self._newest.get(place.draft) is not answer)
        return answer if (answer.sent == sent and not is_after) or (answer is newest and is_next) else None

    def _answer(self, value: dict[str, Any], message: dict[str, Any], answer: Answer | None, line: int) -> None:
        """Append the blocks of a line to the answer that it continues, so that parallel calls are one turn."""
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in objects(blocks):
            if block.get("type") == "tool_use" and _name(block.get("id")) in self._answered:
                self.draft.note("result before its call, moved after it", line)
        if answer is not None and isinstance(blocks, list) and isinstance(answer.message.get("content"), list):
            answer.add(blocks)
            self._count(answer, message.get("usage"), line)
            return
        request = self._request(value, message, line) if answer is None else answer.request
        made = {"role": "assistant", "content": []} if isinstance(blocks, list) else _message("assistant", message)
        asked = _name(value.get("requestId"))
        answer = Answer(made, self.draft, request, asked, message.get("usage"))
        if isinstance(blocks, list):
            answer.add(blocks)
        if identity := _name(message.get("id")):
            self._answers[identity] = answer
        self.draft.add(answer.message, line)
        self._newest[self.draft] = answer

    def _request(self, value: dict[str, Any], message: dict[str, Any], line: int) -> int:
        answer, asked, time = _name(message.get("id")), _name(value.get("requestId")), value.get("timestamp")
        identity = f"{answer}/{asked}" if answer and asked else None
        content = (answer, message.get("content")) if isinstance(time, str) else None
        self.draft.request(message.get("usage"), message.get("model"), time, line, id=identity, content=content)
        return len(self.draft.requests) - 1

    def _count(self, answer: Answer, usage: Any, line: int) -> None:
        """Record the usage of an answer, which each of its lines repeats with more output tokens."""
        found, tier, beside = self.draft.counted(usage, line)
        if found is None:
            return
        request = self.draft.requests[answer.request]
        if request.usage is None or found.output_tokens > request.usage.output_tokens:
            self.draft.requests[answer.request] = request._replace(usage=found, tier=tier, beside=beside)

    def finish(self) -> Draft:
        """Move results that precede their call after it, in each branch."""
        for draft in self.draft.branches:
            _order(draft)
        if len(self.draft.branches) == 1:
            self.draft.requests.sort(key=lambda request: request.messages)
        return self.draft


def _queued(value: dict[str, Any]) -> dict[str, Any] | None:
    """What the user, or a task in the background, said while the agent worked; sent beside the results before it."""
    attachment = fields(value.get("attachment"))
    said = attachment.get("prompt") if attachment.get("type") == "queued_command" else None
    return {"role": "user", "content": said} if said and isinstance(said, (str, list)) else None


def _message(role: Any, message: dict[str, Any]) -> dict[str, Any]:
    """The message of a record; one whose content is no text and no list stays as it is, for the user to be told."""
    content = message.get("content")
    return {"role": role, "content": content} if isinstance(content, (str, list)) else {**message, "role": role}


def _order(draft: Draft) -> None:
    """Move results that precede their call after it."""
    messages = draft.messages
    calls = {
        _name(block.get("id")): index
        for index, message in enumerate(messages)
        for block in objects(message.get("content"))
        if block.get("type") == "tool_use"
    }
    places = []
    for index, message in enumerate(messages):
        called = [calls.get(_name(block.get("tool_use_id")), -1) for block in objects(message.get("content"))]
        places.append(max([(index, 0), *((call, 1) for call in called if call != index)]))
    order = sorted(range(len(messages)), key=places.__getitem__)
    if order == list(range(len(messages))):
        return
    draft.messages = [messages[index] for index in order]
    draft.lines = [draft.lines[index] for index in order]
    now = {before + draft.start: index + draft.start for index, before in enumerate([*order, len(order)])}

    def moved(one: Any) -> Any:
        return one._replace(messages=now.get(one.messages, one.messages)) if one.branch == draft.number else one

    draft.requests[:] = map(moved, draft.requests)
    draft.compactions[:] = map(moved, draft.compactions)


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else None
