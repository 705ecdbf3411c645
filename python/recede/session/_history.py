"""The append-only session of a long-running agent: each message is processed once."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from recede import _engine
from recede._errors import StoreError, TranscriptError, no_such
from recede._files import is_same_file, write_whole
from recede._objects import is_object, plain, plain_message
from recede._recall import recall_tool
from recede._response import messages_of
from recede.reduction._input import as_bytes
from recede.reduction._masks import Mask, Masks
from recede.reduction._options import CEILING, optional_function, optional_summarizer, whole_number
from recede.reduction._policy import compiled
from recede.reduction._report import BoundaryMove
from recede.reduction._signature import runs
from recede.session._callbacks import Callbacks
from recede.session._json import elements, loads
from recede.session._known import DictComparison, KnownMessages
from recede.session._messages import Messages
from recede.session._moves import StoredMoves
from recede.session._options import HistoryOptions, saved_options
from recede.session._reported import Reported, Reports, chars_of_tokens, usage_of_sums
from recede.session._stats import HistoryStats

if TYPE_CHECKING:
    from recede.reduction._input import Json
    from recede.store._turn_store import TurnStore
    from recede.types import Summarizer, TokenCounter

__all__ = ["History"]

_MESSAGE = 2  # kind of record
_BATCH = 64  # records per read
# Messages and bytes that a history with a store appends before it evicts; at least as many as it kept the last time.
_EVICT_AFTER = (1_024, 4 << 20)


class History:
    """An append-only session, for an agent that asks for a view before every request; by default with break-even.

    Messages are kept whole. The views are those of `reduce` for the whole history, or without a budget of
    `mask_old_observations`; but each message is processed once, so a turn costs microseconds at any length. A
    summary is kept until the view no longer fits; after it the views are those of `reduce` for the summary and the
    rest.

    Args:
        keep: without a budget: how many of the newest results stay raw; at least 3.
        threshold_tokens: without a budget: a history of at most so many approximate tokens is sent raw.
        max_view_tokens: without a budget: the boundary moves to the window where the view would have more tokens, as a
            model of a small context window needs it. What the window alone has is never masked.
        calibrate: with ``max_input_tokens`` or ``max_view_tokens``: tokens are reckoned with the characters that they
            had in the requests that were given to `reported` (1 to 8), instead of four; from the next request on.
            Earlier views stay, also in a saved or stored history.
        recall_handles: placeholders and clips name the number of the observation, so that the agent can request it
            with the tool of `tool_definition`: ``[observation masked — 4200 chars, recall #12]``.
        token_counter: ``text -> tokens``, for the budget or the threshold. Each text is counted once on append; kept
            messages are counted again after a summary. Without it four characters are a token.
        store: a `TurnStore` to which each message and summary is written. A history made with a store that has
            messages resumes at the store's last sync (``sync_every``). Only messages whose rendering can still change
            are in memory: without a budget the newest ones, with a budget those since the last summary. Everything
            else, evicted parts of a view included, is read from the store on demand.
        on_move: called with a `BoundaryMove` when a view first has it, or with the answer if no view was taken; the log
            gets a line in any case. What it raises is logged. It may read messages, but not append or take a view.

    With ``cache_breakpoint="boundary"`` a view has of the marks (``cache_control``) in the messages only the newest,
    and one on the last masked result, so that a request has at most four.

    The other options are those of `reduce` with ``max_input_chars`` or ``max_input_tokens``, else those of
    `mask_old_observations`. ``boundary`` defaults to ``"break_even"``, which preserves prompt caches; with
    ``mask_chunk`` it is ``"stepped"``.

    Raises:
        TypeError, ValueError: an option is unknown, of the wrong type, or out of range; or the store is a manager's.
        StoreError: the content of the store cannot be read.

    It is thread-safe: calls run one at a time. Its callbacks may read messages, but not append or take a view; and they
    must not wait for another thread that uses it, which would be a deadlock.

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
        (9254, 1935)
    """

    @runs(lambda self, **options: self._begin(**options))
    def __init__(
        self, *, keep: int = 4, threshold_tokens: int = 0, max_view_tokens: int | None = None,
        calibrate: bool = False, recall_handles: bool = False, token_counter: TokenCounter | None = None,
        store: TurnStore | None = None,
        on_move: Callable[[BoundaryMove], Any] | None = None,
        max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = 0.5,
        clip_results: int | None = 4000, enabled: bool = True, preserve_recent_raw_turns: int = 4,
        keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
        keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
        keep_errors: bool = False, keep_matching: Collection[str] = (), mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "break_even", cache_read: float = 0.1,
        cache_write: float = 1.25, cache_cold: bool | Collection[int] = False,
        cache: Literal["ideal", "prefix", "breakpoints"] = "ideal", break_even_at: float = 0.5,
        warranty: float | None = 0.1, cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2,
        observation_masking: bool = True, max_observation_chars: int | None = None, placeholder: str | None = None,
        min_masked_chars: int = 0, image_chars: int = 6400, strict_pairs: bool = False,
        summarizer: Summarizer | None = None, summary_max_chars: int = 1400,
        summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
    ) -> None:  # fmt: skip
        """See the class."""

    def _begin(
        self,
        *,
        store: TurnStore | None = None,
        on_move: Callable[[BoundaryMove], Any] | None = None,
        **options: Any,
    ) -> None:
        self._options = HistoryOptions(**options)
        self._on_move = optional_function("on_move", on_move)
        self._told_moves = 0
        self._is_loading = False  # the moves up to the next view were reported already
        if store is not None and not isinstance(store, _turn_store()):
            raise TypeError(f"store must be a TurnStore or None, not {type(store).__name__}")
        self._store = store
        self._callbacks = Callbacks(self._options)
        self._messages = Messages()
        self._reports = Reports()
        self._own_mark: tuple[bytes, int] | None = None  # see `_mark_newest`
        self._session = self._new_session()
        self._lock = threading.RLock()
        self._list: list[Any] = []  # the view and its chunks, as read last
        self._chunks: list[bytes] = []
        self._open = b""
        self._has_uncounted = False  # the messages after a new summary are not counted yet
        self._is_replaying = False  # stored messages must be appended to the session again
        self._known: KnownMessages | None = None  # what `sync` was given last
        if store is not None:
            try:
                self._resume(store)
            except TranscriptError as error:
                raise StoreError("damaged", path=store.path, what=f"what it has as messages: {error}") from error

    def _new_session(self) -> Any:
        return self._options.engine.Session(
            self._options.policy,
            raw_cost_at_most=4 * min(self._options.threshold_tokens, 1 << 40),
            calibrates=self._options.calibrates,
            store=None if self._store is None else self._store._store,
        )

    # Appending

    def append(self, message: Any) -> None:
        """Append a message: a dict in any of the four shapes. It is kept, so do not change it afterwards.

        What the clients of Anthropic and OpenAI answer with is taken and kept too: a message, an item, or blocks inside
        a dict, such as ``{"role": "assistant", "content": response.content}``; and of a response its messages.

        Raises:
            TranscriptError: it is no message; the history is unchanged.
            TypeError, ValueError: it has a value that JSON cannot represent, or is an object of another kind.
            StoreError: it is appended, but not stored; the write is retried with the next message. If the store is
                closed, the history is unchanged.
        """
        for one in messages_of(message) if is_object(message) else (message,):
            self._append_object(one)

    def _append_object(self, message: Any) -> None:
        objects: list[Any] = []

        def as_plain(value: Any) -> Any:
            if not is_object(value):
                raise TypeError(f"a message holds a {type(value).__name__}, which JSON has no form for")
            form = plain_message(value) if value is message else plain(value)
            if form is message:
                raise TypeError(
                    f"a history takes messages, not a {type(message).__name__}: what its model_dump gives has neither "
                    "a role nor a type"
                )
            objects.append(value)
            return form

        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=as_plain)
        self._append(*as_bytes(text), message, has_objects=bool(objects))

    def append_json(self, data: Json) -> None:
        """Append a serialized message; every byte that is not masked stays unchanged.

        Raises:
            TranscriptError: malformed JSON, or no message; names the byte. The history is unchanged.
        """
        self._append(*as_bytes(data), None)

    def extend(self, messages: Iterable[Any]) -> None:
        """Append messages one by one: those before an invalid one stay."""
        for message in messages:
            self.append(message)

    def _append(self, data: bytes, surrogates: bool, message: Any, *, has_objects: bool = False) -> None:
        with self._lock:
            self._callbacks.refuse()
            self._resume_replay()
            if self._has_uncounted:
                self._count_kept()
            index, first = len(self._session), self._messages.first
            try:
                first = self._session.append(data, surrogates, self._callbacks.costs(self._session, data, surrogates))
            finally:  # also if only the write to the store failed
                if message is not None and len(self._session) > index:
                    self._messages.add(index, message, has_objects)
            self._messages.evict(first)
            self._tell_moves()

    def sync(self, messages: list[Any]) -> int:
        """Take the whole history again: append what is new in it, and before that rewind to where it departs.

        For loops and frameworks that hand over all messages before each request. Messages are compared by identity,
        then by equality; of those whose objects were given before, only the newest 16 are compared again, which
        detects that they were changed in place. Messages that differ only in their cache marks are the same: `view`
        has the objects of this call, `view_json` the bytes of the first one. `Masker` does the same for many
        conversations and for messages of any type.

        Args:
            messages: the history so far.

        Returns:
            How many of its first messages were known.

        Raises:
            TranscriptError, TypeError, ValueError, StoreError: as `append`; the messages before the one that is refused
                are appended.

        The cost is that of comparing the lists, and of what is dropped and appended.

        Example:
            >>> import recede
            >>> history = recede.History()
            >>> messages = [{"role": "user", "content": "Find the bug."}]
            >>> history.sync(messages), history.sync([*messages, {"role": "assistant", "content": "It is in line 3."}])
            (0, 1)
            >>> history.sync([{"role": "user", "content": "Find the typo."}]), len(history)
            (0, 1)
        """
        if not isinstance(messages, list):
            raise TypeError(f"sync takes the list of all messages, not {type(messages).__name__}")
        given = list(messages)
        with self._lock:
            self._callbacks.refuse()
            self._resume_replay()
            known = self._known_messages()
            before = known.messages
            same, marked = known.prefix(given)
            if same < len(self):
                self.rewind(same)
            own = {id(old): new for old, new in zip(before[:same], given, strict=False) if old is not new}
            if own:
                self._messages.replace(given[:same])
                self._list = [own.get(id(message), message) for message in self._list]
            known.take(given[:same], same, marked)
            for message in given[same:]:
                self.append(message)
            known.take(given, same, marked)
            self._known = known
        return same

    def _known_messages(self) -> KnownMessages:
        """What `sync` compares with; all messages are compared by equality after others were appended."""
        known, self._known = self._known, None
        if known is None or len(known.messages) != len(self):
            known = KnownMessages(DictComparison(self._options.engine))
            known.take(self.messages, 0, [])
        return known

    def rewind(self, messages: int) -> None:
        """Drop all but the first messages, to edit a turn or try another answer.

        Views, figures and `recall` are then those of a history to which only these messages were appended, and from
        which the same views were taken: a summary made of later messages is dropped, and the previous one used again.
        A store drops the messages and summaries too.

        Args:
            messages: how many stay.

        Raises:
            TypeError, ValueError: it is no whole number from 0 to the number of messages.
            StoreError: the store cannot be changed; the history is unchanged.

        The cost is that of the dropped messages and of those since the boundary last moved before them, at any length.
        But a rewind to before the last summary or into evicted messages rebuilds the session from its start, where a
        `token_counter` counts the messages since the earlier summary again; if it raises, the next view retries.

        Example:
            >>> import recede
            >>> history = recede.History()
            >>> history.extend([{"role": "user", "content": text} for text in ("Find the bug.", "No, wait.")])
            >>> history.rewind(1)
            >>> history.append({"role": "user", "content": "Find the typo."})
            >>> [message["content"] for message in history.view()]
            ['Find the bug.', 'Find the typo.']
        """
        whole_number()("messages", messages)
        with self._lock:
            self._callbacks.refuse()
            self._resume_replay()
            before = len(self)
            self._known = None
            if messages > before:
                raise ValueError(f"messages must be at most {before}, which is how many there are, not {messages}")
            if not self._session.rewind(messages):
                self._rebuild(messages)
            self._messages.forget(range(messages, before))
            self._reports.forget()
            self._told_moves = min(self._told_moves, self._session.moves(CEILING)[0])

    def _rebuild(self, messages: int) -> None:
        """Rebuild the session of the first messages from the store, or from what `save` writes for them."""
        old, self._session = self._session, self._new_session()
        try:
            if self._store is None:
                source = self._options.engine.Store.of_bytes(old.save(self._options.tag(), messages), "")
                self._replay(self._session.open(counts=self._options.counts, source=source), source)
            else:
                self._is_replaying = True
                self._messages.first = self._session.open(self._options.tag(), self._options.counts, _EVICT_AFTER)
                self._resume_replay()
        except BaseException:
            if self._store is None:
                self._session = old
            raise
        finally:
            self._chunks, self._list = [], []

    def _resume_replay(self) -> None:
        """Resume an interrupted rebuild."""
        if self._is_replaying and self._store is not None:
            self._is_replaying = False
            try:
                self._replay(len(self._session), self._store._store)
            except BaseException:
                self._is_replaying = True
                raise

    @classmethod
    @runs(lambda cls, messages, **options: cls(**options)._with(messages))
    def from_messages(
        cls, messages: Iterable[Any], *, keep: int = 4, threshold_tokens: int = 0, max_view_tokens: int | None = None,
        calibrate: bool = False, recall_handles: bool = False, token_counter: TokenCounter | None = None,
        store: TurnStore | None = None,
        on_move: Callable[[BoundaryMove], Any] | None = None,
        max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = 0.5,
        clip_results: int | None = 4000, enabled: bool = True, preserve_recent_raw_turns: int = 4,
        keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
        keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
        keep_errors: bool = False, keep_matching: Collection[str] = (), mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "break_even", cache_read: float = 0.1,
        cache_write: float = 1.25, cache_cold: bool | Collection[int] = False,
        cache: Literal["ideal", "prefix", "breakpoints"] = "ideal", break_even_at: float = 0.5,
        warranty: float | None = 0.1, cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2,
        observation_masking: bool = True, max_observation_chars: int | None = None, placeholder: str | None = None,
        min_masked_chars: int = 0, image_chars: int = 6400, strict_pairs: bool = False,
        summarizer: Summarizer | None = None, summary_max_chars: int = 1400,
        summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
    ) -> History:  # fmt: skip
        """A history of these messages; the options are those of `History`.

        Example:
            >>> import recede
            >>> recede.History.from_messages([{"role": "user", "content": "hello"}])
            <History: 1 messages, 5 chars>
        """

    def _with(self, messages: Iterable[Any]) -> History:
        self.extend(messages)
        return self

    @classmethod
    @runs(lambda cls, data, **options: cls(**options)._with_json(data))
    def from_json(
        cls, data: Json, *, keep: int = 4, threshold_tokens: int = 0, max_view_tokens: int | None = None,
        calibrate: bool = False, recall_handles: bool = False, token_counter: TokenCounter | None = None,
        store: TurnStore | None = None,
        on_move: Callable[[BoundaryMove], Any] | None = None,
        max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = 0.5,
        clip_results: int | None = 4000, enabled: bool = True, preserve_recent_raw_turns: int = 4,
        keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
        keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
        keep_errors: bool = False, keep_matching: Collection[str] = (), mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "break_even", cache_read: float = 0.1,
        cache_write: float = 1.25, cache_cold: bool | Collection[int] = False,
        cache: Literal["ideal", "prefix", "breakpoints"] = "ideal", break_even_at: float = 0.5,
        warranty: float | None = 0.1, cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2,
        observation_masking: bool = True, max_observation_chars: int | None = None, placeholder: str | None = None,
        min_masked_chars: int = 0, image_chars: int = 6400, strict_pairs: bool = False,
        summarizer: Summarizer | None = None, summary_max_chars: int = 1400,
        summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
    ) -> History:  # fmt: skip
        """A history of a JSON array of messages, each with its own bytes; the options are those of `History`.

        Raises:
            TranscriptError: malformed JSON, or no array of messages; names the byte.

        Example:
            >>> import recede
            >>> recede.History.from_json('[{"role": "user", "content": 1.50e0}]'.replace("1.50e0", '"hi"')).to_json()
            b'[{"role": "user", "content": "hi"}]'
        """

    def _with_json(self, data: Json) -> History:
        raw, surrogates = as_bytes(data)
        # The strict reader validates it for json.
        self._options.engine.reduce_json(raw, surrogates, compiled(self._options.engine, "truncate", {}))
        if raw.lstrip()[:1] != b"[":
            raise TranscriptError("history", offset=0)
        loads(raw)  # refuse what Python cannot read, so that no view fails later
        for message in elements(raw.decode("utf-8", "surrogatepass")):
            self._append(*as_bytes(message), None)
        return self

    # Views

    def view(self) -> list[Any]:
        """The messages to send: a new list, whose unchanged messages are the appended objects.

        Raises:
            TranscriptError: a message appended as JSON has a value that Python cannot read: an integer of over 4,300
                digits, or too many levels. Use `view_json`.
        """
        with self._lock:
            self._update_view()
            self._tell_moves()
            self._is_loading = False
            start, items, keeps = self._session.changes(len(self._list))
            try:
                self._list[start:] = [self._messages.shown(self._session, item) for item in items]
            except BaseException:
                self._list = []
                raise
            view = self._list.copy()
            if not keeps:
                self._list = []
            return view

    def masks(self, since: int | None = None) -> Masks:
        """What the view masks, without making it: of a history without a budget.

        Args:
            since: only the masks of messages from this one on, or from ``first_changed`` on if that is earlier; None:
                all.

        Returns:
            `Masks`; its ``first_changed`` is the first message that the view at the last call of this method showed
            otherwise or did not have.

        Raises:
            TypeError, ValueError: `since` is no whole number from 0; or a budget may drop messages.

        The cost is that of what changed, and of the masks that are returned.

        Example:
            >>> import recede
            >>> history = recede.History(keep=3, boundary="sliding")
            >>> for number in range(5):
            ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "x" * 90})
            >>> [mask.message_index for mask in history.masks().masks]
            [0, 1]
            >>> history.append({"role": "tool", "tool_call_id": "5", "content": "x" * 90})
            >>> history.masks(since=5)
            Masks(first_changed=2, masks=[Mask(message_index=2, result_index=0, text=...)])
        """
        whole_number(optional=True)("since", since)
        if self._options.has_budget:
            raise ValueError("masks are of a History without a budget: with one, messages may be dropped")
        with self._lock:
            self._update_view()
            self._tell_moves()
            first, masks = self._session.masks(0 if since is None else since)
            return Masks(first, list(map(Mask._make, masks)))

    def _mark_newest(self, mark: dict[str, Any], elsewhere: int) -> None:
        """Mark the last block of each view, as the client of a `Conversation` that has so many marks elsewhere."""
        with self._lock:
            self._callbacks.refuse()
            self._own_mark = json.dumps(mark, separators=(",", ":")).encode(), elsewhere

    def view_json(self) -> bytes:
        """The messages to send, serialized as a JSON array."""
        return b"".join(self.view_chunks())

    def view_chunks(self) -> list[bytes]:
        """`view_json` in chunks, most of them the same objects as the last time: an HTTP client sends them uncopied."""
        with self._lock:
            self._update_view()
            self._tell_moves()
            self._is_loading = False
            reused, closed, last, keeps = self._session.chunks(len(self._chunks))
            del self._chunks[reused:]
            self._chunks += closed
            self._open = self._open if last == self._open else last
            chunks = [*self._chunks, self._open]
            if not keeps:
                self._chunks, self._open = [], b""
            return chunks

    def _update_view(self) -> None:
        """Make the view current, with a summary if one is needed."""
        self._callbacks.refuse()
        self._resume_replay()
        summary: Any = None
        texts: list[tuple[str, int]] | None = None
        while (answer := self._session.update_view(summary, texts, mark=self._own_mark)) is not None:
            kind, *asked = answer
            if kind == "costs":
                self._has_uncounted = True
                self._count_kept()
                return
            try:
                if kind == "texts":
                    texts = self._callbacks.counted(*asked)
                else:
                    summary = self._callbacks.summary(*asked)
            except Exception:  # of the counter: do not pay for the same summary twice
                if kind == "summary" or summary is not None:
                    self._session.update_view(False)
                raise

    def _tell_moves(self) -> None:
        """Report of the moves that are new; those of a session before a summary are no longer counted."""
        self._told_moves, new = self._session.moves(self._told_moves)
        if not self._is_loading:
            for move in new:
                self._callbacks.reported(BoundaryMove._make(move), self._on_move)

    def _count_kept(self) -> None:
        """Count the messages after a new summary, with which the session then continues."""
        answer = self._session.update_view()
        if answer is not None and self._options.counts:
            _, messages, numbers = answer
            self._session.update_view(costs=self._callbacks.costs_of_kept(messages, numbers))
        self._has_uncounted = False

    @property
    def summarizer_error(self) -> Exception | None:
        """The exception of the most recent summarizer call; None if it succeeded.

        A summary that failed or did not help is retried after 1 new turn, then 2, 4, and so on up to 64, and once new
        messages take a quarter of the budget. Until then the views are those of `reduce` without a summary.
        """
        return self._callbacks.summarizer_error

    # What the provider says

    def cache_is_cold(self) -> None:
        """Say that the cache is cold now, as after a pause: the boundary moves with the next request, at no extra cost.

        It is part of the session: `cold_requests` has it, with which `reduce` gives the same views, and a saved or
        stored history has it again. `rewind` to before it takes it back.

        Raises:
            StoreError: it could not be stored; that is retried with the next message.

        Example:
            >>> import recede
            >>> history = recede.History()
            >>> history.append({"role": "user", "content": "Find the bug."})
            >>> history.cache_is_cold()
            >>> history.cold_requests
            (1,)
        """
        with self._lock:
            self._callbacks.refuse()
            self._resume_replay()
            self._session.report(is_cold=True)

    def reported(self, usage: Any) -> None:
        """Report what the provider counted for the request of the last view, before its answer is appended.

        The tokens are added up in ``stats().reported``, where `rewind` leaves them: they are spent; with
        ``calibrate=True`` a budget in tokens goes by the characters that they have had. A request found the
        cache cold if it was served less than half of what the request before it had sent, though its view begins with
        that one's. The first request, one after a move of the boundary or a rewind, and one after a request of under
        2,048 tokens say nothing. What a cold request has cost is paid, and the next one is served again: so one alone
        changes nothing. After two in a row the cache is taken to keep nothing, as by `cache_is_cold`. Before the
        request, only the caller knows of a pause.

        Args:
            usage: that of a response of Anthropic or OpenAI (chat completions or Responses), or a dict of that form.

        Raises:
            TypeError: it is no usage.
            StoreError: as for `cache_is_cold`.

        Example:
            >>> import recede
            >>> history = recede.History()
            >>> history.append({"role": "user", "content": "Find the bug."})
            >>> request = history.view()
            >>> history.reported({"prompt_tokens": 3_000, "completion_tokens": 20, "prompt_tokens_details": None})
            >>> history.stats().reported.input_tokens, history.cold_requests
            (3000, ())
        """
        with self._lock:
            self._callbacks.refuse()
            self._resume_replay()
            figures = self._session.stats()
            reported = Reported.of(usage, (figures.moves, figures.changed), figures.view_chars)
            if reported is not None:
                sums, is_cold = self._reports.add(figures.reported_sums, reported)
                chars = chars_of_tokens(sums) if self._options.calibrates else None
                self._session.report(sums, chars, is_cold)

    @property
    def cold_requests(self) -> tuple[int, ...]:
        """How many messages preceded each request with a cold cache, as `cache_cold` of `reduce` takes it.

        What was reported of the next request counts for the messages there are now, until that request is made.
        """
        with self._lock:
            return tuple(request for request in self._session.stats().cold_requests if request < CEILING)

    # Messages

    def __len__(self) -> int:
        with self._lock:  # the session may be changing
            return len(self._session)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        with self._lock:
            places = range(len(self))[index]
            if isinstance(places, int):
                return self._messages.at(self._session, places)
            return [self._messages.at(self._session, place) for place in places]

    def __iter__(self) -> Iterator[Any]:
        place = 0
        while place < len(self):
            yield self[place]
            place += 1

    @property
    def messages(self) -> list[Any]:
        """The full history, unmasked: a new list."""
        return self[:]

    def to_json(self) -> bytes:
        """The full history, serialized as a JSON array of the appended bytes."""
        with self._lock:
            return b"[" + b",".join(map(self._session.message, range(len(self)))) + b"]"

    def recall(self, observation: int | str) -> str:
        """The full text of an observation, masked or not.

        Args:
            observation: its number among all observations, from 1; or the id of its call (the newest, if it repeats).

        Raises:
            LookupError: there is no such observation.
        """
        with self._lock:
            text: str | None = self._session.recall(observation)
        if text is None:
            raise no_such("observation", observation)
        return text

    def tool_definition(self, shape: str = "openai") -> dict[str, Any]:
        """The schema of a tool with which the agent can fetch a masked observation.

        With ``recall_handles=True`` placeholders name the number to pass. Answer a call with `recall`, and append that
        as its result; earlier messages stay masked.

        Args:
            shape: ``"openai"`` (chat completions), ``"responses"``, or ``"anthropic"``.

        Raises:
            ValueError: there is no such shape.
        """
        return recall_tool(shape)

    def stats(self) -> HistoryStats:
        """The figures of the history and of its current view."""
        with self._lock:
            if self._store is None:
                self.view_chunks()  # their ends are remembered, so that the changed byte is found fast
            else:
                self._update_view()
            figures = self._session.stats()
            stored = figures.stored_moves
            moves = tuple(map(BoundaryMove._make, self._session.moves(stored)[1]))
            message, byte = figures.changed or (None, None)
            return HistoryStats(
                messages=len(self),
                turns=figures.turns,
                raw_chars=figures.raw_chars,
                view_messages=figures.view_messages,
                view_chars=figures.view_chars,
                masked_count=figures.masked_count,
                orphans=figures.orphans,
                changed_message=message,
                changed_byte=byte,
                boundary_moves=StoredMoves(self._session, stored, moves) if stored else moves,
                summary_failures=self._callbacks.summary_failures,
                reported=usage_of_sums(figures.reported_sums),
            )

    def __repr__(self) -> str:
        with self._lock:
            return f"<History: {len(self):,} messages, {self._session.stats().raw_chars:,} chars>"

    # Stores and files

    def _resume(self, store: TurnStore) -> None:
        """Resume from a store."""
        tag = self._options.engine.stored_options(store._store)
        if len(store) or (tag is not None and b"recede_history" not in tag):
            raise ValueError(f"{store.path} holds the turns of a manager: give the history a store of its own")
        start = self._session.open(self._options.tag(), self._options.counts, _EVICT_AFTER)
        self._replay(start, store._store)

    def _replay(self, start: int, store: Any) -> None:
        """Append the stored messages from `start` on."""
        if self._options.counts:
            self._count_kept()
        self._messages.first = start if self._store is not None else 0
        end, left = store.count(_MESSAGE), store.max_bytes()
        self._is_loading = end > 0
        self._told_moves, _ = self._session.moves(CEILING)
        for first in range(start, end, _BATCH):
            for *_, message in store.records(_MESSAGE, first + 1, min(_BATCH, end - first)):
                left -= len(message)
                if left < 0:  # a damaged store may refer to one long text many times
                    raise TranscriptError("session", field="messages")
                self._append(message, True, None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write messages, options and summaries to a file, atomically.

        The file is a closed store (docs/store-format.md). Only the owner can read a new file; an existing one keeps its
        mode and owner.

        Raises:
            OSError: the file cannot be written; an existing file is unchanged.
            ValueError: it is the store of this history, or that store's log.
        """
        if self._store is not None and any(is_same_file(path, file) for file in self._store.files):
            raise ValueError(f"{os.fspath(path)!r} belongs to the store of this history: save to another file")
        with self._lock:
            self._resume_replay()
            data = self._session.save(self._options.tag(), len(self))
        write_whole(path, [data])

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        summarizer: Summarizer | None = None,
        token_counter: TokenCounter | None = None,
        on_move: Callable[[BoundaryMove], Any] | None = None,
    ) -> History:
        """Load a history from a saved file or a closed store into memory; its views continue as if never interrupted.

        Args:
            path: the file.
            summarizer: pass it again if the history had one; functions are not saved.
            token_counter: likewise.
            on_move: likewise.

        Raises:
            TranscriptError: the file contains no history, or an inconsistent one.
            StoreError: it is damaged.
            OSError: it cannot be read.
        """
        functions: dict[str, Any] = {"token_counter": optional_function("token_counter", token_counter)}
        functions["on_move"] = on_move
        if optional_summarizer("summarizer", summarizer) is not None:
            functions["summarizer"] = summarizer
        data = Path(path).read_bytes()
        try:
            source = _engine.core("History").Store.of_bytes(data, str(path))
        except StoreError as error:
            if error.kind != "foreign":
                raise
            raise TranscriptError("session", source=str(path)) from None
        tag = _engine.engine.stored_options(source)
        try:
            options = saved_options(tag)
            try:
                history = cls(**{**options, **functions})
            except (TypeError, ValueError, OverflowError) as error:
                raise TranscriptError("session", field=f"options ({error})") from error
            history._replay(history._session.open(counts=token_counter is not None, source=source), source)
        except TranscriptError as error:
            # The offset is that in a message, not in the file.
            places = {**error.places, "offset": None, "source": str(path)}
            raise TranscriptError(error.kind, **places) from error.__cause__
        return history


def _turn_store() -> Any:
    from recede.store._turn_store import TurnStore  # only if a store is used

    return TurnStore
