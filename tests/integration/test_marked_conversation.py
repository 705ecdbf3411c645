"""A `Conversation` with Anthropic's client marks its requests for the prompt cache, at most four times each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from marks import marks_of

import recede
from provider_server import Answer, Server, call, calls, serving, text, thought
from recede import History
from recede.designs import Budget, Conversation
from support import unmarked

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
TOOLS: list[Any] = [{"name": "run", "input_schema": {"type": "object"}}]
SYSTEM = "You fix bugs. " * 300
LOOKBACK_BLOCKS = 20
TURNS = 60
CLIENTS: list[anthropic.Anthropic] = []  # of the running test, which closes them


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running
        while CLIENTS:
            CLIENTS.pop().close()
        assert running.refusals == [], "a request was refused"


def script(turns: int, calls_each: int = 1) -> list[Answer]:
    """The answers to a turn with so many rounds of tools."""
    rounds = [calls(*(call("run", {"n": n}) for _ in range(calls_each)), say="Next.") for n in range(turns)]
    return [*rounds, text("Done.")]


def conversation(server: Server, **options: Any) -> Conversation:
    client = anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0)
    CLIENTS.append(client)
    options = {"tools": TOOLS, "system": SYSTEM, "run_tool": output, "max_tool_rounds": 99, **options}
    return Conversation(client.messages.create, model="m", max_tokens=500, **options)


def output(name: str, value: Any) -> str:
    return f"{value['n']}: " + "a line of the log\n" * 250


def blocks_of(request: dict[str, Any]) -> list[tuple[str, bool]]:
    """The blocks of a request in order, without marks, and which are marked."""
    blocks = [*request.get("tools", []), *(request.get("system") or [])]
    for message in request["messages"]:
        content = message["content"]
        is_text = isinstance(content, str)
        blocks += [{"type": "text", "text": content, "of": message["role"]}] if is_text else content
    return [(json.dumps(unmarked({**block, "of": ""})), block.get("cache_control") is not None) for block in blocks]


class Cache:
    """Anthropic's: an entry after each marked block, which a mark finds up to 20 blocks before it."""

    def __init__(self) -> None:
        self.entries: set[int] = set()

    def served(self, request: dict[str, Any]) -> int:
        """How many blocks a request reads; its own entries are written."""
        beginnings, so_far = [], 0
        marked = []
        for place, (block, is_marked) in enumerate(blocks_of(request)):
            so_far = hash((so_far, block))
            beginnings.append(so_far)
            marked += [place] if is_marked else []
        looked_at = {at for mark in marked for at in range(max(0, mark - LOOKBACK_BLOCKS + 1), mark + 1)}
        found = max((at + 1 for at in looked_at if beginnings[at] in self.entries), default=0)
        self.entries |= {beginnings[mark] for mark in marked}
        return found


@pytest.mark.parametrize("calls_each", [1, 3])
def test_each_request_of_a_long_loop_is_served_all_but_what_changed(server: Server, calls_each: int) -> None:
    talk = conversation(server)
    server.script += script(TURNS, calls_each)
    assert talk.turn("Find the bug.").text == "Done."
    assert len(server.requests) == TURNS + 1
    cache, moves = Cache(), 0
    before: list[str] = []
    pinned = 2  # the blocks up to the last masked result: tools and system prompt, before the first move
    for request in server.requests:
        assert request["system"] == [{"type": "text", "text": SYSTEM, "cache_control": MARK}]
        assert request["tools"] == TOOLS
        marks = marks_of(request["messages"])
        assert 1 <= len(marks) <= 2 and all(found == [MARK] for found in marks.values())
        last = len(request["messages"]) - 1
        assert max(marks) == (last, len(request["messages"][-1]["content"]) - 1)
        blocks = [block for block, _ in blocks_of(request)]
        pairs = enumerate(zip(before, blocks, strict=False))
        same = next((at for at, (one, other) in pairs if one != other), len(before))
        served = cache.served(request)
        if same < len(before):  # a move: what the request before had marked at the boundary is served
            moves += 1
            assert served >= pinned
        else:
            assert served == len(before)
        if len(marks) == 2:
            pinned = len(blocks_of({**request, "messages": request["messages"][: min(marks)[0]]}))
        before = blocks
    assert moves >= 2
    assert moves == len(talk.history.stats().boundary_moves)


def test_the_history_has_no_marks_and_changes_only_at_moves(server: Server) -> None:
    talk = conversation(server)
    server.script += script(3)
    talk.turn("Find the bug.")
    assert b"cache_control" not in talk.history.to_json()
    assert talk.history.stats().changed_message is None
    view = talk.view()
    assert view[:-1] == talk.history.messages[:-1] and view[0] is talk.history[0]


@pytest.mark.parametrize(
    ("system", "tools", "most", "count"),
    [
        ("", TOOLS, 1, 1),  # without a system prompt the tools are what precedes
        (None, TOOLS, 1, 1),
        (None, [], 0, 0),
        ([{"type": "text", "text": "a", "cache_control": HOUR}, {"type": "text", "text": "b"}], TOOLS, 1, 1),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], TOOLS, 1, 1),
        (SYSTEM, [{**TOOLS[0], "cache_control": HOUR}], 2, 2),
        ([{"type": "text", "text": text, "cache_control": HOUR} for text in "abc"], TOOLS, 3, 3),
        ([{"type": "text", "text": text, "cache_control": HOUR} for text in "abcd"], TOOLS, 4, 4),
    ],
)
def test_marks_of_the_caller_count(server: Server, system: Any, tools: Any, most: int, count: int) -> None:
    talk = conversation(server, system=system, tools=tools)
    server.script += script(40) if tools else [text("Done.")]
    talk.turn("Find the bug.")
    for request in server.requests:
        own = [*request.get("tools", []), *(request.get("system") or [])]
        assert sum("cache_control" in block for block in own) == count
        assert count + len(marks_of(request["messages"])) == min(4, count + len(marks_of(request["messages"])))
    assert max(len(marks_of(request["messages"])) for request in server.requests) == min(2 if tools else 1, 4 - most)


def test_automatic_caching_gives_its_lifetime_and_counts(server: Server) -> None:
    talk = conversation(server, cache_control=HOUR)
    server.script += script(30)
    talk.turn("Find the bug.")
    request = server.requests[-1]
    assert request["cache_control"] == HOUR and request["system"][0]["cache_control"] == HOUR
    assert list(marks_of(request["messages"]).values()) == [[HOUR], [HOUR]]


def test_thinking_and_blank_text_get_no_mark(server: Server) -> None:
    talk = conversation(server)
    server.script += [Answer([thought("hm"), call("run", {"n": 1})], "tool_use"), text("Well."), text("Done.")]
    talk.turn([{"type": "text", "text": "Find the bug."}, {"type": "text", "text": " \n"}])
    talk.turn("And the next.")
    assert [max(marks_of(request["messages"])) for request in server.requests] == [(0, 0), (2, 0), (4, 0)]


@pytest.mark.parametrize(
    "options",
    [{"budget": Budget(boundary="break_even")}, {"history": History(keep=3, provider="ideal")}],
    ids=["budget", "history"],
)
def test_a_budget_or_history_that_keeps_marks_is_sent_as_it_is(server: Server, options: Any) -> None:
    talk = conversation(server, **options)
    server.script += [text("Done.")]
    talk.turn("Find the bug.")
    assert "cache_control" not in json.dumps(server.requests)


@pytest.mark.parametrize("provider", ["auto", "anthropic"])
def test_a_history_of_ones_own_may_ask_for_marks(server: Server, provider: str) -> None:
    history = History(keep=3, boundary="sliding", provider=provider)
    talk = conversation(server, history=history)
    server.script += script(12)
    talk.turn("Find the bug.")
    assert len(marks_of(server.requests[-1]["messages"])) == 2
    talk.history.rewind(9)
    server.script += [text("Done.")]
    talk.turn("Once more.")
    assert max(marks_of(server.requests[-1]["messages"])) == (9, 0)


def test_an_async_client_marks_as_well(server: Server) -> None:
    async def turn() -> None:
        async with anthropic.AsyncAnthropic(api_key="none", base_url=server.url, max_retries=0) as client:
            talk = Conversation(client.messages.create, model="m", max_tokens=9, system=SYSTEM)
            await talk.turn_async("Find the bug.")

    server.script += [text("Done.")]
    asyncio.run(turn())
    assert list(marks_of(server.requests[0]["messages"])) == [(0, 0)]


def test_other_clients_send_no_marks(server: Server) -> None:
    with openai.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client:
        talk = Conversation(client.chat.completions.create, model="m", system=SYSTEM)
        server.script += [text("Done.")]
        talk.turn("Find the bug.")
    assert "cache_control" not in json.dumps(server.requests)
    assert talk.history._live.options.given["provider"] == "openai"


def test_a_wrapped_client_is_left_alone() -> None:
    asked: list[Any] = []

    def create(**request: Any) -> Any:
        asked.append(request)
        return {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}

    recede.designs.Conversation(create, system=SYSTEM).turn("Find the bug.")
    assert "cache_control" not in json.dumps(asked)
