"""All formats in the order of detection, the most specific first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from recede.transcripts import _chat, _claude_code, _codex, _evaluations, _gemini, _openhands, _pi, _swe_agent
from recede.transcripts._draft import Draft
from recede.transcripts._source import Record

__all__ = ["DOCUMENTS", "LINES", "DocumentFormat", "LineFormat"]


class LineFormat(NamedTuple):
    """A history with one record per line."""

    name: str
    recognizes: Callable[[dict[str, Any]], bool]
    read: Callable[[Iterable[Record]], Iterator[Draft]]


class DocumentFormat(NamedTuple):
    """One JSON value that contains histories. A file may also have one such value per line."""

    name: str
    recognizes: Callable[[Any], bool]
    read: Callable[[Any], Iterator[Draft]]


LINES = (
    LineFormat("codex", _codex.recognizes, _codex.read),
    LineFormat("gemini", _gemini.recognizes_line, _gemini.read_lines),
    LineFormat("claude_code", _claude_code.recognizes, _claude_code.read),
    LineFormat("pi", _pi.recognizes, _pi.read),
    LineFormat("json_lines", _chat.recognizes, _chat.read_lines),
)
DOCUMENTS = (
    DocumentFormat("inspect", _evaluations.is_inspect, _evaluations.read_inspect),
    DocumentFormat("gemini", _gemini.recognizes, _gemini.read),
    DocumentFormat("swe_agent", _swe_agent.recognizes, _swe_agent.read),
    DocumentFormat("openhands", _openhands.recognizes, _openhands.read),
    DocumentFormat("tau_bench", _evaluations.is_tau_bench, _evaluations.read_tau_bench),
    DocumentFormat("mini_swe", _swe_agent.is_mini, _swe_agent.read_mini),
    DocumentFormat("body", _chat.is_body, _chat.read_body),
    DocumentFormat("messages", _chat.is_messages, _chat.read_messages),
)
