"""When masking was enough: what requests over a limit needed, by what their views show."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from children import recede_command
from everywhere import DOORS, Result, Step, shown_in
from tokens_counted import tokens_of

import recede
from recede._report import OverLimit
from recede.masker import Masker
from recede.proxy import RequestMasker
from support import ROOT, assistant, call, result, turns, user

History = list[dict[str, Any]]


def need_of(sent: History, view: History, limit: int) -> str:
    """The need of a request, by what its view shows."""
    new = [str(message["content"]) for message in view if message not in sent]
    if any(text.startswith("Conversation summary:") for text in new):
        return "summary"
    if len(view) < len(sent):
        return "truncation"
    if tokens_of(sent) <= limit:
        return ""
    return "cuts" if any("chars omitted" in text for text in new) else "masks"


SESSION: History = json.loads((ROOT / "examples" / "session.json").read_bytes())


@pytest.mark.parametrize(
    ("history", "limit"),
    [
        (SESSION, 20_000),
        (SESSION, 8_000),
        ([user("Go."), *turns(30, chars=9_000)], 9_000),
        ([user("Go."), *turns(3, chars=30_000)], 4_000),
        ([user("Go."), *turns(12, chars=400)], 120),
        ([user("x " * 2_000), *turns(4, chars=400)], 60),
    ],
)
def test_needs_are_counted_by_what_the_views_show(history: History, limit: int) -> None:
    kept, needed = recede.History(keep=3, max_input_tokens=limit), []
    for place, message in enumerate([*history, {"role": "assistant"}]):
        if message["role"] == "assistant" and history[place - 1]["role"] != "assistant":
            view = kept.view()
            needed.append(need_of(history[:place], view, limit))
            assert kept.view() == view  # taken again, it counts once
        kept.extend(history[place : place + 1])
    assert kept.stats().over_limit == OverLimit(*map(needed.count, OverLimit._fields))
    assert sum(kept.stats().over_limit) > 0


def test_below_a_limit_and_without_one_nothing_is_counted() -> None:
    for options in ({}, {"max_input_tokens": 10**6}, {"trigger_tokens": 10**6}):
        history = recede.History(**options)
        history.extend([user("Go."), *turns(20)])
        history.view()
        assert history.stats().over_limit == OverLimit()


def test_a_trigger_is_what_requests_are_over() -> None:
    history, sent = recede.History(keep=2, trigger_tokens=1_000, max_input_tokens=50_000), turns(10, chars=1_000)
    over = 0
    for place in range(0, len(sent), 2):
        history.extend(sent[place : place + 2])
        history.view()
        over += recede.count_chars(sent[: place + 2]) > 4_000
    assert history.stats().over_limit == OverLimit(masks=over)
    assert over > 3


def test_a_replay_says_when_masks_were_enough(tmp_path: Path) -> None:
    replay = recede.costs.replay(SESSION, ["budget:tokens=8000,fill=0.5", "break_even:window=10"])
    needed = [one.over_limit for one in replay.policies]
    assert needed[0] == needed[2] == OverLimit()
    assert needed[1].masks > 50 and needed[1].summary > 100
    (tmp_path / "one.json").write_text(json.dumps(SESSION))
    said = recede_command("replay", "--policy", "budget:tokens=8000,fill=0.5", tmp_path / "one.json").stdout.decode()
    share = round(100 * needed[1].masks / sum(needed[1]))
    assert f"masks alone were enough for {share} % of {sum(needed[1])} requests over the limit" in said
    assert f"{needed[1].summary} requests had a summary" in said


def test_a_door_that_masks_says_that_reasoning_is_over_its_limit(caplog: pytest.LogCaptureFixture) -> None:
    messages: list[Any] = [user("Find the bug.")]
    for number in range(40):
        answer = {**call(str(number)), "reasoning_content": "r" * 1_000}
        messages += [answer, result(str(number), "x" * 400)]
    assert recede.count_chars(messages) < 4 * 8_000
    Masker(max_input_tokens=8_000).view(messages)
    assert "over max_input_tokens" in caplog.text
    caplog.clear()
    body = json.dumps({"messages": messages}).encode()
    RequestMasker(max_input_tokens=8_000).mask("POST", "/v1/chat/completions", {}, body)
    assert "over max_input_tokens" in caplog.text


# System messages that are over the limit alone

REMINDER = {"role": "system", "content": "Be careful. " * 30}


def reminded(count: int) -> History:
    """A history of so many turns, each with a system message."""
    return [user("Go."), *(one for n in range(count) for one in (call(str(n)), result(str(n), "x" * 90), REMINDER))]


def hidings(count: int) -> int:
    """How many requests of such a history hide messages."""
    history, lengths = recede.History(max_input_tokens=500), [0]
    for message in reminded(count):
        history.append(message)
        if message == REMINDER:
            lengths.append(len(history.view()))
    return sum(length < before for before, length in pairwise(lengths))


def test_hiding_is_not_tried_again_until_a_view_has_grown_by_a_quarter() -> None:
    steps = [hidings(count) for count in (100, 200, 400)]
    assert steps[0] > 3
    assert all(more - few <= 4 for few, more in pairwise(steps)), steps  # log(2) / log(1.25)


def test_system_messages_over_the_limit_still_hide_what_is_older() -> None:
    for count in (20, 47, 80):
        view = recede.reduce(reminded(count), max_input_tokens=500)
        systems = recede.count_chars([REMINDER] * count)
        assert view.within_limit is False
        assert view.messages.count(REMINDER) == count
        assert view.dropped_count > count
        assert view.chars_after <= (systems + 600) * 5 / 4


# Where nothing fits


@pytest.mark.parametrize(
    ("door", "shape"), [(name, one) for name in ("Masker", "RequestMasker") for one in DOORS[name][1]]
)
def test_a_door_that_masks_sends_the_smallest_view_where_nothing_fits(door: str, shape: str) -> None:
    made = [Step("I look. " * 60, (Result(n, "run", f"<r{n}> " + "x" * 3_000, False),)) for n in range(30)]
    requests = [*DOORS[door][0](made, shape, {"max_input_tokens": 2_000})]
    shown = shown_in(requests[-1].view)
    assert [n for n in range(30) if f"<r{n}>" in shown] == [29]
    assert len(requests[-1].view) == len(requests[-1].history)


def test_that_nothing_fits_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    history, masker, messages = recede.History(max_input_tokens=500), Masker(max_input_tokens=500), reminded(9)
    for message in messages:
        history.append(message)
        history.view()
    assert caplog.text.count("masked, cut or hidden is: its smallest view is sent") == 1
    for end in range(1, len(messages)):
        masker.view(messages[:end])
    assert caplog.text.count("masked or cut is: its smallest view is sent") == 1
    assert len(caplog.records) == 2


OLDER = [user("Fix the test, and never push."), *turns(30, chars=300), assistant("Done.")]


@pytest.mark.parametrize("limit", [2_000, 2_027])
def test_older_messages_go_first_where_the_newest_alone_is_over_the_limit(limit: int) -> None:
    messages, before = [*OLDER, user("p" * 8_112)], 0
    for _ in range(4):  # try again
        view = recede.reduce(messages, max_input_tokens=limit)
        history = recede.History(max_input_tokens=limit)
        history.extend(messages)
        assert view.within_limit is False
        assert view.messages == [OLDER[0], *messages[len(OLDER) :]] == history.view()
        assert not before or view.chars_after == before + len("try again")
        before = view.chars_after
        messages.append(user("try again"))


@pytest.mark.parametrize("before", [[], [assistant("Hello.")]])
def test_a_first_message_over_the_limit_is_sent_whole(before: History) -> None:
    for content in ("t" * 9_000, [{"type": "text", "text": "t" * 9_000}]):
        view = recede.reduce([*before, user(content)], max_input_tokens=2_000)
        assert view.messages[-1] == user(content)
        assert view.within_limit is False
