"""A session that grows against reducing everything again."""

from __future__ import annotations

import json
import tempfile
from collections import deque
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import published
import pytest
from generated import histories
from hypothesis import given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from marks import client_histories, marked_histories
from published import History
from strategies import block_options, history_options, words

import recede
from recede.agent._given import newest_mark_only
from recede.session import HistoryStats
from support import ENGINES, assert_canonical, using

Messages = list[dict[str, Any]]
FUNCTIONS = ("summarizer", "token_counter")
HISTORIES = histories() | client_histories() | marked_histories("anthropic")
GARBAGE = [b"", b"{", b"[]", b'{"role": 5} x', b"5", b'{"content": 5}']


def dumps(message: Any) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def unmarked(value: Any) -> Any:
    """A view without marks. A text that only a mark keeps from being one is one."""
    if isinstance(value, dict):
        return {name: unmarked(field) for name, field in value.items() if name != "cache_control"}
    if isinstance(value, list):
        (only,) = value if len(value) == 1 else (None,)
        is_part = isinstance(only, dict) and only.keys() - {"cache_control"} == {"type", "text"}
        return only["text"] if is_part else [unmarked(element) for element in value]
    return value


def loads(view: bytes) -> Any:
    return json.loads(view.decode("utf-8", "surrogatepass"))


def session_options() -> st.SearchStrategy[dict[str, Any]]:
    """Options of a `History`: those of `reduce`, or those of the block masker and a threshold."""
    optional = {
        "recall": st.booleans(),
        "calibrate": st.booleans(),
        "cache_breakpoint": st.sampled_from(["keep", "boundary"]),
        "marks_elsewhere": st.integers(0, 4),
    }
    handles = st.fixed_dictionaries({}, optional=optional)
    return st.builds(_without_clash, history_options() | masked_options(), handles)


def masked_options() -> st.SearchStrategy[dict[str, Any]]:
    """Those without a budget."""
    optional = {
        "threshold_tokens": st.integers(0, 900),
        "max_view_tokens": st.none() | st.integers(50, 900),
        "token_counter": st.sampled_from([None, len, words]),
    }
    return st.builds(dict.__or__, block_options(), st.fixed_dictionaries({}, optional=optional))


def _without_clash(options: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    clashes: set[str] = set()
    limit = options.get("max_input_tokens") or options.get("max_view_tokens")
    if limit is None or options.get("token_counter") is not None:
        clashes.add("calibrate")
    return options | {name: value for name, value in others.items() if name not in clashes}


def named(placeholder: str | None) -> str:
    """The placeholder of a history with handles."""
    if placeholder is None:
        return "[old tool output cleared to save context, recall {handle}]"
    if "{handle}" in placeholder:
        return placeholder
    last = 2 if placeholder.endswith(("}}", "{{")) else 0 if placeholder.endswith("}") else 1
    beginning, end = placeholder[: len(placeholder) - last], placeholder[len(placeholder) - last :]
    return f"{beginning} recall {{handle}}{end}"


def differing(one: HistoryStats, other: HistoryStats) -> dict[str, tuple[Any, Any]]:
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in HistoryStats.__match_args__}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


class Reduced:
    """What the views of a history without a limit must be: everything masked again, once for each length."""

    def __init__(self, options: dict[str, Any]) -> None:
        options = dict(options)
        self.has_limit = "max_input_chars" in options or "max_input_tokens" in options
        if options.get("mask_chunk") is None:
            options.setdefault("boundary", "break_even")
        self.threshold = options.pop("threshold_tokens", 0)
        self.has_limit |= options.pop("calibrate", False) or options.pop("max_view_tokens", None) is not None
        self.has_handles = options.pop("recall", False)
        self.counter = None if self.has_limit else options.pop("token_counter", None)
        self.options = options

    def view(self, messages: Messages, cold: tuple[int, ...] = ()) -> Messages | None:
        """The view; None where this oracle does not know."""
        options = self.options if self.options.get("cold") is True else {**self.options, "cold": cold}
        if options.get("cache_breakpoint") == "boundary":
            messages = newest_mark_only(messages)
        limit = {"max_input_tokens": self.threshold, "token_counter": self.counter, "enabled": False}
        if published.reduce(messages, **limit).within_limit:
            return messages
        elsewhere, pin = options.pop("marks_elsewhere", None), options.pop("cache_breakpoint", None)
        # No function takes a template with the `lines` form, or pins blocks beside marks elsewhere: the oracle does.
        if self.has_handles or (elsewhere is not None and pin == "boundary"):
            return None
        return recede.designs.mask_old_observations(messages, **options)


class Sessions(RuleBasedStateMachine):
    """The same session in both engines: each message goes to both, and so does each look."""

    @initialize(options=session_options())
    def begin(self, options: dict[str, Any]) -> None:
        note(f"{options=}")
        self.options = options
        self.sessions: dict[str, History] = {}
        for name in ENGINES:
            with using(name):
                self.sessions[name] = History(**options)
        self.reduced = Reduced(options)
        self.messages: Messages = []
        self.to_come: deque[dict[str, Any]] = deque()
        self.before: dict[str, tuple[bytes, HistoryStats]] = {
            name: (b"[]", session.stats()) for name, session in self.sessions.items()
        }

    @rule(messages=HISTORIES)
    def more_comes(self, messages: Messages) -> None:
        self.to_come += messages

    @precondition(lambda self: self.to_come)
    @rule(as_bytes=st.booleans(), number=st.integers(1, 6))
    def append(self, as_bytes: bool, number: int) -> None:
        for _ in range(min(number, len(self.to_come))):
            message = self.to_come.popleft()
            for name, session in self.sessions.items():
                with using(name):  # it counts by its own texts
                    if as_bytes:
                        session.append_json(" " + dumps(message) + "\n")
                    else:
                        session.append(message)
            self.messages.append(message)

    @rule()
    def the_cache_is_cold(self) -> None:
        for session in self.sessions.values():
            session.cache_is_cold()

    @rule(tokens=st.integers(1, 9_000), cached=st.integers(0, 9_000))
    def the_provider_reports(self, tokens: int, cached: int) -> None:
        usage = {"input_tokens": tokens, "output_tokens": 5, "cache_read_input_tokens": cached}
        self.look()  # at the view of the request that is reported
        for session in self.sessions.values():
            session.reported(usage)

    @rule(garbage=st.sampled_from(GARBAGE), as_content=st.booleans())
    def a_failed_append_changes_nothing(self, garbage: bytes, as_content: bool) -> None:
        bad = dumps({"role": "tool", "tool_call_id": "1", "content": 5}).encode() if as_content else garbage
        errors = []
        for session in self.sessions.values():
            with pytest.raises(recede.TranscriptError) as caught:
                session.append_json(bad)
            assert caught.value.message_index == len(self.messages)
            errors.append(str(caught.value))
        assert len(set(errors)) == 1

    @rule()
    def look(self) -> None:
        expected = self._expected()
        views = {name: session.view_json() for name, session in self.sessions.items()}
        assert len(set(views.values())) == 1
        for name, session in self.sessions.items():
            assert session.view() == loads(views[name])
            assert_canonical(session.view())
            again = session.view_chunks()
            assert b"".join(again) == views[name]
            assert all(one is other for one, other in zip(session.view_chunks(), again, strict=True))
        if expected is not None:
            assert loads(views["oracle"]) == expected
        self._look_at_stats(views)

    def _expected(self) -> Messages | None:
        """What masking everything again gives."""
        cold = {session.cold_requests for session in self.sessions.values()}
        assert len(cold) == 1
        return None if self.reduced.has_limit else self.reduced.view(self.messages, cold.pop())

    @rule()
    def look_at_the_list_alone(self) -> None:
        core, *others = (session.view() for session in self.sessions.values())
        assert all(core == other for other in others)
        self._look_at_stats({name: session.view_json() for name, session in self.sessions.items()})

    def _look_at_stats(self, views: dict[str, bytes]) -> None:
        found = {name: session.stats() for name, session in self.sessions.items()}
        for stats in found.values():
            assert differing(stats, found["oracle"]) == {}
        for name, stats in found.items():
            view, (before, stats_before) = views[name], self.before[name]
            place = stats.changed_message, stats.changed_byte
            if place != (stats_before.changed_message, stats_before.changed_byte):
                # What stands before is the same, and what follows is not.
                assert place[0] is not None and place[1] is not None
                before_comma = place[1] - 1  # a view that ends here has its bracket there
                shown, shown_before = unmarked(loads(view)), unmarked(loads(before))
                if self.options.get("cache_breakpoint") != "boundary":  # which changes marks, and they do not count
                    assert view[:before_comma] == before[:before_comma]
                assert shown[: place[0]] == shown_before[: place[0]]
                assert shown[place[0] : place[0] + 1] != shown_before[place[0] : place[0] + 1]
            self.before[name] = view, stats
            assert stats.view_messages == len(loads(view))

    @rule()
    def close_and_go_on(self) -> None:
        functions = {name: self.options[name] for name in FUNCTIONS if name in self.options}
        self.look()
        if "core" in self.sessions:  # a definition has no file
            with using("core"), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "session.store"
                self.sessions["core"].save(path)
                self.sessions["core"] = History.load(path, **functions)
            for name, session in self.sessions.items():  # which view was shown is not kept, so nothing has changed yet
                if name == "oracle":
                    session._live.core.changed_at = None
                    session._live.core.needed, session._live.core.asked_at = [], -1
                    session._live.reports.forget()
                    if session._live.callbacks.asking is not None:
                        session._live.callbacks.asking.failures = 0
                self.before[name] = session.view_json(), session.stats()

    @invariant()
    def nothing_is_lost(self) -> None:
        for session in getattr(self, "sessions", {}).values():
            assert len(session) == len(self.messages)

    def teardown(self) -> None:
        if not hasattr(self, "sessions"):
            return
        self.look()
        assert len({tuple(_observations(session)) for session in self.sessions.values()}) == 1
        for session in self.sessions.values():
            assert session.messages == self.messages
            assert loads(session.to_json()) == self.messages


def _observations(session: History) -> Iterator[str]:
    """All of them, by their numbers."""
    for number in count(1):
        try:
            yield session.recall(number)
        except LookupError as error:
            if "there is no" in str(error):
                return
            yield str(error)


TestSessions = Sessions.TestCase
TestSessions.settings = settings(stateful_step_count=25)


@given(messages=histories(), cut=st.integers(0, 40), garbage=st.sampled_from(GARBAGE))
def test_a_failed_append_leaves_the_views_alone(messages: Messages, cut: int, garbage: bytes) -> None:
    history, other = History(keep=3), History(keep=3)
    for place, message in enumerate(messages):
        history.append(message)
        other.append(message)
        if place == cut:
            for bad in (garbage, dumps(message)[:-1], dumps({"role": "user", "content": 5})):
                with pytest.raises(recede.TranscriptError) as caught:
                    history.append_json(bad)
                assert caught.value.message_index == place + 1
    assert history.view() == other.view()
    assert history.stats() == other.stats()
    assert history.to_json() == other.to_json()
