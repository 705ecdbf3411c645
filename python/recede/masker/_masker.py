"""Views of conversations that are handed over whole before each request."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from recede import _engine
from recede._bodies import SENT_AGAIN, asks_for_refusals
from recede._errors import no_such, without_text
from recede._off import is_off
from recede._steps import drive, drive_async
from recede._summarizer import Asking, Steps
from recede._usage import shows_cache
from recede.masker._conversation import KnownConversation
from recede.masker._facts import NEEDS, AdapterReader, DictReader, said_around
from recede.masker._finder import ConversationFinder, MaskerStats
from recede.providers import (
    checked_provider,
    has_entries,
    model_verifies,
    provider_of_model,
    rounded_static,
    tokenizers,
    verifies,
)
from recede.reduction._counting import MASKED, OVER_LIMIT, approx_tokens, static_cost
from recede.reduction._input import automatic_mark
from recede.reduction._kinds import FLAG, optional_function, whole_number
from recede.reduction._masks import Masks, report_move
from recede.reduction._options import OPTIONS
from recede.reduction._planning import reduce_messages
from recede.reduction._policy import MARKS_ELSEWHERE, own_policy, refuse_unknown
from recede.reduction._share import check_calibrate, in_tokens, is_share, unlimited
from recede.reduction._signature import takes
from recede.reduction._unrecognized import RequestsWithoutResults
from recede.session._stats import Reported

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recede._report import BoundaryMove
    from recede.masker._facts import Adapter
    from recede.providers import Provider
    from recede.types import Options, Summarizer

_log = logging.getLogger("recede")

_M = TypeVar("_M")
_T = TypeVar("_T")
_OWN = dict.fromkeys(("adapter", "recall", "on_move", "calibrate", "summarizer", "most", "max_bytes", "check"))


class Masker(ConversationFinder[_M]):
    """Masks conversations that are handed over whole before each request; by default with a break-even boundary.

    Messages may be of any type. What it remembers of a conversation only saves time: each view is that of
    `reduce` for the messages given, whatever was asked before, and of which conversation. So one object
    serves many of them, and nothing is to be saved. A conversation is found by its content; one more message costs
    microseconds. For a model that verifies its reasoning it also remembers what it has sent (docs/reasoning.md).

    Args:
        adapter: how messages of your own type are read and masked: a `recede.masker.Adapter`. None: messages are
            dicts in any of the shapes that `reduce` reads.
        recall: placeholders name the handle of the result, by which `recall` finds it. An adapter needs `text`.
        summarizer: `(messages, previous_summary) -> str`, sync or async (`aview`, `amasks`): old turns become its
            summary when that pays (docs/summaries.md). It is given the messages of your own type, unmasked, and asked
            once for each summary as long as the conversation is remembered. An adapter needs `summary`.
        most: how many conversations are remembered; the one used longest ago is forgotten first.
        max_bytes: how many bytes the messages of the remembered conversations may take. A message counts for each
            conversation that has it; the newest conversation is always remembered.
        check: whether all messages are compared with those of the last call. Otherwise an object that was given
            before is taken to be unchanged, but for the newest 16.
        on_move: called with a `BoundaryMove` when a view first has it, also written to the log; of a conversation
            that is not known, only with that of its newest request. An error that it raises is logged.
        calibrate: with ``max_input_tokens`` or ``trigger_tokens``: from the next request of a conversation on, tokens
            count as in its requests given to `reported`, as long as it is remembered. Earlier views stay.
        **options: as for `reduce`. Without a summarizer no message is ever dropped.

    Messages that are no history are a `TranscriptError`, and facts in another form a TypeError. It is thread-safe:
    calls run one at a time, but others may run while a summarizer is asked. A copy, by pickle too, has the options and
    remembers nothing. With ``RECEDE_OFF=1`` in the environment, views are the messages given.

    Example:
        >>> import recede
        >>> masker = recede.masker.Masker(keep=3)
        >>> messages = [{"role": "user", "content": "Find the bug."}]
        >>> for number in range(40):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        ...     messages.append({"role": "tool", "tool_call_id": str(number), "content": "a line of the log\\n" * 250})
        ...     view = masker.view(messages)  # what is sent
        >>> view[2]["content"], view[-1] is messages[-1]
        ('[old tool output cleared to save context]', True)
    """

    @takes(OPTIONS)
    def __init__(
        self,
        adapter: Adapter[_M] | None = None,
        *,
        recall: bool = False,
        on_move: Callable[[BoundaryMove], Any] | None = None,
        calibrate: bool = False,
        summarizer: Summarizer | None = None,
        most: int = 128,
        max_bytes: int = 256_000_000,
        check: bool = False,
        **options: Unpack[Options],
    ) -> None:
        for name in ("facts", "masked"):
            if adapter is not None and not callable(getattr(adapter, name, None)):
                raise TypeError(f"an adapter needs a method {name!r}, which {type(adapter).__name__} does not have")
        for name, flag in (("recall", recall), ("check", check)):
            FLAG.check(name, flag)
        refuse_unknown(options, _OWN)
        compiled = partial(own_policy, _engine.engine, reduces=False, recall=recall, summarizer=summarizer)
        compiled(unlimited(options))  # raises
        check_calibrate(calibrate, options)
        reader = DictReader() if adapter is None else AdapterReader(adapter)
        self._asking = None if summarizer is None else Asking(summarizer, "await aview or amasks", reader.plain)
        if self._asking is not None and reader.summary is None:
            raise TypeError(
                f"a summarizer needs an adapter with a method 'summary', which {type(adapter).__name__} lacks"
            )
        recalls = recall or "{handle}" in (options.get("placeholder") or "")
        for name in ("recall",) * recalls + ("keep_matching",) * bool(options.get("keep_matching")):
            if reader.text is None:
                raise TypeError(NEEDS.format(name, "text"))
        limits = whole_number(1)("most", most), whole_number()("max_bytes", max_bytes)
        self._on_move = optional_function("on_move", on_move)
        self._was_over = False  # which is said once
        self._without_results = RequestsWithoutResults()
        own: dict[str, Any] = {"recall": recall, "on_move": on_move, "calibrate": calibrate, "summarizer": summarizer}
        own |= {"most": most, "max_bytes": max_bytes, "check": check}
        self._given: dict[str, Any] = {"adapter": adapter, **own, **options}
        super().__init__(reader, compiled, options, limits, check, recalls, calibrate)

    def __reduce__(self) -> Any:
        """A copy has the options, and remembers nothing, which only costs time."""
        return partial(type(self), **self._given), ()

    def view(
        self,
        messages: list[_M],
        *,
        marks_elsewhere: int = MARKS_ELSEWHERE,
        provider: Provider | str | None = None,
        if_served: Provider | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> list[_M]:
        """The messages to send: a new list, whose unmasked messages are the given objects.

        Masked messages are copies, which later views have again: do not change them.

        Args:
            messages: the conversation.
            marks_elsewhere: how many cache marks this request has besides those of its messages.
            provider: in place of the option. A conversation keeps that of the first call that names one with a cache as
                long as it is remembered: views must not change where the model does.
            if_served: in place of a `provider` without a cache, once `reported` has shown that there is one: from the
                next request on.
            request: the request that has these messages: its system prompt and tools count towards the limit and the
                trigger, and its model says whose cache it is, unless a provider is given here or as an option.
        """
        return drive(self._viewing(messages, marks_elsewhere, provider, request, if_served))

    async def aview(
        self,
        messages: list[_M],
        *,
        marks_elsewhere: int = MARKS_ELSEWHERE,
        provider: Provider | str | None = None,
        if_served: Provider | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> list[_M]:
        """`view`, awaiting a summarizer that is async."""
        return await drive_async(self._viewing(messages, marks_elsewhere, provider, request, if_served))

    def _viewing(
        self,
        messages: list[_M],
        marks_elsewhere: int,
        provider: Provider | str | None,
        request: Mapping[str, Any] | None,
        if_served: Provider | None = None,
        *,
        is_sent: bool = True,
    ) -> Steps[list[_M]]:
        """The view. One that is not sent is only counted: neither it nor what is around it is noted."""
        if is_off():
            return list(messages)
        own, model = self._options.get("provider", "auto"), (request or {}).get("model")
        if provider is not None:
            provider = checked_provider("provider", provider)
        elif request is not None and own == "auto":
            provider = provider_of_model(model)
        is_named, whose = model_verifies(model), own if provider is None else provider
        around = said_around(request) if request is not None and is_sent and (is_named or verifies(whose)) else None
        if provider is None and is_named and own != "auto":  # it is the model's rule, whoever serves it
            provider = checked_provider("provider", own)._replace(verifies_reasoning=True)
        if_served = None if provider is None or if_served is None else checked_provider("if_served", if_served)
        static, around_chars = 0, 0 if if_served is None else static_cost(request or {})
        if request is not None and self._has_limits:
            counted = None if self._counter else tokenizers(provider or own, model)
            static = static_cost(request, self._counter, counted)
        elif request is not None and has_entries(provider or own):
            static = rounded_static(static_cost(request))

        limits = None
        if is_share(self._options):
            whose = self._options if own != "auto" else {**self._options, "provider": provider}
            limited = in_tokens(whose, model, is_request=request is not None)
            limits = {name: limited.get(name, 0) for name in ("max_input_tokens", "trigger_tokens")}

        def shown(conversation: KnownConversation) -> tuple[list[BoundaryMove], list[_M]]:
            self._without_results.read(conversation.session.is_unrecognized(), messages.copy)
            self._without_results.note(messages.__len__, lambda: conversation.session.place(1) is not None)
            if not conversation.update.within_limit and not self._was_over:
                self._was_over = True
                _log.warning("%s", OVER_LIMIT.format(MASKED))
            if if_served is not None:
                conversation.note_uncached(around_chars)
            return conversation.new_moves(), self._view(conversation, marks_elsewhere, request or {})

        so_given = provider, static, if_served, around, limits
        moves, view = yield from self._steps(messages, shown, *so_given, is_sent=is_sent)
        for move in moves:  # without the lock: a callback may use the masker
            report_move(move, self._on_move)
        return view

    def _steps(
        self,
        messages: list[_M],
        result: Callable[[KnownConversation], _T],
        provider: Provider | None = None,
        static: int | None = None,
        if_served: Provider | None = None,
        around: bytes | None = None,
        limits: Mapping[str, Any] | None = None,
        *,
        is_sent: bool = False,
    ) -> Steps[_T]:
        """The result for the conversation of these messages, once its view has the summary that it needs.

        A view that `is_sent` is noted: reasoning that was made from it may be sent again.
        """
        summary: tuple[Any, int] = (None, 0)
        while True:
            with self._lock:
                so_given = provider, static, summary, if_served, around, limits
                conversation = self._synced(messages, *so_given, is_sent=is_sent)
                asked = conversation.asked
                if asked is None:
                    return result(conversation)
                hidden = [conversation.known.messages[index] for index in asked.dropped]
            assert self._asking is not None, "a core asks only where there is a summarizer"
            summary = (yield from self._asking.steps(hidden.copy, asked.previous)), asked.key

    def _view(self, conversation: KnownConversation, marks_elsewhere: int, request: Mapping[str, Any]) -> list[_M]:
        view = conversation.pinned_view(marks_elsewhere, request.get("cache_control"))
        if view is None:
            of_request: dict[str, Any] = {"marks_elsewhere": marks_elsewhere}
            of_request |= {"automatic_mark": automatic_mark(request)}
            if self._calibrates:
                of_request["measured"] = tuple(conversation.session.measured())
            policy = self._compiled(conversation.options, static=conversation.static, **of_request)
            counted = {"token_counter": self._counter} if self._has_limits else {}
            view = list(reduce_messages(policy, list(conversation.known.messages), counted).messages)
        return view

    def masks(self, messages: list[_M]) -> Masks:
        """The results that the view of these messages masks, without making it.

        `first_changed` compares with the last call of this method for the conversation.
        """
        return drive(self._steps(messages, KnownConversation.take_masks, is_sent=True))

    async def amasks(self, messages: list[_M]) -> Masks:
        """`masks`, awaiting a summarizer that is async."""
        return await drive_async(self._steps(messages, KnownConversation.take_masks, is_sent=True))

    def count_tokens(self, messages: list[_M]) -> int:
        """The approximate tokens of the view of these messages: a quarter of its characters."""

        def tokens(conversation: KnownConversation) -> int:
            update = conversation.update
            return approx_tokens(update.raw_chars if is_off() else update.view_chars)

        return drive(self._steps(messages, tokens))

    def place(self, messages: list[_M], observation: int | str) -> tuple[int, int]:
        """The place of an observation: its message, and its place among the results of that.

        Args:
            messages: the conversation.
            observation: its number among all observations, from 1; its handle, if placeholders name handles; or the id
                of its call (the newest, if it repeats).

        Raises:
            LookupError: there is no such observation, or it is one of several with images that have this handle.
            TypeError: it is neither a whole number nor a str.
        """
        if isinstance(observation, bool) or not isinstance(observation, (int, str)):
            raise TypeError(f"an observation is a number or the id of a call, not {type(observation).__name__}")
        with self._lock:
            place: tuple[int, int] | None = self._synced(messages).session.place(observation)
        if place is None:
            raise no_such("observation", observation)
        return place

    def recall(self, messages: list[_M], observation: int | str) -> str:
        """The full text of an observation, masked or not.

        Args:
            messages: the conversation.
            observation: as for `place`.

        Raises:
            LookupError: there is no such observation, or it has images and no text.
            TypeError: the adapter has no `text`.
        """
        if self._reader.text is None:
            raise TypeError(NEEDS.format("recall", "text"))
        index, place = self.place(messages, observation)
        text, images = self._reader.read(messages[index], place)
        if images and not text:
            raise without_text(observation)
        return text

    def recall_remembered(self, handle: str) -> str:
        """The full text of an observation of any conversation that is remembered, for a tool that is not given its own.

        Equal handles are equal texts. They say nothing of images, so of these it only says that there were some.

        Args:
            handle: that of its placeholder.

        Raises:
            LookupError: no such observation is remembered, or it has images and no text.
        """
        with self._lock:
            for conversation in self._remembered.newest_first():
                place = conversation.session.place_by_handle(handle)
                if place is not None:
                    text, images = self._reader.read(conversation.known.messages[place[0]], place[1])
                    if images and not text:
                        raise without_text(handle)
                    return f"{text}\n[Its images cannot be recalled: call the tool again.]" if images else text
        raise no_such("observation", handle)

    def reported(self, usage: Any, messages: list[_M] | None = None) -> None:
        """Report what the provider counted for a request, before the next one is made.

        A request found the cache cold if it was served less than half of what the request before it had sent, though
        its view begins with that one's. After two in a row the cache is taken to keep nothing, and the boundary moves
        with the next request. A conversation without cache marks, taken to have no cache, has one from the next request
        on if more was read from it than the system prompt and tools can have. This is all that views depend on besides
        the messages, as long as the conversation is remembered.

        Args:
            usage: that of a response of Anthropic or OpenAI (chat completions or Responses), or a dict of that form.
            messages: the messages of the request; by default those of the last call of this thread.

        Raises:
            TypeError: it is no usage.
        """
        if is_off():
            return
        with self._lock:
            conversation: KnownConversation | None = getattr(self._of_thread, "last", lambda: None)()
            if messages is not None and (conversation is None or not self._has(conversation, messages)):
                conversation = self._synced(messages)
            if conversation is None:
                return
            update = conversation.update
            reported = Reported.of(usage, conversation.epoch, update.view_chars, update.view_cost)
            if reported is not None:
                if shows_cache(reported.usage, conversation.around_chars):
                    conversation.note_served()
                conversation.report(reported, self._calibrates)

    def _is_mended(self, messages: list[_M], said: str, request: Mapping[str, Any], *, is_sent: bool = True) -> bool:
        """Leave out the reasoning that an answer to these messages has refused.

        Returns whether they are to be sent again, once: not if the request asks for refusals, has no reasoning left, or
        is only counted, maybe with other tools.
        """
        if is_off() or asks_for_refusals(request) or (not is_sent and model_verifies(request.get("model"))):
            return False
        with self._lock:
            is_mended = self._leave_out_reasoning(messages)
        if is_mended:
            _log.warning("%s", SENT_AGAIN.format(said))
        return is_mended

    @property
    def summarizer_error(self) -> Exception | None:
        """The exception of the summarizer, if its last call failed."""
        return None if self._asking is None else self._asking.error

    def stats(self) -> MaskerStats:
        """The figures of the calls so far."""
        return MaskerStats(**self._calls, conversations=len(self._remembered), evicted=self._remembered.evicted)
