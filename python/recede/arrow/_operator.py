"""The base of all operators: the column that they read, the columns that they add, the loop over chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from recede.arrow._columns import as_texts, pyarrow, view_type
from recede.reduction._kinds import whole_number


class Operator:
    """A callable that takes and returns a table or a record batch. Instances are picklable."""

    def __init__(self, column: str, prefix: str, threads: int) -> None:
        for name, value in (("column", column), ("prefix", prefix)):
            if not isinstance(value, str):
                raise TypeError(f"{name} must be a string, not {type(value).__name__}")
        self.column = column
        self.prefix = prefix
        self.threads = whole_number(1)("threads", threads)

    def field_of(self, name: str, kind: str) -> Any:
        """Make a field that is added, with a type of pyarrow."""
        return pyarrow().field(self.prefix + name, getattr(pyarrow(), kind)())

    def place_of(self, schema: Any, name: str) -> int:
        """Return the index of a column.

        Raises:
            ValueError: there is none, or more than one.
        """
        place: int = schema.get_field_index(name)
        if place < 0:
            raise ValueError(f"there must be one column {name!r}; there are {', '.join(schema.names)}")
        return place

    def joined(self, kept: list[Any], added: list[Any]) -> Any:
        """Join two schemas, without metadata, since that describes the columns of the input."""
        names = {field.name for field in kept}
        for field in added:
            if field.name in names:
                raise ValueError(f"there already is a column {field.name!r}; choose another prefix")
        return pyarrow().schema([*kept, *added])


class RowOperator(Operator):
    """An operator that adds columns, one row for each row."""

    adds: ClassVar[Mapping[str, str]] = {}
    replaces_column = False  # or drops it

    def schema(self, input_schema: Any) -> Any:
        """Return the schema of the result for batches of `input_schema`, for engines that need it in advance.

        Raises:
            TypeError, ValueError: the column is missing or holds no text, or a name is taken.
        """
        place = self.place_of(input_schema, self.column)
        fields = list(input_schema)
        column = pyarrow().field(self.column, view_type(self.column, fields[place].type))
        fields[place : place + 1] = [column] if self.replaces_column else []
        return self.joined(fields, [self.field_of(*added) for added in self.adds.items()])

    def __call__(self, batch: Any) -> Any:
        """Apply the operator to a `pyarrow.Table` or `RecordBatch`; returns one of the same kind."""
        pa, is_table = pyarrow(), checked_batch(batch)
        schema, place = self.schema(batch.schema), self.place_of(batch.schema, self.column)
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


def checked_batch(batch: Any) -> bool:
    """Check that the value is a table (True) or a record batch (False)."""
    pa = pyarrow()
    if not isinstance(batch, (pa.Table, pa.RecordBatch)):
        raise TypeError(f"batch must be a pyarrow.Table or RecordBatch, not {type(batch).__name__}")
    return isinstance(batch, pa.Table)
