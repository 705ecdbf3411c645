"""The agent loop: request, run tools, repeat; keeps the full history and sends a view."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from recede._answer import answer_of, as_given
from recede._forks import lock_of
from recede._objects import changed, check_create, plain_message, read, stop_reason, text_of
from recede._steps import Call, Step, drive, drive_async
from recede.agent._auto_continue import CONTINUE, Answers, Cut
from recede.agent._budget import Budget
from recede.agent._given import check_tools, client_of, marked_request, shape_of, spoken_message
from recede.agent._parts import usage_sum
from recede.agent._stream import Streamed
from recede.agent._tool_calls import Round, Shape, ToolResult, Tools, calls_of, open_calls, result_messages
from recede.providers import Provider, lifetime
from recede.reduction._kinds import optional_function, whole_number
from recede.reduction._policy import IS_OFF
from recede.session._history import History

_log = logging.getLogger("recede")

_PROVIDERS = ("anthropic", "openai")  # the packages of the official clients, and whose cache they use
# How long an entry of a cache lives without use, if it was written for five minutes or for an hour.
_HOUR = lifetime(Provider.of("anthropic_1h"))


class Answer(NamedTuple):
    """The result of a turn of a `Conversation`.

    Example:
        >>> import recede
        >>> def create(**request):
        ...     return {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
        >>> recede.designs.Conversation(create).turn("Go.")
        Answer(text='Done.', stop_reason='end_turn', requests=1, tool_calls=0, usage=None, error=None)
    """

    text: str  # the last one of the model
    stop_reason: str | None  # as the provider calls it; "max_tool_rounds" if the limit was reached
    requests: int
    tool_calls: int
    usage: Any  # of all requests, summed; None if the provider reported none
    error: Exception | None  # that prevented a truncated answer from being continued


class Conversation:
    """A conversation with a model that may use tools; without a budget with a break-even boundary.

    `history` keeps everything; requests send its view, in which old observations are masked. Nothing is added to the
    prompt. However a turn ends, the provider accepts the history: it contains what was received of the answer, and
    every call has its result. Answers are kept as the client gave them; what was damaged, as a repaired dict.

    What the provider counts for each request goes to `History.reported`. After five minutes without an answer, an hour
    where the provider writes its cache for an hour, the cache is taken to be cold: `History.cache_is_cold`.

    With a client of Anthropic it marks its requests for the prompt cache (``cache_control``): the system prompt, the
    newest block, and the boundary. Marks that ``system`` or ``tools`` have stay and count. With a budget or a history
    of your own it does so if the provider of that has such marks.

    Args:
        create: ``client.messages.create`` of Anthropic, ``client.chat.completions.create`` of OpenAI, of a client or
            of an async one, or anything of that shape.
        tools: the definitions of the tools, as the provider takes them.
        run_tool: ``(name, input) -> result``, for all tools. A result is a text or a list of content parts; None is
            an empty text, anything else is sent as JSON. An exception becomes a result flagged as an error.
        system: the system prompt. It is sent with each request and is not part of the history.
        budget: when to mask; its `view` is sent. Without one, all but the newest 4 results are masked above 8,000
            tokens, with a break-even boundary that assumes the client's cache:
            ``Budget(boundary="break_even", provider="anthropic")`` for Anthropic's, ``provider="openai"`` for OpenAI's.
        history: continue this `History`, whose own options then decide the view.
        shape: ``"anthropic"`` or ``"openai"``; by default detected from the client or the tools.
        parallel_tools: True to run the calls of one answer concurrently, or the names of the tools that may run so.
            Results keep the order of their calls.
        max_tool_rounds: the maximum number of tool rounds in one turn.
        max_attempts, max_total_output_tokens, max_tokens_limit, on_cut: as for `auto_continue`, of one answer.
        on_text: called with the text of answers as it arrives; requests then use ``stream=True``.
        **request: arguments of every request: ``model``, ``max_tokens`` and so on.

    Example:
        >>> import recede
        >>> def create(messages, **request):  # a model that reads a file and is done
        ...     if len(messages) > 1:
        ...         return {"role": "assistant", "content": [{"type": "text", "text": "It is empty."}]}
        ...     call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "notes.txt"}}
        ...     return {"role": "assistant", "content": [call], "stop_reason": "tool_use"}
        >>> tools = [{"name": "read", "input_schema": {"type": "object"}}]
        >>> conversation = recede.designs.Conversation(create, tools=tools, run_tool=lambda name, input: "")
        >>> conversation.turn("What does notes.txt say?").text
        'It is empty.'
        >>> [message["role"] for message in conversation.history]
        ['user', 'assistant', 'user', 'assistant']
    """

    def __init__(
        self,
        create: Callable[..., Any],
        *,
        tools: Sequence[Any] = (),
        run_tool: Callable[[str, Any], Any] | None = None,
        system: Any = None,
        budget: Budget | None = None,
        history: History | None = None,
        shape: Shape | None = None,
        parallel_tools: bool | Collection[str] = False,
        max_tool_rounds: int = 50,
        max_attempts: int = 3,
        max_total_output_tokens: int | None = None,
        max_tokens_limit: int | None = None,
        on_cut: Callable[[Cut], Any] | None = None,
        on_text: Callable[[str], Any] | None = None,
        **request: Any,
    ) -> None:
        check_create(create, "a Conversation")
        check_tools(tools, run_tool)
        optional_function("on_text", on_text)
        if budget is not None and history is not None:
            raise TypeError("give a budget, or a history, which has its own")
        if not isinstance(budget, (Budget, type(None))):
            raise TypeError(f"budget must be a recede.designs.Budget or None, not {type(budget).__name__}")
        if not isinstance(history, (History, type(None))):
            words = "must be a recede.History (of a list, History.from_messages) or None"
            raise TypeError(f"history {words}, not {type(history).__name__}")
        if shape not in (None, "anthropic", "openai"):
            raise ValueError(f"shape must be 'anthropic' or 'openai', not {shape!r}")
        for name in {"messages", "stream"} & request.keys():
            raise TypeError(f"a Conversation makes {name} itself: leave it out")
        self._attempts = (max_attempts, max_total_output_tokens, max_tokens_limit, on_cut)
        Answers([], request, *self._attempts)  # checks them
        whole_number()("max_tool_rounds", max_tool_rounds)
        self._budget = budget
        client = client_of(create)
        if budget is None and history is None:
            provider = client if client in _PROVIDERS else "ideal"
            history = Budget(boundary="break_even", provider=provider).history()
        self.history: History = history if history is not None else budget.history()  # type: ignore[union-attr]
        self.shape: Shape = shape or shape_of(create, tools)
        self._is_marked = client == "anthropic" and self.history._live.options.pins and not IS_OFF
        self.system = system
        self.on_text = on_text
        self._create = create
        self._tools = Tools(run_tool, parallel_tools)
        self._lock = lock_of(self, threading.Lock)  # of the turn that is in progress
        self._max_tool_rounds = max_tool_rounds
        self._request = {**request, "tools": list(tools)} if tools else request
        self._names = {str(read(tool, "name") or read(read(tool, "function"), "name")) for tool in tools}
        self._pending: list[Any] = []  # what was received and is not in the history yet: its token_counter raised
        self._answered_at: float | None = None  # when the last answer came
        cache = Provider.of_model(str(request.get("model"))) or Provider.of("anthropic")
        self._cache_seconds: float = lifetime(cache)

    # Public methods

    def turn(self, text: Any) -> Answer:
        """Send a user message, and run tools until the model calls none.

        Args:
            text: what the user says: a text, or a list of content parts.

        Raises:
            Exception: what the client or a token counter raised. The message stays in the history; `resume` retries.
            ConnectionError: a stream ended early; the part received is in the history.
            TypeError: `create` did not return a response.
            ValueError: the text is blank, which every provider refuses.
            RuntimeError: a turn is in progress.
        """
        return self._driven(spoken_message(text))

    def resume(self) -> Answer:
        """Retry after a turn that failed or was interrupted; a partial answer is continued.

        Raises:
            ValueError: nothing has been said yet. All else as for `turn`.
        """
        return self._driven(None)

    async def turn_async(self, text: Any) -> Answer:
        """`turn` with an async client; `run_tool` and `on_text` may be async, too. Plain tools run in threads."""
        return await self._driven_async(spoken_message(text))

    async def resume_async(self) -> Answer:
        """`resume` with an async client."""
        return await self._driven_async(None)

    def view(self) -> list[Any]:
        """The messages that a request would send now."""
        if self._is_marked:
            _, mark, elsewhere = marked_request(self._unmarked())
            self.history._mark_newest(mark, elsewhere)
        messages = self.history.view()
        if self.shape == "openai":
            return messages if self.system is None else [{"role": "system", "content": self.system}, *messages]
        # Anthropic has no system role. A summary uses it, and so does a history begun with another provider.
        for place, message in enumerate(messages):
            if read(message, "role") not in ("system", "developer"):
                break
            messages[place] = changed(message, role="user")
        return messages

    def __repr__(self) -> str:
        return f"<Conversation: {self.shape}, {len(self.history):,} messages>"

    # A turn at a time, by a sync or an async client

    def _driven(self, spoken: dict[str, Any] | None) -> Answer:
        if self._tools.is_async:
            raise TypeError("run_tool is async: use turn_async")
        with self._one_turn():
            return drive(self._steps(spoken))

    async def _driven_async(self, spoken: dict[str, Any] | None) -> Answer:
        with self._one_turn():
            return await drive_async(self._steps(spoken))

    @contextmanager
    def _one_turn(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("a turn of this conversation is in progress: wait until it ends")
        try:
            yield
        finally:
            self._lock.release()

    def _after_fork(self, *, was_changing: bool) -> None:
        """The turn of a thread of the parent is not in progress in a child."""

    # The turn, which yields steps and does nothing itself but update the history

    def _steps(self, spoken: dict[str, Any] | None) -> Generator[Step, Any, Answer]:
        self._append()
        self._close_calls()
        if spoken is not None:
            self.history.append(spoken)
        elif not len(self.history):
            raise ValueError("the history is empty: begin with a turn")
        elif read(self.history[-1], "role") == "assistant":
            self.history.append({"role": "user", "content": CONTINUE})
        usage: Any = None
        requests = tool_calls = 0
        for rounds in itertools.count():
            self._note_pause()
            sent = self.view()
            if self._budget is not None:
                self._budget.warn_if_over(self.history.view())
            answers = Answers(sent, self._arguments(), *self._attempts)
            response = yield from self._answered(answers, sent)
            # An answer is fully validated before any of it is added to the history.
            message, reason = answer_of(response, sent, self._names), stop_reason(response)
            calls = calls_of(message) if message is not None else []
            usage = usage_sum(usage, read(response, "usage"))
            if message is not None:
                self._append(as_given(message, response))
            requests += response.continuation.requests
            tool_calls += len(calls)
            is_paused = reason == "pause_turn" and message is not None
            if calls:
                run = Round(self._tools, calls)
                if rounds < self._max_tool_rounds:
                    yield from self._ran(run)
                else:
                    self._store(run, f"not run: the limit of {self._max_tool_rounds} tool rounds in a turn is reached")
            if (calls or is_paused) and rounds >= self._max_tool_rounds:
                reason = "max_tool_rounds"
            elif calls or is_paused:
                continue
            return Answer(text_of(message), reason, requests, tool_calls, usage, response.continuation.error)
        raise AssertionError  # the count never ends

    def _answered(self, answers: Answers, sent: list[Any]) -> Generator[Step, Any, Any]:
        """Request an answer, with several requests if it is truncated; store what a failed request returned."""
        try:
            return (yield from answers.steps(partial(self._asked, answers)))
        except BaseException:
            if answers.parts:
                response = answers.response()
                said = answer_of(response, sent, self._names)
                if said is not None:
                    self._append(as_given(said, response))
            raise

    def _asked(self, answers: Answers, request: dict[str, Any]) -> Generator[Step, Any, Any]:
        """Make a request; what came of an answer that broke off is added to the answers."""
        if self.on_text is None:
            response = yield Call("create", partial(self._create, **request), ())
        else:
            streamed = Streamed()
            try:
                streaming = Call("create", partial(self._create, **request, stream=True), ())
                response = yield from streamed.steps(streaming, self.on_text)
            except BaseException:
                received = streamed.partial()
                if received is not None:
                    answers.add(received)
                raise
        self._report(response)
        return response

    def _note_pause(self) -> None:
        """Report a pause that no cache outlives before the request: it is the cheapest moment to mask."""
        if self._answered_at is not None and time.time() - self._answered_at > self._cache_seconds:
            self.history.cache_is_cold()
            self._answered_at = None  # once for each pause

    def _report(self, response: Any) -> None:
        """Report the provider's usage to the history; an error in it never loses the answer."""
        usage = read(response, "usage")
        self._answered_at = time.time()
        writes = read(read(usage, "cache_creation"), "ephemeral_1h_input_tokens")
        self._cache_seconds = _HOUR if isinstance(writes, int) and writes > 0 else self._cache_seconds
        try:
            if usage is not None:
                self.history.reported(usage)
        except Exception as error:
            _log.warning("what the provider counted is lost: %s", error)

    def _ran(self, run: Round) -> Generator[Step, Any, None]:
        """Run the calls, and store their results even if this is interrupted."""
        try:
            yield run
        finally:
            self._store(run, "interrupted before it ended")

    def _store(self, run: Round, instead: str) -> None:
        results = [result or ToolResult(instead, is_error=True) for result in run.results]
        self._append(*result_messages(self.shape, run.calls, results))

    def _append(self, *received: Any) -> None:
        """Append what was received. If the token_counter of the history raises, the next turn appends the rest."""
        self._pending += received
        while self._pending:
            before = len(self.history)
            try:
                self.history.append(self._pending[0])
            finally:
                if len(self.history) > before:  # also if only the write to its store failed
                    del self._pending[0]

    def _close_calls(self) -> None:
        calls = open_calls(plain_message(self.history[place]) for place in reversed(range(len(self.history))))
        if calls:
            self._store(Round(self._tools, calls), "interrupted before it ended")

    def _arguments(self) -> dict[str, Any]:
        """Build the arguments of a request, except its messages."""
        return marked_request(self._unmarked())[0] if self._is_marked else self._unmarked()

    def _unmarked(self) -> dict[str, Any]:
        if self.system is not None and self.shape == "anthropic":
            return {**self._request, "system": self.system}
        return self._request
