"""A list of messages -> Outline. Both entrances come here: the values that scan has read know their bytes."""

from __future__ import annotations

from typing import Any, NoReturn

from recede._errors import TranscriptError
from recede._pure.outline import Call, Message, Outline, Result, Span, Text
from recede._pure.reading import JsonList, JsonObject
from recede._pure.shape import (
    BLOCK_KEYS,
    CUSTOM_KEYS,
    FUNCTION_KEYS,
    IMAGE_TYPES,
    MESSAGE_KEYS,
    PART_KEYS,
    TEXT_TYPES,
    TOOL_CALL_KEYS,
    TooDeep,
    block_type,
    compact_chars,
    first_present,
    items,
    row_of,
    string,
)

# Containers around the arguments of a call, counted from the history.
_TOOL_CALL_DEPTH, _BLOCK_DEPTH, _ITEM_DEPTH = 5, 4, 2


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
    """The bytes of a member; None where it is missing, and for Python objects."""
    span: Span | None = None
    if isinstance(container, JsonList):
        span = container.spans[key]
    elif isinstance(container, JsonObject):
        span = container.spans.get(key)
    return span


def refuse_repeated(
    value: dict[str, Any], watched: frozenset[str], path: str = "", message_index: int | None = None
) -> None:
    """An object must not hold a key twice that it is read for: readers differ on which one counts."""
    if isinstance(value, JsonObject):
        for key, offset, _ in value.repeated:
            if key in watched:
                raise TranscriptError("duplicate_key", offset=offset, message_index=message_index, field=path + key)


class _MessageWalk:
    """Reads one message into the outline."""

    def __init__(self, outline: Outline, index: int, source: dict[str, Any], span: Span | None) -> None:
        self.outline = outline
        self.index = index
        self.source = source
        self.row = row_of(source)
        self.into = Message(
            index=index,
            role=string(source.get("role")),
            type=string(source.get("type")),
            shape=self.row and self.row.shape,
            span=span,
            tags=[tag for tag in items(source.get("tags")) if isinstance(tag, str)],
        )

    def message(self) -> None:
        source, row, into = self.source, self.row, self.into
        self.refuse_repeated(source, MESSAGE_KEYS, "")
        self.outline.messages.append(into)
        if row == ("anthropic", "blocks"):
            self.blocks(source["content"])
        elif row in (("chat_message", "result"), ("openai", "result")):
            id_key = "pairId" if into.shape == "chat_message" else "tool_call_id"
            self.result(source.get(id_key), self.text(source, "content", "content", BLOCK_KEYS))
        else:
            into.own = self.text(source, "content", "content", BLOCK_KEYS)
        if row == ("responses", "result"):
            self.result(source.get("call_id"), self.output())
        elif row == ("responses", "calls"):
            arguments = first_present(source, ("arguments", "input", "action"))
            self.call(source.get("call_id"), source.get("name"), arguments, _ITEM_DEPTH)
        elif row == ("chat_message", "calls"):
            self.call(source.get("pairId"))
        elif row == ("openai", "calls"):
            self.tool_calls(source["tool_calls"])

    def tool_calls(self, tool_calls: list[Any]) -> None:
        for place, tool_call in enumerate(tool_calls):
            if not isinstance(tool_call, dict):
                continue
            path = f"tool_calls[{place}]."
            self.refuse_repeated(tool_call, TOOL_CALL_KEYS, path)
            function, custom = tool_call.get("function"), tool_call.get("custom")
            if isinstance(function, dict):
                self.refuse_repeated(function, FUNCTION_KEYS, path + "function.")
            if isinstance(custom, dict):
                self.refuse_repeated(custom, CUSTOM_KEYS, path + "custom.")
            name = arguments = None
            if isinstance(function, dict):
                name, arguments = function.get("name"), function.get("arguments")
            elif isinstance(custom, dict):
                name, arguments = custom.get("name"), custom.get("input")
            self.call(tool_call.get("id"), name, arguments, _TOOL_CALL_DEPTH)

    def blocks(self, content: list[Any]) -> None:
        """An Anthropic content: text, calls and results."""
        into = self.into
        into.blocks = len(content)
        for place, block in enumerate(content):
            path = f"content[{place}]"
            self.refuse_no_part(content, place, path)
            self.refuse_repeated(block, BLOCK_KEYS, path + ".")
            kind = block_type(block)
            if kind == "tool_result":
                is_leading = into.leading_results == place
                into.leading_results += is_leading
                text = self.text(block, "content", path + ".content", PART_KEYS)
                self.result(
                    block.get("tool_use_id"),
                    text,
                    block=place,
                    is_leading=is_leading,
                    is_error=block.get("is_error") is True,
                )
            elif kind == "tool_use":
                self.call(block.get("id"), block.get("name"), block.get("input"), _BLOCK_DEPTH)
            else:
                self.part(block, span_of(block, "text"), into.own)

    def output(self) -> Text:
        output = self.source.get("output")
        if output is None or isinstance(output, (str, list)):
            return self.text(self.source, "output", "output", PART_KEYS)
        return Text()  # left alone

    def text(self, holder: dict[str, Any], key: str, path: str, watched: frozenset[str]) -> Text:
        """The text of a value that is a string, a list of parts, or null."""
        value, span = holder.get(key), span_of(holder, key)
        text = Text(span=span)
        if isinstance(value, list):
            for place, part in enumerate(value):
                part_path = f"{path}[{place}]"
                self.refuse_no_part(value, place, part_path)
                self.refuse_repeated(part, watched, part_path + ".")
                self.part(part, span_of(part, "text"), text)
        elif isinstance(value, str):
            self.piece(value, span, text)
        elif value is not None:
            self.fault("content", span, path)
        return text

    def part(self, part: dict[str, Any], span: Span | None, into: Text) -> None:
        kind, text = block_type(part), part.get("text")
        if kind in TEXT_TYPES and isinstance(text, str):
            self.piece(text, span, into)
        elif kind in IMAGE_TYPES:
            into.images += 1

    def piece(self, piece: str, span: Span | None, into: Text) -> None:
        into.pieces.append(piece)
        self.into.pieces.append(piece)
        if span is not None:
            into.piece_spans.append(span)

    def call(self, call_id: Any, name: Any = None, arguments: Any = None, depth: int = 0) -> None:
        assert self.row is not None
        is_text = isinstance(arguments, str)
        try:
            counted = 0 if is_text or arguments is None else compact_chars(arguments, depth)
        except TooDeep:
            raise TranscriptError("depth", message_index=self.index) from None
        call = Call(
            index=len(self.outline.calls),
            message=self.index,
            shape=self.row.shape,
            id=string(call_id),
            name=string(name),
            arguments=arguments if is_text else "",
            compact_chars=counted,
            responses_type=self.into.type or "" if self.row.shape == "responses" else "",
        )
        self.outline.calls.append(call)
        self.into.calls.append(call)
        self.into.exchanges.append(call)

    def result(
        self, result_id: Any, text: Text, *, block: int = 0, is_leading: bool = True, is_error: bool = False
    ) -> None:
        assert self.row is not None
        result = Result(
            index=len(self.outline.results),
            message=self.index,
            shape=self.row.shape,
            id=string(result_id),
            block=block,
            is_leading=is_leading,
            is_error=is_error,
            observation=text.joined,
            images=text.images,
            span=text.span,
            piece_spans=text.piece_spans,
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
