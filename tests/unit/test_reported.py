"""What a session is told of its provider: cold caches, usage, moves; and the switch that sends raw."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import published
import pytest
from published import History

import recede
from recede.types import BoundaryMove
from support import assistant, chat_call, chat_result, priced, user

WARM = {"input_tokens": 5, "cache_read_input_tokens": 4_000, "cache_creation_input_tokens": 100, "output_tokens": 7}
COLD = {"input_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 4_100, "output_tokens": 7}


def turns(count: int, words: int = 200) -> list[dict[str, Any]]:
    messages = [user("Go.")]
    for number in range(count):
        messages += [chat_call(f"c{number}", "run"), chat_result(f"c{number}", f"{number} " * words)]
    return messages


def grown(count: int = 9, **options: Any) -> History:
    return History.from_messages(turns(count), keep=3, **options)


def by_definition(history: History) -> list[Any]:
    cold = history.cold_requests
    return recede.designs.mask_old_observations(history.messages, 3, boundary="break_even", cold=cold)


def test_a_cold_cache_moves_the_boundary_and_is_part_of_the_session(tmp_path: Path) -> None:
    history = grown()
    assert history.view() == history.messages
    history.cache_is_cold()
    assert history.cold_requests == (19,)
    assert history.view() == by_definition(history) != history.messages
    history.append(user("Go on."))  # it was told of the next request, whenever that is made
    assert history.cold_requests == (20,)
    history.extend([assistant("Well."), user("And?")])
    assert history.cold_requests == (20,)
    assert history.view() == by_definition(history)
    assert history.stats().masked_count == 6
    history.save(tmp_path / "saved")
    loaded = History.load(tmp_path / "saved")
    assert (loaded.cold_requests, loaded.view()) == ((20,), history.view())
    history.rewind(18)
    assert history.cold_requests == ()
    assert history.view() == history.messages


def test_a_store_has_what_was_told_at_once(tmp_path: Path) -> None:
    with recede.store.TurnStore(tmp_path / "store", sync_every=1) as store:
        history = grown(store=store)
        history.view()
        history.reported(WARM)
        history.cache_is_cold()
    for options in ({"keep": 3}, {"keep": 4}):  # facts stay with other options
        with recede.store.TurnStore(tmp_path / "store") as store:
            again = History(store=store, **options)
            assert again.cold_requests == (19,)
            assert again.stats().reported.cached_tokens == 4_000


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (WARM, (1, 5, 4_000, 100, 7)),
        (
            {"prompt_tokens": 50, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 20}},
            (1, 30, 20, 0, 9),
        ),
        ({"input_tokens": 50, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 20}}, (1, 30, 20, 0, 9)),
        ({"input_tokens": 0, "output_tokens": 0}, (0, 0, 0, 0, 0)),
    ],
)
def test_usage_of_each_provider_is_added_up_and_stays_spent(usage: dict[str, Any], tokens: tuple[int, ...]) -> None:
    history = grown()
    history.view()
    history.reported(usage)
    assert history.stats().reported[:5] == tokens
    history.reported(usage)
    assert history.stats().reported[:5] == tuple(2 * count for count in tokens)
    history.rewind(2)
    assert history.stats().reported[:5] == tuple(2 * count for count in tokens)


def test_what_is_no_usage_is_refused() -> None:
    with pytest.raises(TypeError, match="takes the usage of a response, not int"):
        History().reported(5)


def test_two_cold_requests_in_a_row_mark_the_next_one() -> None:
    history = grown()
    history.view()
    history.reported(COLD)  # the first always is
    assert (history.stats().reported.cold_count, history.cold_requests) == (0, ())
    for usage, count, is_marked in ((COLD, 1, False), (WARM, 1, False), (COLD, 2, False), (COLD, 3, True)):
        history.append(user("Go on."))
        history.view()
        history.reported(usage)
        assert history.stats().reported.cold_count == count
        assert bool(history.cold_requests) == is_marked
    assert history.view() == by_definition(history) != history.messages


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": 4_000, "completion_tokens": 9}, {**COLD, "cache_creation_input_tokens": 9}]
)
def test_what_tells_nothing_of_the_cache_is_not_cold(usage: dict[str, Any]) -> None:
    history = grown()
    for _ in range(4):
        history.view()
        history.reported(usage)
    assert (history.stats().reported.cold_count, history.cold_requests) == (0, ())


def test_characters_of_a_token_are_those_by_which_both_grew() -> None:
    history = grown()
    for tokens in (10_000, 10_100):
        history.view()
        history.reported({"prompt_tokens": tokens, "completion_tokens": 1})
        history.append(user("x" * 350))
    assert history.stats().reported.chars_per_token == 3.5


# Moves


def test_each_move_is_told_once(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    told: list[BoundaryMove] = []
    history = History(keep=3, on_move=told.append)
    with caplog.at_level(logging.INFO, "recede"):
        for message in turns(40):
            history.append(message)
            history.view()
    assert told == list(history.stats().boundary_moves)
    assert len(told) > 1
    assert sum("the boundary moved at request" in line for line in caplog.messages) == len(told)
    history.save(tmp_path / "saved")
    History.load(tmp_path / "saved", on_move=told.append).view()
    assert told == list(history.stats().boundary_moves), "a loaded move was told before"


def test_an_on_move_that_raises_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def failing(move: BoundaryMove) -> None:
        raise ValueError("no")

    history, plain = History(keep=3, on_move=failing), History(keep=3)
    for message in turns(40):
        history.append(message)
        plain.append(message)
        assert history.view() == plain.view()
    assert "on_move raised an error" in caplog.messages
    reads_back = History(keep=3, on_move=lambda move: history_of_callback.view())
    history_of_callback = reads_back
    reads_back.extend(turns(40))
    assert reads_back.view() == plain.view()


def test_a_budget_tells_of_the_move_of_its_request() -> None:
    told: list[BoundaryMove] = []
    budget = recede.designs.Budget(0, 3, boundary="break_even", on_move=told.append)
    messages = turns(40)
    for end in range(3, len(messages) + 1, 2):
        budget.view(messages[:end])
    expected = published.mask_observations(messages, keep_results=3, boundary="break_even").boundary_moves
    assert [move.request for move in told] == [move.request for move in expected]


# Raw

_RAW = """
import json, recede
call = lambda n: {"id": str(n), "type": "function", "function": {"name": "run", "arguments": "{}"}}
messages = [{"role": "user", "content": "Go."}]
for n in range(40):
    messages.append({"role": "assistant", "content": None, "tool_calls": [call(n)]})
    messages.append({"role": "tool", "tool_call_id": str(n), "content": "x " * 900})
data = json.dumps(messages).encode()
small = {"max_input_tokens": 750}
assert recede.reduce(messages, **small).messages is messages
assert recede.reduce(data, **small).json is data
assert recede.reduce(messages, keep=1, boundary="sliding").messages is messages
assert recede.reduce(data, keep=1).json is data
assert recede.designs.mask_observations(messages, keep_results=1).messages is messages
assert recede.designs.mask_old_observations(messages, 3, 5) is messages
assert recede.designs.HistoryReducer(**small).reduce(messages).messages is messages
assert recede.designs.Budget(0, max_input_tokens=100).view(messages) == messages
for options in ({}, small, {"keep": 1, "boundary": "sliding"}):
    history = recede.History(**options)
    for message in messages:
        history.append(message)
        assert history.view() == history.messages
"""


def test_a_switch_sends_raw() -> None:
    import os

    for switch, code in (("1", 0), ("0", 1), ("", 1)):
        env = {**os.environ, "RECEDE_OFF": switch}
        run = subprocess.run([sys.executable, "-c", _RAW], env=env, capture_output=True, text=True, check=False)
        assert run.returncode == code, run.stderr


BESIDE = 300
"""Tokens of the system prompt and the tools."""


def counted(history: History, chars_per_token: float) -> None:
    """The provider counts the request of the current view, with these characters for a token and a static prefix."""
    tokens = BESIDE + round(history.stats().view_chars / chars_per_token)
    history.view()
    history.reported({"input_tokens": tokens, "output_tokens": 5})


def talking(history: History, turns_: list[dict[str, Any]], chars_per_token: float) -> list[int]:
    """The sizes of the views at the requests of a loop."""
    sizes = []
    for message in turns_:
        history.append(message)
        if message["role"] != "assistant":
            counted(history, chars_per_token)
            sizes.append(history.stats().view_chars)
    return sizes


def tokens_sent(ratio: float, limit: int, *, beside: int = BESIDE, calibrate: bool = True) -> list[int]:
    """The input of the requests of a loop, after the first report."""
    history = History(max_input_tokens=limit, calibrate=calibrate, provider=priced(read=0))
    sent = []
    for message in turns(60):
        history.append(message)
        if message["role"] != "assistant":
            history.view()
            sent.append(beside + round(history.stats().view_chars / ratio))
            history.reported({"input_tokens": sent[-1], "output_tokens": 5})
    return sent[1:]


@pytest.mark.parametrize("ratio", [2.0, 4.0, 6.0])
@pytest.mark.parametrize("limit", [3_000, 8_000])
def test_calibrated_requests_stay_within_the_limit_as_it_is_billed(ratio: float, limit: int) -> None:
    calibrated, plain = (tokens_sent(ratio, limit, calibrate=calibrate) for calibrate in (True, False))
    assert max(calibrated) <= 1.05 * limit
    if ratio < 4:
        assert max(plain) > 1.5 * limit
    over = [place for place, tokens in enumerate(calibrated) if tokens > limit]
    assert not any(place + 1 in over for place in over), "the next view is within the limit"


def test_what_is_beside_the_view_counts_once_it_is_reported() -> None:
    assert max(tokens_sent(4.0, 4_000, beside=2_000)) <= 4_000
    assert max(tokens_sent(4.0, 4_000, beside=2_000, calibrate=False)) > 5_000


def test_a_calibrated_trigger_counts_what_is_beside_the_view() -> None:
    def first_mask(**options: Any) -> int:
        history = recede.History(keep=1, boundary="sliding", trigger_tokens=4_000, **options)
        for message in turns(60, words=333):
            history.append(message)
            if message["role"] != "assistant":
                history.view()
                if history.stats().masked_count:
                    return history.stats().raw_chars
                history.reported({"input_tokens": 2_000 + history.stats().view_chars // 4, "output_tokens": 5})
        raise AssertionError("nothing is masked")

    plain = first_mask()
    assert 0.4 * plain < first_mask(calibrate=True) < 0.9 * plain


def test_calibration_counts_from_the_next_request_on() -> None:
    history = History(max_view_tokens=900, calibrate=True)
    for message in turns(9):
        history.append(message)
    view = history.view()
    history.reported({"input_tokens": 2_000, "output_tokens": 5})
    assert history.view() == view, "this request was made"
    history.append(chat_call("last", "run"))
    assert history.view()[: len(view)] == view, "no request is made after an answer"
    history.append(chat_result("last", "x"))
    assert history.view()[: len(view)] != view


def test_calibration_is_part_of_the_session(tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_view_tokens": 1_200, "calibrate": True, "keep": 3}
    path = tmp_path / "store"
    store = recede.store.TurnStore(path, sync_every=1)
    stored, plain = History(store=store, **options), History(**options)
    messages = turns(60)
    for number, message in enumerate(messages):
        for one in (stored, plain):
            one.append(message)
            if message["role"] != "assistant":
                counted(one, 2.0 if number < 60 else 5.0)
        assert stored.view() == plain.view()
        if number % 17 == 16:
            plain.save(tmp_path / "saved")
            loaded = History.load(tmp_path / "saved")
            assert (loaded.view(), loaded.stats().boundary_moves) == (plain.view(), plain.stats().boundary_moves)
            store.close()
            store = recede.store.TurnStore(path, sync_every=1)
            stored = History(store=store, **options)
            assert stored.view() == plain.view()
            plain._live.reports.forget()  # the last request that was reported of is not kept
    moves, view = plain.stats().boundary_moves, plain.view()
    plain.rewind(70)
    for message in messages[70:]:
        plain.append(message)
        if message["role"] != "assistant":
            plain.view()
    assert plain.stats().boundary_moves[:3] == moves[:3] and len(plain.view()) == len(view)
    store.close()
    with recede.store.TurnStore(path) as store:  # a history that does not calibrate takes four
        assert (
            History(store=store, max_view_tokens=1_200, keep=3).view()
            == History.from_messages(messages, max_view_tokens=1_200, keep=3).view()
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"calibrate": 1}, "calibrate must be True or False, not int"),
        ({"calibrate": True}, "give max_input_tokens"),
        ({"calibrate": True, "max_input_tokens": 5, "token_counter": len}, "give calibrate or a token_counter"),
    ],
)
def test_calibrate_is_for_limits(options: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        recede.History(**options)
