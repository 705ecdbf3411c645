"""`recede reduce`: a history within a budget."""

from __future__ import annotations

import json
from typing import Any

import click

from recede import HistoryReducer, JsonReduction
from recede.cli.files import read, write
from recede.cli.tables import orphans, size, tools_table

__all__ = ["reduce"]

_NUMBER = click.IntRange(min=0)


@click.command(no_args_is_help=True, short_help="Reduce a history to a budget.")
@click.argument("file")
@click.option(
    "--max-input-chars", type=_NUMBER, metavar="N", help="The budget in characters. This or the next is required."
)
@click.option("--max-input-tokens", type=_NUMBER, metavar="N", help="The budget in tokens of about four characters.")
@click.option("-o", "--output", metavar="OUT", help="Write the reduced history here: whole, or not at all.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON; the history goes to OUT alone.")
@click.option(
    "--keep",
    "preserve_recent_raw_turns",
    type=_NUMBER,
    metavar="N",
    help="The last N messages that are no system messages stay raw.  [default: 4]",
)
@click.option(
    "--exclude-tool",
    "exclude_tools",
    multiple=True,
    metavar="NAME",
    help="Never mask this tool's results (* and ? match). Repeatable.",
)
@click.option(
    "--mask-chunk",
    type=click.IntRange(min=1),
    metavar="N",
    help="Move the boundary by N results at once, for prompt caches.",
)
@click.option(
    "--max-observation-chars",
    type=_NUMBER,
    metavar="N",
    help="Cut old results to N characters instead of replacing them.",
)
@click.option(
    "--placeholder",
    metavar="TEXT",
    help="Another placeholder; {chars}, {lines}, {images}, {turn}, {tool} and {id} are filled in.",
)
@click.option("--no-mask", is_flag=True, help="Do not mask: go straight to the summary.")
@click.option(
    "--summary-max-chars", type=_NUMBER, metavar="N", help="Clip the summary at N characters.  [default: 1400]"
)
@click.option(
    "--summary-role",
    type=click.Choice(["system", "developer", "user", "assistant"]),
    help="The role of the summary.  [default: what the provider takes]",
)
def reduce(file: str, output: str | None, as_json: bool, no_mask: bool, **options: Any) -> None:
    """Reduce FILE to a budget: mask old tool outputs, then summarize, then truncate.

    The reduced history goes to standard output, in the form that FILE has, or to OUT; a report for
    people goes to standard error. Every byte that is not replaced is FILE's own.

    \b
    Example:
      recede reduce session.json --max-input-tokens 8000 -o reduced.json
    """
    if as_json and output == "-":
        raise click.UsageError("--json and the history cannot both go to standard output")
    reducer = _reducer(observation_masking=not no_mask, **options)
    transcript = read(file)
    result = transcript.run(reducer.reduce_json)
    if output is not None or not as_json:
        write(output, transcript.file_form(result.json))
    if as_json:
        write(None, _as_json(result))
    else:
        click.echo(_for_people(result), err=True, nl=False)


def _reducer(**options: Any) -> HistoryReducer:
    try:
        return HistoryReducer(**{name: value for name, value in options.items() if value is not None})
    except ValueError as error:
        message = str(error)
        for parameter in click.get_current_context().command.params:
            message = message.replace(str(parameter.name), parameter.opts[-1])
        raise click.UsageError(message) from None


def _as_json(result: JsonReduction) -> bytes:
    facts = result._asdict()
    del facts["json"], facts["summarizer_error"]
    facts["tools"] = {name: figures._asdict() for name, figures in result.tools.items()}
    return json.dumps(facts, indent=2).encode() + b"\n"


def _for_people(result: JsonReduction) -> str:
    lines = [
        f"stage: {result.reduction_stage or 'none, nothing was changed'}",
        f"before: {size(result.chars_before)}",
        f"after: {size(result.chars_after)}",
        f"masked: {result.masked_count} results",
        f"dropped: {result.dropped_count} messages",
        f"orphans: {orphans(result.orphans)}",
    ]
    if not result.within_budget:
        lines.append("OVER THE BUDGET: what must stay is larger")
    return "\n".join(lines) + "\n" + tools_table(result.tools)
