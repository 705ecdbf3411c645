"""What Gemini and Bedrock's Converse refuse, as in provider_rules.py: the first fault, or None."""

from __future__ import annotations

from typing import Any

from provider_rules import RefusedError, demand, signed

_GEMINI_DATA = ("text", "functionCall", "functionResponse", "inlineData", "fileData")
_GEMINI_PART = {*_GEMINI_DATA, "thought", "thoughtSignature"}
_CONVERSE_BLOCKS = {
    "user": {"text", "image", "document", "video", "toolResult", "cachePoint"},
    "assistant": {"text", "toolUse", "reasoningContent", "cachePoint"},
}


def gemini_fault(contents: Any) -> str | None:
    """Why Gemini's generateContent refuses the contents."""
    try:
        _gemini(contents)
    except RefusedError as refused:
        return str(refused)
    return None


def converse_fault(messages: Any) -> str | None:
    """Why Bedrock's Converse refuses the messages."""
    try:
        _converse(messages)
    except RefusedError as refused:
        return str(refused)
    return None


# Gemini


def _gemini(contents: Any) -> None:
    demand(isinstance(contents, list) and contents, "contents is not specified")
    kinds: list[str] = []
    calls: list[dict[str, Any]] = []
    for at, content in enumerate(contents):
        demand(content.get("role") in ("user", "model"), "Please use a valid role: user, model.")
        extra = sorted(set(content) - {"role", "parts"})
        demand(not extra, f"Unknown name {extra and extra[0]!r} at 'contents[{at}]': Cannot find field.")
        parts = content.get("parts")
        demand(isinstance(parts, list) and parts, f"contents[{at}].parts must not be empty.")
        for place, part in enumerate(parts):
            _part(part, f"contents[{at}].parts[{place}]")
        asked = [part["functionCall"] for part in parts if "functionCall" in part]
        given = [part["functionResponse"] for part in parts if "functionResponse" in part]
        kind = "call" if asked else "response" if given else content["role"]
        before = kinds[-1] if kinds else None
        comes_right = kind != "call" or (content["role"] == "model" and before in ("user", "response"))
        demand(comes_right, "a function call turn must come immediately after a user turn or a function response turn.")
        demand((kind == "response") == (before == "call"), "a function response turn must follow a function call turn.")
        if given:
            _fit(calls, given)
        calls = asked
        kinds.append(kind)
    demand(not calls and contents[-1]["role"] == "user", "the last turn must be of the user or a function response.")


def _part(part: Any, where: str) -> None:
    demand(isinstance(part, dict), f"{where}: Starting an object on a scalar field")
    extra = sorted(set(part) - _GEMINI_PART)
    demand(not extra, f"Unknown name {extra and extra[0]!r} at '{where}': Cannot find field.")
    demand(sum(field in part for field in _GEMINI_DATA) == 1, f"{where}.data: required oneof field must be initialized")
    demand(isinstance(part.get("text", ""), str), f"Invalid value at '{where}.text'")
    for field, value in (("functionCall", "args"), ("functionResponse", "response")):
        if field in part:
            extra = sorted(set(part[field]) - {"id", "name", value})
            demand(not extra, f"Unknown name {extra and extra[0]!r} at '{where}.{field}': Cannot find field.")
            demand(part[field].get("name"), f"{where}.{field}.name: Name cannot be empty.")
            demand(isinstance(part[field].get(value, {}), dict), f"Invalid value at '{where}.{field}.{value}' (Struct)")
    if "functionCall" in part:
        is_ours = part.get("thoughtSignature") == signed(part["functionCall"]["name"])
        demand(is_ours, f"Function call is missing a thought_signature in functionCall parts. ({where})")


def _fit(calls: list[dict[str, Any]], given: list[dict[str, Any]]) -> None:
    """As many responses as calls, of the same names; an id that both sides use is that of the same name."""
    names = sorted(call["name"] for call in calls) == sorted(one["name"] for one in given)
    demand(
        names, "the number of function response parts must equal the number of function call parts of the call turn."
    )
    by_id = {call["id"]: call["name"] for call in calls if call.get("id") is not None}
    wrong = [one for one in given if by_id.get(one.get("id"), one["name"]) != one["name"]]
    demand(not wrong, "function response id does not match the function call.")


# Converse


def _converse(messages: Any) -> None:
    demand(isinstance(messages, list) and messages, "The messages field is required.")
    demand(messages[0].get("role") == "user", "A conversation must start with a user message.")
    asked: list[str] = []
    for at, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        demand(role in _CONVERSE_BLOCKS, f"Value at 'messages.{at}.role' failed to satisfy enum value set")
        extra = sorted(set(message) - {"role", "content"})
        demand(not extra, f"Unknown parameter in messages[{at}]: {extra and extra[0]!r}")
        alternates = at == 0 or messages[at - 1]["role"] != role
        demand(alternates, "A conversation must alternate between user and assistant roles.")
        demand(isinstance(content, list) and content, f"The content field in messages.{at} is empty.")
        for place, block in enumerate(content):
            _block(block, role, f"messages.{at}.content.{place}")
        results = [block["toolResult"]["toolUseId"] for block in content if "toolResult" in block]
        missing = [call for call in asked if call not in results]
        demand(not missing, f"Expected toolResult blocks at messages.{at}.content for the following Ids: {missing}")
        demand(len(results) <= len(asked), "The number of toolResult blocks exceeds the number of toolUse blocks.")
        asked = [block["toolUse"]["toolUseId"] for block in content if "toolUse" in block]
        demand(len(asked) == len(set(asked)), f"messages.{at} contains duplicate Ids")
    demand(not asked, "Expected toolResult blocks after the last message.")


def _block(block: Any, role: str, where: str) -> None:
    kinds = list(block) if isinstance(block, dict) else []
    demand(len(kinds) == 1 and kinds[0] in _CONVERSE_BLOCKS[role], f"{where}: not one of the members of ContentBlock")
    if "text" in block:
        demand(str(block["text"]).strip(), f"The text field in the ContentBlock object at {where} is blank.")
    if "toolUse" in block:
        demand(set(block["toolUse"]) == {"toolUseId", "name", "input"}, f"{where}.toolUse: Missing required parameter")
        demand(isinstance(block["toolUse"]["input"], dict), f"{where}.toolUse.input: not a JSON object")
    if "toolResult" in block:
        result = block["toolResult"]
        is_whole = {"toolUseId", "content"} <= set(result) <= {"toolUseId", "content", "status"}
        demand(is_whole, f"{where}.toolResult: Missing required parameter")
        demand(result.get("status", "success") in ("success", "error"), f"{where}.toolResult.status: not of the enum")
        demand(isinstance(result["content"], list), f"{where}.toolResult.content: not a list")
        for part in result["content"]:
            is_part = len(part) == 1 and set(part) <= {"text", "json", "image", "document", "video"}
            demand(is_part, f"{where}.toolResult.content: not one of the members")
            demand(isinstance(part.get("text", ""), str), f"{where}.toolResult.content.text: not a string")
            demand(isinstance(part.get("json", {}), (dict, list)), f"{where}.toolResult.content.json: not JSON")
