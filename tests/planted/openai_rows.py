"""Rows of OpenAI's rules: Responses and chat."""

from __future__ import annotations

import json
from typing import Any

from planted.anthropic_rows import WHY, every, log
from planted.playing import Body, Messages, Row, Step
from provider_rules import LATER

Item = dict[str, Any]

ARGUMENTS = json.dumps({"why": WHY})


def call(number: int, **fields: Any) -> Item:
    return {"type": "function_call", "call_id": f"call_{number}", "name": "read", "arguments": ARGUMENTS, **fields}


def output(number: int, text: Any = None, **fields: Any) -> Item:
    text = log(number) if text is None else text
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": text, **fields}


def reasoning(number: int) -> Item:
    summary = [{"type": "summary_text", "text": f"Part {number} may have the bug."}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary}


def turn(number: int, *before: Item, after: Messages = ()) -> Step:  # type: ignore[assignment]
    return Step([*before, call(number)], [output(number), *after])


def thinking_turn(number: int) -> Step:
    return turn(number, reasoning(number))


def message(text: str, **fields: Any) -> Item:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "id": "msg", "status": "completed", "content": [part], **fields}


_TEXT = "The parser is read.\n" * 80
_KINDS: list[tuple[Item, Item]] = [
    ({"type": "function_call", "name": "read", "arguments": "{}"}, {"output": _TEXT}),
    ({"type": "custom_tool_call", "name": "read", "input": "x"}, {"output": _TEXT}),
    ({"type": "local_shell_call", "id": "l", "status": "completed", "action": {"type": "exec"}}, {"output": _TEXT}),
    (
        {"type": "shell_call", "action": {"commands": ["ls"]}},
        {"output": [{"stdout": _TEXT, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
    ),
    ({"type": "apply_patch_call", "status": "completed", "operation": {"type": "delete_file"}}, {"output": _TEXT}),
    (
        {"type": "computer_call", "id": "c", "status": "completed", "pending_safety_checks": []},
        {"output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}},
    ),
]


def _of_every_kind(number: int) -> Step:
    """A picture once, since no door but two makes room for what it cannot mask."""
    asked, given = _KINDS[number % len(_KINDS) if number < len(_KINDS) else number % (len(_KINDS) - 1)]
    call_id = f"call_{number}"
    alone: list[Item] = [
        {"type": "web_search_call", "id": "ws", "status": "completed"},
        {"type": "mcp_call", "id": "mcp", "server_label": "facts", "name": "look", "arguments": "{}", "output": "x"},
        {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "AAAA"},
    ]
    kind = f"{asked['type']}_output"
    given = {"type": kind, "call_id": call_id, **given, **({"status": "completed"} if "patch" in kind else {})}
    # What the provider has run keeps its turn.
    run = [alone[number % 3 if number < 3 else number // 3 % 2]] if number < 3 or number % 3 == 0 else []
    return Step([reasoning(number), *run, {**asked, "call_id": call_id}], [given])


def _phase(number: int) -> Step:
    if number % 8 == 7:
        return Step([message("It is so.", phase="final_answer")], [{"role": "user", "content": "And then?"}])
    return turn(number, reasoning(number), message("I look.", phase="commentary"))


def _program(number: int) -> Step:
    program = {"type": "program", "id": "p", "call_id": f"program_{number}", "code": "read()", "fingerprint": "f"}
    caller = {"type": "program", "caller_id": program["call_id"]}
    done = {"type": "program_output", "call_id": program["call_id"], "result": "3", "status": "completed"}
    return Step([program, call(number, caller=caller)], [output(number, caller=caller), {**done, "id": "o"}])


def _additional_tools(number: int) -> Step:
    tools = [{"type": "function", "name": f"look_{number}", "parameters": {}}]
    return turn(number, after=[{"type": "additional_tools", "role": "developer", "tools": tools}])


def _tool_search(number: int) -> Step:
    asked = {"type": "tool_search_call", "call_id": f"search_{number}", "execution": "client", "arguments": {}}
    tools = [{"type": "function", "name": f"look_{number}", "defer_loading": True, "parameters": {}}]
    found = {"type": "tool_search_output", "call_id": asked["call_id"], "execution": "client", "tools": tools}
    return Step([asked], [{**found, "status": "completed"}])


def _setting(number: int) -> Step:
    level = ("low", "medium", "high")[number // 20 % 3]
    return turn(number, after=[{"type": "configuration_update", "reasoning": {"effort": level}}])


def _compaction(number: int) -> Step:
    made = {"type": "compaction", "id": f"cmp_{number}", "encrypted_content": "AbC="}
    update = {"type": "configuration_update", "reasoning": {"effort": "high"}}
    return Step([made], [update, {"role": "user", "content": "Go on."}])


def _breakpoint(number: int) -> Step:
    part = {"type": "input_text", "text": log(number), "prompt_cache_breakpoint": True}
    return Step([call(number)], [output(number, [part] if number in (3, 20) else None)])


def _later(number: int) -> Step:
    item = {"type": f"{LATER}item", "id": f"later_{number}", "value": "x" * 30}
    part = {"type": f"{LATER}part", "text": f"later_{number}"}
    if number % 4 == 0:
        return Step([item, call(number)], [output(number)])
    if number % 4 == 1:
        return turn(number, after=[item])
    if number % 4 == 2:
        return turn(number, after=[{"role": "user", "content": [part]}])
    made, given = ({"type": f"{LATER}{kind}", "call_id": f"later_{number}"} for kind in ("call", "output"))
    return Step([made], [given])


def _chat_turn(number: int, names: tuple[str, ...] = ("",), text: str | None = None, **fields: Any) -> Step:
    function = {"name": "read", "arguments": ARGUMENTS}
    made = [{"id": f"call_{number}{name}", "type": "function", "function": function} for name in names]
    given = [{"role": "tool", "tool_call_id": one["id"], "content": log(number)} for one in made]
    return Step([{"role": "assistant", "content": text, "tool_calls": made, **fields}], given)


def chat_turn(number: int) -> Step:
    return _chat_turn(number)


def _chat_parallel(number: int) -> Step:
    if number % 10 == 9:
        return Step([{"role": "assistant", "content": "It is so."}], [{"role": "user", "content": "And then?"}])
    return _chat_turn(number, ("a", "b", "c") if number % 3 == 0 else ("",))


def with_reasoning(field: str, value: Any) -> Any:
    return lambda number: _chat_turn(number, **{field: value if number % 5 else value[:0]})


def _chat_later(number: int) -> Step:
    part = {"type": f"{LATER}part", "text": f"later_{number}"}
    if number % 3 == 0:
        return _chat_turn(number, **{f"{LATER}field": "x" * 30})  # it goes with its message
    if number % 3 == 1:
        made, given = _chat_turn(number)
        return Step(made, [*given, {"role": "user", "content": [part, {"type": "text", "text": "Go on."}]}])
    return _chat_turn(number)


SYSTEM: Messages = [{"role": "system", "content": "You are an agent."}]
_PREVIOUS = {"previous_response_id": "resp_0"}
_ALONE: Messages = [{"type": "item_reference", "id": "msg_0"}, output(999)]


def _downgraded(number: int) -> Body:
    return {"model": "gpt-6.2-sol" if number < 30 else "gpt-5.6"}


_OLD = {"model": "gpt-5.6"}


def _row(rule: str, step: Any, **fields: Any) -> Row:
    return Row(f"responses.{rule}", "responses", step, **fields)


ROWS: dict[str, Row] = {
    "Responses: items of every kind": _row("calls_have_outputs_of_their_kind", _of_every_kind, body=_OLD),
    "Responses: reasoning": _row("reasoning_is_followed", thinking_turn, body=_OLD),
    "Responses: phases": _row("phases_come_back", _phase, body=_OLD),
    "Responses: programs": _row("programs_stay_with_what_they_call", every(3, _program, turn)),
    "Responses: additional tools": _row("items_load_tools", every(9, _additional_tools, turn)),
    "Responses: searched tools": _row("items_load_tools", every(9, _tool_search, turn)),
    "Responses: settings": _row("settings_hold", every(20, _setting, turn)),
    "Responses: compactions": _row("settings_hold", every(30, _compaction, turn, first=20), turns=90),
    "Responses: GPT-6.2": _row("edited_prefixes_drop_reasoning", thinking_turn, turns=90),
    "Responses: a downgrade": _row("edited_prefixes_drop_reasoning", thinking_turn, body_at=_downgraded),
    "Responses: breakpoints": _row("at_most_four_breakpoints", _breakpoint),
    "Responses: kept by the provider": _row(
        "calls_have_outputs_of_their_kind", turn, body=_PREVIOUS, begins=_ALONE, is_untouched=True
    ),
    "Responses: items of later days": _row("known_items", _later),
    "chat: parallel calls": Row("chat.tool_messages_follow_their_calls", "chat", _chat_parallel, begins=SYSTEM),
    "chat: parts of later days": Row("chat.known_fields", "chat", _chat_later, begins=SYSTEM),
}
