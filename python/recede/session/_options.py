"""The options of a `History`: checked, and as they are saved."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from recede import _engine
from recede._bodies import unique
from recede._errors import TranscriptError
from recede.providers import (
    Provider,
    checked_provider,
    provider_of_model,
    saved_provider,
    settled,
    takes_marks,
    with_rule,
)
from recede.reduction._kinds import FLAG, optional_function, optional_summarizer, whole_number
from recede.reduction._policy import block_policy, image_chars_of, own_policy, refuse_unknown
from recede.reduction._share import check_calibrate, in_tokens

if TYPE_CHECKING:
    from recede.types import Summarizer

_FORMAT = 1
# Given again when a session is loaded.
_NEVER_SAVED = {"store", "token_counter", "on_move", "summarizer"}
_DESIGN = "design"  # marks the options of a `Budget`
_OWN = {"summarizer": None, "calibrate": None, "recall": None, "store": None, "on_move": None}


class HistoryOptions:
    """The options of a history, except its store.

    Attributes:
        given: the options by name, as they are saved.
        policy: that of the core.
        threshold_tokens, image_chars: the checked numbers.
        counter, summarizer: the caller's functions.
        counts: whether there is a counter.
        drops: whether views may drop messages.
        calibrates: whether a token counts as many characters as it had in reported requests.
        is_of_response: whether a response has named the provider.
    """

    def __init__(self, policy: Any, given: dict[str, Any], *, threshold_tokens: int = 0, drops: bool) -> None:
        self.policy, self.given = policy, given
        self.threshold_tokens, self.drops = threshold_tokens, drops
        self.image_chars = image_chars_of(given)
        self.counter = optional_function("token_counter", given.get("token_counter"))
        self.summarizer: Summarizer | None = optional_summarizer("summarizer", given.get("summarizer"))
        self.counts = self.counter is not None
        self.calibrates = bool(given.get("calibrate"))
        self.is_of_response = False

    @classmethod
    def of(cls, *, calibrate: bool = False, recall: bool = False, **options: Any) -> HistoryOptions:
        """The options of recede's own door."""
        FLAG.check("recall", recall)
        summarizer = options.pop("summarizer", None)
        refuse_unknown(options, _OWN)
        options = {**in_tokens(options)}
        policy = own_policy(_engine.engine, options, reduces=True, summarizer=summarizer, recall=recall)
        check_calibrate(calibrate, options)
        has_limit = options.get("max_input_tokens") is not None
        flags = {name: True for name, flag in (("calibrate", calibrate), ("recall", recall)) if flag}
        given = {**settled(options), **flags, **({} if summarizer is None else {"summarizer": summarizer})}
        return cls(policy, given, drops=has_limit or summarizer is not None)

    @classmethod
    def of_budget(
        cls, *, keep: int, threshold_tokens: int = 0, max_input_tokens: int | None = None, **options: Any
    ) -> HistoryOptions:
        """The options of a published `Budget`, whose rule may mask what no request has shown."""
        given = {_DESIGN: "budget", "keep": keep, "threshold_tokens": threshold_tokens, **options}
        whole_number()("threshold_tokens", threshold_tokens)
        if max_input_tokens is not None:
            given["max_input_tokens"] = max_input_tokens
            threshold_tokens = min(threshold_tokens, max_input_tokens)
        options = {name: value for name, value in options.items() if name != "token_counter"}
        chunk = options.pop("mask_chunk", None)
        policy = block_policy(_engine.engine, keep, chunk, options, max_tokens=max_input_tokens)
        return cls(policy, given, threshold_tokens=threshold_tokens, drops=False)

    def for_model(self, model: Any) -> HistoryOptions | None:
        """These options with the facts of a known model; None if they name a provider, or the model is not known."""
        provider = provider_of_model(model)
        if provider is None or _DESIGN in self.given or self.given.get("provider", "auto") != "auto":
            return None
        return self._with(provider)

    def verifying(self, model: Any, name: Callable[[], str]) -> HistoryOptions | None:
        """These options for a model that verifies reasoning, with the prices they have; None if they name a provider.

        `name` gives that of the provider that is assumed.
        """
        provider, before = provider_of_model(model), self.given.get("provider", "auto")
        is_open = _DESIGN not in self.given and (before == "auto" or self.is_of_response)
        if provider is None or not provider.verifies_reasoning or not is_open:
            return None
        later = with_rule(Provider.of(name()) if before == "auto" else before, provider)
        return None if later is None else self._with(later)

    def _with(self, provider: Provider) -> HistoryOptions:
        options = self.of(**{**self.given, "provider": provider})
        options.is_of_response = True
        return options

    def as_stored(self, tag: bytes | None) -> HistoryOptions:
        """These options, with the provider of a stored session unless they name one."""
        stored = {} if tag is None else saved_options(tag)
        if "provider" in self.given or stored.get("provider", "auto") == "auto" or _DESIGN in {**self.given, **stored}:
            return self
        return self.of(**{**self.given, "provider": checked_provider("provider", stored["provider"])})

    @property
    def pins(self) -> bool:
        """Whether views of histories that take cache marks have one at the boundary."""
        default = "ideal" if _DESIGN in self.given else "auto"
        return takes_marks(self.given.get("provider", default))

    @classmethod
    def saved(cls, options: dict[str, Any]) -> HistoryOptions:
        design = options.pop(_DESIGN, None)
        if design not in (None, "budget"):
            raise ValueError(f"there is no design {design!r}")
        return cls.of(**options) if design is None else cls.of_budget(**options)

    def tag(self) -> bytes:
        return json.dumps({"recede_history": _FORMAT, "options": _as_json(self.given)}, sort_keys=True).encode()


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
        if name not in _NEVER_SAVED
    }


def saved_options(tag: bytes | None) -> dict[str, Any]:
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


def refuse_other_stores(store: Any) -> None:
    """Refuse what a history cannot be stored in."""
    from recede.store._turn_store import TurnStore  # only if a store is used

    if not isinstance(store, TurnStore):
        opened = f": recede.store.TurnStore({str(store)!r}) opens one" if isinstance(store, (str, os.PathLike)) else ""
        raise TypeError(f"store must be a TurnStore or None, not {type(store).__name__}{opened}")
    if len(store) or (store.count_records("session") and _engine.engine.stored_options(store._store) is None):
        raise ValueError(f"{store.path} holds the turns of a manager: give the history a store of its own")
