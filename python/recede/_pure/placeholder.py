"""What is put in the place of an observation: a placeholder, its dispatch blocks, or its beginning."""

from __future__ import annotations

import re
import string
from functools import lru_cache
from typing import NamedTuple

from recede._pure.policy import Policy

Template = tuple[tuple[str, str], ...]
"""(literal, field) in order; the field is "" for none."""


def _template(text: str) -> Template:
    return tuple((literal, name or "") for literal, name, _, _ in string.Formatter().parse(text))


_CHARS = _template("[observation masked — {chars} chars]")
_CHARS_IMAGES = _template("[observation masked — {chars} chars, {images} images]")
_LINES = _template("[observation masked — {lines} lines omitted]")
_LINES_IMAGES = _template("[observation masked — {lines} lines, {images} images omitted]")
_BUILT_IN = (_CHARS, _CHARS_IMAGES, _LINES, _LINES_IMAGES)

_DISPATCH_HEAD = "[dispatch output masked — {} chars]"
_DISPATCH_HEAD_FORM = re.compile(r"\[dispatch output masked — [0-9]+ chars\]")
_BEGIN_BLOCK, _END_BLOCK = "BEGIN_DISPATCH_RESULT", "END_DISPATCH_RESULT"

_WORD_FIELDS = ("tool", "id")

# In a template that became a pattern; its literals are escaped, so they are never taken for a number.
_NUMBERS = re.compile(r"(?:\[0-9\]\+)+")
_LEADING_NUMBERS = re.compile(r"\A(\[0-9\]\{[0-9]+),\}")
_TRAILING_NUMBERS = re.compile(r"(\[0-9\]\{[0-9]+),\}\Z")


class Observation(NamedTuple):
    """What a placeholder can tell of an observation."""

    text: str
    images: int = 0
    turn: int = 0
    tool: str = ""
    id: str = ""
    number: int = 0


class Masked(NamedTuple):
    """What stands in the place of an observation: new text, and slices of the old one that are kept."""

    pieces: tuple[str | slice, ...]
    text: str

    @property
    def chars(self) -> int:
        return len(self.text)


def mask(observation: Observation, policy: Policy) -> Masked | None:
    """What masking puts in the place of an observation; None where it stays as it is."""
    text = observation.text
    chars = len(text) + observation.images * policy.image_chars
    if is_placeholder(text, policy.placeholder):
        return None
    blocks = _dispatch_blocks(text)
    if blocks:
        candidates = _dispatch_forms(text, blocks)
    elif policy.max_observation_chars is None:
        candidates = [[fill(observation, policy)]]
    else:
        candidates = [_cut(fill(observation, policy), policy.max_observation_chars)]
    for pieces in candidates:
        masked = "".join(text[piece] if isinstance(piece, slice) else piece for piece in pieces)
        if len(masked) < chars:
            return Masked(tuple(pieces), masked)
    return None


def fill(observation: Observation, policy: Policy) -> str:
    values = {
        "chars": len(observation.text),
        "lines": observation.text.count("\n") + 1,
        "images": observation.images,
        "turn": observation.turn,
        "number": observation.number,
        "tool": observation.tool,
        "id": observation.id,
        "": "",
    }
    if policy.placeholder is not None:
        template = policy.placeholder
    elif policy.lines_form:
        template = _LINES_IMAGES if observation.images else _LINES
    else:
        template = _CHARS_IMAGES if observation.images else _CHARS
    return "".join(f"{literal}{values[field]}" for literal, field in template)


def _cut(placeholder: str, max_chars: int) -> list[str | slice]:
    room = max_chars - len(placeholder)
    return [slice(0, room), placeholder] if room > 0 else [placeholder[:max_chars]]


def _dispatch_blocks(text: str, start: int = 0) -> list[slice]:
    """Each from a begin mark to the next end mark; what is not closed is no block."""
    blocks: list[slice] = []
    while True:
        begin = text.find(_BEGIN_BLOCK, start)
        end = text.find(_END_BLOCK, begin) if begin >= 0 else -1
        if end < 0:
            return blocks
        start = end + len(_END_BLOCK)
        blocks.append(slice(begin, start))


def _dispatch_forms(text: str, blocks: list[slice]) -> list[list[str | slice]]:
    """The blocks under a headline, and the blocks alone."""
    outside = len(text) - sum(block.stop - block.start for block in blocks)
    lines: list[str | slice] = []
    for block in blocks:
        lines += ["\n", block]
    return [[_DISPATCH_HEAD.format(outside), *lines], lines[1:]]


def is_placeholder(text: str, template: Template | None) -> bool:
    """Whether the whole text is a built-in form, or the template in force."""
    templates = _BUILT_IN if template is None else (*_BUILT_IN, template)
    return any(_fits(text, each) for each in templates) or _is_dispatch_form(text)


def _is_dispatch_form(text: str) -> bool:
    head = _DISPATCH_HEAD_FORM.match(text)
    if head is None:
        return False
    at = head.end()
    blocks = _dispatch_blocks(text, at)
    for block in blocks:
        if block.start != at + 1 or text[at] != "\n":
            return False
        at = block.stop
    return bool(blocks) and at == len(text)


def _fits(text: str, template: Template) -> bool:
    """Whether the text is the template with anything in its fields, in time linear in the text."""
    first, *others = _segments(template)
    if not others:
        return first.fullmatch(text) is not None
    match = first.match(text)
    for segment in others:
        if match is None:
            return False
        match = segment.search(text, match.end())
    return match is not None


@lru_cache(maxsize=64)
def _segments(template: Template) -> tuple[re.Pattern[str], ...]:
    """What stands between the fields that may hold anything; the last one ends the text.

    A number beside such a field is as short as can be here: the field may hold the other digits.
    """
    segments = [""]
    for literal, field in template:
        segments[-1] += re.escape(literal)
        if field in _WORD_FIELDS:
            segments.append("")
        elif field:
            segments[-1] += "[0-9]+"
    last = len(segments) - 1
    for place, segment in enumerate(segments):
        # Numbers side by side are so many digits or more: as they stand, matching could try every split.
        segment = _NUMBERS.sub(lambda numbers: f"[0-9]{{{len(numbers[0]) // len('[0-9]+')},}}", segment)
        if place > 0:
            segment = _LEADING_NUMBERS.sub(r"\1}", segment)
        if place < last:
            segment = _TRAILING_NUMBERS.sub(r"\1}", segment)
        segments[place] = segment
    if last > 0:
        segments[last] += r"\Z"
    return tuple(map(re.compile, segments))
