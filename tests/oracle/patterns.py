"""Patterns of tool names, and of the texts of results."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence


def fits(pattern: str, text: str) -> bool:
    """Whether a text begins with the pattern, or with `*` matches it as a whole."""
    first, *parts = pattern.split("*")
    if not parts or not text.startswith(first):
        return text.startswith(first)
    at = len(first)
    for part in parts[:-1]:
        at = text.find(part, at) + len(part)
        if at < len(part):
            return False
    return text.endswith(parts[-1]) and len(text) - len(parts[-1]) >= at


def matches(tools: Sequence[str | None], patterns: Sequence[str]) -> dict[str, str]:
    """The pattern of each tool that one matches: its exact name, or the first one with `*` and `?`."""
    globs = [(one, re.compile(fnmatch.translate(one.replace("[", "[[]")))) for one in patterns if {"*", "?"} & {*one}]
    matches = {}
    for tool in {tool for tool in tools if tool is not None}:
        fitting = [tool] if tool in patterns else [pattern for pattern, glob in globs if glob.match(tool)]
        if fitting:
            matches[tool] = fitting[0]
    return matches
