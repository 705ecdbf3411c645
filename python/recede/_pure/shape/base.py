"""The base class of shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Shape:
    """A shape: which fields make a call, a result and an observation, and how these are written."""

    name: str
    results_are_blocks = False
    """Whether results are blocks of a message, which may have several of them and other blocks."""
    wants_results_first = False
    """Whether results must come before all other blocks of their message."""
    pairs_by_place = False
    """Whether a result and a call that do not both have an id pair by their place."""
    names_results = False
    """Whether results name their tool, so that calls and results need no ids."""
    takes_system_messages = True
    """Whether an API of this shape accepts system messages among the others."""

    text_frame = ("", "")
    """The JSON around the string that is the whole text of a message."""

    def fits(self, message: dict[str, Any]) -> bool:
        """Whether the message has the fields of this shape."""
        raise NotImplementedError

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        """Report the content of the message to a walk."""
        raise NotImplementedError

    def masked(self, message: dict[str, Any], texts: Mapping[int, str]) -> dict[str, Any]:
        """A copy of the message with these texts for the observations of these blocks."""
        return {**message, "content": texts[0]}

    def summary(self, role: str, text: str) -> dict[str, Any]:
        """The message of a summary in a history of this shape."""
        return {"role": role, "content": text}

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        """The message that answers these calls, each named by its message and its block."""
        raise NotImplementedError

    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        """The block that answers a call, if results are blocks."""
        raise NotImplementedError

    def mended(self, message: dict[str, Any], blocks: list[Any]) -> dict[str, Any]:
        """A copy of the message with other blocks."""
        return {**message, "content": blocks}

    def blocks(self, message: dict[str, Any]) -> list[Any]:
        """The blocks of a message."""
        blocks: list[Any] = message["content"]
        return blocks
