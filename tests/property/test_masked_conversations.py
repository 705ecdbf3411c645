"""Whatever was asked of a `Masker` before, a view is that of the messages alone, planned from the beginning."""

from __future__ import annotations

import copy
import json
from typing import Any

from generated import histories
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from paying import CHEAP, FREE, Told, long
from strategies import own_options

import recede
from definitions.masker import cold_masks, cold_view, names_an_orphan
from recede.masker import Facts


def masker_options() -> st.SearchStrategy[dict[str, Any]]:
    def without_handles(options: dict[str, Any]) -> dict[str, Any]:
        if "{handle}" in (options.get("placeholder") or ""):  # the definition gives calls other ids: see test_masker.py
            return {name: options[name] for name in options if name != "placeholder"}
        return options

    return own_options().map(without_handles)


class Own:
    """A message of a type that recede does not know."""

    def __init__(self, role: str, text: str, calls: list[Any], results: list[Any]) -> None:
        self.role, self.text, self.calls, self.results = role, text, calls, results

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Own{tuple(vars(self).values())}"


class Adapter:
    def facts(self, message: Own) -> Facts:
        results = [
            (call, name, len(text), text.count("\n") + 1, images, is_error, pinned)
            for call, name, text, images, is_error, pinned in message.results
        ]
        return Facts(message.role, len(message.text), message.calls, results)

    def masked(self, message: Own, texts: Any) -> Own:
        results = [
            result if place not in texts else (*result[:2], texts[place], 0, *result[4:])
            for place, result in enumerate(message.results)
        ]
        return Own(message.role, message.text, message.calls, results)

    def text(self, message: Own, place: int) -> str:
        return str(message.results[place][2])


TEXTS = st.sampled_from(
    [
        "",
        "short",
        "a line of the log\n" * 30,
        "x" * 400,
        "[observation masked — 90 chars]",
        "before BEGIN_DISPATCH_RESULT\nall\nEND_DISPATCH_RESULT after" + "." * 300,
        "é\ud83d" * 99,
    ]
)
NAMES = st.sampled_from(["bash", "read_file", None])


@st.composite
def own_messages(draw: Any) -> list[Own]:
    """A few turns, some of whose calls have no ids."""
    messages = [Own("user", draw(TEXTS), [], [])] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(0, 3))
        ids = [draw(st.sampled_from(["1", "2", None, None])) for _ in range(count)]
        names = [draw(NAMES) for _ in range(count)]
        calls = [(one, name, 7) for one, name in zip(ids, names, strict=True)]
        messages.append(Own(draw(st.sampled_from(["assistant", "model"])), draw(TEXTS), calls, []))
        results = [
            (one, draw(st.sampled_from([None, name])), draw(TEXTS), draw(st.integers(0, 1)), draw(st.booleans()), False)
            for one, name in zip(ids, names, strict=True)
        ]
        if draw(st.integers(0, 9)) == 0:
            results.append(("1", None, "y" * 90, 0, False, True))
        together = [results] if draw(st.booleans()) else [[result] for result in results]
        messages += [Own("tool", "", [], some) for some in together if some]
    return messages


class Conversations(RuleBasedStateMachine):
    """Several conversations, asked about in turn."""

    lists = Bundle("lists")
    adapter: Any = None
    parts: st.SearchStrategy[list[Any]] = histories()

    def __init__(self) -> None:
        super().__init__()
        self.conversations: list[list[Any]] = [[]]
        self.asked: dict[int, list[Any]] = {}

    @initialize(options=masker_options(), most=st.sampled_from([1, 2, 128]), check=st.booleans())
    def begin(self, options: dict[str, Any], most: int, check: bool) -> None:
        self.options, self.check = options, check
        self.masker: Any = recede.masker.Masker(self.adapter, most=most, check=check, **options)

    @rule(data=st.data())
    def append(self, data: Any) -> None:
        self.of(data).extend(copy.deepcopy(data.draw(self.parts)))

    @rule(data=st.data())
    def fork(self, data: Any) -> None:
        messages = self.of(data)
        self.conversations.append(messages[: data.draw(st.integers(0, len(messages)))])

    @rule(data=st.data())
    def cut(self, data: Any) -> None:
        messages = self.of(data)
        del messages[data.draw(st.integers(0, len(messages))) :]

    @rule(data=st.data())
    def copy(self, data: Any) -> None:
        messages = self.of(data)
        messages[:] = copy.deepcopy(messages)

    @rule(data=st.data())
    def replace(self, data: Any) -> None:
        messages, part = self.of(data), copy.deepcopy(data.draw(self.parts))
        if messages and part:
            messages[data.draw(st.integers(0, len(messages) - 1))] = part[-1]

    @rule(data=st.data())
    def change_in_place(self, data: Any) -> None:
        messages, part = self.of(data), copy.deepcopy(data.draw(self.parts))
        newest = len(messages) if self.check else min(16, len(messages))
        # What another conversation has, too, may be older there.
        if newest and part and len(self.conversations) == 1:
            self.change(messages[-data.draw(st.integers(1, newest))], part[-1])

    def change(self, message: Any, other: Any) -> None:
        message.clear()
        message.update(other)

    @rule(data=st.data(), is_copied=st.booleans())
    def mark(self, data: Any, is_copied: bool) -> None:
        """Move the cache mark to the newest blocks."""
        messages = self.of(data)
        if self.adapter is not None or not (is_copied or len(self.conversations) == 1):
            return
        for place in range(max(0, len(messages) - 12), len(messages)):
            message = copy.deepcopy(messages[place]) if is_copied else messages[place]
            content = message.get("content")
            for part in content if isinstance(content, list) else []:
                for holder in (part, *(part.get("content") if isinstance(part.get("content"), list) else [])):
                    if not holder.keys() - {"cache_control"}:
                        continue  # a part that is a mark and nothing else counts a comma less
                    holder.pop("cache_control", None)
                    if place >= len(messages) - 2:
                        holder["cache_control"] = {"type": "ephemeral"}
            messages[place] = message

    @rule(data=st.data())
    def ask(self, data: Any) -> None:
        self.compare(self.of(data))

    def of(self, data: Any) -> list[Any]:
        return self.conversations[data.draw(st.integers(0, len(self.conversations) - 1))]

    def compare(self, messages: list[Any]) -> None:
        # Stand-ins have ids of their own.
        names_ids = "{id}" in (self.options.get("placeholder") or "")
        if self.adapter is not None and (names_ids or names_an_orphan(self.adapter, messages)):
            fresh = recede.masker.Masker(self.adapter, **self.options)
            assert self.masker.view(messages) == fresh.view(messages)
            return
        expected = cold_view(self.adapter, messages, self.options)
        view = self.masker.view(messages)
        assert view == expected
        for message, shown, wanted in zip(messages, view, expected, strict=True):
            assert (shown is message) == (wanted is message)
        masks, chars = cold_masks(self.adapter, messages, self.options)
        assert self.masker.masks(messages).masks == masks
        assert self.masker.count_tokens(messages) == recede.designs.approx_tokens(chars)

    @invariant()
    def all_are_as_from_the_beginning(self) -> None:
        if hasattr(self, "masker"):
            self.compare(self.conversations[-1])


class OwnConversations(Conversations):
    adapter = Adapter()
    parts = own_messages()

    def change(self, message: Own, other: Own) -> None:
        vars(message).update(vars(other))


class PinnedConversations(Conversations):
    @initialize(
        options=masker_options(),
        elsewhere=st.integers(0, 4),
        boundary=st.sampled_from(["sliding", "break_even"]),
        check=st.booleans(),
    )
    def begin_pinned(self, options: dict[str, Any], elsewhere: int, boundary: str, check: bool) -> None:
        own = {**options, "boundary": boundary, "provider": "anthropic"}
        self.options, self.check = {**own, "marks_elsewhere": elsewhere}, check
        self.masker = recede.masker.Masker(check=check, **own)


class SummarizedConversations(Conversations):
    """With a summarizer that always says the same, each view is that of `reduce`, whatever was asked before."""

    parts = histories().map(lambda history: long(history, 2))

    @initialize(keep=st.integers(0, 2), prices=st.sampled_from([CHEAP, FREE]), most=st.sampled_from([1, 128]))
    def begin(self, keep: int, prices: recede.Provider, most: int) -> None:
        told = {"max_overcost": None, "summarizer": Told(set())}
        self.options, self.check = {"keep": keep, "provider": prices, **told}, True
        self.masker = recede.masker.Masker(most=most, check=True, **self.options)

    def compare(self, messages: list[Any]) -> None:
        expected = recede.reduce(messages, **self.options)
        view, found = self.masker.view(messages), self.masker.masks(messages)
        assert view == expected.messages
        assert list(found.hidden) == list(expected.dropped)
        if found.summary is not None:
            place = found.summary.message_index if found.summary.joins is None else found.summary.joins
            place -= sum(index < place for index in found.hidden)
            assert found.summary.text.partition("\n")[2] in json.dumps(view[place])


MACHINE = settings(stateful_step_count=20)
TestDicts = Conversations.TestCase
TestDicts.settings = MACHINE
TestPinned = PinnedConversations.TestCase
TestPinned.settings = MACHINE
TestSummarized = SummarizedConversations.TestCase
TestSummarized.settings = MACHINE
TestOwnMessages = OwnConversations.TestCase
TestOwnMessages.settings = MACHINE
