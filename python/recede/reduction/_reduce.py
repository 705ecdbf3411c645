"""`reduce`, of dicts and of bytes, and `HistoryReducer`, which holds its options."""
# mypy: disable-error-code="empty-body"
# ruff: noqa: D417 - an option is described once, at `reduce`

from __future__ import annotations

from recede import _engine
from recede.reduction._options import BUDGETS
from recede.reduction._planning import reduce_bytes, reduce_messages
from recede.reduction._policy import compiled
from recede.reduction._signature import runs

TYPE_CHECKING = False  # to type checkers that of typing, whose import would take longer than all of ours
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any, Literal

    from recede._report import JsonReduction, Reduction
    from recede.providers import Provider
    from recede.reduction._input import Json
    from recede.types import Summarizer, TokenCounter

__all__ = ["HistoryReducer", "reduce", "reduce_json"]


def _of_messages(messages: list[Any], *more: Any, **options: Any) -> Reduction:
    if more:  # the published reducer is called so
        raise TypeError(
            "reduce(messages, max_input_chars=N) takes its options by name; with a mapping of options, use "
            "recede.designs.HistoryReducer().reduce(messages, options)"
        )
    return reduce_messages("reduce", messages, options)


@runs(_of_messages)
def reduce(
    messages: list[Any], *,
    max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = 0.9,
    clip_results: int | None = None, enabled: bool = True, preserve_recent_raw_turns: int = 4,
    keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
    keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
    keep_errors: bool = False, keep_matching: Collection[str] = (), mask_chunk: int | None = None,
    boundary: Literal["sliding", "stepped", "break_even"] = "sliding", provider: str | Provider = "ideal",
    cold: bool | Collection[int] = False, max_overcost: float | None = 0.1,
    cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2, observation_masking: bool = True,
    max_observation_chars: int | None = None, placeholder: str | None = None, min_masked_chars: int = 0,
    image_chars: int = 6400, strict_pairs: bool = False, summarizer: Summarizer | None = None,
    summary_max_chars: int = 1400, summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
    token_counter: TokenCounter | None = None,
) -> Reduction:  # fmt: skip
    """Reduce a history to a budget: mask, by default with a sliding boundary, then summarize, then truncate.

    A history within the budget is unchanged. The input is never modified, and unchanged messages of the
    view are the caller's objects.

    Args:
        messages: the history, oldest first: a list of dicts in any of the shapes (OpenAI chat, Anthropic messages,
            OpenAI Responses, Gemini, Bedrock Converse, ChatMessage), also mixed; or what the clients of Anthropic and
            OpenAI give, as messages or inside them.
        max_input_chars: the budget in characters (Unicode code points); this or the next is required.
        max_input_tokens: the budget in tokens, of about four characters each.
        fill: a view without all messages fills up to this part of the budget; None: the published rule.
        clip_results: results in the window are cut to N characters, largest first, before anything is dropped.
        enabled: False returns the history unchanged.
        preserve_recent_raw_turns: `keep_messages` under its published name; the larger of the two counts.
        keep_messages: window: the last N messages stay raw, system messages not counted.
        keep_turns: window: the last N turns stay raw.
        keep_results: window: the newest N results stay raw.
        keep_by_tool: tool or pattern (`*`, `?`) -> N: its newest N results stay raw, whatever the window; None: all.
        exclude_tools: results of these tools (names or patterns) are never masked.
        keep_errors: results flagged as errors are never masked.
        keep_matching: results whose text begins so, or with `*` matches as a whole, are never masked.
        mask_chunk: the boundary moves in steps of N results, which preserves prompt caches.
        boundary: it moves at each request, by `mask_chunk` results, or when that pays off under a prompt cache.
        provider: for break_even: whose prompt cache and prices are assumed: a known name, or a Provider.
        cold: for break_even: True if the cache has expired; or how many messages preceded each such request.
        max_overcost: for break_even: by what part all requests so far may ever cost more than raw; None: no promise.
        cache_breakpoint: marks of the cache (cache_control) stay as they are, or the last masked result has one too.
        marks_elsewhere: marks on the system prompt and on tools, which are sent with a list of messages.
        observation_masking: False skips masking and goes straight to the summary.
        max_observation_chars: old observations are cut to N characters instead of replaced.
        placeholder: a template with {chars}, {lines}, {images}, {turn}, {tool}, {id}, {number}, {handle}.
        min_masked_chars: nothing is masked if that removes fewer than N characters.
        image_chars: characters that an image or a document counts.
        strict_pairs: any call without result, or result without call, rules a stage out.
        summarizer: `(messages, previous_summary) -> str`, instead of the built-in summary.
        summary_max_chars: the summary is clipped at N characters.
        summary_role: the role of the summary's message; by default one that the provider accepts.
        token_counter: `text -> tokens`; without it four characters are a token.

    Returns:
        A `Reduction`: the view and what was done to get it.

    Raises:
        TranscriptError: the input is no history; names the message and the field.
        TypeError, ValueError: an option is unknown, of the wrong type, or out of range.

    Time is linear in the number of messages and the text of old observations.

    Example:
        >>> import recede
        >>> history = [
        ...     {"role": "user", "content": "Fix the test."},
        ...     {"role": "assistant", "content": None, "tool_calls": [
        ...         {"id": "1", "type": "function", "function": {"name": "run", "arguments": "{}"}}]},
        ...     {"role": "tool", "tool_call_id": "1", "content": "FAILED " * 100},
        ...     {"role": "assistant", "content": "I see: an off-by-one."},
        ... ]
        >>> result = recede.reduce(history, max_input_chars=300, preserve_recent_raw_turns=1)
        >>> result.messages[2]["content"]
        '[observation masked — 700 chars]'
        >>> result.reduction_stage, result.chars_before, result.chars_after
        ('masking', 759, 91)
    """


@runs(lambda data, **options: reduce_bytes("reduce", data, options))
def reduce_json(
    data: Json, *,
    max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = 0.9,
    clip_results: int | None = None, enabled: bool = True, preserve_recent_raw_turns: int = 4,
    keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
    keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
    keep_errors: bool = False, keep_matching: Collection[str] = (), mask_chunk: int | None = None,
    boundary: Literal["sliding", "stepped", "break_even"] = "sliding", provider: str | Provider = "ideal",
    cold: bool | Collection[int] = False, max_overcost: float | None = 0.1,
    cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2, observation_masking: bool = True,
    max_observation_chars: int | None = None, placeholder: str | None = None, min_masked_chars: int = 0,
    image_chars: int = 6400, strict_pairs: bool = False, summarizer: Summarizer | None = None,
    summary_max_chars: int = 1400, summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
    token_counter: TokenCounter | None = None,
) -> JsonReduction:  # fmt: skip
    """Reduce a serialized history, by default with a sliding boundary; bytes that are not replaced are unchanged.

    Args:
        data: a JSON array of messages, or a whole request body (an object whose ``messages``, ``input`` or ``contents``
            is the array; the rest is unchanged). ``bytearray``, ``memoryview`` and ``str`` are copied to bytes first.
        The options are those of `reduce`.

    Returns:
        A `JsonReduction`. Spelling of numbers, key order, white space and escapes are preserved; if the
        input was ``bytes`` and nothing changed, ``.json`` is the same object. Lone surrogates of a
        ``str`` are written as by ``surrogatepass``.

    Raises:
        TranscriptError: malformed JSON or a wrong shape; names the byte, the message and the field.
        TypeError, ValueError: as for `reduce`.

    Time is linear in the bytes; memory is the input, the output, and about 150 bytes for each
    message, call and result.

    Example:
        >>> import recede
        >>> body = b'{"model": "m", "messages": [{"role": "user", "content": "caf\\\\u00e9"}]}'
        >>> result = recede.reduce_json(body, max_input_chars=1_000)
        >>> result.json is body, result.chars_before
        (True, 4)
    """


class HistoryReducer:
    """A reducer with fixed options, checked once; by default with a sliding boundary.

    The options are those of `reduce`; each call of its method `reduce` may give others, in a mapping or by
    name. Without a `fill` the published rule applies.

    Raises:
        TypeError, ValueError: as for `reduce`; that a budget is missing is reported by the call.

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

    @runs(lambda self, **options: self._hold(options))
    def __init__(
        self, *,
        max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = None,
        clip_results: int | None = None, enabled: bool = True, preserve_recent_raw_turns: int = 4,
        keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
        keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
        keep_errors: bool = False, keep_matching: Collection[str] = (), mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding", provider: str | Provider = "ideal",
        cold: bool | Collection[int] = False, max_overcost: float | None = 0.1,
        cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2,
        observation_masking: bool = True, max_observation_chars: int | None = None, placeholder: str | None = None,
        min_masked_chars: int = 0, image_chars: int = 6400, strict_pairs: bool = False,
        summarizer: Summarizer | None = None, summary_max_chars: int = 1400,
        summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
        token_counter: TokenCounter | None = None,
    ) -> None:  # fmt: skip
        """The options are those of `reduce`."""

    def _hold(self, options: Any) -> None:
        self._options = {**options, "fill": options.get("fill")}
        # A budget may come with each call.
        has_budget = any(options.get(name) is not None for name in BUDGETS)
        compiled(_engine.engine, "reduce", self._options if has_budget else {**self._options, "max_input_chars": 0})

    @runs(
        lambda self, messages, options=None, **named: reduce_messages("reduce", messages, self._merged(options, named))
    )
    def reduce(
        self, messages: list[Any], options: Mapping[str, Any] | None = None, *,
        max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = None,
        clip_results: int | None = None, enabled: bool = True, preserve_recent_raw_turns: int = 4,
        keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
        keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
        keep_errors: bool = False, keep_matching: Collection[str] = (), mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding", provider: str | Provider = "ideal",
        cold: bool | Collection[int] = False, max_overcost: float | None = 0.1,
        cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2,
        observation_masking: bool = True, max_observation_chars: int | None = None, placeholder: str | None = None,
        min_masked_chars: int = 0, image_chars: int = 6400, strict_pairs: bool = False,
        summarizer: Summarizer | None = None, summary_max_chars: int = 1400,
        summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
        token_counter: TokenCounter | None = None,
    ) -> Reduction:  # fmt: skip
        """`recede.reduce` with these options; those of the call, in a mapping or by name, take precedence over them.

        The defaults shown are those of the constructor.
        """

    @runs(lambda self, data, options=None, **named: reduce_bytes("reduce", data, self._merged(options, named)))
    def reduce_json(
        self, data: Json, options: Mapping[str, Any] | None = None, *,
        max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = None,
        clip_results: int | None = None, enabled: bool = True, preserve_recent_raw_turns: int = 4,
        keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
        keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
        keep_errors: bool = False, keep_matching: Collection[str] = (), mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding", provider: str | Provider = "ideal",
        cold: bool | Collection[int] = False, max_overcost: float | None = 0.1,
        cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2,
        observation_masking: bool = True, max_observation_chars: int | None = None, placeholder: str | None = None,
        min_masked_chars: int = 0, image_chars: int = 6400, strict_pairs: bool = False,
        summarizer: Summarizer | None = None, summary_max_chars: int = 1400,
        summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
        token_counter: TokenCounter | None = None,
    ) -> JsonReduction:  # fmt: skip
        """`recede.reduce_json`, likewise."""

    def _merged(self, options: Mapping[str, Any] | None, named: dict[str, Any]) -> Any:
        if options is not None:
            if not hasattr(options, "keys"):
                raise TypeError(f"options must be a mapping of names to values, not {type(options).__name__}")
            named = {**options, **named}
        held = self._options
        if not named.keys().isdisjoint(BUDGETS):  # the other unit may be held
            held = {name: value for name, value in held.items() if name not in BUDGETS}
        return {**held, **named}

    def __repr__(self) -> str:
        given = ((name, value) for name, value in self._options.items() if (name, value) != ("fill", None))
        return f"HistoryReducer({', '.join(f'{name}={value!r}' for name, value in given)})"
