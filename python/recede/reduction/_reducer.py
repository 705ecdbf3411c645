"""`HistoryReducer`, the published reducer, which holds its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recede import _engine
from recede.reduction._options import BUDGETS, DESIGN_OPTIONS
from recede.reduction._planning import reduce_bytes, reduce_messages
from recede.reduction._policy import compiled
from recede.reduction._signature import takes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recede._option_types import ReducerOptions
    from recede._report import JsonReduction, Reduction
    from recede.reduction._input import Json


class HistoryReducer:
    """A reducer to a budget with fixed options, checked once; by default with a sliding boundary.

    A history within the budget is unchanged. Over it old observations are masked; if that is not enough, everything
    outside the window becomes a summary; if that is not enough, it is dropped. Each call may give other options, in a
    mapping or by name; docs/coming-from.md lists them. That a budget is missing is reported by the call.

    Example:
        >>> import recede
        >>> reducer = recede.designs.HistoryReducer(max_input_tokens=8_000)
        >>> reducer.reduce([{"role": "user", "content": "hello"}]).reduced
        False
        >>> reducer.reduce([{"role": "user", "content": "hello"}], {"max_input_chars": 5}).reduced
        False
        >>> reducer.reduce([{"role": "user", "content": "hello"}], max_input_chars=5).reduced
        False
        >>> reducer.reduce_json(b"[]").json
        b'[]'
    """

    __slots__ = ("_options",)

    @takes(DESIGN_OPTIONS, "reduce")
    def __init__(self, **options: Unpack[ReducerOptions]) -> None:
        self._options: dict[str, Any] = dict(options)
        # A budget may come with each call.
        has_budget = any(options.get(name) is not None for name in BUDGETS)
        compiled(_engine.engine, "reduce", self._options if has_budget else {**self._options, "max_input_chars": 0})

    @takes(DESIGN_OPTIONS, "reduce")
    def reduce(
        self, messages: list[Any] | Json, options: Mapping[str, Any] | None = None, **named: Unpack[ReducerOptions]
    ) -> Reduction:
        """Reduce a list of messages, or JSON; options of the call take precedence over those of the constructor."""
        if isinstance(messages, (bytes, bytearray, memoryview, str)):
            return self.reduce_json(messages, options, **named)
        merged = self._merged(options, named)
        return reduce_messages(compiled(_engine.engine, "reduce", merged), messages, merged)

    @takes(DESIGN_OPTIONS, "reduce")
    def reduce_json(
        self, data: Json, options: Mapping[str, Any] | None = None, **named: Unpack[ReducerOptions]
    ) -> JsonReduction:
        """Reduce a JSON array of messages, or a request; likewise."""
        merged = self._merged(options, named)
        return reduce_bytes(compiled(_engine.engine, "reduce", merged), data, merged)

    def _merged(self, options: Mapping[str, Any] | None, named: Any) -> dict[str, Any]:
        if options is not None:
            if not hasattr(options, "keys"):
                raise TypeError(f"options must be a mapping of names to values, not {type(options).__name__}")
            named = {**options, **named}
        held = self._options
        if not named.keys().isdisjoint(BUDGETS):  # the other unit may be held
            held = {name: value for name, value in held.items() if name not in BUDGETS}
        return {**held, **named}

    def __repr__(self) -> str:
        return f"HistoryReducer({', '.join(f'{name}={value!r}' for name, value in self._options.items())})"
