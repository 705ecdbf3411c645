"""Options: what is checked, and the words of the errors."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from typing import Any

import published
import pytest

import recede
from recede import _core
from recede.designs import HistoryReducer
from support import call, mask, priced, result, turns, user

WHOLE_FROM_0 = ("preserve_recent_raw_turns", "min_masked_chars", "image_chars")
WHOLE_OR_NONE = ("keep_messages", "keep_turns", "keep_results", "max_observation_chars")
FLAGS = ("enabled", "keep_errors", "observation_masking", "strict_pairs")


def reduce(**options: Any) -> recede.Reduction:
    return published.reduce([], **{"max_input_chars": 100, **options})


@pytest.mark.parametrize("name", [*WHOLE_FROM_0, *WHOLE_OR_NONE, "max_input_chars"])
def test_whole_numbers(name: str) -> None:
    for good in (0, 1, 10**30):
        reduce(**{name: good})
    with pytest.raises(ValueError, match=rf"{name} must be at least 0(, or None)?, not -1"):
        reduce(**{name: -1})
    for bad in (1.0, "1", True, [1], b"1"):
        with pytest.raises(TypeError, match=rf"{name} must be a whole number"):
            reduce(**{name: bad})


@pytest.mark.parametrize("name", [*WHOLE_FROM_0, *FLAGS, "summary_max_chars", "boundary", "exclude_tools"])
def test_none_is_refused_where_it_means_nothing(name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        reduce(**{name: None})


@pytest.mark.parametrize(
    "name", [*WHOLE_OR_NONE, "mask_chunk", "placeholder", "summarizer", "token_counter", "summary_role", "keep_by_tool"]
)
def test_none_is_the_default_elsewhere(name: str) -> None:
    assert reduce(**{name: None}) == reduce()


@pytest.mark.parametrize("name", FLAGS)
def test_flags(name: str) -> None:
    reduce(**{name: True})
    reduce(**{name: False})
    for bad in (1, 0, "yes"):
        with pytest.raises(TypeError, match=name):
            reduce(**{name: bad})


def test_fill_is_a_part_of_the_budget() -> None:
    for good in (1, 1.0, 0.5, 1e-300, None):
        reduce(fill=good)
    for bad in (0, 0.0, -0.5, 1.01, 2, float("nan"), float("inf"), 10**400):
        with pytest.raises(ValueError, match="fill must be a number above 0, and at most 1"):
            reduce(fill=bad)
    for bad in ("0.5", True, [0.5]):
        with pytest.raises(TypeError, match="fill must be a number or None"):
            reduce(fill=bad)


def test_clip_results_leaves_room_for_its_marker() -> None:
    for good in (60, 10**30, None):
        reduce(clip_results=good)
    for bad in (0, 59, -1):
        with pytest.raises(ValueError, match="clip_results must be at least 60"):
            reduce(clip_results=bad)
    for bad in (60.0, "60", True):
        with pytest.raises(TypeError, match="clip_results must be a whole number or None"):
            reduce(clip_results=bad)


@pytest.mark.parametrize("option", [{"fill": 0.5}, {"clip_results": 100}])
def test_a_session_takes_shares_of_a_budget_if_it_has_one(option: Any) -> None:
    (name,) = option
    published.History(max_input_chars=1_000, **option)
    with pytest.raises(TypeError, match=f"there is no option '{name}'"):
        published.History(**option)


def test_mask_chunk_is_at_least_1() -> None:
    reduce(mask_chunk=1)
    for bad in (0, -1):
        with pytest.raises(ValueError, match="mask_chunk"):
            reduce(mask_chunk=bad)
    with pytest.raises(TypeError, match="mask_chunk"):
        reduce(mask_chunk=1.5)


def test_boundary() -> None:
    reduce(boundary="sliding")
    reduce(boundary="stepped", mask_chunk=2)
    with pytest.raises(ValueError, match="mask_chunk"):
        reduce(boundary="stepped")
    with pytest.raises(ValueError, match="boundary"):
        reduce(boundary="jumping")
    with pytest.raises(TypeError, match="boundary"):
        reduce(boundary=5)


def test_keep_by_tool() -> None:
    for good in ({}, {"a": 0, "b*": None, "c": 10**30}):
        reduce(keep_by_tool=good)
    for bad in ([("a", 1)], "a", {1: 2}, {"a": "2"}, {"a": 1.5}, {"a": True}):
        with pytest.raises(TypeError, match="keep_by_tool"):
            reduce(keep_by_tool=bad)
    with pytest.raises(ValueError, match="keep_by_tool"):
        reduce(keep_by_tool={"a": -1})


def test_exclude_tools() -> None:
    for good in ([], (), set(), ["a", "b*"], frozenset({"a"})):
        reduce(exclude_tools=good)
    for bad in ("bash", [1], [None], 5, {"a": 1}):
        with pytest.raises(TypeError, match="exclude_tools"):
            reduce(exclude_tools=bad)


@pytest.mark.parametrize("blank", ["", " ", "\t"])
@pytest.mark.parametrize("door", [recede.reduce, published.reduce], ids=["own", "published"])
def test_a_blank_tool_name_is_refused(door: Callable[..., Any], blank: str) -> None:
    more = {"max_input_chars": 100} if door is published.reduce else {}
    for name, value in (("exclude_tools", ["run", blank]), ("keep_by_tool", {"run": 2, blank: 1})):
        with pytest.raises(ValueError, match=f"{name} has the blank name '.*', which is of no tool: leave it out"):
            door([], **{name: value}, **more)


@pytest.mark.parametrize("option", ["keep_by_tool", "exclude_tools"])
def test_patterns_have_a_limit_and_names_have_none(option: str) -> None:
    def given(*tools: str) -> None:
        reduce(**{option: dict.fromkeys(tools, 1) if option == "keep_by_tool" else tools})

    names = [f"tool {number}" for number in range(1_000)]
    given(*names, *(f"{number}*" for number in range(255)), "?" * 1_000)
    with pytest.raises(ValueError, match=rf"{option} has 257 patterns with .* at most 256 are allowed: give the names"):
        given(*(f"{number}?" for number in range(257)))
    with pytest.raises(ValueError, match=rf"{option} has a pattern of 1,001 characters; at most 1,000 are allowed"):
        given("*" * 1_001)
    given("x" * 100_000)


def test_a_template_has_a_limit() -> None:
    for template in ("-" + "{id}" * 64, "-" * 1_000, "{turn}" * 64 + "x" * 616):
        reduce(placeholder=template)
    for template, has in (
        ("-" + "{id}" * 65, "65 fields and 261 characters"),
        ("-" * 1_001, "0 fields and 1,001 characters"),
    ):
        with pytest.raises(ValueError, match=f"placeholder has {has}; at most 64 fields and 1,000 characters"):
            reduce(placeholder=template)


@pytest.mark.parametrize("template", ["x", "{chars} gone", "a{chars}{lines}{images}{turn}{tool}{id}", "{{}} x", "é\n"])
def test_placeholders_that_are_templates(template: str) -> None:
    reduce(placeholder=template)
    recede.designs.mask_observation("x" * 500, placeholder=template)


@pytest.mark.parametrize(
    "template",
    [
        "{unknown} x",
        "{} x",
        "{0} x",
        "{chars!r} x",
        "{chars:>5} x",
        "{chars.real} x",
        "{chars[0]} x",
        "{ chars} x",
        "{Chars} x",
    ],
)
def test_an_unknown_placeholder_field_is_named(template: str) -> None:
    with pytest.raises(ValueError, match="placeholder"):
        reduce(placeholder=template)
    with pytest.raises(ValueError, match="placeholder"):
        recede.designs.mask_observation("x", placeholder=template)


def test_lone_surrogates_are_accepted_in_names_and_templates() -> None:
    """Histories may hold them, so that options must be able to name them."""
    history = [call("1", name="\ud83d"), result("1", "x" * 90)]
    assert mask(history, keep_results=0, exclude_tools=["\ud83d"]).masked_count == 0
    assert mask(history, keep_results=0, exclude_tools=["?"]).masked_count == 0
    assert mask(history, keep_results=0, keep_by_tool={"\ud83d": 1}).masked_count == 0
    assert mask(history, keep_results=0, keep_by_tool={"\ud83e": 1}).masked_count == 1
    assert recede.designs.mask_observation("x" * 90, placeholder="a\ud83d!") == "a\ud83d!"
    assert (
        recede.designs.mask_observation("a\ud83d" + "!" * 90, placeholder="{tool}\ud83d{id}!") == "a\ud83d" + "!" * 90
    )


@pytest.mark.parametrize("template", ["{chars", "chars}", "{", "}", "{{}"])
def test_a_placeholder_with_a_lone_brace_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="placeholder"):
        reduce(placeholder=template)


@pytest.mark.parametrize("template", ["", " ", "{chars}", " {tool}\n{id} "])
def test_a_placeholder_without_any_text_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="placeholder"):
        reduce(placeholder=template)


def test_a_placeholder_is_a_string() -> None:
    with pytest.raises(TypeError, match="placeholder"):
        reduce(placeholder=b"x")


def test_summary_options() -> None:
    reduce(summary_max_chars=30)
    for bad in (29, 0, -1):
        with pytest.raises(ValueError, match="summary_max_chars"):
            reduce(summary_max_chars=bad)
    with pytest.raises(ValueError, match="summary_role"):
        reduce(summary_role="tool")
    with pytest.raises(TypeError, match="summary_role"):
        reduce(summary_role=5)
    for name in ("summarizer", "token_counter"):
        with pytest.raises(TypeError, match=name):
            reduce(**{name: "no function"})


def test_a_budget_is_required_and_one_only() -> None:
    with pytest.raises(ValueError, match="max_input_chars or max_input_tokens"):
        published.reduce([])
    with pytest.raises(ValueError, match="not both"):
        published.reduce([], max_input_chars=1, max_input_tokens=1)
    published.reduce([], max_input_tokens=1, max_input_chars=None)
    published.reduce([], max_input_tokens=10**40)


def test_a_window_is_required_of_mask_observations() -> None:
    for function, data in ((published.mask_observations, []), (published.mask_observations_json, b"[]")):
        with pytest.raises(ValueError, match="window"):
            function(data)
        with pytest.raises(ValueError, match="window"):
            function(data, keep_results=None, keep_turns=None)
        for name in ("keep_results", "keep_turns", "keep_messages"):
            function(data, **{name: 0})


def test_an_option_that_is_not_there_is_named_with_the_nearest_one() -> None:
    with pytest.raises(TypeError, match=r"'max_input_char'.*'max_input_chars'"):
        published.reduce([], max_input_char=5)
    with pytest.raises(TypeError, match="'quite_other'"):
        published.reduce([], max_input_chars=5, quite_other=5)


@pytest.mark.parametrize(
    ("function", "option"),
    [
        (published.mask_observations, "max_input_chars"),
        (published.mask_observations, "preserve_recent_raw_turns"),
        (published.mask_observations, "summarizer"),
        (recede.designs.summarize_history, "max_input_chars"),
        (recede.designs.summarize_history, "mask_chunk"),
        (recede.designs.truncate_history, "summarizer"),
        (recede.designs.truncate_history, "exclude_tools"),
        (recede.designs.mask_old_observations, "keep_results"),
        (recede.designs.mask_old_observations, "max_observation_chars"),
    ],
)
def test_options_that_do_not_belong_to_a_function_are_refused(function: Any, option: str) -> None:
    with pytest.raises(TypeError, match=option):
        function([], **{option: 1})


def test_wrong_options_are_found_before_the_history_is_read() -> None:
    with pytest.raises(ValueError, match="mask_chunk"):
        published.reduce_json(b"no json", max_input_chars=1, mask_chunk=0)
    with pytest.raises(ValueError, match="mask_chunk"):
        published.reduce("no list", max_input_chars=1, mask_chunk=0)


@pytest.mark.parametrize("bad", [-1, 1.5, "1", None, True])
def test_count_chars_checks_image_chars(bad: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="image_chars"):
        recede.count_chars([], image_chars=bad)


def test_options_are_the_same_seen_once_or_often() -> None:
    history = turns(9)
    for _ in range(3):
        assert published.mask_observations(history, keep_results=1, boundary="sliding").masked_count == 8
        two = {"run": 2}
        assert (
            published.mask_observations(history, keep_results=1, keep_by_tool=two, boundary="sliding").masked_count == 7
        )
        with pytest.raises(TypeError, match="keep_results"):
            published.mask_observations(history, keep_results=True)
        with pytest.raises(TypeError, match="keep_results"):
            published.mask_observations(history, keep_results=1.0)


def test_a_changed_mapping_is_read_anew() -> None:
    history = turns(4)
    windows = {"run": 1}
    options: dict[str, Any] = {"keep_results": 0, "keep_by_tool": windows, "boundary": "sliding"}
    assert published.mask_observations(history, **options).masked_count == 3
    windows["run"] = 2
    assert published.mask_observations(history, **options).masked_count == 2


# HistoryReducer


def test_history_reducer_checks_its_options_at_once() -> None:
    for options in ({"max_input_chars": 1, "mask_chunk": 0}, {"mask_chunk": 0}):
        with pytest.raises(ValueError, match="mask_chunk"):
            HistoryReducer(**options)
    with pytest.raises(ValueError, match="give max_input_chars or max_input_tokens, not both"):
        HistoryReducer(max_input_chars=1, max_input_tokens=1)


def test_history_reducer_reduce_takes_options_that_override_its_own() -> None:
    history = turns(9)
    expected = HistoryReducer(max_input_chars=500, keep_results=2).reduce(history)
    assert expected.reduced
    for held, given in (
        ({}, {"max_input_chars": 500, "keep_results": 2}),
        ({"keep_results": 2}, {"max_input_chars": 500}),
        ({"max_input_chars": 500, "keep_results": 5}, {"keep_results": 2}),
        ({"max_input_tokens": 9_000, "keep_results": 2}, {"max_input_chars": 500}),
        ({"max_input_chars": 500, "keep_results": 2}, {}),
    ):
        reducer = HistoryReducer(**held)  # type: ignore[arg-type]
        assert reducer.reduce(history, given) == reducer.reduce(history, **given) == expected  # type: ignore[arg-type]
        assert repr(reducer) == repr(HistoryReducer(**held)), "a call changes nothing"  # type: ignore[arg-type]
    raw = b'[{"role":"user","content":"hi"}]'
    assert HistoryReducer().reduce_json(raw, {"max_input_chars": 9}).json is raw
    assert HistoryReducer().reduce_json(raw, max_input_chars=9).json is raw
    both = HistoryReducer(keep_results=9).reduce(
        history, {"max_input_chars": 9, "keep_results": 9}, max_input_chars=500, keep_results=2
    )
    assert both == expected, "a name takes precedence over the mapping"


def test_history_reducer_names_what_is_wrong_with_options_of_a_call() -> None:
    for options in (None, {}, {"keep_results": 2}):
        with pytest.raises(ValueError, match="a budget is required: give max_input_chars or max_input_tokens"):
            HistoryReducer().reduce([], options)
    with pytest.raises(TypeError, match="did you mean 'max_input_chars'"):
        HistoryReducer().reduce([], {"maxInputChars": 12_000})
    with pytest.raises(TypeError, match="did you mean 'max_input_chars'"):
        HistoryReducer().reduce([], maxInputChars=12_000)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean 'summary_max_chars'"):
        HistoryReducer(max_input_chars=1).reduce([], {"summaryMaxChars": 12_000})
    with pytest.raises(TypeError, match="options must be a mapping of names to values, not int"):
        HistoryReducer().reduce([], 12_000)  # type: ignore[arg-type]


def test_reduce_given_a_mapping_names_what_takes_one() -> None:
    with pytest.raises(TypeError, match=r"by name: recede.designs.HistoryReducer\(\).reduce\(messages, options\)"):
        recede.reduce([], {"max_input_chars": 9})  # type: ignore[call-overload]


def test_history_reducer_does_what_reduce_does() -> None:
    history = turns(9)
    reducer = HistoryReducer(max_input_chars=500, keep_results=1, keep_by_tool={"run": 3})
    options: dict[str, Any] = {"max_input_chars": 500, "keep_results": 1, "keep_by_tool": {"run": 3}, "fill": None}
    assert reducer.reduce(history) == published.reduce(history, **options)
    raw = b'[{"role":"user","content":"hi"}]'
    assert reducer.reduce_json(raw) == published.reduce_json(raw, **options)
    assert repr(reducer) == "HistoryReducer(max_input_chars=500, keep_results=1, keep_by_tool={'run': 3})"


class Callback:
    """A function that one can see being dropped."""

    def __call__(self, *arguments: Any) -> Any:
        return 1 if len(arguments) == 1 else "a summary"


class Text(str):
    """A str that may hold anything."""


def reduced_with(callback: Callback) -> object:
    return published.reduce(turns(9), max_input_tokens=9, summarizer=callback, token_counter=callback)


@pytest.mark.parametrize(
    "use",
    [
        reduced_with,
        lambda callback: published.reduce_json(b"[]", max_input_tokens=9, summarizer=callback, token_counter=callback),
        lambda callback: recede.designs.summarize_history(turns(9), preserve_recent_raw_turns=1, summarizer=callback),
        lambda callback: HistoryReducer(max_input_tokens=9, summarizer=callback).reduce(turns(9)),
        lambda callback: published.History(max_input_tokens=9, token_counter=callback).view(),
        lambda callback: recede.designs.Budget(9, token_counter=callback).view(turns(9)),
        lambda callback: recede.designs.mask_observation("x" * 99, placeholder=holding(callback)),
    ],
)
def test_nothing_keeps_the_functions_of_a_caller(engine: str, use: Callable[[Callback], object]) -> None:
    callback = Callback()
    seen = weakref.ref(callback)
    use(callback)
    del callback
    gc.collect()
    assert seen() is None


def holding(callback: Callback) -> Text:
    text = Text("[gone]")
    text.callback = callback  # type: ignore[attr-defined]
    return text


@pytest.mark.parametrize(
    "price", [10**400, 10**5_000, float("inf"), float("nan"), -1], ids=["wide", "very wide", "inf", "nan", "negative"]
)
@pytest.mark.parametrize("name", ["read", "write"])
def test_a_price_that_no_float_holds_is_refused_with_words(name: str, price: float) -> None:
    with pytest.raises(ValueError, match=f"provider.{name} must be"):
        published.mask_observations([], boundary="break_even", provider=priced(**{name: price}))


def test_options_that_were_seen_before_are_checked_by_their_types_again() -> None:
    for option in ({"keep_errors": True}, {"provider": priced(read=1)}, {"summarizer": len}, {"exclude_tools": ("a",)}):
        reduce(**option)
    reduce(cold=(1,))
    for bad in (
        {"keep_errors": 1},
        {"summarizer": 5},
        {"exclude_tools": "a"},
        {"cold": (True,)},
    ):
        with pytest.raises(TypeError, match=next(iter(bad))):
            reduce(**bad)


@pytest.mark.parametrize("keep", [0, 3, 10])
def test_the_policy_of_the_core_is_that_of_reduce(keep: int) -> None:
    masked = 0
    for count in range(0, 120, 7):
        history = [
            user("Go."),
            *(one for turn in range(count) for one in (call(str(turn)), result(str(turn), "a line\n" * 90))),
        ]
        data = json.dumps(history).encode()
        view = recede.reduce(data, keep=keep, provider="none")
        assert _core.reduce_json(data, False, _core.Policy.keep(keep)).json == view.json
        masked += view.masked_count
    assert masked > 50
