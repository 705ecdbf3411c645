"""Calls and results, and what `check_pairs` finds."""

from __future__ import annotations

import json
from typing import Any

import published
import pytest
from tokens_counted import tokens_of

import recede
from recede.types import Finding
from support import (
    Message,
    assistant,
    call,
    chat_call,
    chat_result,
    findings,
    function_call,
    function_call_output,
    mask,
    reduce,
    result,
    system,
    tool_result,
    tool_use,
    turns,
    user,
)


def test_a_whole_history_has_no_findings() -> None:
    history = [system("s"), user("u"), call("1", "2"), result("2", "b"), result("1", "a"), assistant("done"), *turns(2)]
    report = recede.check_pairs(history)
    assert report.findings == ()
    assert report.is_whole
    assert report.orphans == ()


def test_a_result_belongs_to_the_nearest_earlier_call_of_its_id() -> None:
    history = [call("x"), result("x", "a"), call("x"), result("x", "b"), call("x"), user("")]
    assert findings(history) == [("call_without_result", 4, "x")]


def test_a_result_before_its_call_has_no_call() -> None:
    history = [result("1", "early"), call("1"), user("no answer")]
    assert findings(history) == [("result_without_call", 0, "1"), ("call_without_result", 1, "1")]


def test_the_nearest_call_takes_the_result_and_the_first_one_is_an_orphan() -> None:
    history = [call("x"), call("x"), result("x", "one answer")]
    assert findings(history) == [("open_call", 0, "x"), ("id_open_twice", 1, "x")]
    assert findings([*history, user("")])[0] == ("call_without_result", 0, "x")


def test_calls_and_results_inside_one_message_are_seen_in_order() -> None:
    use, answer = tool_use("1")["content"][0], tool_result("1", "ok")
    assert findings([assistant([use, answer]), user("")])[0] == ("not_adjacent", 0, "1")
    assert findings([assistant([answer, use]), user("")]) == [
        ("result_without_call", 0, "1"),
        ("call_without_result", 0, "1"),
    ]


# Open calls


def test_calls_at_the_end_are_open_and_no_violation() -> None:
    for history in (
        [call("1")],
        [call("1", "2"), result("2", "b")],
        [call("1"), assistant("of the same run")],
        [call("1"), assistant("same run"), result("nobody", "r")],
        [tool_use("1", "2"), user([tool_result("2", "b"), {"type": "text", "text": "and text"}])],
    ):
        report = recede.check_pairs(history)
        assert Finding("open_call", 0, "1") in report.findings
        assert not any(finding.id == "1" for finding in report.orphans)
    assert recede.check_pairs([call("1")]).is_whole


def test_a_message_without_results_closes_the_run() -> None:
    for closing in (user("go on"), system("note"), {"type": "unknown"}):
        assert findings([call("1"), closing]) == [("call_without_result", 0, "1")]
    assert ("call_without_result", 0, "1") in findings([call("1", "2"), result("2", "b"), user("?")])
    assert ("call_without_result", 0, "1") in findings([call("1", "2"), result("2", "b"), assistant("another run")])


def test_all_calls_of_the_last_run_may_be_open() -> None:
    history = [call("1"), result("1", ""), assistant("x"), call("2"), call("3")]
    assert findings(history) == [("open_call", 3, "2"), ("open_call", 4, "3")]


def test_a_call_outside_of_runs_is_open_while_only_results_follow() -> None:
    outside = {"role": "user", "pairRole": "call", "pairId": "1"}
    assert findings([outside]) == [("open_call", 0, "1")]
    assert findings([outside, assistant("a run")]) == [("call_without_result", 0, "1")]
    assert findings([outside, chat_result("1", "ok")]) == []


# Ids


@pytest.mark.parametrize("bad_id", [None, 7, 1.5, True, ["1"], {"a": 1}])
def test_what_has_no_string_id_pairs_by_its_place(bad_id: object) -> None:
    assert findings([call(bad_id), result(bad_id, "r"), user("")]) == []
    history = [tool_use(bad_id), user([tool_result(bad_id, "r")]), user("")]
    assert findings(history) == [("missing_id", 0, None), ("missing_id", 1, None)]  # Anthropic refuses them
    assert findings([history[0], user("no answer"), history[1]]) == [
        ("missing_id", 0, None),
        ("call_without_result", 0, None),
        ("missing_id", 2, None),
        ("result_without_call", 2, None),
    ]


def test_missing_ids() -> None:
    history: list[Message] = [
        {"role": "tool", "content": "r"},
        user([{"type": "tool_result", "content": "r"}]),
        {"type": "function_call_output", "output": "r"},
        {"pairRole": "result", "content": "r"},
        assistant(None, tool_calls=[{"function": {"arguments": {}}}]),
        {"pairRole": "call"},
    ]
    assert [kind for kind, *_ in findings(history)] == [
        *["missing_id", "result_without_call"] * 4,
        *["missing_id", "call_without_result", "missing_id", "open_call"],
    ]


def test_a_call_of_chat_needs_a_name_or_an_id() -> None:
    assert findings([call(None)]) == [("open_call", 0, None)]
    assert findings([call(None, name=None)]) == [("missing_id", 0, None), ("open_call", 0, None)]


def ollama(*names: str | None) -> Message:
    """A message of Ollama with a call of each tool, which have no ids."""
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": n, "arguments": {}}} for n in names],
    }


def answer(text: str, **fields: Any) -> Message:
    return {"role": "tool", "content": text, **fields}


def test_without_ids_chat_pairs_by_place_and_name() -> None:
    asks = ollama("f", "g", "f")
    for answers in (
        [answer("1", tool_name="f"), answer("2", tool_name="g"), answer("3", tool_name="f")],
        [answer("2", tool_name="g"), answer("1", name="f"), answer("3")],  # older clients, and none
        [answer("1"), answer("2"), answer("3")],
    ):
        assert findings([user("go"), asks, *answers, assistant("done")]) == []
    found = findings([asks, answer("1", tool_name="f"), answer("?", tool_name="h"), assistant("done")])
    assert found == [("call_without_result", 0, None)] * 2 + [("result_without_call", 2, None)]
    # Ollama may give an id of which its client knows nothing; only with one on both sides the ids count.
    assert findings([call("1", name="f"), answer("1", tool_name="f"), assistant("done")]) == []
    assert findings([call("1"), answer("1", tool_call_id="2"), user("")]) == [
        ("call_without_result", 0, "1"),
        ("result_without_call", 1, "2"),
    ]
    # Where only the call has an id, chat is refused; `name` is a field of OpenAI's.
    assert findings([call("1"), answer("1"), user("")]) == [("missing_id", 1, None)]
    assert findings([call("1", name="f"), answer("1", name="f"), user("")]) == [("missing_id", 1, None)]


def test_views_keep_calls_and_results_without_ids_together() -> None:
    history: list[Message] = [user("Find it.")]
    for number in range(6):
        history += [{**ollama("f"), "content": "Next. " * 20}, answer(f"line {number}\n" * 40, tool_name="f")]
    for tokens in range(100, 800, 20):
        view = recede.reduce(history, max_input_tokens=tokens).messages
        assert findings(view) == []
        roles = [message["role"] for message in view]
        assert roles.count("tool") == sum("tool_calls" in message for message in view)


@pytest.mark.parametrize("blank", ["", " ", "\t\n\r\f "])
def test_a_blank_id_is_no_id(blank: str) -> None:
    assert findings([call(blank), result(blank, "ok"), assistant("on"), result(blank, "?")]) == [
        ("missing_id", 3, None),
        ("result_without_call", 3, None),
    ]
    history = [tool_use(blank), user([tool_result(blank, "ok")])]
    assert findings(history) == [("missing_id", 0, None), ("missing_id", 1, None)]
    assert findings([call("\u2003"), result("\u2003", "ok")]) == [], "white space of ASCII alone is blank"


def test_ids_are_compared_as_decoded() -> None:
    raw = (
        b'[{"type":"function_call","call_id":"\\u0061\\ud83d\\ude00"},'
        b'{"type":"function_call_output","call_id":"a\xf0\x9f\x98\x80","output":"r"}]'
    )
    assert published.reduce_json(raw, max_input_chars=9_999).orphans == ()


def test_ids_with_lone_surrogates_pair() -> None:
    history = [call("\ud800"), result("\ud800", ""), call("\ud801"), result("\ud800", "")]
    assert ("second_result", 3, "\ud800") in findings(history)
    assert ("open_call", 2, "\ud801") in findings(history)


def test_id_open_twice_is_said_of_the_later_call() -> None:
    history = [call("x", "x"), result("x", "a"), result("x", "b")]
    assert findings(history) == [
        ("id_open_twice", 0, "x"),
    ]
    assert findings([*history, result("x", "c")])[-1] == ("second_result", 3, "x")


def test_an_id_used_again_after_its_result_is_not_open_twice() -> None:
    history = [call("x"), result("x", "a"), call("x"), result("x", "b")]
    assert findings(history) == []


# What providers refuse


def test_second_result() -> None:
    history = [call("1"), result("1", "a"), result("1", "b")]
    assert findings(history) == [("second_result", 2, "1")]


def test_not_adjacent() -> None:
    for between in (user("wait"), system("note"), {"type": "unknown"}):
        assert findings([call("1"), between, result("1", "a")]) == [("not_adjacent", 2, "1")]
    history = [call("1", "2"), result("1", "a"), assistant("next"), result("2", "b")]
    assert findings(history) == [("not_adjacent", 3, "2")]


def test_results_of_a_run_follow_its_end() -> None:
    history = [function_call("1"), function_call("2"), function_call_output("1", ""), function_call_output("2", "")]
    assert findings(history) == []
    history = [chat_call("1"), assistant("same run"), chat_result("1", "")]
    assert findings(history) == []
    history = [tool_use("1"), assistant([tool_result("1", "within the run")])]
    assert findings(history) == [("not_adjacent", 1, "1")]


def test_results_of_others_may_stand_between() -> None:
    history = [call("1", "2", "3"), result("3", ""), result("nobody", ""), result("1", ""), result("2", "")]
    assert findings(history) == [("result_without_call", 2, "nobody")]


def test_not_leading() -> None:
    text = {"type": "text", "text": "hm"}
    for blocks, found in (
        ([tool_result("1", ""), tool_result("2", ""), text], []),
        ([text, tool_result("1", ""), tool_result("2", "")], [("not_leading", 1, "1"), ("not_leading", 1, "2")]),
        ([tool_result("1", ""), text, tool_result("2", "")], [("not_leading", 1, "2")]),
        ([tool_result("1", ""), {"type": "image"}, tool_result("2", "")], [("not_leading", 1, "2")]),
    ):
        assert findings([tool_use("1", "2"), user(blocks)]) == found


def converse(role: str, *blocks: Message) -> Message:
    return {"role": role, "content": list(blocks)}


def use(call_id: str) -> Message:
    return {"toolUse": {"toolUseId": call_id, "name": "f", "input": {}}}


def used(call_id: str) -> Message:
    return {"toolResult": {"toolUseId": call_id, "content": [{"text": "ok"}]}}


def gemini(*names: str, key: str = "functionCall") -> Message:
    parts = [{key: {"name": name, "args" if key == "functionCall" else "response": {}}} for name in names]
    return {"role": "model" if key == "functionCall" else "user", "parts": parts}


def test_results_of_a_turn_are_in_one_message_where_that_is_demanded() -> None:
    asked, text = converse("assistant", use("1"), use("2"), use("3")), {"type": "text", "text": "and"}
    answers = [converse("user", used(one)) for one in ("1", "2", "3")]
    assert findings([asked, *answers]) == [("split_results", 2, "2"), ("split_results", 3, "3")]
    assert findings([asked, converse("user", used("2"), used("3"), used("1"))]) == []
    parts = [gemini(name, key="functionResponse") for name in ("g", "f")]
    assert findings([gemini("f", "g"), *parts]) == [("split_results", 2, None)]
    # Anthropic joins messages of the user, and then wants results first.
    asked = tool_use("1", "2")
    assert findings([asked, user([tool_result("1", "")]), user([tool_result("2", "")])]) == []
    split = [asked, user([tool_result("1", ""), text]), user([tool_result("2", "")])]
    assert findings(split) == [("split_results", 2, "2")]
    assert findings([call("1", "2"), result("1", ""), result("2", "")]) == []


@pytest.mark.parametrize("after", [[], [user("on")], [function_call_output("0", "late")], [system("note")]])
def test_reasoning_needs_the_item_after_it(after: list[Message]) -> None:
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    before = [function_call("0")] if after and "output" in after[0] else [user("go")]
    found = [one for one in findings([*before, thought, thought, *after]) if one[0] == "reasoning_alone"]
    assert found == [("reasoning_alone", 1, None), ("reasoning_alone", 2, None)]
    answers: list[Message] = [
        {"type": "message", "role": "assistant", "content": []},
        function_call("1"),
        {"type": "web_search_call", "id": "ws"},
        {"type": "item_reference", "id": "what is not understood may be it"},
    ]
    for answer_of_model in answers:
        whole = [*before, thought, thought, answer_of_model, *after]
        assert not [one for one in findings(whole) if one[0] == "reasoning_alone"]


def test_an_id_in_two_turns_is_refused_by_some() -> None:
    text = user([{"type": "text", "text": "on"}])
    history = [tool_use("1"), user([tool_result("1", "a")]), tool_use("1"), user([tool_result("1", "b")]), text]
    assert findings(history) == [("id_used_again", 2, "1")]
    history = [converse("assistant", use("1")), converse("user", used("1"))] * 2
    assert findings(history) == [("id_used_again", 2, "1")]
    assert findings([call("1"), result("1", "a")] * 2) == []


@pytest.mark.parametrize(
    ("kind", "output", "is_found"),
    [
        ("function_call", "custom_tool_call_output", True),
        ("custom_tool_call", "function_call_output", True),
        ("computer_call", "function_call_output", True),
        ("shell_call", "local_shell_call_output", True),
        ("function_call", "tool_search_output", True),
        ("tool_search_call", "function_call_output", True),
        ("tool_search_call", "tool_search_output", False),
        ("shell_call", "shell_call_output", False),
        ("local_shell_call", "function_call_output", False),  # as Codex sends it
        ("any_new_call", "function_call_output", False),
    ],
)
def test_an_output_of_another_kind_than_its_call(kind: str, output: str, is_found: bool) -> None:
    history = [{"type": kind, "call_id": "1"}, {"type": output, "call_id": "1", "output": "x", "tools": []}]
    assert findings(history) == [("other_kind", 1, "1")] * is_found
    assert findings([{"type": kind, "call_id": "1"}, result("1", "of chat")]) == [("other_kind", 1, "1")]


@pytest.mark.parametrize("name", ["id", "call_id"])
def test_the_output_of_a_local_shell_names_its_call_by_either_field(name: str) -> None:
    calls: list[Message] = [{"type": "local_shell_call", "call_id": call_id} for call_id in ("1", "2")]
    outputs: list[Message] = [{"type": "local_shell_call_output", name: id, "output": id} for id in ("2", "1")]
    assert findings([*calls, *outputs]) == []
    assert findings([*calls, *outputs, {"type": "local_shell_call_output", name: "3", "output": ""}]) == [
        ("result_without_call", 4, "3")
    ]


# Approvals


def approval(request_id: str) -> list[Message]:
    request = {"type": "mcp_approval_request", "id": request_id, "name": "f", "arguments": "{}", "server_label": "s"}
    return [request, {"type": "mcp_approval_response", "approval_request_id": request_id, "approve": True}]


def test_an_approval_pairs_with_its_request() -> None:
    request, response = approval("r")
    assert findings([user("go"), request, response, {"type": "mcp_call", "id": "m", "output": "x"}]) == []
    assert findings([request]) == [("open_call", 0, "r")]
    assert findings([request, user("on")]) == [("call_without_result", 0, "r")]
    assert findings([response, user("on")]) == [("result_without_call", 0, "r")]
    # The answers of a turn follow it in any order, and none ends it.
    both = [function_call("1"), request, response, function_call_output("1", "x")]
    assert findings(both) == []


def test_views_keep_approvals_whole() -> None:
    history: list[Message] = [user("Find it.")]
    for number in range(5):
        history += [
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "E" * 200},
            *approval(f"r{number}"),
            {"type": "mcp_call", "id": "m", "approval_request_id": f"r{number}", "output": "word " * 60},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Found. " * 20}]},
        ]
    seen = set()
    for tokens in range(60, 900, 20):
        for end in (len(history), len(history) - 2):
            view = recede.reduce(history[:end], max_input_tokens=tokens).messages
            seen.add(len(view))
            assert findings(view) == []
    assert len(seen) > 4


# Calls that the provider runs


def server_use(number: str, kind: str = "server_tool_use") -> dict[str, Any]:
    return {"type": kind, "id": number, "name": "web_search", "input": {"query": "x"}}


def server_result(number: str, kind: str = "web_search_tool_result") -> dict[str, Any]:
    return {
        "type": kind,
        "tool_use_id": number,
        "content": [{"type": "web_search_result", "encrypted_content": "E" * 90}],
    }


SAID = {"type": "text", "text": "So."}


@pytest.mark.parametrize(
    ("history", "expected", "left"),
    [
        ([assistant([server_use("s"), server_result("s"), SAID]), user("on")], [], 2),
        ([assistant([server_use("s", "mcp_tool_use"), server_result("s", "mcp_tool_result")])], [], 1),
        ([assistant([server_use("s")])], [("open_call", 0, "s")], 1),
        ([assistant([server_use("s")]), assistant([server_result("s"), SAID]), user("on")], [], 3),
        ([assistant([server_use("s")]), user("on")], [("call_without_result", 0, "s")], 1),
        ([assistant([SAID, server_use("s")]), user("on")], [("call_without_result", 0, "s")], 2),
        ([assistant([server_result("s"), SAID]), user("on")], [("result_without_call", 0, "s")], 2),
        (
            [assistant([server_result("s"), server_use("s")])],
            [("result_without_call", 0, "s"), ("open_call", 0, "s")],
            1,
        ),
    ],
)
def test_halves_of_calls_of_the_provider_are_found_and_dropped(history: Any, expected: Any, left: int) -> None:
    assert findings(history) == expected
    repaired = recede.repair_pairs(history)
    assert len(repaired) == left
    assert [kind for kind, *_ in findings(repaired)] == [kind for kind, *_ in expected if kind == "open_call"]
    assert json.loads(recede.repair_pairs(json.dumps(history))) == repaired


def test_the_result_of_a_call_of_the_provider_may_come_after_those_of_the_client() -> None:
    both = assistant([server_use("s"), *tool_use("1")["content"]])
    history = [user("go"), both, user([tool_result("1", "x")])]
    assert [kind for kind, *_ in findings(history)] == ["open_call"]
    assert findings([*history, assistant([server_result("s"), SAID])]) == []
    assert findings([*history, assistant([SAID])]) == [("call_without_result", 1, "s")]


def late_searches(turns: int) -> list[Message]:
    """Calls of client and provider in one answer; what the provider found comes with the next one."""
    history: list[Message] = [user("Find it.")]
    for number in range(turns):
        history += [
            assistant([server_use(f"s{number}"), *tool_use(f"c{number}")["content"]]),
            user([tool_result(f"c{number}", "line\n" * 60)]),
            assistant([server_result(f"s{number}"), {"type": "text", "text": "Found. " * 30}]),
            user(f"Go on, {number}. " * 8),
        ]
    return history


def test_views_keep_halves_of_calls_of_the_provider_together() -> None:
    history = late_searches(5)
    seen = set()
    for tokens in range(60, 900, 120):
        for end in range(len(history) - 3, len(history) + 1):
            view = recede.reduce(history[:end], max_input_tokens=tokens, keep=1).messages
            seen.add(len(view))
            assert {kind for kind, *_ in findings(view)} <= {"open_call"}
        session = recede.History(max_input_tokens=tokens, keep=1, summarizer=lambda messages: "So far.")
        for place, message in enumerate(history):
            session.append(message)
            assert {kind for kind, *_ in findings(session.view())} <= {"open_call"}
            if place % 7 == 6:
                session.rewind(place - 2)
                for again in history[place - 2 : place + 1]:
                    session.append(again)
    assert len(seen) > 4


def compactions(kind: str) -> tuple[list[Message], list[Message]]:
    """Turns, and two compactions of a provider."""
    if kind == "block":
        made = [assistant([{"type": "compaction", "content": f"{number}. " + "S" * 400}]) for number in range(2)]
        turns = [(tool_use(str(number)), user([tool_result(str(number), "x" * 300)])) for number in range(20)]
    else:
        made = [{"type": kind, "id": f"cmp_{number}", "encrypted_content": "E" * 400} for number in range(2)]
        turns = [(function_call(str(number)), function_call_output(str(number), "x" * 300)) for number in range(20)]
    return made, [message for turn in turns for message in turn]


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "block"])
def test_what_precedes_the_newest_compaction_of_the_provider_goes_first(kind: str) -> None:
    made, calls = compactions(kind)
    history = [user("Port it."), made[0], *calls[:10], user("Go on."), made[1], *calls[10:]]
    last = history.index(made[1])
    assert findings(history) == []
    told: list[Message] = []

    def tell(messages: list[Message]) -> str:
        told.extend(messages)
        return "So far."

    whole = tokens_of(history)
    for tokens, summarizer in ((int(0.3 * whole), None), (int(0.15 * whole), tell)):
        session = recede.History(max_input_tokens=tokens, summarizer=summarizer)
        for message in history:
            session.append(message)
            last_view = session.view()
        for view in (last_view, recede.reduce(history, max_input_tokens=tokens, summarizer=summarizer).messages):
            assert made[1] in view
            shown = [history.index(message) for message in view if message in history]
            before = [place for place in shown if place < last and history[place] not in (history[0], user("Go on."))]
            assert before == [] or set(range(last, len(history))) <= set(shown)
    assert told
    places = {history.index(message) for message in told}
    assert not places & {last - 1, last}, (sorted(places), tokens)


@pytest.mark.parametrize("kind", ["compaction", "block"])
def test_what_a_compaction_stands_for_counts_nothing(kind: str) -> None:
    """What comes after it stays as it is as long as that fits, whatever precedes it."""
    made, calls = compactions(kind)
    history = [system("s"), user("Port it."), *calls[:16], made[0], *calls[16:], user("And?")]
    least, size = (int(tokens_of(history[first:])) for first in (18, 0))
    for tokens in range(least + 20, size, 100):
        reduction = recede.reduce(history, max_input_tokens=tokens, keep=40, boundary="sliding")
        if reduction.dropped_count:
            assert reduction.messages == [*history[:2], *history[18:]]
        assert (reduction.within_limit, reduction.invariant_status, reduction.masked_count) == (True, "ok", 0)
    assert recede.reduce(history, max_input_tokens=size + 20, keep=40).messages == history


def test_findings_come_in_the_order_of_the_messages_and_of_their_blocks() -> None:
    text = {"type": "text", "text": "hm"}
    history = [
        tool_use("1", "2"),
        user("between"),
        user([tool_result("2", ""), text, tool_result("0", ""), tool_result("2", "")]),
        user(""),
    ]
    assert findings(history) == [
        ("call_without_result", 0, "1"),
        ("not_adjacent", 2, "2"),
        ("result_without_call", 2, "0"),
        ("not_leading", 2, "0"),
        ("second_result", 2, "2"),
        ("not_adjacent", 2, "2"),
        ("not_leading", 2, "2"),
    ]


def test_orphans_of_a_reduction_are_distinct_indices_of_the_input() -> None:
    history = [result("a", ""), call("1", "2"), user([tool_result("b", ""), tool_result("c", "")]), user(""), call("9")]
    assert reduce(history, max_input_chars=10_000).orphans == (0, 1, 2)
    assert mask(history, keep_results=0).orphans == (0, 1, 2)


# The reducer


def test_the_reducer_keeps_whole_what_was_whole() -> None:
    history = [user("task"), *turns(8, chars=300)]
    for budget in range(0, 3_000, 137):
        assert findings(reduce(history, max_input_chars=budget).messages) == []


def test_one_old_wound_does_not_cost_the_history() -> None:
    history = [user("task"), result("lost", "x" * 90), *turns(4, chars=300)]
    reduction = reduce(history, max_input_chars=900, preserve_recent_raw_turns=2)
    assert reduction.reduction_stage == "masking"
    assert reduction.orphans == (1,)
    assert reduction.invariant_status == "ok"
    assert reduction.dropped_count == 0


def test_strict_pairs_rules_a_stage_out_that_leaves_an_orphan() -> None:
    history = [user("task"), result("lost", "x" * 90), *turns(4, chars=300)]
    reduction = reduce(history, max_input_chars=900, preserve_recent_raw_turns=2, strict_pairs=True)
    assert reduction.reduction_stage == "fallback" or findings(reduction.messages) == []
    assert reduction.reduction_stage != "masking"
