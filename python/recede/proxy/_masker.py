"""`RequestMasker`: a request body in, the body to send instead out. It opens no connection."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from recede import _engine
from recede._agents import USER_TOOLS, agent_named
from recede._bodies import CONTINUED, MOST_REFUSALS, asks_for_refusals, history_of, kept_words, loads
from recede._encodable import warn_once
from recede._errors import RecedeError
from recede._usage import LoggedUsage, shows_cache, usage_of
from recede.providers import Provider, checked_provider, has_entries, model_verifies, rounded_static, tokenizers
from recede.proxy._answers import EncodingError, decoded
from recede.proxy._caches import Caches
from recede.proxy._course import Course
from recede.proxy._keys import RefusedError, credentials, has_login, is_switched_off
from recede.proxy._ledger import ColdRequests, Known
from recede.proxy._masked import Door, MaskedRequest
from recede.proxy._policies import Policies
from recede.proxy._routes import Route, fields_of, model_in, model_of, route_of
from recede.proxy._summaries import AskedSummary, Summaries
from recede.reduction import _kinds as kinds
from recede.reduction._counting import MASKED, OVER_LIMIT, all_costs, counted, static_cost_of_json
from recede.reduction._exchange import CountRequest
from recede.reduction._options import OPTIONS
from recede.reduction._policy import IS_OFF, image_chars_of, refuse_unknown
from recede.reduction._share import has_limits
from recede.reduction._signature import takes
from recede.reduction._unrecognized import RequestsWithoutResults

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recede.types import Options

_log = logging.getLogger("recede")

MAX_BODY_BYTES = 256 << 20
_SIGNED = "AWS4-"
_SIGNED_WORDS = (
    "requests with a signature of AWS are sent as they are, since it is one of the body: use an API key of Bedrock, or "
    "recede.wrap"
)
_NO_DOOR = Door()
_OWN = dict.fromkeys(("state", "summaries", "upstream", "clock"))


class RequestMasker:
    """Masks old observations in the request bodies of any client, each a whole history.

    The boundary follows from the body and from the pauses between requests, so conversations need not be distinguished,
    and the same body always gives the same bytes. Anthropic's bodies get a cache breakpoint at the boundary. It moves
    where that pays at the prices of the model that the body names; if they are unknown, at the provider's usual ones,
    and the log names the model once. Where Claude is served by Anthropic's rules, a body without a cache mark on a
    message, or on its top level, has no cache to spare: it is planned as for ``provider="none"``, until an answer that
    is `reported` shows that it has one.
    Results that carry the user's own words are never masked: answers to questions, plans, refused calls, messages that
    were sent while a tool ran, instructions of a folder, skills. Their texts are those of the agent that the User-Agent
    names, or of any agent that uses the path.

    With ``summaries`` old turns become a summary when that pays. The masker opens no connection: `MaskedRequest.asked`
    has what a summary is to tell of, the request itself goes without it, and `give` takes its text. A text belongs to
    the messages that it tells of: requests that begin with these have it, from the first one on at which it pays. For a
    request with the login of a subscription nothing is asked.

    Args:
        state: a file for the pauses (see `ColdRequests`), so that a restart changes no boundary; None: in memory. With
            ``summaries`` their texts are in a second file, named as this one with ``.summaries``.
        summaries: ask for summaries of old turns.
        upstream: the URL that requests are sent to, whose host says most about the cache (docs/providers.md); "": the
            model and the path say it.
        hosts: names of hosts of your own, and the provider or model that each serves as.
        clock: seconds since 1970.
        **options: as for `recede.reduce`; ``provider="auto"`` is found by host, model and path. No message is ever
            dropped.

    Raises:
        StoreError: the state cannot be read, or is another file.

    Threads may share one. Time is linear in the body: 1 to 2 ms for 5 MB.

    Example:
        >>> import json, recede
        >>> messages = [{"role": "user", "content": "Go."}]
        >>> for number in range(40):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        ...     messages.append({"role": "tool", "tool_call_id": str(number), "content": "x" * 4_000})
        >>> body = json.dumps({"model": "gpt-5.4", "messages": messages}).encode()
        >>> masker = recede.proxy.RequestMasker(keep=10)
        >>> masked = masker.mask("POST", "/v1/chat/completions", {"content-type": "application/json"}, body)
        >>> masked.changed, len(masked.body) < len(body), masker.mask("POST", "/v1/embeddings", {}, body).body is body
        (True, True, True)
    """

    @takes(OPTIONS)
    def __init__(
        self,
        *,
        state: str | os.PathLike[str] | None = None,
        summaries: bool = False,
        upstream: str = "",
        hosts: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        **options: Unpack[Options],
    ) -> None:
        refuse_unknown(options, _OWN)
        self._given: dict[str, Any] = {
            **{"state": state, "summaries": summaries, "upstream": upstream, "hosts": hosts, "clock": clock},
            **options,
        }
        self._options: dict[str, Any] = {**options}
        for name, words in {"exclude_tools": USER_TOOLS, "keep_matching": ()}.items():  # nobody can switch these off
            self._options[name] = (*words, *OPTIONS[name].check(name, options.get(name, ())))
        given = options.get("provider", "auto")
        self._own = None if given == "auto" else checked_provider("provider", given)
        self._upstream, hosts = upstream, dict(hosts or {})
        for name in hosts.values():
            checked_provider("hosts", name)
        self.summarizes = bool(kinds.FLAG.check("summaries", summaries)) and not IS_OFF
        self.policies = Policies(self._options, summarizes=self.summarizes)
        self.counts_tokens = has_limits(options) and options.get("token_counter") is not None
        self._weighs = has_limits(options) and not self.counts_tokens
        self._was_over = False  # which is said once
        self._without_results = RequestsWithoutResults()
        self.policies.of(self._own or Provider.of("anthropic"))  # raises
        self._ledger = ColdRequests(state)
        self.course = Course(Caches(self._own, hosts, self._ledger), self._ledger, clock)
        self._summaries: Summaries | None = None
        if self.summarizes:
            self._summaries = Summaries(None if state is None else f"{os.fspath(state)}.summaries", clock)
        self._clock = clock

    def __reduce__(self) -> Any:
        """A copy has the options and the file of the pauses; without a file it remembers nothing."""
        return partial(type(self), **self._given), ()

    def mask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        body: bytes,
        upstream: str = "",
    ) -> MaskedRequest:
        """Mask one request body.

        Args:
            method: of the request, in capitals.
            path: of the request, with or without its query.
            headers: of the request; ``Content-Encoding``, ``User-Agent`` and ``x-recede: off``, which sends it raw, are
                read.
            body: as it was received.
            upstream: the URL that this request goes to, if it is not that of the masker.

        Returns:
            The body to send, and what was done. A request without a history, whose history the provider keeps
            (``thread``, ``previous_response_id``, ``previous_interaction_id``, ``conversation``, for Interactions also
            ``agent``, or ``continuation_token`` without input), or whose body cannot be read, is to be sent as
            it is.

        Example:
            >>> import recede
            >>> recede.proxy.RequestMasker().mask("POST", "/v1/messages", {}, b'{"messages": [').fault
            'eof'
        """
        return self._masked(method, path, headers, body, upstream)

    def _masked(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        body: bytes,
        upstream: str = "",
        door: Door = _NO_DOOR,
    ) -> MaskedRequest:
        """`mask` for a door that sees the answer."""
        route = route_of(path)
        if method != "POST" or route is None:
            return MaskedRequest(body)
        return self._mask_on(route, path, headers, body, upstream, door=door)

    def _mask_on(
        self,
        route: Route,
        path: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        body: bytes,
        upstream: str = "",
        check_model: Callable[[str | None], None] | None = None,
        *,
        door: Door = _NO_DOOR,
    ) -> MaskedRequest:
        """`mask` for the body of a POST request on this route, which goes to this upstream.

        `check_model` gets the model that the request names before anything else is done, and may raise `RefusedError`.
        """
        named = {name.lower(): value for name, value in dict(headers).items()}
        if named.get("authorization", "").startswith(_SIGNED):
            if not is_switched_off(named):
                warn_once(_SIGNED_WORDS)
            return MaskedRequest(body)
        try:
            return self._mask(route, path, named, body, upstream, check_model, door)
        except RefusedError:
            raise
        except EncodingError as error:
            fault = f"encoding {error}"
        except RecedeError as error:
            fault = getattr(error, "kind", type(error).__name__)
        except Exception as error:
            fault = type(error).__name__
        if is_switched_off(named):
            return MaskedRequest(body)
        _log.warning("a request to %s is sent as it came: %s", route.provider, fault)
        return MaskedRequest(body, provider=route.provider, counted=route.is_counted, fault=fault)

    def _mask(
        self,
        route: Route,
        path: str,
        headers: dict[str, str],
        body: bytes,
        upstream: str,
        check_model: Callable[[str | None], None] | None,
        door: Door,
    ) -> MaskedRequest:
        agent = agent_named(headers.get("user-agent", ""))
        plain = decoded(body, headers.get("content-encoding", ""), MAX_BODY_BYTES)
        try:
            # It refuses what would take very much memory.
            request: Any = _engine.engine.Request(plain, route.kept, self._weighs)
        except RecedeError as error:
            if check_model is not None:
                check_model(model_of(path, model_in(plain)))
            if getattr(error, "kind", None) != "history" or not self._say_kept(loads(plain), (*route.kept, CONTINUED)):
                raise
            return MaskedRequest(body)
        model = model_of(path, request.model)
        if check_model is not None:
            check_model(model)
        is_off = is_switched_off(headers)
        if is_off and not request.is_signed and not model_verifies(model):
            return MaskedRequest(body)
        if request.is_kept_by_provider:
            values = zip(route.kept, _engine.engine.fields(plain, False, [*route.kept]), strict=True)
            # What is longer than `false` is something; only what may be nothing is read.
            given = {name: len(value) > 5 or loads(value) for name, value in values if value is not None}
            self._say_kept(given, route.kept)
            return MaskedRequest(body)
        points = request.points()
        static, costs = 0, None
        if self.counts_tokens:
            counter = self._options["token_counter"]
            static = static_cost_of_json(plain, False, counter, is_bounded=True)
            texts = _engine.engine.texts(history_of(plain), self.policies.of(Provider.of(route.provider)))
            costs = all_costs(texts, counter, image_chars_of({}))
        verifies = model_verifies(model) or (self._own is not None and self._own.verifies_reasoning)
        keys = request.content_keys() if verifies or request.is_signed else []
        known = self._ledger.look_up(points, keys) if keys or self._own is None else Known(None, [])
        if door.was_refused:
            if not keys or asks_for_refusals(fields_of(plain, "thinking")):
                return MaskedRequest(body)
            if not (route.is_counted and verifies):  # a question for a count may have other tools
                self._ledger.note_refused(points[-1], self._clock())
        verifies = verifies or door.was_refused or known.refusals > 0

        def static_of(provider: Provider) -> int:
            if self._weighs:
                return static_cost_of_json(plain, False, None, tokenizers(provider, model), is_bounded=True)
            if not self.counts_tokens and has_entries(provider):
                return rounded_static(static_cost_of_json(plain, False, is_bounded=True))
            return static

        cache, cold, arguments = self.course.of(
            route,
            model or "",
            request,
            points,
            static_of,
            known.provider,
            verifies,
            agent,
            plain=plain,
            upstream=upstream or self._upstream,
            is_off=is_off,
        )
        provider, policy = cache.provider, self.policies.of(*arguments)
        is_sent = bool(points) and points[-1][0] == request.messages and not route.is_counted
        if keys:
            # What was refused, or often enough, has no reasoning; what a door retries may have been sent raw.
            is_bare = door.was_refused or known.refusals >= MOST_REFUSALS
            noted = [] if is_bare else zip(points, known.views, strict=True)
            request.judge_by([(end, [*views]) for (end, _), views in noted if views or door.retries])
        asked: AskedSummary | None = None
        is_new = False
        if self._summaries is None or is_off:
            done: Any = request.mask(policy, cold, costs)[0]
        else:
            done, is_new, asked = self._summaries.mask(
                request,
                partial(self._masked_at, request, policy, cold, costs),
                b"\0".join(map(os.fsencode, (upstream, route.provider, *credentials(path, headers)))),
                {messages for messages, _ in points},
                is_sent=is_sent,
                history=None if has_login(headers) or door.was_refused else partial(history_of, plain),
            )
        if keys and is_sent and not door.observes and not (door.waits and asked is not None):
            self._ledger.note_view(keys[-1], *request.sent())
        changed = done.json is not plain
        if is_off:
            return MaskedRequest(done.json if changed else body, changed=changed, has_reasoning=request.is_signed)
        if done.within_limit is False and not self._was_over:
            self._was_over = True
            _log.warning("%s", OVER_LIMIT.format(MASKED))
        if not route.is_counted:
            self._without_results.note(lambda: len(history_of(plain)), lambda: bool(done.tools))
        moves = done.boundary_moves
        return MaskedRequest(
            done.json if changed else body,
            changed=changed,
            provider=route.provider,
            cache=provider.name,
            masked_count=done.masked_count,
            chars_before=done.chars_before,
            chars_after=done.chars_after,
            moved=is_new or (bool(moves) and moves[-1].request == len(points) - 1),
            cold=bool(points) and points[-1][0] in cold and not cache.is_missing,
            counted=route.is_counted,
            points=tuple(points),
            model=model,
            agent=agent.title if agent else None,
            asked=asked,
            is_priced=cache.is_priced,
            around_chars=static_cost_of_json(plain, False, is_bounded=True) if cache.is_missing else 0,
            has_reasoning=request.is_signed,
            reasoning_dropped=done.reasoning_dropped,
        )

    def reported(self, masked: MaskedRequest, usage: Any) -> None:
        """Report what the provider counted for a request that was masked.

        A request without cache marks is taken to have no cache. If its answer has more tokens read from one than its
        system prompt and tools can have, its conversation has an automatic cache from the next request on: the boundary
        stays, and moves when that pays. No other report changes anything.

        Args:
            masked: the result of `mask`.
            usage: that of the answer, in the form of any provider.

        Example:
            >>> import recede
            >>> masker = recede.proxy.RequestMasker()
            >>> masked = masker.mask("POST", "/v1/messages", {}, b'{"messages": [{"role": "user", "content": "Go."}]}')
            >>> masked.cache
            'none'
            >>> masker.reported(masked, {"input_tokens": 9, "cache_read_input_tokens": 9_000, "output_tokens": 1})
        """
        if masked.cache != "none" or self._own is not None or not masked.points:
            return
        found = usage if isinstance(usage, LoggedUsage) else usage_of(usage, lambda note: None)
        if found is not None and shows_cache(found, masked.around_chars):
            self._ledger.note_served(masked.points[-1], self._clock())

    def _say_kept(self, request: Any, fields: Sequence[str]) -> bool:
        """Warn, once in a process, about a history that the provider keeps. Returns whether a field says so."""
        words = kept_words(request, fields) if isinstance(request, dict) else None
        if words is not None and not IS_OFF:
            warn_once(words)
        return words is not None

    def _masked_at(self, request: Any, policy: Any, cold: list[int], costs: Any, at: Any, texts: Any) -> Any:
        """Mask a request that has summaries, and count the tokens of their texts."""
        while type(done := request.mask(policy, cold, costs, at, texts)) is CountRequest:
            costs[2].update(counted(done.texts, self._options["token_counter"]))
        return done

    def give(self, asked: AskedSummary, text: str | None, *, unfinished: bool = False) -> None:
        """Take the text of a summary that `mask` has asked for.

        Args:
            asked: `MaskedRequest.asked`.
            text: the summary, clipped to 4,000 characters; None, or nothing but white space: there is none, and for
                the next 1, 2, 4, ..., 64 requests of its conversation no other one is asked for.
            unfinished: whether a model's answer was cut, refused, empty or no summary. After two of them in a row,
                conversations that begin with these messages ask for none.

        Raises:
            TypeError: it is no text.
        """
        if text is not None and not isinstance(text, str):
            raise TypeError(f"the text of a summary must be a string, not {type(text).__name__}")
        if self._summaries is not None:
            self._summaries.give(asked.name, text, unfinished=unfinished)

    def close(self) -> None:
        """Close the file of the pauses, if there is one."""
        self._ledger.close()
