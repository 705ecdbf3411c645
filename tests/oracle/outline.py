"""The Outline: all facts of a history that a planner may use. Data only; both entrances fill it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from oracle.reading import JsonObject
from oracle.shape.base import Shape
from oracle.size import json_weight, weight
from oracle.value import Text

CALL_CHARS = 20
"""Characters that a call counts besides its name and arguments."""


_ROLES = ("system", "developer", "user", "assistant", "model", "tool")
_TYPES = ("reasoning", "compaction", "compaction_summary", "tool_search_output")
"""Types of messages that rules know without calls and results."""


@dataclass(slots=True)
class Call:
    """A tool call."""

    index: int  # in the sequence of all calls
    message: int
    shape: Shape
    id: str | None
    name: str | None
    block: int  # its place among the blocks of its message
    value: Any  # the arguments
    arguments: str  # if the arguments are a string, else ""
    compact_chars: int  # if the arguments are no string, else 0
    read: JsonObject | None = None  # the arguments, if the input was bytes and they are an object

    @property
    def constant_chars(self) -> int:
        return CALL_CHARS + self.compact_chars

    @property
    def text(self) -> str:
        return (self.name or "") + self.arguments

    @property
    def weight(self) -> int:
        """Quarter tokens of its name and arguments, before the scale of the model."""
        arguments = weight(self.arguments) if isinstance(self.value, str) else 0 if self.value is None else None
        return weight(self.name or "") + (json_weight(self.value) if arguments is None else arguments)


@dataclass(slots=True)
class Result:
    """A tool result, with its observation."""

    index: int  # in the sequence of all results, which is the sequence of all observations
    message: int
    shape: Shape
    id: str | None
    name: str | None  # the tool, if its shape names it
    block: int  # its place among the blocks of its message; 0 if the message is the result
    is_leading: bool  # only results precede it, or its shape does not require that
    is_error: bool
    text: Text
    takes_name: bool = False  # in the place of an id
    is_pinned: bool = False  # never masked


@dataclass(slots=True)
class Half:
    """A half of a call that the provider runs: no mask and no window knows of it, but no view has one half alone."""

    message: int
    id: str  # both halves have it
    block: int
    is_result: bool


@dataclass(slots=True)
class Message:
    """A message. Its own text and images are those outside of observations."""

    index: int
    role: str | None
    type: str | None
    shape: Shape | None
    tags: list[str]
    own: Text = field(default_factory=Text)
    pieces: list[str] = field(default_factory=list)  # all text: its own and its observations', content before output
    exchanges: list[Call | Result] = field(default_factory=list)  # calls and results, in document order
    calls: list[Call] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    halves: list[Half] = field(default_factory=list)
    has_compaction: bool = False  # as a block
    is_signed: bool = False  # made by the agent, with reasoning that a provider may verify
    is_opaque: bool = False  # it has no content, and is counted as JSON
    has_more: bool = False  # than calls, results, and the agent's text and reasoning
    is_lasting: bool = False  # it loads tools, or has a part of an unknown type
    blocks: int = 0  # of a content that is a list
    reasoning: list[str] = field(default_factory=list)  # what can be read of it
    sealed_chars: int = 0  # of reasoning that only the provider reads
    leading_results: int = 0  # leading blocks that are results

    @property
    def is_system(self) -> bool:
        return self.role in ("system", "developer")

    @property
    def system_text(self) -> str | None:
        """What a system message says without its digits, by which a later one replaces it: a short text alone."""
        text = "".join(self.pieces)
        is_short = 0 < len(text.encode("utf-8", "surrogatepass")) <= 2_000
        return re.sub("[0-9]+", "0", text) if self.is_system and is_short and not self.keeps_turn else None

    @property
    def is_reasoning(self) -> bool:
        return self.type == "reasoning"

    @property
    def is_compaction(self) -> bool:
        """Whether it is what a provider has made of all that precedes it."""
        return self.has_compaction or self.type in ("compaction", "compaction_summary")

    @property
    def is_agent_made(self) -> bool:
        made = self.type in ("reasoning", "mcp_approval_request") or (self.type or "").endswith("_call")
        return self.role in ("assistant", "model") or made

    @property
    def is_of_unknown_role(self) -> bool:
        """Whether it has text, but neither calls nor results nor a role that rules know."""
        return self.is_unknown and self.role not in (*_ROLES, None) and self.chars(0) > 0

    @property
    def is_unknown(self) -> bool:
        """Whether it is of no known shape: no rule knows its type, and it has no content, or no role that one knows."""
        is_typed = self.type in _TYPES or (self.type or "").endswith("_call")
        return self.shape is None and not is_typed and (self.is_opaque or self.role not in _ROLES)

    @property
    def is_never_hidden(self) -> bool:
        """Whether it loads tools, has a part of an unknown type, or is of no known shape."""
        return self.is_lasting or self.is_unknown

    @property
    def keeps_turn(self) -> bool:
        """Whether no summary that pays hides its turn."""
        return self.has_more or self.is_compaction or self.is_never_hidden

    @property
    def has_words_beside(self) -> bool:
        """Whether it has words or a picture of the user beside results."""
        return self.role == "user" and self.has_more and not self.is_lasting and bool(self.results)

    @property
    def is_said(self) -> bool:
        """Whether it is a user's text."""
        return self.role == "user" and not self.is_agent_made and not self.exchanges and not self.is_unknown

    @property
    def block_count(self) -> int:
        """How many content blocks it has in a view; a text is one."""
        return max(self.blocks, len(self.calls), len(self.results), 1)

    def position(self, block: int) -> int:
        """The position of a block among those that a mark looks back upon: a run of calls or of results is one."""
        pairs = [*pairwise(call.block for call in self.calls), *pairwise(result.block for result in self.results)]
        return block - sum(one + 1 == other <= block for one, other in pairs)

    @property
    def position_count(self) -> int:
        return self.position(self.block_count - 1) + 1

    @property
    def own_weight(self) -> int:
        """Quarter tokens of the message without its observations, before the scale of the model."""
        return self.own.weight + sum(call.weight for call in self.calls)

    def own_chars(self, image_chars: int) -> int:
        """The chars of the message without its observations."""
        return self.own.chars(image_chars) + sum(len(call.text) + call.constant_chars for call in self.calls)

    def chars(self, image_chars: int) -> int:
        return self.own_chars(image_chars) + sum(result.text.chars(image_chars) for result in self.results)


@dataclass(slots=True)
class Outline:
    """The facts of a history."""

    messages: list[Message] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)  # in document order
    results: list[Result] = field(default_factory=list)
    unread: list[Message] = field(default_factory=list)  # of unknown shapes, or with results that are not understood

    @property
    def is_unrecognized(self) -> bool:
        """Whether there are characters, all of them in messages without a content and of no known type."""
        counted = [message for message in self.messages if message.chars(1)]
        return bool(counted) and all(message.is_opaque and message.is_unknown for message in counted)

    def chars(self, image_chars: int) -> int:
        return sum(message.chars(image_chars) for message in self.messages)

    def beginning(self, messages: int) -> Outline:
        """The first messages alone."""
        first = self.messages[:messages]
        calls = [call for message in first for call in message.calls]
        return Outline(first, calls, [result for message in first for result in message.results])
