"""What masks cost where reasoning is verified, by model: `python benches/reasoning.py`.

Long sessions of Claude Code, with their texts and with reasoning of a usual length in each answer, are sent to a
provider on this machine that refuses what the real one does, and keeps its cache by its rule. `--table` prints the
table of docs/caching.md.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from economy import CORPUS, long_of
from figures import NOT_HERE

import recede
from claims import FULL, Claim, Plan, Section
from formatting import markdown
from recede.costs import Quotation, misses

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from caching_provider import CachingProvider

from provider_rules import NEW, anthropic

Body = dict[str, Any]
View = Callable[[Body], Body]

SYSTEM_CHARS = 12_000
THINKING_CHARS = 1_300
MOST_SESSIONS, MOST_TURNS = 6, 150
MODELS = ["claude-opus-4-8", "claude-opus-5-5", "claude-fable-5-2"]
# What stays of the blocks of recorded messages, and a result that no log has.
FIELDS = {"text": ("text",), "tool_use": ("id", "name", "input"), "tool_result": ("tool_use_id", "content")}
RESULT = {"type": "tool_result", "content": "Done."}
MARK = {"cache_control": {"type": "ephemeral"}}


class Sums(NamedTuple):
    """What the requests of a session were: those of a round are what the agent has worked on since the user spoke.

    Attributes:
        made: blocks of reasoning that precede each.
        sent: those that it sends.
        dropped: those that it sends and the provider drops.
        quoting: requests whose answer quotes a result that they no longer show.
    """

    requests: int = 0
    refused: int = 0
    made: int = 0
    sent: int = 0
    made_in_round: int = 0
    sent_in_round: int = 0
    cost: float = 0.0
    dropped: int = 0
    quoting: int = 0


def ways(model: str) -> dict[str, View]:
    """How a body is sent."""
    facts = recede.Provider.of("anthropic", model)
    cut = {"keep": 1_000_000, "max_result_chars": 4_000}

    def reduced(body: Body, provider: recede.Provider, **options: Any) -> Body:
        result = recede.reduce(body["messages"], provider=provider, **options)
        return {**body, "messages": result.messages}

    return {
        "raw": lambda body: body,
        "masks, all reasoning sent": lambda body: reduced(body, facts._replace(verifies_reasoning=False)),
        "masks": lambda body: reduced(body, facts),
        "a cut on arrival at 4,000 characters": lambda body: reduced(body, facts, **cut),
    }


def turns_of(messages: list[Any]) -> Iterator[tuple[Body, Body]]:
    """The answers of a recorded session, each with what follows it: texts, calls and results alone."""
    joined: list[Body] = []
    for message in messages:
        if message["role"] not in ("user", "assistant"):
            continue
        blocks = list(map(_bare, _content(message)))
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1]["content"] += filter(None, blocks)
        elif kept := list(filter(None, blocks)):
            joined.append({"role": message["role"], "content": kept})
    for answer, after in pairwise(joined):
        if answer["role"] == "assistant":
            calls = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
            results = [{**RESULT, **_results(after).get(one, {}), "tool_use_id": one} for one in calls]
            said = [block for block in after["content"] if block["type"] == "text"]
            yield answer, {"role": "user", "content": [*results, *said] or [{"type": "text", "text": "Go on."}]}


def _content(message: Body) -> list[Body]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _bare(block: Body) -> Body | None:
    fields = FIELDS.get(str(block.get("type")))
    is_empty = fields == ("text",) and not block["text"].strip()
    return None if fields is None or is_empty else {"type": block["type"], **{name: block[name] for name in fields}}


def _results(message: Body) -> dict[str, Body]:
    return {one["tool_use_id"]: one for one in message["content"] if one["type"] == "tool_result"}


def played(turns: list[tuple[Body, Body]], model: str, view: View) -> Sums:
    """A session, as a loop sends it: a request that is refused is sent without any reasoning."""
    facts, cache = recede.Provider.of("anthropic", model), CachingProvider("")
    system = [{"type": "text", "text": "s" * SYSTEM_CHARS, **MARK}]
    fixed = {"model": model, "max_tokens": 9_000, "thinking": {"type": "adaptive"}, "system": system}
    history: list[Body] = [{"role": "user", "content": [{"type": "text", "text": "Look at the repository."}]}]
    sums, began, quoted = Sums(), 0, quotations(history, turns)
    for number, (answer, after) in enumerate(turns):
        body = view({**fixed, "messages": _marked(history)})
        is_refused = anthropic.take(body, NEW).fault is not None
        if is_refused:
            body = {**body, "messages": [_unsigned(message) for message in body["messages"]]}
        taken = anthropic.take(body, NEW)
        assert taken.fault is None, taken.fault
        usage = cache.count(body)
        cost = usage["cache_read_input_tokens"] * facts.read + usage["cache_creation_input_tokens"] * facts.write
        places = [place for place, one in enumerate(body["messages"]) if _is_signed(one)]
        in_round = sum(place >= began for place in places)
        made_in_round = sum(place >= began for place, one in enumerate(history) if one["role"] == "assistant")
        dropped = sum(one["type"] == "thinking_dropped" for one in taken.dropped)
        shown = _texts(body["messages"]) if number in quoted else []
        quoting = any(one.text not in shown[one.result] for one in quoted.get(number, ()))
        cost += usage["input_tokens"]
        more = (1, is_refused, number, len(places), made_in_round, in_round, cost, dropped, quoting)
        sums = Sums(*map(sum, zip(sums, more, strict=True)))
        thought = {"type": "thinking", "thinking": f"{number} ".ljust(THINKING_CHARS, "t")}
        signed = anthropic.answered(body, [thought, *answer["content"]], NEW)
        history = [*history, {"role": "assistant", "content": signed}, after]
        began = began if _results(after) else len(history) - 1
    return sums


def quotations(begun: list[Body], turns: list[tuple[Body, Body]]) -> dict[int, list[Quotation]]:
    """By request what its answer quotes from results that it would show, were nothing masked or cut."""
    history = [*begun, *(message for turn in turns for message in turn)]
    texts, quoted = _texts(history), defaultdict[int, list[Quotation]](list)
    for one in misses(history).quoted:
        if one.text in texts[one.result]:  # others have numbers of lines between their words
            quoted[one.request].append(one)
    return quoted


def _texts(messages: list[Body]) -> list[str]:
    """The texts of all results, in order, with one space where there are more."""
    results = (block for message in messages for block in message["content"] if block["type"] == "tool_result")
    pieces = (_content({"content": one["content"]}) for one in results)
    return [" ".join(" ".join(str(piece.get("text", "")) for piece in of_one).split()) for of_one in pieces]


def _is_signed(message: Body) -> bool:
    return message["role"] == "assistant" and message["content"][0]["type"] == "thinking"


def _unsigned(message: Body) -> Body:
    return {**message, "content": message["content"][1:]} if _is_signed(message) else message


def _marked(messages: list[Body]) -> list[Body]:
    """The messages with the mark of Claude Code, at the end; recede adds its own."""
    *before, last = messages
    *blocks, newest = last["content"]
    return [*before, {**last, "content": [*blocks, {**newest, **MARK}]}]


def reasoning(_: Plan) -> Section:
    """Line 14: nothing is refused, and no reasoning is dropped by the provider, where a model verifies it."""
    if not CORPUS.is_dir():
        return Section([Claim("14", "verified reasoning", NOT_HERE, "")], "")
    claims = []
    for model, name, sums, raw in measured():
        figure = f"{sums.refused} of {sums.requests} refused, {_share(sums.sent, sums.made)} of the reasoning sent, "
        figure += f"{_share(sums.sent_in_round, sums.made_in_round)} in the open round, {sums.dropped} blocks dropped, "
        figure += f"{sums.cost / raw:.2f} of raw, {sums.quoting / sums.requests:.1%} quote what is gone"
        is_met = name == "masks, all reasoning sent" or not sums.refused
        claims.append(Claim("14", f"{model}: {name}", figure, "none refused", is_met))
    return Section(claims, "")


def measured() -> Iterator[tuple[str, str, Sums, float]]:
    """By model and way the sums of all sessions, and what raw costs."""
    folder = CORPUS / "claude_code"
    longest = sorted(map(list, map(turns_of, long_of(folder))), key=len)[-MOST_SESSIONS:]
    sessions = [turns[:MOST_TURNS] for turns in longest]
    for model in MODELS:
        raw = 0.0
        for name, view in ways(model).items():
            sums = Sums(*map(sum, zip(*(played(turns, model, view) for turns in sessions), strict=True)))
            raw = raw or sums.cost
            yield model, name, sums, raw


def _share(part: int, whole: int) -> str:
    return f"{part / max(whole, 1):.0%}"


def table() -> str:
    """The rows of docs/caching.md."""
    rows = []
    for model, name, sums, raw in measured():
        shares = [_share(sums.sent, sums.made), _share(sums.sent_in_round, sums.made_in_round)]
        refused, quoting = f"{sums.refused} of {sums.requests}", f"{sums.quoting / sums.requests:.1%}"
        rows.append([model, name, refused, *shares, f"{sums.cost / raw:.2f}", quoting])
    names = ["model", "sent", "refused", "reasoning sent", "in the open round", "of raw", "quoting"]
    return markdown(names, rows)


if __name__ == "__main__":
    if "--table" in sys.argv:
        sys.exit(print(table()))
    for claim in reasoning(FULL).claims:
        print(f"{'met' if claim.is_met else 'missed'}: {claim.what}: {claim.figure}; {claim.target}")
