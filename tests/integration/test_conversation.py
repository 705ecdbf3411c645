"""The loop of an agent, with the real clients against a provider that refuses what the real ones refuse."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import typing
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import TextBlock
from anthropic.types.beta import BetaContentBlock

import recede
from provider_server import Answer, Failure, Server, call, calls, serving, text, thought
from recede import History
from recede._objects import plain_message
from recede.agent._stream import Streamed
from recede.designs import Budget, Conversation
from support import result, tool_result, user

TOOLS = {
    "anthropic": [{"name": "run", "input_schema": {"type": "object"}}],
    "openai": [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}],
}


class Talk:
    """A conversation over one of the clients: plain or async, streamed or not."""

    def __init__(self, kind: str, server: Server) -> None:
        self.shape = "openai" if "openai" in kind else "anthropic"
        self.is_async = "async" in kind
        self.is_streamed = "stream" in kind
        self.server = server
        self.heard: list[str] = []
        self.ran: list[tuple[str, Any]] = []

    def __call__(self, run_tool: Any = None, **options: Any) -> Conversation:
        options.setdefault("tools", TOOLS[self.shape])
        if self.is_streamed:
            options.setdefault("on_text", self.heard.append)
        if self.shape == "anthropic":
            options["max_tokens"] = 500
        return Conversation(self._create, run_tool=run_tool or self._run, model="m", shape=self.shape, **options)

    def _run(self, name: str, value: Any) -> str:
        self.ran.append((name, value))
        return f"ran {value}"

    def _create(self, **request: Any) -> Any:
        client = self._client
        create = client.messages.create if self.shape == "anthropic" else client.chat.completions.create
        return create(**request)

    def _opened(self) -> Any:
        """A client: each turn has its own, since an async one lives in one loop."""
        kinds: dict[tuple[str, bool], Any] = {
            ("anthropic", False): anthropic.Anthropic,
            ("anthropic", True): anthropic.AsyncAnthropic,
            ("openai", False): openai.OpenAI,
            ("openai", True): openai.AsyncOpenAI,
        }
        url = self.server.url + ("/v1" if self.shape == "openai" else "")
        self._client = kinds[self.shape, self.is_async](api_key="none", base_url=url, max_retries=0)
        return self._client

    def turn(self, conversation: Conversation, said: Any) -> recede.agent.Answer:
        if self.is_async:
            return asyncio.run(self.in_loop(conversation.turn_async(said)))
        with self._opened():
            return conversation.turn(said)

    def resume(self, conversation: Conversation) -> recede.agent.Answer:
        if self.is_async:
            return asyncio.run(self.in_loop(conversation.resume_async()))
        with self._opened():
            return conversation.resume()

    async def in_loop(self, turn: Any) -> recede.agent.Answer:
        async with self._opened():
            answer: recede.agent.Answer = await turn
            return answer

    def results(self, conversation: Conversation) -> list[tuple[str, Any, bool]]:
        """Id, content and error flag of each result of the history."""
        found = []
        for message in kept(conversation):
            if message["role"] == "tool":
                content = message["content"]
                is_error = isinstance(content, str) and content.startswith("Error: ")
                content = content.removeprefix("Error: ") if is_error else content
                found.append((message["tool_call_id"], content, is_error))
            elif message["role"] == "user" and isinstance(message["content"], list):
                found += [(b["tool_use_id"], b["content"], b.get("is_error", False)) for b in message["content"]]
        return found


def kept(conversation: Conversation) -> list[Any]:
    """The history as it is saved: without objects of clients."""
    found: list[Any] = json.loads(conversation.history.to_json())
    return found


def bare(messages: list[Any]) -> list[Any]:
    """Messages as dicts, without the nulls that OpenAI's client sends back as they came."""
    forms = map(plain_message, messages)
    return [{name: field for name, field in form.items() if field is not None or name == "content"} for form in forms]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running
        assert running.refusals == [], "a request was refused"


KINDS = [f"{way}{name}{streamed}" for way in ("", "async ") for name in TOOLS for streamed in ("", " stream")]
SOME = ["anthropic stream", "openai", "async anthropic", "async openai stream"]
# Of a tool that the provider runs itself: an answer that pauses ends with one.
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}


@pytest.fixture(params=KINDS)
def talk(request: pytest.FixtureRequest, server: Server) -> Talk:
    return Talk(request.param, server)


@pytest.fixture(params=SOME)
def some_talk(request: pytest.FixtureRequest, server: Server) -> Talk:
    return Talk(request.param, server)


# A turn


def test_tools_run_until_the_model_asks_for_none(talk: Talk) -> None:
    talk.server.script = [
        calls(call("run", {"n": 1}), call("run", {"n": 2}), say="I look."),
        calls(call("run", {"path": "é"})),
        text("Done."),
        text("You are welcome."),
    ]
    conversation = talk(system="Be brief.")
    answer = talk.turn(conversation, "Go.")
    assert answer[:4] == ("Done.", "end_turn" if talk.shape == "anthropic" else "stop", 3, 3)
    assert answer.error is None
    assert talk.ran == [("run", {"n": 1}), ("run", {"n": 2}), ("run", {"path": "é"})]
    assert [content for _, content, _ in talk.results(conversation)] == [f"ran {value}" for _, value in talk.ran]
    assert talk.turn(conversation, "Thanks.").text == "You are welcome."
    assert bare(conversation.view()) == [*bare(talk.server.requests[-1]["messages"]), kept(conversation)[-1]]
    assert "".join(talk.heard) == ("I look.Done.You are welcome." if talk.is_streamed else "")
    if not (talk.is_streamed and talk.shape == "openai"):  # which tells its usage only where it is asked to
        assert recede._objects.read(answer.usage, "output_tokens" if talk.shape == "anthropic" else "total_tokens") in (
            15,
            45,
        )
    # The system prompt is sent with each request, where the provider wants it, and is not in the history.
    for request in talk.server.requests:
        if talk.shape == "anthropic":
            assert request["system"] == "Be brief."
        else:
            assert request["messages"][0] == {"role": "system", "content": "Be brief."}
    assert all(message["role"] != "system" for message in kept(conversation))


def test_a_stream_leaves_the_same_history_as_whole_answers() -> None:
    def script() -> list[Any]:
        blocks = [thought("hm\n é"), {"type": "text", "text": "I look, é."}, call("run", {"path": 'a"\\é', "n": [1]})]
        return [Answer(blocks, "tool_use"), text("Done.")]

    histories = {}
    for kind in KINDS:
        with serving(*script()) as server:
            talk = Talk(kind, server)
            conversation = talk()
            talk.turn(conversation, "Go.")
            messages = kept(conversation)
            for message in messages:
                message.pop("annotations", None)  # which streams do not have
            histories.setdefault(talk.shape, []).append(messages)
            assert server.refusals == []
    for of_shape in histories.values():
        assert len(of_shape) == 4
        assert all(messages == of_shape[0] for messages in of_shape)


def test_what_is_sent_is_masked_and_nothing_else_is_added(some_talk: Talk) -> None:
    talk = some_talk
    talk.server.script = [calls(call("run", {"n": number})) for number in range(40)] + [text("Done.")]
    conversation = talk(
        lambda name, value: "a line of the log\n" * 60, budget=Budget(1_000, 4, boundary="sliding"), max_tool_rounds=40
    )
    answer = talk.turn(conversation, "Go.")
    assert (answer.requests, answer.tool_calls) == (41, 40)
    said = set()
    for request in talk.server.requests:
        for message in request["messages"]:
            if message["role"] == "user" and isinstance(message["content"], str):
                said.add(message["content"])
        assert len(json.dumps(request)) < 18_000
    assert said == {"Go."}
    assert "observation masked" in json.dumps(talk.server.requests[-1])
    assert "observation masked" not in json.dumps(kept(conversation))
    assert conversation.history.recall(1) == "a line of the log\n" * 60
    assert conversation.history.stats().masked_count == 36


def test_without_a_budget_the_boundary_is_the_one_that_spares_caches() -> None:
    def create(**request: Any) -> Any:
        raise AssertionError

    def given(budget: Budget | None = None) -> dict[str, Any]:
        return Conversation(create, budget=budget).history._live.options.given

    default = {"design": "budget", "keep": 4, "threshold_tokens": 8_000, "token_counter": None}
    assert given() == default | {"boundary": "break_even", "provider": "ideal"}
    assert given(Budget(boundary="break_even")) == default | {"boundary": "break_even"}
    assert given(Budget(5)) == default | {"threshold_tokens": 5}
    assert given(Budget(5, 6, 10, max_input_tokens=99, exclude_tools=["x"])) == default | {
        "threshold_tokens": 5,
        "keep": 6,
        "mask_chunk": 10,
        "max_input_tokens": 99,
        "exclude_tools": ["x"],
    }
    own = History(max_input_tokens=500)
    assert Conversation(create, history=own).history is own


@pytest.mark.parametrize("fails_at", ["I look.", "found it", "Done."])
def test_a_token_counter_that_raises_loses_no_answer_and_no_result(fails_at: str, some_talk: Talk) -> None:
    talk = some_talk
    fails: list[str] = []

    def counter(words: str) -> int:
        if fails_at in words and not fails:
            fails.append(words)
            raise OSError("the tokenizer cannot be loaded")
        return len(words)

    talk.server.script = [calls(call("run"), say="I look."), text("Done."), text("Done again.")]
    conversation = talk(lambda name, value: "found it", budget=Budget(token_counter=counter))
    with pytest.raises(OSError, match="tokenizer"):
        talk.turn(conversation, "Go.")
    answer = talk.resume(conversation)
    written = json.dumps(kept(conversation))
    ran = "interrupted before it ended" if fails_at == "I look." else "found it"  # a tool runs once its call is stored
    assert fails and written.count("I look.") == written.count(ran) == 1
    assert written.count("Done.") == 1 and answer.text == ("Done again." if fails_at == "Done." else "Done.")
    assert recede.check_pairs(kept(conversation)).is_whole


def test_system_messages_of_a_history_are_the_users_for_anthropic(some_talk: Talk) -> None:
    """Such as a summary, whose history could be of any provider while it has no tool blocks."""
    some_talk.server.script = [text(f"answer {number} " * 20) for number in range(12)]
    history = History(max_input_tokens=375)
    conversation = some_talk(history=history, system="Be brief.")
    for number in range(12):
        some_talk.turn(conversation, f"question {number} " * 10)
    first = some_talk.server.requests[-1]["messages"][1 if some_talk.shape == "openai" else 0]
    assert first["role"] == ("system" if some_talk.shape == "openai" else "user")
    assert first["content"].startswith("Conversation summary:")
    assert history.view()[0]["role"] == "system"


def test_a_cut_answer_is_one_message_of_the_history(talk: Talk) -> None:
    talk.server.script = [
        text("The answer is for", stop="max_tokens"),
        text("ty-", stop="max_tokens"),
        calls(call("run"), say="two."),
        text("Done."),
    ]
    conversation = talk()
    answer = talk.turn(conversation, "Go.")
    assert (answer.text, answer.requests, answer.tool_calls) == ("Done.", 4, 1)
    assert len(conversation.history) == 4
    assert "forty-two." in json.dumps(kept(conversation)[1])
    assert "Continue where" not in json.dumps(kept(conversation))


def test_an_answer_that_stays_cut_ends_the_turn(some_talk: Talk) -> None:
    talk = some_talk
    unfinished = {**call("run"), "partial": "{"}
    talk.server.script = [calls(unfinished, stop="max_tokens"), text("Again.")]
    conversation = talk(max_tokens_limit=500)
    answer = talk.turn(conversation, "Go.")
    assert answer.stop_reason == ("length" if talk.shape == "openai" else "max_tokens")
    assert (answer.text, talk.ran) == ("", [])
    assert conversation.history.messages == [user("Go.")]
    assert talk.resume(conversation).text == "Again."
    assert len(conversation.history) == 2


def test_a_call_that_was_cut_is_asked_for_with_twice_the_limit(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    unfinished = {**call("write_file"), "partial": '{"path": "a'}
    talk.server.script = [
        calls(unfinished, stop="max_tokens"),
        calls(call("run", {"n": 1})),
        calls(unfinished, say="I write ", stop="max_tokens"),
        calls(call("run", {"n": 2}), say="it."),
        text("Done."),
    ]
    reported: list[recede.agent.Cut] = []
    limit = {"max_completion_tokens": 500} if talk.shape == "openai" else {}
    conversation = talk(on_cut=reported.append, **limit)
    answer = talk.turn(conversation, "Go.")
    assert (answer.text, answer.requests, answer.tool_calls) == ("Done.", 5, 2)
    assert talk.ran == [("run", {"n": 1}), ("run", {"n": 2})]
    name = "max_completion_tokens" if limit else "max_tokens"
    assert [request[name] for request in talk.server.requests] == [500, 1_000, 500, 1_000, 500]
    assert reported == [recede.agent.Cut("tool_use", 1, 500, "retry")] * 2
    assert [line for line in caplog.messages if "cut" in line] == [str(cut) for cut in reported]
    said = json.dumps(kept(conversation))
    assert "I write it." in said and "write_file" not in said


def test_a_call_that_is_cut_again_keeps_the_text_before_it(some_talk: Talk) -> None:
    unfinished = {**call("write_file"), "partial": '{"path": "a'}
    some_talk.server.script = [calls(unfinished, say=said, stop="max_tokens") for said in ("I write it.", "")]
    limit = {"max_completion_tokens": 500} if some_talk.shape == "openai" else {}
    conversation = some_talk(**limit)
    answer = some_talk.turn(conversation, "Go.")
    assert (answer.text, answer.requests) == ("I write it.", 2)
    assert answer.stop_reason == ("length" if some_talk.shape == "openai" else "max_tokens")
    assert len(conversation.history) == 2


def test_thinking_goes_back_unchanged_and_a_pause_is_gone_on_from(server: Server) -> None:
    for kind in ("anthropic", "anthropic stream", "async anthropic", "async anthropic stream"):
        talk = Talk(kind, server)
        server.script = [
            Answer([thought("first"), call("run")], "tool_use"),
            Answer([thought("second"), {"type": "text", "text": "Wait,"}, SEARCH], "pause_turn"),
            text(" done."),
        ]
        conversation = talk()
        assert talk.turn(conversation, "Go.").text == " done."
        first, second, _ = server.answers[-3:]
        assert kept(conversation)[1]["content"][0] == first[0]
        assert server.requests[-1]["messages"][-1]["content"][0] == second[0]


def test_what_a_model_refuses_with_is_its_answer() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I will not."}
    conversation = Conversation(
        lambda **request: {"choices": [{"message": message, "finish_reason": "stop"}]}, shape="openai"
    )
    assert conversation.turn("Go.").text == "I will not."
    assert conversation.history[1] == message


def test_an_empty_answer_is_not_stored(some_talk: Talk) -> None:
    some_talk.server.script = [text(""), text("Well.")]
    conversation = some_talk()
    assert some_talk.turn(conversation, "Go.").text == ""
    assert conversation.history.messages == [user("Go.")]
    assert some_talk.turn(conversation, "And?").text == "Well."


# Tools


def test_what_a_tool_raises_is_a_result(some_talk: Talk) -> None:
    def run_tool(name: str, value: Any) -> Any:
        if value["n"] == 1:
            raise FileNotFoundError("no such file")
        return {1: None, 2: None, 3: {"é": 1}, 4: [{"type": "text", "text": "parts"}]}[value["n"]]

    some_talk.server.script = [calls(*(call("run", {"n": n}) for n in (1, 2, 3, 4))), text("Done.")]
    conversation = some_talk(run_tool)
    some_talk.turn(conversation, "Go.")
    expected = [
        ("FileNotFoundError: no such file", True),
        ("", False),
        ('{"é": 1}', False),
        ([{"type": "text", "text": "parts"}], False),
    ]
    if some_talk.shape == "openai":
        messages = [message["content"] for message in kept(conversation) if message["role"] == "tool"]
        assert messages == ["Error: FileNotFoundError: no such file", "", '{"é": 1}', expected[3][0]]
    else:
        assert [result[1:] for result in some_talk.results(conversation)] == expected


def test_tools_run_in_order_unless_they_may_run_at_once(some_talk: Talk) -> None:
    made = [call("run", {"n": n}) for n in range(3)]
    order: list[int] = []
    together = threading.Barrier(3, timeout=20)

    def in_order(name: str, value: Any) -> str:
        order.append(value["n"])
        return str(value["n"])

    def at_once(name: str, value: Any) -> str:
        together.wait()  # passes only when all three are running
        return str(value["n"])

    for run_tool, parallel in ((in_order, False), (in_order, ["look"]), (at_once, True), (at_once, {"run"})):
        order.clear()
        some_talk.server.script = [calls(*(dict(block) for block in made)), text("Done.")]
        conversation = some_talk(run_tool, parallel_tools=parallel)
        some_talk.turn(conversation, "Go.")
        assert [content for _, content, _ in some_talk.results(conversation)] == ["0", "1", "2"]
        if run_tool is in_order:
            assert order == [0, 1, 2]


def test_a_tool_that_may_not_run_beside_others_waits_for_them(some_talk: Talk) -> None:
    running: list[str] = []
    overlaps: list[tuple[str, ...]] = []
    lock = threading.Lock()

    def run_tool(name: str, value: Any) -> str:
        with lock:
            running.append(name)
            overlaps.append(tuple(running))
        threading.Event().wait(0.02)
        with lock:
            running.remove(name)
        return name

    some_talk.server.script = [calls(*(call(name) for name in ("run", "run", "write", "run"))), text("Done.")]
    some_talk.turn(some_talk(run_tool, parallel_tools=["run"]), "Go.")
    assert ("write",) in overlaps
    assert not any("write" in names and len(names) > 1 for names in overlaps)


def test_async_tools_are_awaited_and_run_at_once(server: Server) -> None:
    for kind in ("async anthropic", "async openai stream"):
        talk = Talk(kind, server)
        arrived: list[int] = []
        all_there = asyncio.Event()

        async def run_tool(name: str, value: Any, arrived: Any = arrived, all_there: Any = all_there) -> str:
            arrived.append(value["n"])
            if len(arrived) == 2:
                all_there.set()
            await asyncio.wait_for(all_there.wait(), 20)
            return str(value["n"])

        server.script = [calls(call("run", {"n": 1}), call("run", {"n": 2})), text("Done.")]
        conversation = talk(run_tool, parallel_tools=True)
        talk.turn(conversation, "Go.")
        assert [content for _, content, _ in talk.results(conversation)] == ["1", "2"]


def test_a_tool_that_is_cancelled_ends_those_beside_it(server: Server) -> None:
    talk = Talk("async anthropic", server)
    ended: list[str] = []

    async def run_tool(name: str, value: Any) -> str:
        if value["n"] == 1:
            raise asyncio.CancelledError
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "never"

    server.script = [calls(call("run", {"n": 2}), call("run", {"n": 1})), text("Well.")]
    conversation = talk(run_tool, parallel_tools=True)
    with pytest.raises(asyncio.CancelledError):
        talk.turn(conversation, "Go.")
    assert ended == ["cancelled"]
    assert [is_error for _, _, is_error in talk.results(conversation)] == [True, True]
    assert talk.turn(conversation, "And?").text == "Well."


def test_rounds_of_tools_are_capped(some_talk: Talk) -> None:
    some_talk.server.script = [calls(call("run")) for _ in range(5)]
    conversation = some_talk(max_tool_rounds=2)
    answer = some_talk.turn(conversation, "Go.")
    assert (answer.stop_reason, answer.requests, len(some_talk.ran)) == ("max_tool_rounds", 3, 2)
    assert [is_error for _, _, is_error in some_talk.results(conversation)] == [False, False, True]
    assert "limit of 2 tool rounds" in some_talk.results(conversation)[-1][1]
    # And it goes on.
    some_talk.server.script = [text("Done.")]
    assert some_talk.turn(conversation, "Stop it.").text == "Done."


# What is stored can be sent

LONE = "caf\udce9"  # a name of a file that is not UTF-8, as os.listdir gives it
MENDED = "caf\ufffd"


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    recede._encodable.warn_once.cache_clear()
    return caplog


def test_lone_surrogates_of_tools_are_replaced_and_told_once(talk: Talk, warned: pytest.LogCaptureFixture) -> None:
    def run_tool(name: str, value: Any) -> Any:
        if value["n"] == 1:
            raise FileNotFoundError(LONE)
        return [None, None, LONE, {LONE: LONE}, [LONE], [{"type": "text", "text": LONE}], "\ud83d\ude00"][value["n"]]

    made = [call("run", {"n": n}) for n in range(1, 7)]
    talk.server.script = [calls(*made), text("Done."), text("Well.")]
    conversation = talk(run_tool)
    assert talk.turn(conversation, "Go.").text == "Done."
    assert talk.turn(conversation, LONE).text == "Well."
    assert kept(conversation)[-2] == user(MENDED)
    contents = [content for _, content, _ in talk.results(conversation)]
    assert contents == [
        f"FileNotFoundError: {MENDED}",
        MENDED,
        json.dumps({MENDED: MENDED}, ensure_ascii=False),
        json.dumps([MENDED], ensure_ascii=False),
        [{"type": "text", "text": MENDED}],
        "😀",
    ]
    assert [record.levelname for record in warned.records] == ["WARNING"]
    assert "lone surrogates" in warned.text


def test_lone_surrogates_of_answers_are_replaced(talk: Talk, warned: pytest.LogCaptureFixture) -> None:
    talk.server.script = [calls(call("run", {"path": LONE}), say=f"I look at {LONE}."), text("Done\ud800.")]
    conversation = talk()
    assert talk.turn(conversation, "Go.").text == "Done\ufffd."
    assert talk.ran == [("run", {"path": MENDED})]
    assert f"I look at {MENDED}." in json.dumps(kept(conversation)[1], ensure_ascii=False)
    assert "".join(talk.heard) == (f"I look at {MENDED}.Done\ufffd." if talk.is_streamed else "")
    assert len(warned.records) == 1
    talk.server.script = [text("Well.")]
    assert talk.turn(conversation, "And?").text == "Well."


def test_halves_of_a_character_that_come_one_by_one_are_joined(
    server: Server, warned: pytest.LogCaptureFixture
) -> None:
    # Each piece of a stream has seven characters.
    for kind in ("anthropic stream", "async openai stream"):
        talk = Talk(kind, server)
        server.script = [text("sixchr\ud83d\ude00 and more"), text("Well.")]
        conversation = talk()
        assert talk.turn(conversation, "Go.").text == "sixchr😀 and more"
        assert talk.heard[:2] == ["sixchr", "😀 and m"]
        assert talk.turn(conversation, "And?").text == "Well."
    assert warned.records == []


def test_a_result_that_cannot_be_sent_is_an_error(some_talk: Talk) -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)

    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def run_tool(name: str, value: Any) -> Any:
        if value["n"] == 2:
            raise MuteError
        return [cyclic, [{"type": "text", "text": "x", "more": object()}]][value["n"]]

    some_talk.server.script = [calls(*(call("run", {"n": n}) for n in range(3))), text("Done.")]
    conversation = some_talk(run_tool)
    assert some_talk.turn(conversation, "Go.").text == "Done."
    results = some_talk.results(conversation)
    assert [is_error for *_, is_error in results] == [True] * 3
    assert ["cannot be sent" in content for _, content, _ in results] == [True, True, False]
    assert results[2][1] == "MuteError"


def test_a_list_that_is_no_content_is_data(some_talk: Talk) -> None:
    given: list[list[Any]] = [
        ["a.txt"],
        [],
        [{"type": "file", "name": "a"}],
        [{"type": "text", "text": " "}],
        [{"text": "x"}],
    ]
    given.append([TextBlock(type="text", text="y", citations=None)])
    some_talk.server.script = [calls(*(call("run", {"n": n}) for n in range(6))), text("Done.")]
    conversation = some_talk(lambda name, value: given[value["n"]])
    assert some_talk.turn(conversation, "Go.").text == "Done."
    contents = [content for _, content, _ in some_talk.results(conversation)]
    assert contents[:5] == ['["a.txt"]', "[]", '[{"type": "file", "name": "a"}]', "", '[{"text": "x"}]']
    assert contents[5] == [{"type": "text", "text": "y", "citations": None}]


# Answers that cannot be read


def damaged(change: Any, *blocks: Any) -> Answer:
    """An answer with calls whose body, or whose events, are changed in place."""

    def damage(sent: Any) -> Any:
        change(sent)
        return sent

    answer = calls(*(blocks or (call("run", id="1"),)), say="I look.")
    answer.damage = damage
    return answer


def of_openai(change: Any) -> Any:
    return lambda body: change(body["choices"][0]["message"]["tool_calls"])


def of_anthropic(change: Any) -> Any:
    return lambda body: change(body["content"])


# What is done to the call of an answer -> what is run, and what the model is told where nothing is.
OPENAI_CALLS: dict[str, tuple[Any, Any]] = {
    "arguments nested deep": (lambda made: made[0]["function"].update(arguments="[" * 120_000), "not a JSON object"),
    "arguments that are an object": (lambda made: made[0]["function"].update(arguments={"n": 1}), {"n": 1}),
    "arguments that are a number": (lambda made: made[0]["function"].update(arguments=5), "not a JSON object"),
    "arguments that say a number": (lambda made: made[0]["function"].update(arguments="5"), "not a JSON object"),
    "arguments that say null": (lambda made: made[0]["function"].update(arguments="null"), {}),
    "arguments with NaN": (lambda made: made[0]["function"].update(arguments='{"n": NaN}'), "not a JSON object"),
    "a number beyond all": (lambda made: made[0]["function"].update(arguments='{"n": 1e999}'), "not a JSON object"),
    "no arguments": (lambda made: made[0]["function"].pop("arguments"), {}),
    "no id": (lambda made: made[0].pop("id"), {}),
    "an id that is none": (lambda made: made[0].update(id=5), {}),
    "an empty id": (lambda made: made[0].update(id=""), {}),
    "no type": (lambda made: made[0].pop("type"), {}),
    "no function": (lambda made: made[0].pop("function"), "names no tool"),
    "a function that is none": (lambda made: made[0].update(function=5), "names no tool"),
    "no name": (lambda made: made[0]["function"].pop("name"), "names no tool"),
    "null among them": (lambda made: made.insert(0, None), {}),
}  # fmt: skip
ANTHROPIC_CALLS: dict[str, tuple[Any, Any]] = {
    "no input": (lambda blocks: blocks[1].pop("input"), {}),
    "an input that is null": (lambda blocks: blocks[1].update(input=None), {}),
    "an input that is a number": (lambda blocks: blocks[1].update(input=5), "not a JSON object"),
    "an input that is a list": (lambda blocks: blocks[1].update(input=[1]), "not a JSON object"),
    "no id": (lambda blocks: blocks[1].pop("id"), {}),
    "an id of other characters": (lambda blocks: blocks[1].update(id="a b"), {}),
    "no name": (lambda blocks: blocks[1].pop("name"), "names no tool"),
    "a name of other characters": (lambda blocks: blocks[1].update(name="multi_tool.run"), {}),
    "null among them": (lambda blocks: blocks.insert(0, None), {}),
    "a block of no type": (lambda blocks: blocks.append({"text": "x"}), {}),
    "a block of a type that is none": (lambda blocks: blocks.append({"type": "x"}), {}),
    "a text that is none": (lambda blocks: blocks.append({"type": "text", "text": 5}), {}),
    "citations that are none": (lambda blocks: blocks[0].update(citations=5), {}),
    "a thought without signature": (lambda blocks: blocks.insert(0, {"type": "thinking", "thinking": "hm"}), {}),
    "a thought behind a text": (lambda blocks: blocks.append(thought("hm")), {}),
}
DAMAGED_CALLS = [
    *(("openai", name, of_openai(change), outcome) for name, (change, outcome) in OPENAI_CALLS.items()),
    *(("anthropic", name, of_anthropic(change), outcome) for name, (change, outcome) in ANTHROPIC_CALLS.items()),
]


@pytest.mark.parametrize(
    ("shape", "change", "outcome"),
    [(shape, *rest) for shape, _, *rest in DAMAGED_CALLS],
    ids=[f"{shape}: {name}" for shape, name, *_ in DAMAGED_CALLS],
)
def test_a_call_that_cannot_be_read_is_mended_or_answered(
    server: Server, shape: str, change: Any, outcome: Any
) -> None:
    talk = Talk(shape, server)
    server.script = [damaged(change), text("Done.")]
    conversation = talk()
    assert talk.turn(conversation, "Go.").text == "Done."
    assert "I look." in json.dumps(kept(conversation)[1])
    [(_, content, is_error)] = talk.results(conversation)
    if isinstance(outcome, str):
        assert talk.ran == []
        assert (outcome in content, is_error) == (True, True)
    else:
        assert [value for _, value in talk.ran] == [outcome]
        assert not is_error
    server.script = [text("Well.")]
    assert talk.turn(conversation, "And?").text == "Well."
    assert recede.check_pairs(conversation.history.messages).is_whole


@pytest.mark.parametrize("levels", [150, 300, 900])
def test_an_input_that_is_nested_deep_is_not_run_or_can_be_sent(levels: int, server: Server) -> None:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    for kind in ("anthropic", "anthropic stream", "openai", "openai stream"):
        talk = Talk(kind, server)
        server.script = [calls(call("run", value)), text("Done.")]
        conversation = talk()
        try:
            assert talk.turn(conversation, "Go.").text == "Done."
        except RecursionError:  # of the client, which read nothing of it
            assert levels == 900
            assert conversation.history.messages == [user("Go.")]
            server.script = [text("Done.")]
        assert len(talk.ran) == (levels < 200)
        server.script = [text("Well.")]
        assert talk.turn(conversation, "And?").text == "Well."


def test_ids_that_come_again_become_others(server: Server) -> None:
    for shape in TOOLS:
        talk = Talk(shape, server)
        server.script = [calls(call("run", {"n": n}, id="1"), call("run", {"n": n + 1}, id="1")) for n in (1, 3)]
        server.script.append(text("Done."))
        conversation = talk()
        assert talk.turn(conversation, "Go.").text == "Done."
        assert [value for _, value in talk.ran] == [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]
        ids = [call_id for call_id, *_ in talk.results(conversation)]
        assert len(ids) == 4
        assert len(set(ids)) == (4 if shape == "anthropic" else 3)  # OpenAI wants this in one message only


def test_a_tool_may_have_a_name_that_no_provider_knows(server: Server) -> None:
    tools = [{"name": "files.run", "input_schema": {}}]
    answers = [calls(call("files.run", id="1")), calls(call("other.run", id="2")), text("Done.")]
    ran = []

    def create(**request: Any) -> Any:
        answer = answers.pop(0)
        return {"role": "assistant", "content": answer.blocks, "stop_reason": answer.stop}

    conversation = Conversation(create, tools=tools, run_tool=lambda name, value: ran.append(name))
    assert conversation.turn("Go.").text == "Done."
    assert ran == ["files.run", "other_run"]


@pytest.mark.parametrize("written", ["5", "null", "[1]", '{"n": ', "NaN", '{"n": 1e999}', "[" * 5_000])
def test_a_streamed_input_that_is_no_object_is_not_run(server: Server, written: str) -> None:
    for kind in ("anthropic stream", "async anthropic stream", "openai stream"):
        talk = Talk(kind, server)
        server.script = [calls({**call("run"), "partial": written}), text("Done."), text("Well.")]
        conversation = talk()
        assert talk.turn(conversation, "Go.").text == "Done."
        [(*_, is_error)] = talk.results(conversation)
        assert talk.ran == ([("run", {})] if written == "null" else [])
        assert is_error == (written != "null")
        assert talk.turn(conversation, "And?").text == "Well."


def test_what_is_no_response_leaves_what_was_said() -> None:
    for response in (None, 5, "text", {}, {"content": None}, {"choices": []}, {"choices": {"0": {}}}):
        conversation = Conversation(lambda response=response, **request: response)
        with pytest.raises(TypeError, match="not a response"):
            conversation.turn("Go.")
        assert conversation.history.messages == [user("Go.")]
    for empty in ({"choices": [None]}, {"choices": [{"message": 5}]}, {"content": [None, 5]}):
        conversation = Conversation(lambda empty=empty, **request: empty)
        assert conversation.turn("Go.").text == ""
        assert conversation.history.messages == [user("Go.")]
    conversation = Conversation(lambda **request: {"content": "A mere text.", "stop_reason": "end_turn"})
    assert conversation.turn("Go.").text == "A mere text."


def test_a_pause_that_ends_in_white_space_is_gone_on_from(server: Server) -> None:
    talk = Talk("anthropic", server)
    server.script = [Answer([*text("Wait, \n").blocks, SEARCH], "pause_turn"), text("done.")]
    assert talk.turn(talk(), "Go.").text == "done."


def test_fields_that_openai_does_not_know_are_left_out() -> None:
    message = {"role": "robot", "content": "Done.", "refusal": 5, "audio": None, "reasoning_content": "hm", "x": 1}
    conversation = Conversation(lambda **request: {"choices": [{"message": message}]}, shape="openai")
    assert conversation.turn("Go.").text == "Done."
    assert conversation.history[1] == {"role": "assistant", "content": "Done.", "reasoning_content": "hm"}


def test_blocks_that_a_client_knows_are_kept() -> None:
    union = typing.get_args(typing.get_args(BetaContentBlock)[0])
    kinds = {typing.get_args(block.model_fields["type"].annotation)[0] for block in union}
    assert len(kinds) > 10
    for kind in kinds:
        block = {"type": kind, "text": "x", "thinking": "x", "signature": "x", "data": "x", "id": "1", "name": "run"}
        block |= {"input": {}, "tool_use_id": "1"}
        content = [block, {"type": "text", "text": "y"}]
        answer = recede._answer.answer_of({"content": content, "stop_reason": "end_turn"})
        assert answer is not None
        assert len(answer["content"]) == 2, kind


# Streams whose events cannot be read

START = {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {}}}
ENDED = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}


def begun(index: Any, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: Any, said: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": said}}


def written(index: Any, said: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": said}}


SAYS = begun(0, type="text", text="")
STREAMS: dict[str, list[Any]] = {
    "a null block": [START, begun(0), {**SAYS, "content_block": None}, piece(0, "One "), piece(0, "two."), ENDED],
    "a wrong index": [START, SAYS, piece(0, "One "), piece(7, "two."), ENDED],
    "an index that is none": [START, begun("0", type="text", text=""), piece(None, "One "), piece([], "two."), ENDED],
    "events before the start": [SAYS, piece(0, "One "), START, piece(0, "two."), ENDED],
    "no start": [SAYS, piece(0, "One "), piece(0, "two."), ENDED],
    "no beginning of the block": [START, piece(0, "One "), piece(0, "two."), ENDED],
    "two beginnings": [START, SAYS, piece(0, "One "), SAYS, piece(0, "two."), ENDED],
    "two starts": [START, SAYS, piece(0, "One "), START, piece(0, "two."), ENDED],
    "no text": [START, begun(0, type="text", text=5), piece(0, "One "), piece(0, 5), piece(0, "two."), ENDED],
    "no delta": [START, SAYS, piece(0, "One "), {**piece(0, ""), "delta": None}, piece(0, "two."), ENDED],
    "events that are none": [None, 5, START, "x", SAYS, [], piece(0, "One "), {}, piece(0, "two."), {"type": 5}, ENDED],
    "a usage that is none": [START, SAYS, piece(0, "One two."), {**ENDED, "usage": 5}],
    "a message that is none": [{**START, "message": 5}, SAYS, piece(0, "One two."), ENDED],
    "an end without reason": [START, SAYS, piece(0, "One two."), {"type": "message_stop"}],
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_with_events_that_cannot_be_read_gives_what_came(name: str) -> None:
    heard: list[str] = []
    conversation = Conversation(lambda **request: iter(STREAMS[name]), on_text=heard.append)
    answer = conversation.turn("Go.")
    assert (answer.text, "".join(heard)) == ("One two.", "One two.")
    assert answer.stop_reason == (None if name == "an end without reason" else "end_turn")
    assert conversation.history[1] == {"role": "assistant", "content": [{"type": "text", "text": "One two."}]}


def test_a_call_of_which_a_piece_was_lost_is_not_run() -> None:
    """What is left of its input may be sound, and mean something else."""
    call_1 = begun(0, type="tool_use", id="1", name="rm", input={})
    lost = {"type": "content_block_delta", "index": 0, "delta": None}
    ended = {**ENDED, "delta": {"stop_reason": "tool_use"}}
    of_anthropic = [START, call_1, written(0, '{"path": "/tmp'), lost, written(0, '"}'), ended]
    of_openai = [
        {"choices": [{"delta": {"tool_calls": [delta]}}]}
        for delta in (
            {"index": 0, "id": "1", "function": {"name": "rm", "arguments": '{"path": "/tmp'}},
            {"index": 0, "function": {"arguments": 5}},
            {"index": 0, "function": {"arguments": '"}'}},
        )
    ]
    of_openai.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    done = {
        "anthropic": [START, SAYS, piece(0, "Done."), ENDED],
        "openai": [{"choices": [{"delta": {"content": "Done."}, "finish_reason": "stop"}]}],
    }
    for shape, events in (("anthropic", of_anthropic), ("openai", of_openai)):
        streams = [events, done[shape]]
        ran: list[Any] = []
        conversation = Conversation(
            lambda streams=streams, **request: iter(streams.pop(0)),
            on_text=lambda text: None,
            shape=shape,  # type: ignore[arg-type]
            tools=[{}],
            run_tool=lambda name, value, ran=ran: ran.append(value),
        )
        assert conversation.turn("Go.").text == "Done."
        assert ran == []
        assert "not a JSON object" in json.dumps(kept(conversation)[2])


def test_thinking_of_a_stream_that_lost_something_is_not_sent_back() -> None:
    """Its signature would no longer fit, and the provider refuse every later request."""
    thinks = [
        begun(0, type="thinking", thinking="", signature=""),
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x"}},
    ]
    rest = [begun(1, type="text", text=""), piece(1, "Done."), ENDED]
    for lost in (None, {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta"}}):
        events = [START, *thinks, *([] if lost is None else [lost]), *rest]
        conversation = Conversation(lambda events=events, **request: iter(events), on_text=lambda text: None)
        assert conversation.turn("Go.").text == "Done."
        assert [block["type"] for block in kept(conversation)[1]["content"]] == ["thinking", "text"][lost is not None :]


def test_calls_of_a_stream_are_told_apart_without_their_index() -> None:
    def delta(call_id: Any, name: Any, arguments: Any, **index: Any) -> Any:
        made = {**index, "id": call_id, "function": {"name": name, "arguments": arguments}}
        return {"choices": [{"delta": {"tool_calls": [made]}}]}

    streams = [
        [
            delta("1", "run", '{"n": '),
            delta("", "", "1}"),
            delta("2", "run", {"n": 2}, index=None),
            delta(None, None, None, index=9),
            {"choices": [{"delta": None, "finish_reason": "tool_calls"}]},
        ],
        [{"choices": [{"delta": {"content": "Done."}, "finish_reason": "stop"}]}],
    ]
    ran: list[Any] = []
    conversation = Conversation(
        lambda **request: iter(streams.pop(0)),
        on_text=lambda text: None,
        tools=TOOLS["openai"],
        run_tool=lambda name, value: ran.append(value),
    )
    assert conversation.turn("Go.").text == "Done."
    assert ran == [{"n": 1}, {"n": 2}]


def test_partial_never_raises() -> None:
    junk: list[Any] = [
        None,
        True,
        5,
        -1,
        0.5,
        "",
        "x",
        "\ud800",
        [],
        [None],
        [[]],
        {},
        {"type": None},
        {"type": "text"},
    ]
    junk += [{"type": ["x"]}, {"function": 5}, {"index": {}}, object()]
    models: list[Any] = [START, SAYS, begun(1, type="tool_use", id="1", name="run", input={}), piece(0, "x"), ENDED]
    models += [written(1, "{"), {"type": "message_stop"}]
    call_1 = {"index": 0, "id": "1", "type": "function", "function": {"name": "run", "arguments": "{"}}
    chunk = {
        "choices": [{"index": 0, "delta": {"content": "x", "tool_calls": [call_1]}, "finish_reason": None}],
        "usage": {},
    }

    def places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
        yield path
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            yield from places(value[key], *path, key)

    def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
        if not path:
            return new
        value = value.copy()
        value[path[0]] = changed(value[path[0]], path[1:], new)
        return value

    count = 0
    for sound in (models, [chunk, chunk, chunk]):
        for at, event in enumerate(sound):
            for path in places(event):
                for new in junk:
                    streamed = Streamed()
                    for other in [*sound[:at], changed(event, path, new), *sound[at:], new, *sound]:
                        streamed.add(other).encode()
                        partial = streamed.partial()
                        if partial is not None:
                            recede._answer.answer_of(partial)
                    count += 1
    assert count > 500


# What goes wrong


def test_a_request_that_fails_leaves_what_was_said(talk: Talk) -> None:
    talk.server.script = [Failure(400, "invalid_request_error"), text("Done.")]
    conversation = talk()
    with pytest.raises((anthropic.BadRequestError, openai.BadRequestError)):
        talk.turn(conversation, "Go.")
    assert conversation.history.messages == [user("Go.")]
    assert talk.resume(conversation).text == "Done."
    assert len(conversation.history) == 2


def test_a_connection_that_breaks_loses_nothing_received(server: Server) -> None:
    for kind in ("anthropic stream", "openai stream", "async anthropic stream", "async openai stream"):
        talk = Talk(kind, server)
        server.script = [
            Answer([{"type": "text", "text": "This is what came before the end. " * 2}], drop_after=6),
            text("ever it was."),
        ]
        conversation = talk()
        with pytest.raises(Exception) as raised:  # noqa: PT011 - each client has its own
            talk.turn(conversation, "Go.")
        assert "peer closed" in str(raised.value) or "onnection" in str(raised.value)
        heard = "".join(talk.heard)
        assert 5 < len(heard) < 60
        assert [message["role"] for message in kept(conversation)] == ["user", "assistant"]
        assert heard in json.dumps(kept(conversation)[1])
        assert talk.resume(conversation).text == "ever it was."
        assert kept(conversation)[2]["content"].startswith("Continue where you left off.")


def test_a_stream_that_ends_in_silence_is_an_error() -> None:
    events = [
        {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half a"}},
    ]
    conversation = Conversation(lambda **request: iter(events), on_text=lambda text: None)
    with pytest.raises(ConnectionError, match="before the answer was whole"):
        conversation.turn("Go.")
    assert conversation.history[1]["content"] == [{"type": "text", "text": "Half a"}]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_a_stream_is_closed_however_it_ends(error: type[BaseException] | None, is_async: bool) -> None:
    closed: list[bool] = []

    class Stream:
        def __iter__(self) -> Iterator[Any]:
            return iter([START, SAYS, piece(0, "One two."), ENDED])

        async def __aiter__(self) -> Any:
            for event in self:
                yield event

        def close(self) -> None:
            closed.append(True)

    def on_text(text: str) -> None:
        if error is not None:
            raise error

    conversation = Conversation(lambda **request: Stream(), on_text=on_text)
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        asyncio.run(conversation.turn_async("Go.")) if is_async else conversation.turn("Go.")
    assert closed == [True]
    assert kept(conversation)[1]["content"] == [{"type": "text", "text": "One two."}]


def test_an_interruption_in_the_middle_of_an_answer_keeps_what_came(some_talk: Talk) -> None:
    if not some_talk.is_streamed:
        some_talk.is_streamed = True
    heard: list[str] = []

    def stop(said: str) -> None:
        heard.append(said)
        if len(heard) == 3:
            raise KeyboardInterrupt

    some_talk.server.script = [calls(call("run"), say="A text that is longer than three pieces."), text("Done.")]
    conversation = some_talk(on_text=stop)
    with pytest.raises(KeyboardInterrupt):
        some_talk.turn(conversation, "Go.")
    assert len(conversation.history) == 2
    assert "".join(heard) in json.dumps(kept(conversation)[1])
    assert recede.check_pairs(conversation.history.messages).findings == ()
    conversation.on_text = None
    assert some_talk.turn(conversation, "Go on.").text == "Done."


@pytest.mark.parametrize("parallel", [False, True])
def test_an_interruption_of_a_tool_leaves_no_call_open(some_talk: Talk, parallel: bool) -> None:
    first_done = threading.Event()

    def run_tool(name: str, value: Any) -> str:
        if value["n"] == 2:
            first_done.wait(20)
            raise KeyboardInterrupt
        if value["n"] == 1:
            threading.Timer(0.05, first_done.set).start()
        return "done"

    made = [call("run", {"n": n}) for n in (1, 2, 3)] if not parallel else [call("run", {"n": n}) for n in (1, 2)]
    some_talk.server.script = [calls(*made), text("Well.")]
    conversation = some_talk(run_tool, parallel_tools=parallel)
    with pytest.raises(KeyboardInterrupt):
        some_talk.turn(conversation, "Go.")
    results = some_talk.results(conversation)
    assert results[0][1:] == ("done", False)
    assert all(result[1:] == ("interrupted before it ended", True) for result in results[1:])
    assert len(results) == len(made)
    assert some_talk.turn(conversation, "And?").text == "Well."


@pytest.mark.parametrize("where", ["answer", "tool"])
def test_a_cancelled_turn_leaves_a_usable_state(server: Server, where: str) -> None:
    for kind in ("async anthropic stream", "async openai stream", "async openai"):
        talk = Talk(kind, server)
        gate = threading.Event()
        began = talk.ran if where == "tool" else talk.heard if talk.is_streamed else server.requests

        async def run_tool(name: str, value: Any, talk: Talk = talk) -> str:
            talk.ran.append((name, value))
            await asyncio.sleep(60)
            return "never"

        server.script = [Answer([{"type": "text", "text": "I look. " * 9}, call("run")], "tool_use")]
        server.script[0].pause = gate if where == "answer" else None
        server.requests.clear()
        conversation = talk(run_tool)

        async def cancelled(talk: Talk = talk, conversation: Conversation = conversation, began: Any = began) -> None:
            turn = asyncio.create_task(talk.in_loop(conversation.turn_async("Go.")))
            while not began:
                await asyncio.sleep(0.001)
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn

        asyncio.run(cancelled())
        gate.set()
        assert recede.check_pairs(conversation.history.messages).is_whole
        server.script = [text("Done.")]
        assert talk.turn(conversation, "Again.").text == "Done."


def test_calls_that_are_open_in_a_history_get_results_first(server: Server) -> None:
    for shape in TOOLS:
        talk = Talk(shape, server)
        server.script = [text("Done.")]
        history = History()
        if shape == "anthropic":
            history.extend([user("Go."), {"role": "assistant", "content": [call("run", id="1")]}])
            history.append({"role": "assistant", "content": [call("run", id="2")]})
            history.append(user([tool_result("1", "x")]))
        else:
            made = calls(call("run", id="1"), call("run", id="2"))
            tool_calls = [
                {"id": block["id"], "type": "function", "function": {"name": "run", "arguments": "{}"}}
                for block in made.blocks
            ]
            history.extend([user("Go."), {"role": "assistant", "content": None, "tool_calls": tool_calls}])
            history.append(result("1", "x"))
        assert talk.turn(talk(history=history), "And?").text == "Done."
        assert history.recall("2").endswith("interrupted before it ended")


def test_a_continuation_that_fails_keeps_the_beginning(some_talk: Talk) -> None:
    some_talk.server.script = [text("The begin", stop="max_tokens"), Failure(529, "overloaded_error"), text("ning.")]
    conversation = some_talk()
    answer = some_talk.turn(conversation, "Go.")
    assert answer.text == "The begin"
    assert isinstance(answer.error, (anthropic.APIStatusError, openai.APIStatusError))
    assert some_talk.resume(conversation).text == "ning."


def test_one_turn_at_a_time() -> None:
    started, go = threading.Event(), threading.Event()

    def create(**request: Any) -> Any:
        started.set()
        go.wait(20)
        return {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}

    conversation = Conversation(create)
    thread = threading.Thread(target=conversation.turn, args=["Go."])
    thread.start()
    started.wait(20)
    with pytest.raises(RuntimeError, match="in progress"):
        conversation.turn("Me too.")
    go.set()
    thread.join()
    assert len(conversation.history) == 2


# Options


def test_the_provider_is_told_by_the_client_or_the_tools() -> None:
    def create(**request: Any) -> Any:
        raise AssertionError

    with anthropic.Anthropic(api_key="x") as ours, openai.OpenAI(api_key="x") as others:
        assert Conversation(ours.messages.create).shape == "anthropic"
        assert Conversation(ours.beta.messages.create).shape == "anthropic"
        assert Conversation(others.chat.completions.create).shape == "openai"
        with pytest.raises(TypeError, match="chat completions"):
            Conversation(others.responses.create)
    assert Conversation(create).shape == "anthropic"
    for shape, tools in TOOLS.items():
        assert Conversation(create, tools=tools, run_tool=print).shape == shape
    assert Conversation(create, shape="openai").shape == "openai"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"tools": [{}]}, TypeError, "give run_tool"),
        ({"budget": Budget(), "history": History()}, TypeError, "a budget, or a history"),
        ({"shape": "gemini"}, ValueError, "shape must be"),
        ({"tools": None}, TypeError, "tools must be a list of definitions, not NoneType"),
        ({"tools": {"name": "run"}, "run_tool": print}, TypeError, "tools must be a list of definitions, not dict"),
        ({"tools": [{}], "run_tool": "run"}, TypeError, "run_tool must be callable"),
        ({"on_text": "print"}, TypeError, "on_text must be callable"),
        ({"budget": 8_000}, TypeError, "budget must be a recede.designs.Budget or None, not int"),
        (
            {"history": []},
            TypeError,
            r"history must be a recede.History \(of a list, History.from_messages\) or None",
        ),
        ({"parallel_tools": "run"}, TypeError, "parallel_tools must be"),
        ({"parallel_tools": None}, TypeError, "parallel_tools must be True, False or a list of tool names, not None"),
        ({"messages": []}, TypeError, "makes messages itself"),
        ({"stream": True}, TypeError, "makes stream itself"),
        ({"max_tool_rounds": -1}, ValueError, "max_tool_rounds must be at least 0"),
        ({"max_tool_rounds": 1.0}, TypeError, "max_tool_rounds must be a whole number"),
        ({"max_attempts": 0}, ValueError, "max_attempts must be at least 1"),
    ],
)
def test_a_wrong_option_is_named_at_once(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Conversation(lambda **request: None, **options)


def test_what_cannot_be_said_is_refused_before_anything_is_sent() -> None:
    conversation = Conversation(SimpleNamespace().__init__)
    for blank in ("", " \n", [], [{"type": "text", "text": " "}], [{"type": "text"}, TextBlock(type="text", text="")]):
        with pytest.raises(ValueError, match="the message is empty"):
            conversation.turn(blank)
    with pytest.raises(TypeError, match="a message must be a text"):
        conversation.turn(5)
    with pytest.raises(ValueError, match="the history is empty"):
        conversation.resume()
    with pytest.raises(TypeError, match="create must be a function"):
        Conversation("model")  # type: ignore[arg-type]
    assert len(conversation.history) == 0


def test_async_functions_want_an_async_turn() -> None:
    async def create(**request: Any) -> Any:
        raise AssertionError

    async def run_tool(name: str, value: Any) -> str:
        raise AssertionError

    with pytest.raises(TypeError, match="create is async: use turn_async"):
        Conversation(create).turn("Go.")
    with pytest.raises(TypeError, match="run_tool is async: use turn_async"):
        Conversation(lambda **request: None, run_tool=run_tool, tools=[{}]).turn("Go.")
    call_block = {"type": "tool_use", "id": "1", "name": "run", "input": {}}
    conversation = Conversation(
        lambda **request: {"role": "assistant", "content": [call_block]},
        run_tool=lambda name, value: run_tool(name, value),  # known to be async once it is called
        tools=[{}],
    )
    with pytest.raises(TypeError, match="run_tool is async: use turn_async"):
        conversation.turn("Go.")

    async def hear(text: str) -> None:
        raise AssertionError

    with pytest.raises(TypeError, match=r"a stream that is not async: use turn$"):
        asyncio.run(Conversation(lambda **request: iter([]), on_text=print).turn_async("Go."))
    with serving(text("Done.")) as server, anthropic.Anthropic(api_key="none", base_url=server.url) as client:
        conversation = Conversation(client.messages.create, model="m", max_tokens=9, on_text=hear)
        with pytest.raises(TypeError, match="on_text is async: use turn_async"):
            conversation.turn("Go.")
        assert kept(conversation) == [
            user("Go."),
            {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        ]


def test_a_blank_part_of_a_message_is_left_out(some_talk: Talk) -> None:
    """Anthropic would refuse it, and so every later request."""
    some_talk.server.script = [text("I see."), text("Well.")]
    conversation = some_talk()
    some_talk.turn(conversation, [{"type": "text", "text": "\n"}, {"type": "text", "text": "Look."}])
    assert conversation.history[0]["content"] == [{"type": "text", "text": "Look."}]
    assert some_talk.turn(conversation, "And?").text == "Well."
