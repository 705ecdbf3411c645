"""`Masker`: what is compared, what is asked of an adapter, and what becomes of conversations."""

from __future__ import annotations

import copy
import gc
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import recede
from definitions.masker import cold_masks, cold_view
from recede import TranscriptError
from recede.masker import CallFacts, Facts, Mask, Masker, MaskerStats, Masks, ResultFacts
from support import handle_of, priced

SLIDING: dict[str, Any] = {"boundary": "sliding"}
ANSWER = {"role": "assistant", "content": "Done."}


def turn(number: int, text: str = "a line of the log\n" * 40) -> list[dict[str, Any]]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": "Next.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": text},
    ]


def conversation(turns: int, task: str = "Find the bug.") -> list[dict[str, Any]]:
    return [{"role": "user", "content": task}, *(message for number in range(turns) for message in turn(number))]


class Line:
    """A message of a type that recede does not know: a result, if its role is that of a tool."""

    def __init__(self, role: str, text: str, *, name: str | None = None, call: str | None = None) -> None:
        self.role, self.text, self.name, self.call = role, text, name, call


class Lines:
    """Reads lines, and notes the texts that it is asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def facts(self, line: Line) -> Facts:
        if line.role == "tool":
            return Facts("tool", results=[ResultFacts(line.call, line.name, len(line.text), line.text.count("\n") + 1)])
        return Facts(line.role, len(line.text), calls=[CallFacts(line.call, line.name, 2)] if line.name else ())

    def masked(self, line: Line, texts: Mapping[int, str]) -> Line:
        return Line("tool", texts[0], name=line.name, call=line.call)

    def text(self, line: Line, place: int) -> str:
        self.texts.append(line.text)
        return line.text


def lines(*texts: str) -> list[Line]:
    turns = ([Line("assistant", "", name="run"), Line("tool", text)] for text in texts)
    return [Line("user", "Go."), *(line for turn in turns for line in turn), Line("assistant", "Done.")]


def test_unmasked_messages_are_the_objects_of_this_call() -> None:
    masker, messages = Masker(keep=2, **SLIDING), conversation(8)
    masker.view(messages)
    again = copy.deepcopy(messages)
    view = masker.view(again)
    assert [shown is message for shown, message in zip(view, again, strict=True)].count(False) == 6
    assert masker.stats() == MaskerStats(conversations=1, continued=1, begun=1)


def test_a_message_that_has_one_field_more_is_another() -> None:
    call = {"type": "tool_use", "id": "1", "name": "run", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "x" * 190}
    masker = Masker(keep=0, keep_errors=True, **SLIDING)
    for fields, count in (({}, 1), ({"is_error": True}, 0)):
        blocks: list[dict[str, Any]] = [{**result, **fields}]
        messages = [{"role": "assistant", "content": [call]}, {"role": "user", "content": blocks}, ANSWER]
        assert len(masker.masks(messages).masks) == count


def test_the_given_list_and_its_messages_are_unchanged() -> None:
    masker, messages = Masker(keep=0, **SLIDING), conversation(8)
    before, objects = copy.deepcopy(messages), list(messages)
    masker.view(messages)
    assert messages == before
    assert all(one is other for one, other in zip(messages, objects, strict=True))


def test_masked_copies_are_made_once() -> None:
    masker, messages = Masker(keep=0, **SLIDING), conversation(8)
    first, second = masker.view([*messages, ANSWER]), masker.view([*messages, ANSWER, *turn(9)])
    assert all(one is other for one, other in zip(first, second, strict=False))


def test_equal_placeholders_are_one_object() -> None:
    masks = Masker(keep=0, **SLIDING).masks([*conversation(8), ANSWER]).masks
    assert len(masks) == 8 and len({id(mask.text) for mask in masks}) == 1


def test_a_conversation_is_continued_rewound_or_forked() -> None:
    masker, messages = Masker(keep=2, **SLIDING), conversation(30)
    for given, figure in (
        (messages, "begun"),
        ([*messages, *turn(31)], "continued"),
        ([*messages[:-2], *turn(32)], "rewound"),
        ([*messages[:9], {"role": "user", "content": "No."}], "forked"),
        (conversation(3, task="Another task."), "begun"),
    ):
        before = masker.stats()
        assert masker.view(given) == cold_view(None, given, {"keep": 2, **SLIDING})
        changed = {name for name in before._fields if getattr(masker.stats(), name) > getattr(before, name)}
        assert changed - {"conversations"} == {figure}
    assert masker.stats().conversations == 3


def test_the_conversation_used_longest_ago_is_forgotten() -> None:
    masker = Masker(most=2)
    for task in ("a", "b", "a", "c", "a", "b"):
        masker.view(conversation(3, task=task))
    assert masker.stats() == MaskerStats(conversations=2, continued=2, begun=4, evicted=2)


@pytest.mark.parametrize(("age", "check", "is_seen"), [(16, False, True), (18, False, False), (18, True, True)])
def test_a_message_changed_in_place_is_seen_if_it_is_new_or_all_are_checked(
    age: int, check: bool, is_seen: bool
) -> None:
    masker, messages = Masker(keep=0, check=check, **SLIDING), conversation(30)
    masker.view(messages)
    messages[-age + 1]["content"] = messages[-age]["content"] = "changed"
    masker.view(messages)
    assert masker.stats().continued == (0 if is_seen else 1)
    if is_seen:
        assert masker.view(messages) == cold_view(None, messages, {"keep": 0, **SLIDING})


def test_a_change_that_one_conversation_sees_is_seen_by_a_longer_one_with_the_same_object() -> None:
    masker, messages = Masker(keep=0, **SLIDING), conversation(30)
    masker.view(messages)
    masker.view(messages[:5])  # a fork: of the longer one these are no longer the newest
    messages[2]["content"] = "changed"
    assert masker.view(messages[:5]) == cold_view(None, messages[:5], {"keep": 0, **SLIDING})
    assert masker.count_tokens(messages[:5]) == Masker(keep=0, **SLIDING).count_tokens(messages[:5])


def test_cache_marks_are_no_departure() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]
    masker = Masker(keep=0, **SLIDING)
    for number in range(12):
        use = {"type": "tool_use", "id": str(number), "name": "run", "input": {}}
        parts = [{"type": "text", "text": "x" * 190}]
        result = {"type": "tool_result", "tool_use_id": str(number), "content": parts}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        for message in messages:
            for block in message["content"]:
                for one in (block, *block.get("content", ())):
                    one.pop("cache_control", None)
        marked = parts[0] if number % 2 else result
        marked["cache_control"] = {"type": "ephemeral"}  # type: ignore[assignment]
        given = copy.deepcopy(messages) if number % 3 == 0 else messages
        assert masker.view(given) == cold_view(None, given, {"keep": 0, **SLIDING})
        assert masker.masks(given).first_changed == (len(messages) - 3 if number else 0)
    assert masker.stats().rewound == masker.stats().forked == 0


def test_a_fork_has_the_cache_marks_of_its_own_call() -> None:
    masker, messages = Masker(keep=0, **SLIDING), conversation(120)
    marked = {"type": "text", "text": "x" * 190, "cache_control": {"type": "ephemeral"}}
    messages[2]["content"] = [{"type": "text", "text": "x" * 190}]
    for end in range(1, len(messages) + 1, 40):  # so that a fork does not go back to the beginning
        masker.view(messages[:end])
    messages = [*messages[:2], {**messages[2], "content": [marked]}, *messages[3:]]
    masker.masks(messages)  # makes no copies
    fork = messages[:200]
    assert masker.view(fork) == cold_view(None, fork, {"keep": 0, **SLIDING})
    assert masker.stats().forked == 1
    assert "cache_control" in str(masker.view(fork)[2])


def test_a_mark_that_came_is_no_change_of_later_calls() -> None:
    masker, messages = Masker(keep=0, **SLIDING), conversation(3)
    messages[2]["content"] = [{"type": "text", "text": "x" * 190}]
    masker.view(messages)
    messages[2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    view = masker.view(messages)
    assert "cache_control" in str(view[2])
    assert masker.view(messages)[2] is view[2]


def test_masks_after_a_rewind_name_the_places_of_their_results() -> None:
    texts = enumerate(["x" * 190, "x" * 1_000])
    results = [{"type": "tool_result", "tool_use_id": str(number), "content": text} for number, text in texts]
    messages = [{"role": "user", "content": results[:count]} for count in (2, 1, 2, 2)]
    masker = Masker(keep=0, **SLIDING)
    assert [mask[:2] for mask in masker.masks([*messages[:3], ANSWER]).masks] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (2, 0),
        (2, 1),
    ]
    changed = [messages[0], messages[3], messages[1], ANSWER]
    assert [mask[:2] for mask in masker.masks(changed).masks] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert masker.masks(changed).masks == cold_masks(None, changed, {"keep": 0, **SLIDING})[0]
    assert masker.masks(changed).masks[-1] == masker.masks(changed).masks[4]
    assert repr(masker.masks(changed[:1])) == repr(Masks(0, list(masker.masks(changed[:1]).masks)))


def test_a_request_with_automatic_caching_gets_a_pin() -> None:
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    for number in range(13):
        block = {"type": "tool_use", "id": str(number), "name": "run", "input": {}}
        result = {"type": "tool_result", "tool_use_id": str(number), "content": "x" * 300}
        messages += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}]
    body = {"cache_control": {"type": "ephemeral", "ttl": "1h"}, "messages": messages}
    options: dict[str, Any] = {"keep": 2, "boundary": 5}
    view = Masker(**options).view(messages, marks_elsewhere=1, request=body)
    assert view == recede.reduce(body, **options).request["messages"]
    assert [place for place, one in enumerate(view) if "cache_control" in str(one)] == [20]
    assert view[20]["content"][0]["cache_control"] == body["cache_control"]


def test_the_boundary_is_pinned_without_planning_all_messages() -> None:
    options: dict[str, Any] = {"keep": 2, "provider": "anthropic", **SLIDING}
    masker, messages = Masker(**options), []
    for number in range(30):
        block = {"type": "tool_use", "id": str(number), "name": "run", "input": {}}
        result = {"type": "tool_result", "tool_use_id": str(number), "content": "x" * 300}
        for before in messages[-1:]:
            del before["content"][0]["cache_control"]
        messages += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}]
        result["cache_control"] = {"type": "ephemeral"}
        view = masker.view(messages, marks_elsewhere=1)
        assert view == cold_view(None, messages, {**options, "marks_elsewhere": 1})
    assert [index for index, one in enumerate(view) if "cache_control" in str(one)] == [53, 59]
    (known,) = masker._remembered.newest_first()
    assert known._marked == {59}


def test_first_changed_compares_with_the_last_masks() -> None:
    masker, messages = Masker(keep=2, **SLIDING), conversation(5)
    assert masker.masks(messages).first_changed == 0
    assert masker.masks(messages).first_changed == len(messages)
    masker.view([*messages, *turn(6)])
    found = masker.masks([*messages, *turn(6), *turn(7)])
    assert found.first_changed == 8  # that of the fourth result
    assert isinstance(found, Masks)
    assert found.masks[-1] == Mask(10, 0, "[old tool output cleared to save context]")


def test_texts_are_asked_for_once_when_they_leave_the_window() -> None:
    adapter = Lines()
    masker, long = Masker(adapter, keep=2), [str(number) + "x" * 38 for number in range(6)]  # as long as a placeholder
    messages = lines(*long)
    for end in range(1, len(messages) + 1):
        masker.view(messages[:end])
    assert adapter.texts == long[:4]
    adapter.texts.clear()
    assert masker.recall(messages, 6) == long[5]
    assert adapter.texts == long[5:]


def test_texts_are_not_asked_for_where_sizes_decide() -> None:
    adapter = Lines()
    marked = "." * 300 + "BEGIN_DISPATCH_RESULT\nall\nEND_DISPATCH_RESULT"
    texts = lines("x" * 4_000, marked, "short", "x" * 39, "[old tool output cleared to save context]", "x" * 26)
    masked = [line.text for line in Masker(adapter, keep=0, **SLIDING).view(texts)]
    # Those as long as a placeholder.
    assert adapter.texts == ["x" * 39, "[old tool output cleared to save context]"]
    assert masked[2:6:2] == ["[old tool output cleared to save context]"] * 2


def test_pinned_and_matching_results_stay() -> None:
    class Pins(Lines):
        def facts(self, line: Line) -> Facts:
            facts = super().facts(line)
            results = [ResultFacts(*one)._replace(pinned="pin" in line.text) for one in facts.results]
            return facts._replace(results=results)

    messages = lines("pin" + "x" * 190, "Saved to " + "y" * 190, "z" * 190)
    view = Masker(Pins(), keep=0, keep_matching=["Saved to "], **SLIDING).view(messages)
    assert [shown is message for shown, message in zip(view, messages, strict=True)] == [True] * 6 + [False, True]


def test_the_tool_may_be_named_by_the_result() -> None:
    messages = [Line("tool", "x" * 190, name="read"), Line("tool", "y" * 190, name="run"), Line("assistant", "")]
    view = Masker(Lines(), keep=0, exclude_tools=["read"], placeholder="[{tool}: {chars}]", **SLIDING).view(messages)
    assert [line.text for line in view] == ["x" * 190, "[run: 190]", ""]


def test_calls_without_ids_pair_by_place_and_tool() -> None:
    calls = [Line("assistant", "", name="read"), Line("assistant", "", name="run")]
    results = [Line("tool", "x" * 190, name="run"), Line("tool", "y" * 190), Line("assistant", "")]
    view = Masker(Lines(), keep=0, placeholder="[{tool}: {chars}]", **SLIDING).view([*calls, *results])
    assert [line.text for line in view[2:]] == ["[run: 190]", "[read: 190]", ""]


def test_an_adapter_may_say_what_is_the_same() -> None:
    class ById(Lines):
        def same(self, old: Line, new: Line) -> bool:
            return old.call == new.call

        def key(self, messages: list[Line]) -> str:
            return str(messages[0].call)

    def loaded() -> list[Line]:
        return [Line("tool", "x" * 90, call=str(number)) for number in range(5)]

    masker: Masker[Line] = Masker(ById(), keep=1, **SLIDING)
    masker.view(loaded())
    again = loaded()
    assert masker.view(again)[-1] is again[-1]
    assert masker.stats().continued == 1


def test_recall_gives_the_text_and_place_of_an_observation() -> None:
    messages = [*conversation(4), *turn(2, "again")]
    masker = Masker(keep=0)
    assert masker.recall(messages, 1) == messages[2]["content"]
    assert masker.recall(messages, "c2") == "again"
    assert masker.place(messages, 2) == (4, 0)
    for unknown in (0, 6, 1 << 70, "nobody"):
        with pytest.raises(LookupError, match="observation"):
            masker.recall(messages, unknown)

    class Mute:
        facts, masked = Lines().facts, Lines().masked

    with pytest.raises(TypeError, match="'text'"):
        Masker(Mute()).recall(lines("x"), 1)
    assert Masker(Mute()).place(lines("x"), 1) == (2, 0)


def test_count_tokens_counts_the_view() -> None:
    messages = conversation(8)
    masker = Masker(keep=0, **SLIDING)
    assert masker.count_tokens(messages) == recede.designs.approx_tokens(masker.view(messages))
    own = lines("x" * 400, "y" * 90)
    _, chars = cold_masks(Lines(), own, {"keep": 0, **SLIDING})
    assert Masker(Lines(), keep=0, **SLIDING).count_tokens(own) == recede.designs.approx_tokens(chars)


def test_two_cold_requests_move_the_boundary() -> None:
    usage = {"input_tokens": 9_000, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 1}
    masker, messages = Masker(keep=2, provider=priced(write=1e9)), conversation(20)
    for end in (33, 35, 37):
        assert not masker.masks(messages[:end]).masks
        masker.reported(usage)
    assert masker.masks(messages).masks
    Masker().reported(usage)  # of no conversation
    with pytest.raises(TypeError, match="usage"):
        masker.reported("none")


def test_a_request_after_a_move_says_nothing_of_the_cache() -> None:
    masker, messages = Masker(keep=1, **SLIDING), conversation(60)
    for end in range(81, len(messages) + 1, 2):  # the boundary moves at each request
        masker.view(messages[:end])
        masker.reported({"input_tokens": 9_000, "output_tokens": 1, "cache_read_input_tokens": 0})
    (known,) = masker._remembered.newest_first()
    assert known.reports._cold_in_a_row == 0


def moves_of(messages: list[Any]) -> list[Any]:
    return list(recede.reduce(messages, provider="ideal").boundary_moves)


def test_each_move_is_told_once_by_the_first_view_that_has_it() -> None:
    told: list[Any] = []
    masker, messages = Masker(on_move=told.append, provider="ideal"), conversation(60)
    for end in range(1, len(messages) + 1, 2):
        masker.masks(messages[:end])  # sends nothing
        masker.view(messages[:end])
        masker.view(messages[:end])
        assert told == moves_of(messages[:end])
    assert len(told) > 2
    again = next(end for end in range(1, 200, 2) if moves_of(messages[:end])[-1:] == told[-1:])
    masker.view(messages[: again - 2])  # a fork, or a rewind
    masker.view(messages[:again])
    assert told[-1] == told[-2]


def test_of_an_unknown_conversation_only_the_move_of_its_newest_request_is_told() -> None:
    messages = conversation(60)
    move = moves_of(messages)[-1]
    for end in range(1 + 2 * move.request, 5 + 2 * move.request, 2):
        told: list[Any] = []
        Masker(on_move=told.append, provider="ideal").view(messages[:end])
        assert told == ([move] if end == 1 + 2 * move.request else [])


def test_a_callback_may_use_the_masker_and_its_error_is_no_error_of_the_view(caplog: Any) -> None:
    def asked(move: Any) -> None:
        seen.append(masker.count_tokens(messages[:9]))
        masker.view(conversation(3, task="Another task."))
        raise ValueError("told")

    seen: list[int] = []
    masker, messages = Masker(on_move=asked, provider="ideal"), conversation(60)
    for end in range(1, len(messages) + 1, 2):
        assert masker.view(messages[:end]) == cold_view(None, messages[:end], {"provider": "ideal"})
    assert len(seen) > 2 and "on_move raised an error" in caplog.text
    with pytest.raises(TypeError, match="on_move must be callable"):
        Masker(on_move=3)  # type: ignore[arg-type]


def test_a_switch_sends_the_messages_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    masker, messages = Masker(keep=0, **SLIDING), conversation(8)
    shown, tokens = masker.masks(messages), masker.count_tokens(messages)
    raw = Masker(keep=8).count_tokens(messages)
    monkeypatch.setenv("RECEDE_OFF", "1")
    view = masker.view(messages)
    assert view == messages and view is not messages
    assert masker.masks(messages) == Masks(0, [])
    assert masker.count_tokens(messages) == raw > tokens
    assert masker.recall(messages, 3) == messages[6]["content"]
    monkeypatch.delenv("RECEDE_OFF")
    assert masker.masks(messages) == shown


def test_objects_of_clients_are_read_and_masked_in_their_kind() -> None:
    chat = pytest.importorskip("openai.types.chat")
    call = turn(0)[0]["tool_calls"][0]
    message = chat.ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})
    messages = [{"role": "user", "content": "Go."}, message, turn(0)[1], ANSWER]
    view = Masker(keep=0, **SLIDING).view(messages)
    assert view[1] is message
    assert view[2]["content"] == "[old tool output cleared to save context]"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"adapter": object()}, TypeError, "'facts'"),
        ({"keep": -1}, ValueError, "keep"),
        ({"most": 0}, ValueError, "most"),
        ({"check": 1}, TypeError, "check"),
        ({"keep_turn": 3}, TypeError, "did you mean"),
        ({"keep": None}, TypeError, "keep must be a whole number"),
    ],
)
def test_wrong_options_are_refused_at_once(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Masker(**arguments)


@pytest.mark.parametrize(
    "facts",
    [
        "user",
        (),
        (7,),
        ("user", -1),
        ("user", "many"),
        ("user", 1, ["call"]),
        ("user", 1, (), [(1,)]),
        ("user", 1, (), [(None, None, 1, -1)]),
    ],
)
def test_wrong_facts_are_refused(facts: Any) -> None:
    class Wrong:
        def facts(self, message: Any) -> Any:
            return facts

        def masked(self, message: Any, texts: Any) -> Any:
            raise AssertionError

        def key(self, messages: Any) -> Any:
            return None

    masker: Masker[Any] = Masker(Wrong())
    with pytest.raises(TypeError, match="facts"):
        masker.view([1])
    assert masker.stats().conversations == 0


def test_what_is_no_history_is_refused_and_forgotten() -> None:
    masker, messages = Masker(), conversation(2)
    masker.view(messages)
    wrong: Any = [*messages, 7]
    with pytest.raises(TranscriptError) as caught:
        masker.view(wrong)
    assert caught.value.places["message_index"] == len(messages)
    wrong = "no list"
    with pytest.raises(TranscriptError):
        masker.view(wrong)
    assert masker.view(messages) == messages


def test_an_adapter_that_fails_leaves_the_masker_usable() -> None:
    class Failing(Lines):
        fails = True

        def text(self, line: Line, place: int) -> str:
            if self.fails:
                raise OSError("no disk")
            return super().text(line, place)

    adapter = Failing()
    masker, messages = Masker(adapter, keep=0, keep_matching=["keep"], **SLIDING), lines("x" * 190)
    with pytest.raises(OSError, match="no disk"):
        masker.view(messages)
    adapter.fails = False
    assert masker.view(messages)[2].text == "[old tool output cleared to save context]"


def test_many_threads_share_one_masker() -> None:
    masker = Masker(keep=2, most=5)

    def run(task: str) -> None:
        messages = conversation(0, task)
        for number in range(25):
            messages += turn(number, f"{task} {number} " * 60)
            assert masker.view(messages) == cold_view(None, messages, {"keep": 2})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, [f"task {number}" for number in range(8)]))


def test_forgotten_messages_are_freed() -> None:
    class Big(Line):
        pass

    masker = Masker(Lines(), most=1)
    for text in ("one", "another"):
        masker.view([Big("user", text), Big("tool", "x" * 90)])
    gc.collect()
    assert len([one for one in gc.get_objects() if type(one) is Big]) == 2


@pytest.mark.parametrize("method", ["facts", "masked"])
def test_an_adapter_that_calls_its_masker_is_refused(method: str) -> None:
    class Calling(Lines):
        def facts(self, line: Line) -> Facts:
            if is_calling and method == "facts":
                masker.view(messages)
            return super().facts(line)

        def masked(self, line: Line, texts: Mapping[int, str]) -> Line:
            if is_calling and method == "masked":
                masker.view(messages)
            return super().masked(line, texts)

    is_calling = False
    masker = Masker(Calling(), keep=1, boundary="sliding")
    messages = lines(*["a line\n" * 40] * 4)
    first = [line.text for line in masker.view(messages)]
    is_calling = True
    with pytest.raises(RuntimeError, match="must not call the Masker"):
        masker.view([*messages, *lines(*["a line\n" * 40] * 2)])
    is_calling = False
    assert [line.text for line in masker.view(messages)] == first


def test_empty_lists_are_not_remembered() -> None:
    masker = Masker(most=1)
    masker.view(conversation(4))
    assert masker.view([]) == []
    assert masker.masks([]).masks == []
    assert (masker.stats().conversations, masker.stats().evicted) == (1, 0)


@pytest.mark.parametrize("observation", [True, 1.0, None])
def test_an_observation_is_a_number_or_an_id(observation: Any) -> None:
    with pytest.raises(TypeError, match="an observation is a number or the id of a call"):
        Masker().recall(conversation(2), observation)


# Recall by handle, and what is remembered


def chat_of(*texts: Any, task: str = "Go.") -> list[Any]:
    """A conversation whose ids are those of every other one."""
    messages: list[Any] = [{"role": "user", "content": task}]
    for number, text in enumerate(texts):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
    return messages


def test_a_handle_recalls_from_the_messages_that_are_given_alone() -> None:
    masker = Masker(keep=0, recall=True, **SLIDING)
    one, other = (chat_of(*[f"{name} {number}\n" * 40 for number in range(9)]) for name in ("one", "other"))
    for messages in (one, other):
        for end in range(1, len(messages) + 1):
            masker.view(messages[:end])
    handle = handle_of("call_3", one[8]["content"])
    assert masker.view(one)[8]["content"] == f"[old tool output cleared to save context, recall {handle}]"
    assert masker.recall(one, handle) == masker.recall(one, "call_3") == one[8]["content"]
    with pytest.raises(LookupError, match=f"there is no observation '{handle}'"):
        masker.recall(other, handle)
    fresh = Masker(keep=0, recall=True, **SLIDING)  # after a restart, and of a list that was trimmed
    assert fresh.recall([one[0], *one[5:]], handle) == one[8]["content"]


def test_remembered_conversations_are_searched_by_handle_and_never_by_id() -> None:
    masker = Masker(keep=0, recall=True, most=2, **SLIDING)
    chats = [chat_of(*[f"{name} {number}\n" * 40 for number in range(3)]) for name in ("one", "two", "three")]
    for messages in chats:
        masker.view(messages)
    handles = [handle_of("call_0", messages[2]["content"]) for messages in chats]
    for handle, messages in zip(handles[1:], chats[1:], strict=True):
        assert masker.recall_remembered(handle) == messages[2]["content"]
    for unknown in (handles[0], "call_0", ""):
        with pytest.raises(LookupError, match="there is no observation"):
            masker.recall_remembered(unknown)


def test_an_image_is_never_recalled_as_an_empty_text_or_as_another_one() -> None:
    def image(data: str) -> list[Any]:
        return [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}]

    masker = Masker(keep=0, recall=True, **SLIDING)
    messages = chat_of(image("aGk="), [{"type": "text", "text": "a map"}, *image("aGo=")])
    masker.view(messages)
    alone, with_text = handle_of("call_0", ""), handle_of("call_1", "a map")
    for recall in (lambda handle: masker.recall(messages, handle), masker.recall_remembered):
        with pytest.raises(LookupError, match="has no text, only images or documents"):
            recall(alone)
    assert masker.place(messages, alone) == (2, 0)
    assert masker.recall(messages, with_text) == "a map"
    assert masker.recall_remembered(with_text) == "a map\n[Its images cannot be recalled: call the tool again.]"
    twice = [*messages[:3], *chat_of(image("aGk="), image("aGw="))[1:3]]
    twice[-1] = {**twice[-1], "content": image("aGw=")}
    with pytest.raises(LookupError, match="there is no observation"):
        masker.place(twice, alone)  # a handle says nothing of images


def test_conversations_take_no_more_than_the_bytes_that_are_permitted() -> None:
    masker = Masker(keep=1, max_bytes=1_000_000, **SLIDING)
    for number in range(30):
        view = masker.view(chat_of(*[f"{number}.{place} " * 20_000 for place in range(2)], task=f"Go {number}."))
        assert view[2]["content"].startswith("[old tool output cleared")
    assert masker.stats().evicted == 30 - masker.stats().conversations > 20
    huge = chat_of("x" * 3_000_000, "y")
    assert masker.view(huge)[2]["content"] == "[old tool output cleared to save context]"
    assert masker.stats().conversations == 1  # the newest is remembered whatever it takes
    assert masker.view(huge[:3]) == huge[:3] and masker.stats().rewound == 1
    masker.view(chat_of("z" * 900_000, task="z"))
    masker.view(chat_of("w", task="w"))
    assert masker.stats().conversations == 2
    images = Masker(max_bytes=1_000_000)  # base64 counts in full
    for number in range(5):
        images.view(chat_of([{"type": "image_url", "image_url": {"url": "x" * 600_000}}], task=f"{number}"))
    assert images.stats().conversations == 1


def test_recall_and_texts_that_stay_need_texts() -> None:
    class Mute:
        def facts(self, message: Any) -> Any: ...
        def masked(self, message: Any, texts: Any) -> Any: ...

    for options in ({"recall": True}, {"placeholder": "[gone: {handle}]"}, {"keep_matching": ["Saved to "]}):
        name = "keep_matching" if "keep_matching" in options else "recall"
        with pytest.raises(TypeError, match=f"{name} needs an adapter with a method 'text'"):
            Masker(Mute(), **options)
    with pytest.raises(TypeError, match="recall must be True or False"):
        Masker(recall=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="max_bytes"):
        Masker(max_bytes="1")  # type: ignore[arg-type]


def views_of(masker: recede.masker.Masker[Any], history: list[Any], providers: list[Any]) -> list[Any]:
    """The views of a growing conversation; each request has the next of these providers, the rest the last."""
    ends = range(3, len(history) + 1, 2)
    return [masker.view(history[:end], provider=providers[min(at, len(providers) - 1)]) for at, end in enumerate(ends)]


def priced_history() -> list[Any]:
    history: list[Any] = [{"role": "user", "content": "Go."}]
    for number in range(60):
        function = {"name": "run", "arguments": "{}"}
        called = {"id": str(number), "type": "function", "function": function}
        history += [
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": str(number), "content": f"{number} " + "x" * 900},
        ]
    return history


def test_a_conversation_keeps_the_prices_of_its_first_request() -> None:
    history, cheap, dear = priced_history(), priced("ideal", 0.05, 2.0), priced("ideal", 0.5, 1.0)
    low, high = (views_of(recede.masker.Masker(keep=4), history, [provider]) for provider in (cheap, dear))
    assert low != high
    assert views_of(recede.masker.Masker(keep=4), history, [cheap, dear]) == low
    assert views_of(recede.masker.Masker(keep=4), history, [cheap, None]) == low
    assert views_of(recede.masker.Masker(keep=4, provider=cheap), history, [None]) == low


def test_a_view_has_the_marks_of_the_provider_that_its_request_names() -> None:
    history: list[Any] = [{"role": "user", "content": "Go."}]
    for number in range(45):
        block = {"type": "tool_result", "tool_use_id": f"{number}", "content": f"page {number}\n" * 500}
        call = {"type": "tool_use", "id": f"{number}", "name": "run", "input": {}}
        history += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [block]}]
    history[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    anthropic = recede.Provider.of("anthropic")
    expected = recede.reduce(history, keep=4, provider=anthropic).messages
    assert str(expected).count("cache_control") == 2
    assert recede.masker.Masker(keep=4, provider="openai").view(history, provider=anthropic) == expected


def test_a_conversation_that_was_only_counted_gets_the_prices_of_its_first_request() -> None:
    history, cheap = priced_history(), priced("ideal", 0.05, 2.0)
    low = views_of(recede.masker.Masker(keep=4), history, [cheap])
    masker = recede.masker.Masker[Any](keep=4)
    masker.count_tokens(history[:3])  # as a summarizer does before the request
    assert views_of(masker, history, [cheap]) == low
    assert masker.stats().conversations == 1


def test_a_fork_has_the_prices_of_the_conversation() -> None:
    history, masker = priced_history(), recede.masker.Masker[Any](keep=4)
    whole = masker.view(history, provider=priced("ideal", 0.05, 2.0))
    forked = [*history[:61], {"role": "user", "content": "Another way."}]
    alone = recede.masker.Masker[Any](keep=4, provider=priced("ideal", 0.05, 2.0))
    assert masker.view(forked, provider=priced("ideal", 0.5, 1.0)) == alone.view(forked)
    assert masker.view(history) == whole


@pytest.mark.parametrize("prices", [("0.1", 1.0), (-1.0, 1.0), (float("nan"), 1.0), (0.1, None), (True, 1.0)])
def test_prices_that_are_none_are_refused_and_the_masker_goes_on(prices: Any) -> None:
    history, masker = priced_history(), recede.masker.Masker[Any](keep=4)
    with pytest.raises((TypeError, ValueError), match=r"provider\.(read|write)"):
        masker.view(history, provider=priced("ideal", *prices))
    assert masker.view(history) == recede.masker.Masker[Any](keep=4).view(history)
