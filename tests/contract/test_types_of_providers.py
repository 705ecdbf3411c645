"""Each type in the unions of the installed clients is understood, or listed here with the reason why it stays, counted.

A new version of a client that brings a new type fails the first test: give the type a kind, or a reason.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import pytest
from anthropic.types import content_block_param, tool_result_block_param
from anthropic.types.beta import beta_content_block_param, beta_tool_result_block_param
from openai.types import responses
from openai.types.chat import (
    chat_completion_assistant_message_param,
    chat_completion_content_part_param,
    chat_completion_message_param,
)
from typing_extensions import get_type_hints

try:
    from google.genai import interactions
except ImportError:  # its steps are not listed then
    interactions = None  # type: ignore[assignment]

import recede
from support import assistant, call, mask, result, tool_result, tool_use, user

LONG = "x" * 1_000
IMAGE_CHARS = 6_400

PROVIDER = "the provider makes it, and requires it as it was, or has it"
NAMES_TOOLS = "the model may call the tools in it"
NO_TEXT = "it has no text of a tool"
NO_ID = "it is deprecated, and pairs with its call by no id"

ITEMS = {
    "message": "message",
    "reasoning": "thinking",
    "image_generation_call": "image",
    **dict.fromkeys(("function_call", "custom_tool_call", "computer_call", "tool_search_call"), "call"),
    "mcp_approval_request": "call",
    **dict.fromkeys(("local_shell_call", "shell_call", "apply_patch_call"), "call"),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output", "shell_call_output"), "result"),
    **dict.fromkeys(("local_shell_call_output", "apply_patch_call_output"), "result"),
    "computer_call_output": "image",
    **dict.fromkeys(("file_search_call", "web_search_call", "code_interpreter_call", "mcp_call"), PROVIDER),
    **dict.fromkeys(("mcp_list_tools", "compaction", "program", "program_output"), PROVIDER),
    **dict.fromkeys(("tool_search_output", "additional_tools"), NAMES_TOOLS),
    **dict.fromkeys(("mcp_approval_response", "configuration_update"), NO_TEXT),
    **dict.fromkeys(("compaction_trigger", "item_reference"), NO_TEXT),
}
PARTS = {
    **dict.fromkeys(("text", "input_text", "output_text"), "text"),
    **dict.fromkeys(("image", "image_url", "input_image", "input_audio", "file", "input_file"), "image"),
    "refusal": "the model makes it: it is no result",
}
BLOCKS = {
    **PARTS,
    "document": "image, or text",
    **dict.fromkeys(("thinking", "redacted_thinking"), "thinking"),
    "tool_use": "call",
    "tool_result": "result",
    **dict.fromkeys(("server_tool_use", "mcp_tool_use", "mcp_tool_result", "mcp_tool_listing"), PROVIDER),
    **{
        f"{name}_tool_result": PROVIDER
        for name in ("web_search", "web_fetch", "code_execution", "tool_search", "advisor")
    },
    **{f"{name}_code_execution_tool_result": PROVIDER for name in ("bash", "text_editor")},
    **dict.fromkeys(("compaction", "fallback"), PROVIDER),
    **dict.fromkeys(("tool_addition", "tool_removal"), NAMES_TOOLS),
    "search_result": "the user gives it: it is no result",
    "container_upload": NO_TEXT,
}
RESULT_PARTS = {
    **PARTS,
    "document": "image, or text",
    "search_result": "masked with its result",
    "browser_state": "masked with its result",
    "tool_reference": NAMES_TOOLS,
}
_BY_GOOGLE = (
    "code_execution google_search google_maps url_context file_search retrieval processing tool_search mcp_server_tool"
).split()
STEPS = {
    **dict.fromkeys(("user_input", "model_output"), "message"),
    "thought": "thinking",
    "function_call": "call",
    "function_result": "result",
    **{f"{name}_{half}": PROVIDER for name in _BY_GOOGLE for half in ("call", "result")},
}
CONTENTS = {"text": "text", **dict.fromkeys(("image", "audio", "document", "video"), "image")}
ROLES = {
    **dict.fromkeys(("developer", "system", "user", "assistant"), "message"),
    "tool": "result",
    "function": NO_ID,
}


class Union(NamedTuple):
    """A union of a client, the kinds of its types by name, and a history with a value of it."""

    of: Any
    kinds: dict[str, str]
    place: Any
    field: str = "type"


UNIONS = {
    "items": Union(responses.ResponseInputItemParam, ITEMS, lambda item: [item]),
    "content of items": Union(responses.ResponseInputContentParam, PARTS, lambda part: [user([part])]),
    "content of answers": Union(
        responses.response_output_message_param.Content, PARTS, lambda part: [assistant([part])]
    ),
    "outputs of functions": Union(
        responses.ResponseFunctionCallOutputItemParam,
        PARTS,
        lambda part: [{"type": "function_call_output", "call_id": "1", "output": [part]}],
    ),
    "chat": Union(chat_completion_message_param.ChatCompletionMessageParam, ROLES, lambda one: [one], "role"),
    "content of chat": Union(
        chat_completion_content_part_param.ChatCompletionContentPartParam, PARTS, lambda part: [user([part])]
    ),
    "content of chat's assistant": Union(
        chat_completion_assistant_message_param.ContentArrayOfContentPart, PARTS, lambda part: [assistant([part])]
    ),
    "blocks": Union(content_block_param.ContentBlockParam, BLOCKS, lambda block: [user([block])]),
    "blocks of beta": Union(beta_content_block_param.BetaContentBlockParam, BLOCKS, lambda block: [user([block])]),
    "parts of results": Union(
        tool_result_block_param.Content, RESULT_PARTS, lambda part: [tool_use("1"), user([tool_result("1", [part])])]
    ),
    "parts of results of beta": Union(
        beta_tool_result_block_param.Content,
        RESULT_PARTS,
        lambda part: [tool_use("1"), user([tool_result("1", [part])])],
    ),
}

if interactions is not None:
    UNIONS |= {
        "steps": Union(interactions.StepParam, STEPS, lambda step: [step]),
        "content of steps": Union(
            interactions.ContentParam, CONTENTS, lambda part: [{"type": "user_input", "content": [part]}]
        ),
        "parts of results of steps": Union(
            interactions.FunctionResultSubcontentParam,
            {**CONTENTS, "function": NAMES_TOOLS},
            lambda part: [
                {"type": "function_call", "id": "1", "name": "f", "arguments": {}},
                {"type": "function_result", "call_id": "1", "name": "f", "result": [part]},
            ],
        ),
    }


def members(hint: Any) -> Iterator[Any]:
    """The members of a union, and of unions in it."""
    if hasattr(hint, "__value__"):  # a named union
        yield from members(hint.__value__)
    elif typing.get_origin(hint) is typing.Annotated:
        yield from members(typing.get_args(hint)[0])
    elif typing.get_origin(hint) is typing.Union:
        for one in typing.get_args(hint):
            yield from members(one)
    elif is_dict(hint):  # others are of answers, which a client turns into these
        yield hint


def is_dict(hint: Any) -> bool:
    return hasattr(hint, "__required_keys__")


def name_of(member: Any, field: str) -> str:
    hint = get_type_hints(member)[field]
    while typing.get_origin(hint) is not Literal:
        hint = typing.get_args(hint)[0]
    return str(typing.get_args(hint)[0])


def sample(hint: Any, depth: int = 0) -> Any:
    """A value of a type, with long texts wherever it takes a text; without cache marks."""
    origin: Any = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if hasattr(hint, "__value__"):
        return sample(hint.__value__, depth)
    if origin is Literal:
        return arguments[0]
    if origin is typing.Annotated:
        return sample(arguments[0], depth)
    if origin is typing.Union:
        simple = [one for one in arguments if one is str]
        return sample((simple or arguments)[0], depth)
    if is_dict(hint):
        fields = get_type_hints(hint) if depth < 6 else {}
        return {key: sample(one, depth + 1) for key, one in fields.items() if key != "cache_control"}
    if origin is dict:
        return {"key": LONG}
    if origin is not None:  # a list, or what can be made one
        return [sample(arguments[0], depth + 1)] if arguments else []
    return {str: LONG, object: {"key": LONG}, int: 5, float: 5, bool: True}.get(hint, LONG)


def texts(value: Any) -> int:
    """The characters of all texts in a value."""
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(texts, inner))


CASES = [(name, member, name_of(member, union.field)) for name, union in UNIONS.items() for member in members(union.of)]


@pytest.mark.parametrize("name", UNIONS)
def test_each_type_of_a_union_is_listed(name: str) -> None:
    found = {kind for union, _, kind in CASES if union == name}
    assert found, "the union has another form"
    assert found - set(UNIONS[name].kinds) == set(), "a new type: give it a kind, or the reason why it stays"


@pytest.mark.parametrize(("name", "member", "kind"), CASES, ids=[f"{name}-{kind}" for name, _, kind in CASES])
def test_a_type_is_what_the_list_says(name: str, member: Any, kind: str) -> None:
    union, value = UNIONS[name], sample(member)
    listed = union.kinds[kind]
    history = [*union.place(value), assistant("done")]
    is_part = kind in PARTS or kind in CONTENTS
    base = recede.count_chars([*union.place({"type": "text", "text": ""}), assistant("done")]) if is_part else 0
    chars = recede.count_chars(history) - base
    view = mask(history, keep_results=0)
    findings = [finding.kind for finding in recede.check_pairs(union.place(value)).findings]
    if listed == "call":
        assert {"call_without_result", "open_call"} & set(findings)
        assert chars >= 20
    elif listed == "result":
        assert view.masked_count == 1
        assert recede.count_chars(view.messages) < chars - 900
    elif listed in ("text", "message"):
        assert chars >= 1_000
    elif listed == "image":
        assert IMAGE_CHARS <= chars < IMAGE_CHARS + 100
    elif listed == "thinking":
        assert chars == len("done")
    elif listed.startswith("image, or"):
        assert chars >= min(texts(value["source"]), IMAGE_CHARS)
    else:  # it stays, and each of its texts counts
        assert chars >= texts(value if union.field == "type" else value["content"])
        assert listed == "masked with its result" or view.messages == history


def test_a_part_that_names_tools_stays_where_its_text_is_masked() -> None:
    parts = [{"type": "text", "text": LONG}, {"type": "tool_reference", "tool_name": "read"}]
    for history in ([call("1"), result("1", parts)], [tool_use("1"), user([tool_result("1", parts)])]):
        view = mask([*history, assistant("done")], keep_results=0)
        assert view.masked_count == 1
        assert "tool_reference" in repr(view.messages)
