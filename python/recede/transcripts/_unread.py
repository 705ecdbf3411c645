"""Reports of what was not understood: unknown types, roles and fields, and lines that are damaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from recede.transcripts._draft import Draft, fields, first_fields, objects
from recede.transcripts._source import Source

_ROLES = frozenset("assistant developer model system tool user".split())
_PARTS = frozenset(
    """audio compaction computer_screenshot container_upload document file image image_url input_audio input_file
    input_image input_text output_text reasoning reasoning_text redacted_thinking refusal search_result summary_text
    text thinking tool_reference tool_result tool_use video video_url""".split()
)
_TEXTS = frozenset(["input_text", "output_text", "text"])
_PART_ENDS = ("_tool_result", "_tool_use")
_ITEMS = frozenset(
    """agent_message compaction compaction_summary image_generation_call item_reference mcp_approval_request
    mcp_approval_response mcp_list_tools message program program_output reasoning tool_search_output""".split()
)
_ITEM_ENDS = ("_call", "_call_output")
# Of parts without a type: those of Gemini and of Converse.
_FIELDS = frozenset(
    """audio cachePoint citationsContent codeExecutionResult code_execution_result document executableCode
    executable_code fileData file_data functionCall functionResponse function_call function_response guardContent image
    inlineData inline_data reasoningContent searchResult text thought thoughtSignature toolCall toolResponse toolResult
    toolUse video""".split()
)
# Of results, besides their text.
_OF_RESULTS = frozenset(
    """acknowledged_safety_checks cache_control call_id id is_error max_output_length name role scheduling status
    timestamp toolUseId tool_use_id type willContinue""".split()
)
_OF_BLOCKS = _OF_RESULTS | {"content"}
_MOST_NAMES, _MOST_NAME_CHARS = 6, 40


class Unread(NamedTuple):
    """The messages of a history that were not understood."""

    messages: int = 0  # how many
    kinds: tuple[str, ...] = ()  # what is unknown, such as ``type part`` and ``role agent``, the most frequent first

    def words(self, *, has_results: bool) -> str | None:
        """The warning; None if all were understood."""
        if not self.messages:
            return None
        count = f"{self.messages:,} {'message was' if self.messages == 1 else 'messages were'}"
        return f"{'' if has_results else 'no results were found; '}{count} not understood: {_named(self.kinds)}"

    def __add__(self, other: object) -> Unread:
        assert isinstance(other, Unread)
        return Unread(self.messages + other.messages, tuple(dict.fromkeys((*self.kinds, *other.kinds))))


NOTHING = Unread()


def unread_in(messages: Iterable[Any]) -> Unread:
    """Find what is not understood in a history."""
    kinds: Counter[str] = Counter()
    count = 0
    for message in messages:
        if isinstance(message, dict) and "pairRole" not in message and (found := set(_unknown(message))):
            count += 1
            kinds.update(sorted(found))
    return Unread(count, tuple(kind for kind, _ in kinds.most_common()))


def _unknown(message: dict[str, Any]) -> Iterator[str]:
    role, kind = message.get("role"), message.get("type")
    if isinstance(role, str):
        if role not in _ROLES:
            yield f"role {role}"
        elif not any(name in message for name in ("content", "parts", "tool_calls", "function_call")):
            yield f"field {', '.join(name for name in message if name != 'role') or 'role'} alone"
    elif not isinstance(kind, str):
        yield first_fields(message)
    elif kind not in _ITEMS and not kind.endswith(_ITEM_ENDS):
        yield f"type {kind}"
    elif kind.endswith("_call_output"):
        yield from _without(message, "output")
    for part in objects(message.get("content", message.get("parts"))):
        of_part = part.get("type")
        if not isinstance(of_part, str):
            if _FIELDS.isdisjoint(part):
                yield first_fields(part)
            for name in ("functionResponse", "function_response"):
                yield from _without(part.get(name), "response", "parts")
            yield from _without(part.get("toolResult"), "content")
        elif of_part == "tool_result":
            yield from _without(part, "content")
            yield from _without(part, "tool_use_id", known=_OF_BLOCKS)
        elif of_part in _TEXTS:
            yield from _without(part, "text")
        elif of_part not in _PARTS and not of_part.endswith(_PART_ENDS):
            yield f"type {of_part}"


def _without(result: Any, *texts: str, known: frozenset[str] = _OF_RESULTS) -> Iterator[str]:
    """The fields of a result in which its text may be, where it has none in these."""
    if isinstance(result, dict) and not any(text in result for text in texts):
        others = [name for name in result if name not in known]
        if others:
            yield first_fields(others)


def seen_in(values: Iterable[Any], *, is_lines: bool) -> str:
    """Describe values of no known format: the types of lines, or the fields of an object."""
    rows = [fields(value) for value in values]
    kinds = list(dict.fromkeys(row["type"] for row in rows if isinstance(row.get("type"), str)))
    if kinds:
        whose = "lines of the type" if is_lines else "an object of the type"
        return f"{whose}{'s' if len(kinds) > 1 else ''} {_named(kinds)}"
    names = list(dict.fromkeys(name for row in rows for name in row))
    if names:
        return f"{'lines' if is_lines else 'an object'} with the fields {_named(names)}"
    return "lines of objects without fields" if is_lines else "a value that is no list of messages"


def notes_of_lines(source: Source) -> tuple[str, ...]:
    """The warnings about lines with several records, about what is almost JSON, and about damaged ones."""
    notes = Draft()
    for line in source.glued:
        notes.note("several records on one line, all read", line)
    for line in source.mended:
        notes.note("line that is almost JSON read, with its bad escapes and numbers mended", line)
    for error in source.skipped[: len(source.skipped) - source.ends_early]:
        notes.note(
            f"{'line without a history' if error.kind == 'history' else 'damaged line'} skipped", error.line or 0
        )
    if source.is_cut:
        notes.note("its gzip data is truncated or damaged: what precedes that was read")
    elif source.ends_early:
        notes.note("its last line is being written, or was never finished: left out")
    return notes.warnings()


def _named(names: Iterable[str]) -> str:
    cut = [name[:_MOST_NAME_CHARS].encode(errors="backslashreplace").decode() for name in names]
    return ", ".join(cut[:_MOST_NAMES]) + (", …" if len(cut) > _MOST_NAMES else "")
