"""What is measured of recede: the published reducer to a budget, which drops evenly, and masking alone."""

from __future__ import annotations

from typing import Any

from recede.designs import HistoryReducer, mask_observations, mask_observations_json

__all__ = ["mask_observations", "mask_observations_json", "reduce", "reduce_json"]

_REDUCER = HistoryReducer(fill=0.9, max_input_chars=0)


def reduce(messages: list[Any], **options: Any) -> Any:
    """The view of a list, and its figures."""
    return _REDUCER.reduce(messages, **options)


def reduce_json(data: bytes | str, **options: Any) -> Any:
    """The view of a serialized history."""
    return _REDUCER.reduce_json(data, **options)
