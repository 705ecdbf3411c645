"""The rows of a column, each reduced by itself: a view, figures, or an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from recede import _engine
from recede._bodies import history_of
from recede._errors import TranscriptError
from recede._report import JsonReduction
from recede.arrow._columns import pyarrow
from recede.reduction._planning import reduce_bytes
from recede.reduction._unrecognized import unrecognized

# By their numbers; the last one is that of a history that was not changed.
_STAGES = ("masking", "summarization", "fallback", None)
_FLAGS = (False, True, None)


class RowError(NamedTuple):
    """The error of a row."""

    kind: str
    words: str


class Rows(NamedTuple):
    """The results for the rows of an array.

    Attributes:
        views: the views as large_binary; None if they were not wanted.
        figures: an array by name, null where there is an error or no text.
        errors: what is wrong, by row.
    """

    views: Any
    figures: dict[str, Any]
    errors: dict[int, RowError]

    def columns(self, names: Iterable[str]) -> list[Any]:
        pa, length = pyarrow(), len(self.figures["turns"])
        found = {name: [None] * length for name in RowError._fields}
        for row, error in self.errors.items():
            for name, value in error._asdict().items():
                found[name][row] = value
        errors = {"error_kind": pa.array(found["kind"], pa.string()), "error": pa.array(found["words"], pa.string())}
        return [errors.get(name, self.figures.get(name)) for name in names]


def unrecognized_error(data: bytes) -> RowError | None:
    """Make the error of a valid history in which nothing is recognized."""
    words = unrecognized(history_of(data))
    return None if words is None else RowError("empty", words)


def failed(error: Exception) -> RowError:
    if isinstance(error, TranscriptError):
        return RowError(error.kind, str(error))
    return RowError("failed", f"{type(error).__name__}: {error}")


def reduced_rows(array: Any, policy: Any, *, with_views: bool, threads: int) -> Rows:
    pa, core = pyarrow(), _engine.engine
    bits, figures, faults, *views = core.reduce_column(*array.__arrow_c_array__(), policy, threads, with_views)
    errors = {row: failed(fault) for row, fault in faults}
    validity = bytearray(bits)
    *figures, (_, unrecognized) = figures
    for row, is_unrecognized in enumerate(memoryview(unrecognized).cast("q")):
        if not is_unrecognized:
            continue
        error = unrecognized_error(array[row].as_py())
        if error is not None:
            errors[row] = error
            validity[row // 8] &= ~(1 << row % 8)
    nulls = pa.py_buffer(bytes(validity))

    def made(type_: Any, *buffers: bytes) -> Any:
        return pa.Array.from_buffers(type_, len(array), [nulls, *map(pa.py_buffer, buffers)])

    arrays = {name: made(pa.int64(), values) for name, values in figures}
    arrays["within_limit"] = pa.array(_FLAGS, pa.bool_()).take(arrays["within_limit"])
    arrays["reduction_stage"] = pa.array(_STAGES, pa.string()).take(arrays["reduction_stage"])
    return Rows(made(pa.large_binary(), *views) if with_views else None, arrays, errors)


_COUNTED = {
    **dict.fromkeys(("turns", "chars_before", "chars_after", "masked_count", "dropped_count"), "int64"),
    "within_limit": "bool_",
    "reduction_stage": "string",
}
"""The figures of a `Reduction` that a row has, with their types."""


def _figure(name: str, row: tuple[int, JsonReduction]) -> Any:
    return getattr(row[1], name)


def counted_rows(array: Any, policy: Any, options: Mapping[str, Any]) -> Rows:
    """Reduce each row of a large_binary array with the `token_counter` of the options."""
    pa = pyarrow()
    found: list[tuple[int, JsonReduction] | None] = []
    errors = {}
    for row, data in enumerate(array.to_pylist()):
        found.append(None)
        if data is None:
            continue
        try:
            reduction, messages = reduce_bytes(policy, data, options), history_of(data)
        except Exception as error:
            errors[row] = failed(error)
            continue
        words = unrecognized(messages)
        if words is None:
            found[row] = len(messages), reduction
        else:
            errors[row] = RowError("empty", words)

    def column(type_: str, value: Callable[[tuple[int, JsonReduction]], Any]) -> Any:
        return pa.array([None if one is None else value(one) for one in found], getattr(pa, type_)())

    figures = {name: column(type_, partial(_figure, name)) for name, type_ in _COUNTED.items()}
    figures["messages"] = column("int64", lambda one: one[0])
    return Rows(column("large_binary", lambda one: one[1].json), figures, errors)
