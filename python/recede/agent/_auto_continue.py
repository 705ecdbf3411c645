"""Continue answers that were truncated at the token limit."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Literal, NamedTuple

from recede._answer import answer_of
from recede._objects import changed, check_create, is_openai, read, stop_reason
from recede._steps import Call, Step, drive, drive_async
from recede.agent._parts import cut_in, whole_completion, whole_message
from recede.reduction._kinds import optional_function, whole_number

_log = logging.getLogger("recede")

CONTINUE = "Continue where you left off. Do not repeat what you already said."
_CUT_FOR_LENGTH = ("max_tokens", "length")
_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens")
_CUT_IN = {"text": "its text", "thinking": "its thinking", "tool_use": "a tool call"}
_THEN = {
    "continue": "it is sent back to be continued",
    "retry": "it is asked for with twice the limit",
    "end": "it ends there",
}


class Continuation(NamedTuple):
    """How `auto_continue` obtained an answer: its attribute ``continuation``.

    Attributes:
        requests: the number of requests; 1 if nothing had to be continued.
        cut: what each truncated part ended in: ``"text"``, ``"thinking"``, ``"tool_use"``, or ``""`` if it was empty.
        error: what a request after the first raised, if any; the answer consists of the parts received before.

    Example:
        >>> import recede
        >>> whole = {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
        >>> recede.designs.auto_continue(lambda **request: whole, messages=[]).continuation
        Continuation(requests=1, cut=(), error=None)
    """

    requests: int
    cut: tuple[str, ...]
    error: Exception | None


class Cut(NamedTuple):
    """An answer that was cut at its limit of output tokens, and what was done.

    Attributes:
        kind: what it was cut in: ``"text"``, ``"thinking"``, ``"tool_use"``, or ``""`` if it was empty.
        request: the number of the request that it answered, from 1.
        max_tokens: the limit of that request; None if the request had none.
        then: ``"continue"`` if what came is sent back; ``"retry"`` if it is requested again with twice the limit;
            ``"end"`` if the answer ends there.

    Example:
        >>> import recede
        >>> cut = recede.agent.Cut("tool_use", 1, 4_096, "retry")
        >>> print(cut)
        an answer was cut in a tool call (request 1, max_tokens=4,096): it is asked for with twice the limit
    """

    kind: str
    request: int
    max_tokens: int | None
    then: Literal["continue", "retry", "end"]

    def __str__(self) -> str:
        limit = "" if self.max_tokens is None else f", max_tokens={self.max_tokens:,}"
        what = _CUT_IN.get(self.kind, "its beginning")
        return f"an answer was cut in {what} (request {self.request}{limit}): {_THEN[self.then]}"


def auto_continue(
    create: Callable[..., Any],
    *,
    messages: list[Any],
    max_attempts: int = 3,
    max_total_output_tokens: int | None = None,
    max_tokens_limit: int | None = None,
    on_cut: Callable[[Cut], Any] | None = None,
    **request: Any,
) -> Any:
    """Request an answer; if it is truncated, send it back and ask the model to continue.

    Args:
        create: ``client.messages.create`` of Anthropic, ``client.chat.completions.create`` of OpenAI, or anything
            of that shape.
        messages: the messages of the request. The list is not changed.
        max_attempts: the maximum number of requests.
        max_total_output_tokens: the limit of output tokens over all requests; no request asks for more than what
            remains.
        max_tokens_limit: the upper bound of the limit with which an answer that was cut in a tool call is asked for
            again; by default twice the request's ``max_tokens``.
        on_cut: called with a `Cut` for each answer that was cut; the log gets a warning in any case.
        **request: the other arguments of `create`.

    Returns:
        The response, assembled from its parts: texts are joined where they were cut (a repetition of 20 characters or
        more at the joint is removed, and any after a cut call), thinking is unchanged and precedes its text, the usage
        is summed. Truncated parts lose their calls, which may be incomplete, and thinking without a signature.
        ``continuation`` is a `Continuation`.

        An answer that was cut in a tool call is asked for once more with twice the limit, after the text that came
        before the call. If it is cut in a call again, or cut in its thinking, the response keeps "max_tokens"
        ("length"). A text that is still truncated after the last request gets the ``stop_reason`` "end_turn" ("stop"
        for OpenAI).

    Raises:
        Exception: what `create` raised at the first request. Later errors are kept on the response.
        TypeError, ValueError: an option is wrong, `create` did not return a response, or is of OpenAI's Responses.

    Example:
        >>> import recede
        >>> parts = [("The answer is for", "max_tokens"), ("ty-two.", "end_turn")]
        >>> def create(**request):
        ...     text, reason = parts.pop(0)
        ...     return {"role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": reason}
        >>> answer = recede.designs.auto_continue(create, messages=[{"role": "user", "content": "What is it?"}])
        >>> answer["content"], answer.continuation.requests
        ([{'type': 'text', 'text': 'The answer is forty-two.'}], 2)
    """
    check_create(create, "auto_continue")
    answers = Answers(messages, request, max_attempts, max_total_output_tokens, max_tokens_limit, on_cut)
    return drive(answers.steps(partial(_asked, create)))


async def auto_continue_async(
    create: Callable[..., Awaitable[Any]],
    *,
    messages: list[Any],
    max_attempts: int = 3,
    max_total_output_tokens: int | None = None,
    max_tokens_limit: int | None = None,
    on_cut: Callable[[Cut], Any] | None = None,
    **request: Any,
) -> Any:
    """`auto_continue` for an async client; `on_cut` is not awaited.

    Example:
        >>> import asyncio, recede
        >>> async def create(**request):
        ...     return {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
        >>> answer = asyncio.run(recede.designs.auto_continue_async(create, messages=[]))
        >>> answer["content"][0]["text"]
        'Done.'
    """
    check_create(create, "auto_continue_async")
    answers = Answers(messages, request, max_attempts, max_total_output_tokens, max_tokens_limit, on_cut)
    return await drive_async(answers.steps(partial(_asked, create)))


def _asked(create: Callable[..., Any], request: dict[str, Any]) -> Generator[Step, Any, Any]:
    return (yield Call("create", partial(create, **request), (), "auto_continue_async"))


class Answers:
    """The parts of one answer: builds the next request and assembles the parts."""

    def __init__(
        self,
        messages: list[Any],
        request: dict[str, Any],
        max_attempts: int,
        max_total_output_tokens: int | None,
        max_tokens_limit: int | None = None,
        on_cut: Callable[[Cut], Any] | None = None,
    ) -> None:
        whole_number(1)("max_attempts", max_attempts)
        whole_number(1, optional=True)("max_total_output_tokens", max_total_output_tokens)
        whole_number(1, optional=True)("max_tokens_limit", max_tokens_limit)
        optional_function("on_cut", on_cut)
        if not isinstance(messages, (list, tuple)):
            raise TypeError(f"messages must be a list, not {type(messages).__name__}")
        if request.get("stream"):
            raise TypeError("auto_continue takes whole responses: leave stream out, or use a Conversation with on_text")
        self._messages = messages
        self._request = request
        self._most = max_attempts
        self._cap = max_total_output_tokens
        self._most_tokens = max_tokens_limit
        self._on_cut = on_cut
        self.parts: list[Any] = []  # the responses so far
        self._cut_in: list[str] = []  # what each part that was cut ended in
        self._requests = 0
        self._asked: int | None = None  # the limit of the last request
        self._error: Exception | None = None
        self._used_up = False  # more requests were needed than allowed
        self._is_retried = False  # with twice the limit

    def steps(self, ask: Callable[[dict[str, Any]], Generator[Step, Any, Any]]) -> Generator[Step, Any, Any]:
        """The steps to the whole response, which they return; `ask` has those of a request."""
        while not self.parts or self._continues():
            is_first = not self.parts
            self._requests += 1
            limits = self._limits()
            self._asked = min(limits.values(), default=None)
            try:
                self.add((yield from ask({**self._request, **limits, "messages": self._messages})))
            except Exception as error:
                if is_first:
                    raise
                self._error = error
        return self.response()

    def _limits(self, factor: int = 1) -> dict[str, int]:
        """Return the request's limits of output tokens, within what remains of the total."""
        bounds = [self._most_tokens] if factor > 1 else []
        bounds.append(None if self._cap is None else self._cap - sum(map(_output_tokens, self.parts)))
        given = {name: self._request[name] for name in _OUTPUT_LIMITS if isinstance(self._request.get(name), int)}
        known = [bound for bound in bounds if bound is not None]
        return {name: min([factor * limit, *known]) for name, limit in given.items()}

    def _continues(self) -> bool:
        """Prepare the next request, if there is one, and report a cut; return whether there is one."""
        last = self.parts[-1]
        if self._error is not None or stop_reason(last) not in _CUT_FOR_LENGTH:
            return False
        limits, said = self._limits(), answer_of(last)
        is_in_call = self._cut_in[-1] == "tool_use"
        more = self._limits(2) if is_in_call and not self._is_retried else {}
        is_retry = any(more[name] > limits[name] for name in more)
        is_wanted = is_retry or (said is not None and not (is_in_call and self._is_retried))
        is_left = self._cap is None or sum(map(_output_tokens, self.parts)) < self._cap
        is_allowed = self._requests < self._most and is_left
        self._used_up = is_wanted and said is not None and not is_allowed
        then: Literal["continue", "retry", "end"] = "retry" if is_retry else "continue"
        then = then if is_wanted and is_allowed else "end"
        self._report(Cut(self._cut_in[-1], self._requests, self._asked, then))
        if then == "end":
            return False
        if is_retry:
            self._is_retried = True
            self._request = {**self._request, **more}
        if said is not None:
            # Parts are sent back unchanged, so that the prompt cache serves them.
            self._messages = [*self._messages, said, {"role": "user", "content": CONTINUE}]
        elif not is_openai(last):  # of its thinking nothing belongs to the next one
            self.parts[-1] = changed(last, content=[])
        return True

    def _report(self, cut: Cut) -> None:
        _log.warning("%s", cut)
        if self._on_cut is not None:
            try:
                self._on_cut(cut)
            except Exception:  # the answer is worth more than a report of it
                _log.exception("on_cut raised an error")

    def add(self, response: Any) -> None:
        is_openai(response)
        self.parts.append(response)
        if stop_reason(response) in _CUT_FOR_LENGTH:
            self._cut_in.append(cut_in(response))

    def response(self) -> Any:
        """The assembled parts; a single part is returned unchanged."""
        last = self.parts[-1]
        put_together = whole_completion if is_openai(last) else whole_message
        whole = put_together(self.parts, self._used_up) if self._cut_in else last
        continuation = Continuation(self._requests, tuple(self._cut_in), self._error)
        if isinstance(whole, dict):
            whole = _Response(whole)
        object.__setattr__(whole, "continuation", continuation)  # a pydantic field would appear in dumps
        return whole


class _Response(dict[str, Any]):
    """A dict response with a `continuation` attribute."""

    continuation: Continuation


def _output_tokens(part: Any) -> int:
    usage = read(part, "usage")
    tokens = read(usage, "output_tokens") or read(usage, "completion_tokens")
    return tokens if isinstance(tokens, int) else 0
