"""Playing a replay: a plan and files in, sessions out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from recede.cli.bill import logged, without_copies
from recede.cli.files import InputHistory
from recede.cli.many import Failure, named, over, short_names
from recede.cli.played import MASKED, STUDY, TABLE, Session, summarized
from recede.cli.reading import Reading
from recede.cli.sessions import Chosen
from recede.costs import (
    CURVE_WINDOWS,
    ModelPrices,
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
    """The policies, prices and options of a replay.

    Attributes:
        policies: those of the table, with all their numbers; raw first.
        is_screen: whether the first screen is asked for, and not a table.
        has_screen: whether it is shown, also on a page: its row with summaries is played for each window it may advise.
        has_advice: whether a window is advised, by a curve that is played besides.
        has_texts: whether all texts are read, for quotations in large files too.
        prices: those that were given; None: those of the logged models.
        cache: the prompt cache that was given; None: that of the format or the model.
        pauses: as `replay_transcript` takes it.
        own_prices: prices by model.
        is_checked: whether the raw history is held against the log.
        min_results: sessions with fewer results are left out.
        options: further arguments of `replay`.
        claude_plan: the subscription of Claude Code, whose logs name none.
    """

    policies: tuple[str, ...]
    is_screen: bool
    has_screen: bool
    has_advice: bool
    has_texts: bool
    prices: Prices | None
    cache: str | None
    pauses: str
    own_prices: Mapping[str, ModelPrices]
    is_checked: bool
    min_results: int
    options: dict[str, Any]
    claude_plan: str | None = None

    @property
    def played(self) -> tuple[str, ...]:
        """The policies of the table, of the advice, of the screen and of the pictures."""
        curve = curve_policies() if self.has_advice else ()
        windows = [window for window in CURVE_WINDOWS if window >= LEAST_WINDOW] if self.has_screen else []
        return tuple(dict.fromkeys((*self.policies, *curve, *map(summarized, windows))))


class Played(NamedTuple):
    """The sessions that were played.

    Attributes:
        done: each history, and its session; None where all its requests are in another file.
        sessions: those that are shown, by names without the folder that all are in.
        failed: files that could not be read.
    """

    done: list[tuple[InputHistory, Session | None]]
    sessions: list[Session]
    failed: Sequence[Failure]

    def shown(self, plan: Plan) -> list[tuple[InputHistory, Session]]:
        """The histories that are shown, by the names of their files."""
        return [(history, session) for history, session in self.done if session and session.results >= plan.min_results]


def planned(
    policies: tuple[str, ...],
    grid: Mapping[str, Sequence[int]] | None,
    *,
    has_curve: bool,
    has_study: bool,
    is_table: bool,
    has_pictures: bool,
    has_texts: bool,
    **how: Any,
) -> Plan:
    """Choose what is played.

    Raises:
        BadParameter: a policy is unknown.
    """
    wanted = policies or (curve_policies() if has_curve else STUDY if has_study else ())
    is_screen = not (wanted or grid is not None or is_table)
    if not wanted:
        wanted = ("raw", MASKED) if is_screen else TABLE if grid is None else replay_policies(**grid)
    try:
        names = tuple(one.policy for one in replay_json(b"[]", wanted).policies)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--policy") from None
    needs_texts = has_texts or has_curve or has_pictures or reads_texts(wanted, how["options"]["summary_chars"])
    has_advice = is_screen or grid is not None or has_curve or has_pictures or has_texts
    return Plan(names, is_screen, is_screen or has_pictures, has_advice, needs_texts, **how)


def play(plan: Plan, files: Sequence[Chosen], reading: Reading) -> Played:
    """Play the sessions of these files; a bad one does not stop the others."""
    reading = reading._replace(keep_texts=plan.has_texts)
    found, failed = over(files, reading, lambda history: _session(plan, history), is_parallel=True)
    without = without_copies([session for _, session in found])
    done = [
        (dataclasses.replace(history, warnings=(*history.warnings, *warnings)), session)
        for (history, _), (session, warnings) in zip(found, without, strict=True)
    ]
    played = Played(done, [], failed)
    sessions = [session for _, session in played.shown(plan)]
    return played._replace(sessions=_short_names(sessions))


def _session(plan: Plan, history: InputHistory) -> Session:
    transcript = history.session
    if transcript is None:
        used: dict[str, Any] = {"prices": plan.prices or Prices(), "cache": plan.cache or "anthropic"}
        replayed = history.run(lambda data: replay_json(data, plan.played, with_misses=True, **used, **plan.options))
        log = None
    else:
        log = logged(transcript, plan.own_prices, is_checked=plan.is_checked)
        if transcript.format == "claude_code":
            log = log._replace(plan=plan.claude_plan)
        prices = log.prices if plan.prices is None else log.prices._replace(prices=plan.prices)
        used = {"prices": prices, "cache": plan.cache, "pauses": plan.pauses, "with_misses": transcript.has_texts}
        replayed = replay_transcript(transcript, plan.played, **used, **plan.options)
    raw = mask_observations(history.parsed(), keep_results=_EVERYTHING)
    return Session(named(history), history.format, replayed, raw.tools, log)


def _short_names(sessions: Sequence[Session]) -> list[Session]:
    """The sessions, by the parts of their paths that differ."""
    names = short_names([session.name for session in sessions])
    return [session._replace(name=name) for session, name in zip(sessions, names, strict=True)]
