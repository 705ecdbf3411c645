"""Calls and results with and without ids, against the rules of the page taken literally."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import published
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import reduce_options, stage_options

import recede
from support import ENGINES, using

ENGINES = pytest.mark.parametrize("engine_name", ENGINES)
Messages = list[dict[str, Any]]
Place = tuple[int, int]

IDS = st.sampled_from([None, None, "1", "2", "", " ", 7])
NAMES = st.sampled_from(["f", "g"])
TEXT = "x" * 90


def _named(name: str | None, call_id: Any, **fields: Any) -> dict[str, Any]:
    given = {"id": call_id, "name": name, **fields}
    return {field: value for field, value in given.items() if value is not None}


_GEMINI_CALL = st.builds(lambda name, call_id: {"functionCall": _named(name, call_id, args={})}, NAMES | st.none(), IDS)
_GEMINI_RESULT = st.builds(
    lambda name, call_id: {"functionResponse": _named(name, call_id, response={"output": TEXT})}, NAMES | st.none(), IDS
)
_CONVERSE_CALL = st.builds(lambda name, call_id: {"toolUse": {"toolUseId": call_id, "name": name}}, NAMES, IDS)
_CONVERSE_RESULT = st.builds(lambda call_id: {"toolResult": {"toolUseId": call_id, "content": [{"text": TEXT}]}}, IDS)
_WORDS = st.just({"text": "words"})


def _messages(field: str, call: st.SearchStrategy[Any], result: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    assistant = "model" if field == "parts" else "assistant"

    def message(role: str, *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.lists(st.one_of(*parts), min_size=1, max_size=4).map(lambda drawn: {"role": role, field: drawn})

    asks, answers = message(assistant, call, call, _WORDS), message("user", result, result, _WORDS)
    odd = message("user", call, result, _WORDS) | message(assistant, call, result)
    return st.one_of(asks, answers, asks, answers, message("user", _WORDS), odd)


GEMINI = _messages("parts", _GEMINI_CALL, _GEMINI_RESULT)
CONVERSE = _messages("content", _CONVERSE_CALL, _CONVERSE_RESULT)
_CHAT_CALLS = st.lists(
    st.builds(
        lambda name, call_id: _named(None, call_id, function=_named(name, None, arguments={})), NAMES | st.none(), IDS
    ),
    min_size=1,
    max_size=3,
)
_CHAT_CALL = st.builds(lambda calls: {"role": "assistant", "content": "", "tool_calls": calls}, _CHAT_CALLS)
TOOL_ROLE = st.builds(
    lambda call_id, field, name: {"role": "tool", "tool_call_id": call_id, field: name, "content": TEXT},
    IDS,
    st.sampled_from(["name", "tool_name"]),
    NAMES | st.none(),
)
CHAT = st.one_of(_CHAT_CALL, TOOL_ROLE, TOOL_ROLE, st.just({"role": "user", "content": "words"}))
HISTORIES = st.one_of(
    st.lists(GEMINI, max_size=7),
    st.lists(CONVERSE, max_size=5),
    st.lists(CHAT, max_size=8),
    st.lists(GEMINI | CONVERSE | CHAT, max_size=7),
)


def exchanges(messages: Messages) -> list[tuple[Place, str, str, str | None, str | None]]:
    """Place, "call" or "result", shape, id and name, in document order."""
    found = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            call_id, names = message["tool_call_id"], [message.get("tool_name"), message.get("name")]
            name = next((name for name in names if name), None)
            found.append(((index, 0), "result", "openai", call_id, name))
        for block, one in enumerate(message.get("tool_calls") or ()):
            tool = one.get("function") or one["custom"]
            found.append(((index, block), "call", "openai", one.get("id"), tool.get("name")))
        for block, part in enumerate(message.get("parts") or message.get("content") or ()):
            for field, kind, shape in (
                ("functionCall", "call", "gemini"),
                ("functionResponse", "result", "gemini"),
                ("toolUse", "call", "converse"),
                ("toolResult", "result", "converse"),
            ):
                if isinstance(part, dict) and field in part:
                    holder = part[field]
                    found.append(
                        ((index, block), kind, shape, holder.get("id", holder.get("toolUseId")), holder.get("name"))
                    )
    return [(*one[:3], one[3] if isinstance(one[3], str) and one[3].strip() else None, one[4]) for one in found]


def paired(messages: Messages) -> dict[Place, Place]:
    """The call of each result, by the page."""
    all_exchanges = exchanges(messages)
    calls = [one for one in all_exchanges if one[1] == "call"]
    results = [one for one in all_exchanges if one[1] == "result"]
    pairs: dict[Place, Place] = {}
    for index in range(len(messages)):
        here = [one for one in results if one[0][0] == index]
        again: dict[Place, Place] = {}
        for place, _, _, result_id, name in here:
            of_id = [call for call in calls if call[3] == result_id is not None and call[0] < place]
            sharing = [call for call in of_id if are_of_turn(messages, call[0][0], of_id[-1][0][0])]
            unanswered = [call for call in sharing if call[0] not in pairs.values()] if len(sharing) > 1 else sharing
            unanswered.sort(key=lambda call: (name is None or call[4] != name, -call[0][0], call[0][1]))
            if unanswered:
                pairs[place] = unanswered[0][0]
            elif of_id:
                again[place] = of_id[-1][0]
        for place, _, shape, result_id, name in sorted(here, key=lambda one: one[3] is None):
            if place in pairs:
                continue
            if shape == "gemini" and name is None:
                pairs |= {place: again[place]} if place in again else {}
                continue
            fitting = [
                (call[3] is not None, -call[0][0], call[0][1])
                for call in calls
                if call[2] == shape
                and (name is None or call[4] == name)
                and (call[3] is None or result_id is None)
                and call[0] not in pairs.values()
                and is_open(messages, results, call[0][0], index)
            ]
            if fitting:
                _, message, block = min(fitting)
                pairs[place] = (-message, block)
            elif place in again:
                pairs[place] = again[place]
    return pairs


def are_of_turn(messages: Messages, one: int, other: int) -> bool:
    made = [message["role"] in ("assistant", "model") for message in messages[one : other + 1]]
    return one == other or all(made)


def is_open(messages: Messages, results: list[Any], asked: int, at: int) -> bool:
    """Whether from the message that asks to this one there are only messages of its run, and then some with results."""
    if asked >= at:
        return False
    between = list(range(asked + 1, at))
    made = [message["role"] in ("assistant", "model") for message in messages]
    while between and made[asked] and made[between[0]]:
        between.pop(0)
    return all(any(one[0][0] == index for one in results) for index in between)


def orphans(messages: Messages) -> list[tuple[str, int, str | None]]:
    """What `check_pairs` reports of pairs: calls and results without the other half, and further results."""
    pairs, found = paired(messages), []
    answered: set[Place] = set()
    all_exchanges = exchanges(messages)
    results = [one for one in all_exchanges if one[1] == "result"]
    for place, kind, _, given_id, _ in all_exchanges:
        if kind == "call":
            if place not in pairs.values():
                may_come = is_open(messages, results, place[0], len(messages))
                found.append(("open_call" if may_come else "call_without_result", place[0], given_id))
        elif place not in pairs:
            found.append(("result_without_call", place[0], given_id))
        elif pairs[place] in answered:
            found.append(("second_result", place[0], given_id))
        if place in pairs and kind == "result":
            answered.add(pairs[place])
    return found


KINDS = ("open_call", "call_without_result", "result_without_call", "second_result")


@ENGINES
@given(history=HISTORIES)
def test_pairs_are_those_of_the_page(engine_name: str, history: Messages) -> None:
    with using(engine_name):
        found = [(one.kind, one.message_index, one.id) for one in recede.check_pairs(history).findings]
        in_bytes = published.reduce_json(json.dumps(history), max_input_chars=10**6).orphans
    assert [one for one in found if one[0] in KINDS] == orphans(history)
    assert in_bytes == published.reduce(history, max_input_chars=10**6).orphans


@ENGINES
@given(history=HISTORIES, reducing=reduce_options(), stage=stage_options(), keep=st.integers(0, 3))
def test_views_pair_as_the_history_does(
    engine_name: str, history: Messages, reducing: Any, stage: Any, keep: int
) -> None:
    history = [{**message, "number": number} for number, message in enumerate(history)]
    pairs = paired(history)
    with using(engine_name):
        views = [
            published.reduce(history, **reducing).messages,
            published.mask_observations(history, keep_results=keep, boundary="sliding").messages,
            recede.designs.summarize_history(history, **stage).messages,
            recede.designs.truncate_history(history, **stage).messages,
        ]
    for view in views:
        numbers = [message.get("number", -1) for message in view]
        kept = {place: call for place, call in pairs.items() if place[0] in numbers or call[0] in numbers}
        # Pairs may be added, where what separated a result from a call is gone, and none is lost.
        of_view = {(numbers[place[0]], place[1]): (numbers[call[0]], call[1]) for place, call in paired(view).items()}
        assert {place: of_view.get(place) for place in kept} == kept


@ENGINES
@given(history=HISTORIES)
def test_repaired_histories_are_whole(engine_name: str, history: Messages) -> None:
    history = [{**message, "number": number} for number, message in enumerate(history)]
    with using(engine_name):
        mended = recede.repair_pairs(history)
        again = recede.check_pairs(mended).findings
        twice = {one.id for one in recede.check_pairs(history).findings if one.kind == "id_open_twice"}
    # Calls of Converse without an id, of others without a name either, and those called again cannot be answered.
    left = [one for one in again if one.kind in KINDS[1:3] and one.id is not None and one.id not in twice]
    assert left == []
    # Results without an id stay, unless their name says that no call has them; they get that of their call.
    kept = {one.get("number") for one in mended}
    gone = [one for one in history if one["role"] == "tool" and one["number"] not in kept]
    assert [one for one in gone if not isinstance(one["tool_call_id"], str) or not one["tool_call_id"].strip()] == []


@pytest.mark.parametrize("has_store", [False, True])
@given(data=st.data(), history=HISTORIES.flatmap(lambda first: HISTORIES.map(lambda second: first + second)))
def test_sessions_pair_as_the_history_does(has_store: bool, data: Any, history: Messages) -> None:
    options: Any = {"keep": 3, "boundary": "sliding", "exclude_tools": ["f"]}
    with tempfile.TemporaryDirectory() as folder:
        store = recede.store.TurnStore(Path(folder, "session.store")) if has_store else None
        session = published.History(store=store, **options, masks_unseen=True)  # the published rule, as of a Budget
        for _ in range(2 * len(history)):
            if len(session) == len(history):
                break
            session.append(history[len(session)])
            if data.draw(st.integers(0, 5), label="rewind") == 0:
                session.rewind(data.draw(st.integers(0, len(session)), label="to"))
            appended = history[: len(session)]
            assert session.view() == recede.designs.mask_old_observations(appended, **options)
            found = [one for one in orphans(appended) if one[0] in KINDS[1:3]]
            assert session.stats().orphans == len(found)
        if store is not None:
            store.close()
