"""`RequestMasker`: a request body in, the body to send instead out. It opens no connection."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from recede import _engine
from recede._agents import USER_TOOLS, Agent, agent_named, texts_of
from recede._bodies import CONTINUED, history_of, kept_words, loads
from recede._encodable import warn_once
from recede._errors import RecedeError
from recede._models import UnknownModels, model_row
from recede._serving import Serving, host_name, say, serving, serving_as
from recede._usage import LoggedUsage, shows_cache, usage_of
from recede.providers import Provider, checked_provider, has_entries, lifetime, model_verifies, rounded_static
from recede.proxy._answers import EncodingError, decoded
from recede.proxy._keys import RefusedError, credentials, has_login
from recede.proxy._ledger import ColdRequests, Known
from recede.proxy._routes import Route, model_of, route_of
from recede.proxy._summaries import AskedSummary, Summaries
from recede.reduction import _kinds as kinds
from recede.reduction._counting import MASKED, OVER_LIMIT, all_costs, counted, has_limits, static_cost_of_json
from recede.reduction._exchange import CountRequest
from recede.reduction._options import OPTIONS
from recede.reduction._policy import IS_OFF, image_chars_of, own_policy, refuse_unknown
from recede.reduction._share import in_tokens, unlimited
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
_MOST_POLICIES = 256
_DAY = 86_400.0
_OWN = dict.fromkeys(("state", "summaries", "upstream", "clock"))


class MaskedRequest(NamedTuple):
    """The result of `RequestMasker.mask`.

    Attributes:
        body: the body to send; if nothing was changed, the one that was given. A changed body is not compressed, so
            it goes without ``Content-Encoding``, and with its own ``Content-Length``.
        changed: whether the body was changed.
        provider: ``"anthropic"``, ``"openai"`` or ``"gemini"``; None if the request has no history, or one that
            the provider keeps, or is sent raw.
        cache: the name of the prompt cache (`recede.Provider.of`); ``"none"`` where it needs marks, and no message has
            one.
        model: the model that the request names; None if it names none.
        agent: the agent that its User-Agent names, such as ``"Claude Code"``; None if it is not known.
        asked: the summary of old turns that would pay from now on, if the masker has ``summaries``; else None.
        is_priced: whether it may have a price in dollars: a model that is not in the table has none on this network.
        around_chars: characters of system prompt and tools, where a request is taken to have no cache; else 0.
        masked_count: masked observations.
        chars_before: characters of the history.
        chars_after: characters of the view.
        moved: whether the boundary moved at this request, or a summary came into it, so that what follows is written
            to the cache again.
        cold: whether the cache has probably expired since the request before.
        counted: whether this only counts tokens.
        fault: why a body with a history was left as it is, in one word; None if it was read.
        points: the requests that the history implies, as `ColdRequests` takes them.

    Example:
        >>> import recede
        >>> recede.proxy.RequestMasker().mask("GET", "/v1/models", {}, b"").provider is None
        True
    """

    body: bytes
    changed: bool = False
    provider: str | None = None
    cache: str = "ideal"
    masked_count: int = 0
    chars_before: int = 0
    chars_after: int = 0
    moved: bool = False
    cold: bool = False
    counted: bool = False
    fault: str | None = None
    points: tuple[tuple[int, bytes], ...] = ()
    model: str | None = None
    agent: str | None = None
    asked: AskedSummary | None = None
    around_chars: int = 0
    is_priced: bool = True

    def __repr__(self) -> str:
        done = f"chars {self.chars_before} -> {self.chars_after}, masked {self.masked_count}"
        return f"<MaskedRequest: {len(self.body)} bytes, provider={self.provider!r}, {done}, fault={self.fault!r}>"


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
        self._upstream, self._hosts = upstream, dict(hosts or {})
        for name in self._hosts.values():
            checked_provider("hosts", name)
        self.summarizes = bool(kinds.FLAG.check("summaries", summaries)) and not IS_OFF
        self._policies: dict[tuple[Provider, int, str | None, bool, int | None], Any] = {}
        self.counts_tokens = has_limits(options) and options.get("token_counter") is not None
        self._was_over = False  # which is said once
        self._without_results = RequestsWithoutResults()
        self.unknown_models = UnknownModels()
        self._policy(self._own or Provider.of("anthropic"))  # raises
        self._ledger = ColdRequests(state)
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
        waits: bool = False,
    ) -> MaskedRequest:
        """`mask`; what asks for a summary is not sent yet if the caller `waits` for that."""
        route = route_of(path)
        if method != "POST" or route is None:
            return MaskedRequest(body)
        return self._mask_on(route, path, headers, body, upstream, waits=waits)

    def _mask_on(
        self,
        route: Route,
        path: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        body: bytes,
        upstream: str = "",
        check_model: Callable[[str | None], None] | None = None,
        *,
        waits: bool = False,
        observes: bool = False,
    ) -> MaskedRequest:
        """`mask` for the body of a POST request on this route, which goes to this upstream.

        `check_model` gets the model that the request names before anything else is done, and may raise `RefusedError`.
        What asks for a summary is not sent yet if the caller `waits` for that, and nothing if it `observes`.
        """
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        named = {name.lower(): value for name, value in pairs}
        if named.get("authorization", "").startswith(_SIGNED):
            if not _is_off(named):
                warn_once(_SIGNED_WORDS)
            return MaskedRequest(body)
        try:
            agent = agent_named(named.get("user-agent", ""))
            return self._mask(route, path, agent, named, body, upstream, check_model, waits, observes)
        except RefusedError:
            raise
        except EncodingError as error:
            fault = f"encoding {error}"
        except RecedeError as error:
            fault = getattr(error, "kind", type(error).__name__)
        except Exception as error:
            fault = type(error).__name__
        if _is_off(named):
            return MaskedRequest(body)
        _log.warning("a request to %s is sent as it came: %s", route.provider, fault)
        return MaskedRequest(body, provider=route.provider, counted=route.is_counted, fault=fault)

    def _mask(
        self,
        route: Route,
        path: str,
        agent: Agent | None,
        headers: dict[str, str],
        body: bytes,
        upstream: str,
        check_model: Callable[[str | None], None] | None,
        waits: bool,
        observes: bool,
    ) -> MaskedRequest:
        plain = decoded(body, headers.get("content-encoding", ""), MAX_BODY_BYTES)
        try:
            request: Any = _engine.engine.Request(plain, route.kept)  # it refuses what would take very much memory
        except RecedeError as error:
            if check_model is not None:
                check_model(model_of(path, _model_in(plain)))
            is_continued = getattr(error, "kind", None) == "history"
            if not is_continued or not self._say_kept(loads(plain), (*route.kept, CONTINUED)):
                raise
            return MaskedRequest(body)
        model = model_of(path, request.model)
        if check_model is not None:
            check_model(model)
        is_off = _is_off(headers)
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
        if has_limits(self._options):
            counter = self._options.get("token_counter")
            static = static_cost_of_json(plain, False, counter, is_bounded=True)
            if counter is not None:
                texts = _engine.engine.texts(history_of(plain), self._policy(Provider.of(route.provider)))
                costs = all_costs(texts, counter, image_chars_of({}))
        verifies = model_verifies(model) or (self._own is not None and self._own.verifies_reasoning)
        keys = request.content_keys() if verifies or request.is_signed else []
        known = self._ledger.look_up(points, keys) if keys or self._own is None else Known(None, [])
        found: Serving | None = None
        if self._own is not None:
            # Whether reasoning is verified is the model's rule, whoever serves it.
            own = provider = self._own._replace(verifies_reasoning=verifies)
        else:
            found = self._serving(route, model or "", upstream or self._upstream)
            own = self._provider(found, route, model or "", request, points, plain)
            provider = _standing(own, known.provider, route.is_counted)
        if not has_limits(self._options) and has_entries(provider):
            static = rounded_static(static_cost_of_json(plain, False, None, is_bounded=True))
        # OpenAI keeps entries for a day on request.
        is_kept_a_day = own.name == "openai" and self._own is None and request.retention == "24h"
        is_uncached = self._own is None and provider.cache == "none"
        is_sent = bool(points) and points[-1][0] == request.messages and not route.is_counted
        cold = self._ledger.cold_requests(
            points,
            ttl_seconds=_DAY if is_kept_a_day else lifetime(own),
            now=self._clock(),
            note=not route.is_counted and not is_off,
            is_cold=is_uncached,
            provider=provider if found is not None else None,
        )
        if keys:
            noted = zip(points, known.views, strict=True)
            request.judge_by([(end, [*views]) for (end, _), views in noted if views])
        whose_window = self._options if self._own is not None else {**self._options, "provider": provider}
        limited = in_tokens(whose_window, model, is_request=True)
        policy = self._policy(provider, static, agent, route.provider, is_off, limited)
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
                history=None if has_login(headers) else partial(history_of, plain),
            )
        if keys and is_sent and not observes and not (waits and asked is not None):
            self._ledger.note_view(keys[-1], *request.sent())
        changed = done.json is not plain
        if is_off:
            return MaskedRequest(done.json if changed else body, changed=changed)
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
            cold=bool(points) and points[-1][0] in cold and not is_uncached,
            counted=route.is_counted,
            points=tuple(points),
            model=model,
            agent=agent.title if agent else None,
            asked=asked,
            is_priced=found is None or found.is_priced(model or ""),
            around_chars=static_cost_of_json(plain, False, None, is_bounded=True) if is_uncached else 0,
        )

    def _serving(self, route: Route, model: str, upstream: str) -> Serving:
        name = self._hosts.get(host_name(upstream)) if self._hosts else None
        return serving(model, upstream, route.provider) if name is None else serving_as(name, model, upstream)

    def _provider(
        self, found: Serving, route: Route, model: str, request: Any, points: list[tuple[int, bytes]], body: bytes
    ) -> Provider:
        """Find whose cache serves a request, by its marks and settings."""
        say(found, model)
        is_named = bool(model) and not found.is_assumed and found.provider.cache != "none"
        if is_named and model_row(model, host=found.provider.name) is None:
            self.unknown_models.note(model, found.provider.name)
        if request.caches_messages:
            return found.marked(model, request.ttl == "1h").provider
        if found.provider.name == "moonshot" and _lives_an_hour(body):
            return Provider.of("moonshot_1h", model)
        if route.provider != "anthropic" or not found.needs_marks or route.is_counted:
            return found.provider
        # Its cache needs marks: without one no message is cached, unless an answer has shown otherwise.
        return found.if_served if self._ledger.was_served(points) else Provider.of("none", model)

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

    def give(self, asked: AskedSummary, text: str | None) -> None:
        """Take the text of a summary that `mask` has asked for.

        Args:
            asked: `MaskedRequest.asked`.
            text: the summary, clipped to 4,000 characters; None, or nothing but white space: there is none, and for
                the next 1, 2, 4, ..., 64 requests of its conversation no other one is asked for.

        Raises:
            TypeError: it is no text.
        """
        if text is not None and not isinstance(text, str):
            raise TypeError(f"the text of a summary must be a string, not {type(text).__name__}")
        if self._summaries is not None:
            self._summaries.give(asked.name, text)

    def _policy(
        self,
        provider: Provider,
        static: int = 0,
        agent: Agent | None = None,
        whose: str | None = None,
        is_off: bool = False,
        limited: Mapping[str, Any] | None = None,
    ) -> Any:
        """Compile the policy for a provider. It knows the texts of the agent, or of all that use the path `whose`.

        `limited` are the options with a limit in tokens; without it a share of a window is left out.
        """
        limited = unlimited(self._options) if limited is None else limited
        key = provider, static, agent.title if agent else whose, is_off, limited.get("max_input_tokens")
        if key not in self._policies:
            if len(self._policies) > _MOST_POLICIES:
                self._policies.clear()
            kept, markers, stubs = texts_of(agent, whose)
            named = {"provider": provider, "keep_matching": (*kept, *self._options["keep_matching"])}
            self._policies[key] = own_policy(
                _engine.engine,
                {**limited, **named},
                reduces=False,
                summarizer=str if self.summarizes else None,
                static=static,
                markers=markers,
                stubs=stubs,
                off=is_off,
            )
        return self._policies[key]

    def close(self) -> None:
        """Close the file of the pauses, if there is one."""
        self._ledger.close()


def _standing(own: Provider, noted: Provider | None, is_counted: bool) -> Provider:
    """Whose prices decide: those of the conversation so far, if the same cache serves it."""
    if noted is None or own.cache == "none" or (noted.name != own.name and not is_counted):
        return own
    return noted._replace(verifies_reasoning=own.verifies_reasoning)


def _lives_an_hour(body: bytes) -> bool:
    """Whether a body asks Kimi's cache for an hour."""
    (value,) = _engine.engine.fields(body, False, ["prompt_cache_options"])
    options = None if value is None else loads(value)
    return isinstance(options, dict) and options.get("ttl") in ("1h", 3_600, "3600s")


def _is_off(headers: Mapping[str, str]) -> bool:
    return headers.get("x-recede", "").strip().lower() == "off"


def _model_in(body: bytes) -> str | None:
    """Find the model that a body without a history names."""
    try:
        named = loads(body)["model"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return named if isinstance(named, str) else None
