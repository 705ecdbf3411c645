"""The model's reasoning, which requests send back: it counts to limits, and to nothing else."""

from __future__ import annotations

import json
from math import ceil
from typing import Any

import pytest
from tokens_counted import reasoning_of, tokens_of

import recede
from support import call, result, user

WORDS = "word " * 2_000  # 10,000 characters
SIGNATURE = "c2ln" * 2_500  # 10,000 characters: 2,740 tokens
BLOCK = [{"type": "text", "text": "Yes."}]


def chat(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "Yes.", **fields}


def blocks(*reasoning: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [*reasoning, *BLOCK]}


def item(**fields: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", **fields}


def converse(**reasoning: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"text": "Yes."}, {"reasoningContent": reasoning}]}


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": [*parts, {"text": "Yes."}]}


READ, SEALED, NONE = 8_400, 10_960, 0  # quarter tokens: 8,000 letters at 1.05; .28 a character, less 60
FORMS: dict[str, tuple[dict[str, Any], int]] = {
    "deepseek": (chat(reasoning_content=WORDS), READ),
    "openrouter": (chat(reasoning=WORDS, reasoning_details=[{"type": "reasoning.text", "text": WORDS}]), READ),
    "openrouter_encrypted": (chat(reasoning_details=[{"type": "reasoning.encrypted", "data": SIGNATURE}]), SEALED),
    "copilot": (chat(reasoning_text=WORDS, reasoning_opaque=SIGNATURE), READ),
    "ollama": (chat(thinking=WORDS), READ),
    "litellm": (chat(thinking_blocks=[{"type": "thinking", "thinking": WORDS, "signature": SIGNATURE}]), READ),
    "of_a_call": ({**call("1"), "reasoning_content": WORDS}, READ),
    "empty": (chat(reasoning_content="", reasoning=None, reasoning_details=[]), NONE),
    "of_the_user": ({"role": "user", "content": "Yes.", "reasoning_content": WORDS}, NONE),
    "anthropic": (blocks({"type": "thinking", "thinking": WORDS, "signature": SIGNATURE}), READ),
    "anthropic_signature": (blocks({"type": "thinking", "thinking": "", "signature": SIGNATURE}), SEALED),
    "anthropic_redacted": (blocks({"type": "redacted_thinking", "data": SIGNATURE}), SEALED),
    "anthropic_short": (blocks({"type": "thinking", "thinking": "", "signature": "c2ln" * 50}), NONE),
    "responses": (item(summary=[{"type": "summary_text", "text": "Short."}], encrypted_content=SIGNATURE), SEALED),
    "responses_text": (item(content=[{"type": "reasoning_text", "text": WORDS}], summary=[]), READ),
    "responses_summary": (item(summary=[{"type": "summary_text", "text": WORDS}]), READ),
    "converse": (converse(reasoningText={"text": WORDS, "signature": SIGNATURE}), READ),
    "converse_redacted": (converse(redactedContent=SIGNATURE), SEALED),
    "gemini": (gemini({"text": WORDS, "thought": True}), READ),
    "gemini_signature": (gemini({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": SIGNATURE}), SEALED),
    "gemini_of_text": (gemini({"text": "", "thought_signature": SIGNATURE}), SEALED),
}


def history(message: dict[str, Any]) -> list[Any]:
    said = {"role": "user", "parts": [{"text": "Go."}]} if "parts" in message else user("Go.")
    return [said, message, said]


@pytest.mark.parametrize("form", FORMS)
def test_reasoning_counts_to_a_limit_and_no_further(form: str) -> None:
    message, reasoning = FORMS[form]
    messages = history(message)
    chars = recede.count_chars(messages)
    assert chars < 200
    assert reasoning_of(messages) == reasoning
    tokens = ceil(tokens_of(messages))
    for given in (messages, json.dumps(messages).encode()):
        for limit, fits in ((tokens, True), (tokens - 1, False)):
            view = recede.reduce(given, max_input_tokens=limit, keep=9)
            assert (view.within_limit and not view.reduced) is fits, limit
    designed = recede.designs.HistoryReducer(max_input_chars=chars).reduce(messages)
    assert designed.within_limit and not designed.reduced


@pytest.mark.parametrize("key", ["reasoning_content", "thinking"])
def test_repeated_reasoning_is_not_counted(key: str) -> None:
    message = f'{{"role":"assistant","content":"Yes.","{key}":"{WORDS}","{key}":"{WORDS}"}}'
    data = f'[{{"role":"user","content":"Go."}},{message},{{"role":"user","content":"Go."}}]'.encode()
    assert recede.reduce(data, max_input_tokens=100).within_limit


def test_a_token_counter_counts_what_can_be_read() -> None:
    messages = history(chat(reasoning_content=WORDS))
    for limit, fits in ((2_003, True), (2_002, False)):
        view = recede.reduce(messages, max_input_tokens=limit, token_counter=lambda text: len(text.split()))
        assert (view.within_limit and not view.reduced) is fits


def test_reasoning_of_a_model_that_drops_it_is_not_counted() -> None:
    body = {"model": "gpt-4o", "messages": history(chat(reasoning_content=WORDS))}
    assert not recede.reduce(body, max_input_tokens=100).reduced
    assert recede.reduce({**body, "model": "unknown"}, max_input_tokens=100).reduced


def signed_turns(count: int) -> list[Any]:
    """Turns of 500 tokens of signed reasoning and 250 of a result."""
    turns: list[Any] = [user("Find the bug.")]
    for number in range(count):
        thought = {"type": "thinking", "thinking": "word " * 400, "signature": f"c2ln{number}"}
        use = {"type": "tool_use", "id": f"t{number}", "name": "run", "input": {}}
        seen = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "word " * 200}
        turns += [{"role": "assistant", "content": [thought, use]}, {"role": "user", "content": [seen]}]
    return turns


@pytest.mark.parametrize("limit", [2_500, 5_000])
def test_voided_reasoning_makes_room_under_a_limit(limit: int) -> None:
    messages = signed_turns(12)
    kept, void = (
        recede.reduce(messages, provider=provider, max_input_tokens=limit, keep=3)
        for provider in ("claude-opus-4-7", "claude-opus-5-5")
    )
    assert kept.within_limit and void.within_limit
    assert kept.dropped_count > void.dropped_count == 0
    assert void.reasoning_dropped > kept.reasoning_dropped == 0


IMAGE = "iVBORw0KGgo" * 1_000
DATA = {"mimeType": "image/png", "data": IMAGE}
PICTURES: dict[str, tuple[dict[str, Any], int]] = {
    "ollama": ({"role": "user", "content": "See.", "images": [IMAGE, IMAGE]}, 2),
    "ollama_result": ({"role": "tool", "tool_name": "see", "content": "See.", "images": [IMAGE]}, 1),
    "mcp": (result("1", [{"type": "resource", "resource": {"uri": "x", "mimeType": "image/png", "blob": IMAGE}}]), 1),
    "mcp_image": (result("1", [{"type": "unknown", **DATA}]), 1),
    "ai_sdk_media": (result("1", [{"type": "media", "data": IMAGE, "mediaType": "image/png"}]), 1),
    "ai_sdk_data": (result("1", [{"type": "image-data", "data": IMAGE, "mediaType": "image/png"}]), 1),
    "source": (user([{"type": "unknown", "source": {"media_type": "image/png", "data": IMAGE}}]), 1),
    "gemini": (
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "see", "response": {"a": "b"}, "parts": [{"inlineData": DATA}] * 2}}
            ],
        },
        2,
    ),
}


@pytest.mark.parametrize("form", PICTURES)
def test_base64_counts_as_an_image_wherever_it_stands(form: str) -> None:
    message, images = PICTURES[form]
    for given in ([message], json.dumps([message]).encode()):
        assert recede.count_chars(given) % 6_400 < 100
        assert recede.count_chars(given) // 6_400 == images


def test_text_beside_a_media_type_alone_counts_as_json() -> None:
    part = {"type": "resource", "resource": {"uri": "x", "mimeType": "text/plain", "text": "x" * 1_000}}
    assert 1_000 < recede.count_chars([result("1", [part])]) < 1_200
