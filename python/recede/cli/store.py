"""`recede store`: inspect, verify, export and import turn stores."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Literal

import click

from recede import StoreError
from recede.cli.files import for_screen, keep_apart, read_bytes, write, write_json
from recede.cli.notices import BadFile, bad_file, errors_of, name_of
from recede.cli.options import Whole
from recede.cli.sessions import max_bytes_option
from recede.cli.tables import prose
from recede.store import TurnStore

_OTHER_KINDS: tuple[Literal["message", "summary", "session"], ...] = ("message", "summary", "session")

_file = click.argument("file", type=click.Path())
_json = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")


@click.group(no_args_is_help=True, short_help="Look into turn stores, check them, copy them.")
def store() -> None:
    """Look into turn stores, check them, and copy what they hold.

    FILE is what a `TurnStore` or a `History` with a store has written. Reading it needs no writer to
    stop: what it last wrote is seen.

    \b
    Example:
      recede store info session.store
      recede store export session.store > session.jsonl
    """


@contextmanager
def _reader(file: str) -> Iterator[TurnStore]:
    with errors_of(file), closing(TurnStore(file, read_only=True)) as opened:
        yield opened


@store.command(short_help="Show how large a store is.")
@_file
@_json
def info(file: str, as_json: bool) -> None:
    """Show how large the store FILE is and how full its table. Takes the same time at any length.

    \b
    Example:
      recede store info session.store
    """
    with _reader(file) as opened:
        stats = opened.stats()
    if as_json:
        write_json({**stats._asdict(), "chain_pages": stats.chain_pages})
        return
    lines = [
        f"turns: {stats.turns:,}, {stats.masked_turns:,} of them masked",
        f"messages: {stats.messages:,}, summaries: {stats.summaries:,}, sessions: {stats.sessions:,}",
        f"size: {stats.file_bytes:,} bytes, and {stats.log_bytes:,} of log",
        f"pages: {stats.pages:,}, {stats.text_pages:,} of them with text, {stats.free_pages:,} free",
        f"buckets: {stats.buckets:,} of {stats.chain_pages:.2f} pages on average, load {stats.load:.2f}, "
        f"{stats.splits:,} splits",
        f"commits: {stats.commits:,}",
    ]
    write(None, "".join(f"{line}\n" for line in lines).encode())


@store.command(short_help="Read a whole store and say what is damaged.")
@_file
@_json
@click.pass_context
def verify(context: click.Context, file: str, as_json: bool) -> None:
    """Read all of the store FILE, and report its faults. Exits with 1 if there are any.

    \b
    Example:
      recede store verify session.store
    """
    with _reader(file) as opened:
        report = opened.verify()
    if as_json:
        faults = [fault._asdict() for fault in report.faults]
        write_json({**report._asdict(), "faults": faults, "is_sound": report.is_sound})
    else:
        found = f"{report.turns:,} turns, {report.messages:,} messages, {report.summaries:,} summaries"
        lines = [f"sound: {found}"] if report.is_sound else [f"damaged; whole are {found}", *map(str, report.faults)]
        write(None, prose([*lines, ""]).encode())
    if not report.is_sound:
        context.exit(1)


@store.command(short_help="Write what a store holds as JSON Lines.")
@_file
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="OUT",
    help="Write to OUT, whole or not at all, instead of to standard output.",
)
@click.pass_context
def export(context: click.Context, file: str, output: str | None) -> None:
    """Write all that the store FILE holds as JSON Lines: a turn, message, summary or session a line.

    What is damaged is left out, with a line on standard error for each, and the command exits with 1.

    \b
    Example:
      recede store export session.store -o session.jsonl
    """
    damaged: list[BadFile] = []
    with _reader(file) as opened:
        keep_apart("--output", output, opened.files)
        write(output, (json.dumps(line).encode() + b"\n" for line in _lines(opened, damaged)), [opened.path])
    for error in damaged:
        error.show()
    if damaged:
        context.exit(1)


def _lines(opened: TurnStore, damaged: list[BadFile]) -> Iterator[dict[str, Any]]:
    @contextmanager
    def left_out(name: str) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            damaged.append(BadFile(f"{error} ({name} is left out)"))

    for number in range(1, len(opened) + 1):
        with left_out(f"turn {number}"):
            turn = opened.get(number)
            shown = {**turn._asdict(), "observation": opened.recall(number), "masked": turn.masked}
            yield {"kind": "turn", **shown}
    for kind in _OTHER_KINDS:
        for number in range(1, opened.count_records(kind) + 1):
            with left_out(f"{kind} {number}"):
                yield {"kind": kind, "number": number, "fields": list(map(_as_json, opened.record(kind, number)))}


def _as_json(field: bytes) -> str | dict[str, str]:
    try:
        return field.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(field).decode()}


@store.command("import", short_help="Fill a store from what `export` wrote.")
@_file
@click.argument("source", type=click.Path(), default="-")
@max_bytes_option
def import_(file: str, source: str, max_bytes: int) -> None:
    """Add to the store FILE what `recede store export` has written to SOURCE, all of it or nothing.

    FILE is made if it is missing. SOURCE is standard input if it is not given, and may be gzipped.

    \b
    Example:
      recede store import copy.store session.jsonl
    """
    name = name_of(source)
    with errors_of(name):
        data = read_bytes(source, max_bytes)
    # All of them are read before the store is touched.
    records = [_record(name, number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    with errors_of(file):
        opened = TurnStore(file)
        opened._store.hold()  # all of them, or none
        try:
            for add in records:
                add(opened)
            opened.close()
        except StoreError:
            opened.close(sync=False)
            raise


def _record(name: str, number: int, data: bytes) -> Callable[[TurnStore], Any]:
    """A function that adds the record of a line to a store."""
    try:
        line = json.loads(data)
        if line["kind"] == "turn":
            texts = [line[field] for field in ("reasoning", "action", "observation")]
            timestamp, masked = line["timestamp"], line["masked"]
            if all(isinstance(text, str) for text in texts) and isinstance(timestamp, (int, float)):
                return lambda opened: _add_turn(opened, texts, timestamp, masked)
        elif line["kind"] in _OTHER_KINDS and line["fields"]:
            fields = [
                base64.b64decode(one["base64"], validate=True) if isinstance(one, dict) else one.encode()
                for one in line["fields"]
            ]
            return lambda opened: opened.append_record(line["kind"], fields)
    except (LookupError, TypeError, ValueError, AttributeError):
        pass
    raise bad_file(name, f"line {number}: this is no line that `recede store export` writes")


def _add_turn(opened: TurnStore, texts: list[str], timestamp: float, masked: bool) -> None:
    number = opened.append(*texts, timestamp=timestamp)
    if masked:
        opened.mask_before(number + 1)


@store.command(short_help="Print the full observation of turns.")
@_file
@click.argument("turns", type=Whole(min=1), nargs=-1, required=True)
@_json
def recall(file: str, turns: tuple[int, ...], as_json: bool) -> None:
    """Print the full observations of TURNS of the store FILE, masked or not.

    \b
    Example:
      recede store recall session.store 12
    """
    with _reader(file) as opened:
        try:
            texts = [opened.recall(turn) for turn in turns]
        except LookupError as error:
            raise bad_file(file, str(error)) from None
    if as_json:
        write_json([{"turn_id": turn, "observation": text} for turn, text in zip(turns, texts, strict=True)])
    else:
        # Each ends its last line, so that the next begins on one of its own.
        ended = (text if text.endswith("\n") or not text else f"{text}\n" for text in texts)
        write(None, for_screen("".join(ended).encode("utf-8", "replace")))
