"""Ids that do not distinguish: blank ones, and one for all calls of a turn. Results pair by place and tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import recede
from support import Message, call, findings, result, tool_result, tool_use, user

TURNS = 8
TOOLS = ("ask_user", "read_file")


def _chat(ids: list[Any], given: list[Any], texts: list[str]) -> list[Message]:
    calls = [
        {"id": i, "type": "function", "function": {"name": t, "arguments": "{}"}}
        for i, t in zip(ids, TOOLS, strict=True)
    ]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        *(result(i, text) for i, text in zip(given, texts, strict=True)),
    ]


def _anthropic(ids: list[Any], given: list[Any], texts: list[str]) -> list[Message]:
    uses = [block for i, tool in zip(ids, TOOLS, strict=True) for block in tool_use(i, name=tool)["content"]]
    return [
        {"role": "assistant", "content": uses},
        user([tool_result(i, text) for i, text in zip(given, texts, strict=True)]),
    ]


def _responses(ids: list[Any], given: list[Any], texts: list[str]) -> list[Message]:
    calls = [
        {"type": "function_call", "call_id": i, "name": tool, "arguments": "{}"}
        for i, tool in zip(ids, TOOLS, strict=True)
    ]
    outputs = [
        {"type": "function_call_output", "call_id": i, "output": text} for i, text in zip(given, texts, strict=True)
    ]
    return [*calls, *outputs]


def _converse(ids: list[Any], given: list[Any], texts: list[str]) -> list[Message]:
    uses = [{"toolUse": {"toolUseId": i, "name": t, "input": {}}} for i, t in zip(ids, TOOLS, strict=True)]
    results = [
        {"toolResult": {"toolUseId": i, "content": [{"text": text}]}} for i, text in zip(given, texts, strict=True)
    ]
    return [{"role": "assistant", "content": uses}, user(results)]


def _gemini(ids: list[Any], given: list[Any], texts: list[str]) -> list[Message]:
    calls = [{"functionCall": {"id": i, "name": t, "args": {}}} for i, t in zip(ids, TOOLS, strict=True)]
    answers = [
        {"functionResponse": {"id": i, "name": tool, "response": {"output": text}}}
        for i, tool, text in zip(given, TOOLS, texts, strict=True)
    ]
    return [{"role": "model", "parts": calls}, {"role": "user", "parts": answers}]


SHAPES = {
    "chat": _chat,
    "anthropic": _anthropic,
    "responses": _responses,
    "converse": _converse,
    "gemini": _gemini,
}
# The ids of the calls and of the results of a turn.
IDS: dict[str, Callable[[int], tuple[list[Any], list[Any]]]] = {
    "blank": lambda turn: (["", ""], ["", ""]),
    "white_space": lambda turn: ([" ", " "], [" ", " "]),
    "blank_results": lambda turn: ([f"a{turn}", f"b{turn}"], ["", ""]),
    "blank_calls": lambda turn: (["", ""], [f"a{turn}", f"b{turn}"]),
    "shared": lambda turn: ([f"t{turn}"] * 2, [f"t{turn}"] * 2),
    "shared_by_all": lambda turn: (["call_0", "call_0"], ["call_0", "call_0"]),
}
KINDS = pytest.mark.parametrize("ids", IDS)
ALL = pytest.mark.parametrize("shape", SHAPES)


def answer(turn: int) -> str:
    return f"The user chose option {turn}. " + "Because it is cheaper. " * 8


def history(shape: str, ids: str, start: str = "Plan it with me.") -> list[Message]:
    task: Message = {"role": "user", "content": start}
    if shape == "gemini":
        task = {"role": "user", "parts": [{"text": start}]}
    elif shape == "converse":
        task = {"role": "user", "content": [{"text": start}]}
    turns = [
        message
        for turn in range(TURNS)
        for message in SHAPES[shape](*IDS[ids](turn), [answer(turn), f"# file {turn}\n" * 30])
    ]
    return [task, *turns, {"role": "assistant", "content": "Done."}]


def seen(messages: Any, text: Callable[[int], str]) -> int:
    """How many of the texts of the turns are in a view."""
    shown = json.dumps(messages, ensure_ascii=False)
    return sum(json.dumps(text(turn))[1:-1] in shown for turn in range(TURNS))


@KINDS
@ALL
def test_an_exempt_result_stays_whatever_its_id(shape: str, ids: str, engine: str) -> None:
    options: Any = {"exclude_tools": ["ask_user"], "keep": 2, "boundary": "sliding"}
    messages = history(shape, ids)
    views = [
        recede.reduce(messages, **options).messages,
        json.loads(recede.reduce(json.dumps(messages), **options).json),
    ]
    if engine == "core":
        growing = recede.History(**options)
        for message in messages:
            growing.append(message)
        views += [growing.view(), recede.masker.Masker(**options).view(messages)]
    for view in views:
        assert seen(view, answer) == TURNS
        assert seen(view, lambda turn: f"# file {turn}\n" * 30) < TURNS


@KINDS
@ALL
def test_a_repair_drops_no_result_of_a_turn(shape: str, ids: str) -> None:
    messages = history(shape, ids)
    views = [recede.repair_pairs(messages), json.loads(recede.repair_pairs(json.dumps(messages).encode()))]
    for view in views:
        assert seen(view, answer) == seen(view, lambda turn: f"# file {turn}\n" * 30) == TURNS
        assert "no result recorded" not in repr(view)
        assert len(view) == len(messages)
    assert views[0] == views[1]
    if ids == "blank_results" and shape != "gemini":  # they get the ids of their calls
        assert recede.check_pairs(messages).findings and not recede.check_pairs(views[0]).findings


@ALL
def test_the_proxy_keeps_what_the_user_said_under_a_shared_id(
    shape: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "oracle":
        pytest.skip("the proxy has no oracle")
    monkeypatch.setitem(globals(), "TOOLS", ("AskUserQuestion", "Read"))
    path, field = {
        "anthropic": ("/v1/messages", "messages"),
        "responses": ("/v1/responses", "input"),
        "gemini": ("/v1beta/models/gemini-3-pro:generateContent", "contents"),
    }.get(shape, ("/v1/chat/completions", "messages"))
    body = json.dumps({field: history(shape, "shared")}).encode()
    masked = recede.proxy.RequestMasker(keep=2, boundary="sliding").mask("POST", path, {}, body)
    assert masked.masked_count > 0
    assert seen(json.loads(masked.body)[field], answer) == TURNS


def test_a_result_of_chat_without_an_id_gets_that_of_its_call() -> None:
    lost = {"role": "tool", "content": "row 1", "name": "run"}
    messages = [user("Go."), call("c0"), result("c0", "row 0"), call("c1"), lost, call("c2"), result("c2", "row 2")]
    assert findings(messages) == [("missing_id", 4, None)]
    view = recede.repair_pairs(messages)
    assert view == [*messages[:4], {**lost, "tool_call_id": "c1"}, *messages[5:]]
    in_bytes = recede.repair_pairs(json.dumps(messages))
    assert in_bytes.replace(',"tool_call_id":"c1"', "") == json.dumps(messages), "no byte changes but for the id"
    assert json.loads(in_bytes) == view
    assert findings(view) == []
    assert lost == {"role": "tool", "content": "row 1", "name": "run"}


def test_a_blank_id_in_bytes_is_replaced_in_its_place() -> None:
    data = '[{"role":"assistant","tool_calls":[{"id":"\\u00e9","function":{"name":"f"}}]},'
    lost = '{"role":"tool","tool_call_id" : "  ","content":"x"}'
    assert recede.repair_pairs(data + lost + "]") == data + lost.replace('"  "', '"é"') + "]"


def test_results_that_name_their_tool_pair_by_it_under_a_shared_id() -> None:
    asked = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": {"name": name, "arguments": "{}"}} for name in ("f", "g", "h")],
    }
    answers = [result("c", "x" * 900, name=name) for name in ("h", "f")]
    messages = [user("Go."), asked, *answers, user("on")]
    # `g` alone is left; nobody answers twice.
    assert [kind for kind, *_ in findings(messages)] == ["id_open_twice", "call_without_result", "id_open_twice"]
    assert recede.repair_pairs(messages) == [*messages[:4], result("c", "[no result recorded]"), messages[4]]
    view = recede.reduce([*messages, call("d")], exclude_tools=["h"], keep=0, boundary="sliding").messages
    assert view[2] is answers[0] and view[3] is not answers[1]


def test_one_result_more_than_calls_takes_the_place_of_the_last() -> None:
    messages = [user("Go."), call("c", "c"), *(result("c", text) for text in ("a", "b", "again")), user("on")]
    assert recede.repair_pairs(messages) == [*messages[:3], messages[4], messages[5]]


def test_a_session_pairs_shared_ids_as_a_list_does() -> None:
    options: Any = {"exclude_tools": ["ask_user"], "keep": 2, "boundary": "sliding"}
    messages = history("responses", "shared_by_all")
    growing = recede.History(**options)
    for number, message in enumerate(messages):
        growing.append(message)
        if number % 5 == 4:  # what was answered is open again
            growing.rewind(number - 2)
            growing.extend(messages[number - 2 : number + 1])
        assert growing.view() == recede.reduce(messages[: number + 1], **options).messages


def test_the_kit_answers_each_call_of_a_shared_id() -> None:
    from recede.agent._tool_calls import open_calls

    asked = call("x", "x")
    assert [one.id for one in open_calls([result("x", "a"), asked])] == ["x"]
    assert open_calls([result("x", "b"), result("x", "a"), asked]) == []
    assert open_calls([call(" ")]) == []
