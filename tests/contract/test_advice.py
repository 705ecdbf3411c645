"""What the first screen says to type is accepted, and saves what the screen says."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from caching_provider import CachingProvider, history_of
from children import recede_command
from shared_data import CORPUS, need
from transcript_files import claude, lines

import recede
from recede import costs, transcripts
from recede._agents import AGENTS
from recede.cli.advice import advice
from recede.cli.played import MASKED
from recede.costs import PRESETS
from support import dumps, tool_result, tool_use, turns, user

STEPS = 90
SYSTEM = "s" * costs.SYSTEM_CHARS
MARK = {"cache_control": {"type": "ephemeral"}}
Messages = list[dict[str, Any]]


def answers() -> list[tuple[str, dict[str, Any], str]]:
    """Calls and results of a session, of sizes that agents have."""
    return [
        (f"c{step}", {"command": f"make {step}"}, f"{step} passed " * (40 + step * 37 % 500)) for step in range(STEPS)
    ]


def anthropic() -> Messages:
    history: Messages = [user("Go.")]
    for name, value, text in answers():
        call = tool_use(name, name="Bash", value=value)
        history += [{"role": "assistant", "content": [call]}, user([tool_result(name, text)])]
    return [*history, {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}]


def claude_log() -> bytes:
    return lines(*(claude(message["role"], message) for message in anthropic()))


def pi_log() -> bytes:
    records: list[Any] = [{"type": "session", "id": "1"}, {"type": "message", "message": user("Go.")}]
    for name, value, text in answers():
        call = {"type": "toolCall", "id": name, "name": "bash", "arguments": value}
        result = {"role": "toolResult", "toolCallId": name, "content": [{"type": "text", "text": text}]}
        records.append({"type": "message", "message": {"role": "assistant", "content": [call]}})
        records.append({"type": "message", "message": result})
    records.append(
        {"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}}
    )
    return lines(*records)


def responses() -> Messages:
    items: Messages = [{"type": "message", **user([{"type": "input_text", "text": "Go."}])}]
    for name, value, text in answers():
        items.append({"type": "function_call", "call_id": name, "name": "run", "arguments": json.dumps(value)})
        items.append({"type": "function_call_output", "call_id": name, "output": text})
    done = {"type": "output_text", "text": "Done."}
    return [*items, {"type": "message", "role": "assistant", "content": [done]}]


def codex_log() -> bytes:
    return lines(*({"type": "response_item", "payload": item} for item in responses()))


def contents() -> Messages:
    history: Messages = [{"role": "user", "parts": [{"text": "Go."}]}]
    for name, value, text in answers():
        call = {"functionCall": {"id": name, "name": "run", "args": value}}
        result = {"functionResponse": {"id": name, "name": "run", "response": {"output": text}}}
        history += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    return [*history, {"role": "model", "parts": [{"text": "Done."}]}]


def gemini_log() -> bytes:
    records: list[Any] = [{"type": "user", "content": "Go."}]
    for name, value, text in answers():
        result = [{"functionResponse": {"id": name, "name": "run", "response": {"output": text}}}]
        call = {"id": name, "name": "run", "args": value, "result": result}
        records.append({"type": "gemini", "content": "", "toolCalls": [call]})
    return dumps({"sessionId": "1", "messages": [*records, {"type": "gemini", "content": "Done."}]})


# By command: the log, the history as it is sent, its field, the path, the model, and whose prices are paid.
SENT = {
    "claude": (claude_log, anthropic, "messages", "/v1/messages", "claude-sonnet-4-5", "anthropic"),
    "codex": (codex_log, responses, "input", "/v1/responses", "gpt-5.4", "openai"),
    "gemini": (gemini_log, contents, "contents", "/v1beta/models/gemini-3.1-pro:generateContent", None, "gemini"),
    "pi": (pi_log, anthropic, "messages", "/v1/messages", "claude-sonnet-4-5", "anthropic"),
}


def bodies(history: Messages, field: str, model: str | None) -> list[bytes]:
    """What the agent sends: all up to each answer, with the marks of the common clients where there are any."""
    is_marked, before, made = field == "messages", 0, []
    fixed: dict[str, Any] = {"tools": [{"name": "run", "description": SYSTEM}]}
    if is_marked:
        fixed = {"system": [{"type": "text", "text": SYSTEM, **MARK}], "max_tokens": 1}
    for end, message in enumerate(history):
        kind = str(message.get("type"))
        if end == 0 or not (message.get("role") in ("assistant", "model") or kind == "function_call"):
            continue
        sent = list(history[:end])
        for place in {before - 1, end - 1} - {-1} if is_marked else set():
            content = sent[place]["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            sent[place] = {**sent[place], "content": [*parts[:-1], {**parts[-1], **MARK}]}
        made.append(json.dumps({**fixed, **({"model": model} if model else {}), field: sent}).encode())
        before = end
    return made


def cost(sent: list[bytes], path: str, preset: str) -> float:
    """What a provider takes for these requests that keeps its cache by the rules."""
    provider, prices = CachingProvider(""), PRESETS[preset]
    for body in sent:
        provider.seconds += 1
        if path == "/v1/messages":
            counted = provider.count(json.loads(body))
            assert not isinstance(counted, str), counted
        else:
            provider.count_prefix(json.loads(body), *((1_024, 128) if preset == "openai" else (4_096, 1)))
    return prices.cost(provider.plain, provider.read, provider.written, 0)


@pytest.mark.parametrize("command", SENT)
def test_the_proxy_saves_at_least_what_the_screen_says(command: str) -> None:
    log, history, field, path, model, preset = SENT[command]
    session = transcripts.read(log())
    [one] = advice([session.format])
    assert (one.title, one.line) == (AGENTS[command].title, f"recede proxy -- {command}")
    prices = costs.session_prices(session)
    prices = prices._replace(prices=prices.prices._replace(output=0))
    raw, masked = costs.replay_transcript(session, [MASKED], prices=prices).costs
    assert prices.provider == preset and raw.usage.requests == STEPS + 1
    sent = bodies(history(), field, model)
    assert len(sent) == raw.usage.requests
    masker = recede.proxy.RequestMasker()
    views = [masker.mask("POST", path, {}, body).body for body in sent]
    lengths = [[len(history_of(json.loads(one))) for one in many] for many in (sent, views)]
    assert lengths[0] == lengths[1], "no message is dropped"
    share = cost(views, path, preset) / cost(sent, path, preset)
    assert masked.of_raw < 0.9 and share <= masked.of_raw + 0.01


def test_the_line_for_a_loop_of_ones_own_sends_what_the_screen_has_counted() -> None:
    history = [user("Fix the test."), *turns(60, chars=3_000)]
    [one] = advice(["messages"])
    raw, masked = costs.replay(history, [MASKED], system_chars=0).policies
    assert masked.turns[-1].view_chars < raw.turns[-1].view_chars / 2
    own = eval(one.line, {"recede": recede})
    sent = {turn.messages: turn.view_chars for turn in masked.turns}
    for place, message in enumerate(history):
        if place in sent:
            assert recede.count_chars(own.view()) == sent[place]
        own.append(message)


def test_the_line_for_langchain_masks_as_the_screen_has_counted() -> None:
    """The adapter is a `Masker` over the messages of the framework; here over the same ones as dicts."""
    [one] = advice(["langsmith"])
    assert one.line == "create_agent(..., middleware=[RecedeMiddleware(keep=10)])"
    history = [user("Fix the test."), *turns(60, chars=3_000)]
    [_, masked] = costs.replay(history, [MASKED], system_chars=0).policies
    masker = recede.masker.Masker(keep=10)
    for turn in masked.turns:
        assert recede.count_chars(masker.view(history[: turn.messages])) == turn.view_chars


def test_every_known_agent_with_a_command_is_told_its_command() -> None:
    titles = {one.title for one in advice(["claude_code", "codex", "gemini", "pi"])}
    assert titles == {AGENTS[command].title for command in SENT}
    assert [one.line for one in advice(["openhands", "openhands_v1"])] == ["recede proxy"]
    told = [one.line for one in advice(["codex", "openhands", "messages"], keep=20)]
    assert told == ["recede proxy --keep 20 -- codex", "recede proxy --keep 20", "recede.History(keep=20)"]


@pytest.mark.parametrize("folder", ["openhands", "swe_agent", "mini_swe"])
def test_the_line_for_a_program_saves_at_least_what_the_screen_says(folder: str) -> None:
    """Where its log has calls. A proxy could not tell those of texts alone: there the line is one for a loop."""
    need(CORPUS)
    shares, fixed = [], {"model": "gpt-5.4", "tools": [{"name": "run", "description": SYSTEM}]}
    prices = PRESETS["openai"]._replace(output=0)
    for session in (one for path in sorted((CORPUS / folder).iterdir()) for one in transcripts.read_all(path)):
        results = recede.reduce(session.messages).tools
        textual = [session.format] if results and not any(results) else []
        [one] = advice([session.format], textual)
        assert one.line == ("recede.History(keep=10)" if textual else "recede proxy")
        raw, masked = costs.replay(session.messages, [MASKED], prices=prices, cache="openai").policies
        views, sent, history = [], [], recede.History(keep=10, provider="openai")
        masker = recede.proxy.RequestMasker()
        for turn in masked.turns:
            first = session.messages[: turn.messages]
            sent.append(json.dumps({**fixed, "messages": first}).encode())
            history.extend(first[len(history) :])
            own = json.dumps({**fixed, "messages": history.view()}).encode()
            views.append(own if textual else masker.mask("POST", "/v1/chat/completions", {}, sent[-1]).body)
        if sent:
            shares.append(cost(views, "", "openai") / cost(sent, "", "openai"))
            assert shares[-1] <= masked.usage.cost(prices) / raw.usage.cost(prices) + 0.01
    assert min(shares) < 0.9 or folder != "openhands"


@pytest.mark.skipif(sys.platform == "win32", reason="the agent is a shell script")
@pytest.mark.parametrize("command", SENT)
def test_a_command_of_the_screen_is_accepted_when_typed(command: str, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")
    agent = tmp_path / command
    agent.write_text("#!/bin/sh\nexit 7\n")
    agent.chmod(0o755)
    _, *arguments = shlex.split(f"recede proxy -- {command}")
    done = recede_command(
        *arguments, PATH=f"{tmp_path}:/usr/bin:/bin", HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path)
    )
    assert done.returncode == 7, done.stderr
    assert f"{AGENTS[command].title} has the proxy".encode() in done.stderr
