"""The rows that fail today, by the title of the issue that mends them, and the ways in which they do."""

from __future__ import annotations

from fnmatch import fnmatch

Ways = tuple[str, ...]
"""Patterns of a door and a policy."""

ALL = ("*",)
SUMMARY = ("* summarizer",)
LIMIT = ("reduce tight", "History tight")  # these doors hide turns over a limit
HIDES = (*SUMMARY, *LIMIT)

KNOWN: dict[str, dict[str, Ways]] = {
    "Summaries that can be trusted": {
        "system messages": SUMMARY,
        "MCP servers": HIDES,
        "tools that a result loads": HIDES,
        "tools that a search loads": HIDES,
        "blocks of later days": HIDES,
        "Responses: searched tools": HIDES,
        "Responses: items of later days": LIMIT,
        "chat: parts of later days": LIMIT,
        "Gemini: parts of later days": HIDES,
        "Converse: blocks of later days": HIDES,
        "Interactions: steps of later days": (*LIMIT, "RequestMasker summarizer", "proxy summarizer"),
        "Qwen": HIDES,
        "Gemma": HIDES,
        "Ministral": SUMMARY,
    },
}


def title_of(row: str, door: str, policy: str) -> str | None:
    """The issue until which a row fails this way; None if it does not."""
    way = f"{door} {policy}"
    titles = (title for title, rows in KNOWN.items() if any(fnmatch(way, one) for one in rows.get(row, ())))
    return next(titles, None)
