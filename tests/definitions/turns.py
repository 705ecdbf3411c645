"""A session of turns: each context is rendered again."""

from __future__ import annotations

from typing import NamedTuple

from definitions.attempts import Attempts
from definitions.folds import OfTurns
from definitions.hybrid import summary_pays, wanted_turns
from oracle.outline import Result
from oracle.placeholder import Masked, Observation, fill, is_placeholder
from oracle.plan.cost_bound import again, charged
from oracle.plan.facts import Facts
from oracle.policy import Policy
from oracle.walk import walk
from recede._report import BoundaryMove
from recede.turns._report import TurnTokens
from recede.turns._turn import MaskedTurn
from recede.turns._turns import TurnSessionStats


class TurnRow(NamedTuple):
    own: str  # its text without the observation
    observation: str
    placeholder: str | None  # None where the observation stays
    own_tokens: int
    observation_tokens: int
    masked_tokens: int


class Turns:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.turns: list[TurnRow] = []
        self.moves_told = 0
        self.first = 0  # turns before this one stand in a summary
        self.summary_chars = self.summary_tokens = 0
        self.due: int | None = None  # how many turns the summary is to stand for that is due
        self.judged = 0  # turns that there were when that was judged
        self.waste = 0  # chars that requests since the last summary sent without need
        self.retries = Attempts()
        self.rows: list[tuple[int, int]] = []  # of each request: tokens of all turns before it, and of those sent
        self.events: list[_Event] = []

    def __len__(self) -> int:
        return len(self.turns)

    def masked_text(self, observation: str) -> str | None:
        """What masking would put in the place of this observation, if it came now; None where it stays."""
        if is_placeholder(observation, self.policy):
            return None
        text = fill(Observation(observation, turn=len(self.turns) + 1), self.policy)
        return text if len(text) < len(observation) else None

    def append(self, own: str, observation: str, tokens: tuple[int, int, int] | None = None) -> int:
        """The next turn; its number. Its tokens are words, where they are not given."""
        self._request()
        placeholder = self.masked_text(observation)
        if tokens is None:
            tokens = len(own.split()), len(observation.split()), len((placeholder or "").split())
        self.turns.append(TurnRow(own, observation, placeholder, *tokens))
        return len(self.turns)

    def summary_due(self) -> int | None:
        """How many turns, from the first on, the summary is to stand for that is due before the next request."""
        if self.judged < len(self.turns):
            self.judged = len(self.turns)
            self.due = self._judge()
        return self.due if self.retries.may_ask(len(self.turns), 0, 0) else None

    def _judge(self) -> int | None:
        rules = self.policy.summaries
        wanted = None if rules is None else wanted_turns(rules, len(self.turns))
        if rules is None or wanted is None or wanted <= self.first:
            return None
        by_turns, _, _, model = rules
        if model is None or by_turns is not None:
            return wanted
        shown = self._shown_chars()
        chars, _ = model
        replaced = self.summary_chars + sum(shown[self.first : wanted])
        if chars >= replaced:
            return None
        self.waste += replaced - chars
        call = self._given(wanted), chars
        if not summary_pays(rules, self.waste, chars + sum(shown[wanted:-1]), call):
            return None
        fold = self._fold()
        self._grow(fold, self.first, self.summary_chars)
        return wanted if fold.permits_summary(2 * len(self.turns), chars + sum(shown[wanted:]), call) else None

    def _given(self, until: int) -> int:
        """Chars that a model is given for a summary of the turns up to this one."""
        rules = self.policy.summaries
        prompt_chars = rules[3][1] if rules is not None and rules[3] is not None else 0
        raw = [len(turn.own) + len(turn.observation) for turn in self.turns]
        return sum(raw[self.first : until]) + self.summary_chars + prompt_chars

    def _shown_chars(self) -> list[int]:
        """Chars of each turn as the request before showed it; the last turn is raw."""
        masked = self._masked()
        return [len(turn.own) + len(masked.get(place, turn.observation)) for place, turn in enumerate(self.turns)]

    def replaced_chars(self, turn: int) -> int:
        """Chars of the context that a summary of the turns up to this one replaces."""
        return self.summary_chars + sum(self._shown_chars()[self.first : turn])

    def summarized(self, turn: int | None = None, chars: int = 0, tokens: int = 0) -> None:
        """A summary stands for the turns up to this one, and what is older than the window is masked; or it failed."""
        if turn is None:
            self.retries = self.retries.failed(len(self.turns), 0)
            return
        self._request()
        self.events.append(_Event(len(self.turns), min(turn, len(self.turns)), chars, self._given(turn)))
        self.first = min(turn, len(self.turns))
        self.summary_chars, self.summary_tokens = chars, tokens
        self.due, self.waste, self.retries = None, 0, Attempts()
        self.rows[-1] = self._tokens()

    def masked_turns(self, start: int) -> list[MaskedTurn]:
        """The turns that the context of the next request masks, from 1, and what stands there, from one of them on."""
        self._request()
        return [MaskedTurn(place + 1, text) for place, text in sorted(self._masked().items())][start:]

    def stats(self) -> TurnSessionStats:
        """Turns in the summary; what is masked; tokens of requests, all of them and those sent."""
        rows = self.requests(0, len(self.turns))
        return TurnSessionStats(
            self.first, *self._figures(), sum(one.raw_tokens for one in rows), sum(one.sent_tokens for one in rows)
        )

    def _figures(self) -> tuple[int, int, int, int]:
        """Turns that are masked; tokens of all observations, of those masked, and of what stands there."""
        masked = [self.turns[place] for place in self._masked()]
        return (
            len(masked),
            sum(turn.observation_tokens for turn in self.turns),
            sum(turn.observation_tokens for turn in masked),
            sum(turn.masked_tokens for turn in masked),
        )

    def requests(self, start: int, end: int) -> list[TurnTokens]:
        """What the requests sent after so many turns: tokens of all turns before them, and those sent."""
        self._request()
        return [TurnTokens(turn, *row) for turn, row in enumerate(self.rows[start:end], start + 1)]

    def new_moves(self) -> list[BoundaryMove]:
        """The moves of the boundary since this was asked last."""
        moves = [BoundaryMove(*move) for move in self._fold().moves] if self.policy.boundary[0] == "break_even" else []
        before, self.moves_told = self.moves_told, len(moves)
        return moves[before:]

    def _request(self) -> None:
        if len(self.rows) <= len(self.turns):
            self.events.append(_Event(len(self.turns)))
            self.rows.append(self._tokens())

    def _tokens(self) -> tuple[int, int]:
        masked = self._masked()
        raw = sum(turn.own_tokens + turn.observation_tokens for turn in self.turns)
        sent = self.summary_tokens + sum(
            turn.own_tokens + (turn.masked_tokens if place in masked else turn.observation_tokens)
            for place, turn in list(enumerate(self.turns))[self.first :]
        )
        return raw, sent

    def _masked(self) -> dict[int, str]:
        rule, chunk, _ = self.policy.boundary
        if rule == "break_even":
            places = set(self._fold().masked)
        else:
            older = max(0, (self.events[-1].turns if self.events else 0) - (self.policy.keep_results or 0))
            places = set(range(older // int(chunk) * int(chunk) if rule == "stepped" else older))
        texts = {place: self.turns[place].placeholder for place in places}
        return {place: text for place, text in texts.items() if text is not None}

    def _fold(self) -> OfTurns:
        """The boundary, by the requests and summaries so far: for a planner a turn is two messages."""
        messages: list[dict[str, str]] = []
        for turn in self.turns:
            messages.append({"role": "assistant", "content": turn.own})
            messages.append({"role": "tool", "tool_call_id": "", "content": turn.observation})
        fold = OfTurns(_TurnFacts(walk(messages), self.policy, None))
        first = summary_chars = 0
        for turns, through, chars, given in self.events:
            if through is None:
                self._grow(fold, first, summary_chars, turns)
                fold.request(2 * turns)
            else:
                # The request may have been made without the summary: then the next one writes it.
                fold.advance(2 * turns)
                first, summary_chars = through, chars
                fold.calls = fold.calls[0] + given, fold.calls[1] + chars
                view = charged(summary_chars + fold.turn_chars(fold.end) - fold.turn_chars(2 * first), 0)
                fold.paid = fold.paid.and_(view.and_written(again(self.policy.cache, 0, False)))
        return fold

    def _grow(self, fold: OfTurns, first: int, summary_chars: int, turns: int | None = None) -> None:
        """The turns in the summary are not in the view, whatever is masked of them."""
        fold.grow(2 * (len(self.turns) if turns is None else turns))
        if first:
            fold.mask_before(2 * first)
            fold.replaced = fold.turn_chars(2 * first), summary_chars


class _Event(NamedTuple):
    """After how many turns: a request; or a summary of so many chars through a turn, made of so many."""

    turns: int
    through: int | None = None
    chars: int = 0
    given: int = 0


class _TurnFacts(Facts):
    def mask(self, result: Result) -> Masked | None:
        """Nothing in a turn is a dispatch block."""
        observation = result.text.joined
        if is_placeholder(observation, self.policy):
            return None
        text = fill(Observation(observation, turn=self.turns[result.index]), self.policy)
        return Masked((text,), text) if len(text) < len(observation) else None
