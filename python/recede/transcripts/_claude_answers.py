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
    """An answer of the model, which its lines add to."""

    def __init__(self, message: dict[str, Any], draft: Draft, request: int, asked: str | None, usage: Any) -> None:
        self.message = message
        self.draft = draft
        self.end = draft.end + 1  # how many messages its history has with it
        self.request = request  # its index
        self.asked = asked  # the identifier of its request
        self.sent = sent_of(usage)
        self._places: dict[str, int] = {}  # of its blocks, by what identifies them

    def add(self, blocks: list[Any]) -> None:
        """Add the blocks of a line: those that are new, those that have grown, and those that are written again."""
        held = self.message["content"]
        for block in blocks:
            name = text(block.get("id")) if fields(block).get("type") == "tool_use" else ""
            key = name or digest(block)
            if key in self._places:
                held[self._places[key]] = block
            elif held and _grew(held[-1], block):
                held[-1] = block
                self._places[key] = len(held) - 1
            else:
                self._places[key] = len(held)
                held.append(block)


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
            for call in _calls(request):
                logged.setdefault(_plain(call.model or request.model), []).append(call.usage)
    only = next(iter(logged), "") if len(logged) == 1 else ""
    missing = []
    for model, totals in by_model.items():
        total, held = map(sum, zip(*totals, strict=True)), logged.get(_plain(model) or only, ())
        rest = LoggedUsage(*(max(0, every - sum(part)) for every, *part in zip(total, *held, strict=True)))
        if any(rest):
            missing.append(Beside("session", model or main.requests[-1].model if main.requests else None, rest))
    if missing and main.requests:
        last = main.requests[-1]
        main.requests[-1] = last._replace(beside=(*last.beside, *missing))
    elif missing:
        main.requests.append(LoggedRequest(main.end, missing[0].model, None, None, beside=tuple(missing)))
    weights = [[_weight(request) for request in draft.requests] for draft in drafts]
    whole = sum(map(sum, weights))
    for draft, shares in zip(drafts, weights, strict=True) if paid and whole else ():
        pairs = zip(draft.requests, shares, strict=True)
        draft.requests[:] = [request._replace(cost=paid * share / whole) for request, share in pairs]


def _calls(request: LoggedRequest) -> list[Beside]:
    answer = [] if request.usage is None else [Beside("answer", request.model, request.usage)]
    return [*answer, *request.beside]


def _weight(request: LoggedRequest) -> float:
    return sum(count * share for one in _calls(request) for count, share in zip(one.usage, _SHARES, strict=True))


def _totals(results: Sequence[dict[str, Any]]) -> tuple[float, dict[str, list[LoggedUsage]]]:
    """Dollars, and the tokens of each run by model; later results of a run include the earlier ones."""
    runs: list[tuple[float, dict[str, Any]]] = []
    for result in results:
        cost = result.get("total_cost_usd")
        is_cost = isinstance(cost, (int, float)) and not isinstance(cost, bool)
        cost = float(cost) if is_cost and cost is not None and 0 < cost < _MOST_DOLLARS else 0.0
        if runs and cost >= runs[-1][0]:  # a lower one is of another run
            runs.pop()
        runs.append((cost, result))
    by_model: dict[str, list[LoggedUsage]] = {}
    for _, result in runs:
        # It does not say which writes are for an hour.
        for model, counts in (fields(result.get("modelUsage")) or {"": result.get("usage")}).items():
            if (usage := usage_of(counts, lambda _: None)) is not None:
                by_model.setdefault(model, []).append(usage)
    return sum(cost for cost, _ in runs), by_model


def _plain(model: str | None) -> str:
    """The name of a model without the size of its context, which some records have and others omit."""
    return model.partition("[")[0] if model else ""
