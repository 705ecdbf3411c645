"""Columns of text: converted for the engine, and back to their own type."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any


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
