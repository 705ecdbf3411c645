"""The budget of the kit: a threshold, the view above it, and a report in Anthropic's form."""

from __future__ import annotations

import logging
from typing import Any

import published
import pytest
from anthropic.types.beta import BetaContextManagementResponse

import recede
from recede.designs import Budget
from support import priced, tool_result, tool_use, turns, user


def session(count: int, chars: int = 900) -> list[dict[str, Any]]:
    history = [user("Go.")]
    for number in range(count):
        history += [tool_use(str(number)), user([tool_result(str(number), "x" * chars)])]
    return history


def test_a_history_at_the_threshold_is_sent_as_it_is() -> None:
    history = session(20)
    exact = Budget(recede.designs.approx_tokens(history))
    assert not exact.is_over(history)
    assert exact.view(history) is history
    assert exact.report(history) == {"applied_edits": []}
    below = Budget(recede.designs.approx_tokens(history) - 1)
    assert below.is_over(history)
    assert below.view(history) != history


def test_above_it_the_view_is_the_block_maskers() -> None:
    history = session(20)
    for options in ({}, {"keep": 7}, {"mask_chunk": 6}, {"boundary": "break_even"}, {"exclude_tools": ["run"]}):
        keep, chunk = options.get("keep", 4), options.get("mask_chunk")
        rest = {name: value for name, value in options.items() if name not in ("keep", "mask_chunk")}
        expected = recede.designs.mask_old_observations(history, keep, chunk, **rest)
        assert Budget(0, **options).view(history) == expected, options
    assert history == session(20)


def test_the_default_boundary_slides() -> None:
    history = session(20)
    assert Budget(0).view(history) == recede.designs.mask_old_observations(history, boundary="sliding")
    assert Budget(0, mask_chunk=1).view(history) == Budget(0).view(history)
    assert Budget(0, boundary="stepped", mask_chunk=3).view(history) == Budget(0, mask_chunk=3).view(history)


def test_over_the_limit_the_boundary_moves_to_the_window(caplog: pytest.LogCaptureFixture) -> None:
    whole = session(20)
    late = Budget(0, boundary="break_even", provider=priced(write=1e9))  # which no waste pays for
    for options in ({"boundary": "break_even", "provider": priced(write=1e9)}, {"mask_chunk": 12}):
        budget = Budget(0, **options, max_input_tokens=2_300)
        for count in range(1, 21):
            history = session(count)
            view = budget.view(history)
            assert budget.tokens(view) <= 2_300
            if budget.tokens(Budget(0, **options).view(history)) <= 2_300 and count < 11:
                assert view == Budget(0, **options).view(history)
        masked = [place for place, message in enumerate(budget.view(session(10))) if "masked" in str(message)]
        assert masked == list(range(2, 13, 2)), "all but the newest four"
    assert late.tokens(late.view(whole)) == late.tokens(whole) > 4_600
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_the_limit_counts_with_the_callers_counter() -> None:
    budget = Budget(0, boundary="break_even", provider=priced(write=1e9), max_input_tokens=9_000, token_counter=len)
    assert [budget.tokens(budget.view(session(count))) <= 9_000 for count in range(1, 21)] == [True] * 20
    assert len(str(budget.view(session(9)))) > 8_000


def test_a_limit_below_the_threshold_is_the_threshold() -> None:
    history = session(20)
    assert Budget(8_000).view(history) is history
    assert Budget(8_000, max_input_tokens=3_000).view(history) == recede.designs.mask_old_observations(history)
    assert Budget(8_000, max_input_tokens=3_000).is_over(history)
    kept = Budget(8_000, max_input_tokens=3_000).history()
    kept.extend(history)
    assert kept.view() == recede.designs.mask_old_observations(history)


def test_a_view_that_is_still_over_is_sent_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    budget = Budget(0, max_input_tokens=900)
    assert budget.view(session(20)) == recede.designs.mask_old_observations(session(20))
    [warning] = caplog.messages
    assert warning == (
        "a view of about 1,178 tokens is over max_input_tokens=900 though all but the newest 4 results are masked: "
        "recede.History(max_input_tokens=900) cuts and summarizes until a view fits, and its max_result_chars cuts a "
        "long result when it arrives"
    )


def test_what_the_warning_names_holds_one_round_larger_than_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    history = session(1, 60_000)
    assert Budget(0, max_input_tokens=9_000).tokens(history) > 9_000
    assert Budget(0, max_input_tokens=9_000).view(history) == history
    for named in ({"max_input_tokens": 9_000}, {"max_result_chars": 16_000}):
        assert next(iter(named)) in caplog.text and "recede.History" in caplog.text
        kept = recede.History(**named)
        kept.extend(history)
        assert Budget().tokens(kept.view()) <= 9_000


def test_the_report_is_one_that_anthropics_client_reads() -> None:
    history = session(20)
    budget = Budget(100)
    report = BetaContextManagementResponse.model_validate(budget.report(history), strict=True)
    [edit] = report.applied_edits
    assert edit.type == "clear_tool_uses_20250919"
    assert edit.cleared_tool_uses == 16
    view = budget.view(history)
    assert edit.cleared_input_tokens == recede.designs.approx_tokens(history) - recede.designs.approx_tokens(view)
    assert BetaContextManagementResponse.model_validate(Budget().report(session(1))).applied_edits == []
    # Over the threshold, but nothing is old.
    assert Budget(0).report(session(3)) == {"applied_edits": []}


def test_tokens_are_the_callers_where_a_counter_is_given() -> None:
    counted: list[str] = []

    def words(text: str) -> int:
        counted.append(text)
        return len(text.split())

    history = [user("one two three"), *turns(6, chars=500)]
    budget = Budget(30, token_counter=words)
    # Of each call 20 of its 25 chars are no text: 5 tokens, and one word, "run{}".
    assert budget.tokens(history) == 3 + 6 * (5 + 1 + 1)
    assert budget.is_over(history)
    assert "one two three" in counted
    assert not Budget(45, token_counter=words).is_over(history)
    [edit] = Budget(30, token_counter=len).report(history)["applied_edits"]
    assert edit["cleared_tool_uses"] == 2
    assert edit["cleared_input_tokens"] == 2 * (500 - len("[observation masked — 1 lines omitted]"))
    # A placeholder is six words, where the masked text was one; the form has no number below 0.
    assert budget.report(history)["applied_edits"][0]["cleared_input_tokens"] == 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"threshold_tokens": -1}, ValueError, "threshold_tokens must be at least 0"),
        ({"threshold_tokens": 1.5}, TypeError, "threshold_tokens must be a whole number"),
        ({"threshold_tokens": True}, TypeError, "threshold_tokens must be a whole number"),
        ({"keep": 2}, ValueError, "keep must be at least 3"),
        ({"mask_chunk": 0}, ValueError, "mask_chunk must be at least 1"),
        ({"mask_chunk": 5, "boundary": "break_even"}, ValueError, "not both"),
        ({"boundary": None}, ValueError, "boundary must be one of"),
        ({"max_input_tokens": -1}, ValueError, "max_input_tokens must be at least 0"),
        ({"max_input_tokens": "9"}, TypeError, "max_input_tokens must be a whole number"),
        ({"boundary": "jumping"}, ValueError, "boundary must be one of"),
        ({"token_counter": 5}, TypeError, "token_counter must be callable"),
        ({"exclude": ["run"]}, TypeError, "did you mean 'exclude_tools'"),
    ],
)
def test_a_wrong_option_is_named_at_once(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Budget(**options)


def test_what_is_no_history_is_refused() -> None:
    for ask in (Budget().view, Budget().is_over, Budget().report):
        with pytest.raises(recede.TranscriptError):
            ask([{"role": "user", "content": 5}])
        for given in (None, "a text", 5, {}, ([],), published.History()):
            with pytest.raises(TypeError, match=f"a budget takes a list of messages, not {type(given).__name__}"):
                ask(given)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="token_counter must return"):
        Budget(token_counter=lambda text: -1).is_over([user("x")])
