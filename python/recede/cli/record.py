"""The record of a replay: what screen, page, list and JSON say, computed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from recede.cli.advice import Advice, advice, title_of
from recede.cli.played import Session, paid_parts
from recede.cli.tables import span_of
from recede.costs._misses import LONG_SESSION, quoted_part
from recede.costs._policies import MASKED, summarized
from recede.transcripts._unread import NOTHING, Unread

ELONGATION = 0.15  # the research has 13 to 18 % more turns of agents with summaries
LEAST = 0.005  # a share below it is nothing
_WORTH = 0.05  # of what was paid: summaries that save less than that besides are no reason to ask a model
_MOST = 0.9  # the sessions that are named bring this share of what is saved
_WINDOWS = (200_000, 400_000, 1_000_000, 2_000_000)  # of current models, in tokens


class Asked(NamedTuple):
    """Inputs of the record besides the sessions."""

    again: str = "recede replay"  # the command that was typed; empty where it had options that change what is shown
    notes: tuple[str, ...] = ()
    tells_notes: bool = False  # whether all of them are printed, as with `-v`
    damaged: str = ""  # a sentence on the files and lines that could not be read
    unread: Unread = NOTHING
    is_plan: bool = False  # whether a subscription is assumed, whatever the logs say
    context_window: int = 0  # the tokens that the model takes; 0: the smallest usual number that all requests fit into
    window: int | None = None  # the advised one: how many of the newest results stay raw; None: there is no advice
    elongation: float = ELONGATION  # by what share agents with summaries take more turns

    @property
    def masked(self) -> str:
        return MASKED if self.window is None else f"break_even:window={self.window}"


class Choice(NamedTuple):
    """A choice over all sessions: its dollars, tokens sent, those of the largest request, and dollars of summaries."""

    policy: str
    dollars: float
    tokens: float
    largest_tokens: int
    of_raw: float  # its dollars, or tokens where no dollars are paid, as a share of what was sent
    quoted: float | None  # the share of requests that quote what it had hidden
    summary_dollars: float


class SessionCost(NamedTuple):
    """What a session cost, and would have cost masked; dollars are None where a model has no known price."""

    name: str
    agent: str
    door: str  # which was played: the proxy or a `History`
    days: str
    requests: int
    results: int
    paid_by: str  # "logged", "estimated" or "subscription"; "" where it has no dollars
    paid: float | None
    masked: float | None
    of_raw: float  # the share that masking leaves, at usual prices where there are no dollars
    tokens: float
    masked_tokens: float
    quoted: float | None

    @property
    def rank(self) -> tuple[float, float, float]:
        """A key of order: those that save or lose most come first, then those that cost most."""
        paid, masked = costs_of(self, in_tokens=False)
        return -abs(paid - masked), -paid, self.masked_tokens - self.tokens


class DayCost(NamedTuple):
    """The requests of a day, and what they cost, or would have cost masked, in dollars."""

    day: str  # as in ISO 8601; "" where no time is logged
    requests: int = 0
    paid: float = 0.0
    masked: float = 0.0
    tokens: int = 0
    masked_tokens: int = 0


def costs_of(row: SessionCost | DayCost, *, in_tokens: bool) -> tuple[float, float]:
    """What it cost, and would have cost masked."""
    return (row.tokens, row.masked_tokens) if in_tokens else (row.paid or 0.0, row.masked or 0.0)


class QuotedRequest(NamedTuple):
    """A request that wrote what stood only in a result that would have been masked; numbers count from 1."""

    number: int  # of its session
    session: str
    tool: str | None
    request: int
    results_ago: int
    text: str


class Saved(NamedTuple):
    """Which sessions bring what is saved, in dollars, or in tokens where none are paid; each is in one of two sums."""

    sessions: int = 0  # those that bring most of it
    amount: float = 0.0
    whole: float = 0.0  # of all sessions
    others: int = 0
    others_amount: float = 0.0  # 0 where that is nothing; less than 0 if they cost more
    are_apart: bool = False  # whether the others are much shorter


class Unpriced(NamedTuple):
    """The sessions whose models have no known price."""

    models: tuple[str, ...]
    sessions: int
    tokens: float
    masked_tokens: float
    of_raw: float  # the share of the cost at usual prices that masking leaves


class Growth(NamedTuple):
    """The tokens of each request of the session that masking changes most."""

    name: str
    raw: tuple[int, ...]
    masked: tuple[int, ...]
    summarized: tuple[int, ...]  # empty where summaries are not shown
    moves: tuple[int, ...]  # the requests, from 0, at which more results became masked


class Record(NamedTuple):
    """All that is said of a replay."""

    asked: Asked
    sessions: tuple[SessionCost, ...]
    agents: tuple[str, ...]
    days: str
    requests: int
    paid: Mapping[str, float]  # dollars: logged, estimated, of a subscription
    by_day: tuple[DayCost, ...]
    raw: Choice | None = None  # None where no request was made
    masked: Choice | None = None
    summarized: Choice | None = None  # None where summaries cannot be had, or do not save enough besides
    with_more_turns: float | None = None  # dollars of summaries if agents take more turns with them
    context_window: int = 0
    in_tokens: bool = False  # whether tokens come before dollars
    is_plan: bool = False
    saves: bool = False
    costs_more: bool = False
    results_at_median: int = 0
    pays_after_results: int = LONG_SESSION
    max_overcost: float = 0.1  # the default of each door
    examined: int = 0  # requests that were examined for quotations
    quoted: tuple[QuotedRequest, ...] = ()
    saved: Saved = Saved()
    unpriced: Unpriced | None = None
    advice: tuple[Advice, ...] = ()
    summary_advice: tuple[Advice, ...] = ()
    growth: Growth | None = None

    def as_json(self) -> dict[str, Any]:
        """All but the sessions and the picture, as plain values."""
        asked = self.asked
        apart = {"asked", "sessions", "growth", "requests"}
        plain = {name: _plain(value) for name, value in self._asdict().items() if name not in apart}
        unread = asked.unread.words(has_results=any(one.results for one in self.sessions))
        said = {"window": asked.window, "elongation": asked.elongation, "damaged": asked.damaged, "unread": unread}
        return {**plain, **said, "notes": list(asked.notes)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(one) for name, one in value._asdict().items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def record_of(sessions: Sequence[Session], asked: Asked) -> Record:
    """Compute the record of sessions that were played under the policies that `asked` names, with misses."""
    played = [session for session in sessions if session.requests]
    rows = tuple(_cost(session, asked) for session in sessions)
    found = Record(
        asked,
        rows,
        tuple(dict.fromkeys(row.agent for row in rows)),
        span_of([time for session in sessions for time in session.times]),
        sum(row.requests for row in rows),
        paid_parts(sessions),
        _by_day(sessions, asked),
    )
    if not played:
        return found
    raw, masked = (_choice(sessions, policy) for policy in ("raw", asked.masked))
    is_plan = asked.is_plan or all(session.is_plan for session in sessions)
    in_tokens = is_plan or not raw.dollars
    sent, less = (raw.tokens, masked.tokens) if in_tokens else (raw.dollars, masked.dollars)
    silent = [session for session in played if not session.has_dollars]
    shares = [sum(session.cost(policy) for session in silent) for policy in ("raw", asked.masked)]
    if in_tokens and not is_plan and shares.count(0.0) == 0:
        sent, less = shares  # fewer tokens may cost more
    of_tokens = masked.tokens / raw.tokens if raw.tokens else 1.0
    masked = masked._replace(of_raw=of_tokens if in_tokens else masked.dollars / raw.dollars)
    more = None if in_tokens else _with_summaries(sessions, raw, masked, asked)
    summarized_ones = [session for session in played if more is not None and not session.is_plan]
    examined = sum(session.replay.misses.examined for session in played if session.replay.misses is not None)
    policies = ["raw", asked.masked, *([] if more is None else [more.policy])]
    first = min(zip(rows, sessions, strict=True), key=lambda pair: (not pair[1].requests, pair[0].rank))[1]
    return found._replace(
        raw=raw,
        masked=masked,
        summarized=more,
        with_more_turns=None if more is None else more.dollars * (1 + asked.elongation),
        context_window=asked.context_window
        or next((size for size in _WINDOWS if raw.largest_tokens <= size), raw.largest_tokens),
        in_tokens=in_tokens,
        is_plan=is_plan,
        saves=less < (1 - LEAST) * sent,
        costs_more=less > (1 + LEAST) * sent,
        results_at_median=round(median(session.results for session in played)),
        examined=examined,
        quoted=tuple(_quoted(sessions, asked.masked)),
        saved=_saved([row for row in rows if row.requests], in_tokens=in_tokens),
        unpriced=_unpriced(silent, shares, asked.masked) if silent else None,
        advice=tuple(_advised(played, rows, asked, in_tokens=in_tokens)),
        summary_advice=tuple(_advised(summarized_ones, rows, asked, in_tokens=in_tokens, summarizes=True)),
        growth=_growth(first, policies),
    )


def _cost(session: Session, asked: Asked) -> SessionCost:
    parts = list(paid_parts([session]))
    has_dollars, policy = session.has_dollars, asked.masked
    return SessionCost(
        session.name,
        title_of(session.format),
        session.door,
        span_of(session.times),
        session.requests,
        session.results,
        parts[0] if parts else "",
        session.paid if has_dollars else None,
        session.would_pay(policy) if has_dollars else None,
        session.of_raw(policy) if session.requests else 1.0,
        session.tokens("raw"),
        session.tokens(policy),
        None if session.replay.misses is None else session.replay.misses.share_under(policy),
    )


def _choice(sessions: Sequence[Session], policy: str, of_plans: str = "") -> Choice:
    """A choice; sessions of a subscription have the policy `of_plans`, if there is one."""
    pairs = [(session, of_plans if of_plans and session.is_plan else policy) for session in sessions]
    return Choice(
        policy,
        sum(session.would_pay(own) for session, own in pairs),
        sum(session.tokens(own) for session, own in pairs),
        max((turn.view_tokens for session, own in pairs for turn in session.played(own).turns), default=0),
        1.0,
        None if policy == "raw" else quoted_part([(session.replay, own) for session, own in pairs]),
        sum(session.would_pay(own, of_summaries=True) for session, own in pairs),
    )


def _with_summaries(sessions: Sequence[Session], raw: Choice, masked: Choice, asked: Asked) -> Choice | None:
    policy = summarized(asked.window or 10)
    if not all(any(one.policy == policy for one in session.replay.policies) for session in sessions):
        return None
    found = _choice(sessions, policy, asked.masked)
    found = found._replace(of_raw=found.dollars / raw.dollars)
    return found if found.dollars < masked.dollars - _WORTH * raw.dollars else None


def _by_day(sessions: Sequence[Session], asked: Asked) -> tuple[DayCost, ...]:
    days: dict[str, DayCost] = {}

    def add(time: float | None, *figures: float) -> None:
        day = "" if time is None else datetime.fromtimestamp(time).date().isoformat()
        days[day] = DayCost._make((day, *map(sum, zip(days.get(day, DayCost(day))[1:], figures, strict=True))))

    for session in sessions:
        times, raw = session.turn_times, session.cost("raw")
        scale = session.paid / raw if raw else 0.0
        for sent, less, time in zip(*(session.played(one).turns for one in ("raw", asked.masked)), times, strict=True):
            paid = 0.0 if session.is_logged else scale * session.turn_cost(sent)
            add(time, 1, paid, scale * session.turn_cost(less), sent.view_tokens, less.view_tokens)
        if session.is_logged and session.log is not None:
            places = {(turn.branch, turn.messages): time for turn, time in zip(session.turns, times, strict=True)}
            for one in session.log.bills:
                add(places.get(one.place) if one.time is None else one.time, 0, one.bill.cost, 0.0, 0, 0)
    return tuple(days[day] for day in sorted(days))


def _quoted(sessions: Sequence[Session], policy: str) -> Iterator[QuotedRequest]:
    """The requests that quote what a policy had hidden, in order, each with its oldest source."""
    for number, session in enumerate(sessions, 1):
        if session.replay.misses is not None:
            oldest = {
                one.request: one for one in sorted(session.replay.misses.quoted, key=lambda quoted: quoted.distance)
            }
            for request in sorted(session.replay.misses.by_policy[policy]):
                one = oldest[request]
                yield QuotedRequest(number, session.name, one.tool, request + 1, one.distance, one.text)


def _saved(rows: Sequence[SessionCost], *, in_tokens: bool) -> Saved:
    worths = [costs_of(row, in_tokens=in_tokens) for row in rows]
    ranked = sorted(zip(worths, rows, strict=True), key=lambda pair: pair[0][1] - pair[0][0])
    gains = [paid - masked for (paid, masked), _ in ranked]
    whole, few, amount = sum(gains), 0, 0.0
    while few < len(gains) and gains[few] > 0 and amount < _MOST * sum(gain for gain in gains if gain > 0):
        amount += gains[few]
        few += 1
    lengths, worth = [row.requests for _, row in ranked], sum(paid for (paid, _), _ in ranked[few:])
    rest = whole - amount if abs(whole - amount) >= LEAST * worth else 0.0
    are_apart = 0 < few < len(rows) and median(lengths[:few]) >= 2 * median(lengths[few:])
    return Saved(few, amount, amount if not rest else whole, len(rows) - few, rest, are_apart)


def _unpriced(silent: Sequence[Session], shares: Sequence[float], policy: str) -> Unpriced:
    raw, masked = (sum(session.tokens(one) for session in silent) for one in ("raw", policy))
    models = tuple(dict.fromkeys(name for session in silent for name in session.unpriced))
    return Unpriced(models, len(silent), raw, masked, shares[1] / shares[0] if shares[0] else 1.0)


def _advised(
    played: Sequence[Session], rows: Sequence[SessionCost], asked: Asked, *, in_tokens: bool, summarizes: bool = False
) -> list[Advice]:
    """What to type for each agent of which masking, or else summaries, save something."""
    saved: dict[str, float] = {}
    for row in rows:
        paid, masked = costs_of(row, in_tokens=in_tokens)
        saved[row.agent] = saved.get(row.agent, 0.0) + paid - masked
    named = {session.format for session in played if any(session.tools)}
    textual = {session.format for session in played if session.results} - named
    formats = (session.format for session in played if summarizes or saved[title_of(session.format)] > 0)
    return advice(formats, textual, asked.window or 10, summarizes=summarizes)


def _growth(session: Session, policies: Sequence[str]) -> Growth | None:
    turns = [session.played(policy).turns for policy in policies]
    counts = [0, *(turn.masked_count for turn in turns[1])]
    moves = tuple(place for place, (before, after) in enumerate(pairwise(counts)) if after > before)
    sizes = [tuple(turn.view_tokens for turn in one) for one in turns]
    return Growth(session.name, sizes[0], sizes[1], sizes[2] if sizes[2:] else (), moves) if moves else None
