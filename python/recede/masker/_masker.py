"""Views of conversations that are handed over whole before each request."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from recede import _engine
from recede._errors import no_such
from recede.masker._cold import cold_masks, observations_of
from recede.masker._facts import ResultFacts
from recede.masker._stats import MaskerStats
from recede.reduction._counting import approx_tokens
from recede.reduction._masks import Masks
from recede.reduction._options import whole_number
from recede.reduction._policy import compiled
from recede.reduction._signature import runs
from recede.reduction._stages import mask_observations

if TYPE_CHECKING:
    from recede.masker._facts import Adapter

__all__ = ["Masker"]

_M = TypeVar("_M")


class Masker(Generic[_M]):
    """Masks conversations that are handed over whole before each request, of messages of any type.

    What it remembers of a conversation only saves time: each view is that of `mask_observations` for the messages
    given, whatever was asked before, and of which conversation. So one object serves many of them, and nothing is to
    be saved. A conversation is found by its content; one more message costs microseconds.

    Args:
        adapter: how messages of your own type are read and masked: a `recede.masker.Adapter`. None: messages are
            dicts in any of the shapes that `reduce` reads.
        keep: how many of the newest results stay raw; None with another window (`keep_messages`, `keep_turns`).
        boundary: as for `mask_observations`; with `mask_chunk` it is ``"stepped"``.
        most: how many conversations are remembered; the one used longest ago is forgotten first.
        check: whether all messages are compared with those of the last call. Otherwise an object that was given
            before is taken to be unchanged, but for the newest 16.
        dispatch: False if no result has dispatch blocks, so that texts need not be read for them.

    The other options are those of `mask_observations`.

    Raises:
        TypeError, ValueError: an option is unknown, of the wrong type, or out of range; or the adapter lacks a method.

    It is thread-safe: calls run one at a time.

    Example:
        >>> import recede
        >>> masker = recede.Masker(keep=3)
        >>> messages = [{"role": "user", "content": "Find the bug."}]
        >>> for number in range(40):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        ...     messages.append({"role": "tool", "tool_call_id": str(number), "content": "a line of the log\\n" * 50})
        ...     view = masker.view(messages)  # what is sent
        >>> view[2]["content"], view[-1] is messages[-1]
        ('[observation masked — 900 chars]', True)
    """

    @runs(lambda self, *arguments, **options: self._begin(*arguments, **options))
    def __init__(
        self, adapter: Adapter[_M] | None = None, *, keep: int | None = 10,
        boundary: Literal["sliding", "stepped", "break_even"] = "break_even", most: int = 128, check: bool = False,
        dispatch: bool = True,
        keep_messages: int | None = None, keep_turns: int | None = None,
        keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
        keep_errors: bool = False, mask_chunk: int | None = None, cache_read: float = 0.1, cache_write: float = 1.25,
        cache_cold: bool | Collection[int] = False, cache: Literal["ideal", "prefix", "breakpoints"] = "ideal",
        break_even_at: float = 0.5, warranty: float | None = 0.1,
        cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2,
        max_observation_chars: int | None = None, placeholder: str | None = None, min_masked_chars: int = 0,
        image_chars: int = 6400,
    ) -> None:  # fmt: skip
        """See the class."""

    def _begin(
        self,
        adapter: Any = None,
        *,
        keep: int | None = 10,
        most: int = 128,
        check: bool = False,
        dispatch: bool = True,
        **options: Any,
    ) -> None:
        for name in ("facts", "masked"):
            if adapter is not None and not callable(getattr(adapter, name, None)):
                raise TypeError(f"an adapter needs a method {name!r}, which {type(adapter).__name__} does not have")
        for name, flag in (("check", check), ("dispatch", dispatch)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} must be True or False, not {type(flag).__name__}")
        if "boundary" not in options and options.get("mask_chunk") is None:
            options["boundary"] = "break_even"
        options["keep_results"] = keep
        self._adapter = adapter
        self._most = whole_number(1)("most", most)
        self._options = options
        self._policy = compiled(_engine.engine, "mask", options)
        self._lock = threading.RLock()
        self._last: list[Any] = []
        self._calls = 0

    def view(self, messages: list[_M]) -> list[_M]:
        """The messages to send: a new list, whose unmasked messages are the given objects.

        Raises:
            TranscriptError: the messages are no history.
        """
        if self._adapter is None:
            self.masks(messages)
            return list(mask_observations(list(messages), **self._options).messages)
        by_message: dict[int, dict[int, str]] = {}
        for index, place, text in self.masks(messages).masks:
            by_message.setdefault(index, {})[place] = text
        view = list(messages)
        for index, texts in by_message.items():
            view[index] = self._adapter.masked(messages[index], texts)
        return view

    def masks(self, messages: list[_M]) -> Masks:
        """Which results the view of these messages masks, without making it.

        Raises:
            TranscriptError: the messages are no history.
        """
        with self._lock:
            masks, _ = cold_masks(self._adapter, messages, self._options)
            now = [(one, [mask for mask in masks if mask.message_index == index]) for index, one in enumerate(messages)]
            before, self._last = self._last, now
            self._calls += 1
        pairs = enumerate(zip(before, now, strict=False))
        same = next((index for index, (old, new) in pairs if old != new), min(len(before), len(now)))
        return Masks(same, masks)

    def count_tokens(self, messages: list[_M]) -> int:
        """The approximate tokens of the view of these messages: a quarter of its characters.

        Raises:
            TranscriptError: the messages are no history.
        """
        return approx_tokens(cold_masks(self._adapter, messages, self._options)[1])

    def place(self, messages: list[_M], observation: int | str) -> tuple[int, int]:
        """The place of an observation: its message, and its place among the results of that.

        Args:
            messages: the conversation.
            observation: its number among all observations, from 1; or the id of its call (the newest, if it repeats).

        Raises:
            LookupError: there is no such observation.
        """
        number = 0
        found = None
        for index, message in enumerate(messages):
            for place, call in enumerate(self._ids(message)):
                number += 1
                if observation == (call if isinstance(observation, str) else number):
                    found = index, place
        if found is None:
            raise no_such("observation", observation)
        return found

    def _ids(self, message: Any) -> list[str | None]:
        if self._adapter is None:
            return [None for _ in observations_of(message)]
        return [ResultFacts(*result).id for result in self._adapter.facts(message).results]

    def recall(self, messages: list[_M], observation: int | str) -> str:
        """The full text of an observation, masked or not.

        Args:
            messages: the conversation.
            observation: its number among all observations, from 1; or the id of its call (the newest, if it repeats).

        Raises:
            LookupError: there is no such observation.
            TypeError: the adapter has no `text`.
        """
        index, place = self.place(messages, observation)
        if self._adapter is None:
            return observations_of(messages[index])[place]  # type: ignore[arg-type]
        if not hasattr(self._adapter, "text"):
            raise TypeError(f"recall needs a method 'text', which {type(self._adapter).__name__} does not have")
        text: str = self._adapter.text(messages[index], place)
        return text

    def reported(self, usage: Any, messages: list[_M] | None = None) -> None:
        """Report the usage of a response: two requests in a row that found the cache cold move the boundary.

        Args:
            usage: that of the response, of any provider.
            messages: the conversation; by default that of the last call of this thread.

        Raises:
            TypeError: it is no usage.
        """

    def stats(self) -> MaskerStats:
        """What became of the calls so far."""
        return MaskerStats(conversations=1, begun=1, continued=self._calls - 1)
