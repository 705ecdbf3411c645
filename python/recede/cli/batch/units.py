"""Units of work: a file, or a part of one of about the size that a worker holds."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from recede import TranscriptError, transcripts
from recede.cli.errors import BadFile, bad_file, errors_of, say
from recede.cli.sessions import chosen
from recede.cli.signatures import HEAD_BYTES, likeness

_SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".json", ".traj", ".gz", ".zst", ".eval")
_MOST_HEAD_BYTES = 8 << 20  # in which the first lines say what a file holds
_HEAD_LINES = 100
_MOST_SESSIONS = 200
# A file of lines in one of these is one session, or several that belong together.
_SESSIONS = frozenset(
    ["claude_code", "codex", "gemini", "json_lines", "langsmith", "openhands_v1", "openinference", "otel", "pi"]
)


class Unit(NamedTuple):
    """What a worker does at once, and writes into one file.

    Attributes:
        name: of its output, without the ending; no other unit has it.
        kind: ``parquet``, ``lines``, ``sessions`` or ``eval``.
        paths: the files; one, but for sessions.
        start: the first row group of a Parquet file, or the first byte of a file of lines.
        end: the row group or the byte after the last one.
        size: bytes of the files, for the progress.
        packed: ``gzip`` or ``zstd`` for a file of lines that is.
    """

    name: str
    kind: str
    paths: tuple[str, ...]
    start: int
    end: int
    size: int
    packed: str | None = None


def units_of(inputs: Sequence[str], unit_bytes: int, *, has_column: bool) -> list[Unit]:
    """The units of files and folders, in order.

    Args:
        inputs: files and folders.
        unit_bytes: how large a unit is at least, where a file can be divided.
        has_column: whether a column was named, so that lines are rows whatever is in them.
    """
    units: list[Unit] = []
    sessions: list[tuple[str, int]] = []

    def close() -> None:
        if sessions:
            size = sum(size for _, size in sessions)
            units.append(Unit(f"{len(units):06}-sessions", "sessions", tuple(path for path, _ in sessions), 0, 0, size))
            sessions.clear()

    for file in chosen(inputs, suffixes=_SUFFIXES):
        try:
            kind, packed, size = _kind_of(file.path, has_column=has_column)
        except BadFile as error:
            if file.is_named:
                raise
            say(f"warning: left out: {error.message}")
            continue
        if kind == "sessions":
            sessions.append((file.path, size))
            if len(sessions) == _MOST_SESSIONS or sum(size for _, size in sessions) >= unit_bytes:
                close()
            continue
        close()
        for start, end, share in _parts(file.path, kind, packed, size, unit_bytes):
            name = f"{len(units):06}-{_stem(file.path)}"
            units.append(Unit(name, kind, (file.path,), start, end, share, packed))
    close()
    return units


def _stem(path: str) -> str:
    name = Path(path).name
    for suffix in (".gz", ".zst", ".parquet", ".jsonl", ".ndjson", ".json", ".eval"):
        name = name.removesuffix(suffix)
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)[:80]


def _kind_of(path: str, *, has_column: bool) -> tuple[str, str | None, int]:
    """What a file is by its content, how it is packed, and its size."""
    with errors_of(path):
        if Path(path).is_dir():
            return "sessions", None, sum(one.stat().st_size for one in Path(path).iterdir())
        size = Path(path).stat().st_size
        with Path(path).open("rb") as file:
            head = file.read(HEAD_BYTES)
    if head.startswith(b"PAR1"):
        return "parquet", None, size
    if head.startswith(b"PK\x03\x04"):
        return "eval", None, size
    packed = "gzip" if head.startswith(b"\x1f\x8b") else "zstd" if head.startswith(b"\x28\xb5\x2f\xfd") else None
    if packed is None and (looks := likeness(head)) is not None:
        raise bad_file(path, f"it looks like {looks}; batches are Parquet, JSON Lines, sessions and logs of inspect_ai")
    return ("lines" if has_column or _has_rows(path, packed) else "sessions"), packed, size


def _has_rows(path: str, packed: str | None) -> bool:
    """Whether each line of a file is a history, or has one in a field."""
    lines: list[bytes] = []
    with errors_of(path), opened(path, packed) as stream:
        while len(lines) < _HEAD_LINES and sum(map(len, lines)) < _MOST_HEAD_BYTES and (line := stream.readline()):
            lines.append(line)
    first = next((line.strip() for line in lines if line.strip()), b"")
    if not first.endswith((b"}", b"]")) or first == b"[":
        return False  # one value in several lines
    try:
        return transcripts.detect(b"".join(lines)) not in _SESSIONS
    except TranscriptError:
        return True  # rows with a field of another name, or a bad line: reported with its place


@contextmanager
def opened(path: str, packed: str | None) -> Iterator[BinaryIO]:
    """The text of a file, unpacked."""
    import pyarrow

    if packed is None:
        with Path(path).open("rb") as file:
            yield file
        return
    with pyarrow.input_stream(path, compression=packed) as stream, io.BufferedReader(stream, 1 << 20) as file:
        yield cast(BinaryIO, file)


def _parts(path: str, kind: str, packed: str | None, size: int, unit_bytes: int) -> Iterator[tuple[int, int, int]]:
    """The first and the last place of each part, and its share of the bytes of the file."""
    if kind == "parquet":
        yield from _row_groups(path, size, unit_bytes)
    elif kind == "lines" and packed is None:
        count = max(1, round(size / unit_bytes))
        edges = [size * part // count for part in range(count + 1)]
        yield from ((start, end, end - start) for start, end in pairwise(edges))
    else:
        yield 0, size, size


def _row_groups(path: str, size: int, unit_bytes: int) -> Iterator[tuple[int, int, int]]:
    import pyarrow.parquet

    try:
        metadata: Any = pyarrow.parquet.read_metadata(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise bad_file(path, f"it cannot be read as Parquet: {error}") from None
    whole = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)) or 1
    start = held = 0
    for group in range(metadata.num_row_groups):
        held += metadata.row_group(group).total_byte_size
        if held >= unit_bytes or group + 1 == metadata.num_row_groups:
            yield start, group + 1, size * held // whole
            start, held = group + 1, 0
    if not metadata.num_row_groups:
        yield 0, 0, size
