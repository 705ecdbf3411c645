"""A replay compared with the log of its session: tokens by kind, dollars, and why they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from recede.costs._bill import Bill, SessionPrices, logged_bill, session_prices
from recede.costs._calibrate import SERVED, calibrate
from recede.costs._models import ModelPrices
from recede.costs._policies import DEFAULT_POLICIES, PlayedDoor, reads_texts
from recede.costs._prices import Cache, Prices
from recede.costs._quotations import Misses
from recede.costs._replay import SYSTEM_CHARS, Replay, replay, replayed
from recede.costs._turn import ReplayedTurn
from recede.reduction._kinds import CHARS_PER_TOKEN
from recede.reduction._policy import SUMMARY_CHARS

if TYPE_CHECKING:
    from recede.transcripts import LoggedRequest, LoggedUsage, Transcript

_PAUSES = ("logged", "timed", "none")
_SHRUNK = 0.8  # of what the request before sent: less is a compaction


class TranscriptDoor(Protocol):
    """A door that plays the requests of a log."""

    def periods(self, context: Transcript, static: int) -> PlayedDoor:
        """Decide the requests of a context, in which system prompt and tools have `static` characters."""


class BillCheck(NamedTuple):
    """A session as logged, and as estimated by a replay of its raw history.

    Attributes:
        logged: what the log says.
        estimated: the same requests as a calibrated replay estimates them, at the same prices.
        input_error: the mean difference of a request's input tokens, as a share of those logged.
        second_half_error: the same for the input of the second half of the requests, added up and predicted from the
            first; None for sessions with fewer than six requests.
        prices: the prices of both.
        notes: what the log shows that nothing in the history predicts, a line each.

    Example:
        >>> import json
        >>> from recede import costs, transcripts
        >>> def answer(sent, cached):
        ...     tokens = {"input": sent, "cached": cached, "output": 2}
        ...     return {"type": "gemini", "model": "gemini-2.5-flash", "content": "Done.", "tokens": tokens}
        >>> asked = [{"type": "user", "content": "x" * 400}, {"type": "user", "content": "y" * 800}]
        >>> messages = [asked[0], answer(9_200, 0), asked[1], answer(9_602, 9_200)]
        >>> check = costs.check_bill(transcripts.read(json.dumps({"sessionId": "1", "messages": messages}).encode()))
        >>> check.logged.cached_tokens, round(check.estimated.cached_tokens), round(check.input_error, 3)
        (9200, 9200, 0.0)
    """

    logged: Bill
    estimated: Bill
    input_error: float
    second_half_error: float | None
    prices: SessionPrices
    notes: tuple[str, ...] = ()


def replay_transcript(
    transcript: Transcript,
    policies: Iterable[str] = DEFAULT_POLICIES,
    *,
    own_prices: Mapping[str, ModelPrices] = {},
    prices: SessionPrices | None = None,
    cache: Cache | str | None = None,
    pauses: str = "logged",
    system_chars: int = SYSTEM_CHARS,
    summary_prices: Prices | None = None,
    summary_chars: int = SUMMARY_CHARS,
    with_misses: bool = False,
    door: TranscriptDoor | None = None,
) -> Replay:
    """Replay each context of a session, with the tokens, models and times of its log.

    Args:
        transcript: a session, as `recede.transcripts.read` returns it.
        policies: as for `replay`.
        own_prices: prices by model that come before those of `MODELS`.
        prices: prices to use instead of those of the logged models.
        cache: as for `replay`; None: that of the provider of the logged models.
        pauses: when the cache is cold: ``"logged"`` where the log says that it served less than it had, or by time
            stamps if the log has no usage; ``"timed"`` by time stamps alone; ``"none"`` never.
        system_chars: as for `replay`, where the log has no usage.
        summary_prices: as for `replay`.
        summary_chars: as for `replay`.
        with_misses: as for `replay`.
        door: what decides for ``break_even``, and for ``hybrid`` as in `replay`; None: a `recede.History`.

    Returns:
        A `Replay` of all contexts, one after the other; those without logged usage count four characters a token.
        `ReplayedTurn.messages` counts the messages of the transcript, of the history of its branch. A session with a
        model that has no known price has shares, and no dollars (`Replay.has_dollars`).

    Raises:
        ValueError: `pauses` is unknown, or texts are needed that were left out (`Transcript.has_texts`).

    Example:
        >>> from recede import costs, transcripts
        >>> session = transcripts.read(b'[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]')
        >>> costs.replay_transcript(session, ["sliding:window=10"])
        <Replay: 1 requests, cheapest raw at 100% of raw>
    """
    if pauses not in _PAUSES:
        raise ValueError(f"pauses must be one of {', '.join(_PAUSES)}, not {pauses!r}")
    policies = list(policies)
    if not transcript.has_texts and (with_misses or reads_texts(policies, summary_chars)):
        raise ValueError("misses, budgets and built-in summaries need texts: read the file with keep_texts=True")
    found = session_prices(transcript, own_prices) if prices is None else prices
    options: dict[str, Any] = {"prices": found.prices, "cache": found.cache if cache is None else cache}
    options |= {"system_chars": system_chars, "summary_prices": summary_prices, "summary_chars": summary_chars}
    options["is_priced"] = cache is not None
    replays = []
    for context in transcript.each_context():
        calibration = calibrate(context)
        times = {request.messages: request.time for request in context.requests if request.time is not None}
        if calibration is not None and pauses != "logged":
            calibration = calibration._replace(misses={})
        has_times = pauses == "timed" or (pauses == "logged" and calibration is None)
        options |= {"times": times if has_times else None, "calibration": calibration, "shown": context.shown}
        static = system_chars if calibration is None else calibration.system_chars
        own = None if door is None else door.periods(context, static)
        played = replayed(context.messages, policies, with_misses=with_misses, door=own, **options)
        replays.append(_placed(played, context))
    joined = (
        parts[0]._replace(turns=tuple(chain.from_iterable(part.turns for part in parts)))
        for parts in zip(*(played.policies for played in replays), strict=True)
    )
    misses = Misses.total(played.misses for played in replays if played.misses is not None) if with_misses else None
    return replays[0]._replace(misses=misses, policies=tuple(joined), has_dollars=not found.unpriced)


def _placed(played: Replay, context: Transcript) -> Replay:
    """Convert the requests of a context to message numbers of the history of its branch."""
    before, shown, branch = context.before, context.shown, context.branch
    if before == shown == branch == 0:
        return played

    def placed(turns: Iterable[ReplayedTurn]) -> tuple[ReplayedTurn, ...]:
        moved = before - shown
        own = (turn for turn in turns if turn.messages >= shown)
        return tuple(turn._replace(messages=turn.messages + moved, branch=branch) for turn in own)

    return played._replace(policies=tuple(policy._replace(turns=placed(policy.turns)) for policy in played.policies))


def check_bill(
    transcript: Transcript, own_prices: Mapping[str, ModelPrices] = {}, *, pauses: str = "logged"
) -> BillCheck | None:
    """Compare the replay of a raw history with its log.

    Args:
        transcript: a session, as `recede.transcripts.read` returns it.
        own_prices: prices by model that come before those of `MODELS`.
        pauses: as for `replay_transcript`; ``"timed"`` predicts from time stamps what the cache served.

    Returns:
        A `BillCheck`; None if the log has no usage. Its bills have no dollars if a model has no known price.

    Raises:
        ValueError: `pauses` is unknown.

    Example:
        >>> from recede import costs, transcripts
        >>> costs.check_bill(transcripts.read(b'[{"role": "user", "content": "no log"}]')) is None
        True
    """
    found = session_prices(transcript, own_prices)
    pairs: list[tuple[ReplayedTurn, LoggedRequest, LoggedUsage]] = []
    unplayed = 0
    turns = {
        (turn.branch, turn.messages): turn
        for turn in replay_transcript(transcript, ["raw"], prices=found, pauses=pauses).policies[0].turns
    }
    for request in transcript.requests:
        turn = turns.get((request.branch, request.messages))
        if request.usage is not None and turn is not None:
            pairs.append((turn, request, request.usage))
        elif request.usage is not None:
            unplayed += 1
    if not pairs:
        return None
    bills = (
        logged_bill((request for _, request, _ in pairs), own_prices, found.prices),
        Bill.total(_estimated(turn, found.prices) for turn, _, _ in pairs),
    )
    logged, estimated = (one._replace(cost=0.0, unpriced=len(pairs)) if found.unpriced else one for one in bills)
    errors = [abs(_tokens(turn.view_chars) / max(1, usage.sent_tokens) - 1) for turn, _, usage in pairs]
    return BillCheck(
        logged=logged,
        estimated=estimated,
        input_error=sum(errors) / len(errors),
        second_half_error=_second_half(transcript),
        prices=found,
        notes=_notes(transcript, found.ttl_seconds, unplayed),
    )


def _tokens(chars: float) -> float:
    return chars / CHARS_PER_TOKEN


def _estimated(turn: ReplayedTurn, prices: Prices) -> Bill:
    plain = turn.view_chars - turn.cached_chars - turn.written_chars
    tokens = [_tokens(chars) for chars in (plain, turn.cached_chars, turn.written_chars, turn.answer_chars)]
    return Bill._make([1, *tokens, prices.cost(*tokens), 0])


def _second_half(transcript: Transcript) -> float | None:
    """Measure how far the later half of the longest context is from what the earlier half predicts."""
    context = max(transcript.each_context(), key=lambda one: len(one.requests))
    logged = [(one.messages, one.usage.sent_tokens) for one in context.requests if one.usage is not None]
    half = len(logged) // 2
    early = calibrate(context, requests=half)
    if half < 3 or early is None:
        return None
    turns = replay(context.messages, ["raw"], calibration=early).policies[0].turns
    predicted = {turn.messages: _tokens(turn.view_chars) for turn in turns}
    later = [(predicted[messages], sent) for messages, sent in logged[half:] if messages in predicted]
    return abs(sum(tokens for tokens, _ in later) / max(1, sum(sent for _, sent in later)) - 1)


def _notes(transcript: Transcript, ttl_seconds: float, unplayed: int) -> tuple[str, ...]:
    """List what happened between requests that only the provider or the client knows."""
    missed = survived = shrunk = 0
    for context in transcript.each_context():
        for before, after in pairwise(request for request in context.requests if request.usage is not None):
            if before.usage is None or after.usage is None:
                continue
            pause = (after.time or 0.0) - (before.time or 0.0)
            has_shrunk = after.usage.sent_tokens < _SHRUNK * before.usage.sent_tokens
            is_served = after.usage.cached_tokens >= SERVED * before.usage.sent_tokens
            shrunk += has_shrunk
            missed += not (has_shrunk or is_served) and pause <= ttl_seconds
            survived += is_served and pause > ttl_seconds
    found = {
        "requests that found less in the cache than the request before had sent, without a pause": missed,
        "pauses longer than the cache is kept, after which it was kept": survived,
        "requests much smaller than the one before, as after a compaction that the log hides": shrunk,
        "answers that were billed and are not in the history": unplayed,
    }
    return tuple(f"{note}: {count}" for note, count in found.items() if count)
