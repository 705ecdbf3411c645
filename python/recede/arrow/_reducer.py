"""`Reducer` and `Stats`: the view and the figures of each row. Their base is the loop over chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from recede import _engine
from recede.arrow._columns import as_texts, counted_rows, pyarrow, reduced_rows, view_type
from recede.reduction._kinds import whole_number
from recede.reduction._options import OPTIONS
from recede.reduction._policy import own_policy
from recede.reduction._signature import takes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recede.types import Options


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


_ERRORS = {"error_kind": "string", "error": "string"}


class Reducer(RowOperator):
    """Replaces each history of a column by its view.

    A row that is no history becomes null, with what is wrong in the columns ``error_kind`` (the `kind` of a
    `TranscriptError`, ``empty`` or ``failed``) and ``error``; nothing raises for a row. Null rows stay null.

    Added columns, after the prefix: ``messages``, ``turns``, ``chars_before``, ``chars_after``, ``masked_count``,
    ``dropped_count``, ``within_limit``, ``reduction_stage``, ``error_kind`` and ``error``. The views are large_string,
    or large_binary for binary columns.

    Args:
        column: the column with the histories, each a JSON array of messages or a request body, as text or as bytes.
        prefix: what the names of the added columns begin with.
        threads: how many threads a batch is spread over.
        **options: as for `recede.reduce`. A ``token_counter`` is slower: it is called with the GIL, so rows are reduced
            one by one in the calling thread. If it raises, that is the error of the row, ``failed``.

    Raises:
        TypeError, ValueError: when it is called, the column is missing or holds no text.

    Example:
        >>> import pyarrow as pa
        >>> from recede.arrow import Reducer
        >>> history = '[{"role":"tool","tool_call_id":"1","content":"%s"},{"role":"assistant"}]' % ("x" * 900)
        >>> table = pa.table({"id": [7, 8, 9], "messages": [history, '[{"role"', None]})
        >>> reduced = Reducer(keep=0, boundary="sliding")(table)
        >>> reduced["messages"][0].as_py()[35:-22]
        '"content":"[old tool output cleared to save context]"}'
        >>> reduced["recede_chars_after"].to_pylist(), reduced["recede_error_kind"].to_pylist()
        ([41, None, None], [None, 'eof', None])
    """

    adds: ClassVar[Mapping[str, str]] = {
        "messages": "int64",
        "turns": "int64",
        "chars_before": "int64",
        "chars_after": "int64",
        "masked_count": "int64",
        "dropped_count": "int64",
        "within_limit": "bool_",
        "reduction_stage": "string",
        **_ERRORS,
    }
    replaces_column = True

    @takes(OPTIONS)
    def __init__(
        self, column: str = "messages", *, prefix: str = "recede_", threads: int = 1, **options: Unpack[Options]
    ) -> None:
        super().__init__(column, prefix, threads)
        self._options = options
        self._policy()  # raises

    def _policy(self) -> Any:
        return own_policy(_engine.engine, self._options, reduces=True)

    def made(self, texts: Any, schema: Any) -> list[Any]:
        if self._options.get("token_counter") is None:
            rows = reduced_rows(texts, self._policy(), with_views=True, threads=self.threads)
        else:
            rows = counted_rows(texts, self._policy(), self._options)
        return [rows.views.view(schema.field(self.column).type), *rows.columns(self.adds)]


class Stats(RowOperator):
    """Replaces a column of histories by their sizes, and those of their masked views.

    Columns, after the prefix: ``messages``, ``turns``, ``raw_chars``, ``observations``, ``observation_chars``,
    ``masked_count``, ``masked_view_chars``, ``error_kind`` and ``error``, as for `Reducer`. The column is left out.

    Args:
        column: the column with the histories, as for `Reducer`.
        prefix: what the names of the added columns begin with.
        threads: how many threads a batch is spread over.
        keep: how many of the newest results a masked view keeps, if everything older is masked.

    Example:
        >>> import pyarrow as pa
        >>> from recede.arrow import Stats
        >>> history = '[{"role":"tool","tool_call_id":"1","content":"%s"}]' % ("x" * 900)
        >>> Stats(prefix="", keep=0)(pa.table({"id": [7], "messages": [history]})).to_pylist()[0]["raw_chars"]
        900
    """

    adds: ClassVar[Mapping[str, str]] = {
        "messages": "int64",
        "turns": "int64",
        "raw_chars": "int64",
        "observations": "int64",
        "observation_chars": "int64",
        "masked_count": "int64",
        "masked_view_chars": "int64",
        **_ERRORS,
    }
    _figures: ClassVar[Mapping[str, str]] = {"raw_chars": "chars_before", "masked_view_chars": "chars_after"}

    def __init__(self, column: str = "messages", *, prefix: str = "recede_", threads: int = 1, keep: int = 10) -> None:
        super().__init__(column, prefix, threads)
        self.keep = keep
        self._policy()  # raises

    def _policy(self) -> Any:
        return own_policy(_engine.engine, {"keep": self.keep, "boundary": "sliding"}, reduces=False)

    def made(self, texts: Any, schema: Any) -> list[Any]:
        rows = reduced_rows(texts, self._policy(), with_views=False, threads=self.threads)
        return rows.columns([self._figures.get(name, name) for name in self.adds])
