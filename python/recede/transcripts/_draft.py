"""Histories under construction, and tolerant accessors for values that some agent wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from recede._usage import Beside, LoggedUsage, beside_of, tier_of, usage_of
from recede.transcripts._requests import Compaction, LoggedRequest, path_of, time_of

_T = TypeVar("_T")


class Place(NamedTuple):
    """Where a history was when a record of it was read: a branch, and how many messages it had."""

    draft: Draft
    messages: int
    marks: int | None  # how many compactions of its own it had; None: all of those at this place

    def go_on(self) -> Draft:
        return self.draft.back_to(self.messages, self.marks)


class Draft:
    """A history that a reader is building, or one branch of it; the branches of a history share all but messages."""

    def __init__(self, context: str | None = None) -> None:
        self.requests: list[LoggedRequest] = []
        self._written: dict[str, int] = {}  # requests, by the record that has their usage
        self.compactions: list[Compaction] = []  # where the agent replaced the history
        self._notes: dict[str, tuple[int, int | None]] = {}
        self.unread: Counter[str] = Counter()  # records of each kind that have a text, and that no reader knows
        self.branches: list[Draft] = []  # in the order of the log
        self.context = context  # the name of a subagent; None for the main conversation
        self.plan: str | None = None  # the subscription that pays for the requests
        self.host: Any = None  # who serves the requests from here on, as the log names it
        self.parent: int | None = None  # the number of the branch that it left
        self._begin(0)

    def _begin(self, start: int) -> None:
        self.number = len(self.branches)
        self.branches.append(self)
        self.start = start  # how many messages of the parent's history it continues
        self.messages: list[dict[str, Any]] = []  # its own
        self.lines: list[int | None] = []  # of these, in a file with one record per line
        self.marks: list[Compaction] = []  # its own
        self.records = 0  # that were read, before merging

    @property
    def end(self) -> int:
        return self.start + len(self.messages)

    def here(self) -> Place:
        """The place after what was read so far."""
        return Place(self, self.end, len(self.marks))

    def back_to(self, messages: int, marks: int | None = None) -> Draft:
        """Continue after so many messages of this history: what follows them is left, and was paid.

        Of compactions at that place only the first `marks` of this branch were before it; None: all.
        """
        later = [] if marks is None else [one for one in self.marks[marks:] if one.messages == messages]
        if messages >= self.end and not later:
            return self
        again = self.path(messages - 1, messages) if later and messages else []
        parent, start = self, messages - len(again)
        while start < parent.start and parent.parent is not None:
            parent = self.branches[parent.parent]
        branch = copy(parent)  # with all that branches share
        branch.parent = parent.number
        branch._begin(start)
        for message in again:  # the last one before a compaction is part of the branch, which leaves before that
            branch.add(message)
        return branch

    def path(self, first: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        return path_of(self.branches, self.number, first, stop)

    def add(self, message: dict[str, Any], line: int = 0) -> None:
        self.messages.append(message)
        self.lines.append(line or None)

    def answer(self, content: Any, line: int = 0) -> None:
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
                self.answer(message.get("content"), line or 0)
            else:
                self.add(message, line or 0)

    def request(
        self,
        usage: Any,
        model: Any,
        time: Any,
        line: int = 0,
        messages: int | None = None,
        id: str | None = None,
        *,
        record: Any = None,
        content: Any = None,
    ) -> None:
        """Record a request whose answer follows, or follows that many messages; fields as the log has them.

        A usage is identified by its `record` in this file, whose last write counts, and in any file by the `id`, else
        by its time and the `content` of its answer.
        """
        messages = self.end if messages is None else messages
        found, tier, beside = self.counted(usage, line)
        if id is None and content is not None and time is not None:
            id = digest(time, usage, content)
        host = text(self.host).lower() or None
        made = LoggedRequest(
            messages, text(model) or None, time_of(time), found, id, tier, beside, branch=self.number, host=host
        )
        place = self._written.get(record) if isinstance(record, str) else None
        if place is not None:
            before = self.requests[place]
            self.requests[place] = made._replace(messages=before.messages, branch=before.branch)
            return
        if isinstance(record, str):
            self._written[record] = len(self.requests)
        self.requests.append(made)

    def counted(self, usage: Any, line: int) -> tuple[LoggedUsage | None, str | None, tuple[Beside, ...]]:
        """Read a usage: its tokens, how it was served, and what was billed beside it."""

        def note(what: str) -> None:
            self.note(what, line)

        return usage_of(usage, note), tier_of(usage), tuple(beside_of(usage, note))

    def billed(self, kind: str, model: Any, usage: Any, line: int = 0, time: Any = None, id: str | None = None) -> None:
        """Record a call of a model that is no answer of the history, such as a compaction."""
        found, _, _ = self.counted(usage, line)
        if found is not None:
            self.request(None, model, time, line, id=id)
            self.requests[-1] = self.requests[-1]._replace(beside=(Beside(kind, text(model) or None, found),))

    def compacted(
        self,
        line: int = 0,
        shown: Sequence[dict[str, Any]] | None = None,
        what: str = "the session was compacted; the messages before it are kept",
    ) -> None:
        """Record a compaction: from here on the model sees `shown`, and the messages that follow."""
        self.compactions.append(Compaction(self.end, [] if shown is None else shown, self.number))
        self.marks.append(self.compactions[-1])
        self.note(what, line)

    def compacted_again(self, messages: int, shown: Sequence[dict[str, Any]]) -> None:
        """Correct the last compaction of this branch: where it is, and what the model saw from there on."""
        place = len(self.compactions) - 1
        while self.compactions[place].branch != self.number:
            place -= 1
        self.marks[-1] = self.compactions[place] = Compaction(messages, shown, self.number)

    def note(self, what: str, line: int = 0) -> None:
        """Count something that the user should know; the first line is kept."""
        count, first = self._notes.get(what, (0, line or None))
        self._notes[what] = count + 1, first

    def unknown(self, thing: str, by: str, name: Any, held: Any, line: int = 0, why: str = "") -> None:
        """Note a record that is left out since nobody knows its type, or by what else it is named."""
        self.left_out(f"{thing} of unknown {by} {name!r} left out{why}", f"{by} {name}", held, line)

    def left_out(self, what: str, kind: str, held: Any, line: int = 0) -> None:
        """Note something that is left out; if it has a text, it was not understood."""
        self.note(what, line)
        if has_words(held):
            self.unread[kind] += 1

    def beside(self, record: dict[str, Any], known: frozenset[str], line: int = 0) -> None:
        """Note the fields of a record that have a text and are not known."""
        for name, held in record.items():
            if name not in known and has_words(held):
                what = f"field {name[:_MOST_NAME_CHARS]!r} left out, since it is not known"
                self.left_out(what, f"field {name}", held, line)

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


def digest(*parts: Any) -> str:
    """A name of a content, the same in every copy of it."""
    return blake2b(json.dumps(parts, sort_keys=True, default=str).encode(errors="replace"), digest_size=12).hexdigest()


def last_writes(records: Iterable[_T], name_of: Callable[[_T], Any]) -> list[_T]:
    """Each record once, where it was written first, as it was written last."""
    written: dict[Any, _T] = {}
    for number, record in enumerate(records):
        name = name_of(record)
        written[name if isinstance(name, str) and name else number] = record
    return list(written.values())


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


def at(value: Any, *names: str) -> Any:
    """What is in an object of an object; None if that is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


_TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
_TOKENS_APART = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def renamed(usage: Any, *places: str, is_apart: bool = False) -> Any:
    """The counts of a usage by their places in a log: of input, output, and of what was read from the cache or written.

    These are part of the input unless they are counted apart. What is no usage stays.
    """
    names = zip(_TOKENS_APART if is_apart else _TOKENS, places, strict=False)
    return {name: at(usage, *place.split(".")) for name, place in names} if isinstance(usage, dict) else usage


def texts(value: Any) -> str:
    """A text, or the texts of a list of parts; of any other value its JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    parts = [part.get("text", part.get("content")) for part in objects(value)]
    said = [part for part in parts if isinstance(part, str)]
    if said and len(said) == len(value):
        return "".join(said)
    return json.dumps(value, ensure_ascii=False)


def has_words(value: Any) -> bool:
    """Whether there is a text in the value: a string with a space, which names, times and paths have not."""
    return any(any(map(str.isspace, held)) for held in _strings(value))


def _strings(value: Any) -> Iterator[str]:
    """The strings in a value, without the space around them."""
    to_visit = [value]
    for held in to_visit:
        if isinstance(held, (dict, list)):
            to_visit += held.values() if isinstance(held, dict) else held
        elif isinstance(held, str):
            yield held.strip()


def first_fields(record: Any) -> str:
    """What a record is called that nothing else names."""
    return f"field {', '.join(map(str, list(record)[:2]))}"


_MOST_NAME_CHARS = 40
_LEFT_OUT = frozenset("id kind model name provider role source timestamp type usage".split())  # in `kept`


def kept(message: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """The message of a record; the record itself where it has a text in a field that no reader knows.

    So the text is counted, and the fields are named to the user.
    """
    if message.get("content") or message.get("tool_calls"):
        return message
    others = [held for name, held in record.items() if name not in _LEFT_OUT]
    return record if any(_strings(others)) else message


def call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(call_id: Any, content: Any, name: Any = None) -> dict[str, Any]:
    named = {} if name is None else {"name": name}
    return {"role": "tool", "tool_call_id": call_id, **named, "content": content}


class Conversation:
    """A history under construction: texts and calls of an answer become one message, however many events they are."""

    def __init__(self, context: str | None = None) -> None:
        self.draft = Draft(context)
        self.model: Any = None  # of the next answer, if the log names it apart from that
        self.calls: dict[Any, Any] = {}  # the names of those so far, by identifier
        self._answer: dict[str, Any] | None = None

    def message(self, role: str, content: Any, line: int = 0) -> None:
        self._answer = None
        self.draft.add({"role": role, "content": "" if content is None else content}, line)

    def begin(
        self, line: int = 0, *, usage: Any = None, model: Any = None, time: Any = None, content: Any = None
    ) -> None:
        """Begin an answer, with what the log says of its request."""
        self.draft.request(usage, model or self.model, time, line, content=content)
        self._answer = {"role": "assistant", "content": ""}
        self.draft.add(self._answer, line)

    def say(self, words: Any, line: int = 0, time: Any = None) -> None:
        """Add a text to the answer; begin one after a result or a message."""
        self._current(line, time)["content"] += texts(words)

    def call(self, call_id: Any, name: Any, arguments: Any, line: int = 0, time: Any = None) -> None:
        self._current(line, time).setdefault("tool_calls", []).append(call(call_id, name, arguments))
        if isinstance(call_id, str):
            self.calls[call_id] = name

    def result(self, call_id: Any, content: Any, line: int = 0) -> None:
        """Add the result of a call; what follows is another answer."""
        self._answer = None
        name = self.calls.get(call_id) if isinstance(call_id, str) else None
        self.draft.add(result(call_id, _content(content), name), line)

    def answer(self, content: Any, line: int = 0) -> bool:
        """Add the result of a call that the last answer made in its text; False: there is no such answer."""
        last = self.draft.messages[-1] if self.draft.messages else {}
        if last.get("role") != "assistant" or "tool_calls" in last:
            return False
        self._answer = None
        self.draft.answer(texts(content), line)
        return True

    def count(self, usage: Any, line: int = 0) -> None:
        """Record the tokens of the last request, which are logged after its answer."""
        if self.draft.requests:
            found = usage_of(usage, lambda what: self.draft.note(what, line))
            self.draft.requests[-1] = self.draft.requests[-1]._replace(usage=found)

    def _current(self, line: int, time: Any) -> dict[str, Any]:
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
