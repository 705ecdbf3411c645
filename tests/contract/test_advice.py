"""What the first screen says to type is accepted, and saves what the screen says."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_logs import (
    STEPS,
    TALK,
    Messages,
    anthropic,
    claude_log,
    codex_log,
    contents,
    gemini_log,
    pi_log,
    responses,
)
from caching_provider import CachingProvider, history_of
from children import recede_command
from shared_data import CORPUS, need

import recede
from recede import costs, transcripts
from recede._agents import AGENTS
from recede.cli.advice import advice
from recede.costs import PRESETS
from recede.costs._policies import MASKED, summarized
from recede.proxy._played import PlayedProxy
from support import turns_of

SYSTEM = "s" * costs.SYSTEM_CHARS
MARK = {"cache_control": {"type": "ephemeral"}}

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
    is_made = [one.get("role") in ("assistant", "model") or one.get("type") == "function_call" for one in history]
    for end in range(1, len(history)):
        if is_made[end - 1] or not is_made[end]:
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
    raw, masked = costs.replay_transcript(session, [MASKED], prices=prices, door=PlayedProxy(session)).costs
    assert prices.provider == preset and raw.usage.requests == STEPS + 1
    sent = bodies(history(), field, model)
    assert len(sent) == raw.usage.requests
    masker = recede.proxy.RequestMasker()
    views = [masker.mask("POST", path, {}, body).body for body in sent]
    lengths = [[len(history_of(json.loads(one))) for one in many] for many in (sent, views)]
    assert lengths[0] == lengths[1], "no message is dropped"
    share = cost(views, path, preset) / cost(sent, path, preset)
    assert masked.of_raw < 0.9 and share <= masked.of_raw + 0.01


@pytest.mark.parametrize("command", ["claude", "codex"])  # a cache with marks, and one without
def test_the_proxy_with_summaries_saves_at_least_what_the_screen_says(command: str) -> None:
    """But for what it costs that a text is there only when the next request comes; the calls are counted."""
    log, history, field, path, model, preset = SENT[command]
    session = transcripts.read(log(*TALK))
    [one] = advice([session.format], summarizes=True)
    assert one.line == f"recede proxy --summaries -- {command}"
    prices = costs.session_prices(session)
    prices = prices._replace(prices=prices.prices._replace(output=0))
    policies, whole = [MASKED, summarized(10)], PRESETS[preset]
    door = PlayedProxy(session)
    _, masked, more = costs.replay_transcript(session, policies, prices=prices, summary_prices=whole, door=door).costs
    sent = bodies(history(*TALK), field, model)
    masker, views, calls = recede.proxy.RequestMasker(summaries=True), [], []
    for body in sent:
        done = masker.mask("POST", path, {}, body)
        views.append(done.body)
        if done.asked is not None:
            given = recede.count_chars(done.asked.messages) + len(done.asked.previous or "") + 1_200
            calls.append(whole.cost(given / 4, 0, 0, 1_000))
            masker.give(done.asked, "s" * 4_000)
    share = (cost(views, path, preset) + sum(calls)) / cost(sent, path, preset)
    assert calls and more.of_raw < masked.of_raw and share <= more.of_raw + 0.02


@pytest.mark.parametrize("summarizes", [False, True])
def test_the_lines_of_python_send_what_the_screen_has_counted(summarizes: bool) -> None:
    """The adapter of LangChain is a `Masker` over its messages; here over the same ones as dicts."""
    history = turns_of([(3_000, 3_000)] * 260)
    policy = summarized(10) if summarizes else MASKED
    raw, found = costs.replay(history, [policy], system_chars=0).policies
    assert found.turns[-1].view_chars < 0.6 * raw.turns[-1].view_chars
    assert bool(found.usage.summary_calls) is summarizes
    [own] = advice(["messages"], summarizes=summarizes)
    [langchain] = advice(["langsmith"], summarizes=summarizes)
    names = {"recede": recede, "f": lambda hidden, text: "s" * 4_000, "RecedeMiddleware": recede.masker.Masker}
    names["create_agent"] = lambda *_, middleware: middleware[0]
    kept, masker = eval(own.line, names), eval(langchain.line, names)
    sent = {turn.messages: turn.view_chars for turn in found.turns}
    for place, message in enumerate(history):
        if place in sent:
            assert recede.count_chars(kept.view()) == recede.count_chars(masker.view(history[:place])) == sent[place]
        kept.append(message)


def test_every_known_agent_with_a_command_is_told_its_command() -> None:
    titles = {one.title for one in advice(["claude_code", "codex", "gemini", "pi"])}
    assert titles == {AGENTS[command].title for command in SENT}
    assert [one.line for one in advice(["openhands", "openhands_v1"])] == ["recede proxy"]
    told = [one.line for one in advice(["codex", "openhands", "messages"], keep=20)]
    assert told == ["recede proxy --keep 20 -- codex", "recede proxy --keep 20", "recede.History(keep=20)"]
    told = [one.line for one in advice(["codex", "openhands"], keep=20, summarizes=True)]
    assert told == ["recede proxy --keep 20 --summaries -- codex", "recede proxy --keep 20 --summaries"]


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
@pytest.mark.parametrize("options", ["", "--keep 30 --summaries "])
@pytest.mark.parametrize("command", SENT)
def test_a_command_of_the_screen_is_accepted_when_typed(command: str, options: str, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")
    agent = tmp_path / command
    agent.write_text("#!/bin/sh\nexit 7\n")
    agent.chmod(0o755)
    _, *arguments = shlex.split(f"recede proxy {options}-- {command}")
    done = recede_command(
        *arguments, PATH=f"{tmp_path}:/usr/bin:/bin", HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path)
    )
    assert done.returncode == 7, done.stderr
    assert f"{AGENTS[command].title} has the proxy".encode() in done.stderr
    assert (b"old turns become summaries by the model of each conversation" in done.stderr) is bool(options)
