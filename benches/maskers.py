"""Lists that are handed over whole before each request: `Masker`, and planning all of it each time."""

from __future__ import annotations

import copy
import gc
import json
import random
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import measuring
import recede
from claims import Claim, Plan, Section
from formatting import ratio, time
from measuring import in_child
from recede.masker import Facts

KEEP = 10
STEPS = 12  # turns that are added one by one; the best counts

# What one more turn may cost at these numbers of turns, in milliseconds.
LIMITS: dict[str, dict[int, float]] = {
    "objects identical": {2_000: 0.15, 10_000: 0.5},
    "objects identical, own class": {2_000: 0.15, 10_000: 0.5},
    "dicts made again, strings shared": {2_000: 1.5},
    "parsed again": {2_000: 3},
    "check=True": {2_000: 1.5},
}
FIRST_SIGHT = {"first sight, own class": {2_000: 20.0}, "first sight, dicts": {2_000: 30.0}}
TODAY = "convert, reduce, copy"
# Bytes a message. The copies of masked messages are the view that the caller has.
MEMORY: list[tuple[str, dict[str, bool], int | None]] = [
    ("memory at first sight", {}, 200),
    ("memory, turn by turn", {"grows": True}, 200),
    ("memory, turn by turn, with its views", {"grows": True, "views": True}, None),
    ("memory, check=True", {"check": True}, 800),
]


class Step:
    """A message of an agent's own class."""

    __slots__ = ("call", "name", "role", "text")

    def __init__(self, role: str, text: str, call: str | None = None, name: str | None = None) -> None:
        self.role, self.text, self.call, self.name = role, text, call, name


class Steps:
    """Reads and masks them."""

    def facts(self, step: Step) -> Facts:
        if step.role == "tool":
            return Facts("tool", results=((step.call, None, len(step.text)),))
        return Facts(step.role, len(step.text), calls=((step.call, step.name, 2),) if step.call else ())

    def masked(self, step: Step, texts: Mapping[int, str]) -> Step:
        return Step(step.role, texts[0], step.call, step.name)

    def text(self, step: Step, place: int) -> str:
        return step.text


def conversation(turns: int) -> list[dict[str, Any]]:
    """Turns of one call each, whose results have about 2 KB."""
    chance = random.Random(7)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the bug."}]
    for number in range(turns):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "I look at it.", "tool_calls": [call]})
        text = f"line {number} of the log\n" * chance.randrange(70, 110)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    return messages


def as_step(message: dict[str, Any]) -> Step:
    calls = message.get("tool_calls") or [{"id": message.get("tool_call_id"), "function": {"name": None}}]
    return Step(message["role"], message["content"], calls[0]["id"], calls[0]["function"]["name"])


def as_dict(step: Step) -> dict[str, Any]:
    message: dict[str, Any] = {"role": step.role, "content": step.text}
    if step.role == "tool":
        message["tool_call_id"] = step.call
    elif step.call:
        function = {"name": step.name, "arguments": "{}"}
        message["tool_calls"] = [{"id": step.call, "type": "function", "function": function}]
    return message


def made_again(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [as_dict(as_step(message)) for message in messages]


def today(steps: list[Step]) -> list[Step]:
    """Without a `Masker`: everything is converted and planned, and what differs is copied."""
    dicts = list(map(as_dict, steps))
    view = recede.reduce(dicts, keep=KEEP).messages
    pairs = zip(steps, dicts, view, strict=True)
    return [step if shown is own else Step("tool", shown["content"], step.call) for step, own, shown in pairs]


def masker_calls(turns: int) -> dict[str, float]:
    """Seconds of one more turn after so many, and of the first call."""
    messages = conversation(turns + STEPS)
    steps = list(map(as_step, messages))
    first = 1 + 2 * turns
    ways: dict[str, tuple[recede.masker.Masker[Any], Callable[[int], list[Any]]]] = {
        "objects identical": (recede.masker.Masker(keep=KEEP), lambda end: messages[:end]),
        "objects identical, own class": (recede.masker.Masker(Steps(), keep=KEEP), lambda end: steps[:end]),
        "dicts made again, strings shared": (recede.masker.Masker(keep=KEEP), lambda end: made_again(messages[:end])),
        "parsed again": (recede.masker.Masker(keep=KEEP), lambda end: json.loads(json.dumps(messages[:end]))),
        "check=True": (recede.masker.Masker(keep=KEEP, check=True), lambda end: messages[:end]),
    }
    seconds = dict.fromkeys([*ways, *FIRST_SIGHT, TODAY, "an edit in the middle"], float("inf"))
    gc.collect()
    gc.disable()
    for name, (adapter, given) in {"own class": (Steps(), steps), "dicts": (None, messages)}.items():
        for _ in range(3):
            _time(seconds, f"first sight, {name}", recede.masker.Masker(adapter, keep=KEEP).masks, given[:first])
    for end in range(first, first + 2 * STEPS, 2):
        views = []
        for name, (masker, give) in ways.items():
            given = give(end)
            if end > first:
                _time(seconds, name, masker.masks, given)
            views.append([text for _, _, text in masker.masks(given).masks])
        if end in (first, first + 2 * STEPS - 2):
            shown = _time(seconds, TODAY, today, steps[:end])
            pairs = zip(shown, steps, strict=False)
            views.append([one.text for one, step in pairs if one is not step])
        if any(view != views[0] for view in views):
            raise SystemExit("a Masker gives another answer than reduce")
    edited = [*messages[:turns], {"role": "user", "content": "No."}, *messages[turns + 1 : first]]
    _time(seconds, "an edit in the middle", ways["objects identical"][0].masks, edited)
    gc.enable()
    return seconds


def _time(seconds: dict[str, float], name: str, work: Callable[[Any], Any], given: Any) -> Any:
    start = perf_counter()
    done = work(given)
    seconds[name] = min(seconds[name], perf_counter() - start)
    return done


def masker_memory(turns: int, check: bool = False, grows: bool = False, views: bool = False) -> float:
    """Bytes a message that a `Masker` takes besides the caller's objects: at first sight, or where each turn is new."""
    messages = conversation(turns)
    masker = recede.masker.Masker(keep=KEEP, check=check)
    masker.view(copy.deepcopy(messages[:40]))  # what any call takes
    ask = masker.view if views else masker.masks
    gc.collect()
    before = measuring.in_use()
    for end in range(1 if grows else len(messages), len(messages) + 1, 2):
        ask(messages[:end])
    gc.collect()
    return (measuring.in_use() - before) / len(messages)


def masker(plan: Plan) -> Section:
    """Line 11: one more turn of a list that is handed over whole."""
    claims = []
    for turns in plan.masker_turns:
        found = in_child("masker_calls", turns=turns)
        for name, seconds in found.items():
            if name == TODAY:
                continue
            limit = {**LIMITS, **FIRST_SIGHT}.get(name, {}).get(turns)
            what = name if name in FIRST_SIGHT or "edit" in name else f"one more turn, {name}"
            figure = f"{time(seconds)}, {ratio(found[TODAY] / seconds)} ({time(found[TODAY])})"
            is_met = None if limit is None else seconds * 1_000 <= limit
            target = "" if limit is None else f"at most {limit:g} ms"
            claims.append(
                Claim("11", f"`masks` at {turns:,} turns: {what}; against planning all", figure, target, is_met)
            )
    for name, how, limit in MEMORY:
        what = f"{name}, {plan.masker_turns[-1]:,} turns"
        if not measuring.can_count_memory():
            claims.append(Claim("11", what, "not measured: this system does not tell it"))
            continue
        bytes_each = in_child("masker_memory", environment=measuring.COUNTING, turns=plan.masker_turns[-1], **how)
        target, is_met = ("", None) if limit is None else (f"at most {limit} bytes", bytes_each <= limit)
        claims.append(Claim("11", what, f"{bytes_each:.0f} bytes a message", target, is_met))
    return Section(claims, "")
