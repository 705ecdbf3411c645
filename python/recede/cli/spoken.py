"""Texts of others, as a terminal may show them."""

from __future__ import annotations


def harmless(text: str) -> str:
    """The text with control characters escaped, so that a terminal does not interpret them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
