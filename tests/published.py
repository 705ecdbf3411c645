"""The planner with every option that it has, as tests of rules call it: `recede` itself offers fewer at each door.

Besides those of the published reducer there are `cache_breakpoint`, whether views have marks at the boundary
("boundary") or not ("keep"), whatever the provider and the shape; `marks_elsewhere`, the marks around a list; and
`verifies_reasoning`, whether the model does.
A session takes `least_removed`: 64 at recede's own doors.
"""

from __future__ import annotations

from typing import Any

import recede
from recede import _engine
from recede._report import JsonReduction, Reduction
from recede.reduction._kinds import MIN_KEEP
from recede.reduction._options import BUDGETS, SESSION_DEFAULTS
from recede.reduction._planning import reduce_bytes, reduce_messages
from recede.reduction._policy import _policy
from recede.session._options import HistoryOptions

_FILL = {"fill": 0.9}


def policy_of(
    goal: str, options: dict[str, Any], *, recall: bool = False, engine: Any = None, **parameters: Any
) -> Any:
    options = dict(options)
    pins = options.pop("cache_breakpoint", "keep") == "boundary"
    parameters = {"max_result_chars": options.pop("max_result_chars", None), **parameters}
    marks = options.pop("marks_elsewhere", 2)
    verifies = options.pop("verifies_reasoning", False)
    parameters = {"pins_boundary": pins, "terms_by_shape": [], "marks_elsewhere": marks, **parameters}
    parameters["verifies_reasoning"] = verifies
    return _policy(engine or _engine.engine, goal, options, recall, **parameters)


def reduce(messages: Any, **options: Any) -> Reduction:
    """All stages, by a budget; what is dropped leaves room."""
    return reduce_messages(policy_of("reduce", {**_FILL, **options}), messages, options)


def reduce_json(data: Any, **options: Any) -> JsonReduction:
    return reduce_bytes(policy_of("reduce", {**_FILL, **options}), data, options)


def mask_observations(messages: Any, **options: Any) -> Reduction:
    """Stage 1 alone, as recede's own doors mask."""
    return reduce_messages(policy_of("mask", breaking_even(options), masks_unseen=False), messages, options)


def mask_observations_json(data: Any, **options: Any) -> JsonReduction:
    return reduce_bytes(policy_of("mask", breaking_even(options), masks_unseen=False), data, options)


def breaking_even(options: dict[str, Any]) -> dict[str, Any]:
    """The options where the boundary is the break-even one by default; `mask_chunk` alone still means stepped."""
    if "boundary" in options or options.get("mask_chunk") is not None:
        return dict(options)
    return {**options, "boundary": "break_even"}


class History(recede.History):
    """A session with the options of `reduce` here if it has a budget, else of the block masker."""

    def __init__(self, *, store: Any = None, on_move: Any = None, **options: Any) -> None:
        self._begin(self._checked(options), store, on_move)

    @classmethod
    def from_messages(cls, messages: Any, **options: Any) -> History:
        history = cls(**options)
        history.extend(messages)
        return history

    @classmethod
    def from_json(cls, data: Any, **options: Any) -> History:
        history = cls(**options)
        for message in recede.History.from_json(data):
            history.append(message)
        return history

    @staticmethod
    def _checked(options: dict[str, Any]) -> HistoryOptions:
        given = dict(options)
        keep, recall = options.pop("keep", 4), options.pop("recall", False)
        threshold, limit = options.pop("threshold_tokens", 0), options.pop("max_view_tokens", None)
        cut, unseen = options.pop("max_result_chars", None), options.pop("masks_unseen", False)
        removed, blocks = options.pop("least_removed", None), options.pop("keeps_dispatch", True)
        options.pop("calibrate", None)
        drops = any(options.get(name) is not None for name in BUDGETS)
        options = breaking_even(options)
        if drops:
            own = {"max_result_chars": cut, "least_removed": removed, "is_limit": True, "keeps_dispatch": blocks}
            own["ask_summary"] = options.get("summarizer") is not None
            policy = policy_of("reduce", {**SESSION_DEFAULTS, **options}, recall=recall, **own)
        else:
            options.pop("token_counter", None)
            least = 0 if options.get("boundary") == "break_even" else MIN_KEEP
            assert keep >= least
            rule: dict[str, Any] = {"keep_results": keep}
            rule["max_cost"] = None if limit is None else 4 * limit
            rule |= {"masks_unseen": unseen, "max_result_chars": cut}
            policy = policy_of("block", options, recall=recall, **rule)
        threshold = threshold if limit is None else min(threshold, limit)
        return HistoryOptions(policy, given, threshold_tokens=threshold, drops=drops)
