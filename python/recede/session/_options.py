"""The options of a `History`: checked, and as they are saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recede import _engine
from recede._errors import TranscriptError
from recede._strict import unique
from recede.providers import saved_provider
from recede.reduction._options import BUDGETS, MIN_KEEP, OPTIONS, SESSION_DEFAULTS, optional_function, whole_number
from recede.reduction._policy import IS_OFF, arrival_policy, block_policy, breaking_even, compiled, image_chars_of

if TYPE_CHECKING:
    from recede.types import Summarizer, TokenCounter

__all__ = ["HistoryOptions", "refuse_other_stores", "saved_options"]

_FORMAT = 1
# With `clip_at` nothing is masked, and texts are measured in characters.
_KEEP = 4  # the newest results that stay raw without a budget
_NOT_CLIPPED = (
    *BUDGETS, "threshold_tokens", "max_view_tokens", "token_counter", "boundary", "mask_chunk", "keep_by_tool"
)  # fmt: skip
# Given again when a session is loaded.
_NEVER_SAVED = {"store", "token_counter", "on_move"}


class HistoryOptions:
    """What a history is made with, except its store.

    Attributes:
        given: the options by name.
        engine, policy: the core, and its Policy.
        threshold_tokens, image_chars: the checked numbers.
        counter, summarizer: the caller's functions.
        counts: whether there is a counter.
        has_budget: whether there is a budget.
        calibrates: whether a token counts as many characters as it had in reported requests.
        pins_boundary: whether views have marks at the boundary.
    """

    def __init__(
        self,
        *,
        keep: int = _KEEP,
        threshold_tokens: int = 0,
        max_view_tokens: int | None = None,
        clip_at: int | None = None,
        calibrate: bool = False,
        recall_handles: bool = False,
        token_counter: TokenCounter | None = None,
        masks_unseen: bool = False,
        **options: Any,
    ) -> None:
        whole_number()("threshold_tokens", threshold_tokens)
        own = {"keep": keep, "threshold_tokens": threshold_tokens, "recall_handles": recall_handles}
        if max_view_tokens is not None:
            own["max_view_tokens"] = whole_number()("max_view_tokens", max_view_tokens)
            threshold_tokens = min(threshold_tokens, max_view_tokens)
        self.calibrates = _calibrates(calibrate, token_counter, max_view_tokens, options)
        if clip_at is not None:
            own["clip_at"] = OPTIONS["clip_results"].check("clip_at", clip_at)
            given = {"threshold_tokens": threshold_tokens or None, "max_view_tokens": max_view_tokens, **options}
            given["token_counter"] = token_counter
            for name in _NOT_CLIPPED:
                if given.get(name) is not None:
                    raise TypeError(
                        f"give clip_at or {name}: with clip_at results are cut, in characters, and none is masked"
                    )
        if calibrate:
            own["calibrate"] = True
        if masks_unseen:  # of a `Budget`, whose published rule this is
            own["masks_unseen"] = True
        self.given = {**own, **options}
        if not isinstance(recall_handles, bool):
            raise TypeError(f"recall_handles must be True or False, not {type(recall_handles).__name__}")
        self.counter = optional_function("token_counter", token_counter)
        self.counts = token_counter is not None
        options = breaking_even(options)
        self.engine = _engine.engine
        self.summarizer: Summarizer | None = options.get("summarizer")
        self.has_budget = has_budget = any(options.get(name) is not None for name in BUDGETS)
        if has_budget and keep != _KEEP:
            raise TypeError("keep is for a History without a budget: with one, give keep_results=N")
        if clip_at is not None:
            self.policy = arrival_policy(self.engine, own["clip_at"], options, recall=recall_handles)
        elif has_budget:
            if threshold_tokens or max_view_tokens is not None:
                name = "threshold_tokens" if threshold_tokens else "max_view_tokens"
                raise TypeError(f"{name} is for a History without a budget")
            options = {**SESSION_DEFAULTS, **options, "token_counter": token_counter}
            self.policy = compiled(self.engine, "reduce", options, recall=recall_handles)
        else:
            chunk = options.pop("mask_chunk", None)
            least = 0 if options.get("boundary") == "break_even" else MIN_KEEP  # that of the published designs
            limits = (max_view_tokens, least)
            self.policy = block_policy(
                self.engine, keep, chunk, options, recall_handles, *limits, masks_unseen=masks_unseen
            )
        self.pins_boundary = options.get("cache_breakpoint") == "boundary"
        self.image_chars = image_chars_of(options)
        self.threshold_tokens = threshold_tokens

    def tag(self) -> bytes:
        """The key of a snapshot, which is resumed only by a history with the same one."""
        tag = {"recede_history": _FORMAT, "options": _as_json(self.given), "counts": self.counts}
        if IS_OFF:  # what was sent raw is planned again without it
            tag["off"] = True
        return json.dumps(tag, sort_keys=True).encode()


def _calibrates(calibrate: Any, token_counter: Any, max_view_tokens: int | None, options: Mapping[str, Any]) -> bool:
    if not isinstance(calibrate, bool):
        raise TypeError(f"calibrate must be True or False, not {type(calibrate).__name__}")
    if calibrate and token_counter is not None:
        raise TypeError("give calibrate or a token_counter, which counts tokens by itself")
    if calibrate and max_view_tokens is None and options.get("max_input_tokens") is None:
        raise TypeError("calibrate is for a budget in tokens: give max_input_tokens or max_view_tokens")
    return calibrate


def _as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without functions, with lists for sets and tuples."""
    options = dict(options)
    if "provider" in options:
        options["provider"] = saved_provider(options["provider"])
    return {
        name: list(value)
        if isinstance(value, (set, frozenset, tuple))
        else dict(value)
        if isinstance(value, Mapping)
        else value
        for name, value in options.items()
        if not callable(value) and not callable(getattr(value, "generate", None))
    }


def saved_options(tag: bytes | None) -> dict[str, Any]:
    """The options of an untrusted saved session."""
    try:
        saved = unique(tag or b"")
    except ValueError:
        raise TranscriptError("session") from None
    version, options = saved.get("recede_history"), saved.get("options")
    if type(version) is not int or version != _FORMAT:
        raise TranscriptError("session" if version is None else "format", field="recede_history")
    if not isinstance(options, dict) or options.keys() & _NEVER_SAVED:
        raise TranscriptError("session", field="options")
    return options


def refuse_other_stores(store: Any, engine: Any) -> None:
    """Refuse what a history cannot be stored in."""
    from recede.store._turn_store import TurnStore  # only if a store is used

    if not isinstance(store, TurnStore):
        raise TypeError(f"store must be a TurnStore or None, not {type(store).__name__}")
    tag = engine.stored_options(store._store)
    if len(store) or (tag is not None and b"recede_history" not in tag):
        raise ValueError(f"{store.path} holds the turns of a manager: give the history a store of its own")
