"""Cases in which what a user had set did not hold: a summary, a limit or a cut hid what an option keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from everywhere import Adapter, Said

import recede
from recede.masker import Masker
from recede.proxy import RequestMasker
from support import SHARED

CASES = SHARED / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")

Messages = list[dict[str, Any]]


def case(name: str) -> Any:
    return json.loads((CASES / name).read_text())


def told(messages: Any, previous: str | None) -> str:
    return "What was done."


def by_history(messages: Messages, **options: Any) -> Messages:
    history = recede.History(**options)
    for message in messages:
        if message["role"] == "assistant":
            history.view()
        history.append(message)
    return history.view()


def by_masker(messages: Messages, **options: Any) -> Messages:
    masker = Masker(**options)
    starts = [place for place, one in enumerate(messages) if one["role"] == "assistant"]
    return [masker.view(messages[:end]) for end in (*starts, len(messages))][-1]


def by_reduce(messages: Messages, **options: Any) -> Messages:
    return recede.reduce(messages, **options).messages


DOORS = (by_reduce, by_history, by_masker)


def shows(view: Any, text: str, messages: Messages) -> bool:
    """Whether the view has the whole result that begins with this text."""
    (whole,) = {
        one["content"] for one in messages if str(one.get("content")).startswith(text) and one["role"] == "tool"
    }
    return whole in [message.get("content") for message in view]


@pytest.mark.parametrize("door", DOORS)
def test_below_the_trigger_nothing_is_hidden_and_nobody_asked(door: Any) -> None:
    messages, asked = case("301-trigger-summary-chat.json"), []
    options = {"summarizer": lambda *given: asked.append(given) or "What was done.", "provider": "none"}
    assert door(messages, trigger_tokens=50_000, **options) == messages and not asked
    assert len(door(messages, **options)) < len(messages) and asked  # above it there is a summary


def test_summaries_that_pay_are_not_counted_as_the_limits() -> None:
    history = recede.History(max_input_tokens=500_000, summarizer=told, provider="none")
    for message in case("301-trigger-summary-chat.json"):
        history.append(message)
        view = history.view()
    assert len(view) < len(history) and sum(history.stats().over_limit) == 0


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ["501-keep-errors-summary-chat", "502-keep-by-tool-summary-chat"])
def test_a_summary_leaves_what_an_option_keeps(door: Any, name: str) -> None:
    given = case(f"{name}.json")
    options = [given["options"]]
    if "keep_by_tool" in given["options"]:
        options.append({**given["options"], "keep_by_tool": {"todo": None}})
    for one in options:
        view = door(given["messages"], summarizer=told, **one)
        assert shows(view, given["result"], given["messages"])
        assert len(view) < len(given["messages"])  # and a summary stands for others


def said(message: dict[str, Any]) -> Said:
    made = [(one["id"], one["function"]) for one in message.get("tool_calls") or ()]
    calls = tuple((call_id, called["name"], len(called["arguments"])) for call_id, called in made)
    return Said(message["role"], message.get("content") or "", calls, message.get("tool_call_id"))


@pytest.mark.parametrize("grows", [True, False], ids=["growing", "at_once"])
def test_a_text_that_stays_is_read_before_its_turn_is_judged(grows: bool) -> None:
    given = case("503-keep-matching-adapter.json")
    messages = list(map(said, given["messages"]))
    masker: Masker[Said] = Masker(Adapter(), summarizer=told, **given["options"])
    ends = [end for end in range(1, len(messages)) if messages[end].role == "assistant"] if grows else []
    view = [masker.view(messages[:end]) for end in (*ends, len(messages))][-1]
    kept = next(one for one in messages if one.text.startswith("KEEP "))
    assert kept in view and len(view) < len(messages)


def test_a_filled_reference_is_cut_over_a_limit() -> None:
    given = case("504-filled-reference-limit.json")
    body = json.dumps({"model": "claude-opus-4-5", "max_tokens": 9, "messages": given["messages"]}).encode()

    def sent(**options: Any) -> Messages:
        masker = RequestMasker(**options)
        answered: Messages = json.loads(masker.mask("POST", given["path"], given["headers"], body).body)["messages"]
        return answered

    limit = given["options"]["max_input_tokens"]
    without = {name: value for name, value in given["options"].items() if name != "max_input_tokens"}
    assert "FILE line" in str(sent(**without)[-1])  # the reference has the text
    view = sent(**given["options"])
    assert "chars omitted" in str(view[-1]) and str(view[-1]).count("FILE line") == 1
    assert recede.count_chars(view) <= 4 * limit < recede.count_chars(sent(**without))


@pytest.mark.parametrize("door", [by_reduce, by_history])
def test_over_a_limit_errors_have_the_share_of_exempt_results(door: Any) -> None:
    given = case("505-keep-errors-limit-chat.json")
    options = {name: value for name, value in given["options"].items() if name != "keep_errors"}
    view = door(given["messages"], keep_errors=True, **options)
    assert shows(view, given["result"], given["messages"])
    assert view == door(given["messages"], keep_matching=[given["result"]], **options)


@pytest.mark.parametrize("option", [{"exclude_tools": ["ask"]}, {"keep_by_tool": {"ask": 1}}])
def test_a_result_without_call_that_names_its_tool_has_that_name(option: Any) -> None:
    given = case("506-orphan-with-name-gemini.json")
    options = {name: value for name, value in given["options"].items() if name != "exclude_tools"}
    is_exempt = "exclude_tools" in option
    for cut in ({}, {"max_result_chars": 100}) if is_exempt else ({},):
        view = recede.reduce(given["messages"], **options, **option, **cut)
        (shown,), (whole,) = (
            [part for one in some for part in one["parts"] if given["result"] in json.dumps(part)]
            for some in (view.messages, given["messages"])
        )
        assert shown == whole and view.messages != given["messages"]


@pytest.mark.parametrize("door", [by_reduce, by_masker])
def test_a_limit_cuts_again_what_was_cut_on_arrival(door: Any) -> None:
    given = case("507-cut-on-arrival-limit-chat.json")
    view = door(given["messages"], **given["options"])
    limit = given["options"]["max_input_tokens"]
    assert recede.count_chars(view) <= 4 * limit
    assert view == door(given["messages"], max_input_tokens=limit)  # from the whole texts
