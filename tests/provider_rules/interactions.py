"""Gemini's Interactions: what they refuse.

What no source tells (orphans, missing parallel results, the first step) follows the rules of generateContent.
"""

from __future__ import annotations

from typing import Any

from provider_rules.base import LATER, OLD, Account, Body, Taken, check, demand, held, tokens_of
from provider_rules.signatures import signed

Step = dict[str, Any]

NEWEST = "gemini-4-neon"
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


class Request:
    """A body and its steps; texts and contents are those of one step of the user."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.dropped: list[Body] = []
        demand(body.get("model") or body.get("agent"), "model or agent is required.")
        for field in ("messages", "contents"):
            demand(field not in body, f"Unknown parameter {field!r}.")
        demand(isinstance(body.get("system_instruction", ""), str), "system_instruction must be a string.")
        self.steps = self._steps(body.get("input"))

    def _steps(self, given: Any) -> list[Step]:
        if given is None:
            goes_on = self.body.get("continuation_token") and self.body.get("previous_interaction_id")
            demand(goes_on, "input is required.")
            return []
        if isinstance(given, str):
            demand(given.strip(), "input must not be empty.")
            given = [{"type": "text", "text": given}]
        demand(isinstance(given, list) and given, "input must be text, contents or steps.")
        if all(isinstance(one, dict) and one.get("type") in _CONTENTS for one in given):
            return [{"type": "user_input", "content": given}]
        return list(given)

    @property
    def is_kept_there(self) -> bool:
        """Whether the provider has earlier steps."""
        return any(self.body.get(field) for field in _KEPT)

    @property
    def turns(self) -> list[list[Step]]:
        """Steps of the model, and after each run of them the results or what the user said, in turn."""
        turns: list[list[Step]] = []
        before = None
        for step in self.steps:
            is_users = step["type"] in ("user_input", "function_result")
            if is_users != before:
                turns.append([])
            turns[-1].append(step)
            before = is_users
        return turns


@check
def known_steps(request: Request) -> None:
    for at, step in enumerate(request.steps):
        _step(step, f"input[{at}]")


def _step(step: Any, where: str) -> None:
    kind = step.get("type") if isinstance(step, dict) else None
    if str(kind).startswith(LATER):
        return
    demand(kind in _FIELDS, f"{where}: unknown step type {kind!r}.")
    extra = sorted(set(step) - _FIELDS[kind] - {"type"})
    demand(not extra, f"Unknown parameter {extra and extra[0]!r} at {where}.")
    if kind in ("user_input", "model_output"):
        content = step.get("content")
        demand(isinstance(content, list) and content, f"{where}.content must be a list that is not empty.")
        for part in content:
            _part(part, kind, where)
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


def _part(part: Step, kind: str, where: str) -> None:
    if part.get("type") == "function_result":
        demand(kind == "user_input", f"{where}: a function_result is no output of a model.")
        _step(part, where)
        return
    is_known = part.get("type") in _CONTENTS or str(part.get("type")).startswith(LATER)
    demand(is_known, f"{where}.content: unknown type {part.get('type')!r}.")
    if part["type"] == "text":
        demand(isinstance(part.get("text"), str) and part["text"].strip(), f"{where}.content: blank text.")


@check
def first_is_the_users(request: Request) -> None:
    is_users = request.is_kept_there or not request.steps or request.steps[0]["type"] == "user_input"
    demand(is_users, "The first step must be a user_input.")


@check
def results_follow_their_calls(request: Request) -> None:
    """Each call has one result of its name, in the turn after it."""
    asked: dict[str, str] = {}
    for turn in request.turns if not request.is_kept_there else []:
        for result in _results(turn):
            name = asked.pop(result["call_id"], None)
            demand(name is not None, "the result has no call in the turn before it.")
            demand(name == result["name"], "Invalid input received")
        demand(not asked, "a function result must follow each function call.")
        for call in turn:
            if call["type"] == "function_call":
                demand(call["id"] not in asked, _INVALID)
                asked[call["id"]] = call["name"]
    demand(not asked, "a function result must follow each function call.")


def _results(turn: list[Step]) -> list[Step]:
    parts = [part for step in turn if step["type"] == "user_input" for part in step["content"]]
    return [one for one in [*turn, *parts] if one["type"] == "function_result"]


@check
def calls_follow_a_signed_thought(request: Request) -> None:
    """In their turn; `skip_thought_signature_validator` passes."""
    for turn in request.turns if not request.is_kept_there else []:
        is_signed = False
        for step in turn:
            is_signed |= step["type"] == "thought" and step.get("signature") is not None
            demand(step["type"] != "function_call" or is_signed, _INVALID)


@check
def signatures_are_ours(request: Request) -> None:
    for step in request.steps:
        signature = step.get("signature") if step["type"] == "thought" else None
        thought, _, mark = str(signature).partition(".")
        demand(signature in (None, ANY_SIGNATURE) or mark == signed(thought), _INVALID)


@check
def tools_of_the_provider_stay_in_pairs(request: Request) -> None:
    """In one turn."""
    for turn in request.turns if not request.is_kept_there else []:
        kinds = [(step["type"], step) for step in turn if not step["type"].startswith(("function_", LATER))]
        asked = sorted(str(step["id"]) for kind, step in kinds if kind.endswith("_call"))
        given = sorted(str(step["call_id"]) for kind, step in kinds if kind.endswith("_result"))
        demand(asked == given, "a call of the provider's tool and its result must be of one turn.")


def signature_of(thought: str) -> str:
    """The signature of a thought, which tells what it signs."""
    return f"{thought}.{signed(thought)}"


def answered(body: Body, steps: list[Step]) -> list[Step]:
    """The steps of an answer to a request that was taken: their thoughts are signed."""
    number = len(body["input"])
    return [{**one, "signature": signature_of(f"at {number}")} if one["type"] == "thought" else one for one in steps]


def shown_tokens(request: Request) -> int:
    return tokens_of(request.steps) + tokens_of(request.body.get("system_instruction") or "")


def take(body: Body, account: Account = OLD) -> Taken:
    """What the API does with a request."""
    return held("interactions", lambda: Request(body), shown_tokens)
