"""What adapters have in common."""

from __future__ import annotations

from typing import Any

import pytest

import recede
from recede.integrations._shared import content_facts, json_chars, masked_content


@pytest.mark.parametrize(
    "value",
    [None, "ls -l", {}, [], {"a": 1}, {"a": [True, False, None, 1.5, "ä"], "b": {"c": ""}}, [[], {"x": "y"}, 3]],
    ids=repr,
)
def test_arguments_count_as_in_the_core(value: Any) -> None:
    def chars(given: Any) -> int:
        call = {"type": "tool_use", "id": "1", "name": "run", "input": given}
        return recede.count_chars([{"role": "assistant", "content": [call]}])

    assert json_chars(value) == chars(value) - chars("")


def test_contents_count_texts_and_images() -> None:
    parts = [{"type": "text", "text": "abc"}, "de", {"type": "image_url"}, {"type": "thinking", "thinking": "hm"}]
    assert content_facts(parts) == (5, 1)
    assert content_facts("abc") == (3, 0)
    assert content_facts(None) == (0, 0)


def test_a_mask_keeps_the_newest_cache_mark() -> None:
    marked = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": ttl}} for ttl in ("1h", "5m")]
    assert masked_content([*marked, {"type": "text", "text": "b"}], "m") == [{**marked[1], "text": "m"}]
    assert masked_content("a", "m") == masked_content([{"type": "text", "text": "a"}], "m") == "m"
