"""What the tool `recall` returns, in each framework's own agent: the contract of rules about recall."""

from __future__ import annotations

import asyncio
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from frameworks import of_run
from sessions import LAST, Call, Turn, numbered_from_zero, session
from unions import LINE, LONG

from support import handle_of

pytestmark = pytest.mark.filterwarnings("default")  # frameworks warn of their own


def recalling(case: Any, **options: Any) -> Any:
    return case.masking(keep=4, boundary="sliding", recall=True, **options)


def recalled_of(turns: list[Turn], turn: int) -> tuple[str, str]:
    """The id and the text of the first result of a turn."""
    result = next(iter(turns[turn].results.values()))
    return result.id, result.text


def recall(id: str, text: str) -> Turn:
    return Turn("I need it.", [Call("again", "recall", {"handle": handle_of(id, text)})])


def test_the_agent_recalls_a_masked_result(case: Any) -> None:
    for way in case.WAYS:
        if way == "failing":
            continue
        turns = session(30)
        asked, text = recalled_of(turns, 2)
        requests, stored = of_run(case, recalling(case), [*turns, recall(asked, text)], way)
        view = dict(requests[-1][1])
        assert view[asked].endswith(f", recall {handle_of(asked, text)}]"), way
        assert view["again"] == dict(stored)["again"] == text, way


def test_a_template_gets_the_handle_before_its_last_character(case: Any) -> None:
    turns = session(30)
    asked, text = recalled_of(turns, 2)
    for template, shown_text in (
        ("<{tool}: gone>", f"<run: gone recall {handle_of(asked, text)}>"),
        ("<{handle} of {tool}>", f"<{handle_of(asked, text)} of run>"),
        ("gone: {chars}", f"gone: {len(text)} recall {handle_of(asked, text)}"),
    ):
        masking = recalling(case, placeholder=template)
        assert dict(case.results(case.view(masking, case.history(turns))))[asked] == shown_text


def test_what_has_an_image_is_recalled_with_it_or_with_words(case: Any) -> None:
    turns = session(30)
    pictured = next(one for one in turns[5].results.values() if one.has_image)
    for text in (pictured.text, ""):
        turns[5] = Turn(turns[5].said, turns[5].calls, {pictured.id: replace(pictured, text=text)})
        stored = case.run(recalling(case), [*turns, recall(pictured.id, text)], "sync")[1]
        again, given = (case.contents(stored)[id] for id in ("again", pictured.id))
        assert again == given or (text in again and "call the tool again" in again)


@pytest.mark.parametrize("texts", ["of its own", "of all"])
@pytest.mark.parametrize("how", ["one after the other", "threads", "tasks", "streams"])
def test_each_run_recalls_its_own_text_where_all_ids_are_equal(case: Any, how: str, texts: str) -> None:
    masking = recalling(case)
    way = {"tasks": "async", "streams": "stream"}.get(how, "sync")
    way = way if way in getattr(case, "AT_ONCE", case.WAYS) else "sync"
    seeds = range(1, 5) if texts == "of its own" else [1] * 4

    def run(seed: int) -> tuple[str, str, str]:
        turns = numbered_from_zero(session(16, seed))
        asked, text = recalled_of(turns, 2)
        requests, stored = of_run(case, masking, [*turns, recall(asked, text)], way)
        return requests[-1][1][-1][1], dict(stored)["again"], text

    async def at_once() -> list[Any]:
        return await asyncio.gather(*[asyncio.to_thread(run, seed) for seed in seeds])

    if how == "one after the other":
        answers = [run(seed) for seed in seeds]
    elif how == "threads":
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(run, seeds))
    else:
        answers = asyncio.run(at_once())
    assert len({text for *_, text in answers}) == len(set(seeds))
    for sent, stored, text in answers:
        assert sent == stored == text


def test_a_handle_of_another_run_is_not_known(case: Any) -> None:
    asked, text = recalled_of(numbered_from_zero(session(30, 1)), 2)
    other = numbered_from_zero(session(30, 2))
    _, stored = of_run(case, recalling(case), [*other, recall(asked, text)])
    assert dict(stored)["again"] == f"there is no observation '{handle_of(asked, text)}': call the tool again"


def test_a_result_of_each_type_of_content_is_masked_and_recalled(case: Any) -> None:
    for name, messages in case.typed_results().items():
        masking = case.masking(keep=0, boundary="sliding", recall=True)
        stored = [*messages, *case.history([LAST])[1:]]
        shown_content = str(case.contents(case.view(masking, stored))["1"])
        if name in case.KEPT:
            assert shown_content == str(case.contents(stored)["1"])
            continue
        found = re.search(r"\[old tool output cleared to save context, recall ([0-9a-f]{12})\]", shown_content)
        assert found is not None and LINE not in shown_content, (name, shown_content[:200])
        again, given = masking.recalled(stored, found[1]), case.contents(stored)["1"]
        assert again in (given, LONG) or (isinstance(again, str) and LINE in again), (name, again)
