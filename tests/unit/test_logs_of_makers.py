"""Logs of seven makers, whose caches are played by their rules: the dollars of a replay are those of the maker."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from caching_provider import RULES, CachingProvider
from children import recede_command
from played_sessions import Turn, bodies_of, chat

from recede import costs, transcripts

TURNS: list[Turn] = [(200, [4_000], 10.0)] * 40
ANSWER_TOKENS = 50
SATURDAY = datetime(2026, 11, 28, 12, tzinfo=timezone.utc).timestamp()
MONDAY_AT_TWO = datetime(2026, 11, 23, 2, tzinfo=timezone.utc).timestamp()


class Maker(NamedTuple):
    """The rule of a cache, how pi names the maker, and dollars for a million tokens: fresh, cached, written out."""

    rule: str
    host: str
    input: float
    cached: float
    output: float


MAKERS = {
    "deepseek-v4-pro": Maker("deepseek", "deepseek", 0.66, 0.022, 1.98),
    "kimi-k3.1-pro": Maker("moonshot", "moonshotai", 2.0, 0.2, 10.0),
    "glm-5.3": Maker("zai", "zai", 1.4, 0.26, 4.4),
    "qwen4-max": Maker("alibaba", "alibaba", 1.5, 0.075, 4.5),
    "MiniMax-M3": Maker("minimax", "minimax", 0.3, 0.06, 1.2),
    "grok-4.7": Maker("xai", "xai", 2.0, 0.5, 6.0),
    "mistral-large-4": Maker("mistral", "mistral", 0.7, 0.07, 2.1),
}


def log_of(model: str, rule: str, host: str, began: float) -> tuple[bytes, list[tuple[int, int]]]:
    """A log of pi, and of each request its tokens, and those that the cache served."""
    whole = chat(TURNS, 12_000)
    cache, counts = CachingProvider(""), []
    for number, body in enumerate(bodies_of(whole)[:-1]):
        cache.seconds = 10.0 * number
        counts.append(cache.count_by(RULES[rule], body)[:2])
    lines: list[dict[str, Any]] = [{"type": "session", "id": "1", "cwd": "/work"}]
    waiting = iter(counts)
    for number, message in enumerate(whole["messages"][1:]):
        time = datetime.fromtimestamp(began + number, timezone.utc).isoformat()
        said: dict[str, Any] = {"role": "user", "content": message["content"]}
        if message["role"] == "assistant":
            sent, read = next(waiting)
            call = message["tool_calls"][0]
            blocks = [{"type": "toolCall", "id": call["id"], "name": "run", "arguments": {}}]
            usage = {"input": sent - read, "output": ANSWER_TOKENS, "cacheRead": read, "cacheWrite": 0}
            said = {"role": "assistant", "content": blocks, "provider": host, "model": model, "usage": usage}
        elif message["role"] == "tool":
            text = [{"type": "text", "text": message["content"]}]
            said = {"role": "toolResult", "toolCallId": message["tool_call_id"], "content": text}
        lines.append({"type": "message", "id": str(number), "timestamp": time, "message": said})
    return b"\n".join(json.dumps(line).encode() for line in lines), counts


def dollars(maker: Maker, counts: list[tuple[int, int]]) -> float:
    each = (read * maker.cached + (sent - read) * maker.input + ANSWER_TOKENS * maker.output for sent, read in counts)
    return sum(each) / 1e6


@pytest.mark.parametrize("model", MAKERS)
def test_a_log_of_a_maker_costs_what_its_page_says(model: str, tmp_path: Path) -> None:
    maker = MAKERS[model]
    log, counts = log_of(model, maker.rule, maker.host, SATURDAY)
    assert counts[-1][1] > counts[-1][0] // 2, "the cache serves the log"
    session = transcripts.read(log)
    assert {(one.model, one.host) for one in session.requests} == {(model, maker.host)}
    paid = dollars(maker, counts)
    assert costs.logged_bill(session.requests).cost == pytest.approx(paid)
    path = tmp_path / "session.jsonl"
    path.write_bytes(log)
    said = recede_command("replay", str(path), "--policy", "break_even:window=10").stdout.decode()
    assert f"you paid: {f'${paid:.2f}' if paid >= 0.01 else f'${paid:.2g}'}" in said


def test_peak_hours_of_deepseek_cost_twice() -> None:
    maker = MAKERS["deepseek-v4-pro"]
    log, counts = log_of("deepseek-v4-pro", maker.rule, maker.host, MONDAY_AT_TWO)
    found = costs.logged_bill(transcripts.read(log).requests)
    assert found.cost == pytest.approx(2 * dollars(maker, counts))


def test_a_name_of_claude_at_deepseek_costs_what_is_served_there() -> None:
    log, counts = log_of("claude-opus-4-8", "deepseek", "deepseek", SATURDAY)
    found = costs.logged_bill(transcripts.read(log).requests)
    assert found.cost == pytest.approx(dollars(MAKERS["deepseek-v4-pro"], counts))


def test_a_name_that_nobody_knows_has_no_dollars() -> None:
    log, counts = log_of("of-tomorrow", "zai", "our-host", SATURDAY)
    found = costs.logged_bill(transcripts.read(log).requests)
    assert (found.cost, found.unpriced) == (0.0, len(counts)) and found.sent_tokens == sum(sent for sent, _ in counts)


def test_other_names_cost_what_the_package_of_prices_says(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("genai_prices", reason="recede[prices] is not installed")
    found = costs.model_prices("llama-3.3-70b-versatile", host="groq", time=SATURDAY)
    assert found is not None and found.source == "the package genai-prices"
    assert found.prices[:4] == (0.59, 0.59, 0.59, 0.79)
    assert costs.model_prices("llama-3.3-70b-versatile", host="our-host") is None
    long, short = (costs.model_prices("gemini-2.5-pro", time=SATURDAY, sent_tokens=size) for size in (300_000, 9))
    assert long == short, "a row of our own comes first"
    costs._models._quoted.cache_clear()
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    assert costs.model_prices("llama-3.3-70b-versatile", host="groq", time=SATURDAY) is None
    costs._models._quoted.cache_clear()


def replayed(tmp_path: Path, logs: dict[str, str], *options: object) -> str:
    """What a replay says of logs of these models at these hosts, each begun a minute after the one before."""
    for number, (model, host) in enumerate(logs.items()):
        log, _ = log_of(model, "zai", host, SATURDAY + 60 * number)
        (tmp_path / f"{number}.jsonl").write_bytes(log)
    files = [str(tmp_path / f"{number}.jsonl") for number in range(len(logs))]
    return recede_command("replay", *files, *map(str, options)).stdout.decode()


@pytest.mark.parametrize("options", [(), ("-v",), ("--all",), ("--curve",), ("--check",), ("--html", "-")])
def test_a_replay_of_a_name_that_nobody_knows_shows_no_dollar(options: tuple[str, ...], tmp_path: Path) -> None:
    said = replayed(tmp_path, {"of-tomorrow": "our-host"}, *options)
    assert "$" not in said and " %" in said
    assert options == ("--check",) or "no price is known of of-tomorrow" in said, "a line says it without -v"


def test_a_replay_in_python_of_an_unknown_name_has_no_dollars() -> None:
    unknown, known = (transcripts.read(log_of(name, "zai", "zai", SATURDAY)[0]) for name in ("of-tomorrow", "glm-5.3"))
    replays = [costs.replay_transcript(one, ["break_even:window=5"]) for one in (unknown, known)]
    for some, has_dollars in (([replays[0]], False), ([replays[1]], True), (replays, False)):
        for one in costs.compare_costs(some):
            assert [isinstance(usd, float) for usd in (one.cost, one.cost_uncached, one.summary_cost)] == [
                has_dollars
            ] * 3
            assert one.usage.sent_chars > 0 and one.of_raw > 0
    assert replays[0].costs[1].of_raw < 0.99 and replays[0].cheapest.policy == "break_even:window=5"
    check = costs.check_bill(unknown)
    assert check is not None and check.logged.sent_tokens > 0
    assert check.logged.cost == check.estimated.cost == 0 and check.logged.unpriced == check.logged.requests
    own = {"of-tomorrow": costs.MODELS["glm-5.3"]}
    assert costs.replay_transcript(unknown, ["break_even:window=5"], own_prices=own).costs == replays[1].costs


def test_a_replay_of_a_name_that_nobody_knows_has_null_for_dollars(tmp_path: Path) -> None:
    report = json.loads(replayed(tmp_path, {"of-tomorrow": "our-host"}, "--policy", "sliding:window=5", "--json"))
    for part in (report["total"], *report["histories"]):
        for policy in part["policies"]:
            assert [policy[name] for name in ("cost", "cost_uncached", "summary_cost")] == [None] * 3
            assert policy["of_raw"] > 0 and policy["usage"]["sent_chars"] > 0


def test_a_name_that_nobody_knows_adds_no_dollars_to_others(tmp_path: Path) -> None:
    alone = replayed(tmp_path, {"glm-5.3": "zai"})
    [paid] = [line for line in alone.splitlines() if line.startswith("  you paid")]
    both = replayed(tmp_path, {"glm-5.3": "zai", "of-tomorrow": "our-host"})
    assert paid in both.splitlines() and "  no dollars 1 session: no price is known of of-tomorrow" in both


def test_a_price_of_ones_own_gives_a_name_dollars(tmp_path: Path) -> None:
    own = tmp_path / "prices.json"
    own.write_text(json.dumps({"of-tomorrow": {"input": 1.4, "cached": 0.26, "output": 4.4}}))
    said = replayed(tmp_path, {"of-tomorrow": "our-host"}, "--prices", own)
    _, counts = log_of("of-tomorrow", "zai", "our-host", SATURDAY)
    assert f"${dollars(MAKERS['glm-5.3'], counts):.2f}" in said and "no dollars" not in said


def test_a_model_that_is_free_costs_nothing(tmp_path: Path) -> None:
    found = costs.model_prices("some-maker/of-tomorrow:free")
    assert found is not None and found.prices[:4] == (0, 0, 0, 0) and found.write_1h == 0
    own = {"some-maker/of-tomorrow:free": costs.MODELS["gpt-4o"]}
    assert costs.model_prices("some-maker/of-tomorrow:free", own) is costs.MODELS["gpt-4o"]
    said = replayed(tmp_path, {"some-maker/of-tomorrow:free": "openrouter"})
    assert "at API prices: $0.00; $0.00 masked" in said and "no dollars" not in said
    table = replayed(tmp_path, {"m:free": "openrouter"}, "--all")
    shares = {row[2]: int(row[1]) for row in re.finditer(r"\$0\.00 +(\d+) %.* ([a-z_]+\S*)$", table, re.MULTILINE)}
    assert shares["raw"] == 100 and shares["sliding:window=5"] < 60, "the share of the tokens"
