"""Goes on with an answer that was cut for its length, until it is whole or the requests are used up."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from recede._response import (
    CUT,
    answer_of,
    blocks_of,
    changed,
    choice_of,
    is_openai,
    plain,
    read,
    stop_reason,
    usable,
)
from recede.reduction._policy import whole_number

__all__ = ["CONTINUE", "Answers", "Continuation", "auto_continue", "auto_continue_async", "usage_sum"]

_log = logging.getLogger("recede")

CONTINUE = "Continue where you left off. Do not repeat what you already said."
_CUT_FOR_LENGTH = ("max_tokens", "length")
# As much of a text said twice in a row is no chance.
_LEAST_OVERLAP = 20
_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens")


class Continuation(NamedTuple):
    """How an answer of `auto_continue` came about: its attribute ``continuation``.

    Attributes:
        requests: how many requests were made; 1 where nothing had to be continued.
        cut: in what each part that was cut ended: ``"text"``, ``"thinking"``, ``"tool_use"``, or ``""`` where it
            was empty.
        error: what a request after the first raised, if one did; the answer is what had come before.

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
    """Ask for an answer; where it was cut for its length, send what came and ask the model to go on.

    Args:
        create: ``client.messages.create`` of Anthropic, ``client.chat.completions.create`` of OpenAI, or anything
            of that shape.
        messages: the messages of the request. The list is not changed.
        max_attempts: at most so many requests in all.
        max_total_output_tokens: no further request is made when so many output tokens came, and none asks for
            more than what is left of them.
        **request: the other arguments of `create`.

    Returns:
        The response, put together of its parts: the halves of a text joined where it was cut (at least 20
        characters that are said again at the joint, once), thinking as it came, before the text that it led to, the
        usage summed. Of a part that was cut no call is there, since it is unfinished, and no thinking without a
        signature. Its ``continuation`` is a `Continuation`.

        A text that is still cut after the last request ends with ``stop_reason`` "end_turn" ("stop" of OpenAI) and a
        warning in the log. Where nothing of a part could be sent back, since it was cut in its thinking or its first
        call, the response keeps "max_tokens" ("length").

    Raises:
        Exception: what `create` raises at the first request. Later it is kept on the response.
        TypeError, ValueError: an option is wrong, or `create` gave no response.

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
    """The parts of one answer as they come: says what to ask next, and puts them together. It asks nothing itself."""

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
        self._used_up = False  # further requests were wanted and not allowed

    def next_request(self) -> dict[str, Any] | None:
        """The arguments of the next request; None when the answer is whole, or goes no further."""
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
            # Each part as it came, so that a prompt cache serves it.
            self._messages = [*self._messages, said, {"role": "user", "content": CONTINUE}]
        self._requests += 1
        request = {**self._request, "messages": self._messages}
        if left is not None:
            for name in _OUTPUT_LIMITS:
                if request.get(name) is not None:
                    request[name] = min(request[name], left)
        return request

    def add(self, response: Any) -> None:
        """Take the response to the last request."""
        is_openai(response)
        self._parts.append(response)

    def fail(self, error: Exception) -> None:
        """Take what the last request raised; of the first one it is raised."""
        if not self._parts:
            raise error
        self._error = error

    @property
    def parts(self) -> tuple[Any, ...]:
        """The responses so far."""
        return tuple(self._parts)

    def response(self) -> Any:
        """The parts put together. Without any cut it is the response that came."""
        last = self._parts[-1]
        cut = [part for part in self._parts if stop_reason(part) in _CUT_FOR_LENGTH]
        whole = (_completion if is_openai(last) else _message)(self._parts, self._used_up) if cut else last
        continuation = Continuation(self._requests, tuple(map(_cut_in, cut)), self._error)
        if isinstance(whole, dict):
            whole = _Response(whole)
        object.__setattr__(whole, "continuation", continuation)  # a field of pydantic would be dumped with the others
        return whole


class _Response(dict[str, Any]):
    """A response that came as a dict, with room for its continuation."""

    continuation: Continuation


def _message(parts: list[Any], used_up: bool) -> Any:
    """Parts of a message of Anthropic put together."""
    blocks: list[Any] = []
    for part in parts:
        new = usable(blocks_of(part), stop_reason(part) in CUT)
        thinking = [block for block in new if read(block, "type") in ("thinking", "redacted_thinking")]
        leading = thinking if new[: len(thinking)] == thinking else []
        rest = new[len(leading) :]
        if blocks and rest and _is_text(blocks[-1]) and _is_text(rest[0]):
            text = _joined(read(blocks[-1], "text"), read(rest[0], "text"))
            # Thinking leads: a provider takes no message whose thinking comes after a text of it.
            blocks = [*blocks[:-1], *leading, changed(rest[0], text=text), *rest[1:]]
        else:
            blocks += new
    ended = {"stop_reason": "end_turn"} if used_up else {}
    return changed(parts[-1], content=blocks, usage=_usage(parts), **ended)


def _completion(parts: list[Any], used_up: bool) -> Any:
    """Parts of a chat completion put together: the first choice of each."""
    text = ""
    for part in parts:
        text = _joined(text, _said(read(choice_of(part), "message")))
    choice = choice_of(parts[-1])
    if not isinstance(plain(read(choice, "message")), dict):  # nothing that text could be put into
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
    """Two halves of a text; what the second says again of the end of the first stands once.

    The longest such repetition counts. It takes time linear in both, as texts that repeat themselves need: the search
    of Knuth, Morris and Pratt.
    """
    start = second[:_LEAST_OVERLAP]
    at = first.find(start, max(0, len(first) - len(second))) if len(start) == _LEAST_OVERLAP else -1
    if at < 0:
        return first + second
    end = first[at:]  # what may be said again
    again = second[: len(end)]
    border = [0] * len(again)  # of each beginning of `again`, its longest true end that it begins with, too
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
    """In what a part was cut: its last block."""
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
    """Numbers added, also those inside; of anything else the later one."""
    if first is None or second is None:
        return first if second is None else second
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return first if isinstance(first, bool) else first + second
    before, after = plain(first), plain(second)
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return second
    return changed(second, **{name: usage_sum(read(first, name), read(second, name)) for name in {**before, **after}})
