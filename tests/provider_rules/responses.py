"""OpenAI's Responses API: what it refuses, drops and bills."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import Any

from provider_rules.base import LATER, OLD, Account, Body, Taken, check, demand, held, rule, tokens_of, version
from provider_rules.signatures import Prefix, Signed, read, signature_of, tools_in_order

Item = dict[str, Any]

NEWEST = "gpt-6.2-sol"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_STATUSES = ("in_progress", "completed", "incomplete")
# The fields of an item, by its type.
_ITEM_FIELDS = {
    "message": {"type", "id", "role", "status", "content", "phase"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status", "namespace", "caller"},
    "function_call_output": {"type", "id", "call_id", "output", "status", "caller"},
}
_OF_CODEX = {"internal_chat_message_metadata_passthrough"}  # which OpenAI takes from its agent, on any item
# The outputs of calls, by the calls' types; of what the provider runs itself, the item has both.
_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
}
_ALONE = """
    additional_tools code_interpreter_call compaction compaction_trigger configuration_update file_search_call
    image_generation_call item_reference mcp_approval_request mcp_approval_response mcp_call mcp_list_tools
    web_search_call
""".split()
_KNOWN = {*_ITEM_FIELDS, *_OUTPUTS, *_OUTPUTS.values(), *_ALONE}


class Request:
    """A body and its items. A model that is none of OpenAI's is played as the newest one."""

    def __init__(self, body: Body, account: Account = OLD) -> None:
        self.body, self.account = body, account
        demand(body.get("model"), "Missing required parameter: 'model'.")
        demand("messages" not in body, "Unsupported parameter: 'messages'. In the Responses API, it is 'input'.")
        for field in ("max_tokens", "max_completion_tokens"):
            demand(field not in body, f"Unsupported parameter: '{field}'. Use 'max_output_tokens' instead.")
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        demand(isinstance(items, list) and items, "Missing required parameter: 'input'.")
        self.items: list[Item] = list(items or ())
        self.dropped: list[Item] = []
        self.left_out: set[int] = set()

    @cached_property
    def model(self) -> str:
        model = str(self.body["model"])
        return model if version(model, "gpt") else NEWEST

    @property
    def version(self) -> tuple[int, int]:
        return version(self.model, "gpt") or (0, 0)

    @property
    def end_user(self) -> str:
        return str(self.body.get("safety_identifier") or self.body.get("user") or "")

    @property
    def is_kept_there(self) -> bool:
        """Whether the provider has earlier items."""
        return bool(self.body.get("previous_response_id") or self.body.get("conversation"))


def kind_of(item: Item) -> str:
    return str(item.get("type", "message"))


@check
def known_items(request: Request) -> None:
    for at, item in enumerate(request.items):
        kind = kind_of(item)
        demand(kind in _KNOWN or kind.startswith(LATER), f"Invalid value: '{kind}'. (input[{at}].type)")
        extra = sorted(set(item) - _ITEM_FIELDS.get(kind, set(item)) - _OF_CODEX)
        demand(not extra, f"Unknown parameter: 'input[{at}].{extra and extra[0]}'.")
        demand(item.get("status", "completed") in _STATUSES, f"Invalid value for 'input[{at}].status'.")
        if kind == "message":
            _content(item, at)
        elif kind == "function_call":
            for name in ("call_id", "name", "arguments"):
                demand(isinstance(item.get(name), str), f"Missing required parameter: 'input[{at}].{name}'.")
            demand(_NAME.match(item["name"]), f"Invalid 'input[{at}].name': string does not match pattern.")
        elif kind == "function_call_output":
            demand(isinstance(item.get("output"), (str, list)), f"Invalid type for 'input[{at}].output'.")


def _content(item: Item, at: int) -> None:
    role, content = item.get("role"), item.get("content")
    demand(role in ("user", "assistant", "system", "developer"), f"Invalid value: '{role}'. (input[{at}].role)")
    demand(isinstance(content, (str, list)), f"Invalid type for 'input[{at}].content'.")
    demand(item.get("phase") in (None, "commentary", "final_answer"), f"Invalid value for 'input[{at}].phase'.")
    allowed = {"output_text", "refusal"} if role == "assistant" else {"input_text", "input_image", "input_file"}
    for place, part in enumerate(content if isinstance(content, list) else []):
        kind = part.get("type") if isinstance(part, dict) else None
        is_known = kind in allowed or str(kind).startswith(LATER)
        demand(is_known, f"Invalid value: '{kind}'. (input[{at}].content[{place}].type)")
        fields = {"type", "text", "annotations", "logprobs"} if kind == "output_text" else set(part)
        extra = sorted(set(part) - fields)
        demand(not extra, f"Unknown parameter: 'input[{at}].content[{place}].{extra and extra[0]}'.")


@check
def calls_have_outputs_of_their_kind(request: Request) -> None:
    """Each once; an output alone needs a call that the provider has."""
    for asks, answers in _OUTPUTS.items():
        if asks in ("tool_search_call", "program"):
            continue
        asked = [item.get("call_id") for item in request.items if kind_of(item) == asks]
        answered = [item.get("call_id") for item in request.items if kind_of(item) == answers]
        name = asks.removesuffix("_call").replace("_", " ")
        missing = [call for call in asked if call not in answered]
        demand(not missing, f"No tool output found for {name} call {missing and missing[0]}.")
        strange = [call for call in answered if call not in asked]
        words = f"No tool call found for {name} call output with call_id {strange and strange[0]}."
        demand(request.is_kept_there or not strange, words)
        twice = [call for call in answered if answered.count(call) > 1]
        demand(not twice, f"Duplicate item found with call_id {twice and twice[0]}.")


@check
def reasoning_is_followed(request: Request) -> None:
    """By the item that came after it: an answer, a call, or more reasoning."""
    for at, item in enumerate(request.items):
        if kind_of(item) != "reasoning":
            continue
        after = request.items[at + 1] if at + 1 < len(request.items) else {}
        is_made = after.get("role") == "assistant" or kind_of(after) == "reasoning"
        is_followed = is_made or kind_of(after) in _OUTPUTS or kind_of(after).endswith("_call")
        words = "of type 'reasoning' was provided without its required following item."
        demand(is_followed, f"Item '{item.get('id')}' {words}")


@check
def programs_stay_with_what_they_call(request: Request) -> None:
    """A program, its output, and the calls whose `caller` it is."""
    programs = {item.get("call_id") for item in request.items if kind_of(item) == "program"}
    for at, item in enumerate(request.items):
        caller = item.get("caller") or {}
        is_of_program = caller.get("type") == "program" and caller.get("caller_id") not in programs
        alone = item.get("call_id") if kind_of(item) == "program_output" else None
        is_alone = alone is not None and alone not in programs
        demand(not (is_of_program or is_alone), f"No program found for 'input[{at}]'.")


@check
def a_trigger_is_last(request: Request) -> None:
    places = [at for at, item in enumerate(request.items) if kind_of(item) == "compaction_trigger"]
    demand(places in ([], [len(request.items) - 1]), "A 'compaction_trigger' must be the last item of 'input'.")


@check
def at_most_four_breakpoints(request: Request) -> None:
    demand(breakpoints(request) <= 4, "At most 4 prompt_cache_breakpoint parts are allowed.")


def breakpoints(request: Request) -> int:
    return sum(json.dumps(item).count('"prompt_cache_breakpoint"') for item in request.items)


@check
def edited_prefixes_drop_reasoning(request: Request) -> None:
    """From 6.2 on without an error: its report names each item, and why."""
    if request.version < (6, 2) or not any(kind_of(item) == "reasoning" for item in request.items):
        return
    prefix = Prefix()
    prefix.add(tools_in_order(request.body.get("tools") or ()))
    for at, item in enumerate(request.items):
        if kind_of(item) == "compaction":
            prefix = Prefix()
        if kind_of(item) != "reasoning":
            prefix.add(_told(item))
            continue
        said = read(item.get("encrypted_content"), _thought(item))
        if reason := said and _reason(request, said, prefix.hex()):  # None of an item that the provider has by its id
            request.left_out.add(at)
            removed = {"id": item.get("id"), "action": "removed", "reason": reason, "type": "reasoning"}
            request.dropped.append(removed)


def _reason(request: Request, said: Signed, prefix: str) -> str | None:
    maker, _, user = said.account.partition("/")
    if said.account and maker != request.account.name:
        return "organization_mismatch"
    if said.account and user != request.end_user:
        return "end_user_mismatch"
    if _strength(said.model) > _strength(request.model):
        return "model_mismatch"
    return None if not said.prefix or said.prefix == prefix else "prefix_mismatch"


def _strength(model: str) -> tuple[Any, ...]:
    sizes = ("luna", "terra", "sol", "astra")
    return version(model, "gpt") or (0, 0), next((at for at, size in enumerate(sizes) if size in model), 2)


def _told(item: Item) -> Item:
    """An item without what the provider has added to it."""
    item = {name: value for name, value in item.items() if name not in ("id", "status")}
    if isinstance(item.get("content"), str) and item.get("role") != "assistant":
        item["content"] = [{"type": "input_text", "text": item["content"]}]
    return {"type": "message", **item} if "role" in item else item


def _thought(item: Item) -> str:
    return "".join(part.get("text", "") for part in item.get("summary") or ())


def answered(body: Body, answer: list[Item], account: Account = OLD) -> list[Item]:
    """The items of an answer to a request that was taken, its reasoning signed."""
    if not any(kind_of(item) == "reasoning" for item in answer):
        return answer
    request = Request(body, account)
    prefix, items = Prefix(), []
    prefix.add(tools_in_order(body.get("tools") or ()))
    for item in request.items:
        if kind_of(item) == "compaction":
            prefix = Prefix()
        if kind_of(item) != "reasoning":
            prefix.add(_told(item))
    for item in answer:
        if kind_of(item) == "reasoning":
            bound = prefix.hex() if request.version >= (6, 2) else ""
            said = Signed(request.model, f"{account.name}/{request.end_user}", bound, "")
            item = {**item, "encrypted_content": signature_of(_thought(item), said)}
        else:
            prefix.add(_told(item))
        items.append(item)
    return items


@rule
def finished(status: Any) -> bool:
    """Whether an answer is one: not if it is `incomplete` or `failed`."""
    return status == "completed"


def take(body: Body, account: Account = OLD) -> Taken:
    """What the API does with a request."""
    return held("responses", lambda: Request(body, account), shown_tokens)


@rule
def shown_tokens(request: Request) -> int:
    """The input that is billed, without reasoning that was dropped."""
    body = request.body
    shown = [item for at, item in enumerate(request.items) if at not in request.left_out]
    return tokens_of(shown) + tokens_of(body.get("instructions") or "") + tokens_of(body.get("tools") or [])


@rule
def instructions_follow_the_input(request: Request) -> bool:
    """From 6.2 on `instructions` are rendered after `input`, and never cached."""
    return request.version >= (6, 2) and bool(request.body.get("instructions"))


def _tools_in(items: list[Item]) -> list[str]:
    kinds = ("additional_tools", "tool_search_output")
    return sorted(str(tool.get("name")) for item in items if kind_of(item) in kinds for tool in item.get("tools") or ())


@rule
def items_load_tools(request: Request) -> list[str]:
    """Tools that items of the conversation define: without the item, later calls have no definition."""
    return _tools_in(request.items)


@rule
def settings_hold(request: Request) -> Any:
    """A `configuration_update` holds until the next one; after a compaction only what follows it."""
    effective: Item = {}
    for item in request.items:
        if kind_of(item) == "configuration_update":
            effective |= {name: item[name] for name in ("reasoning", "text") if name in item}
    return effective


@rule
def phases_come_back(request: Request) -> bool:
    """Whether all answers that come back have a `phase`, or none: else the model takes one for another."""
    return len({"phase" in item for item in request.items if item.get("role") == "assistant"}) <= 1


def reads(body: Body) -> dict[str, Any]:
    """What the model has of a history beside its text: it misses it silently."""
    request = Request(body)
    return {
        "loaded tools": items_load_tools(request),
        "settings": settings_hold(request),
        "breakpoints": breakpoints(request),
        "phases": phases_come_back(request),
    }
