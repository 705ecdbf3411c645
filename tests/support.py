"""What the tests share: the engines, builders of messages, and checks that run both entrances."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import published

import recede
from recede import _engine
from recede.reduction._input import as_bytes
from recede.reduction._planning import reduced

Message = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("RECEDE_SHARED") or ROOT.parent / "shared")
IN_CI = os.environ.get("CI") == "true"

# Kinds of TranscriptError for what is no JSON; the others are JSON of a wrong shape.
MALFORMED = frozenset({"eof", "syntax", "control", "escape", "utf8", "depth", "number", "trailing"})


# The engines


ENGINES = ("core", "oracle")


def engine_module(name: str) -> Any:
    """The engine of that name: the core, or the oracle with the definitions of sessions and replays."""
    return importlib.import_module("definitions" if name == "oracle" else "recede._core")


@contextlib.contextmanager
def using(name: str) -> Iterator[None]:
    """Run the block with this engine."""
    before = _engine.engine
    _engine.engine = engine_module(name)
    try:
        yield
    finally:
        _engine.engine = before


# Messages


SUMMARY = (
    "Goal: to find the bug in the parser.\nState: the parser was read, and the bug was found. " + "So it goes. " * 12
)
"""A summary as recede's prompt asks for it."""


def user(text: Any, **fields: Any) -> Message:
    return {"role": "user", "content": text, **fields}


def system(text: str, **fields: Any) -> Message:
    return {"role": "system", "content": text, **fields}


def assistant(text: Any, **fields: Any) -> Message:
    return {"role": "assistant", "content": text, **fields}


def call(*ids: Any, name: str = "run", arguments: Any = "{}") -> Message:
    """An assistant message of OpenAI chat with a call for each id: 25 chars each (3 + 2 + 20)."""
    calls = [{"id": i, "type": "function", "function": {"name": name, "arguments": arguments}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: Any, content: Any, **fields: Any) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **fields}


def tool_use(*ids: Any, name: str = "run", value: Any = None) -> Message:
    """An assistant message of Anthropic with a call for each id: 25 chars each (3 + 2 + 20)."""
    value = {} if value is None else value
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": name, "input": value} for i in ids]}


def tool_result(call_id: Any, content: Any, **fields: Any) -> Message:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def function_call(call_id: Any, name: str = "run", arguments: Any = "{}") -> Message:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def function_call_output(call_id: Any, output: Any) -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def chat_call(call_id: Any, text: Any = "") -> Message:
    return {"role": "assistant", "content": text, "pairRole": "call", "pairId": call_id}


def chat_result(call_id: Any, text: Any) -> Message:
    return {"role": "tool", "content": text, "pairRole": "result", "pairId": call_id}


def turns_of(sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """A task, and turns whose answer and result have these sizes."""
    history: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for number, (said, observed) in enumerate(sizes):
        call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        history.append({"role": "assistant", "content": "y" * said, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": str(number), "content": "x" * observed})
    return history


def turns(count: int, chars: int = 100, name: str = "run") -> list[Message]:
    """`count` turns of a call and its result, each result `chars` long."""
    history: list[Message] = []
    for number in range(count):
        history += [call(str(number), name=name), result(str(number), "x" * chars)]
    return history


CLEARED = "[old tool output cleared to save context]"
"""The placeholder of recede's own doors."""


def masked(chars: int) -> str:
    """The placeholder of the published reducer."""
    return f"[observation masked — {chars} chars]"


# Both entrances at once


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def dumps(value: Any) -> bytes:
    return json.dumps(value).encode()


def unmarked(value: Any) -> Any:
    """A value without cache marks."""
    if isinstance(value, dict):
        return {name: unmarked(field) for name, field in value.items() if name != "cache_control"}
    return [unmarked(element) for element in value] if isinstance(value, list) else value


def loads(raw: bytes) -> Any:
    return json.loads(raw.decode("utf-8", "surrogatepass"))


def facts(reduction: Any) -> dict[str, Any]:
    """Everything of a result but the view itself, ready to be compared."""
    fields = dict(reduction._asdict())
    fields.pop("messages", None)
    fields.pop("json", None)
    error = fields["summarizer_error"]
    fields["summarizer_error"] = None if error is None else (type(error), str(error))
    fields["tools"] = list(fields["tools"].items())
    return fields


def assert_canonical(value: Any) -> None:
    """Each str in a value is as Python itself makes it of the same characters: equal, with one hash, and no larger.

    Two wrong ones that were made in the same way may well be equal to each other.
    """
    for text in {id(text): text for text in _strings(value)}.values():  # each object once
        encoded = text.encode("utf-32", "surrogatepass")
        copy = encoded.decode("utf-32", "surrogatepass")
        assert text == copy and hash(text) == hash(copy) and len(text) == len(copy) and text in {copy}
        # A str may hold its UTF-8 form as well.
        utf8 = len(text.encode("utf-8", "surrogatepass")) + 1
        assert sys.getsizeof(text) in (sys.getsizeof(copy), sys.getsizeof(copy) + utf8)


def _strings(value: Any) -> Iterator[str]:
    if type(value) is str:  # one of a class of the caller's is larger
        yield value
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from _strings(element)


def outcome(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The result of a call in comparable form, or its error."""
    try:
        value = function(*arguments, **options)
    except recede.TranscriptError as error:
        return ("refused", error.kind, error.offset, error.message_index, error.field, str(error))
    assert_canonical(value)
    if isinstance(value, (recede.Reduction, recede.types.JsonReduction)):
        return (value[0], facts(value))
    return value


def _both(
    of_dicts: Callable[..., Any], of_json: Callable[..., Any], messages: list[Any], options: dict[str, Any]
) -> recede.Reduction:
    before = copy.deepcopy(messages)
    reduction: recede.Reduction = of_dicts(messages, **options)
    assert messages == before, "the input was changed"
    assert_canonical(reduction)
    raw = dumps(messages)
    serialized = of_json(raw, **options)
    assert loads(serialized.json) == reduction.messages
    assert facts(serialized) == facts(reduction)
    if not reduction.reduced:
        assert serialized.json is raw
    return reduction


def reduce(messages: list[Any], **options: Any) -> recede.Reduction:
    """`published.reduce`, held against `published.reduce_json`."""
    return _both(published.reduce, published.reduce_json, messages, options)


def mask(messages: list[Any], *, keeps_dispatch: bool = True, **options: Any) -> recede.Reduction:
    """`published.mask_observations`, held against its twin for bytes; all old results, unless a boundary is given.

    Results that no request has shown are masked too, so that a history may end with them.
    """
    if options.get("mask_chunk") is None:
        options.setdefault("boundary", "sliding")
    policy = published.policy_of("mask", options, masks_unseen=True, keeps_dispatch=keeps_dispatch)
    return _both(lambda history: reduced(history, policy), lambda raw: _in_bytes(raw, policy), messages, {})


def mask_json(data: Any, **options: Any) -> Any:
    """`mask` of bytes alone."""
    return _in_bytes(data, published.policy_of("mask", {"boundary": "sliding", **options}, masks_unseen=True))


def _in_bytes(data: Any, policy: Any) -> Any:
    return _engine.engine.reduce_json(*as_bytes(data), policy)


def block_mask(messages: list[Any], *arguments: Any, **options: Any) -> list[Any]:
    """`recede.designs.mask_old_observations`, held against its twin for bytes."""
    view = recede.designs.mask_old_observations(messages, *arguments, **options)
    assert loads(recede.designs.mask_old_observations_json(dumps(messages), *arguments, **options)) == view
    return view


def count(messages: list[Any], **options: Any) -> int:
    """`recede.count_chars`, held against what the entrance for bytes counts."""
    chars = recede.count_chars(messages, **options)
    assert published.reduce_json(dumps(messages), max_input_chars=1 << 60, **options).chars_before == chars
    return chars


def findings(messages: list[Any]) -> list[tuple[str, int, Any]]:
    return [(f.kind, f.message_index, f.id) for f in recede.check_pairs(messages).findings]


def recalled(history: Any, result: int | str) -> str | None:
    """What a history recalls of a result, by its number or id; None where it has no such."""
    try:
        text: str = history.recall(result)
        return text
    except LookupError:
        return None


def contents(messages: list[Any]) -> list[Any]:
    return [message.get("content") for message in messages]


# Raw JSON: where the members and elements of a value stand

_decoder = json.JSONDecoder()


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\n\r":
        at += 1
    return at


def elements(text: str, start: int = 0) -> list[tuple[int, int]]:
    """The spans of the elements of the array that begins at `start`, white space before it allowed."""
    at = _skip(text, start)
    assert text[at] == "["
    spans: list[tuple[int, int]] = []
    at = _skip(text, at + 1)
    while text[at] != "]":
        end = _decoder.raw_decode(text, at)[1]
        spans.append((at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return spans


def members(text: str, start: int = 0) -> list[tuple[str, int, int]]:
    """Key and span of each member of the object that begins at `start`, white space before it allowed."""
    at = _skip(text, start)
    assert text[at] == "{"
    spans: list[tuple[str, int, int]] = []
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _decoder.raw_decode(text, at)
        at = _skip(text, at)
        assert text[at] == ":"
        at = _skip(text, at + 1)
        end = _decoder.raw_decode(text, at)[1]
        spans.append((key, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return spans


# What a placeholder is written in, by the path of the observation; a `response` of one string keeps its own key.
_FRAMES = {
    ("content", "#", "toolResult", "content"): '[{"text":"',
    ("parts", "#", "functionResponse", "response"): '{"output":"',
    ("parts", "#", "function_response", "response"): '{"output":"',
}


def assert_only_observations_differ(before: str, after: str, path: tuple[str, ...] = ()) -> None:
    """`after` is `before` but for the raw text of observations, which became strings."""
    if before == after or (path in _FRAMES and after.startswith(_FRAMES[path])):
        return
    first, second = before[:1], after[:1]
    if path[-1:] == ("cache_control",) and first == "n":
        return  # a null, where its block took over a mark
    if path in (("content",), ("output",)) and _is_marked_part(before, after):
        return
    if first == second == "{":
        after = _without_moved_mark(before, after)
    if first == second == "[":
        spans, others = elements(before), elements(after)
        steps = [("#",)] * len(spans)
    elif first == second == "{":
        named, other_named = members(before), members(after)
        assert [key for key, _, _ in named] == [key for key, _, _ in other_named]
        steps = [(key,) for key, _, _ in named]
        spans, others = [(a, b) for _, a, b in named], [(a, b) for _, a, b in other_named]
    else:
        allowed = (("content",), ("content", "#", "content"), ("output",), *_FRAMES)
        is_stream = path[:1] == ("output",) and path[-1:] in (("stdout",), ("stderr",))
        assert path in allowed or path[:-1] in _FRAMES or is_stream, f"{path} was changed"
        assert second == '"', f"{path} became no string"
        return
    if len(spans) != len(others):
        raise AssertionError(f"{path} has {len(others)} members for {len(spans)}")
    at, other_at = 0, 0
    for (start, end), (other_start, other_end), step in zip(spans, others, steps, strict=True):
        assert before[at:start] == after[other_at:other_start], f"the bytes before a member of {path} changed"
        assert_only_observations_differ(before[start:end], after[other_start:other_end], path + step)
        at, other_at = end, other_end
    assert before[at:] == after[other_at:], f"the bytes behind {path} changed"


def _is_marked_part(before: str, after: str) -> bool:
    """Whether `after` is one part with a mark that `before` has."""
    is_written = after.startswith(('[{"type":"text","text":"', '[{"type":"input_text","text":"'))
    parts = [members(after, start) for start, _ in elements(after)] if is_written else []
    return [[name for name, _, _ in part] for part in parts] == [["type", "text", "cache_control"]] and (
        after[slice(*parts[0][2][1:])] in before
    )


def _without_moved_mark(before: str, after: str) -> str:
    """The block `after` without the mark that it took over from its observation."""
    if "cache_control" in (name for name, _, _ in members(before)):
        return after
    for name, start, end in members(after):
        if name == "cache_control":
            key = ',"cache_control":'
            assert after[start - len(key) : start] == key and after[start:end] in before
            return after[: start - len(key)] + after[end:]
    return after


def assert_view_of(before: str, after: str) -> None:
    """`after`, an array, holds only elements of `before`, in order, with nothing but observations replaced."""
    old = [before[a:b] for a, b in elements(before)]
    new = [after[a:b] for a, b in elements(after)]
    assert len(old) == len(new)
    for one, other in zip(old, new, strict=True):
        assert_only_observations_differ(one, other)


def handle_of(id: str, text: str) -> str:
    """The handle of an observation, as it is defined."""
    data = id.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"%d:%b%b" % (len(data[0]), *data)).hexdigest()[:12]


OF_RULES = {
    "ideal": recede.Provider.of("ideal"),
    "prefix": recede.Provider.of("openai"),
    "entries": recede.Provider.of("openai", "gpt-5.6"),
    "shared": recede.Provider.of("deepseek"),
    "breakpoints": recede.Provider.of("anthropic"),
}


def priced(rule: str = "ideal", read: float = 0.1, write: float = 1.25) -> recede.Provider:
    """A provider whose cache has this rule, at these prices."""
    return OF_RULES[rule]._replace(read=read, write=write)
