"""Untrusted text, such as names in logs and of files, made safe for a terminal or a log line."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    """Escape, as JSON does, each character of a text that is not printable.

    These are controls, such as those that begin the commands of a terminal, ends of lines, marks that turn the
    direction of writing, what has no width, and lone surrogates, which no file in UTF-8 may hold. Those in `keep` stay.
    """
    if text.isprintable():
        return text
    import json  # here, since names are seldom like this

    return "".join(one if one.isprintable() or one in keep else json.dumps(one)[1:-1] for one in text)
