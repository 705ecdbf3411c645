"""Hypothesis strategies for options and for JSON, beside `generated.histories`."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from support import priced

TEMPLATES = (
    None,
    None,
    None,
    "gone",
    "<{tool} {id}: {chars} chars, {lines} lines, {images} images, turn {turn}, number {number}>",
    "{chars} é\ud83d! {tool}",
    "…{{{lines}}}",
    "{lines}, recall {handle}",
    "{handle}{chars} é {tool}{handle}",
)

_PATTERNS = ("bash", "read_file", "*", "r*d?file", "search", "é*", "?", "nothing")


def _maybe(options: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


_WINDOW: dict[str, st.SearchStrategy[Any]] = {
    "keep_messages": st.integers(0, 12),
    "keep_turns": st.integers(0, 5),
    "keep_results": st.integers(0, 9),
}
_MASKING: dict[str, st.SearchStrategy[Any]] = {
    "keep_by_tool": st.dictionaries(st.sampled_from(_PATTERNS), st.none() | st.integers(0, 3), max_size=2),
    "exclude_tools": st.lists(st.sampled_from(_PATTERNS), max_size=1),
    "keep_errors": st.booleans(),
    "keep_matching": st.lists(st.sampled_from(["a", "ok", "*o*k*", "[obs*", "x*\n", "*é", "BEGIN"]), max_size=2),
    "mask_chunk": st.none() | st.integers(1, 4),
    "max_observation_chars": st.none() | st.integers(0, 120),
    "placeholder": st.sampled_from(TEMPLATES),
    "min_masked_chars": st.sampled_from([0, 0, 0, 1, 100, 1_000]),
    "image_chars": st.sampled_from([6_400, 6_400, 0, 35, 50]),
}


_BREAK_EVEN = st.fixed_dictionaries(
    {"boundary": st.just("break_even")},
    optional={
        "provider": st.builds(
            priced,
            st.sampled_from(["ideal", "prefix", "entries", "shared", "breakpoints"]),
            st.sampled_from([0, 0.1, 0.5, 1]),
            st.sampled_from([0.1, 1, 1.25, 2, 1e9]),
        ),
        "cache_breakpoint": st.sampled_from(["keep", "boundary"]),
        "max_overcost": st.sampled_from([None, 0, 0.1, 10]),
        "cold": st.booleans() | st.lists(st.integers(0, 12), max_size=3),
    },
)


def _with_boundary(options: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the options with a boundary that pays for itself instead of one that moves by chunks."""
    paying = st.builds(
        lambda plain, boundary: {**{name: plain[name] for name in plain if name != "mask_chunk"}, **boundary},
        options,
        _BREAK_EVEN,
    )
    return options | paying


def _with_cuts(options: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the options with results that are cut when they arrive instead of when they are old."""
    cutting = st.builds(
        lambda plain, cut: {**{name: plain[name] for name in plain if name != "max_observation_chars"}, **cut},
        options,
        st.fixed_dictionaries({"max_result_chars": st.integers(60, 300)}),
    )
    return options | cutting


def _summarizer(messages: list[Any], previous: str | None) -> str:
    return f"{len(messages)} messages, before: {previous!r:.30} \ud83dé"


def _failing(messages: list[Any], previous: str | None) -> str:
    raise ValueError("no summary")


def words(text: str) -> int:
    return len(text.split())


_REDUCING: dict[str, st.SearchStrategy[Any]] = {
    "enabled": st.sampled_from([True] * 9 + [False]),
    "preserve_recent_raw_turns": st.integers(0, 9),
    "observation_masking": st.sampled_from([True] * 4 + [False]),
    "strict_pairs": st.booleans(),
    "fill": st.sampled_from([None, 0.9, 0.5, 1, 0.1, 0.333_333]) | st.floats(1e-7, 1),
    "clip_results": st.none() | st.integers(60, 500),
    "summary_max_chars": st.sampled_from([30, 60, 200, 1_400]),
    "summary_role": st.sampled_from([None, "system", "developer", "user", "assistant"]),
    "summarizer": st.sampled_from([None, None, _summarizer, _failing]),
}


def mask_options() -> st.SearchStrategy[dict[str, Any]]:
    """Options of `mask_observations`; a window is always among them."""

    def with_window(name: str) -> st.SearchStrategy[dict[str, Any]]:
        optional = {**_WINDOW, **_MASKING}
        return st.fixed_dictionaries({name: optional.pop(name)}, optional=optional)

    return _with_cuts(_with_boundary(st.sampled_from(sorted(_WINDOW)).flatmap(with_window)).map(_slides))


def _slides(options: dict[str, Any]) -> dict[str, Any]:
    """The options with a boundary that masks all it may, where they name no other one."""
    return options if options.get("mask_chunk") else {"boundary": "sliding", **options}


def block_options() -> st.SearchStrategy[dict[str, Any]]:
    """Options of `mask_old_observations`."""
    names = ("keep_by_tool", "exclude_tools", "keep_errors", "keep_matching", "mask_chunk")
    options = st.fixed_dictionaries({"keep": st.integers(3, 9)}, optional={name: _MASKING[name] for name in names})
    own = _with_boundary(options)
    return own.map(lambda drawn: {name: drawn[name] for name in drawn if name != "cache_breakpoint"})


def own_options(*, reduces: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    """The one set of options, as every door takes it; with a limit only where a door reduces."""
    names = ("keep_by_tool", "exclude_tools", "keep_errors", "keep_matching", "placeholder")
    optional = {name: _MASKING[name] for name in names}
    providers = st.sampled_from(["auto", "anthropic", "openai", "gemini", "ideal", "none"])
    optional |= {
        "keep": st.integers(0, 9),
        "boundary": st.sampled_from(["break_even", "sliding"]) | st.integers(1, 4),
        "provider": providers
        | st.builds(priced, st.sampled_from(["ideal", "prefix", "entries", "shared", "breakpoints"])),
        "max_overcost": st.sampled_from([None, 0, 0.1, 10]),
        "cold": st.booleans() | st.lists(st.integers(0, 12), max_size=3),
        "max_result_chars": st.none() | st.integers(60, 300),
    }
    if reduces:
        optional["max_input_tokens"] = st.none() | st.integers(1, 400) | st.integers(1, 3_000)
    return st.fixed_dictionaries({}, optional=optional)


def reduce_options() -> st.SearchStrategy[dict[str, Any]]:
    """Options of `reduce`, with a budget of any sort."""
    optional = {**_WINDOW, **_MASKING, **_REDUCING}
    chars = st.fixed_dictionaries(
        {"max_input_chars": st.integers(0, 1_500) | st.integers(0, 12_000)}, optional=optional
    )
    tokens = st.fixed_dictionaries(
        {"max_input_tokens": st.integers(0, 400) | st.integers(0, 3_000)},
        optional={**optional, "token_counter": st.sampled_from([None, len, words])},
    )
    return _with_cuts(_with_boundary(chars | chars | tokens))


def history_options() -> st.SearchStrategy[dict[str, Any]]:
    """Options of a `History` with a budget: those of `reduce` but two."""
    stateless = ("fill", "clip_results")
    return reduce_options().map(lambda drawn: {name: value for name, value in drawn.items() if name not in stateless})


def stage_options() -> st.SearchStrategy[dict[str, Any]]:
    """Options that both `summarize_history` and `truncate_history` take."""
    return _maybe({**_WINDOW, "preserve_recent_raw_turns": st.integers(0, 9)})


def spelled(value: Any) -> st.SearchStrategy[str]:
    """JSON texts of the value, in various white space and escapes."""
    return st.builds(
        lambda indent, ascii_only, separators: json.dumps(
            value, indent=indent, ensure_ascii=ascii_only, separators=separators
        ),
        st.sampled_from([None, None, 0, 2, "\t"]),
        st.booleans(),
        st.sampled_from([None, (",", ":"), (" ,\r\n", " : "), (", ", ":\t")]),
    )


def json_values() -> st.SearchStrategy[Any]:
    """JSON values of any kind."""
    texts = st.text(max_size=8) | st.sampled_from(["role", "content", "\ud800", "\udc00x", "é\n"])
    leaves = (
        st.none() | st.booleans() | st.integers(-99, 10**20) | st.floats(allow_nan=False, allow_infinity=False) | texts
    )
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
    )


@st.composite
def mutated(draw: st.DrawFn, raw: bytes) -> bytes:
    """The bytes with a few faults: cut, doubled, replaced and inserted bytes."""
    data = bytearray(raw)
    broken = [
        b"\\u",
        b"\\x",
        b"\\ud800",
        b"1e",
        b"00",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x98\x80",
        b"\xef\xbb\xbf",
    ]
    single = [bytes([byte]) for byte in b',]}[{":0-.e\\\xff\xc3\x00\x1f\n t/']
    pieces = st.sampled_from([b"", *single, *broken, b"null", b"NaN", b'"role":1,', b'"content":5,'])
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 0, 1, 1, 2, 8])))
        data[start:end] = draw(pieces)
    return bytes(data)


_TEXTS = st.sampled_from(
    ["", "a", "é\ud83d", "[observation masked — 9 chars]", "x" * 60, "BEGIN_DISPATCH_RESULT b END_DISPATCH_RESULT"]
)
_MARKS = st.sampled_from([{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, None, "x"])


@st.composite
def _marked(draw: Any, part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "cache_control": draw(_MARKS)} if draw(st.integers(0, 3)) == 0 else part


@st.composite
def provider_parts(draw: Any, levels: int = 2) -> dict[str, Any]:
    """A part of a type that few histories have."""
    inner = st.lists(provider_parts(levels - 1), max_size=2) if levels else st.just([])
    text = draw(_TEXTS)
    source = draw(
        st.sampled_from([{"type": "text", "data": text}, {"type": "base64", "data": text}, {"text": text}, text, {}])
        | inner.map(lambda parts: {"type": "content", "content": parts})
    )
    part = draw(
        st.sampled_from(
            [
                {"type": "text", "text": text},
                {"type": "tool_reference", "tool_name": text},
                {"type": "image", "source": source},
                {"type": "document", "source": source},
                {"type": "z", "z": text, "source": source},
            ]
        )
        | inner.map(lambda parts: {"type": "search_result", "content": parts})
    )
    return draw(_marked(part))


@st.composite
def provider_messages(draw: Any) -> list[dict[str, Any]]:
    """A few messages with items, outputs and parts of types that few histories have, some of them of unknown shapes."""
    stream = st.fixed_dictionaries({}, optional={"stderr": _TEXTS, "stdout": _TEXTS, "outcome": _MARKS, "type": _MARKS})
    output = stream | st.lists(stream, max_size=3) | st.lists(provider_parts(), max_size=3) | _TEXTS | _MARKS
    parts = st.lists(provider_parts(), max_size=4)
    call = {"type": "tool_use", "id": "1", "name": "n", "input": {}}
    message = st.one_of(
        output.map(lambda value: {"type": "shell_call_output", "call_id": "1", "output": value}),
        parts.map(
            lambda value: {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": value}]}
        ),
        parts.map(lambda value: {"role": "tool", "tool_call_id": "1", "content": value}),
        parts.map(lambda value: {"role": "user", "content": value}),
        _TEXTS.map(
            lambda text: {"role": "user", "content": [{"text": text}, {"document": {"source": {"text": text}}}]}
        ),
        st.sampled_from(
            [
                {"role": "assistant", "content": [call]},
                {"role": "assistant", "content": None, "function_call": {"name": "n", "arguments": "{}"}},
                {"role": "assistant", "function_call": {"name": "n"}},
                {"type": "shell_call", "call_id": "1", "action": {}},
                {"type": "apply_patch_call", "call_id": "1", "operation": {"diff": "d"}},
                {"type": "tool_search_call", "call_id": "1", "arguments": {}},
                {"type": "tool_search_output", "call_id": "1", "tools": []},
                {"type": "tool_search_output", "call_id": None, "tools": [{"name": "n"}]},
                {"from": "human", "value": "hi"},
                {"role": "assistant"},
                {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
                {"type": "image_generation_call", "result": "x"},
                {"role": "assistant", "content": "done"},
            ]
        ),
    )
    return draw(st.lists(message, min_size=1, max_size=8))
