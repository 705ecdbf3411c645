"""The turns and summaries of a manager: a session of turns; with a store, only what can still change is in memory.

The store has every turn and summary, and a snapshot at every 256th turn, from which a manager resumes.
docs/store-format.md describes the records.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from recede import _engine
from recede._errors import StoreError
from recede._strict import are_numbers, unique
from recede.reduction._on_move import report_move
from recede.turns._turn import Summary, Turn

if TYPE_CHECKING:
    from typing import TypeAlias

    from recede._report import BoundaryMove
    from recede.store._turn_store import TurnStore
    from recede.turns._report import TurnTokens

__all__ = ["Turns"]

_Tokens: TypeAlias = "Callable[[str, str, str], tuple[int, int, int] | None]"

_BLOCK = 256  # turns between snapshots; at most this many settled turns are in memory
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


class Turns:
    """Every turn and summary of a manager, and their rendering in contexts."""

    def __init__(self, policy: Any, store: TurnStore | None, options: Mapping[str, Any]) -> None:
        if store is not None:
            from recede.store._turn_store import TurnStore  # imported lazily: an agent without a store does not need it

            if not isinstance(store, TurnStore):
                raise TypeError(f"store must be a TurnStore or None, not {type(store).__name__}")
        self._store = store
        self._session = _engine.engine.TurnSession(policy, None if store is None else store._store)
        self._options = json.loads(json.dumps({"recede_turns": _FORMAT, **options}))
        self._evicted_at: int | None = None  # number of turns at the last snapshot
        self._chunks: list[str] = []  # the context as last rendered
        self._chat: list[dict[str, str]] = []  # two messages per turn, as last rendered; without a store
        self._masked = 0  # masked turns in them
        self._last_move: BoundaryMove | None = None  # the last that was reported
        self._summaries: list[Summary] = []  # without a store
        self.summary: Summary | None = None  # the one in the context
        self.summary_count = 0
        self.masking_turns: int | None = None  # number of turns at the first summary
        self.spent_tokens = 0  # tokens that summarizers read and wrote

    def __len__(self) -> int:
        turns: int = len(self._session)
        return turns

    # Resuming

    def resume(self, tokens: _Tokens) -> None:
        """Resume from the store; texts after its last snapshot are counted again."""
        if self._store is None:
            return
        if self._store.count_records("message"):
            raise ValueError(f"{self._store.path} holds the messages of a History: give the manager a store of its own")
        store, options = self._store, _engine.engine.stored_options(self._store._store)
        if options is not None:
            self._compare(store, options)
        if self._session.open():
            self._evicted_at = len(self)
        elif store.count_records("session"):
            raise ValueError(f"{store.path} holds the session of no manager: give the manager a store of its own")
        waiting = self._take_summaries(store)
        self._summarize_again(waiting)
        for turn in self._read(len(self), len(store)):
            self._evict()
            texts = turn.reasoning, turn.action, turn.observation
            self._session.append(*texts, turn.timestamp, tokens(*texts))
            self._summarize_again(waiting)
        if self._session.stats().summarized_turns != (self.summary.end_turn if self.summary else 0):
            raise _damaged(store, "its last summary is of other turns than its snapshot says")
        self._new_moves()  # they were reported of

    def _summarize_again(self, waiting: list[dict[str, int]]) -> None:
        """Replay the summaries that were made at the current number of turns."""
        while waiting and waiting[-1]["made_at"] == len(self):
            head = waiting.pop()
            self._session.summarized(head["end_turn"], head["chars"], head["tokens"])

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
        self.summary_count = store.count_records("summary")
        if self.summary_count and "tail_window_m" not in self._options:
            raise _damaged(store, "it has summaries of a manager that makes none")
        for number in range(self.summary_count, 0, -1):
            head, content = _summary(store, number)
            if number == self.summary_count:
                self.summary = Summary(head["end_turn"], content)
                self.masking_turns, self.spent_tokens = head["masking_turns"], head["spent_tokens"]
            if head["end_turn"] <= summarized:
                break
            waiting.append(head)
        return waiting

    # Turns

    def add(self, reasoning: str, action: str, observation: str, tokens: tuple[int, int, int] | None) -> int:
        """Add a turn, to the store first, and return its number. Its tokens are words unless given."""
        now = time.time()
        if self._store is not None:
            if len(self._store) != len(self) and self._store.is_usable:
                raise RuntimeError(f"{self._store.path} has turns that this manager did not add: make it again")
            self._evict()
            self._store.append(reasoning, action, observation, timestamp=now)
        number: int = self._session.append(reasoning, action, observation, now, tokens)
        return number

    def _evict(self) -> None:
        """Before the first turn and at the end of each block, store a snapshot and evict settled turns."""
        turns = len(self)
        if self._store is None or self._store.is_read_only or turns == self._evicted_at:
            return
        if self._evicted_at is None or turns % _BLOCK == 0:
            self._snapshot()

    def _snapshot(self) -> None:
        self._session.evict(json.dumps(self._options).encode())
        self._chunks, self._evicted_at = [], len(self)

    def masked_text(self, observation: str) -> str | None:
        """The placeholder for this observation as the next turn; None if it would stay raw."""
        text: str | None = self._session.masked_text(observation)
        return text

    def turns(self, start: int, end: int) -> list[Turn]:
        """The turns after the first `start`, up to and including `end`."""
        return list(self._read(start, end))

    def _read(self, start: int, end: int) -> Iterator[Turn]:
        if self._store is not None:
            for turn in self._store.turns(start + 1, end + 1):
                observation = self.recall(turn.turn_id) if turn.observation is None else turn.observation
                yield Turn(turn.turn_id, turn.reasoning, turn.action, observation, turn.timestamp or 0.0)
            return
        for number in range(start + 1, end + 1):
            yield self._session.turn(number)

    def recall(self, turn: int) -> str:
        """The observation of an existing turn."""
        if self._store is not None:
            return self._store.recall(turn)
        observation: str = self._session.turn(turn).observation
        return observation

    # Contexts

    def report_moves(self, on_move: Callable[[BoundaryMove], Any] | None) -> None:
        """Report the moves of the boundary since this was called last, up to the last request that was made."""
        for move in self._new_moves():
            report_move(move, on_move)

    def _new_moves(self) -> list[BoundaryMove]:
        moves: list[BoundaryMove] = self._session.moves()
        last = self._last_move
        if last in moves:  # a summary and the next request may have moved it at the same number
            moves = moves[moves.index(last) + 1 :]
        elif last is not None:
            moves = [move for move in moves if move.request > last.request]
        self._last_move = moves[-1] if moves else last
        return moves

    def context(self, before: str) -> str:
        """The context of the next request, after the text that precedes its turns."""
        found = self._session.chunks(len(self._chunks))
        del self._chunks[found.reused :]
        self._chunks += found.closed
        context = "".join([before, *self._chunks, found.open])
        if not found.is_kept:
            self._chunks = []
        return context

    def messages(self, start: int) -> list[dict[str, str]]:
        """The turns after the first `start` as chat messages: the same objects while unchanged and without a store."""
        if self._store is not None:
            return self._stored_messages(start)
        for turn in self._read(len(self._chat) // 2, len(self)):
            self._chat += _chat_messages(turn)
        masked = self._session.masked_turns(self._masked)
        for turn, placeholder in masked:
            self._chat[2 * turn - 1] = {"role": "user", "content": placeholder}
        self._masked += len(masked)
        return self._chat[2 * start :]

    def _stored_messages(self, start: int) -> list[dict[str, str]]:
        messages: list[dict[str, str]] = []
        for first in range(start, len(self), _BLOCK):
            for turn in self._session.shown_turns(first, min(first + _BLOCK, len(self))):
                messages += _chat_messages(turn)
        return messages

    # Summaries

    def summary_due(self) -> int | None:
        """The number of turns to summarize before the next request, counted from the first."""
        due: int | None = self._session.summary_due()
        return due

    def replaced_chars(self, end_turn: int) -> int:
        """Characters of the context that a summary of the turns up to this one replaces."""
        chars: int = self._session.replaced_chars(end_turn)
        return chars

    def summary_failed(self) -> None:
        """Record a failed summary, so that it is retried later, also after a restart."""
        self._session.summarized()
        if self._store is not None and not self._store.is_read_only:
            with contextlib.suppress(StoreError):  # losing this record costs one call after a restart
                self._snapshot()

    def summarize(self, summary: Summary, chars: int, tokens: int, spent_tokens: int) -> None:
        """Replace the turns up to its last one by a summary of this many characters and tokens."""
        masking_turns = len(self) if self.masking_turns is None else self.masking_turns
        spent_tokens += self.spent_tokens
        if self._store is None:
            self._summaries.append(summary)
        else:
            head = {"end_turn": summary.end_turn, "made_at": len(self), "chars": chars, "tokens": tokens}
            head |= {"masking_turns": masking_turns, "spent_tokens": spent_tokens}
            fields = [json.dumps(head).encode(), summary.content.encode("utf-8", "surrogatepass")]
            self._store.append_record("summary", fields)
        self._session.summarized(summary.end_turn, chars, tokens)
        self._chunks = []
        self.summary, self.masking_turns, self.spent_tokens = summary, masking_turns, spent_tokens
        self.summary_count += 1

    def summaries(self) -> list[Summary]:
        """All summaries, as a new list."""
        if self._store is None:
            return self._summaries.copy()
        summaries = (_summary(self._store, number) for number in range(1, self.summary_count + 1))
        return [Summary(head["end_turn"], content) for head, content in summaries]

    # Statistics

    def stats(self) -> TurnSessionStats:
        """The figures of the session."""
        stats: TurnSessionStats = self._session.stats()
        return stats

    def requests(self) -> tuple[TurnTokens, ...]:
        """The tokens of the request before each turn."""
        return tuple(self._session.requests(0, len(self)))

    def raw_tokens(self, start: int, end: int) -> int:
        """Tokens of the turns after the first `start`, up to and including `end`."""
        before, after = (self._session.requests(turn, turn + 1)[0].raw_tokens for turn in (start, end))
        return max(0, int(after - before))  # a damaged store may hold any value


def _chat_messages(turn: Turn) -> list[dict[str, str]]:
    """A turn as two messages."""
    return [
        {"role": "assistant", "content": f"Reasoning: {turn.reasoning}\nAction: {turn.action}"},
        {"role": "user", "content": turn.observation},
    ]


def _summary(store: TurnStore, number: int) -> tuple[dict[str, int], str]:
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
