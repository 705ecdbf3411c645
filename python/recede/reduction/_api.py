"""The public functions: options in, engine called, result classes out. No rule lives here."""

from __future__ import annotations

from recede import _engine
from recede.reduction._policy import BODY_KEYS, block_policy, compiled, image_chars_of, template_policy
from recede.reduction._repair import apply_repairs
from recede.reduction._report import BoundaryMove, Finding, JsonReduction, PairReport, Reduction, ToolReport

TYPE_CHECKING = False  # to type checkers that of typing, whose import would take longer than all of ours
if TYPE_CHECKING:
    import sys
    from collections.abc import Iterable
    from typing import Any, TypeAlias, Union

    if sys.version_info >= (3, 11):
        from typing import Unpack
    else:
        from typing_extensions import Unpack

    from recede.types import (
        BlockOptions,
        MaskOptions,
        ReduceOptions,
        SummarizeOptions,
        Summarizer,
        TokenCounter,
        TruncateOptions,
    )

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
_TOOLS = Reduction._fields.index("tools")
_SUMMARIZER_ERROR = Reduction._fields.index("summarizer_error")


def reduce(messages: list[Any], **options: Unpack[ReduceOptions]) -> Reduction:
    """Reduce a history to a budget: mask old observations, then summarize, then truncate.

    Nothing is done to a history within the budget. The input is never changed, and messages that
    stay as they are in the view are the caller's own objects.

    Args:
        messages: the history, oldest first: a list of dicts in any of the four shapes (OpenAI chat,
            Anthropic messages, OpenAI Responses, ChatMessage), mixed if they come so.
        **options: one of the first two is required.

            - ``max_input_chars``, ``max_input_tokens``: the budget, in characters (Unicode code
              points) or approximate tokens.
            - ``enabled`` (True): False gives the history back as it is.
            - ``preserve_recent_raw_turns`` (4): the last N messages stay raw. It counts messages that
              are no system messages, despite its name.
            - ``keep_messages``, ``keep_turns``, ``keep_results`` (None): the last N messages, turns, or
              results stay raw as well.
            - ``keep_by_tool`` ({}): tool name or pattern (``*``, ``?``) -> N: of each such tool the
              newest N results stay raw, instead of the measures above; 0 none, None all.
            - ``exclude_tools`` (()), ``keep_errors`` (False): results of these tools (names or
              patterns), or results flagged as errors, are never masked.
            - ``boundary`` ("sliding"): when the boundary between masked and raw observations moves.
              ``"sliding"``, the published policy: at each request. ``"stepped"``, or ``mask_chunk`` (None)
              alone: by that many observations at once. ``"break_even"``: when it has paid for itself under
              prompt caching, within the budget too; docs/caching.md has the rule and what it saves.
            - ``cache_read`` (0.1), ``cache_write`` (1.25): of break-even, the price of a token that the cache
              serves, and of one that is written to it, as parts of that of a fresh one. ``cache_cold`` (False):
              True where the cache has expired since the last request, so that moving costs nothing extra; or
              how many messages came before each such request.
            - ``observation_masking`` (True): False goes straight to the summary.
            - ``max_observation_chars`` (None): cut old observations to this length instead of
              replacing them whole.
            - ``placeholder`` (None): a template with the fields ``{chars}``, ``{lines}``, ``{images}``,
              ``{turn}``, ``{tool}``, ``{id}``, ``{number}``.
            - ``min_masked_chars`` (0): mask nothing if it would remove fewer characters.
            - ``image_chars`` (6,400): what an image or document counts.
            - ``strict_pairs`` (False): any orphan among calls and results rules a stage out.
            - ``summarizer`` (None): ``(messages, previous_summary) -> str`` instead of the built-in
              summary; ``summary_max_chars`` (1,400) clips either; ``summary_role`` (None).
            - ``token_counter`` (None): ``text -> tokens`` for ``max_input_tokens``; without it four
              characters are a token.

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
    return _reduce_messages("reduce", messages, options)


def reduce_json(data: Json, **options: Unpack[ReduceOptions]) -> JsonReduction:
    """Reduce a serialized history: bytes in, bytes out, every other byte kept as it was.

    Args:
        data: a JSON array of messages, or a whole request body (an object whose ``messages`` or
            ``input`` is the array; the rest is carried along). ``bytearray``, ``memoryview`` and
            ``str`` are copied to bytes first.
        **options: those of `reduce`.

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
    return _reduce_json("reduce", data, options)


def mask_observations(messages: list[Any], **options: Unpack[MaskOptions]) -> Reduction:
    """Stage 1 alone: mask every observation older than the window, whatever the size of the history.

    Args:
        messages: as for `reduce`.
        **options: ``keep_messages``, ``keep_turns`` or ``keep_results`` (one at least), and the
            options of `reduce` for tools, boundary and placeholder.

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
    return _reduce_messages("mask", messages, options)


def mask_observations_json(data: Json, **options: Unpack[MaskOptions]) -> JsonReduction:
    """`mask_observations` for a serialized history, as `reduce_json` is `reduce` for one.

    Example:
        >>> import recede
        >>> data = b'[{"role":"tool","tool_call_id":"1","content":"%s"}]' % (b"x" * 90)
        >>> recede.mask_observations_json(data, keep_results=0).json.decode()
        '[{"role":"tool","tool_call_id":"1","content":"[observation masked — 90 chars]"}]'
    """
    return _reduce_json("mask", data, options)


def summarize_history(messages: list[Any], **options: Unpack[SummarizeOptions]) -> Reduction:
    """Stage 2 alone: replace what is outside the window, pairs kept whole, by one summary.

    Args:
        messages: as for `reduce`.
        **options: ``preserve_recent_raw_turns`` (4), ``keep_messages``, ``keep_turns``, ``keep_results``,
            ``image_chars``, ``summarizer``, ``summary_max_chars`` (1,400), ``summary_role``.

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
    return _reduce_messages("summarize", messages, options)


def truncate_history(messages: list[Any], **options: Unpack[TruncateOptions]) -> Reduction:
    """Stage 3 alone: keep the system messages, the first user message, and the window with its pairs.

    Args:
        messages: as for `reduce`.
        **options: ``preserve_recent_raw_turns`` (4), ``keep_messages``, ``keep_turns``, ``keep_results``,
            ``image_chars``.

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
    return _reduce_messages("truncate", messages, options)


class HistoryReducer:
    """The options of `reduce`, checked once and held.

    Args:
        **options: those of `reduce`.

    Raises:
        TypeError, ValueError: as for `reduce`.

    Example:
        >>> import recede
        >>> reducer = recede.HistoryReducer(max_input_tokens=8_000)
        >>> reducer.reduce([{"role": "user", "content": "hello"}]).reduced
        False
        >>> reducer.reduce_json(b"[]").json
        b'[]'
    """

    __slots__ = ("_options",)

    def __init__(self, **options: Unpack[ReduceOptions]) -> None:
        self._options: Any = options
        compiled(_engine.engine, "reduce", self._options)

    def reduce(self, messages: list[Any]) -> Reduction:
        """`recede.reduce` with the options held."""
        return _reduce_messages("reduce", messages, self._options)

    def reduce_json(self, data: Json) -> JsonReduction:
        """`recede.reduce_json` with the options held."""
        return _reduce_json("reduce", data, self._options)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"HistoryReducer({options})"


def mask_old_observations(
    messages: list[Any], keep: int = 4, mask_chunk: int | None = None, **options: Unpack[BlockOptions]
) -> list[Any]:
    """The block masker: the newest `keep` results stay, older ones become a line that counts their lines.

    Args:
        messages: as for `reduce`.
        keep: how many of the newest results stay raw, at least 3. The practitioner's default is 4.
        mask_chunk: move the boundary by this many observations at once.
        **options: ``keep_by_tool``, ``exclude_tools``, ``keep_errors``, ``boundary``, ``cache_read``,
            ``cache_write``, ``cache_cold`` as in `reduce`.

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
    engine = _engine.engine
    policy = block_policy(engine, keep, mask_chunk, options)
    view: list[Any] = engine.reduce(messages, policy)[0]
    return view


def mask_old_observations_json(
    data: Json, keep: int = 4, mask_chunk: int | None = None, **options: Unpack[BlockOptions]
) -> bytes:
    """`mask_old_observations` for a serialized history: bytes in, bytes out.

    Example:
        >>> import recede
        >>> data = b"[]"
        >>> recede.mask_old_observations_json(data) is data
        True
    """
    engine = _engine.engine
    policy = block_policy(engine, keep, mask_chunk, options)
    view: bytes = engine.reduce_json(*as_bytes(data), policy)[0]
    return view


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
    costs, given = None, messages
    if summarizer is not None or counter is not None:
        messages = _copied(messages)
    if counter is not None:
        costs = costs_of(engine.texts(messages, policy), counter, image_chars_of(options))
    answer, error = engine.reduce(messages, policy, costs), None
    if len(answer) == 3:
        dropped, previous, builtin = answer
        summary, error = asked_summary([messages[index] for index in dropped], previous, builtin, summarizer, counter)
        answer = engine.reduce(messages, policy, costs, summary)
    if answer[0] is messages and given == messages:
        answer = (given, *answer[1:])
    return Reduction._make(_report(answer, error))


def _copied(messages: list[Any]) -> list[Any]:
    """What the caller's list holds now: a callback, or another thread, may change the list before it is read again."""
    return list.copy(messages) if isinstance(messages, list) else messages


def _reduce_json(goal: str, data: Json, options: Any) -> JsonReduction:
    engine = _engine.engine
    policy = compiled(engine, goal, options)
    raw, surrogates = as_bytes(data)
    summarizer, counter = options.get("summarizer"), options.get("token_counter")
    costs = None
    if counter is not None:
        # Only after the strict reader has accepted it, json may read it.
        engine.reduce_json(raw, surrogates, compiled(engine, "truncate", {}))
        costs = costs_of(engine.texts(_history_of(raw), policy), counter, image_chars_of(options))
    answer, error = engine.reduce_json(raw, surrogates, policy, costs), None
    if len(answer) == 3:
        spans, previous, builtin = answer
        dropped = [_loads(raw[start:end]) for start, end in spans] if summarizer is not None else []
        summary, error = asked_summary(dropped, previous, builtin, summarizer, counter)
        answer = engine.reduce_json(raw, surrogates, policy, costs, summary)
    return JsonReduction._make(_report(answer, error))


def _report(answer: tuple[Any, ...], error: Exception | None) -> Iterable[Any]:
    fields = list(answer)
    new = tuple.__new__  # what the named tuple would call
    fields[_TOOLS] = {name: new(ToolReport, figures) for name, figures in fields[_TOOLS].items()}
    if error is not None:
        fields[_SUMMARIZER_ERROR] = error
    if fields[-1]:
        fields[-1] = tuple(map(BoundaryMove._make, fields[-1]))
    return fields


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
            text = summarizer(dropped, previous)
            if not isinstance(text, str):
                raise TypeError(f"the summarizer must return a string, not {type(text).__name__}")
            if not text.strip():
                raise ValueError("the summarizer returned no text")
        except Exception as error:
            return False, error
    return (text, None if counter is None else 4 * count_tokens(counter, text)), None


def reduced(messages: list[Any], policy: Any) -> Reduction:
    """The reduction of a history by a policy that asks for no summary."""
    return Reduction._make(_report(_engine.engine.reduce(messages, policy), None))


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
