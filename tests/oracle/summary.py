"""Summaries: recognizing earlier ones, and the built-in one."""

from __future__ import annotations

from collections.abc import Iterable

from oracle.outline import Message, Outline
from oracle.plan.facts import Facts

FIRST_LINE = "Conversation summary:"

_OBJECTIVE, _UNRESOLVED, _OUTCOME, _CONSTRAINT = "- objective: ", "- unresolved: ", "- outcome: ", "- constraint: "
_OBJECTIVE_CHARS, _LINE_CHARS = 220, 120
_MAX_LINES = {_UNRESOLVED: 6, _OUTCOME: 6, _CONSTRAINT: 8}


def leading_system_messages(outline: Outline) -> int:
    """How many system messages the history begins with."""
    messages = outline.messages
    return next((message.index for message in messages if not message.is_system), len(messages))


def alternates(outline: Outline) -> bool:
    """Whether the provider refuses messages of one role in a row."""
    return next((message.shape.name for message in outline.messages if message.shape is not None), "") == "converse"


def earlier_summaries(outline: Outline) -> list[int]:
    """Summaries of earlier reductions: among the leading system messages, or right after them."""
    places = outline.messages[: leading_system_messages(outline) + 1]
    return [message.index for message in places if not message.exchanges and _is_summary(message.own.joined)]


def previous_summary(outline: Outline) -> str | None:
    """The text of earlier summaries, without their first lines."""
    texts = [outline.messages[index].own.joined.partition("\n")[2] for index in earlier_summaries(outline)]
    return "\n".join(texts) if texts else None


def user_messages(outline: Outline) -> list[Message]:
    """What the user said, the task first."""
    earlier = earlier_summaries(outline)
    return [message for message in outline.messages if message.is_said and message.index not in earlier]


def with_first_line(text: str) -> str:
    return text if _is_summary(text) else f"{FIRST_LINE}\n{text}"


def end_of_sentence(text: str, most: int) -> int:
    """The end of the first characters of a text: of more the last line or sentence, without headings at the end.

    It has more than the first line.
    """
    if len(text) <= most:
        return len(text)
    first = max(0, text.find("\n"))
    ends = (
        at for at in range(most, max(most // 2, first), -1) if text[at] == "\n" or _ends_sentence(text[at - 1 : at + 1])
    )
    cut = next(ends, most)
    while (newline := text.rfind("\n", 0, cut)) > first:
        line = text[newline:cut].strip(" \t\n\r\f")
        if line and not line.startswith("#") and not line.removesuffix("**").endswith(":"):
            break
        cut = newline
    return cut


def _ends_sentence(two: str) -> bool:
    return two[0] in ".!?" and two[1] in " \t\n\r\f"


def _is_summary(text: str) -> bool:
    return text == FIRST_LINE or text.startswith(FIRST_LINE + "\n")


def built_in_summary(
    facts: Facts, dropped: Iterable[int], previous: str | None, task: Iterable[Message], *, names_task: bool = True
) -> str:
    """The objective, other lines of an earlier summary, then the newest lines of each kind.

    Lines of an earlier summary come first in their kind. Of those that are equal, the newest is said.
    """
    said = [line for line in map(_one_line, (previous or "").split("\n")) if line]
    lines: dict[str, list[str]] = {kind: [] for kind in ("", _OBJECTIVE, *_MAX_LINES)}
    for line in said:
        kind = next((kind for kind in lines if kind and line.startswith(kind)), "")
        lines[kind].append(line)
    for message in task:
        _add(lines, _OBJECTIVE, _text_of(message), _OBJECTIVE_CHARS)
    for message in (facts.outline.messages[index] for index in dropped):
        for tag, kind in (("unresolved", _UNRESOLVED), ("constraint", _CONSTRAINT)):
            if tag in message.tags:
                _add(lines, kind, _text_of(message), _LINE_CHARS)
        for result in message.results:
            tool = _one_line(facts.tools[result.index] or "")
            whole = facts.given.results[result.index].text.joined  # not as it was cut when it arrived
            _add(lines, _OUTCOME, whole, _LINE_CHARS, f"{tool}: " if tool else "")
    chosen = list(dict.fromkeys([FIRST_LINE, *lines[_OBJECTIVE][:names_task], *lines[""]]))
    for kind, most in _MAX_LINES.items():
        newest = dict.fromkeys(line for line in reversed(lines[kind]) if line not in chosen)
        chosen += reversed([*newest][:most])
    return "\n".join(chosen)[: facts.policy.summary_max_chars]


def _add(lines: dict[str, list[str]], kind: str, text: str, max_chars: int, label: str = "") -> None:
    text = _one_line(text)[:max_chars]
    if text:
        lines[kind].append(kind + label + text)


def _text_of(message: Message) -> str:
    return " ".join(message.pieces)


def _one_line(text: str) -> str:
    return " ".join(text.split())
