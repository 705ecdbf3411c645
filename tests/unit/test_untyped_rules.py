"""The rules of Gemini and Converse that views are held against: for each a request that it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from untyped_rules import converse_fault, gemini_fault

from sound import signed

GO = {"role": "user", "parts": [{"text": "Go."}]}


def asks(*names: str, **more: Any) -> dict[str, Any]:
    calls = [{"functionCall": {"name": name, **more}, "thoughtSignature": signed(name)} for name in names]
    return {"role": "model", "parts": calls}


def answers(*names: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"functionResponse": {"name": name, **more}} for name in names]}


def test_sound_requests_are_taken() -> None:
    assert gemini_fault([GO, asks("f", "g", args={}), answers("g", "f", response={}), GO]) is None
    assert converse_fault([ON, uses("1"), gives("1", status="error"), {"role": "assistant", "content": [TEXT]}]) is None


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ([], "not specified"),
        ([{"role": "system", "parts": [{"text": ""}]}], "valid role"),
        ([{**GO, "tags": []}], "Unknown name 'tags'"),
        ([{"role": "user", "parts": []}], "must not be empty"),
        ([{"role": "user", "parts": [{"text": "", "x": 1}]}], "Unknown name 'x'"),
        ([{"role": "user", "parts": [{"thought": True}]}], "data: required"),
        ([{"role": "user", "parts": [{"text": ["x"]}]}], "Invalid value"),
        ([GO, asks("f"), answers("f", response="text"), GO], "Struct"),
        ([GO, asks("f"), answers("f", output={}), GO], "Unknown name 'output'"),
        ([GO, asks("f"), answers("", response={}), GO], "Name cannot be empty"),
        ([GO, {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}, answers("f")], "thought_signature"),
        ([asks("f"), answers("f")], "immediately after"),
        ([GO, asks("f"), GO], "must follow"),
        ([GO, answers("f")], "must follow"),
        ([GO, asks("f", "g"), answers("f")], "number of function response"),
        ([GO, asks("f"), answers("g")], "number of function response"),
        ([GO, asks("f")], "last turn"),
    ],
)
def test_gemini_refuses(contents: Any, words: str) -> None:
    assert words in str(gemini_fault(contents))


TEXT = {"text": "Go."}
ON = {"role": "user", "content": [TEXT]}


def uses(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"toolUse": {"toolUseId": one, "name": "f", "input": {}}} for one in ids]}


def gives(*ids: str, content: Any = (), **more: Any) -> dict[str, Any]:
    results = [{"toolResult": {"toolUseId": one, "content": list(content), **more}} for one in ids]
    return {"role": "user", "content": results}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "required"),
        ([uses("1")], "start with a user"),
        ([ON, ON], "alternate"),
        ([{"role": "system", "content": [TEXT]}], "start with a user"),
        ([{**ON, "tags": []}], "'tags'"),
        ([{"role": "user", "content": []}], "is empty"),
        ([{"role": "user", "content": "Go."}], "is empty"),
        ([{"role": "user", "content": [{"type": "text", "text": "x"}]}], "members of ContentBlock"),
        ([{"role": "user", "content": [{"text": " "}]}], "blank"),
        ([ON, uses("1"), ON], "Expected toolResult"),
        ([ON, uses("1", "2"), gives("1")], "Expected toolResult"),
        ([ON, uses("1", "1"), gives("1", "1")], "duplicate"),
        ([gives("1")], "exceeds"),
        ([ON, uses("1")], "after the last"),
        ([ON, uses("1"), gives("1", status="failed")], "status"),
        ([ON, uses("1"), {"role": "user", "content": [{"toolResult": {"toolUseId": "1"}}]}], "Missing required"),
        ([ON, uses("1"), {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": "x"}}]}], "a list"),
        ([ON, uses("1"), gives("1", content=["text"])], "members"),
        ([ON, uses("1"), gives("1", content=[{"json": "text"}])], "not JSON"),
    ],
)
def test_converse_refuses(messages: Any, words: str) -> None:
    assert words in str(converse_fault(messages))
