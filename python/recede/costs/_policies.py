"""Parser for the policies of a replay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple, Protocol

from recede import _engine
from recede._errors import meant, one_of
from recede._recall import PLACEHOLDER
from recede.costs._prices import CacheFacts, Prices
from recede.providers import Provider, checked_provider, policy_cache
from recede.reduction._options import SESSION_DEFAULTS
from recede.reduction._policy import LEAST_REMOVED, SUMMARY_CHARS, SUMMARY_PROMPT_CHARS, own_policy, replay_policy

_EVERYTHING = 1 << 60
# Anthropic does not document its text; this one is that of its coding agent.
_ANTHROPIC_PLACEHOLDER = "[Old tool result content cleared]"
# The providers whose caches have these rules; prices are those of the replay.
_PROVIDERS = {"prefix": "openai", "breakpoints": "anthropic"}


class _Key(NamedTuple):
    """The values that a key allows: a whole number from `least`, a share, or one of the words."""

    least: int | None  # None: none
    default: int | str | None = None  # None: it must be given
    words: tuple[str, ...] = ()
    is_share: bool = False


_WINDOW = _Key(0)
_TAIL = _Key(1, 10)
_BREAKPOINT = _Key(None, "keep", ("keep", "boundary"))
_MAX_OVERCOST = _Key(0, "0.1", ("none",), is_share=True)
_POLICIES: dict[str, dict[str, _Key]] = {
    "raw": {},
    "sliding": {"window": _WINDOW, "cache_breakpoint": _BREAKPOINT},
    "stepped": {"window": _WINDOW, "chunk": _Key(1), "cache_breakpoint": _BREAKPOINT},
    "break_even": {"window": _WINDOW, "cache_breakpoint": _BREAKPOINT, "max_overcost": _MAX_OVERCOST},
    "high_water": {"window": _WINDOW, "chars": _Key(0), "cache_breakpoint": _BREAKPOINT},
    "clear_tool_uses": {"trigger": _Key(1, 100_000), "keep": _Key(0, 3), "at_least": _Key(0, 0)},
    "clip": {"chars": _Key(60)},
    "keep_last": {"messages": _Key(0)},
    "summary": {"every": _Key(1, 21, ("break_even",)), "tail": _TAIL},
    "hybrid": {
        "window": _Key(0, 10),
        "at": _Key(1, 43, ("break_even", "never")),
        "tail": _TAIL,
        "boundary": _Key(None, "sliding", ("sliding", "stepped", "break_even")),
        "chunk": _Key(1, 0),
        "cache_breakpoint": _BREAKPOINT,
        "max_overcost": _MAX_OVERCOST,
    },
    "budget": {
        "tokens": _Key(1, 0),
        "chars": _Key(1, 0),
        "fill": _Key(None, f"{SESSION_DEFAULTS['fill']:g}", is_share=True),
    },
}
# Values that a name omits: those of the published designs, and the unit of the budget that was not chosen.
_UNSAID = (
    ("boundary", "sliding"),
    ("chunk", 0),
    ("cache_breakpoint", "keep"),
    ("max_overcost", "0.1"),
    ("at_least", 0),
    ("tokens", 0),
    ("chars", 0),
)
# Those that mask results which no request has shown.
_DESIGNS_OF_OTHERS = ("clear_tool_uses", "hybrid")
_MASKS = ("sliding", "stepped", "break_even", "high_water")

_SUMMARIZING = (
    "summary:every=21,tail=10",
    "hybrid:window=10,at=43,tail=10",
    "hybrid:window=10,at=43,tail=10,boundary=break_even",
    "hybrid:window=10,at=break_even,tail=10,boundary=break_even",
)


def replay_policies(
    *, windows: Iterable[int] = (5, 10, 20, 58), chunks: Iterable[int] = (1, 10), keep_last: Iterable[int] = (20,)
) -> tuple[str, ...]:
    """List the policies of a grid of windows and chunks.

    Args:
        windows: how many of the newest results a mask leaves raw. The defaults are published values: 10 was best for
            SWE-agent, 58 for OpenHands (JetBrains, "The Complexity Trap", 2025), 5 and 20 were compared with 10.
        chunks: by how many results the boundary moves at once; 1 is the sliding mask.
        keep_last: how many messages remain when older ones are dropped.

    Returns:
        The names for `replay`: raw, a mask for each chunk and window, break-even for each window, keep-last; then
        summaries alone and the hybrid as published, and the hybrid with break-even boundaries and summaries.

    Raises:
        TypeError: an argument is not a collection.

    Example:
        >>> import recede
        >>> recede.costs.replay_policies(windows=[10], chunks=[1, 5], keep_last=[])[:5]
        ('raw', 'sliding:window=10', 'stepped:window=10,chunk=5', 'break_even:window=10', 'summary:every=21,tail=10')
    """
    windows = list(windows)
    masks = [
        f"sliding:window={window}" if chunk == 1 else f"stepped:window={window},chunk={chunk}"
        for chunk in chunks
        for window in windows
    ]
    paying = [f"break_even:window={window}" for window in windows]
    return ("raw", *masks, *paying, *(f"keep_last:messages={count}" for count in keep_last), *_SUMMARIZING)


DEFAULT_POLICIES = replay_policies()
"""The policies that `replay` compares by default."""

MASKED = "break_even:window=10"
"""The choice where no window is advised: `keep=10`, as at every door."""


def summarized(window: int) -> str:
    """The same with summaries of old turns when they pay: what a door with this `keep` and a summarizer sends."""
    return f"hybrid:window={window},at=break_even,tail={window},boundary=break_even"


_BOUNDARIES = ("", ",boundary=break_even")

STUDY = (
    *(f"{name}:window={window}" for name in ("sliding", "break_even") for window in (5, 10, 20, 58)),
    *(f"summary:every={size},tail=10" for size in (10, 21, 43)),
    *(f"summary:every=21,tail={tail}" for tail in (5, 20)),
    *(f"hybrid:window=10,at={size},tail=10{moves}" for moves in _BOUNDARIES for size in (21, 43, 86)),
    *(f"hybrid:window=10,at=43,tail={tail}{moves}" for moves in _BOUNDARIES for tail in (5, 20)),
)
"""Choices of the research, and their neighbors: windows of masks, turns in a summary, and turns that it leaves."""


_Values = dict[str, "int | str"]


class PlayedDoor(Protocol):
    """What a door decides for a session, by its options."""

    def door(self, options: Mapping[str, Any], *, summarizes: bool) -> Any:
        """Return its policy, or its policies, each with the requests that found a cold cache and its last request."""


class PlayedHistory(NamedTuple):
    """`recede.History` with more options than those of a policy."""

    given: Mapping[str, Any] = {}

    def door(self, options: Mapping[str, Any], *, summarizes: bool) -> Any:
        """Compile its policy."""
        return own_policy(
            _engine.engine, {**self.given, **options}, reduces=True, summarizer=str if summarizes else None
        )

    @classmethod
    def at(cls, prices: Prices | None, facts: CacheFacts) -> PlayedHistory:
        """One that is told these prices, if there are any, and which requests found the cache cold."""
        given: dict[str, Any] = {"cold": cold} if (cold := facts.cold_requests()) else {}
        if prices is not None:
            base = prices.input or 1.0
            shares = {name: getattr(prices, of) / base for name, of in _SHARES.items()}
            given["provider"] = checked_provider("cache", _provider(facts))._replace(**shares)
        return cls(given)


_SHARES = {"read": "cached", "write": "write", "output": "output"}


def compiled_policies(
    specs: Iterable[str],
    prices: Prices,
    summary_prices: Prices,
    summary_chars: int,
    facts: CacheFacts,
    door: PlayedDoor,
) -> dict[str, Any]:
    """Compile policies, by their normalized names; raw first. What a door sends by its own rule, `door` compiles."""
    if isinstance(specs, str):
        raise TypeError("policies must be a list of names, not one string")
    read = {_name(*parsed): parsed for parsed in map(parse_policy, ("raw", *specs))}
    model = (min(summary_chars, _EVERYTHING), SUMMARY_PROMPT_CHARS) if summary_chars else None
    return {
        name: _at_door(*parsed, model, door) or _compiled(*parsed, prices, summary_prices, model, facts)
        for name, parsed in read.items()
    }


def _at_door(name: str, values: _Values, model: tuple[int, int] | None, door: PlayedDoor) -> Any:
    """The policy of a door with these values; None if no door has them."""
    keep, is_default = values.get("window"), model == (SUMMARY_CHARS, SUMMARY_PROMPT_CHARS)
    is_summed = name == "hybrid" and is_default and values["tail"] == keep and _is_at_doors(name, values)
    if not (name == "break_even" or is_summed) or values["cache_breakpoint"] != "keep":
        return None
    most = values["max_overcost"]
    options = {"keep": keep, **({} if most == "0.1" else {"max_overcost": None if most == "none" else float(most)})}
    return door.door(options, summarizes=is_summed)


def _is_at_doors(name: str, values: _Values) -> bool:
    """Whether this is the hybrid of the doors that have a summarizer; the others are the published one."""
    return name == "hybrid" and values["at"] == values["boundary"] == "break_even"


def parse_policy(spec: str) -> tuple[str, _Values]:
    """Parse a policy into its name and the values of all its keys.

    Args:
        spec: the policy as `replay` takes it.

    Raises:
        TypeError, ValueError: there is no such policy, or a value is wrong; says which.

    Example:
        >>> from recede.costs import parse_policy
        >>> parse_policy("summary:every=30")
        ('summary', {'every': 30, 'tail': 10})
    """
    if not isinstance(spec, str):
        raise TypeError(f"a policy must be a string, not {type(spec).__name__}")
    name, _, rest = spec.strip().partition(":")
    if name not in _POLICIES:
        raise ValueError(f"there is no policy {name!r}{meant(name, _POLICIES) or one_of(_POLICIES)}")
    keys = _POLICIES[name]
    given: _Values = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in keys:
            raise ValueError(f"the policy {name!r} has no key {key!r}{meant(key, keys) or one_of(keys)}")
        given[key] = _value(name, key, value)
    values: _Values = {}
    for key, allowed in keys.items():
        found = given.get(key, allowed.default)
        if found is None:
            needed = ",".join(f"{key}=10" for key, kind in keys.items() if kind.default is None)
            raise ValueError(f"the policy {name!r} needs {key!r}: {name}:{needed}")
        values[key] = found
    if name == "budget" and ("tokens" in given) is ("chars" in given):
        raise ValueError("the policy 'budget' needs 'tokens' or 'chars', and not both: budget:tokens=20000,fill=0.5")
    return name, _checked_hybrid(values, given) if name == "hybrid" else values


def _value(name: str, key: str, value: str) -> int | str:
    least, _, words, is_share = _POLICIES[name][key]
    if value in words:
        return value
    if least is not None and value.isascii() and value.isdigit() and int(value) >= least:
        return int(value)
    if is_share and re.fullmatch(r"[0-9]*\.?[0-9]+", value) and 0 < float(value) <= 1:
        return f"{float(value):g}"
    wanted = [] if least is None else [f"a whole number from {least}"]
    wanted += ["a number above 0 and up to 1"] if is_share else []
    raise ValueError(f"{key!r} of the policy {name!r} must be {' or '.join([*wanted, *words])}, not {value!r}")


def _checked_hybrid(values: _Values, given: _Values) -> _Values:
    at, tail, chunk = values["at"], values["tail"], values["chunk"]
    if isinstance(at, int) and isinstance(tail, int) and at <= tail:
        raise ValueError(f"'at' of the policy 'hybrid' must be more than 'tail' = {tail}, not {at}")
    if chunk and given.setdefault("boundary", "stepped") != "stepped":
        raise ValueError(f"'chunk' of the policy 'hybrid' needs boundary=stepped, not {given['boundary']}")
    boundary = given.get("boundary", "sliding")
    if boundary == "stepped" and not chunk:
        raise ValueError("the policy 'hybrid' with boundary=stepped needs 'chunk'")
    return {**values, "boundary": boundary}


def _name(name: str, values: _Values) -> str:
    said = {key: value for key, value in values.items() if (key, value) not in _UNSAID}
    return ":".join(filter(None, [name, ",".join(f"{key}={value}" for key, value in said.items())]))


def _compiled(
    name: str, values: _Values, prices: Prices, summary_prices: Prices, model: tuple[int, int] | None, facts: CacheFacts
) -> Any:
    goal: str = "mask"
    is_own = name in _MASKS or name == "budget" or _is_at_doors(name, values)
    options: dict[str, Any] = {"keep_results": values.get("window", values.get("keep", _EVERYTHING))}
    boundary, summaries = None, None
    cached, write = float(prices.cached), float(prices.write)
    if name == "budget":
        unit = "tokens" if values["tokens"] else "chars"
        fill = float(values["fill"])
        goal, options = "reduce", {**SESSION_DEFAULTS, "fill": fill, f"max_input_{unit}": values[unit]}
    elif name == "keep_last":
        goal, options = "truncate", {"preserve_recent_raw_turns": values["messages"]}
    elif name == "high_water":
        boundary = name, float(values["chars"]), 0.0
    elif name == "clear_tool_uses":
        options["placeholder"] = _ANTHROPIC_PLACEHOLDER
        # The trigger counts the system prompt and the tools as well.
        chars = facts.chars_per_token * float(values["trigger"]) - facts.system_chars
        boundary = "high_water", max(0.0, chars), facts.chars_per_token * float(values["at_least"])
    elif name == "hybrid" and not is_own:
        options = {"keep_turns": values["window"]}
    if values.get("chunk"):
        options["mask_chunk"] = values["chunk"]
    if name in ("break_even", "budget") or values.get("boundary") == "break_even":
        boundary = "break_even", cached, write
    if name in ("summary", "hybrid") and values.get("at") != "never":
        summaries = _summaries(
            values, (cached, write, float(summary_prices.input), float(summary_prices.output)), model
        )
    more: dict[str, Any] = {}
    if boundary is not None and boundary[0] == "break_even" and name != "budget":
        options["provider"] = _provider(facts)
        more["cache"] = policy_cache(checked_provider("cache", options["provider"]), facts.system_chars)
        options["max_overcost"] = None if values["max_overcost"] == "none" else float(values["max_overcost"])
        options["cold"] = facts.cold_requests()
    pins = {"pins_boundary": goal == "mask" and values.get("cache_breakpoint") == "boundary"}
    unseen = {"masks_unseen": name in _DESIGNS_OF_OTHERS and not is_own} if goal == "mask" else {}
    if name == "clip":
        more["max_result_chars"] = values["chars"]
    if is_own:
        options["placeholder"], more["least_removed"] = PLACEHOLDER, LEAST_REMOVED
    if name == "budget":
        more |= {
            "is_limit": True,
            "counts_reasoning": True,
            "model": model,
            **({} if model is None else {"summary_max_chars": SUMMARY_CHARS}),
        }
    return replay_policy(_engine.engine, goal, options, boundary, summaries, **pins, **unseen, **more)


def _provider(facts: CacheFacts) -> Provider | str:
    """A provider whose cache has this rule; prices are those of the replay."""
    if facts.rule == "entries":
        ttl_seconds = facts.ttl_seconds if isfinite(facts.ttl_seconds) else None
        entries = Provider("entries", cache="entries", min_tokens=facts.min_tokens, ttl_seconds=ttl_seconds)
        return entries._replace(shares_prefixes=facts.shares_prefixes)
    unstepped = "gemini" if isfinite(facts.ttl_seconds) else "ideal"
    return unstepped if facts.rule == "prefix" and not facts.step_tokens else _PROVIDERS[facts.rule]


def _summaries(values: _Values, prices: tuple[float, ...], model: tuple[int, int] | None) -> tuple[Any, ...]:
    """Read when summaries are due, what they cost, how many turns stay, and how large prompts and texts are."""
    tail = min(int(values["tail"]), _EVERYTHING)
    every = values.get("at", values.get("every"))
    if every == "break_even":
        return None, prices, tail, model
    every = min(int(every or 0), _EVERYTHING)
    # The hybrid counts all turns, like its preset; summaries alone count only turns older than the tail.
    first = every if "at" in values else every + tail
    return (first, every), prices, tail, model


def reads_texts(policies: Iterable[str], summary_chars: int = SUMMARY_CHARS) -> bool:
    """Whether a replay reads the text of results, not only their length: with a budget, or the built-in summary.

    Args:
        policies: as for `replay`.
        summary_chars: as for `replay`.

    Raises:
        TypeError, ValueError: there is no such policy, or a value is wrong; says which.

    Example:
        >>> from recede.costs import reads_texts
        >>> reads_texts(["sliding:window=10", "summary:every=30"]), reads_texts(["budget:tokens=20000"])
        (False, True)
    """
    return not summary_chars or any(parse_policy(policy)[0] == "budget" for policy in policies)


def summarizes(policy: str) -> bool:
    name, values = parse_policy(policy)
    return name == "summary" or (name == "hybrid" and values["at"] != "never")


def window_of(policy: str) -> int | None:
    """Return the window of a mask, in results; None if the policy is not a mask or counts turns."""
    found = re.match(rf"(?:{'|'.join(_MASKS)}):window=(\d+)", policy)
    return int(found[1]) if found else None
