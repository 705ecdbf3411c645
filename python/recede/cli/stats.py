"""`recede stats`: sizes of histories and of their masked views."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import click

from recede import Reduction, reduce
from recede.cli.files import InputHistory, write
from recede.cli.many import finish, named, over, short_names, write_report
from recede.cli.notices import counted, output_options
from recede.cli.options import policy_option
from recede.cli.sessions import Reading, chosen, reading_options
from recede.cli.tables import orphans, share, size, table, tools_table
from recede.designs import approx_tokens
from recede.reduction import ToolReport


class _Figures(NamedTuple):
    histories: int
    records: int
    messages: int
    turns: int
    raw_chars: int
    observation_chars: int
    masked_view_chars: int
    masked_count: int


@click.command(no_args_is_help=True, short_help="Show the size of histories and of their masked views.")
@click.argument("files", nargs=-1, required=True)
@policy_option("keep", help="The newest N results stay raw.", default=10, show_default=True)
@reading_options
@click.option("--by-format", is_flag=True, help="A line for each format instead of each history.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@output_options
def stats(files: tuple[str, ...], keep: int, reading: Reading, by_format: bool, as_json: bool) -> None:
    """Show how large FILES are, and what masking all but the newest results would leave: the most that masks save.

    A mask that slides like this one rewrites a prompt cache at every request; `recede replay` plays one that waits.

    FILES may be folders: what is in them and can be read as a history is counted.

    Characters are code points of the text that a model reads; a token is about four of them.

    \b
    Example:
      recede stats session.jsonl
      recede stats --by-format logs
    """

    def measure(history: InputHistory) -> Reduction:
        if history.session is not None:
            return reduce(history.session.messages, keep=keep, boundary="sliding")._replace(messages=[])
        return history.run(lambda data: reduce(data, keep=keep, boundary="sliding"))._replace(json=b"")

    done, failed = over(chosen(files), reading, measure, is_parallel=True)
    if done and as_json:
        total = _figures_as_json(_sums(done))
        write_report([(history, _as_json(history, result)) for history, result in done], total, failed)
    elif len(done) == 1 and len(files) == 1 and not by_format:
        write(None, _for_people(*done[0], keep).encode())
    elif done:
        write(None, _table(done, by_format).encode())
    finish(done, failed, warn=not as_json)


def _sums(done: Iterable[tuple[InputHistory, Reduction]]) -> _Figures:
    each = []
    for history, result in done:
        chars = result.chars_before, sum(tool.chars for tool in result.tools.values()), result.chars_after
        each.append((1, history.records, history.messages, result.turns, *chars, result.masked_count))
    return _Figures(*map(sum, zip(*each, strict=True)))


def _for_people(history: InputHistory, result: Reduction, keep: int) -> str:
    observations = sum(tool.observations for tool in result.tools.values())
    lines = [
        f"format: {history.format}, {history.records:,} records",
        f"messages: {history.messages} in {counted(result.turns, 'turn')}",
        f"raw: {size(result.chars_before)}",
        f"with a sliding mask: {size(result.chars_after)}, the newest {keep} results raw",
        f"results: {observations}, of which {result.masked_count} would be masked",
        f"orphans: {orphans(result.orphans)}",
    ]
    return "\n".join(lines) + "\n" + tools_table(result.tools)


def _table(done: list[tuple[InputHistory, Reduction]], by_format: bool) -> str:
    names = [history.format for history, _ in done] if by_format else short_names([named(one) for one, _ in done])
    groups: dict[str, list[tuple[InputHistory, Reduction]]] = {}
    for name, one in zip(names, done, strict=True):
        groups.setdefault(name, []).append(one)
    rows = [_row(name, _sums(group)) for name, group in [*groups.items(), ("total", done)]]
    headings = ("format" if by_format else "file", *"histories records messages turns chars results masking".split())
    drawn = table(headings, rows, optional=(2, 1, 4))
    return (
        f"{drawn}\nresults: their share of the characters; masking: how much of them all a sliding mask would remove\n"
    )


def _row(name: str, figures: _Figures) -> tuple[str, ...]:
    counts = (figures.histories, figures.records, figures.messages, figures.turns, figures.raw_chars)
    removed = figures.raw_chars - figures.masked_view_chars
    shares = (share(figures.observation_chars, figures.raw_chars), share(removed, figures.raw_chars))
    return (name, *(f"{count:,}" for count in counts), *shares)


def _as_json(history: InputHistory, result: Reduction) -> dict[str, Any]:
    figures = _figures_as_json(_sums([(history, result)]))
    del figures["histories"]
    tools = {name: ToolReport._asdict(tool) for name, tool in result.tools.items()}
    return {**figures, "orphans": result.orphans, "tools": tools}


def _figures_as_json(figures: _Figures) -> dict[str, int]:
    return {
        **figures._asdict(),
        "raw_tokens": approx_tokens(figures.raw_chars),
        "masked_view_tokens": approx_tokens(figures.masked_view_chars),
    }
