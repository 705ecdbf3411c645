"""Doors that see usage, with `calibrate`: the next request is within the limit as the provider counts it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import recede
from recede.masker import Facts, Masker
from support import call, result, user

BESIDE = 1_500
"""Tokens of the system prompt and the tools that no door knows of."""
LIMIT = 8_000
TURNS = 40

History = list[Any]
View = Callable[[History], History]
Report = Callable[[int, History], None]


def session(turns: int = TURNS) -> History:
    messages: History = [user("Find the bug.")]
    for number in range(turns):
        text = f"line {number} of the log, as it was written then\n" * 20
        messages += [call(str(number), name="run"), result(str(number), text)]
    return messages


def tokens_of(view: History, per_char: float = 0.6) -> int:
    """What a provider counts whose tokens are short."""
    return BESIDE + round(per_char * recede.count_chars(view))


class Boxes:
    """An adapter for messages in a box."""

    def facts(self, box: History) -> Facts:
        [message] = box
        calls = [(one["id"], "run", 2) for one in message.get("tool_calls", ())]
        chars = len(message["content"] or "")
        if message["role"] == "tool":
            return Facts("tool", results=[(message["tool_call_id"], "run", chars)])
        return Facts(message["role"], chars, calls)

    def masked(self, box: History, texts: Mapping[int, str]) -> History:
        return [{**box[0], "content": texts[0]}]


def by_masker(**options: Any) -> tuple[View, Report]:
    masker: Masker[Any] = Masker(**options)
    return masker.view, lambda tokens, given: masker.reported({"input_tokens": tokens, "output_tokens": 5}, given)


def by_wrap(**options: Any) -> tuple[View, Report]:
    """A client of OpenAI, whose answers have the usage."""
    openai = pytest.importorskip("openai", reason="the client is not installed")
    httpx = pytest.importorskip("httpx2", reason="older releases have httpx")
    sent: list[History] = []

    def answer(request: Any) -> Any:
        sent.append(json.loads(request.content)["messages"])
        usage = {"prompt_tokens": tokens_of(sent[-1]), "completion_tokens": 5, "total_tokens": 0}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}
        said = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        return httpx.Response(200, json={**said, "usage": usage})

    http = httpx.Client(transport=httpx.MockTransport(answer))
    client: Any = recede.wrap(openai.OpenAI(api_key="none", http_client=http), **options)

    def view(messages: History) -> History:
        client.chat.completions.create(model="m", messages=messages)
        return sent[-1]

    return view, lambda tokens, messages: None


def by_history(**options: Any) -> tuple[View, Report]:
    history = recede.History(**options)

    def view(messages: History) -> History:
        history.extend(messages[len(history) :])
        return list(history.view())

    return view, lambda tokens, given: history.reported({"input_tokens": tokens, "output_tokens": 5})


DOORS = [by_masker, by_wrap, by_history]


def sent_tokens(door: Callable[..., tuple[View, Report]], **options: Any) -> list[int]:
    """What a provider counts of each request of a loop."""
    view, report = door(max_input_tokens=LIMIT, keep=8, provider="openai", **options)
    messages, counted = session(), []
    for end in range(3, len(messages) + 1, 2):
        counted.append(tokens_of(view(messages[:end])))
        report(counted[-1], messages[:end])
    return counted


@pytest.mark.parametrize("door", DOORS)
def test_requests_are_within_the_limit_once_usage_was_seen(door: Callable[..., tuple[View, Report]]) -> None:
    calibrated, plain = (sent_tokens(door, calibrate=calibrate) for calibrate in (True, False))
    assert max(plain) > 1.2 * LIMIT
    over = [place for place, tokens in enumerate(calibrated) if tokens > LIMIT]
    assert max(calibrated) <= 1.05 * LIMIT and not any(place + 1 in over for place in over)
    assert calibrated[:3] == plain[:3]
    assert max(calibrated) > 0.8 * LIMIT, "no more is masked than is needed"


def test_an_adapter_of_others_calibrates_too() -> None:
    masker: Masker[Any] = Masker(Boxes(), max_input_tokens=LIMIT, keep=8, provider="openai", calibrate=True)
    boxes = [[message] for message in session()]
    counted: list[int] = []
    for end in range(3, len(boxes) + 1, 2):
        view = masker.view(boxes[:end])
        counted.append(tokens_of([message for [message] in view]))
        masker.reported({"input_tokens": counted[-1], "output_tokens": 5}, boxes[:end])
    assert 0.8 * LIMIT < max(counted) <= 1.05 * LIMIT


def test_a_request_that_is_sent_again_and_earlier_ones_keep_their_limit() -> None:
    masker: Masker[Any] = Masker(max_input_tokens=LIMIT, keep=8, provider="openai", calibrate=True)
    messages = session(20)
    views = []
    for end in range(3, len(messages) + 1, 2):
        views.append(masker.view(messages[:end]))
        masker.reported({"input_tokens": tokens_of(views[-1]), "output_tokens": 5}, messages[:end])
        assert masker.view(messages[:end]) == views[-1], "the report counts from the next request on"
    assert "cleared" in json.dumps(views[-1])
    for place in (-2, -12):  # within the newest messages, and before them
        assert masker.view(messages[: 3 + 2 * (len(views) + place)]) == views[place]
    assert masker.stats().forked == masker.stats().rewound == 1


def test_what_was_measured_stays_where_the_tools_change() -> None:
    def last(*, calibrate: bool) -> History:
        masker: Masker[Any] = Masker(max_input_tokens=LIMIT, keep=8, provider="openai", calibrate=calibrate)
        messages, tools = session(26), [{"type": "function", "function": {"name": "run"}}]
        for end in range(3, len(messages) - 1, 2):
            view = masker.view(messages[:end], request={"tools": tools})
            masker.reported({"input_tokens": tokens_of(view), "output_tokens": 5}, messages[:end])
        return masker.view(messages, request={"tools": [*tools, {"type": "function", "function": {"name": "see"}}]})

    assert tokens_of(last(calibrate=True)) <= LIMIT < tokens_of(last(calibrate=False))


def test_what_the_request_tells_is_not_counted_twice() -> None:
    """System prompt and tools are counted, and part of the reported input."""

    def most(system: str, beside: int) -> int:
        masker: Masker[Any] = Masker(max_input_tokens=LIMIT, keep=8, provider="openai", calibrate=True)
        messages, tokens = session(), 0
        for end in range(3, len(messages) + 1, 2):
            view = masker.view(messages[:end], request={"instructions": system})
            tokens = max(tokens, recede.count_chars(view))
            counted = beside + round(0.3 * recede.count_chars(view))
            masker.reported({"input_tokens": counted, "output_tokens": 5}, messages[:end])
        return tokens

    assert most("word " * 1_000, 870) == pytest.approx(most("", 870), rel=0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"calibrate": 1}, "calibrate must be True or False, not int"),
        ({"calibrate": True}, "give max_input_tokens"),
        ({"calibrate": True, "max_input_tokens": 5, "token_counter": len}, "give calibrate or a token_counter"),
    ],
)
@pytest.mark.parametrize("door", [by_masker, by_wrap, by_history])
def test_calibrate_is_for_limits_at_every_door(door: Any, options: dict[str, Any], words: str) -> None:
    if door is by_wrap and options["calibrate"] == 1:
        words = "calibrate"
    with pytest.raises(TypeError, match=words):
        door(**options)
