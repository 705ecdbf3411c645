"""How a `Masker` finds the conversation of the messages that it is given, and brings it up to date."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from recede._errors import TranscriptError
from recede._forks import lock_of
from recede.masker._conversation import KnownConversation
from recede.masker._remembered import Remembered
from recede.reduction._static import has_limits
from recede.session._known import NEWEST, KnownMessages

if TYPE_CHECKING:
    from recede.masker._readers import AdapterReader, DictReader
    from recede.providers import Provider

_M = TypeVar("_M")


class _Alone:
    """A lock that refuses an adapter that calls the masker meanwhile."""

    def __init__(self) -> None:
        lock = threading.RLock()
        self.acquire, self.release = lock.acquire, lock.release
        self._is_busy = False

    def __enter__(self) -> None:
        self.acquire()
        if self._is_busy:
            self.release()
            raise RuntimeError("the methods of an adapter must not call the Masker that calls them")
        self._is_busy = True

    def __exit__(self, *failure: object) -> None:
        self._is_busy = False
        self.release()


class ConversationFinder(Generic[_M]):
    """The part of a `Masker` that knows its conversations."""

    def __init__(
        self,
        core: Any,
        reader: AdapterReader | DictReader,
        compiled: Callable[..., Any],
        options: Mapping[str, Any],
        most: tuple[int, int],
        check: bool,
        recalls: bool,
    ) -> None:
        self._core, self._reader, self._compiled, self._options = core, reader, compiled, options
        self._counter, self._has_limits = options.get("token_counter"), has_limits(options)
        self._most, self._check, self._recalls = most, check, recalls
        self._forget_all()
        self._calls = dict.fromkeys(("continued", "rewound", "forked", "begun"), 0)  # of `MaskerStats`
        self._lock: Any = lock_of(self, _Alone)

    def _forget_all(self) -> None:
        self._remembered, self._of_thread = Remembered(*self._most), threading.local()

    def _after_fork(self, *, was_changing: bool) -> None:
        """Forget, in a child, what a thread of the parent was changing: it only saves time."""
        if was_changing:
            self._forget_all()

    def _synced(
        self,
        messages: list[_M],
        provider: Provider | None = None,
        static: int | None = None,
        summary: tuple[Any, int] = (None, 0),
    ) -> KnownConversation:
        """The conversation of these messages, brought up to date; where nothing is around them, as in its last view."""
        if not isinstance(messages, (list, tuple)):
            raise TranscriptError("history")
        given = list(messages)
        if not given:
            return self._new(None, provider, static or 0)  # nothing to remember
        conversation, same, marked = self._found(given, provider)
        # It was counted before its first request, or had no marks until now, and so no cache.
        if provider is not None and (
            not conversation.has_provider
            or (provider.cache != "none" and conversation.options["provider"].cache == "none")
        ):
            self._remembered.forget(conversation)
            static = conversation.static if static is None else static
            conversation, same, marked = self._remembered.add(self._new(conversation.key, provider, static)), 0, []
        elif static is not None and static != conversation.static:  # another prompt: nothing is cached of this one
            self._remembered.forget(conversation)
            new = self._new(conversation.key, provider, static, conversation.options)
            conversation, same, marked = self._remembered.add(new), 0, []
        try:
            added = conversation.sync(given, same, marked, summary)
        except BaseException:
            self._remembered.forget(conversation)
            raise
        self._remembered.grow(added)
        self._of_thread.last = weakref.ref(conversation)  # what is forgotten takes no memory
        return conversation

    def _has(self, conversation: KnownConversation, messages: list[_M]) -> bool:
        """Whether these are the objects of its last call, so that nothing needs to be compared."""
        known = conversation.known.messages
        if len(known) != len(messages):
            return False
        given = messages if isinstance(messages, list) else list(messages)
        identical, _ = self._core.common_prefix(known, given, lambda old, new: False)
        return bool(identical == len(known))

    def _found(self, messages: list[_M], provider: Provider | None) -> tuple[KnownConversation, int, list[int]]:
        """The conversation to continue, how many of the messages it knows, and which of these differ in cache marks."""
        for last in islice(self._remembered.newest_first(), 1):
            same, marked = last.known.prefix(messages)
            if same == len(last.known.messages) > 0:
                self._calls["continued"] += 1
                return last, same, marked
        key = self._reader.key(messages)
        found = [(one, *one.known.prefix(messages)) for one in self._remembered.of_key(key)]
        # What has changed in place for one of them has changed for those, too, that do not look.
        changed = sorted(same for one, same, _ in found if one.known.changed_in_place(same, messages))
        for number, (one, same, marked) in enumerate(found):
            same = min(same, next((place for place in changed if one.known.trusts(place, messages)), same))
            found[number] = (one, same, [place for place in marked if place < same])
        best, same, marked = max(found, key=lambda one: one[1], default=(None, 0, []))
        if best is None or same == 0:
            self._calls["begun"] += 1
            return self._remembered.add(self._new(key, provider)), 0, []
        has_masks = len(best.masks) > 0 and best.masks[-1].message_index >= same
        if len(best.known.messages) - same > NEWEST or (self._recalls and has_masks):
            self._calls["forked"] += 1
            return self._remembered.add(best.fork(key)), same, marked
        self._remembered.use(best)
        self._calls["continued" if same == len(best.known.messages) else "rewound"] += 1
        return best, same, marked

    def _new(
        self, key: Hashable, provider: Provider | None, static: int = 0, options: Mapping[str, Any] | None = None
    ) -> KnownConversation:
        has_provider = provider is not None or (options is not None and options is not self._options)
        if options is None:
            options = self._options if provider is None else {**self._options, "provider": provider}
        policy = self._compiled(options, static=static)
        session = self._core.FactsSession(policy)
        known = KnownMessages(self._reader, check=self._check)
        new = KnownConversation(self._reader, session, key, known, options=options)
        new.has_provider, new.static = has_provider, static
        if self._counter is not None and self._has_limits:
            new.counts, new.counter = partial(self._reader.costs, policy, self._counter), self._counter
        return new
