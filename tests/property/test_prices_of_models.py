"""The bound on cost of a `RequestMasker`, at the prices of the model that the request names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from caching_provider import CachingProvider
from hypothesis import example, given
from hypothesis import strategies as st

from recede.costs import MODELS
from recede.proxy import RequestMasker

MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM = [{"type": "text", "text": "s" * 12_000, **MARK}]
Turns = list[tuple[int, int]]
SIZES = st.sampled_from([0, 300, 3_000, 9_000, 40_000])
# Where the boundary moves at a read price of a tenth, and Opus 5.5 reads at a twentieth: 1.143 of raw.
FOUND: Turns = [
    (300, 0), (0, 3_000), (3_000, 0), (300, 3_000), (300, 9_000), (3_000, 0), (300, 9_000), (3_000, 0), (300, 40_000),
    (40_000, 40_000), (300, 0), (300, 3_000), (9_000, 40_000), (0, 3_000), (0, 300), (9_000, 40_000), (300, 300),
    (40_000, 0), (300, 40_000), (9_000, 3_000), (0, 3_000),
]  # fmt: skip


def requests(turns: Turns, model: str) -> Iterator[bytes]:
    """Those of a session with the marks of common clients; of each turn, characters of the call and of its result."""
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]
    for number, (said, observed) in enumerate(turns):
        sent = [{**message, "content": [dict(block) for block in message["content"]]} for message in messages]
        for message in sent[-1:-4:-2]:
            message["content"][-1] |= MARK
        yield json.dumps({"model": model, "system": SYSTEM, "messages": sent}).encode()
        use = {"type": "tool_use", "id": f"t{number}", "name": "run", "input": {"x": "y" * said}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number}" + "x" * observed}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def worst_moment(turns: Turns, named: str, paid: str, keep: int) -> float:
    """The most that all requests so far have cost at the prices of a model, as a share of what raw had cost so far."""
    masker, prices = RequestMasker(keep=keep, clock=lambda: 1_700_000_000.0), MODELS[paid].prices
    sides = CachingProvider(""), CachingProvider("")
    costs, worst = [0.0, 0.0], 0.0
    for raw in requests(turns, named):
        for side, body in enumerate((masker.mask("POST", "/v1/messages", {}, raw).body, raw)):
            usage = sides[side].count(json.loads(body))
            assert isinstance(usage, dict), usage
            read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
            costs[side] += prices.cost(usage["input_tokens"], read, written, 0)
        worst = max(worst, costs[0] / costs[1])
    return worst


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-opus-5", "claude-fable-5-1"])
@given(turns=st.lists(st.tuples(SIZES, SIZES), min_size=8, max_size=24), keep=st.integers(0, 3))
@example(turns=FOUND, keep=1)
def test_it_holds_for_the_model_of_the_request(model: str, turns: Turns, keep: int) -> None:
    assert worst_moment(turns, model, model, keep) <= 1.1 + 1e-3  # the provider counts whole tokens


def test_it_would_not_at_the_prices_of_another_model() -> None:
    assert worst_moment(FOUND, "a-model-of-tomorrow", "claude-opus-5-5", keep=1) > 1.12
