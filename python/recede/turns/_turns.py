"""The turns and summaries of a manager: a session of turns in the core, and their texts.

A store has every turn and summary, and a snapshot at every 256th turn, from which a manager resumes; then only the
texts of turns that can still change are in memory. docs/store-format.md describes the records.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from recede import _engine
from recede._errors import StoreError
from recede._strict import are_numbers, unique
from recede.turns._turn import Summary, Turn, messages_of, text_of

if TYPE_CHECKING:
    from recede.store._turn_store import TurnStore

__all__ = ["TurnSessionStats", "Turns"]

_BLOCK = 256  # turns between snapshots; at most this many settled turns are in memory
_CACHED_CHARS = 2 << 20  # of evicted turns, as a context shows them; longer texts are read from the store each time
_FORMAT = 1
_SUMMARY = {"end_turn", "made_at", "chars", "tokens", "masking_turns", "spent_tokens"}


class TurnSessionStats(NamedTuple):
    """The figures of a session of turns, as the core has them; the tokens of requests are sums."""

    summarized_turns: int
    masked_turns: int
    observation_tokens: int
    masked_tokens: int
    placeholder_tokens: int
    raw_tokens: int
    sent_tokens: int


class _Shown:
    """The turns in memory as contexts show them: so many items each, made once, and again when it is masked."""

    def __init__(self, make: Callable[[Turn, Any], list[Any]], width: int) -> None:
        self.make = make
        self.width = width
        self.items: list[Any] = []
        self.masked_count = 0


class Turns:
    """Every turn and summary of a manager, and their rendering in contexts."""

    _store: TurnStore | None
    _recent: list[Turn]  # the turns in memory
    _evicted_at: int | None = None  # number of turns at the last snapshot
    _last_summary: Summary | None = None  # the one in the context
    _summary_count = 0
    _masking_turns: int | None = None  # number of turns at the first summary
    _spent_tokens = 0  # tokens that summarizers read and wrote

    @property
    def _turns_before_summaries(self) -> int:
        return len(self) if self._masking_turns is None else self._masking_turns

    def _open(self, policy: Any, store: TurnStore | None, options: Mapping[str, Any]) -> None:
        """Begin a session, or resume that of a store; texts after its last snapshot are counted again."""
        if store is not None:
            from recede.store._turn_store import TurnStore  # imported lazily: an agent without a store does not need it

            if not isinstance(store, TurnStore):
                raise TypeError(f"store must be a TurnStore or None, not {type(store).__name__}")
        self._store = store
        self._session = _engine.engine.TurnSession(policy, None if store is None else store._store)
        self._options = json.loads(json.dumps({"recede_turns": _FORMAT, **options}))
        self._summaries: list[Summary] = []  # without a store
        self._recent = []
        self._forget_shown()
        if store is not None:
            self._resume(store)

    def __len__(self) -> int:
        turns: int = len(self._session)
        return turns

    # The store

    def _resume(self, store: TurnStore) -> None:
        if store.count_records("message"):
            raise ValueError(f"{store.path} holds the messages of a History: give the manager a store of its own")
        options = _engine.engine.stored_options(store._store)
        if options is not None:
            self._compare(store, options)
        evicted = self._session.open()
        if evicted is not None:
            self._evicted_at = len(self)
        elif store.count_records("session"):
            raise ValueError(f"{store.path} holds the session of no manager: give the manager a store of its own")
        waiting = self._take_summaries(store)
        self._summarize_again(waiting)
        for turn in self._stored(evicted or 0, len(store)):
            if turn.turn > len(self):
                self._evict()
                self._session.append(text_of(turn._replace(observation="")), turn.observation, self._tokens(turn))
                self._summarize_again(waiting)
            self._recent.append(turn)
        if self._session.stats().summarized_turns != self._end_turn:
            raise _damaged(store, "its last summary is of other turns than its snapshot says")
        self._session.new_moves()  # they were reported

    def _compare(self, store: TurnStore, options: bytes) -> None:
        try:
            stored = unique(options)
        except ValueError:
            stored = {}
        if "recede_turns" not in stored:
            raise ValueError(f"{store.path} holds the session of no manager: give the manager a store of its own")
        for name in dict.fromkeys([*stored, *self._options]):
            was, given = stored.get(name), self._options.get(name)
            if was != given:
                raise ValueError(
                    f"{store.path} was created with {name} {was!r}, and this manager has {given!r}: "
                    "give the same options, or another store"
                )

    def _take_summaries(self, store: TurnStore) -> list[dict[str, int]]:
        """Load the last summary; return the headers of those after the last snapshot, the newest first."""
        summarized = self._session.stats().summarized_turns
        waiting: list[dict[str, int]] = []
        self._summary_count = store.count_records("summary")
        if self._summary_count and "tail_window_m" not in self._options:
            raise _damaged(store, "it has summaries of a manager that makes none")
        for number in range(self._summary_count, 0, -1):
            head, content = _stored_summary(store, number)
            if number == self._summary_count:
                self._last_summary = Summary(head["end_turn"], content)
                self._masking_turns, self._spent_tokens = head["masking_turns"], head["spent_tokens"]
            if head["end_turn"] <= summarized:
                break
            waiting.append(head)
        return waiting

    def _summarize_again(self, waiting: list[dict[str, int]]) -> None:
        """Replay the summaries that were made at the current number of turns."""
        while waiting and waiting[-1]["made_at"] == len(self):
            head = waiting.pop()
            self._session.summarized(head["end_turn"], head["chars"], head["tokens"])

    def _evict(self) -> None:
        """Before the first turn and at the end of each block, store a snapshot and evict settled turns."""
        turns = len(self)
        if self._store is None or self._store.is_read_only or turns == self._evicted_at:
            return
        if self._evicted_at is None or turns % _BLOCK == 0:
            self._snapshot()

    def _snapshot(self) -> None:
        del self._recent[: self._session.evict(json.dumps(self._options).encode())]
        self._evicted_at = len(self)
        self._forget_shown()

    def _stored(self, start: int, end: int) -> Iterator[Turn]:
        """The turns of the store after the first `start`, up to and including `end`, unmasked."""
        if self._store is not None and start < end:
            for turn in self._store.turns(start + 1, end + 1):
                observation = self._store.recall(turn.turn_id) if turn.observation is None else turn.observation
                yield Turn(turn.turn_id, turn.reasoning, turn.action, observation, turn.timestamp or 0.0)

    # Turns

    def _tokens(self, turn: Turn) -> tuple[int, int, int] | None:
        """Tokens of a turn without its observation, of the observation, and of its placeholder; None to count words."""
        raise NotImplementedError

    def _append(self, turn: Turn, tokens: tuple[int, int, int] | None) -> None:
        """Add a turn, to the store first."""
        store = self._store
        if store is not None:
            if len(store) != len(self) and store.is_usable:
                raise RuntimeError(f"{store.path} has turns that this manager did not add: make it again")
            self._evict()
            store.append(turn.reasoning, turn.action, turn.observation, timestamp=turn.timestamp)
        self._session.append(text_of(turn._replace(observation="")), turn.observation, tokens)
        self._recent.append(turn)

    @property
    def _evicted(self) -> int:
        return len(self) - len(self._recent)

    def _turns(self, start: int, end: int) -> list[Turn]:
        """The turns after the first `start`, up to and including `end`."""
        evicted = self._evicted
        recent = self._recent[max(0, start - evicted) : max(0, end - evicted)]
        return [*self._stored(start, end - len(recent)), *recent]

    # Contexts

    def _forget_shown(self) -> None:
        self._texts, self._chat = _Shown(lambda turn, _: [text_of(turn)], 1), _Shown(messages_of, 2)
        self._older_text: tuple[int, str] | None = None  # of evicted turns, after this many

    def _shown(self, form: _Shown, start: int) -> list[Any]:
        """The items of the turns in memory after the first `start`, as the next context shows them."""
        evicted, width = self._evicted, form.width
        for turn in self._recent[len(form.items) // width :]:
            form.items += form.make(turn, None)
        for number, placeholder in self._session.masked_turns(form.masked_count):
            place = number - evicted - 1
            turn = self._recent[place]._replace(observation=placeholder)
            items = slice(width * place, width * (place + 1))
            form.items[items] = form.make(turn, form.items[items])
            form.masked_count += 1
        return form.items[width * max(0, start - evicted) :]

    def _shown_evicted(self, start: int) -> Iterator[Turn]:
        """The evicted turns after the first `start`, as contexts show them."""
        evicted = self._evicted
        for first in range(start, evicted, _BLOCK):
            yield from self._session.shown_turns(first, min(first + _BLOCK, evicted))

    def _context(self, before: str) -> str:
        """The context of the next request, after the text that precedes its turns."""
        start = self._end_turn
        if self._older_text is None or self._older_text[0] != start:
            self._older_text = start, "".join(map(text_of, self._shown_evicted(start)))
        older = self._older_text[1]
        if len(older) > _CACHED_CHARS:
            self._older_text = None
        return "".join([before, older, *self._shown(self._texts, start)])

    def _messages(self, start: int) -> list[dict[str, str]]:
        """The turns after the first `start` as chat messages: the same objects while unchanged and in memory."""
        evicted = [message for turn in self._shown_evicted(start) for message in messages_of(turn)]
        return evicted + self._shown(self._chat, start)

    # Summaries

    @property
    def _end_turn(self) -> int:
        return self._last_summary.end_turn if self._last_summary else 0

    def _summary_failed(self) -> None:
        """Record a failed summary, so that it is retried later, also after a restart."""
        self._session.summarized()
        if self._store is not None and not self._store.is_read_only:
            with contextlib.suppress(StoreError):  # losing this record costs one call after a restart
                self._snapshot()

    def _replace_by(self, summary: Summary, chars: int, tokens: int, spent_tokens: int) -> None:
        """Replace the turns up to its last one by a summary of this many characters and tokens."""
        masking_turns = self._turns_before_summaries
        spent_tokens += self._spent_tokens
        if self._store is None:
            self._summaries.append(summary)
        else:
            head = {"end_turn": summary.end_turn, "made_at": len(self), "chars": chars, "tokens": tokens}
            head |= {"masking_turns": masking_turns, "spent_tokens": spent_tokens}
            fields = [json.dumps(head).encode(), summary.content.encode("utf-8", "surrogatepass")]
            self._store.append_record("summary", fields)
        self._session.summarized(summary.end_turn, chars, tokens)
        self._last_summary, self._masking_turns, self._spent_tokens = summary, masking_turns, spent_tokens
        self._summary_count += 1

    def _all_summaries(self) -> list[Summary]:
        store = self._store
        if store is None:
            return self._summaries.copy()
        summaries = (_stored_summary(store, number) for number in range(1, self._summary_count + 1))
        return [Summary(head["end_turn"], content) for head, content in summaries]


def _stored_summary(store: TurnStore, number: int) -> tuple[dict[str, int], str]:
    """Parse and validate a summary record of a store: its numbers and its text."""
    fields = store.record("summary", number)
    try:
        text, content = fields
        head = unique(text)
        if head.keys() != _SUMMARY or not are_numbers(head.values()):
            raise ValueError("a number out of range")
        if 0 < head["end_turn"] <= head["made_at"] <= len(store):
            return head, content.decode("utf-8", "surrogatepass")
    except ValueError:
        pass
    raise _damaged(store, f"summary {number} in it is invalid")


def _damaged(store: TurnStore, what: str) -> StoreError:
    return StoreError("damaged", path=store.path, what=what)
