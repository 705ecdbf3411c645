"""Messages of an unknown shape are named by their fields; an empty history is none of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import published
import pytest
from children import recede_command

import recede
from recede._encodable import warn_once
from recede.reduction._unrecognized import unrecognized
from support import assistant, call, user


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "text": "hi"}, {"role": "ai", "text": "hello"}],
        [{"from": "human", "value": "hi"}],
        [{"message.role": "user", "message.content": "hi"}],
        [{"role": "assistant", "text": "a turn, but no characters"}],
        [{"id": 1, "action": "run", "content": None}, {"id": 2, "observation": "run", "text": "done"}],
    ],
    ids=["role and text", "from and value", "attributes", "an answer", "events"],
)
def test_messages_of_an_unknown_shape_are_named_by_their_fields(messages: list[Any]) -> None:
    words = unrecognized(messages)
    assert words is not None
    assert words.startswith(f"nothing was recognized in messages with the fields {next(iter(messages[0]))}")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user("")],
        [user(None), user([])],
        [user("hi"), {"from": "human"}],
        [assistant(""), {"role": "assistant", "content": None, "timestamp": 5}],
        [call("1")],
        [{}, {"role": "user"}],
        [{"role": "tool", "tool_call_id": "1"}],
    ],
)
def test_messages_that_are_recognized_or_empty_are_not(messages: list[Any]) -> None:
    assert unrecognized(messages) is None


def test_many_fields_are_cut_to_a_line() -> None:
    words = unrecognized([{"x" * 500 + str(n): n for n in range(99)}])
    assert words is not None
    assert len(words) < 700


@pytest.mark.parametrize("name", ["reduce", "mask_observations"])
def test_what_reduces_a_history_of_an_unknown_shape_logs_its_fields_once(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    warn_once.cache_clear()
    options = {"max_input_chars": 9} if name == "reduce" else {"keep_results": 1}
    for field in (f"text of {name}", f"bytes of {name}"):
        messages: list[Any] = [{"from": "human", field: "hi"}]
        for _ in range(2):
            getattr(published, f"{name}_json")(json.dumps(messages), **options) if field.startswith(
                "bytes"
            ) else getattr(published, name)(messages, **options)
        assert [record.getMessage() for record in caplog.records] == [unrecognized(messages)]
        caplog.clear()
    for messages in ([], [user("")], [user("hi")]):
        getattr(published, name)(messages, **options)
    published.reduce([{"from": "human", "unread": "hi"}], max_input_chars=9, enabled=False)
    assert not caplog.records


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ('[{"x":' + "[" * 900 + "]" * 900 + "}]", "with the fields x:"),
        ('[{"x":' + "[" * 1_022 + "]" * 1_022 + "}]", ""),  # deeper than some Pythons read
        ('[{"x":' + "9" * 5_000 + "}]", ""),  # longer than Python reads
        ('[{"\ud800":1}]', "with the fields \\ud800:"),
        ('[{"\\ud800":1}]', "with the fields \\ud800:"),
    ],
)
def test_json_of_an_unknown_shape_that_python_cannot_read_or_print(
    history: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    warn_once.cache_clear()
    assert published.reduce_json(history, max_input_chars=9).json == history.encode(errors="surrogatepass")
    logged = "".join(record.getMessage() for record in caplog.records)
    assert said in logged and logged.isprintable()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            {"role": "function", "name": "run", "content": "x"},
            "'function' are never masked: the result of a tool has the",
        ),
        ({"role": "asistant", "content": "x"}, "'asistant' are never masked; did you mean 'assistant'?"),
        (
            {"role": "tools", "content": [{"type": "text", "text": "x"}]},
            "'tools' are never masked; did you mean 'tool'?",
        ),
        ({"role": "\x1b[2J\ud800" * 99, "content": "x"}, "'\\x1b[2J"),
    ],
)
@pytest.mark.parametrize("door", ["list", "json", "History", "History.append_json", "Masker"])
def test_a_role_that_no_shape_has_is_said_once(
    door: str, message: dict[str, Any], said: str, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    if door == "Masker" and engine == "oracle":
        pytest.skip("it has no Masker")
    warn_once.cache_clear()
    history = [user("hi"), message, call("1"), message]
    for _ in range(2):
        if door in ("list", "json"):
            assert recede.reduce(history if door == "list" else json.dumps(history)).masked_count == 0
        elif door == "Masker":
            assert recede.masker.Masker().view(history) == history
        else:
            session = recede.History()
            for one in history:
                session.append(one) if door == "History" else session.append_json(json.dumps(one))
            assert session.stats().masked_count == 0
    [words] = [record.getMessage() for record in caplog.records if "of the role" in record.getMessage()]
    assert f"messages of the role {said}" in words and words.isprintable() and len(words) < 300


def test_a_reader_of_transcripts_names_a_role_that_no_shape_has() -> None:
    for role in ("function", "asistant"):
        history = [user("hi"), {"role": role, "content": "x"}]
        for data in (json.dumps(history), "\n".join(map(json.dumps, history)), json.dumps({"messages": history})):
            [words] = recede.transcripts.read(data.encode()).warnings
            assert f"1 message was not understood: role {role}" in words


@pytest.mark.parametrize(
    "message",
    [
        {"role": "function", "content": None},
        {"role": "function", "parts": [{"functionResponse": {"name": "run", "response": {"output": "x"}}}]},
        {"role": "x", "pairRole": "result", "pairId": "1", "content": "x"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}]},
        {"content": "x"},
        {"role": "developer", "content": "x"},
        {"role": "model", "parts": [{"text": "x"}]},
    ],
)
def test_a_message_that_rules_know_has_no_unknown_role(
    message: Any, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    warn_once.cache_clear()
    for form in (list, json.dumps):
        recede.reduce(form([user("hi"), message]))
    recede.History().extend([user("hi"), message])
    if engine == "core":
        recede.masker.Masker().view([user("hi"), message])
    assert not caplog.records


def test_the_command_line_says_once_that_nothing_was_recognized(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('[{"who": "human", "say": "hi"}]')
    done = recede_command("reduce", tmp_path / "in.json", "--max-input-tokens", 9)
    assert done.stderr.count(b"nothing was recognized in messages with the fields who, say") == 1
