"""What a shape of messages has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from recede._pure.shape.words import marked


class Shape(ABC):
    """A shape: which fields make a call, a result and an observation, and how these are written."""

    name: str
    message_keys: frozenset[str] = frozenset()
    """Keys of its own that must not be repeated in a message."""
    results_are_blocks = False
    """Whether it is a `BlockShape`."""
    wants_results_first = False
    """Whether results must come before all other blocks of their message."""
    pairs_by_place = False
    """Whether a result and a call that do not both have an id pair by their place."""
    names_results = False
    """Whether results name their tool, so that calls and results need no ids."""
    takes_system_messages = True
    """Whether an API of this shape accepts system messages among the others."""

    field = "content"
    """The field with the text of a message, or with its blocks."""

    part_type = "text"
    """The type of a part with the text of a result, if the message is the result."""

    text_frame = ("", "")
    """The JSON around the string that is the whole text of a message."""

    @abstractmethod
    def fits(self, message: dict[str, Any]) -> bool:
        """Whether the message has the fields of this shape."""

    @abstractmethod
    def read(self, walk: Any, message: dict[str, Any]) -> None:
        """Report the content of the message to a walk."""

    def masked(self, message: dict[str, Any], texts: Mapping[int, str]) -> dict[str, Any]:
        """A copy of the message with these texts for the observations of these blocks."""
        return {**message, "content": marked(texts[0], message.get("content"), self.part_type)}

    def summary(self, role: str, text: str) -> dict[str, Any]:
        """The message of a summary in a history of this shape."""
        return {"role": role, "content": text}

    @abstractmethod
    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        """The message that answers these calls, each named by its message and its block."""


class BlockShape(Shape):
    """A shape whose calls and results are blocks of messages, which may have several of them and other blocks."""

    results_are_blocks = True

    @abstractmethod
    def masked_block(self, block: dict[str, Any], text: str) -> dict[str, Any]:
        """A copy of a block, with this text for its observation."""

    @abstractmethod
    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        """The block that answers a call."""

    def masked(self, message: dict[str, Any], texts: Mapping[int, str]) -> dict[str, Any]:
        blocks = list(self.blocks(message))
        for place, text in texts.items():
            blocks[place] = self.masked_block(blocks[place], text)
        return self.mended(message, blocks)

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        return self.mended({"role": "user"}, [self.answer_block(*call) for call in calls])

    def mended(self, message: dict[str, Any], blocks: list[Any]) -> dict[str, Any]:
        """A copy of the message with other blocks."""
        return {**message, self.field: blocks}

    def blocks(self, message: dict[str, Any]) -> list[Any]:
        """The blocks of a message."""
        blocks: list[Any] = message[self.field]
        return blocks
