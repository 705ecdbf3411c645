"""The rows of a column, each reduced by itself: its view, its figures, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from recede import _engine
from recede._bodies import history_of
from recede._errors import TranscriptError
from recede.arrow._columns import pyarrow
from recede.reduction._unrecognized import unrecognized

__all__ = ["RowError", "Rows", "failed", "reduced_rows", "unrecognized_error"]


# By their numbers; the last one is that of a history that was not changed.
_STAGES = ("masking", "summarization", "fallback", None)


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


def reduced_rows(array: Any, policy: Any, *, with_views: bool, threads: int) -> Rows:
    """Reduce each row of a large_binary array."""
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
    arrays["within_budget"] = arrays["within_budget"].cast(pa.bool_())
    arrays["reduction_stage"] = pa.array(_STAGES, pa.string()).take(arrays["reduction_stage"])
    return Rows(made(pa.large_binary(), *views) if with_views else None, arrays, errors)
