"""Types of messages and options for type checkers, of which nothing is checked at run time; and types of results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Union

from recede._report import BoundaryMove, Finding, JsonReduction, PairReport, ToolReport

if TYPE_CHECKING:
    from typing_extensions import NotRequired, Required  # which type checkers bring along

    from recede.providers import Provider
elif sys.version_info >= (3, 11):
    from typing import NotRequired, Required
else:  # pragma: no cover - exercised by type checkers and by Python 3.10
    from typing import Generic, TypeVar

    _T = TypeVar("_T")

    class Required(Generic[_T]):
        """A substitute for `typing.Required`, which Python 3.10 lacks; the hints stay strings."""

    class NotRequired(Generic[_T]):
        """A substitute for `typing.NotRequired`, which Python 3.10 lacks; the hints stay strings."""


__all__ = [
    "AnthropicMessage",
    "BoundaryMove",
    "ChatMessage",
    "ConverseMessage",
    "Finding",
    "GeminiContent",
    "Generates",
    "JsonReduction",
    "Message",
    "OpenAIMessage",
    "Options",
    "PairReport",
    "ResponsesItem",
    "Summarizer",
    "TokenCounter",
    "ToolReport",
]


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
    max_input_tokens: int | float | None
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


class OpenAIMessage(TypedDict, total=False):
    """A message of the OpenAI Chat Completions API.

    Example:
        >>> import recede
        >>> message: recede.types.OpenAIMessage = {"role": "user", "content": "hello"}
        >>> recede.count_chars([message])
        5
    """

    role: Required[str]
    content: Union[str, list[dict[str, Any]], None]
    tool_calls: list[dict[str, Any]]
    tool_call_id: str
    tool_name: str
    name: str
    tags: list[str]


class AnthropicMessage(TypedDict):
    """A message of the Anthropic Messages API; calls and results are content blocks.

    Example:
        >>> import recede
        >>> message: recede.types.AnthropicMessage = {
        ...     "role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "done"}]}
        >>> recede.count_chars([message])
        4
    """

    role: str
    content: Union[str, list[dict[str, Any]]]
    tags: NotRequired[list[str]]


class ResponsesItem(TypedDict, total=False):
    """An item of the OpenAI Responses API: a message, a call, its output, or reasoning.

    Example:
        >>> import recede
        >>> item: recede.types.ResponsesItem = {"type": "function_call_output", "call_id": "1", "output": "done"}
        >>> recede.count_chars([item])
        4
    """

    type: str
    role: str
    content: Union[str, list[dict[str, Any]], None]
    id: str
    call_id: str
    name: str
    arguments: str
    input: str
    action: dict[str, Any]
    output: Union[str, list[dict[str, Any]], dict[str, Any]]


class ChatMessage(TypedDict, total=False):
    """A message whose calls and results are marked by `pairRole` and `pairId`.

    Example:
        >>> import recede
        >>> message: recede.types.ChatMessage = {"role": "tool", "pairRole": "result", "pairId": "1", "content": "done"}
        >>> recede.count_chars([message])
        4
    """

    role: Required[str]
    content: Required[str]
    pairRole: Literal["call", "result"]
    pairId: str
    tags: list[str]


class GeminiContent(TypedDict, total=False):
    """A content of Gemini's API; calls and results are parts of it.

    Example:
        >>> import recede
        >>> content: recede.types.GeminiContent = {
        ...     "role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "done"}}}]}
        >>> recede.count_chars([content])
        4
    """

    role: str
    parts: Required[list[dict[str, Any]]]
    tags: list[str]


class InteractionStep(TypedDict, total=False):
    """A step of Gemini's Interactions: what the user or the model says, a thought, a call, or its result.

    Example:
        >>> import recede
        >>> step: recede.types.InteractionStep = {
        ...     "type": "function_result", "call_id": "1", "name": "ls", "result": "done"}
        >>> recede.count_chars([step])
        4
    """

    type: Required[str]
    content: list[dict[str, Any]]
    id: str
    call_id: str
    name: str
    arguments: dict[str, Any]
    result: Union[str, list[dict[str, Any]], dict[str, Any]]
    is_error: bool
    signature: str
    summary: list[dict[str, Any]]


class ConverseMessage(TypedDict):
    """A message of Bedrock's Converse API; calls and results are blocks of its content, without a `type`.

    Example:
        >>> import recede
        >>> message: recede.types.ConverseMessage = {
        ...     "role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "done"}]}}]}
        >>> recede.count_chars([message])
        4
    """

    role: str
    content: list[dict[str, Any]]
    tags: NotRequired[list[str]]


Message = Union[
    OpenAIMessage,
    AnthropicMessage,
    ResponsesItem,
    ChatMessage,
    GeminiContent,
    InteractionStep,
    ConverseMessage,
    dict[str, Any],
]
"""One message of a history, in any of the seven shapes; a history may mix them."""
