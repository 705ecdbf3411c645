"""What a shape of messages has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from oracle.shape.words import moving_mark, references
from oracle.value import Changed


class Shape(ABC):
    """A shape: which fields make a call, a result and an observation, and how these are written."""

    name: str
    message_keys: frozenset[str] = frozenset()
    """Keys of its own that must not be repeated in a message."""
    results_are_blocks = False
    """Whether it is a `BlockShape`."""
    is_one_call = False
    """Whether each message is at most one call."""
    wants_results_first = False
    """Whether results must come before all other blocks of their message."""
    names_results = False
    """Whether results without an id name their tool."""
    may_name_results = False
    """Whether results may name their tool, which is then known without their call."""
    takes_names_for_ids = False
    """Whether a call that has a name can be answered without an id."""
    wants_one_message = False
    """Whether the results of a turn must be in one message."""
    wants_unique_ids = False
    """Whether no two calls of a history may have the same id."""
    takes_system_messages = True
    """Whether an API of this shape accepts system messages among the others."""

    id_path: tuple[str, ...] = ("tool_call_id",)
    """The path from a result to its id: from its block, or from its message."""
    field = "content"
    """The field with the text of a message, or with its blocks."""
    result_field = "content"
    """The field with the observation, if a message is the result."""
    part_type: str | None = "text"
    """The type of a part with text; None if parts have no types, and a text is always in a part."""

    @abstractmethod
    def fits(self, message: dict[str, Any]) -> bool:
        """Whether the message has the fields of this shape."""

    @abstractmethod
    def read(self, walk: Any, message: dict[str, Any]) -> None:
        """Report the content of the message to a walk."""

    def mask(self, message: Changed, texts: Mapping[int, Any]) -> None:
        """Put these texts in the place of the observations of these blocks. A mark inside of one stays."""
        value = message.source.value.get(self.result_field)
        mark, kept, part = moving_mark(value), references(value), {"type": self.part_type, "text": texts[0]}
        if mark is not None:
            part[mark.key] = mark
        message.new[self.result_field] = [part, *kept] if mark is not None or kept else texts[0]

    def path_of_id(self, message: dict[str, Any]) -> tuple[str, ...]:
        """The path to the id of a result of this message."""
        return self.id_path

    def head(self, role: str) -> dict[str, Any]:
        """The first field of a message that is written: its role, or what tells it."""
        return {"role": role}

    def content(self, text: Any) -> Any:
        """The content of a message with this text alone."""
        return [{"text": text}] if self.part_type is None else text

    @abstractmethod
    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        """The message that answers these calls, each named by its message and its block."""


class BlockShape(Shape):
    """A shape whose calls and results are blocks of messages, which may have several of them and other blocks."""

    results_are_blocks = True

    @abstractmethod
    def mask_block(self, block: Changed, text: Any) -> None:
        """Put a text in the place of the observation of a block."""

    @abstractmethod
    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        """The block that answers a call."""

    def mask(self, message: Changed, texts: Mapping[int, Any]) -> None:
        for place, text in texts.items():
            self.mask_block(message.at(self.field).at(place), text)

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        return {"role": "user", self.field: [self.answer_block(*call) for call in calls]}
