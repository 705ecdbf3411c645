"""A session played again where a summary takes the place of old turns: the hybrid, and summaries alone.

To a turn belong the messages of its run, and those that hold a call made in it or a result of one; all others stay. A
summary stands for the first turns, whole, in the place of their first message. A message that belongs to several turns
is never torn: no summary ends between them, and one that comes late withdraws the summary that would tear it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from definitions.cache import Seen, Sent, seen
from definitions.folds import Prices, WithHidden, call_cost
from oracle.outline import Message, Outline
from oracle.placeholder import Masked
from oracle.plan.boundary import remembers
from oracle.plan.cost_bound import Charged
from oracle.plan.facts import Facts
from oracle.plan.mask import boundaries, mask_observations
from oracle.policy import Policy
from oracle.summary import built_in_summary


@dataclass(frozen=True, slots=True)
class Standing:
    """The summary that a view shows; at first there is none."""

    turns: int = 0  # it stands for so many
    chars: int = 0
    text: str | None = None  # of the built-in one
    told: frozenset[int] = frozenset()  # messages that it was made of, or the one before
    input_chars: int = 0  # what a model was given for it
    output_chars: int = 0  # what it wrote


Summaries = tuple[tuple[int, int] | None, Prices, int, tuple[int, int] | None]
"""Due by turns (how many for the first, and for each later one) or, None, when they pay off; what a token costs to read
from the cache, to write to it, to be given to the model that summarizes, to be written by it; the turns that stay; the
characters of the model's summary and of its prompt (None: the built-in summary)."""


def wanted_turns(rules: Summaries, turns: int) -> int | None:
    """How many turns a summary is to stand for that is made after so many; None before the first is due."""
    by_turns, _, tail, _ = rules
    if by_turns is None:
        return max(0, turns - tail)
    first, every = by_turns
    return None if turns < first else first + (turns - first) // every * every - tail


def summary_pays(rules: Summaries, waste: int, written_again: int, call: tuple[int, int]) -> bool:
    """Whether the chars that were sent without need have cost what a summary costs, where that is the question."""
    by_turns, prices, _, _ = rules
    if by_turns is not None:
        return True
    read, write, *_ = prices
    return waste * read >= written_again * (write - read) + call_cost(prices, call)


def replay_summarized(outline: Outline, policy: Policy, ends: list[int]) -> list[Sent]:
    """What each request sends; `ends` says how many messages came before it."""
    session = Session(outline, policy, ends)
    return [session.request(turns, end) for turns, end in enumerate(ends)]


class Session:
    """The state between two requests."""

    def __init__(self, outline: Outline, policy: Policy, ends: list[int]) -> None:
        assert policy.summaries is not None
        self.rules = policy.summaries
        *_, self.model = policy.summaries
        self.facts = Facts(outline, policy, None)
        self.place = ends[0] if ends else 0  # where a summary stands: the first message of the first turn
        self.turns_of = [self._turns_of(message) for message in outline.messages]
        self.before = 0
        self.paid, self.calls = (Charged(), Charged()), (0, 0)  # for views and for the raw history; to the model
        self._begin_anew(Standing())

    def _turns_of(self, message: Message) -> set[int]:
        """The turns that a message belongs to; 0 is what comes before the first."""
        places = [message.index] if message.is_agent_made or message.calls else []
        for result in message.results:
            call = self.facts.pairs.call_of[result.index]
            places.append(message.index if call is None else call.message)
        return {self.facts.runs.begun[place] for place in places}

    def _begin_anew(self, summary: Standing) -> None:
        self.summary = summary
        self.waste = 0  # chars that requests since the last summary sent without need
        self.masked: dict[int, Masked] = {}
        hidden = frozenset(place for place in range(len(self.turns_of)) if self._is_within(place, summary.turns))
        self.fold = WithHidden(self.facts, hidden, summary.chars, self.before)
        self.fold.paid, self.fold.paid_raw = self.paid
        self.fold.calls = self.calls

    def request(self, turns: int, end: int) -> Sent:
        """A request is made after so many turns and messages."""
        facts = Facts(self.facts.outline.beginning(end), self.facts.policy, None)
        if any(self._is_torn(message, self.summary.turns) for message in range(self.before, end)):
            self._begin_anew(Standing())
        self.fold.grow(end)
        made = self._due(facts, turns)
        if made is not None:
            self.calls = self.calls[0] + made.input_chars, self.calls[1] + made.output_chars
            self._begin_anew(made)
        self.masked = self._mask(facts)
        self.paid = self.fold.paid, self.fold.paid_raw
        self.before = end
        return Sent(
            view=[seen for message in facts.outline.messages for seen in self._seen(message)],
            end=end,
            masked=len(self.masked),
            summarized=self.summary.turns,
            summary_input_chars=0 if made is None else made.input_chars,
            summary_output_chars=0 if made is None else made.output_chars,
        )

    # What a view shows

    def _is_within(self, message: int, turns: int) -> bool:
        """Whether it is what a summary of so many turns stands for."""
        found = self.turns_of[message]
        return bool(found) and all(1 <= turn <= turns for turn in found)

    def _is_torn(self, message: int, turns: int) -> bool:
        """Whether a summary of so many turns would stand for a part of it."""
        within = [1 <= turn <= turns for turn in self.turns_of[message]]
        return any(within) and not all(within)

    def _mask(self, facts: Facts) -> dict[int, Masked]:
        outline = facts.outline
        if remembers(facts):
            self.fold.request(len(outline.messages))
            return dict(self.fold.masked)
        masked = mask_observations(facts, boundaries(facts)[0]).masked
        hides = self.summary.turns
        return {
            place: one for place, one in masked.items() if not self._is_within(outline.results[place].message, hides)
        }

    def _seen(self, message: Message) -> list[Seen]:
        if not self._is_within(message.index, self.summary.turns):
            return [seen(message, self.masked, self.facts.policy.image_chars)]
        if message.index != self.place:
            return []
        return [Seen(self.place, ((self.summary, self.summary.chars),))]

    def _chars(self, message: Message) -> int:
        """What the view shows of a message."""
        if self._is_within(message.index, self.summary.turns):
            return self.summary.chars if message.index == self.place else 0
        chars = self.facts.own_chars[message.index]
        for result in message.results:
            masked = self.masked.get(result.index)
            chars += self.facts.observation_chars[result.index] if masked is None else masked.chars
        return chars

    # When a summary is made

    def _due(self, facts: Facts, turns: int) -> Standing | None:
        """The summary that is made before this request."""
        wanted = wanted_turns(self.rules, turns)
        if wanted is None:
            return None
        messages = facts.outline.messages
        while any(self._is_torn(message.index, wanted) for message in messages):
            wanted -= 1
        if wanted <= self.summary.turns:
            return None
        new = [one for one in messages if self._is_within(one.index, wanted) and one.index not in self.summary.told]
        told = self.summary.told.union(one.index for one in new)
        made = Standing(turns=wanted, told=told, **self._written(facts, new))
        replaced = self.summary.chars + sum(map(self._chars, new))
        if made.chars >= replaced:
            return None
        self.waste += replaced - made.chars
        # What stays of what the request before had sent is written again behind the summary.
        stays = sum(map(self._chars, messages[self.place : self.before]))
        stays -= self.summary.chars + sum(self._chars(message) for message in new if message.index < self.before)
        call = made.input_chars, made.output_chars
        if not summary_pays(self.rules, self.waste, made.chars + stays, call):
            return None
        chars = sum(map(self._chars, messages)) - replaced + made.chars
        by_turns = self.rules[0] is not None
        return made if by_turns or self.fold.permits_summary(len(messages), chars, call) else None

    def _written(self, facts: Facts, new: list[Message]) -> dict[str, Any]:
        """The text of a summary or its chars, and what it takes to get it."""
        if self.model is not None:
            chars, prompt_chars = self.model
            raw_chars = sum(message.chars(self.facts.policy.image_chars) for message in new)
            return {
                "chars": chars,
                "input_chars": raw_chars + self.summary.chars + prompt_chars,
                "output_chars": chars,
            }
        before = self.summary.text and self.summary.text.partition("\n")[2]
        dropped = [message.index for message in new]
        text = built_in_summary(facts, dropped, before)
        return {"chars": len(text), "text": text}
