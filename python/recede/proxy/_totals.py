"""Totals of what was saved, by conversation and in all: tokens and dollars, and no text of any message."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from recede._agents import AGENTS
from recede._models import UnknownModels, model_row, named
from recede._usage import LoggedUsage
from recede.costs import Prices, model_prices
from recede.proxy._masked import MaskedRequest
from recede.reduction._kinds import CHARS_PER_TOKEN

_MAX_CONVERSATIONS = 50
_MAX_POINTS = 200
_MAX_KEYS = 65_536
_NO_DOLLARS = Prices(0, 0, 0, 0)
_COMPACTING = frozenset(agent.title for agent in AGENTS.values() if agent.compacts)


@dataclass
class RequestSums:
    """Sums over requests. Tokens are the provider's, or where it reported none, estimated at four characters each."""

    requests: int = 0
    masked_requests: int = 0
    moves: int = 0
    raw_tokens: int = 0
    sent_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    raw_usd: float = 0.0
    paid_usd: float = 0.0
    without_usage: int = 0
    without_reasoning: int = 0  # requests without some of their reasoning, or if they were masked
    dropped_reasoning: int = 0  # blocks that providers say they dropped
    summaries: int = 0  # calls for them, which are no requests
    summary_tokens: int = 0
    summary_usd: float = 0.0  # a part of what was paid

    def add(self, other: RequestSums) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def shown(self) -> dict[str, float]:
        sums = {name: round(value, 6) for name, value in vars(self).items()}
        saved = {"saved_tokens": self.raw_tokens - self.sent_tokens, "saved_usd": self.raw_usd - self.paid_usd}
        return {**sums, **{name: round(value, 6) for name, value in saved.items()}}


@dataclass
class ConversationTotals:
    """A conversation: requests that continue one another. It is for display only."""

    number: int
    provider: str
    folder: str = ""  # in which its agent works, if that is known
    began: float = field(default_factory=time.time)
    model: str = ""
    sums: RequestSums = field(default_factory=RequestSums)
    # Seconds, tokens of the raw request, of the one that was sent, and those that were read from the cache.
    points: list[tuple[float, int, int, int]] = field(default_factory=list)
    reasoning_dropped: int = 0  # messages of its newest request
    last_raw: int = 0  # tokens of the raw request before
    is_cached: bool = False
    first_chars: int | None = None  # of a conversation that has only begun

    def shown(self) -> dict[str, Any]:
        name = f"{self.folder or self.model or self.provider}, {time.strftime('%H:%M', time.localtime(self.began))}"
        facts: dict[str, Any] = {"number": self.number, "name": name, "provider": self.provider, "model": self.model}
        facts["reasoning_dropped"] = self.reasoning_dropped
        return {**facts, **self.sums.shown(), "points": self.points}


class Totals:
    """Counts requests. With `is_observing` they were sent raw, and what masking would have saved is estimated.

    All requests are of an agent in this `folder`, if one is given; `compacts` says whether that agent compacts its
    conversations.
    """

    def __init__(self, is_observing: bool = False, folder: str = "", compacts: bool = False) -> None:
        self.is_observing = is_observing
        self.since = time.time()
        self.sums = RequestSums()
        self.passed = 0
        self.errors = 0
        self.faults = 0
        self.refusals = 0  # of reasoning, whose requests were sent again
        self.version = 0  # grows with each change
        self._unpriced = UnknownModels()
        self._has_plans = False  # whether requests were of a subscription
        self.conversations: dict[int, ConversationTotals] = {}
        self._numbers: dict[bytes, int] = {}
        self._count = 0
        self._folder = folder
        self._compacts = compacts

    @property
    def has_saved(self) -> bool:
        sums = self.sums
        has_dollars = bool(sums.raw_usd or sums.paid_usd)
        is_less = sums.raw_usd > sums.paid_usd if has_dollars else sums.raw_tokens > sums.sent_tokens
        return not self.is_observing and is_less

    def passed_on(self, masked: MaskedRequest, status: int) -> None:
        """Count a request without a history, or one that was answered with an error."""
        self.version += 1
        self.passed += masked.provider is None
        self.errors += status >= 400
        self.faults += masked.fault is not None

    def answered(
        self,
        masked: MaskedRequest,
        usage: LoggedUsage | None,
        model: str | None,
        has_price: bool = True,
        dropped_reasoning: int = 0,
    ) -> None:
        """Count a request that was answered; one of a subscription has no price, and costs no dollars."""
        self.version += 1
        self.faults += masked.fault is not None
        if masked.counted or masked.fault is not None:
            return
        self._compacts |= masked.agent in _COMPACTING
        conversation = self._conversation(masked)
        conversation.model = model or masked.model or conversation.model
        conversation.reasoning_dropped = 0 if self.is_observing else masked.reasoning_dropped
        sums = self._request(conversation, masked, usage)
        sums.dropped_reasoning = dropped_reasoning
        if not has_price:
            self._has_plans, sums.raw_usd, sums.paid_usd = True, 0.0, 0.0
        conversation.sums.add(sums)
        self.sums.add(sums)
        points = conversation.points
        points.append((round(time.time(), 1), sums.raw_tokens, sums.sent_tokens, sums.cached_tokens))
        if len(points) > _MAX_POINTS:
            del points[-2::-2]

    def summarized(self, masked: MaskedRequest, usage: LoggedUsage, model: str | None, has_price: bool = True) -> None:
        """Count the call for a summary that this request has asked for."""
        self.version += 1
        prices, _ = self._prices(model or "", masked)
        usd = prices.cost(usage.sent_tokens - usage.cached_tokens, usage.cached_tokens, 0, usage.output_tokens)
        usd = usd if has_price else 0.0
        tokens = usage.sent_tokens + usage.output_tokens
        sums = RequestSums(summaries=1, summary_tokens=tokens, summary_usd=usd, paid_usd=usd)
        self._conversation(masked).sums.add(sums)
        self.sums.add(sums)

    def _conversation(self, masked: MaskedRequest) -> ConversationTotals:
        """Find the conversation that a request continues. First requests look alike: nothing precedes them."""
        _, *later = [key for _, key in masked.points] or [b""]
        known = (self._numbers[key] for key in reversed(later) if key in self._numbers)
        number = next((number for number in known if number in self.conversations), None)
        if number is None:
            begun = [
                (one.first_chars, one.number) for one in self.conversations.values() if one.first_chars is not None
            ]
            size = masked.chars_before
            fits = [(chars, found) for chars, found in begun if (chars <= size if later else chars == size)]
            number = max(fits)[1] if fits else None
        if number is None:
            self._count += 1
            number = self._count
            self.conversations[number] = ConversationTotals(number, masked.provider or "", self._folder)
        for key in later[-1:]:
            self._numbers.pop(key, None)
            self._numbers[key] = number
        conversation = self.conversations[number] = self.conversations.pop(number)
        conversation.first_chars = None if later else masked.chars_before
        if len(self._numbers) > _MAX_KEYS:
            del self._numbers[next(iter(self._numbers))]
        if len(self.conversations) > _MAX_CONVERSATIONS:
            del self.conversations[next(iter(self.conversations))]
        return conversation

    def _request(
        self, conversation: ConversationTotals, masked: MaskedRequest, usage: LoggedUsage | None
    ) -> RequestSums:
        """Sum up one request: one side as the provider reported it, the other estimated from it.

        While nothing is masked both are the same request, so they cost the same, whatever the cache did.
        """
        prices, write_1h = self._prices(conversation.model, masked)
        if usage is None:
            sent = masked.chars_before if self.is_observing else masked.chars_after
            usage, is_reported = LoggedUsage(sent // CHARS_PER_TOKEN, 0, 0, 0, 0), False
        else:
            is_reported = True
        reported = usage.sent_tokens
        removed = (masked.chars_before - masked.chars_after) // CHARS_PER_TOKEN if masked.changed else 0
        conversation.is_cached |= bool(usage.cached_tokens or usage.written_tokens or usage.written_1h_tokens)
        raw = reported if self.is_observing else reported + removed
        row = model_row(conversation.model)
        if row is not None and reported <= row.window_tokens < raw:  # it would have been refused, and saved nothing
            raw, removed = reported, 0
        view = max(0, reported - removed) if self.is_observing else reported
        tokens = (usage.input_tokens, usage.cached_tokens, usage.written_tokens, usage.written_1h_tokens)
        # A provider that does not say what it wrote charges input, or what its price of writing is.
        plain = prices.write if masked.provider == "openai" and conversation.is_cached else prices.input
        each = (plain, prices.cached, prices.write, write_1h)
        charged = sum(count * price for count, price in zip(tokens, each, strict=True))
        paid = (charged + usage.output_tokens * prices.output) / 1e6
        written_at = write_1h if masked.cache == "anthropic_1h" else prices.write
        is_cached = conversation.is_cached and masked.cache != "none"  # there it is the system prompt alone
        written_price = written_at if is_cached and is_reported else prices.input
        read = self._read_more(conversation, masked, usage, raw) if removed and is_cached else 0
        more = (read * prices.cached + (raw - view - read) * written_price) / 1e6
        conversation.last_raw = raw
        return RequestSums(
            requests=1,
            masked_requests=int(masked.masked_count > 0),
            moves=int(masked.moved),
            raw_tokens=raw,
            sent_tokens=view,
            cached_tokens=usage.cached_tokens,
            written_tokens=usage.written_tokens + usage.written_1h_tokens,
            output_tokens=usage.output_tokens,
            raw_usd=paid if self.is_observing else paid + more,
            paid_usd=max(0.0, paid - more) if self.is_observing else paid,
            without_usage=int(not is_reported),
            without_reasoning=int(masked.reasoning_dropped > 0),
        )

    def _prices(self, model: str, masked: MaskedRequest) -> tuple[Prices, float]:
        """Find the prices of a model, and that of one-hour writes; 0 where nobody knows them."""
        found = model_prices(model, host=masked.cache) if masked.is_priced else None
        if found is not None:
            return found.prices, found.write_1h
        self._unpriced.note(model)
        return _NO_DOLLARS, 0.0

    def _read_more(self, conversation: ConversationTotals, masked: MaskedRequest, usage: LoggedUsage, raw: int) -> int:
        """Estimate how many more tokens the raw request would read from the cache than the view does."""
        chars = masked.chars_before if self.is_observing else masked.chars_after
        fixed = max(0, usage.sent_tokens - chars // CHARS_PER_TOKEN)  # the prompt and the tools
        of_history = max(0, usage.cached_tokens - fixed)
        if not masked.moved:  # the masks lie in what is read again, unless nothing of the history is
            removed = (masked.chars_before - masked.chars_after) // CHARS_PER_TOKEN
            return min(removed, of_history) if self.is_observing else removed * (of_history > 0)
        if self.is_observing:
            return of_history
        is_warm = conversation.is_cached and (not masked.cold or of_history > 0)
        return max(0, min(raw, conversation.last_raw) - usage.cached_tokens) if is_warm else 0

    def shown(self) -> dict[str, Any]:
        return {
            "mode": "observe" if self.is_observing else "mask",
            "since": self.since,
            "passed": self.passed,
            "errors": self.errors,
            "faults": self.faults,
            "refusals": self.refusals,
            "totals": self.sums.shown(),
            "unknown_models": self._unpriced.names,
            "conversations": [one.shown() for one in reversed(self.conversations.values())],
        }

    def metrics(self) -> str:
        """Return the totals in the text format of Prometheus."""
        counts = {**self.sums.shown(), "passed": self.passed, "errors": self.errors, "faults": self.faults}
        counts["refusals"] = self.refusals
        lines = []
        for name, value in counts.items():
            kind = "gauge" if name.startswith("saved") else "counter"
            full = f"recede_{name}" + ("_total" if kind == "counter" else "")
            lines += [f"# TYPE {full} {kind}", f"{full} {value}"]
        return "\n".join(lines) + "\n"

    def sentence(self) -> str:
        sums = self.sums
        if not sums.requests:
            return "no requests with a history"
        names = ", ".join(map(named, self._unpriced.names))
        unknown = f"; in tokens alone, without known prices: {names}" if names else ""
        unknown += "; no dollars for a subscription" if self._has_plans else ""
        has_dollars = bool(sums.raw_usd) or not (self._unpriced.names or self._has_plans)
        saved, part = sums.raw_tokens - sums.sent_tokens, sums.sent_tokens / max(1, sums.raw_tokens)
        if not saved and not sums.masked_requests:
            why = "nothing masked, since it does not pay in sessions as short as these"
            cost = f" for about ${sums.raw_usd:,.2f}" if has_dollars else ""
            return f"{sums.requests:,} requests{cost}: {why}{unknown}"
        what = "masking would have saved" if self.is_observing else "saved"
        dollars = round(sums.raw_usd - sums.paid_usd, 2)
        money = f", about ${abs(dollars):,.2f} {'of' if dollars >= 0 else 'lost on'} ${sums.raw_usd:,.2f}"
        money = money if has_dollars else ""
        compared = " without compaction" if self._compacts else ""
        calls = "call" if sums.summaries == 1 else "calls"
        lost = ""
        if sums.without_reasoning:
            done = "would have gone" if self.is_observing else "went"
            lost = (
                f"; {sums.without_reasoning:,} {done} without some of their reasoning, which is refused behind a mask"
            )
        asked = f"; {sums.summaries:,} {calls} for summaries, counted in, for ${sums.summary_usd:,.2f}"
        return (
            f"{sums.requests:,} requests: {what} {saved:,} of {sums.raw_tokens:,} input tokens ({1 - part:.0%})"
            f"{money}{compared}{asked if sums.summaries else ''}{lost}{unknown}"
        )
