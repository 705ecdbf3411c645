"""Rows of the rules of Gemini's Interactions."""

from __future__ import annotations

from typing import Any

from planted.anthropic_rows import WHY, every, log
from planted.playing import Row, Step
from provider_rules import LATER

THOUGHT = {"type": "thought"}


def said(text: str, kind: str = "user_input") -> Any:
    return {"type": kind, "content": [{"type": "text", "text": text}]}


def turn(number: int, *before: Any, names: tuple[str, ...] = ("",), after: Any = ()) -> Step:
    ids = [f"c{number}{name}" for name in names]
    calls = [{"type": "function_call", "id": id, "name": "read", "arguments": {"why": WHY}} for id in ids]
    given = [{"type": "function_result", "call_id": id, "name": "read", "result": log(number)} for id in ids]
    return Step([THOUGHT, *before, *calls], [*given, *after])


def _parallel(number: int) -> Step:
    if number % 10 == 9:
        return Step([THOUGHT, said("It is so.", "model_output")], [said("And then?")])
    return turn(number, names=("a", "b", "c") if number % 3 == 0 else ("",))


def _searched(number: int) -> Step:
    asked = {"type": "google_search_call", "id": f"s{number}", "arguments": {"queries": ["parser"]}}
    given = {"type": "google_search_result", "call_id": f"s{number}", "result": [{"url": "https://a.example"}]}
    return turn(number, asked, given)


def _later(number: int) -> Step:
    step = {"type": f"{LATER}step", "id": f"later_{number}", "text": "x" * 30}
    part = {"type": f"{LATER}part", "id": f"later_{number}"}
    if number % 3 == 0:
        return turn(number, step)
    if number % 3 == 1:
        return turn(number, after=[{"type": "user_input", "content": [part]}])
    return turn(number)


_KEPT = {"previous_interaction_id": "v1_0"}
_ALONE = [{"type": "function_result", "call_id": "c", "name": "read", "result": log(0)}]


def _row(rule: str, step: Any, **fields: Any) -> Row:
    return Row(f"interactions.{rule}", "interactions", step, **fields)


ROWS: dict[str, Row] = {
    "Interactions: signatures": _row("calls_follow_a_signed_thought", turn),
    "Interactions: parallel calls": _row("results_follow_their_calls", _parallel),
    "Interactions: its own tools": _row("tools_of_the_provider_stay_in_pairs", every(5, _searched, turn)),
    "Interactions: kept by the provider": _row(
        "results_follow_their_calls", turn, body=_KEPT, begins=_ALONE, is_untouched=True
    ),
    "Interactions: steps of later days": _row("known_steps", _later),
}
