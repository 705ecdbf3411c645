"""A mark at the boundary: the view is that without pins but for marks, and no request has more than four."""

from __future__ import annotations

from typing import Any

import published
from hypothesis import given
from hypothesis import strategies as st
from marks import blocks_of, client_histories, histories_of_clients, marked_histories, marks_of
from strategies import mask_options, reduce_options, spelled, words

import recede
from support import ENGINES, dumps, facts, loads, priced, unmarked, using

_RULES = st.sampled_from(
    [{}, {"mask_chunk": 2}, {"boundary": "break_even"}, {"boundary": "break_even", "provider": priced(write=0.2)}]
)
OPTIONS = st.one_of(
    st.tuples(
        st.just("mask_observations"),
        st.builds(lambda rule, keep: {"keep_results": keep, **rule}, _RULES, st.integers(0, 4)),
    ),
    st.tuples(
        st.just("mask_observations"),
        st.builds(lambda rule, keep: {"keep_results": keep, **rule}, _RULES, st.integers(0, 4)),
    ),
    st.tuples(
        st.just("mask_observations"),
        st.builds(lambda rule, keep: {"keep_results": keep, **rule}, _RULES, st.integers(0, 4)),
    ),
    st.tuples(st.just("mask_observations"), mask_options()),
    st.tuples(st.just("reduce"), reduce_options()),
)
HISTORIES = (
    client_histories()
    | client_histories()
    | histories_of_clients()
    | st.sampled_from([3, 12, 30]).flatmap(lambda one_in: marked_histories("anthropic", one_in))
)


def count(messages: list[dict[str, Any]]) -> int:
    return sum(map(len, marks_of(messages).values()))


def in_engines(call: Any) -> Any:
    """The answer of both engines."""
    answers = []
    for engine in ENGINES:
        with using(engine):
            answers.append(call())
    assert all(answer[0] == answers[0][0] and facts(answer) == facts(answers[0]) for answer in answers)
    return answers[0]


def both(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options without and with pins; a cache of breakpoints would move the boundary as well."""
    provider = options.get("provider")
    if isinstance(provider, recede.Provider) and provider.cache == "marks":
        options = {**options, "provider": priced("ideal", provider.read, provider.write)}
    return {**options, "cache_breakpoint": "keep"}, {**options, "cache_breakpoint": "boundary"}


@given(history=HISTORIES, call=OPTIONS, data=st.data())
def test_a_pinned_view_is_the_other_but_for_marks(
    history: list[dict[str, Any]], call: tuple[str, dict[str, Any]], data: Any
) -> None:
    name, options = call
    plain_options, pinned_options = both(options)
    before = marks_of(history)
    of_dicts, of_json = getattr(published, name), getattr(published, name + "_json")
    plain = of_dicts(history, **plain_options)
    pinned = in_engines(lambda: of_dicts(history, **pinned_options))
    assert marks_of(history) == before, "the input was changed"
    assert unmarked(pinned.messages) == unmarked(plain.messages)
    assert facts(pinned) == facts(plain)
    text = data.draw(spelled(history))
    assert loads(in_engines(lambda: of_json(text, **pinned_options)).json) == pinned.messages
    if pinned.messages == plain.messages:
        return
    assert count(pinned.messages) + 2 <= 4
    old, new = marks_of(plain.messages), marks_of(pinned.messages)
    assert max(new) == max(old) and new[max(new)] == old[max(old)], "the newest mark of the client stays"
    assert len(new.keys() - old.keys()) <= 2
    if pinned.boundary_message is not None and not options.get("max_input_chars"):
        assert all(place <= max(old) for place in new)


@given(client_histories(), _RULES, st.integers(0, 2), st.sampled_from([0, 1, 1, 1, 2, 3]), st.integers(0, 2))
def test_entries_that_live_longer_come_first_where_they_did(
    history: list[dict[str, Any]], rule: dict[str, Any], keep: int, hours: int, doubled: int
) -> None:
    """Anthropic refuses a mark of an hour behind one of five minutes."""
    for message in history:
        for _, block, parts in blocks_of(message):
            if doubled and "cache_control" in block and block.get("type") == "tool_result":
                parts = [{"type": "text", "text": "x" * 300, "cache_control": {}}]
                block["content"] = parts
            for one in [*parts, block]:
                if one.get("cache_control") is not None:
                    one["cache_control"] = {"type": "ephemeral", "ttl": "1h" if hours > 0 else "5m"}
                    hours -= 1
    options = {"keep_results": keep, **rule, "cache_breakpoint": "boundary", "marks_elsewhere": 0}
    view = in_engines(lambda: published.mask_observations(history, **options)).messages
    of_json = in_engines(lambda: published.mask_observations_json(dumps(history), **options)).json
    assert loads(of_json) == view
    lives = [mark["ttl"] for marks in marks_of(view).values() for mark in marks]
    assert lives == sorted(lives)


@given(history=HISTORIES, call=OPTIONS, system=st.integers(0, 2), tools=st.integers(0, 2), data=st.data())
def test_a_request_body_counts_its_own_marks(
    history: list[dict[str, Any]], call: tuple[str, dict[str, Any]], system: int, tools: int, data: Any
) -> None:
    name, options = call
    plain_options, pinned_options = both(options)
    mark = {"cache_control": {"type": "ephemeral"}}
    body = {
        "tools": [{"name": "a", **mark}, {"name": "b"}, {**mark, "name": "c"}][3 - tools - (tools == 1) :]
        if tools
        else [],
        "messages": history,
        "system": [{"type": "text", "text": "s", **mark}] * system,
    }
    on_tools = sum("cache_control" in tool for tool in body["tools"])
    if data.draw(st.booleans()):
        body = dict(reversed(body.items()))
    text, of_json = data.draw(spelled(body)), getattr(published, name + "_json")
    plain = loads(of_json(text, **plain_options).json)
    pinned = loads(in_engines(lambda: of_json(text, **pinned_options)).json)
    assert unmarked(pinned) == unmarked(plain)
    if pinned == plain:
        return
    left = sum("cache_control" in tool for tool in pinned["tools"])
    assert count(pinned["messages"]) + left + system <= 4
    assert left == on_tools or (left == 0 and system), "the system prompt covers tools"
    assert pinned["system"] == plain["system"]


@given(
    messages=marked_histories("anthropic"),
    counter=st.sampled_from([words, len, None]),
    limit=st.integers(10, 200),
    step=st.integers(1, 6),
)
def test_a_session_has_its_newest_mark_after_a_compaction(messages: Any, counter: Any, limit: int, step: int) -> None:
    options = {"max_input_tokens": limit, "token_counter": counter, "cache_breakpoint": "boundary"}
    sessions = []
    for engine in ENGINES:
        with using(engine):
            sessions.append(published.History(**options))
    for end, message in enumerate(messages, 1):
        for engine, session in zip(ENGINES, sessions, strict=True):
            with using(engine):  # texts are counted by the engine of the session
                session.append(message)
        if end % step == 0:
            data, other = (session.view_json() for session in sessions)
            assert data == other
            assert [session.view() for session in sessions] == [loads(data)] * 2
