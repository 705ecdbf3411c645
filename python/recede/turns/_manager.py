"""The base of the managers: a list of rendered turns, and the turns themselves in a list or a `TurnStore`.

A store has every turn and every summary, in the order in which they came; a manager resumes by reading them again.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from recede._bodies import unique
from recede._errors import StoreError, no_such
from recede._forks import RefusingLock, lock_of
from recede._recall import turn_tool
from recede.reduction._kinds import FLAG, TURN_FIELDS, template
from recede.turns._records import ContextReport, Summary, Turn, TurnStats, words_of, words_sent

if TYPE_CHECKING:
    from recede.store._turn_store import TurnStore

PARTS = 3  # of a turn in a context
TEXTS = ("reasoning", "action", "observation")  # of a turn

# The best published values for each agent (docs/managers.md has the source): window, summary at, tail.
_PRESETS = {"swe-agent": (10, 43, 10), "openhands": (58, 80, 58)}
_SUMMARIES = "give summarizer_llm, a function (turns, previous_summary) -> text; summarize_at_n says when it is asked"
_CONTEXTS = "override get_context, or of the masking manager get_masked_context"
# Methods of the published managers that are not called here, and what to do instead.
_INSTEAD = {
    "_generate_summary": _SUMMARIES,
    "_create_summary": _SUMMARIES,
    "_check_phase_transition": _SUMMARIES,
    "_get_context": _CONTEXTS,
    "_get_masked_context": _CONTEXTS,
    "_get_summarized_context": _CONTEXTS,
    "_apply_masking": f"{_CONTEXTS}; the window and placeholder= say what is masked",
    "_apply_hybrid": f"{_CONTEXTS}; the window and placeholder= say what is masked",
    "_add_turn": "override add_turn, or give run_agent on_turn=, which is called with each turn",
    "_build_result": "override run_agent, and change what super().run_agent(...) returns",
}


class TurnManager:
    """Base of the managers: turns are stored in full and rendered masked."""

    def __init__(
        self, window: int, placeholder: str, store: TurnStore | None, recall: bool, numbers: dict[str, int]
    ) -> None:
        """Begin, or resume from a store that was used with the same placeholder and numbers."""
        self._window = window
        self._recalls = FLAG.check("recall", recall)
        self._placeholder, self._fields = _checked_placeholder(placeholder, recall)
        self._fixed = "" if self._fields else self._placeholder.format()
        self._settings = {**numbers, "placeholder": self._placeholder}
        self._lock: Any = lock_of(self)
        self._store = store
        self._turns: list[Turn] = []  # without a store
        # Of each turn after the summary: what precedes its observation, that as the next context shows it, and "\n".
        self._parts: list[str] = []
        self._visible: deque[Turn] = deque()  # the last turns, whose observations are not masked yet
        self._masked_turns = 0
        self._words: list[tuple[int, int, int]] = []  # of each turn, once a report asked
        self._made: list[tuple[int, Summary]] = []  # each summary, and how many turns there were when it was made
        self._end_turn = 0  # the last turn in the newest summary
        self._failures = 0
        if store is not None:
            self._resume(store)

    def _after_fork(self, *, was_changing: bool) -> None:
        if was_changing:
            self._lock = RefusingLock()

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Refuse methods of the published class that are named otherwise here: an override would not be called."""
        super().__init_subclass__(**arguments)
        for name, instead in _INSTEAD.items():
            if hasattr(cls, name):
                raise TypeError(f"{cls.__name__}.{name} would never be called: {instead}")

    def __setattr__(self, name: str, value: object) -> None:
        """Assign an attribute; a read-only one only its own value, as classes of the designs restate settings."""
        try:
            object.__setattr__(self, name, value)
        except AttributeError:
            if not hasattr(self, name) or getattr(self, name) != value:
                words = "is read-only: the settings of a manager are the arguments of its constructor"
                raise AttributeError(f"{name} {words}") from None

    def __len__(self) -> int:
        with self._lock:
            return self._end_turn + len(self._parts) // PARTS

    def __repr__(self) -> str:
        turns, masked, *_ = self.stats()
        return f"<{type(self).__name__}: {self._numbers()}; {turns:,} turns, {masked:,} masked>"

    def _numbers(self) -> str:
        return f"window {self._window}"

    @property
    def window(self) -> int:
        """How many of the last turns show their observation."""
        return self._window

    @property
    def placeholder(self) -> str:
        """The text, or template, for a masked observation."""
        return self._placeholder

    @property
    def trajectory(self) -> list[Turn]:
        """The turns, unmasked, as a new list."""
        with self._lock:
            return list(self._between(0, len(self)))

    def stats(self) -> TurnStats:
        """The figures of this manager; `report` has those of its requests."""
        with self._lock:
            return TurnStats(len(self), self._masked_turns, self._end_turn, len(self._made), self._failures)

    # Turns

    def _add(self, reasoning: str, action: str, observation: str) -> Turn:
        check_texts(reasoning, action, observation)
        with self._lock:
            number = self._end_turn + len(self._parts) // PARTS + 1
            # Half the time of Turn(...).
            turn = tuple.__new__(Turn, (number, reasoning, action, observation, time.time()))
            if self._store is None:
                self._turns.append(turn)
            else:
                self._store_turn(self._store, turn)
            self._show(turn)
            self._mask_stored()
            return turn

    def _show(self, turn: Turn) -> None:
        """Render a turn, and mask the one that leaves the window."""
        number, reasoning, action, observation, _ = turn
        self._parts += _before_observation(number, reasoning, action), observation, "\n"
        self._visible.append(turn)
        if len(self._visible) <= self._window:
            return
        number, _, _, observation, _ = self._visible.popleft()
        placeholder = self._placeholder_of(number, observation)
        if placeholder is not None:
            self._masked_turns += 1
            if number > self._end_turn:  # else the summary has it
                self._parts[PARTS * (number - self._end_turn) - 2] = placeholder

    def _placeholder_of(self, number: int, observation: str) -> str | None:
        """The placeholder of a turn's observation; None if it is no shorter."""
        chars = len(observation)
        lines = observation.count("\n") + 1 if "lines" in self._fields else 0
        text = self._fixed or self._placeholder.format(turn=number, chars=chars, lines=lines)
        return text if len(text) < chars else None

    def _between(self, start: int, end: int) -> Iterator[Turn]:
        """The turns after the first `start`, up to and including `end`, unmasked."""
        if self._store is None:
            yield from self._turns[start:end]
        elif start < end:
            for number, reasoning, action, seen, timestamp in self._store.turns(start + 1, end + 1):
                observation = self._store.recall(number) if seen is None else seen
                yield Turn(number, reasoning, action, observation, timestamp or 0.0)

    def recall(self, turn: int) -> str:
        """The full observation of a turn, by its number from 1, masked or not; a LookupError if there is none."""
        with self._lock:
            if not 0 < turn <= len(self):
                raise no_such("turn", turn)
            return self._turns[turn - 1].observation if self._store is None else self._store.recall(turn)

    def tool_definition(self, shape: str = "openai") -> dict[str, Any]:
        """The schema of a tool whose ``turn`` is the argument of `recall`, as `recede.masker.recall_tool` has it."""
        return turn_tool(shape)

    def _context(self, system_prompt: str, user_prompt: str) -> str:
        with self._lock:
            summary = str(self._made[-1][1]) if self._made else ""
            return "".join([f"{system_prompt}\n{user_prompt}{summary}", *self._parts])

    # The store

    def _resume(self, store: TurnStore) -> None:
        from recede.store._turn_store import TurnStore  # imported lazily: an agent without a store does not need it

        if not isinstance(store, TurnStore):
            raise TypeError(f"store must be a TurnStore or None, not {type(store).__name__}")
        if store.count_records("message"):
            raise ValueError(f"{store.path} holds the messages of a History: give the manager a store of its own")
        if store.count_records("session"):
            self._compare(store)
        events = self._stored_events(store)
        for turn in self._between(0, len(store)):
            self._show(turn)
            while events and events[0][0] == turn.turn:
                self._happened(*events.pop(0))
        self._mask_stored()

    def _compare(self, store: TurnStore) -> None:
        """Raise ValueError unless the store was used with the settings of this manager."""
        try:
            stored = unique(store.record("session", 1)[0])["recede_turns"]
        except (LookupError, ValueError):
            stored = None
        if not isinstance(stored, dict):
            raise ValueError(f"{store.path} holds the session of no manager: give the manager a store of its own")
        for name in dict.fromkeys([*stored, *self._settings]):
            was, given = stored.get(name), self._settings.get(name)
            if was != given:
                words = f"was created with {name} {was!r}, and this manager has {given!r}"
                raise ValueError(f"{store.path} {words}: give the same options, or another store")

    def _stored_events(self, store: TurnStore) -> list[tuple[int, Summary | None]]:
        """The summaries of a store and how many turns there were at each; None: it failed."""
        return []

    def _happened(self, turns: int, summary: Summary | None) -> None:
        raise NotImplementedError

    def _store_turn(self, store: TurnStore, turn: Turn) -> None:
        if len(store) != len(self) and store.is_usable:
            raise RuntimeError(f"{store.path} has turns that this manager did not add: make it again")
        self._store_settings(store)
        store.append(*turn[1:4], timestamp=turn.timestamp)

    def _store_settings(self, store: TurnStore) -> None:
        if not store.count_records("session"):
            store.append_record("session", [json.dumps({"recede_turns": self._settings}).encode()])

    def _mask_stored(self) -> None:
        """Mask in the store what the next context masks; what fails is repeated with the next turn."""
        if self._store is not None and not self._store.is_read_only:
            with contextlib.suppress(StoreError):
                self._store.mask_before(len(self) - self._window + 1)

    # Reports

    def _counted(self) -> list[tuple[int, int, int]]:
        """For each turn the words around its observation, those of that, and of what an old turn shows of it."""
        for number, reasoning, action, seen, _ in self._between(len(self._words), len(self)):
            around, old = _before_observation(number, reasoning, action), self._placeholder_of(number, seen)
            self._words.append((words_of(around), words_of(seen), words_of(seen if old is None else old)))
        return self._words

    def report(self, price_per_token: float = 0.00001) -> ContextReport:
        """Report the tokens, in words, that all requests so far sent without their prompts, and the savings."""
        with self._lock:
            raw, sent, summarizer = words_sent(self._counted(), self._window, self._made)
            masking_turns = self._made[0][0] if self._made else len(self)
            return ContextReport(len(self), raw, sent, summarizer, price_per_token, masking_turns)


def check_texts(reasoning: object, action: object, observation: object) -> None:
    """Raise TypeError unless a turn is three strings."""
    if isinstance(reasoning, str) and isinstance(action, str) and isinstance(observation, str):
        return
    for name, text in zip(TEXTS, (reasoning, action, observation), strict=True):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a string, not {type(text).__name__}")


def preset(name: str) -> tuple[int, int, int]:
    """Window, summary at, tail."""
    if name not in _PRESETS:
        raise ValueError(f"there is no preset {name!r}; give one of {', '.join(map(repr, _PRESETS))}")
    return _PRESETS[name]


def _checked_placeholder(placeholder: str, recall: bool) -> tuple[str, list[str]]:
    """A placeholder, with the number of the turn if turns can be recalled, and its fields."""
    if recall and isinstance(placeholder, str) and "{turn}" not in placeholder:
        placeholder = f"{placeholder.removesuffix(']')}: recall {{turn}}]"
    fields = [field for _, field in template("placeholder", placeholder) or () if field]
    for field in fields:
        if field not in TURN_FIELDS:
            words = "of turns they are {turn}, {chars}, {lines}"
            raise ValueError(f"placeholder has an unknown field {{{field}}}; {words}")
    return placeholder, fields


def _before_observation(number: int, reasoning: str, action: str) -> str:
    return f"\n\nTurn {number}:\nReasoning: {reasoning}\nAction: {action}\nObservation: "
