"""The reading methods of a `History`: messages, views and figures."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from recede._errors import no_such, without_text
from recede._files import is_same_file, write_whole
from recede._forks import RefusingLock, lock_of
from recede._recall import recall_tool
from recede._report import masked_words
from recede._steps import drive_async
from recede._summarizer import Steps
from recede.reduction._kinds import CEILING, whole_number
from recede.reduction._masks import Masks
from recede.session._stats import HistoryStats, stats_of

if TYPE_CHECKING:
    from recede.session._live import LiveSession


class HistoryReader:
    """The methods of a `History` that change no messages."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._lock: Any = lock_of(self)

    def _after_fork(self, *, was_changing: bool) -> None:
        if was_changing:
            self._lock = RefusingLock()

    # Messages

    def __len__(self) -> int:
        with self._lock:  # the session may be changing
            return len(self._live.core)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        with self._lock:
            places = range(len(self))[index]
            if isinstance(places, int):
                return self._live.message(places)
            return list(map(self._live.message, places))

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
            return b"[" + b",".join(map(self._live.core.message, range(len(self)))) + b"]"

    def recall(self, observation: int | str) -> str:
        """The full text of an observation, masked or not.

        Args:
            observation: its number among all observations, from 1; its handle; or the id of its call (the newest, if it
                repeats).

        Raises:
            LookupError: there is no such observation, or it has images and no text.
        """
        if not isinstance(observation, (int, str)):
            what = type(observation).__name__
            raise TypeError(f"observation must be its number, its handle or the id of its call, not {what}")
        with self._lock:
            found: tuple[str, int] | None = self._live.core.recall(observation)
        if found is None:
            raise no_such("observation", observation)
        text, images = found
        if images and not text:
            raise without_text(observation)
        return text

    def tool_definition(self, shape: str = "openai") -> dict[str, Any]:
        """The schema of a tool that fetches a masked observation, as `recede.masker.recall_tool` has it.

        With ``recall=True`` placeholders name the handle to pass. Answer a call with `recall`, and append that
        as its result; earlier messages stay masked.
        """
        return recall_tool(shape)

    # Views

    def view(self) -> list[Any]:
        """The messages to send: a new list, whose unchanged messages are the appended objects.

        Raises:
            TranscriptError: a message appended as JSON has a value that Python cannot read: an integer of over 4,300
                digits, or too many levels. Use `view_json`.
        """
        with self._lock:
            self._live.update_view()
            return self._live.view.messages(self._live.core, self._live.messages)

    async def aview(self) -> list[Any]:
        """`view`, awaiting a summarizer that is async. Until it returns, the history takes no message.

        If it is canceled, nothing has happened: the next view asks again.

        Example:
            >>> import asyncio, recede
            >>> async def summarizer(messages, previous_summary):
            ...     return "What was done."
            >>> history = recede.History(summarizer=summarizer)
            >>> history.append({"role": "user", "content": "Find the bug."})
            >>> asyncio.run(history.aview())
            [{'role': 'user', 'content': 'Find the bug.'}]
        """
        await drive_async(self._locked(self._live.planning()))
        return self.view()

    def _locked(self, steps: Steps[None]) -> Steps[None]:
        """Steps of which each holds the lock."""
        resume: Any = partial(steps.send, None)
        with contextlib.closing(steps):
            while True:
                with self._lock:
                    try:
                        asked = resume()
                    except StopIteration:
                        return
                try:
                    resume = partial(steps.send, (yield asked))
                except Exception as error:
                    resume = partial(steps.throw, error)

    def view_json(self) -> bytes:
        """The messages to send, serialized as a JSON array."""
        return b"".join(self.view_chunks())

    def view_chunks(self) -> list[bytes]:
        """`view_json` in chunks, most of them the same objects as the last time: an HTTP client sends them uncopied."""
        with self._lock:
            self._live.update_view()
            return self._live.view.chunks(self._live.core)

    def masks(self, since: int | None = None) -> Masks:
        """The results that the view masks, without making it: of a history without a limit.

        Args:
            since: only the masks of messages from this one on, or from ``first_changed`` on if that is earlier; None:
                all.

        Returns:
            `Masks`; its ``first_changed`` is the first message that the view at the last call of this method rendered
            differently or did not have.

        Raises:
            TypeError, ValueError: `since` is no whole number from 0; or messages may be dropped.

        The cost is that of what changed, and of the masks that are returned.

        Example:
            >>> import recede
            >>> history = recede.History(keep=3, boundary="sliding")
            >>> for number in range(5):
            ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "x" * 900})
            >>> history.append({"role": "assistant", "content": "I see."})
            >>> [mask.message_index for mask in history.masks().masks]
            [0, 1]
            >>> history.append({"role": "tool", "tool_call_id": "5", "content": "x" * 900})
            >>> history.masks(since=6)
            Masks(first_changed=2, masks=[Mask(message_index=2, ...)], hidden=(), summary=None, unsigned=())
        """
        whole_number(optional=True)("since", since)
        if self._live.options.drops:
            raise ValueError("masks are of a History without limit and summarizer, with which messages may be dropped")
        with self._lock:
            self._live.update_view()
            return self._live.core.masks(0 if since is None else since)

    def _mark_newest(self, mark: dict[str, Any], elsewhere: int) -> None:
        """Mark the last block of each view, as the client of a `Conversation` that has this many marks elsewhere."""
        with self._lock:
            self._live.mark_newest((json.dumps(mark, separators=(",", ":")).encode(), elsewhere))

    # Figures

    def stats(self) -> HistoryStats:
        """The figures of the history and of its current view."""
        with self._lock:
            self._live.update_view()
            self._live.view.chunks(self._live.core)  # their ends are remembered, to find the changed byte
            return stats_of(self._live.core, self._live.callbacks.summary_failures)

    def __repr__(self) -> str:
        with self._lock:
            stats = stats_of(self._live.core, 0)
            masked = ""
            if self._live.viewed == len(self):  # a view of fewer messages says nothing about the next one
                results = stats.observations if stats.view_messages == len(self) else 0
                masked = ", " + masked_words(stats.masked_count, results, stats.unmasked)
            return f"<History: {len(self):,} messages, {stats.raw_chars:,} chars{masked}>"

    @property
    def summarizer_error(self) -> Exception | None:
        """The exception of the most recent summarizer call; None if it succeeded.

        A summary that failed or did not help is retried after 1 new turn, then 2, 4, and so on up to 64, and once new
        messages take a quarter of the limit. Until then the built-in one stands over the limit. After two unfinished
        answers of a model in a row none is asked for.
        """
        asking = self._live.callbacks.asking
        return None if asking is None else asking.error

    @property
    def cold_requests(self) -> tuple[int, ...]:
        """How many messages preceded each request with a cold cache, as `cold` of `reduce` takes it.

        A report about the next request is listed with the current number of messages until that request is made.
        """
        with self._lock:
            _, cold = self._live.core.reported()
            return tuple(request for request in cold if request < CEILING)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write messages, options and summaries to a file, atomically.

        The file is a closed store (docs/store-format.md). Only the owner can read a new file; an existing one keeps its
        mode and owner.

        Raises:
            OSError: the file cannot be written; an existing file is unchanged.
            ValueError: it is the store of this history, or that store's log.
        """
        store = self._live.store
        if store is not None and any(is_same_file(path, file) for file in store.files):
            raise ValueError(f"{os.fspath(path)!r} belongs to the store of this history: save to another file")
        with self._lock:
            data = self._live.save()
        write_whole(path, [data])
