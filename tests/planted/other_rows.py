"""Rows of the rules of Gemini, Converse, and chats with open and other models."""

from __future__ import annotations

from typing import Any

from planted.anthropic_rows import WHY, every, log
from planted.openai_rows import SYSTEM, chat_turn, with_reasoning
from planted.playing import Row, Step
from provider_rules import LATER

# Gemini


def _gemini(number: int, *before: Any, names: tuple[str, ...] = ("read",), beside: Any = (), **fields: Any) -> Step:
    calls = [{"functionCall": {"name": name, "args": {"part": number, "why": WHY}}} for name in names]
    given = [{"functionResponse": {"name": name, "response": {"output": log(number)}, **fields}} for name in names]
    model, user = [*before, *calls], [*given, *beside]
    return Step([{"role": "model", "parts": model}], [{"role": "user", "parts": user}])


def gemini_turn(number: int) -> Step:
    return _gemini(number, {"text": f"Part {number} may have the bug.", "thought": True})


def _gemini_parallel(number: int) -> Step:
    if number % 12 == 11:
        said = {"role": "user", "parts": [{"text": "And then?"}]}
        return Step([{"role": "model", "parts": [{"text": "It is so."}]}], [said])
    return _gemini(number, names=("read", "list", "find") if number % 3 == 0 else ("read",))


def _gemini_words(number: int) -> Step:
    return _gemini(number, beside=[{"text": f"{LATER}{number}"}])


def _gemini_picture(number: int) -> Step:
    return _gemini(number, parts=[{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}])


def _gemini_tools(number: int) -> Step:
    asked = {"toolCall": {"id": f"t{number}", "toolType": "GOOGLE_SEARCH", "args": {}}}
    given = {"toolResponse": {"id": f"t{number}", "toolType": "GOOGLE_SEARCH", "response": {}}}
    return _gemini(number, asked, given)


def _gemini_later(number: int) -> Step:
    part = {f"{LATER}part": {"id": f"later_{number}", "text": "x" * 30}}
    if number % 3 == 0:
        return _gemini(number, part)
    return _gemini(number, beside=[part]) if number % 3 == 1 else _gemini(number)


# Converse


def _converse(number: int, *before: Any, names: tuple[str, ...] = ("",), beside: Any = ()) -> Step:
    uses = [{"toolUse": {"toolUseId": f"t{number}{name}", "name": "read", "input": {"why": WHY}}} for name in names]
    ids = [one["toolUse"]["toolUseId"] for one in uses]
    given = [{"toolResult": {"toolUseId": one, "content": [{"text": log(number)}]}} for one in ids]
    return Step([{"role": "assistant", "content": [*before, *uses]}], [{"role": "user", "content": [*given, *beside]}])


def converse_turn(number: int) -> Step:
    return _converse(number)


def _converse_thinking(number: int) -> Step:
    return _converse(number, {"reasoningContent": {"reasoningText": {"text": f"Part {number} may have the bug."}}})


def _converse_parallel(number: int) -> Step:
    if number % 10 == 9:
        return Step(
            [{"role": "assistant", "content": [{"text": "It is so."}]}],
            [{"role": "user", "content": [{"text": "And then?"}]}],
        )
    return _converse(number, names=("a", "b", "c") if number % 3 == 0 else ("",))


def _converse_points(number: int) -> Step:
    return _converse(number, beside=[{"cachePoint": {"type": "default"}}] if number in (2, 20, 40) else ())


def _converse_later(number: int) -> Step:
    block = {f"{LATER}block": {"id": f"later_{number}", "text": "x" * 30}}
    if number % 3 == 0:
        return _converse(number, block)
    return _converse(number, beside=[block]) if number % 3 == 1 else _converse(number)


# Chats


def _with_details(number: int) -> Step:
    details = [{"type": "reasoning.text", "text": f"Part {number}.", "signature": "s", "format": "unknown"}]
    made, given = chat_turn(number)
    return Step([{**made[0], "reasoning_details": details}], given)


def _spoken(number: int) -> Step:
    if number % 7 == 6:
        return Step([{"role": "assistant", "content": "It is so."}], [{"role": "user", "content": "And then?"}])
    return chat_turn(number)


ROWS: dict[str, Row] = {
    "Gemini: signatures": Row("gemini.first_calls_of_the_open_turn_are_signed", "gemini", gemini_turn),
    "Gemini: parallel calls": Row("gemini.responses_follow_their_calls", "gemini", _gemini_parallel),
    "Gemini: words beside results": Row("gemini.known_fields", "gemini", every(25, _gemini_words, gemini_turn)),
    "Gemini: pictures": Row("gemini.known_fields", "gemini", every(4, _gemini_picture, gemini_turn)),
    "Gemini: its own tools": Row(
        "gemini.tools_of_the_provider_stay_in_pairs", "gemini", every(5, _gemini_tools, gemini_turn)
    ),
    "Gemini: parts of later days": Row("gemini.known_fields", "gemini", _gemini_later),
    "Converse: roles": Row("converse.roles_alternate", "converse", converse_turn),
    "Converse: parallel calls": Row("converse.results_equal_calls", "converse", _converse_parallel),
    "Converse: thinking": Row("converse.reasoning_keeps_its_signature", "converse", _converse_thinking),
    "Converse: cache points": Row("converse.at_most_four_points", "converse", _converse_points),
    "Converse: blocks of later days": Row("converse.blocks_are_known", "converse", _converse_later),
    "DeepSeek": Row(
        "deepseek.reasoning_content_stays", "deepseek", with_reasoning("reasoning_content", "The bug?"), begins=SYSTEM
    ),
    "Kimi": Row(
        "deepseek.reasoning_content_stays", "deepseek", with_reasoning("reasoning_content", "The bug?"),
        body={"model": "kimi-k2.6"}, turns=90,
    ),
    "GLM": Row(
        "deepseek.missing_reasoning_makes_answers_worse", "deepseek", with_reasoning("reasoning_content", "The bug?"),
        body={"model": "glm-5.3"},
    ),
    "OpenRouter": Row(
        "deepseek.missing_reasoning_makes_answers_worse", "deepseek", _with_details, body={"model": "openrouter/x"}
    ),
    "Qwen": Row("templates.system_comes_first", "templates", _spoken, begins=SYSTEM),
    "Gemma": Row("templates.roles_alternate", "templates", _spoken, begins=SYSTEM, body={"model": "gemma-4"}),
    "Ministral": Row("templates.roles_alternate", "templates", chat_turn, body={"model": "ministral-3"}),
    "Mistral": Row("templates.tool_follows_assistant", "templates", _spoken, body={"model": "mistral-large"}),
}  # fmt: skip
