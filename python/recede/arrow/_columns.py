"""Columns of text, converted for the engine, and back to their own type; and their rows, each reduced by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

from recede import _engine
from recede._bodies import history_of
from recede._errors import TranscriptError
from recede.reduction._planning import reduce_bytes
from recede.reduction._unrecognized import unrecognized


def pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("recede.arrow needs pyarrow: pip install 'recede[arrow]'") from error
    return pyarrow


def _stored(type_: Any) -> Any:
    """Return the type of the values themselves, without dictionary, run ends, or extension."""
    types = pyarrow().types
    if isinstance(type_, pyarrow().BaseExtensionType):
        return _stored(type_.storage_type)
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return _stored(type_.value_type)
    return type_


def view_type(column: str, type_: Any) -> Any:
    """Return the type of views for a column type: a large one, since offsets of 32 bits overflow at 2 GB a batch.

    Raises:
        TypeError: the column is no text.
    """
    pa, stored = pyarrow(), _stored(type_)
    types = pa.types
    if types.is_binary(stored) or types.is_large_binary(stored) or types.is_binary_view(stored):
        return pa.large_binary()
    is_text = types.is_string(stored) or types.is_large_string(stored) or types.is_string_view(stored)
    if is_text or types.is_null(stored):
        return pa.large_string()
    nested = types.is_nested(stored)
    advice = "; convert it first: recede.arrow.to_json(column)" if nested else ""
    raise TypeError(f"the column {column!r} must hold text (string or binary), not {type_}{advice}")


def as_texts(array: Any) -> Any:
    """Convert texts to one large_binary array. Strings are not copied: the engine alone decodes each row."""
    pa = pyarrow()
    if isinstance(array, pa.ExtensionArray):
        return as_texts(array.storage)
    if pa.types.is_run_end_encoded(array.type):
        return as_texts(pa.compute.run_end_decode(array))
    if pa.types.is_dictionary(array.type):
        return as_texts(array.dictionary_decode())
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array.cast(pa.large_binary())


def to_json(column: Any) -> Any:
    """Write a column of nested values (lists of structs, such as ``list<struct<role, content>>``) as JSON text.

    It is lossy: a struct has all keys of the column, so those whose value is null are left out, also where the original
    had a null; times, decimals and bytes become text, and NaN a null.

    Args:
        column: a `pyarrow.Array` or `ChunkedArray`.

    Returns:
        A large_string array, null where the row is null.

    Raises:
        ImportError: pyarrow is missing.

    Example:
        >>> import pyarrow as pa
        >>> from recede.arrow import to_json
        >>> column = pa.array([[{"role": "user", "content": "hi"}, {"role": "assistant", "refusal": "no"}]])
        >>> to_json(column)[0].as_py()
        '[{"role":"user","content":"hi"},{"role":"assistant","refusal":"no"}]'
    """
    pa = pyarrow()
    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)
    rows = column.to_pylist(maps_as_pydicts="lossy")
    rows = [None if row is None else encoder.encode(_without_nulls(row)) for row in rows]
    return pa.array(rows, pa.large_string())


def _without_nulls(value: Any) -> Any:
    """Drop keys with null values; numbers that JSON cannot express become null."""
    if isinstance(value, dict):
        held = {key: _without_nulls(one) for key, one in value.items()}
        return {key: one for key, one in held.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _plain(value: Any) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, (bytes, memoryview)) else str(value)


# By their numbers; the last one is that of a history that was not changed.
_STAGES = ("masking", "summarization", "fallback", None)
_FLAGS = (False, True, None)


class RowError(NamedTuple):
    kind: str
    words: str


class Rows(NamedTuple):
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
    schema, chunk = array.__arrow_c_array__()
    bits, figures, faults, *views = core.reduce_column(schema, chunk, policy, threads, with_views)
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
