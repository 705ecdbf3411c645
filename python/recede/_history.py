"""The append-only session of a long-running agent: the work of a message is done once, when it comes."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from recede import _engine
from recede._api import as_bytes, asked_summary, costs_of
from recede._errors import TranscriptError
from recede._files import is_same_file, write_whole
from recede._history_file import as_json, elements, members
from recede._policy import block_policy, compiled, image_chars_of, optional_function, whole_number
from recede._report import BoundaryMove
from recede._response import messages_of, plain
from recede._stored_moves import StoredMoves

if TYPE_CHECKING:
    from recede._api import Json
    from recede._store import TurnStore
    from recede._types import Summarizer, TokenCounter

__all__ = ["History", "HistoryStats"]

# What a placeholder is with recall handles, by whether there is a budget.
_HANDLES = {
    True: "[observation masked — {chars} chars, recall #{number}]",
    False: "[observation masked — {lines} lines omitted, recall #{number}]",
}

_BUDGETS = ("max_input_chars", "max_input_tokens")
_FORMAT = 1
# What a history with a store holds before it lets go: so many messages, or bytes, and as many as it kept the last time.
_LET_GO_AFTER = (1_024, 4 << 20)


class HistoryStats(NamedTuple):
    """The figures of a `History`, for a status line.

    Attributes:
        messages: messages that were appended.
        turns: runs of agent messages among them.
        raw_chars: their characters (Unicode code points; images at `image_chars`).
        view_messages: messages of the view.
        view_chars: their characters.
        masked_count: masked observations in the view.
        orphans: calls without result and results without call among what is planned.
        changed_message, changed_byte: from which message, and byte of the serialized view, on the view showed
            otherwise than the one before, the last time that it did: what stands before, a prompt cache still
            serves. None where nothing ever changed.
        boundary_moves: how the boundary came to where it is, each a `BoundaryMove`. A tuple; or with a store, once
            messages were let go, a sequence that reads them there.

    Example:
        >>> import recede
        >>> history = recede.History()
        >>> history.append({"role": "user", "content": "hello"})
        >>> history.stats().raw_tokens, history.stats().view_tokens
        (2, 2)
    """

    messages: int
    turns: int
    raw_chars: int
    view_messages: int
    view_chars: int
    masked_count: int
    orphans: int
    changed_message: int | None
    changed_byte: int | None
    boundary_moves: Sequence[BoundaryMove]

    @property
    def raw_tokens(self) -> int:
        """About how many tokens were appended, at four characters each."""
        return -(-self.raw_chars // 4)

    @property
    def view_tokens(self) -> int:
        """About how many tokens the view has."""
        return -(-self.view_chars // 4)


class History:
    """An append-only session, for an agent that asks for a view before every request.

    Everything that is appended is stored whole. The views are what `reduce` gives for the whole history, or
    without a budget `mask_old_observations`; but the work of a message is done once, so a turn costs microseconds
    at any length. A summary, once made, stands until the view no longer fits; from then on the views are those of
    `reduce` over that summary and the rest.

    Args:
        keep: without a budget: how many of the newest results stay raw, at least 3.
        threshold_tokens: without a budget: a history of at most so many approximate tokens is sent raw.
        recall_handles: placeholders name the number of the observation, so that the agent can ask for it with the
            tool of `tool_definition`: ``[observation masked — 4200 chars, recall #12]``.
        token_counter: ``text -> tokens``, for the budget or the threshold; each text is counted once, when it comes,
            and what a summary leaves once more. Without it four characters are a token.
        store: a `TurnStore` that keeps each message, and each summary, as it comes. A history made with a store that
            has messages goes on where that was last synced; when it syncs is the store's to say (``sync_every``). In
            memory is only what can still change: without a budget the newest messages, with one those since the last
            summary. Everything else is read from the store when it is asked for, a view as well.
        **options: with ``max_input_chars`` or ``max_input_tokens`` those of `reduce`; else those of
            `mask_old_observations`. ``boundary`` is ``"break_even"`` by default, which spares prompt
            caches; with ``mask_chunk`` it is ``"stepped"``.

    Raises:
        TypeError, ValueError: an option is unknown, of the wrong type, or out of range; or the store is a manager's.
        StoreError: what the store holds cannot be read.

    It may be used from several threads: each call is done whole before the next. Its functions may read its messages
    while they are called, but neither append to it nor ask for a view.

    Example:
        >>> import recede
        >>> history = recede.History(keep=3)
        >>> history.append({"role": "user", "content": "Find the bug."})
        >>> for number in range(40):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "a line of the log\\n" * 50})
        >>> view = history.view()  # what is sent
        >>> len(history), len(view), view[2]["content"]
        (81, 81, '[observation masked — 51 lines omitted]')
        >>> history.recall(1) == history[2]["content"]  # nothing is lost
        True
        >>> history.stats().raw_tokens, history.stats().view_tokens
        (9254, 2366)
    """

    def __init__(
        self,
        *,
        keep: int = 4,
        threshold_tokens: int = 0,
        recall_handles: bool = False,
        token_counter: TokenCounter | None = None,
        store: TurnStore | None = None,
        **options: Any,
    ) -> None:
        options = dict(options)
        own = {"keep": keep, "threshold_tokens": threshold_tokens, "recall_handles": recall_handles}
        self._options = {**own, **options}
        if not isinstance(recall_handles, bool):
            raise TypeError(f"recall_handles must be True or False, not {type(recall_handles).__name__}")
        if recall_handles and options.get("placeholder") is not None:
            raise TypeError("give recall_handles, or a placeholder with {number} in it")
        self._counter = optional_function("token_counter", token_counter)
        if "boundary" not in options and options.get("mask_chunk") is None:
            options["boundary"] = "break_even"
        self._engine = _engine.engine
        self._summarizer: Summarizer | None = options.get("summarizer")
        has_budget = any(options.get(name) is not None for name in _BUDGETS)
        handles = _HANDLES[has_budget] if recall_handles else None
        if has_budget:
            if handles is not None:
                options["placeholder"] = handles
            if threshold_tokens:
                raise TypeError("threshold_tokens is for a History without a budget")
            self._policy = compiled(self._engine, "reduce", {**options, "token_counter": token_counter})
        else:
            self._policy = block_policy(self._engine, keep, options.pop("mask_chunk", None), options, handles)
        whole_number()("threshold_tokens", threshold_tokens)
        self._image_chars = image_chars_of(options)
        self._session = self._engine.History(self._policy, 4 * min(threshold_tokens, 1 << 40))
        self._lock = threading.RLock()
        self._is_in_callback = False
        self._messages: list[Any] = []  # those that were appended, None where nobody asked for the object yet
        self._objects: list[Any] = []  # the same of the session
        self._first = self._first_object = 0  # of those before them, no object is kept
        self._list: list[Any] = []  # the view
        self._past = 0  # messages before the last summary
        self._anew = 0  # messages of the session that the last summary left, and their observations' numbers
        self._numbers: list[int] = []
        self._pending: tuple[Any, ...] | None = None  # how the session begins anew, while that is not counted
        self._summarizer_error: Exception | None = None
        self._store: TurnStore | None = None
        self._unstored: list[tuple[Literal["message", "summary"], list[bytes]]] = []  # what the store could not take
        if store is not None:
            self._go_on_with(store)

    # Appending

    def append(self, message: Any) -> None:
        """Append a message: a dict in any of the four shapes. It is kept, so do not change it afterwards.

        What the clients of Anthropic and OpenAI answer with is taken too, as the messages that their providers take
        back: a response, a message of one, a block or an item; also inside a dict, such as
        ``{"role": "assistant", "content": response.content}``.

        Raises:
            TranscriptError: it is no message; the history is as before.
            TypeError, ValueError: it holds something that JSON has no form for, or is an object of another kind.
            StoreError: the history has it, but its store does not yet; the next message is stored together with it.
                Only where the store was closed, a history that has let go of messages is as before.
        """
        if hasattr(message, "model_dump"):
            made = messages_of(message)
            if not all(isinstance(one, dict) and ("role" in one or "type" in one) for one in made):
                raise TypeError(
                    f"a history takes messages, not a {type(message).__name__}: what its model_dump gives has neither "
                    "a role nor a type"
                )
            self.extend(made)
            return
        objects: list[Any] = []

        def as_plain(value: Any) -> Any:
            if not hasattr(value, "model_dump"):
                raise TypeError(f"a message holds a {type(value).__name__}, which JSON has no form for")
            objects.append(value)
            return plain(value)

        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=as_plain)
        # With objects of a client in it, what is given back is what they were in JSON.
        self._append(*as_bytes(text), None if objects else message)

    def append_json(self, data: Json) -> None:
        """Append a serialized message; every byte of it that is not masked stays as it is.

        Raises:
            TranscriptError: malformed JSON, or no message; names the byte. The history is as before.
        """
        self._append(*as_bytes(data), None)

    def extend(self, messages: Iterable[Any]) -> None:
        """Append several messages, each by itself: those before a faulty one stay."""
        for message in messages:
            self.append(message)

    def _append(self, data: bytes, surrogates: bool, message: dict[str, Any] | None) -> None:
        with self._lock:
            self._refuse_callbacks()
            self._begin_anew()
            if self._store is not None:
                self._check(self._store)
            self._session.append(data, surrogates, self._costs(data, surrogates))
            self._messages.append(message)
            self._objects.append(message)
            if self._store is not None:
                self._keep(self._store, "message", [self._session.message(len(self) - 1)])
                self._let_go(self._store)

    def _costs(self, data: bytes, surrogates: bool) -> tuple[int, list[tuple[int, int]]] | None:
        """What a message costs that is to be appended, where tokens are counted."""
        if self._counter is None or self._first_object:  # what was let go does not become raw again
            return None
        masked = self._session.masked_texts(data, surrogates)  # only after it has accepted them, json may read them
        ((*own, results),) = self._engine.texts([_loads(data)], self._policy)
        results = [(text, images, shown) for (text, images, _), shown in zip(results, masked, strict=True)]
        (cost,), observations = self._called(costs_of, [(*own, results)], self._counter, self._image_chars)
        return cost, observations

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What this gives, which calls the token counter or the summarizer."""
        self._is_in_callback = True
        try:
            return function(*arguments)
        finally:
            self._is_in_callback = False

    def _refuse_callbacks(self) -> None:
        """The lock lets the thread in that has it, so its own callbacks as well."""
        if self._is_in_callback:
            raise RuntimeError(
                "the token_counter or the summarizer of this history has called it: it may read messages, but neither "
                "append any nor ask for a view or its figures"
            )

    @classmethod
    def from_messages(cls, messages: Iterable[Any], **options: Any) -> History:
        """A history of these messages; the options are those of `History`.

        Example:
            >>> import recede
            >>> recede.History.from_messages([{"role": "user", "content": "hello"}])
            <History: 1 messages, 5 chars>
        """
        history = cls(**options)
        history.extend(messages)
        return history

    @classmethod
    def from_json(cls, data: Json, **options: Any) -> History:
        """A history of a JSON array of messages, each with its own bytes; the options are those of `History`.

        Raises:
            TranscriptError: malformed JSON, or no array of messages; names the byte.

        Example:
            >>> import recede
            >>> recede.History.from_json('[{"role": "user", "content": 1.50e0}]'.replace("1.50e0", '"hi"')).to_json()
            b'[{"role": "user", "content": "hi"}]'
        """
        history = cls(**options)
        raw, surrogates = as_bytes(data)
        # Only after the strict reader has accepted it, json may read it.
        history._engine.reduce_json(raw, surrogates, compiled(history._engine, "truncate", {}))
        if raw.lstrip()[:1] != b"[":
            raise TranscriptError("history", offset=0)
        for message in elements(raw.decode("utf-8", "surrogatepass")):
            history._append(*as_bytes(message), None)
        return history

    # Views

    def view(self) -> list[Any]:
        """What is to be sent: a new list. Messages that are unchanged are those that were appended."""
        with self._lock:
            self._look()
            changes = self._session.changes()
            if changes is None:
                self._list = json.loads(self._joined().decode("utf-8", "surrogatepass"))
                return self._list.copy()
            first, masked = changes
            start = min(first, len(self._list))
            del self._list[start:]
            if start < self._first_object:
                self._list += _loads(self._session.settled(start, self._first_object))
            for place in range(len(self._list) - self._first_object, len(self._objects)):
                self._list.append(self._object(place))
            for index, raw in masked:
                self._list[index] = _loads(raw)
            if self._session.is_long():
                view, self._list = self._list, []
                return view
            return self._list.copy()

    def _object(self, place: int) -> Any:
        """A message of the session, of those whose objects are kept."""
        if self._objects[place] is None:
            index = self._first_object + place
            self._objects[place] = _loads(self._session.session_message(index))
            # Of messages since the last summary, the same object is given for the history itself.
            if index >= self._anew:
                self._messages[self._past + index - self._anew - self._first] = self._objects[place]
        return self._objects[place]

    def view_json(self) -> bytes:
        """What is to be sent, serialized: a JSON array."""
        with self._lock:
            self._look()
            return self._joined()

    def view_chunks(self) -> list[bytes]:
        """`view_json` in pieces, most of them the same objects as the last time.

        An HTTP client can send them as they are, and nothing is copied.
        """
        with self._lock:
            self._look()
            chunks: list[bytes] = self._session.chunks()
            return chunks

    def _joined(self) -> bytes:
        return b"".join(self._session.chunks())

    def _look(self) -> None:
        """Make the view that of the history, with a summary where one is wanted."""
        self._refuse_callbacks()
        answer = self._session.look()
        if answer is not None and answer[0] == "ask":
            _, dropped, previous, text = answer
            has_function = self._summarizer is not None
            messages = [_loads(self._session.session_message(index)) for index in dropped if has_function]
            arguments = messages, previous, text, self._summarizer, self._counter
            summary, error = self._called(asked_summary, *arguments)
            self._summarizer_error = error
            answer = self._session.look(summary)
        self._pending = answer
        self._begin_anew()

    def _begin_anew(self) -> None:
        """After a summary the session is that and what was kept."""
        if self._pending is None:
            return
        _, kept, place, message = self._pending
        self._numbers = self._count_anew()
        objects = [self._objects[index] for index in kept]
        self._objects = [*objects[:place], _loads(message), *objects[place:]]
        self._past, self._anew = len(self), len(self._objects)
        self._pending = None
        if self._store is not None:
            session = [self._session.session_message(index) for index in range(self._anew)]
            head = {"past": self._past, "numbers": self._numbers, "counts": self._session.counts()}
            head["moves"] = self._session.moves()[1]
            fields = [json.dumps(head).encode(), self._joined(), b"[%s]" % b",\n".join(session)]
            self._keep(self._store, "summary", fields)

    def _count_anew(self) -> list[int]:
        """Let the session begin anew; the numbers of its observations."""
        numbers: list[int]
        messages, numbers = self._session.anew()
        costs = None
        if self._counter is not None:
            texts = self._engine.texts(list(map(_loads, messages)), self._policy, numbers)
            costs = self._called(costs_of, texts, self._counter, self._image_chars)
        self._session.begin_anew(costs)
        return numbers

    @property
    def summarizer_error(self) -> Exception | None:
        """What the summarizer raised when it was called last, if it did."""
        return self._summarizer_error

    # What was stored

    def __len__(self) -> int:
        with self._lock:  # as everything that asks the session: it is being changed while a store is written
            return len(self._session)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        with self._lock:
            places = range(len(self))[index]
            if isinstance(places, int):
                return self._message(places)
            return [self._message(place) for place in places]

    def __iter__(self) -> Iterator[Any]:
        place = 0
        while place < len(self):
            yield self[place]
            place += 1

    def _message(self, index: int) -> Any:
        if index < self._first:
            return _loads(self._session.message(index))
        place = index - self._first
        if self._messages[place] is None:
            self._messages[place] = _loads(self._session.message(index))
            if index >= self._past:
                self._objects[self._anew + index - self._past - self._first_object] = self._messages[place]
        return self._messages[place]

    @property
    def messages(self) -> list[Any]:
        """The full history, unmasked: a new list."""
        return self[:]

    def to_json(self) -> bytes:
        """The full history, serialized: the bytes that were appended."""
        with self._lock:
            return b"[" + b",".join(map(self._session.message, range(len(self)))) + b"]"

    def recall(self, observation: int | str) -> str:
        """The full text of an observation, masked or not.

        Args:
            observation: its number in the sequence of all observations, from 1; or the id of its call, of which the
                newest is taken where it repeats.

        Raises:
            LookupError: there is none.
        """
        with self._lock:
            number = self._session.number_of(observation) if isinstance(observation, str) else observation
            text: str | None = None if number is None else self._session.recall(max(0, number))
        if text is None:
            raise LookupError(f"there is no observation {observation!r}")
        return text

    def tool_definition(self, shape: str = "openai") -> dict[str, Any]:
        """The schema of a tool by which the agent itself fetches a masked observation again.

        With ``recall_handles=True`` placeholders name the number that it takes. Answer a call of it with `recall`,
        and append that as its result: what stands before stays as it was.

        Args:
            shape: ``"openai"`` (chat completions), ``"responses"``, or ``"anthropic"``.

        Raises:
            ValueError: there is no such shape.
        """
        number = {"type": "integer", "minimum": 1, "description": "The number behind `recall #` in the placeholder."}
        parameters = {"type": "object", "properties": {"number": number}, "required": ["number"]}
        described = {"name": "recall", "description": "Fetch the full text of a masked observation again."}
        if shape == "anthropic":
            return {**described, "input_schema": parameters}
        if shape == "responses":
            return {"type": "function", **described, "parameters": parameters}
        if shape == "openai":
            return {"type": "function", "function": {**described, "parameters": parameters}}
        raise ValueError(f"shape must be 'openai', 'responses' or 'anthropic', not {shape!r}")

    def stats(self) -> HistoryStats:
        """The figures of the history and of its view, which is made if it is not there."""
        with self._lock:
            self._look()
            raw_chars, turns, orphans = self._session.totals()
            stored, newest = self._session.moves()
            moves = tuple(map(BoundaryMove._make, newest))
            messages, chars, masked = self._session.counts()
            message, byte = self._session.changed() or (None, None)
            return HistoryStats(
                messages=len(self),
                turns=turns,
                raw_chars=raw_chars,
                view_messages=messages,
                view_chars=chars,
                masked_count=masked,
                orphans=orphans,
                changed_message=message,
                changed_byte=byte,
                boundary_moves=StoredMoves(self._stored_moves, stored, moves) if stored else moves,
            )

    def _stored_moves(self, start: int, end: int) -> list[tuple[int, ...]]:
        with self._lock:
            moves: list[tuple[int, ...]] = self._session.stored_moves(start, end)
            return moves

    def __repr__(self) -> str:
        with self._lock:
            return f"<History: {len(self):,} messages, {self._session.totals()[0]:,} chars>"

    # Stores

    def _keep(self, store: TurnStore, kind: Literal["message", "summary"], fields: list[bytes]) -> None:
        """Give it to the store, behind what that could not take before."""
        self._unstored.append((kind, fields))
        while self._unstored:
            store.append_record(*self._unstored[0])
            del self._unstored[0]

    def _check(self, store: TurnStore) -> None:
        """See to it that nobody else has appended to the store."""
        if not store.can_go_on:
            return
        unstored = sum(kind == "message" for kind, _ in self._unstored)
        if store.count_records("message") + unstored != len(self):
            raise RuntimeError(f"{store.path} has messages that this history did not append: make the history anew")

    def _let_go(self, store: TurnStore) -> None:
        """Of what the store has, keep only what can still change, once enough has come for that."""
        if store.is_read_only or not self._session.is_full(*_LET_GO_AFTER):
            return
        first_object = self._session.let_go(self._tag())
        del self._objects[: first_object - self._first_object]
        first = max(first_object, self._past)
        del self._messages[: first - self._first]
        self._first, self._first_object = first, first_object

    def _tag(self) -> bytes:
        """What must be the same for a history to go on from where another has let go."""
        tag = {"recede_history": _FORMAT, "options": as_json(self._options), "counts": self._counter is not None}
        return json.dumps(tag, sort_keys=True).encode()

    def _go_on_with(self, store: TurnStore) -> None:
        """Take up what a store has."""
        begun = store.record("session", 1)[0] if store.count_records("session") else b""
        if b"recede_history" not in begun and (begun or len(store)):
            raise ValueError(f"{store.path} holds the turns of a manager: give the history a store of its own")
        known, start = self._session.resume(store._store, self._tag())
        summaries = store.count_records("summary")
        if start:
            self._first = self._first_object = self._session.first_here()
            self._messages = [None] * (start - self._first)
            self._objects = [None] * (start - self._first)
        elif summaries:
            text, view, array = store.record("summary", summaries)
            head = json.loads(text)
            start = head["past"]
            for message in _messages(store, known, start):
                self._session.note(message)
                self._let_go(store)
            session = list(map(_encoded, elements(array.decode("utf-8", "surrogatepass"))))
            self._session.restore_stored(start, list(_messages(store, start, known)), session, head["numbers"])
            self._restored(start, len(session))
            self._session.show_again(view, tuple(head["counts"]), list(map(tuple, head["moves"])))
            self._first = start
        for message in _messages(store, start):
            self._append(message, True, None)
            self._let_go(store)
        self._store = store

    def _restore(self, past: list[bytes], session: list[bytes], numbers: list[int]) -> None:
        """Begin with what stood before a summary, and what that left."""
        self._session.restore(past, session, numbers)
        self._restored(len(past), len(session))
        self._messages = [None] * len(past)

    def _restored(self, past: int, anew: int) -> None:
        self._past, self._anew, self._numbers = past, anew, self._count_anew()
        self._objects = [None] * anew

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the history to a file, whole or not at all: its messages, its options, and where it stands.

        A new file can be read by its owner alone; one that is there keeps its mode and owner.

        Raises:
            OSError: the file cannot be written; what was there is left.
            ValueError: it is the store of this history, or the log beside that.
        """
        if self._store is not None and any(is_same_file(path, file) for file in self._store.files):
            raise ValueError(f"{os.fspath(path)!r} belongs to the store of this history: save to another file")
        with self._lock:
            messages = [self._session.message(index) for index in range(len(self))]
            session = [self._session.session_message(index) for index in range(self._anew)]
            options = as_json(self._options)
            head = json.dumps({"recede_history": _FORMAT, "options": options, "numbers": self._numbers})
            parts = [(b"past", messages[: self._past]), (b"session", session), (b"since", messages[self._past :])]
        body = b"".join(b',\n"%s": [%s]' % (name, b",\n".join(lines)) for name, lines in parts)
        write_whole(path, [head[:-1].encode(), body, b"}\n"])

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        summarizer: Summarizer | None = None,
        token_counter: TokenCounter | None = None,
    ) -> History:
        """Read a history that `save` wrote: its views are those that it would have given.

        Args:
            path: the file.
            summarizer: the function, if it had one; functions cannot be saved.
            token_counter: likewise.

        Raises:
            TranscriptError: the file is damaged, or none of `save`.
            OSError: it cannot be read.
        """
        data = Path(path).read_bytes()
        name = str(path)
        try:
            value = json.loads(data)
            version = value["recede_history"]
            options, numbers = value["options"], value["numbers"]
            past, session, since = (value[key] for key in ("past", "session", "since"))
        except (ValueError, KeyError, TypeError):
            raise TranscriptError("history", source=name) from None
        if version != _FORMAT:
            raise TranscriptError("format", source=name)
        if summarizer is not None:
            options["summarizer"] = summarizer
        history = cls(**options, token_counter=token_counter)
        text = data.decode("utf-8", "surrogatepass")
        spans = members(text)
        past, session, since = (list(elements(text, spans[key])) for key in ("past", "session", "since"))
        history._restore(list(map(_encoded, past)), list(map(_encoded, session)), numbers)
        for message in since:
            history._append(_encoded(message), True, None)
        return history


def _messages(store: TurnStore, start: int, end: int | None = None) -> Iterator[bytes]:
    """The messages behind the first `start` ones, up to and with `end`."""
    count = None if end is None else max(0, end - start)
    return (message for *_, message in itertools.islice(store.records("message", start + 1), count))


def _loads(raw: bytes) -> Any:
    return json.loads(raw.decode("utf-8", "surrogatepass"))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
