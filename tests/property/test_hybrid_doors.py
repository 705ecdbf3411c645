"""Summaries of old turns that pay, at the doors: both engines, `reduce` and a `History` hide the same."""

from __future__ import annotations

import json
from typing import Any

from generated import histories
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import client_histories
from paying import CHEAP, FREE, Told, long

import recede
from provider_rules import fault
from recede import History, Provider, _engine
from recede.costs import Prices
from recede.proxy import RequestMasker
from recede.reduction._planning import reduced
from recede.reduction._policy import SUMMARY_CHARS, SUMMARY_PROMPT_CHARS, own_policy
from sound import as_converse, joined
from support import ENGINES, using

HEAD = "Conversation summary:\n"
# A view of the oracle is a plan of all turns again, at each message.
FEW = settings(max_examples=settings.default.max_examples // 4)

Messages = list[dict[str, Any]]

OPTIONS = st.fixed_dictionaries(
    {"keep": st.integers(0, 2), "provider": st.sampled_from([CHEAP, FREE])},
    optional={
        "boundary": st.sampled_from(["break_even", "sliding", 2]),
        "max_overcost": st.sampled_from([None, None, 0.1]),
        "exclude_tools": st.sampled_from([(), ("run",), ("*",)]),
        "trigger_tokens": st.sampled_from([0, 200]),
        "max_input_tokens": st.sampled_from([None, None, 1_500]),
    },
)


@FEW
@given(
    messages=histories(max_turns=4) | client_histories(),
    times=st.just(2),
    options=OPTIONS,
    fails=st.just(set()) | st.sets(st.integers(1, 4)),
)
def test_both_engines_hide_the_same_and_so_does_reduce(
    messages: Messages, times: int, options: dict[str, Any], fails: set[int]
) -> None:
    messages = long(messages, times)
    told = {name: Told(fails) for name in ENGINES}
    kept: dict[str, History] = {}
    for name in ENGINES:
        with using(name):
            kept[name] = History(**options, summarizer=told[name])
    masked = Told(fails)
    masker = None if options.get("max_input_tokens") else recede.masker.Masker(**options, summarizer=masked)
    asked = 0
    for count, message in enumerate(messages, 1):
        for history in kept.values():
            history.append(message)
        if message.get("role") in ("assistant", "model") and count < len(messages):
            continue
        views = {}
        for name, history in kept.items():
            with using(name):
                views[name] = history.view()
        assert views["core"] == views["oracle"]
        assert told["core"].given == told["oracle"].given
        if masker is not None:  # which drops nothing for a limit
            assert masker.view(messages[:count]) == views["core"]
            assert masked.given == told["core"].given
        if not fails and (told["core"].calls > asked or count == len(messages)):
            asked = told["core"].calls
            view = recede.reduce(messages[:count], **options, summarizer=Told(set()))
            assert view.messages == views["core"]


@given(
    messages=histories() | client_histories(),
    times=st.integers(2, 4),
    options=OPTIONS,
    at=st.none() | st.dictionaries(st.integers(2, 30), st.integers(1, 20), min_size=1),
)
def test_both_engines_hide_the_same_at_doors_that_mask(
    messages: Messages, times: int, options: dict[str, Any], at: dict[int, int] | None
) -> None:
    messages = long(messages, times)
    views = {}
    for name in ENGINES:
        with using(name):
            known = {} if at is None else {"summaries_at": tuple(sorted(at.items()))}
            policy = own_policy(_engine.engine, options, reduces=False, summarizer=str, **known)
            asked = reduced(messages, policy)
            answer = reduced(messages, policy, None, ("What was done.", None))
            views[name] = getattr(asked, "dropped", None), answer.messages
    assert views["core"] == views["oracle"]


@FEW
@given(
    messages=histories(max_turns=4),
    times=st.integers(2, 4),
    options=OPTIONS,
    fails=st.just(set()) | st.sets(st.integers(1, 4)),
    given_first=st.booleans(),
)
def test_roles_alternate_in_converse_at_every_door(
    messages: Messages, times: int, options: dict[str, Any], fails: set[int], given_first: bool
) -> None:
    """A summary is the last block of the message beside it, and no view has two messages of the user in a row."""
    messages = joined(long(as_converse(messages), times))
    if given_first and messages:  # by the agent
        messages = messages[1:]
    options = {**options, "max_input_tokens": None}
    told = {name: Told(fails) for name in ENGINES}
    kept: dict[str, History] = {}
    for name in ENGINES:
        with using(name):
            kept[name] = History(**options, summarizer=told[name])
    asked, masked = 0, Told(fails)
    masker = recede.masker.Masker(**options, summarizer=masked)
    for count, message in enumerate(messages, 1):
        for history in kept.values():
            history.append(message)
        if message["role"] == "assistant":
            continue
        views = {}
        for name, history in kept.items():
            with using(name):
                views[name] = history.view()
        view = views["core"]
        assert view == views["oracle"] == masker.view(messages[:count]) == json.loads(kept["core"].view_json())
        assert b"".join(kept["core"].view_chunks()) == kept["core"].view_json()
        if fault("converse", {"messages": messages[:count]}) is None:
            assert fault("converse", {"messages": view}) is None
        if not fails and (told["core"].calls > asked or count == len(messages)):
            asked = told["core"].calls
            for name in ENGINES:
                with using(name):
                    data = json.dumps(messages[:count], indent=1)
                    reduced = [
                        recede.reduce(given, **options, summarizer=Told(set())) for given in (messages[:count], data)
                    ]
                assert reduced[0].messages == json.loads(reduced[1].json) == view
                assert reduced[0].first_changed == reduced[1].first_changed


@given(messages=histories("openai") | histories("anthropic"), times=st.integers(2, 6), keep=st.integers(1, 4))
def test_a_request_masker_that_is_told_at_once_hides_what_a_history_hides(
    messages: Messages, times: int, keep: int
) -> None:
    messages = long(messages, times)
    masker = RequestMasker(keep=keep, provider=CHEAP, summaries=True)
    told: list[tuple[Messages, str | None]] = []

    def summarizer(hidden: Messages, previous: str | None) -> str:
        told.append((hidden, previous))
        return f"Done {len(told)}."

    history = History(keep=keep, provider=CHEAP, summarizer=summarizer)
    for count, message in enumerate(messages, 1):
        history.append(message)
        # A request without an answer is none for a history; a proxy uses its text where that pays again.
        if message["role"] == "assistant" or any(one["role"] != "assistant" for one in messages[count : count + 1]):
            continue
        body = json.dumps({"messages": messages[:count]}).encode()
        path = "/v1/chat/completions"
        before = len(told)
        view = history.view()
        masked = masker.mask("POST", path, {"x-api-key": "k"}, body)
        if masked.asked is not None:
            assert told[before:] == [(masked.asked.messages, masked.asked.previous)]
            masker.give(masked.asked, f"Done {len(told)}.")
            masked = masker.mask("POST", path, {"x-api-key": "k"}, body)
        assert json.loads(masked.body)["messages"] == view


@given(
    messages=histories("openai", max_turns=14) | histories("anthropic", max_turns=14),
    times=st.integers(2, 6),
    keep=st.integers(1, 4),
    prices=st.sampled_from([CHEAP, FREE, Provider("dear", cache="ideal", read=0.125, write=1.25, min_tokens=0)]),
    max_overcost=st.sampled_from(["none", "0.1"]),
)
def test_each_request_is_that_of_a_replay(
    messages: Messages, times: int, keep: int, prices: Provider, max_overcost: str
) -> None:
    messages = long(messages, times)
    read, write, output = prices.read, prices.write, prices.output
    name = f"hybrid:window={keep},tail={keep},at=break_even,boundary=break_even,max_overcost={max_overcost}"
    played = recede.costs.replay(
        messages,
        [name],
        prices=Prices(input=1, cached=read, write=write, output=output, min_cached_tokens=0),
        summary_prices=Prices(input=1, cached=read, write=write, output=output, min_cached_tokens=0),
        cache="ideal",
        system_chars=0,
    )
    calls: list[int] = []

    def summarizer(dropped: Messages, previous: str | None) -> str:
        known = 0 if previous is None else len(HEAD) + len(previous)
        calls.append(recede.count_chars(dropped) + known + SUMMARY_PROMPT_CHARS)
        return (f"{HEAD}{len(calls)}" + "x" * SUMMARY_CHARS)[:SUMMARY_CHARS]

    share = None if max_overcost == "none" else float(max_overcost)
    history = History(keep=keep, provider=prices, max_overcost=share, summarizer=summarizer)
    for turn in played.policies[1].turns:
        history.extend(messages[len(history) : turn.messages])
        made = len(calls)
        view = history.view()
        assert turn.view_chars == recede.count_chars(view)
        assert turn.masked_count == history.stats().masked_count
        assert turn.summary_input_chars == sum(calls[made:])
