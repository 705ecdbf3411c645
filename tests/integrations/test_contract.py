"""What every adapter keeps to, with its framework's own objects and agent; parametrized by what is installed.

`make test-integrations` runs it in an environment for each framework. What is recalled is in test_recall.py; a point
that a framework cannot keep to is in frameworks.py, with its reason, and on the page of the adapter.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import pickle
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import case_dicts
from frameworks import of_run
from sessions import Call, Result, Turn, as_chat, as_dicts, numbered_from_zero, session, shown, shown_in_chat
from unions import LONG

import recede
from provider_rules import fault
from recede._question import question
from recede.reduction._options import OPTIONS as ONE_SET

pytestmark = pytest.mark.filterwarnings("default")  # frameworks warn of their own

OPTIONS: list[dict[str, Any]] = [
    {"keep": 4, "boundary": "sliding"},
    {"keep": 10},
    {
        "keep": 4,
        "boundary": "sliding",
        "keep_errors": True,
        "placeholder": "[{tool} {number}: {chars}, {lines}, {images}]",
    },
    {"keep": 0, "boundary": 5},
    {"keep": 10, "provider": "openai"},
]

SLIDING: dict[str, Any] = {"keep": 4, "boundary": "sliding", "provider": "openai"}
PAYING: dict[str, Any] = {"keep": 4, "provider": "openai"}
# Option -> options without it, and a value with which the view is another one.
CHANGES: dict[str, tuple[dict[str, Any], Any]] = {
    "keep": (SLIDING, 9),
    "keep_by_tool": (SLIDING, {"ru*": 7}),
    "exclude_tools": (SLIDING, ["run"]),
    "keep_errors": (SLIDING, True),
    "keep_matching": (SLIDING, ["*turn 11, *"]),
    "provider": (PAYING, "none"),
    "boundary": (PAYING, 7),
    "max_overcost": (PAYING, 0.0),
    "cold": (PAYING, True),
    "max_result_chars": (SLIDING, 200),
    "placeholder": (SLIDING, "[{tool} {number}: {chars}, {lines}, {images}]"),
    "trigger_tokens": (SLIDING, 10_000),
    "max_input_tokens": (SLIDING, 1_500),
    "token_counter": ({**SLIDING, "max_input_tokens": 6_000}, len),
}


def planned(case: Any, turns: list[Turn], **options: Any) -> list[tuple[str, str]]:
    """The results of the session as `reduce` masks them, without the adapter."""
    if hasattr(case, "dicts"):  # which recede reads itself
        shown_results: list[tuple[str, str]] = case.results(reduction(case, turns, **options).messages)
        return shown_results
    return shown(reduction(case, turns, **options).messages)


def unmarked(case: Any, turns: list[Turn], **options: Any) -> list[tuple[str, str]]:
    """As `planned`, without the marks of Anthropic's blocks: other adapters do not set any."""
    if hasattr(case, "dicts"):
        return planned(case, turns, **options)
    return shown_in_chat(recede.reduce(as_chat(turns), **options).messages)


def reduction(case: Any, turns: list[Turn], **options: Any) -> recede.Reduction:
    options = {**getattr(case, "DEFAULTS", {}), **options}
    return recede.reduce(getattr(case, "dicts", as_dicts)(turns), **options)


# A model of each provider whose cache is known by its name.
MODELS = {"anthropic": "claude-opus-5-5", "openai": "gpt-4o-2024-08-06", "gemini": "gemini-2.5-pro"}


def cold(case: Any, messages: list[Any], **options: Any) -> list[tuple[str, str]]:
    results: list[tuple[str, str]] = case.results(case.view(case.masking(**options), messages))
    return results


# 1, 2, 3


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_view_is_that_of_reduce(case: Any, options: dict[str, Any]) -> None:
    turns = session()
    masking = case.masking(**options)
    masked = 0
    for count in range(0, len(turns) + 1, 5):
        masked = reduction(case, turns[:count], **options).masked_count
        assert case.results(case.view(masking, case.history(turns[:count]))) == planned(case, turns[:count], **options)
    assert masked > 20


def test_each_option_of_the_one_set_is_tried() -> None:
    assert CHANGES.keys() == ONE_SET.keys()


@pytest.mark.parametrize("name", CHANGES)
def test_each_option_has_the_meaning_that_it_has_for_reduce(case: Any, name: str) -> None:
    base, value = CHANGES[name]
    turns, options = session(), {**base, name: value}
    is_read = False
    for count in range(10, len(turns) + 1, 20):
        messages = case.history(turns[:count])
        view = cold(case, messages, **options)
        if "max_input_tokens" in options:  # an adapter drops no message, and so is compared with a masker
            masker = recede.masker.Masker(**{**getattr(case, "DEFAULTS", {}), **options})
            results = (case if hasattr(case, "dicts") else case_dicts).results
            expected = results(masker.view(getattr(case, "dicts", as_dicts)(turns[:count])))
        else:
            expected = planned(case, turns[:count], **options)
        # A counter is given the texts of results; adapters know of all else its length alone.
        assert view == expected or name == "token_counter"
        is_read |= view != cold(case, messages, **base)
    assert is_read == (name != "keep_errors" or getattr(case, "HAS_ERRORS", True))


@pytest.mark.parametrize("provider", MODELS)
def test_the_name_of_a_model_says_whose_cache_and_prices_it_has(case: Any, provider: str) -> None:
    if provider not in getattr(case, "PROVIDERS", MODELS):
        pytest.skip("its requests go to one provider")
    turns, model = session(), MODELS[provider]
    named, unknown = case.masking(keep=4), case.masking(keep=4)
    told = case.masking(keep=4, provider="none")
    has_own_rule = False
    for count in range(0, len(turns) + 1, 3):
        messages = case.history(turns[:count])
        view = case.results(case.view(named, messages, model))
        assert view == unmarked(case, turns[:count], keep=4, provider=recede.Provider.of(provider, model))
        has_own_rule |= view != case.results(case.view(unknown, messages))
        assert case.results(case.view(told, messages, model)) == planned(case, turns[:count], keep=4, provider="none")
    assert has_own_rule


def test_what_is_not_masked_is_the_object_given_at_this_call(case: Any) -> None:
    turns = session()
    masking = case.masking(keep=4, boundary="sliding")
    for messages in (case.history(turns), copy.deepcopy(case.history(turns))):
        view = case.view(masking, messages)
        assert len(view) == len(messages)
        kept = [one is given for one, given in zip(view, messages, strict=True)]
        results = [case.results([one]) == case.results([given]) for one, given in zip(view, messages, strict=True)]
        assert kept == results
        assert kept.count(False) > 40


def test_what_is_given_stays_as_it_was(case: Any) -> None:
    messages = case.history(session())
    before = copy.deepcopy(messages)
    case.view(case.masking(keep=4), messages)
    comparable = getattr(case, "comparable", list)  # where messages have no `==`
    assert comparable(messages) == comparable(before)
    assert [*map(repr, comparable(messages))] == [*map(repr, comparable(before))]


def tokens(masking: Any, messages: list[Any]) -> int:
    counted: int = getattr(masking, "masker", masking).count_tokens(messages)
    return counted


def test_each_type_of_content_of_the_framework_is_counted(case: Any) -> None:
    masking = case.masking()
    without = tokens(masking, case.history([]))
    before = tokens(masking, case.history([Turn("", [Call("1", "run", {})])]))
    few = len(LONG) // 4
    for name, messages in case.typed_results().items():
        assert tokens(masking, messages) - before >= few, name
    for name, messages in case.typed_messages().items():
        assert name in case.UNCOUNTED or tokens(masking, messages) - without >= few, name


# A limit


def long_turn(number: int, calls: int) -> Turn:
    """Results of 20,000 characters each."""
    made = [
        Call(f"call_{number}_{place}", "run", {"command": "", "place": place, "quiet": True}) for place in range(calls)
    ]
    return Turn("", made, {one.id: Result(one.id, f"{one.id} ".ljust(20, "x") * 1_000) for one in made})


@pytest.mark.parametrize(("window", "limit", "calls"), [(32_000, 24_000, 8), (128_000, 100_000, 30)])
def test_no_request_is_over_the_limit(
    case: Any, window: int, limit: int, calls: int, caplog: pytest.LogCaptureFixture
) -> None:
    turns = [long_turn(number, calls if number == 20 else 1) for number in range(30)]
    requests, stored = of_run(case, case.masking(max_input_tokens=limit), turns)
    sizes = [sum(len(text) for _, text in results) // 4 for _, results in requests]
    assert max(sizes) < limit < window < sum(len(text) for _, text in stored) // 4
    assert [len(results) for _, results in requests][-1] == len(stored)
    assert "max_input_tokens" not in caplog.text


def test_a_request_that_cannot_fit_the_limit_is_said_once(case: Any, caplog: pytest.LogCaptureFixture) -> None:
    masking = case.masking(max_input_tokens=100_000)
    for count in (2, 3):
        view = case.view(masking, case.history([long_turn(number, 120) for number in range(count)]))
    assert sum(len(text) for _, text in case.results(view)) // 4 > 100_000
    assert caplog.text.count("a request is over max_input_tokens") == 1


# 4, 5, 6


def test_views_do_not_depend_on_how_the_history_came(case: Any) -> None:
    messages = case.history(session())
    expected = cold(case, messages, keep=10)
    masking = case.masking(keep=10)
    for count in range(1 + (len(messages) - 1) % 3, len(messages) + 1, 3):
        grown = case.view(masking, messages[:count])
    assert case.results(grown) == expected
    for other in (messages, copy.deepcopy(messages), case.reloaded(messages), case.history(session())):
        assert case.results(case.view(masking, other)) == expected


def test_forks_cuts_and_edits_are_as_from_cold(case: Any) -> None:
    turns = session()
    masking = case.masking(keep=4)
    case.view(masking, case.history(turns))
    edited = [*turns[:20], Turn("Another way.", turns[20].calls, turns[20].results), *turns[21:]]
    for other in (
        turns[:30],
        [*turns[:30], *session(20, seed=2)],
        turns,
        edited,
        turns[5:],
        [*turns[:10], *turns[40:]],
        turns[:-1],
        [*turns[:-1], *session(1, seed=3)],
    ):
        messages = case.history(other)
        assert case.results(case.view(masking, messages)) == cold(case, messages, keep=4)


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_conversations_through_one_object_do_not_mix(case: Any, how: str) -> None:
    sessions = [session(20, seed) for seed in range(8)]
    expected = [cold(case, case.history(turns), keep=4) for turns in sessions]
    masking = case.masking(keep=4)

    def talk(turns: list[Turn]) -> Any:
        messages = case.history(turns)
        for count in range(1, len(messages), 5):
            case.view(masking, messages[:count])
        return case.results(case.view(masking, messages))

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*[asyncio.to_thread(talk, turns) for turns in sessions])

    if how == "threads":
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(talk, sessions)) == expected
    else:
        assert asyncio.run(all_at_once()) == expected


def test_conversations_with_equal_ids_keep_their_own_views(case: Any) -> None:
    sessions = [numbered_from_zero(session(30, seed)) for seed in (1, 2)]
    expected = [[cold(case, case.history(turns[:count]), keep=4) for count in range(31)] for turns in sessions]
    assert expected[0] != expected[1]
    masking = case.masking(keep=4)
    for count in range(31):
        for turns, views in zip(sessions, expected, strict=True):
            assert case.results(case.view(masking, case.history(turns[:count]))) == views[count]


# 7, 8, 9: in the framework's own agent


@functools.cache
def run_of(case: Any, way: str) -> tuple[list[Turn], int, list[Any], Any]:
    """A session's turns, the window, the requests of the agent, and what it stored."""
    turns, keep = (session(), 10) if way == "sync" else (session(45), 4)  # with fewer no mask pays under Gemini's cache
    return (turns, keep, *case.run(case.masking(keep=keep), turns, way))


def refusals(case: Any, requests: list[Any]) -> list[str]:
    """Why the provider refuses some of these requests; a played server has refused its own."""
    if not hasattr(case, "body"):
        return []
    return [words for request in requests if (words := fault(*case.body(request)))]


@pytest.mark.parametrize("way", ["sync", "async", "stream"])
def test_each_request_of_an_agent_is_the_view_and_stored_results_are_raw(case: Any, way: str) -> None:
    if way not in case.WAYS:
        pytest.skip(f"there is no {way} here")
    turns, keep, requests, stored = run_of(case, way)
    assert len(requests) == len(turns) + 1
    for count, request in enumerate(requests):
        assert case.results(request) == planned(case, turns[:count], keep=keep)
    assert case.results(stored) == shown(as_dicts(turns)) != case.results(requests[-1])
    assert refusals(case, requests) == []
    comparable = getattr(case, "comparable", list)
    assert "old tool output cleared" in repr(comparable(requests[-1]))
    assert "old tool output cleared" not in repr(comparable(stored))


def test_requests_are_prefixes_of_the_next_but_at_moves_and_pairs_are_whole(case: Any) -> None:
    turns, keep, requests, _ = run_of(case, "sync")
    changes = 0
    for before, request in pairwise(requests):
        results, shown_before = case.results(request), case.results(before)
        assert sorted(case.calls(request)) == sorted(name for name, _ in results)
        changes += results[: len(shown_before)] != shown_before
    assert 0 < changes == len(reduction(case, turns, keep=keep).boundary_moves) < 10


FREE = recede.Provider("free", cache="none", read=1.0, write=1.0, min_tokens=0, output=0.0)
SAID = "What was done so far."


@pytest.mark.parametrize("way", ["sync", "async", "stream"])
def test_old_turns_become_a_summary_when_that_pays_in_what_is_sent_alone(case: Any, way: str) -> None:
    if way not in case.WAYS:
        pytest.skip(f"there is no {way} here")
    asked: list[int] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        asked.append(len(messages))
        return SAID

    async def awaited(messages: list[Any], previous: str | None) -> str:
        return summarizer(messages, previous)

    options: dict[str, Any] = {"keep": 4, "provider": FREE, "max_overcost": None}
    turns = [replace(turn, said=turn.said + " I think about it." * 60) for turn in session(45)]
    masking = case.masking(**options, summarizer=awaited if way == "async" else summarizer)
    requests, stored = case.run(masking, turns, way)
    assert 1 < len(asked) < 45, "once for each summary"
    for count, request in enumerate(requests):
        view = recede.reduce(as_chat(turns[:count]), **options, summarizer=lambda messages, previous: SAID)
        assert case.results(request) == shown_in_chat(view.messages)
        assert sorted(case.calls(request)) == sorted(name for name, _ in case.results(request))
        assert (SAID in repr(getattr(case, "comparable", list)(request))) == (view.dropped_count > 0)
    assert refusals(case, requests) == []
    assert case.results(stored) == shown(as_dicts(turns))
    assert SAID not in repr(getattr(case, "comparable", list)(stored))


def test_a_question_for_a_summary_has_the_texts_alone(case: Any) -> None:
    """At most 1.1 of the text, with the framework's own messages, and no reasoning in them."""
    told: list[str] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        told.append(question(messages, previous, 1e9))
        return SAID

    turns = [replace(turn, said=turn.said + " I think about it." * 60) for turn in session(45)]
    history, reason = case.history(turns), getattr(case, "reasoned", lambda answer, thought: answer)
    if "I think about it." not in repr(case.view(case.masking(keep=45), history)):
        pytest.skip("it stores no words beside calls, so that a summary has nothing to tell")
    history = [reason(one, "secret thoughts") if case.calls([one]) else one for one in history]
    case.view(case.masking(keep=4, provider=FREE, max_overcost=None, summarizer=summarizer), history)
    (text,) = told
    assert "secret thoughts" not in text and "I think about it." in text
    calls = [sum(len(turn.calls) for turn in turns[:end]) for end in range(len(turns))]
    hidden = turns[: calls.index(text.count("[call run] "))]
    assert len(hidden) > 20 and len(text) <= 1.1 * recede.count_chars(as_chat(hidden))


def test_a_retry_sends_the_same(case: Any) -> None:
    requests, stored = of_run(case, case.masking(keep=4), session(30), "failing")
    assert len(requests) == 62
    assert requests[::2] == requests[1::2]
    assert stored == shown(as_dicts(session(30))) != requests[-1][1]


# Memory, and options


BIG = 4_000_000


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_is_bounded_after_a_thousand_conversations(case: Any) -> None:
    """Each of 4 MB: 4 GB of results, of which a masker remembers 256 MB, and those of one request more."""
    tracemalloc.start()
    try:
        masking = case.masking(keep=4)
        for seed in range(1_000):
            called = [f"c{seed}_{number}" for number in range(8)]
            text = f"{seed} ".ljust(8) * (BIG // 8 // len(called))
            turns = [Turn("", [Call(id, "run", {})], {id: Result(id, f"{id} {text}")}) for id in called]
            assert len(case.results(case.view(masking, case.history(turns)))) == len(called)
            del turns
        assert tracemalloc.get_traced_memory()[1] < 256_000_000 + 20 * BIG
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"keep": "4"}, TypeError),
        ({"keep": -1}, ValueError),
        ({"boundary": "never"}, ValueError),
        ({"window": 4}, TypeError),
    ],
    ids=str,
)
def test_wrong_options_are_refused_at_construction(case: Any, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(options))):
        case.masking(**options)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))])
def test_a_copy_masks_as_the_first_does(case: Any, how: Any) -> None:
    has_recall = case.__name__ not in ("case_crewai", "case_own")
    turns, masking = session(30), case.masking(keep=4, **({"recall": True} if has_recall else {}))
    messages = case.history(turns)
    assert case.results(case.view(how(masking), messages)) == case.results(case.view(masking, messages))


def test_conversations_that_are_forgotten_are_said(case: Any, caplog: pytest.LogCaptureFixture) -> None:
    masking = case.masking(keep=4, most=2)
    for seed in (1, 2, 3, 4):
        case.view(masking, case.history(session(30, seed)))
    assert caplog.text.count("there are more conversations than most=2") == 1


def test_requests_without_results_are_said(case: Any, caplog: pytest.LogCaptureFixture) -> None:
    masking, with_results = case.masking(keep=4), case.masking(keep=4)
    case.view(with_results, case.history(session(1)))
    turns: list[Turn] = []
    for number in range(41):
        case.view(masking, case.history(turns))
        case.view(with_results, case.history(turns))
        assert caplog.text.count("40 requests had no tool result") == (number >= 39)
        turns.append(Turn(f"Thought {number}: I call the tool run."))


def test_with_recede_off_everything_is_sent(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECEDE_OFF", "1")
    requests, stored = of_run(case, case.masking(keep=0), session(30))
    assert requests[-1][1] == stored
