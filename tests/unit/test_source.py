"""What the planner asks of the text behind an Outline: how an observation begins, spelled as it may be."""

from __future__ import annotations

import published
import pytest

from support import ENGINES, mask, masked, tool_result, user, using


def test_a_placeholder_beside_an_image_stays_and_keeps_the_image() -> None:
    parts = [{"type": "text", "text": masked(500)}, {"type": "image", "source": {"data": "iVBOR"}}]
    history = [user([tool_result("1", parts)])]
    assert mask(history, keep_results=0).messages is history


@pytest.mark.parametrize("engine_name", ENGINES)
def test_a_placeholder_whose_beginning_is_escaped_stays(engine_name: str) -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in masked(500))
    data = b'[{"role":"tool","tool_call_id":"1","content":"%s"}]' % escaped.encode()
    half = data.replace(b"\\u005b\\u006f", b"[\\u006f")
    with using(engine_name):
        for each in (data, half):
            assert published.mask_observations_json(each, keep_results=0).json is each
