"""The base of all operators: the column that they read, the columns that they add, the loop over chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from recede.arrow._columns import as_texts, pyarrow, view_type
from recede.reduction._kinds import whole_number


class RowOperator:
    """A callable that takes a table or a record batch, and returns one with more columns. Instances are picklable."""

    adds: ClassVar[Mapping[str, str]] = {}  # the columns, with their types of pyarrow
    replaces_column = False  # or drops it

    def __init__(self, column: str, prefix: str, threads: int) -> None:
        for name, value in (("column", column), ("prefix", prefix)):
            if not isinstance(value, str):
                raise TypeError(f"{name} must be a string, not {type(value).__name__}")
        self.column = column
        self.prefix = prefix
        self.threads = whole_number(1)("threads", threads)

    def schema(self, input_schema: Any) -> Any:
        """Return the schema of the result for batches of `input_schema`, for engines that need it in advance.

        It has no metadata, since that describes the columns of the input.

        Raises:
            TypeError, ValueError: the column is missing or holds no text, or a name is taken.
        """
        pa, place, fields = pyarrow(), self._place(input_schema), list(input_schema)
        column = pa.field(self.column, view_type(self.column, fields[place].type))
        fields[place : place + 1] = [column] if self.replaces_column else []
        taken = {field.name for field in fields}
        for name, kind in self.adds.items():
            if self.prefix + name in taken:
                raise ValueError(f"there already is a column {self.prefix + name!r}; choose another prefix")
            fields.append(pa.field(self.prefix + name, getattr(pa, kind)()))
        return pa.schema(fields)

    def _place(self, schema: Any) -> int:
        place: int = schema.get_field_index(self.column)
        if place < 0:  # there is none, or more than one
            raise ValueError(f"there must be one column {self.column!r}; there are {', '.join(schema.names)}")
        return place

    def __call__(self, batch: Any) -> Any:
        """Apply the operator to a `pyarrow.Table` or `RecordBatch`; returns one of the same kind."""
        pa = pyarrow()
        if not isinstance(batch, (pa.Table, pa.RecordBatch)):
            raise TypeError(f"batch must be a pyarrow.Table or RecordBatch, not {type(batch).__name__}")
        is_table, schema, place = isinstance(batch, pa.Table), self.schema(batch.schema), self._place(batch.schema)
        column = batch.column(place)
        parts = [self.made(as_texts(chunk), schema) for chunk in (column.chunks if is_table else [column])]
        columns = list(batch.columns)
        types = [schema.field(place).type] if self.replaces_column else []
        types += [schema.field(self.prefix + name).type for name in self.adds]
        made: list[Any] = []
        for number, type_ in enumerate(types):
            arrays = [part[number] for part in parts]
            made.append(pa.chunked_array(arrays, type_) if is_table else arrays[0])
        columns[place : place + 1] = [made.pop(0)] if self.replaces_column else []
        return type(batch).from_arrays([*columns, *made], schema=schema)

    def made(self, texts: Any, schema: Any) -> list[Any]:
        """Make the arrays of the result: the column if `schema` still has it, then the added columns, in order."""
        raise NotImplementedError
