"""Claude Code's answers, each of several lines, and what a session was paid in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recede._usage import Beside, LoggedUsage, usage_of
from recede.transcripts._draft import Draft, digest, fields, text
from recede.transcripts._requests import LoggedRequest

_TEXTS = ("text", "thinking")
# What tokens cost about, where input costs 1: the shares of requests in a sum.
_SHARES = (1.0, 0.1, 1.25, 2.0, 5.0)
_MOST_DOLLARS = 1e9


def sent_of(usage: Any) -> tuple[int, ...] | None:
    """The counts of a request's input, which all lines of its answer repeat; None if none is logged."""
    found = usage_of(usage, lambda _: None)
    return None if found is None else found[:4]


class Answer:
    """An answer of the model, which its lines add to.

    Attributes:
        message: the message of the history.
        draft: the branch that it is in.
        end: how many messages its history has with it.
        request: the index of its request.
        asked: the identifier of its request; None: none is logged.
        sent: the counts of its input.
    """

    def __init__(self, message: dict[str, Any], draft: Draft, request: int, asked: str | None, usage: Any) -> None:
        self.message = message
        self.draft = draft
        self.end = draft.end + 1
        self.request = request
        self.asked = asked
        self.sent = sent_of(usage)
        self._places: dict[str, int] = {}  # of its blocks, by what identifies them

    def add(self, blocks: list[Any]) -> None:
        """Add the blocks of a line: those that are new, those that have grown, and those that are written again."""
        held = self.message["content"]
        for block in blocks:
            key = _key(block)
            if key in self._places:
                held[self._places[key]] = block
            elif held and _grew(held[-1], block):
                held[-1] = block
                self._places[key] = len(held) - 1
            else:
                self._places[key] = len(held)
                held.append(block)


def _key(block: Any) -> str:
    name = block.get("id") if isinstance(block, dict) and block.get("type") == "tool_use" else None
    return name if isinstance(name, str) and name else digest(block)


def _grew(before: Any, block: Any) -> bool:
    """Whether a block is an earlier one with more text."""
    kind = fields(block).get("type")
    if kind not in _TEXTS or fields(before).get("type") != kind:
        return False
    said, says = text(before.get(kind)), text(block.get(kind))
    return bool(said) and says.startswith(said)


def settle(drafts: Sequence[Draft], results: Sequence[dict[str, Any]]) -> None:
    """Give requests what the program says that the session was paid in all: tokens that no line has, and dollars."""
    main = drafts[0]
    paid, by_model = _totals(results)
    logged: dict[str, list[LoggedUsage]] = {}
    for draft in drafts:
        for request in draft.requests:
            calls = [] if request.usage is None else [(request.model, request.usage)]
            for model, usage in [*calls, *((one.model or request.model, one.usage) for one in request.beside)]:
                logged.setdefault(_plain(model), []).append(usage)
    only = next(iter(logged), "") if len(logged) == 1 else ""
    missing = []
    for model, total in by_model.items():
        held = logged.get(_plain(model) or only, ())
        rest = LoggedUsage(*(max(0, every - sum(part)) for every, *part in zip(total, *held, strict=True)))
        if any(rest):
            missing.append(Beside("session", model or main.requests[-1].model if main.requests else None, rest))
    if missing and main.requests:
        last = main.requests[-1]
        main.requests[-1] = last._replace(beside=(*last.beside, *missing))
    elif missing:
        main.requests.append(LoggedRequest(main.end, missing[0].model, None, None, beside=tuple(missing)))
    _share(drafts, paid)


def _share(drafts: Sequence[Draft], paid: float) -> None:
    weights = [[_weight(request) for request in draft.requests] for draft in drafts]
    total = sum(map(sum, weights))
    if not paid or not total:
        return
    for draft, shares in zip(drafts, weights, strict=True):
        pairs = zip(draft.requests, shares, strict=True)
        draft.requests[:] = [request._replace(cost=paid * share / total) for request, share in pairs]


def _weight(request: LoggedRequest) -> float:
    usages = [*([] if request.usage is None else [request.usage]), *(one.usage for one in request.beside)]
    return sum(count * share for usage in usages for count, share in zip(usage, _SHARES, strict=True))


def _totals(results: Sequence[dict[str, Any]]) -> tuple[float, dict[str, LoggedUsage]]:
    """Dollars, and tokens by model; later results of a session include the earlier ones, unless they are lower."""
    paid = last = 0.0
    by_model: dict[str, LoggedUsage] = {}
    newest: dict[str, LoggedUsage] = {}
    for result in results:
        cost, found = result.get("total_cost_usd"), _of_result(result)
        is_cost = isinstance(cost, (int, float)) and not isinstance(cost, bool)
        cost = float(cost) if is_cost and cost is not None and 0 < cost < _MOST_DOLLARS else 0.0
        if cost < last:  # another run
            paid += last
            by_model = _added(by_model, newest)
        last, newest = cost, found
    return paid + last, _added(by_model, newest)


def _added(one: dict[str, LoggedUsage], other: dict[str, LoggedUsage]) -> dict[str, LoggedUsage]:
    none = LoggedUsage(0, 0, 0, 0, 0)
    names = dict.fromkeys([*one, *other])
    return {
        name: LoggedUsage(*map(sum, zip(one.get(name, none), other.get(name, none), strict=True))) for name in names
    }


def _of_result(result: dict[str, Any]) -> dict[str, LoggedUsage]:
    models = fields(result.get("modelUsage")) or {"": result.get("usage")}
    found = {model: usage_of(counts, lambda _: None) for model, counts in models.items()}
    # It does not say which writes are for an hour.
    return {model: usage for model, usage in found.items() if usage is not None}


def _plain(model: str | None) -> str:
    """The name of a model without the size of its context, which some records have and others omit."""
    return model.partition("[")[0] if model else ""
