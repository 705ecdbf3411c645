"""Cache marks inside of observations: where they go when those are replaced."""

from __future__ import annotations

from typing import Any

import published
import pytest

from support import mask, mask_json, masked, reduce, result, tool_result, tool_use, user

LONG = "x" * 500
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def text(mark: Any = None, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": LONG, **({} if mark is None else {"cache_control": mark}), **fields}


def block_of(*parts: Any, **fields: Any) -> Any:
    history = [tool_use("1"), user([tool_result("1", list(parts), **fields)])]
    return mask(history, keep_results=0).messages[1]["content"][0]


def test_a_mark_in_an_observation_goes_to_its_block() -> None:
    block = block_of(text(MARK))
    assert block["content"] == masked(500)
    assert block["cache_control"] == MARK


def test_of_several_marks_the_newest_stays() -> None:
    assert block_of(text(HOUR), text(MARK), text())["cache_control"] == MARK
    assert block_of(text(MARK), cache_control=HOUR)["cache_control"] == HOUR


def test_a_null_is_no_mark() -> None:
    assert block_of(text(MARK), cache_control=None)["cache_control"] == MARK
    assert block_of(text(MARK), text(cache_control=None))["cache_control"] == MARK
    assert "cache_control" not in block_of(text(cache_control=None))


def test_an_image_may_have_the_mark() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "cache_control"}}
    assert block_of(text(), {**image, "cache_control": MARK})["cache_control"] == MARK
    assert "cache_control" not in block_of(text(), image)


def test_where_the_message_is_the_result_the_mark_stays_in_a_part() -> None:
    parts = [text(), text(MARK), text()]
    output = {"type": "function_call_output", "call_id": "1", "output": [{**parts[1], "type": "input_text"}]}
    view = mask([result("1", parts), output], keep_results=0).messages
    assert view[0]["content"] == [{"type": "text", "text": masked(1500), "cache_control": MARK}]
    assert view[1]["output"] == [{"type": "input_text", "text": masked(500), "cache_control": MARK}]
    again = published.mask_observations(view, keep_results=0)
    assert again.messages is view


def test_a_breakpoint_of_openai_moves_as_well() -> None:
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    output = {"type": "function_call_output", "call_id": "1", "output": [text(type="input_text"), text(**mark)]}
    view = mask([result("1", [text(), text(**mark)]), output], keep_results=0).messages
    assert view[0]["content"] == [{"type": "text", "text": masked(1000), **mark}]
    assert view[1]["output"] == [{"type": "input_text", "text": masked(1000), **mark}]
    assert block_of(text(**mark), cache_control=MARK) == {**block_of(text()), "cache_control": MARK, **mark}


def test_of_two_names_on_one_part_anthropics_moves() -> None:
    part = text(MARK, prompt_cache_breakpoint={"mode": "explicit"})
    assert mask([result("1", [part])], keep_results=0).messages[0]["content"] == [
        {"type": "text", "text": masked(500), "cache_control": MARK}
    ]


def test_a_part_that_stays_loses_the_marks_that_moved() -> None:
    reference = {"type": "tool_reference", "tool_name": "run"}
    marks: list[dict[str, Any]] = [{"cache_control": MARK}, {"prompt_cache_breakpoint": {"mode": "explicit"}}]
    for mark in marks:
        block = block_of(text(), {**mark, **reference})
        assert block["content"][1] == reference
        assert mark.items() <= block.items()


def test_a_clipped_result_keeps_its_mark() -> None:
    history = [user("task"), tool_use("1"), user([tool_result("1", [text(MARK)])])]
    view = reduce(history, max_input_chars=400, clip_results=100)
    assert view.clipped_count == 1
    assert view.messages[2]["content"][0]["cache_control"] == MARK


def test_a_message_of_the_task_that_is_cut_keeps_its_mark() -> None:
    history = [user([text(MARK, text="y" * 3000)]), tool_use("1"), user([tool_result("1", LONG)])]
    view = reduce(history, max_input_chars=1000, keep_messages=0, summarizer=lambda messages, previous: "short")
    (part,) = view.messages[0]["content"]
    assert len(part["text"]) < 3000
    assert part["cache_control"] == MARK


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{"content" : %s , "x":1,"type":"tool_result"}',
            '{"content" : %s,"cache_control":{ "a" : 1} , "x":1,"type":"tool_result"}',
        ),
        (
            '{"type":"tool_result","content":%s, "cache_control" : null }',
            '{"type":"tool_result","content":%s, "cache_control" : { "a" : 1} }',
        ),
        (
            '{"cache_control":null,"type":"tool_result","content":%s}',
            '{"cache_control":{ "a" : 1},"type":"tool_result","content":%s}',
        ),
    ],
)
@pytest.mark.parametrize("key", ["cache_control", "cache\\u005fcontrol"])
def test_in_bytes_it_is_spliced(before: str, after: str, key: str) -> None:
    value = '[ {"type":"text","text":"%s","%s":{ "a" : 1} } ]' % (LONG, key)
    raw = '[{"role":"user","content":[%s,{"type":"text","text":"hi"}]}]'
    view = mask_json(raw % (before % value), keep_results=0).json
    assert view.decode() == raw % (after % f'"{masked(500)}"')


def test_the_last_of_repeated_marks_counts() -> None:
    part = '{"type":"text","text":"%s","cache_control":{"a":1},"cache_control":{"b":2}}' % LONG
    raw = '[{"role":"user","content":[{"type":"tool_result","content":[%s]}]}]' % part
    view = mask_json(raw, keep_results=0).json.decode()
    assert view.count("cache_control") == 1
    assert '"cache_control":{"b":2}' in view


def test_a_session_keeps_it_too() -> None:
    messages = [tool_use("0"), user([tool_result("0", [text(MARK)])])]
    for number in range(1, 5):
        messages += [tool_use(str(number)), user([tool_result(str(number), LONG)])]
    history = published.History(keep=3, boundary="sliding")
    history.extend(messages)
    block = history.view()[1]["content"][0]
    assert block["content"].startswith("[observation masked")
    assert block["cache_control"] == MARK
