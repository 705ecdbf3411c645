"""What is LiteLLM's own: its kinds of calls, fallbacks, usage, messages that its hooks do not see."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("litellm", reason="litellm is not installed")
sys.path.insert(0, str(Path(__file__).parent))

import case_litellm as case
import litellm
from sessions import as_dicts, session

from recede.integrations.litellm import MaskToolMessages

pytestmark = pytest.mark.filterwarnings("default")


def sent(request: dict[str, Any], kind: str, masking: Any = None) -> Any:
    """The request as the hook of the proxy leaves it."""
    masking = masking or MaskToolMessages(keep=0, boundary="sliding")
    return asyncio.run(masking.async_pre_call_hook(None, None, request, kind))


def test_the_histories_of_other_calls_are_masked_in_their_own_field() -> None:
    blocks = sent({"messages": as_dicts(session(5)), "max_tokens": 9}, "anthropic_messages")
    assert blocks["max_tokens"] == 9
    assert blocks["messages"][2]["content"][0]["content"].startswith("[observation masked")
    items = [
        {"type": "function_call", "call_id": "1", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "a line\n" * 90},
    ]
    assert sent({"input": items}, "aresponses")["input"][1]["output"].startswith("[observation masked")
    for request, kind in (
        ({"input": items, "previous_response_id": "r"}, "aresponses"),
        ({"input": "Find the bug."}, "aresponses"),
        ({"input": ["a", "b"]}, "aembedding"),
    ):
        assert sent(request, kind) is None


def test_a_view_is_not_masked_again() -> None:
    masking = MaskToolMessages(keep=1, boundary="sliding")
    first = sent({"messages": case.history(session(5))}, "acompletion", masking)
    assert sent(first, "acompletion", masking)["messages"] is first["messages"]
    assert masking.masker.stats().begun == 1


@pytest.mark.parametrize("way", ["sync", "async", "failing"])
def test_usage_is_reported_once_with_the_messages_that_were_given(way: str) -> None:
    heard: list[Any] = []
    masking: Any = MaskToolMessages(keep=0, boundary="sliding")

    def reported(usage: Any, messages: list[Any]) -> None:
        assert "observation masked" not in str(messages)
        heard.append((usage.prompt_tokens_details.cached_tokens, len(messages)))

    masking.masker.reported = reported
    case.run(masking, session(4), way)
    assert heard == [(8_900, length) for length in (1, 3, 5, 7, 11)]


def test_a_usage_that_cannot_be_read_costs_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    masking: Any = MaskToolMessages(keep=4)
    masking._report(masking.view([{"role": "user", "content": "Go."}]), {"usage": 7})
    assert "what the provider counted is lost" in caplog.text


def test_positional_messages_are_sent_raw_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    provider = case.Scripted(session(1))
    litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": provider}]
    case.custom_llm_setup()
    litellm.callbacks = [MaskToolMessages(keep=0)]
    try:
        with caplog.at_level(logging.WARNING, "recede"):
            asyncio.run(litellm.acompletion("scripted/m", [{"role": "user", "content": "Go."}]))
    finally:
        litellm.callbacks = []
    assert len(provider.requests) == 1
    assert "sent raw, give them as messages=" in caplog.text


def test_without_the_framework_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    monkeypatch.delitem(sys.modules, "recede.integrations.litellm")
    with pytest.raises(ImportError, match=r'needs litellm 1.80 or newer: pip install "recede\[litellm\]"'):
        importlib.import_module("recede.integrations.litellm")
