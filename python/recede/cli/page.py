"""A replay as one self-contained HTML page: no scripts, readable without color, on paper and on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recede.cli.chart import element, text
from recede.cli.notices import counted
from recede.cli.pictures import (
    by_saving,
    growth_picture,
    session_rows,
    sessions_picture,
)
from recede.cli.played import Session
from recede.cli.screen import Asked, screen

_TITLE = "What you paid, and what masking would have cost"
_STYLE = Path(__file__).with_name("page.css")


def page(sessions: Sequence[Session], asked: Asked) -> str:
    """The first screen, a list of contents, and two pictures.

    Args:
        sessions: replayed under the choices of the screen; at least one.
        asked: as for the screen.

    Returns:
        A page that can be encoded as UTF-8, whatever the names of files and tools are.
    """
    sections = _sections(sessions, asked)
    contents = [element("li", element("a", text(title), href=f"#{key}")) for key, title, _ in sections]
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="recede replay">\n'
        f"<title>{_TITLE}</title>\n<style>\n{_STYLE.read_text('utf-8')}</style>\n"
    )
    block = text("\n".join(screen(sessions, asked)), keep="\n")
    body = [
        element("h1", _TITLE),
        element("pre", block, class_="screen", tabindex=0, role="region", aria_label=_TITLE),
        element("nav", element("ol", *contents), aria_label="Contents") if contents else "",
        *(element("section", element("h2", text(title)), *parts, id=f"part-{key}") for key, title, parts in sections),
        element(
            "footer",
            "Tokens are those that the logs have, in every picture; where a log has none, four characters are a token. "
            "Dollars are those of the logs, and what would have been is the same share of them as in the replay.",
        ),
    ]
    main = "\n".join(filter(None, body)).replace('href="#', 'href="#part-')
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n<main>\n{main}\n</main>\n</body>\n</html>\n'
    )


def _sections(sessions: Sequence[Session], asked: Asked) -> list[tuple[str, str, tuple[str, ...]]]:
    """The key, the title and the parts of each picture; none where no request was made."""
    ranked = by_saving(sessions, asked)
    if not ranked:
        return []
    first = ranked[0]
    words = f"{first.name}, {counted(first.requests, 'request')}: the session that masking changes most."
    growth = element("p", text(words)), element("figure", growth_picture(first, asked))
    rows = element("figure", sessions_picture(session_rows(sessions, asked)))
    return [("growth", "How requests grow", growth), ("sessions", "Each session", (rows,))]
