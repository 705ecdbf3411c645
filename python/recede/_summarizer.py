"""How summarizers are called: with the turns and the previous summary, with the turns alone, or with a prompt."""

from __future__ import annotations

import inspect
import json
import logging
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar, Union

from recede._engine import wait_after
from recede._steps import AsyncFunctionError, Call, Step

_log = logging.getLogger("recede")

_running: ContextVar[tuple[Asking, ...]] = ContextVar("recede_summarizers", default=())

_T = TypeVar("_T")

Steps = Generator[Step, Any, _T]
"""Work that yields a step for each summary that it needs, to be driven."""

_Bound = Callable[[Sequence[Any], Union[str, None]], Any]


ENDED = "two answers in a row were no summaries: this conversation gets none from now on, and is masked alone"


class Asking:
    """A summarizer, and what became of its calls.

    `instead` is what to do where an async one cannot be awaited; `plain` converts messages to dicts, for recede's
    own questions.
    """

    def __init__(self, summarizer: Any, instead: str, plain: Callable[[Any], dict[str, Any]] | None = None) -> None:
        self._function = bound("summarizer", summarizer)
        self._is_async, self._instead = is_async(summarizer), instead
        self._plain = plain
        self.error: Exception | None = None
        self.failures = 0

    def steps(self, items: Callable[[], list[Any]], previous: str | None) -> Steps[tuple[str, None] | bool]:
        """The summary as a core takes it; False if the summarizer has failed, or what it tells of cannot be read.

        True if the answer of a model was not finished or empty: two in a row end the calls for a conversation.

        Raises:
            TypeError: the summarizer is async, and the caller is not.
            RuntimeError: the summarizer asks for the view that it is asked for, which would ask it again.
        """
        running = _running.get()
        if self in running:
            raise RuntimeError("a summarizer must not ask for the view for which it is asked")
        from recede._question import UnfinishedError, reading  # lazily: it loads what few need

        token = _running.set((*running, self))
        is_read = reading.set(reading.get() if self._plain is None else self._plain)
        try:
            # One that is not async may take seconds, and the loop of an async caller has other work.
            answer = yield Call("the summarizer", self._function, (items(), previous), in_thread=not self._is_async)
            text = checked_text(answer)
        except Exception as error:
            if isinstance(error, AsyncFunctionError):
                if self._is_async:
                    raise TypeError(f"the summarizer is async: {self._instead}") from None
                error = TypeError("the summarizer is async, and this call is not")
            was_unfinished, is_unfinished = isinstance(self.error, UnfinishedError), isinstance(error, UnfinishedError)
            self.error = error
            self.failures += 1
            _log.warning("no summary: %s", error, exc_info=error if self.failures == 1 else None)
            if was_unfinished and is_unfinished:
                _log.warning("%s", ENDED)
            return is_unfinished
        finally:
            _running.reset(token)
            reading.reset(is_read)
        self.error = None
        return text, None


def bound(name: str, summarizer: Any) -> _Bound:
    """Wrap a summarizer as a function of the items and the previous summary; a TypeError if it can be called in no way.

    A callable goes before ``.generate``. What has no signature, such as a function of C, is called with both.
    """
    function = _function(summarizer)
    if function is None:
        raise TypeError(
            f"{name} must be callable as (turns, previous_summary) or (turns), or have .generate(prompt), not "
            f"{type(summarizer).__name__}; recede.summarizers makes one of a client, or without a model"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    if function is not summarizer:
        if signature is None or _takes(signature, 1):
            return lambda items, previous: function(_prompt(items, previous))
        raise TypeError(f"the .generate of {name} must take (prompt), not {signature}")
    if signature is None or _takes(signature, 2):
        return lambda items, previous: function(items, previous)
    if _takes(signature, 1):
        return lambda items, previous: function(items)
    raise TypeError(f"{name} must take (turns, previous_summary) or (turns), not {signature}")


def _prompt(items: Sequence[Any], previous: str | None) -> str:
    """The prompt for a ``.generate``, whose model is not known."""
    from recede._question import PROMPT, SUMMARY_TOKENS, question, room_for_question  # lazily: others write their own

    return f"{PROMPT}\n\n{question(items, previous, room_for_question('', SUMMARY_TOKENS, PROMPT))}"


def is_async(summarizer: Any) -> bool:
    """Whether a summarizer is known to be async before it is called."""
    function = _function(summarizer)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def text_of_summary(answer: Any) -> Any:
    return answer if isinstance(answer, str) else getattr(answer, "text", answer)


def checked_text(answer: Any) -> str:
    """Return the text of a summarizer's result; a TypeError or ValueError if it has none but white space."""
    text = text_of_summary(answer)
    if inspect.iscoroutine(text):
        text.close()
        raise TypeError("the summarizer is async, and this call is not")
    if not isinstance(text, str):
        raise TypeError(f"the summarizer must return a string, not {type(text).__name__}")
    if not text.strip():
        raise ValueError("the summarizer returned no text")
    return text


def _function(summarizer: Any) -> Any:
    """Find the function to call: the summarizer, or its ``.generate``; None if there is neither."""
    function = summarizer if callable(summarizer) else getattr(summarizer, "generate", None)
    return function if callable(function) else None


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


_MOST = 64
"""So many texts of each summarizer are remembered."""

_MOST_KEYS = 4 * _MOST
_TURN = 2  # messages, at least

_K = TypeVar("_K")
_V = TypeVar("_V")


class LastUsed(OrderedDict[_K, _V]):
    """A dict in which what was used last is last. Threads may share it: each step is one of the dict."""

    def use(self, key: _K) -> _V | None:
        """The value, if there is one."""
        value = self.pop(key, None)
        if value is not None:
            self[key] = value
        return value


class Texts(LastUsed[bytes, str]):
    """The texts that a summarizer gave last, by what they tell of: the hash of its JSON.

    A core finds one by the fingerprint of what it has read, which is another one for the same messages in JSON.
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[bytes, bytes] = {}  # by fingerprint
        self._failures: LastUsed[bytes, tuple[int, int, Exception]] = LastUsed()  # in a row, at so many messages

    def text_of(self, told: bytes) -> str | None:
        """The text of what has this fingerprint."""
        key = self._keys.get(told)
        return None if key is None else self.use(key)

    def key_of(self, told: bytes | None, messages: list[Any], previous: str | None) -> bytes | None:
        """The key of what is to be told; None if it is no JSON."""
        import hashlib  # lazily: mostly the fingerprint is known

        try:
            key = hashlib.sha256(json.dumps([messages, previous]).encode()).digest()
        except (TypeError, ValueError, RecursionError):
            return None
        if told is not None:
            if len(self._keys) > _MOST_KEYS:
                self._keys = {known: key for known, key in list(self._keys.items()) if key in self}
            self._keys[told] = key
        return key

    def remember(self, key: bytes, text: str) -> None:
        self[key] = text
        if len(self) > _MOST:
            self.popitem(last=False)
        self._failures.pop(key, None)

    def failure(self, key: bytes, messages: int) -> Exception | None:
        """The error of the last call, as long as a history of so many messages has to wait."""
        count, at, error = self._failures.use(key) or (0, 0, None)
        return error if messages - at < _TURN * wait_after(count) else None

    def fail(self, key: bytes, messages: int, error: Exception) -> None:
        """Remember a failure at a history of so many messages as a text is remembered."""
        count = (self._failures.pop(key, None) or (0,))[0] + 1
        self._failures[key] = count, messages, error.with_traceback(None)
        if len(self._failures) > _MOST:
            self._failures.popitem(last=False)


_known: dict[int, tuple[weakref.ref[Any], dict[Any, Texts]]] = {}
"""Of what each summarizer is or is bound to, by its id: whether it still lives, and the texts of its functions."""


def texts_of(summarizer: Any) -> Texts | None:
    """Find what a summarizer is not asked for again, as long as it lives; None if nothing can refer to it weakly."""
    if is_async(summarizer):
        raise TypeError("the summarizer is async, and reduce is not: give a sync one, or use a History and its aview")
    # A bound method is another object each time: what it is bound to lives, and its function says which it is.
    owner, function = getattr(summarizer, "__self__", summarizer), getattr(summarizer, "__func__", None)
    place = id(owner)
    known = _known.get(place)
    if known is None or known[0]() is not owner:
        try:
            known = weakref.ref(owner, lambda _: _known.pop(place, None)), {}
        except TypeError:
            return None
        _known[place] = known
    return known[1].setdefault(function, Texts())
