"""What the proxy says that requests cost: raw and sent, against a provider that keeps a cache by the rules."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from caching_provider import CachingProvider

from recede._usage import LoggedUsage
from recede.costs import model_prices
from recede.proxy import RequestMasker
from recede.proxy._answers import AnswerReader
from recede.proxy._totals import Totals

MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM = [{"type": "text", "text": "s" * 12_000, **MARK}]
MODEL = "claude-opus-5"


def request(said: str, turns: int, chars: int, first: int = 0, model: str = MODEL) -> dict[str, Any]:
    """A request after so many turns, with the marks of Claude Code."""
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": said}]}]
    for number in range(first, first + turns):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "run", "input": {"n": number}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"{number}" + "x" * chars}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    for message in messages[-1:-4:-2]:
        message["content"][-1] |= MARK
    return {"model": model, "system": SYSTEM, "messages": messages}


def with_compactions(count: int, turns: int, chars: int) -> Iterator[dict[str, Any]]:
    """A session whose agent begins again with a summary so many times."""
    for context in range(count + 1):
        for turn in range(turns):
            said = "Go." if context == 0 else f"This session is continued; summary {context}. " + "y" * 3_000
            yield request(said, turn, chars, first=1_000 * context)


class Played:
    """Requests through the masker to one provider, and as they came to another one."""

    def __init__(self, observe: bool = False) -> None:
        self.totals = Totals(observe)
        self.clock = 1_700_000_000.0
        self.masker = RequestMasker(keep=10, clock=lambda: self.clock)
        self.sides = {"sent": CachingProvider(""), "raw": CachingProvider("")}
        self.paid = dict.fromkeys(self.sides, 0.0)

    def send(self, body: dict[str, Any], seconds: float = 5.0, answers: str | None = None) -> None:
        self.clock += seconds
        data = json.dumps(body).encode()
        masked = self.masker.mask("POST", "/v1/messages", {}, data)
        found = model_prices(body["model"])
        for side, sent in (("sent", masked.body), ("raw", data)):
            provider = self.sides[side]
            provider.seconds += seconds
            usage = provider.count(json.loads(sent))
            assert isinstance(usage, dict), usage
            if (side == "raw") is self.totals.is_observing:
                said = {"model": answers or body["model"], "usage": usage}
                reader = AnswerReader("application/json", "")
                reader.feed(json.dumps(said).encode())
                reader.end()
                self.totals.answered(masked, reader.usage, reader.model)
            if found is not None:
                names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
                self.paid[side] += found.prices.cost(*(usage[name] for name in names))

    def check(self, rel: float) -> None:
        sums = self.totals.sums
        assert sums.raw_usd == pytest.approx(self.paid["raw"], rel=rel)
        assert sums.paid_usd == pytest.approx(self.paid["sent"], rel=rel)


@pytest.mark.parametrize("observe", [False, True])
def test_while_nothing_is_masked_raw_and_sent_cost_the_same(observe: bool) -> None:
    played = Played(observe)
    for body in with_compactions(11, 9, 6_000):
        played.send(body)
    for number in range(20):  # new conversations, whose first request reads the prompt from the cache
        for turn in range(3):
            played.send(request(f"Question {number}.", turn, 3_000, first=7_000 + 10 * number))
    played.send(request("A late one.", 2, 3_000, first=9_000), seconds=900)  # nothing is in the cache
    sums = played.totals.sums
    assert sums.requests == 12 * 9 + 61 and sums.masked_requests == 0
    assert sums.raw_usd == sums.paid_usd and sums.raw_tokens == sums.sent_tokens
    played.check(rel=1e-9)
    assert "nothing masked, since it does not pay in sessions as short as these" in played.totals.sentence()


@pytest.mark.parametrize("observe", [False, True])
@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("pauses", [False, True])
def test_raw_costs_what_the_same_requests_had_cost_without_a_mask(observe: bool, count: int, pauses: bool) -> None:
    played = Played(observe)
    for number, body in enumerate(with_compactions(count, 60 if count == 0 else 45, 6_000)):
        played.send(body, seconds=900 if pauses and number % 25 == 24 else 5)
    assert played.totals.sums.masked_requests > 20 and played.paid["sent"] < 0.96 * played.paid["raw"]
    played.check(rel=0.03)


@pytest.mark.parametrize("observe", [False, True])
@pytest.mark.parametrize("system", [SYSTEM, "s" * 12_000], ids=["marked", "plain"])
def test_without_marks_on_messages_only_the_system_prompt_comes_from_the_cache(observe: bool, system: Any) -> None:
    played = Played(observe)
    for body in with_compactions(0, 60, 6_000):
        for message in body["messages"]:
            for block in message["content"]:
                block.pop("cache_control", None)
        played.send({**body, "system": system})
    assert played.totals.sums.masked_requests == 49 and played.paid["sent"] < 0.45 * played.paid["raw"]
    played.check(rel=0.01)


def test_a_proxy_that_starts_in_the_middle_of_a_session_takes_what_it_reads_as_read() -> None:
    played = Played()
    bodies = list(with_compactions(0, 60, 4_000))
    for body in bodies[:30]:
        played.send(body)
    played.totals = Totals()
    before = dict(played.paid)
    for body in bodies[30:]:
        played.send(body)
    assert played.totals.sums.raw_usd == pytest.approx(played.paid["raw"] - before["raw"], rel=0.03)


def test_a_request_that_had_been_longer_than_the_window_saved_nothing() -> None:
    """Without masks the provider would have refused it: there is no such request to save on."""
    played, masker = Played(), RequestMasker(keep=2, boundary="sliding")
    sums = []
    for turns in (10, 200, 10):
        data = json.dumps(request("Go.", turns, 6_000, model="claude-sonnet-4-5")).encode()
        masked = masker.mask("POST", "/v1/messages", {"User-Agent": "claude-cli/2.1.332"}, data)
        usage = LoggedUsage(masked.chars_after // 4, 0, 0, 0, 10)
        played.totals.answered(masked, usage, "claude-sonnet-4-5")
        sums.append(dict(vars(played.totals.sums)))
    first, second, third = sums
    assert first["raw_tokens"] > first["sent_tokens"] + 5_000
    for kind in ("tokens", "usd"):
        raw, sent = f"raw_{kind}", "sent_tokens" if kind == "tokens" else "paid_usd"
        assert second[raw] - first[raw] == pytest.approx(second[sent] - first[sent])
    assert third["raw_tokens"] - second["raw_tokens"] == first["raw_tokens"]
    assert max(raw for one in played.totals.conversations.values() for _, raw, *_ in one.points) < 200_000


@pytest.mark.parametrize(
    ("agent", "compacts", "words"),
    [("claude-cli/2.1", False, True), ("curl/8", True, True), ("curl/8", False, False)],
)
def test_an_agent_that_compacts_is_compared_with_itself_without_compaction(
    agent: str, compacts: bool, words: bool
) -> None:
    totals = Totals(compacts=compacts)
    data = json.dumps(request("Go.", 30, 6_000)).encode()
    masked = RequestMasker(keep=2, boundary="sliding").mask("POST", "/v1/messages", {"user-agent": agent}, data)
    totals.answered(masked, LoggedUsage(masked.chars_after // 4, 0, 0, 0, 10), MODEL)
    assert ("without compaction" in totals.sentence()) is words and totals.has_saved


def test_a_conversation_is_named_by_its_folder_or_model_and_its_beginning() -> None:
    data = json.dumps(request("Go.", 3, 600)).encode()
    for folder, name in (("shop", "shop"), ("", MODEL)):
        totals = Totals(folder=folder)
        totals.answered(RequestMasker().mask("POST", "/v1/messages", {}, data), None, MODEL)
        [shown] = totals.shown()["conversations"]
        assert re.fullmatch(name + r", \d\d:\d\d", shown["name"]) and "Go." not in json.dumps(shown)


def test_a_loss_is_called_one() -> None:
    totals = Totals()
    totals.sums.requests = totals.sums.masked_requests = 1
    totals.sums.raw_usd, totals.sums.paid_usd = 1.0, 1.012
    assert "about $0.01 lost on $1.00" in totals.sentence()
    totals.sums.paid_usd = 1.001
    assert "about $0.00 of $1.00" in totals.sentence()


def test_a_model_without_prices_is_reported_and_has_no_dollars(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    played = Played()
    hostile = "\x1b[2J\u202e\ud800<b>"
    for answers in ("claude-of-tomorrow", "claude-of-tomorrow", hostile, MODEL):
        played.send(request("Go.", 2, 3_000), answers=answers)
    shown = played.totals.shown()
    assert shown["unknown_models"] == ["claude-of-tomorrow", hostile]
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2 and "prices of 'claude-of-tomorrow' are not known: its requests are counted" in lines[0]
    assert 0 < played.totals.sums.paid_usd < played.paid["sent"] / 2  # of the one that is known
    for text in (*lines, played.totals.sentence()):
        assert text.isascii() and text.isprintable()
    assert "in tokens alone, without known prices: 'claude-of-tomorrow'" in played.totals.sentence()
    json.dumps(shown).encode()
    for number in range(100):
        played.send(request("Go.", 0, 0), answers=f"m{number}")
    assert len(played.totals.shown()["unknown_models"]) == 20


@pytest.mark.parametrize(
    ("upstream", "model", "input_price"),
    [
        ("https://api.deepseek.com/anthropic", "claude-opus-4-8", 0.66),  # that host serves another model by this name
        ("https://api.anthropic.com", "claude-opus-4-8", 5.0),
        ("https://api.anthropic.com", "claude-of-tomorrow", 0.0),
        ("https://api.z.ai/api/anthropic", "glm-of-tomorrow", 0.0),
        ("https://llm.example.com", "of-tomorrow", 0.0),
        ("http://127.0.0.1:4000", "of-tomorrow", 0.0),
        ("http://127.0.0.1:4000", "glm-5.3", 1.4),
    ],
)
def test_dollars_are_those_of_the_host_or_there_are_none(upstream: str, model: str, input_price: float) -> None:
    totals, masker = Totals(), RequestMasker(upstream=upstream)
    data = json.dumps({"model": model, "messages": [{"role": "user", "content": "Go."}]}).encode()
    masked = masker.mask("POST", "/v1/messages", {}, data)
    totals.answered(masked, LoggedUsage(1_000_000, 0, 0, 0, 0), model)
    is_peak = model == "claude-opus-4-8" and totals.sums.paid_usd == pytest.approx(2 * input_price)
    assert is_peak or totals.sums.paid_usd == pytest.approx(input_price)
    assert ("$" in totals.sentence()) is (input_price > 0)
    assert ("in tokens alone, without known prices" in totals.sentence()) is (input_price == 0)
