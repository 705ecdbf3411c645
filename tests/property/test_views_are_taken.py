"""No view of a history that a provider takes is refused by it, whatever stage made the view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import published
import pytest
from even import summaries_of
from generated import histories
from hypothesis import assume, given
from hypothesis import strategies as st
from published import History
from strategies import block_options, history_options, mask_options, reduce_options, stage_options

import recede
from provider_rules import fault as fault_of
from recede.designs import Budget
from sound import as_anthropic, as_converse, as_gemini, as_openai, joined
from support import ENGINES, using

ENGINES = pytest.mark.parametrize("engine_name", ENGINES)
Messages = list[dict[str, Any]]


def anthropic(messages: Messages) -> str | None:
    return fault_of("anthropic", {"model": "m", "max_tokens": 9, "messages": messages})


def openai(messages: Messages) -> str | None:
    return fault_of("chat", {"model": "m", "messages": messages})


def converse(messages: Messages) -> str | None:
    """Of a view whose messages of one role are joined: a summary may precede a user message."""
    return fault_of("converse", {"messages": joined(messages)})


def gemini(messages: Messages) -> str | None:
    return fault_of("gemini", {"contents": messages})


def with_a_role(options: dict[str, Any], history: Messages, fault: Callable[[Messages], str | None]) -> dict[str, Any]:
    """Options with a role of the summary that the provider has.

    A history with tool blocks is known as one of Anthropic. One without could be of any provider, so its role is said.
    """
    if fault is openai:
        return options
    if fault in (gemini, converse):
        return {**options, "summary_role": None}
    kinds = {
        block["type"] for message in history if isinstance(message["content"], list) for block in message["content"]
    }
    return {**options, "summary_role": None if "tool_use" in kinds else "user"}


@st.composite
def sound(draw: st.DrawFn) -> tuple[Messages, Callable[[Messages], str | None]]:
    """A history that a provider takes at its end, and its rules."""
    messages = draw(histories(max_turns=8, max_parallel_calls=3))
    history: Messages
    fault: Callable[[Messages], str | None]
    provider = draw(st.sampled_from(["anthropic", "openai", "gemini", "converse"]))
    go_on: dict[str, Any] = {"role": "user", "content": "Go on."}
    if provider == "anthropic":
        history, fault = as_anthropic(messages, draw(st.booleans(), label="thinking")), anthropic
    elif provider == "openai":
        history, fault = as_openai(messages), openai
    elif provider == "gemini":
        history, fault = as_gemini(messages, draw(st.sampled_from(["both", "calls", "results", ""]))), gemini
        go_on = {"role": "user", "parts": [{"text": "Go on."}]}
    else:
        history, fault = as_converse(messages), converse
        go_on["content"] = [{"text": "Go on."}]
    if not history or history[-1]["role"] in ("assistant", "model"):
        history.append(go_on)
    return history, fault


@given(sound())
def test_what_is_reduced_is_taken_itself(drawn: tuple[Messages, Any]) -> None:
    history, fault = drawn
    assert fault(history) is None


@ENGINES
@given(drawn=sound(), reducing=reduce_options(), masking=mask_options(), blocks=block_options(), stage=stage_options())
def test_a_view_of_a_history_is_taken(
    engine_name: str, drawn: Any, reducing: Any, masking: Any, blocks: Any, stage: Any
) -> None:
    history, fault = drawn
    # What begins with a summary and has no room for it may be left with no message of the user.
    assume(not summaries_of(history))
    reducing = with_a_role(reducing, history, fault)
    with using(engine_name):
        views = [
            published.reduce(history, **reducing).messages,
            published.mask_observations(history, **masking).messages,
            recede.designs.mask_old_observations(history, **blocks),
            recede.designs.summarize_history(history, **with_a_role(stage, history, fault)).messages,
            Budget(50).view(history),
        ]
        truncated = recede.designs.truncate_history(history, **stage).messages
        # A window of nothing leaves nothing of a history without a task.
        has_user = any(message["role"] == "user" for message in history)
        if truncated or has_user or stage.get("preserve_recent_raw_turns") != 0 or any(stage.values()):
            views.append(truncated)
        for view in views:
            assert fault(view) is None, (view, fault(view))
        # A view may be reduced again.
        again = published.reduce(views[0], **reducing).messages
        assert fault(again) is None


@ENGINES
@given(history=histories(max_turns=8), options=mask_options() | block_options())
def test_a_masked_view_of_converse_alternates_as_the_history_does(
    engine_name: str, history: Messages, options: Any
) -> None:
    history = as_converse(history)
    if not history or history[-1]["role"] == "assistant":
        history.append({"role": "user", "content": [{"text": "Go on."}]})
    mask = recede.designs.mask_old_observations if "keep" in options else published.mask_observations
    with using(engine_name):
        view: Any = mask(history, **options)
    assert fault_of("converse", {"messages": history}) is None
    view = view if isinstance(view, list) else view.messages
    assert fault_of("converse", {"messages": view}) is None


@ENGINES
@given(drawn=sound(), options=history_options() | block_options(), data=st.data())
def test_a_view_of_a_session_is_taken_at_every_request(engine_name: str, drawn: Any, options: Any, data: Any) -> None:
    history, fault = drawn
    options = {name: value for name, value in options.items() if name != "token_counter"}
    if any(name.startswith("max_input") for name in options):
        options = with_a_role(options, history[:1], fault)  # which cannot be known yet
    with using(engine_name):
        session = History(**options)
        for count, message in enumerate(history, 1):
            session.append(message)
            if fault(history[:count]) is None and data.draw(st.booleans(), label="request"):
                assert fault(session.view()) is None
