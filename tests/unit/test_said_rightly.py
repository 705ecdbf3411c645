"""Errors say what to do, and functions take the forms that their users have."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import published
import pytest
from children import recede_command

import recede
from support import call, result, turns, user

HISTORY: list[Any] = [user("Go."), *turns(2)]
ORPHAN: list[Any] = [user("Go."), call("1"), user("On."), result("9", "?")]
REQUEST = {"model": "any", "messages": ORPHAN, "temperature": 0.5}


def test_a_request_is_not_told_to_pass_itself() -> None:
    with pytest.raises(
        recede.TranscriptError, match=r"^a whole request: pass its list of messages; recede.reduce takes"
    ):
        recede.designs.mask_observations({"messages": HISTORY}, keep_results=4)  # type: ignore[arg-type]


def test_a_window_without_a_name_is_named() -> None:
    with pytest.raises(TypeError, match=r"name the window: mask_observations\(messages, keep_results=N\)"):
        recede.designs.mask_observations(HISTORY, 4)  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match="of turns and a current_turn"):
        recede.designs.mask_observations(HISTORY, 15, m=10)  # type: ignore[call-arg, arg-type]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "x.store"
    for is_read in (False, True):
        with pytest.raises(recede.StoreError, match="its folder does not exist") as caught:
            recede.store.TurnStore(path, read_only=is_read)
        assert (caught.value.kind, caught.value.path) == ("folder", str(path))


def test_messages_of_langchain_name_the_adapter() -> None:
    class HumanMessage:
        content, type = "Go.", "human"

        def model_dump(self, **_: Any) -> Any:
            return vars(type(self))

    HumanMessage.__module__ = "langchain_core.messages.human"
    with pytest.raises(TypeError, match=r"HumanMessage is a message of LangChain: recede\.integrations\.langchain"):
        published.reduce([HumanMessage()], max_input_chars=9)
    with pytest.raises(TypeError, match=r"recede\.integrations\.langchain"):
        published.History().append(HumanMessage())


def test_a_taken_port_is_a_plain_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = recede_command("proxy", "--port", port, "--state", "none")
    assert done.returncode == 2
    assert f"port {port} of 127.0.0.1 is taken" in done.stderr.decode() and b"--port N" in done.stderr


@pytest.mark.parametrize("history", [HISTORY, ORPHAN], ids=["whole", "orphan"])
@pytest.mark.parametrize("key", [None, "messages"])
def test_pairs_and_characters_of_every_form(history: list[Any], key: str | None) -> None:
    given: Any = history if key is None else {**REQUEST, key: history}
    text = json.dumps(given)
    for form in (given, text, text.encode(), bytearray(text.encode()), memoryview(text.encode())):
        assert recede.count_chars(form, image_chars=5) == recede.count_chars(history, image_chars=5)
        assert recede.check_pairs(form) == recede.check_pairs(history)
        repaired: Any = recede.repair_pairs(form)
        if history is HISTORY:
            assert repaired is form
        elif form is given:
            assert (repaired if key is None else repaired[key]) == recede.repair_pairs(history)
        else:
            assert isinstance(repaired, str if isinstance(form, str) else bytes)
            assert json.loads(repaired) == recede.repair_pairs(given)
    assert recede.check_pairs(recede.repair_pairs(text)).is_whole


@pytest.mark.parametrize("data", [b"[", "{}", b'[{"role": "user", "content": 5}]', b"\xff", "5"])
def test_what_is_no_history_is_refused_in_every_form(data: Any) -> None:
    for function in (recede.count_chars, recede.check_pairs, recede.repair_pairs):
        with pytest.raises(recede.TranscriptError):
            function(data)
