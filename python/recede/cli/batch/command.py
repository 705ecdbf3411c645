"""`recede batch`: its commands and options, and the job that they make."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from recede import __version__
from recede.cli.batch.folder import begin, finish, outcomes, waiting
from recede.cli.batch.pool import Failed, in_workers
from recede.cli.batch.report import report_of
from recede.cli.batch.units import Unit, units_of
from recede.cli.batch.work import Job, Outcome, Sums, do
from recede.cli.bill import prices_of
from recede.cli.errors import say
from recede.cli.files import keep_apart, write
from recede.cli.notices import counted
from recede.cli.options import all_of, given, policy_option, policy_options, usage_error
from recede.cli.processes import cores
from recede.cli.reading import text_mode_option
from recede.costs import CACHES, Prices, replay_policies, suggest_policies

_UNIT_BYTES = 128 << 20


@click.group(no_args_is_help=True, short_help="Reduce, measure or replay files of any number of histories.")
def batch() -> None:
    """Do the same with every history of files and folders: Parquet, JSON Lines, sessions, logs.

    FILES are Parquet files, JSON Lines (also gzipped, or packed by zstd), batch files of OpenAI and
    Anthropic, sessions in every format that `recede stats` reads, and .eval logs of inspect_ai. Results
    go to the folder OUT. A job that was stopped resumes when it is started again.

    \b
    Example:
      recede batch reduce data/*.parquet --max-input-tokens 32000 -o reduced
      recede batch suggest trajectories.jsonl.zst -o suggested
    """


_shared = all_of(
    click.argument("inputs", nargs=-1, required=True, metavar="FILES..."),
    click.option("-o", "--output", "out", required=True, metavar="OUT", help="The folder of the results."),
    click.option(
        "--column",
        metavar="NAME",
        help="The column, or the path in each line, with the histories.  [default: messages, body.messages, "
        "params.messages, conversations, trajectory, …: the first that is there]",
    ),
    text_mode_option,
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="For --engine local: processes.  [default: one for each core]",
    ),
    click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="Processes of this machine, or a Ray cluster (Parquet alone; needs the extra recede[ray]).",
    ),
    click.option(
        "--id",
        "id_column",
        metavar="NAME",
        help="For --engine ray: a column that is different in each row, by which a stopped job resumes.",
    ),
    click.option(
        "--unit-bytes",
        type=click.IntRange(min=1),
        default=_UNIT_BYTES,
        show_default=True,
        metavar="N",
        help="About how much of a file is done at once, where it can be divided: what a stopped job loses.",
    ),
)
_SHARED = frozenset(["column", "engine", "id_column", "jobs", "out", "text_mode", "unit_bytes"])

# Of `replay` and `suggest`.
_replays = all_of(
    click.option(
        "--price",
        "prices",
        callback=prices_of,
        metavar="NAME,...",
        help="Prices for a million tokens, as for recede replay.  [default: anthropic]",
    ),
    click.option(
        "--cache",
        type=click.Choice(list(CACHES)),
        default="anthropic",
        show_default=True,
        metavar="NAME",
        help="How the provider caches prompts: anthropic, anthropic_1h, openai, gemini or ideal.",
    ),
    click.option(
        "--by", multiple=True, metavar="NAME", help="A column of Parquet by which usage is added up. Repeatable."
    ),
)


@batch.command(no_args_is_help=True, short_help="Replace histories by their views.")
@_shared
@policy_options("reduce")
def reduce(inputs: tuple[str, ...], **options: Any) -> None:
    """Reduce every history to a budget; without one, mask.

    Parquet gets the view in the place of the history and columns with figures, JSON Lines keep every other
    byte, sessions become lines with their views. A bad row is null in Parquet, and stays as it is in lines.

    \b
    Example:
      recede batch reduce batch.jsonl --max-input-tokens 32000 -o reduced
    """
    policy = given({name: options.pop(name) for name in list(options) if name not in _SHARED})
    if not policy.keys() & {"max_input_chars", "max_input_tokens"} and not policy.get("preserve_recent_raw_turns"):
        policy.pop("preserve_recent_raw_turns", None)  # an option of budgets alone
    _run("reduce", inputs, partial(_operator, "Reducer", policy), policy, **options)


@batch.command(no_args_is_help=True, short_help="Measure histories and their masked views.")
@_shared
@policy_option("keep_results", default=4, show_default=True)
def stats(inputs: tuple[str, ...], keep_results: int, **options: Any) -> None:
    """Write the figures of every history: messages, turns, characters, and those of its masked view.

    \b
    Example:
      recede batch stats data -o figures
    """
    policy = {"keep_results": keep_results}
    _run("stats", inputs, partial(_operator, "Stats", policy), policy, **options)


@batch.command(no_args_is_help=True, short_help="Compare what policies cost over all histories.")
@_shared
@_replays
@click.option("--policy", "policies", multiple=True, metavar="NAME:KEY=N,...", help="As for recede replay. Repeatable.")
def replay(
    inputs: tuple[str, ...],
    policies: tuple[str, ...],
    prices: Prices | None,
    cache: str,
    by: tuple[str, ...],
    **options: Any,
) -> None:
    """Replay every history under several policies, and add up what they cost.

    \b
    Example:
      recede batch replay data.parquet --by model -o costs
    """
    chosen = {"policies": list(policies or replay_policies()), "prices": prices or Prices(), "cache": cache}
    _run("replay", inputs, partial(_operator, "Replay", chosen), chosen, by=by, **options)


@batch.command(no_args_is_help=True, short_help="Find the window that costs least over all histories.")
@_shared
@_replays
def suggest(inputs: tuple[str, ...], prices: Prices | None, cache: str, by: tuple[str, ...], **options: Any) -> None:
    """Find the window, the chunk and the summaries that cost least over all histories.

    \b
    Example:
      recede batch suggest data.parquet -o suggested
    """
    chosen = {"policies": suggest_policies(), "prices": prices or Prices(), "cache": cache}
    _run("suggest", inputs, partial(_operator, "Replay", chosen), chosen, by=by, **options)


def _operator(name: str, options: dict[str, Any], column: str, **by: Sequence[str]) -> Any:
    """The operator of this name in `recede.arrow`, which needs pyarrow."""
    from recede import arrow

    return getattr(arrow, name)(column, **options, **by)


def _run(
    command: str,
    inputs: Sequence[str],
    operator: Callable[[str], Any],
    options: dict[str, Any],
    *,
    column: str | None,
    text_mode: bool,
    out: str,
    jobs: int | None,
    engine: str,
    id_column: str | None,
    unit_bytes: int,
    by: tuple[str, ...] = (),
) -> None:
    """Do a job, and say what came of it."""
    for flag, value, of in (("--id", id_column, "ray"), ("--jobs", jobs, "local")):
        if value is not None and engine != of:
            raise click.UsageError(f"{flag} is for --engine {of}")
    _checked(operator)
    keep_apart("--output", out, inputs)
    job = Job(command, out, operator, column, text_mode, by)
    units = units_of(inputs, unit_bytes, has_column=column is not None)
    others = [unit for unit in units if unit.kind != "parquet"]
    if others and job.by:
        raise click.UsageError(f"--by names columns of Parquet, and {others[0].paths[0]} is none")
    if others and engine == "ray":
        raise click.UsageError(f"--engine ray reads Parquet alone, and {others[0].paths[0]} is none")
    on_ray = _ray() if engine == "ray" else None
    begin(out, {**_description(job, options, units), "engine": engine, "id": id_column})
    if on_ray:
        lost: list[dict[str, Any]] = []
        found = on_ray.run(job, units, id_column, unit_bytes)
    else:
        lost = _locally(job, units, jobs or cores())
        found = outcomes(out, units)
    _report(job, options, found, lost)


def _ray() -> Any:
    """The module that imports Ray."""
    try:
        from recede.cli.batch import ray
    except ImportError:
        raise click.UsageError("--engine ray needs Ray: pip install 'recede[ray]'") from None
    return ray


def _checked(operator: Callable[[str], Any]) -> None:
    """Refuse wrong options before any file is read."""
    if find_spec("pyarrow") is None:
        raise click.UsageError("recede batch needs its extra: pip install 'recede[batch]'")
    try:
        operator("messages")
    except (TypeError, ValueError) as error:
        raise usage_error(error) from None


def _description(job: Job, options: dict[str, Any], units: Sequence[Unit]) -> dict[str, Any]:
    """What makes a job another one: a result for other files or options is no part of it."""
    files = {}
    for path in dict.fromkeys(path for unit in units for path in unit.paths):
        facts = Path(path).stat()
        files[path] = [facts.st_size, facts.st_mtime_ns]
    return {
        "version": __version__,
        "command": job.command,
        "options": {name: value if isinstance(value, (list, tuple)) else str(value) for name, value in options.items()},
        "by": job.by,
        "column": job.column,
        "text_mode": job.text_mode,
        "files": files,
        "units": [unit.name for unit in units],
    }


def _locally(job: Job, units: Sequence[Unit], jobs: int) -> list[dict[str, Any]]:
    """Do the units that are not done; those that failed."""
    left = waiting(job.out, units)
    total = sum(unit.size for unit in units)
    done = total - sum(unit.size for unit in left)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    lost = []
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,  # by a thread, which a fork must not meet
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task(job.command, total=total, completed=done)
        for ended in in_workers(left, partial(do, job), jobs):
            if ended is not None:
                unit, outcome = ended
                bar.advance(task, unit.size)
                if isinstance(outcome, Failed):
                    lost.append(
                        {"file": unit.paths[0], "unit": unit.name, "kind": outcome.kind, "error": outcome.error}
                    )
            bar.refresh()
    return lost


def _report(job: Job, options: dict[str, Any], found: Iterator[Outcome], lost: list[dict[str, Any]]) -> None:
    sums = Sums()
    for outcome in found:
        sums.add(outcome, len(job.by))
    failed = sums.failed
    summary, lines = report_of(job, options, sums)
    summary |= {"failed": len(failed), "units_failed": len(lost)}
    finish(job.out, [*failed, *lost], summary)
    good, bad = summary["rows"] - len(failed), len(failed)
    write(None, "\n".join([f"{counted(good, 'history')}, {counted(bad, 'bad row')}", *lines, ""]).encode())
    for one in lost:
        say(f"{one['file']}: {one['error']}")
    if failed:
        first = failed[0]
        place = ", ".join(
            f"{name} {first[name]}" for name in ("line", "byte", "row", "id", "index", "sample") if name in first
        )
        where = f"{first['file']}: {place}: " if place else f"{first['file']}: "
        words = first["error"].removeprefix(f"{first['file']}: ")
        errors = Path(job.out, "errors.jsonl")
        say(f"bad rows are listed in {errors}; the first: {where}{words}")
    if failed or lost:
        click.get_current_context().exit(1)
