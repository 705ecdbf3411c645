"""Rows of Anthropic's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planted.playing import Body, Messages, Row, Step
from provider_rules import LATER, NEW, PROVIDERS, Account, Taken

Block = dict[str, Any]

_RULES = PROVIDERS["anthropic"]
REFUSES = {"model": "claude-fable-5-2"}
DROPS = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
ASKS = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}}
MARK = {"type": "ephemeral"}


# So long that more than masks pays.
WHY = "This part of the log may have the bug, since the parser has failed there before. " * 6


def log(number: int) -> str:
    """The text of a result."""
    return f"Part {number} of the log.\n" + f"line {number}: ok, nothing found here\n" * 45


def thought(number: int, text: str | None = None) -> Block:
    return {"type": "thinking", "thinking": f"Part {number} may have the bug." if text is None else text}


def use(number: int, *places: str, **fields: Any) -> list[Block]:
    names, given = places or ("",), {"part": number, "why": WHY}
    return [
        {"type": "tool_use", "id": f"toolu_{number}{place}", "name": "read", "input": given, **fields}
        for place in names
    ]


def results(uses: list[Block], text: Any, **fields: Any) -> list[Block]:
    return [{"type": "tool_result", "tool_use_id": one["id"], "content": text, **fields} for one in uses]


def said(text: str, **fields: Any) -> Block:
    return {"type": "text", "text": text, **fields}


def turn(number: int, *before: Block, uses: list[Block] | None = None, beside: Any = (), after: Messages = ()) -> Step:  # type: ignore[assignment]
    """Blocks, a call, and its result with what stands beside it; then more messages of the client."""
    uses = use(number) if uses is None else uses
    given = [*results(uses, log(number)), *beside]
    return Step([{"role": "assistant", "content": [*before, *uses]}], [{"role": "user", "content": given}, *after])


def every(times: int, special: Callable[[int], Step], plain: Callable[[int], Step] = turn, first: int = 3) -> Any:
    """A plan whose every so many steps are special ones."""
    return lambda number: special(number) if number % times == first % times else plain(number)


def thinking_turn(number: int) -> Step:
    return turn(number, thought(number))


def _parallel(number: int) -> Step:
    uses = use(number, "a", "b", "c")
    first, second, third = results(uses, log(number))
    given = [third, {**first, "is_error": True}, {**second, "content": [said(log(number))]}]
    given += [said("Go on.")] if number % 10 == 9 else []  # which keeps its turn
    return Step([{"role": "assistant", "content": uses}], [{"role": "user", "content": given}])


def _interleaved(number: int) -> Step:
    kinds: list[list[Block]] = [
        [thought(number, ""), said("I look."), thought(number), said("And there.")],
        [{"type": "redacted_thinking", "data": "?"}, said("I look.")],
        [said("I look."), thought(number)],
    ]
    return turn(number, *kinds[number % 3])


def _system(**fields: Any) -> Callable[[int], Step]:
    return lambda number: turn(
        number, after=[{"role": "system", "content": f"<total_tokens>{99_000 - number}</total_tokens>", **fields}]
    )


def _rule(number: int) -> Messages:
    """A system message that no other one replaces."""
    letters = f"{number:b}".translate({48: "o", 49: "l"})
    return [{"role": "system", "content": [said(f"{LATER}{number}"), said(f"Rule {letters}: be brief.")]}]


def _interrupted(number: int) -> Step:
    """The user speaks right after a result, and a rule comes before the answer."""
    return turn(
        number, after=[{"role": "user", "content": "No, look elsewhere."}] if number % 4 == 2 else _rule(number)
    )


def _effort(number: int) -> Step:
    level = ("low", "medium", "high")[number // 7 % 3]
    return turn(number, after=[{"role": "system", "content": [], "output_config": {"effort": level}}])


def _tool_change(number: int) -> Step:
    kind = "tool_addition" if number % 2 else "tool_removal"
    change = {"type": kind, "tool": {"type": "tool_reference", "name": "search"}}
    return turn(number, after=[{"role": "system", "content": [change]}])


def _mcp(number: int) -> Step:
    listed = {"type": "mcp_tool_listing", "mcp_server_name": "facts", "tools": [{"name": f"look_{number}"}]}
    asked = {"type": "mcp_tool_use", "id": f"mcptoolu_{number}", "name": "look", "server_name": "facts", "input": {}}
    given = {"type": "mcp_tool_result", "tool_use_id": asked["id"], "is_error": False, "content": [said("A fact.")]}
    return turn(number, listed, asked, given, said("I look on."))


def _found_tools(number: int) -> Step:
    uses = use(number)
    found = [{"type": "tool_reference", "tool_name": f"look_{number}"}]
    return Step([{"role": "assistant", "content": uses}], [{"role": "user", "content": results(uses, found)}])


def _searched_tools(number: int) -> Step:
    asked = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "tool_search_tool_regex", "input": {}}
    found = [{"type": "tool_reference", "tool_name": f"look_{number}"}]
    content = {"type": "tool_search_tool_search_result", "tool_references": found}
    return turn(number, asked, {"type": "tool_search_tool_result", "tool_use_id": asked["id"], "content": content})


def _server_tools(number: int) -> Step:
    names = {"web_search": "web_search", "code_execution": "code_execution", "advisor": "advisor"}
    blocks: list[Block] = []
    for name in names:
        asked = {"type": "server_tool_use", "id": f"srvtoolu_{name}_{number}", "name": name, "input": {}}
        page = [{"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "AbC="}]
        given = {"type": f"{name}_tool_result", "tool_use_id": asked["id"], "content": page}
        blocks += [asked, given]
    return turn(number, *blocks, said("I look on."))


def _paused(number: int) -> Step:
    """An answer that the provider paused: it is sent back alone, and goes on in the next one."""
    if number % 6 == 3:
        asked = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {}}
        return Step([{"role": "assistant", "content": [said("I search."), asked]}], [])
    if number % 6 == 4:
        given = {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number - 1}", "content": []}
        return turn(number, given, said("I found it."))
    return turn(number)


def _program(number: int) -> Step:
    asked = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "code_execution", "input": {}}
    given = {"type": "code_execution_tool_result", "tool_use_id": asked["id"], "content": {"stdout": "3"}}
    caller = {"type": "code_execution_20260120", "tool_id": asked["id"]}
    return turn(number, asked, given, uses=use(number, "a", "b", caller=caller))


def _fallback(number: int) -> Step:
    went_on = {"type": "fallback", "from": {"model": "claude-fable-5-2"}, "to": {"model": "claude-opus-5-5"}}
    return turn(number, thought(number), went_on, thought(number, "Again."), said("I look."))


def _compaction(number: int) -> Step:
    return Step(
        [{"role": "assistant", "content": [{"type": "compaction", "content": "The parser was read."}]}],
        [{"role": "user", "content": "Go on."}],
    )


def _cited(number: int) -> Step:
    uses = use(number)
    page = {"type": "search_result", "source": "a", "title": "A", "content": [said(log(number))]}
    return Step([{"role": "assistant", "content": uses}], [{"role": "user", "content": results(uses, [page])}])


def _words(number: int) -> Step:
    """What the user said while the tool ran."""
    return turn(number, beside=[said(f"{LATER}{number}")])


def _marked(number: int) -> Step:
    if number not in (3, 20):
        return turn(number)
    uses = use(number)
    given = results(uses, log(number), cache_control=MARK)
    return Step([{"role": "assistant", "content": uses}], [{"role": "user", "content": given}])


def _later(number: int) -> Step:
    kind, unknown = f"{LATER}block", f"{LATER}{number}"
    block = {"type": kind, "id": unknown, "content": [{"type": kind, "text": "x" * 30}], "tool_use_id": unknown}
    if number % 4 == 0:
        return turn(number, block)
    if number % 4 == 1:
        return turn(number, beside=[block])
    if number % 4 == 2:
        return turn(number, after=[{"role": "user", "content": [block]}])
    return Step([{"role": "assistant", "content": [block]}], [{"role": "user", "content": [block, said("Go on.")]}])


def _switched(number: int) -> Body:
    return {"model": ("claude-opus-5-5", "claude-sonnet-5-5")[number // 15 % 2]}


def _in_a_batch(body: Body, account: Account) -> Taken:
    (taken,) = _RULES.batch([body], account)
    return taken


LOOKS: list[Body] = [{"name": f"look_{number}", "defer_loading": True} for number in range(80)]
TOOLS: list[Body] = [{"name": "read"}, {"name": "search", "defer_loading": True}, *LOOKS]
AUTOMATIC = {"cache_control": MARK, "system": [said("You are an agent.", cache_control=MARK)]}
OPENS: Messages = [{"role": "system", "content": "Count in fives."}]
MARKED = {"system": [said("You are an agent.", cache_control=MARK)]}
HOUR = {"system": [said("You are an agent.", cache_control={**MARK, "ttl": "1h"})]}

ROWS: dict[str, Row] = {
    "parallel calls": Row("anthropic.results_lead_the_next_message", "anthropic", _parallel),
    "marks": Row("anthropic.at_most_four_marks", "anthropic", _marked, body=MARKED),
    "automatic caching": Row("anthropic.at_most_four_marks", "anthropic", turn, body=AUTOMATIC),
    "marks of an hour": Row("anthropic.longer_lifetimes_come_first", "anthropic", turn, body=HOUR),
    "words beside results": Row("anthropic.results_lead_the_next_message", "anthropic", every(25, _words)),
    "interleaved thinking": Row("anthropic.signatures_are_ours", "anthropic", _interleaved),
    "thinking of old models": Row(
        "anthropic.signatures_are_ours", "anthropic", thinking_turn, body={"model": "claude-opus-4-8"}
    ),
    "Fable 5.2": Row("anthropic.thinking_is_bound_to_its_prefix", "anthropic", thinking_turn, body=REFUSES),
    "an account of today": Row(
        "anthropic.thinking_is_bound_to_its_prefix", "anthropic", thinking_turn, account=NEW, turns=90
    ),
    "interleaved, an account of today": Row(
        "anthropic.thinking_is_bound_to_its_prefix", "anthropic", _interleaved, account=NEW
    ),
    "drop_block": Row("anthropic.thinking_is_bound_to_its_prefix", "anthropic", thinking_turn, body=DROPS),
    "error": Row("anthropic.thinking_is_bound_to_its_prefix", "anthropic", thinking_turn, body=ASKS),
    "two models": Row(
        "anthropic.unreadable_thinking_is_dropped", "anthropic", thinking_turn, account=NEW, body_at=_switched
    ),
    "batches": Row("anthropic.batch", "anthropic", thinking_turn, judge=_in_a_batch),
    "count_tokens": Row("anthropic.count_tokens", "anthropic", thinking_turn, body=REFUSES, judge=_RULES.count_tokens),
    "system messages": Row("anthropic.system_messages_have_their_place", "anthropic", every(3, _system()), opens=OPENS),
    "system messages that differ": Row(
        "anthropic.system_messages_have_their_place",
        "anthropic",
        every(4, lambda number: turn(number, after=[{"role": "system", "content": f"Rule {number}: be brief."}])),
    ),
    "rules that stay": Row(
        "anthropic.system_messages_have_their_place",
        "anthropic",
        every(6, lambda number: turn(number, after=_rule(number)), every(2, _system(), first=0)),
        opens=OPENS,
    ),
    "interrupted turns": Row("anthropic.system_messages_have_their_place", "anthropic", _interrupted, opens=OPENS),
    "turn-scoped messages": Row(
        "anthropic.turn_scoped_messages_are_plain", "anthropic", every(2, _system(clear_at="next_user_message"))
    ),
    "efforts": Row("anthropic.effort", "anthropic", every(7, _effort)),
    "efforts beside system messages": Row(
        "anthropic.system_messages_say_something", "anthropic", every(2, _effort, every(2, _system(), first=0))
    ),
    "changed tools": Row(
        "anthropic.changed_tools_are_declared", "anthropic", every(6, _tool_change), body={"tools": TOOLS}
    ),
    "MCP servers": Row("anthropic.listings", "anthropic", every(5, _mcp)),
    "tools that a result loads": Row(
        "anthropic.referred_tools_are_declared", "anthropic", every(9, _found_tools), body={"tools": TOOLS}
    ),
    "tools that a search loads": Row(
        "anthropic.loaded_tools", "anthropic", every(9, _searched_tools), body={"tools": TOOLS}
    ),
    "server tools": Row("anthropic.server_tools_stay_with_their_results", "anthropic", every(4, _server_tools)),
    "paused turns": Row("anthropic.the_last_message_is_the_users", "anthropic", _paused),
    "calls of code": Row("anthropic.answers_to_code_have_results_only", "anthropic", every(3, _program)),
    "fallback": Row("anthropic.fallback_parts_one_answer", "anthropic", every(5, _fallback), account=NEW),
    "compactions": Row(
        "anthropic.compactions_are_followed_unchanged", "anthropic", every(25, _compaction, first=20), turns=90
    ),
    "cited results": Row("anthropic.search_results", "anthropic", every(2, _cited)),
    "blocks of later days": Row("anthropic.known_fields", "anthropic", _later),
}
