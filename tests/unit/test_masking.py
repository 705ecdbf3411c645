"""Stage 1 as a whole: what a masked history looks like, and what stays as it was."""

from __future__ import annotations

import copy
import json
from typing import Any

import published
import pytest

import recede
from support import (
    assistant,
    block_mask,
    function_call,
    function_call_output,
    mask,
    masked,
    result,
    system,
    tool_result,
    tool_use,
    turns,
    user,
)

LONG = "x" * 500


def test_a_masked_observation_is_a_string_also_where_it_was_a_list() -> None:
    parts = [{"type": "text", "text": LONG}]
    history = [result("1", parts), user([tool_result("2", parts)]), function_call_output("3", parts)]
    view = mask(history, keep_results=0).messages
    assert view[0]["content"] == view[1]["content"][0]["content"] == view[2]["output"] == masked(500)


def test_every_other_field_stays_in_its_place() -> None:
    block = {"z": 1, "content": LONG, "tool_use_id": "1", "cache_control": {"type": "ephemeral"}, "type": "tool_result"}
    history = [{"uuid": "u", "content": [{"type": "text", "text": "hi"}, block], "role": "user", "extra": [1.0, None]}]
    (view,) = mask(history, keep_results=0).messages
    assert list(view) == list(history[0])
    assert view["content"][0] is history[0]["content"][0]
    assert list(view["content"][1].items()) == [
        (key, masked(500) if key == "content" else value) for key, value in block.items()
    ]


def test_the_input_is_unharmed_and_unchanged_messages_are_the_callers_own() -> None:
    history = [user("task"), *turns(3, chars=500), assistant("done")]
    before = copy.deepcopy(history)
    view = published.mask_observations(history, keep_results=1).messages
    assert history == before
    assert view is not history
    for index, (ours, theirs) in enumerate(zip(view, history, strict=True)):
        assert (ours is theirs) is (index not in (2, 4)), index


def test_masked_blocks_leave_their_neighbours_the_callers_own() -> None:
    blocks = [tool_result("1", LONG), tool_result("2", "short"), {"type": "text", "text": "x"}]
    history = [tool_use("1", "2"), user(blocks)]
    view = published.mask_observations(history, keep_results=0).messages
    assert view[1]["content"][1] is blocks[1]
    assert view[1]["content"][2] is blocks[2]


def test_calls_reasoning_and_texts_are_never_masked() -> None:
    history = [
        system(LONG),
        user(LONG),
        assistant([{"type": "thinking", "thinking": LONG}, *tool_use("1")["content"]]),
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": LONG}]},
        function_call("2", arguments=LONG),
        assistant(LONG),
    ]
    assert mask(history, keep_results=0).messages is history


def test_a_subclass_of_dict_and_list_is_read_and_left_unharmed() -> None:
    class Own(dict):
        pass

    history = [Own(result("1", LONG)), Own(assistant("hi"))]
    view = published.mask_observations(history, keep_results=0, boundary="sliding").messages
    assert view[0] == result("1", masked(500))
    assert view[1] is history[1]
    assert type(history[0]) is Own and history[0]["content"] == LONG


def test_orphan_results_are_observations_too() -> None:
    assert mask([result("nobody", LONG), result(None, LONG)], keep_results=0).masked_count == 2


def test_an_empty_history_comes_back() -> None:
    history: list[Any] = []
    assert mask(history, keep_results=0).messages is history
    assert block_mask(history) is history


# The block masker


@pytest.mark.parametrize(("keep", "masked_results"), [(3, 2), (4, 1), (5, 0), (6, 0), (10**30, 0)])
def test_block_masker_windows(keep: int, masked_results: int) -> None:
    history = turns(5)
    view = block_mask(history, keep)
    assert sum("masked" in (message["content"] or "") for message in view) == masked_results
    if not masked_results:
        assert view is history


def test_block_masker_keeps_at_least_3() -> None:
    for keep in (2, 0, -1):
        with pytest.raises(ValueError, match="keep must be at least 3"):
            recede.designs.mask_old_observations([], keep)
    for keep in ("4", 4.0, None, True):
        with pytest.raises(TypeError, match="keep"):
            recede.designs.mask_old_observations([], keep)


def test_block_masker_rounds_down_to_chunks() -> None:
    # 10 results, 4 kept: 6 are older; chunks of 4 leave the boundary at 4.
    view = block_mask(turns(10), 4, 4)
    assert [message["content"] for message in view[1::2]].count("[observation masked — 1 lines omitted]") == 4
    assert block_mask(turns(10), keep=4, mask_chunk=6)[11]["content"] != "x" * 100
    assert block_mask(history := turns(10), keep=4, mask_chunk=7) is history


def test_block_masker_takes_the_options_for_tools() -> None:
    history = [*turns(3, name="read"), *turns(4, name="run")]
    view = block_mask(history, exclude_tools=["read"])
    assert view is history
    view = block_mask(history, keep_by_tool={"run": 0})
    assert [message["content"] == "x" * 100 for message in view[1::2]] == [False] * 3 + [False] * 4
    view = block_mask(history, keep_by_tool={"read": None, "run": 1})
    assert [message["content"] == "x" * 100 for message in view[1::2]] == [True] * 3 + [False] * 3 + [True]


def test_block_masker_gives_the_bytes_back_where_nothing_was_to_mask() -> None:
    raw = b' [ {"role" : "tool","content":"%s"} ] ' % (b"x" * 500)
    assert recede.designs.mask_old_observations_json(raw) is raw


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        (["Saved to /tmp/"], True),
        (["saved to"], False),
        (["Saved to *.txt\nEnd"], True),
        (["*/tmp/*End"], True),
        (["*/tmp/*End*nd"], False),  # the parts do not overlap
        (["*.txt"], False),  # not as a whole
        (["no", "*.txt*"], True),
    ],
)
def test_results_with_a_matching_text_are_not_masked(engine: str, patterns: list[str], kept: bool) -> None:
    text = "Saved to /tmp/" + "a" * 200 + ".txt\nEnd"
    for content in (text, [{"type": "text", "text": text[:9]}, {"type": "text", "text": text[9:]}]):
        history = [assistant("1"), result("1", content), *turns(2, name="other")]
        view = mask(history, keep_results=0, keep_matching=patterns).messages
        assert (view[1] == history[1]) is kept
        assert view[3] != history[3]
        data = json.dumps(history).encode()
        shown = published.mask_observations_json(data, keep_results=0, keep_matching=patterns).json
        assert (json.loads(shown)[1] == history[1]) is kept


@pytest.mark.parametrize(
    ("patterns", "error"),
    [("Saved", TypeError), ([7], TypeError), ([""], ValueError), (["**"], ValueError), (["a" * 1_001], ValueError)],
)
def test_wrong_texts_to_keep_are_refused(patterns: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="keep_matching"):
        mask([], keep_results=0, keep_matching=patterns)
