"""The public functions: options in, engine called, result classes out. No rule lives here."""
# mypy: disable-error-code="empty-body"
# ruff: noqa: D417 - an option is described once, at `reduce`

from __future__ import annotations

from recede import _engine
from recede.reduction._policy import BODY_KEYS, block_policy, compiled, image_chars_of, template_policy
from recede.reduction._repair import apply_repairs
from recede.reduction._report import CountRequest, Finding, JsonReduction, PairReport, Reduction, SummaryRequest
from recede.reduction._signature import runs

TYPE_CHECKING = False  # to type checkers that of typing, whose import would take longer than all of ours
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any, Literal, TypeAlias, Union

    from recede.types import Summarizer, TokenCounter

    Json: TypeAlias = Union[bytes, bytearray, memoryview, str]

__all__ = [
    "HistoryReducer",
    "approx_tokens",
    "as_bytes",
    "asked_summary",
    "check_pairs",
    "costs_of",
    "count_chars",
    "count_tokens",
    "history_tokens",
    "mask_observation",
    "mask_observations",
    "mask_observations_json",
    "mask_old_observations",
    "mask_old_observations_json",
    "reduce",
    "reduce_json",
    "reduced",
    "repair_pairs",
    "summarize_history",
    "truncate_history",
]

# Beyond any model, and what the core can add up.
_MOST_TOKENS = 1 << 40
_BUDGETS = ("max_input_chars", "max_input_tokens")


def _for_messages(goal: str) -> Callable[..., Reduction]:
    return lambda messages, **options: _reduce_messages(goal, messages, options)


def _for_bytes(goal: str) -> Callable[..., JsonReduction]:
    return lambda data, **options: _reduce_json(goal, data, options)


@runs(_for_messages("reduce"))
def reduce(
    messages: list[Any], *,
    max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = 0.9,
    clip_results: int | None = None, enabled: bool = True, preserve_recent_raw_turns: int = 4,
    keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
    keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
    keep_errors: bool = False, mask_chunk: int | None = None,
    boundary: Literal["sliding", "stepped", "break_even"] = "sliding", cache_read: float = 0.1,
    cache_write: float = 1.25, cache_cold: bool | Collection[int] = False, observation_masking: bool = True,
    max_observation_chars: int | None = None, placeholder: str | None = None, min_masked_chars: int = 0,
    image_chars: int = 6400, strict_pairs: bool = False, summarizer: Summarizer | None = None,
    summary_max_chars: int = 1400, summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
    token_counter: TokenCounter | None = None,
) -> Reduction:  # fmt: skip
    """Reduce a history to a budget: mask old observations, then summarize, then truncate.

    Nothing is done to a history within the budget. The input is never changed, and messages that
    stay as they are in the view are the caller's own objects.

    Args:
        messages: the history, oldest first: a list of dicts in any of the four shapes (OpenAI chat,
            Anthropic messages, OpenAI Responses, ChatMessage), mixed if they come so.
        max_input_chars: the budget in characters (Unicode code points); this or the next is required.
        max_input_tokens: the budget in tokens, of about four characters each.
        fill: a view without all messages fills up to this part of the budget; None: the published rule.
        clip_results: results in the window are cut to N characters, largest first, before anything is dropped.
        enabled: False returns the history as it is.
        preserve_recent_raw_turns: `keep_messages` under its published name; the larger of the two counts.
        keep_messages: window: the last N messages stay raw, system messages not counted.
        keep_turns: window: the last N turns stay raw.
        keep_results: window: the newest N results stay raw.
        keep_by_tool: tool or pattern (`*`, `?`) -> N: its newest N results stay raw, whatever the window; None: all.
        exclude_tools: results of these tools (names or patterns) are never masked.
        keep_errors: results flagged as errors are never masked.
        mask_chunk: the boundary moves by N results at once, which spares prompt caches.
        boundary: it moves at each request, by `mask_chunk` results, or when that pays off under a prompt cache.
        cache_read: for break_even: what a token costs that the cache serves; a fresh one costs 1.
        cache_write: for break_even: what a token costs that is written to the cache.
        cache_cold: for break_even: True if the cache has expired; or how many messages preceded each such request.
        observation_masking: False skips masking and goes straight to the summary.
        max_observation_chars: old observations are cut to N characters instead of replaced.
        placeholder: a template with {chars}, {lines}, {images}, {turn}, {tool}, {id}, {number}.
        min_masked_chars: nothing is masked if that removes fewer than N characters.
        image_chars: what an image or a document counts, in characters.
        strict_pairs: any call without result, or result without call, rules a stage out.
        summarizer: `(messages, previous_summary) -> str`, instead of the built-in summary.
        summary_max_chars: the summary is clipped at N characters.
        summary_role: the role of the summary's message; by default the one that the provider takes.
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


@runs(_for_bytes("reduce"))
def reduce_json(
    data: Json, *,
    max_input_chars: int | None = None, max_input_tokens: int | None = None, fill: float | None = 0.9,
    clip_results: int | None = None, enabled: bool = True, preserve_recent_raw_turns: int = 4,
    keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
    keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
    keep_errors: bool = False, mask_chunk: int | None = None,
    boundary: Literal["sliding", "stepped", "break_even"] = "sliding", cache_read: float = 0.1,
    cache_write: float = 1.25, cache_cold: bool | Collection[int] = False, observation_masking: bool = True,
    max_observation_chars: int | None = None, placeholder: str | None = None, min_masked_chars: int = 0,
    image_chars: int = 6400, strict_pairs: bool = False, summarizer: Summarizer | None = None,
    summary_max_chars: int = 1400, summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
    token_counter: TokenCounter | None = None,
) -> JsonReduction:  # fmt: skip
    """Reduce a serialized history: bytes in, bytes out, every other byte kept as it was.

    Args:
        data: a JSON array of messages, or a whole request body (an object whose ``messages`` or
            ``input`` is the array; the rest is carried along). ``bytearray``, ``memoryview`` and
            ``str`` are copied to bytes first.
        The options are those of `reduce`.

    Returns:
        A `JsonReduction`. Number spelling, key order, white space and escapes are the input's; where
        ``bytes`` came in and nothing changed, ``.json`` is the same object. Lone surrogates that a
        ``str`` holds pass through as ``surrogatepass`` writes them.

    Raises:
        TranscriptError: malformed JSON or a wrong shape; names the byte, the message and the field.
        TypeError, ValueError: as for `reduce`.

    Time is linear in the bytes; memory is the input, the output, and some 150 bytes for each
    message, call and result.

    Example:
        >>> import recede
        >>> body = b'{"model": "m", "messages": [{"role": "user", "content": "caf\\\\u00e9"}]}'
        >>> result = recede.reduce_json(body, max_input_chars=1_000)
        >>> result.json is body, result.chars_before
        (True, 4)
    """


def _masked(*arguments: Any, **options: Any) -> Reduction:
    # The research code has a function of this name: mask_observations(turns, current_turn, m=10).
    if len(arguments) > 1 or not options.keys().isdisjoint(("turns", "current_turn", "m")):
        raise TypeError(
            "mask_observations(messages, keep_results=N) takes one history of messages; of turns and a current_turn, "
            "use recede.apply_observation_masking(trajectory, current_turn, window_size_m)"
        )
    return _for_messages("mask")(*arguments, **options)


@runs(_masked)
def mask_observations(
    messages: list[Any], *,
    keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
    keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
    keep_errors: bool = False, mask_chunk: int | None = None,
    boundary: Literal["sliding", "stepped", "break_even"] = "sliding", cache_read: float = 0.1,
    cache_write: float = 1.25, cache_cold: bool | Collection[int] = False, max_observation_chars: int | None = None,
    placeholder: str | None = None, min_masked_chars: int = 0, image_chars: int = 6400,
) -> Reduction:  # fmt: skip
    """Stage 1 alone: mask every observation older than the window, whatever the size of the history.

    Args:
        messages: as for `reduce`.
        The options are those of `reduce`; one of `keep_messages`, `keep_turns` and `keep_results` is required.

    Returns:
        A `Reduction`; where nothing was masked, its messages are the caller's own list.

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: an option is wrong, or there is no window.

    Time is linear in the number of messages and the text of old observations.

    Example:
        >>> import recede
        >>> history = [{"role": "tool", "tool_call_id": "1", "content": "line\\n" * 50}]
        >>> recede.mask_observations(history, keep_results=0).messages[0]["content"]
        '[observation masked — 250 chars]'
    """


@runs(_for_bytes("mask"))
def mask_observations_json(
    data: Json, *,
    keep_messages: int | None = None, keep_turns: int | None = None, keep_results: int | None = None,
    keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
    keep_errors: bool = False, mask_chunk: int | None = None,
    boundary: Literal["sliding", "stepped", "break_even"] = "sliding", cache_read: float = 0.1,
    cache_write: float = 1.25, cache_cold: bool | Collection[int] = False, max_observation_chars: int | None = None,
    placeholder: str | None = None, min_masked_chars: int = 0, image_chars: int = 6400,
) -> JsonReduction:  # fmt: skip
    """`mask_observations` for a serialized history, as `reduce_json` is `reduce` for one.

    Example:
        >>> import recede
        >>> data = b'[{"role":"tool","tool_call_id":"1","content":"%s"}]' % (b"x" * 90)
        >>> recede.mask_observations_json(data, keep_results=0).json.decode()
        '[{"role":"tool","tool_call_id":"1","content":"[observation masked — 90 chars]"}]'
    """


@runs(_for_messages("summarize"))
def summarize_history(
    messages: list[Any], *,
    preserve_recent_raw_turns: int = 4, keep_messages: int | None = None, keep_turns: int | None = None,
    keep_results: int | None = None, image_chars: int = 6400, summarizer: Summarizer | None = None,
    summary_max_chars: int = 1400, summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
) -> Reduction:  # fmt: skip
    """Stage 2 alone: replace what is outside the window, pairs kept whole, by one summary.

    Args:
        messages: as for `reduce`.
        The options are those of `reduce`.

    Returns:
        A `Reduction`. Where there is nothing to summarize, the summarizer fails, or the summary is not
        shorter than what it replaces, the caller's own list, with ``reduction_stage`` None.

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: an option is wrong.

    Time is linear in the text.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "Port the parser. " * 40},
        ...            {"role": "assistant", "content": "Done."}]
        >>> result = recede.reduction.summarize_history(
        ...     history, preserve_recent_raw_turns=1, summarizer=lambda messages, previous: "The parser is ported.")
        >>> result.messages[0]
        {'role': 'system', 'content': 'Conversation summary:\\nThe parser is ported.'}
    """


@runs(_for_messages("truncate"))
def truncate_history(
    messages: list[Any], *,
    preserve_recent_raw_turns: int = 4, keep_messages: int | None = None, keep_turns: int | None = None,
    keep_results: int | None = None, image_chars: int = 6400,
) -> Reduction:  # fmt: skip
    """Stage 3 alone: keep the system messages, the first user message, and the window with its pairs.

    Args:
        messages: as for `reduce`.
        The options are those of `reduce`.

    Returns:
        A `Reduction` with ``reduction_stage`` "fallback".

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: an option is wrong.

    Time is linear in the number of messages.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": str(number)} for number in range(9)]
        >>> [m["content"] for m in recede.reduction.truncate_history(history, preserve_recent_raw_turns=2).messages]
        ['0', '7', '8']
    """


class HistoryReducer:
    """The options of `reduce`, checked once and held.

    The options are those of `reduce`; each call of its method `reduce` may give others, as a mapping. Without a `fill`
    the published rule applies.

    Raises:
        TypeError, ValueError: as for `reduce`; that a budget is missing is reported by the call.

    Example:
        >>> import recede
        >>> reducer = recede.HistoryReducer(max_input_tokens=8_000)
        >>> reducer.reduce([{"role": "user", "content": "hello"}]).reduced
        False
        >>> reducer.reduce([{"role": "user", "content": "hello"}], {"max_input_chars": 5}).reduced
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
        keep_errors: bool = False, mask_chunk: int | None = None,
        boundary: Literal["sliding", "stepped", "break_even"] = "sliding", cache_read: float = 0.1,
        cache_write: float = 1.25, cache_cold: bool | Collection[int] = False, observation_masking: bool = True,
        max_observation_chars: int | None = None, placeholder: str | None = None, min_masked_chars: int = 0,
        image_chars: int = 6400, strict_pairs: bool = False, summarizer: Summarizer | None = None,
        summary_max_chars: int = 1400, summary_role: Literal["system", "developer", "user", "assistant"] | None = None,
        token_counter: TokenCounter | None = None,
    ) -> None:  # fmt: skip
        """The options are those of `reduce`."""

    def _hold(self, options: Any) -> None:
        self._options = {**options, "fill": options.get("fill")}
        # A budget may come with each call.
        has_budget = any(options.get(name) is not None for name in _BUDGETS)
        compiled(_engine.engine, "reduce", self._options if has_budget else {**self._options, "max_input_chars": 0})

    def reduce(self, messages: list[Any], options: Mapping[str, Any] | None = None) -> Reduction:
        """`recede.reduce` with the options held; those of this call go before them."""
        return _reduce_messages("reduce", messages, self._merged(options))

    def _merged(self, options: Mapping[str, Any] | None) -> Any:
        if options is None:
            return self._options
        if not hasattr(options, "keys"):
            raise TypeError(f"options must be a mapping of names to values, not {type(options).__name__}")
        held = dict(self._options)
        if not options.keys().isdisjoint(_BUDGETS):  # the other unit may be held
            for name in _BUDGETS:
                held.pop(name, None)
        return {**held, **options}

    def reduce_json(self, data: Json, options: Mapping[str, Any] | None = None) -> JsonReduction:
        """`recede.reduce_json`, likewise."""
        return _reduce_json("reduce", data, self._merged(options))

    def __repr__(self) -> str:
        given = ((name, value) for name, value in self._options.items() if (name, value) != ("fill", None))
        return f"HistoryReducer({', '.join(f'{name}={value!r}' for name, value in given)})"


def _old_of_messages(messages: list[Any], keep: int = 4, mask_chunk: int | None = None, **options: Any) -> list[Any]:
    engine = _engine.engine
    view: list[Any] = engine.reduce(messages, block_policy(engine, keep, mask_chunk, options)).messages
    return view


def _old_of_bytes(data: Json, keep: int = 4, mask_chunk: int | None = None, **options: Any) -> bytes:
    engine = _engine.engine
    view: bytes = engine.reduce_json(*as_bytes(data), block_policy(engine, keep, mask_chunk, options)).json
    return view


@runs(_old_of_messages)
def mask_old_observations(
    messages: list[Any], keep: int = 4, mask_chunk: int | None = None, *,
    keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
    keep_errors: bool = False, boundary: Literal["sliding", "stepped", "break_even"] = "sliding",
    cache_read: float = 0.1, cache_write: float = 1.25, cache_cold: bool | Collection[int] = False,
) -> list[Any]:  # fmt: skip
    """The block masker: the newest `keep` results stay, older ones become a line that counts their lines.

    Args:
        messages: as for `reduce`.
        keep: `keep_results` under its published name: the newest N results stay raw, at least 3.
        mask_chunk: the boundary moves by N results at once.
        The options are those of `reduce`.

    Returns:
        The view; with nothing to mask, the input list itself.

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: an option is wrong.

    Time is linear in the number of messages and the text of old observations.

    Example:
        >>> import recede
        >>> history = [{"role": "tool", "tool_call_id": str(n), "content": "line\\n" * 50} for n in range(4)]
        >>> recede.mask_old_observations(history, keep=3)[0]["content"]
        '[observation masked — 51 lines omitted]'
    """


@runs(_old_of_bytes)
def mask_old_observations_json(
    data: Json, keep: int = 4, mask_chunk: int | None = None, *,
    keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
    keep_errors: bool = False, boundary: Literal["sliding", "stepped", "break_even"] = "sliding",
    cache_read: float = 0.1, cache_write: float = 1.25, cache_cold: bool | Collection[int] = False,
) -> bytes:  # fmt: skip
    """`mask_old_observations` for a serialized history: bytes in, bytes out.

    Example:
        >>> import recede
        >>> data = b"[]"
        >>> recede.mask_old_observations_json(data) is data
        True
    """


def mask_observation(text: str, *, max_observation_chars: int | None = None, placeholder: str | None = None) -> str:
    """Mask one observation: what `reduce` would put in the place of this text.

    Args:
        text: the observation.
        max_observation_chars: cut it to this length instead of replacing it whole.
        placeholder: a template, as in `reduce`; ``{turn}`` and ``{number}`` are 0, ``{tool}`` and ``{id}`` are empty.

    Returns:
        The placeholder; the dispatch blocks whole where the text has some; the text itself where it is a
        placeholder already or would not get shorter.

    Raises:
        TypeError, ValueError: an option is wrong.

    Time is linear in the text.

    Example:
        >>> import recede
        >>> recede.reduction.mask_observation("x" * 4200)
        '[observation masked — 4200 chars]'
        >>> recede.reduction.mask_observation("ok")
        'ok'
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, not {type(text).__name__}")
    engine = _engine.engine
    masked: str = engine.mask_observation(text, template_policy(engine, max_observation_chars, placeholder))
    return masked


def check_pairs(messages: list[Any]) -> PairReport:
    """Look for calls and results that do not pair, and for pairs that providers refuse.

    Args:
        messages: as for `reduce`.

    Returns:
        A `PairReport` with its findings in the order of the messages.

    Raises:
        TranscriptError: the input is no history.

    Time is linear in the number of messages, calls and results.

    Example:
        >>> import recede
        >>> report = recede.check_pairs([{"role": "tool", "tool_call_id": "9", "content": "?"}])
        >>> report.findings
        (Finding(kind='result_without_call', message_index=0, id='9'),)
        >>> report.is_whole
        False
    """
    return PairReport(tuple(Finding(*finding) for finding in _engine.engine.check_pairs(messages)))


def repair_pairs(messages: list[Any]) -> list[Any]:
    """Mend orphans: answer the calls that have no result, leave out the results that have no call.

    An answer is ``[no result recorded]``, in the shape of its call and where a provider wants it. Calls
    at the end whose answer may still come stay open. What has no string id, or an id that is called
    again before it is answered, cannot be mended and stays.

    Args:
        messages: as for `reduce`.

    Returns:
        The mended history; where nothing was to mend, the input list itself.

    Raises:
        TranscriptError: the input is no history.

    Time is linear in the number of messages, calls and results.

    Example:
        >>> import recede
        >>> recede.repair_pairs([{"role": "tool", "tool_call_id": "9", "content": "?"}])
        []
    """
    copied = _copied(messages)
    operations = _engine.engine.repairs(copied)
    return apply_repairs(copied, operations) if operations else messages


def count_chars(messages: list[Any], *, image_chars: int = 6_400) -> int:
    """The characters of a history, as budgets count them: Unicode code points of decoded text.

    Texts, observations and thinking apart (thinking is not counted), each call counts its name, its
    arguments and 20; an image or document counts `image_chars`.

    Args:
        messages: as for `reduce`.
        image_chars: about the 1,600 tokens of a large picture by default.

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: `image_chars` is no whole number from 0.

    Time is linear in the number of messages.

    Example:
        >>> import recede
        >>> recede.count_chars([{"role": "user", "content": "naïve"}])
        5
    """
    chars: int = _engine.engine.count_chars(messages, image_chars_of({"image_chars": image_chars}))
    return chars


def approx_tokens(what: list[Any] | str | int) -> int:
    """About how many tokens a history, a text, or a number of characters is: a quarter of the characters.

    Args:
        what: a history, a text, or a number of characters; rounded up.

    Raises:
        TranscriptError: a list that is no history.
        TypeError, ValueError: something else, or a number below 0.

    Example:
        >>> import recede
        >>> recede.approx_tokens("hello"), recede.approx_tokens(8), recede.approx_tokens([])
        (2, 2, 0)
    """
    if isinstance(what, str):
        chars = len(what)
    elif isinstance(what, list):
        chars = count_chars(what)
    elif isinstance(what, int) and not isinstance(what, bool):
        chars = what
    else:
        raise TypeError(f"give a list of messages, a text or a number of characters, not {type(what).__name__}")
    if chars < 0:
        raise ValueError(f"a number of characters is at least 0, not {chars}")
    return -(-chars // 4)


def _reduce_messages(goal: str, messages: list[Any], options: Any) -> Reduction:
    engine = _engine.engine
    policy = compiled(engine, goal, options)
    summarizer, counter = options.get("summarizer"), options.get("token_counter")
    given = messages
    costs: Any = None
    if summarizer is not None or counter is not None:
        messages = _copied(messages)
    if counter is not None:
        costs = (*costs_of(engine.texts(messages, policy), counter, image_chars_of(options)), {})
    answer, error = engine.reduce(messages, policy, costs), None
    if type(answer) is not Reduction:
        answer, error = _answered(
            answer,
            lambda summary: engine.reduce(messages, policy, costs, summary),
            messages.__getitem__,
            options,
            costs,
        )
    if messages is not given and answer.messages is messages and given == messages:
        answer = answer._replace(messages=given)
    return answer if error is None else answer._replace(summarizer_error=error)  # type: ignore[no-any-return]


def _copied(messages: list[Any]) -> list[Any]:
    """What the caller's list holds now: a callback, or another thread, may change the list before it is read again."""
    return list.copy(messages) if isinstance(messages, list) else messages


def _reduce_json(goal: str, data: Json, options: Any) -> JsonReduction:
    engine = _engine.engine
    policy = compiled(engine, goal, options)
    raw, surrogates = as_bytes(data)
    counter = options.get("token_counter")
    costs: Any = None
    if counter is not None:
        # Only after the strict reader has accepted it, json may read it.
        engine.reduce_json(raw, surrogates, compiled(engine, "truncate", {}))
        costs = (*costs_of(engine.texts(_history_of(raw), policy), counter, image_chars_of(options)), {})
    answer, error = engine.reduce_json(raw, surrogates, policy, costs), None
    if type(answer) is not JsonReduction:
        answer, error = _answered(
            answer,
            lambda summary: engine.reduce_json(raw, surrogates, policy, costs, summary),
            lambda span: _loads(raw[slice(*span)]),
            options,
            costs,
        )
    return answer if error is None else answer._replace(summarizer_error=error)  # type: ignore[no-any-return]


def _answered(
    answer: Any, reduce: Callable[[Any], Any], message_of: Callable[[Any], Any], options: Any, costs: Any
) -> tuple[Any, Exception | None]:
    """What an engine answers in the end that is told what it asks for: texts counted, or a summary."""
    summarizer, counter = options.get("summarizer"), options.get("token_counter")
    summary, error = None, None
    while True:
        if type(answer) is CountRequest:
            costs[2].update(counted(answer.texts, counter))
        elif type(answer) is SummaryRequest:
            dropped = list(map(message_of, answer.dropped)) if summarizer is not None else []
            summary, error = asked_summary(dropped, answer.previous, answer.built_in, summarizer, counter)
        else:
            return answer, error
        answer = reduce(summary)


def asked_summary(
    dropped: list[Any],
    previous: str | None,
    builtin: str,
    summarizer: Summarizer | None,
    counter: TokenCounter | None,
) -> tuple[tuple[str, int | None] | bool, Exception | None]:
    """The summary to plan with, or False and the error: the reducer then goes on without one."""
    text = builtin
    if summarizer is not None:
        try:
            from recede._summarizer import bound, text_of_summary  # lazily: it imports inspect

            text = text_of_summary(bound("summarizer", summarizer)(dropped, previous))
            if not isinstance(text, str):
                raise TypeError(f"the summarizer must return a string, not {type(text).__name__}")
            if not text.strip():
                raise ValueError("the summarizer returned no text")
        except Exception as error:
            return False, error
    return (text, None if counter is None else 4 * count_tokens(counter, text)), None


def reduced(messages: list[Any], policy: Any) -> Reduction:
    """The reduction of a history by a policy that asks for no summary."""
    reduction: Reduction = _engine.engine.reduce(messages, policy)
    return reduction


def history_tokens(messages: list[Any], counter: TokenCounter | None) -> int:
    """The tokens of a history by the caller's counter; without one, about as many."""
    if counter is None:
        return approx_tokens(messages)
    engine = _engine.engine
    texts = engine.texts(messages, compiled(engine, "truncate", {}))
    unmasked = [(*own, [(text, images, None) for text, images, _ in results]) for *own, results in texts]
    costs, observations = costs_of(unmasked, counter, image_chars_of({}))
    return -(-(sum(costs) + sum(raw for raw, _ in observations)) // 4)


def costs_of(
    texts: list[tuple[str, int, int, list[tuple[str, int, str | None]]]], counter: TokenCounter, image_chars: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Budget units: quarter tokens, so that the constants, which count characters, need no rounding."""
    messages, observations = [], []
    for own_text, constant_chars, own_images, results in texts:
        messages.append(4 * count_tokens(counter, own_text) + constant_chars + own_images * image_chars)
        for text, images, masked in results:
            raw = 4 * count_tokens(counter, text) + images * image_chars
            observations.append((raw, raw if masked is None else 4 * count_tokens(counter, masked)))
    return messages, observations


def counted(texts: list[str], counter: TokenCounter) -> list[tuple[str, int]]:
    """Each text and its budget units; see `costs_of`."""
    return [(text, 4 * count_tokens(counter, text)) for text in texts]


def count_tokens(counter: TokenCounter, text: str) -> int:
    if not text:
        return 0
    tokens = counter(text)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise TypeError(f"token_counter must return a whole number from 0, not {tokens!r}")
    return min(tokens, _MOST_TOKENS)


def as_bytes(data: Json) -> tuple[bytes, bool]:
    """The UTF-8 form, and whether it holds lone surrogates of a str."""
    if type(data) is bytes:
        return data, False
    if isinstance(data, str):
        try:
            return data.encode(), False
        except UnicodeEncodeError:
            return data.encode("utf-8", "surrogatepass"), True
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data), False
    raise TypeError(f"data must be bytes, bytearray, memoryview or str, not {type(data).__name__}")


def _loads(raw: bytes) -> Any:
    import json

    return json.loads(raw.decode("utf-8", "surrogatepass"))


def _history_of(raw: bytes) -> list[Any]:
    value = _loads(raw)
    if isinstance(value, list):
        return value
    fields = (value.get(key) for key in BODY_KEYS)
    history: list[Any] = next(field for field in fields if isinstance(field, list))
    return history
