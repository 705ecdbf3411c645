"""The core and its oracle give the same answer on every input: results, errors and offsets."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import published
import pytest
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    block_options,
    json_values,
    mask_options,
    mutated,
    provider_messages,
    reduce_options,
    spelled,
    stage_options,
)

import recede
from recede.costs import CACHES, Prices
from recede.costs._prices import cache_facts, cache_of
from recede.reduction._policy import compiled, replay_policy
from support import ENGINES, OF_RULES, dumps, engine_module, loads, outcome, tool_result, tool_use, user, using

pytestmark = pytest.mark.skipif(len(ENGINES) < 2, reason="recede._core is not built: make build")

History = list[dict[str, Any]]


def assert_agree(function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    with using("oracle"):
        expected = outcome(function, *arguments, **options)
    with using("core"):
        assert outcome(function, *arguments, **options) == expected


@given(history=histories(), options=reduce_options())
def test_reduce(history: History, options: dict[str, Any]) -> None:
    assert_agree(published.reduce, history, **options)


@given(history=histories(), options=reduce_options(), data=st.data())
def test_reduce_json(history: History, options: dict[str, Any], data: Any) -> None:
    text = data.draw(spelled(history))
    assert_agree(published.reduce_json, text, **options)
    assert_agree(published.reduce_json, f'{{"x":[],"input" :{text} }}', **options)


@given(history=histories(), options=mask_options(), data=st.data())
def test_mask_observations(history: History, options: dict[str, Any], data: Any) -> None:
    assert_agree(published.mask_observations, history, **options)
    assert_agree(published.mask_observations_json, data.draw(spelled(history)), **options)


@given(history=provider_messages(), options=mask_options(), data=st.data())
def test_types_that_few_histories_have(history: History, options: dict[str, Any], data: Any) -> None:
    text = data.draw(spelled(history))
    assert_agree(published.mask_observations, history, **options)
    assert_agree(published.mask_observations_json, text, **options)
    assert_agree(published.reduce, history, max_input_chars=200)
    assert_agree(published.reduce_json, text, max_input_chars=200)
    assert_agree(recede.check_pairs, history)
    assert_agree(recede.repair_pairs, history)
    masked = published.mask_observations(history, **options)
    in_bytes = published.mask_observations_json(dumps(history), **options)
    assert (loads(in_bytes.json), in_bytes.chars_after) == (masked.messages, masked.chars_after)
    image_chars = options.get("image_chars", 6_400)
    assert recede.count_chars(masked.messages, image_chars=image_chars) == masked.chars_after


@given(history=histories(), options=block_options(), data=st.data())
def test_block_masker(history: History, options: dict[str, Any], data: Any) -> None:
    assert_agree(recede.designs.mask_old_observations, history, **options)
    assert_agree(recede.designs.mask_old_observations_json, data.draw(spelled(history)), **options)


@given(history=histories(), options=stage_options(), image_chars=st.integers(0, 9_999))
def test_the_other_functions(history: History, options: dict[str, Any], image_chars: int) -> None:
    for function in (recede.designs.summarize_history, recede.designs.truncate_history):
        assert_agree(function, history, **options, image_chars=image_chars)
    assert_agree(recede.check_pairs, history)
    assert_agree(recede.repair_pairs, history)
    assert_agree(recede.count_chars, history, image_chars=image_chars)


PRICES = st.sampled_from([0.0, 0.01, 0.3, 1.0])
SUMMARIES = st.tuples(
    st.none() | st.tuples(st.integers(3, 6), st.integers(1, 4)),
    st.tuples(PRICES, PRICES, PRICES, PRICES),
    st.integers(1, 3),
    st.none() | st.tuples(st.integers(0, 300), st.integers(0, 50)),
)


@given(
    history=histories(max_turns=9, max_parallel_calls=3), options=mask_options(), summaries=SUMMARIES, data=st.data()
)
def test_replay_under_any_policy_that_masks_or_truncates(
    history: History, options: dict[str, Any], summaries: Any, data: Any
) -> None:
    if options.get("cold") is True:  # in a replay there is no request that is being made
        options = {**options, "cold": [1, 3]}
    window = {name: options[name] for name in ("keep_messages", "keep_turns", "keep_results") if name in options}
    # No policy of a replay has `min_masked_chars`, or cuts beside summaries, so the engines need not agree on these.
    kept = set(options) - {"min_masked_chars", "cache_breakpoint", "max_result_chars"}
    any_gain = {name: options[name] for name in sorted(kept)}
    text = data.draw(spelled(history)).encode("utf-8", "surrogatepass")

    def replayed(name: str) -> Any:
        engine = engine_module(name)
        cache = cache_facts(CACHES["anthropic"], Prices(), None, 12_000)
        policies = [published.policy_of("mask", options, engine=engine), compiled(engine, "truncate", window)]
        pins = options.get("cache_breakpoint") == "boundary"
        policies.append(replay_policy(engine, "mask", any_gain, summaries=summaries, pins_boundary=pins))
        of_dicts = engine.replay(history, policies, 6_400, cache)
        assert engine.replay_json(text, True, policies, 6_400, cache) == of_dicts
        return of_dicts

    assert replayed("core") == replayed("oracle")


@pytest.mark.parametrize("cache", OF_RULES)
def test_what_the_cost_bound_permits_in_long_sessions(cache: Any) -> None:
    """Many requests have been paid for, which drawn histories seldom have; the boundary may be inside a message."""
    rng = random.Random(cache)
    for _ in range(2):
        history: History = [user("Go.")]
        sizes = rng.choice([[10, 300, 3_000, 9_000], [10, 100, 300, 600]])
        for number in range(40):
            ids = [f"{number}.{place}" for place in range(rng.choice([1, 1, 2]))]
            calls = tool_use(*ids, name=rng.choice(["run", "read"]))
            text = {"type": "text", "text": "y" * rng.choice(sizes[:3])}
            history.append({**calls, "content": [text, *calls["content"]]})
            history.append(user([tool_result(one, "x" * rng.choice(sizes)) for one in ids]))
        cold = rng.sample([place for place, one in enumerate(history) if one["role"] == "assistant"], 5)
        window, max_overcost, breakpoint = (
            rng.choice([0, 1, 2]),
            rng.choice([0.02, 0.1, 0.5]),
            rng.choice(["keep", "boundary"]),
        )
        options: dict[str, Any] = {
            "provider": OF_RULES[cache],
            "cache_breakpoint": breakpoint,
            "max_overcost": max_overcost,
            "keep_results": window,
        }
        options |= {"keep_by_tool": rng.choice([{}, {"read": 5}])}
        for is_cold in (sorted(cold), True):
            assert_agree(published.mask_observations, history, boundary="break_even", cold=is_cold, **options)
        policy = f"hybrid:window={rng.choice([2, 99])},at=break_even,tail=3,boundary=break_even"
        policy += f",cache_breakpoint={options['cache_breakpoint']},max_overcost={options['max_overcost']}"
        prices: dict[str, Any] = {"summary_prices": Prices(input=0.3, output=1.5), "system_chars": 0}
        assert_agree(recede.costs.replay, history, [policy], cache=cache_of(OF_RULES[cache]), **prices)


@given(history=histories(max_turns=2, max_parallel_calls=3), options=mask_options(), data=st.data())
def test_faulty_bytes(history: History, options: dict[str, Any], data: Any) -> None:
    raw = data.draw(spelled(history)).encode("utf-8", "surrogatepass")
    raw = data.draw(mutated(raw))
    assert_agree(published.mask_observations_json, raw, **options)
    assert_agree(published.mask_observations_json, b'{"messages":' + raw + b"}", **options)


@given(data=st.data())
def test_faulty_text(data: Any) -> None:
    history = data.draw(histories(max_turns=1, max_parallel_calls=2))
    text = data.draw(spelled(history))
    start = data.draw(st.integers(0, len(text)))
    piece = data.draw(st.sampled_from(["\ud800", "\udc00", "\\ud800", "é", "\ufeff", '"', "\x1f", "x"]))
    assert_agree(published.mask_observations_json, text[:start] + piece + text[start:], keep_results=0)


@given(
    raw=st.binary(max_size=40) | st.text(alphabet='[]{}",:\\u0123456789-+.eEtrufalsn \n', max_size=40).map(str.encode)
)
def test_any_bytes(raw: bytes) -> None:
    assert_agree(published.reduce_json, raw, max_input_chars=0)
    assert_agree(published.reduce_json, b'[{"x":' + raw + b"}]", max_input_chars=0)
    assert_agree(published.reduce_json, b'[{"content":' + raw + b"}]", max_input_chars=0)


def _wrong(history: History, data: Any) -> Any:
    """The history with one value replaced by another of any type."""
    value: Any = history
    path: list[Any] = []
    while isinstance(value, (dict, list)) and value and (not path or data.draw(st.integers(0, 3))):
        key = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        path.append(key)
        value = value[key]
    if not path:
        return data.draw(json_values())
    holder: Any = history
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = data.draw(json_values())
    return history


@given(history=histories(max_turns=2, max_parallel_calls=3), options=mask_options(), data=st.data())
def test_wrong_shapes(history: History, options: dict[str, Any], data: Any) -> None:
    wrong = _wrong(history, data)
    assert_agree(published.mask_observations, wrong, **options)
    assert_agree(published.mask_observations_json, dumps(wrong), **options)
    assert_agree(recede.check_pairs, wrong)
    assert_agree(recede.repair_pairs, wrong)
    assert_agree(published.reduce, wrong, max_input_chars=100)


@given(wrong=json_values())
def test_any_value(wrong: Any) -> None:
    assert_agree(published.reduce, wrong, max_input_chars=0)
    assert_agree(published.reduce, [wrong], max_input_chars=0)
    assert_agree(published.reduce_json, dumps(wrong), max_input_chars=0)
    assert_agree(published.reduce_json, dumps([{"role": "tool", "content": wrong}]), max_input_chars=0)
    assert_agree(recede.count_chars, [{"type": "x_call", "call_id": wrong, "arguments": wrong, "name": wrong}])


@given(
    text=st.text(max_size=200) | st.text(alphabet="[]observatin mked—chr123 \n", max_size=60),
    limit=st.none() | st.integers(0, 99),
    template=st.sampled_from(
        [None, "gone {chars}", "{tool}a{id}b{chars}", "{chars}{lines}x", "[{lines}]", "-\n{turn}"]
    ),
)
def test_mask_observation(text: str, limit: int | None, template: str | None) -> None:
    assert_agree(recede.designs.mask_observation, text, max_observation_chars=limit, placeholder=template)


class Odd:
    """Something that is no JSON."""


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("a", 1),
        {1: "x"},
        {None: None},
        {("a",): 5},
        b"bytes",
        {"a": {1, 2}},
        Odd(),
        [Odd()],
        1j,
        float("nan"),
        10**99,
    ],
    ids=lambda value: type(value).__name__,
)
def test_python_values_that_are_no_json(arguments: Any) -> None:
    for message in (
        {"type": "x_call", "call_id": "1", "arguments": arguments},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": arguments}]},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": arguments, "arguments": arguments}}]},
        {"role": arguments, "type": arguments, "pairRole": arguments},
        {"type": "x_call_output", "call_id": arguments, "output": arguments},
        {"role": "tool", "tool_call_id": arguments, "content": arguments},
        {arguments if isinstance(arguments, (bytes, int, complex)) else 5: 1, "role": "user"},
    ):
        for function in (recede.count_chars, recede.check_pairs, recede.designs.truncate_history):
            assert_agree(function, [message])
