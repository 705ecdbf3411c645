"""The append-only session of a long-running agent: each message is processed once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from recede import _engine
from recede._errors import StoreError, TranscriptError
from recede._objects import is_object, messages_of, model_of
from recede._report import BoundaryMove
from recede.reduction._input import as_bytes
from recede.reduction._kinds import optional_function, optional_summarizer, whole_number
from recede.reduction._options import OPTIONS
from recede.reduction._signature import takes
from recede.session._live import LiveSession, session_in
from recede.session._messages import written_messages
from recede.session._options import HistoryOptions, saved_options
from recede.session._reading import HistoryReader

if TYPE_CHECKING:
    from typing import SupportsIndex

    from typing_extensions import Unpack

    from recede.reduction._input import Json
    from recede.store._turn_store import TurnStore
    from recede.types import Options, Summarizer, TokenCounter


class History(HistoryReader):
    """An append-only session, for an agent that asks for a view before every request; by default with break-even.

    Messages are kept whole, in memory. The views are those of `reduce` for the whole history. Each message is processed
    once, so a turn costs microseconds at any length. A summary stands until the view no longer fits. Of cache marks in
    the messages (``cache_control``) a view keeps only the newest, and has one on the last masked result, so that a
    request has at most four.

    Args:
        store: a `TurnStore` to which each message and summary is written. A history made with a store that has
            messages resumes with all of them, however its process ended (docs/store.md): it reads them, and what
            happened between them, and decides again.
        recall: placeholders and clips name the handle of the observation, so that the agent can request it
            with the tool of `tool_definition`: ``[old tool output cleared to save context, recall 3f9c2a1b07de]``.
        on_move: called with a `BoundaryMove` when a view first has it, or with the answer if no view was taken; the log
            gets a line in any case. What it raises is logged. It may read messages, but not append or take a view.
        calibrate: with ``max_input_tokens`` or ``trigger_tokens``: from the next request on, tokens count as in the
            requests given to `reported`, with what these have beside the view, such as the system prompt and the
            tools. A token has 1 to 8 characters. Earlier views stay, also in a saved or stored history.
        summarizer: `(messages, previous_summary) -> str`, sync or async (`aview`): old turns become its summary when
            that pays (docs/summaries.md), and over the limit, in place of the built-in one. None: only over the limit.
        **options: as for `reduce`. With a `token_counter` each text is counted once, when it is appended.

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
        ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "a line of the log\\n" * 250})
        >>> view = history.view()  # what is sent
        >>> len(history), len(view), view[2]["content"]
        (81, 81, '[old tool output cleared to save context]')
        >>> history.recall(1) == history[2]["content"]  # nothing is lost
        True
        >>> history.stats().raw_tokens, history.stats().view_tokens
        (45254, 6237)
    """

    @takes(OPTIONS)
    def __init__(
        self,
        *more: NoReturn,
        store: TurnStore | None = None,
        recall: bool = False,
        on_move: Callable[[BoundaryMove], Any] | None = None,
        calibrate: bool = False,
        summarizer: Summarizer | None = None,
        **options: Unpack[Options],
    ) -> None:
        if more or "messages" in options:
            raise TypeError("a History begins empty: history = recede.History(), then history.extend(messages)")
        checked = HistoryOptions.of(calibrate=calibrate, recall=recall, summarizer=summarizer, **options)
        self._begin(checked, store, on_move)

    def _begin(self, checked: HistoryOptions, store: TurnStore | None, on_move: Any) -> None:
        super().__init__(LiveSession(checked, store, optional_function("on_move", on_move)))
        if store is not None:
            try:
                self._live.open()
            except TranscriptError as error:
                raise StoreError("damaged", path=store.path, what=f"what it has as messages: {error}") from error

    @classmethod
    def _of(cls, checked: HistoryOptions, store: TurnStore | None = None, on_move: Any = None) -> History:
        history = cls.__new__(cls)
        history._begin(checked, store, on_move)
        return history

    @staticmethod
    def _checked(options: dict[str, Any]) -> HistoryOptions:
        """The options of a saved history, with its functions."""
        return HistoryOptions.saved(options)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled: two would share one session."""
        raise TypeError("a History cannot be copied or pickled: save(path) it, and History.load(path) gives another")

    # Appending

    def append(self, message: Any) -> None:
        """Append a message: a dict in any shape of `reduce`. It is kept, so do not change it afterwards.

        What the clients of Anthropic and OpenAI answer with is taken and kept too: a message, an item, or blocks inside
        a dict, such as ``{"role": "assistant", "content": response.content}``; and of a response its messages.

        Raises:
            TranscriptError: it is no message; the history is unchanged.
            TypeError, ValueError: it has a value that JSON cannot represent, or is an object of another kind.
            StoreError: it is appended, but not stored; the write is retried with the next message. If the store is
                closed, the history is unchanged.
        """
        if isinstance(message, (list, tuple)):
            raise TranscriptError("message", message_index=len(self), seen="a list (extend takes several)")
        if not is_object(message):
            with self._lock:
                self._live.append_object(message)
            return
        with self._lock:
            self._live.take_model(model_of(message))
        for one in messages_of(message):
            with self._lock:
                self._live.append_object(one)

    def append_json(self, data: Json) -> None:
        """Append a serialized message; every byte that is not masked stays unchanged.

        Raises:
            TranscriptError: malformed JSON, or no message; names the byte. The history is unchanged.
        """
        with self._lock:
            self._live.append(*as_bytes(data))

    def extend(self, messages: Iterable[Any]) -> None:
        """Append messages one by one: those before an invalid one stay."""
        if isinstance(messages, (dict, str, bytes)):
            door = "append" if isinstance(messages, dict) else "append_json"
            raise TypeError(f"extend takes a list of messages, not {type(messages).__name__}: {door} takes one message")
        for message in messages:
            self.append(message)

    def sync(self, messages: list[Any]) -> int:
        """Take the whole history again: rewind to where it departs, and append what is new in it.

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
        with self._lock:
            return self._live.sync(list(messages))

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

        The cost is that of deciding again, from facts alone: about a millisecond for ten thousand messages.

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
            self._live.rewind(messages)

    @classmethod
    @takes(OPTIONS)
    def from_messages(
        cls,
        messages: Iterable[Any],
        *,
        store: TurnStore | None = None,
        recall: bool = False,
        on_move: Callable[[BoundaryMove], Any] | None = None,
        calibrate: bool = False,
        summarizer: Summarizer | None = None,
        **options: Unpack[Options],
    ) -> History:
        """A history of these messages; the options are those of `History`."""
        history = cls(
            store=store, recall=recall, on_move=on_move, calibrate=calibrate, summarizer=summarizer, **options
        )
        history.extend(messages)
        return history

    @classmethod
    @takes(OPTIONS)
    def from_json(
        cls,
        data: Json,
        *,
        store: TurnStore | None = None,
        recall: bool = False,
        on_move: Callable[[BoundaryMove], Any] | None = None,
        calibrate: bool = False,
        summarizer: Summarizer | None = None,
        **options: Unpack[Options],
    ) -> History:
        """A history of a JSON array of messages, each with its own bytes; the options are those of `History`.

        Raises:
            TranscriptError: malformed JSON, or no array of messages; names the byte.

        Example:
            >>> import recede
            >>> recede.History.from_json('[{"role": "user", "content": 1.50e0}]'.replace("1.50e0", '"hi"')).to_json()
            b'[{"role": "user", "content": "hi"}]'
        """
        history = cls(
            store=store, recall=recall, on_move=on_move, calibrate=calibrate, summarizer=summarizer, **options
        )
        for message in written_messages(data):
            history.append_json(message)
        return history

    # What the provider says

    def cache_is_cold(self) -> None:
        """Say that the cache is cold now, as after a pause: the boundary moves with the next request, at no extra cost.

        It becomes a part of the session, also of a saved or stored one: with `cold_requests`, `reduce` gives the same
        views. A `rewind` to before it undoes it.

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
            self._live.prepare()
            self._live.core.report(is_cold=True)

    def reported(self, usage: Any) -> None:
        """Report what the provider counted for the request of the last view, before its answer is appended.

        The tokens are added up in ``stats().reported``, where `rewind` leaves them: they are spent; with
        ``calibrate=True`` they determine what the next view may have under the limit. A request found the cache cold
        if it was served less than half of what the request before it had sent, though its view begins with that one's.
        The first request, one after a move of the boundary or a rewind, and one after a request of under 2,048 tokens
        say nothing. A cold request is already paid for, and the next one is served again, so one alone changes nothing.
        After two in a row the cache is taken to keep nothing, as by `cache_is_cold`. Only the caller can report a pause
        before the request.

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
            self._live.prepare()
            self._live.reports.take(self._live.core, usage, self._live.options.calibrates)

    # Stores and files

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
        optional_function("on_move", on_move)
        functions: dict[str, Any] = {"token_counter": optional_function("token_counter", token_counter)}
        if optional_summarizer("summarizer", summarizer) is not None:
            functions["summarizer"] = summarizer
        data = Path(path).read_bytes()
        try:
            source = session_in(data, str(path))
            options = saved_options(_engine.engine.stored_options(source))
            try:
                history = cls._of(cls._checked({**options, **functions}), None, on_move)
            except (TypeError, ValueError, OverflowError) as error:
                raise TranscriptError("session", field=f"options ({error})") from error
            history._live.open(source)
        except TranscriptError as error:
            # The offset is that in a message, not in the file.
            places = {**error.places, "offset": None, "source": str(path)}
            raise TranscriptError(error.kind, **places) from error.__cause__
        return history
