"""Continue answers that were truncated at the token limit."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from recede._objects import changed, plain, read
from recede._response import CUT, answer_of, blocks_of, choice_of, is_openai, stop_reason, usable
from recede.reduction._policy import whole_number

__all__ = ["CONTINUE", "Answers", "Continuation", "auto_continue", "auto_continue_async", "usage_sum"]

_log = logging.getLogger("recede")

CONTINUE = "Continue where you left off. Do not repeat what you already said."
_CUT_FOR_LENGTH = ("max_tokens", "length")
# A repetition of this many characters is no coincidence.
_LEAST_OVERLAP = 20
_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens")


class Continuation(NamedTuple):
    """How `auto_continue` obtained an answer: its attribute ``continuation``.

    Attributes:
        requests: the number of requests; 1 if nothing had to be continued.
        cut: what each truncated part ended in: ``"text"``, ``"thinking"``, ``"tool_use"``, or ``""`` if it was empty.
        error: what a request after the first raised, if any; the answer consists of the parts received before.

    Example:
        >>> import recede
        >>> whole = {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
        >>> recede.auto_continue(lambda **request: whole, messages=[{"role": "user", "content": "Go."}]).continuation
        Continuation(requests=1, cut=(), error=None)
    """

    requests: int
    cut: tuple[str, ...]
    error: Exception | None


def auto_continue(
    create: Callable[..., Any],
    *,
    messages: list[Any],
    max_attempts: int = 3,
    max_total_output_tokens: int | None = None,
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
        **request: the other arguments of `create`.

    Returns:
        The response, assembled from its parts: texts are joined where they were cut (a repetition of 20 characters or
        more at the joint is removed), thinking is unchanged and precedes its text, the usage is summed. Truncated parts
        lose their calls, which may be incomplete, and thinking without a signature. ``continuation`` is a
        `Continuation`.

        A text that is still truncated after the last request gets the ``stop_reason`` "end_turn" ("stop" for OpenAI)
        and a warning in the log. If nothing of a part can be sent back, because it was cut in its thinking or first
        call, the response keeps "max_tokens" ("length").

    Raises:
        Exception: what `create` raised at the first request. Later errors are kept on the response.
        TypeError, ValueError: an option is wrong, or `create` did not return a response.

    Example:
        >>> import recede
        >>> parts = [("The answer is for", "max_tokens"), ("ty-two.", "end_turn")]
        >>> def create(**request):
        ...     text, reason = parts.pop(0)
        ...     return {"role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": reason}
        >>> answer = recede.auto_continue(create, messages=[{"role": "user", "content": "What is it?"}])
        >>> answer["content"], answer.continuation.requests
        ([{'type': 'text', 'text': 'The answer is forty-two.'}], 2)
    """
    answers = Answers(messages, request, max_attempts, max_total_output_tokens)
    while (ask := answers.next_request()) is not None:
        try:
            response = create(**ask)
        except Exception as error:
            answers.fail(error)
        else:
            answers.add(response)
    return answers.response()


async def auto_continue_async(
    create: Callable[..., Awaitable[Any]],
    *,
    messages: list[Any],
    max_attempts: int = 3,
    max_total_output_tokens: int | None = None,
    **request: Any,
) -> Any:
    """`auto_continue` for an async client.

    Args:
        create: ``messages.create`` of an ``AsyncAnthropic``, ``chat.completions.create`` of an ``AsyncOpenAI``, or
            anything of that shape.
        messages: as for `auto_continue`.
        max_attempts: as for `auto_continue`.
        max_total_output_tokens: as for `auto_continue`.
        **request: the other arguments of `create`.

    Raises:
        Exception: as for `auto_continue`.

    Example:
        >>> import asyncio, recede
        >>> async def create(**request):
        ...     return {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
        >>> answer = asyncio.run(recede.auto_continue_async(create, messages=[{"role": "user", "content": "Go."}]))
        >>> answer["content"][0]["text"]
        'Done.'
    """
    answers = Answers(messages, request, max_attempts, max_total_output_tokens)
    while (ask := answers.next_request()) is not None:
        try:
            response = await create(**ask)
        except Exception as error:
            answers.fail(error)
        else:
            answers.add(response)
    return answers.response()


class Answers:
    """The parts of one answer: builds the next request and assembles the parts. It makes no requests itself."""

    def __init__(
        self, messages: list[Any], request: dict[str, Any], max_attempts: int, max_total_output_tokens: int | None
    ) -> None:
        whole_number(1)("max_attempts", max_attempts)
        if max_total_output_tokens is not None:
            whole_number(1)("max_total_output_tokens", max_total_output_tokens)
        if request.get("stream"):
            raise TypeError("auto_continue takes whole responses: leave stream out, or use a Conversation with on_text")
        self._messages = messages
        self._request = request
        self._most = max_attempts
        self._cap = max_total_output_tokens
        self._parts: list[Any] = []
        self._requests = 0
        self._error: Exception | None = None
        self._used_up = False  # more requests were needed than allowed

    def next_request(self) -> dict[str, Any] | None:
        """The arguments of the next request; None when the answer is complete or cannot be continued."""
        left = None if self._cap is None else self._cap - sum(map(_output_tokens, self._parts))
        if self._parts:
            last = self._parts[-1]
            if self._error is not None or stop_reason(last) not in _CUT_FOR_LENGTH:
                return None
            said = answer_of(last)
            if said is None:
                return None
            self._used_up = len(self._parts) >= self._most or (left is not None and left <= 0)
            if self._used_up:
                _log.warning("an answer was still cut after %d requests", self._requests)
                return None
            # Parts are sent back unchanged, so that the prompt cache serves them.
            self._messages = [*self._messages, said, {"role": "user", "content": CONTINUE}]
        self._requests += 1
        request = {**self._request, "messages": self._messages}
        if left is not None:
            for name in _OUTPUT_LIMITS:
                if request.get(name) is not None:
                    request[name] = min(request[name], left)
        return request

    def add(self, response: Any) -> None:
        """Add the response to the last request."""
        is_openai(response)
        self._parts.append(response)

    def fail(self, error: Exception) -> None:
        """Record what the last request raised; re-raise it for the first request."""
        if not self._parts:
            raise error
        self._error = error

    @property
    def parts(self) -> tuple[Any, ...]:
        """The responses so far."""
        return tuple(self._parts)

    def response(self) -> Any:
        """The assembled parts; a single part is returned unchanged."""
        last = self._parts[-1]
        cut = [part for part in self._parts if stop_reason(part) in _CUT_FOR_LENGTH]
        whole = (_completion if is_openai(last) else _message)(self._parts, self._used_up) if cut else last
        continuation = Continuation(self._requests, tuple(map(_cut_in, cut)), self._error)
        if isinstance(whole, dict):
            whole = _Response(whole)
        object.__setattr__(whole, "continuation", continuation)  # a pydantic field would appear in dumps
        return whole


class _Response(dict[str, Any]):
    """A dict response with a `continuation` attribute."""

    continuation: Continuation


def _message(parts: list[Any], used_up: bool) -> Any:
    """Assemble the parts of an Anthropic message."""
    blocks: list[Any] = []
    for part in parts:
        new = usable(blocks_of(part), stop_reason(part) in CUT)
        thinking = [block for block in new if read(block, "type") in ("thinking", "redacted_thinking")]
        leading = thinking if new[: len(thinking)] == thinking else []
        rest = new[len(leading) :]
        if blocks and rest and _is_text(blocks[-1]) and _is_text(rest[0]):
            text = _joined(read(blocks[-1], "text"), read(rest[0], "text"))
            # Thinking comes first: a provider refuses a message whose thinking follows its text.
            blocks = [*blocks[:-1], *leading, changed(rest[0], text=text), *rest[1:]]
        else:
            blocks += new
    ended = {"stop_reason": "end_turn"} if used_up else {}
    return changed(parts[-1], content=blocks, usage=_usage(parts), **ended)


def _completion(parts: list[Any], used_up: bool) -> Any:
    """Assemble the parts of a chat completion: the first choice of each."""
    text = ""
    for part in parts:
        text = _joined(text, _said(read(choice_of(part), "message")))
    choice = choice_of(parts[-1])
    if not isinstance(plain(read(choice, "message")), dict):  # no message to put text into
        choice = {"index": 0, "message": {"role": "assistant"}, "finish_reason": stop_reason(parts[-1])}
    message = changed(read(choice, "message"), content=text or None)
    if stop_reason(parts[-1]) in CUT and read(message, "tool_calls"):
        message = changed(message, tool_calls=None)
    ended = {"finish_reason": "stop"} if used_up else {}
    return changed(parts[-1], choices=[changed(choice, message=message, **ended)], usage=_usage(parts))


def _is_text(block: Any) -> bool:
    return bool(read(block, "type") == "text" and not read(block, "citations"))


def _said(message: Any) -> str:
    content = read(message, "content")
    if isinstance(content, (list, tuple)):
        content = "".join(text for part in content if isinstance(text := read(part, "text"), str))
    return content if isinstance(content, str) else ""


def _joined(first: str, second: str) -> str:
    """Join two parts of a text, without what the second repeats of the end of the first.

    The longest repetition is removed. Linear in both texts, even for repetitive ones (Knuth-Morris-Pratt).
    """
    start = second[:_LEAST_OVERLAP]
    at = first.find(start, max(0, len(first) - len(second))) if len(start) == _LEAST_OVERLAP else -1
    if at < 0:
        return first + second
    end = first[at:]  # what may be repeated
    again = second[: len(end)]
    border = [0] * len(again)  # for each prefix of `again`, the length of its longest border
    length = 0
    for place in range(1, len(again)):
        while length and again[place] != again[length]:
            length = border[length - 1]
        length += again[place] == again[length]
        border[place] = length
    length = 0
    for char in end:
        while length and char != again[length]:
            length = border[length - 1]
        length += char == again[length]
    return first + second[length:] if length >= _LEAST_OVERLAP else first + second


def _cut_in(part: Any) -> str:
    """What a part was cut in: its last block."""
    if is_openai(part):
        message = read(choice_of(part), "message")
        return "tool_use" if read(message, "tool_calls") else "text" if read(message, "content") else ""
    blocks = blocks_of(part)
    return str(read(blocks[-1], "type")) if blocks else ""


def _output_tokens(part: Any) -> int:
    usage = read(part, "usage")
    tokens = read(usage, "output_tokens") or read(usage, "completion_tokens")
    return tokens if isinstance(tokens, int) else 0


def _usage(parts: list[Any]) -> Any:
    total = read(parts[0], "usage")
    for part in parts[1:]:
        total = usage_sum(total, read(part, "usage"))
    return total


def usage_sum(first: Any, second: Any) -> Any:
    """Add numbers, also nested ones; of other values take the later one."""
    if first is None or second is None:
        return first if second is None else second
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return first if isinstance(first, bool) else first + second
    before, after = plain(first), plain(second)
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return second
    return changed(second, **{name: usage_sum(read(first, name), read(second, name)) for name in {**before, **after}})
