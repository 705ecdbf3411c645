"""The state of a `History`: a session of the core, and the objects and functions of the caller."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from recede import _engine
from recede._bodies import loads
from recede._errors import StoreError, TranscriptError
from recede._steps import drive
from recede._summarizer import Asking, Steps
from recede.reduction._counting import LEAST, OVER_LIMIT, costs_of, counted, cut_costs
from recede.reduction._exchange import CountRequest
from recede.reduction._kinds import CHARS_PER_TOKEN
from recede.reduction._masks import report_move
from recede.reduction._unrecognized import RequestsWithoutResults, warn_of_unnamed_model
from recede.session._known import NEWEST, DictComparison, KnownMessages
from recede.session._messages import CurrentView, Messages, serialized
from recede.session._options import HistoryOptions, refuse_other_stores
from recede.session._stats import Reports, stats_of

if TYPE_CHECKING:
    from recede._report import BoundaryMove
    from recede.session._options import HistoryOptions
    from recede.store._turn_store import TurnStore


_log = logging.getLogger("recede")


_AWAIT = "await history.aview() before each request"


class Callbacks:
    """The functions, and what became of the calls."""

    def __init__(self, options: HistoryOptions, on_move: Any) -> None:
        self._options = options
        self._on_move = on_move
        self.is_loading = False  # the moves up to the next view were reported before the session was stored
        self.is_running = False  # one of them, or a summary is awaited
        self._said = ""
        self.asking = None if options.summarizer is None else Asking(options.summarizer, _AWAIT)

    @property
    def summary_failures(self) -> int:
        return 0 if self.asking is None else self.asking.failures

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.is_running = True
        try:
            return function(*arguments)
        finally:
            self.is_running = False

    def refuse(self) -> None:
        """Refuse what they may not do. They run in the thread that holds the lock, which is reentrant."""
        if self.is_running:
            raise RuntimeError(
                "the token_counter or the summarizer of this history is at work: until it returns, messages may be "
                "read, but none appended, and no view or figures asked for"
            )

    def costs(self, session: Any, data: bytes, surrogates: bool) -> tuple[Any, Any]:
        """The costs of a message to be appended, if tokens are counted, and of its results as a limit cuts them."""
        if not self._options.counts:
            return None, None
        sent = session.texts_to_count(data, surrogates)  # validates them for json
        engine = _engine.engine
        # Whole: whether a result is exempt from cuts, the session knows, which has its call.
        (own,) = engine.texts([loads(data)], self._options.policy, whole=True)
        shown = [
            one._replace(text=one.text if cut is None else cut, masked=masked)
            for one, (cut, masked) in zip(own.observations, sent, strict=True)
        ]
        texts = [own._replace(observations=shown)]
        (cost,), observations = self._called(costs_of, texts, self._options.counter, self._options.image_chars)
        return (cost, observations), [*self._called(cut_costs, [own], self._options.counter).items()]

    def report_moves(self, moves: list[BoundaryMove]) -> None:
        if not self.is_loading:
            for move in moves:
                self._called(report_move, move, self._on_move)

    def report_view(self, session: Any) -> None:
        """Say in the debug log what the view masks, or why it masks nothing, if that is new."""
        if _log.isEnabledFor(logging.DEBUG):
            said = stats_of(session, self.summary_failures).reason
            if said != self._said:
                _log.debug("a view: %s", said)
            self._said = said

    def counted(self, texts: list[str]) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = self._called(counted, texts, self._options.counter)
        return found


_MESSAGE = 2  # kind of record
_BATCH = 64  # records per read


class LiveSession:
    """The steps of a session; its caller holds the lock."""

    def __init__(self, options: HistoryOptions, store: TurnStore | None, on_move: Any) -> None:
        if store is not None:
            refuse_other_stores(store)
            options = options.as_stored(_engine.engine.stored_options(store._store))
        self.options = options
        self.store = store
        self.callbacks = Callbacks(options, on_move)
        self.messages = Messages()
        self.view = CurrentView()
        self.reports = Reports()
        self.viewed: int | None = None  # of how many messages the view is
        self._known: KnownMessages | None = None  # what `sync` was given last
        self._own_mark: tuple[bytes, int] | None = None
        self._without_results = RequestsWithoutResults()
        self._was_over = False  # which is said once
        self._unread: Any = None  # a store whose messages must be appended to the session again
        self.core = _engine.engine.Session(
            options.policy,
            raw_cost_at_most=CHARS_PER_TOKEN * min(options.threshold_tokens, 1 << 40),
            calibrates=options.calibrates,
            store=None if store is None else store._store,
        )

    def prepare(self) -> None:
        """Prepare a change: refuse one by a callback, and complete a rebuild that was interrupted."""
        self.callbacks.refuse()
        self._complete()

    def _complete(self) -> None:
        if self._unread is not None:
            self._append_unread()

    # Messages

    def append(self, data: bytes, surrogates: bool, message: Any = None, has_objects: bool = False) -> None:
        """Append a message, and keep its object if there is one."""
        self.prepare()
        core, index = self.core, len(self.core)
        moves: list[BoundaryMove] = []
        try:
            moves = core.append(data, surrogates, *self.callbacks.costs(core, data, surrogates))
        finally:  # also if only the write to the store failed
            if message is not None and len(core) > index:
                self.messages.add(index, message, has_objects)
        self.callbacks.report_moves(moves)

    def append_object(self, message: Any) -> None:
        """Append a message that is an object: by what the core finds in it, or by its text where that is needed."""
        self.prepare()
        moves = None if self.options.counts else self.core.append_dict(message)
        if moves is None:
            data, surrogates, has_objects = serialized(message)
            self.append(data, surrogates, message, has_objects)
        else:
            self.messages.add(len(self.core) - 1, message, False)
            self.callbacks.report_moves(moves)

    def take_model(self, model: Any) -> None:
        """Take the facts of the model that a response names; after a move only that it verifies its reasoning."""
        options = self.options.for_model(model)
        if options is not None and self._take_options(options, keeps_prices=False):
            return
        later = self.options.verifying(model, lambda: stats_of(self.core, 0).provider)
        if later is not None:
            self._take_options(later, keeps_prices=True)

    def _take_options(self, options: HistoryOptions, *, keeps_prices: bool) -> bool:
        self.prepare()
        is_taken: bool = self.core.take_terms(options.policy, keeps_prices, options.tag())
        if is_taken:
            self.options = options
        return is_taken

    def message(self, index: int) -> Any:
        return self.messages.at(self.core, index)

    def sync(self, messages: list[Any]) -> int:
        """Make these the messages; returns how many of the first ones were known."""
        self.prepare()
        known, self._known = self._known, None
        if known is None or len(known.messages) != len(self.core):  # others were appended: compare all
            known = KnownMessages(DictComparison())
            known.take(list(map(self.message, range(len(self.core)))), 0, [])
        before = known.messages
        same, marked = known.prefix(messages)
        if same < len(self.core):
            self.rewind(same)
        own = {id(old): new for old, new in zip(before[:same], messages, strict=False) if old is not new}
        if own:
            self.messages.replace(messages[:same])
            self.view.replace(own)
        known.take(messages[:same], same, marked)
        for message in messages[same:]:
            self.append_object(message)
        known.take(messages, same, marked)
        self._known = known
        return same

    def rewind(self, messages: int) -> None:
        self.prepare()
        before = len(self.core)
        self._known = self.viewed = None
        if messages > before:
            raise ValueError(f"messages must be at most {before}, which is how many there are, not {messages}")
        self.core.rewind(messages)
        self.messages.rewind(messages)
        self.reports.forget()

    # The view

    def update_view(self) -> None:
        """Make the view current, with a summary if one is needed, and report its moves."""
        drive(self.planning())

    def planning(self) -> Steps[None]:
        """The same, as steps. Between them the history refuses to be changed."""
        self.prepare()
        self.callbacks.report_moves(moves := (yield from self._plan_view()))
        if moves and self.options.given.get("provider", "auto") == "auto":
            newest = [*map(self.message, range(max(0, len(self.core) - NEWEST), len(self.core)))]
            warn_of_unnamed_model(newest)
        self._without_results.read(self.core.is_unrecognized(), lambda: [*map(self.message, range(len(self.core)))])
        self._without_results.note(self.core.__len__, self.core.has_results)
        if not self._was_over and not self.core.is_within_limit():
            self._was_over = True
            _log.warning("%s", OVER_LIMIT.format(LEAST))
        self.callbacks.is_loading = False
        self.viewed = len(self.core)
        self.callbacks.report_view(self.core)

    def _plan_view(self) -> Steps[list[BoundaryMove]]:
        """Make the view current; returns the new moves."""
        summary: Any = None
        texts: list[tuple[str, int]] | None = None
        while not isinstance(asked := self.core.update_view(summary, texts, mark=self._own_mark), list):
            if isinstance(asked, CountRequest):
                try:
                    texts = self.callbacks.counted(asked.texts)
                except Exception:
                    if summary is not None:  # do not pay for the same one twice
                        self.core.update_view(False)
                    raise
            else:
                asking = self.callbacks.asking
                assert asking is not None, "a core asks only where there is a summarizer"
                self.callbacks.is_running = True
                try:
                    summary = yield from asking.steps(partial(_objects, asked.dropped), asked.previous)
                finally:
                    self.callbacks.is_running = False
        return asked

    def mark_newest(self, mark: tuple[bytes, int]) -> None:
        """Mark the last block of each view, with this many marks elsewhere in its request."""
        self.callbacks.refuse()
        self._own_mark = mark

    # Stored sessions

    def save(self, messages: int | None = None) -> bytes:
        """The session of the first messages, or of all, as the bytes of a closed store."""
        self._complete()
        return self.core.save(self.options.tag(), len(self.core) if messages is None else messages)

    def open(self, source: Any = None) -> None:
        """Continue the session of its store, or that of another store in memory."""
        if source is None and self.store is not None:
            self._unread = self.store._store
            self.core.open(self.options.tag())
        else:
            self._unread = source
            self.core.open(source=source)
        self._append_unread()

    def _append_unread(self) -> None:
        """Append the messages of a store that the session does not have yet."""
        source, self._unread = self._unread, None
        try:
            start, end, left = len(self.core), source.count(_MESSAGE), source.max_bytes()
            if end:
                self.callbacks.is_loading = True
            for first in range(start, end, _BATCH):
                for *_, message in source.records(_MESSAGE, first + 1, min(_BATCH, end - first)):
                    left -= len(message)
                    if left < 0:  # a damaged store may refer to one long text many times
                        raise TranscriptError("session", field="messages")
                    self.append(message, True)
        except BaseException:
            self._unread = source
            raise


def _objects(messages: list[bytes]) -> list[Any]:
    """Messages that a summary tells of; JSON that Python cannot read fails it."""
    return list(map(loads, messages))


def session_in(data: bytes, path: str) -> Any:
    """The store that a file has the bytes of, for `LiveSession.open`."""
    try:
        return _engine.engine.Store.of_bytes(data, path)
    except StoreError as error:
        if error.kind != "foreign":
            raise
        raise TranscriptError("session") from None
