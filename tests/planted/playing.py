"""A loop between a door and a provider, by a plan; and what went wrong in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from provider_rules import LATER, OLD, PROVIDERS, Account, Taken
from provider_rules.signatures import canonical

Body = dict[str, Any]
Messages = list[dict[str, Any]]


class Step(NamedTuple):
    """What the provider answers, unsigned, and what the client adds to the history after it."""

    answer: Messages
    after: Messages


class Api(NamedTuple):
    """How an API is spoken to; a later one is one more row of `APIS`.

    Attributes:
        rules: the module of its rules.
        field: of a body that has the history.
        path: of a request.
        body: what each body has beside the history.
        task: the first message.
        sign: an answer to a body, signed.
    """

    rules: str
    field: str
    path: str
    body: Body
    task: dict[str, Any]
    sign: Callable[[Body, Messages, Account], Messages] = lambda body, answer, account: answer


def _anthropic(body: Body, answer: Messages, account: Account) -> Messages:
    of_rules = PROVIDERS["anthropic"]
    return [
        {**one, "content": of_rules.answered(body, one["content"], account)} if one["role"] == "assistant" else one
        for one in answer
    ]


def _gemini(body: Body, answer: Messages, account: Account) -> Messages:
    return [{**one, "parts": PROVIDERS["gemini"].answered(body, one["parts"])} for one in answer]


def _converse(body: Body, answer: Messages, account: Account) -> Messages:
    return [{**one, "content": PROVIDERS["converse"].answered(body, one["content"])} for one in answer]


TASK = {"role": "user", "content": "Find the bug in the parser, and fix it."}
APIS = {
    "anthropic": Api(
        "anthropic",
        "messages",
        "/v1/messages",
        {"model": PROVIDERS["anthropic"].NEWEST, "max_tokens": 9, "system": "You are an agent."},
        TASK,
        _anthropic,
    ),
    "responses": Api(
        "responses",
        "input",
        "/v1/responses",
        {"model": PROVIDERS["responses"].NEWEST},
        TASK,
        lambda body, answer, account: PROVIDERS["responses"].answered(body, answer, account),  # type: ignore[no-any-return]
    ),
    "chat": Api("chat", "messages", "/v1/chat/completions", {"model": "gpt-5.4"}, TASK),
    "deepseek": Api("deepseek", "messages", "/v1/chat/completions", {"model": PROVIDERS["deepseek"].NEWEST}, TASK),
    "templates": Api("templates", "messages", "/v1/chat/completions", {"model": "qwen3.8-27b"}, TASK),
    "gemini": Api(
        "gemini",
        "contents",
        f"/v1beta/models/{PROVIDERS['gemini'].NEWEST}:generateContent",
        {},
        {"role": "user", "parts": [{"text": TASK["content"]}]},
        _gemini,
    ),
    "interactions": Api(
        "interactions",
        "input",
        "/v1beta/interactions",
        {"model": PROVIDERS["interactions"].NEWEST, "store": False},
        {"type": "user_input", "content": [{"type": "text", "text": TASK["content"]}]},
        lambda body, answer, account: PROVIDERS["interactions"].answered(body, answer),  # type: ignore[no-any-return]
    ),
    "converse": Api(
        "converse", "messages", "", {}, {"role": "user", "content": [{"text": TASK["content"]}]}, _converse
    ),
}


@dataclass
class Row:
    """A rule, and a plan of a history with its blocks.

    Attributes:
        rule: its name in `provider_rules.RULES`.
        api: by which it is played.
        step: the step of a number.
        turns: how many there are.
        body: more fields of each body.
        body_at: more fields of the body of a request, by number.
        begins: messages before the task.
        opens: messages right after it.
        account: who asks.
        judge: what the provider does with a body; by default its `take`.
        is_untouched: whether every door sends it as it is.
    """

    rule: str
    api: str
    step: Callable[[int], Step]
    turns: int = 60
    body: Body = field(default_factory=dict)
    body_at: Callable[[int], Body] = lambda number: {}
    begins: Messages = field(default_factory=list)
    opens: Messages = field(default_factory=list)
    account: Account = OLD
    judge: Callable[[Body, Account], Taken] | None = None
    is_untouched: bool = False


@dataclass
class Outcome:
    """What went wrong in a play; all is empty where nothing did."""

    refused: str | None = None
    at: int = 0
    dropped: list[Any] = field(default_factory=list)  # reasoning that nobody counted
    missed: list[str] = field(default_factory=list)  # what a model had in the raw history, and has not in the view
    changed: list[Any] = field(default_factory=list)  # what the view says in other words than the history
    is_reduced: bool = False  # whether any view was another one than the history
    has_summary: bool = False  # in its last view

    def __bool__(self) -> bool:
        return bool(self.refused or self.dropped or self.missed or self.changed)


View = Callable[[Body], Body]


@dataclass
class Counting:
    """A view of a door that tells how many messages have reasoning which is not sent, or not read."""

    view: View
    counted: Callable[[], int]

    def __call__(self, body: Body) -> Body:
        return self.view(body)


def play(row: Row, view: View) -> Outcome:
    """Play a row through a door, up to what goes wrong first.

    A request that only goes on from the one before is judged each third time, since that takes most of a play.
    """
    api, outcome = APIS[row.api], Outcome()
    counted = view.counted if isinstance(view, Counting) else lambda: 0
    history: Messages = [*row.begins, api.task, *row.opens]
    before: Messages = []
    for number in range(row.turns):
        step = row.step(number)
        raw = {**api.body, **row.body, **row.body_at(number), api.field: history}
        sent = view(raw)
        shown, outcome.at = sent[api.field], number
        is_last = number == row.turns - 1
        if shown[: len(before)] != before or number % 3 == 1 or is_last:
            _judge(row, sent, outcome, counted)
        outcome.is_reduced |= shown != history
        if outcome.is_reduced and (number % 6 == 5 or is_last):
            outcome.missed = list(_missed(PROVIDERS[api.rules], raw, sent))
            outcome.changed = list(_changed(history, shown))
        if outcome:
            break
        before = shown
        history = [*history, *api.sign(sent, step.answer, row.account), *step.after]
    outcome.has_summary = _SUMMARY.encode() in canonical(shown)
    return outcome


def _judge(row: Row, sent: Body, outcome: Outcome, counted: Callable[[], int]) -> None:
    taken = (row.judge or PROVIDERS[APIS[row.api].rules].take)(sent, row.account)
    outcome.refused = taken.fault
    dropped = [one for one in taken.dropped if "prefix" in str(one.get("reason")) and one["type"] in _GONE]
    outcome.dropped = dropped[counted() :]


_LATER = re.compile(rf'"({LATER}\d+)"')  # the names of planted blocks and items
_HISTORIES = ("messages", "input", "contents")
_GONE = ("thinking_dropped", "reasoning")


def _missed(module: Any, raw: Body, sent: Body) -> Iterator[str]:
    if hasattr(module, "reads"):
        had, has = module.reads(raw), module.reads(sent)
        is_whole = all(len(raw[one]) == len(sent[one]) for one in _HISTORIES if one in raw)
        for name, value in had.items():
            # A breakpoint goes with its message.
            if value != has[name] and (is_whole or name != "breakpoints"):
                yield f"{name}: {str(value)[:60]} became {str(has[name])[:60]}"
    had_later, has_later = (set(_LATER.findall(json.dumps(body))) for body in (raw, sent))
    if had_later - has_later:
        yield f"of later days: {len(had_later - has_later)} of {len(had_later)} are hidden"


def _unsigned(message: dict[str, Any]) -> dict[str, Any]:
    """A message without its reasoning, as it is sent to a model that verifies it."""
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return message
    left = [block for block in content if block.get("type") not in ("thinking", "redacted_thinking")]
    return {**message, "content": left or [{"type": "text", "text": "[reasoning not sent again]"}]}


_RESULTS = (
    "tool_result",
    "functionResponse",
    "toolResult",
    "_output",
    '"role":"tool"',
    "tool_search_tool_result",
    "function_result",
)
_SUMMARY = "Conversation summary:"


def _changed(history: Messages, view: Messages) -> Iterator[Any]:
    """Messages of a view that are neither of the history, with or without reasoning, nor results, nor a summary."""
    known = {canonical(one) for message in history for one in (message, _unsigned(message))}
    for message in view:
        written = canonical(message)
        is_other = written not in known and _SUMMARY.encode() not in written
        if is_other and not any(word.encode() in written for word in _RESULTS):
            yield json.loads(written)
