"""`recede reduce`: a history within a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from recede import reduce as masked
from recede._files import identity
from recede.cli.files import InputHistory, for_screen, is_gzipped, keep_apart, write
from recede.cli.many import finish, named, over, short_names, write_report
from recede.cli.notices import bad_file, errors_of, output_options, say
from recede.cli.options import all_of, given, policy_option, policy_options, usage_error
from recede.cli.sessions import Reading, chosen, reading_options
from recede.cli.tables import orphans, size, table, tools_table
from recede.designs import HistoryReducer
from recede.reduction._options import DESIGN_OPTIONS
from recede.types import JsonReduction

_OWN = ("files", "output", "in_place", "reading", "as_json", "strict")
# What is added up over several histories.
_SUMS = ("chars_before", "chars_after", "masked_count", "dropped_count")


class _ReduceCommand(click.Command):
    """The command, which with ``--design`` takes the options of the published reducer instead."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if "--design" in args:
            return _design.make_context(info_name, [word for word in args if word != "--design"], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        return ctx.command.invoke(ctx) if ctx.command is not self else super().invoke(ctx)


def _shared(command: Any) -> Any:
    return all_of(
        click.argument("files", nargs=-1, required=True),
        click.option(
            "-o", "--output", metavar="OUT",
            help="Write the reduced history here: whole, or not at all. A folder for many.",
        ),
        click.option("--in-place", is_flag=True, help="Write each reduced history over its own file."),
        reading_options,
        click.option(
            "--json", "as_json", is_flag=True, help="Print the report as JSON; the history goes to OUT alone."
        ),
        click.option(
            "--strict", is_flag=True, help="Exit with 1 if a view is over its limit; it is written all the same."
        ),
        output_options,
    )(command)  # fmt: skip


@click.command(cls=_ReduceCommand, no_args_is_help=True, short_help="Mask old tool outputs in histories.")
@_shared
@policy_options
@click.option("--design", is_flag=True, help="Take the options of the published reducer (--design --help has them).")
def reduce(design: bool, **options: Any) -> None:
    """Mask old tool outputs in FILES; over a limit also cut, summarize and truncate.

    The view goes to standard output or to OUT, a report for people to standard error. An
    array, a request body and JSON Lines keep their form, and every byte that is not replaced; of
    other formats the view is a JSON array. FILES may be folders. With several histories, OUT is a
    folder, and --json without it gives the report alone. OUT is never one of FILES: --in-place is
    for that.

    \b
    Example:
      recede reduce session.json --boundary sliding -o reduced.json
      recede reduce logs/* --max-input-tokens 8000 -o reduced
    """
    own, masking = {name: options.pop(name) for name in _OWN}, given(options)
    try:
        masked(b"[]", **masking)  # reports a wrong value before any file is read
    except ValueError as error:
        raise usage_error(error) from None
    _run(**own, reduce=lambda data: masked(data, **masking))


@click.command("reduce", no_args_is_help=True)
@_shared
@all_of(
    *(
        policy_option(name, table=DESIGN_OPTIONS)
        for name, option in DESIGN_OPTIONS.items()
        if "reduce" in option.goals and option.flag is not None
    )
)
@click.option("--design", is_flag=True, expose_value=False, help="Take these options, of the published reducer.")
def _design(**options: Any) -> None:
    """Reduce FILES to a budget, as the published design: mask, then summarize, then truncate.

    --keep, --keep-messages and --keep-turns replace the default window, the last 4 messages.

    \b
    Example:
      recede reduce --design session.json --max-input-chars 32000 -o reduced.json
    """
    own = {name: options.pop(name) for name in _OWN}
    try:
        reducer = HistoryReducer(**given(options, DESIGN_OPTIONS))
        reducer.reduce([])  # reports a missing budget
    except ValueError as error:
        raise usage_error(error) from None
    _run(**own, reduce=reducer.reduce_json)


def _run(
    files: tuple[str, ...],
    output: str | None,
    in_place: bool,
    reading: Reading,
    as_json: bool,
    strict: bool,
    reduce: Callable[[bytes], JsonReduction],
) -> None:
    if as_json and output == "-":
        raise click.UsageError("--json and the history cannot both go to standard output")
    if in_place and (output is not None or "-" in files):
        raise click.UsageError("--in-place takes the place of -o OUT, and needs files to write to")
    are_many = len(files) > 1 or (files[0] != "-" and Path(files[0]).is_dir())
    if are_many and output in (None, "-") and not as_json and not in_place:
        raise click.UsageError("several files need a folder: -o OUT, or --json for the report alone")
    found = chosen(files)
    paths = [file.path for file in found]
    keep_apart("--output", output, paths, "take another name, or --in-place")
    target = _Target(output, paths, is_folder=are_many)

    def work(history: InputHistory) -> JsonReduction:
        result = history.run(reduce)
        if in_place:
            _put_back(history, history.file_form(result.json))
        elif output is not None or not as_json:
            target.write(history, history.file_form(result.json))
        return result._replace(json=b"")

    done, failed = over(found, reading, work)
    if done and as_json:
        sums = {name: sum(getattr(result, name) for _, result in done) for name in _SUMS}
        figures = [(history, _figures(result)) for history, result in done]
        write_report(figures, {"histories": len(done), **sums}, failed)
    elif len(done) == 1 and not are_many:
        click.echo(_for_people(done[0][1]), err=True, nl=False)
    elif done:
        click.echo(_table(done), err=True, nl=False)
    over_budget = [history for history, result in done if strict and result.within_limit is False]
    for history in over_budget:
        say(f"{named(history)}: the view is over its limit")
    finish(done, failed, warn=not as_json)
    if over_budget:
        click.get_current_context().exit(1)


def _put_back(history: InputHistory, view: bytes) -> None:
    """Write a view over its own file, where it has the form of that."""
    if not history.is_own_form:
        raise bad_file(history.name, f"a view of the format {history.format} has another form: it needs -o OUT")
    if history.skipped_lines:
        raise bad_file(history.name, "it has a damaged line, which a view is without: it needs -o OUT")
    if view != history.data:
        write(history.path, view, [history.path], packs=is_gzipped(history.path))


class _Target:
    def __init__(self, output: str | None, files: Sequence[str], *, is_folder: bool) -> None:
        self._output = output
        self._is_folder = is_folder
        self._inputs = {identity(file) for file in files} - {None}
        self._taken: set[str] = set()

    def write(self, history: InputHistory, view: bytes) -> None:
        if not self._is_folder and history.siblings == 1:
            is_printed = self._output in (None, "-")
            write(self._output, for_screen(view) if is_printed else view, [history.path])
            return
        if self._output is None or self._output == "-":
            raise bad_file(history.name, f"it holds {history.siblings} histories: they need a folder, -o OUT")
        folder = Path(self._output)
        with errors_of(self._output, "cannot be written: "):
            folder.mkdir(parents=True, exist_ok=True)
        write(str(folder / self._free_name(history, folder)), view, [history.path])

    def _free_name(self, history: InputHistory, folder: Path) -> str:
        """A name that no input has, and no other view of this run."""
        stem = Path(history.name.removesuffix(".gz")).stem.replace(" ", "_") or "history"
        stem += "" if history.siblings == 1 else f"-{history.index + 1}"
        suffix = ".reduced.jsonl" if history.format == "json_lines" else ".reduced.json"
        name, number = stem + suffix, 1
        while name in self._taken or identity(folder / name) in self._inputs:
            number += 1
            name = f"{stem}-{number}{suffix}"
        self._taken.add(name)
        return name


def _figures(result: JsonReduction) -> dict[str, Any]:
    facts = result._asdict()
    for name in ("messages", "request", "json", "summarizer_error", "mask_places", "cut_places"):
        del facts[name]
    facts |= {"masks": result.masks, "clipped": result.clipped, "reason": result.reason}
    facts["unmasked"] = result.unmasked._asdict()
    facts["tools"] = {name: figures._asdict() for name, figures in result.tools.items()}
    facts["boundary_moves"] = [move._asdict() for move in result.boundary_moves]
    return facts


def _table(done: list[tuple[InputHistory, JsonReduction]]) -> str:
    names = short_names([named(history) for history, _ in done])
    rows = [
        (name, result.reduction_stage or "none", *(f"{getattr(result, name):,}" for name in _SUMS))
        for name, (_, result) in zip(names, done, strict=True)
    ]
    sums = [f"{sum(getattr(result, name) for _, result in done):,}" for name in _SUMS]
    drawn = table(("file", *"stage before after masked dropped".split()), [*rows, ("total", "", *sums)])
    over_budget = sum(result.within_limit is False for _, result in done)
    return drawn + (f"OVER THE LIMIT: {over_budget} histories\n" if over_budget else "")


def _for_people(result: JsonReduction) -> str:
    lines = [
        f"stage: {result.reduction_stage or 'none, nothing was changed'}",
        f"before: {size(result.chars_before)}",
        f"after: {size(result.chars_after)}",
        f"masked: {result.masked_count} results" if result.masked_count else result.reason,
        f"dropped: {result.dropped_count} messages",
        f"orphans: {orphans(result.orphans)}",
    ]
    if result.within_limit is False:
        lines.append("OVER THE LIMIT: what must stay is larger")
    return "\n".join(lines) + "\n" + tools_table(result.tools)
