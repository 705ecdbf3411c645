"""Reads strict JSON (RFC 8259) from bytes into Python values with the spans of their members.

Objects and lists are read without recursion. Numbers are validated and read as 0, since no rule needs their value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn

from recede._errors import TranscriptError

Span = tuple[int, int]
"""A half-open range of bytes."""

MAX_DEPTH = 1_024

_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))?')
_ESCAPE = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"  # two escapes, one code point
    r"|\\u([0-9a-fA-F]{4})"
    r'|\\(["\\/bfnrt])'
)
_ESCAPE_BEGINNING = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?")
_SHORT_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# Whole part, fraction and exponent; each must end with a digit.
_NUMBER = re.compile(rb"(-?(?:0|[1-9][0-9]*)?)(\.[0-9]*)?([eE][+-]?[0-9]*)?")
_LITERALS = {ord("t"): (b"true", True), ord("f"): (b"false", False), ord("n"): (b"null", None)}
_WHITE_SPACE = b" \t\n\r"
_QUOTE, _COMMA, _COLON = b'",:'
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_LIST, _CLOSE_LIST = b"{}[]"


class JsonObject(dict[str, Any]):
    """An object, with the last of repeated members."""

    __slots__ = ("data", "repeated", "spans")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.spans: dict[str, Span] = {}
        # For each repetition: the key, its position, and the replaced value.
        self.repeated: list[tuple[str, int, Any]] = []


class JsonList(list[Any]):
    """A list."""

    __slots__ = ("data", "spans")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.spans: list[Span] = []


def read(data: bytes, *, surrogates: bool) -> tuple[Any, int]:
    """Return the value and its start. With `surrogates`, strings may have lone ones, encoded as 3 bytes."""
    reader = _Reader(data, surrogates)
    start = reader.after_space(0)
    value, end = reader.value(start)
    end = reader.after_space(end)
    if end < len(data):
        reader.fault("trailing", end)
    return value, start


@dataclass(slots=True)
class _Open:
    """A list or object that is being read."""

    container: JsonList | JsonObject
    start: int
    key: str = ""
    key_at: int = 0

    def add(self, value: Any, span: Span) -> None:
        container = self.container
        if isinstance(container, JsonList):
            container.append(value)
            container.spans.append(span)
            return
        if self.key in container:
            container.repeated.append((self.key, self.key_at, container[self.key]))
        container[self.key] = value
        container.spans[self.key] = span


class _Reader:
    def __init__(self, data: bytes, surrogates: bool) -> None:
        self.data = data + b"\0"  # a sentinel for lookahead at the end of the input
        self.end = len(data)
        self.utf8_errors = "surrogatepass" if surrogates else "strict"
        self.stack: list[_Open] = []

    def value(self, at: int) -> tuple[Any, int]:
        """The value at `at`, and its end."""
        data, stack = self.data, self.stack
        while True:
            start = at
            byte = data[at]
            value: Any
            if byte == _QUOTE:
                value, at = self.string(at)
            elif byte in (_OPEN_OBJECT, _OPEN_LIST):
                if len(stack) == MAX_DEPTH:
                    self.fault("depth", at)
                container = JsonObject(data) if byte == _OPEN_OBJECT else JsonList(data)
                stack.append(_Open(container, start))
                at = self.after_space(at + 1)
                if data[at] != byte + 2:  # in ASCII, the code of a closing bracket is two more
                    at = self.member(at)
                    continue
                stack.pop()
                value, at = container, at + 1
            else:
                value, at = self.scalar(at)
            # The value is complete: add it to its container, and all containers that end here to theirs.
            while stack:
                top = stack[-1]
                top.add(value, (start, at))
                at = self.after_space(at)
                if data[at] == _COMMA:
                    at = self.member(self.after_space(at + 1))
                    break
                if data[at] != (_CLOSE_LIST if isinstance(top.container, JsonList) else _CLOSE_OBJECT):
                    self.fault("syntax", at, after_value=True)
                stack.pop()
                value, start, at = top.container, top.start, at + 1
            else:
                return value, at

    def member(self, at: int) -> int:
        """The start of the next value: after its key, in an object."""
        top = self.stack[-1]
        if isinstance(top.container, JsonList):
            return at
        if self.data[at] != _QUOTE:
            self.fault("syntax", at)
        top.key_at = at
        top.key, at = self.string(at)
        at = self.after_space(at)
        if self.data[at] != _COLON:
            self.fault("syntax", at)
        return self.after_space(at + 1)

    def after_space(self, at: int) -> int:
        while self.data[at] in _WHITE_SPACE:
            at += 1
        return at

    def string(self, at: int) -> tuple[str, int]:
        """The decoded string whose quote is at `at`, and its end."""
        start = stop = at + 1
        while (after := self.after_escape(stop)) != stop:
            stop = after
        raw = self.data[start:stop]
        try:
            text = raw.decode("utf-8", self.utf8_errors)
        except UnicodeDecodeError as error:
            self.fault("utf8", start + error.start)
        if self.data[stop] != _QUOTE:
            self.string_fault(stop)
        if b"\\" in raw:
            text = _ESCAPE.sub(_unescape, text)
        return text, stop + 1

    def after_escape(self, at: int) -> int:
        """The position after the next valid escape in a string; without one, after its plain bytes."""
        match = _PLAIN.match(self.data, at)
        return match.end() if match else at

    def string_fault(self, at: int) -> NoReturn:
        """Raise the fault of a string that ends at `at` without a closing quote."""
        if at < self.end and self.data[at] < 0x20:
            self.fault("control", at)
        if _ESCAPE_BEGINNING.fullmatch(self.data, at, self.end):
            self.fault("eof", self.end)
        self.fault("escape", at)

    def scalar(self, at: int) -> tuple[Any, int]:
        """The number, true, false or null at `at`, and its end."""
        byte = self.data[at]
        if byte in _LITERALS:
            word, value = _LITERALS[byte]
            for expected in word:
                if self.data[at] != expected:
                    self.fault("syntax", at)
                at += 1
            return value, at
        number = _NUMBER.match(self.data, at)
        if number is None or byte not in b"-0123456789":
            self.fault("syntax", at)
        for part in (1, 2, 3):
            if number[part] is not None and not number[part][-1:].isdigit():
                self.fault("number", number.end(part))
        if self.data[number.end() : number.end() + 1].isdigit():  # after a leading zero
            self.fault("number", number.end())
        return 0, number.end()

    def fault(self, kind: str, at: int, *, after_value: bool = False) -> NoReturn:
        if at >= self.end:
            kind = "eof"
        raise TranscriptError(kind, offset=at, message_index=self.message_index(after_value))

    def message_index(self, after_value: bool) -> int | None:
        """The current message; None after a message, where a comma or the end is expected."""
        stack = self.stack
        if not stack:
            return None
        history, body = stack[0], stack[0].container
        if isinstance(body, JsonObject):
            key = history.key
            is_history = key == "messages" or (key == "input" and not isinstance(body.get("messages"), list))
            if len(stack) == 1 or not is_history or key in body:  # the first of repeated keys counts
                return None
            history = stack[1]
        if not isinstance(history.container, JsonList) or (after_value and history is stack[-1]):
            return None
        return len(history.container)


def _unescape(escape: re.Match[str]) -> str:
    high, low, single, short = escape.groups()
    if short:
        return _SHORT_ESCAPES[short]
    if single:
        return chr(int(single, 16))
    return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00))
