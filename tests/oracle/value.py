"""Values of a history: their members, the texts that are read of them, and how they are changed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oracle.placeholder import Masked
from oracle.reading import JsonList, JsonObject, Span
from oracle.size import json_weight, opaque_weight, weight

GONE = object()
"""In the place of a member that is removed."""


class Member(NamedTuple):
    """A member of an object, or an element of a list."""

    holder: Any
    key: Any

    @property
    def value(self) -> Any:
        """Its value; None if there is no such member."""
        return self.holder.get(self.key) if isinstance(self.holder, dict) else self.holder[self.key]

    @property
    def compact_json(self) -> str:
        """It as JSON without white space."""
        return json.dumps(self.value, ensure_ascii=False, separators=(",", ":"))

    @property
    def own_json(self) -> str:
        """Its own bytes; of Python objects compact JSON."""
        if self.span is None:
            return self.compact_json
        data: bytes = self.holder.data
        return data[slice(*self.span)].decode("utf-8", "surrogatepass")

    @property
    def span(self) -> Span | None:
        """Its bytes; None if there is no such member, and for Python objects."""
        span: Span | None = None
        if isinstance(self.holder, JsonList):
            span = self.holder.spans[self.key]
        elif isinstance(self.holder, JsonObject):
            span = self.holder.spans.get(self.key)
        return span


@dataclass(slots=True)
class Text:
    """The text of a value: of a string, or of a list of parts."""

    pieces: list[Member] = field(default_factory=list)
    images: int = 0
    json: Member | None = None  # a value that is no text
    json_chars: int = 0
    forgotten: list[str] = field(default_factory=list)  # texts that count in `json_chars`
    is_output: bool = False  # the JSON is all of it
    has_references: bool = False  # parts that name tools, which stay

    @property
    def joined(self) -> str:
        return "".join(piece.value for piece in self.pieces)

    @property
    def weight(self) -> int:
        """Quarter tokens, before the scale of the model."""
        texts = sum(weight(piece.value) for piece in self.pieces) + sum(map(weight, self.forgotten))
        if self.is_output and self.json is not None:
            return json_weight(self.json.value)
        return texts + opaque_weight(self.json_chars - sum(map(len, self.forgotten)))

    def chars(self, image_chars: int) -> int:
        return sum(len(piece.value) for piece in self.pieces) + self.json_chars + self.images * image_chars


class NewText(NamedTuple):
    """A text that replaces another one."""

    masked: Masked
    pieces: list[Member]  # of the other one


@dataclass(slots=True)
class Changed:
    """An object or a list of the input, with new values for some of its members.

    A new value is a `Changed`, a `Member` that is copied, a `NewText`, or JSON with such values in it. A new member is
    written after the one before it in `new`; the first one at the end of its object.
    """

    source: Member
    new: dict[Any, Any] = field(default_factory=dict)

    def at(self, key: Any) -> Changed:
        """A member that is changed too."""
        changed: Changed = self.new.setdefault(key, Changed(Member(self.source.value, key)))
        return changed
