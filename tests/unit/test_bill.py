"""Replays held against logs: calibration, prices by model, what was paid, and the check of one against the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recede
from recede import costs, transcripts
from recede.costs import Bill, Calibration, Prices
from recede.transcripts import LoggedRequest, LoggedUsage, Transcript
from support import assistant, call, result, user

OPUS = "claude-opus-4-5-20251101"


def session(
    steps: int = 20,
    *,
    prefix: int = 30_000,
    rate: float = 0.4,
    reasoning: int = 0,
    answer_tokens: int = 40,
    cold: tuple[int, ...] = (),
    model: str = OPUS,
) -> Transcript:
    """A session whose provider counts a straight line: calls of 100 characters, results of 1,000 to 3,000."""
    messages = [user("x" * 500)]
    requests = []
    sent = before = 0
    for step in range(steps):
        sent = prefix + round(rate * recede.count_chars(messages)) + step * reasoning
        read = 0 if step in (0, *cold) else before
        requests.append(
            LoggedRequest(len(messages), model, 60.0 * step, LoggedUsage(0, read, sent - read, 0, answer_tokens))
        )
        before = sent
        messages.append(call(str(step), arguments='{"command": "' + "c" * 83 + '"}'))
        messages.append(result(str(step), "r" * (1_000 + 100 * (step * 7 % 20))))
    return Transcript(messages, steps, "claude_code", "made up", requests=tuple(requests))


def with_usages(made: Transcript, usages: list[LoggedUsage]) -> Transcript:
    requests = (one._replace(usage=usage) for one, usage in zip(made.requests, usages, strict=True))
    return Transcript(made.messages, made.turns, made.format, made.source, requests=tuple(requests))


# Calibration


def test_a_straight_line_is_found_exactly() -> None:
    found = costs.calibrate(session())
    assert found is not None
    assert found.prefix_tokens == pytest.approx(30_000, abs=2)
    assert found.tokens_per_char == pytest.approx(0.4, rel=1e-4)
    assert found.error < 1e-4
    assert (found.has_cache, found.warm_tokens, found.misses) == (True, 0, {})


def test_a_few_requests_off_the_line_do_not_move_it() -> None:
    made = session(40)
    usages = [one.usage for one in made.requests if one.usage is not None]
    for place in (7, 19, 20):
        usages[place] = usages[place]._replace(written_tokens=usages[place].written_tokens + 60_000)
    found = costs.calibrate(with_usages(made, usages))
    assert found is not None
    assert found.prefix_tokens == pytest.approx(30_000, rel=0.001)
    assert found.tokens_per_char == pytest.approx(0.4, rel=0.01)


@pytest.mark.parametrize("reasoning", [0, 7, 300])
def test_two_requests_that_both_lines_fit_are_counted_by_their_characters(reasoning: int) -> None:
    found = costs.calibrate(session(2, reasoning=reasoning, answer_tokens=43 + reasoning))
    assert found is not None
    assert (found.has_hidden, found.error < 1e-12) == (False, True)


def test_reasoning_that_the_log_omits_counts_by_output_tokens() -> None:
    # Answers of 100 characters are 40 tokens by the line; 300 more are reasoning, which later requests carry.
    found = costs.calibrate(session(reasoning=300, answer_tokens=340))
    assert found is not None
    assert found.has_hidden
    assert found.prefix_tokens == pytest.approx(30_000, rel=0.002)
    assert found.tokens_per_char == pytest.approx(0.4, rel=0.02)
    assert found.error < 0.001


def test_without_usage_there_is_no_calibration() -> None:
    made = session(3)
    requests = tuple(one._replace(usage=None) for one in made.requests)
    assert costs.calibrate(Transcript(made.messages, 3, "messages", "x", requests=requests)) is None
    assert costs.calibrate(Transcript(made.messages, 3, "messages", "x")) is None


@pytest.mark.parametrize("steps", [1, 2])
def test_few_requests_give_a_usable_line(steps: int) -> None:
    found = costs.calibrate(session(steps))
    assert found is not None
    assert found.prefix_tokens == pytest.approx(30_000, rel=0.01)
    assert 0.2 < found.tokens_per_char < 0.5


def test_a_prefix_is_never_negative() -> None:
    found = costs.calibrate(session(prefix=-150))
    assert found is not None
    assert found.prefix_tokens == 0
    assert 0.3 < found.tokens_per_char < 0.45


def test_a_request_that_read_less_than_was_there_is_a_miss() -> None:
    found = costs.calibrate(session(cold=(5, 11)))
    assert found is not None
    assert {messages: share for messages, (_, share) in found.misses.items()} == {11: 0.0, 23: 0.0}


@pytest.mark.parametrize(("share", "is_miss"), [(0.94, True), (0.96, False)])
def test_a_request_that_read_nearly_all_is_no_miss(share: float, is_miss: bool) -> None:
    made = session()
    usages = [one.usage for one in made.requests if one.usage is not None]
    read = round(share * usages[6].sent_tokens)
    usages[7] = usages[7]._replace(cached_tokens=read, written_tokens=usages[7].sent_tokens - read)
    found = costs.calibrate(with_usages(made, usages))
    assert found is not None
    assert list(found.misses) == [made.requests[7].messages] * is_miss


# Replay by a calibration


def test_a_calibrated_replay_counts_the_tokens_of_the_log() -> None:
    made = session(reasoning=300, answer_tokens=340, cold=(5,))
    played = costs.replay(made.messages, ["raw"], calibration=costs.calibrate(made)).policies[0].turns
    for turn, request in zip(played, made.requests, strict=True):
        assert request.usage is not None
        assert turn.view_tokens == pytest.approx(request.usage.sent_tokens, rel=0.001)
        assert turn.cached_chars / 4 == pytest.approx(request.usage.cached_tokens, rel=0.002, abs=50)
        assert turn.cached_chars + turn.written_chars == turn.view_chars
        assert turn.answer_chars == 4 * 340


def test_what_is_too_short_for_the_cache_is_told_by_the_tokens_of_the_log() -> None:
    made = session(4, prefix=900, rate=0.8, model="gpt-4o-mini")
    first = costs.replay_transcript(made, ["raw"]).policies[0].turns[0]
    assert first.view_tokens == pytest.approx(1_300, abs=3)
    assert first.written_chars == first.view_chars, "406 tokens at four characters each would not be cached"


def test_a_miss_is_a_miss_under_every_policy() -> None:
    made = session(40, cold=(30,))
    found = costs.calibrate(made)
    masks = "stepped:window=5,chunk=5", "break_even:window=5"
    _, *others = costs.replay(made.messages, masks, calibration=found).policies
    for policy in others:
        assert policy.turns[30].cached_chars == 0
        assert policy.turns[29].cached_chars > 0


def test_what_is_within_the_prefix_is_served_whatever_is_masked() -> None:
    found = Calibration(10_000, 0.5, misses={9: (4_000, 0.1)})
    assert found.served_chars(9, 1_000_000) == 8_000
    assert found.served_chars(11, 1_000_000) == 1_000_000
    assert Calibration(10_000, 0.5, misses={9: (40_000, 0.4)}).served_chars(9, 100_000) == 40_000


def test_the_first_request_reads_what_another_session_wrote() -> None:
    made = session(4)
    usages = [one.usage for one in made.requests if one.usage is not None]
    usages[0] = usages[0]._replace(cached_tokens=20_000, written_tokens=usages[0].written_tokens - 20_000)
    made = with_usages(made, usages)
    replayed = costs.replay(made.messages, ["sliding:window=1"], calibration=costs.calibrate(made))
    assert [policy.turns[0].cached_chars for policy in replayed.policies] == [80_000, 80_000]


def test_a_provider_without_a_cache_serves_nothing() -> None:
    made = session()
    usages = [LoggedUsage(one.usage.sent_tokens, 0, 0, 0, 9) for one in made.requests if one.usage is not None]
    made = with_usages(made, usages)
    usage = costs.replay(made.messages, ["raw"], calibration=costs.calibrate(made)).policies[0].usage
    assert (usage.cached_chars, usage.written_chars) == (0, 0)


def test_dropped_answers_take_their_reasoning_along() -> None:
    made = session(30, reasoning=1_000, answer_tokens=1_040)
    policies = ["keep_last:messages=4", "summary:every=10,tail=5"]
    raw, kept, summarized = costs.replay(made.messages, policies, calibration=costs.calibrate(made)).policies
    assert raw.turns[-1].view_tokens > 30_000 + 29 * 1_000
    assert kept.turns[-1].view_tokens < 30_000 + 3 * 1_000 + 4_000
    assert summarized.turns[-1].summarized_turns == 20
    assert summarized.turns[-1].view_tokens < 30_000 + 9 * 1_000 + 9 * 1_300 + 2_000


def test_requests_before_a_compacted_history_ends_are_none() -> None:
    made = session(10)
    found = costs.calibrate(made)
    assert found is not None
    played = costs.replay(made.messages, ["raw"], calibration=found._replace(shown=9)).policies[0].turns
    assert [turn.messages for turn in played] == [9, 11, 13, 15, 17, 19]


# Models and prices


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4.5", "claude-opus-4-5"),
        ("anthropic/claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("litellm_proxy/claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("anthropic:claude-opus-5", "claude-opus-5"),
        ("bedrock:global.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("global.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("claude-3-5-sonnet-20241022", "claude-3-5-sonnet"),
        ("claude-opus-4-7[1m]", "claude-opus-4-7"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("openai/gpt-5.4", "gpt-5.4"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("gemini-3-pro-preview", "gemini-3-pro"),
        ("GPT-5.5", "gpt-5.5"),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5:beta", "claude-sonnet-4-5"),
        ("anthropic/claude-4.5-opus-20251124", "claude-opus-4-5"),
        ("claude-sonnet-4-0", "claude-sonnet-4"),
    ],
)
def test_a_model_is_found_whatever_is_written_around_its_name(name: str, key: str) -> None:
    assert costs.model_prices(name) is costs.MODELS[key]


@pytest.mark.parametrize("name", ["", "gpt-5.4-colossal", "claude", "opus", "llama-4-maverick", "gpt-5.4/"])
def test_the_prices_of_an_unknown_model_are_not_guessed(name: str) -> None:
    assert costs.model_prices(name) is None


def test_prices_of_models_are_consistent() -> None:
    for name, row in costs.MODELS.items():
        prices = row.prices.checked()
        assert prices.cached <= prices.input <= prices.write <= row.write_1h, name
        assert prices.output > prices.input, name
        assert recede.Provider.of(row.provider), name
        assert row.source, name
        assert len(row.date) == len("2026-06"), name
        assert costs.model_prices(name) is row


def test_own_prices_come_first(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(
        json.dumps(
            {"claude-opus-4-5": {"input": 1, "output": 2, "provider": "anthropic"}, "ours": {"input": 1, "output": 9}}
        )
    )
    own = costs.read_prices(path)
    assert own["ours"].prices == Prices(1, 1, 1, 9, 1_024)
    found = costs.model_prices(OPUS, own)
    assert found is not None
    assert found.prices.output == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "prices cannot be read"),
        ("[]", "an object for each model"),
        ('{"m": 7}', "m: prices must be an object, not int"),
        ('{"m": {"input": 1}}', "m: 'output' is missing"),
        ('{"m": {"input": 1, "output": 2, "price": 3}}', "m: there is no price 'price'"),
        ('{"m": {"input": "1", "output": 2}}', "m: the price 'input' must be a number, not str"),
        ('{"m": {"input": 1, "output": -2}}', "m: the price 'output' must be a number from 0"),
        ('{"m": {"input": 1, "output": 2, "write_1h": true}}', "m: the price 'write' must be a number"),
        ('{"m": {"input": 1, "output": 2, "provider": "x"}}', "m: provider must be one of"),
    ],
)
def test_a_file_of_prices_that_is_wrong_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"prices\.json") as raised:
        costs.read_prices(path)
    assert message in str(raised.value)


def test_a_file_of_prices_may_be_toml(tmp_path: Path) -> None:
    pytest.importorskip("tomllib")
    path = tmp_path / "prices.toml"
    path.write_text('["our.model"]\ninput = 1.5\noutput = 6\nwrite = 2\nsource = "contract"\n')
    assert costs.read_prices(path)["our.model"] == costs.ModelPrices(
        Prices(1.5, 1.5, 2, 6, 1_024), 2, "openai", "", "contract"
    )


# What was paid


def logged(model: str | None, *usage: int) -> LoggedRequest:
    return LoggedRequest(1, model, None, LoggedUsage(*usage))


def test_each_request_is_billed_by_its_own_model_and_time_to_live() -> None:
    found = costs.logged_bill(
        [
            logged(OPUS, 1, 10, 100, 1_000, 10_000),
            logged("gpt-5.4", 1, 10, 0, 0, 100),
            LoggedRequest(3, OPUS, None, None),
        ]
    )
    opus = 1 * 5 + 10 * 0.5 + 100 * 6.25 + 1_000 * 10 + 10_000 * 25
    assert found == Bill(2, 2, 20, 1_100, 10_100, pytest.approx((opus + 2.5 + 2.5 + 1_500) / 1e6), 0)


def test_an_unpriced_request_is_counted_unless_there_is_a_fallback() -> None:
    requests = [logged("mystery", 1, 2, 3, 4, 5), logged(None, 1, 0, 0, 0, 0)]
    assert costs.logged_bill(requests) == Bill(2, 2, 2, 7, 5, 0.0, 2)
    assert costs.logged_bill(requests, fallback=Prices(1, 1, 1, 1)) == Bill(2, 2, 2, 7, 5, pytest.approx(16e-6), 0)


def priced(*requests: LoggedRequest, format: str = "claude_code") -> costs.SessionPrices:
    return costs.session_prices(Transcript([], 0, format, "x", requests=requests))


def test_prices_of_a_session_with_two_models_are_what_was_paid_on_average() -> None:
    requests = logged(OPUS, 100, 1_000, 0, 0, 10), logged("claude-sonnet-4-5", 300, 0, 50, 0, 30)
    found = priced(*requests)
    assert found.models == (OPUS, "claude-sonnet-4-5")
    assert found.prices[:4] == pytest.approx(((100 * 5 + 300 * 3) / 400, 0.5, 3.75, (10 * 25 + 30 * 15) / 40))
    bill = costs.logged_bill(requests)
    tokens = bill.input_tokens, bill.cached_tokens, bill.written_tokens, bill.output_tokens
    assert bill.cost == pytest.approx(sum(t * p for t, p in zip(tokens, found.prices, strict=False)) / 1e6)


def test_writes_for_an_hour_have_their_own_price_and_provider() -> None:
    found = priced(logged(OPUS, 0, 0, 100, 300, 10))
    assert found.prices.write == pytest.approx((100 * 6.25 + 300 * 10) / 400)
    assert found.provider == "anthropic_1h"
    assert priced(logged(OPUS, 0, 0, 100, 101, 10)).provider == "anthropic_1h"
    assert priced(logged(OPUS, 0, 0, 100, 100, 10)).provider == "anthropic"


@pytest.mark.parametrize(("format", "provider"), [("codex", "openai"), ("gemini", "gemini"), ("pi", "anthropic")])
def test_what_a_log_does_not_say_is_assumed_openly(format: str, provider: str) -> None:
    nothing = priced(format=format)
    assert nothing[:3] == (costs.PRESETS[provider], provider, ())
    assert nothing.assumed == (f"no model is logged: priced as {provider}",)
    unknown = priced(logged("mystery", 1, 0, 0, 0, 0), format=format)
    assert unknown[:3] == (costs.PRESETS[provider], provider, ("mystery",))
    assert unknown.assumed == (f"the model mystery has no known price: shares are at the prices of {provider}",)


# The check


def test_a_session_that_is_a_straight_line_is_estimated_exactly() -> None:
    made = session(30, cold=(9,))
    found = costs.check_bill(made)
    assert found is not None
    assert found.logged.requests == found.estimated.requests == 30
    assert found.input_error < 0.0005
    assert found.second_half_error is not None
    assert found.second_half_error < 0.001
    for kind in ("cached_tokens", "written_tokens", "output_tokens", "cost"):
        assert getattr(found.estimated, kind) == pytest.approx(getattr(found.logged, kind), rel=0.002), kind
    assert found.notes == (
        "requests that found less in the cache than the request before had sent, without a pause: 1",
    )


def test_the_second_half_is_predicted_from_the_first_alone() -> None:
    made = session(20)
    usages = [one.usage for one in made.requests if one.usage is not None]
    later = [usage._replace(written_tokens=usage.written_tokens + 20_000) for usage in usages[10:]]
    found = costs.check_bill(with_usages(made, usages[:10] + later))
    assert found is not None
    assert found.second_half_error == pytest.approx(20_000 * 10 / sum(u.sent_tokens for u in later), rel=0.01)
    few = costs.check_bill(session(5))
    assert few is not None
    assert few.second_half_error is None


def test_reasons_are_named() -> None:
    made = session(8)
    usages = [one.usage for one in made.requests if one.usage is not None]
    usages[4] = LoggedUsage(9_000, 0, 0, 0, 40)
    requests = with_usages(made, usages).requests
    aborted = LoggedRequest(4, OPUS, None, LoggedUsage(5, 0, 0, 0, 1))
    found = costs.check_bill(Transcript(made.messages, 8, "pi", "x", requests=(*requests, aborted)))
    assert found is not None
    assert found.notes[-2:] == (
        "requests much smaller than the one before, as after a compaction that the log hides: 2",
        "answers that were billed and are not in the history: 1",
    )


def test_by_time_stamps_alone_a_pause_makes_the_cache_cold() -> None:
    made = session(20)
    late = tuple(
        one._replace(time=(one.time or 0) + (400 if place >= 8 else 0)) for place, one in enumerate(made.requests)
    )
    paused = Transcript(made.messages, 20, "claude_code", "x", requests=late)
    logged, timed, never = (costs.check_bill(paused, pauses=pauses) for pauses in ("logged", "timed", "none"))
    assert logged is not None
    assert timed is not None
    assert logged == never
    assert logged.notes == ("pauses longer than the cache is kept, after which it was kept: 1",)
    lost = made.requests[7].usage
    assert lost is not None
    assert logged.estimated.cached_tokens - timed.estimated.cached_tokens == pytest.approx(lost.sent_tokens, rel=0.01)
    with pytest.raises(ValueError, match="pauses must be one of logged, timed, none, not 'never'"):
        costs.check_bill(paused, pauses="never")


def test_the_cache_is_that_of_the_provider_unless_another_is_named() -> None:
    made = session(20)
    by_model = costs.replay_transcript(made, ["sliding:window=2"])
    ideal = costs.replay_transcript(made, ["sliding:window=2"], cache="ideal")
    other = costs.replay_transcript(made, ["sliding:window=2"], prices=costs.SessionPrices(Prices(), "openai"))
    served = [one.policies[1].usage.cached_chars for one in (by_model, ideal, other)]
    assert served[0] < served[2] <= served[1]


def test_without_usage_pauses_come_from_time_stamps() -> None:
    made = session(12)
    bare = tuple(one._replace(usage=None, time=1_000.0 * place) for place, one in enumerate(made.requests))
    untimed = Transcript(made.messages, 12, "claude_code", "x", requests=bare)
    options = {"system_chars": 400_000}
    paused, never = (costs.replay_transcript(untimed, ["raw"], pauses=p, **options) for p in ("logged", "none"))
    assert paused.policies[0].usage.cached_chars == 0 < never.policies[0].usage.cached_chars


def test_a_session_without_usage_cannot_be_checked() -> None:
    assert costs.check_bill(Transcript([user("Hi."), assistant("Yes.")], 1, "messages", "x")) is None


def test_each_context_is_replayed_alone() -> None:
    made = session(6)
    compacted = Transcript(
        made.messages,
        6,
        "codex",
        "x",
        requests=made.requests,
        compactions=(transcripts.Compaction(7, [user("So far.")]),),
    )
    played = costs.replay_transcript(compacted, ["raw"])
    assert [turn.messages for turn in played.policies[0].turns] == [1, 3, 5, 7, 9, 11]
    assert played.prices == costs.session_prices(compacted).prices
    unlogged = Transcript(made.messages, 6, "codex", "x", compactions=compacted.compactions)
    turns = costs.replay_transcript(unlogged, ["raw"], system_chars=0).policies[0].turns
    assert [turn.messages for turn in turns] == [1, 3, 5, 7, 9, 11]
    assert turns[3].view_chars == len("So far.")
