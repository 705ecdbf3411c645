"""What adapters have in common."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

import pytest

import recede
from recede.integrations._shared import content_facts, json_chars, masked_content, reference_chars


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


def test_tools_that_a_search_has_found_stay_beside_a_mask() -> None:
    found = {"type": "tool_reference", "tool_name": "read"}
    content = [{"type": "text", "text": "a" * 99}, {**found, "cache_control": {"type": "ephemeral"}}]
    text = {"type": "text", "text": "m"}
    assert masked_content(content, "m") == [{**text, "cache_control": {"type": "ephemeral"}}, found]
    assert masked_content([content[0], found], "m") == [text, found]
    assert reference_chars(content) == json_chars(found)
    assert content_facts(content) == (99 + json_chars(found), 0)


def test_a_document_with_text_counts_as_json() -> None:
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a" * 99}}
    assert content_facts([document]) == (json_chars(document), 0)
    assert content_facts([{**document, "source": {"type": "base64", "data": "a" * 99}}]) == (0, 1)


@pytest.mark.parametrize(
    ("adapter", "module", "release"),
    [
        ("langchain", "langchain.agents.middleware", "langchain 1.0"),
        ("litellm", "litellm", "litellm 1.80.5"),
        ("openai_agents", "agents", "openai-agents 0.4"),
        ("pydantic_ai", "pydantic_ai.capabilities", "pydantic-ai-slim 2.0"),
    ],
)
def test_without_its_framework_the_error_of_an_adapter_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, adapter: str, module: str, release: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"recede.integrations.{adapter}", raising=False)
    words = f'needs {release} or newer: pip install "recede[{adapter.replace("_", "-")}]"'
    with pytest.raises(ImportError, match=re.escape(words)):
        importlib.import_module(f"recede.integrations.{adapter}")
