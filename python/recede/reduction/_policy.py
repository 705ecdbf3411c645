"""Checks options and makes the plain parameters that both engines take. Every default stands here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _Check = Callable[[str, Any], Any]

__all__ = [
    "BODY_KEYS",
    "block_policy",
    "compiled",
    "image_chars_of",
    "optional_function",
    "replay_policy",
    "template_policy",
    "turn_policy",
    "whole_number",
]

BODY_KEYS = ("messages", "input", "contents")
"""Fields of a request body that may be the history; the first that is a list is."""

# Larger numbers mean the same as these, and the sums of the core hold them.
_CEILING = 1 << 60
# Among the requests that found nothing in the cache: the one that is being made.
_NOW = 1 << 60
_IMAGE_CEILING = 1 << 40

# A text is compared with a template, and a name with each pattern, place by place: what is larger would take too long.
_MOST_FIELDS, _MOST_TEMPLATE_CHARS = 64, 1_000
_MOST_PATTERNS, _MOST_PATTERN_CHARS = 256, 1_000

_TEMPLATE_FIELDS = ("chars", "lines", "images", "turn", "tool", "id", "number")
_TURN_FIELDS = ("turn", "chars", "lines")
_BOUNDARIES = ("sliding", "stepped", "break_even")
_SUMMARY_ROLES = ("system", "developer", "user", "assistant")
# Below this the first line of a summary would be cut, and a later reduction would not know it.
_LEAST_SUMMARY_CHARS = 30
_LEAST_KEEP = 3


def whole_number(least: int = 0, *, optional: bool = False, ceiling: int = _CEILING) -> _Check:
    """A check for whole numbers of at least `least`; larger ones than `ceiling` become that."""

    def check(name: str, value: Any) -> int | None:
        if optional and value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            wanted = "a whole number or None" if optional else "a whole number"
            raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}")
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
        return min(value, ceiling)

    return check


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
    return value


def _one_of(*choices: str | None) -> _Check:
    def check(name: str, value: Any) -> Any:
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must be a string, not {type(value).__name__}")
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(repr(c) for c in choices)}, not {value!r}")
        return value

    return check


def _price(name: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name} must be a number from 0, not {value}")
    return float(value)


def _cold_requests(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, bool):
        return (_NOW,) if value else ()
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError(f"{name} must be True, False or a list of numbers of messages, not {type(value).__name__}")
    count = whole_number()
    return tuple(sorted(count(f"{name}[{place}]", messages) for place, messages in enumerate(value)))


def _windows_by_tool(name: str, value: Any) -> tuple[tuple[str, int | None], ...]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must map tool names to numbers, not be a {type(value).__name__}")
    count = whole_number(optional=True)
    for tool in value:
        if not isinstance(tool, str):
            raise TypeError(f"{name} must have tool names as its keys, not {type(tool).__name__}")
    _check_patterns(name, value)
    return tuple((tool, count(f"{name}[{tool!r}]", newest)) for tool, newest in value.items())


def _tools(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError(f"{name} must be a list of tool names, not {type(value).__name__}")
    for tool in value:
        if not isinstance(tool, str):
            raise TypeError(f"{name} must hold tool names, not {type(tool).__name__}")
    _check_patterns(name, value)
    return tuple(value)


def _check_patterns(name: str, tools: Collection[str]) -> None:
    patterns = [tool for tool in tools if "*" in tool or "?" in tool]
    if len(patterns) > _MOST_PATTERNS:
        raise ValueError(
            f"{name} has {len(patterns):,} patterns with * or ?, and may have {_MOST_PATTERNS}: "
            "give the names themselves, of which there may be any number"
        )
    longest = max(map(len, patterns), default=0)
    if longest > _MOST_PATTERN_CHARS:
        raise ValueError(f"{name} has a pattern of {longest:,} characters, and may have {_MOST_PATTERN_CHARS:,} in one")


def _template(name: str, value: Any) -> tuple[tuple[str, str], ...] | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string or None, not {type(value).__name__}")
    import string  # here, since few programs have a template of their own

    fields = ", ".join("{%s}" % field for field in _TEMPLATE_FIELDS)
    try:
        parts = list(string.Formatter().parse(value))
    except ValueError as error:
        raise ValueError(
            f"{name} is no template ({error}); its fields are {fields}, and a brace is written twice"
        ) from None
    fields_used = sum(field is not None for _, field, _, _ in parts)
    if fields_used > _MOST_FIELDS or len(value) > _MOST_TEMPLATE_CHARS:
        raise ValueError(
            f"{name} has {fields_used:,} fields and {len(value):,} characters, and may have {_MOST_FIELDS} fields and "
            f"{_MOST_TEMPLATE_CHARS:,} characters"
        )
    template = []
    for literal, field, spec, conversion in parts:
        if field is not None and (field not in _TEMPLATE_FIELDS or spec or conversion):
            raise ValueError(f"{name} has an unknown field {{{field}}}; its fields are {fields}")
        template.append((literal, field or ""))
    if not any(literal.strip() for literal, _ in template):
        raise ValueError(f"{name} must hold some text beside its fields, or no text could be told from a placeholder")
    return tuple(template)


def optional_function(name: str, value: Any) -> Any:
    """The check for a function, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, not {type(value).__name__}")
    return value


_CHECKS: dict[str, tuple[_Check, Any]] = {
    # name: (check, default)
    "max_input_chars": (whole_number(optional=True), None),
    "max_input_tokens": (whole_number(optional=True), None),
    "enabled": (_flag, True),
    "preserve_recent_raw_turns": (whole_number(), 4),
    "keep_messages": (whole_number(optional=True), None),
    "keep_turns": (whole_number(optional=True), None),
    "keep_results": (whole_number(optional=True), None),
    "keep_by_tool": (_windows_by_tool, ()),
    "exclude_tools": (_tools, ()),
    "keep_errors": (_flag, False),
    "mask_chunk": (whole_number(1, optional=True), None),
    "boundary": (_one_of(*_BOUNDARIES), "sliding"),
    "cache_read": (_price, 0.1),
    "cache_write": (_price, 1.25),
    "cache_cold": (_cold_requests, ()),
    "observation_masking": (_flag, True),
    "max_observation_chars": (whole_number(optional=True), None),
    "placeholder": (_template, None),
    "min_masked_chars": (whole_number(), 0),
    "image_chars": (whole_number(ceiling=_IMAGE_CEILING), 6_400),
    "strict_pairs": (_flag, False),
    "summary_max_chars": (whole_number(_LEAST_SUMMARY_CHARS), 1_400),
    "summary_role": (_one_of(*_SUMMARY_ROLES, None), None),
    "summarizer": (optional_function, None),
    "token_counter": (optional_function, None),
}

_WINDOW = frozenset({"keep_messages", "keep_turns", "keep_results"})
_CACHE = frozenset({"cache_read", "cache_write", "cache_cold"})
_TOOLS = frozenset({"keep_by_tool", "exclude_tools", "keep_errors", "mask_chunk", "boundary"}) | _CACHE
_TEXT = frozenset({"max_observation_chars", "placeholder", "min_masked_chars", "image_chars"})
_SUMMARY = frozenset({"preserve_recent_raw_turns", "image_chars", "summary_max_chars", "summary_role", "summarizer"})

_FUNCTIONS = frozenset({"summarizer", "token_counter"})
_PLAIN = frozenset({str, int, float, bool, type(None)})

_ALLOWED: dict[str, frozenset[str]] = {
    "reduce": frozenset(_CHECKS),
    "mask": _WINDOW | _TOOLS | _TEXT,
    "summarize": _WINDOW | _SUMMARY,
    "truncate": _WINDOW | {"preserve_recent_raw_turns", "image_chars"},
    "block": _TOOLS,
}


def compiled(engine: Any, goal: str, options: Mapping[str, Any]) -> Any:
    """The engine's Policy for these options; checked and made once for plain values that were seen before.

    Of a function, a Policy only knows that there is one. The cache does not hold the function, nor any other object of
    the caller's: that would keep alive whatever it refers to.
    """
    plain = {}
    for name, value in options.items():
        if name in _FUNCTIONS and callable(value):
            plain[name] = callable
        elif type(value) in _PLAIN:
            plain[name] = value
        else:
            return _policy(engine, goal, options)
    return _cached(engine, goal, **plain)


@lru_cache(maxsize=256, typed=True)  # True is no 1
def _cached(engine: Any, goal: str, /, **options: Any) -> Any:
    return _policy(engine, goal, options)


def _policy(engine: Any, goal: str, options: Mapping[str, Any]) -> Any:
    return engine.Policy(**_fields(goal, _checked(goal, options)))


def replay_policy(
    engine: Any,
    goal: str,
    options: Mapping[str, Any],
    boundary: tuple[str, float, float] | None = None,
    summaries: tuple[Any, ...] | None = None,
) -> Any:
    """The Policy of a replay; its boundary and its summaries may be such that nobody can choose them for a view."""
    fields = {**_fields(goal, _checked(goal, options)), "summaries": summaries}
    return engine.Policy(**fields if boundary is None else {**fields, "boundary": boundary})


def _checked(goal: str, options: Mapping[str, Any]) -> dict[str, Any]:
    allowed = _ALLOWED[goal]
    for name in options:
        if name not in allowed:
            import difflib  # here, since few programs misspell an option

            close = difflib.get_close_matches(name, allowed, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"there is no option {name!r}{hint}")
    return {
        name: check(name, options[name]) if name in options else default for name, (check, default) in _CHECKS.items()
    }


def _fields(goal: str, option: dict[str, Any]) -> dict[str, Any]:
    recent_messages = option["keep_messages"]
    if goal not in ("mask", "block"):
        recent_messages = max(recent_messages or 0, option["preserve_recent_raw_turns"])
    elif goal == "mask" and all(option[name] is None for name in _WINDOW):
        raise ValueError("a window is required: give keep_messages, keep_turns or keep_results")
    return {
        "goal": goal,
        "max_cost": _budget(option) if goal == "reduce" else None,
        "enabled": option["enabled"],
        "recent_messages": recent_messages,
        "recent_turns": option["keep_turns"],
        "recent_results": option["keep_results"],
        "keep_by_tool": option["keep_by_tool"],
        "exclude_tools": option["exclude_tools"],
        "keep_errors": option["keep_errors"],
        "boundary": _boundary(option),
        "cold_requests": option["cache_cold"],
        "observation_masking": option["observation_masking"],
        "max_observation_chars": option["max_observation_chars"],
        "placeholder": option["placeholder"],
        "lines_form": False,
        "min_masked_chars": option["min_masked_chars"],
        "image_chars": option["image_chars"],
        "strict_pairs": option["strict_pairs"],
        "summary_max_chars": option["summary_max_chars"],
        "summary_role": option["summary_role"],
        "ask_summary": option["summarizer"] is not None or option["token_counter"] is not None,
    }


def _boundary(option: dict[str, Any]) -> tuple[str, float, float]:
    """Its name, with how many observations it moves by or what a token costs to read and to write."""
    name, chunk = option["boundary"], option["mask_chunk"]
    if name == "break_even":
        if chunk is not None:
            raise ValueError("give mask_chunk or boundary='break_even', not both")
        return name, option["cache_read"], option["cache_write"]
    if chunk is not None:
        return "stepped", float(chunk), 0.0
    if name == "stepped":
        raise ValueError("boundary='stepped' needs mask_chunk, the number of observations the boundary moves by")
    return "sliding", 0.0, 0.0


def _budget(option: dict[str, Any]) -> int:
    chars, tokens = option["max_input_chars"], option["max_input_tokens"]
    if chars is None and tokens is None:
        raise ValueError("a budget is required: give max_input_chars or max_input_tokens")
    if chars is not None and tokens is not None:
        raise ValueError("give max_input_chars or max_input_tokens, not both")
    if chars is not None:
        return int(chars)
    return min(4 * int(tokens), _CEILING)  # ceil(chars / 4) <= tokens is the same as chars <= 4 * tokens


def image_chars_of(options: Mapping[str, Any]) -> int:
    """The characters that an image counts, by these options."""
    check, default = _CHECKS["image_chars"]
    return int(check("image_chars", options.get("image_chars", default)))


def block_policy(
    engine: Any, keep: int, mask_chunk: int | None, options: Mapping[str, Any], placeholder: str | None = None
) -> Any:
    """The Policy of the block masker: the newest `keep` observations, the `lines` placeholder or another one."""
    whole_number(_LEAST_KEEP)("keep", keep)
    option = _checked("block", {**options, "mask_chunk": mask_chunk})
    fields = _fields("block", option)
    fields.update(goal="mask", recent_results=min(keep, _CEILING), lines_form=True)
    if placeholder is not None:
        fields["placeholder"] = _template("placeholder", placeholder)
    return engine.Policy(**fields)


def turn_policy(
    engine: Any,
    window_name: str,
    window: int,
    placeholder: str,
    options: Mapping[str, Any],
    summaries: tuple[Any, ...] | None,
) -> Any:
    """The Policy of a manager of turns: the newest `window` turns show their observation."""
    fields = _fields("block", _checked("block", options))
    template = _template("placeholder", placeholder)
    for _, field in template or ():
        if field and field not in _TURN_FIELDS:
            raise ValueError(
                f"placeholder has an unknown field {{{field}}}; of turns they are {{turn}}, {{chars}}, {{lines}}"
            )
    window = whole_number()(window_name, window)
    fields.update(goal="mask", recent_results=window, placeholder=template, summaries=summaries)
    return engine.Policy(**fields)


def template_policy(engine: Any, max_observation_chars: int | None, placeholder: str | None) -> Any:
    """The Policy of `mask_observation`: no window, one text."""
    options = {"max_observation_chars": max_observation_chars, "placeholder": placeholder, "keep_results": 0}
    return compiled(engine, "mask", options)
