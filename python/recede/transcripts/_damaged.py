"""Whole records of a line that a writer did not finish, or that has several."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn

PADDING = b" \t\r\n\0"
"""Bytes between records; a file system that lost power leaves zeros."""

_MOST_OPENING = 100
_MOST_TRIES = 100  # places of a damaged line at which a record may begin: each may be read to the end of the line
_OPENING = re.compile(rb'\{\s*"[^"\\]{1,80}"\s*:')
_RECORD = re.compile(f"[^{PADDING.decode()}]")
_NO_UTF8 = re.compile("[\udc80-\udcff]")


class Piece(NamedTuple):
    """A record of a damaged line, and its bytes."""

    value: dict[str, Any]
    text: bytes


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


decoder = json.JSONDecoder(parse_constant=_refuse)


def opening_of(line: bytes) -> bytes:
    """How a record begins: its first key. Records of one writer often begin alike."""
    found = _OPENING.match(line[:_MOST_OPENING])
    return found[0] if found else b""


def pieces_of(line: bytes, openings: set[bytes]) -> tuple[list[Piece], int | None]:
    """The records of a line, and the byte at which the first damage is; None: there is none.

    After a damaged record another is found where it begins as records of the same file do.
    """
    begins = [one.decode(errors="surrogateescape") for one in {*openings, opening_of(line.lstrip(PADDING))} if one]
    text = line.decode(errors="surrogateescape")
    pieces: list[Piece] = []
    damage, at, tries = None, 0, 0
    while (at := _skip(text, at)) < len(text) and tries < _MOST_TRIES:
        found = _piece(text, at)
        if found is not None and (damage is None or _ends(text, found[1], begins)):
            value, end = found
            pieces.append(Piece(value, text[at:end].encode(errors="surrogateescape")))
            at = end
            continue
        tries += 1
        damage = at if damage is None else damage
        later = [place for place in (text.find(one, at + 1) for one in begins) if place > 0]
        at = min(later, default=len(text))
    damage = text.find("\0") if damage is None else damage
    return pieces, len(text[:damage].encode(errors="surrogateescape")) if damage >= 0 else None


def _skip(text: str, at: int) -> int:
    found = _RECORD.search(text, at)
    return found.start() if found else len(text)


def _ends(text: str, end: int, begins: list[str]) -> bool:
    """Whether a record may end there: what is inside of a damaged one ends before a comma or a bracket."""
    end = _skip(text, end)
    return end == len(text) or any(text.startswith(one, end) for one in begins)


def _piece(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    """The object that begins there, and where it ends."""
    if text[at : at + 1] != "{":
        return None
    try:
        value, end = decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return (value, end) if isinstance(value, dict) and not _NO_UTF8.search(text, at, end) else None
