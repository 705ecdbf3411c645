"""Every option, declared once: its values, default, functions, and help.

`OPTIONS` defines the checks and their errors, the parameters of both engines, and the options of the command line;
scripts/options.py generates from it the signatures of the public functions, and the table of docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from recede.providers import PROVIDERS, checked_provider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _Check = Callable[[str, Any], Any]

__all__ = [
    "BODY_KEYS",
    "BOUNDARIES",
    "BUDGETS",
    "CEILING",
    "CHARS_PER_TOKEN",
    "ENTRANCES",
    "MIN_KEEP",
    "OPTIONS",
    "SESSION_DEFAULTS",
    "TURN_FIELDS",
    "Kind",
    "Option",
    "optional_function",
    "optional_summarizer",
    "template",
    "tokens_of",
    "whole_number",
]

BODY_KEYS = ("messages", "input", "contents")
"""Fields of a request body that may be the history, by precedence."""

BUDGETS = ("max_input_chars", "max_input_tokens")

# Larger numbers mean the same; sums in the core do not overflow.
CEILING = 1 << 60
# Where nothing counts tokens. What is counted is kept in quarter tokens: constants in characters need no rounding.
CHARS_PER_TOKEN = 4
# The current request, among those with a cold cache.
_NOW = 1 << 60
_IMAGE_CEILING = 1 << 40
_LARGEST_PRICE = 1e300

# Bounds of the time to match a text with a template, and a name with patterns.
_MAX_FIELDS, _MAX_TEMPLATE_CHARS = 64, 1_000
_MAX_PATTERNS, _MAX_PATTERN_CHARS = 256, 1_000

_TEMPLATE_FIELDS = ("chars", "lines", "images", "turn", "tool", "id", "number", "handle")
TURN_FIELDS = ("turn", "chars", "lines")
# Shorter summaries would lose the first line, by which they are recognized.
_MIN_SUMMARY_CHARS = 30
# The marker of a cut result takes about half of this.
_MIN_CLIP_CHARS = 60
MIN_KEEP = 3

BOUNDARIES: dict[str, tuple[str, ...]] = {
    "sliding": (),
    "stepped": ("mask_chunk",),
    "break_even": (),
}
"""The rules of the boundary, each with the options that are its numbers, at most two."""


class Kind:
    """The values of an option: annotation, check, and the range of numbers or the choices."""

    __slots__ = ("annotation", "check", "choices", "least", "most")

    def __init__(
        self,
        annotation: str,
        check: _Check,
        *,
        least: float = 0,
        most: float | None = None,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.annotation = annotation
        self.check = check
        self.least = least
        self.most = most
        self.choices = choices


class Option:
    """An option. `parameter` is its default as the engines take it, `flag` its name on the command line."""

    __slots__ = ("check", "default", "flag", "goals", "help", "kind", "parameter")

    def __init__(
        self, name: str, kind: Kind, default: Any, goals: tuple[str, ...], help: str, flag: str | None = ""
    ) -> None:
        self.kind = kind
        self.check = kind.check
        self.default = default
        self.goals = goals
        self.help = help
        self.flag = "--" + name.replace("_", "-") if flag == "" else flag
        self.parameter = kind.check(name, default)


def tokens_of(chars: int) -> int:
    """About how many tokens so many characters, or quarter tokens, are: rounded up."""
    return -(-chars // CHARS_PER_TOKEN)


def whole_number(least: int = 0, *, optional: bool = False, ceiling: int = CEILING) -> _Check:
    """A check for whole numbers of at least `least`, capped at `ceiling`."""

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
    if isinstance(value, int) and value > _LARGEST_PRICE:  # may have too many digits to print
        raise ValueError(f"{name} must be at most {_LARGEST_PRICE:g}")
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name} must be a number from 0, not {value}")
    return float(value)


def _fraction(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number or None, not {type(value).__name__}")
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be a number above 0, and at most 1")
    return float(value)


def _cold_requests(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, bool):
        return (_NOW,) if value else ()
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError(f"{name} must be True, False or a list of numbers of messages, not {type(value).__name__}")
    count = whole_number()
    return tuple(sorted(count(f"{name}[{place}]", messages) for place, messages in enumerate(value)))


def _windows_by_tool(name: str, value: Any) -> tuple[tuple[str, int | None], ...]:
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must map tool names to numbers or be None, not a {type(value).__name__}")
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
            raise TypeError(f"{name} must have tool names, not {type(tool).__name__}")
    _check_patterns(name, value)
    return tuple(value)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError(f"{name} must be a list of texts, not {type(value).__name__}")
    for text in value:
        if not isinstance(text, str):
            raise TypeError(f"{name} must have texts, not {type(text).__name__}")
        if not text.strip("*"):
            raise ValueError(f"{name} has {text!r}, which any text matches")
        if len(text) > _MAX_PATTERN_CHARS:
            raise ValueError(
                f"{name} has a text of {len(text):,} characters; at most {_MAX_PATTERN_CHARS:,} are allowed"
            )
    if len(value) > _MAX_PATTERNS:
        raise ValueError(f"{name} has {len(value):,} texts; at most {_MAX_PATTERNS} are allowed")
    return tuple(value)


def _check_patterns(name: str, tools: Collection[str]) -> None:
    patterns = [tool for tool in tools if "*" in tool or "?" in tool]
    if len(patterns) > _MAX_PATTERNS:
        raise ValueError(
            f"{name} has {len(patterns):,} patterns with * or ?; at most {_MAX_PATTERNS} are allowed: "
            "give the names themselves, which have no limit"
        )
    longest = max(map(len, patterns), default=0)
    if longest > _MAX_PATTERN_CHARS:
        raise ValueError(f"{name} has a pattern of {longest:,} characters; at most {_MAX_PATTERN_CHARS:,} are allowed")


def template(name: str, value: Any) -> tuple[tuple[str, str], ...] | None:
    """The check for a template of placeholders: its literals, each with the field after it."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string or None, not {type(value).__name__}")
    import string  # here, since custom templates are rare

    fields = ", ".join("{%s}" % field for field in _TEMPLATE_FIELDS)
    try:
        parts = list(string.Formatter().parse(value))
    except ValueError as error:
        raise ValueError(
            f"{name} is no template ({error}); its fields are {fields}, and a literal brace is doubled"
        ) from None
    fields_used = sum(field is not None for _, field, _, _ in parts)
    if fields_used > _MAX_FIELDS or len(value) > _MAX_TEMPLATE_CHARS:
        raise ValueError(
            f"{name} has {fields_used:,} fields and {len(value):,} characters; at most {_MAX_FIELDS} fields and "
            f"{_MAX_TEMPLATE_CHARS:,} characters"
        )
    found = []
    for literal, field, spec, conversion in parts:
        if field is not None and (field not in _TEMPLATE_FIELDS or spec or conversion):
            raise ValueError(f"{name} has an unknown field {{{field}}}; its fields are {fields}")
        found.append((literal, field or ""))
    if not any(literal.strip() for literal, _ in found):
        raise ValueError(f"{name} must have some text besides its fields, or any text would be taken for a placeholder")
    return tuple(found)


def optional_function(name: str, value: Any) -> Any:
    """The check for a function, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, not {type(value).__name__}")
    return value


def optional_summarizer(name: str, value: Any) -> Any:
    """The check for a function, an object with ``.generate``, or None."""
    if value is None or callable(value) or callable(getattr(value, "generate", None)):
        return value
    raise TypeError(f"{name} must be callable, have .generate(prompt), or be None, not {type(value).__name__}")


def _whole(least: int = 0, ceiling: int = CEILING) -> Kind:
    return Kind("int", whole_number(least, ceiling=ceiling), least=least)


def _choice(*choices: str) -> Kind:
    quoted = ", ".join(f'"{choice}"' for choice in choices)
    return Kind(f"Literal[{quoted}]", _one_of(*choices), choices=choices)


_COUNT = Kind("int | None", whole_number(optional=True))
_WINDOWS = Kind("Mapping[str, int | None] | None", _windows_by_tool)
_FLAG = Kind("bool", _flag)
_PROVIDER = Kind("str | Provider", checked_provider, choices=tuple(PROVIDERS))
_OPTIONAL_PRICE = Kind("float | None", lambda name, value: None if value is None else _price(name, value))
_FRACTION = Kind("float | None", _fraction, most=1)
_CLIP = Kind("int | None", whole_number(_MIN_CLIP_CHARS, optional=True), least=_MIN_CLIP_CHARS)
_ROLES = ("system", "developer", "user", "assistant")
_ROLE = Kind(_choice(*_ROLES).annotation + " | None", _one_of(*_ROLES, None), choices=_ROLES)

# Which functions take an option: `reduce` (and a `History` with a budget), `mask_observations`, `summarize_history`,
# `truncate_history`, and the block masker; variants for bytes and classes take the options of their function.
_REDUCE = ("reduce",)
_MASK, _BLOCK = (*_REDUCE, "mask"), (*_REDUCE, "mask", "block")
_SUMMARY, _DROP = (*_REDUCE, "summarize"), (*_REDUCE, "summarize", "truncate")
_STAGES = (*_REDUCE, "mask", "summarize", "truncate")

# fmt: off
_DECLARED: tuple[tuple[Any, ...], ...] = (
    # name, kind, default, goals, help; the name on the command line if it differs, or None
    ("max_input_chars", _COUNT, None, _REDUCE,
     "the budget in characters (Unicode code points); this or the next is required"),
    ("max_input_tokens", _COUNT, None, _REDUCE,
     "the budget in tokens, of about four characters each"),
    ("fill", _FRACTION, 0.9, _REDUCE,
     "a view without all messages fills up to this part of the budget; None: the published rule"),
    ("clip_results", _CLIP, None, _REDUCE,
     "results in the window are cut to N characters, largest first, before anything is dropped"),
    ("enabled", _FLAG, True, _REDUCE,
     "False returns the history unchanged", None),
    ("preserve_recent_raw_turns", _whole(), 4, _DROP,
     "`keep_messages` under its published name; the larger of the two counts", None),
    ("keep_messages", _COUNT, None, _STAGES,
     "window: the last N messages stay raw, system messages not counted"),
    ("keep_turns", _COUNT, None, _STAGES,
     "window: the last N turns stay raw"),
    ("keep_results", _COUNT, None, _STAGES,
     "window: the newest N results stay raw", "--keep"),
    ("keep", _whole(MIN_KEEP), 4, ("block",),
     "`keep_results` under its published name, at least 3", None),
    ("keep_by_tool", _WINDOWS, None, _BLOCK,
     "tool or pattern (`*`, `?`) -> N: its newest N results stay raw, whatever the window; None: all", None),
    ("exclude_tools", Kind("Collection[str]", _tools), (), _BLOCK,
     "results of these tools (names or patterns) are never masked", "--exclude-tool"),
    ("keep_errors", _FLAG, False, _BLOCK,
     "results flagged as errors are never masked"),
    ("keep_matching", Kind("Collection[str]", _texts), (), _BLOCK,
     "results whose text begins so, or with `*` matches as a whole, are never masked", None),
    ("mask_chunk", Kind("int | None", whole_number(1, optional=True), least=1), None, _BLOCK,
     "the boundary moves in steps of N results, which preserves prompt caches"),
    ("boundary", _choice(*BOUNDARIES), "sliding", _BLOCK,
     "it moves at each request, by `mask_chunk` results, or when that pays off under a prompt cache"),
    ("provider", _PROVIDER, "ideal", _BLOCK,
     "for break_even: whose prompt cache and prices are assumed: a known name, or a Provider"),
    ("cold", Kind("bool | Collection[int]", _cold_requests), False, _BLOCK,
     "for break_even: True if the cache has expired; or how many messages preceded each such request", None),
    ("max_overcost", _OPTIONAL_PRICE, 0.1, _BLOCK,
     "for break_even: by what part all requests so far may ever cost more than raw; None: no promise"),
    ("cache_breakpoint", _choice("keep", "boundary"), "keep", _BLOCK,
     "marks of the cache (cache_control) stay as they are, or the last masked result has one too"),
    ("marks_elsewhere", _whole(), 2, _BLOCK,
     "marks on the system prompt and on tools, which are sent with a list of messages", None),
    ("observation_masking", _FLAG, True, _REDUCE,
     "False skips masking and goes straight to the summary", "--no-mask"),
    ("max_observation_chars", _COUNT, None, _MASK,
     "old observations are cut to N characters instead of replaced"),
    ("placeholder", Kind("str | None", template), None, _MASK,
     "a template with {chars}, {lines}, {images}, {turn}, {tool}, {id}, {number}, {handle}"),
    ("min_masked_chars", _whole(), 0, _MASK,
     "nothing is masked if that removes fewer than N characters"),
    ("image_chars", _whole(ceiling=_IMAGE_CEILING), 6_400, _STAGES,
     "characters that an image or a document counts"),
    ("strict_pairs", _FLAG, False, _REDUCE,
     "any call without result, or result without call, rules a stage out"),
    ("summarizer", Kind("Summarizer | None", optional_summarizer), None, _SUMMARY,
     "`(messages, previous_summary) -> str`, instead of the built-in summary", None),
    ("summary_max_chars", _whole(_MIN_SUMMARY_CHARS), 1_400, _SUMMARY,
     "the summary is clipped at N characters"),
    ("summary_role", _ROLE, None, _SUMMARY,
     "the role of the summary's message; by default one that the provider accepts"),
    ("token_counter", Kind("TokenCounter | None", optional_function), None, _REDUCE,
     "`text -> tokens`; without it four characters are a token", None),
)
# fmt: on
OPTIONS = {name: Option(name, *declared) for name, *declared in _DECLARED}
SESSION_DEFAULTS = {"fill": 0.5, "clip_results": 4_000}
"""What a `History` with a budget has instead: a compaction leaves room for what comes."""

# fmt: off
ENTRANCES: tuple[tuple[str, str, dict[str, Any], int], ...] = (
    ("reduce, reduce_json, recede reduce", "sliding", {"fill": 0.9, "clip_results": None}, 0),
    ("HistoryReducer", "sliding", {"fill": None, "clip_results": None}, 0),
    ("mask_old_observations, mask_old_observations_json, Budget", "sliding", {}, MIN_KEEP),
    ("ObservationMaskingContextManager, HybridContextManager, ProductionHybridContextManager", "sliding", {}, 0),
    ("mask_observations, mask_observations_json, wrap, Masker", "break_even", {}, 0),
    ("History", "break_even", SESSION_DEFAULTS, 0),
    ("Conversation", "break_even", {}, MIN_KEEP),
)
# fmt: on
"""Names, when the boundary moves by default, how a budget is filled, and the fewest results that a window may keep. A
`Conversation` is one without a `Budget`."""
