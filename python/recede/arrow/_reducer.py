"""`Reducer` and `Stats`: the view of each row, and its figures."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Literal

from recede import _engine
from recede.arrow._operator import RowOperator
from recede.arrow._rows import reduced_rows
from recede.providers import Provider
from recede.reduction._options import BUDGETS
from recede.reduction._policy import compiled
from recede.reduction._signature import runs

__all__ = ["Reducer", "Stats"]

_ERRORS = {"error_kind": "string", "error": "string"}


class Reducer(RowOperator):
    """Replaces each history of a column by its view.

    A row that is no history becomes null, with what is wrong in the columns ``error_kind`` (the `kind` of a
    `TranscriptError`, ``empty`` or ``failed``) and ``error``; nothing raises for a row. Null rows stay null.

    Added columns, after the prefix: ``messages``, ``turns``, ``chars_before``, ``chars_after``, ``masked_count``,
    ``dropped_count``, ``within_budget``, ``reduction_stage``, ``error_kind`` and ``error``. The views are large_string,
    or large_binary for binary columns.

    Args:
        column: the column with the histories, each a JSON array of messages or a request body, as text or as bytes.
        prefix: what the names of the added columns begin with.
        threads: how many threads a batch is spread over.
        The options are those of `reduce`, or without a budget those of `mask_observations`. The boundary slides by
            default.

    Raises:
        TypeError, ValueError: an option is wrong; or, when it is called, the column is missing or holds no text.

    Example:
        >>> import pyarrow as pa
        >>> from recede.arrow import Reducer
        >>> history = '[{"role":"tool","tool_call_id":"1","content":"%s"},{"role":"assistant"}]' % ("x" * 90)
        >>> table = pa.table({"id": [7, 8, 9], "messages": [history, '[{"role"', None]})
        >>> reduced = Reducer(keep_results=0)(table)
        >>> reduced["messages"][0].as_py()
        '[{"role":"tool","tool_call_id":"1","content":"[observation masked — 90 chars]"},{"role":"assistant"}]'
        >>> reduced["recede_chars_after"].to_pylist(), reduced["recede_error_kind"].to_pylist()
        ([31, None, None], [None, 'eof', None])
    """

    adds: ClassVar[Mapping[str, str]] = {
        "messages": "int64",
        "turns": "int64",
        "chars_before": "int64",
        "chars_after": "int64",
        "masked_count": "int64",
        "dropped_count": "int64",
        "within_budget": "bool_",
        "reduction_stage": "string",
        **_ERRORS,
    }
    replaces_column = True

    @runs(lambda self, column="messages", *, prefix="recede_", threads=1, **options: (
        self._hold(column, prefix, threads, options)
    ))  # fmt: skip
    def __init__(
        self, column: str = "messages", *, prefix: str = "recede_", threads: int = 1,
        max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = 0.9,
        clip_results: int | None = None, enabled: bool = True, preserve_recent_raw_turns: int = 4,
        keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
        keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
        keep_errors: bool = False, keep_matching: Collection[str] = (), mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding", provider: str | Provider = "ideal",
        cold: bool | Collection[int] = False, max_overcost: float | None = 0.1,
        cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2,
        observation_masking: bool = True, max_observation_chars: int | None = None, placeholder: str | None = None,
        min_masked_chars: int = 0, image_chars: int = 6400, strict_pairs: bool = False, summary_max_chars: int = 1400,
        summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
    ) -> None:  # fmt: skip
        """The options are those of `reduce`."""

    def _hold(self, column: str, prefix: str, threads: int, options: dict[str, Any]) -> None:
        super().__init__(column, prefix, threads)
        has_budget = any(options.get(name) is not None for name in BUDGETS)
        self._goal = "reduce" if has_budget else "mask"
        self._options = options
        compiled(_engine.engine, self._goal, options)

    def made(self, texts: Any, schema: Any) -> list[Any]:
        rows = reduced_rows(texts, self._goal, self._options, with_views=True, threads=self.threads)
        return [rows.views.view(schema.field(self.column).type), *rows.columns(self.adds)]


class Stats(RowOperator):
    """Replaces a column of histories by their sizes, and those of their masked views.

    Columns, after the prefix: ``messages``, ``turns``, ``raw_chars``, ``observations``, ``observation_chars``,
    ``masked_count``, ``masked_view_chars``, ``error_kind`` and ``error``, as for `Reducer`. The column is left out.

    Args:
        column: the column with the histories, as for `Reducer`.
        prefix: what the names of the added columns begin with.
        threads: how many threads a batch is spread over.
        keep_results: how many of the newest results a masked view keeps.

    Raises:
        TypeError, ValueError: as for `Reducer`.

    Example:
        >>> import pyarrow as pa
        >>> from recede.arrow import Stats
        >>> history = '[{"role":"tool","tool_call_id":"1","content":"%s"}]' % ("x" * 90)
        >>> Stats(prefix="", keep_results=0)(pa.table({"id": [7], "messages": [history]})).to_pylist()[0]["raw_chars"]
        90
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

    def __init__(
        self, column: str = "messages", *, prefix: str = "recede_", threads: int = 1, keep_results: int = 4
    ) -> None:
        """See the class."""
        super().__init__(column, prefix, threads)
        self._options = {"keep_results": keep_results}
        compiled(_engine.engine, "mask", self._options)

    def made(self, texts: Any, schema: Any) -> list[Any]:
        rows = reduced_rows(texts, "mask", self._options, with_views=False, threads=self.threads)
        return rows.columns([self._figures.get(name, name) for name in self.adds])
