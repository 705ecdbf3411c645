"""A planted history for each rule of a provider, through every door with masks, a limit, a tight limit, a summarizer.

What a provider refuses or drops today, or a model misses, is a known failure: the mark names what is to mend it, and is
strict, so that a row that turns green must lose it. `make test` plays a few ways of each row, `make test-slow` all.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")
pytest.importorskip("anthropic", reason="the client is not installed")
pytest.importorskip("openai", reason="the client is not installed")

from paying import CHEAP
from planted import anthropic_rows, interaction_rows, openai_rows, other_rows
from planted.doors import DOORS, NAMES, POLICIES, SAID, answering, doors_of, is_question
from planted.known import title_of
from planted.playing import APIS, Body, Row, play

import recede
from provider_rules import LATER, PROVIDERS, RULES
from support import assistant, function_call, function_call_output, tool_result, tool_use, user

pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

ROWS: dict[str, Row] = {**anthropic_rows.ROWS, **openai_rows.ROWS, **other_rows.ROWS, **interaction_rows.ROWS}


QUICK_DOORS = ("reduce", "History", "Masker", "RequestMasker")  # the others wait for servers
QUICK = {("parallel calls", "wrap"), ("Fable 5.2", "proxy"), ("chat: parallel calls", "proxy"), ("MCP servers", "wrap")}


def ways(is_slow: bool) -> list[Any]:
    """Each row by each door and policy; those that are not slow are one way of each row, and a few over the wire."""
    found = []
    for at, (name, row) in enumerate(ROWS.items()):
        doors = doors_of(row.api)
        quick_doors = [door for door in doors if door in QUICK_DOORS]
        few = {(quick_doors[at % len(quick_doors)], list(POLICIES)[1 + at // 4 % 3])}
        few |= {(door, "summarizer") for of_row, door in QUICK if of_row == name}
        for door in doors:
            for policy in POLICIES:
                if is_slow == ((door, policy) in few):
                    continue
                title = title_of(name, door, policy)
                marks = [] if title is None else [pytest.mark.xfail(reason=title, strict=True, raises=AssertionError)]
                found.append(pytest.param(name, door, policy, marks=marks, id=f"{name}-{door}-{policy}"))
    return found


def check(name: str, door: str, policy: str) -> None:
    row = ROWS[name]
    api = APIS[row.api]
    answer = answering(row.account, api)
    with DOORS[door](api, NAMES.get(row.api, "openai"), dict(POLICIES[policy]), answer) as view:
        outcome = play(row, view)
    assert not outcome, outcome
    assert outcome.is_reduced or row.is_untouched, "the row has nothing to show"
    assert outcome.has_summary or row.is_untouched or policy != "summarizer", "no summary was made"


@pytest.mark.parametrize(("name", "door", "policy"), ways(is_slow=False))
def test_a_row_is_taken(name: str, door: str, policy: str) -> None:
    check(name, door, policy)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "door", "policy"), ways(is_slow=True))
def test_a_row_is_taken_every_way(name: str, door: str, policy: str) -> None:
    check(name, door, policy)


def test_each_row_names_a_rule_and_is_taken_raw() -> None:
    for name, row in ROWS.items():
        assert row.rule in RULES, name
        assert 60 <= row.turns <= 150, name
        outcome = play(row, lambda body: body)
        assert not outcome and not outcome.is_reduced, (name, outcome)


# Summaries that a model writes

ASKING: Body = {"keep": 4, "provider": CHEAP, "summarizer": "model"}
UNFINISHED = {"refusal": "I can't help", "max_tokens": "Goal: to find"}


def asked(door: str, row: Row, said: Body) -> tuple[list[Body], list[Body]]:
    """The questions of a door for summaries, which are answered so, and the views that it sends."""
    questions: list[Body] = []
    views: list[Body] = []

    def answer(body: Body) -> tuple[int, Body]:
        (questions if is_question(body) else views).append(body)
        return 200, said if is_question(body) else SAID["/v1/messages"]

    with DOORS[door](APIS["anthropic"], "anthropic", dict(ASKING), answer) as view:
        play(row, view)
    if not questions:
        pytest.fail("no summary was asked for", pytrace=False)
    return questions, views


@pytest.mark.parametrize("door", ["wrap", "proxy"])
def test_no_question_for_a_summary_shows_reasoning(door: str) -> None:
    row = Row("anthropic.reasoning_is_not_shown_as_text", "anthropic", anthropic_rows.thinking_turn)
    questions, _ = asked(door, row, SAID["/v1/messages"])
    # Whatever model is asked, which is a small one.
    taken = [PROVIDERS["anthropic"].take({**body, "model": "claude-opus-5-5"}) for body in questions]
    assert [one.fault or one.refusal for one in taken] == [None] * len(questions)


@pytest.mark.parametrize("stop", UNFINISHED)
@pytest.mark.parametrize("door", ["wrap", "proxy"])
def test_an_unfinished_answer_is_no_summary(door: str, stop: str) -> None:
    row = Row("anthropic.finished", "anthropic", anthropic_rows.turn)
    cut = {**SAID["/v1/messages"], "stop_reason": stop, "content": [{"type": "text", "text": UNFINISHED[stop]}]}
    _, views = asked(door, row, cut)
    assert not any(UNFINISHED[stop] in json.dumps(view) for view in views)


# Types that nobody knows yet

BLOCK: Body = {"type": f"{LATER}block", "id": "a", "content": [{"type": f"{LATER}part", "text": "x" * 30}]}
UNTYPED: Body = {f"{LATER}block": {"id": "a", "text": "x" * 30}}
PLACES: dict[str, tuple[Any, Any]] = {
    "an answer": (BLOCK, lambda one: [assistant([one]), user("Go.")]),
    "beside a call": (BLOCK, lambda one: [assistant([one, *tool_use("1")["content"]]), user([tool_result("1", "x")])]),
    "beside a result": (BLOCK, lambda one: [tool_use("1"), user([tool_result("1", "x"), one])]),
    "in a result": (BLOCK, lambda one: [tool_use("1"), user([tool_result("1", [one])])]),
    "of the user": (BLOCK, lambda one: [user([one])]),
    "an item": ({"type": f"{LATER}item", "id": "a", "value": "x" * 30}, lambda one: [CALL, OUTPUT, one]),
    "a part of an output": (BLOCK, lambda one: [CALL, {**OUTPUT, "output": [one]}]),
    "Gemini": (UNTYPED, lambda one: [{"role": "model", "parts": [one]}]),
    "Converse": (UNTYPED, lambda one: [{"role": "assistant", "content": [one]}]),
}
CALL, OUTPUT = function_call("1"), function_call_output("1", [])


@pytest.mark.parametrize("place", PLACES)
def test_a_block_of_an_unknown_type_counts_as_its_json(place: str) -> None:
    block, history_of = PLACES[place]
    longer = json.loads(json.dumps(block).replace("x" * 30, "x" * 70))
    longest = json.loads(json.dumps(block).replace('"a"', '"a", "more": ["x", {"y": null}]'))
    written = [len(json.dumps(one, separators=(",", ":"))) for one in (block, longer, longest)]
    counted = [recede.count_chars([user("Go."), *history_of(one)]) for one in (block, longer, longest)]
    assert [one - counted[0] for one in counted] == [one - written[0] for one in written]
    nothing = recede.count_chars([user("Go."), *history_of({**block, "x": "y"})])
    assert nothing - counted[0] == len(',"x":"y"')


@pytest.mark.xfail(reason="What is sent is what is counted", strict=True, raises=AssertionError)
def test_an_item_of_an_unknown_type_with_content_counts_as_its_json() -> None:
    item = {"type": f"{LATER}item", "id": "a", "content": "x" * 30}
    history = [user("Go."), CALL, function_call_output("1", "x")]
    counted = recede.count_chars([*history, item]) - recede.count_chars(history)
    assert counted == len(json.dumps(item, separators=(",", ":")))
