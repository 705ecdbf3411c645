"""What the real clients answer with is taken everywhere as it is, kept, and accepted when it is sent back."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import anthropic
import openai
import published
import pytest
from openai.types.responses import (
    Response,
    ResponseFunctionToolCall,
    ResponseFunctionToolCallOutputItem,
)
from pydantic import BaseModel, ConfigDict, Field

import recede
from provider_server import Answer, Server, call, calls, serving, text, thought
from recede import History
from recede._objects import plain
from support import result, tool_result, user

SAID = [thought("hm\n é"), {"type": "text", "text": "I look."}, call("run", {"path": "é"}, id="toolu_1")]


def test_messages_of_anthropic() -> None:
    history = History(keep=3)
    history.append(user("Go."))
    with serving(Answer(SAID, "tool_use"), text("Done.")) as server:
        with anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as client:
            request: dict[str, Any] = {"model": "m", "max_tokens": 9}
            response = client.messages.create(messages=history.view(), **request)
            history.append(response)
            history.append(user([tool_result("toolu_1", "x")]))
            again = client.messages.create(messages=history.view(), **request)
            # The form of Anthropic's own examples.
            history.append({"role": "assistant", "content": again.content})
            # And what streams give.
            server.script += [text("Well.")]
            history.append(user("And?"))
            with client.messages.stream(messages=history.view(), **request) as stream:
                history.append(stream.get_final_message())
        assert server.refusals == []
    assert history[1]["content"] is response.content
    assert history[3]["content"] is again.content
    assert history[5]["content"][0].text == "Well."
    assert history.recall("toolu_1") == "x"
    sent = json.loads(history.view_json())
    assert sent[1] == {"role": "assistant", "content": server.answers[0]}
    assert sent[3] == {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    assert all(shown is kept for shown, kept in zip(history.view(), history, strict=True))


def test_messages_of_openai() -> None:
    history = History(keep=3)
    history.append(user("Go."))
    with serving(calls(call("run", id="1")), text("Done.")) as server:
        with openai.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client:
            completion = client.chat.completions.create(model="m", messages=history.view())
            history.append(completion)
            assert history[-1] is completion.choices[0].message
            history.append(result("1", "x"))
            completion = client.chat.completions.create(model="m", messages=history.view())
            history.append(completion.choices[0].message)
            history.append(user("And?"))
            server.script.append(text("Well."))
            client.chat.completions.create(model="m", messages=history.view())
        assert server.refusals == []
    assert history[1].tool_calls[0].function.name == "run"
    assert history[3] is completion.choices[0].message
    sent = json.loads(history.view_json())
    assert sent[1]["content"] is None and "refusal" not in sent[1]
    assert sent[1]["tool_calls"][0]["function"] == {"name": "run", "arguments": "{}"}
    assert sent[3]["content"] == "Done."
    assert recede.check_pairs(history.messages).is_whole


def test_items_of_a_response() -> None:
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "1",
            "name": "run",
            "arguments": "{}",
            "status": "completed",
        },
    ]
    response = Response.model_validate(
        {"id": "resp_1", "object": "response", "created_at": 0, "model": "m", "output": items, "tools": []}
        | {"parallel_tool_calls": True, "tool_choice": "auto"}
    )
    for give in (lambda history: history.append(response), lambda history: history.extend(response.output)):
        history = History()
        give(history)
        history.append({"type": "function_call_output", "call_id": "1", "output": "x"})
        assert history[0] is response.output[0] and history[1] is response.output[1]
        assert json.loads(history.view_json())[:2] == items
        assert recede.check_pairs(history.messages).is_whole


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_loop_of_responses(is_streamed: bool, tmp_path: Path) -> None:
    """As docs/kit.md has it; also over a stream, whose items have what the client parsed beside them."""
    script = [calls(call("run", {"path": "é"}), call("run", {"n": n}), say="I look.") for n in range(4)]
    script[0].blocks.insert(0, thought("hm"))
    history = History(keep=3, boundary="sliding")
    history.append(user("Go."))
    own: list[Any] = []
    with serving(*script, text("Done.")) as server:
        with openai.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client:
            while True:
                request: dict[str, Any] = {"model": "m", "input": history.view(), "store": False}
                if is_streamed:
                    with client.responses.stream(**request) as stream:
                        response: Any = stream.get_final_response()
                else:
                    response = client.responses.create(**request)
                history.append(response)
                own += response.output
                asked = [item for item in response.output if item.type == "function_call"]
                if not asked:
                    break
                for item in asked:
                    output = {"type": "function_call_output", "call_id": item.call_id, "output": "a line\n" * 60}
                    history.append(output)
            # Saved, loaded and sent again they are accepted, too.
            history.save(tmp_path / "session")
            loaded = History.load(tmp_path / "session")
            items = [user("And?")]
            server.script += [text("Well."), text("Well.")]
            for messages in (history.view() + items, loaded.view() + items):
                assert client.responses.create(model="m", input=messages).output_text == "Well."
        assert server.refusals == []
    kept = [item for item in history if not isinstance(item, dict)]
    assert list(map(id, kept)) == list(map(id, own)) and len(own) == 14
    assert history.stats().masked_count == 5
    assert recede.check_pairs(history.messages).is_whole
    live, again = (request["input"] for request in server.requests[-2:])
    assert live == again and "old tool output cleared" in str(live)
    assert recede.reduce(history.messages, keep=3, boundary="sliding").messages == history.view()


def test_responses_are_refused_by_what_sends_messages() -> None:
    words = "takes chat completions of OpenAI: pass client.chat.completions.create. For client.responses.create make"
    client, other = openai.OpenAI(api_key="none"), openai.AsyncOpenAI(api_key="none")
    with client:
        for create in (client.responses.create, other.responses.create, client.responses.parse):
            for shape in (None, "openai"):
                with pytest.raises(TypeError, match=f"a Conversation {words}"):
                    recede.designs.Conversation(create, shape=shape)
            with pytest.raises(TypeError, match=f"^auto_continue {words}"):
                recede.designs.auto_continue(create, messages=[user("Go.")])
            with pytest.raises(TypeError, match=f"^auto_continue_async {words}"):
                asyncio.run(recede.designs.auto_continue_async(create, messages=[user("Go.")]))
    with serving(text("Done.")) as server, openai.OpenAI(api_key="none", base_url=f"{server.url}/v1") as client:

        def create(messages: Any) -> Any:
            return client.responses.create(model="m", input=messages)

        with pytest.raises(TypeError, match=f"create returned a response of OpenAI's Responses; this {words}"):
            recede.designs.auto_continue(create, messages=[user("Go.")])


def agent_of_anthropic(server: Server) -> list[Any]:
    """A history that an agent grows with the blocks of its client."""
    with anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as client:
        history: list[Any] = [user("Go.")]
        for _ in range(6):
            response = client.messages.create(model="m", max_tokens=9, messages=history)
            history.append({"role": "assistant", "content": response.content})
            history.append(user([tool_result(response.content[-1].id, "x" * 900)]))
        return history


def agent_of_openai(server: Server) -> list[Any]:
    """The same with messages, of which some are within a dict."""
    with openai.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client:
        history: list[Any] = [user("Go.")]
        for number in range(6):
            message = client.chat.completions.create(model="m", messages=history).choices[0].message
            made = {"role": "assistant", "content": message.content, "tool_calls": message.tool_calls}
            history += [made if number % 2 else message, result(message.tool_calls[0].id, "x" * 900)]
        return history


def agent_of_responses(server: Server) -> list[Any]:
    """Items, the outputs among them, as `client.responses.input_items.list` gives them."""
    history: list[Any] = [user("Go.")]
    for number in range(6):
        called = {"type": "function_call", "call_id": str(number), "name": "run", "arguments": "{}"}
        output = {"type": "function_call_output", "id": f"fc_{number}", "call_id": str(number), "status": "completed"}
        history.append(ResponseFunctionToolCall.model_validate(called))
        history.append(ResponseFunctionToolCallOutputItem.model_validate({**output, "output": "x" * 900}))
    return history


@pytest.mark.parametrize("agent", [agent_of_anthropic, agent_of_openai, agent_of_responses])
def test_every_list_function_takes_what_clients_give(agent: Callable[[Server], list[Any]], engine: str) -> None:
    with serving(*(calls(call("run", {"path": "é"}), say="Next.") for _ in range(6))) as server:
        history = agent(server)
        assert server.refusals == []
    before = copy.deepcopy(history)
    dicts = plain(history)
    assert recede.designs.approx_tokens(history) == recede.designs.approx_tokens(dicts) > 1_350
    assert recede.count_chars(history) == recede.count_chars(dicts)
    assert recede.check_pairs(history) == recede.check_pairs(dicts)
    assert recede.check_pairs(history).is_whole
    assert recede.repair_pairs(history) is history
    assert plain(recede.repair_pairs(history[2:])) == recede.repair_pairs(dicts[2:])
    budget = recede.designs.Budget(1_000)
    assert budget.is_over(history) and budget.report(history) == budget.report(dicts)
    reducer = recede.designs.HistoryReducer(max_input_chars=4_200, keep_results=4)
    for view_of in (
        recede.designs.mask_old_observations,
        budget.view,
        lambda messages: reducer.reduce(messages).messages,
        lambda messages: recede.reduce(messages, keep=4, boundary="sliding").messages,
        lambda messages: recede.reduce(messages, keep=4, max_input_tokens=4_200, token_counter=len).messages,
    ):
        view = view_of(history)
        assert plain(view) == view_of(dicts)
        changed = [place for place, message in enumerate(view) if message is not history[place]]
        assert changed == [2, 4]
        assert all(type(view[place]) is type(history[place]) for place in changed)
        assert any(word in str(plain(view[2])) for word in ("masked", "cleared"))
    assert history == before
    assert recede.reduce(history, max_input_tokens=9_999).messages is history


@pytest.mark.parametrize("agent", [agent_of_anthropic, agent_of_openai, agent_of_responses])
@pytest.mark.parametrize("options", [{}, {"max_input_tokens": 1_900}])
def test_a_history_keeps_what_clients_give(agent: Callable[[Server], list[Any]], options: dict[str, Any]) -> None:
    with serving(*(calls(call("run"), say="Next.") for _ in range(6))) as server:
        given = agent(server)
    history = History(keep=4, boundary="sliding", **options)
    history.extend(given)
    assert all(kept is message for kept, message in zip(history, given, strict=True))
    view = history.view()
    changed = [place for place, message in enumerate(view) if message is not given[place]]
    assert changed == [2, 4]
    assert all(type(view[place]) is type(given[place]) for place in changed)
    assert [plain(view[place]) for place in changed] == [json.loads(history.view_json())[place] for place in changed]
    assert history.view()[2] is view[2]
    history.rewind(7)
    assert all(shown is message for shown, message in zip(history.view(), given[:7], strict=True))


@pytest.mark.parametrize("agent", [agent_of_anthropic, agent_of_openai, agent_of_responses])
def test_what_a_summary_leaves_is_the_callers_own(agent: Callable[[Server], list[Any]]) -> None:
    with serving(*(calls(call("run"), say="Next.") for _ in range(6))) as server:
        given = agent(server)
    dropped: list[Any] = []
    history = published.History(
        max_input_chars=1_100, boundary="sliding", summarizer=lambda messages, _: str(dropped.extend(messages))
    )
    history.extend(given)
    view = history.view()
    assert len(view) < len(given) and view[-2:] == given[-2:]
    assert view[-2] is given[-2]
    assert dropped and all(type(message) is dict for message in dropped)
    history.append(user("And now?"))
    assert history.view()[-3] is given[-2]
    dropped.clear()
    reduction = published.reduce(
        given,
        max_input_chars=2_500,
        observation_masking=False,
        summarizer=lambda messages, _: str(dropped.extend(messages)),
    )
    assert dropped and plain(dropped) == dropped
    assert reduction.reduction_stage == "summarization" and reduction.messages[-2] is given[-2]


def test_a_conversation_goes_on_with_objects() -> None:
    with serving(*(calls(call("run"), say="Next.") for _ in range(6)), text("Done.")) as server:
        given = agent_of_anthropic(server)
        with anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as client:
            history = History()
            history.extend(given[:-1])
            conversation = recede.designs.Conversation(client.messages.create, history=history, model="m", max_tokens=9)
            part = anthropic.types.TextBlock(type="text", text="And now?")
            assert conversation.turn([part]).text == "Done."
        assert server.refusals == []
    assert history[11] is given[11]
    assert history[12]["content"][0]["content"] == "interrupted before it ended"
    assert history[13]["content"][0] is part


# A conversation


def the_clients(kind: str, server: Server, answers: list[Any]) -> Any:
    """The `create` of a real client, of which each answer is noted."""
    provider, is_async = kind.split()[-1], kind.startswith("async")
    names = {"anthropic": ("Anthropic", "AsyncAnthropic"), "openai": ("OpenAI", "AsyncOpenAI")}[provider]
    make = getattr({"anthropic": anthropic, "openai": openai}[provider], names[is_async])
    url = server.url + ("/v1" if provider == "openai" else "")
    limit = {"max_tokens": 99} if provider == "anthropic" else {}

    def asking(client: Any) -> Any:
        return client.messages.create if provider == "anthropic" else client.chat.completions.create

    def create(**request: Any) -> Any:
        with make(api_key="none", base_url=url, max_retries=0) as client:
            answer = asking(client)(model="m", **limit, **request)
            answers.append(answer if request.get("stream") is None else list(answer))
            return answers[-1]

    async def create_async(**request: Any) -> Any:
        async with make(api_key="none", base_url=url, max_retries=0) as client:
            answers.append(await asking(client)(model="m", **limit, **request))
            return answers[-1]

    return create_async if is_async else create


def told(conversation: recede.designs.Conversation, said: str) -> recede.agent.Answer:
    if inspect.iscoroutinefunction(conversation._create):
        return asyncio.run(conversation.turn_async(said))
    return conversation.turn(said)


def ran(name: str, value: Any) -> str:
    return "a line of the log\n" * 60


@pytest.mark.parametrize("kind", ["anthropic", "openai", "async anthropic", "async openai"])
def test_a_conversation_keeps_the_answers_of_its_client(kind: str, tmp_path: Path) -> None:
    answers: list[Any] = []
    shape: Any = kind.split()[-1]
    first = [call("run", {"path": "é"}), call("run", {"n": [1, True, None]})]
    lead = [thought("hm\n é"), {"type": "text", "text": "I look."}] if shape == "anthropic" else []
    script = [Answer([*lead, *first], "tool_use"), *(calls(call("run")) for _ in range(8)), text("Done.")]
    with serving(*script) as server:
        create = the_clients(kind, server, answers)
        conversation = recede.designs.Conversation(
            create, shape=shape, tools=[{"name": "run"}], run_tool=ran, budget=recede.designs.Budget(500)
        )
        assert told(conversation, "Go.").text == "Done."
        given = [answer.content if shape == "anthropic" else answer.choices[0].message for answer in answers]
        kept = [message for message in conversation.history if recede._objects.read(message, "role") == "assistant"]
        assert len(kept) == len(given) == 10
        for message, own in zip(kept, given, strict=True):
            if shape == "openai":
                assert message is own
            else:
                assert list(map(id, message["content"])) == list(map(id, own))
        # The view has them too, beside masked results; and so have the budget's own functions.
        view = conversation.view()
        assert view[1]["content"][0] is given[0][0] if shape == "anthropic" else view[1] is given[0]
        assert conversation.history.stats().masked_count == 6
        assert recede.designs.Budget(500).view(conversation.history.messages) == view
        # Once saved and loaded they are dicts, which are sent likewise.
        conversation.history.save(tmp_path / "session")
        again = recede.designs.Conversation(create, shape=shape, history=History.load(tmp_path / "session"))
        assert all(type(message) is dict for message in again.history)
        server.script += [text("Well."), text("Well.")]
        assert told(conversation, "And?").text == told(again, "And?").text == "Well."
        assert server.refusals == []
        live, loaded = (request["messages"] for request in server.requests[-2:])
        assert without_nulls(live) == loaded
        assert conversation.history.to_json() == again.history.to_json()


def without_nulls(messages: list[Any]) -> list[Any]:
    """Of which OpenAI's client sends those that it got."""
    return [{name: at for name, at in one.items() if at is not None or name == "content"} for one in messages]


def test_a_continued_answer_keeps_what_its_parts_are_made_of() -> None:
    answers: list[Any] = []
    with serving(Answer([thought("hm"), *text("for").blocks], "max_tokens"), text("ty-two.")) as server:
        conversation = recede.designs.Conversation(the_clients("anthropic", server, answers))
        assert conversation.turn("Go.").text == "forty-two."
        assert server.refusals == []
    thinking, said = conversation.history[1]["content"]
    assert thinking is answers[0].content[0]
    assert type(said) is type(answers[1].content[0]) and said.text == "forty-two."


@pytest.mark.parametrize("shape", ["anthropic", "openai"])
def test_a_streamed_answer_is_kept_as_a_dict(shape: Any) -> None:
    """Of a stream the client gives events, not an answer."""
    with serving(calls(call("run"), say="I look."), text("Done.")) as server:
        conversation = recede.designs.Conversation(
            the_clients(shape, server, []),
            shape=shape,
            tools=[{"name": "run"}],
            run_tool=ran,
            on_text=lambda text: None,
        )
        assert conversation.turn("Go.").text == "Done."
        assert server.refusals == []
    assert plain(conversation.history.messages) == conversation.history.messages


def damaged(change: Callable[[Any], Any]) -> Answer:
    blocks = [thought("hm"), {"type": "text", "text": "I look."}, call("run"), call("run", {"n": 2})]
    return Answer(blocks, "tool_use", damage=lambda body: change(body) or body)


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["content"][2].update(id=None),
        lambda body: body["content"][2].update(input=None),
        lambda body: body["content"][2].update(name="ru n"),
        lambda body: body["content"][2].update(id="\ud800"),
    ],
)
def test_of_a_damaged_answer_only_what_was_repaired_is_a_dict(change: Callable[[Any], Any]) -> None:
    answers: list[Any] = []
    with serving(damaged(change), text("Done.")) as server:
        conversation = recede.designs.Conversation(
            the_clients("anthropic", server, answers), tools=[{"name": "run"}], run_tool=ran
        )
        assert conversation.turn("Go.").text == "Done."
        assert server.refusals == []
    kept, own = conversation.history[1]["content"], answers[0].content
    assert [block is given for block, given in zip(kept, own, strict=True)] == [True, True, False, True]
    assert type(kept[2]) is dict


def test_a_block_that_is_left_out_leaves_the_others_as_they_are() -> None:
    answers: list[Any] = []
    with serving(damaged(lambda body: body["content"].insert(1, {"type": "new"})), text("Done.")) as server:
        conversation = recede.designs.Conversation(
            the_clients("anthropic", server, answers), tools=[{"name": "run"}], run_tool=ran
        )
        assert conversation.turn("Go.").text == "Done."
        assert server.refusals == []
    own = answers[0].content
    assert list(map(id, conversation.history[1]["content"])) == list(map(id, [own[0], *own[2:]]))


@pytest.mark.parametrize(
    ("change", "is_own"),
    [
        (lambda message: message.update(refusal=None, audio=None, function_call=None), True),
        (lambda message: message.update(annotations=[]), True),
        (lambda message: message["tool_calls"][0].update(index=0), True),
        (lambda message: message.update(parsed={}), False),  # fields that OpenAI does not take back
        (lambda message: message.update(reasoning=None), False),
        (lambda message: message.update(content=5), False),
        (lambda message: message["tool_calls"][0].update(id=""), False),
        (lambda message: message["tool_calls"][0]["function"].update(arguments={}), False),
        (lambda message: message["tool_calls"].append(None), False),
    ],
)
def test_a_message_of_openai_is_kept_whole_or_as_a_repaired_dict(change: Callable[[Any], Any], is_own: bool) -> None:
    answers: list[Any] = []
    script = calls(call("run"), say="I look.")
    script.damage = lambda body: change(body["choices"][0]["message"]) or body
    with serving(script, text("Done.")) as server:
        conversation = recede.designs.Conversation(
            the_clients("openai", server, answers), shape="openai", tools=[{"name": "run"}], run_tool=ran
        )
        assert conversation.turn("Go.").text == "Done."
        assert server.refusals == []
    kept = conversation.history[1]
    assert (kept is answers[0].choices[0].message) == is_own
    assert (type(kept) is dict) != is_own


def test_what_only_a_response_has_is_neither_counted_nor_saved() -> None:
    """Anthropic's client keeps what it parsed of a text beside it, and does not send it."""

    class Parsed(anthropic.types.TextBlock):
        __api_exclude__: ClassVar[set[str]] = {"parsed_output"}
        parsed_output: Any = None

    block = Parsed(type="text", text="It is 5.", parsed_output={"number": 5})
    history = History()
    history.append({"role": "assistant", "content": [block]})
    assert json.loads(history.to_json())[0]["content"] == [{"type": "text", "text": "It is 5."}]


class Result(BaseModel):
    """As of a framework that has names of its own for the fields of the API."""

    model_config = ConfigDict(populate_by_name=True)
    role: str = "tool"
    call: str = Field(alias="tool_call_id")
    text: str = Field(alias="content")


def test_a_field_with_another_name_in_json_is_masked_under_its_own(engine: str) -> None:
    history = [Result(role="tool", call=str(number), text="x" * 90) for number in range(4)]
    view = recede.designs.mask_old_observations(history, 3)
    assert view[0] == Result(role="tool", call="0", text="[observation masked — 1 lines omitted]")
    assert history[0].text == "x" * 90 and view[1:] == history[1:]


def test_a_response_is_no_message_of_a_list() -> None:
    with serving(text("Done.")) as server, openai.OpenAI(api_key="none", base_url=f"{server.url}/v1") as client:
        completion = client.chat.completions.create(model="m", messages=[user("Go.")])
    with pytest.raises(recede.TranscriptError, match="of a response, pass its message"):
        recede.count_chars([completion])
    assert recede.count_chars([completion.choices[0].message]) == 5
    with pytest.raises(TypeError, match="a history takes messages, not a CompletionUsage"):
        History().append(completion.usage)


def test_what_json_has_no_form_for_is_refused_and_named() -> None:
    history = History()
    with pytest.raises(TypeError, match="a message holds a set"):
        history.append({"role": "user", "content": {1}})
    with pytest.raises(TypeError, match="a message holds a object"):
        history.append(user([object()]))
    assert len(history) == 0
