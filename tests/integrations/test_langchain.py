"""What is LangChain's own: its metadata, usage, summaries, nodes of LangGraph, deepagents and its subagents."""

from __future__ import annotations

import copy
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain.agents", reason="langchain 1.0 or newer is not installed")
sys.path.insert(0, str(Path(__file__).parent))

import case_langchain as case
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langgraph.graph import START, MessagesState, StateGraph
from sessions import LAST, TASK, Call, Turn, session

from provider_server import serving, text
from recede import Provider
from recede.integrations.langchain import RecedeMiddleware, _Messages, _name_of
from scripts import script_of
from support import handle_of

pytestmark = pytest.mark.filterwarnings("default")


def test_masked_messages_say_so_as_those_of_context_editing_do() -> None:
    messages = case.history(session())
    view = RecedeMiddleware(keep=4, boundary="sliding").view(messages)
    masked = [(old, new) for old, new in zip(messages, view, strict=True) if old is not new]
    assert masked
    for old, new in masked:
        assert new.response_metadata == {"context_editing": {"cleared": True, "strategy": "recede"}}
        assert (new.id, new.tool_call_id, new.status, new.name) == (old.id, old.tool_call_id, old.status, old.name)


def test_calls_that_anthropic_repeats_in_the_content_count_once() -> None:
    call = {"id": "1", "name": "run", "args": {"command": "ls"}, "type": "tool_call"}
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Next."}]
    repeated = AIMessage([*blocks, {"type": "tool_use", "id": "1", "name": "run", "input": {"command": "ls"}}])
    repeated.tool_calls = [call]
    facts = _Messages().facts
    assert facts(repeated) == facts(AIMessage("Next.", tool_calls=[call]))._replace(signed=True)
    assert facts(repeated).calls == [("1", "run", 16)]


def test_a_call_that_was_no_json_keeps_its_result() -> None:
    broken = {"id": "1", "name": "run", "args": '{"command"', "error": "cut", "type": "invalid_tool_call"}
    assert _Messages().facts(AIMessage("", invalid_tool_calls=[broken])).calls == [("1", "run", 10)]


def test_pointers_to_files_of_deepagents_stay() -> None:
    turns = session()
    messages = case.history(turns)
    filed = "Tool result too large, the result of this tool call was saved in the filesystem at /x\n" * 9
    place = next(at for at, message in enumerate(messages) if isinstance(message, ToolMessage))
    messages[place] = messages[place].model_copy(update={"content": filed})
    view = RecedeMiddleware(keep=4, boundary="sliding").view(messages)
    assert view[place] is messages[place]
    assert view[place + 2] is not messages[place + 2]


def test_a_cache_mark_in_a_masked_result_stays() -> None:
    messages = case.history(session())
    place = next(at for at, message in enumerate(messages) if isinstance(message, ToolMessage))
    mark = {"type": "ephemeral"}
    parts = [{"type": "text", "text": "a line\n" * 90, "cache_control": mark}]
    messages[place] = messages[place].model_copy(update={"content": parts})
    view = RecedeMiddleware(keep=4, boundary="sliding").view(messages)
    assert view[place].content == [
        {"type": "text", "text": "[old tool output cleared to save context]", "cache_control": mark}
    ]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_usage_of_a_masked_request_is_that_of_its_conversation(way: str) -> None:
    masking = RecedeMiddleware(keep=2, boundary="sliding")
    case.run(masking, session(12), way)
    stats = masking.masker.stats()
    assert (stats.conversations, stats.forked, stats.rewound) == (1, 0, 0)


def test_usage_is_reported_with_the_history_of_its_request() -> None:
    heard: list[Any] = []
    masking = case.masking(keep=4)
    masking.masker.reported = lambda usage, messages: heard.append((usage, len(messages)))
    _, stored = case.run(masking, session(5), "sync")
    counted = [one.usage_metadata["input_tokens"] for one in stored if isinstance(one, AIMessage)]
    sent = [{"prompt_tokens": one, "completion_tokens": 5, "prompt_tokens_details": None} for one in counted]
    assert heard == list(zip(sent, (1, 3, 5, 7, 11, 13), strict=True)) and min(counted) >= 10
    case.view(masking, case.history([]), answer=case._said(LAST))
    details = {"cached_tokens": 8_900}
    assert heard[6:] == [({"prompt_tokens": 9_000, "completion_tokens": 10, "prompt_tokens_details": details}, 1)]


def test_a_summarizer_that_counts_the_view_does_not_summarize_what_is_masked() -> None:
    class Uncounted(case.Recording):  # type: ignore[name-defined,misc]
        def _generate(self, *arguments: Any, **options: Any) -> Any:
            result = super()._generate(*arguments, **options)
            result.generations[0].message.usage_metadata = None  # which would be believed
            return result

    def dropped(token_counter: Any) -> int:
        masking = case.masking(keep=4, boundary="sliding")
        by_id = {name: result for turn in session() for name, result in turn.results.items()}
        given = {"token_counter": masking.count_tokens} if token_counter else {}
        names = inspect.signature(SummarizationMiddleware.__init__).parameters
        limit = {"trigger": ("tokens", 20_000)} if "trigger" in names else {"max_tokens_before_summary": 20_000}
        so_far = [text("So far.") for _ in range(99)]
        with serving(*script_of(session())) as server, serving(*so_far) as summaries:
            summarizing = SummarizationMiddleware(case.recording(summaries.url), **limit, **given)
            model = case.recording(server.url, kind=Uncounted)
            agent: Any = create_agent(model, [case.tool_of(by_id)], middleware=[summarizing, masking])
            state = agent.invoke({"messages": [HumanMessage(TASK)]}, {"recursion_limit": 1_000})
        assert not server.refusals and not summaries.refusals
        return len(case.history([*session(), LAST])) - len(state["messages"])

    assert dropped(None) > 50
    assert dropped("of the view") == 0


def test_a_node_of_langgraph_sends_the_view() -> None:
    masking = RecedeMiddleware(keep=4, boundary="sliding")
    messages = case.history(session())
    with serving(text("Done.")) as server:
        model = case.recording(server.url)

        def call_model(state: MessagesState) -> Any:
            return {"messages": [model.invoke(masking.view(state["messages"]))]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", call_model)
        graph.add_edge(START, "model")
        state = graph.compile().invoke({"messages": messages})
    assert len(server.requests) == 1 and not server.refusals
    assert model.requests == [masking.view(messages)] != [messages]
    assert state["messages"][:-1] == messages


@pytest.mark.parametrize("form", ["dicts", "pairs"])
def test_a_node_whose_state_has_no_message_objects_sends_the_view(form: str) -> None:
    messages: list[Any] = convert_to_openai_messages(case.history(session()))
    if form == "pairs":
        messages[0] = (messages[0]["role"], messages[0]["content"])
    options: dict[str, Any] = {"keep": 4, "boundary": "sliding", "recall": True}
    masking = RecedeMiddleware(**options)
    view = masking.view(messages)
    of_objects = RecedeMiddleware(**options).view(convert_to_messages(messages))
    assert case.results(convert_to_messages(view)) == case.results(of_objects)
    unmasked = [new for new, old in zip(view, messages, strict=True) if new is old]
    assert 0 < len(unmasked) < len(messages)
    assert masking.view(copy.deepcopy(messages)) == view
    result = next(iter(session()[2].results.values()))
    assert masking.recalled(messages, handle_of(result.id, result.text)) == result.text
    pictured = next(one for one in session()[5].results.values() if one.has_image)
    content = masking.recalled(messages, handle_of(pictured.id, pictured.text))
    assert [part["type"] for part in content] == ["text", "image_url"]
    with serving(text("Done.")) as server:
        model = case.recording(server.url)
        model.invoke(view)
    assert len(server.requests) == 1 and not server.refusals
    assert case.results(model.requests[0]) == case.results(convert_to_messages(view))


@pytest.mark.parametrize(
    ("package", "kind", "name"),
    [
        ("langchain_anthropic", "ChatAnthropic", "claude-opus-5-5"),
        ("langchain_openai", "ChatOpenAI", "gpt-5.4"),
    ],
)
def test_the_chat_models_of_langchain_are_known_by_their_names(package: str, kind: str, name: str) -> None:
    module = pytest.importorskip(package, reason=f"{package} is not installed")
    model = getattr(module, kind)(model=name, api_key="none")
    provider = RecedeMiddleware()._provider_of.of(_name_of(model))
    assert provider is not None and provider == Provider.of(provider.name, name)


def test_a_model_inside_of_another_object_is_known_by_its_name() -> None:
    model = case.recording(name="claude-opus-5-5")
    for one in (model, model.bind(stop=["."]), model.with_retry(), model.with_fallbacks([model])):
        assert _name_of(one) == "claude-opus-5-5"
    of_text = RecedeMiddleware()._provider_of.of("anthropic:claude-opus-5-5")
    assert of_text == Provider.of("anthropic", "claude-opus-5-5")


@pytest.mark.parametrize("where", ["model", "settings"])
def test_a_history_that_openai_keeps_is_sent_as_it_is_and_said_once(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    masking = RecedeMiddleware(keep=0, boundary="sliding")
    messages = case.history(session(5))
    model = case.recording(kind=case.Kept, use_previous_response_id=where == "model")
    settings = {"previous_response_id": "r"} if where == "settings" else {}
    for _ in range(2):
        assert case.view(masking, messages, model, model_settings=settings) == messages
    assert caplog.text.count("requests with 'previous_response_id' are sent as they are") == 1
    assert masking.masker.stats().begun == 0


def test_subagents_are_given_the_middleware_once() -> None:
    masking = RecedeMiddleware()
    plain: dict[str, Any] = {"name": "general-purpose", "description": "d", "system_prompt": "s"}
    own = {**plain, "name": "own", "middleware": [RecedeMiddleware(keep=4)]}  # an agent refuses two of a name
    once = masking.for_subagents([plain, own])
    assert once == [{**plain, "middleware": [masking]}, own]
    assert masking.for_subagents(once) == once
    assert "middleware" not in plain


def test_subagents_that_cannot_take_it_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    masking = RecedeMiddleware()
    compiled = {"name": "general-purpose", "description": "d", "runnable": object()}
    remote = {"name": "far", "description": "d", "graph_id": "g"}
    for _ in range(2):
        assert masking.for_subagents([compiled, remote]) == [compiled, remote]
    assert [one.getMessage().partition(" is ")[0] for one in caplog.records] == [
        "the subagent 'general-purpose'",
        "the subagent 'far'",
    ]


@pytest.mark.parametrize("name", ["looker", "general-purpose"])
def test_an_agent_of_deepagents_and_its_subagents_send_views(name: str) -> None:
    deepagents = pytest.importorskip("deepagents", reason="deepagents is not installed")
    turns = session(40)
    by_id = {id: result for turn in turns for id, result in turn.results.items()}
    task = Turn("", [Call("task", "task", {"description": "Look.", "subagent_type": name})])
    masking = RecedeMiddleware(keep=4, boundary="sliding")
    tool = case.tool_of(by_id)
    with serving(*script_of([*turns, task, *turns, LAST])) as server:
        model, below = case.recording(server.url), case.recording(server.url)
        looker = {"name": "looker", "description": "Looks.", "system_prompt": "Look.", "tools": [tool], "model": below}
        subagents = masking.for_subagents([looker])
        agent = deepagents.create_deep_agent(model, [tool], middleware=[masking], subagents=subagents)
        agent.invoke({"messages": [HumanMessage(TASK)]}, {"recursion_limit": 1_000})
    assert server.refusals == [] and server.script == []
    if name == "general-purpose":  # it has the model of the agent
        below.requests = [request for request in model.requests if request[1].content == "Look."]
    for requests in (model.requests, below.requests):
        (masked, *_) = [message for message in requests[-1] if isinstance(message, ToolMessage)]
        assert masked.content.startswith("[old tool output cleared")


def test_subagents_without_the_middleware_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    deepagents = pytest.importorskip("deepagents", reason="deepagents is not installed")
    for is_given in (False, True):
        masking = RecedeMiddleware()
        subagents = masking.for_subagents() if is_given else []
        with serving(text("Done."), text("Done.")) as server:
            model = case.recording(server.url)
            agent = deepagents.create_deep_agent(model, [], middleware=[masking], subagents=subagents)
            for _ in range(2):
                agent.invoke({"messages": [HumanMessage(TASK)]})
        assert len(server.requests) == 2 and not server.refusals
        words = "subagents of deepagents do not inherit this middleware and send raw messages"
        assert caplog.text.count(words) == 1, "the second has given it to them"


def test_a_release_of_deepagents_that_hides_its_subagent_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "deepagents.middleware.subagents", None)
    assert RecedeMiddleware().for_subagents() == []
    assert "hides its subagent 'general-purpose'" in caplog.text
