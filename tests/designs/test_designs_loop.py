"""Rows of docs/coming-from.md: the block masker, its loop and its REPL, typed with official clients."""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from design_rows import row
from test_chat import typed

from provider_server import Server, call, calls, serving, text
from recede.designs import Budget, Conversation, approx_tokens, auto_continue, mask_old_observations
from support import priced, tool_result, tool_use, user

KEEP_RECENT_OBSERVATIONS, MASK_THRESHOLD_TOKENS = 4, 8_000
LINES = "a line of the log\n" * 46 + "the last line"  # 47 lines


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running
        assert running.refusals == [], "a request was refused"


@pytest.fixture
def client(server: Server) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as one:
        yield one


def history_of(results: int, seen: Any = LINES) -> list[dict[str, Any]]:
    history = [user("Find the bug.")]
    for number in range(results):
        history += [tool_use(f"t{number}"), user([tool_result(f"t{number}", seen)])]
    return history


def shown(messages: list[Any]) -> list[str]:
    return [m["content"][0]["content"] for m in messages if m["role"] == "user" and not isinstance(m["content"], str)]


@row(
    "`maskOldObservations(history, keep=4)`",
    "`[observation masked — N lines omitted]`",
    "the newest live, the oldest die",
    "the `tool_use_id` is kept",
    "never in place; with nothing to mask the history itself",
    "never fewer than 3",
)
def test_the_masker() -> None:
    history = history_of(10)
    before = copy.deepcopy(history)
    view = mask_old_observations(history, keep=4)
    assert shown(view) == ["[observation masked — 47 lines omitted]"] * 6 + [LINES] * 4
    assert view == mask_old_observations(history) == mask_old_observations(history, KEEP_RECENT_OBSERVATIONS)
    assert [m["content"][0]["tool_use_id"] for m in view[2::2]] == [f"t{n}" for n in range(10)]
    assert history == before and view is not history
    few = history_of(4)
    assert mask_old_observations(few) is few
    for refused in (lambda: mask_old_observations(history, 2), lambda: Budget(keep=2)):
        with pytest.raises(ValueError, match="keep must be at least 3"):
            refused()
    with pytest.raises(TypeError, match="no option 'keep_results' here: the window is keep"):
        mask_old_observations(history, keep_results=4)  # type: ignore[call-arg]


@row(
    "of several results in one message the newest is masked first",
    "text of the user beside results stays",
    "short texts are replaced, too",
)
def test_results_beside_others() -> None:
    ids = [f"q{n}" for n in range(6)]
    said = {"type": "text", "text": "And look at b.py. " * 9}
    history = [user("Go."), tool_use(*ids), user([*(tool_result(one, LINES) for one in ids), said])]
    content = mask_old_observations(history)[2]["content"]
    assert [part.get("content") == LINES for part in content[:6]] == [False] * 2 + [True] * 4, "the first is the oldest"
    assert content[6] is said
    short = history_of(9, "ok")
    assert mask_old_observations(short) is short


@row("`approxTokens`", "the input of a call counts as `JSON.stringify` gives it, images 0")
def test_approx_tokens() -> None:
    def approxTokens(history: list[dict[str, Any]]) -> int:  # noqa: N802 - the design's
        chars = 0
        for m in history:
            if isinstance(m["content"], str):
                chars += len(m["content"])
                continue
            for b in m["content"]:
                if b["type"] == "text":
                    chars += len(b["text"])
                elif b["type"] == "tool_use":
                    chars += 20 + len(b["name"]) + len(json.dumps(b["input"], separators=(",", ":")))
                elif b["type"] == "tool_result":
                    chars += len(b["content"])
        return -(-chars // 4)

    history = history_of(9)
    assert approx_tokens(history) == approxTokens(history)
    talk = [user("word " * 99), {"role": "assistant", "content": [{"type": "text", "text": "word " * 77}]}]
    assert approx_tokens(talk) == approxTokens(talk)
    numbers = [tool_use("1", value={"n": 1.25e-7}), tool_use("1", value={"n": 1234})]
    assert approx_tokens(numbers[:1]) == approx_tokens(numbers[1:]), "a number is 4 characters, however it is written"
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    assert approx_tokens([user([image])]) == 6_400 / 4


@row(
    "functions take what the client gave",
    "the three lines of minimum viable masking",
    "from 8,000 tokens on",
    "system, tools, model and `max_tokens` are passed on",
    "store full, send masked",
    "no reminder in the prompt",
)
def test_minimum_viable_masking(server: Server, client: anthropic.Anthropic) -> None:
    seen = "a line of the log\n" * 200
    server.script = [*(calls(call("run", {"n": number})) for number in range(14)), text("Fixed.")]
    request: dict[str, Any] = {"model": "m", "max_tokens": 99, "system": "You are careful.", "tools": [TOOL]}
    history: list[Any] = [{"role": "user", "content": "Find the bug."}]
    while True:
        view = mask_old_observations(history) if approx_tokens(history) > MASK_THRESHOLD_TOKENS else history
        assert view == Budget().view(history)
        r = auto_continue(client.messages.create, messages=view, **request)
        history.append({"role": "assistant", "content": r.content})
        if r.stop_reason != "tool_use":
            break
        results = [tool_result(block.id, seen) for block in r.content if block.type == "tool_use"]
        history.append({"role": "user", "content": results})
    for sent in server.requests:
        over = "observation masked" in json.dumps(sent["messages"])
        assert over == (approx_tokens(history[: len(sent["messages"])]) > 8_000)
        assert {name: sent[name] for name in request} == request
        assert sent["messages"][0] == history[0] and len({m["role"] for m in sent["messages"][::2]}) == 1
    assert shown(history) == [seen] * 14 and shown(view) == [shown(view)[0]] * 10 + [seen] * 4
    exact = [user("x" * 32_000)]
    assert (approx_tokens(exact), Budget().is_over(exact), Budget().is_over([user("x" * 32_001)])) == (
        8_000,
        False,
        True,
    )


TOOL = {"name": "run", "description": "Run it.", "input_schema": {"type": "object", "properties": {}}}


@row(
    "the turn loop",
    "the loop masks from 8,000 tokens on and keeps 4",
    "one rule, wherever it is used",
    "un-mask later",
    "constants `KEEP_RECENT_OBSERVATIONS`, `MASK_THRESHOLD_TOKENS`",
)
@pytest.mark.parametrize("shape", ["anthropic", "openai"])
def test_one_rule_in_the_loop_and_alone(server: Server, shape: str) -> None:
    seen = "a line of the log\n" * 200
    server.script = [*(calls(call("run", {"n": number})) for number in range(14)), text("Fixed.")]
    budget = Budget(threshold_tokens=MASK_THRESHOLD_TOKENS, keep=KEEP_RECENT_OBSERVATIONS)
    assert (budget.threshold_tokens, budget.keep) == (Budget().threshold_tokens, Budget().keep)
    options: dict[str, Any] = {"run_tool": lambda name, value: seen, "budget": budget, "model": "m"}
    if shape == "anthropic":
        with anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as one:
            conversation = Conversation(one.messages.create, tools=[TOOL], max_tokens=99, **options)
            answer = conversation.turn("Find the bug.")
    else:
        with openai.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as other:
            function = {"name": "run", "parameters": TOOL["input_schema"]}
            tools = [{"type": "function", "function": function}]
            conversation = Conversation(other.chat.completions.create, tools=tools, **options)
            answer = conversation.turn("Find the bug.")
    assert (answer.text, answer.tool_calls) == ("Fixed.", 14)
    full = json.loads(conversation.history.to_json())
    assert "observation masked" not in json.dumps(full)
    masked = 0
    for sent in server.requests:
        history = full[: len(sent["messages"])]
        view = json.dumps(budget.view(history))
        assert json.dumps(sent["messages"]).count("observation masked") == view.count("observation masked")
        masked += budget.is_over(history)
    assert masked == 6
    assert conversation.history.recall(1) == seen
    assert "recall" in json.dumps(conversation.history.tool_definition(shape))


@row(
    "`autoContinue` at `max_tokens`",
    "three attempts, then `end_turn`",
    "`autoContinue(view)`",
    "a warning at each attempt",
    "never truncate in the middle of a plan",
)
def test_auto_continue(server: Server, client: anthropic.Anthropic, caplog: pytest.LogCaptureFixture) -> None:
    def ask(**options: Any) -> Any:
        return auto_continue(client.messages.create, messages=view, model="m", max_tokens=99, **options)

    view, cuts = [user("Go.")], list[Any]()
    server.script = [text("It ", "max_tokens"), text("is ", "max_tokens"), text("fixed.")]
    r = ask(on_cut=cuts.append)
    assert (r.content[0].text, r.stop_reason, len(cuts), len(view)) == ("It is fixed.", "end_turn", 2, 1)
    assert len(caplog.messages) == 2
    server.script = [text("It ", "max_tokens") for _ in range(4)]
    assert (ask().stop_reason, len(server.requests), len(caplog.messages)) == ("end_turn", 6, 5)
    unfinished = {**call("write_file"), "partial": '{"path": "a'}
    server.script = [calls(unfinished, say="I write ", stop="max_tokens"), calls(call("run"), say="it.")]
    r = ask()
    assert [block.type for block in r.content] == ["text", "tool_use"] and r.content[0].text == "I write it."
    assert server.requests[-1]["max_tokens"] == 198
    with pytest.raises(TypeError, match=r"missing .* argument: 'messages'"):
        auto_continue(view)  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match=r"missing .* argument: 'create'"):
        auto_continue(messages=view)  # type: ignore[call-arg]


@row("11.8K tokens become 2.4K", "a stable boundary, in chunks", "mask only when the cache is missed anyway")
def test_boundaries() -> None:
    history = history_of(16, "x" * 2_800)
    assert approx_tokens(history) > 11_000 and approx_tokens(mask_old_observations(history)) < 3_200
    cold = {"boundary": "break_even", "provider": priced(write=1e9)}  # no move pays for itself

    def moves(**options: Any) -> int:
        views = [shown(mask_old_observations(history_of(n, "x" * 2_800), **options)) for n in range(1, 46)]
        counts = [sum("masked" in one for one in view) for view in views]
        return sum(before != after for before, after in itertools.pairwise(counts))

    assert (moves(), moves(mask_chunk=4), moves(mask_chunk=8), moves(**cold)) == (41, 10, 5, 0)
    missed = mask_old_observations(history, cold=True, **cold)
    assert missed == mask_old_observations(history)


@row("one turn of large calls exceeds the budget")
def test_one_turn_of_large_calls(caplog: pytest.LogCaptureFixture) -> None:
    history = history_of(3, "x" * 80_000)
    assert Budget().view(history) is history and caplog.messages == []
    assert Budget(max_input_tokens=16_000).view(history) == history
    assert "is over max_input_tokens=16,000" in caplog.text


@row("`/stats` at the start")
def test_the_repl_at_its_start(server: Server, tmp_path: Path) -> None:
    said = typed("/stats\n/history\n/quit\n", tmp_path, server)
    assert "turns: 0, messages: 0" in said and "about 0 tokens, 0% less" in said and "\n> []\n" in said


@row(
    "`/stats`: turns, raw, masked",
    "the sliding rule in the REPL",
    "`/history`, its first 2,000 characters",
    "`[tool] name(input)` is printed",
)
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_the_repl(server: Server, tmp_path: Path, provider: str) -> None:
    (tmp_path / "a.py").write_text("a line of the log\n" * 300)
    server.script = [*(calls(call("read_file", {"path": "a.py"})) for _ in range(9)), text("Fixed.")]
    said = typed("Go.\n/stats\n/history\n/quit\n", tmp_path, server, provider)
    assert [json.dumps(sent["messages"]).count("observation masked") for sent in server.requests][-2:] == [4, 5]
    assert said.count('[tool] read_file({"path": "a.py"})\n') == 9
    assert "turns: 10, messages: 20" in said
    figures = re.findall(r"^.*(?:raw|masked.*|sent): about ([\d,]+) tokens", said, re.M)
    raw, masked, sent = (int(tokens.replace(",", "")) for tokens in figures)
    assert masked < 0.5 * raw and 0 <= sent - masked < 50
    history = said.split("5 tool outputs masked\n> ")[1].split("\n[")[0]
    assert len(history) == 2_000 and "characters more: /history all]" in said
