"""Playing a replay: a plan and files in, sessions out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from recede.cli.bill import logged, without_copies
from recede.cli.files import InputHistory
from recede.cli.many import Failure, named, over, short_names
from recede.cli.played import MASKED, STUDY, Session, summarized
from recede.cli.reading import Reading
from recede.cli.sessions import Chosen
from recede.costs import (
    CURVE_WINDOWS,
    Prices,
    curve_policies,
    reads_texts,
    replay_json,
    replay_policies,
    replay_transcript,
)
from recede.costs._misses import LEAST_WINDOW
from recede.designs import mask_observations

_EVERYTHING = 1 << 60


class Plan(NamedTuple):
    """What is played."""

    asked: Any  # the options of the command
    policies: tuple[str, ...]  # of the table, with all their numbers; raw first
    is_screen: bool  # whether the first screen is asked for, and not a table
    # The windows of the advice, and of the row with summaries on the screen; if any, a window is advised.
    besides: tuple[str, ...]
    has_texts: bool  # whether all texts are read, for quotations in large files too
    claude_plan: str | None  # the subscription of Claude Code, whose logs name none


class Played(NamedTuple):
    """The sessions that were played."""

    done: list[tuple[InputHistory, Session | None]]  # None where all its requests are in another file
    shown: list[tuple[InputHistory, Session]]  # those with results enough, by names without the folder that all are in
    failed: Sequence[Failure]


def planned(asked: Any, claude_plan: str | None) -> Plan:
    """Choose what is played for these options of the command; a policy may be unknown."""
    tables = (asked.policies, curve_policies() if asked.curve else (), STUDY if asked.study else ())
    wanted = next(filter(None, (*tables, replay_policies() if asked.is_all else ())), ())
    is_screen = not wanted
    try:
        names = tuple(one.policy for one in replay_json(b"[]", wanted or (MASKED,)).policies)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--policy") from None
    has_page, has_texts = asked.html is not None, asked.misses or asked.curve or asked.html is not None
    besides = curve_policies() if is_screen or has_texts or asked.is_all else ()
    if is_screen or has_page:
        besides += tuple(summarized(window) for window in CURVE_WINDOWS if window >= LEAST_WINDOW)
    has_texts = has_texts or reads_texts(names, asked.settings.summary_chars)
    return Plan(asked, names, is_screen, besides, has_texts, claude_plan)


def play(plan: Plan, files: Sequence[Chosen], reading: Reading) -> Played:
    reading = reading._replace(keep_texts=plan.has_texts)
    found, failed = over(files, reading, lambda history: _session(plan, history), is_parallel=True)
    without = without_copies([session for _, session in found])
    done = [
        (dataclasses.replace(history, warnings=(*history.warnings, *warnings)), session)
        for (history, _), (session, warnings) in zip(found, without, strict=True)
    ]
    shown = [(one, session) for one, session in done if session and session.results >= plan.asked.settings.min_results]
    names = short_names([session.name for _, session in shown])  # the parts of their paths that differ
    renamed = [(one, session._replace(name=name)) for (one, session), name in zip(shown, names, strict=True)]
    return Played(done, renamed, failed)


def _session(plan: Plan, history: InputHistory) -> Session:
    transcript, log, price, settings = history.session, None, plan.asked.price, plan.asked.settings
    policies = tuple(dict.fromkeys((*plan.policies, *plan.besides)))
    how = {name: getattr(settings, name) for name in ("system_chars", "summary_chars")}
    how |= {"summary_prices": price.summary_prices, "cache": price.cache, "with_misses": True}
    if transcript is None:
        how |= {"prices": price.prices or Prices(), "cache": price.cache or "anthropic"}
        replayed = history.run(lambda data: replay_json(data, policies, **how))
    else:
        log = logged(transcript, plan.asked.own_prices, is_checked=plan.asked.check)
        if transcript.format == "claude_code":
            log = log._replace(plan=plan.claude_plan)
        prices = log.prices if price.prices is None else log.prices._replace(prices=price.prices)
        how |= {"prices": prices, "with_misses": transcript.has_texts, "pauses": settings.pauses}
        replayed = replay_transcript(transcript, policies, **how)
    raw = mask_observations(history.parsed(), keep_results=_EVERYTHING)
    return Session(named(history), history.format, replayed, raw.tools, log, is_flat=price.prices is not None)
