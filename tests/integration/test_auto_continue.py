"""Answers that were cut, with the real clients against a provider on this machine."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import anthropic
import openai
import pytest

import recede
from provider_server import Answer, Failure, Server, call, calls, serving, text, thought
from support import user

GO = [user("Go.")]
CONTINUE = "Continue where you left off. Do not repeat what you already said."


class Asking:
    """One way to ask: a client, whole or async, of either provider; its answers in one form."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.server = server
        self.retries = 2

    def __call__(self, messages: list[Any] | None = None, **options: Any) -> Any:
        messages = GO if messages is None else messages
        options = {"model": "m", "max_tokens": 500, "messages": messages, **options}
        if self.name.startswith("async"):
            return asyncio.run(self._ask_async(options))
        client: Any = self._client(anthropic.Anthropic, openai.OpenAI)
        with client:
            return recede.designs.auto_continue(self._create(client), **options)

    async def _ask_async(self, options: dict[str, Any]) -> Any:
        client: Any = self._client(anthropic.AsyncAnthropic, openai.AsyncOpenAI)
        async with client:
            return await recede.designs.auto_continue_async(self._create(client), **options)

    @property
    def is_openai(self) -> bool:
        return self.name.endswith("openai")

    def _client(self, ours: Any, others: Any) -> Any:
        if self.is_openai:
            return others(api_key="none", base_url=f"{self.server.url}/v1", max_retries=self.retries)
        return ours(api_key="none", base_url=self.server.url, max_retries=self.retries)

    def _create(self, client: Any) -> Callable[..., Any]:
        create: Callable[..., Any] = client.chat.completions.create if self.is_openai else client.messages.create
        return create

    def said(self, response: Any) -> str | None:
        if self.is_openai:
            content: str | None = response.choices[0].message.content
            return content
        return "".join(block.text for block in response.content if block.type == "text")

    def reason(self, response: Any) -> str:
        """In Anthropic's words."""
        if not self.is_openai:
            return str(response.stop_reason)
        reason = response.choices[0].finish_reason
        return {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}.get(reason, reason)

    def output_tokens(self, response: Any) -> int:
        return int(response.usage.completion_tokens if self.is_openai else response.usage.output_tokens)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(params=["anthropic", "openai", "async anthropic", "async openai"])
def ask(request: pytest.FixtureRequest, server: Server) -> Asking:
    return Asking(request.param, server)


def cut(said: str) -> Answer:
    return text(said, stop="max_tokens")


# What was cut, and how often


def test_a_whole_answer_comes_as_it_is(ask: Asking) -> None:
    ask.server.script = [text("Done.")]
    response = ask()
    assert (ask.said(response), ask.reason(response)) == ("Done.", "end_turn")
    assert response.continuation == recede.agent.Continuation(1, (), None)
    assert len(ask.server.requests) == 1


def test_cut_once_it_goes_on_with_what_came(ask: Asking) -> None:
    ask.server.script = [cut("The answer is for"), text("ty-two.")]
    messages = list(GO)
    response = ask(messages)
    assert (ask.said(response), ask.reason(response)) == ("The answer is forty-two.", "end_turn")
    assert response.continuation == recede.agent.Continuation(2, ("text",), None)
    first, second = (request["messages"] for request in ask.server.requests)
    assert first == second[:1] == messages == GO
    said = second[1]["content"]
    assert (said if ask.is_openai else said[0]["text"]) == "The answer is for"
    assert second[2:] == [user(CONTINUE)]
    assert type(response).__name__ == ("ChatCompletion" if ask.is_openai else "Message")


def test_cut_twice_all_three_parts_are_joined(ask: Asking, caplog: pytest.LogCaptureFixture) -> None:
    ask.server.script = [cut("one "), cut("two "), text("three")]
    response = ask()
    assert (ask.said(response), ask.reason(response)) == ("one two three", "end_turn")
    assert response.continuation.requests == 3
    # What the second request had stands at the beginning of the third: a prompt cache serves it.
    _, second, third = (request["messages"] for request in ask.server.requests)
    assert third[: len(second)] == second
    assert len(third) == 5
    assert caplog.messages == [
        f"an answer was cut in its text (request {number}, max_tokens=500): it is sent back to be continued"
        for number in (1, 2)
    ]


def test_cut_for_ever_it_ends_after_three(ask: Asking, caplog: pytest.LogCaptureFixture) -> None:
    ask.server.script = [cut(f"{number} ") for number in range(9)]
    with caplog.at_level(logging.WARNING, "recede"):
        response = ask()
    assert (ask.said(response), ask.reason(response)) == ("0 1 2 ", "end_turn")
    assert response.continuation == recede.agent.Continuation(3, ("text",) * 3, None)
    assert len(ask.server.requests) == 3
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert caplog.messages[-1] == "an answer was cut in its text (request 3, max_tokens=500): it ends there"


def test_the_number_of_requests_can_be_set(ask: Asking) -> None:
    ask.server.script = [cut(f"{number} ") for number in range(9)]
    assert ask.said(ask(max_attempts=1)) == "0 "
    assert ask.said(ask(max_attempts=5)) == "1 2 3 4 5 "


def test_usage_is_summed_also_inside(ask: Asking) -> None:
    ask.server.script = [cut("one "), cut("two "), text("three")]
    usage = ask().usage
    if ask.is_openai:
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (30, 15, 45)
        assert usage.prompt_tokens_details.cached_tokens == 9
    else:
        assert (usage.input_tokens, usage.output_tokens) == (30, 15)
        assert usage.cache_creation.ephemeral_5m_input_tokens == 6


def test_a_response_that_was_put_together_is_dumped_like_any_other(ask: Asking) -> None:
    ask.server.script = [cut("one "), text("two")]
    response = ask()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dumped = json.loads(response.model_dump_json())
    assert "continuation" not in dumped
    message = dumped["choices"][0]["message"] if ask.is_openai else dumped
    assert "one two" in json.dumps(message["content"])


def test_what_is_said_again_at_the_joint_stands_once(ask: Asking) -> None:
    ask.server.script = [cut("It begins. These are twenty-two chars"), text("are twenty-two chars, and more.")]
    assert ask.said(ask()) == "It begins. These are twenty-two chars, and more."
    # 19 characters may be chance.
    ask.server.script = [cut("nineteen characters"), text("nineteen characters!")]
    assert ask.said(ask()) == "nineteen charactersnineteen characters!"
    ask.server.script = [cut("ab" * 30), text("ab" * 15 + "c")]
    assert ask.said(ask()) == "ab" * 30 + "c"


# A cut inside a call


def test_a_cut_inside_a_call_leaves_the_text_before_it(ask: Asking) -> None:
    whole, unfinished = call("run", {"n": 1}), {**call("run"), "partial": '{"path": "a'}
    ask.server.script = [
        calls(whole, unfinished, say="I look. ", stop="max_tokens"),
        calls(call("run", {"n": 2}), say="Again."),
    ]
    response = ask()
    sent = ask.server.requests[1]["messages"][1]
    assert "tool_calls" not in sent
    assert "tool_use" not in json.dumps(sent)
    assert ask.said(response) == "I look. Again."
    assert ask.reason(response) == "tool_use"
    assert response.continuation.cut == ("tool_use",)
    assert [request["max_tokens"] for request in ask.server.requests] == [500, 1_000]
    if ask.is_openai:
        [made] = response.choices[0].message.tool_calls
        assert made.function.arguments == '{"n": 2}'
    else:
        assert [block.type for block in response.content] == ["text", "tool_use"]
        assert response.content[1].input == {"n": 2}


def unfinished_call(say: str = "") -> Answer:
    return calls({**call("run"), "partial": '{"path": "a'}, say=say, stop="max_tokens")


def test_a_cut_inside_the_only_call_asks_again_with_twice_the_limit(
    ask: Asking, caplog: pytest.LogCaptureFixture
) -> None:
    ask.server.script = [unfinished_call(), calls(call("run", {"n": 2}), say="Again.")]
    reported: list[recede.agent.Cut] = []
    response = ask(on_cut=reported.append)
    first, second = ask.server.requests
    assert (second["messages"], second["max_tokens"]) == (first["messages"], 2 * first["max_tokens"])
    assert (ask.said(response), ask.reason(response)) == ("Again.", "tool_use")
    assert response.continuation == recede.agent.Continuation(2, ("tool_use",), None)
    assert ask.output_tokens(response) == 10
    assert reported == [recede.agent.Cut("tool_use", 1, 500, "retry")]
    assert caplog.messages == [
        "an answer was cut in a tool call (request 1, max_tokens=500): it is asked for with twice the limit"
    ]


def test_a_call_that_is_cut_again_ends_it_with_the_text_before_it(ask: Asking) -> None:
    ask.server.script = [unfinished_call("I write. "), unfinished_call("Here."), text("never asked for")]
    reported: list[recede.agent.Cut] = []
    response = ask(on_cut=reported.append)
    assert (ask.said(response), ask.reason(response)) == ("I write. Here.", "max_tokens")
    assert [cut.then for cut in reported] == ["retry", "end"]
    assert len(ask.server.requests) == 2
    assert "run" not in response.model_dump_json()


@pytest.mark.parametrize("again", ["Now I write.", "Now I write.\n", "Now I write. It is long.", "write."])
def test_a_short_text_that_a_retry_repeats_stands_once(ask: Asking, again: str) -> None:
    ask.server.script = [unfinished_call("Now I write."), calls(call("run", {"n": 2}), say=again)]
    assert ask.said(ask()) in ("Now I write.", again)


@pytest.mark.parametrize("more", ["I write.", "Here."])
def test_a_short_text_that_continues_a_cut_text_is_kept(ask: Asking, more: str) -> None:
    ask.server.script = [cut("Now I write."), text(more)]
    assert ask.said(ask()) == f"Now I write.{more}"


def test_a_continuation_after_more_room_keeps_the_room(ask: Asking) -> None:
    ask.server.script = [unfinished_call("one "), cut("two "), text("three")]
    response = ask()
    assert (ask.said(response), ask.reason(response)) == ("one two three", "end_turn")
    assert [request["max_tokens"] for request in ask.server.requests] == [500, 1_000, 1_000]


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ({"max_tokens_limit": 700}, [500, 700]),
        ({"max_tokens_limit": 500}, [500]),
        ({"max_tokens_limit": 50}, [500]),
        ({"max_attempts": 1}, [500]),
        ({"max_total_output_tokens": 600}, [500, 595]),
        ({"max_total_output_tokens": 5}, [5]),
    ],
)
def test_the_room_of_a_second_request_has_bounds(ask: Asking, options: dict[str, int], limits: list[int]) -> None:
    ask.server.script = [unfinished_call(), text("Again.")]
    response = ask(**options)
    assert [request["max_tokens"] for request in ask.server.requests] == limits
    assert ask.reason(response) == ("end_turn" if len(limits) == 2 else "max_tokens")


def test_without_a_limit_there_is_no_more_room_to_ask_for(server: Server) -> None:
    ask = Asking("openai", server)
    server.script = [unfinished_call(), text("never asked for")]
    response = ask(max_tokens=openai.omit)
    assert ask.reason(response) == "max_tokens"
    assert response.continuation == recede.agent.Continuation(1, ("tool_use",), None)
    assert not ask.said(response) and response.choices[0].message.tool_calls is None
    server.script = [unfinished_call("I write. "), text("Done.")]
    assert ask.said(ask(max_tokens=openai.omit)) == "I write. Done."
    server.script = [unfinished_call(), text("Done.")]
    assert ask.said(ask(max_tokens=openai.omit, max_completion_tokens=40)) == "Done."
    assert server.requests[-1]["max_completion_tokens"] == 80


def test_a_provider_that_refuses_more_room_ends_it_with_what_there_is(ask: Asking) -> None:
    ask.retries = 0
    ask.server.script = [unfinished_call("I write."), Failure(400, "max_tokens: too many")]
    response = ask()
    assert (ask.said(response), ask.reason(response)) == ("I write.", "max_tokens")
    assert "too many" in str(response.continuation.error)


def test_a_report_of_a_cut_that_fails_loses_nothing(ask: Asking, caplog: pytest.LogCaptureFixture) -> None:
    ask.server.script = [cut("one "), text("two")]
    assert ask.said(ask(on_cut=lambda cut: 1 / 0)) == "one two"
    assert "on_cut raised an error" in caplog.messages


def test_a_call_that_is_cut_in_the_last_part_is_left_out(ask: Asking) -> None:
    unfinished = {**call("run"), "partial": "{"}
    ask.server.script = [cut("one "), cut("two "), calls(unfinished, say="three", stop="max_tokens")]
    response = ask()
    assert (ask.said(response), ask.reason(response)) == ("one two three", "end_turn")
    assert "run" not in response.model_dump_json()


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_answer_is_not_sent_back(ask: Asking, blank: str) -> None:
    ask.server.script = [cut(blank), text("never asked for")]
    assert ask.reason(ask()) == "max_tokens"
    assert len(ask.server.requests) == 1


# Thinking


def thinking_asks(server: Server) -> list[Asking]:
    return [Asking("anthropic", server), Asking("async anthropic", server)]


def test_a_cut_inside_the_thinking_leaves_nothing_to_send_back(server: Server) -> None:
    for ask in thinking_asks(server):
        server.script = [Answer([{"type": "thinking", "thinking": "hm, le", "signature": ""}], "max_tokens")]
        response = ask()
        assert (response.content, response.stop_reason) == ([], "max_tokens")
        assert response.continuation.cut == ("thinking",)


def test_thinking_before_a_call_that_was_cut_is_that_of_the_next_answer(server: Server) -> None:
    for ask in thinking_asks(server):
        unfinished = {**call("run"), "partial": "{"}
        server.script = [
            Answer([thought("hm\n é"), unfinished], "max_tokens"),
            Answer([thought("again"), call("run")], "tool_use"),
        ]
        assert [block.type for block in ask().content] == ["thinking", "tool_use"]
        assert server.refusals == []


def test_whole_thinking_alone_is_kept_and_not_sent_back(server: Server) -> None:
    for ask in thinking_asks(server):
        unfinished = {**call("run"), "partial": "{"}
        server.script = [Answer([thought("hm\n é"), unfinished], "max_tokens"), text("never asked for")]
        response = ask(max_tokens_limit=500)
        assert [block.to_dict() for block in response.content] == server.answers[-1][:1]
        assert response.stop_reason == "max_tokens"
        assert response.continuation == recede.agent.Continuation(1, ("tool_use",), None)
        server.script.clear()


def test_whole_thinking_is_kept_byte_for_byte_and_leads(server: Server) -> None:
    for ask in thinking_asks(server):
        unsigned = {"type": "thinking", "thinking": "cut h", "signature": ""}
        server.script = [
            Answer([thought("hm\n é\\u00e9"), {"type": "text", "text": "The answer is for"}, unsigned], "max_tokens"),
            Answer([thought("and 😀 then"), {"type": "text", "text": "ty-two."}, call("run")], "tool_use"),
        ]
        response = ask()
        # The server checks the signatures of what it gets back.
        assert server.refusals == []
        (first, *_), (second, *_) = server.answers[-2:]
        sent = server.requests[-1]["messages"][1]["content"]
        assert sent == [first, {"type": "text", "text": "The answer is for"}]
        blocks = [block.to_dict() for block in response.content]
        assert blocks[:2] == [first, second]
        assert blocks[2] == {"type": "text", "text": "The answer is forty-two."}
        assert blocks[3]["type"] == "tool_use"
        assert response.continuation.cut == ("thinking",)


# Ends and errors


@pytest.mark.parametrize("reason", ["refusal", "model_context_window_exceeded"])
def test_it_stops_at_once_where_the_model_does(server: Server, reason: str) -> None:
    for name in ("anthropic", "async anthropic"):
        server.requests.clear()
        server.script = [cut("one "), text("two", stop=reason), text("never asked for")]
        response = Asking(name, server)()
        assert (response.content[0].text, response.stop_reason) == ("one two", reason)
        assert len(server.requests) == 2
        server.script = [text("no", stop=reason)]
        assert Asking(name, server)().stop_reason == reason


def test_a_content_filter_stops_it(server: Server) -> None:
    server.script = [cut("one "), calls(call("run"), say="two", stop="content_filter"), text("never asked for")]
    response = Asking("openai", server)()
    assert response.choices[0].finish_reason == "content_filter"
    assert response.choices[0].message.content == "one two"
    assert response.choices[0].message.tool_calls is None


def test_an_error_of_the_first_request_is_raised(ask: Asking) -> None:
    refused = (anthropic.BadRequestError, openai.BadRequestError)
    ask.server.script = [Failure(400, "invalid_request_error")]
    with pytest.raises(refused):
        ask()
    with pytest.raises(refused, match=r"too short|at least one message"):
        ask([])


def test_an_error_of_a_later_request_is_kept(ask: Asking) -> None:
    ask.server.script = [cut("one "), Failure(400, "invalid_request_error")]
    response = ask()
    assert (ask.said(response), ask.reason(response)) == ("one ", "max_tokens")
    assert isinstance(response.continuation.error, (anthropic.BadRequestError, openai.BadRequestError))
    assert response.continuation.requests == 2


def test_output_tokens_are_capped_in_all(ask: Asking, caplog: pytest.LogCaptureFixture) -> None:
    # The server bills 5 output tokens an answer.
    ask.server.script = [cut(f"{number} ") for number in range(9)]
    response = ask(max_total_output_tokens=10, max_attempts=9)
    assert (ask.said(response), ask.reason(response)) == ("0 1 ", "end_turn")
    assert ask.output_tokens(response) == 10
    assert [request["max_tokens"] for request in ask.server.requests] == [10, 5]
    assert caplog.messages[-1] == "an answer was cut in its text (request 2, max_tokens=5): it ends there"


# Without a client


def test_dicts_and_plain_objects_are_read_alike() -> None:
    def of_dicts(reason: str, said: str) -> Any:
        content = [{"type": "text", "text": said}]
        return {"content": content, "stop_reason": reason, "usage": {"output_tokens": 5}}

    def of_objects(reason: str, said: str) -> Any:
        return SimpleNamespace(
            content=[SimpleNamespace(type="text", text=said)],
            stop_reason=reason,
            usage=SimpleNamespace(output_tokens=5),
        )

    for make in (of_dicts, of_objects):
        parts = [make("max_tokens", "one "), make("end_turn", "two")]
        response = recede.designs.auto_continue(lambda parts=parts, **request: parts.pop(0), messages=GO)
        assert response.continuation.requests == 2
        if make is of_dicts:
            assert response["content"] == [{"type": "text", "text": "one two"}]
            assert response["usage"] == {"output_tokens": 10}
            json.dumps(response)
        else:
            assert (response.content[0].text, response.usage.output_tokens) == ("one two", 10)


def test_texts_with_citations_are_not_joined() -> None:
    cited = {"type": "text", "text": "It says so", "citations": [{"cited_text": "so"}]}
    parts = [
        {"content": [cited], "stop_reason": "max_tokens"},
        {"content": [{"type": "text", "text": " there."}], "stop_reason": "end_turn"},
    ]
    response = recede.designs.auto_continue(lambda **request: parts.pop(0), messages=GO)
    assert response["content"] == [cited, {"type": "text", "text": " there."}]


def test_wrong_options_and_answers_are_named() -> None:
    with pytest.raises(TypeError, match="max_attempts must be a whole number"):
        recede.designs.auto_continue(lambda **request: None, messages=GO, max_attempts="3")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_total_output_tokens must be at least 1"):
        recede.designs.auto_continue(lambda **request: None, messages=GO, max_total_output_tokens=0)
    with pytest.raises(TypeError, match="leave stream out"):
        recede.designs.auto_continue(lambda **request: None, messages=GO, stream=True)
    with pytest.raises(TypeError, match="returned a NoneType that is not a response"):
        recede.designs.auto_continue(lambda **request: None, messages=GO)
    for create in (None, "model", openai.OpenAI(api_key="none")):
        with pytest.raises(TypeError, match="create must be a function such as"):
            recede.designs.auto_continue(create, messages=GO)  # type: ignore[arg-type]
    for messages in (None, "Go.", {}, iter(GO), recede.History()):
        with pytest.raises(TypeError, match="messages must be a list, not"):
            recede.designs.auto_continue(lambda **request: pytest.fail("sent"), messages=messages)  # type: ignore[arg-type]


def test_an_async_client_wants_the_async_function_which_takes_both() -> None:
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}

    async def create(**request: Any) -> Any:
        return answer

    with pytest.raises(TypeError, match="create is async: use auto_continue_async"):
        recede.designs.auto_continue(create, messages=GO)
    for either in (create, lambda **request: answer):
        assert asyncio.run(recede.designs.auto_continue_async(either, messages=GO)) == answer


# What is said again, and what cannot be read


def test_the_longest_repetition_at_a_joint_counts() -> None:
    def by_definition(first: str, second: str) -> str:
        for at in range(max(0, len(first) - len(second)), len(first) - 19):
            if second.startswith(first[at:]):
                return first[:at] + second
        return first + second

    rng = random.Random(16)
    joined = 0
    for _ in range(3_000):
        # Few letters, so that much is said again, and again within itself.
        first = "".join(rng.choices(rng.choice(("a", "ab", "aab", "abc")), k=rng.randrange(80)))
        tail = "".join(rng.choices("ab", k=rng.randrange(8)))
        second = rng.choice((first[rng.randrange(len(first) + 1) :], first[-30:], "")) + tail
        expected = by_definition(first, second)
        assert recede.agent._parts.joined(first, second) == expected
        joined += expected != first + second
    assert joined > 500


def test_joining_texts_that_repeat_themselves_takes_linear_time() -> None:
    """A search that compares at each place would take minutes, beyond the time limit of a test."""
    count = 2_000_000
    texts = ["a" * count + "b", "a" * count + "c"]
    parts = [
        {"content": [{"type": "text", "text": said}], "stop_reason": reason}
        for said, reason in zip(texts, ("max_tokens", "end_turn"), strict=True)
    ]
    response = recede.designs.auto_continue(lambda **request: parts.pop(0), messages=GO)
    assert response["content"][0]["text"] == "".join(texts)


def test_a_part_with_half_a_character_is_sent_back_and_joined(ask: Asking) -> None:
    ask.server.script = [cut("It is \ud83d"), text("\ude00.")]
    response = ask()
    assert response.continuation == recede.agent.Continuation(2, ("text",), None)
    assert "It is \ufffd" in json.dumps(ask.server.requests[1], ensure_ascii=False)
    assert (ask.said(response) or "").encode("utf-16-le", "surrogatepass").decode("utf-16-le") == "It is 😀."


def test_parts_that_cannot_be_read_end_it_with_what_came() -> None:
    junk: list[Any] = [None, 5, "x", [], {}, [None], [5], [{}], [{"type": 5}], [{"type": "text", "text": 5}]]
    usages: list[Any] = [None, 5, "x", [], {"output_tokens": "many", "value": 1}, {"output_tokens": 5}, float("nan")]
    for odd in junk:
        for usage in usages:
            messages = [
                {"content": [{"type": "text", "text": "One "}], "stop_reason": "max_tokens", "usage": usages[-2]},
                {
                    "content": odd if isinstance(odd, (list, str)) else [odd],
                    "stop_reason": "max_tokens",
                    "usage": usage,
                },
            ]
            response = recede.designs.auto_continue(lambda parts=messages, **request: parts.pop(0), messages=GO)
            assert response["content"][0]["text"].startswith("One ")
            completions = [
                {"choices": [{"message": {"content": "One "}, "finish_reason": "length"}], "usage": usage},
                {"choices": [{"message": odd, "finish_reason": "length"}], "usage": usages[-2]},
            ]
            response = recede.designs.auto_continue(lambda parts=completions, **request: parts.pop(0), messages=GO)
            assert response["choices"][0]["message"]["content"] == "One "
            completions = [
                {"choices": [{"message": {"content": "One "}, "finish_reason": "length"}]},
                {"choices": [odd], "usage": usage},
            ]
            response = recede.designs.auto_continue(lambda parts=completions, **request: parts.pop(0), messages=GO)
            assert response["choices"][0]["message"]["content"] == "One "


def test_a_call_without_an_id_is_no_part_of_what_is_sent_back() -> None:
    unfinished = {"type": "tool_use", "name": "run", "input": {}}
    parts = [
        {"content": [{"type": "text", "text": "One "}, unfinished], "stop_reason": "max_tokens"},
        {"content": [{"type": "text", "text": "two."}], "stop_reason": "end_turn"},
    ]
    sent = []

    def create(messages: list[Any], **request: Any) -> Any:
        sent.append(messages)
        return parts.pop(0)

    recede.designs.auto_continue(create, messages=GO)
    assert sent[1][1]["content"] == [{"type": "text", "text": "One "}]
