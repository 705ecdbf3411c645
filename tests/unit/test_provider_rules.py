"""The rules of providers, each tried by a body that breaks it; those that refuse nothing, by what they report."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from provider_rules import (
    LATER,
    NEW,
    PROVIDERS,
    RULES,
    Account,
    chat,
    fault,
    interactions,
    responses,
    signed,
    templates,
)
from provider_rules.anthropic import Request, answered, batch, count_tokens, placement, take
from provider_rules.base import CHECKS, RefusedError
from support import assistant, function_call, function_call_output, system, tool_result, tool_use, user
from support import call as chat_call

Body = dict[str, Any]
GO = user("Go.")
SAID = {"type": "text", "text": "x"}
OPEN = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
MARK = {"type": "ephemeral"}


def a(*messages: Any, **fields: Any) -> tuple[str, Body]:
    return "anthropic", {"model": "m", "max_tokens": 9, "messages": list(messages), **fields}


def r(*items: Any, **fields: Any) -> tuple[str, Body]:
    return "responses", {"model": "m", "input": list(items), **fields}


def c(*messages: Any, api: str = "chat", **fields: Any) -> tuple[str, Body]:
    return api, {"model": "m", "messages": list(messages), **fields}


def g(*contents: Any) -> tuple[str, Body]:
    return "gemini", {"contents": list(contents)}


def i(*steps: Any, **fields: Any) -> tuple[str, Body]:
    return "interactions", {"model": "m", "input": list(steps), **fields}


def step_of(kind: str, id: str = "1", **fields: Any) -> Body:
    if kind.endswith("call"):
        return {"type": kind, "id": id, "name": "f", "arguments": {}, **fields}
    return {"type": kind, "call_id": id, "name": "f", "result": "x", **fields}


def marked(count: int, **fields: Any) -> Any:
    return user([{**SAID, "cache_control": {**MARK, **fields}} for _ in range(count)])


def thought(text: str = "hm", **fields: Any) -> Body:
    return {"type": "thinking", "thinking": text, "signature": signed(text), **fields}


def asks(*names: str, **more: Any) -> Body:
    parts = [{"functionCall": {"name": name, **more}, "thoughtSignature": signed(name)} for name in names]
    return {"role": "model", "parts": parts}


def answers(*names: str, **more: Any) -> Body:
    return {"role": "user", "parts": [{"functionResponse": {"name": name, **more}} for name in names]}


SPOKEN = {"role": "user", "parts": [{"text": "Go."}]}
TEXT = {"text": "Go."}
ASKED = {"type": "user_input", "content": [SAID]}
THINKS = {"type": "thought", "signature": interactions.signature_of("hm")}
CALL, RESULT = step_of("function_call"), step_of("function_result")
ON = {"role": "user", "content": [TEXT]}


def uses(*ids: str) -> Body:
    return {"role": "assistant", "content": [{"toolUse": {"toolUseId": one, "name": "f", "input": {}}} for one in ids]}


def gives(*ids: str, content: Any = (), **more: Any) -> Body:
    results = [{"toolResult": {"toolUseId": one, "content": list(content), **more}} for one in ids]
    return {"role": "user", "content": results}


def adds(name: str) -> Body:
    return {"role": "system", "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}}]}


def refers(name: str) -> Any:
    return user([tool_result("1", [{"type": "tool_reference", "tool_name": name}])])


def scoped(**fields: Any) -> Body:
    return {"role": "system", "content": [SAID], "clear_at": "next_user_message", **fields}


OF_CODE = {**tool_use("1")["content"][0], "caller": {"type": "code_execution_20260120", "tool_id": "s1"}}
NO_SIGNATURE = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}
CUT = {"functionCall": {"name": "f"}, "thoughtSignature": "c2ln"}
NO_CONTENT = {"role": "user", "content": [{"toolResult": {"toolUseId": "1"}}]}

# For each rule bodies that break it, with words of the refusal.
BROKEN: dict[str, list[tuple[tuple[str, Body], str]]] = {
    "anthropic.first_is_the_users": [(a(assistant("Hi."), GO), "first message must use")],
    "anthropic.known_fields": [
        (a(user("Go.", tags=[])), "Extra inputs"),
        (a(user([{"type": "tool_use", "id": "1", "name": "run", "input": {}}])), "Input tag"),
        (a(GO, assistant("x", clear_at="never"), GO), "Extra inputs"),
    ],
    "anthropic.nothing_is_empty": [(a(user([])), "must have non-empty content"), (a(user(" ")), "non-whitespace")],
    "anthropic.calls_and_results_are_well_formed": [(a(GO, tool_use("a b")), "should match pattern")],
    "anthropic.results_lead_the_next_message": [
        (a(GO, tool_use("1"), GO), "without `tool_result`"),
        (a(user([tool_result("1", "x")])), "unexpected `tool_use_id`"),
    ],
    "anthropic.answers_to_code_have_results_only": [
        (a(GO, assistant([OPEN, FOUND, OF_CODE]), user([tool_result("1", "x"), SAID])), "only tool_result blocks"),
    ],
    "anthropic.at_most_four_marks": [
        (a(marked(5)), "Found 5"),
        (a(marked(4), cache_control=MARK), "Found 5"),
        (a(marked(1, ttl="2h")), "Input tag"),
    ],
    "anthropic.longer_lifetimes_come_first": [
        (a(marked(1), marked(1, ttl="1h")), "must not come after"),
        (a(marked(1, ttl="1h"), cache_control=MARK), "another ttl"),
    ],
    "anthropic.system_messages_have_their_place": [
        (a(system("x"), GO), "use the top-level 'system' parameter"),
        (a(GO, assistant("x"), system("y"), GO), "must follow a 'user' message"),
        (a(GO, system("x"), GO), "must precede an 'assistant' message"),
        (a(GO, system("x"), system("y"), GO), "must precede an 'assistant' message"),
        (a(GO, system("x"), model="claude-opus-4-7"), "not supported on this model"),
    ],
    "anthropic.system_messages_say_something": [(a(GO, system("")), "at least one block")],
    "anthropic.turn_scoped_messages_are_plain": [
        (a(GO, scoped(content=[{**SAID, "cache_control": MARK}])), "cannot be combined"),
        (a(GO, scoped(output_config={"effort": "low"})), "cannot be combined"),
        (a(GO, scoped(clear_at="soon")), "Input should be"),
    ],
    "anthropic.changed_tools_are_declared": [
        (a(GO, adds("look"), tools=[{"name": "read"}]), "'look' has no corresponding tool definition"),
        (a(GO, assistant([OPEN]), adds("read"), tools=[{"name": "read"}]), "must follow a 'user' message"),
    ],
    "anthropic.referred_tools_are_declared": [
        (a(GO, tool_use("1"), refers("look"), tools=[{"name": "run"}]), "'look' has no corresponding tool definition"),
    ],
    "anthropic.server_tools_stay_with_their_results": [
        (a(GO, assistant([OPEN]), GO), "without a corresponding"),
        (a(GO, assistant([FOUND, SAID]), GO), "unexpected `tool_use_id`"),
    ],
    "anthropic.fallback_parts_one_answer": [(a(GO, assistant([{"type": "fallback"}, SAID]), GO), "fallback.to")],
    "anthropic.compactions_are_followed_unchanged": [
        (a(GO, assistant([{"type": "compaction", "content": ""}]), GO), "at least 1 character"),
        (a(GO, assistant([SAID, {"type": "compaction", "content": "x"}]), GO), "first block"),
        (a(GO, assistant([{"type": "compaction", "content": "x"}]), assistant("y"), GO), "cannot be followed"),
    ],
    "anthropic.the_last_message_is_the_users": [
        (a(GO, assistant("It is")), "must end with a user message"),
        (a(GO, assistant("It is "), model="claude-opus-4-5"), "trailing whitespace"),
    ],
    "anthropic.controls_need_their_beta": [],  # below, since a beta stands in a header
    "anthropic.signatures_are_ours": [
        (a(GO, assistant([thought(thinking="hmm"), SAID]), GO), "Invalid `signature`"),
        (a(GO, assistant([{"type": "redacted_thinking", "data": "x"}, SAID]), GO), "Invalid `signature`"),
    ],
    "anthropic.final_answers_do_not_end_with_thinking": [
        (a(GO, assistant([OPEN, thought()])), "cannot be `thinking`"),
    ],
    "responses.known_items": [
        (r({"type": "tool_use"}), "Invalid value: 'tool_use'"),
        (r(GO, {**function_call("1"), "parsed": 1}, function_call_output("1", "x")), "Unknown parameter"),
        (r(assistant("x", phase="thought")), "input[0].phase"),
    ],
    "responses.calls_have_outputs_of_their_kind": [
        (r(GO, function_call("1")), "No tool output found"),
        (r(GO, {"type": "shell_call", "call_id": "1"}, function_call_output("1", "x")), "No tool call found"),
        (r(GO, function_call("1"), function_call_output("1", "x"), function_call_output("1", "y")), "Duplicate"),
    ],
    "responses.reasoning_is_followed": [(r(GO, {"type": "reasoning", "id": "r"}, GO), "required following item")],
    "responses.programs_stay_with_what_they_call": [
        (r(GO, {"type": "program_output", "call_id": "p"}), "No program found"),
        (
            r(
                {**function_call("1"), "caller": {"type": "program", "caller_id": "p"}},
                function_call_output("1", "x"),
            ),
            "No program found",
        ),
    ],
    "responses.a_trigger_is_last": [(r({"type": "compaction_trigger"}, GO), "must be the last item")],
    "responses.at_most_four_breakpoints": [
        (r(user([{"type": "input_text", "text": "x", "prompt_cache_breakpoint": True}] * 5)), "At most 4"),
    ],
    "chat.known_fields": [
        (c(user("Go.", tags=[])), "Unknown parameter"),
        (c({"role": "robot", "content": "x"}), "Supported values"),
        (c(user([])), "empty array"),
    ],
    "chat.tool_messages_follow_their_calls": [(c(GO, chat_call("1"), GO), "did not have response messages")],
    "chat.the_newest_models_have_no_tools_here": [
        (c(GO, model="gpt-6.2-sol", tools=[{}], reasoning_effort="none"), "Function tools with reasoning_effort"),
        (c(GO, model="gpt-6-sol", tools=[{}]), "use /v1/responses"),
    ],
    "deepseek.reasoning_content_stays": [
        (c(GO, chat_call("1"), {"role": "tool", "tool_call_id": "1", "content": "x"}, api="deepseek"), "passed back"),
    ],
    "templates.the_template_renders": [],  # below, for each of its rules
    "gemini.known_fields": [
        (g({"role": "system", "parts": [{"text": ""}]}), "valid role"),
        (g({**SPOKEN, "tags": []}), "Unknown name 'tags'"),
        (g({"role": "user", "parts": []}), "must not be empty"),
        (g({"role": "user", "parts": [{"text": "", "x": 1}]}), "Unknown name 'x'"),
        (g({"role": "user", "parts": [{"thought": True}]}), "data: required"),
        (g({"role": "user", "parts": [{"text": ["x"]}]}), "Invalid value"),
        (g(SPOKEN, asks("f"), answers("f", response="text"), SPOKEN), "Struct"),
        (g(SPOKEN, asks("f"), answers("f", output={}), SPOKEN), "Unknown name 'output'"),
        (g(SPOKEN, asks("f"), answers("", response={}), SPOKEN), "Name cannot be empty"),
    ],
    "gemini.responses_follow_their_calls": [
        (g(asks("f"), answers("f")), "immediately after"),
        (g(SPOKEN, asks("f"), SPOKEN), "must follow"),
        (g(SPOKEN, answers("f")), "must follow"),
        (g(SPOKEN, asks("f", "g"), answers("f")), "number of function response"),
        (g(SPOKEN, asks("f"), answers("g")), "number of function response"),
        (g(SPOKEN, asks("f")), "last turn"),
    ],
    "gemini.first_calls_of_the_open_turn_are_signed": [
        (g(SPOKEN, NO_SIGNATURE, answers("f")), "missing a thought_signature"),
    ],
    "gemini.signatures_are_ours": [
        (g(SPOKEN, {"role": "model", "parts": [CUT]}, answers("f")), "is not valid"),
    ],
    "gemini.tools_of_the_provider_stay_in_pairs": [
        (g(SPOKEN, {"role": "model", "parts": [{"toolCall": {"id": "1"}}]}, SPOKEN), "must equal the toolCall"),
    ],
    "interactions.known_steps": [
        (i(ASKED, {"type": "message"}), "unknown step type 'message'"),
        (i({**ASKED, "role": "user"}), "Unknown parameter 'role'"),
        (i({"type": "user_input", "content": []}), "a list that is not empty"),
        (i({"type": "user_input", "content": [{"type": "text", "text": " "}]}), "blank text"),
        (i({"type": "user_input", "content": [{"type": "tool_use"}]}), "unknown type 'tool_use'"),
        (i(ASKED, {"type": "model_output", "content": [RESULT]}), "no output of a model"),
        (i(ASKED, THINKS, {**CALL, "arguments": "{}"}, RESULT), "invalid argument"),
        (i(ASKED, THINKS, CALL, {**RESULT, "call_id": ""}), "Missing call_id"),
        (i(ASKED, THINKS, CALL, {"type": "function_result", "call_id": "1", "result": "x"}), "Invalid input received"),
    ],
    "interactions.first_is_the_users": [(i(THINKS, ASKED), "first step must be a user_input")],
    "interactions.results_follow_their_calls": [
        (i(ASKED, THINKS, CALL), "must follow each function call"),
        (i(ASKED, THINKS, CALL, ASKED, RESULT, ASKED, RESULT), "has no call"),
        (i(ASKED, RESULT), "has no call"),
        (i(ASKED, THINKS, CALL, CALL, RESULT), "invalid argument"),
        (i(ASKED, THINKS, CALL, {**RESULT, "name": "g"}), "Invalid input received"),
    ],
    "interactions.calls_follow_a_signed_thought": [
        (i(ASKED, CALL, RESULT), "invalid argument"),
        (i(ASKED, THINKS, CALL, RESULT, step_of("function_call", "2"), step_of("function_result", "2")), "invalid"),
    ],
    "interactions.signatures_are_ours": [(i(ASKED, {**THINKS, "signature": "hm.x"}, ASKED), "invalid argument")],
    "interactions.tools_of_the_provider_stay_in_pairs": [
        (i(ASKED, step_of("google_search_call")), "of one turn"),
        (i(ASKED, step_of("google_search_result")), "of one turn"),
        (i(ASKED, step_of("google_search_call"), ASKED, step_of("google_search_result")), "of one turn"),
    ],
    "converse.roles_alternate": [
        (c(uses("1"), api="converse"), "start with a user"),
        (c(ON, ON, api="converse"), "alternate"),
        (c({**ON, "tags": []}, api="converse"), "'tags'"),
        (c({"role": "user", "content": []}, api="converse"), "is empty"),
    ],
    "converse.blocks_are_known": [
        (c({"role": "user", "content": [{"type": "text", "text": "x"}]}, api="converse"), "members of ContentBlock"),
        (c(ON, uses("1"), gives("1", status="failed"), api="converse"), "status"),
        (c(ON, uses("1"), NO_CONTENT, api="converse"), "Missing"),
        (c(ON, uses("1"), gives("1", content=["text"]), api="converse"), "members"),
        (c(ON, uses("1"), gives("1", content=[{"json": "text"}]), api="converse"), "not JSON"),
    ],
    "converse.no_text_is_blank": [(c({"role": "user", "content": [{"text": " "}]}, api="converse"), "blank")],
    "converse.results_equal_calls": [
        (c(ON, uses("1"), ON, api="converse"), "Expected toolResult"),
        (c(ON, uses("1", "1"), gives("1", "1"), api="converse"), "duplicate"),
        (c(gives("1"), api="converse"), "exceeds"),
        (c(ON, uses("1"), api="converse"), "after the last"),
    ],
    "converse.at_most_four_points": [
        (c({"role": "user", "content": [TEXT, *[{"cachePoint": {"type": "default"}}] * 5]}, api="converse"), "Found 5"),
    ],
    "converse.reasoning_keeps_its_signature": [
        (
            c(ON, {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "x"}}}]}, ON,
              api="converse"),
            "Invalid `signature`",
        ),
    ],
}  # fmt: skip


def refused_by(api: str, body: Body) -> tuple[str, str]:
    """The rule that refuses a body, and its words."""
    classes = {"deepseek": chat.Request, "templates": chat.Request, "anthropic": Request}
    make: Any = classes.get(api) or PROVIDERS[api].Request
    request = make(body)
    for check in CHECKS[api]:
        try:
            check(request)
        except RefusedError as refused:
            return f"{api}.{check.__name__}", str(refused)
    return "none", ""


@pytest.mark.parametrize("name", BROKEN)
def test_a_body_that_breaks_a_rule_is_refused_by_it(name: str) -> None:
    for (api, body), words in BROKEN[name]:
        by, said = refused_by(api, body)
        assert words in said and words in str(fault(api, body)), (by, said)
        assert by == name or words == "must follow a 'user' message"


REPORTED = {
    "anthropic.unreadable_thinking_is_dropped", "anthropic.thinking_is_bound_to_its_prefix",
    "anthropic.reasoning_is_not_shown_as_text", "anthropic.finished", "anthropic.shown_tokens",
    "anthropic.count_tokens", "anthropic.batch", "anthropic.loaded_tools", "anthropic.listings", "anthropic.effort",
    "anthropic.search_results", "responses.edited_prefixes_drop_reasoning", "responses.finished",
    "responses.shown_tokens", "responses.instructions_follow_the_input", "responses.items_load_tools",
    "responses.settings_hold", "responses.phases_come_back", "chat.finished",
    "deepseek.missing_reasoning_makes_answers_worse", "templates.system_comes_first", "templates.roles_alternate",
    "templates.tool_follows_assistant",
}  # fmt: skip


def test_each_rule_is_tried() -> None:
    source = inspect.getsource(inspect.getmodule(test_each_rule_is_tried))  # type: ignore[arg-type]
    assert set(RULES) == set(BROKEN) | REPORTED
    untried = [name for name in REPORTED if source.count(name.rpartition(".")[2]) < 2]
    assert not untried


@pytest.mark.parametrize(
    ("api", "body"),
    [
        a(GO, assistant([SAID, thought(), SAID]), GO, assistant([thought("")]), GO),
        a(GO, system("x"), system("y"), assistant("z"), GO, system("w")),
        a(GO, assistant([OPEN, FOUND]), system("x"), assistant("y"), GO),
        a({"role": "system", "content": [], "output_config": {"effort": "low"}}, GO),
        a(marked(1, ttl="1h", scope="global")),
        a(GO, assistant([{"type": f"{LATER}block"}]), GO),
        r(function_call_output("1", "x"), previous_response_id="resp_1"),
        r(GO, {"type": "compaction_trigger"}),
        c(GO, model="gpt-6-sol", tools=[{}], reasoning_effort="none"),
        g(SPOKEN, asks("f", "g", args={}), answers("g", "f", response={}), SPOKEN),
        g(SPOKEN, NO_SIGNATURE, answers("f"), SPOKEN),
        i(ASKED, THINKS, CALL, step_of("function_call", "2"), step_of("function_result", "2"), RESULT),
        i(ASKED, {"type": f"{LATER}step"}, {**THINKS, "signature": interactions.ANY_SIGNATURE}, CALL, RESULT, ASKED),
        i(RESULT, previous_interaction_id="v1_1"),
        c(ON, uses("1"), gives("1", status="error"), {"role": "assistant", "content": [TEXT]}, api="converse"),
    ],
)
def test_what_is_sound_is_taken(api: str, body: Body) -> None:
    assert fault(api, body) is None


# Thinking


def talk(model: str, turns: int = 3, account: Account = NEW, **fields: Any) -> Body:
    """A conversation whose answers the provider has signed."""
    messages = [GO]
    for number in range(turns):
        body = {"model": model, "max_tokens": 9, "messages": messages, **fields}
        blocks = answered(body, [{"type": "thinking", "thinking": f"hm {number}"}, SAID], account)
        messages = [*messages, assistant(blocks), user(f"Go on, {number}.")]
    return {"model": model, "max_tokens": 9, "messages": messages, **fields}


def edited(body: Body, at: int = 2) -> Body:
    messages = [*body["messages"]]
    messages[at] = user("Another text.")
    return {**body, "messages": messages}


def without(body: Body, *numbers: int) -> Body:
    """The body without the thinking of some answers."""
    messages = [
        assistant(one["content"][1:]) if one["role"] == "assistant" and at // 2 in numbers else one
        for at, one in enumerate(body["messages"])
    ]
    return {**body, "messages": messages}


BINDING = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
ERROR = {"thinking": {"type": "adaptive", "block_binding": {}}}


@pytest.mark.parametrize(
    ("model", "account", "refuses"),
    [
        ("claude-opus-5-5", NEW, True), ("claude-opus-5-5", Account(), False), ("claude-sonnet-5-5", NEW, True),
        ("claude-opus-5-20261101", NEW, False), ("claude-fable-5-1", NEW, True), ("claude-fable-5-1", Account(), False),
        ("claude-fable-5-2", Account(), True), ("claude-mythos-5-2-20261101", Account(), True),
        ("claude-opus-6", NEW, True),
        ("anthropic.claude-opus-5-5-v1:0", NEW, True), ("claude-opus-4-8", NEW, False), ("m", NEW, True),
    ],
)  # fmt: skip
def test_an_edited_prefix_is_refused_by_model_and_account(model: str, account: Account, refuses: bool) -> None:
    """The rule `thinking_is_bound_to_its_prefix`."""
    body = talk(model, account=account)
    assert take(body, account).fault is None and take(body, account).dropped == []
    words = take(edited(body), account).fault
    assert (words is not None) == refuses
    if words is not None:
        assert words.startswith("messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to")
        assert count_tokens({**edited(body)}, account).fault == words
    asked = take(edited({**body, **ERROR}), account).fault
    assert (asked is not None) == (refuses or "5-5" in model or "5-1" in model)


def test_an_old_account_is_told_of_what_would_fail() -> None:
    taken = take(edited(talk("claude-opus-5-5", account=Account())))
    assert [one["type"] for one in taken.dropped] == ["thinking_mismatch_allowed"] * 2


def test_drop_block_drops_what_follows_an_edit_and_what_comes_after_holds() -> None:
    body = edited(talk("claude-opus-5-5", **BINDING))
    taken = take(body, NEW)
    paths = ["messages.3.content.0", "messages.5.content.0"]
    assert [one["path"] for one in taken.dropped] == paths
    assert {one["reason"] for one in taken.dropped} == {"prefix_binding_mismatch"}
    assert taken.tokens == take(without(body, 1, 2), NEW).tokens
    again = answered(body, [{"type": "thinking", "thinking": "anew"}, SAID], NEW)
    body = {**body, "messages": [*body["messages"], assistant(again), GO]}
    assert [one["path"] for one in take(body, NEW).dropped] == paths


def test_blocks_are_an_unbroken_run_and_what_is_removed_stays_out() -> None:
    body = talk("claude-opus-5-5", 4)
    for numbers in ((0,), (0, 1), (3,), (0, 1, 2, 3)):
        assert take(without(body, *numbers), NEW).fault is None, numbers
    for numbers in ((1,), (2,), (0, 2)):
        assert "thinking blocks before it differ" in str(take(without(body, *numbers), NEW).fault), numbers
    shorter = without(body, 0)
    blocks = answered(shorter, [{"type": "thinking", "thinking": "anew"}, SAID], NEW)
    longer = [assistant(blocks), GO]
    assert take({**shorter, "messages": [*shorter["messages"], *longer]}, NEW).fault is None
    assert take({**body, "messages": [*body["messages"], *longer]}, NEW).fault is not None


def test_marks_and_the_order_of_tools_and_keys_are_no_edit() -> None:
    tools = [{"name": "read"}, {"name": "run"}]
    body = talk("claude-opus-5-5", 2, tools=tools, system="Be brief.")
    marked_messages = [
        {"content": [{"cache_control": MARK, "text": one["content"], "type": "text"}], "role": "user"}
        if isinstance(one["content"], str)
        else one
        for one in body["messages"]
    ]
    header = {"type": "text", "text": "x-anthropic-billing-header: cch=1"}
    same = {
        "messages": marked_messages,
        "tools": [*tools[::-1], {"name": "look", "defer_loading": True}],
        "system": [header, {"type": "text", "text": "Be brief.", "cache_control": MARK}],
    }
    assert take({**body, **same}, NEW).fault is None
    for change in ({"tools": tools[:1]}, {"system": "Be long."}):
        assert "bound to a different conversation" in str(take({**body, **change}, NEW).fault)


def test_the_prefix_begins_at_the_newest_compaction() -> None:
    body = talk("claude-opus-5-5", 2)
    blocks = answered(body, [{"type": "compaction", "content": "x"}, {"type": "thinking", "thinking": "hm"}], NEW)
    after = [assistant(blocks), GO]
    assert take({**body, "messages": [*body["messages"], *after]}, NEW).fault is None
    assert take({**edited(body), "messages": [*edited(body)["messages"], *after]}, NEW).fault is None
    assert take({**edited(body)}, NEW).fault is not None


def test_another_model_does_not_read_and_what_it_drops_comes_back() -> None:
    """The rule `unreadable_thinking_is_dropped`."""
    body = talk("claude-opus-5-5", 2)
    other = {**body, "model": "claude-sonnet-5-5"}
    assert [one["reason"] for one in take(other, NEW).dropped] == ["model_binding_mismatch"] * 2
    blocks = answered(other, [{"type": "thinking", "thinking": "hm"}, SAID], NEW)
    messages = [*body["messages"], assistant(blocks), GO]
    assert [one["path"] for one in take({**body, "messages": messages}, NEW).dropped] == ["messages.5.content.0"]
    assert take({**body, "model": "claude-fable-5-1"}, NEW).dropped == []
    assert take(talk("claude-haiku-5-5", 1) | {"model": "claude-opus-5-5"}, NEW).dropped == []
    stranger = take(body, Account(True, "another"))
    assert {one["reason"] for one in stranger.dropped} == {"organization_binding_mismatch"}


def test_batches_drop_unless_they_ask_for_errors() -> None:
    """The rule `batch`."""
    body = edited(talk("claude-opus-5-5", account=Account()))
    dropped, errored = batch([body, {**body, "thinking": {"block_binding": {"prefix_mismatch_behavior": "error"}}}])
    assert dropped.fault is None and len(dropped.dropped) == 2 and errored.fault is not None


def test_controls_of_the_binding_need_their_beta() -> None:
    """The rule `controls_need_their_beta`."""
    body = talk("claude-opus-5-5", **BINDING)
    assert "Extra inputs" in str(take(body, betas=frozenset()).fault)
    assert take(body, betas=frozenset({"thinking-binding-controls-2026-08-01"})).fault is None


def test_a_prompt_that_shows_reasoning_is_refused_with_an_answer() -> None:
    """The rule `reasoning_is_not_shown_as_text`."""
    shown = user('Summarize: [{"type": "thinking", "thinking": "hm"}]')
    for model, category in (("claude-opus-5", "reasoning_extraction"), ("claude-opus-4-8", None)):
        taken = take({"model": model, "max_tokens": 9, "messages": [shown]})
        assert (taken.fault, taken.refusal) == (None, category) and taken.tokens > 0


def test_an_unfinished_answer_is_none() -> None:
    """The rule `finished` of each API."""
    of_anthropic, of_responses, of_chat = placement.finished, responses.finished, chat.finished
    assert of_anthropic("end_turn") and not (of_anthropic("refusal") or of_anthropic("max_tokens"))
    assert of_responses("completed") and not (of_responses("incomplete") or of_responses("failed"))
    assert of_chat("stop") and not (of_chat("length") or of_chat("content_filter"))


def test_cleared_and_compacted_messages_are_not_billed() -> None:
    """The rule `shown_tokens`."""
    long = {**scoped(), "content": "x" * 4_000}
    shown, cleared = take(a(GO, long)[1]), take(a(GO, long, assistant("x"), GO)[1])
    assert shown.tokens >= 1_000 > cleared.tokens
    compacted = [user("x" * 4_000), assistant([{"type": "compaction", "content": "x"}]), GO]
    assert take(a(*compacted)[1]).tokens < 10


# What a model reads, and misses silently


def test_what_a_history_defines_is_read() -> None:
    """The rules `loaded_tools`, `listings`, `effort`, `search_results`, `items_load_tools`, `settings_hold`, ..."""
    listing = {"type": "mcp_tool_listing", "mcp_server_name": "facts", "tools": []}
    search = {"type": "search_result", "source": "a", "title": "A", "content": [SAID]}
    effort = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    body = a(GO, assistant([listing, *tool_use("1")["content"]]), refers("look"), effort, user([search]))[1]
    assert PROVIDERS["anthropic"].reads(body) == {
        "loaded tools": ["look"], "listings": [listing], "effort": {"effort": "low"},
    }  # fmt: skip
    request = Request(body)
    assert placement.search_results(request) == [search]
    loads = [{"type": kind, "tools": [{"name": kind}]} for kind in ("additional_tools", "tool_search_output")]
    updates = [{"type": "configuration_update", "reasoning": {"effort": level}} for level in ("low", "high")]
    read = PROVIDERS["responses"].reads(r(GO, *loads, *updates, assistant("x", phase="commentary"))[1])
    assert read["loaded tools"] == ["additional_tools", "tool_search_output"]
    assert read["settings"] == {"reasoning": {"effort": "high"}} and read["phases"]
    mixed = responses.Request(r(assistant("x", phase="commentary"), assistant("y"))[1])
    assert not responses.phases_come_back(mixed)
    told = responses.Request(r(GO, instructions="Be brief.")[1])
    assert responses.instructions_follow_the_input(told)
    bare = c(GO, assistant("x"), GO, api="deepseek")[1]
    assert chat.take(bare).fault is None  # the rule `missing_reasoning_makes_answers_worse` is silent
    assert PROVIDERS["deepseek"].reads(bare) == {"answers without reasoning": 1}


def test_reasoning_behind_an_edit_is_dropped_with_a_report() -> None:
    """The rules `edited_prefixes_drop_reasoning` and `shown_tokens` of Responses."""
    reasoning = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}
    body: Body = {"model": "gpt-6.2-astra", "input": [GO]}
    made = responses.answered(body, [reasoning, function_call("1")])
    body["input"] = [GO, *made, function_call_output("1", "x")]
    assert responses.take(body).dropped == []
    changed = {**body, "input": [user("Stop."), *body["input"][1:]]}
    taken = responses.take(changed)
    removed = {"id": "rs", "action": "removed", "reason": "prefix_mismatch", "type": "reasoning"}
    assert taken.fault is None and taken.dropped == [removed]
    assert taken.tokens <= responses.take(body).tokens
    assert responses.take({**body, "model": "gpt-6.2-sol"}).dropped[0]["reason"] == "model_mismatch"
    assert responses.take({**body, "safety_identifier": "b"}).dropped[0]["reason"] == "end_user_mismatch"
    assert responses.take({**changed, "model": "gpt-5.6"}).dropped == []


@pytest.mark.parametrize(
    ("model", "rule", "messages", "words"),
    [
        ("qwen3.8-27b", templates.system_comes_first, [GO, system("x"), GO], "must be at the beginning"),
        ("gemma-4", templates.roles_alternate, [GO, GO], "roles must alternate"),
        ("ministral-3", templates.roles_alternate, [system("x"), assistant("y"), GO], "roles must alternate"),
        ("mistral-large", templates.tool_follows_assistant, [
            GO, chat_call("1"), {"role": "tool", "tool_call_id": "1", "content": "x"}, GO,
        ], "Unexpected role 'user'"),
    ],
)  # fmt: skip
def test_templates_of_open_models_refuse(model: str, rule: Any, messages: list[Any], words: str) -> None:
    with pytest.raises(RefusedError, match=words):
        rule(messages)
    assert words in str(fault("templates", {"model": model, "messages": messages}))
    assert fault("templates", {"model": "llama-4", "messages": messages}) is None
