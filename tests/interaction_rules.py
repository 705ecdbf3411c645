"""What Gemini's Interactions refuse, as in provider_rules.py: the first fault, or None.

Read on 28 November 2026 in the types of google-genai 3.6.1, in Google's pages on interactions, and in reports of
others. What no source tells (orphans, missing parallel results, the first step) follows the rules of generateContent.
"""

from __future__ import annotations

from typing import Any

from provider_rules import RefusedError, demand, signed

ANY_SIGNATURE = "skip_thought_signature_validator"

_CONTENTS = {"text", "image", "audio", "document", "video"}
_X = (
    "code_execution google_search google_maps url_context file_search retrieval processing tool_search mcp_server_tool"
).split()
_FIELDS = {
    "user_input": {"content"},
    "model_output": {"content"},
    "thought": {"signature", "summary"},
    "function_call": {"id", "name", "arguments", "signature"},
    "function_result": {"call_id", "name", "result", "is_error"},
    **{f"{x}_call": {"id", "arguments", "signature", "name", "server_name", "search_type"} for x in _X},
    **{f"{x}_result": {"call_id", "result", "signature", "is_error", "name", "server_name"} for x in _X},
}
_KEPT = ("previous_interaction_id", "agent")
_INVALID = "Request contains an invalid argument."


def interactions_fault(body: dict[str, Any]) -> str | None:
    """Why Gemini refuses to create the interaction."""
    try:
        _interaction(body)
    except RefusedError as refused:
        return str(refused)
    return None


def _interaction(body: dict[str, Any]) -> None:
    demand(body.get("model") or body.get("agent"), "model or agent is required.")
    for field in ("messages", "contents"):
        demand(field not in body, f"Unknown parameter {field!r}.")
    demand(isinstance(body.get("system_instruction", ""), str), "system_instruction must be a string.")
    given = body.get("input")
    if given is None:
        demand(body.get("continuation_token") and body.get("previous_interaction_id"), "input is required.")
        return
    if isinstance(given, str):
        demand(given.strip(), "input must not be empty.")
        return
    demand(isinstance(given, list) and given, "input must be text, contents or steps.")
    steps = given
    if all(isinstance(one, dict) and one.get("type") in _CONTENTS for one in given):
        steps = [{"type": "user_input", "content": given}]
    for at, step in enumerate(steps):
        _step(step, f"input[{at}]")
    if not any(body.get(field) for field in _KEPT):
        _order(steps)


def _step(step: Any, where: str) -> None:
    kind = step.get("type") if isinstance(step, dict) else None
    demand(kind in _FIELDS, f"{where}: unknown step type {kind!r}.")
    extra = sorted(set(step) - _FIELDS[kind] - {"type"})
    demand(not extra, f"Unknown parameter {extra and extra[0]!r} at {where}.")
    if kind in ("user_input", "model_output"):
        content = step.get("content")
        demand(isinstance(content, list) and content, f"{where}.content must be a list that is not empty.")
        for part in content:
            if part.get("type") == "function_result":
                demand(kind == "user_input", f"{where}: a function_result is no output of a model.")
                _step(part, where)
                continue
            demand(part.get("type") in _CONTENTS, f"{where}.content: unknown type {part.get('type')!r}.")
            if part["type"] == "text":
                demand(isinstance(part.get("text"), str) and part["text"].strip(), f"{where}.content: blank text.")
    elif kind == "function_call":
        for field, of in (("id", str), ("name", str), ("arguments", dict)):
            demand(isinstance(step.get(field), of), _INVALID)
        demand(step["id"].strip(), _INVALID)
    elif kind == "function_result":
        demand(step.get("call_id"), "Missing call_id in content of type function_result")
        demand(isinstance(step.get("name"), str) and step["name"], "Invalid input received")
        demand(isinstance(step.get("result"), (str, list, dict)), "Invalid input received")
    elif kind.endswith("_call"):
        demand(isinstance(step.get("id"), str), _INVALID)
    elif kind.endswith("_result"):
        demand(isinstance(step.get("call_id"), str), _INVALID)


def _order(steps: list[dict[str, Any]]) -> None:
    """The rules of one step after the other, of a history that is sent whole."""
    demand(steps[0]["type"] == "user_input", "The first step must be a user_input.")
    asked: dict[str, str] = {}  # the calls of the run, by their ids, that have no result yet
    run_by_model: set[str] = set()
    is_signed = is_answering = False
    for at, step in enumerate(steps):
        kind = step["type"]
        parts = step.get("content", []) if kind == "user_input" else []
        results = [step] if kind == "function_result" else [one for one in parts if one["type"] == "function_result"]
        if results:
            is_answering = True
            for result in results:
                name = asked.pop(result["call_id"], None)
                demand(name is not None, f"input[{at}]: the result has no call in the turn before it.")
                demand(name == result["name"], "Invalid input received")
            continue
        if is_answering or kind == "user_input":
            demand(not asked, "a function result must follow each function call.")
            demand(not run_by_model, f"input[{at}]: a call of the provider's tool has no result.")
            is_signed = is_answering = False
        if kind == "thought":
            signature = step.get("signature")
            demand(signature is None or signature == ANY_SIGNATURE or _is_ours(signature), _INVALID)
            is_signed |= signature is not None
        elif kind == "function_call":
            demand(is_signed, _INVALID)
            demand(step["id"] not in asked, _INVALID)
            asked[step["id"]] = step["name"]
        elif kind.endswith("_call"):
            run_by_model.add(step["id"])
        elif kind.endswith("_result"):
            demand(step["call_id"] in run_by_model, f"input[{at}]: the result has no call.")
            run_by_model.discard(step["call_id"])
    demand(not asked, "a function result must follow each function call.")


def signature_of(thought: str) -> str:
    """The signature of a thought, which tells what it signs."""
    return f"{thought}.{signed(thought)}"


def _is_ours(signature: Any) -> bool:
    thought, _, mark = str(signature).partition(".")
    return mark == signed(thought)
