"""A reduction by the engine, which is given what it requests, a summary or costs, until it has a result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from recede import _engine
from recede._bodies import history_of, loads
from recede._errors import TranscriptError
from recede._report import JsonReduction, Reduction
from recede.reduction._counting import all_costs, count_tokens, counted
from recede.reduction._input import as_bytes, ask_engine, copy_of, forms_of
from recede.reduction._kinds import CHARS_PER_TOKEN
from recede.reduction._policy import compiled, image_chars_of

if TYPE_CHECKING:
    from recede.reduction._input import Json
    from recede.types import Summarizer, TokenCounter


def reduce_messages(policy: Any, messages: list[Any], options: Any) -> Reduction:
    """Reduce a list by a Policy; of its options this needs the caller's functions, and what images count."""
    summarizer, counter, texts = options.get("summarizer"), options.get("token_counter"), options.get("texts")
    given = messages
    costs: Any = None
    if summarizer is not None or counter is not None:
        messages = copy_of(messages)
    if counter is not None:
        costs = all_costs(ask_engine("texts", messages, policy)[0], counter, image_chars_of(options))
    answer, error = reduced(messages, policy, costs, None, texts), None
    if type(answer) is not Reduction:
        from recede._objects import plain_message

        answer, error = _answered(
            answer,
            lambda summary: reduced(messages, policy, costs, summary, texts),
            lambda index: plain_message(messages[index]),
            options,
            costs,
            lambda: len(messages),
        )
    if messages is not given and answer.messages is messages and given == messages:
        answer = answer._replace(messages=given)
    return _reported(answer, error)  # type: ignore[no-any-return]


def reduce_bytes(policy: Any, data: Json, options: Any, of_model: Callable[..., Any] | None = None) -> JsonReduction:
    """Reduce serialized input, likewise; `of_model` gives the Policy for the model that a request names."""
    engine = _engine.engine
    raw, surrogates = as_bytes(data)
    counter, texts = options.get("token_counter"), options.get("texts")
    costs: Any = None
    if counter is not None:
        # The strict reader validates it for json.
        engine.reduce_json(raw, surrogates, compiled(engine, "truncate", {}))
        costs = all_costs(engine.texts(history_of(raw), policy), counter, image_chars_of(options))
    answer, error = engine.reduce_json(raw, surrogates, policy, costs, None, of_model, texts), None
    if type(answer) is not JsonReduction:
        answer, error = _answered(
            answer,
            lambda summary: engine.reduce_json(raw, surrogates, policy, costs, summary, of_model, texts),
            lambda span: loads(raw[slice(*span)]),
            options,
            costs,
            lambda: len(history_of(raw)),
        )
    return _reported(answer, error)  # type: ignore[no-any-return]


def _reported(answer: Any, error: Exception | None) -> Any:
    """The reduction, with the summarizer's error; its reason is in the debug log, if that is on."""
    logging: Any = sys.modules.get("logging")  # it takes longer to import than all of recede
    if logging is not None and (log := logging.getLogger("recede")).isEnabledFor(logging.DEBUG):
        log.debug("a view: %s", answer.reason)
    return answer if error is None else answer._replace(summarizer_error=error)


def _answered(
    answer: Any,
    reduce: Callable[[Any], Any],
    message_of: Callable[[Any], Any],
    options: Any,
    costs: Any,
    length: Callable[[], int],
) -> tuple[Any, Exception | None]:
    """Answer the requests of an engine for costs and a summary, until it has a result."""
    from recede.reduction._exchange import CountRequest, SummaryRequest  # lazily: it imports typing

    summarizer, counter = options.get("summarizer"), options.get("token_counter")
    summary, error = None, None
    while True:
        if type(answer) is CountRequest:
            costs[2].update(counted(answer.texts, counter))
        elif type(answer) is SummaryRequest:
            dropped = list(map(message_of, answer.dropped)) if summarizer is not None else []
            texts = options.get("texts")
            asked = _remembering(summarizer, texts, answer.told, length)
            summary, error = asked_summary(dropped, answer.previous, answer.built_in, asked, counter)
        else:
            return answer, error
        answer = reduce(summary)


def _remembering(summarizer: Any, texts: Any, told: bytes | None, length: Callable[[], int]) -> Any:
    """The summarizer, which is not asked again for what it gave or failed to give last; `length` counts the history."""
    if texts is None:
        return summarizer

    def text_of(messages: list[Any], previous: str | None) -> Any:
        from recede._summarizer import bound, checked_text

        key = texts.key_of(told, messages, previous)
        text = None if key is None else texts.use(key)
        if text is not None:
            return text
        error = None if key is None else texts.failure(key, length())
        if error is not None:
            raise error
        try:
            text = checked_text(bound("summarizer", summarizer)(messages, previous))
        except Exception as error:
            if key is not None:
                texts.fail(key, length(), error)
            raise
        if key is not None:
            texts.remember(key, text)
        return text

    return text_of


def asked_summary(
    dropped: list[Any], previous: str | None, builtin: str, summarizer: Summarizer | None, counter: TokenCounter | None
) -> tuple[tuple[str, int | None] | bool, Exception | None]:
    """The summary to plan with; or False and the error, to plan without one."""
    text = builtin
    if summarizer is not None:
        try:
            from recede._summarizer import bound, checked_text  # lazily: it imports inspect

            text = checked_text(bound("summarizer", summarizer)(dropped, previous))
        except Exception as error:
            return False, error
    return (text, None if counter is None else CHARS_PER_TOKEN * count_tokens(counter, text)), None


def reduced(messages: list[Any], policy: Any, costs: Any = None, summary: Any = None, texts: Any = None) -> Any:
    """The reduction of a history, or what the engine must be given first: a summary that `texts` lacks, or costs."""
    engine = _engine.engine
    try:
        return engine.reduce(messages, policy, costs, summary, texts)
    except TranscriptError as fault:
        forms = forms_of(messages, fault)
    answer = engine.reduce(forms.messages, policy, costs, summary, texts)
    if type(answer) is not Reduction:
        return answer
    view = answer.messages
    return answer._replace(messages=messages if view is forms.messages else forms.restored(view))
