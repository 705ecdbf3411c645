"""Models that verify their reasoning: an adapter sends what a `Masker` of dicts would, and nothing is refused."""

from __future__ import annotations

import asyncio
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


def test_content_of_reasoning_alone_has_a_part_of_the_kit() -> None:
    types = pytest.importorskip("google.genai.types")
    case = pytest.importorskip("case_google_adk", exc_type=ImportError)
    turns = with_reasoning(case, session(30))
    turns[1] = case.reasoned(types.Content(role="model", parts=[]), "alone")
    turns[2] = types.Content(role="user", parts=[types.Part(text="Go on.")])
    sent = case.view(case.masking(**OPTIONS), turns, VERIFYING)[1]
    assert sent.parts == [types.Part(text=NO_REASONING)]


def script(turns: int = 30) -> list[Any]:
    """Answers that think before each call."""
    use = {"command": "make", "description": "Build."}
    return [*(calls(thought(f"Part {one}."), call("bash", use, f"call_{one}")) for one in range(turns)), text("Done.")]


ALIAS = "our-coder"
"""What a gateway calls a model that verifies: nobody knows that it does before the first refusal."""


CHANGED_AT = 12
"""The request from which on there is one more tool, if an agent `changes`."""


def langchain(server: Server, model: str, *, changes: bool = False) -> None:
    chat = pytest.importorskip("langchain_anthropic")
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langchain.tools import tool

    from recede.integrations.langchain import RecedeMiddleware

    @tool
    def bash(command: str, description: str) -> str:
        """Run a command."""
        return f"{command}\n" * 200

    @tool
    def other() -> str:
        """Do something else."""
        return ""

    class Later(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            has_other = changes and len(request.messages) >= 2 * CHANGED_AT
            return handler(request.override(tools=[bash, other] if has_other else [bash]))

    given = {"base_url": server.url, "api_key": "none", "thinking": {"type": "adaptive"}, "max_retries": 0}
    chat_model = chat.ChatAnthropic(model=model, **given)
    agent = create_agent(chat_model, [bash, other], middleware=[Later(), RecedeMiddleware(keep=3, boundary=4)])
    agent.invoke({"messages": [("user", "Go.")]}, {"recursion_limit": 200})


def client_of_anthropic(server: Server, model: str, *, changes: bool = False) -> None:
    anthropic = pytest.importorskip("anthropic")
    middleware_of = pytest.importorskip("recede.integrations.anthropic", exc_type=ImportError)
    tool = {"name": "bash", "input_schema": {"type": "object"}}
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    middleware = [middleware_of.RecedeMiddleware(keep=3, boundary=4)]
    body = {"model": model, "max_tokens": 99, "tools": [tool], "thinking": {"type": "adaptive"}}
    given = {"api_key": "none", "base_url": server.url, "max_retries": 0}
    with anthropic.Anthropic(**given, middleware=middleware) as client:
        while messages[-1]["role"] == "user":
            if changes and len(messages) == 2 * CHANGED_AT + 1:
                body["tools"] = [tool, {**tool, "name": "other"}]
            answer = client.messages.create(messages=messages, **body)
            messages.append({"role": "assistant", "content": answer.content})
            uses = [block for block in answer.content if block.type == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": one.id, "content": "a line\n" * 200} for one in uses]
            messages += [{"role": "user", "content": results}] if results else []


def strands(server: Server, model: str, *, changes: bool = False) -> None:
    strands = pytest.importorskip("strands")
    models = pytest.importorskip("strands.models.anthropic", exc_type=ImportError)
    from recede.integrations.strands import RecedePlugin

    @strands.tool
    def other() -> str:
        """Do something else."""
        return ""

    @strands.tool
    def bash(command: str, description: str) -> str:
        """Run a command."""
        if changes and len(server.requests) == CHANGED_AT:
            agent.tool_registry.process_tools([other])
        return f"{command}\n" * 200

    client = {"api_key": "none", "base_url": server.url, "max_retries": 0}
    params = {"thinking": {"type": "adaptive"}}
    chat = models.AnthropicModel(client_args=client, model_id=model, max_tokens=99, params=params)
    agent = strands.Agent(chat, tools=[bash], plugins=[RecedePlugin(keep=3, boundary=4)], callback_handler=None)

    async def work() -> None:
        async with chat.client:
            await agent.invoke_async("Go.")

    asyncio.run(work())


def pydantic_ai(server: Server, model: str, *, changes: bool = False) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    models = pytest.importorskip("pydantic_ai.models.anthropic", exc_type=ImportError)
    if not hasattr(pydantic_ai.exceptions, "RetryModelRequest"):
        pytest.skip("this release has no retry")
    import anthropic
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from recede.integrations.pydantic_ai import RecedeCapability

    client = anthropic.AsyncAnthropic(api_key="none", base_url=server.url, max_retries=0)
    chat = models.AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))
    settings = {"anthropic_thinking": {"type": "adaptive"}, "max_tokens": 99}
    agent = pydantic_ai.Agent(chat, capabilities=[RecedeCapability(keep=3, boundary=4)], model_settings=settings)

    @agent.tool_plain
    def bash(command: str, description: str) -> str:
        """Run a command."""
        return f"{command}\n" * 200

    async def is_late(context: Any, described: Any) -> Any:
        return described if changes and len(server.requests) >= CHANGED_AT else None

    @agent.tool_plain(prepare=is_late)
    def other() -> str:
        """Do something else."""
        return ""

    async def work() -> None:
        async with client:
            await agent.run("Go.", usage_limits=pydantic_ai.UsageLimits(request_limit=None))

    asyncio.run(work())


RUNS = [langchain, client_of_anthropic, strands, pydantic_ai]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("changes", [False, True], ids=["same tools", "later tools"])
def test_agent_with_a_model_that_verifies_is_never_refused(run: Any, changes: bool) -> None:
    with serving(*script()) as server:
        server.account = NEW
        run(server, VERIFYING, changes=changes)
        assert not server.refusals
        check(server)
        named = [len(body["tools"]) for body in server.requests]
        assert named == [1] * CHANGED_AT + [1 + changes] * (len(named) - CHANGED_AT)


@pytest.mark.parametrize("run", [run for run in RUNS if run is not strands])  # which tries again by itself
def test_agent_that_is_refused_once_goes_on_without_that_reasoning(run: Any) -> None:
    with serving(*script()) as server:
        server.account, server.aliases = NEW, {ALIAS: VERIFYING}
        run(server, ALIAS)
        assert len(server.refusals) == 1
        check(server)


def check(server: Server) -> None:
    assert len(server.requests) == 31 + len(server.refusals)
    assert not any(taken.dropped for taken in server.taken)
    sent = [sum("signature" in str(message) for message in body["messages"]) for body in server.requests]
    assert max(sent) > 4 > sent[-1] and "cleared" in str(server.requests[-1])
