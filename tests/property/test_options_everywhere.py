"""What options promise holds where any writer of a view writes, at any door, in any shape: random histories."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from everywhere import (
    DOORS,
    Request,
    Result,
    Step,
    Steps,
    Told,
    by_reduce,
    chars_of,
    messages_of,
    quarters_of,
    shown_in,
    steps,
)
from promises import (
    ALIKE,
    BOUNDARY,
    CUT,
    EQUAL,
    EQUAL_SENTENCE,
    FILLED,
    FORMS,
    HIDDEN,
    PROMISES,
    ROWS,
    SLIDING,
    SUMMARY,
    WRITERS,
    Promise,
    Seen,
)

import recede
from recede import count_chars
from recede.proxy import RequestMasker
from recede.reduction._options import OPTIONS
from support import ROOT

CELLS = [(door, shape) for door, (_, shapes, _) in DOORS.items() for shape in shapes]
PAIRS = [(promise, writer) for promise in PROMISES for writer in promise.writers]
SAMPLED = 5  # of the doors and shapes, for each option and writer; `make test-slow` tries all

slow = pytest.mark.slow


def test_each_option_and_each_writer_has_a_row() -> None:
    assert {promise.option for promise in PROMISES} | ALIKE.keys() == OPTIONS.keys()
    written = {writer for promise in PROMISES for writer in promise.writers}
    assert written == WRITERS.keys() == {*(one for row in ROWS.values() for one in row)} - {FILLED}
    (forms,) = re.findall(r"pub enum Form \{(.*?)\n\}", (ROOT / "src/placeholder.rs").read_text(), re.DOTALL)
    assert re.findall(r"^    (\w+)", forms, re.MULTILINE) and {*re.findall(r"^    (\w+)", forms, re.MULTILINE)} == {
        *FORMS
    }
    table = (ROOT / "docs/semantics.md").read_text().partition("| | exempt | in a window | not shown yet |")[2]
    rows = re.findall(r"^\| (\w.*?) \|", table.partition("\n\n")[0], re.MULTILINE)
    assert rows == [*ROWS]
    core = re.findall(r"^//! \| (?!writer|-)", (ROOT / "src/plan/stay.rs").read_text(), re.MULTILINE)
    assert len(core) == len(ROWS)


def test_each_row_has_its_sentence_in_the_docs() -> None:
    sentences = {(one.page, one.sentence) for one in PROMISES} | {(page, words) for _, page, words in ALIKE.values()}
    for page, sentence in sentences | {EQUAL_SENTENCE}:
        assert sentence in (ROOT / "docs" / page).read_text(), sentence


def options_of(writer: str, option: str, value: Any, made: Steps, shape: str) -> dict[str, Any]:
    """The options at which a writer writes, with this one."""
    setting = WRITERS[writer]
    tokens = quarters_of(messages_of(made, shape)) // 4
    options = {**setting.options}
    if setting.of_raw is not None:
        options["max_input_tokens"] = int(tokens * setting.of_raw)
    if option == "trigger_tokens":
        value = tokens + 5
    return {**options, option: value} if value is not None or option not in options else options


def made_by(random: Random, writer: str) -> Steps:
    setting = WRITERS[writer]
    return steps(random, results=setting.results, words=setting.words, exempt=setting.exempt)


def wrong_in(promise: Promise, writer: str, cell: tuple[str, str], seed: int) -> Iterator[tuple[Request, str]]:
    """Each request of a random history, and what is wrong with it."""
    (name, shape), made = cell, made_by(Random(f"{seed} {writer}"), writer)
    door, _, hides = DOORS[name]
    options = options_of(writer, promise.option, promise.value, made, shape)
    for request in door(made, shape, options):
        yield request, promise.holds(Seen(request, options, hides, shape))


def writes(writer: str, request: Request) -> bool:
    """Whether a writer has written."""
    shown, is_whole = shown_in(request.view), len(request.view) == len(request.history)
    if writer == SUMMARY:
        return "Conversation summary:" in shown
    return (
        not is_whole
        if writer == HIDDEN
        else "chars omitted" in shown
        if writer == CUT
        else shown != shown_in(request.history)
    )


def check(promise: Promise, writer: str, cells: list[tuple[str, str]], seeds: range) -> None:
    """Hold the promise in each request of each history; in one of them the writer writes."""
    has_written = promise.option == "trigger_tokens"
    for seed, cell in product(seeds, cells):
        for number, (request, wrong) in enumerate(wrong_in(promise, writer, cell, seed)):
            assert not wrong, f"{promise.option} at {writer}, {cell}, seed {seed}, request {number}: {wrong}"
            has_written |= writes(writer, request)
    hides = any(DOORS[door][2] for door, _ in cells)
    assert has_written or (writer in (HIDDEN, CUT) and not hides), f"{writer} has written nothing: {seeds}"


@pytest.mark.parametrize(("promise", "writer"), PAIRS, ids=[f"{one.option}-{writer}" for one, writer in PAIRS])
def test_an_option_holds_at_some_doors(promise: Promise, writer: str) -> None:
    sampled = Random(f"{promise.option} {writer} {promise.value}").sample(CELLS, SAMPLED)
    check(promise, writer, sampled, range(1, 2))


@slow
@pytest.mark.parametrize("seeds", [range(first, first + 5) for first in range(0, 20, 5)], ids=str)
@pytest.mark.parametrize(("promise", "writer"), PAIRS, ids=[f"{one.option}-{writer}" for one, writer in PAIRS])
def test_an_option_holds_at_every_door(promise: Promise, writer: str, seeds: range) -> None:
    check(promise, writer, CELLS, seeds)


def check_equal(writer: str, cell: tuple[str, str], seed: int) -> None:
    """Exempt by any option, a result has the same view: over a limit it has the same share."""
    (name, shape), made = cell, made_by(Random(f"{seed} {writer}"), writer)
    door, _, _ = DOORS[name]
    views = []
    for exempt in EQUAL:
        options = {**options_of(writer, "keep", WRITERS[writer].options["keep"], made, shape), **exempt}
        views.append([request.view for request in door(made, shape, options)][-1])
    assert views[0] == views[1] == views[2], f"{writer}, {cell}, seed {seed}"


@pytest.mark.parametrize("writer", WRITERS)
def test_exempt_results_are_alike_whatever_exempts_them(writer: str) -> None:
    for cell in Random(writer).sample(CELLS, SAMPLED):
        check_equal(writer, cell, 1)


@slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("writer", WRITERS)
def test_exempt_results_are_alike_at_every_door(writer: str, seed: int) -> None:
    for cell in CELLS:
        check_equal(writer, cell, seed)


@pytest.mark.parametrize("option", ALIKE)
def test_when_something_is_masked_is_one_decision_at_all_doors(option: str) -> None:
    value, _, _ = ALIKE[option]
    options = {"keep": 4, "provider": "openai", option: value}
    for name, shape in Random(option).sample([cell for cell in CELLS if cell[1] != "own"], SAMPLED):
        made = made_by(Random(f"1 {option}"), BOUNDARY)
        (reduced,) = by_reduce(made, shape, options)
        *_, last = DOORS[name][0](made, shape, options)
        assert last.view == reduced.view, f"{option} at {name}, {shape}"


STUB = "Wasted call \u2014 file unchanged since your last Read. Refer to that earlier tool_result instead."


def sent(random: Random, second: str, first: str, **options: Any) -> list[Any]:
    """The view of a session that reads a file twice, at first with this text."""

    def turn(number: int, name: str, path: str, text: str) -> list[Any]:
        use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": {"file_path": path}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]

    messages: list[Any] = [{"role": "user", "content": "Find the bug."}, *turn(0, "Read", "a.py", first)]
    count = random.randint(6, 12)
    for number in range(1, count):
        messages += turn(number, "Bash", f"{number}", f"<{number}> " + "x" * random.randint(200, 1_500))
    messages += turn(count, "Read", "a.py", second)
    body = json.dumps({"model": "claude-opus-4-5", "max_tokens": 9, "messages": messages}).encode()
    masker = RequestMasker(**{**SLIDING, "keep": 2, **options})
    done = masker.mask("POST", "/v1/messages", {"user-agent": "claude-cli/2.1.332"}, body)
    view: list[Any] = json.loads(done.body)["messages"]
    return view


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=slow) for seed in range(6, 200))])
def test_a_filled_text_is_a_result_like_any_other(seed: int) -> None:
    random = Random(seed)
    state, text = random.getstate(), "FILE " + "line of the file\n" * random.randint(300, 900)

    def both(**options: Any) -> tuple[list[Any], list[Any]]:
        views = []
        for second in (STUB, text):
            random.setstate(state)
            views.append(sent(random, second, text, **options))
        return views[0], views[1]

    # Unless the first read is still shown, the reference arrives with its text, and has the view of a second read.
    for options in (
        {},
        {"max_input_tokens": 2_500},
        {"max_result_chars": 4_500},
        {"max_result_chars": 6_000, "max_input_tokens": 2_500},
    ):
        filled, real = both(**options)
        assert filled == real
        assert "max_input_tokens" not in options or count_chars(filled) <= 10_000
    limit = {"max_input_tokens": 2_500}
    for exempt in ({"exclude_tools": ["Read"]}, {"keep_by_tool": {"Read": 2}}):
        filled, _ = both(**exempt)  # the first read is shown, and the reference as it came
        assert text in json.dumps(filled).encode().decode("unicode_escape") and "Wasted call" in str(filled)
    assert count_chars(both(**limit)[0]) <= 10_000


@pytest.mark.parametrize("exempt", [{}, {"keep_errors": True}], ids=str)
@pytest.mark.parametrize("door", ["History", "Masker", "reduce"])
def test_a_late_result_of_a_hidden_call_is_shown(door: str, exempt: dict[str, Any]) -> None:
    """A second result of a call that a summary stands for: no request has shown it, so the turn is shown again."""
    made = steps(Random(5), results=(200, 900), words=220, exempt=0)
    late = {"role": "tool", "tool_call_id": "c1", "content": "it failed late " * 20, "status": "error"}
    options: dict[str, Any] = {"keep": 2, "provider": "none", "summarizer": Told(), **exempt}
    for history in ([*messages_of(made, "chat")], [*messages_of(made, "chat"), late]):
        if door == "reduce":
            view = recede.reduce(history, **options).messages
        elif door == "Masker":
            masker = recede.masker.Masker(**options)
            view = [masker.view(history[:end]) for end in range(1, len(history) + 1)][-1]
        else:
            session = recede.History(**options)
            for message in history:
                session.append(message)
                view = session.view()
        assert ('"c1"' in json.dumps(view)) is (late in history) and (late in view) is (late in history)


@pytest.mark.parametrize(("options", "most"), [({"max_input_tokens": 2_000}, 4_000), ({"max_result_chars": 900}, 900)])
@pytest.mark.parametrize("marker", ["[… 5 chars omitted …]", "[… 5 chars omitted, recall 3f9c2a1b07de …]"])
@pytest.mark.parametrize(("door", "shape"), CELLS)
def test_a_text_like_a_cut_is_cut(door: str, shape: str, marker: str, options: dict[str, Any], most: int) -> None:
    text = "x" * 200_000 + marker + "x" * 200_000
    for request in DOORS[door][0]([Step("I look.", (Result(1, "run", text, False),))], shape, options):
        assert chars_of(request.view) - chars_of(request.history) == most - len(text)
