"""Models that verify their reasoning: each request against what was sent when its reasoning was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recede
from support import ENGINES, using

Messages = list[dict[str, Any]]
VERIFYING = "claude-opus-5-5"
NO_REASONING = "[reasoning not sent again]"
THINKING = ("thinking", "redacted_thinking")
FIELDS = ("thinking_blocks", "reasoning_details")


def anthropic(number: int, thought: str, text: str) -> Messages:
    kind = {"type": "thinking", "thinking": thought, "signature": thought}
    thinking = {"type": "redacted_thinking", "data": thought} if number % 7 == 6 else kind
    use = {"type": "tool_use", "id": f"t{number}", "name": "run", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
    return [{"role": "assistant", "content": [thinking, use]}, {"role": "user", "content": [answer]}]


def converse(number: int, thought: str, text: str) -> Messages:
    thinking = {"reasoningContent": {"reasoningText": {"text": thought, "signature": thought}}}
    use = {"toolUse": {"toolUseId": f"t{number}", "name": "run", "input": {}}}
    answer = {"toolResult": {"toolUseId": f"t{number}", "content": [{"text": text}]}}
    return [{"role": "assistant", "content": [thinking, use]}, {"role": "user", "content": [answer]}]


def gemini(number: int, thought: str, text: str) -> Messages:
    """As Google's Agent Development Kit has an answer of Claude."""
    kind = {"text": thought, "thought": True, "thoughtSignature": thought}
    thinking = {"thought": True, "thought_signature": thought} if number % 7 == 6 else kind
    use = {"functionCall": {"id": f"t{number}", "name": "run", "args": {}}}
    answer = {"functionResponse": {"id": f"t{number}", "name": "run", "response": {"output": text}}}
    return [{"role": "model", "parts": [thinking, use]}, {"role": "user", "parts": [answer]}]


def litellm(number: int, thought: str, text: str) -> Messages:
    blocks = [{"type": "thinking", "thinking": thought, "signature": thought}]
    return _chat(number, text, {"thinking_blocks": blocks})


def openrouter(number: int, thought: str, text: str) -> Messages:
    detail = {"type": "reasoning.text", "text": thought, "format": "anthropic-claude-v1", "signature": thought}
    return _chat(number, text, {"reasoning": thought, "reasoning_details": [detail]})


def _chat(number: int, text: str, signed: dict[str, Any]) -> Messages:
    call = {"id": f"t{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    answer = {"role": "tool", "tool_call_id": f"t{number}", "content": text}
    return [{"role": "assistant", "content": None, "tool_calls": [call], **signed}, answer]


SHAPES = {"anthropic": anthropic, "converse": converse, "gemini": gemini, "litellm": litellm, "openrouter": openrouter}


def is_thinking(block: Any) -> bool:
    return isinstance(block, dict) and (
        block.get("type") in THINKING or bool({"reasoningContent", "thought"} & {*block})
    )


def thoughts(message: dict[str, Any]) -> list[str]:
    """The reasoning of a message, as canonical JSON."""
    content = message.get("content", message.get("parts"))
    blocks = [block for block in content if is_thinking(block)] if isinstance(content, list) else []
    return [json.dumps(one, sort_keys=True) for one in [*blocks, *(message[key] for key in FIELDS if key in message)]]


def bare(message: dict[str, Any]) -> dict[str, Any]:
    """A message without its reasoning, which is no part of a prefix."""
    left = {key: value for key, value in message.items() if key not in FIELDS}
    for key in ("content", "parts"):
        if isinstance(left.get(key), list):
            left[key] = [block for block in left[key] if not is_thinking(block)]
    return left


class Account:
    """A provider that refuses reasoning whose prefix was edited, and what is no run of the original sequence."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[str, str | None]] = {}  # of a thought: its prefix, and the thought before it
        self.sent: list[int] = []  # thoughts in each request
        self.verifies = True  # by the model of the request

    def request(self, view: Messages) -> None:
        before: str | None = None
        count, sent = 0, hashlib.sha256()
        for message in view:
            for thought in thoughts(message):
                prefix, previous = self.made[thought]
                if self.verifies:
                    assert prefix == sent.hexdigest(), "bound to a different conversation"
                    assert count == 0 or previous == before, "no unbroken run"
                before, count = thought, count + 1
            sent.update(json.dumps(bare(message), sort_keys=True).encode())
        self.sent.append(count)
        self.next = sent.hexdigest(), before

    def answer(self, message: dict[str, Any]) -> None:
        prefix, before = self.next
        for thought in thoughts(message):
            self.made[thought] = prefix, before
            before = thought


def conversation(shape: str, sizes: list[int]) -> list[Messages]:
    """Turns: an answer with reasoning and its result; now and then the user speaks, or an answer is reasoning alone."""
    turns = []
    for number, size in enumerate(sizes):
        turn = SHAPES[shape](number, f"thought {number}", f"line {number}\n" * size)
        if number % 9 == 8 and shape in ("anthropic", "converse"):
            turn[0]["content"] = turn[0]["content"][:1]
            turn[1] = {
                "role": "user",
                "content": [{"type": "text", "text": "Go on."} if shape == "anthropic" else {"text": "Go on."}],
            }
        turns.append(turn)
    return turns


def played(door: Callable[[Messages], Messages], turns: list[Messages]) -> tuple[Account, Messages]:
    """The last view of a loop that sends each view of a door."""
    account, history = Account(), [{"role": "user", "content": "Look at the repository."}]
    for answer, *results in turns:
        account.request(door(history))
        account.answer(answer)
        history = [*history, answer, *results]
    view = door(history)
    account.request(view)
    return account, view


def reduce_dicts(**options: Any) -> Callable[[Messages], Messages]:
    return lambda history: recede.reduce(history, **options).messages


def reduce_bytes(**options: Any) -> Callable[[Messages], Messages]:
    return lambda history: json.loads(recede.reduce(json.dumps(history).encode(), **options).json)


def history_of(reads: str, **options: Any) -> Callable[[Messages], Messages]:
    history = recede.History(**options)

    def view(messages: Messages) -> Messages:
        history.extend(messages[len(history) :])
        read = getattr(history, reads)()
        shown: Messages = read if reads == "view" else json.loads(read if isinstance(read, bytes) else b"".join(read))
        return shown

    return view


class AsDicts:
    """An adapter of dicts, of which the core knows facts alone."""

    def facts(self, message: dict[str, Any]) -> recede.masker.Facts:
        calls, results = [], []
        content = message.get("content", message.get("parts"))
        for block in content if isinstance(content, list) else []:
            named = block.get("toolUse") or block.get("functionCall")
            if use := named or (block if block.get("type") == "tool_use" else None):
                calls.append((use.get("id") or use.get("toolUseId"), "run", 2))
            if answer := self._result(block):
                results.append((answer[0], None, len(answer[1])))
        calls += [(call["id"], "run", 2) for call in message.get("tool_calls") or ()]
        results += [(message["tool_call_id"], None, len(content))] if message["role"] == "tool" else []
        chars = len(content) if isinstance(content, str) and not results else 0
        return recede.masker.Facts(message["role"], chars, calls, results, signed=bool(thoughts(message)))

    def masked(self, message: dict[str, Any], texts: Any) -> dict[str, Any]:
        if message["role"] == "tool":
            return {**message, "content": texts[0]}
        if "parts" in message:
            (part,) = message["parts"]
            return {
                **message,
                "parts": [{"functionResponse": {**part["functionResponse"], "response": {"output": texts[0]}}}],
            }
        (answer,) = message["content"]
        if "toolResult" in answer:
            return {**message, "content": [{"toolResult": {**answer["toolResult"], "content": [{"text": texts[0]}]}}]}
        return {**message, "content": [{**answer, "content": texts[0]}]}

    def text(self, message: dict[str, Any], place: int) -> str:
        if message["role"] == "tool":
            return str(message["content"])
        result = self._result(message.get("content", message.get("parts"))[place])
        assert result is not None
        return result[1]

    def unsigned(self, message: dict[str, Any]) -> dict[str, Any]:
        left = bare(message)
        if "parts" in left:
            return {**left, "parts": left["parts"] or [{"text": NO_REASONING}]}
        return left if left["content"] or left.get("tool_calls") else {**left, "content": NO_REASONING}

    def _result(self, block: dict[str, Any]) -> tuple[str, str] | None:
        if block.get("type") == "tool_result":
            return block["tool_use_id"], block["content"]
        if part := block.get("functionResponse"):
            return part["id"], part["response"]["output"]
        one = block.get("toolResult")
        return None if one is None else (one["toolUseId"], one["content"][0]["text"])


DOORS: dict[str, Callable[..., Any]] = {
    "dicts": reduce_dicts,
    "bytes": reduce_bytes,
    "view": lambda **options: history_of("view", **options),
    "view_json": lambda **options: history_of("view_json", **options),
    "view_chunks": lambda **options: history_of("view_chunks", **options),
    "masker": lambda **options: recede.masker.Masker(**options).view,
    "adapter": lambda **options: recede.masker.Masker(AsDicts(), **options).view,
}
OPTIONS: list[dict[str, Any]] = [
    {"keep": 3},
    {"keep": 3, "boundary": "sliding"},
    {"keep": 2, "boundary": 4},
    {"keep": 3, "max_input_tokens": 2_000},  # to which reasoning counts as long as it is sent
]
SIZES = st.lists(st.integers(1, 300), min_size=12, max_size=30)


@pytest.mark.parametrize("door", DOORS)
@given(options=st.sampled_from(OPTIONS), shape=st.sampled_from(sorted(SHAPES)), sizes=SIZES)
def test_request_with_verified_reasoning_is_never_refused(
    door: str, options: dict[str, Any], shape: str, sizes: list[int]
) -> None:
    played(DOORS[door](provider=VERIFYING, **options), conversation(shape, sizes))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("shape", SHAPES)
def test_reasoning_before_the_last_edit_is_dropped_and_later_kept(door: str, shape: str) -> None:
    options = {"keep": 3, "boundary": 4}
    account, view = played(DOORS[door](provider=VERIFYING, **options), conversation(shape, [200] * 30))
    assert max(account.sent) > 3 and account.sent[-1] < 8, account.sent
    assert any(json.dumps(view).count(word) for word in ("cleared", "masked"))
    signed = [place for place, message in enumerate(view) if thoughts(message)]
    answers = [place for place, message in enumerate(view) if message["role"] in ("assistant", "model")]
    assert signed == answers[len(answers) - len(signed) :]


@pytest.mark.parametrize("engine_name", ENGINES)
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    sizes=st.lists(st.integers(20, 300), min_size=12, max_size=30),
    options=st.sampled_from([{"keep": 3, "boundary": 12}, {"keep": 0, "boundary": 10}]),
)
def test_view_of_other_models_differs_by_the_dropped_reasoning_alone(
    engine_name: str, shape: str, sizes: list[int], options: dict[str, Any]
) -> None:
    verifying = recede.Provider.of("anthropic", VERIFYING)
    messages = [message for turn in conversation(shape, sizes) for message in turn]
    history: Messages = [{"role": "user", "content": "Look."}, *messages]
    with using(engine_name):
        one = recede.reduce(history, provider=verifying, **options)
        other = recede.reduce(history, provider=verifying._replace(verifies_reasoning=False), **options)
    assert other.reasoning_dropped == 0 and not any(NO_REASONING in json.dumps(one) for one in other.messages)
    differing = [
        place for place, pair in enumerate(zip(one.messages, other.messages, strict=True)) if pair[0] != pair[1]
    ]
    assert len(differing) == one.reasoning_dropped
    for place in differing:
        assert thoughts(other.messages[place]) and not thoughts(one.messages[place])
        left = bare(other.messages[place])
        assert bare(one.messages[place]) == left or NO_REASONING in json.dumps(one.messages[place])
    assert other.masks == one.masks


def moves_of(turns: list[Messages], **options: Any) -> list[tuple[int, int]]:
    """The request of each move, and how many results it masks."""
    history = [{"role": "user", "content": "Look."}, *(message for turn in turns for message in turn)]
    moves = recede.reduce(history, keep=3, **options).boundary_moves
    assert moves == recede.reduce(json.dumps(history).encode(), keep=3, **options).boundary_moves
    return [(move.request, move.masked_count) for move in moves]


@pytest.mark.parametrize("engine_name", ENGINES)
@pytest.mark.parametrize("shape", SHAPES)
def test_move_that_costs_reasoning_waits_while_the_agent_works(engine_name: str, shape: str) -> None:
    verifying = recede.Provider.of("anthropic", VERIFYING)
    turns = [turn for turn in conversation(shape, [300] * 40) if len(turn) == 2]
    with using(engine_name):
        others: dict[str, Any] = {"provider": verifying._replace(verifies_reasoning=False), "max_overcost": None}
        options = {**others, "provider": verifying}
        at_once = moves_of(turns, **others)[0]
        (first, _), *_ = moves_of(turns, **options)
        assert first > at_once[0] + 2
        said = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Go on."}]
        asked = [*turns[: at_once[0] + 1], said, *turns[at_once[0] + 1 :]]
        assert moves_of(asked, **options)[0][0] == at_once[0] + 2
        unsigned = [[bare(message) for message in turn] for turn in turns]
        assert moves_of(unsigned, **options)[0] == at_once


@pytest.mark.parametrize("engine_name", ENGINES)
@pytest.mark.parametrize(("boundary", "least"), [("sliding", 10), (4, 12), (12, 12)])
def test_move_that_costs_reasoning_without_a_cache_masks_ten_results(
    engine_name: str, boundary: Any, least: int
) -> None:
    turns = [turn for turn in conversation("anthropic", [300] * 40) if len(turn) == 2]
    with using(engine_name):
        moves = moves_of(turns, provider=VERIFYING, boundary=boundary)
        assert len(moves) > 1 and {masked for _, masked in moves} == {least}
        unsigned = [[bare(message) for message in turn] for turn in turns]
        assert len(moves_of(unsigned, provider=VERIFYING, boundary=boundary)) > len(moves) or boundary == 12


def test_body_without_marks_moves_by_ten_results_where_reasoning_is_verified() -> None:
    masker, counts = recede.proxy.RequestMasker(keep=3), []
    history: Messages = [{"role": "user", "content": "Look."}]
    for turn in conversation("anthropic", [300] * 40):
        body = json.dumps({"model": VERIFYING, "messages": history}).encode()
        masked = masker.mask("POST", "/v1/messages", {}, body)
        assert masked.cache == "none"
        counts.append(masked.masked_count)
        history = [*history, *turn]
    steps = {after - before for before, after in pairwise(counts)}
    assert steps == {0, 10}, counts


def test_moves_and_stats_say_how_much_reasoning_was_dropped(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="recede")
    moves: list[Any] = []
    history = recede.History(keep=3, provider=VERIFYING, on_move=moves.append)
    for turn in [[{"role": "user", "content": "Look."}], *conversation("anthropic", [300] * 40)]:
        history.extend(turn)
        history.view()
    stats = history.stats()
    assert stats.reasoning_dropped == sum(move.reasoning_dropped for move in moves) > 5
    assert stats.boundary_moves == tuple(moves)
    assert f", {moves[0].reasoning_dropped} messages without their reasoning" in caplog.text
    reduction = recede.reduce([*history], keep=3, provider=VERIFYING)
    assert reduction.reasoning_dropped == stats.reasoning_dropped
    assert reduction.boundary_moves == stats.boundary_moves
    assert reduction.first_changed is not None


def test_model_of_a_body_decides_whether_reasoning_is_dropped() -> None:
    messages: Messages = [{"role": "user", "content": "Look."}]
    messages += [message for turn in conversation("anthropic", [300] * 40) for message in turn]

    def sent(model: str) -> int:
        body = {"model": model, "messages": messages}
        found = {recede.reduce(one, keep=3).reasoning_dropped for one in (body, json.dumps(body).encode())}
        (count,) = found
        return count

    assert sent("claude-opus-5-5") > 5
    assert sent("claude-opus-4-7") == 0


@pytest.mark.parametrize("engine_name", ENGINES)
@pytest.mark.parametrize(
    ("message", "left"),
    [
        (
            {"content": [{"type": "thinking"}, {"type": "text", "text": "é"}]},
            {"content": [{"type": "text", "text": "é"}]},
        ),
        ({"content": [{"type": "thinking"}]}, {"content": [{"type": "text", "text": NO_REASONING}]}),
        ({"content": [{"reasoningContent": {}}]}, {"content": [{"text": NO_REASONING}]}),
        ({"content": None, "thinking_blocks": [{}]}, {"content": NO_REASONING}),
        ({"content": "", "x": 1, "thinking_blocks": [{}], "reasoning_details": []}, {"content": NO_REASONING, "x": 1}),
        ({"content": [], "thinking_blocks": [{}]}, {"content": [{"type": "text", "text": NO_REASONING}]}),
        ({"thinking_blocks": [{}], "content": "hi", "z": 2}, {"content": "hi", "z": 2}),
        ({"content": "hi", "reasoning_details": [{"format": "openai-responses-v1"}]}, None),
        ({"content": "hi", "thinking_blocks": []}, None),
        (
            {"parts": [{"text": "T", "thought": True, "thoughtSignature": "s"}, {"text": "a"}]},
            {"parts": [{"text": "a"}]},
        ),
        ({"z": 1, "parts": [{"thought": True, "thought_signature": "s"}]}, {"z": 1, "parts": [{"text": NO_REASONING}]}),
        ({"parts": [{"text": "T", "thought": True}, {"text": "a", "thoughtSignature": "s"}]}, None),
        ({"content": [{"type": "text", "text": "a"}, {"text": "b", "reasoningContent": {}}]}, None),
    ],
    ids=str,
)
def test_message_without_its_reasoning_keeps_all_else(
    engine_name: str, message: dict[str, Any], left: dict[str, Any] | None
) -> None:
    first = {"role": "assistant", **message}
    history = [{"role": "user", "content": "Look."}, *anthropic(0, "first", "line\n" * 200), first]
    history += [message for turn in conversation("anthropic", [300] * 12) for message in turn]
    expected = first if left is None else {"role": "assistant", **left}
    with using(engine_name):
        options: dict[str, Any] = {"keep": 0, "boundary": "sliding", "provider": VERIFYING}
        assert recede.reduce(history, **options).messages[3] == expected
        for text in (json.dumps(history), json.dumps(history, indent=1), json.dumps(history, separators=(",", ":"))):
            assert json.loads(recede.reduce(text.encode(), **options).json)[3] == expected


# A history that was not sent as its options of today would have sent it


def test_history_reopened_with_other_options_is_never_refused(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {"keep": 6},
        {"keep": 2, "boundary": "sliding"},
        {"placeholder": "[gone]"},
        {"keep": 30},
    ]
    account, turns = Account(), conversation("anthropic", [200] * 60)
    options: dict[str, Any] = {"keep": 3, "boundary": 4}
    for first in range(0, 60, 12):
        with recede.store.TurnStore(tmp_path / "history") as store:
            history = recede.History(provider=VERIFYING, store=store, **options)
            if not first:
                history.append({"role": "user", "content": "Look at the repository."})
            for answer, *results in turns[first : first + 12]:
                account.request(history.view())
                account.answer(answer)
                history.extend([answer, *results])
        options = {"keep": 3, **changes[first // 12 % 4]}
    assert max(account.sent) > 3 and account.sent[-1] > 0, account.sent


def test_history_begun_elsewhere_sends_no_reasoning_made_there() -> None:
    messages: Messages = [{"role": "user", "content": "Look."}]
    messages += [message for turn in conversation("anthropic", [9] * 6) for message in turn]
    history = recede.History.from_messages(messages, provider=VERIFYING)
    assert not any(map(thoughts, history.view()))
    assert history.stats().reasoning_dropped == 6
    history.extend(anthropic(6, "new", "line\n"))
    assert [thought for message in history.view() for thought in thoughts(message)] == thoughts(history[-2])


def test_rewound_history_sends_what_its_requests_still_hold() -> None:
    account, turns = Account(), conversation("anthropic", [200] * 30)
    history = recede.History(provider=VERIFYING, keep=3, boundary=4)
    history.append({"role": "user", "content": "Look at the repository."})
    for number, (answer, *results) in enumerate(turns):
        if number in (9, 18, 19):
            history.rewind(len(history) - 6)
        account.request(history.view())
        account.answer(answer)
        history.extend([answer, *results])
    account.request(history.view())
    assert max(account.sent) > 3


STEPS = st.lists(
    st.one_of(st.tuples(st.just("turn"), st.integers(1, 200)), st.tuples(st.just("rewind"), st.integers(0, 9))),
    min_size=6,
    max_size=14,
)


@given(shape=st.sampled_from(sorted(SHAPES)), steps=STEPS, views=st.integers(1, 3), options=st.sampled_from(OPTIONS))
def test_view_of_any_session_is_that_of_its_definition(
    shape: str, steps: list[tuple[str, int]], views: int, options: dict[str, Any]
) -> None:
    def views_of(engine_name: str) -> list[Any]:
        with using(engine_name):
            history, seen = recede.History(provider=VERIFYING, **options), []
            history.append({"role": "user", "content": "Look."})
            for number, (step, size) in enumerate(steps):
                if step == "rewind":
                    history.rewind(max(1, len(history) - size))
                else:
                    history.extend(SHAPES[shape](number, f"thought {number}", f"line {number}\n" * size))
                if number % views == 0:
                    seen.append((history.view(), history.view_json(), history.stats().reasoning_dropped))
            return seen

    first, *others = (views_of(engine_name) for engine_name in ENGINES)
    assert all(other == first for other in others)


@pytest.mark.parametrize(("model", "is_verified"), [("claude-opus-5-5", True), ("claude-opus-4-7", False)])
def test_a_provider_that_is_given_leaves_the_rule_to_the_model(model: str, is_verified: bool) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
    for number in range(30):
        thought = {"type": "thinking", "thinking": "Hm.", "signature": f"c2ln{number}"}
        use = {"type": "tool_use", "id": f"t{number}", "name": "run", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "a line of output\n" * 500}
        messages += [{"role": "assistant", "content": [thought, use]}, {"role": "user", "content": [result]}]
    body = json.dumps({"model": model, "messages": messages}).encode()
    masked = recede.proxy.RequestMasker(keep=3, provider="anthropic").mask("POST", "/v1/messages", {}, body)
    assert masked.masked_count and (masked.body.count(b'"thinking":') < 30) is is_verified
