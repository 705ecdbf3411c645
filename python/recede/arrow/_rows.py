"""The rows of a column, each reduced by itself: its view, its figures, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from recede._errors import TranscriptError
from recede.arrow._columns import pyarrow
from recede.reduction._input import history_of
from recede.reduction._planning import reduce_bytes
from recede.reduction._unrecognized import unrecognized

__all__ = ["RowError", "Rows", "failed", "reduced_rows", "unrecognized_error"]


class RowError(NamedTuple):
    """What is wrong with a row."""

    kind: str
    words: str


class Rows(NamedTuple):
    """The answers for the rows of an array.

    Attributes:
        views: the views as large_binary; None if they were not wanted.
        figures: an array by name, null where there is an error or no text.
        errors: what is wrong, by row.
    """

    views: Any
    figures: dict[str, Any]
    errors: dict[int, RowError]

    def columns(self, names: Iterable[str]) -> list[Any]:
        """The arrays of these names."""
        pa, length = pyarrow(), len(self.figures["turns"])
        found = {name: [None] * length for name in RowError._fields}
        for row, error in self.errors.items():
            for name, value in error._asdict().items():
                found[name][row] = value
        errors = {"error_kind": pa.array(found["kind"], pa.string()), "error": pa.array(found["words"], pa.string())}
        return [errors.get(name, self.figures.get(name)) for name in names]


def unrecognized_error(data: bytes) -> RowError | None:
    """The error of a valid history of which nothing is recognized."""
    words = unrecognized(history_of(data))
    return None if words is None else RowError("empty", words)


def failed(error: Exception) -> RowError:
    """An exception as a value."""
    if isinstance(error, TranscriptError):
        return RowError(error.kind, str(error))
    return RowError("failed", f"{type(error).__name__}: {error}")


_FIGURES = ("turns", "chars_before", "chars_after", "masked_count", "dropped_count", "within_budget", "reduction_stage")


def reduced_rows(array: Any, goal: str, options: Mapping[str, Any], *, with_views: bool, threads: int) -> Rows:
    """Reduce each row of a large_binary array."""
    views: list[bytes | None] = []
    names = (*_FIGURES, "messages", "observations", "observation_chars")
    figures: dict[str, list[Any]] = {name: [] for name in names}
    errors = {}
    for row, scalar in enumerate(array):
        data, answer, messages = scalar.as_py(), None, 0
        try:
            if data is not None:
                answer = reduce_bytes(goal, data, options)
                messages = len(history_of(data))
                error = None if answer.chars_before else unrecognized_error(data)
                if error is not None:
                    answer, errors[row] = None, error
        except Exception as error:
            errors[row] = failed(error)
        views.append(None if answer is None else answer.json)
        tools = () if answer is None else answer.tools.values()
        found = {name: getattr(answer, name, None) for name in _FIGURES}
        found["messages"] = messages
        found["observations"] = sum(tool.observations for tool in tools)
        found["observation_chars"] = sum(tool.chars for tool in tools)
        for name, values in figures.items():
            values.append(None if answer is None else found[name])
    pa = pyarrow()
    types = {"reduction_stage": pa.string(), "within_budget": pa.bool_()}
    arrays = {name: pa.array(values, types.get(name, pa.int64())) for name, values in figures.items()}
    return Rows(pa.array(views, pa.large_binary()) if with_views else None, arrays, errors)
