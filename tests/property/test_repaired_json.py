"""`repair_pairs` of JSON: the history that it gives for a list, with every other byte as it was."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from strategies import spelled

import recede
from recede.testing import histories
from support import elements


def torn(data: Any) -> list[dict[str, Any]]:
    """A history without some of its messages and blocks, so that calls and results lack each other."""
    history = data.draw(histories(max_turns=4, max_parallel_calls=3))
    kept = []
    for message in history:
        if data.draw(st.integers(0, 3)) == 0:
            continue
        for field in ("content", "parts"):
            blocks = message.get(field)
            if isinstance(blocks, list) and len(blocks) > 1 and data.draw(st.booleans()):
                gone = data.draw(st.integers(0, len(blocks) - 1))
                message = {**message, field: [*blocks[:gone], *blocks[gone + 1 :]]}
        kept.append(message)
    return kept


@given(data=st.data())
def test_repaired_json_is_the_repaired_list_and_keeps_every_other_byte(data: Any) -> None:
    history = torn(data)
    text = data.draw(spelled(history))
    given = json.loads(text)
    after = recede.repair_pairs(text)
    assert json.loads(after) == recede.repair_pairs(given)
    if after is text:
        return
    before = [text[start:end] for start, end in elements(text)]
    written = [after[start:end] for start, end in elements(after)]
    unchanged = [one for one, message in zip(before, given, strict=True) if message in json.loads(after)]
    places = iter(written)
    assert all(one in places for one in unchanged), "messages that stay are as they were written, in order"
    assert after[: after.index("[")] == text[: text.index("[")]
    assert recede.repair_pairs(f'{{"x": 1e999, "messages" :{text} }}') == f'{{"x": 1e999, "messages" :{after} }}'
