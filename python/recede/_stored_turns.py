"""Turns and summaries as a manager keeps them in a store: in memory are those of the last requests alone.

The store has each turn and each summary, and records of kind "session": the first with the manager's options, then one
for each 256 turns, written before the next turn: where the log of turns stood, and a row of figures for each of them.
From the last of these a manager goes on. docs/store-format.md says what is in them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from recede._store import TurnStore
from recede._turn_log import Summary, Turn, chat_messages

if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["TurnsInStore"]

_Tokens: TypeAlias = "Callable[[str, str, str], tuple[int, int, int] | None]"

_BLOCK = 256  # turns of a record with their rows, and at most so many are in memory beside those that can still change
_ROW = 72  # bytes of a row: nine numbers, of which the first two are the tokens of the request before the turn
_FORMAT = 1
# Text of masked turns that is kept in memory, so that not each context reads it again.
_MOST_CHARS_KEPT = 2 << 20


class TurnsInStore:
    """Every turn and summary on disk, with the face of `TurnsInMemory`."""

    def __init__(self, log_class: Any, policy: Any, store: TurnStore, options: Mapping[str, Any]) -> None:
        if not isinstance(store, TurnStore):
            raise TypeError(f"store must be a TurnStore or None, not {type(store).__name__}")
        self._store = store
        self._log_class, self._policy = log_class, policy
        self._log = log_class(policy)
        self._options = json.loads(json.dumps({"recede_turns": _FORMAT, **options}))
        self._has_summaries = "tail_window_m" in options
        self._blocks = 0  # of which the log has let go what it could
        self._settled = (0, 0, "")  # the text of turns that were let go, behind one and up to another
        self.summary: Summary | None = None
        self.summary_count = 0
        self.masking_turns: int | None = None
        self.spent_tokens = 0

    def __len__(self) -> int:
        return len(self._log)

    # Going on

    def go_on(self, tokens: _Tokens) -> None:
        """Take up what the store has; texts behind its last block are counted again."""
        store = self._store
        sessions = store.count_records("session")
        if sessions:
            self._compare(store.record("session", 1)[0])
            self._blocks = sessions - 1
        elif store.count_records("message"):
            raise ValueError(f"{store.path} holds the messages of a History: give the manager a store of its own")
        if self._blocks:
            self._resume(json.loads(self._block(self._blocks)[0]))
        waiting = self._take_summaries(len(self))
        for turn in self._read(len(self), len(store)):
            self._let_go()
            texts = turn.reasoning, turn.action, turn.observation
            self._log.add(*texts, tokens(*texts))
            self._log.summary_due()  # was asked for then, too
            while waiting and waiting[-1]["made_at"] == len(self):
                head = waiting.pop()
                self._log.summarize_through(head["end_turn"], head["chars"], head["tokens"])

    def _compare(self, head: bytes) -> None:
        try:
            stored = json.loads(head)
        except ValueError:
            stored = None
        if not isinstance(stored, dict) or "recede_turns" not in stored:
            raise ValueError(f"{self._store.path} holds the session of no manager: give the manager a store of its own")
        for name in dict.fromkeys([*stored, *self._options]):
            was, given = stored.get(name), self._options.get(name)
            if was != given:
                raise ValueError(
                    f"{self._store.path} was begun with {name} {was!r}, and this manager has {given!r}: "
                    "give the same options, or another store"
                )

    def _resume(self, checkpoint: dict[str, int]) -> None:
        settled = checkpoint["settled"]
        first = min(settled, checkpoint["summarized"]) if self._has_summaries else settled
        rows = b"".join(rows for _, rows in self._rows(first, checkpoint["turns"]))
        turns = [turn[1:4] for turn in self._read(settled, checkpoint["turns"])]
        self._log = self._log_class.resumed(self._policy, checkpoint, rows, turns)

    def _take_summaries(self, turns: int) -> list[dict[str, int]]:
        """Take up the last summary; the heads of those that were made behind so many turns, the newest first."""
        store, waiting = self._store, []
        self.summary_count = store.count_records("summary")
        for number in range(self.summary_count, 0, -1):
            text, content = store.record("summary", number)
            head = json.loads(text)
            if number == self.summary_count:
                self.summary = Summary(head["end_turn"], _text(content))
                self.masking_turns, self.spent_tokens = head["masking_turns"], head["spent_tokens"]
            if head["made_at"] <= turns:
                break
            waiting.append(head)
        return waiting

    # Turns

    def add(self, reasoning: str, action: str, observation: str, tokens: tuple[int, int, int] | None) -> int:
        """The next turn comes, and is in the store first; its number."""
        store = self._store
        if len(store) != len(self) and store.can_go_on:
            raise RuntimeError(f"{store.path} has turns that this manager did not add: make the manager anew")
        self._let_go()
        number = store.append(reasoning, action, observation)
        self._log.add(reasoning, action, observation, tokens)
        return number

    def _let_go(self) -> None:
        """At the end of a block, store where the log stands, and keep of it what can still change."""
        store = self._store
        blocks = len(self) // _BLOCK
        if blocks == self._blocks and self._has_begun():
            return
        if not self._has_begun():
            store.append_record("session", [json.dumps(self._options).encode()])
        if blocks > self._blocks:
            checkpoint, rows = self._log.checkpoint()
            fields = [json.dumps(checkpoint).encode(), rows]
            if store.count_records("session") > blocks:
                store.replace_record("session", blocks + 1, fields)  # an error came before the next turn
            else:
                store.append_record("session", fields)
            store.mask_before(checkpoint["settled"] + 1)
            self._log.forget()
            self._blocks = blocks

    def _has_begun(self) -> bool:
        return self._blocks > 0 or self._store.count_records("session") > 0

    def masked_text(self, observation: str) -> str | None:
        """What masking would put in the place of this observation, if it came now; None where it stays."""
        text: str | None = self._log.masked_text(observation)
        return text

    def turns(self, start: int, end: int) -> list[Turn]:
        """The turns behind the first `start` ones, up to and with `end`."""
        return list(self._read(start, end))

    def _read(self, start: int, end: int) -> Iterator[Turn]:
        for turn in self._store.turns(start + 1, end + 1):
            observation = self.recall(turn.turn_id) if turn.observation is None else turn.observation
            yield Turn(turn.turn_id, turn.reasoning, turn.action, observation, turn.timestamp or 0.0)

    def recall(self, turn: int) -> str:
        """The observation of a turn that there is."""
        return self._store.recall(turn)

    # Contexts

    def context(self, before: str) -> str:
        """The context of the next request, behind what stands before its turns."""
        summarized, let_go = self._log.ends()
        context: str = self._log.context(before, self._settled_texts(summarized, let_go))
        return context

    def _settled_texts(self, start: int, end: int) -> list[str]:
        """The text of turns that were let go, in parts; it is kept where it is not large."""
        first, last, text = self._settled
        if first != start:
            last, text = start, ""
        parts = [text] if text else []
        for turn, rows in self._rows(last, end):
            parts.append(self._log.settled_text(self._store._store, turn, rows))
        if last < end:
            is_small = sum(map(len, parts)) <= _MOST_CHARS_KEPT
            parts = ["".join(parts)] if is_small else parts
            self._settled = (start, end, parts[0]) if is_small else (0, 0, "")
        return parts

    def messages(self, start: int) -> list[dict[str, str]]:
        """The turns behind the first ones as chat messages."""
        messages: list[dict[str, str]] = []
        let_go = self._log.ends()[1]
        for first, rows in self._rows(start, let_go):
            for texts in self._log.settled(self._store._store, first, rows):
                messages += chat_messages(*texts)
        masked = dict(self._log.masked(0))
        for number in range(max(start, let_go) + 1, len(self) + 1):
            reasoning, action, observation = self._log.turn(number)
            messages += chat_messages(reasoning, action, masked.get(number, observation))
        return messages

    # Summaries

    def summary_due(self) -> int | None:
        """How many turns, from the first on, the summary is to stand for that is due before the next request."""
        due: int | None = self._log.summary_due()
        return due

    def summarize(self, summary: Summary, chars: int, tokens: int, spent_tokens: int) -> None:
        """A summary, of so many characters and tokens in a context, stands for the turns up to its last one."""
        masking_turns = len(self) if self.masking_turns is None else self.masking_turns
        spent_tokens += self.spent_tokens
        head = {"end_turn": summary.end_turn, "made_at": len(self), "chars": chars, "tokens": tokens}
        head |= {"masking_turns": masking_turns, "spent_tokens": spent_tokens}
        fields = [json.dumps(head).encode(), summary.content.encode("utf-8", "surrogatepass")]
        self.summary_count = self._store.append_record("summary", fields)
        self._log.summarize_through(summary.end_turn, chars, tokens)
        self.summary, self.masking_turns, self.spent_tokens = summary, masking_turns, spent_tokens

    def summaries(self) -> list[Summary]:
        """All of them: a new list."""
        return [
            Summary(json.loads(head)["end_turn"], _text(content)) for head, content in self._store.records("summary")
        ]

    # Figures

    def figures(self) -> tuple[int, int, int, int]:
        """Turns that are masked; tokens of all observations, of those masked, and of what stands there."""
        figures: tuple[int, int, int, int] = self._log.figures()
        return figures

    def requests(self) -> list[tuple[int, int]]:
        """Of the request before each turn: tokens of all turns before it, and of those sent."""
        stored = (request for _, rows in self._rows(0, self._blocks * _BLOCK) for request in _requests(rows))
        return [*stored, *self._log.requests()][: len(self)]

    def sums(self) -> tuple[int, int]:
        """The sums of `requests`."""
        sums: tuple[int, int] = self._log.sums()
        return sums

    def raw_tokens(self, start: int, end: int) -> int:
        """Tokens of the turns behind the first `start` ones, up to and with `end`."""
        return self._raw_tokens_before(end) - self._raw_tokens_before(start)

    def _raw_tokens_before(self, turns: int) -> int:
        here = self._blocks * _BLOCK
        if turns < here:
            return next(raw for _, rows in self._rows(turns, turns + 1) for raw, _ in _requests(rows))
        raw: int = self._log.requests()[turns - here][0]
        return raw

    # Blocks

    def _block(self, block: int) -> tuple[bytes, ...]:
        """Where the log stood behind a block, from 1, and the rows of its turns."""
        return self._store.record("session", block + 1)

    def _rows(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """The rows of the turns behind the first `start` ones up to `end`, a block at a time, with its first turn."""
        while start < end:
            block = start // _BLOCK
            before = block * _BLOCK
            stop = min(end, before + _BLOCK)
            yield start + 1, self._block(block + 1)[1][_ROW * (start - before) : _ROW * (stop - before)]
            start = stop


def _requests(rows: bytes) -> Iterable[tuple[int, int]]:
    return struct.iter_unpack(f"<2Q{_ROW - 16}x", rows)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
