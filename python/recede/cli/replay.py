"""`recede replay`: plays finished sessions again, and says what was paid and what would have been."""

from __future__ import annotations

import operator
import shlex
from functools import partial, reduce
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource

from recede.cli.comparison import (
    advice,
    check_text,
    costs_as_json,
    curve_as_json,
    curve_text,
    days_table,
    for_people,
    logged_lines,
    misses_text,
    price_line,
    quoted_lines,
    quoted_shares,
    session_as_json,
)
from recede.cli.files import keep_apart, write
from recede.cli.many import finish, notes_of, write_report
from recede.cli.notices import counted, has_colors, output_options, verbosity
from recede.cli.page import page
from recede.cli.played import Plan, Played, planned, play
from recede.cli.record import ELONGATION, Asked, Record, record_of
from recede.cli.screen import screen
from recede.cli.sessions import chosen, project_option, reading_options, since_option
from recede.cli.tables import prose
from recede.cli.terms import price_option, prices_option, settings_option
from recede.costs import WindowCurve, compare_costs, window_curve
from recede.transcripts._places import plan_of_claude
from recede.transcripts._unread import NOTHING

_flag = partial(click.option, is_flag=True)


@click.command(short_help="Replay sessions and compare what policies cost.")
@click.argument("files", nargs=-1)
@since_option
@project_option
@_flag("--misses", help="List the requests that quote what masking had hidden by then, as the screen counts them.")
@_flag("--days", help="A bill by day: requests, what was paid, and what masking would have cost.")
@_flag("--curve", help="Cost and quoted share of windows of 1 to 100 results, and which saves most for each quotation.")
@_flag("--all", "is_all", help="A table of masks, with windows from 5 to 58, and of summaries.")
@_flag("--study", help="The published comparison: windows, turns in a summary, turns left raw.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME:KEY=N,...",
    help="Compare these instead: raw, sliding:window=M, stepped:window=M,chunk=N, break_even:window=M, "
    "high_water:window=M,chars=N, clear_tool_uses:trigger=N,keep=M,at_least=L, clip:chars=N, "
    "keep_last:messages=K, summary:every=N,tail=M, hybrid:window=W,at=N,tail=M, budget:tokens=N,fill=F. "
    "Repeatable.",
)
@click.option(
    "--door",
    type=click.Choice(("proxy", "history")),
    help="Play what this sends.  [default: the proxy for agents that can be pointed at it; with --price, History]",
)
@_flag("--check", help="Hold the raw history, as estimated, against what the logs say: tokens by kind and dollars.")
@price_option
@prices_option
@_flag("--subscription", help="A subscription pays: tokens and share of the context window come before dollars.")
@settings_option
@click.option("--html", metavar="OUT", help="Write a page with pictures here: one file that needs no network.")
@_flag("--json", "as_json", help="Print the figures as JSON.")
@reading_options
@output_options
def replay(files: tuple[str, ...], project: str | None, reading: Any, **options: Any) -> None:
    """Play sessions again: what you paid, what masking would have cost, and what to type for it.

    FILES may be folders. Without any, the sessions of Claude Code, Codex, Gemini CLI, OpenHands, Copilot
    CLI and pi in their usual places are read. With --policy, --all or --study it prints a table instead.

    A prompt cache serves the beginning of a request that is the same as in the previous request;
    everything after the first change is written to it again, and with Anthropic's breakpoints nearly
    the whole conversation. So a mask that moves at every turn can cost several times as much as none.
    Tokens are those that the logs have; where they have none, a token is about four characters.

    \b
    Example:
      recede replay
      recede replay --since 7d --project my-app --html report.html
      recede replay session.jsonl --policy break_even:window=20
      recede replay logs --curve
      recede replay --check
    """
    asked = SimpleNamespace(**options)
    found = chosen(files, asked.since, project)
    keep_apart("--html", asked.html, [file.path for file in found])
    plan = planned(asked, None if files else plan_of_claude())
    played = play(plan, found, reading)
    if played.shown:
        _print(plan, played, _again(files))
    elif played.done and asked.since is not None:
        write(None, b"no request was made since then\n")
    elif played.done:
        write(None, f"no session has {asked.settings.min_results} results or more\n".encode())
    # A screen of no requests has no line that counts notes.
    are_counted = plan.is_screen and any(one.requests for _, one in played.shown) and verbosity() == 0
    finish(played.done, played.failed, warn=not asked.as_json and not are_counted)


def _print(plan: Plan, played: Played, again: str) -> None:
    """Write the page, and print the one of tables, lists and the screen that the options ask for."""
    asked, sessions = plan.asked, [session for _, session in played.shown]
    replays = [session.replay for session in sessions]
    said = quoted_lines(sessions) + logged_lines(sessions, asked.settings.system_chars)
    notes = (*notes_of(played.done, played.failed), *(line for line in said if line.startswith("assumed")))
    curve = window_curve(replays)
    best = curve.advised()
    facts = Asked(
        again,
        tuple(notes),
        verbosity() != 0,
        _damaged(played),
        reduce(operator.add, (history.unread for history, _ in played.done), NOTHING),
        asked.subscription,
        asked.settings.context_window,
        None if best is None else best.window,
        asked.settings.elongation or ELONGATION,
    )
    record = record_of(sessions, facts) if plan.besides else None
    if record is not None and asked.html is not None:
        write(asked.html, page(record).encode(), [history.path for history, _ in played.shown])
    if asked.check:
        text = check_text(sessions)
    elif asked.as_json:
        _print_json(plan, played, curve, record)
        return
    elif record is not None and asked.misses:
        text = misses_text(record, sessions)
    elif record is not None and asked.days:
        text = days_table(record.by_day, in_tokens=record.in_tokens)
    elif asked.curve:
        text = curve_text(curve, sessions)
    elif record is not None and plan.is_screen:
        more = [*said, price_line(sessions)] if verbosity() > 0 else []
        lines = prose(screen(record, names_html=asked.html is None)).split("\n")
        if has_colors():  # the line of masking is in color
            masked = next((line for line in lines if line.startswith("  masked when it pays")), "")
            lines = [click.style(line, fg="green", bold=True) if line == masked else line for line in lines]
        text = "\n".join([*lines, prose([*more, ""])])
    else:
        said = [advice(curve), *said] if plan.besides else said
        tabled = [session.under(plan.policies) for session in sessions]
        text = for_people(tabled, said, asked.settings.elongation)
    write(None, text.encode())


def _damaged(played: Played) -> str:
    """The files and lines that could not be read: "1 session could not be read; 12 damaged lines were skipped"."""
    files = sum(not file.is_named for file, _ in played.failed)
    lines = sum(history.skipped_lines for history, _ in played.done)
    said = [f"{counted(files, 'session')} could not be read"] if files else []
    said += [f"{counted(lines, 'damaged line')} {'was' if lines == 1 else 'were'} skipped"] if lines else []
    return "; ".join(said)


def _print_json(plan: Plan, played: Played, curve: WindowCurve, record: Record | None) -> None:
    shown = [(history, session.under(plan.policies)) for history, session in played.shown]
    replays, elongation = [session.replay for _, session in shown], plan.asked.settings.elongation
    total = {"histories": len(shown), **costs_as_json(compare_costs(replays, elongation))}
    total |= {"quoted": quoted_shares(replays), **({} if record is None else {"screen": record.as_json()})}
    if plan.asked.curve:
        total["curve"] = curve_as_json(curve)
    rows = [None] * len(shown) if record is None else record.sessions
    figures = [
        (history, {**session_as_json(one, elongation), **({} if row is None else {"screen": row._asdict()})})
        for (history, one), row in zip(shown, rows, strict=True)
    ]
    write_report(figures, total, played.failed)


def _again(files: tuple[str, ...]) -> str:
    """The command as it was typed; empty where it had options that change what is shown."""
    context, others = click.get_current_context(), ("files", "html", "quiet", "verbose", "no_color")
    sources = (context.get_parameter_source(str(one.name)) for one in context.command.params if one.name not in others)
    is_alone = all(source is ParameterSource.DEFAULT for source in sources)
    return " ".join(["recede replay", shlex.join(files)]).strip() if is_alone else ""
