"""A list of messages -> Outline, for both entrances: values that scan has read have spans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from oracle.outline import Call, Half, Message, Outline, Result
from oracle.reading import JsonObject
from oracle.reasoning import is_signed, is_thinking
from oracle.shape import MESSAGE_KEYS, shape_of
from oracle.shape.reasoning import read_block, read_reasoning
from oracle.shape.words import (
    BLOCK_KEYS,
    IMAGE_TYPES,
    KNOWN_TYPES,
    LOADED_TOOLS,
    MARKS,
    OF_AGENT_TYPES,
    REFERENCE,
    TEXT_TYPES,
    THINKING_TYPES,
    block_type,
    holds_base64,
    id_of,
    is_repeated,
    items,
    string,
)
from oracle.size import Unsized, compact_chars
from oracle.value import Member, Text
from recede._errors import TranscriptError
from recede._objects import is_object

_CONTENT_DEPTH = 2  # the message, its content
_MARK_KEYS = (*MARKS, "content", "source")
_SOURCE_KEYS = ("type", "content")


def walk(messages: Any) -> Outline:
    if not isinstance(messages, list):
        raise TranscriptError("history")
    outline = Outline()
    for index, source in enumerate(messages):
        if not isinstance(source, dict):
            span = Member(messages, index).span
            raise TranscriptError("message", offset=span and span[0], message_index=index)
        refuse_repeated(source, MESSAGE_KEYS, message_index=index)
        shape = shape_of(source)
        tags = [tag for tag in items(source.get("tags")) if isinstance(tag, str)]
        message = Message(index, string(source.get("role")), string(source.get("type")), shape, tags)
        message.blocks = len(items(source.get("content")))
        message.is_signed = is_signed(message, source)
        outline.messages.append(message)
        into = MessageWalk(outline, message)
        read_reasoning(message, source)
        if shape is None and message.is_reasoning:
            pass  # counted above
        elif shape is None and "content" not in source:
            into.opaque(source)
        elif shape is None:
            into.content(source)
            into.old_call(source)
        else:
            shape.read(into, source)
        into.images_beside(source)
        into.item(source)
    return outline


def refuse_repeated(
    value: dict[str, Any], watched: frozenset[str], path: str = "", message_index: int | None = None
) -> None:
    """Refuse repeated keys, of which JSON parsers use different ones."""
    if isinstance(value, JsonObject):
        for key, offset, _ in value.repeated:
            if key in watched:
                raise TranscriptError("duplicate_key", offset=offset, message_index=message_index, field=path + key)


class MessageWalk:
    """Adds what a shape reads of a message to the outline."""

    def __init__(self, outline: Outline, message: Message) -> None:
        self.outline = outline
        self.message = message

    def content(self, source: dict[str, Any]) -> None:
        """Read the content as text of the message."""
        self.message.own = self.text(Member(source, "content"), "content", BLOCK_KEYS)

    def images_beside(self, source: dict[str, Any]) -> None:
        """Count the images that Ollama has beside the content of a message."""
        shape, is_of_model = self.message.shape, self.message.role == "assistant" or self.message.is_reasoning
        is_chat = shape is None or shape.name == "openai"
        if is_chat and not is_of_model and "content" in source and not is_repeated(source, "images"):
            self.message.own.images += sum(isinstance(image, str) for image in items(source.get("images")))

    def item(self, source: dict[str, Any]) -> None:
        """Note an item that is a call which the client does not answer, or what was found or permitted."""
        kind, is_plain = self.message.type or "", self.message.shape is None
        is_call = is_plain and kind.endswith("_call")
        is_approval = kind in ("mcp_approval_request", "mcp_approval_response")
        self.message.has_more |= is_call or is_approval or self.message.is_compaction
        self.message.is_lasting |= kind == "tool_search_output" or (is_call and kind == "tool_search_call")

    def old_call(self, source: dict[str, Any]) -> None:
        """Count a call as chat once had it, which has no id."""
        if self.message.role == "assistant":
            call = source.get("function_call")
            self.message.own.json_chars += 0 if call is None else self.size(call, 1)

    def blocks(self, member: Member, watched: frozenset[str]) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """The blocks of the message, as `parts`."""
        if not isinstance(member.value, list):
            self.fault("content", member, member.key)
        self.message.blocks = len(member.value)
        return self.parts(member, member.key, watched)

    def parts(self, member: Member, path: str, watched: frozenset[str]) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """The elements of a list: place, path, and object, in which no watched key is repeated."""
        for place, part in enumerate(member.value):
            if not isinstance(part, dict):
                self.fault("part", Member(member.value, place), f"{path}[{place}]")
            self.refuse_repeated(part, watched, f"{path}[{place}].")
            yield place, f"{path}[{place}]", part

    def object(self, value: Any, path: str) -> dict[str, Any] | None:
        """The object that a value is, if it is one."""
        if is_object(value):
            self.fault("part", None, path)
        return value if isinstance(value, dict) else None

    def opaque(self, source: dict[str, Any]) -> None:
        """Count a message of an unknown shape, without its role."""
        if self.message.type == "image_generation_call":
            self.message.own.images += 1
            return
        chars = max(0, self.unmarked_size(source, 0) - self.member_chars(source, "role"))
        if chars > len("{}"):
            self.message.own.json_chars += chars
            self.message.is_opaque = True
            if self.message.type is None:
                self.outline.unread.append(self.message)

    def observation(self, member: Member, path: str, watched: frozenset[str], depth: int = _CONTENT_DEPTH) -> Text:
        """Read the text of an observation: with a part of an unknown type it has none, but counts."""
        return self.text(member, path, watched, depth, is_observation=True)

    def forget(self, text: Text) -> None:
        """What was read of an observation counts, but is no text."""
        text.forgotten = [piece.value for piece in text.pieces]
        text.json_chars += sum(map(len, text.forgotten))
        del self.message.pieces[len(self.message.pieces) - len(text.pieces) :]
        text.pieces = []

    def text(
        self,
        member: Member,
        path: str,
        watched: frozenset[str],
        depth: int = _CONTENT_DEPTH,
        is_observation: bool = False,
    ) -> Text:
        """Read the text of a value: a string, a list of parts that are nested this deep, or null."""
        text = Text()
        if isinstance(member.value, list):
            for _, _, part in self.parts(member, path, watched):
                is_kept = is_observation and block_type(part) == REFERENCE
                text.has_references |= is_kept
                if not is_observation:
                    self.beside(part)
                self.message.is_lasting |= is_kept and not holds_base64(part)
                self.part(part, self.message.own if is_kept else text, depth)
            if text.json_chars and is_observation:
                self.forget(text)
                text.json = member
        elif isinstance(member.value, str):
            self.piece(member, text)
        elif member.value is not None:
            self.fault("content", member, path)
        return text

    def beside(self, part: dict[str, Any], is_of_user: bool = False) -> None:
        """Note a part of a message that is neither a call nor a result, nor text or reasoning of the agent."""
        kind = block_type(part) or ""
        is_server = kind.endswith(("_tool_use", "_tool_result")) and kind != LOADED_TOOLS
        is_image = kind not in TEXT_TYPES | THINKING_TYPES and holds_base64(part)
        is_known = is_server or kind in KNOWN_TYPES or is_image
        is_of_agent = kind in OF_AGENT_TYPES or is_thinking(part)
        self.message.has_more |= is_of_user or is_known
        self.message.is_lasting |= not (is_known or is_of_agent)

    def part(self, part: dict[str, Any], into: Text, depth: int = _CONTENT_DEPTH) -> None:
        """Read a part; one of an unknown type counts as JSON."""
        kind, piece = block_type(part), Member(part, "text")
        if kind in TEXT_TYPES:
            if isinstance(piece.value, str):
                self.piece(piece, into)
        elif kind in IMAGE_TYPES:
            into.images += 1
        elif kind == "document":
            self.document(part, into, depth)
        elif kind in THINKING_TYPES:
            read_block(self.message, part)
        elif holds_base64(part):
            into.images += 1
        else:
            into.json_chars += self.unmarked_size(part, depth)

    def document(self, part: dict[str, Any], into: Text, depth: int) -> None:
        """Read a document: an image, unless its source is text, or parts, of which images count as such."""
        source = part.get("source")
        if not isinstance(source, dict) and isinstance(part.get("document"), dict):  # Cohere's, whose data is text
            into.json_chars += self.unmarked_size(part, depth)
        elif not isinstance(source, dict):
            into.images += 1
        elif is_repeated(part, *_MARK_KEYS) or is_repeated(source, *_SOURCE_KEYS):
            into.json_chars += self.unmarked_size(part, depth)
        elif string(source.get("type")) not in ("text", "content"):
            into.images += 1
        else:
            images = [one for one in items(source.get("content")) if block_type(one) in IMAGE_TYPES]
            sizes = [self.unmarked_size(one, depth) for one in (part, *images)]
            into.images += len(images)
            into.json_chars += sizes[0] - sum(sizes[1:])

    def piece(self, piece: Member, into: Text) -> None:
        into.pieces.append(piece)
        self.message.pieces.append(piece.value)

    def size(self, value: Any, depth: int) -> int:
        """The size of a value that is nested this deep in its message."""
        if isinstance(value, str):
            return len(value)
        try:
            return compact_chars(value, 1 + depth)
        except Unsized as fault:
            raise TranscriptError(str(fault), message_index=self.message.index) from None

    def unmarked_size(self, value: dict[str, Any], depth: int) -> int:
        """The size of an object without its cache marks: these move while the history stays."""
        return max(0, self.size(value, depth) - self.mark_chars(value, 2))

    def member_chars(self, holder: dict[str, Any], key: str) -> int:
        """The chars of a member as JSON, with a comma."""
        value = holder.get(key)
        return len(key) + 4 + self.size(value, 0) + 2 * isinstance(value, str) if key in holder else 0

    def mark_chars(self, value: dict[str, Any], levels: int) -> int:
        """The chars of the marks of an object, and of its parts for so many levels; of repeated keys none is one."""
        if is_repeated(value, *_MARK_KEYS):
            return 0
        chars, source = sum(self.member_chars(value, name) for name in MARKS), value.get("source")
        if not levels:
            return chars
        lists = [value.get("content")]
        if isinstance(source, dict) and not is_repeated(source, *_SOURCE_KEYS):
            lists.append(source.get("content"))
        parts = [part for one in lists for part in items(one) if isinstance(part, dict)]
        return chars + sum(self.mark_chars(part, levels - 1) for part in parts)

    def call(self, call_id: Any, name: Any = None, arguments: Any = None, *, block: int = 0, depth: int = 1) -> None:
        """Add a call; `depth` is the nesting level of its arguments."""
        assert self.message.shape is not None
        is_text = isinstance(arguments, str)
        call = Call(
            index=len(self.outline.calls),
            message=self.message.index,
            shape=self.message.shape,
            id=id_of(call_id),
            name=string(name),
            block=block,
            arguments=arguments if is_text else "",
            value=arguments,
            compact_chars=0 if is_text or arguments is None else self.size(arguments, depth),
            read=arguments if isinstance(arguments, JsonObject) else None,
        )
        self.outline.calls.append(call)
        self.message.calls.append(call)
        self.message.exchanges.append(call)

    def half(self, half_id: Any, block: int, is_result: bool) -> None:
        """Add a half of a call that the provider runs."""
        if (known := id_of(half_id)) is not None:
            self.message.halves.append(Half(self.message.index, known, block, is_result))

    def result(
        self,
        result_id: Any,
        text: Text,
        *,
        name: Any = None,
        block: int = 0,
        is_error: bool = False,
        takes_name: bool = False,
        is_pinned: bool = False,
    ) -> None:
        """Add a result with its observation."""
        assert self.message.shape is not None
        is_leading = self.message.leading_results == block
        self.message.leading_results += is_leading
        result = Result(
            index=len(self.outline.results),
            message=self.message.index,
            shape=self.message.shape,
            id=id_of(result_id),
            name=string(name),
            block=block,
            is_leading=is_leading or not self.message.shape.wants_results_first,
            is_error=is_error,
            text=text,
            takes_name=takes_name,
            is_pinned=is_pinned,
        )
        self.outline.results.append(result)
        self.message.results.append(result)
        self.message.exchanges.append(result)

    def refuse_repeated(self, value: dict[str, Any], watched: frozenset[str], path: str) -> None:
        refuse_repeated(value, watched, path, self.message.index)

    def fault(self, kind: str, member: Member | None, field: str) -> NoReturn:
        span = member and member.span
        raise TranscriptError(kind, offset=span and span[0], message_index=self.message.index, field=field)
