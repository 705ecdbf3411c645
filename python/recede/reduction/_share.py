"""A limit that is a share of the model's window, as a number of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from recede.providers import window_tokens
from recede.reduction._kinds import FLAG
from recede.reduction._options import OPTIONS

_MOST_CHARS = 100  # of a model's name in the log


def has_limits(options: Mapping[str, Any]) -> bool:
    """Whether the size of a request matters to these options."""
    return options.get("max_input_tokens") is not None or bool(options.get("trigger_tokens"))


def check_calibrate(calibrate: bool, options: Mapping[str, Any]) -> None:
    """Refuse to calibrate where nothing counts tokens, or a function of the caller does."""
    FLAG.check("calibrate", calibrate)
    if calibrate and options.get("token_counter") is not None:
        raise TypeError("give calibrate or a token_counter, which counts tokens by itself")
    if calibrate and not has_limits(options):
        raise TypeError("calibrate is for a limit or a trigger: give max_input_tokens or trigger_tokens")


def is_share(options: Mapping[str, Any]) -> bool:
    """Whether the limit is a share of the model's window."""
    return isinstance(options.get("max_input_tokens"), float)


def unlimited(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop a share, once it is checked: of the window of a model that is not known yet."""
    if not is_share(options):
        return options
    OPTIONS["max_input_tokens"].check("max_input_tokens", options["max_input_tokens"])
    return {**options, "max_input_tokens": None}


def in_tokens(options: Mapping[str, Any], model: Any = None, *, is_request: bool = False) -> Mapping[str, Any]:
    """Replace a share of the window by that many tokens, of the model in `provider`, or else of a request's `model`.

    Where the window is not known, a request has no limit, which is logged once for each model.

    Raises:
        ValueError: nobody knows the window, and there is no request that could say it.
    """
    if not is_share(options):
        return options
    share = OPTIONS["max_input_tokens"].check("max_input_tokens", options["max_input_tokens"])
    window = window_tokens(options.get("provider"), model)
    if window is None and not is_request:
        raise ValueError(
            f"max_input_tokens={share} is a share of the model's window, which is not known here: name the model, as "
            'in provider="claude-sonnet-5-5", or give a number of tokens'
        )
    if window is None:
        _say_unknown(share, model[:_MOST_CHARS] if isinstance(model, str) and model else None)
        return {**options, "max_input_tokens": None}
    tokens = max(1, int(window * share))
    return {**options, "max_input_tokens": tokens, "trigger_tokens": min(options.get("trigger_tokens", 0), tokens)}


@lru_cache(maxsize=64)
def _say_unknown(share: float, model: str | None) -> None:
    import logging  # lazily: it takes longer to import than the rest

    whose = "a request names no model" if model is None else f"the window of {model!r} is not known"
    logging.getLogger("recede").warning(
        "%s, of which max_input_tokens=%s is a share: its requests are sent without a limit; give a number of tokens, "
        "or provider= the name of a model with the same window",
        whose,
        share,
    )
