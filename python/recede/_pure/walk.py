"""A list of messages -> Outline, for both entrances: values that scan has read have spans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from recede._errors import TranscriptError
from recede._objects import is_object
from recede._pure.outline import Call, Mark, Message, Outline, Result, Span, Text
from recede._pure.reading import JsonList, JsonObject
from recede._pure.shape import MESSAGE_KEYS, shape_of
from recede._pure.shape.words import BLOCK_KEYS, IMAGE_TYPES, MARK, TEXT_TYPES, block_type, items, string
from recede._pure.size import ForeignObject, TooDeep, compact_chars


def walk(messages: Any) -> Outline:
    if not isinstance(messages, list):
        raise TranscriptError("history")
    outline = Outline()
    for index, message in enumerate(messages):
        span = span_of(messages, index)
        if not isinstance(message, dict):
            raise TranscriptError("message", offset=span and span[0], message_index=index)
        _MessageWalk(outline, index, message, span).message()
    return outline


def span_of(container: Any, key: Any) -> Span | None:
    """The span of a member; None if it is missing, and for Python objects."""
    span: Span | None = None
    if isinstance(container, JsonList):
        span = container.spans[key]
    elif isinstance(container, JsonObject):
        span = container.spans.get(key)
    return span


def refuse_repeated(
    value: dict[str, Any], watched: frozenset[str], path: str = "", message_index: int | None = None
) -> None:
    """Refuse repeated keys, of which JSON parsers use different ones."""
    if isinstance(value, JsonObject):
        for key, offset, _ in value.repeated:
            if key in watched:
                raise TranscriptError("duplicate_key", offset=offset, message_index=message_index, field=path + key)


class _MessageWalk:
    """Reads one message into the outline, by its shape."""

    def __init__(self, outline: Outline, index: int, source: dict[str, Any], span: Span | None) -> None:
        self.outline = outline
        self.index = index
        self.source = source
        self.into = Message(
            index=index,
            role=string(source.get("role")),
            type=string(source.get("type")),
            shape=shape_of(source),
            span=span,
            tags=[tag for tag in items(source.get("tags")) if isinstance(tag, str)],
            blocks=len(items(source.get("content"))),
        )

    def message(self) -> None:
        self.refuse_repeated(self.source, MESSAGE_KEYS, "")
        self.outline.messages.append(self.into)
        if self.into.shape is None:
            self.content()
        else:
            self.into.shape.read(self, self.source)

    def content(self) -> None:
        """Read the content as text."""
        self.into.own = self.text(self.source, "content", "content", BLOCK_KEYS)

    def blocks(
        self, message: dict[str, Any], key: str, watched: frozenset[str]
    ) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """The blocks of a message: place, path, and block, an object without repeated watched keys."""
        blocks = message[key]
        if not isinstance(blocks, list):
            self.fault("content", span_of(message, key), key)
        self.into.blocks = len(blocks)
        self.into.own.span = span_of(message, key)
        for place, block in enumerate(blocks):
            path = f"{key}[{place}]"
            self.refuse_no_part(blocks, place, path)
            self.refuse_repeated(block, watched, path + ".")
            yield place, path, block

    def object(self, value: Any, path: str) -> dict[str, Any] | None:
        """The object that a value is, if it is one."""
        if is_object(value):
            self.fault("part", None, path)
        return value if isinstance(value, dict) else None

    def no_text(self) -> Text:
        return Text()

    def own_text(self, block: dict[str, Any]) -> None:
        """Read the text of a block."""
        self.piece(block["text"], span_of(block, "text"), self.into.own)

    def image(self) -> None:
        self.into.own.images += 1

    def json(self, holder: dict[str, Any], key: str, path: str, depth: int) -> Text:
        """Read an object, which has characters, but no text."""
        value, span = holder.get(key), span_of(holder, key)
        if value is None:
            return Text()
        if not isinstance(value, dict):
            self.fault("content", span, path)
        return Text(span=span, json=value, json_chars=self.size(value, depth))

    def texts(
        self, holder: dict[str, Any], key: str, path: str, watched: frozenset[str], depth: int, media: tuple[str, ...]
    ) -> Text:
        """Read a list of texts and media without types; with JSON in it, it has no text."""
        parts, text, texts = holder[key], Text(span=span_of(holder, key)), []
        for place, part in enumerate(parts):
            part_path = f"{path}[{place}]"
            self.refuse_no_part(parts, place, part_path)
            self.refuse_repeated(part, watched, part_path + ".")
            if part.get("json") is not None:
                text.json = parts
                text.json_chars += self.size(part["json"], depth)
            elif isinstance(part.get("text"), str):
                texts.append(part)
            elif any(part.get(kind) is not None for kind in media):
                text.images += 1
        for part in texts:
            if text.json is not None:
                text.json_chars += len(part["text"])
            else:
                self.piece(part["text"], span_of(part, "text"), text)
        return text

    def size(self, value: Any, depth: int) -> int:
        """The size of a value as arguments, nested this deep in its message."""
        if isinstance(value, str):
            return len(value)
        try:
            return compact_chars(value, 1 + depth)
        except TooDeep:
            raise TranscriptError("depth", message_index=self.index) from None
        except ForeignObject:
            raise TranscriptError("part", message_index=self.index) from None

    def text(self, holder: dict[str, Any], key: str, path: str, watched: frozenset[str]) -> Text:
        """Read the text of a value: a string, a list of parts, or null."""
        value, span = holder.get(key), span_of(holder, key)
        text = Text(span=span)
        if isinstance(value, list):
            for place, part in enumerate(value):
                part_path = f"{path}[{place}]"
                self.refuse_no_part(value, place, part_path)
                self.refuse_repeated(part, watched, part_path + ".")
                self.part(part, text)
                if part.get(MARK) is not None:
                    text.mark = Mark(span_of(part, MARK), part_type="text")
        elif isinstance(value, str):
            self.piece(value, span, text)
        elif value is not None:
            self.fault("content", span, path)
        return text

    def part(self, part: dict[str, Any], into: Text | None = None) -> None:
        """Read a text or image part, of an observation or of the message."""
        into = self.into.own if into is None else into
        kind, text = block_type(part), part.get("text")
        if kind in TEXT_TYPES and isinstance(text, str):
            self.piece(text, span_of(part, "text"), into)
        elif kind in IMAGE_TYPES:
            into.images += 1

    def piece(self, piece: str, span: Span | None, into: Text) -> None:
        into.pieces.append(piece)
        self.into.pieces.append(piece)
        if span is not None:
            into.piece_spans.append(span)

    def call(self, call_id: Any, name: Any = None, arguments: Any = None, *, block: int = 0, depth: int = 1) -> None:
        """Add a call; `depth` is the nesting level of its arguments."""
        assert self.into.shape is not None
        is_text = isinstance(arguments, str)
        counted = 0 if is_text or arguments is None else self.size(arguments, depth)
        call = Call(
            index=len(self.outline.calls),
            message=self.index,
            shape=self.into.shape,
            id=string(call_id),
            block=block,
            name=string(name),
            arguments=arguments if is_text else "",
            compact_chars=counted,
        )
        self.outline.calls.append(call)
        self.into.calls.append(call)
        self.into.exchanges.append(call)

    def result(
        self,
        result_id: Any,
        text: Text,
        *,
        name: Any = None,
        block: int = 0,
        is_error: bool = False,
        frame: tuple[str, str] = ("", ""),
        holder: dict[str, Any] | None = None,
    ) -> None:
        """Add a result with its observation; `frame` is the JSON around the string that replaces it.

        `holder` is the block that takes over a mark inside of the observation; else the message is the result.
        """
        assert self.into.shape is not None
        mark = text.mark
        if mark is not None:
            mark.part_type = self.into.shape.part_type
        if mark is not None and holder is not None:
            mark = None if holder.get(MARK) is not None else Mark(mark.span, over=span_of(holder, MARK))
        is_leading = self.into.leading_results == block
        self.into.leading_results += is_leading
        result = Result(
            index=len(self.outline.results),
            message=self.index,
            shape=self.into.shape,
            id=string(result_id),
            name=string(name),
            block=block,
            is_leading=is_leading or not self.into.shape.wants_results_first,
            is_error=is_error,
            observation=text.joined,
            json=text.json,
            json_chars=text.json_chars,
            frame=frame,
            images=text.images,
            span=text.span,
            piece_spans=text.piece_spans,
            mark=mark,
        )
        self.outline.results.append(result)
        self.into.results.append(result)
        self.into.exchanges.append(result)

    def refuse_no_part(self, parts: list[Any], place: int, path: str) -> None:
        if not isinstance(parts[place], dict):
            self.fault("part", span_of(parts, place), path)

    def refuse_repeated(self, value: dict[str, Any], watched: frozenset[str], path: str) -> None:
        refuse_repeated(value, watched, path, self.index)

    def fault(self, kind: str, span: Span | None, field: str) -> NoReturn:
        raise TranscriptError(kind, offset=span and span[0], message_index=self.index, field=field)
