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
