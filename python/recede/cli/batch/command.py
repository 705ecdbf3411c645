"""`recede batch`: commands, options, and the report of a job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from recede.cli.batch.tasks import Task, tasks_of
from recede.cli.batch.work import Job, Outcome, do
from recede.cli.errors import say
from recede.cli.files import write, write_json
from recede.cli.notices import counted
from recede.cli.options import all_of, given, policy_option, policy_options, usage_error
from recede.cli.processes import cores, in_workers
from recede.cli.reading import text_mode_option

_DIED = "the worker died on it: too little memory, or a fault of recede, which is worth a report"


@click.group(no_args_is_help=True, short_help="Reduce or measure files of any number of histories.")
def batch() -> None:
    """Do the same with every history of files and folders: Parquet and JSON Lines.

    FILES are Parquet files, JSON Lines (also gzipped, or packed by zstd), and batch files of OpenAI and
    Anthropic. Results go to the folder OUT, a file for each file. What is there already is not done
    again, so that a job which was stopped resumes when it is started again.

    \b
    Example:
      recede batch reduce data/*.parquet --max-input-tokens 32000 -o reduced
      recede batch stats trajectories.jsonl.zst -o figures
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
    click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: one for each core]"),
    click.option("--json", "as_json", is_flag=True, help="Print a report in JSON."),
)
_SHARED = frozenset(["as_json", "column", "jobs", "out", "text_mode"])


@batch.command(no_args_is_help=True, short_help="Replace histories by their views.")
@_shared
@policy_options()
def reduce(inputs: tuple[str, ...], **options: Any) -> None:
    """Mask old tool outputs in every history; over a limit also cut, summarize and truncate.

    Parquet gets the view in the place of the history and columns with figures, JSON Lines keep every other
    byte. A bad row is null in Parquet, and stays as it is in lines.

    \b
    Example:
      recede batch reduce batch.jsonl --max-input-tokens 32000 -o reduced
    """
    policy = given({name: options.pop(name) for name in list(options) if name not in _SHARED})
    _run(partial(_operator, "Reducer", policy), inputs, has_views=True, **options)


@batch.command(no_args_is_help=True, short_help="Measure histories and their masked views.")
@_shared
@policy_option("keep", help="The newest N results stay raw.", default=10, show_default=True)
def stats(inputs: tuple[str, ...], keep: int, **options: Any) -> None:
    """Write the figures of every history: messages, turns, characters, and those of its masked view.

    \b
    Example:
      recede batch stats data -o figures
    """
    _run(partial(_operator, "Stats", {"keep": keep}), inputs, has_views=False, **options)


def _operator(name: str, options: dict[str, Any], column: str) -> Any:
    """Make the operator of this name from `recede.arrow`, which needs pyarrow."""
    from recede import arrow

    return getattr(arrow, name)(column, **options)


def _run(
    operator: Callable[[str], Any],
    inputs: Sequence[str],
    *,
    has_views: bool,
    column: str | None,
    text_mode: bool,
    out: str,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Run a job, and print its report."""
    if find_spec("pyarrow") is None:
        raise click.UsageError("recede batch needs its extra: pip install 'recede[batch]'")
    try:
        operator("messages")  # wrong options are refused before any file is read
    except (TypeError, ValueError) as error:
        raise usage_error(error) from None
    tasks = tasks_of(inputs, out)
    for pattern in (".*.part", ".recede-*"):
        for left in Path(out).rglob(pattern):  # of a job that was killed
            left.unlink(missing_ok=True)
    done: dict[Task, Outcome] = {}
    left_over = [task for task in tasks if not task.is_done()]
    work = in_workers(partial(do, Job(operator, has_views, column, text_mode)), left_over, jobs or cores())
    # Refreshed by no thread, which a fork must not meet.
    hidden = not sys.stderr.isatty()
    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False, disable=hidden) as bar:
        for task, outcome in bar.track(work, total=len(left_over), description="working"):
            done[task] = outcome or Outcome(_DIED)
    _report(tasks, done, as_json=as_json)


def _report(tasks: Sequence[Task], done: dict[Task, Outcome], *, as_json: bool) -> None:
    """Print the result of each task; exit with 1 if a row or a file is bad, in this run or an earlier one."""
    total = Outcome()
    files, lines = [], []
    for task in tasks:
        outcome = done.get(task, Outcome())
        total.rows += outcome.rows
        total.figures.update(outcome.figures)
        total.failed += outcome.failed
        errors = task.errors if outcome.error is None and Path(task.errors).exists() else None
        output = None if outcome.error else task.target
        found = {"output": output, "errors": errors, "error": outcome.error, "is_skipped": task not in done}
        files.append({"file": task.path, **found})
        if outcome.error:
            lines.append(f"{task.path}: {outcome.error.removeprefix(f'{task.path}: ')}")
        elif outcome.failed:
            first = outcome.failed[0]
            place = next(f"{name} {first[name]}" for name in ("line", "row") if name in first)
            hint = "; --column names another field" if first["kind"] == "history" else ""
            lines.append(f"bad rows are listed in {errors}; the first: {task.path}: {place}: {first['error']}{hint}")
        elif errors:
            lines.append(f"bad rows of an earlier run are listed in {errors}")
    bad, skipped = len(total.failed), len(tasks) - len(done)
    if as_json:
        write_json({"rows": total.rows, "bad_rows": bad, "figures": dict(total.figures), "files": files})
    else:
        said = [f"{counted(total.rows - bad, 'history')}, {counted(bad, 'bad row')}"]
        said += [", ".join(f"{name}: {number:,}" for name, number in total.figures.items())] if total.rows else []
        said += [f"{counted(skipped, 'result')} of an earlier run: not done again"] if skipped else []
        write(None, "\n".join([*said, ""]).encode())
    for line in lines:
        say(line)
    if lines:
        click.get_current_context().exit(1)
