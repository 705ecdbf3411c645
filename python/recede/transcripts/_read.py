"""Reading: detect the format, read its histories, check their shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from recede._errors import TranscriptError
from recede.reduction._reducer import HistoryReducer
from recede.reduction._unrecognized import unrecognized
from recede.transcripts._draft import Draft, parsed
from recede.transcripts._omitted import omit_texts
from recede.transcripts._registry import DOCUMENTS, LINES, DocumentFormat, LineFormat
from recede.transcripts._requests import Compaction, LoggedRequest
from recede.transcripts._source import MAX_BYTES, Input, Record, Source, open_source
from recede.transcripts._unread import NOTHING, Unread, notes_of_lines, seen_in, unread_in

__all__ = ["FORMATS", "MAX_BYTES", "Transcript", "detect", "read", "read_all"]

# It validates a history, and counts.
_FACTS = HistoryReducer(max_input_chars=0, enabled=False)

FORMATS = tuple(sorted({"body_lines", *(format.name for format in (*LINES, *DOCUMENTS))}))

# How many lines detection reads: the first ones may be program state, which does not identify the format.
_MOST_UNKNOWN_RECORDS = 100


@dataclass(frozen=True)
class Transcript:
    """A history that an agent wrote, in a shape that the reducer supports.

    Attributes:
        messages: the history, oldest first: what the model saw, in the shape that `recede.reduce` takes.
        turns: the number of turns (runs of agent messages).
        format: one of `FORMATS`.
        source: the file, as errors name it.
        warnings: what was repaired, kept although unknown, or left out.
        records: the number of message records read, before merging.
        index: the index of the history in the file, from 0.
        context: the name of the subagent whose history it is; None for the main conversation.
        skipped_lines: of how many lines of the file something was skipped, since they are damaged; the first history of
            a file has them.
        unread: the messages that were not understood.
        requests: what the log says of each request, in order; empty if it says nothing.
        compactions: where the agent replaced the history; `contexts` splits it there.
        shown: how many messages at the beginning replace a compacted history; there were no requests between them.
        has_texts: whether the messages have all their texts (`keep_texts`).
        plan: the subscription that paid for the requests; None where the log names none.

    Example:
        >>> from recede import transcripts
        >>> transcript = transcripts.read(b'[{"role": "user", "content": "hello"}]')
        >>> transcript.format, transcript.turns, transcript.records
        ('messages', 0, 1)
    """

    messages: list[dict[str, Any]] = field(repr=False)
    turns: int
    format: str
    source: str
    warnings: tuple[str, ...] = ()
    records: int = 0
    index: int = 0
    context: str | None = None
    skipped_lines: int = field(default=0, repr=False)
    unread: Unread = field(default=NOTHING, repr=False)
    requests: tuple[LoggedRequest, ...] = field(default=(), repr=False)
    compactions: tuple[Compaction, ...] = field(default=(), repr=False)
    shown: int = field(default=0, repr=False)
    has_texts: bool = field(default=True, repr=False)
    plan: str | None = field(default=None, repr=False)

    @property
    def contexts(self) -> tuple[Transcript, ...]:
        """The contexts of the session in order: the first, and one more after each compaction.

        Example:
            >>> from recede import transcripts
            >>> lines = [
            ...     b'{"type": "message", "message": {"role": "user", "content": "Go."}}',
            ...     b'{"type": "compaction", "summary": "Went."}',
            ...     b'{"type": "message", "message": {"role": "user", "content": "On."}}',
            ... ]
            >>> session = transcripts.read(b"\\n".join(lines))
            >>> [[message["content"] for message in context.messages] for context in session.contexts]
            [['Go.'], ['Went.', 'On.']]
        """
        if not self.compactions and not self.shown:
            return (self,)
        starts = [Compaction(0, []), *self.compactions]
        ends = [*(compaction.messages for compaction in self.compactions), len(self.messages)]
        return tuple(self._between(start, end) for start, end in zip(starts, ends, strict=True))

    def _between(self, start: Compaction, end: int) -> Transcript:
        messages = [*start.shown, *self.messages[start.messages : end]]
        moved = len(start.shown) - start.messages
        last = end == len(self.messages)  # where a request may have no answer
        requests = tuple(
            request._replace(messages=request.messages + moved)
            for request in self.requests
            if start.messages <= request.messages < end + last
        )
        turns = _FACTS.reduce(messages).turns
        shown = len(start.shown)
        return replace(self, messages=messages, turns=turns, requests=requests, compactions=(), shown=shown)


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
        wanted = _checked(format)
        try:
            name_of_format, drafts = _drafts(opened, wanted, path, keep_texts)
            found = [
                _transcript(draft, name_of_format, opened.name, index, text_mode=text_mode, has_texts=keep_texts)
                for index, draft in enumerate(drafts)
            ]
        except RecursionError:
            raise TranscriptError("depth", source=opened.name) from None
        found = found or [Transcript([], 0, name_of_format, opened.name, ("the file contains no history",))]
        first = replace(
            found[0],
            warnings=(*found[0].warnings, *notes_of_lines(opened)),
            skipped_lines=len(opened.skipped),
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
        kind, value, _ = _recognized(opened, None)
        return _name(kind, value)


def _drafts(source: Source, format: str | None, path: str | None, keep_texts: bool) -> tuple[str, Iterable[Draft]]:
    """Detect the format; return its name and the histories."""
    if path is not None:
        return _at_path(source, format, path)
    kind, value, records = _recognized(source, format)
    if value is not None:
        return _name(kind, value), kind.read(value)
    if isinstance(kind, DocumentFormat):
        return _name(kind, value), _of_each_line(kind, records, source.name)
    return _name(kind, value), kind.read(records if keep_texts else _without_texts(records, kind.texts_at))


def _at_path(source: Source, wanted: str | None, path: str) -> tuple[str, Iterable[Draft]]:
    """Read the histories at a path in the value of the file, or of each line."""
    records = source.records() if source.has_lines else iter([Record(source.document(), 0)])

    def kind_of(record: Record) -> tuple[DocumentFormat, Any]:
        value = _value_at(record.value, path)
        for document in DOCUMENTS:
            if wanted in (None, document.name) and document.recognizes(value):
                return document, value
        raise TranscriptError("history", source=source.name, line=record.line or None, field=path)

    opening = next(records, None)
    if opening is None:
        raise source.skipped[0]
    first = kind_of(opening)

    def drafts() -> Iterator[Draft]:
        for kind, value in chain([first], map(kind_of, records)):
            yield from kind.read(value)

    return first[0].name, drafts()


def _value_at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = parsed(value)
        if isinstance(value, list) and name.isdecimal() and len(name) < 10:
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return parsed(value)


def _checked(format: str | None) -> str | None:
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    return format


def _name(kind: LineFormat | DocumentFormat, value: Any) -> str:
    # One request body is a file for the reducer; one per line are many histories.
    return "body_lines" if kind.name == "body" and value is None else kind.name


def _recognized(source: Source, wanted: str | None) -> tuple[Any, Any, Iterator[Record]]:
    """Find the format; return it with the single value of the file or its records."""
    if not source.has_lines:
        value = source.document()
        for document in DOCUMENTS:
            if wanted in (None, document.name) and document.recognizes(value):
                return document, value, iter(())
        raise _unknown(source, wanted, [value])
    records = source.records()
    passed: list[Record] = []
    for record in records:
        passed.append(record)
        value = record.value
        for lines in LINES:
            if wanted in (None, lines.name) and lines.recognizes(value):
                return lines, None, chain(passed, records)
        for document in DOCUMENTS:
            if wanted in (None, document.name, f"{document.name}_lines") and document.recognizes(value):
                passed_and_rest = list(passed) + ([more] if (more := next(records, None)) else [])
                if len(passed_and_rest) == 1 and wanted != "body_lines":
                    return document, value, iter(())
                return document, None, chain(passed_and_rest, records)
        if len(passed) == _MOST_UNKNOWN_RECORDS:
            break
    raise _unknown(source, wanted, [record.value for record in passed])


def _unknown(source: Source, wanted: str | None, values: list[Any]) -> TranscriptError:
    """The error for what is of no known format, with what was seen; that of the first line if none could be read."""
    if not values and source.skipped:
        return source.skipped[0]
    if wanted is not None:
        return TranscriptError("format", source=source.name)
    return TranscriptError("history", source=source.name, seen=seen_in(values, is_lines=source.has_lines))


def _of_each_line(kind: DocumentFormat, records: Iterator[Record], name: str) -> Iterator[Draft]:
    for record in records:
        if not kind.recognizes(record.value):
            raise TranscriptError("history", source=name, line=record.line)
        yield from kind.read(record.value)


def _without_texts(records: Iterator[Record], texts_at: tuple[str, ...] | None) -> Iterator[Record]:
    for record in records:
        if texts_at is not None:
            omit_texts(record.value, texts_at)
        yield record


def _transcript(draft: Draft, format: str, source: str, index: int, *, text_mode: bool, has_texts: bool) -> Transcript:
    if text_mode:
        draft.pair_texts()
    try:
        reduction = _FACTS.reduce(draft.messages)
    except TranscriptError as error:
        line = None if error.message_index is None else draft.lines[error.message_index]
        raise TranscriptError(error.kind, **{**error.places, "source": source, "line": line}) from None
    unread = unread_in(draft.messages)
    said = unrecognized(draft.messages) or unread.words(has_results=bool(reduction.tools))
    if said:
        draft.note(said)
    return Transcript(
        draft.messages,
        reduction.turns,
        format,
        source,
        draft.warnings(),
        draft.records,
        index,
        draft.context,
        unread=unread,
        requests=tuple(draft.requests),
        compactions=tuple(draft.compactions),
        has_texts=has_texts,
        plan=draft.plan,
    )
