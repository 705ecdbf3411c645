"""The text that replaces an observation: a placeholder, its dispatch blocks, or its beginning."""

from __future__ import annotations

import re
import string
from typing import NamedTuple

from oracle.handle import HANDLE, HANDLE_CHARS, handle_of
from oracle.policy import Policy

Template = tuple[tuple[str, str], ...]
"""(literal, field) in order; the field is "" for none."""


def _template(text: str) -> Template:
    return tuple((literal, name or "") for literal, name, _, _ in string.Formatter().parse(text))


_CHARS = _template("[observation masked — {chars} chars]")
_CHARS_IMAGES = _template("[observation masked — {chars} chars, {images} images]")
_LINES = _template("[observation masked — {lines} lines omitted]")
_LINES_IMAGES = _template("[observation masked — {lines} lines, {images} images omitted]")
_CLEARED = _template("[old tool output cleared to save context]")
_CLEARED_RECALL = _template("[old tool output cleared to save context, recall {handle}]")
_BUILT_IN = (_CHARS, _CHARS_IMAGES, _LINES, _LINES_IMAGES, _CLEARED, _CLEARED_RECALL)

_DISPATCH_HEAD = "[dispatch output masked — {} chars]"
_DISPATCH_HEAD_FORM = re.compile(r"\[dispatch output masked — [0-9]+ chars\]")
_BEGIN_BLOCK, _END_BLOCK = "BEGIN_DISPATCH_RESULT", "END_DISPATCH_RESULT"

_WORD_FIELDS = ("tool", "id")

_DIGITS = re.compile("[0-9]+")


class Observation(NamedTuple):
    """The values of a placeholder's fields."""

    text: str
    images: int = 0
    turn: int = 0
    tool: str = ""
    id: str = ""
    number: int = 0
    json_chars: int = 0  # of JSON that is no text
    whole: str = ""  # that JSON, or the text before it was cut
    added_chars: int = 0  # around a text that replaces that JSON, quotes included

    @property
    def handle(self) -> str:
        return handle_of(self.id, self.whole or self.text)


class Masked(NamedTuple):
    """The replacement of an observation: new text, and slices of the old one."""

    pieces: tuple[str | slice, ...]
    text: str
    is_clipped: bool = False  # cut, not masked
    source: int | None = None  # the result whose text it is, if it only referred to that

    @property
    def chars(self) -> int:
        return len(self.text)

    @property
    def is_masked(self) -> bool:
        """Whether the text is gone."""
        return not self.is_clipped and self.source is None


def mask(observation: Observation, policy: Policy) -> Masked | None:
    """Mask an observation; None if it stays."""
    text = observation.text
    chars = len(text) + observation.json_chars + observation.images * policy.image_chars
    if is_placeholder(text, policy):
        return None
    blocks = _dispatch_blocks(text) if policy.keeps_dispatch else []
    if blocks:
        candidates = _dispatch_forms(text, blocks)
    elif policy.max_observation_chars is None:
        candidates = [[fill(observation, policy)]]
    else:
        has_text = not observation.json_chars
        candidates = [_cut(fill(observation, policy), policy.max_observation_chars, has_text)]
    for pieces in candidates:
        masked = "".join(text[piece] if isinstance(piece, slice) else piece for piece in pieces)
        if chars >= len(masked) + _least_removed(observation, policy, is_whole=not blocks):
            return Masked(tuple(pieces), masked)
    return None


def _least_removed(observation: Observation, policy: Policy, *, is_whole: bool) -> int:
    """What masking must remove of the text of an observation."""
    if policy.least_removed is None:
        return 1
    return policy.least_removed + (observation.added_chars if is_whole else 0)


def fill(observation: Observation, policy: Policy, handle: str | None = None) -> str:
    values = {
        "chars": len(observation.text) + observation.json_chars,
        "lines": observation.text.count("\n") + 1,
        "images": observation.images,
        "turn": observation.turn,
        "number": observation.number,
        "tool": observation.tool,
        "id": observation.id,
        "handle": observation.handle if handle is None else handle,
        "": "",
    }
    if policy.placeholder is not None:
        template = policy.placeholder
    elif policy.lines_form:
        template = _LINES_IMAGES if observation.images else _LINES
    else:
        template = _CHARS_IMAGES if observation.images else _CHARS
    return "".join(f"{literal}{values[field]}" for literal, field in template)


def names_handle(policy: Policy) -> bool:
    """Whether the placeholder names the handle."""
    return any(field == "handle" for _, field in policy.placeholder or ())


def _cut(placeholder: str, max_chars: int, has_text: bool) -> list[str | slice]:
    room = max_chars - len(placeholder) if has_text else 0
    return [slice(0, room), placeholder] if room > 0 else [placeholder[:max_chars]]


def _dispatch_blocks(text: str, start: int = 0) -> list[slice]:
    """Each from a begin mark to the next end mark; without an end mark there is no block."""
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


def stays_whole(text: str, policy: Policy) -> bool:
    """Whether a text is a placeholder, or has dispatch blocks that stay."""
    return is_placeholder(text, policy) or (policy.keeps_dispatch and bool(_dispatch_blocks(text)))


def is_placeholder(text: str, policy: Policy) -> bool:
    """Whether the whole text is a built-in placeholder, or one of the policy's templates."""
    templates = _BUILT_IN if policy.placeholder is None else (*_BUILT_IN, policy.placeholder)
    return any(_fits(text, each) for each in templates) or (policy.keeps_dispatch and _is_dispatch_form(text))


def _is_dispatch_form(text: str) -> bool:
    head = _DISPATCH_HEAD_FORM.match(text)
    blocks = _dispatch_blocks(text, head.end()) if head else []
    return head is not None and bool(blocks) and text[head.end() :] == "".join("\n" + text[block] for block in blocks)


def _fits(text: str, template: Template) -> bool:
    """Whether the text is the template with anything in its fields.

    Followed are all places in the text that the template so far can reach. A regular expression would try every split
    of digits between a number and the digits beside it.
    """
    reached = {0}
    for literal, field in template:
        reached = {place + len(literal) for place in reached if text.startswith(literal, place)}
        if not reached:
            return False
        if field in _WORD_FIELDS:
            reached = set(range(min(reached), len(text) + 1))
        elif field == "handle":
            reached = {place + HANDLE_CHARS for place in reached if HANDLE.match(text, place)}
        elif field:
            reached = {end for run in _DIGITS.finditer(text) for end in _ends(run, reached)}
    return len(text) in reached


def _ends(run: re.Match[str], reached: set[int]) -> range:
    """The ends of all numbers that begin at one of these places, in a run of digits."""
    first = next((place for place in range(*run.span()) if place in reached), run.end())
    return range(first + 1, run.end() + 1)
