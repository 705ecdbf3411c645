"""Assembly of the parts of a truncated answer into one response."""

from __future__ import annotations

from typing import Any

from recede._answer import usable
from recede._objects import CUT, blocks_of, changed, choice_of, is_openai, plain, read, stop_reason

# A repetition of this many characters is no coincidence.
_LEAST_OVERLAP = 20


def whole_message(parts: list[Any], used_up: bool) -> Any:
    """Assemble the parts of an Anthropic message."""
    blocks: list[Any] = []
    for part, before in zip(parts, [None, *parts], strict=False):
        new = usable(blocks_of(part), stop_reason(part) in CUT)
        thinking = [block for block in new if read(block, "type") in ("thinking", "redacted_thinking")]
        leading = thinking if new[: len(thinking)] == thinking else []
        rest = new[len(leading) :]
        if blocks and rest and _is_text(blocks[-1]) and _is_text(rest[0]):
            text = _continued(read(blocks[-1], "text"), read(rest[0], "text"), before)
            # Thinking comes first: a provider refuses a message whose thinking follows its text.
            blocks = [*blocks[:-1], *leading, changed(rest[0], text=text), *rest[1:]]
        else:
            blocks += new
    ended = {"stop_reason": "end_turn"} if used_up else {}
    return changed(parts[-1], content=blocks, usage=_usage(parts), **ended)


def whole_completion(parts: list[Any], used_up: bool) -> Any:
    """Assemble the parts of a chat completion: the first choice of each."""
    text = ""
    for part, before in zip(parts, [None, *parts], strict=False):
        text = _continued(text, _said(read(choice_of(part), "message")), before)
    choice = choice_of(parts[-1])
    if not isinstance(plain(read(choice, "message")), dict):  # no message to put text into
        choice = {"index": 0, "message": {"role": "assistant"}, "finish_reason": stop_reason(parts[-1])}
    message = changed(read(choice, "message"), content=text or None)
    if stop_reason(parts[-1]) in CUT and read(message, "tool_calls"):
        message = changed(message, tool_calls=None)
    ended = {"finish_reason": "stop"} if used_up else {}
    return changed(parts[-1], choices=[changed(choice, message=message, **ended)], usage=_usage(parts))


def _is_text(block: Any) -> bool:
    return bool(read(block, "type") == "text" and not read(block, "citations"))


def _said(message: Any) -> str:
    content = read(message, "content")
    if isinstance(content, (list, tuple)):
        content = "".join(text for part in content if isinstance(text := read(part, "text"), str))
    return content if isinstance(content, str) else ""


def cut_in(part: Any) -> str:
    """Name the block in which a part was cut: its last."""
    if is_openai(part):
        message = read(choice_of(part), "message")
        return "tool_use" if read(message, "tool_calls") else "text" if read(message, "content") else ""
    blocks = blocks_of(part)
    return str(read(blocks[-1], "type")) if blocks else ""


def _continued(first: str, second: str, before: Any) -> str:
    """Join the text so far and that of a part after `before`, which may repeat a text of any length after a cut call.

    That text was whole, so what is equal is no coincidence.
    """
    if before is not None and stop_reason(before) in CUT and cut_in(before) == "tool_use":
        said, again = first.strip(), second.strip()
        if again and said.endswith(again):
            return first
        if said and again.startswith(said):
            return second
    return joined(first, second)


def joined(first: str, second: str) -> str:
    """Join two parts of a text, without what the second repeats of the end of the first.

    The longest repetition is removed. Linear in both texts, even for repetitive ones (Knuth-Morris-Pratt).
    """
    start = second[:_LEAST_OVERLAP]
    at = first.find(start, max(0, len(first) - len(second))) if len(start) == _LEAST_OVERLAP else -1
    if at < 0:
        return first + second
    end = first[at:]  # what may be repeated
    again = second[: len(end)]
    border = [0] * len(again)  # for each prefix of `again`, the length of its longest border
    length = 0
    for place in range(1, len(again)):
        while length and again[place] != again[length]:
            length = border[length - 1]
        length += again[place] == again[length]
        border[place] = length
    length = 0
    for char in end:
        while length and char != again[length]:
            length = border[length - 1]
        length += char == again[length]
    return first + second[length:] if length >= _LEAST_OVERLAP else first + second


def _usage(parts: list[Any]) -> Any:
    total = read(parts[0], "usage")
    for part in parts[1:]:
        total = usage_sum(total, read(part, "usage"))
    return total


def usage_sum(first: Any, second: Any) -> Any:
    """Add numbers, also nested ones; of other values take the later one."""
    if first is None or second is None:
        return first if second is None else second
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return first if isinstance(first, bool) else first + second
    before, after = plain(first), plain(second)
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return second
    return changed(second, **{name: usage_sum(read(first, name), read(second, name)) for name in {**before, **after}})
