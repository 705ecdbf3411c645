"""Gemini's generateContent: what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provider_rules.base import LATER, OLD, Account, Body, Taken, check, demand, held, tokens_of, version
from provider_rules.signatures import Signed, read, signature_of

NEWEST = "gemini-4-neon"
_DATA = (
    "text", "functionCall", "functionResponse", "inlineData", "fileData", "toolCall", "toolResponse",
    "executableCode", "codeExecutionResult",
)  # fmt: skip
_STANDARD = str.maketrans("-_", "+/")
_PART = {*_DATA, "thought", "thoughtSignature", "partMetadata"}


class Request:
    """A body, its contents, and the model, which a path names; one that is none of Google's is the newest one."""

    def __init__(self, body: Body, model: str = NEWEST) -> None:
        self.body = body
        self.model = model if version(model, "gemini") else NEWEST
        contents = body.get("contents")
        demand(isinstance(contents, list) and contents, "contents is not specified")
        self.contents: list[dict[str, Any]] = list(contents or ())
        self.dropped: list[Body] = []

    def parts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for at, content in enumerate(self.contents):
            for place, part in enumerate(content["parts"]):
                yield f"contents[{at}].parts[{place}]", part


@check
def known_fields(request: Request) -> None:
    for at, content in enumerate(request.contents):
        demand(content.get("role") in ("user", "model"), "Please use a valid role: user, model.")
        extra = sorted(set(content) - {"role", "parts"})
        demand(not extra, f"Unknown name {extra and extra[0]!r} at 'contents[{at}]': Cannot find field.")
        parts = content.get("parts")
        demand(isinstance(parts, list) and parts, f"contents[{at}].parts must not be empty.")
    for where, part in request.parts():
        _part(part, where)


def _part(part: Any, where: str) -> None:
    demand(isinstance(part, dict), f"{where}: Starting an object on a scalar field")
    later = {name for name in part if name.startswith(LATER)}
    extra = sorted(set(part) - _PART - later)
    demand(not extra, f"Unknown name {extra and extra[0]!r} at '{where}': Cannot find field.")
    data = sum(field in part for field in _DATA) + len(later)
    demand(data == 1, f"{where}.data: required oneof field must be initialized")
    demand(isinstance(part.get("text", ""), str), f"Invalid value at '{where}.text'")
    for field, value, more in (("functionCall", "args", set()), ("functionResponse", "response", {"parts"})):
        if field in part:
            extra = sorted(set(part[field]) - {"id", "name", value} - more)
            demand(not extra, f"Unknown name {extra and extra[0]!r} at '{where}.{field}': Cannot find field.")
            demand(part[field].get("name"), f"{where}.{field}.name: Name cannot be empty.")
            demand(isinstance(part[field].get(value, {}), dict), f"Invalid value at '{where}.{field}.{value}' (Struct)")


@check
def responses_follow_their_calls(request: Request) -> None:
    """As many as calls, of the same names; a turn of calls follows the user or a response."""
    kinds: list[str] = []
    calls: list[dict[str, Any]] = []
    for content in request.contents:
        parts = content["parts"]
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
    is_users = not calls and request.contents[-1]["role"] == "user"
    demand(is_users, "the last turn must be of the user or a function response.")


def _fit(calls: list[dict[str, Any]], given: list[dict[str, Any]]) -> None:
    """An id that both sides use is that of the same name."""
    names = sorted(call["name"] for call in calls) == sorted(one["name"] for one in given)
    words = "the number of function response parts must equal the number of function call parts of the call turn."
    demand(names, words)
    by_id = {call["id"]: call["name"] for call in calls if call.get("id") is not None}
    wrong = [one for one in given if by_id.get(one.get("id"), one["name"]) != one["name"]]
    demand(not wrong, "function response id does not match the function call.")


@check
def first_calls_of_the_open_turn_are_signed(request: Request) -> None:
    """From 3 on: of each step since the user last spoke, the first call. `skip_thought_signature_validator` passes."""
    if (version(request.model, "gemini") or (0, 0)) < (3, 0):
        return
    says = [one["role"] == "user" and any("text" in part for part in one["parts"]) for one in request.contents]
    spoken = [at for at, is_said in enumerate(says) if is_said]
    for at in range(spoken[-1] if spoken else 0, len(request.contents)):
        calls = [part for part in request.contents[at]["parts"] if "functionCall" in part]
        if calls:
            place = f"position {at}"
            name = calls[0]["functionCall"]["name"]
            words = f"Function call is missing a thought_signature in functionCall parts. Function call {name}, {place}"
            demand(calls[0].get("thoughtSignature"), words)


@check
def signatures_are_ours(request: Request) -> None:
    """Of this call, and of this model: one of another makes the answer worse, and none of a cut one is taken."""
    for where, part in request.parts():
        signature = part.get("thoughtSignature")
        if signature and "functionCall" in part and signature != "skip_thought_signature_validator":
            said = read(signature.translate(_STANDARD), part["functionCall"]["name"])  # of either alphabet
            demand(said, f"Request contains an invalid argument. Thought signature is not valid. ({where})")


@check
def tools_of_the_provider_stay_in_pairs(request: Request) -> None:
    asked = [part["toolCall"].get("id") for _, part in request.parts() if "toolCall" in part]
    given = [part["toolResponse"].get("id") for _, part in request.parts() if "toolResponse" in part]
    demand(sorted(map(str, asked)) == sorted(map(str, given)), "toolResponse parts must equal the toolCall parts.")


def answered(body: Body, parts: list[Body], model: str = NEWEST) -> list[Body]:
    """The parts of an answer to a request that was taken: the first call is signed."""
    signed_parts, is_signed = [], False
    for part in parts:
        if "functionCall" in part and not is_signed:
            said = Signed(Request(body, model).model, "", "", "")
            part, is_signed = {**part, "thoughtSignature": signature_of(part["functionCall"]["name"], said)}, True
        signed_parts.append(part)
    return signed_parts


def shown_tokens(request: Request) -> int:
    return tokens_of(request.contents) + tokens_of(request.body.get("systemInstruction") or "")


def take(body: Body, account: Account = OLD, model: str = NEWEST) -> Taken:
    """What the API does with a request."""
    return held("gemini", lambda: Request(body, model), shown_tokens)
