"""The formats in the order of detection, and which of them a file has: the one of most of its first records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from recede._errors import TranscriptError
from recede.transcripts import (
    _claude_code,
    _cline,
    _codex,
    _datasets,
    _evaluations,
    _event_streams,
    _gemini,
    _langsmith,
    _opencode,
    _openhands,
    _pi,
    _trajectories,
)
from recede.transcripts._draft import Draft, parsed
from recede.transcripts._source import Record, Source
from recede.transcripts._spans import OPENINFERENCE, OTEL
from recede.transcripts._unread import seen_in


class LineFormat(NamedTuple):
    """A format with one record per line."""

    name: str
    recognizes: Callable[[dict[str, Any]], bool]
    read: Callable[[Iterable[Record]], Iterator[Draft]]
    # The fields that lead to the part of a record whose texts its messages have unchanged; None: none is.
    texts_at: tuple[str, ...] | None = None


class DocumentFormat(NamedTuple):
    """A format that is one JSON value with histories; a file may also have one such value per line."""

    name: str
    recognizes: Callable[[Any], bool]
    read: Callable[[Any], Iterator[Draft]]
    # Reads a file of such values, which belong together; what is none is skipped. None: each is a history.
    read_lines: Callable[[Iterable[Record], Callable[[int], None]], Iterator[Draft]] | None = None


LINES = (
    LineFormat("codex", _codex.recognizes, _codex.read, ("payload",)),
    LineFormat("gemini", _gemini.recognizes_line, _gemini.read_lines),
    LineFormat("qwen_code", _pi.is_qwen_code, _pi.read_qwen_code),
    LineFormat("copilot", _event_streams.is_copilot, _event_streams.read_copilot),
    LineFormat("gemini_stream", _event_streams.is_gemini_stream, _event_streams.read_gemini_stream),
    LineFormat("codex_exec", _event_streams.is_codex_exec, _event_streams.read_codex_exec),
    LineFormat("managed_agents", _event_streams.is_managed, _event_streams.read_managed),
    LineFormat("claude_code", _claude_code.recognizes, _claude_code.read, ("message", "content")),
    LineFormat("pi", _pi.recognizes, _pi.read, ("message", "content")),
    LineFormat("turns", _trajectories.is_turn, _trajectories.read_turn_lines),
    LineFormat("openhands_v1", _openhands.recognizes_v1_line, _openhands.read_v1_lines),
    LineFormat("langsmith", _langsmith.recognizes_line, _langsmith.read_lines),
    LineFormat("openinference", OPENINFERENCE.recognizes_line, OPENINFERENCE.read_lines),
    LineFormat("otel", OTEL.recognizes_line, OTEL.read_lines),
    LineFormat("json_lines", _datasets.is_message, _datasets.read_message_lines, ()),
)
DOCUMENTS = (
    DocumentFormat("inspect", _evaluations.is_inspect, _evaluations.read_inspect),
    DocumentFormat("atif", _trajectories.is_atif, _trajectories.read_atif),
    DocumentFormat("opencode", _opencode.recognizes, _opencode.read),
    DocumentFormat("cline", _cline.recognizes, _cline.read),
    DocumentFormat("amp", _cline.is_amp, _cline.read_amp),
    DocumentFormat("claude_code", _claude_code.is_list, _claude_code.read_list),
    DocumentFormat("pydantic_ai", _trajectories.is_pydantic_ai, _trajectories.read_pydantic_ai),
    DocumentFormat("gemini", _gemini.recognizes, _gemini.read),
    DocumentFormat("swe_agent", _trajectories.is_swe_agent, _trajectories.read_swe_agent),
    DocumentFormat("turns", _trajectories.is_turns, _trajectories.read_turns),
    DocumentFormat("openhands", _openhands.recognizes, _openhands.read),
    DocumentFormat("tau_bench", _evaluations.is_tau_bench, _evaluations.read_tau_bench),
    DocumentFormat("mini_swe", _trajectories.is_mini, _trajectories.read_mini),
    DocumentFormat("openhands_v1", _openhands.recognizes_v1, _openhands.read_v1),
    DocumentFormat("langsmith", _langsmith.recognizes, _langsmith.read),
    DocumentFormat("openinference", OPENINFERENCE.recognizes, OPENINFERENCE.read),
    DocumentFormat("otel", OTEL.recognizes, OTEL.read),
    DocumentFormat("nebius", _datasets.is_nebius, _datasets.read_nebius),
    DocumentFormat("sharegpt", _datasets.is_sharegpt, _datasets.read_sharegpt),
    DocumentFormat("chat_parts", _datasets.is_chat_of_parts, _datasets.read_chat_of_parts),
    DocumentFormat("body", _datasets.is_body, _datasets.read_body, _datasets.read_body_lines),
    DocumentFormat("messages", _datasets.is_messages, _datasets.read_messages),
)


FORMATS = tuple(sorted({"body_lines", *(format.name for format in (*LINES, *DOCUMENTS))}))

# How many lines detection reads: the first ones may be program state, which does not identify the format.
_MOST_UNKNOWN_RECORDS = 100
_MOST_COMPARED = 20  # of which the format is the one that fits most
_MOST_COMPARED_BYTES = 1 << 20  # after which fewer are enough: they are held in memory
_MOST_ENVELOPES = 5  # fields that are looked into
# Any message is a line of the last.
_ORDER = {kind: place for place, kind in enumerate((*LINES[:-1], *DOCUMENTS, LINES[-1]))}


def name_of(kind: LineFormat | DocumentFormat, value: Any) -> str:
    # One request body is a file for the reducer; one per line are many histories.
    return "body_lines" if kind.name == "body" and value is None else kind.name


def recognized(source: Source, wanted: str | None) -> tuple[Any, Any, Iterator[Record]]:
    """Find the format; return it with the single value of the file or its records."""
    if not source.has_lines:
        value = source.document()
        if (document := document_of(value, wanted)) is None:
            raise _unknown(source, wanted, [value])
        return document, value, iter(())
    records = source.records()
    passed: list[Record] = []
    fits: Counter[LineFormat | DocumentFormat] = Counter()  # how many of the first records each format recognizes
    read_bytes = 0
    for record in records:
        passed.append(record)
        read_bytes += len(source.text)
        fits.update(_kinds(record.value, wanted))
        is_enough = len(passed) >= _MOST_COMPARED or read_bytes > _MOST_COMPARED_BYTES
        if (fits and is_enough) or len(passed) == _MOST_UNKNOWN_RECORDS:
            break
    if not fits and wanted is not None and any(any(_kinds(record.value, None)) for record in passed):
        raise _unknown(source, wanted, [])
    if not fits:
        return _in_envelope(source, wanted, passed, records)
    kind = _fittest(fits)
    if isinstance(kind, DocumentFormat) and len(passed) == 1 and wanted != "body_lines":
        return kind, passed[0].value, iter(())
    return kind, None, chain(passed, records)


def _in_envelope(
    source: Source, wanted: str | None, passed: list[Record], records: Iterator[Record]
) -> tuple[Any, Any, Iterator[Record]]:
    """Find the format of what most of the first records hold in one field, as a value or as its JSON."""
    names = Counter(name for record in passed for name, held in record.value.items() if isinstance(parsed(held), dict))
    for name, count in names.most_common(_MOST_ENVELOPES):
        if 2 * count <= len(passed):
            break
        held = [value for record in passed if isinstance(value := parsed(record.value.get(name)), dict)]
        fits = Counter(
            kind for value in held for kind in _kinds(value, wanted) if kind.name != "json_lines" or "content" in value
        )
        if fits:
            every = (Record(parsed(value.get(name)), line) for value, line in chain(passed, records))
            return _fittest(fits), None, (record for record in every if isinstance(record.value, dict))
    raise _unknown(source, wanted, [record.value for record in passed])


def _fittest(fits: Counter[LineFormat | DocumentFormat]) -> LineFormat | DocumentFormat:
    """The format of most records; of equals, the first in the order of detection."""
    return max(fits, key=lambda kind: (fits[kind], -_ORDER[kind]))


def _kinds(value: Any, wanted: str | None) -> Iterator[LineFormat | DocumentFormat]:
    """The formats that a record of a file may be of."""
    for lines in LINES:
        if wanted in (None, lines.name) and lines.recognizes(value):
            yield lines
    if (document := document_of(value, wanted and wanted.removesuffix("_lines"))) is not None:
        yield document


def document_of(value: Any, wanted: str | None) -> DocumentFormat | None:
    return next((one for one in DOCUMENTS if wanted in (None, one.name) and one.recognizes(value)), None)


def _unknown(source: Source, wanted: str | None, values: list[Any]) -> TranscriptError:
    """The error for what is of no known format, with what was seen; that of the first line if none could be read."""
    if not values and source.skipped:
        return source.skipped[0]
    if wanted is not None:
        return TranscriptError("format", source=source.name)
    return TranscriptError("history", source=source.name, seen=seen_in(values, is_lines=source.has_lines))
