"""`recede replay`: replay finished sessions under several policies."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from recede.cli.anatomy import anatomy
from recede.cli.bill import check_text, log_options, logged, logged_lines, prices_of, without_copies
from recede.cli.comparison import costs_as_json, for_people, session_as_json
from recede.cli.files import InputHistory, keep_apart, write
from recede.cli.many import finish, named, over, write_report
from recede.cli.notices import output_options
from recede.cli.page import CONTEXT_WINDOW, page
from recede.cli.quoted import advice, curve_as_json, curve_table, list_table, listed, quoted_lines, quoted_shares
from recede.cli.reading import Reading, reading_options
from recede.cli.sessions import chosen, project_option, since_option
from recede.cli.tables import prose
from recede.cli.verdict import Session
from recede.costs import (
    CACHES,
    SUMMARY_CHARS,
    SYSTEM_CHARS,
    ModelPrices,
    Prices,
    compare_costs,
    curve_policies,
    reads_texts,
    replay_json,
    replay_policies,
    replay_transcript,
    window_curve,
)
from recede.designs import mask_observations

_EVERYTHING = 1 << 60

# Compared by default: what agents have today, break-even at two windows, and the hybrid.
_FEW = (
    "raw",
    "sliding:window=10",
    "clear_tool_uses:trigger=100000,keep=3",
    "break_even:window=10",
    "break_even:window=20",
    "hybrid:window=10,at=43,tail=10,boundary=break_even",
)


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
    help="Compare each --keep with each --chunk, not only a few policies; so does giving one of these.",
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
    "--keep-messages",
    "keep_last",
    callback=_numbers(0),
    default="20",
    show_default=True,
    metavar="K,...",
    help="How many messages are left where the older ones are dropped.",
)
@click.option("--misses", is_flag=True, help="List what requests quote that only results 10 or more old had.")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="List only N of these, for judging by eye.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Which sample.")
@click.option("--curve", is_flag=True, help="Cost and quoted share for windows of 1 to 100 results, and which to take.")
@click.option(
    "--max-misses",
    type=click.FloatRange(min=2, max=100),
    default=5,
    show_default=True,
    metavar="PERCENT",
    help="The window to take is one under which at most this share of requests quotes masked text.",
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
    "high_water:window=M,chars=N, optimum:window=M, clear_tool_uses:trigger=N,keep=M,at_least=L, "
    "langchain_clear:trigger=N,keep=M, clip:chars=N, keep_last:messages=K, summary:every=N,tail=M, "
    "hybrid:window=W,at=N,tail=M, budget:tokens=N,fill=F. Repeatable.",
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
@reading_options
@click.option("--turns", is_flag=True, help="What each request would have sent, too.")
@click.option("--by-format", is_flag=True, help="A table by format instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option(
    "--context-window",
    type=click.IntRange(min=1),
    default=CONTEXT_WINDOW,
    show_default=True,
    metavar="N",
    help="The tokens that the model takes: a line in the pictures.",
)
@click.option("--html", metavar="OUT", help="Write a page with pictures here: one file that needs no network.")
@log_options
@output_options
def replay(
    files: tuple[str, ...],
    since: float | None,
    project: str | None,
    is_all: bool,
    windows: tuple[int, ...],
    chunks: tuple[int, ...],
    keep_last: tuple[int, ...],
    misses: bool,
    sample: int | None,
    seed: int,
    curve: bool,
    max_misses: float,
    optimum: bool,
    policies: tuple[str, ...],
    prices: Prices | None,
    cache: str | None,
    min_results: int,
    reading: Reading,
    turns: bool,
    by_format: bool,
    as_json: bool,
    context_window: int,
    html: str | None,
    own_prices: dict[str, ModelPrices],
    no_pauses: bool,
    check: bool,
    **options: Any,
) -> None:
    """Replay sessions request by request: what was paid, and what masking would have cost.

    FILES may be folders. Without any, the sessions of Claude Code, Codex, Gemini CLI and OpenHands in
    their usual places are read.

    A prompt cache serves the beginning of a request that is the same as in the previous request;
    everything after the first change is written to it again, and with Anthropic's breakpoints nearly
    the whole conversation. So a mask that moves at every turn can cost several times as much as none.
    Tokens are those that the logs have; where they have none, a token is about four characters.

    \b
    Example:
      recede replay
      recede replay --since 7d --project my-app --html report.html
      recede replay session.jsonl --keep 5,10,20 --optimum
      recede replay logs --curve
      recede replay --check
    """
    files_read = chosen(files, since, project)
    keep_apart("--html", html, [file.path for file in files_read])
    has_grid = is_all or any(_is_given(name) for name in ("windows", "chunks", "keep_last"))
    grid_of = replay_policies(windows=windows, chunks=chunks, keep_last=keep_last)
    wanted = policies or (grid_of if has_grid else curve_policies() if curve else _FEW)
    if optimum:
        masks = (re.match(r"(?:sliding|stepped|break_even|high_water):\s*window=(\d+)", policy) for policy in wanted)
        found = dict.fromkeys(mask[1] for mask in masks if mask)
        wanted += tuple(f"optimum:window={window}" for window in found)
    try:
        replay_json(b"[]", wanted)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--policy") from None

    pauses = "none" if no_pauses else "logged"

    def play(history: InputHistory) -> Session:
        with_misses = history.session is None or history.session.has_texts
        log = None if history.session is None else logged(history.session, own_prices, is_checked=check)
        if history.session is None or log is None:
            used: dict[str, Any] = {"prices": prices or Prices(), "cache": cache or "anthropic"}
            replayed = history.run(lambda data: replay_json(data, wanted, with_misses=True, **used, **options))
        else:
            found = log.prices if prices is None else log.prices._replace(prices=prices)
            used = {"prices": found, "cache": cache, "pauses": pauses, "with_misses": with_misses}
            replayed = replay_transcript(history.session, wanted, **used, **options)
        raw = mask_observations(history.parsed(), keep_results=_EVERYTHING)
        drawn = None if html is None else anatomy(history.parsed(), replayed)
        return Session(named(history), history.format, replayed, raw.tools, raw.chars_before, drawn, log)

    lists_misses = misses or sample is not None
    keep_texts = html is not None or lists_misses or curve or reads_texts(wanted, options["summary_chars"])
    reading = reading._replace(keep_texts=keep_texts)
    played, failed = over(files_read, reading, play, is_parallel=True)
    done, shown = [], []
    without = without_copies([session for _, session in played])
    for (history, _), (session, warnings) in zip(played, without, strict=True):
        done.append((dataclasses.replace(history, warnings=(*history.warnings, *warnings)), session))
        if session is not None and _results(session) >= min_results:
            shown.append((history, session))
    sessions = [session for _, session in shown]
    paths = [history.path for history, _ in shown]
    drawn = [session._replace(name=name) for session, name in zip(sessions, _short_names(sessions), strict=True)]
    if drawn and html is not None:
        write(html, page(drawn, context_window).encode(), paths)
    if sessions and check:
        write(None, check_text(drawn).encode())
    elif sessions and as_json:
        histories = [(history, session_as_json(session, turns)) for history, session in shown]
        total = costs_as_json(compare_costs(session.replay for session in sessions))
        total["quoted"] = quoted_shares([session.replay for session in sessions])
        if curve:
            total["curve"] = curve_as_json(window_curve([session.replay for session in sessions]), max_misses / 100)
        write_report(histories, {"histories": len(sessions), **total}, failed)
    elif done and not sessions:
        write(None, f"no session has {min_results} results or more\n".encode())
    elif sessions and lists_misses:
        write(None, f"{list_table(listed(sessions, sample, seed))}\n{prose([*quoted_lines(sessions), ''])}".encode())
    elif sessions and curve:
        windows_found = window_curve([session.replay for session in sessions])
        lines = [advice(windows_found, max_misses / 100), *quoted_lines(sessions), ""]
        write(None, f"{curve_table(windows_found)}\n{prose(lines)}".encode())
    elif sessions:
        said = quoted_lines(sessions) + logged_lines(sessions, is_flat=prices is not None)
        text = for_people(sessions, said, by_format=by_format, turns=turns, has_notes=has_grid or bool(policies))
        write(None, text.encode())
    finish(done, failed, warn=not as_json)


def _is_given(parameter: str) -> bool:
    return click.get_current_context().get_parameter_source(parameter) is not ParameterSource.DEFAULT


def _short_names(sessions: Sequence[Session]) -> list[str]:
    """The names without the folder that all are in."""
    folders = {str(Path(session.name).parent) for session in sessions}
    try:
        shared = os.path.commonpath(folders) if folders else "."
    except ValueError:  # on several drives
        return [session.name for session in sessions]
    return [str(Path(session.name).relative_to(shared or ".")) for session in sessions]


def _results(session: Session) -> int:
    return sum(tool.observations for tool in session.tools.values())
