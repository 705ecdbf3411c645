"""`reduce`: the door for a list of messages, a whole request, or the JSON of either."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, overload

from recede import _engine
from recede._bodies import body_key, loads
from recede._errors import TranscriptError
from recede.providers import has_entries, rounded_static, tokenizers
from recede.reduction._counting import static_cost, static_cost_of_json
from recede.reduction._input import as_bytes, automatic_mark, marks_elsewhere, refuse_path
from recede.reduction._options import OPTIONS
from recede.reduction._planning import reduce_bytes, reduce_messages
from recede.reduction._policy import MARKS_ELSEWHERE, own_policy
from recede.reduction._share import has_limits, in_tokens, is_share
from recede.reduction._signature import takes

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from recede._report import JsonReduction, Reduction
    from recede.reduction._input import Json
    from recede.types import Options, Summarizer


@overload
def reduce(
    messages: list[Any] | dict[str, Any], *, summarizer: Summarizer | None = None, **options: Unpack[Options]
) -> Reduction: ...
@overload
def reduce(messages: Json, *, summarizer: Summarizer | None = None, **options: Unpack[Options]) -> JsonReduction: ...
@takes(OPTIONS)
def reduce(  # noqa: D417 - more is an error
    messages: list[Any] | dict[str, Any] | Json,
    *more: Any,
    summarizer: Summarizer | None = None,
    **options: Unpack[Options],
) -> Reduction:
    """Mask old tool outputs; over a limit also cut, summarize and truncate until the view fits.

    With the default boundary, older results stay raw until masking them pays off under the provider's prompt cache. In
    a loop use a `History`, whose work is not repeated at each request.

    Args:
        messages: the history, oldest first: a list in any of the shapes (OpenAI chat, Anthropic messages, OpenAI
            Responses, Gemini, Bedrock Converse, ChatMessage), of dicts or objects of clients; a request, which is a
            dict with such a list; or the JSON of either. It is never modified.
        summarizer: `(messages, previous_summary) -> str`: old turns become its summary when that pays
            (docs/summaries.md), and over the limit, in place of the built-in one. It is asked for all hidden messages;
            its last 64 texts are remembered as long as the function lives, so give the same one each time.
        **options: see docs/options.md; `recede.types.Options` has their types.

    Returns:
        A `Reduction`: of a list ``messages``, of a request also ``request``, of JSON a `JsonReduction` with ``json``,
        in which every byte that is not replaced is unchanged. What is unchanged is the caller's own object.

    Raises:
        TranscriptError: the input is no history; names the byte, the message and the field.
        TypeError, ValueError: an option is unknown, of the wrong type, or out of range.

    Time is linear in the messages and the text of old results, or in the bytes.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "Fix the test."}]
        >>> for number in range(20):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "FAILED " * 100})
        >>> result = recede.reduce(history, keep=5, boundary="sliding")
        >>> result.messages[2]["content"], result.masked_count, result.chars_before, result.chars_after
        ('[old tool output cleared to save context]', 15, 14513, 4628)
    """
    if more:  # the published reducer is called with a mapping
        instead = "recede.designs.HistoryReducer().reduce(messages, options)"
        if isinstance(more[0], int):
            instead = f"reduce(messages, keep={more[0]})"
        raise TypeError(f"reduce takes its options by name: {instead}")
    own: Any = options
    if summarizer is not None:
        from recede._summarizer import texts_of  # lazily: few give one, and it imports inspect and json

        own = {**options, "summarizer": summarizer, "texts": texts_of(summarizer)}
    if isinstance(messages, (bytes, bytearray, memoryview, str)):
        refuse_path(messages)
        static = partial(static_cost_of_json, *as_bytes(messages))

        if is_share(options):
            model, is_request = _request_of_json(as_bytes(messages)[0])
            limited: Any = in_tokens(options, model, is_request=is_request)
            return reduce(messages, summarizer=summarizer, **limited)

        def policy(model: Any = None) -> Any:
            return _policy(options, summarizer, MARKS_ELSEWHERE, _static(options, model, static), model)

        return reduce_bytes(policy(), messages, own, policy)
    key: Any = body_key(messages)
    given: Any = messages
    if key is None:
        answer = reduce_messages(_policy(options, summarizer, MARKS_ELSEWHERE), given, own)
        if answer.masked_count and options.get("provider", "auto") == "auto":
            from recede.reduction._unrecognized import warn_of_unnamed_model

            warn_of_unnamed_model(given)
        return answer
    model, marks, automatic = given.get("model"), marks_elsewhere(given), automatic_mark(given)
    in_request: Any = in_tokens(options, model, is_request=True)
    options = in_request
    of_request = _static(options, model, partial(static_cost, given)), model, automatic
    reduction = reduce_messages(_policy(options, summarizer, marks, *of_request), given[key], own)
    return reduction._replace(request=given if reduction.messages is given[key] else {**given, key: reduction.messages})


def _static(options: Any, model: Any, cost: Callable[..., int]) -> int:
    """What system prompt and tools take, by a counter of tokens, if the options need it."""
    if has_limits(options):
        counter = options.get("token_counter")
        return cost(counter, None if counter else tokenizers(options.get("provider", "auto"), model))
    return rounded_static(cost()) if has_entries(options.get("provider", "auto"), model) else 0


def _request_of_json(data: bytes) -> tuple[Any, bool]:
    """The model that a serialized request names, and whether it is a request; a list names none."""
    try:
        value = loads(data)
    except TranscriptError:  # lines, or what is refused later
        return None, False
    is_request = body_key(value) is not None
    return value.get("model") if is_request else None, is_request


def _policy(
    options: Any, summarizer: Any, marks: int, static: int = 0, model: Any = None, automatic: str | None = None
) -> Any:
    own: Any = {"summarizer": summarizer, "marks_elsewhere": marks, "static": static, "model": model}
    return own_policy(_engine.engine, options, reduces=True, automatic_mark=automatic, **own)
