"""The conversations that a `Masker` remembers: how it finds that of a list of messages, and brings it up to date."""

from __future__ import annotations

import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from recede import _engine
from recede._bodies import MOST_REFUSALS
from recede._forks import lock_of
from recede.masker._conversation import KnownConversation
from recede.providers import checked_provider, with_rule
from recede.reduction._input import not_a_list
from recede.reduction._share import has_limits
from recede.session._known import NEWEST, KnownMessages

if TYPE_CHECKING:
    from recede.masker._facts import AdapterReader, DictReader
    from recede.providers import Provider


_log = logging.getLogger("recede")


class MaskerStats(NamedTuple):
    """Figures of the calls of a `Masker`; no answer depends on them.

    Attributes:
        conversations: how many it remembers.
        continued: calls whose list began with a whole conversation that it remembered.
        rewound: calls whose list departed from one within its newest messages.
        forked: calls whose list departed from one before them, of which a copy was made.
        begun: calls with a list that was not known.
        evicted: conversations that it forgot, since there were more than `most`, or they took more than `max_bytes`.

    Example:
        >>> import recede
        >>> masker = recede.masker.Masker()
        >>> messages = [{"role": "user", "content": "Find the bug."}]
        >>> masker.view(messages) == masker.view(messages) == messages
        True
        >>> masker.stats()
        MaskerStats(conversations=1, continued=1, rewound=0, forked=0, begun=1, evicted=0)
    """

    conversations: int = 0
    continued: int = 0
    rewound: int = 0
    forked: int = 0
    begun: int = 0
    evicted: int = 0


class Remembered:
    """A number of conversations, and of bytes; of more, those used longest ago are evicted."""

    def __init__(self, most: int, max_bytes: int) -> None:
        self._most, self._max_bytes = most, max_bytes
        self._bytes = 0
        self._conversations: OrderedDict[KnownConversation, None] = OrderedDict()  # the one used last is at the end
        self._by_key: dict[Hashable, list[KnownConversation]] = {}
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._conversations)

    def newest_first(self) -> Iterator[KnownConversation]:
        return reversed(self._conversations)

    def of_key(self, key: Hashable) -> Iterator[KnownConversation]:
        """The conversations of a key, the one added last first."""
        return reversed(self._by_key.get(key, ()))

    def use(self, conversation: KnownConversation) -> None:
        self._conversations.move_to_end(conversation)

    def add(self, conversation: KnownConversation) -> KnownConversation:
        self._conversations[conversation] = None
        self._by_key.setdefault(conversation.key, []).append(conversation)
        self._bytes += conversation.bytes
        if len(self) > self._most:
            self._evict()
        return conversation

    def grow(self, added_bytes: int) -> None:
        """The one used last has grown by these bytes."""
        self._bytes += added_bytes
        while self._bytes > self._max_bytes and len(self) > 1:
            self._evict()

    def forget(self, conversation: KnownConversation) -> None:
        del self._conversations[conversation]
        self._bytes -= conversation.bytes
        alike = self._by_key[conversation.key]
        alike.remove(conversation)
        if not alike:
            del self._by_key[conversation.key]

    def _evict(self) -> None:
        if self.evicted == 0:
            _log.warning(
                "there are more conversations than most=%d or max_bytes=%d allows: those used longest ago are "
                "forgotten, and read from the start when they come again",
                self._most,
                self._max_bytes,
            )
        self.forget(next(iter(self._conversations)))
        self.evicted += 1


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
        reader: AdapterReader | DictReader,
        compiled: Callable[..., Any],
        options: Mapping[str, Any],
        most: tuple[int, int],
        check: bool,
        recalls: bool,
        calibrates: bool,
    ) -> None:
        self._reader, self._compiled, self._options = reader, compiled, options
        self._counter, self._has_limits = options.get("token_counter"), has_limits(options)
        self._most, self._check, self._recalls, self._calibrates = most, check, recalls, calibrates
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
        if_served: Provider | None = None,
        around: bytes | None = None,
        limits: Mapping[str, Any] | None = None,
        *,
        is_sent: bool = False,
    ) -> KnownConversation:
        """The conversation of these messages, brought up to date; where nothing is around them, as in its last view.

        `limits` are those of the request, where the options name a share of a window.
        """
        if not isinstance(messages, (list, tuple)):
            raise not_a_list(messages)
        given = list(messages)
        if not given:
            return self._new(None, provider, static or 0, limits=limits)  # nothing to remember
        conversation, same, marked = self._found(given, provider, limits)
        if if_served is not None and conversation.is_served(len(given)):
            provider = if_served
        options = conversation.options
        # It was counted before its first request, or had no cache until now.
        if provider is not None and (
            not conversation.has_provider or (provider.cache != "none" and options["provider"].cache == "none")
        ):
            options = {**self._options, "provider": provider}
            if conversation.uncached:
                options.setdefault("cold", conversation.uncached)  # so that the boundary stays
        elif provider is not None and (later := with_rule(options["provider"], provider)) is not None:
            options = {**options, "provider": later}
        if limits is not None and not limits.items() <= options.items():
            options = {**options, **limits}
        static = conversation.static if static is None else static
        # No earlier reasoning is bound to another system prompt, or other tools.
        is_void = around is not None and conversation.around not in (None, around)
        if is_void or options is not conversation.options or static != conversation.static:  # nothing is cached of it
            conversation = self._again(conversation, same, options, static, is_void=is_void)
            same, marked = 0, []
        conversation.around = around or conversation.around
        try:
            added = conversation.sync(given, same, marked, (*summary, is_sent))
        except BaseException:
            self._remembered.forget(conversation)
            raise
        self._remembered.grow(added)
        self._of_thread.last = weakref.ref(conversation)  # what is forgotten takes no memory
        return conversation

    def _leave_out_reasoning(self, messages: list[_M]) -> bool:
        """Leave out the reasoning of these messages, which was refused; at the second time that of later ones, too.

        Returns whether there may be something to leave out.
        """
        conversation = self._synced(messages)
        if conversation.refusals == MOST_REFUSALS:
            return False
        provider = checked_provider("provider", conversation.options.get("provider", "auto"))
        conversation = self._synced(messages, provider._replace(verifies_reasoning=True))
        conversation.refusals += 1
        conversation.session.leave_out_reasoning(conversation.refusals == MOST_REFUSALS)
        return True

    def _has(self, conversation: KnownConversation, messages: list[_M]) -> bool:
        """Whether these are the objects of its last call, so that nothing needs to be compared."""
        known = conversation.known.messages
        if len(known) != len(messages):
            return False
        given = messages if isinstance(messages, list) else list(messages)
        identical, _ = _engine.engine.common_prefix(known, given, lambda old, new: False)
        return bool(identical == len(known))

    def _found(
        self, messages: list[_M], provider: Provider | None, limits: Mapping[str, Any] | None
    ) -> tuple[KnownConversation, int, list[int]]:
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
            return self._remembered.add(self._new(key, provider, limits=limits)), 0, []
        has_masks = len(best.masks) > 0 and best.masks[-1].message_index >= same
        if len(best.known.messages) - same > NEWEST or (self._recalls and has_masks):
            self._calls["forked"] += 1
            return self._remembered.add(best.fork(key)), same, marked
        self._remembered.use(best)
        self._calls["continued" if same == len(best.known.messages) else "rewound"] += 1
        return best, same, marked

    def _again(
        self, known: KnownConversation, same: int, options: Mapping[str, Any], static: int, *, is_void: bool = False
    ) -> KnownConversation:
        """Begin a known conversation anew with other options, of which so many messages are the same.

        If `is_void`, no reasoning so far is sent again.
        """
        self._remembered.forget(known)
        new = self._new(known.key, None, static, options)
        new.session.take_sent(known.session, same, is_void)
        new.uncached, new.served_at, new.around_chars = known.uncached, known.served_at, known.around_chars
        new.around, new.refusals, new.sums = known.around, known.refusals, known.sums
        return self._remembered.add(new)

    def _new(
        self,
        key: Hashable,
        provider: Provider | None,
        static: int = 0,
        options: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> KnownConversation:
        has_provider = provider is not None or (options is not None and options is not self._options)
        if options is None:
            options = self._options if provider is None else {**self._options, "provider": provider}
            options = options if limits is None else {**options, **limits}
        policy = self._compiled(options, static=static)
        session = _engine.engine.FactsSession(policy, calibrates=self._calibrates)
        known = KnownMessages(self._reader, check=self._check)
        new = KnownConversation(self._reader, session, key, known, options=options)
        new.has_provider, new.static = has_provider, static
        if self._counter is not None and self._has_limits:
            new.counts, new.counter = partial(self._reader.costs, policy, self._counter), self._counter
        return new
