"""What the break-even rule promises: stable beginnings, and a bound on what it can cost."""

from __future__ import annotations

from typing import Any

import published
from generated import histories
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import mask_options

import recede
from support import priced, turns_of

History = list[dict[str, Any]]
PRICES = st.tuples(st.sampled_from([0.05, 0.1, 0.3, 1]), st.sampled_from([1, 1.25, 2, 6, 50])).map(
    lambda pair: recede.costs.Prices(cached=pair[0], write=max(pair), output=0, min_cached_tokens=0)
)


@given(
    sizes=st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 3_000)), max_size=40),
    window=st.integers(0, 4),
    tail=st.integers(1, 3),
    prices=PRICES,
    price=st.sampled_from([0, 0.1, 3, 100]),
    chars=st.sampled_from([1, 100, 2_000]),
)
@example([(0, 3_000)] * 20, 0, 1, recede.costs.Prices(cached=0.3, write=0.3, output=0, min_cached_tokens=0), 100, 100)
def test_summaries_that_pay_cost_no_more_than_reading_what_they_replace(
    sizes: list[tuple[int, int]], window: int, tail: int, prices: recede.costs.Prices, price: float, chars: int
) -> None:
    """The calls, and what is written behind a summary, are paid by what was sent without need, and raw sent too."""
    names = [f"summary:every=break_even,tail={tail}"]
    names.append(f"hybrid:window={window},at=break_even,tail={tail},boundary=break_even")
    calls = recede.costs.Prices(input=price, output=price)
    options: dict[str, Any] = {"prices": prices, "summary_prices": calls, "summary_chars": chars}
    options |= {"cache": "ideal", "system_chars": 0}
    raw, summary, hybrid = recede.costs.replay(turns_of(sizes), names, **options).costs
    slack = 1 + 1e-9
    assert summary.cost <= slack * 2 * raw.cost
    # The masks of the hybrid are paid for likewise.
    assert hybrid.cost <= slack * 3 * raw.cost


@given(history=histories(), options=mask_options(), read=st.sampled_from([0.1, 0.5, 1]))
def test_a_beginning_has_the_boundary_that_it_had_when_it_was_the_whole(
    history: History, options: dict[str, Any], read: float
) -> None:
    options = {name: value for name, value in options.items() if name not in ("mask_chunk", "cold")}
    options |= {"boundary": "break_even", "provider": priced("ideal", read)}
    whole = published.mask_observations(history, **options).boundary_moves
    for length in range(len(history)):
        found = published.mask_observations(history[:length], **options).boundary_moves
        # The last one may be of a request that was being made, and was not made after all.
        assert found == whole[: len(found)] or found[:-1] == whole[: len(found) - 1]


@given(history=histories(), options=mask_options())
def test_its_view_lies_between_raw_and_sliding(history: History, options: dict[str, Any]) -> None:
    plain = {name: value for name, value in options.items() if name not in ("mask_chunk", "boundary")}
    plain = {name: value for name, value in plain.items() if not name.startswith(("cache", "provider"))}
    sliding = published.mask_observations(history, **plain, boundary="sliding")
    paying = published.mask_observations(history, **plain, boundary="break_even")
    assert sliding.chars_after <= paying.chars_after <= paying.chars_before
    assert paying.boundary <= sliding.boundary or not sliding.masked_count
