"""The rows of a column, each reduced by itself: a view, figures, or an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from recede import _engine
from recede._bodies import history_of
from recede._errors import TranscriptError
from recede.arrow._columns import pyarrow
from recede.reduction._planning import reduce_bytes
from recede.reduction._unrecognized import unrecognized

# By their numbers; the last one is that of a history that was not changed.
_STAGES = ("masking", "summarization", "fallback", None)
_FLAGS = (False, True, None)


class RowError(NamedTuple):
    kind: str
    words: str


class Rows(NamedTuple):
    """The results for the rows of an array."""

    views: Any  # as large_binary; None if they were not wanted
    figures: dict[str, Any]  # an array by name, null where there is an error or no text
    errors: dict[int, RowError]  # what is wrong, by row

    def columns(self, names: Iterable[str]) -> list[Any]:
        pa, length = pyarrow(), len(self.figures["turns"])
        found = {name: [None] * length for name in RowError._fields}
        for row, error in self.errors.items():
            for name, value in error._asdict().items():
                found[name][row] = value
        errors = {"error_kind": pa.array(found["kind"], pa.string()), "error": pa.array(found["words"], pa.string())}
        return [errors.get(name, self.figures.get(name)) for name in names]


def failed(error: Exception) -> RowError:
    if isinstance(error, TranscriptError):
        return RowError(error.kind, str(error))
    return RowError("failed", f"{type(error).__name__}: {error}")


def reduced_rows(array: Any, policy: Any, *, with_views: bool, threads: int) -> Rows:
    pa, core = pyarrow(), _engine.engine
    bits, figures, faults, *views = core.reduce_column(*array.__arrow_c_array__(), policy, threads, with_views)
    errors = {row: failed(fault) for row, fault in faults}
    validity = bytearray(bits)
    *figures, (_, flags) = figures
    for row, is_unrecognized in enumerate(memoryview(flags).cast("q")):
        if not is_unrecognized:
            continue
        words = unrecognized(history_of(array[row].as_py()))
        if words is not None:
            errors[row] = RowError("empty", words)
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
    "json": "large_binary",
}
"""What a row has of its `Reduction`, with the types."""


def counted_rows(array: Any, policy: Any, options: Mapping[str, Any]) -> Rows:
    """Reduce each row of a large_binary array with the `token_counter` of the options."""
    pa = pyarrow()
    rows: list[dict[str, Any]] = []
    errors = {}
    for row, data in enumerate(array.to_pylist()):
        rows.append({})
        if data is None:
            continue
        try:
            reduction, messages = reduce_bytes(policy, data, options), history_of(data)
        except Exception as error:
            errors[row] = failed(error)
            continue
        words = unrecognized(messages)
        if words is None:
            rows[row] = {"messages": len(messages), **{name: getattr(reduction, name) for name in _COUNTED}}
        else:
            errors[row] = RowError("empty", words)
    types = {"messages": "int64", **_COUNTED}
    columns = {name: pa.array([one.get(name) for one in rows], getattr(pa, kind)()) for name, kind in types.items()}
    return Rows(columns.pop("json"), columns, errors)
