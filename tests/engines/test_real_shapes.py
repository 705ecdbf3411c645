"""Shapes as their own packages write them; each test is skipped where its package is not installed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recede import transcripts


def roles(messages: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


def test_attributes_of_openinference() -> None:
    instrumentation = pytest.importorskip("openinference.instrumentation")
    called = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "ls", "arguments": {"all": True}}}]}
    attributes = instrumentation.get_llm_attributes(
        model_name="m",
        input_messages=[
            {"role": "user", "contents": [{"type": "text", "text": "Look."}]},
            called,
            {"role": "tool", "tool_call_id": "1", "content": "a b"},
        ],
        output_messages=[{"role": "assistant", "content": "Done."}],
        token_count={"prompt": 12, "completion": 3, "prompt_details": {"cache_read": 4}},
    )
    transcript = transcripts.read(json.dumps({"attributes": attributes}).encode())
    assert transcript.format == "openinference"
    assert roles(transcript.messages) == ["user", "assistant", "tool", "assistant"]
    assert transcript.messages[0]["content"] == [{"type": "text", "text": "Look."}]
    assert transcript.messages[1]["tool_calls"][0]["function"] == {"name": "ls", "arguments": '{"all": true}'}
    assert transcript.messages[2] == {"role": "tool", "tool_call_id": "1", "content": "a b"}
    [request] = transcript.requests
    assert (request.model, request.messages) == ("m", 3)
    assert request.usage is not None and request.usage[:2] == (8, 4)


def test_runs_of_langchain() -> None:
    pytest.importorskip("langchain_core")
    pytest.importorskip("langsmith")
    from langchain_core.language_models import FakeMessagesListChatModel
    from langchain_core.load import dumpd
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_to_dict
    from langchain_core.tracers import BaseTracer

    runs: list[Any] = []

    class Kept(BaseTracer):
        def _persist_run(self, run: Any) -> None:
            runs.append(run)

    called = AIMessage("I look.", tool_calls=[{"name": "ls", "args": {}, "id": "1"}])
    asked = [SystemMessage("Be brief."), HumanMessage("Look.")]
    model = FakeMessagesListChatModel(responses=[called, AIMessage("Done.")])
    told = [*asked, called, ToolMessage("a b", tool_call_id="1")]
    for sent in (asked, told):
        model.invoke(sent, {"callbacks": [Kept(_schema_format="original+chat")]})
    fields = ("id", "name", "run_type", "start_time", "end_time", "inputs", "outputs", "extra")
    written = [{name: getattr(run, name) for name in fields} for run in runs]
    written = [{**json.loads(json.dumps(run, default=str)), "trace_id": "t"} for run in written]  # of one agent
    transcript = transcripts.read(b"\n".join(json.dumps(run).encode() for run in written))
    assert transcript.format == "langsmith"
    assert roles(transcript.messages) == ["system", "user", "assistant", "tool", "assistant"]
    assert transcript.messages[2]["tool_calls"][0]["function"]["name"] == "ls"
    assert [request.messages for request in transcript.requests] == [2, 4]
    for messages in (messages_to_dict(told), [dumpd(one) for one in told], [one.model_dump() for one in told]):
        assert transcripts.read(json.dumps(messages).encode()).messages == transcript.messages[:4]


def test_events_of_openhands() -> None:
    event = pytest.importorskip("openhands.sdk.event")
    from openhands.sdk.event.condenser import Condensation
    from openhands.sdk.llm import Message, MessageToolCall, TextContent
    from openhands.sdk.tool.schema import Action, Observation

    class LookAction(Action):  # type: ignore[misc]
        path: str

    class LookObservation(Observation):  # type: ignore[misc]
        pass

    def text(words: str) -> list[Any]:
        return [TextContent(text=words)]

    called = event.ActionEvent(
        thought=text("I look."),
        action=LookAction(path="."),
        tool_name="look",
        tool_call_id="1",
        tool_call=MessageToolCall(id="1", name="look", arguments='{"path": "."}', origin="completion"),
        llm_response_id="r",
    )
    events = [
        event.SystemPromptEvent(source="agent", system_prompt=TextContent(text="Be brief."), tools=[]),
        event.MessageEvent(source="user", llm_message=Message(role="user", content=text("Look."))),
        called,
        event.ObservationEvent(
            observation=LookObservation.from_text("a b"), action_id=called.id, tool_name="look", tool_call_id="1"
        ),
        event.MessageEvent(source="agent", llm_message=Message(role="assistant", content=text("Done."))),
    ]
    forgotten = [called.id, events[3].id]
    events.append(Condensation(forgotten_event_ids=forgotten, summary="Looked.", summary_offset=2, llm_response_id="c"))
    transcript = transcripts.read(b"\n".join(one.model_dump_json(exclude_none=True).encode() for one in events))
    assert transcript.format == "openhands_v1"
    # What the model sees, by the SDK itself.
    seen = [
        (message.role, "".join(part.text for part in message.content))
        for message in event.LLMConvertibleEvent.events_to_messages(
            [one for one in events if isinstance(one, event.LLMConvertibleEvent)]
        )
    ]
    assert [(one["role"], one["content"]) for one in transcript.messages] == seen
    assert [one["content"] for one in transcript.contexts[1].messages] == ["Be brief.", "Look.", "Looked.", "Done."]
