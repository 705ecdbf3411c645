"""What counts to a limit in tokens, where no function of the caller counts them: docs/budgets.md."""

from __future__ import annotations

from typing import Any

import pytest

import recede
from recede._model_names import TOKENIZERS, tokenizer_of
from recede.providers import tokenizers
from recede.reduction._counting import static_cost
from support import chat_call, chat_result, user

PROSE = "a plain sentence of words "


def fits(messages: list[Any], tokens: int, **options: Any) -> bool:
    return recede.reduce(messages, keep=99, max_input_tokens=tokens, **options).within_limit is True


def least(messages: list[Any], **options: Any) -> int:
    """The least limit that a history fits as it is."""
    low, high = 0, 1 << 24
    while high - low > 1:
        middle = (low + high) // 2
        reduction = recede.reduce(messages, keep=99, max_input_tokens=middle, **options)
        is_whole = reduction.messages == messages and reduction.within_limit
        low, high = (low, middle) if is_whole else (middle, high)
    return high


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-4-6", "claude"),
        ("anthropic/claude-sonnet-4-5-20250929", "claude"),
        ("claude-3-7-sonnet", "claude"),
        ("claude-opus-4-7", "claude-4.7"),
        ("us.anthropic.claude-fable-5-2-20261101-v1:0", "claude-4.7"),
        ("gpt-5.5", "openai"),
        ("openrouter/openai/gpt-oss-120b", "openai"),
        ("o3", "openai"),
        ("gemini-3.1-pro", "gemini"),
        ("google/gemma-3-27b", "gemini"),
        ("qwen4-max", "qwen"),
        ("deepseek-v4-pro", "deepseek"),
        ("meta-llama/llama-4-maverick", "llama"),
        ("glm-5.3", ""),
        ("my-llamas", ""),
        ("Meta-Llama-3-8B", "llama"),
    ],
)
def test_the_name_of_a_model_tells_its_tokenizer(model: str, name: str) -> None:
    assert tokenizer_of(model) == name


@pytest.mark.parametrize(("text", "quarters"), [("abc", 3), ("a b", 2), ("a1.\n", 10), ("日本", 6), ("😀", 4)])
def test_a_text_counts_its_bytes_by_the_scale(text: str, quarters: int) -> None:
    times = 10_000
    for name, provider in (("", "none"), ("claude-4.7", "anthropic"), ("openai", "openai")):
        exact = quarters * times * TOKENIZERS[name].scale / 4
        assert least([user(text * times)], provider=provider) == pytest.approx(exact, abs=1)


def test_a_call_with_its_result_counts_by_the_model() -> None:
    history = [user("Go."), *(one for place in "ab" for one in (chat_call(place, "run"), chat_result(place, "ok")))]
    texts = {model: least(history, provider=model) for model in ("claude-opus-4-6", "gpt-5.5", "gemini-3.1-pro")}
    assert texts["claude-opus-4-6"] - texts["gemini-3.1-pro"] == 160
    assert texts["gpt-5.5"] - texts["gemini-3.1-pro"] in range(20, 23)


def test_the_shape_tells_where_no_model_does() -> None:
    asked = user(PROSE * 4_000)
    call = {"type": "tool_use", "id": "1", "name": "run", "input": {}}
    of_anthropic = [asked, {"role": "assistant", "content": [call]}]
    item = {"type": "function_call", "call_id": "1", "name": "run", "arguments": "{}"}
    plain, anthropic, responses = (least(one) for one in ([asked], of_anthropic, [asked, item]))
    assert anthropic / plain == pytest.approx(1.41 / 1.05, rel=0.01)
    assert responses / plain == pytest.approx(0.87 / 1.05, rel=0.01)


def test_the_model_of_a_request_tells_the_scale() -> None:
    def whole(model: str) -> bool:
        request = {"model": model, "messages": [user(PROSE * 4_000)]}
        return bool(recede.reduce(request, max_input_tokens=23_000).within_limit)

    assert whole("gpt-5.5") and not whole("claude-opus-4-7")


def test_tools_count_more_at_claude() -> None:
    tools = {"tools": [{"name": "run", "input_schema": {"type": "object"}}]}
    of = {model: static_cost(tools, None, tokenizers("auto", model)) for model in ("claude-opus-4-6", "gpt-5.5")}
    assert of["claude-opus-4-6"] == pytest.approx(of["gpt-5.5"] / 0.87 * 1.08 + 4 * 270, abs=2)
    assert static_cost({**tools, "cache_control": {"type": "ephemeral"}}, None, tokenizers("auto")) == static_cost(
        tools, None, tokenizers("auto")
    )


def test_reasoning_that_is_read_counts_as_text_and_else_by_its_length() -> None:
    def answer(**reasoning: str) -> list[Any]:
        return [user("Go."), {"role": "assistant", "content": "Yes.", **reasoning}, user("On.")]

    plain, read = least(answer()), least(answer(reasoning_content="a" * 4_000))
    assert read - plain == pytest.approx(1_050, abs=1)
    block = {"type": "thinking", "thinking": "", "signature": "s" * 1_000}
    sealed = [user("Go."), {"role": "assistant", "content": [block, {"type": "text", "text": "Yes."}]}, user("On.")]
    assert least(sealed) - plain == pytest.approx(220, abs=1)


def test_a_counter_of_the_caller_wins() -> None:
    assert least([user("日本" * 500)], token_counter=len) == 1_000


def test_a_call_without_a_limit_counts_characters() -> None:
    history = [user("日" * 100)]
    assert recede.count_chars(history) == 100
    assert recede.designs.approx_tokens(history) == 25


def test_a_provider_names_a_known_tokenizer() -> None:
    with pytest.raises(ValueError, match=r"provider\.tokenizer must be one of"):
        recede.reduce([], provider=recede.Provider("ours", tokenizer="word"))
