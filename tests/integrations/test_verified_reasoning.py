"""Models that verify their reasoning: an adapter sends what a `Masker` of dicts would, and nothing is refused."""

from __future__ import annotations

from typing import Any

import case_dicts
import pytest
from sessions import Turn, session

import recede
from provider_rules import NEW
from provider_server import Server, call, calls, serving, text, thought

VERIFYING = "claude-opus-5-5"
OPTIONS: dict[str, Any] = {"keep": 4, "boundary": 5}
NO_REASONING = "[reasoning not sent again]"


def with_reasoning(case: Any, turns: list[Turn]) -> list[Any]:
    """The history of a framework, each of whose answers begins with reasoning."""
    numbers = iter(range(len(turns)))
    history = case.history(turns)
    return [case.reasoned(one, f"thought {next(numbers)}") if case.calls([one]) else one for one in history]


def left(case: Any, view: list[Any]) -> list[str]:
    return [thought for message in view if case.calls([message]) for thought in case.thoughts(message)]


@pytest.fixture
def reasoning(case: Any) -> Any:
    if not hasattr(case, "reasoned"):
        pytest.skip("its requests are masked as bodies, or its reasoning is never signed by Claude")
    return case


def test_reasoning_that_is_sent_is_that_of_dicts(reasoning: Any) -> None:
    turns, masking, masker = session(40), reasoning.masking(**OPTIONS), recede.masker.Masker(**OPTIONS)
    seen = set()
    for count in range(1, len(turns) + 1):
        view = reasoning.view(masking, with_reasoning(reasoning, turns[:count]), VERIFYING)
        of_dicts = masker.view(with_reasoning(case_dicts, turns[:count]), provider=VERIFYING)
        if reasoning is case_dicts:  # whose `view` names no model
            view = of_dicts
        assert left(reasoning, view) == left(case_dicts, of_dicts)
        seen.add(len(left(reasoning, view)))
    assert len(seen) > 4 and max(seen) < 15


def test_reasoning_of_other_models_is_always_sent(reasoning: Any) -> None:
    turns, masking = session(30), reasoning.masking(**OPTIONS)
    for count in range(1, len(turns) + 1, 7):
        given = with_reasoning(reasoning, turns[:count])
        assert left(reasoning, reasoning.view(masking, given, "claude-opus-4-7")) == left(reasoning, given)


def test_message_of_reasoning_alone_keeps_its_place(reasoning: Any) -> None:
    reads = getattr(reasoning.masking(), "_reads", None)
    if reads is None:
        pytest.skip("its messages are dicts")
    alone = reasoning.reasoned(reasoning._said(Turn("")), "alone")
    assert reads.facts(alone).signed and reads.facts(alone).chars == 0
    left = reads.unsigned(alone)
    assert NO_REASONING in f"{getattr(left, 'text', '')}{left}" and not reasoning.thoughts(left)
    assert not reads.facts(left).signed and reasoning.thoughts(alone) == ["alone"]


def script(turns: int = 30) -> list[Any]:
    """Answers that think before each call."""
    use = {"command": "make", "description": "Build."}
    return [*(calls(thought(f"Part {one}."), call("bash", use, f"call_{one}")) for one in range(turns)), text("Done.")]


def test_langchain_with_a_model_that_verifies_is_never_refused() -> None:
    chat = pytest.importorskip("langchain_anthropic")
    from langchain.agents import create_agent
    from langchain.tools import tool

    from recede.integrations.langchain import RecedeMiddleware

    @tool
    def bash(command: str, description: str) -> str:
        """Run a command."""
        return f"{command}\n" * 200

    with serving(*script()) as server:
        server.account = NEW
        given = {"base_url": server.url, "api_key": "none", "thinking": {"type": "adaptive"}, "max_retries": 0}
        model = chat.ChatAnthropic(model=VERIFYING, **given)
        agent = create_agent(model, [bash], middleware=[RecedeMiddleware(keep=3, boundary=4)])
        agent.invoke({"messages": [("user", "Go.")]}, {"recursion_limit": 200})
        check(server)


def test_client_of_anthropic_with_a_model_that_verifies_is_never_refused() -> None:
    anthropic = pytest.importorskip("anthropic")
    middleware_of = pytest.importorskip("recede.integrations.anthropic", exc_type=ImportError)
    tool = {"name": "bash", "input_schema": {"type": "object"}}
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    with serving(*script()) as server:
        server.account = NEW
        middleware = [middleware_of.RecedeMiddleware(keep=3, boundary=4)]
        client = anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0, middleware=middleware)
        body = {"model": VERIFYING, "max_tokens": 99, "tools": [tool], "thinking": {"type": "adaptive"}}
        while messages[-1]["role"] == "user":
            answer = client.messages.create(messages=messages, **body)
            messages.append({"role": "assistant", "content": answer.content})
            uses = [block for block in answer.content if block.type == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": one.id, "content": "a line\n" * 200} for one in uses]
            messages += [{"role": "user", "content": results}] if results else []
        check(server)


def check(server: Server) -> None:
    assert not server.refusals and len(server.requests) == 31
    assert not any(taken.dropped for taken in server.taken)
    sent = [sum("signature" in str(message) for message in body["messages"]) for body in server.requests]
    assert max(sent) > 4 > sent[-1] and "cleared" in str(server.requests[-1])
