"""No cache mark is ever lost, whatever is masked or cut."""

from __future__ import annotations

import json
from typing import Any

import published
import pytest
from generated.shapes import SHAPES
from hypothesis import given
from hypothesis import strategies as st
from marks import marked_histories, marks_of
from strategies import mask_options, reduce_options, spelled

from support import ENGINES, loads, outcome, using

SHAPE = st.sampled_from([*["anthropic"] * 4, *SHAPES])
NAMES = ("cache_control", "prompt_cache_breakpoint")
OPTIONS = st.one_of(
    st.tuples(st.just("mask_observations"), mask_options()), st.tuples(st.just("reduce"), reduce_options())
)


@pytest.mark.parametrize("engine_name", ENGINES)
@pytest.mark.parametrize("field", NAMES)
@given(shape=SHAPE, call=OPTIONS, data=st.data())
def test_each_block_keeps_its_mark(
    engine_name: str, field: str, shape: str, call: tuple[str, dict[str, Any]], data: Any
) -> None:
    name, options = call
    history = data.draw(marked_histories(shape, names=(field,)))
    before = marks_of(history, field)
    with using(engine_name):
        view = getattr(published, name)(history, **options)
        # The handle of a result that is JSON hashes its bytes; of a dict the compact ones.
        names_handle = "{handle}" in (options.get("placeholder") or "")
        compact = json.dumps(history, separators=(",", ":"), ensure_ascii=False)
        text = compact if names_handle else data.draw(spelled(history))
        serialized = getattr(published, name + "_json")(text, **options)
    assert marks_of(history, field) == before, "the input was changed"
    assert loads(serialized.json) == view.messages
    if view.dropped_count or view.reduction_stage in ("summarization", "fallback"):
        return
    after = marks_of(view.messages, field)
    assert after.keys() == before.keys()
    for place, marks in before.items():
        assert after[place] in (marks, marks[-1:]), "all where it was not masked, else one: the newest"


@given(history=SHAPE.flatmap(lambda shape: marked_histories(shape, names=NAMES)), call=OPTIONS, data=st.data())
def test_engines_agree(history: list[dict[str, Any]], call: tuple[str, dict[str, Any]], data: Any) -> None:
    if len(ENGINES) < 2:
        pytest.skip("recede._core is not built: make build")
    name, options = call
    text = data.draw(spelled(history))
    answers = []
    for engine in ("oracle", "core"):
        with using(engine):
            of_json = outcome(getattr(published, name + "_json"), text, **options)
            answers.append((outcome(getattr(published, name), history, **options), of_json))
    assert answers[0] == answers[1]
