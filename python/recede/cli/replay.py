"""`recede replay`: plays finished sessions again, and says what was paid and what would have been."""

from __future__ import annotations

import operator
import shlex
from collections.abc import Callable
from functools import reduce
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource

from recede.cli.bill import check_text, log_options, logged_lines, prices_of
from recede.cli.comparison import costs_as_json, for_people, price_line, session_as_json
from recede.cli.files import keep_apart, write
from recede.cli.many import finish, notes_of, write_report
from recede.cli.notices import has_colors, output_options, verbosity
from recede.cli.page import page
from recede.cli.play import Plan, Played, planned, play
from recede.cli.quoted import (
    advice,
    against_recorded,
    curve_as_json,
    curve_table,
    list_table,
    listed,
    quoted_lines,
    quoted_shares,
)
from recede.cli.reading import reading_options
from recede.cli.screen import ELONGATION, Asked, LeftOut, screen
from recede.cli.sessions import chosen, plan_of_claude, project_option, since_option
from recede.cli.tables import prose
from recede.costs import CACHES, SUMMARY_CHARS, SYSTEM_CHARS, compare_costs, window_curve
from recede.transcripts._unread import NOTHING


def _numbers(least: int) -> Callable[[click.Context, click.Parameter, str], tuple[int, ...]]:
    """A parser for whole numbers separated by commas."""

    def read(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
        numbers = []
        for part in map(str.strip, value.split(",")):
            if not (part.isascii() and part.isdigit() and int(part) >= least):
                raise click.BadParameter(f"{part!r} is no whole number from {least}; write them as 5,10,20", ctx, param)
            numbers.append(int(part))
        return tuple(dict.fromkeys(numbers))

    return read


@click.command(short_help="Replay sessions and compare what policies cost.")
@click.argument("files", nargs=-1)
@since_option
@project_option
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="A table of each --keep with each --chunk, and more; so does giving one of these.",
)
@click.option(
    "--keep",
    "windows",
    callback=_numbers(0),
    default="5,10,20,58",
    show_default=True,
    metavar="M,...",
    help="How many of the newest results a mask leaves raw.",
)
@click.option(
    "--chunk",
    "chunks",
    callback=_numbers(1),
    default="1,10",
    show_default=True,
    metavar="N,...",
    help="By how many results the boundary moves at once; 1 is the sliding mask.",
)
@click.option(
    "--drop-all-but",
    "keep_last",
    callback=_numbers(0),
    default="20",
    show_default=True,
    metavar="K,...",
    help="How many messages are left by a policy that drops the older ones.",
)
@click.option(
    "--misses",
    is_flag=True,
    help="List the requests that quote what masking had hidden by then: those that the screen counts.",
)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="List only N of these, for judging by eye.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Which sample.")
@click.option(
    "--curve",
    is_flag=True,
    help="Cost and quoted share for windows of 1 to 100 results, and which saves most for each quotation.",
)
@click.option("--study", is_flag=True, help="The published comparison: windows, turns in a summary, turns left raw.")
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
    "--price",
    "prices",
    callback=prices_of,
    metavar="NAME,...",
    help="Prices for a million tokens: anthropic, anthropic_1h, openai, gemini, or one of these with changes, such as "
    "openai,output=0.  [default: those of the models that a log names; else by its format]",
)
@click.option(
    "--cache",
    "cache",
    type=click.Choice(list(CACHES)),
    metavar="NAME",
    help="How the provider caches prompts: anthropic, anthropic_1h, openai, gemini, or ideal, which serves whatever "
    "prefix two requests share. By default openai for Codex, gemini for the Gemini CLI, else anthropic.",
)
@click.option(
    "--summary-price",
    "summary_prices",
    callback=prices_of,
    metavar="NAME,...",
    help="The same for the model that writes summaries, if it is another one.",
)
@click.option(
    "--summary-chars",
    type=click.IntRange(min=0),
    default=SUMMARY_CHARS,
    show_default=True,
    metavar="N",
    help="How long its summaries are; 0 takes the built-in summary, which needs no model.",
)
@click.option(
    "--system-chars",
    type=click.IntRange(min=0),
    default=SYSTEM_CHARS,
    show_default=True,
    metavar="N",
    help="System prompt and tools, which logs leave out of each request; as logged tokens say, if there are any.",
)
@click.option(
    "--min-results",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Leave out sessions with fewer results.",
)
@click.option(
    "--elongation",
    type=click.FloatRange(min=0, max=1),
    default=0.0,
    metavar="SHARE",
    help="Charge agents with summaries so many more turns: 0.13 to 0.18 in the research.",
)
@click.option(
    "--subscription",
    is_flag=True,
    help="A subscription pays: tokens and share of the context window come before dollars.",
)
@reading_options
@click.option("--turns", is_flag=True, help="What each request would have sent, too.")
@click.option("--by-format", is_flag=True, help="A table by format instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option(
    "--context-window",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="The tokens that the model takes, for shares of it.  [default: the least that all requests fit into]",
)
@click.option("--html", metavar="OUT", help="Write a page with pictures here: one file that needs no network.")
@log_options
@output_options
def replay(files: tuple[str, ...], since: float | None, project: str | None, reading: Any, **options: Any) -> None:
    """Play sessions again: what you paid, what masking would have cost, and what to type for it.

    FILES may be folders. Without any, the sessions of Claude Code, Codex, Gemini CLI, OpenHands and pi in
    their usual places are read. With --policy, --all, --keep or --chunk it prints a table instead.

    A prompt cache serves the beginning of a request that is the same as in the previous request;
    everything after the first change is written to it again, and with Anthropic's breakpoints nearly
    the whole conversation. So a mask that moves at every turn can cost several times as much as none.
    Tokens are those that the logs have; where they have none, a token is about four characters.

    \b
    Example:
      recede replay
      recede replay --since 7d --project my-app --html report.html
      recede replay session.jsonl --keep 5,10,20
      recede replay logs --curve
      recede replay --check
    """
    asked = SimpleNamespace(**options)
    found = chosen(files, since, project)
    keep_apart("--html", asked.html, [file.path for file in found])
    plan = _plan(asked)._replace(claude_plan=None if files else plan_of_claude())
    played = play(plan, found, reading)
    _print(plan, played, asked, _again(files))
    # A screen of no requests has no line that counts notes.
    are_counted = plan.is_screen and any(one.requests for one in played.sessions) and verbosity() == 0
    finish(played.done, played.failed, warn=not asked.as_json and not are_counted)


def _plan(asked: SimpleNamespace) -> Plan:
    """Make the plan that the options ask for."""
    grid = {name: getattr(asked, name) for name in ("windows", "chunks", "keep_last")}
    has_grid = asked.is_all or any(_is_given(name) for name in grid)
    lists_misses = asked.misses or asked.sample is not None
    return planned(
        asked.policies,
        grid if has_grid else None,
        has_curve=asked.curve,
        has_study=asked.study,
        is_table=asked.turns or asked.by_format,
        has_pictures=asked.html is not None,
        has_texts=lists_misses,
        prices=asked.prices,
        cache=asked.cache,
        pauses="none" if asked.no_pauses else "logged",
        own_prices=asked.own_prices,
        is_checked=asked.check,
        min_results=asked.min_results,
        options={name: getattr(asked, name) for name in ("summary_prices", "summary_chars", "system_chars")},
    )


def _print(plan: Plan, played: Played, asked: SimpleNamespace, again: str) -> None:
    """Write the page, and print the one of tables, lists and the screen that the options ask for."""
    shown, sessions = played.shown(plan), played.sessions
    if not sessions:
        if played.done:
            write(None, f"no session has {asked.min_results} results or more\n".encode())
        return
    is_flat = asked.prices is not None
    said = quoted_lines(sessions, has_column=not asked.by_format) + logged_lines(sessions, is_flat=is_flat)
    notes = len(notes_of(played.done, played.failed)) + sum(line.startswith("assumed") for line in said)
    curve = window_curve([session.replay for session in sessions])
    best = curve.advised()
    facts = Asked(
        again,
        0 if verbosity() else notes,
        _left_out(played),
        is_flat,
        asked.subscription,
        asked.context_window,
        None if best is None else best.window,
        asked.elongation or ELONGATION,
        names_html=asked.html is None,
    )
    if asked.html is not None:
        write(asked.html, page(sessions, facts).encode(), [history.path for history, _ in shown])
    tabled = [session.under(plan.policies) for session in sessions]
    if asked.check:
        text = check_text(sessions)
    elif asked.as_json:
        _print_json(plan, played, asked)
        return
    elif asked.misses or asked.sample is not None:
        found = list_table(listed(sessions, facts.masked, asked.sample, asked.seed))
        text = f"{found}\n{prose([against_recorded(sessions), ''])}"
    elif asked.curve:
        text = f"{curve_table(curve)}\n{prose([advice(curve), *quoted_lines(sessions), ''])}"
    elif plan.is_screen:
        more = [*said, price_line([session.replay for session in sessions])] if verbosity() > 0 else []
        lines = prose(screen(sessions, facts)).split("\n")
        text = "\n".join([*_colored(lines), prose([*more, ""])])
    else:
        text = for_people(
            tabled,
            [advice(curve), *said] if plan.has_advice else said,
            by_format=asked.by_format,
            turns=asked.turns,
            elongation=asked.elongation,
            is_flat=is_flat,
        )
    write(None, text.encode())


def _left_out(played: Played) -> LeftOut:
    histories = [history for history, _ in played.done]
    return LeftOut(
        sum(not failure.file.is_named for failure in played.failed),
        sum(history.skipped_lines for history in histories),
        reduce(operator.add, (history.unread for history in histories), NOTHING),
    )


def _print_json(plan: Plan, played: Played, asked: SimpleNamespace) -> None:
    shown = [(history, session.under(plan.policies)) for history, session in played.shown(plan)]
    replays = [session.replay for _, session in shown]
    total = costs_as_json(compare_costs(replays, asked.elongation))
    total["quoted"] = quoted_shares(replays)
    if asked.curve:
        total["curve"] = curve_as_json(window_curve([session.replay for _, session in played.shown(plan)]))
    figures = [(history, session_as_json(session, asked.turns, asked.elongation)) for history, session in shown]
    write_report(figures, {"histories": len(shown), **total}, played.failed)


def _colored(lines: list[str]) -> list[str]:
    """The lines of the screen, that of masking in color where there are colors."""
    if not has_colors():
        return lines
    return [
        click.style(line, fg="green", bold=True) if line.startswith("  masked when it pays") else line for line in lines
    ]


def _again(files: tuple[str, ...]) -> str:
    """The command as it was typed; empty where it had options that change what is shown."""
    own = ("files", "html", "elongation")
    params = [str(one.name) for one in click.get_current_context().command.params if one.name not in own]
    has_others = any(_is_given(name) for name in params if name not in ("quiet", "verbose", "no_color"))
    return "" if has_others else " ".join(["recede replay", shlex.join(files)]).strip()


def _is_given(parameter: str) -> bool:
    return click.get_current_context().get_parameter_source(parameter) is not ParameterSource.DEFAULT
