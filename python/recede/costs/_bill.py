"""Bills: what a session cost by its log, and at which prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from recede._models import new_cache
from recede.costs._models import ModelPrices, model_prices
from recede.costs._prices import CACHES, PRESETS, Cache, Prices, cache_of
from recede.providers import OF_FORMATS, Provider

if TYPE_CHECKING:
    from recede.transcripts import LoggedRequest, LoggedUsage, Transcript


class Bill(NamedTuple):
    """The tokens of requests by kind, and what they cost.

    Attributes:
        requests: the number of requests.
        input_tokens: input neither read from the cache nor written to it.
        cached_tokens: input read from the cache.
        written_tokens: input written to the cache, for any time.
        output_tokens: the answers.
        cost: in US dollars.
        unpriced: the number of requests whose model has no known price; they add tokens and no dollars.

    Example:
        >>> from recede.costs import Bill
        >>> Bill(2, 3, 20_000, 400, 95, 0.02, 0).sent_tokens
        20403
    """

    requests: int = 0
    input_tokens: float = 0
    cached_tokens: float = 0
    written_tokens: float = 0
    output_tokens: float = 0
    cost: float = 0.0
    unpriced: int = 0

    @property
    def sent_tokens(self) -> float:
        """The sum of the input tokens."""
        return self.input_tokens + self.cached_tokens + self.written_tokens

    @property
    def fresh_tokens(self) -> float:
        """Input that was not read from the cache; providers that do not charge for writes do not count them apart."""
        return self.input_tokens + self.written_tokens

    @classmethod
    def total(cls, bills: Iterable[Bill]) -> Bill:
        """Add up several bills."""
        return cls(*map(sum, zip(cls(), *bills, strict=True)))


class SessionPrices(NamedTuple):
    """The prices of one session.

    Attributes:
        prices: per million tokens. Where a session has several models or times to live, each price is what was paid on
            average for a token of its kind.
        provider: a name of `PRESETS`; ``"anthropic_1h"`` if most was written to the cache of one hour.
        models: the models that the log names, the one with the most tokens first.
        assumed: what the log does not say, a line each.
        ttl_seconds: how long an entry of the models' cache lives after its last use.
        unpriced: the models among them whose requests cost what nobody knows. If there are any, `prices` are good for
            shares alone: the session has no dollars.

    Example:
        >>> from recede import costs, transcripts
        >>> session = transcripts.read(b'[{"role": "user", "content": "hello"}]')
        >>> costs.session_prices(session).assumed
        ('no model is logged: priced as anthropic',)
    """

    prices: Prices
    provider: str
    models: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    ttl_seconds: float = CACHES["anthropic"].ttl_seconds
    unpriced: tuple[str, ...] = ()

    @property
    def cache(self) -> Cache:
        """The prompt cache of the models."""
        provider = Provider.of(self.provider, self.models[0] if self.models else None)
        return cache_of(provider)._replace(ttl_seconds=self.ttl_seconds)


def logged_bill(
    requests: Iterable[LoggedRequest], own: Mapping[str, ModelPrices] = {}, fallback: Prices | None = None
) -> Bill:
    """Add up what requests cost by their logged tokens.

    Args:
        requests: `Transcript.requests`; those without usage are not counted.
        own: prices by model that come before those of `MODELS`.
        fallback: prices of models that have none; None: such requests are counted in `unpriced`.

    Returns:
        A `Bill`.

    Example:
        >>> from recede.costs import logged_bill
        >>> from recede.transcripts import LoggedRequest, LoggedUsage
        >>> usage = LoggedUsage(3, 20_000, 400, 0, 95)
        >>> round(logged_bill([LoggedRequest(1, "claude-opus-4-5-20251101", None, usage)]).cost, 5)
        0.01489
    """
    return Bill.total(_bill(request, own, fallback) for request in requests)


def session_prices(transcript: Transcript, own: Mapping[str, ModelPrices] = {}) -> SessionPrices:
    """Find the prices of a session by the models and the usage that its log has.

    Args:
        transcript: a session.
        own: prices by model that come before those of `MODELS`.

    Returns:
        A `SessionPrices`.

    Example:
        >>> from recede import costs, transcripts
        >>> answer = b'{"type": "gemini", "model": "gemini-2.5-flash", "tokens": {"input": 900, "output": 20}}'
        >>> found = costs.session_prices(transcripts.read(b'{"sessionId": "1", "messages": [' + answer + b']}'))
        >>> found.prices.output, found.provider, found.models, found.assumed
        (2.5, 'gemini', ('gemini-2.5-flash',), ())
    """
    sent: dict[str, int] = {}
    hosts: dict[str, str | None] = {}
    for request in transcript.requests:
        if request.model is not None:
            hosts.setdefault(request.model, request.host)
            sent[request.model] = sent.get(request.model, 0) + (request.usage.sent_tokens if request.usage else 0)
        sent |= {one.model: 0 for one in request.beside if one.model is not None and one.model not in sent}
    models = tuple(sorted(sent, key=lambda model: -sent[model]))
    known = {model: found for model in models if (found := model_prices(model, own, host=hosts.get(model)))}
    main = next(iter(known.values()), None)
    provider = OF_FORMATS.get(transcript.format, "anthropic") if main is None else main.provider
    prices = PRESETS[provider] if main is None else main.prices
    unknown = [model for model in models if model not in known]
    assumed = [f"the model {model} has no known price: shares are at the prices of {provider}" for model in unknown]
    without_cost = {one.model for one in transcript.requests if one.cost is None}
    without_cost |= {one.model for request in transcript.requests if request.cost is None for one in request.beside}
    unpriced = tuple(model for model in unknown if model in without_cost)
    if not models:
        assumed.append(f"no model is logged: priced as {provider}")
    priced = [(one.usage, *_prices_of(one, own)) for one in transcript.requests if one.usage is not None]
    assumed += dict.fromkeys(said for _, _, said in priced if said)
    usages = [(usage, found) for usage, found, _ in priced if found is not None]
    written, written_1h = (sum(usage[place] for usage, _ in usages) for place in (2, 3))
    if provider == "anthropic" and written_1h > written:
        provider = "anthropic_1h"
    newer = new_cache(models[0]) if main is None and models else None
    lasting = main.ttl_seconds if main is not None else newer and newer[1]
    ttl_seconds = lasting or CACHES[provider].ttl_seconds
    return SessionPrices(_averaged(usages, prices), provider, models, tuple(assumed), ttl_seconds, unpriced)


def _averaged(usages: list[tuple[LoggedUsage, ModelPrices]], prices: Prices) -> Prices:
    """Average the price paid for a token of each kind; a kind without tokens keeps the given price."""

    def mean(paid: Iterable[tuple[int, float]], price: float) -> float:
        pairs = list(paid)
        tokens = sum(count for count, _ in pairs)
        return sum(count * each for count, each in pairs) / tokens if tokens else price

    written = ((u.written_tokens, m.prices.write) for u, m in usages)
    written_1h = ((u.written_1h_tokens, m.write_1h) for u, m in usages)
    return prices._replace(
        input=mean(((u.input_tokens, m.prices.input) for u, m in usages), prices.input),
        cached=mean(((u.cached_tokens, m.prices.cached) for u, m in usages), prices.cached),
        write=mean([*written, *written_1h], prices.write),
        output=mean(((u.output_tokens, m.prices.output) for u, m in usages), prices.output),
    )


def _prices_of(call: LoggedRequest, own: Mapping[str, ModelPrices]) -> tuple[ModelPrices | None, str]:
    """The prices of a call, and which others were taken where its own are not known."""
    if call.model is None:
        return None, ""
    sent_tokens = call.usage.sent_tokens if call.usage else 0
    when: dict[str, Any] = {"time": call.time, "sent_tokens": sent_tokens, "host": call.host}
    found = model_prices(call.model, own, **when, tier=call.tier)
    if found is not None or call.tier is None:
        return found, ""
    standard = model_prices(call.model, own, **when)
    assumed = f"what {call.model} costs as {call.tier} is not known: priced as usual"
    return standard, "" if standard is None else assumed


def _bill(request: LoggedRequest, own: Mapping[str, ModelPrices], fallback: Prices | None) -> Bill:
    beside = [request._replace(model=one.model or request.model, usage=one.usage) for one in request.beside]
    bill = Bill.total(_of_call(call, own, fallback) for call in [request, *beside])
    bill = bill._replace(requests=int(bill.requests > 0), unpriced=int(bill.unpriced > 0))
    return bill if request.cost is None else bill._replace(cost=request.cost, unpriced=0)


def _of_call(call: LoggedRequest, own: Mapping[str, ModelPrices], fallback: Prices | None) -> Bill:
    if call.usage is None:
        return Bill()
    found, _ = _prices_of(call, own)
    prices = fallback if found is None else found.prices
    fresh, cached, written, written_1h, output = call.usage
    tokens = fresh, cached, written + written_1h, output
    if prices is None:
        return Bill(1, *tokens, unpriced=1)
    hour = prices if found is None else prices._replace(write=found.write_1h)
    return Bill(1, *tokens, prices.cost(fresh, cached, written, output) + hour.cost(0, 0, written_1h, 0))
