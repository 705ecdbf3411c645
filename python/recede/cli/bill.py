"""Bills: what the logs of sessions say was paid, and the replay of the raw history held against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from recede.cli.notices import counted
from recede.cli.played import Logged, Session
from recede.cli.tables import prose, table
from recede.cli.words import money, tenths
from recede.costs import (
    SYSTEM_CHARS,
    Bill,
    ModelPrices,
    Replay,
    check_bill,
    logged_bill,
    session_prices,
)
from recede.designs import approx_tokens
from recede.transcripts import Transcript

_OFF = 0.15  # what a session may be off by without a reason


def logged(transcript: Transcript, own: Mapping[str, ModelPrices], *, is_checked: bool) -> Logged:
    prices = session_prices(transcript, own)
    checks = (check_bill(transcript, own, pauses=pauses) for pauses in ("timed", "logged") if is_checked)
    bills = tuple(
        (request.id, (request.branch, request.messages), logged_bill([request], own, prices.prices))
        for request in transcript.requests
    )
    times = tuple(request.time for request in transcript.requests if request.time is not None)
    return Logged(Bill.total(bill for _, _, bill in bills), bills, prices, times, transcript.plan, *checks)


def without_copies(sessions: Sequence[Session]) -> list[tuple[Session | None, list[str]]]:
    """Drop the requests that an earlier session has too, and warn if there are any.

    A session that is resumed is written into another file, which begins with copies. One that has nothing else is None.
    What other policies would have cost is counted once too; their state is that of the whole session.
    """
    seen: set[str | None] = set()
    found: list[tuple[Session | None, list[str]]] = []
    for session in sessions:
        bills = () if session.log is None else session.log.bills
        own = [bill for name, _, bill in bills if name is None or name not in seen]
        copied = {place for name, place, _ in bills if name is not None and name in seen}
        seen.update(name for name, _, _ in bills)
        if session.log is None or not copied:
            found.append((session, []))
        elif not own:
            warning = "all its requests are in another file, as of a session that was resumed: left out"
            found.append((None, [warning]))
        else:
            log, replay = session.log._replace(bill=Bill.total(own)), without_requests(session.replay, copied)
            warning = f"requests that are in another file too, counted only there: {len(bills) - len(own)} times"
            found.append((session._replace(log=log, replay=replay), [warning]))
    return found


def without_requests(replay: Replay, requests: Collection[tuple[int, int]]) -> Replay:
    """A replay without some of its requests: the branch of each, and how many of its messages precede the answer."""
    turns = replay.policies[0].turns
    copied = {number for number, turn in enumerate(turns) if (turn.branch, turn.messages) in requests}
    policies = (
        policy._replace(turns=tuple(turn for number, turn in enumerate(policy.turns) if number not in copied))
        for policy in replay.policies
    )
    misses = None if replay.misses is None else replay.misses.without(copied)
    return replay._replace(policies=tuple(policies), misses=misses)


def logged_lines(sessions: Sequence[Session], system_chars: int) -> list[str]:
    """Lines on what was paid by the logs, and what they do not say; flat prices ask for no model."""
    logs = [session.log for session in sessions if session.log is not None]
    is_flat = any(session.is_flat for session in sessions)
    bill = Bill.total(log.bill for log in logs)
    lines = []
    if bill.requests:
        counts = Counter(model for log in logs for model in log.prices.models[:1])
        models = ", ".join(model for model, _ in counts.most_common())
        kinds = f"{bill.cached_tokens:,} read from the cache, {bill.fresh_tokens:,} other, {bill.output_tokens:,} out"
        lines.append(f"logged: {money(bill.cost)} for {counted(bill.requests, 'request')}, tokens: {kinds} ({models})")
    silent = sum(session.log is None or not session.log.bill.requests for session in sessions)
    if silent:
        system = f"{approx_tokens(system_chars):,} tokens of system prompt and tools"
        system += " unless --set system_chars=N" if system_chars == SYSTEM_CHARS else ""
        lines.append(f"assumed: {counted(silent, 'session')} without usage: four characters a token, {system}")
    plans = sum(log.plan is not None for log in logs)
    if plans and not is_flat:
        lines.append(f"assumed: {counted(plans, 'session')} paid by a subscription: priced as the API")
    assumed = Counter(line for log in logs for line in log.prices.assumed)
    if not is_flat:
        lines += [f"assumed: {counted(count, 'session')}: {line}" for line, count in assumed.most_common()]
    return lines


def check_text(sessions: Sequence[Session]) -> str:
    """A row for each session with logged usage, their sum, and the reasons of those that are far off."""
    found = [
        (session.name, session.log.timed, session.log.as_logged)
        for session in sessions
        if session.log is not None and session.log.timed is not None and session.log.as_logged is not None
    ]
    if not found:
        return "no session has logged usage\n"
    headings = ["session", "requests", "input", "2nd half", "read", "not read", "output", "paid", "cost", "as served"]
    rows = [
        _check_row(name, timed.input_error, timed.second_half_error, timed.logged, timed.estimated, as_logged.estimated)
        for name, timed, as_logged in found
    ]
    mean = sum(timed.input_error for _, timed, _ in found) / len(found)
    worst = max((timed.second_half_error or 0.0 for _, timed, _ in found), default=0.0)
    sums = [Bill.total(part) for part in zip(*((t.logged, t.estimated, s.estimated) for _, t, s in found), strict=True)]
    rows.append(_check_row(counted(len(found), "session"), mean, worst, *sums))
    reasons = [
        f"{name}: {'; '.join(timed.notes)}"
        for name, timed, _ in found
        if timed.notes and _is_off(timed.logged, timed.estimated)
    ]
    return "\n".join([table(headings, rows), prose([*_WORDS, *(["", *reasons] if reasons else []), ""])])


_WORDS = (
    "input: error of a request's tokens; 2nd half: of the input, predicted from the first half (in all: the worst);",
    "read, not read, output, cost: estimated against logged, the cache by its rule and the time stamps alone;",
    "as served: the cost where the cache is also as cold as the log shows.",
)


def _check_row(name: str, error: float, half: float | None, paid: Bill, timed: Bill, as_logged: Bill) -> list[str]:
    kinds = ("cached_tokens", "fresh_tokens", "output_tokens")
    tokens = [_difference(getattr(paid, kind), getattr(timed, kind)) for kind in kinds]
    dollars = [money(paid.cost), _difference(paid.cost, timed.cost), _difference(paid.cost, as_logged.cost)]
    return [name, f"{paid.requests:,}", tenths(error), tenths(half), *tokens, *dollars]


def _difference(paid: float, estimated: float) -> str:
    return f"{100 * (estimated / paid - 1):+.1f} %" if paid else "-"


def _is_off(paid: Bill, estimated: Bill) -> bool:
    kinds = ("cached_tokens", "fresh_tokens", "cost")
    return any(abs(getattr(estimated, kind) - getattr(paid, kind)) > _OFF * getattr(paid, kind) for kind in kinds)
