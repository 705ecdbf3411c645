"""Reading: detect the format of a file, read its histories, check their shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from recede._errors import TranscriptError
from recede._report import Reduction
from recede.reduction._unrecognized import unrecognized
from recede.transcripts._draft import Draft, parsed
from recede.transcripts._formats import FORMATS, DocumentFormat, document_of, name_of, recognized
from recede.transcripts._requests import Branch, path_of
from recede.transcripts._source import FACTS, MAX_BYTES, Input, Record, Source, omit_texts, open_source
from recede.transcripts._transcript import Transcript
from recede.transcripts._unread import Unread, notes_of_lines, unread_in

# Formats whose messages are the caller's own: what is not understood of them is said by its name.
_UNCHANGED = frozenset({"body", "body_lines", "codex", "json_lines", "messages"})


def read(
    source: Input,
    format: str | None = None,
    *,
    path: str | None = None,
    text_mode: bool = False,
    name: str | None = None,
    max_bytes: int = MAX_BYTES,
    max_line_bytes: int | None = None,
) -> Transcript:
    """Read the history in a file, whichever agent wrote it.

    Args:
        source: a path, or the bytes themselves; either may be gzipped.
        format: one of `FORMATS`; by default it is detected from the content, never from the file name.
        path: where the history is in the value of the file or of each line, such as ``body.messages``; JSON in a string
            is read too. By default the places of the known formats.
        text_mode: take each user message that follows one of the agent without calls as its observation.
        name: the name in errors; by default the path of the file.
        max_bytes: the limit of decompressed bytes, 4 GB by default.
        max_line_bytes: that of a line, or of a file that is one value: what is held in memory; `max_bytes` by default.

    Returns:
        A `Transcript`. A file with several histories returns the first, with a warning that says how many there are;
        `read_all` returns all. A file without any, such as the log of a cancelled evaluation, returns an empty one
        with a warning.

    Raises:
        TranscriptError: malformed JSON, a wrong shape, an unknown format, or more than the limits; names the file and
            the line or byte.
        ValueError: `format` is unknown, or a limit is below 1.
        OSError: the file cannot be read.

    Time is linear in the size of the file. A file with one record per line is streamed; any other is read into memory.

    Example:
        >>> from recede import transcripts
        >>> lines = [
        ...     b'{"type": "session_meta", "payload": {"id": "1"}}',
        ...     b'{"type": "response_item", "payload": {"type": "message", "role": "user", "content": "hello"}}',
        ... ]
        >>> transcript = transcripts.read(b"\\n".join(lines))
        >>> transcript.format, transcript.messages
        ('codex', [{'type': 'message', 'role': 'user', 'content': 'hello'}])
    """
    found = read_all(
        source, format, path=path, text_mode=text_mode, name=name, max_bytes=max_bytes, max_line_bytes=max_line_bytes
    )
    if len(found) == 1:
        return found[0]
    more = f"the first of {len(found)} histories in the file: read_all gives them all"
    return replace(found[0], warnings=(*found[0].warnings, more))


def read_all(
    source: Input,
    format: str | None = None,
    *,
    path: str | None = None,
    text_mode: bool = False,
    name: str | None = None,
    max_bytes: int = MAX_BYTES,
    max_line_bytes: int | None = None,
    keep_texts: bool = True,
) -> list[Transcript]:
    """Read every history in a file: runs of a benchmark, samples of a log, one request body per line.

    Args:
        source: as for `read`.
        format: as for `read`.
        path: as for `read`.
        text_mode: as for `read`.
        name: as for `read`.
        max_bytes: as for `read`.
        max_line_bytes: as for `read`.
        keep_texts: False leaves out texts of 1,000 characters or more, so that a file with long results can be larger
            than memory: in their place is a str of the same length without the characters. That is all that
            `recede.costs.replay_transcript` reads of them, unless `recede.costs.reads_texts`. Files with one record
            per line of Claude Code, Codex and pi, and JSON Lines; others keep them.

    Returns:
        A list of `Transcript`, in the order of the file; at least one.

    Raises:
        TranscriptError, ValueError, OSError: as for `read`.

    Example:
        >>> from recede import transcripts
        >>> runs = b'[{"traj": [{"role": "user", "content": "one"}]}, {"traj": []}]'
        >>> [(run.format, run.index, len(run.messages)) for run in transcripts.read_all(runs)]
        [('tau_bench', 0, 1), ('tau_bench', 1, 0)]
    """
    with open_source(source, name, max_bytes, max_line_bytes) as opened:
        if format not in (None, *FORMATS):
            raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
        try:
            name_of_format, drafts = _drafts(opened, format, path, keep_texts)
            found = [
                _transcript(draft, name_of_format, opened.name, index, text_mode=text_mode, has_texts=keep_texts)
                for index, draft in enumerate(drafts)
            ]
        except RecursionError:
            raise TranscriptError("depth", source=opened.name) from None
        found = found or [Transcript([], 0, name_of_format, opened.name, ("the file contains no history",))]
        first = replace(
            found[0], warnings=(*found[0].warnings, *notes_of_lines(opened)), skipped_lines=len(opened.skipped)
        )
        return [first, *found[1:]]


def detect(
    source: Input, *, name: str | None = None, max_bytes: int = MAX_BYTES, max_line_bytes: int | None = None
) -> str:
    """Detect the format of a file by its content.

    Args:
        source: as for `read`. Only the first lines are read if the file has one record per line.
        name: as for `read`.
        max_bytes: as for `read`.
        max_line_bytes: as for `read`.

    Returns:
        One of `FORMATS`.

    Raises:
        TranscriptError: the content is malformed, of an unknown format, or over a limit.
        OSError: the file cannot be read.

    Example:
        >>> from recede import transcripts
        >>> transcripts.detect(b'{"model": "any", "messages": []}')
        'body'
    """
    with open_source(source, name, max_bytes, max_line_bytes) as opened:
        kind, value, _ = recognized(opened, None)
        return name_of(kind, value)


def _drafts(source: Source, format: str | None, path: str | None, keep_texts: bool) -> tuple[str, Iterable[Draft]]:
    if path is not None:
        return _at_path(source, format, path)
    kind, value, records = recognized(source, format)
    if value is not None:
        return name_of(kind, value), kind.read(value)
    if isinstance(kind, DocumentFormat):
        return name_of(kind, value), _of_each_line(kind, records, source)
    if not keep_texts and kind.texts_at is not None:
        records = map(partial(omit_texts, texts_at=kind.texts_at), records)
    return name_of(kind, value), kind.read(records)


def _at_path(source: Source, wanted: str | None, path: str) -> tuple[str, Iterable[Draft]]:
    """Read the histories at a path in the value of the file, or of each line."""
    records = source.records() if source.has_lines else iter([Record(source.document(), 0)])

    def kind_of(record: Record) -> tuple[DocumentFormat, Any]:
        value = _value_at(record.value, path)
        if (document := document_of(value, wanted)) is None:
            raise TranscriptError("history", source=source.name, line=record.line or None, field=path)
        return document, value

    kinds = map(kind_of, records)
    first = next(kinds, None)
    if first is None:
        raise source.skipped[0]
    return first[0].name, (draft for kind, value in chain([first], kinds) for draft in kind.read(value))


def _value_at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = parsed(value)
        if isinstance(value, list) and name.isdecimal() and len(name) < 10:
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return parsed(value)


def _of_each_line(kind: DocumentFormat, records: Iterator[Record], source: Source) -> Iterator[Draft]:
    def skip(line: int) -> None:
        source.skipped.append(TranscriptError("history", source=source.name, line=line))

    if kind.read_lines is not None:
        yield from kind.read_lines(records, skip)
        return
    for record in records:
        if kind.recognizes(record.value):
            yield from kind.read(record.value)
        else:
            skip(record.line)


def _transcript(draft: Draft, format: str, source: str, index: int, *, text_mode: bool, has_texts: bool) -> Transcript:
    if text_mode:
        for branch in draft.branches:
            branch.pair_texts()
    messages = draft.path()
    facts = _facts(messages, lambda: path_of(draft.branches, draft.number, of="lines"), source)
    for branch in draft.branches:
        if branch is not draft:
            _facts(branch.messages, lambda: branch.lines, source)  # noqa: B023 - called at once
    unread = unread_in(messages)
    has_results = any(tool.chars for tool in facts.tools.values())
    if not has_results:  # what was left out may be the results
        unread += Unread(draft.unread.total(), tuple(kind for kind, _ in draft.unread.most_common()))
    said = unrecognized(messages) or unread.words(has_results=has_results)
    if said:
        draft.note(said)
    results = sum(tool.observations for tool in facts.tools.values())
    if results > 1 and format not in _UNCHANGED and not has_results:
        draft.note(f"none of its {results:,} results has text: the log may be of another version than is read")
    has_branches = len(draft.branches) > 1
    return Transcript(
        messages,
        facts.turns,
        format,
        source,
        draft.warnings(),
        sum(branch.records for branch in draft.branches),
        index,
        draft.context,
        unread=unread,
        requests=tuple(draft.requests),
        compactions=tuple(draft.compactions),
        has_texts=has_texts,
        plan=draft.plan,
        branches=tuple(Branch(one.parent, one.start, one.messages) for one in draft.branches) if has_branches else (),
        branch=draft.number,
    )


def _facts(messages: list[dict[str, Any]], lines: Callable[[], Sequence[int | None]], source: str) -> Reduction:
    """Count what a history has; an error names the line of its message."""
    try:
        return FACTS.reduce(messages)
    except TranscriptError as error:
        line = None if error.message_index is None else lines()[error.message_index]
        raise TranscriptError(error.kind, **{**error.places, "source": source, "line": line}) from None
