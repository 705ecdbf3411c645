"""Sessions that are played again: a plan and files in; out sessions, of which screen, tables and page are made."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from recede.cli.files import InputHistory
from recede.cli.many import Failure, named, over, short_names
from recede.cli.sessions import Chosen, Reading, project_of
from recede.cli.tables import middle
from recede.costs import (
    CURVE_WINDOWS,
    Bill,
    BillCheck,
    ModelPrices,
    PolicyReplay,
    Prices,
    Replay,
    ReplayedTurn,
    SessionPrices,
    check_bill,
    curve_policies,
    logged_bill,
    reads_texts,
    replay_json,
    replay_policies,
    replay_transcript,
    session_prices,
)
from recede.costs._misses import LEAST_WINDOW
from recede.costs._policies import MASKED, STUDY, summarized
from recede.designs import mask_observations
from recede.proxy._played import PlayedProxy
from recede.reduction import ToolReport
from recede.reduction._kinds import CHARS_PER_TOKEN
from recede.transcripts import Transcript
from recede.transcripts._places import COMMANDS_OF_FORMATS, PROGRAMS_OF_FORMATS


class LoggedBill(NamedTuple):
    """What a request cost: what identifies it, its branch with how many messages precede its answer, and when."""

    id: str | None
    place: tuple[int, int]
    time: float | None
    bill: Bill


class Logged(NamedTuple):
    """The figures that the log of a session has."""

    bill: Bill  # of its requests, but for copies of those that another file has, and those made earlier than asked for
    bills: tuple[LoggedBill, ...]
    prices: SessionPrices
    plan: str | None = None  # the subscription that paid for it
    timed: BillCheck | None = None  # the replay of the raw history against it, with pauses from time stamps
    as_logged: BillCheck | None = None  # the same, with a cache that is as cold as the log shows


class Session(NamedTuple):
    """A session that was played again."""

    name: str  # of the file, and which of its histories
    format: str
    replay: Replay
    tools: Mapping[str, ToolReport]
    log: Logged | None = None  # None where the file is no log
    is_flat: bool = False  # whether prices were given, at which the logged tokens are not paid
    title: str = ""  # its project or first words, and when it began; empty where no time is logged
    door: str = "recede.History"  # which was played: that, or the proxy

    @property
    def turns(self) -> tuple[ReplayedTurn, ...]:
        return self.replay.policies[0].turns

    @property
    def requests(self) -> int:
        return len(self.turns)

    @property
    def times(self) -> list[float]:
        """When requests were made, in Unix seconds, as far as that is logged."""
        return [] if self.log is None else [one.time for one in self.log.bills if one.time is not None]

    @property
    def turn_times(self) -> list[float | None]:
        """Of each request when it was made; of one without time that of the one before, or of the first after it."""
        bills = () if self.log is None else self.log.bills
        known = {one.place: one.time for one in bills if one.time is not None}
        found = [known.get((turn.branch, turn.messages)) for turn in self.turns]
        last = next((time for time in found if time is not None), None)
        return [last := last if time is None else time for time in found]

    @property
    def results(self) -> int:
        return sum(tool.observations for tool in self.tools.values())

    @property
    def is_plan(self) -> bool:
        return self.log is not None and bool(self.log.plan)

    @property
    def is_logged(self) -> bool:
        return self.log is not None and self.log.bill.requests > 0 and not self.is_flat and self.has_dollars

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models that it names and nobody knows a price of; with any, it has tokens and shares alone."""
        return () if self.log is None or self.is_flat else self.log.prices.unpriced

    @property
    def has_dollars(self) -> bool:
        return self.replay.has_dollars

    @property
    def paid(self) -> float:
        """What was paid by its log; where that does not say it, what its replay estimates; 0 without dollars."""
        if not self.has_dollars:
            return 0.0
        return self.log.bill.cost if self.log is not None and self.is_logged else self.cost("raw")

    def would_pay(self, policy: str, *, of_summaries: bool = False) -> float:
        """The cost that it would have had, or its summaries: the share of raw as replayed, of what was paid."""
        raw = self.cost("raw")
        return self.paid * (self.cost(policy, of_summaries=of_summaries) / raw) if raw else 0.0

    def cost(self, policy: str, *, of_summaries: bool = False) -> float:
        """The cost under a policy as replayed, or that of its summaries alone."""
        usage, both = self.played(policy).usage, (self.replay.prices, self.replay.summary_prices)
        return usage.summary_cost(both[1] or both[0]) if of_summaries else usage.cost(*both)

    def turn_cost(self, turn: ReplayedTurn) -> float:
        return turn.usage.cost(self.replay.prices, self.replay.summary_prices)

    def of_raw(self, policy: str) -> float:
        """The share of raw that it costs under a policy; of its tokens where raw costs nothing."""
        raw = self.cost("raw")
        return self.cost(policy) / raw if raw else self.tokens(policy) / (self.tokens("raw") or 1.0)

    def tokens(self, policy: str) -> float:
        return self.played(policy).usage.sent_chars / CHARS_PER_TOKEN

    def played(self, policy: str) -> PolicyReplay:
        return next(one for one in self.replay.policies if one.policy == policy)

    def made_since(self, when: float) -> Session | None:
        """The session without requests before this time, in Unix seconds; None if no other is left."""
        if self.log is None or not self.times:
            return self
        early = {place for place, time in enumerate(self.turn_times) if time is not None and time < when}
        left = self.without(early, tuple(one for one in self.log.bills if one.time is None or one.time >= when))
        return left if left.requests or left.times else None

    def without(self, requests: Collection[int], bills: tuple[LoggedBill, ...]) -> Session:
        """The session without some of its requests, with the bills of the others."""
        found, log = self.replay, self.log
        policies = (
            one._replace(turns=tuple(turn for place, turn in enumerate(one.turns) if place not in requests))
            for one in found.policies
        )
        misses = None if found.misses is None else found.misses.without(requests)
        log = None if log is None else log._replace(bill=Bill.total(one.bill for one in bills), bills=bills)
        return self._replace(replay=found._replace(policies=tuple(policies), misses=misses), log=log)

    def under(self, policies: Sequence[str]) -> Session:
        """The session as if only these policies had been played."""
        kept = tuple(one for one in self.replay.policies if one.policy in policies)
        return self._replace(replay=self.replay._replace(policies=kept))


def paid_parts(sessions: Sequence[Session]) -> dict[str, float]:
    """The dollars of sessions: ``logged``, ``estimated`` where a log has no usage, and of a ``subscription``."""
    found: dict[str, float] = {}
    for session in sessions:
        if session.requests and session.has_dollars:
            part = "subscription" if session.is_plan else "logged" if session.is_logged else "estimated"
            found[part] = found.get(part, 0.0) + session.paid
    return {part: found[part] for part in ("logged", "estimated", "subscription") if part in found}


_EVERYTHING = 1 << 60


class Plan(NamedTuple):
    asked: Any  # the options of the command
    policies: tuple[str, ...]  # of the table, with all their numbers; raw first
    is_screen: bool  # whether the first screen is asked for, and not a table
    # The windows of the advice, and of the row with summaries on the screen; if any, a window is advised.
    besides: tuple[str, ...]
    has_texts: bool  # whether all texts are read, for quotations in large files too
    claude_plan: str | None  # the subscription of Claude Code, whose logs name none


class Played(NamedTuple):
    done: list[tuple[InputHistory, Session | None]]  # None where all its requests are in another file
    shown: list[tuple[InputHistory, Session]]  # those with results enough, by names without the folder that all are in
    failed: Sequence[Failure]


def planned(asked: Any, claude_plan: str | None) -> Plan:
    """Choose what is played for these options of the command; a policy may be unknown."""
    flags = ("misses", "days", "curve", "is_all", "study", "check")
    shown = [f"--{name.removeprefix('is_')}" for name in flags if getattr(asked, name)]
    if len(shown) > 1:
        raise click.UsageError(f"{' and '.join(shown)} are tables of their own: ask for one at a time")
    tables = (asked.policies, curve_policies() if asked.curve else (), STUDY if asked.study else ())
    wanted = next(filter(None, (*tables, replay_policies() if asked.is_all else ())), ())
    is_screen = not wanted
    try:
        names = tuple(one.policy for one in replay_json(b"[]", wanted or (MASKED,)).policies)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--policy") from None
    has_page, has_texts = asked.html is not None, asked.misses or asked.curve or asked.html is not None
    besides = curve_policies() if is_screen or has_texts or asked.is_all or asked.days else ()
    if is_screen or has_page:
        besides += tuple(summarized(window) for window in CURVE_WINDOWS if window >= LEAST_WINDOW)
    has_texts = has_texts or reads_texts(names, asked.settings.summary_chars)
    return Plan(asked, names, is_screen, besides, has_texts, claude_plan)


def play(plan: Plan, files: Sequence[Chosen], reading: Reading) -> Played:
    reading = reading._replace(keep_texts=plan.has_texts)
    found, failed = over(files, reading, lambda history: _session(plan, history), is_parallel=True)
    without = without_copies([session for _, session in found])
    since = plan.asked.since
    if since is not None:
        without = [(session and session.made_since(since), warnings) for session, warnings in without]
    done = [
        (dataclasses.replace(history, warnings=(*history.warnings, *warnings)), session)
        for (history, _), (session, warnings) in zip(found, without, strict=True)
    ]
    shown = [(one, session) for one, session in done if session and session.results >= plan.asked.settings.min_results]
    names = short_names([session.name for _, session in shown])  # the parts of their paths that differ
    of_agents = {file.path for file in files if file.is_of_agent}
    titles = Counter(session.title for _, session in shown)
    for number, (history, session) in enumerate(shown):
        if history.path in of_agents and session.title:
            names[number] = session.title if titles[session.title] == 1 else f"{session.title}, {names[number]}"
    renamed = [(one, session._replace(name=name)) for (one, session), name in zip(shown, names, strict=True)]
    return Played(done, renamed, failed)


_TITLE_WORDS, _TITLE_LETTERS = 5, 30


def _said_first(history: InputHistory) -> str:
    content = next((one.get("content") for one in history.parsed() if one.get("role") == "user"), "")
    texts = (
        [content] if isinstance(content, str) else [one.get("text") for one in content or () if isinstance(one, dict)]
    )
    return next((text for text in texts if isinstance(text, str)), "")


def _title(history: InputHistory, log: Logged) -> str:
    """Name a session of an agent by its project, else by its first words, and by when it began."""
    times = [one.time for one in log.bills if one.time is not None]
    if not times:
        return ""
    try:
        project = Path(project_of(Path(history.path))).name
    except OSError:
        project = ""
    if not project:
        project = middle(" ".join(_said_first(history).split()[:_TITLE_WORDS]), _TITLE_LETTERS)
    began = datetime.fromtimestamp(min(times))
    return ", ".join(filter(None, [project, f"{began:%b} {began.day} {began:%H:%M}"]))


def _session(plan: Plan, history: InputHistory) -> Session:
    transcript, log, price, settings = history.session, None, plan.asked.price, plan.asked.settings
    policies = tuple(dict.fromkeys((*plan.policies, *plan.besides)))
    how = {name: getattr(settings, name) for name in ("system_chars", "summary_chars")}
    how |= {"summary_prices": price.summary_prices, "cache": price.cache, "with_misses": True}
    raw, is_proxy, title = mask_observations(history.parsed(), keep_results=_EVERYTHING), False, ""
    if transcript is None:
        how |= {"prices": price.prices or Prices(), "cache": price.cache or "anthropic"}
        replayed = history.run(lambda data: replay_json(data, policies, **how))
    else:
        log = logged(transcript, plan.asked.own_prices, is_checked=plan.asked.check)
        title = _title(history, log)
        if transcript.format == "claude_code":
            log = log._replace(plan=plan.claude_plan)
        prices = log.prices if price.prices is None else log.prices._replace(prices=price.prices, unpriced=())
        how |= {"prices": prices, "with_misses": transcript.has_texts, "pauses": settings.pauses}
        door = plan.asked.door or (None if price.prices is None else "history")  # the proxy has its model's prices
        is_proxy = plays_proxy(door, transcript.format, raw.tools)
        replayed = replay_transcript(transcript, policies, door=PlayedProxy(transcript) if is_proxy else None, **how)
    own = price.prices is not None, title, "the proxy" if is_proxy else "recede.History"
    return Session(named(history), history.format, replayed, raw.tools, log, *own)


def plays_proxy(door: str | None, format: str, tools: Mapping[str, ToolReport]) -> bool:
    """Whether the proxy is played: by choice, or else for agents that can be pointed at it, and call tools by name."""
    is_pointed = format in COMMANDS_OF_FORMATS or (format in PROGRAMS_OF_FORMATS and (not tools or any(tools)))
    return is_pointed if door is None else door == "proxy"


def logged(transcript: Transcript, own: Mapping[str, ModelPrices], *, is_checked: bool) -> Logged:
    prices = session_prices(transcript, own)
    checks = (check_bill(transcript, own, pauses=pauses) for pauses in ("timed", "logged") if is_checked)
    fallback = None if prices.unpriced else prices.prices
    bills = tuple(
        LoggedBill(one.id, (one.branch, one.messages), one.time, logged_bill([one], own, fallback))
        for one in transcript.requests
    )
    return Logged(Bill.total(one.bill for one in bills), bills, prices, transcript.plan, *checks)


def without_copies(sessions: Sequence[Session]) -> list[tuple[Session | None, list[str]]]:
    """Drop the requests that an earlier session has too, and warn if there are any.

    A session that is resumed is written into another file, which begins with copies. One that has nothing else is None.
    What other policies would have cost is counted once too; their state is that of the whole session.
    """
    seen: set[str | None] = set()
    found: list[tuple[Session | None, list[str]]] = []
    for session in sessions:
        bills = () if session.log is None else session.log.bills
        own = tuple(one for one in bills if one.id is None or one.id not in seen)
        copied = {one.place for one in bills if one.id is not None and one.id in seen}
        seen.update(one.id for one in bills)
        if session.log is None or not copied:
            found.append((session, []))
        elif not own:
            warning = "all its requests are in another file, as of a session that was resumed: left out"
            found.append((None, [warning]))
        else:
            turns = {place for place, turn in enumerate(session.turns) if (turn.branch, turn.messages) in copied}
            warning = f"requests that are in another file too, counted only there: {len(bills) - len(own)} times"
            found.append((session.without(turns, own), [warning]))
    return found
