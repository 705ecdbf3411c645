"""`Replay`: what each policy would have used, in columns that add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from recede.arrow._columns import as_texts, pyarrow, view_type
from recede.arrow._operator import Operator, checked_batch
from recede.arrow._rows import RowError, failed, unrecognized_error
from recede.costs._cache import Cache
from recede.costs._compare import ReplayUsage
from recede.costs._models import model_prices
from recede.costs._policies import DEFAULT_POLICIES
from recede.costs._prices import SUMMARY_CHARS, Prices, Usage
from recede.costs._replay import SYSTEM_CHARS, AskedReplay

__all__ = ["Replay", "usage_by_group"]


class Replay(Operator):
    """Replaces histories by what they would have used under each policy, added up by group.

    The result has a row for each group of the batch and policy: the columns `by`, then, after the prefix, ``policy``,
    ``sessions`` and the fields of `Usage` (``requests``, ``sent_chars``, …). These add up: an engine sums them by
    policy and group over all batches. A history that cannot be replayed is a row of its own: its policy is null,
    and ``error_kind`` and ``error`` say why. Null rows are left out.

    Args:
        column: the column with the histories, as for `Reducer`.
        policies: the policies, as for `recede.costs.replay`; for a suggestion those of `recede.costs.suggest_policies`.
        by: the columns by which usage is added up; with one that is different in each row, usage by session.
        model: a column with the names of models, which is one of `by`: each is replayed at its own prices and with the
            cache of its provider; None, or an unknown model: at `prices` and with `cache`.
        prefix: what the names of the added columns begin with.
        threads: how many threads a batch is spread over.
        prices: as for `recede.costs.replay`. Those of a comparison can be chosen later; only policies that break even
            depend on them.
        cache: as for `recede.costs.replay`.
        system_chars: as for `recede.costs.replay`.
        summary_prices: as for `recede.costs.replay`.
        summary_chars: as for `recede.costs.replay`.

    Raises:
        TypeError, ValueError: an option is wrong; or, when it is called, a column is missing.

    Example:
        >>> import pyarrow as pa
        >>> from recede import costs
        >>> from recede.arrow import Replay, usage_by_group
        >>> history = '[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]'
        >>> table = pa.table({"task": ["a", "a", "b"], "messages": [history, history, "[1]"]})
        >>> used = Replay(policies=["sliding:window=10"], by=["task"], prefix="")(table)
        >>> for row in used.select(["task", "policy", "sessions", "sent_chars", "error_kind"]).to_pylist():
        ...     print(*row.values())
        a raw 2 24004 None
        a sliding:window=10 2 24004 None
        b None 1 None message
        >>> costs.compare_costs(usage_by_group(used, prefix="").values())[1].policy
        'sliding:window=10'
    """

    def __init__(
        self,
        column: str = "messages",
        *,
        policies: Iterable[str] = DEFAULT_POLICIES,
        by: Sequence[str] = (),
        model: str | None = None,
        prefix: str = "recede_",
        threads: int = 1,
        prices: Prices = Prices(),  # noqa: B008 - an immutable tuple
        cache: Cache | str = "anthropic",
        system_chars: int = SYSTEM_CHARS,
        summary_prices: Prices | None = None,
        summary_chars: int = SUMMARY_CHARS,
    ) -> None:
        """See the class."""
        super().__init__(column, prefix, threads)
        if isinstance(by, str) or not all(isinstance(name, str) for name in by):
            raise TypeError("by must be a list of names of columns")
        if model is not None and model not in by:
            raise ValueError(f"the column of models must be one of by: by=[{model!r}]")
        self.by, self.model = tuple(by), model
        self.options: dict[str, Any] = {
            "prices": prices,
            "cache": cache,
            "times": None,
            "system_chars": system_chars,
            "summary_prices": summary_prices,
            "summary_chars": summary_chars,
            "calibration": None,
        }
        self.policies = tuple(AskedReplay.of(policies, **self.options).policies)

    def schema(self, input_schema: Any) -> Any:
        """The schema of the result for batches of `input_schema`, for engines that want it beforehand.

        Raises:
            TypeError, ValueError: a column is missing or of a wrong type, or a name is taken.
        """
        view_type(self.column, input_schema.field(self.place_of(input_schema, self.column)).type)
        kept = [input_schema.field(self.place_of(input_schema, name)) for name in self.by]
        for field in kept:
            if pyarrow().types.is_nested(field.type):
                raise TypeError(f"the column {field.name!r} of by must hold plain values, not {field.type}")
        counts = [self.field_of(name, "int64") for name in ("sessions", *Usage._fields)]
        words = [self.field_of(name, "string") for name in ("policy", "error_kind", "error")]
        return self.joined(kept, [words[0], *counts, *words[1:]])

    def __call__(self, batch: Any) -> Any:
        """Replay the histories of a `pyarrow.Table` or `RecordBatch`; returns one of the same kind."""
        pa, is_table, schema = pyarrow(), checked_batch(batch), self.schema(batch.schema)
        table = batch if is_table else pa.Table.from_batches([batch])
        groups, first_rows = _groups([table.column(name) for name in self.by], table.num_rows)
        models = table.column(self.model).to_pylist() if self.model else [None] * table.num_rows
        sums: dict[tuple[int, str], tuple[int, Usage]] = {}
        rows: list[tuple[Any, ...]] = []  # the group, the policy, sessions, usage, error
        for group, found in zip(groups, self._replayed(table.column(self.column), models), strict=True):
            if isinstance(found, RowError):
                rows.append((group, None, 1, *[None] * len(Usage._fields), *found))
                continue
            for policy, usage in found.items():
                sessions, total = sums.get((group, policy), (0, Usage.total([])))
                sums[group, policy] = sessions + 1, Usage.total([total, usage])
        added_up = [(*key, sessions, *usage, None, None) for key, (sessions, usage) in sums.items()]
        fields = list(schema)[len(self.by) :]
        places, *columns = zip(*added_up, *rows, strict=True) if added_up or rows else [()] * (1 + len(fields))
        taken = pa.array([first_rows[group] for group in places], pa.int64())
        arrays = [table.column(name).combine_chunks().take(taken) for name in self.by]
        arrays += [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
        return type(batch).from_arrays(arrays, schema=schema)

    def _replayed(self, column: Any, models: list[str | None]) -> Iterator[dict[str, Usage] | RowError]:
        """What each row would have used; nothing of null rows."""
        asked = {name: self._asked(name) for name in set(models)}

        def replayed(row: tuple[Any, str | None]) -> dict[str, Usage] | RowError:
            text, model = row[0].as_py(), row[1]
            if text is None:
                return {}
            try:
                used = asked[model].replay_json(text).usage.usage
                error = None if used["raw"].answer_chars else unrecognized_error(text)
                return dict(used) if error is None else error
            except Exception as error:
                return failed(error)

        texts = (text for chunk in column.chunks for text in as_texts(chunk))
        rows = zip(texts, models, strict=True)
        with ExitStack() as stack:
            if self.threads == 1:
                yield from map(replayed, rows)
            else:
                yield from stack.enter_context(ThreadPoolExecutor(self.threads)).map(replayed, rows)

    def _asked(self, model: str | None) -> AskedReplay:
        found = None if model is None else model_prices(model)
        own = {} if found is None else {"prices": found.prices, "cache": found.provider}
        return AskedReplay.of(self.policies, **{**self.options, **own})


def _groups(columns: list[Any], length: int) -> tuple[list[int], list[int]]:
    """The group of each row by the values of these columns, and the first row of each group."""
    codes = [column.combine_chunks().dictionary_encode("encode").indices.to_pylist() for column in columns]
    keys = list(zip(*codes, strict=True)) if codes else [()] * length
    numbers: dict[tuple[int, ...], int] = {}
    first_rows = []
    for row, key in enumerate(keys):
        if key not in numbers:
            numbers[key] = len(numbers)
            first_rows.append(row)
    return [numbers[key] for key in keys], first_rows


def usage_by_group(
    table: Any,
    *,
    by: Sequence[str] = (),
    model: str | None = None,
    prefix: str = "recede_",
    prices: Prices = Prices(),  # noqa: B008 - an immutable tuple
    summary_prices: Prices | None = None,
) -> dict[tuple[Any, ...], ReplayUsage]:
    """Add up the results of `Replay`, by group and policy, for `recede.costs.compare_costs` and `Suggestion.of_usage`.

    Sums of sessions have the right costs; the mean, the median and the worst share of a comparison are then those of
    the groups. For those of sessions, replay by a column that is different in each row, and pass this function one
    batch after the other.

    Args:
        table: a table or a batch of results, or of sums of them.
        by: the columns that make a group; fewer than those of the replay add up further.
        model: one of `by` with the names of models, which are priced as in `recede.costs.MODELS`.
        prefix: the prefix of the replay.
        prices: the prices of the groups without a known model.
        summary_prices: the prices of the summarizing model; None: the same.

    Returns:
        The usage of each group by its values of `by`; rows with an error are left out.

    Raises:
        KeyError: a column is missing.

    Example:
        >>> import pyarrow as pa
        >>> from recede.arrow import Replay, usage_by_group
        >>> history = '[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]'
        >>> used = Replay(policies=[])(pa.table({"messages": [history, history]}))
        >>> usage_by_group(used)[()].usage["raw"][:5]
        (2, 24004, 0, 24004, 10)
    """
    groups: dict[tuple[Any, ...], dict[str, Usage]] = {}
    names = [prefix + name for name in Usage._fields]
    columns = (table.column(name).to_pylist() for name in (*by, prefix + "policy", *names))
    for row in zip(*columns, strict=True):
        key, policy, usage = row[: len(by)], row[len(by)], Usage(*row[len(by) + 1 :])
        if policy is not None:
            of_group = groups.setdefault(key, {})
            of_group[policy] = Usage.total([of_group[policy], usage]) if policy in of_group else usage
    return {key: ReplayUsage(found, _prices(key, by, model, prices), summary_prices) for key, found in groups.items()}


def _prices(key: tuple[Any, ...], by: Sequence[str], model: str | None, prices: Prices) -> Prices:
    found = None if model is None else model_prices(key[list(by).index(model)] or "")
    return prices if found is None else found.prices
