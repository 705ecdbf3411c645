"""JSON of a history: what is found, counted and repaired in a list, with every other byte as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import spelled

import recede
from recede.types import Finding
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
    assert recede.check_pairs(text) == recede.check_pairs(given)
    assert recede.count_chars(text, image_chars=7) == recede.count_chars(given, image_chars=7)
    after = recede.repair_pairs(text)
    assert json.loads(after) == recede.repair_pairs(given)
    if after is text:
        return
    before = iter([text[start:end] for start, end in elements(text)])
    written = [after[start:end] for start, end in elements(after)]
    unchanged = [one for one, message in zip(written, json.loads(after), strict=True) if message in given]
    assert all(one in before for one in unchanged), "messages that stay are as they were written, in order"
    assert after[: after.index("[")] == text[: text.index("[")]
    assert recede.repair_pairs(f'{{"x": 1e999, "messages" :{text} }}') == f'{{"x": 1e999, "messages" :{after} }}'


@pytest.mark.parametrize("as_given", [bytes, bytearray, memoryview, bytes.decode])
def test_json_with_an_integer_that_python_refuses_is_scanned(as_given: Callable[[bytes], Any]) -> None:
    call = b'{"type":"tool_use","id":"1","name":"run","input":{"number":%s}}' % (b"7" * 5_000)
    orphan = b'[{"role":"assistant","content":[%s]},{"role":"user","content":"go on"}]' % call
    answer = b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"[no result recorded]"}]}'
    whole = orphan.replace(b',{"role":"user"', b"," + answer + b',{"role":"user"')
    assert recede.check_pairs(as_given(orphan)).findings == (Finding("call_without_result", 0, "1"),)
    assert recede.count_chars(as_given(orphan)) == len('run{"number":null}go on') + 20
    assert recede.repair_pairs(as_given(orphan)) == as_given(whole)
    assert recede.costs.misses(as_given(whole)).requests == 1
    with pytest.raises(recede.TranscriptError, match="at most 4,300 digits"):
        recede.costs.misses([{"role": "user", "content": "?", "number": 10**5_000}])
    reducer = recede.designs.HistoryReducer(max_input_tokens=1)
    assert reducer.reduce(as_given(whole)) == reducer.reduce_json(as_given(whole))
