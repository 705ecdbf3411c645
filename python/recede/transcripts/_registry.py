"""The formats in the order of detection, the most specific first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

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
from recede.transcripts._draft import Draft
from recede.transcripts._source import Record
from recede.transcripts._spans import OPENINFERENCE, OTEL


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
    DocumentFormat("body", _datasets.is_body, _datasets.read_body),
    DocumentFormat("messages", _datasets.is_messages, _datasets.read_messages),
)
