"""Where messages and blocks stand: system messages, tools that change, what the provider ran itself, compactions."""

from __future__ import annotations

from typing import Any

from provider_rules.anthropic.request import Block, Request
from provider_rules.base import check, demand, rule

_ALONE = "the directive-only form (content: [] with output_config) is accepted at any position"
_RESULTS = ("_tool_result",)


def is_directive(message: dict[str, Any]) -> bool:
    """Whether a system message sets the effort and says nothing."""
    return message["role"] == "system" and message.get("content") == [] and bool(message.get("output_config"))


def ends_at_the_server(blocks: list[Block]) -> bool:
    return bool(blocks) and str(blocks[-1]["type"]).endswith(_RESULTS)


@check
def system_messages_have_their_place(request: Request) -> None:
    """After the user, or after an answer that ends at the server; before an answer, or last; neighbors as one."""
    messages = [(at, message) for at, message in enumerate(request.messages) if not is_directive(message)]
    for place, (at, message) in enumerate(messages):
        if message["role"] != "system":
            continue
        first_models = {"opus": (4, 8), "fable": (0, 0), "mythos": (0, 0)}
        is_known = request.version >= first_models.get(request.family, (5, 0))
        demand(is_known, f"messages.{at}: role 'system' is not supported on this model")
        words = f"messages.{at}: use the top-level 'system' parameter for the initial system prompt; {_ALONE}"
        demand(place > 0, words)
        before_at, before = messages[place - 1]
        may_follow = before["role"] != "assistant" or ends_at_the_server(request.blocks[before_at])
        words = "must follow a 'user' message or an 'assistant' message ending in a server tool result"
        demand(may_follow, f"messages.{at}: role 'system' {words}; {_ALONE}")
        after = messages[place + 1][1]["role"] if place + 1 < len(messages) else "assistant"
        words = f"role 'system' must precede an 'assistant' message or end the array; {_ALONE}"
        demand(after != "user", f"messages.{at}: {words}")


@check
def system_messages_say_something(request: Request) -> None:
    for at, message in enumerate(request.messages):
        if message["role"] == "system":
            says = request.blocks[at] or is_directive(message)
            demand(says, f"messages.{at}: system content must contain at least one block")


@check
def turn_scoped_messages_are_plain(request: Request) -> None:
    """A system message with `clear_at` has text without marks, and no effort."""
    for at, message in enumerate(request.messages):
        if "clear_at" not in message:
            continue
        demand(message["clear_at"] in ("next_user_message", "never"), f"messages.{at}.clear_at: Input should be …")
        is_text = all(block["type"] == "text" for block in request.blocks[at])
        demand(is_text, f"messages.{at}: a message with 'clear_at' supports text blocks only")
        is_plain = not any("cache_control" in block for block in request.blocks[at]) and "output_config" not in message
        demand(is_plain, f"messages.{at}: 'clear_at' cannot be combined with cache_control or output_config")


def is_cleared(request: Request, at: int) -> bool:
    """Whether the text of a message is no longer shown, and not billed."""
    message = request.messages[at]
    later = request.messages[at + 1 :]
    return message.get("clear_at") == "next_user_message" and any(one["role"] == "user" for one in later)


@check
def changed_tools_are_declared(request: Request) -> None:
    """Tools that a message adds, removes or refers to; none right after a paused turn."""
    declared = request.body.get("tools")
    names = {tool.get("name") for tool in declared or ()}
    for at, _, block in request.each:
        if block["type"] not in ("tool_addition", "tool_removal"):
            continue
        tool = block.get("tool") or {}
        defined = tool.get("definition") or {}
        names |= {defined.get("name")} - {None}
        name = tool.get("name") or tool.get("tool_name") or defined.get("name")
        words = f"messages.{at}: Tool reference {name!r} has no corresponding tool definition"
        demand(declared is None or name in names, words)
        before = request.blocks[at - 1] if at else []
        is_paused = bool(before) and before[-1]["type"] in ("server_tool_use", "mcp_tool_use")
        demand(not is_paused, f"messages.{at}: tool changes are not permitted directly after a paused turn")


@check
def referred_tools_are_declared(request: Request) -> None:
    declared = request.body.get("tools")
    names = {tool.get("name") for tool in declared or ()}
    for name in sorted(loaded_tools(request)):
        words = f"Tool reference {name!r} has no corresponding tool definition"
        demand(declared is None or name in names, words)


@rule
def loaded_tools(request: Request) -> set[str]:
    """Tools that a search has loaded: without its result, later calls have no definition."""
    found: set[str] = set()
    for _, _, block in request.each:
        content = block.get("content")
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            if isinstance(part, dict):
                references = [part, *(part.get("tool_references") or ())]
                found |= {str(one["tool_name"]) for one in references if one.get("type") == "tool_reference"}
    return found


@rule
def listings(request: Request) -> list[Any]:
    """Listings of MCP servers: without one, its server is asked again."""
    return [block for _, _, block in request.each if block["type"] == "mcp_tool_listing"]


@rule
def effort(request: Request) -> Any:
    """The effort that the messages set."""
    told = [message["output_config"] for message in request.messages if message.get("output_config")]
    return told[-1] if told else None


@rule
def search_results(request: Request) -> list[Any]:
    """The search results that citations count, of the whole request."""
    found = []
    for _, _, block in request.each:
        parts = block.get("content") if block["type"] == "tool_result" else None
        found += [one for one in [block, *(parts if isinstance(parts, list) else ())] if one["type"] == "search_result"]
    return found


@check
def server_tools_stay_with_their_results(request: Request) -> None:
    """Calls of tools that the provider runs, in one turn with their results; a paused last turn may lack them."""
    last = len(request.turns) - 1
    for at, (_, blocks) in enumerate(request.turns):
        asked = [str(one["id"]) for one in blocks if one["type"] in ("server_tool_use", "mcp_tool_use")]
        given = [str(one.get("tool_use_id")) for one in blocks if str(one["type"]).endswith("_tool_result")]
        strange = [one for one in given if one not in asked]
        demand(not strange, f"messages.{at}: unexpected `tool_use_id` found in server tool results: {strange}")
        missing = [one for one in asked if one not in given]
        words = "tool use with id `{}` was found without a corresponding `_tool_result` block"
        demand(at == last or not missing, f"messages.{at}: `server` " + words.format(missing and missing[0]))


@check
def fallback_parts_one_answer(request: Request) -> None:
    """A `fallback` block stands in an answer, and names the model that went on."""
    for at, place, block in request.each:
        if block["type"] == "fallback":
            names_model = bool((block.get("to") or {}).get("model"))
            demand(names_model, f"messages.{at}.content.{place}.fallback.to: Field required")


@check
def compactions_are_followed_unchanged(request: Request) -> None:
    """A compaction begins its message; no system message follows directly; the first kept message is the user's."""
    for at, place, block in request.each:
        if block["type"] != "compaction":
            continue
        where = f"messages.{at}.content.{place}"
        demand(block.get("content") != "", f"{where}.compaction.content: String should have at least 1 character")
        demand(place == 0, f"{where}: a `compaction` block must be the first block of its message")
        after = request.messages[at + 1]["role"] if at + 1 < len(request.messages) else "user"
        demand(after == "user", f"messages.{at + 1}: a `compaction` block cannot be followed by role {after!r}")


@check
def the_last_message_is_the_users(request: Request) -> None:
    """From 4.6 on; a paused turn comes back as it came."""
    last, blocks = request.messages[-1], request.blocks[-1]
    if last["role"] != "assistant":
        return
    kinds = {str(block["type"]) for block in blocks}
    is_paused = any(kind in ("server_tool_use", "mcp_tool_use", "compaction") for kind in kinds)
    words = "This model does not support assistant message prefill. The conversation must end with a user message."
    demand(request.version < (4, 6) or is_paused, words)
    text = blocks[-1].get("text", "") if blocks else ""
    demand(text == text.rstrip(), "messages: final assistant content cannot end with trailing whitespace")


@rule
def finished(stop_reason: Any) -> bool:
    """Whether an answer is one: not if it was refused, cut, or paused."""
    return stop_reason in ("end_turn", "stop_sequence", "tool_use")
