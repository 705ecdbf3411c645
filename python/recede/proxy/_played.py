"""The proxy in a replay: what `RequestMasker` decides for the requests of a log, without their bodies."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from recede import _engine
from recede._agents import AGENTS
from recede._usage import LoggedUsage, shows_cache
from recede.providers import OF_FORMATS, Provider, has_entries, model_verifies, rounded_static
from recede.proxy._caches import Caches
from recede.proxy._course import Course
from recede.proxy._ledger import ColdRequests
from recede.proxy._masker import RequestMasker
from recede.proxy._policies import Policies
from recede.proxy._routes import Route
from recede.transcripts._places import COMMANDS_OF_FORMATS

if TYPE_CHECKING:
    from recede.transcripts import LoggedRequest, Transcript

_Step = tuple[tuple[Any, ...], int]


class _Marks(NamedTuple):
    """The marks of the requests of a log: messages are cached where its requests wrote to a cache, or say nothing."""

    caches_messages: bool
    ttl: str | None = None
    retention: str | None = None


class PlayedProxy:
    """The door of `recede.costs.replay_transcript` that does what the proxy does.

    A request has the model, the time and the marks that its log shows, and the ledger knows the requests before it. A
    logged read from a cache above system prompt and tools counts as `RequestMasker.reported`. Each takes constant time:
    of the requests before it only those are looked up that a look-up would find.

    Example:
        >>> from recede import costs, transcripts
        >>> from recede.proxy._played import PlayedProxy
        >>> session = transcripts.read(b'[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]')
        >>> costs.replay_transcript(session, ["break_even:window=10"], door=PlayedProxy(session))
        <Replay: 1 requests, cheapest raw at 100% of raw>
    """

    def __init__(self, transcript: Transcript) -> None:
        usages = [one.usage for one in transcript.requests if one.usage is not None]
        written, written_1h = (sum(usage[place] for usage in usages) for place in (2, 3))
        self._marks = _Marks(bool(written + written_1h) or not usages, "1h" if written_1h > written else None)
        self._route = Route(OF_FORMATS.get(transcript.format, "anthropic"))
        self._agent = AGENTS.get(COMMANDS_OF_FORMATS.get(transcript.format, ""))
        self._ledger, self._now = ColdRequests(), 0.0
        self._course = Course(Caches(None, {}, self._ledger), self._ledger, lambda: self._now)

    def periods(self, context: Transcript, static: int) -> PlayedContext:
        """Decide the requests of a context in their order; `static` are the characters of system prompt and tools."""
        logged = {request.messages: request for request in context.requests}
        points, served = _engine.engine.points(context.messages), None
        cold: set[int] = set()

        def static_of(provider: Provider) -> int:
            return rounded_static(static) if has_entries(provider) else 0

        steps: list[_Step] = []
        known: LoggedRequest | None = None
        last = next((place for place, (end, _) in enumerate(points) if end >= context.shown), len(points))
        for place, point in enumerate(points):
            request = logged.get(point[0], known)
            if place < last or (place == len(points) - 1 and point[0] == len(context.messages)):
                continue  # requests of an earlier context, and one that nobody has answered
            known = request
            model = "" if request is None else request.model or ""
            self._now = self._now if request is None or request.time is None else request.time
            looked_at = points[: place + 1] if place == last else _looked_at(points, place, served)
            noted = self._ledger.look_up(looked_at).provider
            cache, found, arguments = self._course.of(
                self._route, model, self._marks, looked_at, static_of, noted, model_verifies(model), self._agent
            )
            cold.update(found)
            steps.append((arguments, point[0]))
            if cache.is_missing and request is not None and shows(request.usage, static):
                self._ledger.note_served(point, self._now)
                served = point
        return PlayedContext(steps, sorted(cold))


def shows(usage: LoggedUsage | None, static: int) -> bool:
    return usage is not None and shows_cache(usage, static)


def _looked_at(
    points: list[tuple[int, bytes]], place: int, served: tuple[int, bytes] | None
) -> list[tuple[int, bytes]]:
    """The first request, the last that was shown to have a cache, the one before this, and this."""
    few = {
        point[0]: point
        for point in (points[0], *([] if served is None else [served]), *points[max(0, place - 1) : place + 1])
    }
    return [few[end] for end in sorted(few)]


class PlayedContext(NamedTuple):
    """The decisions of a context: for each request the arguments of its policy, and which found a cold cache."""

    steps: list[_Step]
    cold: list[int]

    def door(self, options: Mapping[str, Any], *, summarizes: bool) -> list[tuple[Any, list[int], int]]:
        """The policies of a masker with these options, each with the cold requests and its last request."""
        policies = _policies(tuple(options.items()), summarizes)
        if not self.steps:  # a context without requests of its own
            return [(policies.of(Provider.of("anthropic")), [], sys.maxsize)]
        runs = [(policies.of(*arguments), last) for arguments, last in self.steps]
        ends = [(policy, [last for _, last in some][-1]) for policy, some in groupby(runs, key=lambda run: run[0])]
        return [(policy, self.cold, last) for policy, last in ends]


@lru_cache(maxsize=64)
def _policies(options: tuple[tuple[str, Any], ...], summarizes: bool) -> Policies:
    return RequestMasker(**dict(options), summaries=summarizes).policies
