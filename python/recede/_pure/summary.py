"""Summaries: how an earlier one is known, and the built-in one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recede._pure.outline import Message, Outline

FIRST_LINE = "Conversation summary:"
LEAST_CHARS = 30
"""A shorter summary would say nothing beside its first line."""

_OBJECTIVE, _UNRESOLVED, _OUTCOME, _CONSTRAINT = "- objective: ", "- unresolved: ", "- outcome: ", "- constraint: "
_OBJECTIVE_CHARS, _LINE_CHARS = 220, 120
_MOST_LINES = {_UNRESOLVED: 6, _OUTCOME: 6, _CONSTRAINT: 8}


def leading_system_messages(outline: Outline) -> int:
    """How many system messages the history begins with."""
    messages = outline.messages
    return next((message.index for message in messages if not message.is_system), len(messages))


def earlier_summaries(outline: Outline) -> list[int]:
    """The messages that an earlier reduction put in: among the leading system messages, or right behind them."""
    places = outline.messages[: leading_system_messages(outline) + 1]
    return [message.index for message in places if not message.exchanges and _is_summary(message.own.joined)]


def previous_summary(outline: Outline, earlier: Sequence[int]) -> str | None:
    """What the earlier summaries say below their first lines."""
    texts = [outline.messages[index].own.joined.partition("\n")[2] for index in earlier]
    return "\n".join(texts) if texts else None


def first_user_message(outline: Outline, earlier: Sequence[int]) -> Message | None:
    """The task."""
    said = (message for message in outline.messages if message.is_said and message.index not in earlier)
    return next(said, None)


def with_first_line(text: str) -> str:
    return text if _is_summary(text) else f"{FIRST_LINE}\n{text}"


def _is_summary(text: str) -> bool:
    return text == FIRST_LINE or text.startswith(FIRST_LINE + "\n")


def built_in_summary(
    outline: Outline,
    tools: Sequence[str | None],
    task: Message | None,
    dropped: Iterable[int],
    previous: str | None,
    *,
    names_task: bool = True,
) -> str:
    """The objective, what an earlier summary says beside, then the newest lines of each other kind.

    Lines of an earlier summary come first in their kind. Nothing is said twice.
    """
    said = [line for line in map(_one_line, (previous or "").split("\n")) if line]
    lines: dict[str, list[str]] = {kind: [] for kind in ("", _OBJECTIVE, *_MOST_LINES)}
    for line in said:
        kind = next((kind for kind in lines if kind and line.startswith(kind)), "")
        lines[kind].append(line)
    if task is not None:
        _add(lines, _OBJECTIVE, _text_of(task), _OBJECTIVE_CHARS)
    for index in dropped:
        message = outline.messages[index]
        for tag, kind in (("unresolved", _UNRESOLVED), ("constraint", _CONSTRAINT)):
            if tag in message.tags:
                _add(lines, kind, _text_of(message), _LINE_CHARS)
        for result in message.results:
            tool = _one_line(tools[result.index] or "")
            _add(lines, _OUTCOME, result.observation, _LINE_CHARS, f"{tool}: " if tool else "")
    chosen = list(dict.fromkeys([FIRST_LINE, *lines[_OBJECTIVE][:names_task], *lines[""]]))
    for kind, most in _MOST_LINES.items():
        chosen += list(dict.fromkeys(lines[kind]))[-most:]
    return "\n".join(chosen)


def _add(lines: dict[str, list[str]], kind: str, text: str, max_chars: int, label: str = "") -> None:
    text = _one_line(text)[:max_chars]
    if text:
        lines[kind].append(kind + label + text)


def _text_of(message: Message) -> str:
    return " ".join(message.pieces)


def _one_line(text: str) -> str:
    return " ".join(text.split())
