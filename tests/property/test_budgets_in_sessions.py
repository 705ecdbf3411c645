"""One `Budget`, one behavior: alone, in a `History`, and in a `Conversation`."""

from __future__ import annotations

from typing import Any

import pytest
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import block_options, words

import recede
from recede.designs import Budget, Conversation
from support import using


def budgets() -> st.SearchStrategy[Budget]:
    limits = {
        "max_input_tokens": st.none() | st.integers(0, 900),
        "token_counter": st.sampled_from([None, None, len, words]),
    }
    options = st.builds(dict.__or__, block_options(), st.fixed_dictionaries({}, optional=limits))
    return st.builds(lambda threshold, options: Budget(threshold, **options), st.sampled_from([0, 0, 50, 400]), options)


@given(history=histories(max_turns=9), budget=budgets())
def test_a_session_of_a_budget_shows_its_views(history: list[dict[str, Any]], budget: Budget) -> None:
    session = budget.history()
    for count, message in enumerate(history, 1):
        session.append(message)
        assert session.view() == budget.view(history[:count])


@given(history=histories(max_turns=9), budget=budgets())
def test_both_engines_agree_on_a_limit(history: list[dict[str, Any]], budget: Budget) -> None:
    with using("core"):
        view, report = budget.view(history), budget.report(history)
    with using("oracle"):
        assert (budget.view(history), budget.report(history)) == (view, report)


@given(history=histories(max_turns=9), budget=budgets(), place=st.integers(0, 20))
def test_a_saved_session_of_a_budget_goes_on(
    history: list[dict[str, Any]], budget: Budget, place: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    session = budget.history()
    session.extend(history[:place])
    path = tmp_path_factory.mktemp("sessions") / "session"
    session.save(path)
    loaded = recede.History.load(path, token_counter=budget.token_counter)
    loaded.extend(history[place:])
    assert loaded.view() == budget.view(history)


@pytest.mark.parametrize("boundary", ["sliding", "break_even"])
@pytest.mark.parametrize("limit", [None, 900])
def test_a_conversation_sends_what_its_budget_gives(boundary: Any, limit: int | None, caplog: Any) -> None:
    budget = Budget(1_000, boundary=boundary, max_input_tokens=limit)
    conversation: Conversation

    def create(messages: list[Any], **request: Any) -> Any:
        assert messages == budget.view(conversation.history.messages)
        if len(messages) > 40:
            return {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
        call = {"type": "tool_use", "id": f"toolu_{len(messages)}", "name": "run", "input": {}}
        return {"role": "assistant", "content": [call], "stop_reason": "tool_use"}

    conversation = Conversation(
        create, tools=[{"name": "run"}], run_tool=lambda name, value: "a line of the log\n" * 60, budget=budget
    )
    assert conversation.turn("Go.").text == "Done."
    over = [line for line in caplog.messages if "over max_input_tokens=900" in line]
    assert bool(over) == (limit == 900), "four results are more than the limit"
    assert recede.check_pairs(conversation.history.messages).is_whole
