"""The values that options may have: what is checked, and the words of the errors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from recede.providers import PROVIDERS, Provider, checked_provider

_Check = Callable[[str, Any], Any]

MIN_KEEP = 3

BOUNDARIES: dict[str, tuple[str, ...]] = {"sliding": (), "stepped": ("mask_chunk",), "break_even": ()}
"""The rules of the boundary, each with the options that are its numbers, at most two."""

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


class Kind(NamedTuple):
    """The values of an option: annotation, check, and the range of numbers or the choices."""

    annotation: str
    check: _Check
    least: float = 0
    most: float | None = None
    choices: tuple[str, ...] = ()


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
            raise ValueError(f"{name} must be at least {least}{', or None,' if optional else ','} not {value}")
        return min(value, ceiling)

    return check


_LIMIT = whole_number(1, optional=True)


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


def _limit(name: str, value: Any) -> Any:
    if not isinstance(value, float):
        return _LIMIT(name, value)
    if not 0 < value < 1:
        raise ValueError(
            f"{name} must be a whole number of tokens, or a share of the model's window between 0 and 1, not {value}"
        )
    return value


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
    _check_tools(name, value)
    return tuple((tool, count(f"{name}[{tool!r}]", newest)) for tool, newest in value.items())


def _strings(name: str, value: Any, noun: str) -> Collection[str]:
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError(f"{name} must be a list of {noun}, not {type(value).__name__}")
    for one in value:
        if not isinstance(one, str):
            raise TypeError(f"{name} must have {noun}, not {type(one).__name__}")
    return value


def _tools(name: str, value: Any) -> tuple[str, ...]:
    _check_tools(name, _strings(name, value, "tool names"))
    return tuple(value)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    for text in _strings(name, value, "texts"):
        if not text.strip("*"):
            raise ValueError(f"{name} has {text!r}, which any text matches")
    _check_sizes(name, value, "text", "texts", "")
    return tuple(value)


def _check_tools(name: str, tools: Collection[str]) -> None:
    blank = next((tool for tool in tools if not tool.strip()), None)
    if blank is not None:
        raise ValueError(f"{name} has the blank name {blank!r}, which is of no tool: leave it out")
    patterns = [tool for tool in tools if "*" in tool or "?" in tool]
    advice = ": give the names themselves, which have no limit"
    _check_sizes(name, patterns, "pattern", "patterns with * or ?", advice)


def _check_sizes(name: str, texts: Collection[str], noun: str, nouns: str, advice: str) -> None:
    if len(texts) > _MAX_PATTERNS:
        raise ValueError(f"{name} has {len(texts):,} {nouns}; at most {_MAX_PATTERNS} are allowed{advice}")
    longest = max(map(len, texts), default=0)
    if longest > _MAX_PATTERN_CHARS:
        raise ValueError(f"{name} has a {noun} of {longest:,} characters; at most {_MAX_PATTERN_CHARS:,} are allowed")


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
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, not {type(value).__name__}")
    return value


CLIENT_PACKAGES = {"anthropic": "anthropic", "openai": "openai", "gemini": "google"}
"""The functions of `recede.summarizers`, and the packages of the clients that they take."""

_MAKERS = {"claude": "anthropic", "gemini": "gemini"}  # by how names of models begin
_MOST_NAMED = 60  # characters of what an error repeats


def optional_summarizer(name: str, value: Any) -> Any:
    if value is None or callable(value) or callable(getattr(value, "generate", None)):
        return value
    given = repr(value[:_MOST_NAMED]) if isinstance(value, str) else type(value).__name__
    cure = summarizer_instead(value)
    raise TypeError(f"{name} must be callable, have .generate(prompt), or be None, not {given}{cure}")


def summarizer_instead(value: Any) -> str:
    """Name what makes a summarizer of a model's name or of a client; "" for anything else."""
    packages = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    maker = next((maker for maker, package in CLIENT_PACKAGES.items() if package in packages), None)
    if maker is not None:
        return f": recede.summarizers.{maker}(client, MODEL) makes one of a client"
    if not isinstance(value, str):
        return ""
    if value == "model":
        return ": it is for recede.wrap, which has a client; here give recede.summarizers.anthropic(client, MODEL)"
    maker = _MAKERS.get(value.partition("-")[0], "openai")
    return f": recede.summarizers.{maker}(client, {value[:_MOST_NAMED]!r}) makes one"


def _boundary(name: str, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return whole_number(1)(name, value)
    if value not in ("break_even", "sliding"):
        raise (ValueError if isinstance(value, str) else TypeError)(
            f"{name} must be 'break_even', 'sliding' or a number of results to move by, not {value!r}"
        )
    return value


def _provider(name: str, value: Any) -> str | Provider:
    return value if isinstance(value, str) and value == "auto" else checked_provider(name, value)


def whole(least: int = 0, ceiling: int = CEILING) -> Kind:
    return Kind("int", whole_number(least, ceiling=ceiling), least)


def choice(*choices: str) -> Kind:
    quoted = ", ".join(f'"{choice}"' for choice in choices)
    return Kind(f"Literal[{quoted}]", _one_of(*choices), choices=choices)


COUNT = Kind("int | None", whole_number(optional=True))
STEP = Kind("int | None", whole_number(1, optional=True), least=1)
LIMIT = Kind("int | float | None", _limit, least=1)
WINDOWS = Kind("Mapping[str, int | None] | None", _windows_by_tool)
TOOLS = Kind("Collection[str]", _tools)
TEXTS = Kind("Collection[str]", _texts)
FLAG = Kind("bool", _flag)
PROVIDER = Kind("str | Provider", _provider, choices=("auto", *PROVIDERS))
BOUNDARY = Kind('Literal["break_even", "sliding"] | int', _boundary, choices=("break_even", "sliding"))
COLD = Kind("bool | Collection[int]", _cold_requests)
OPTIONAL_PRICE = Kind("float | None", lambda name, value: None if value is None else _price(name, value))
FRACTION = Kind("float | None", _fraction, most=1)
CLIP = Kind("int | None", whole_number(_MIN_CLIP_CHARS, optional=True), least=_MIN_CLIP_CHARS)
IMAGE = whole(ceiling=_IMAGE_CEILING)
SUMMARY = whole(_MIN_SUMMARY_CHARS)
TEMPLATE = Kind("str | None", template)
SUMMARIZER = Kind("Summarizer | None", optional_summarizer)
TOKEN_COUNTER = Kind("TokenCounter | None", optional_function)
_ROLES = ("system", "developer", "user", "assistant")
ROLE = Kind(choice(*_ROLES).annotation + " | None", _one_of(*_ROLES, None), choices=_ROLES)
