"""`recede replay`: replay finished sessions under several policies."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from recede import mask_observations_json
from recede.cli.files import Transcript, keep_apart, write
from recede.cli.many import finish, format_option, max_bytes_option, named, over, write_report
from recede.cli.page import page
from recede.cli.plot import plot
from recede.cli.suggestion import sentences, suggestion_as_json, tables_of
from recede.cli.tables import cost_table, share, table
from recede.cli.verdict import Session, percent, price_line, verdict
from recede.costs import (
    SUMMARY_CHARS,
    SYSTEM_CHARS,
    PolicyCost,
    Prices,
    Suggestion,
    cheapest_policy,
    compare_costs,
    replay_json,
    replay_policies,
    suggest_window,
)

__all__ = ["replay"]

_EVERYTHING = 1 << 60


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


def _prices(ctx: click.Context, param: click.Parameter, value: str | None) -> Prices | None:
    try:
        return None if value is None else Prices.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


@click.command(no_args_is_help=True, short_help="Replay sessions and compare what policies cost.")
@click.argument("files", nargs=-1, required=True)
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
    "--keep-messages",
    "keep_last",
    callback=_numbers(0),
    default="20",
    show_default=True,
    metavar="K,...",
    help="How many messages are left where the older ones are dropped.",
)
@click.option(
    "--suggest",
    is_flag=True,
    help="Find the window, the chunk and the summaries that cost least, and how much each choice matters.",
)
@click.option(
    "--optimum",
    is_flag=True,
    help="With each window also the boundary that would have cost least, knowing the future.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME:KEY=N,...",
    help="Compare these instead: raw, sliding:window=M, stepped:window=M,chunk=N, break_even:window=M, "
    "high_water:window=M,chars=N, optimum:window=M, keep_last:messages=K, summary:every=N,tail=M, "
    "hybrid:window=W,at=N,tail=M, budget:tokens=N,fill=F. Repeatable.",
)
@click.option(
    "--price",
    "prices",
    callback=_prices,
    default="anthropic",
    show_default=True,
    metavar="NAME,...",
    help="Prices for a million tokens: anthropic, anthropic_1h, openai, gemini, or one of these with changes, such as "
    "openai,output=0.",
)
@click.option(
    "--summary-price",
    "summary_prices",
    callback=_prices,
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
    help="What logs leave out of each request: system prompt and tools.",
)
@click.option(
    "--min-results",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Leave out sessions with fewer results.",
)
@format_option
@max_bytes_option
@click.option("--turns", is_flag=True, help="What each request would have sent, too.")
@click.option("--by-format", is_flag=True, help="A table by format instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option("--html", metavar="OUT", help="Write a page with pictures here: one file that needs no network.")
@click.option("--png", metavar="OUT", help="Write the pictures here as one image; needs the extra recede[plot].")
def replay(
    files: tuple[str, ...],
    windows: tuple[int, ...],
    chunks: tuple[int, ...],
    keep_last: tuple[int, ...],
    suggest: bool,
    optimum: bool,
    policies: tuple[str, ...],
    prices: Prices,
    summary_prices: Prices | None,
    summary_chars: int,
    system_chars: int,
    min_results: int,
    format_name: str | None,
    max_bytes: int,
    turns: bool,
    by_format: bool,
    as_json: bool,
    html: str | None,
    png: str | None,
) -> None:
    """Replay the sessions in FILES, request by request, and compare what masking would have cost.

    A prompt cache serves the beginning of a request that is the same as in the previous request;
    everything after the first change is written to it again. So a mask that moves at every turn can
    cost more than none. Characters are code points; a token is about four of them.

    \b
    Example:
      recede replay session.jsonl --html report.html
      recede replay ~/.claude/projects/*/*.jsonl --keep 5,10,20 --optimum
      recede replay ~/.claude/projects/*/*.jsonl --suggest --html report.html
    """
    keep_apart("--html", html, files)
    keep_apart("--png", png, files)
    wanted = policies or replay_policies(windows=windows, chunks=chunks, keep_last=keep_last)
    if optimum:
        masks = (re.match(r"(?:sliding|stepped|break_even|high_water):\s*window=(\d+)", policy) for policy in wanted)
        found = dict.fromkeys(mask[1] for mask in masks if mask)
        wanted += tuple(f"optimum:window={window}" for window in found)
    try:
        replay_json(b"[]", wanted)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--policy") from None

    options: dict[str, Any] = {"prices": prices, "system_chars": system_chars}
    options |= {"summary_prices": summary_prices, "summary_chars": summary_chars}

    def play(history: Transcript) -> Session:
        replayed = history.run(lambda data: replay_json(data, wanted, **options))
        raw = history.run(lambda data: mask_observations_json(data, keep_results=_EVERYTHING))
        session = Session(named(history), history.format, replayed, raw.tools, raw.chars_before)
        if suggest and _results(session) >= min_results:
            suggestions.append(history.run(lambda data: suggest_window([data], **grid, **options)))
        return session

    suggestions: list[Suggestion] = []
    given = {"windows": _given("windows", windows), "chunks": _given("chunks", chunks)}
    grid: dict[str, Any] = {name: numbers for name, numbers in given.items() if numbers}
    done, failed = over(files, format_name, max_bytes, play)
    done = [(history, session) for history, session in done if _results(session) >= min_results]
    sessions = [session for _, session in done]
    suggestion = Suggestion.total(suggestions) if suggestions else None
    if sessions and html is not None:
        write(html, page(sessions, suggestion).encode(), [history.path for history, _ in done])
    if sessions and png is not None:
        write(png, plot(sessions), [history.path for history, _ in done])
    if sessions and as_json:
        histories = [_as_json(history, session, turns) for history, session in done]
        total = _costs_as_json(compare_costs(session.replay for session in sessions))
        if suggestion is not None:
            total["suggestion"] = suggestion_as_json(suggestion)
        write_report(histories, {"histories": len(sessions), **total}, failed)
    elif not sessions and not failed:
        write(None, f"no session has {min_results} results or more\n".encode())
    elif suggestion is not None:
        lines = [*sentences(suggestion), price_line([session.replay for session in sessions])]
        write(None, "\n".join([tables_of(suggestion, len(sessions)), *lines, ""]).encode())
    elif sessions:
        write(None, _for_people(sessions, by_format, turns).encode())
    finish(done, failed, warn=not as_json)


def _given(parameter: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The given numbers; by default a suggestion tries more of them."""
    source = click.get_current_context().get_parameter_source(parameter)
    return () if source is ParameterSource.DEFAULT else numbers


def _results(session: Session) -> int:
    return sum(tool.observations for tool in session.tools.values())


def _for_people(sessions: list[Session], by_format: bool, turns: bool) -> str:
    replays = [session.replay for session in sessions]
    parts = []
    if turns:
        parts += [_turns_table(session, len(sessions)) for session in sessions]
    if by_format:
        parts.append(_format_table(sessions))
    else:
        parts.append(_costs_table(compare_costs(replays), len(sessions)))
    lines = [] if by_format else verdict(compare_costs(replays), len(sessions))
    return "\n".join([*parts, "\n".join([*lines, price_line(replays)]) + "\n"])


def _costs_table(costs: tuple[PolicyCost, ...], sessions: int) -> str:
    requests = costs[0].usage.requests
    headings, rows = cost_table(costs, "no cache")
    if sessions > 1:
        headings += ["mean", "worst", "losses"]
        of_sessions = (
            [percent(cost.mean_of_raw), percent(cost.worst_of_raw), str(cost.dearer_count)] for cost in costs
        )
        rows = [[*row, *figures] for row, figures in zip(rows, of_sessions, strict=True)]
    head = f"{requests:,} requests" + (f" of {sessions:,} sessions" if sessions > 1 else "")
    return f"{head}\n\n{table(headings, rows)}"


def _turns_table(session: Session, sessions: int) -> str:
    """A row for each request: the tokens sent under each policy, and the share that the cache would serve."""
    policies = session.replay.policies
    rows = []
    for number, turns in enumerate(zip(*(replayed.turns for replayed in policies), strict=True), 1):
        cells = (f"{turn.view_tokens:,} {share(turn.cached_chars, turn.view_chars):>5}" for turn in turns)
        rows.append([str(number), *cells])
    head = f"{session.name}\n" if sessions > 1 else ""
    return head + table(["turn", *(replayed.policy for replayed in policies)], rows)


def _format_table(sessions: list[Session]) -> str:
    """For each format, and for all, a row for each policy but raw."""
    groups: dict[str, list[Session]] = {}
    for session in sessions:
        groups.setdefault(session.format, []).append(session)
    headings = [
        "format",
        "policy",
        "sessions",
        "requests",
        "of raw",
        "mean",
        "worst",
        "losses",
        "of optimum",
        "no cache",
    ]
    rows = []
    for name, group in [*groups.items(), ("total", sessions)]:
        raw, *others = compare_costs(session.replay for session in group)
        counts = [f"{len(group):,}", f"{raw.usage.requests:,}"]
        for cost in others:
            figures = [percent(share) for share in (cost.of_raw, cost.mean_of_raw, cost.worst_of_raw)]
            of_optimum = "-" if cost.of_optimum is None else percent(cost.of_optimum)
            figures += [str(cost.dearer_count), of_optimum, percent(cost.of_raw_uncached)]
            rows.append([name, cost.policy, *counts, *figures])
            name, counts = "", ["", ""]
    return table(headings, rows, names=2)


def _as_json(history: Transcript, session: Session, turns: bool) -> dict[str, Any]:
    report: dict[str, Any] = {
        "file": history.name,
        "index": history.index,
        "format": history.format,
        **_costs_as_json(session.replay.costs),
        "warnings": history.warnings,
    }
    if turns:
        for policy, replayed in zip(report["policies"], session.replay.policies, strict=True):
            policy["turns"] = [turn._asdict() for turn in replayed.turns]
    return report


def _costs_as_json(costs: tuple[PolicyCost, ...]) -> dict[str, Any]:
    policies = [{**cost._asdict(), "usage": cost.usage._asdict()} for cost in costs]
    return {"requests": costs[0].usage.requests, "cheapest": cheapest_policy(costs).policy, "policies": policies}
