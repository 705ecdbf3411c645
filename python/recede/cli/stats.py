"""`recede stats`: how large a history is, and how large its masked view would be."""

from __future__ import annotations

import json

import click

from recede import JsonReduction, approx_tokens, mask_observations_json
from recede.cli.files import read, write
from recede.cli.tables import orphans, size, tools_table

__all__ = ["stats"]


@click.command(no_args_is_help=True, short_help="Show the size of a history and of its masked view.")
@click.argument("file")
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    metavar="N",
    help="The newest N results stay raw.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def stats(file: str, keep: int, as_json: bool) -> None:
    """Show how large FILE is, and what masking all but the newest results would leave.

    Characters are code points of the text that a model reads; a token is about four of them.

    \b
    Example:
      recede stats session.json
    """
    transcript = read(file)
    result = transcript.run(lambda data: mask_observations_json(data, keep_results=keep))
    messages = transcript.count()
    write(None, _as_json(result, messages) if as_json else _for_people(result, messages, keep))


def _for_people(result: JsonReduction, messages: int, keep: int) -> bytes:
    observations = sum(figures.observations for figures in result.tools.values())
    lines = [
        f"messages: {messages} in {result.turns} turns",
        f"raw: {size(result.chars_before)}",
        f"masked: {size(result.chars_after)}, the newest {keep} results raw",
        f"results: {observations}, of which {result.masked_count} would be masked",
        f"orphans: {orphans(result.orphans)}",
    ]
    return ("\n".join(lines) + "\n" + tools_table(result.tools)).encode()


def _as_json(result: JsonReduction, messages: int) -> bytes:
    facts = {
        "messages": messages,
        "turns": result.turns,
        "raw_chars": result.chars_before,
        "raw_tokens": approx_tokens(result.chars_before),
        "masked_view_chars": result.chars_after,
        "masked_view_tokens": approx_tokens(result.chars_after),
        "masked_count": result.masked_count,
        "orphans": result.orphans,
        "tools": {name: figures._asdict() for name, figures in result.tools.items()},
    }
    return json.dumps(facts, indent=2).encode() + b"\n"
