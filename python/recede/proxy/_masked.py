"""`MaskedRequest`: the body to send instead, and what was done to it."""

from __future__ import annotations

from typing import NamedTuple

from recede.proxy._summaries import AskedSummary


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
        has_reasoning: whether a message has signed reasoning, which a provider may verify.
        reasoning_dropped: messages that are sent without their signed reasoning.
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
    has_reasoning: bool = False
    reasoning_dropped: int = 0

    def __repr__(self) -> str:
        done = f"chars {self.chars_before} -> {self.chars_after}, masked {self.masked_count}"
        return f"<MaskedRequest: {len(self.body)} bytes, provider={self.provider!r}, {done}, fault={self.fault!r}>"


class Door(NamedTuple):
    """What a door that sees answers does with a masked request."""

    waits: bool = False  # for the summary that it asks for
    observes: bool = False  # and sends what it was given
    retries: bool = False  # without reasoning, if that is refused
    was_refused: bool = False  # and is sent again
