"""The options as type checkers read them; `recede.reduction._options` declares them, and a contract test compares."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Union

if TYPE_CHECKING:
    from recede.providers import Provider


class Generates(Protocol):
    """A client of a language model with a ``.generate(prompt)``, which returns a text or an object with a ``.text``.

    Example:
        >>> import recede
        >>> class Model:
        ...     def generate(self, prompt: str) -> str:
        ...         return "All is well."
        >>> model: recede.types.Generates = Model()
        >>> manager = recede.designs.HybridContextManager(model)
    """

    def generate(self, prompt: str, /) -> Any:
        """Answer a prompt."""


Summarizer = Union[Callable[[list[Any], Union[str, None]], Any], Callable[[list[Any]], Any], Generates]
"""Called with the unmasked messages to be dropped and the previous summary (or None), with the messages alone, or with
a prompt; returns the new summary, or an object with a ``.text``."""

TokenCounter = Callable[[str], int]
"""Returns the number of tokens of a text."""


class Options(TypedDict, total=False):
    """The one set of options, which every door takes: `reduce`, `History`, `wrap`, `Masker`, adapters, and the proxy.

    Example:
        >>> import recede
        >>> options: recede.types.Options = {"keep": 5, "provider": "openai"}
        >>> recede.reduce([], **options).messages, recede.History(**options).view()
        ([], [])
    """

    keep: int
    keep_by_tool: Mapping[str, int | None] | None
    exclude_tools: Collection[str]
    keep_errors: bool
    keep_matching: Collection[str]
    provider: str | Provider
    boundary: Literal["break_even", "sliding"] | int
    max_overcost: float | None
    cold: bool | Collection[int]
    trigger_tokens: int
    max_input_tokens: int | None
    max_result_chars: int | None
    placeholder: str | None
    token_counter: TokenCounter | None


class BlockOptions(TypedDict, total=False):
    """Options of every masking function of the designs; the block masker, `mask_old_observations`, takes no others."""

    keep_by_tool: Mapping[str, int | None] | None
    exclude_tools: Collection[str]
    keep_errors: bool
    keep_matching: Collection[str]
    boundary: Literal["sliding", "stepped", "break_even"]
    provider: str | Provider
    cold: bool | Collection[int]
    max_overcost: float | None


class TruncateOptions(TypedDict, total=False):
    """The options of `truncate_history`."""

    preserve_recent_raw_turns: int
    keep_messages: int | None
    keep_turns: int | None
    keep_results: int | None
    image_chars: int


class SummaryOptions(TruncateOptions, total=False):
    """The options of `summarize_history`."""

    summarizer: Summarizer | None
    summary_max_chars: int
    summary_role: Literal["system", "developer", "user", "assistant"] | None


class MaskOptions(BlockOptions, total=False):
    """The options of `recede.designs.mask_observations`."""

    keep_messages: int | None
    keep_turns: int | None
    keep_results: int | None
    mask_chunk: int | None
    max_observation_chars: int | None
    placeholder: str | None
    min_masked_chars: int
    image_chars: int


class ReducerOptions(MaskOptions, total=False):
    """The options of `HistoryReducer`."""

    max_input_chars: int | None
    max_input_tokens: int | None
    fill: float | None
    clip_results: int | None
    enabled: bool
    preserve_recent_raw_turns: int
    observation_masking: bool
    strict_pairs: bool
    summarizer: Summarizer | None
    summary_max_chars: int
    summary_role: Literal["system", "developer", "user", "assistant"] | None
    token_counter: TokenCounter | None
