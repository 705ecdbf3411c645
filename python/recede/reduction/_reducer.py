"""`HistoryReducer`, the published reducer, which holds its options; and its stages alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recede import _engine
from recede.reduction._options import BUDGETS, DESIGN_OPTIONS
from recede.reduction._planning import reduce_bytes, reduce_messages
from recede.reduction._policy import block_policy, compiled
from recede.reduction._signature import takes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recede._report import JsonReduction, Reduction
    from recede.reduction._input import Json
    from recede.types import BlockOptions, MaskOptions, ReducerOptions, SummaryOptions, TruncateOptions


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


_MISSING: Any = object()


@takes(DESIGN_OPTIONS, "mask")
def mask_observations(  # noqa: D417 - more is an error
    messages: list[Any] = _MISSING, *more: Any, **options: Unpack[MaskOptions]
) -> Reduction:
    """Stage 1 of `HistoryReducer` alone: mask observations older than the window; by default with a sliding boundary.

    Each is masked as soon as it is old; with ``boundary="break_even"`` when masking pays off under a prompt cache.

    Args:
        messages: as for `reduce`.
        **options: those of `HistoryReducer`; one of `keep_messages`, `keep_turns` and `keep_results` is required.

    Returns:
        A `Reduction`; if nothing was masked, its messages are the caller's list.

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: an option is wrong, or there is no window.

    Example:
        >>> import recede
        >>> history = [{"role": "tool", "tool_call_id": "1", "content": "line\\n" * 50},
        ...            {"role": "assistant", "content": "Done."}]
        >>> recede.designs.mask_observations(history, keep_results=0).messages[0]["content"]
        '[observation masked — 250 chars]'
    """
    # The research code has a function of this name: mask_observations(turns, current_turn, m=10).
    if more or messages is _MISSING or not options.keys().isdisjoint(("turns", "current_turn", "m")):
        raise TypeError(
            "name the window: mask_observations(messages, keep_results=N); of turns and a current_turn, "
            "use recede.designs.apply_observation_masking(trajectory, current_turn, window_size_m)"
        )
    return reduce_messages(compiled(_engine.engine, "mask", options), messages, options)


@takes(DESIGN_OPTIONS, "mask")
def mask_observations_json(data: Json, **options: Unpack[MaskOptions]) -> JsonReduction:
    """`mask_observations` for a serialized history; by default with a sliding boundary.

    Example:
        >>> import recede
        >>> data = b'[{"role":"tool","tool_call_id":"1","content":"%s"},{"role":"assistant"}]' % (b"x" * 90)
        >>> recede.designs.mask_observations_json(data, keep_results=0).json.decode()
        '[{"role":"tool","tool_call_id":"1","content":"[observation masked — 90 chars]"},{"role":"assistant"}]'
    """
    return reduce_bytes(compiled(_engine.engine, "mask", options), data, options)


@takes(DESIGN_OPTIONS, "block")
def mask_old_observations(
    messages: list[Any], keep: int = 4, mask_chunk: int | None = None, **options: Unpack[BlockOptions]
) -> list[Any]:
    """The block masker, by default with a sliding boundary: replace all but the newest `keep` results by a line each.

    Args:
        messages: as for `reduce`.
        keep: `keep_results` under its published name: the newest N results stay raw, at least 3.
        mask_chunk: the boundary moves by N results at once.
        **options: those of `HistoryReducer`.

    Returns:
        The view; the input list if nothing was masked.

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: an option is wrong.

    Example:
        >>> import recede
        >>> history = [{"role": "tool", "tool_call_id": str(n), "content": "line\\n" * 50} for n in range(4)]
        >>> recede.designs.mask_old_observations(history, keep=3)[0]["content"]
        '[observation masked — 51 lines omitted]'
    """
    return reduce_messages(block_policy(_engine.engine, keep, mask_chunk, options), messages, {}).messages


@takes(DESIGN_OPTIONS, "block")
def mask_old_observations_json(
    data: Json, keep: int = 4, mask_chunk: int | None = None, **options: Unpack[BlockOptions]
) -> bytes:
    """`mask_old_observations` for a serialized history; by default with a sliding boundary.

    Example:
        >>> import recede
        >>> data = b"[]"
        >>> recede.designs.mask_old_observations_json(data) is data
        True
    """
    return reduce_bytes(block_policy(_engine.engine, keep, mask_chunk, options), data, {}).json


def mask_observation(text: str, *, max_observation_chars: int | None = None, placeholder: str | None = None) -> str:
    """Mask one observation as `reduce` would.

    Args:
        text: the observation.
        max_observation_chars: cut it to this length instead of replacing it whole.
        placeholder: a template, as in `reduce`; ``{turn}`` and ``{number}`` are 0, ``{tool}`` and ``{id}`` are empty.

    Returns:
        The placeholder; the dispatch blocks, if the text has some; the text itself if it is a placeholder
        or would not get shorter.

    Raises:
        TypeError, ValueError: an option is wrong.

    Example:
        >>> import recede
        >>> recede.designs.mask_observation("x" * 4200)
        '[observation masked — 4200 chars]'
        >>> recede.designs.mask_observation("ok")
        'ok'
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, not {type(text).__name__}")
    options = {"max_observation_chars": max_observation_chars, "placeholder": placeholder, "keep_results": 0}
    return _engine.engine.mask_observation(text, compiled(_engine.engine, "mask", options))


@takes(DESIGN_OPTIONS, "summarize")
def summarize_history(messages: list[Any], **options: Unpack[SummaryOptions]) -> Reduction:
    """Stage 2 alone: replace everything outside the window by one summary; pairs are kept whole.

    Args:
        messages: as for `reduce`.
        **options: those of `HistoryReducer`.

    Returns:
        A `Reduction`. If there is nothing to summarize, the summarizer fails, or the summary is not shorter
        than what it replaces, it has the caller's list, and ``reduction_stage`` None.

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: an option is wrong.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "Port the parser. " * 40},
        ...            {"role": "assistant", "content": "Done."}]
        >>> result = recede.designs.summarize_history(
        ...     history, preserve_recent_raw_turns=1, summarizer=lambda messages, previous: "The parser is ported.")
        >>> result.messages[0]
        {'role': 'system', 'content': 'Conversation summary:\\nThe parser is ported.'}
    """
    return reduce_messages(compiled(_engine.engine, "summarize", options), messages, options)


@takes(DESIGN_OPTIONS, "truncate")
def truncate_history(messages: list[Any], **options: Unpack[TruncateOptions]) -> Reduction:
    """Stage 3 alone: keep the system messages, the first user message, and the window with its pairs.

    Args:
        messages: as for `reduce`.
        **options: those of `HistoryReducer`.

    Returns:
        A `Reduction` with ``reduction_stage`` "fallback".

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: an option is wrong.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": str(number)} for number in range(9)]
        >>> [m["content"] for m in recede.designs.truncate_history(history, preserve_recent_raw_turns=2).messages]
        ['0', '7', '8']
    """
    return reduce_messages(compiled(_engine.engine, "truncate", options), messages, options)
