"""The policies of a replay, as people spell them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from recede import _engine
from recede._cost import Prices
from recede._policy import replay_policy

__all__ = ["DEFAULT_POLICIES", "compiled_policies", "is_optimum", "replay_policies", "window_of"]

_EVERYTHING = 1 << 60

# name -> (the goal of its Policy, key -> (the option that it sets, its least value)); the last have no public option
_POLICIES: dict[str, tuple[str, dict[str, tuple[str, int]]]] = {
    "raw": ("mask", {}),
    "sliding": ("mask", {"window": ("keep_results", 0)}),
    "stepped": ("mask", {"window": ("keep_results", 0), "chunk": ("mask_chunk", 1)}),
    "break_even": ("mask", {"window": ("keep_results", 0)}),
    "high_water": ("mask", {"window": ("keep_results", 0), "chars": ("high_water_chars", 0)}),
    "optimum": ("mask", {"window": ("keep_results", 0)}),
    "keep_last": ("truncate", {"messages": ("preserve_recent_raw_turns", 0)}),
}


def replay_policies(
    *, windows: Iterable[int] = (5, 10, 20, 58), chunks: Iterable[int] = (1, 10), keep_last: Iterable[int] = (20,)
) -> tuple[str, ...]:
    """The policies that a replay compares, as a grid of windows and chunks.

    Args:
        windows: how many of the newest results a mask leaves raw. The defaults are those of the research: 10 was
            best for SWE-agent, 58 for OpenHands (JetBrains, "The Complexity Trap", 2025), 5 and 20 were compared
            with 10.
        chunks: by how many results the boundary moves at once; 1 is the sliding mask.
        keep_last: how many messages are left where the older ones are dropped.

    Returns:
        The names, for `replay`: raw, a mask for each chunk and window, break-even for each window, and keep-last.

    Raises:
        TypeError: one of them is no collection.

    Example:
        >>> import recede
        >>> recede.replay_policies(windows=[10], chunks=[1, 5], keep_last=[])
        ('raw', 'sliding:window=10', 'stepped:window=10,chunk=5', 'break_even:window=10')
    """
    windows = list(windows)
    masks = [
        f"sliding:window={window}" if chunk == 1 else f"stepped:window={window},chunk={chunk}"
        for chunk in chunks
        for window in windows
    ]
    paying = [f"break_even:window={window}" for window in windows]
    return ("raw", *masks, *paying, *(f"keep_last:messages={count}" for count in keep_last))


DEFAULT_POLICIES = replay_policies()
"""The policies that `replay` compares where none are named."""


def compiled_policies(specs: Iterable[str], prices: Prices) -> tuple[list[str], list[Any]]:
    """Their names, spelt in one way, and the engine's Policies; raw first, none twice."""
    if isinstance(specs, str):
        raise TypeError("policies must be a list of names, not one string")
    parsed = dict(_parsed(spec, prices) for spec in ("raw", *specs))
    return list(parsed), list(parsed.values())


def _parsed(spec: str, prices: Prices) -> tuple[str, Any]:
    if not isinstance(spec, str):
        raise TypeError(f"a policy must be a string, not {type(spec).__name__}")
    name, _, rest = spec.strip().partition(":")
    if name not in _POLICIES:
        raise ValueError(f"there is no policy {name!r}{_hint(name, list(_POLICIES))}")
    goal, keys = _POLICIES[name]
    options: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in keys:
            raise ValueError(f"the policy {name!r} has no key {key!r}{_hint(key, list(keys))}")
        option, least = keys[key]
        if not (value.isascii() and value.isdigit() and int(value) >= least):
            raise ValueError(f"{key!r} of the policy {name!r} must be a whole number from {least}, not {value!r}")
        options[option] = int(value)
    missing = [key for key, (option, _) in keys.items() if option not in options]
    if missing:
        raise ValueError(f"the policy {name!r} needs {missing[0]!r}: {name}:{','.join(f'{key}=10' for key in keys)}")
    spelt = ",".join(f"{key}={options[option]}" for key, (option, _) in keys.items())
    boundary = None
    if name in ("break_even", "optimum"):
        boundary = name, float(prices.cached), float(prices.write)
    elif name == "high_water":
        boundary = name, float(options.pop("high_water_chars")), 0.0
    if goal == "mask":
        options = {"keep_results": _EVERYTHING, **options}
    return f"{name}:{spelt}" if spelt else name, replay_policy(_engine.engine, goal, options, boundary)


def _hint(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(known)}" if known else "; it has none"


def is_optimum(policy: str) -> bool:
    """Whether it is the policy that knows the future."""
    return policy.startswith("optimum:")


def window_of(policy: str) -> str:
    """What `optimum` is spelt with, too."""
    return policy.partition(":")[2].partition(",")[0]
