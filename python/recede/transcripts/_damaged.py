"""Whole records of a line that a writer did not finish, or that has several."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn

__all__ = ["PADDING", "Piece", "decoder", "opening_of", "pieces_of"]

PADDING = b" \t\r\n\0"
"""Bytes between records; a file system that lost power leaves zeros."""

_MOST_OPENING = 100
_OPENING = re.compile(rb'\{\s*"[^"\\]{1,80}"\s*:')
_NO_UTF8 = re.compile("[\udc80-\udcff]")


class Piece(NamedTuple):
    """A record of a damaged line.

    Attributes:
        value: the object.
        text: its bytes.
    """

    value: dict[str, Any]
    text: bytes


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


decoder = json.JSONDecoder(parse_constant=_refuse)


def opening_of(line: bytes) -> bytes:
    """How a record begins: its first key. Records of one writer often begin alike.

    Example:
        >>> from recede.transcripts._damaged import opening_of
        >>> opening_of(b'{"type": "user", "uuid": "1"}')
        b'{"type":'
    """
    found = _OPENING.match(line[:_MOST_OPENING])
    return found[0] if found else b""


def pieces_of(line: bytes, openings: set[bytes]) -> tuple[list[Piece], int | None]:
    """The records of a line, and the byte at which the first damage is; None: there is none.

    Args:
        line: what is no single JSON value.
        openings: how records of the same file begin; a record is found after a damaged one where it begins so.

    Example:
        >>> from recede.transcripts._damaged import pieces_of
        >>> pieces, damage = pieces_of(b'{"type": "us{"type": "user"}', {b'{"type":'})
        >>> [piece.value for piece in pieces], damage
        ([{'type': 'user'}], 0)
    """
    begins = [one for one in {*openings, opening_of(line.lstrip(PADDING))} if one]
    pieces: list[Piece] = []
    damage, at = None, 0
    while (at := _skip(line, at)) < len(line):
        found = _piece(line, at)
        end = len(line) if found is None else at + len(found.text)
        if found is not None and (damage is None or _ends(line, end, begins)):
            pieces.append(found)
            at = end
            continue
        damage = at if damage is None else damage
        later = [place for place in (line.find(one, at + 1) for one in begins) if place > 0]
        at = min(later, default=len(line))
    zeros = line.find(b"\0")
    return pieces, zeros if damage is None and zeros >= 0 else damage


def _skip(line: bytes, at: int) -> int:
    while at < len(line) and line[at] in PADDING:
        at += 1
    return at


def _ends(line: bytes, end: int, begins: list[bytes]) -> bool:
    """Whether a record may end there: what is inside of a damaged one ends before a comma or a bracket."""
    end = _skip(line, end)
    return end == len(line) or any(line.startswith(one, end) for one in begins)


def _piece(line: bytes, at: int) -> Piece | None:
    if line[at : at + 1] != b"{":
        return None
    text = line[at:].decode(errors="surrogateescape")
    try:
        value, end = decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or _NO_UTF8.search(text, 0, end):
        return None
    return Piece(value, text[:end].encode(errors="surrogateescape"))
