"""What is sent to a model that verifies its reasoning where conversations take turns, and models and options change."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from anthropic.types import Message
from hypothesis import given
from hypothesis import strategies as st
from paying import CHEAP
from test_signed_reasoning import (
    OPTIONS,
    SHAPES,
    VERIFYING,
    Account,
    AsDicts,
    Messages,
    bare,
    conversation,
    history_of,
    thoughts,
)

import recede
from recede._encodable import warn_once
from recede.masker import Masker

OLDER = "claude-opus-4-7"
ANSWER = {"id": "msg", "type": "message", "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}}
TASK = {"role": "user", "content": "Look at the repository."}
View = Callable[[Messages], Messages]


def played(doors: Callable[[int], View], turns: list[Messages], account: Account | None = None) -> Account:
    """A loop whose requests go through the doors of their numbers."""
    account, history = account or Account(), [TASK]
    for number, (answer, *results) in enumerate(turns):
        account.request(doors(number)(history))
        account.answer(answer)
        history = [*history, answer, *results]
    account.request(doors(len(turns))(history))
    return account


def masker_of(adapter: Any = None, **options: Any) -> Masker[Any]:
    return Masker(adapter, **{"keep": 3, "boundary": 4, "provider": VERIFYING, **options})


@pytest.mark.parametrize("adapter", [None, AsDicts()], ids=["dicts", "adapter"])
def test_two_workers_in_turn_send_what_one_would(adapter: Any) -> None:
    turns = conversation("anthropic", [200] * 40)
    workers = [masker_of(adapter), masker_of(adapter)]
    in_turn = played(lambda number: workers[number % 2].view, turns)
    alone = masker_of(adapter)
    assert in_turn.sent == played(lambda number: alone.view, turns).sent
    assert max(in_turn.sent) > 3


def test_conversation_taken_over_in_the_middle_is_as_reduced() -> None:
    turns = conversation("anthropic", [200] * 40)
    first, second = masker_of(), masker_of()
    account = played(lambda number: (first if number < 21 else second).view, turns)
    assert account.sent == played(lambda number: masker_of().view, turns).sent


def test_conversation_begun_without_recede_is_not_refused_after_a_move() -> None:
    turns, masker = conversation("anthropic", [200] * 40), masker_of()
    # Nothing tells what a raw loop has sent: it is taken as reduced, and here nothing was old yet.
    account = played(lambda number: masker.view if number > 2 else list, turns)
    assert max(account.sent[20:]) > 3


def test_switch_to_a_verifying_model_sends_no_reasoning_bound_elsewhere() -> None:
    masker, turns = Masker(keep=3, boundary=4), conversation("anthropic", [200] * 40)
    account = Account()

    def door(number: int) -> View:
        model = OLDER if number < 20 or number == 30 else VERIFYING
        account.verifies = model == VERIFYING
        return lambda history: masker.view(history, request={"model": model})

    played(door, turns, account)
    assert account.sent[19] == 19 and 0 < account.sent[-1] < 18, account.sent


@pytest.mark.parametrize("at", [7, 15, 26])
def test_other_tools_in_the_middle_keep_the_notes(at: int) -> None:
    masker, turns = masker_of(max_input_tokens=6_000), conversation("anthropic", [200] * 40)

    def door(number: int) -> View:
        tools = [{"name": "run", "description": "x" * (4_000 if number >= at else 10)}]
        return lambda history: masker.view(history, request={"model": VERIFYING, "tools": tools})

    assert max(played(door, turns).sent) > 1


NO_JSON = {"nan": float("nan"), "infinity": float("inf"), "surrogate": "\ud800", "object": {1: object()}}


@pytest.mark.parametrize("value", NO_JSON.values(), ids=NO_JSON)
def test_tools_that_json_does_not_have_are_compared_too(value: Any) -> None:
    masker, turns = masker_of(), conversation("anthropic", [200] * 30)

    def door(number: int) -> View:
        tools = [{"name": "run" if number < 20 else "other", "default": value}]
        return lambda history: masker.view(history, request={"model": VERIFYING, "tools": tools})

    account = played(door, turns)
    assert account.sent[18] > 0 == account.sent[20], account.sent


def test_figures_and_places_are_no_requests() -> None:
    turns, masker, plain = conversation("anthropic", [200] * 40), masker_of(), masker_of()

    def door(number: int) -> View:
        def view(history: Messages) -> Messages:
            shown = masker.view(history)
            masker.count_tokens([*history, {"role": "assistant", "content": "No."}, TASK])
            masker.count_tokens(history[:-1])
            return shown

        return view

    assert played(door, turns).sent == played(lambda number: plain.view, turns).sent


def test_masks_say_which_messages_lose_their_reasoning() -> None:
    turns = conversation("anthropic", [200] * 30)
    history = [TASK, *(message for turn in turns for message in turn)]
    masks, view = masker_of().masks(history), masker_of().view(history)
    lost = [place for place, message in enumerate(view) if thoughts(history[place]) and not thoughts(message)]
    assert [*masks.unsigned] == lost != []
    assert recede.History.from_messages(history, provider=VERIFYING).masks().unsigned == tuple(
        place for place, message in enumerate(history) if thoughts(message)
    )


def test_signed_messages_of_an_adapter_without_unsigned_are_refused() -> None:
    class Lacking:
        facts, masked = AsDicts().facts, AsDicts().masked

    with pytest.raises(TypeError, match=r"^signed reasoning needs an adapter with a method 'unsigned'$"):
        masker_of(Lacking()).view([TASK, *conversation("anthropic", [9])[0]])


@pytest.mark.parametrize("fails_at", [(), (1,), (0, 2)], ids=str)
def test_summaries_that_come_or_fail_are_noted(fails_at: tuple[int, ...]) -> None:
    calls: list[int] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        calls.append(len(messages))
        if len(calls) - 1 in fails_at:
            raise RuntimeError("no model")
        return "All was read. " * 20

    cheap = CHEAP._replace(verifies_reasoning=True)
    masker = masker_of(keep=2, provider=cheap, boundary="break_even", summarizer=summarizer)
    turns = conversation("anthropic", [400] * 60)
    for answer, *_ in turns:
        answer["content"].insert(1, {"type": "text", "text": "I read on. " * 200})
    account = played(lambda number: masker.view, turns)
    assert len(calls) > 2 and max(account.sent) > 1, (calls, account.sent)


@pytest.mark.parametrize("first", [None, OLDER])
def test_history_follows_a_model_that_is_named_after_a_move(first: str | None) -> None:
    turns, history, account = conversation("anthropic", [900] * 60), recede.History(keep=3), Account()
    plain = recede.History.from_messages([TASK, *(message for turn in turns for message in turn)], keep=3)
    plain.append(TASK)
    history.append(TASK)
    account.verifies = False
    for number, (answer, *results) in enumerate(turns):
        account.request(json.loads(history.view_json()))
        account.answer(answer)
        model = VERIFYING if number == 40 else first
        account.verifies |= model == VERIFYING
        history.append(answer if model is None else Message.model_validate({**ANSWER, **answer, "model": model}))
        history.extend(results)
    history.append(TASK)
    account.request(json.loads(history.view_json()))
    assert account.sent[40] == 40 and 0 < max(account.sent[42:]) < 40, account.sent
    moves = [[move.request for move in one.stats().boundary_moves] for one in (history, plain)]
    assert moves[0][0] < 40 < moves[0][-1]
    assert first is not None or moves[0][0] == moves[1][0], "no price has changed"


def test_history_rewound_twice_says_where_its_view_changed() -> None:
    history = recede.History(keep=3, boundary="sliding", provider=VERIFYING)
    history.extend([TASK, *(message for turn in conversation("anthropic", [200] * 7) for message in turn)])
    assert history.stats().reasoning_dropped > 2
    history.rewind(9)
    history.rewind(2)
    assert history.view_json() and history.stats().changed_message == 2


def reduced(**options: Any) -> View:
    return lambda history: recede.reduce(history, **options).messages


UNNAMED: dict[str, Callable[..., View]] = {
    "reduce": reduced,
    "History": lambda **options: history_of("view", **options),
    "Masker": lambda **options: Masker(**options).view,
    "adapter": lambda **options: Masker(AsDicts(), **options).view,
}


@pytest.mark.parametrize("door", UNNAMED)
@pytest.mark.parametrize("provider", ["auto", "claude-opus-4-7"])
@pytest.mark.parametrize("signed", [False, True])
def test_masks_before_signed_reasoning_of_an_unnamed_model_are_said_once(
    door: str, provider: str, signed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    history = [TASK, *(message for turn in conversation("anthropic", [900] * 40) for message in turn)]
    if not signed:
        history = [bare(message) for message in history]
    view = UNNAMED[door](keep=3, provider=provider)
    warn_once.cache_clear()
    views = [view(history[:count]) for count in range(1, len(history) + 1, 2)]
    assert views[-1] != history
    assert caplog.text.count("nothing names the model") == (signed and provider == "auto")


@pytest.mark.parametrize(("model", "is_said"), [("claude-opus-4-8", False), ("claude-opus-5-5", True)])
def test_signature_that_names_a_model_says_whether_it_may_verify(
    model: str, is_said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    history = [TASK, *(message for turn in conversation("anthropic", [900] * 40) for message in turn)]
    signature = base64.b64encode(b"\x12\x0e" + model.encode() + b"\x1a" * 99).decode()
    for message in history:
        for block in message["content"] if message["role"] == "assistant" else []:
            block.update({"signature": signature} if block["type"] == "thinking" else {})
    warn_once.cache_clear()
    assert recede.reduce(history, keep=3).masked_count
    assert ("nothing names the model" in caplog.text) is is_said


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.integers(1, 300)),
        st.tuples(st.just("rewind"), st.integers(1, 9)),
        st.tuples(st.just("model"), st.sampled_from((OLDER, VERIFYING))),
        st.tuples(st.just("tools"), st.integers(0, 9_000)),
        st.tuples(st.just("cold"), st.just(0)),
        st.tuples(st.just("worker"), st.integers(0, 1)),
    ),
    min_size=6,
    max_size=40,
)


@given(shape=st.sampled_from(sorted(SHAPES)), steps=STEPS, options=st.sampled_from(OPTIONS), is_own=st.booleans())
def test_request_of_any_conversation_is_never_refused(
    shape: str, steps: list[tuple[str, Any]], options: dict[str, Any], is_own: bool
) -> None:
    adapter = AsDicts() if is_own else None
    account, history, model, tools = Account(), [TASK], VERIFYING, 0
    masker: Masker[Any] = Masker(adapter, **options)
    for number, (step, value) in enumerate(steps):
        if step == "rewind":
            turns = max(1, (len(history) - 1) // 2 - value)
            history = history[: 1 + 2 * turns]
        elif step == "model":
            model = value
        elif step == "tools":
            tools = value
        elif step == "cold":
            for read in (0, 0, 0):
                masker.reported({"input_tokens": 9_000, "cache_read_input_tokens": read, "output_tokens": 1})
        else:
            account.verifies = model == VERIFYING
            request = {"model": model, "tools": [{"name": "run", "description": "x" * tools}]}
            account.request(masker.view(history, request=request))
            answer, *results = SHAPES[shape](number, f"thought {number}", f"line {number}\n" * max(1, value))
            account.answer(answer)
            history = [*history, answer, *results]
