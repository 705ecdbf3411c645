"""Hypothesis draws of the parts of a history: texts, ids, blocks, observations."""

from __future__ import annotations

from typing import Any

__all__ = ["Draws"]

# A high surrogate is followed by a plain character, so that no text contains a surrogate pair as two code points,
# which JSON cannot represent.
_UNITS = (
    "a",
    "word ",
    "\n",
    "\r\n",
    "\t",
    "é",
    "—",
    "日本",
    "😀",
    "\ud83dx",
    "\udc80",
    "\x00",
    "\x1b[31m",
    '"',
    "\\",
    "/",
    "\x7f",
    "\u2028",
    "\u00a0",
)

_PLACEHOLDERS = (
    "[observation masked — 4200 chars]",
    "[observation masked — 51 lines omitted]",
    "[observation masked — 5 chars, 2 images]",
    "[observation masked — 3 lines, 1 images omitted]",
    "[dispatch output masked — 90 chars]\nBEGIN_DISPATCH_RESULT\nok\nEND_DISPATCH_RESULT",
    "[observation masked — many chars]",
    "x" * 150 + "[… 5 chars omitted …]" + "x" * 150,
    "x" * 80 + "[… 5 chars omitted, recall 0123456789ab …]" + "x" * 79,
)

_DISPATCH_PIECES = (
    "BEGIN_DISPATCH_RESULT",
    "END_DISPATCH_RESULT",
    "BEGIN_DISPATCH_RESULT\nstatus: done\nEND_DISPATCH_RESULT",
    "log line\n",
    "." * 90,
    "é",
)

_DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "never counted"}}


class Draws:
    """Draws the parts of one history."""

    def __init__(self, draw: Any, strategies: Any, whole: bool, max_parallel_calls: int) -> None:
        self._draw = draw
        self._strategies = strategies
        self._whole = whole
        self._call_types: dict[str, str] = {}
        self._max_parallel_calls = max_parallel_calls
        self._calls = 0
        self._used: str | None = None  # the id of a call that the provider runs, until its result
        self._id_style = "fresh" if whole else self._one_of("fresh", "numbered", "same", "odd")

    def _one_of(self, *choices: Any) -> Any:
        return self._draw(self._strategies.sampled_from(choices))

    def _number(self, least: int, most: int) -> int:
        return int(self._draw(self._strategies.integers(least, most)))

    def _chance(self, one_in: int) -> bool:
        return self._number(1, one_in) == one_in

    def _text(self) -> str:
        kind = self._number(0, 9)
        if kind <= 1:
            return str(self._one_of("", "ok", "done."))
        if kind <= 4:
            units = self._draw(self._strategies.lists(self._strategies.sampled_from(_UNITS), max_size=12))
            return "".join(units)
        if kind <= 7:
            return str(self._one_of("line\n", "x", "é—", "FAILED tests/test_é.py ", "😀\n")) * self._number(1, 90)
        if kind == 8:
            return str(self._one_of(*_PLACEHOLDERS))
        pieces = self._draw(self._strategies.lists(self._strategies.sampled_from(_DISPATCH_PIECES), max_size=6))
        return "".join(pieces)

    def _value(self) -> Any:
        return self._one_of(
            {},
            {"path": "src/é.py", "line": 3},
            {"query": 'a"b\\c', "deep": [[1.5, None, True], {"x": {"y": []}}]},
            [1, "two", False],
            -12,
            None,
        )

    def _id(self, place: int) -> Any:
        self._calls += 1
        if self._id_style == "fresh":
            return f"call_{self._calls}"
        if self._id_style == "numbered":
            return f"functions.bash:{place}"
        if self._id_style == "same":
            return "x"
        return self._one_of("", "a", "b", "é\n", None, 7)

    def _with_extras(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._chance(8):
            message["tags"] = self._one_of(["unresolved"], ["constraint"], ["constraint", "unresolved"], [1, None], [])
        if self._chance(8):
            message["timestamp"] = self._one_of(1.5e3, "2025-01-01", {"content": "not ours", "tool_calls": [1]}, None)
        return message

    def _parts(self, text_type: str, image: dict[str, Any]) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for _ in range(self._number(0, 3)):
            kind = self._number(0, 5)
            if kind <= 2:
                parts.append({"type": text_type, "text": self._text()})
            elif kind == 3:
                parts.append(dict(image))
            elif kind == 4:
                parts.append(self._one_of({"type": "tool_reference", "name": "x"}, {"type": text_type}, {}, _DOCUMENT))
            else:
                parts.append({"type": text_type, "text": "tail", "cache_control": {"type": "ephemeral"}})
        return parts

    def _set_observation(self, holder: dict[str, Any], field: str, text_type: str, image: dict[str, Any]) -> None:
        kind = self._number(0, 8)
        if kind <= 4:
            holder[field] = self._text()
        elif kind <= 6:
            holder[field] = self._parts(text_type, image)
        elif kind == 7:
            holder[field] = None
        # else: the field is missing
