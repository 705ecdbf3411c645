"""What a model call costs with each adapter, with its framework alone and with the framework's own context editing.

`make bench-integrations`, or `python benches/adapters.py` with a core of the release profile, measures in the
environments of `make test-integrations` and prints the tables of docs/integrations/README.md. First the views are
compared: they are those of `reduce`, mapped back. Times are CPU time, the best of several calls. `--costs` prints the
column of costs alone, which are sums and the same on every machine.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import gc
import importlib
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "integrations"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))

from sessions import LAST, Turn, as_chat, as_dicts, session, shown, shown_in_chat

import recede
from recede.costs import CACHES, Prices, Usage, replay

KEEP = 10
TURNS = 2_000
SHORT = 60  # turns, each a request, whose changes are counted
LONG = 300  # turns whose costs are told, besides
ASKED = 20  # turns from one message of the user to the next
STEPS = 10  # calls that are measured
SYSTEM_CHARS = 12_000
COST = "cost of raw, own reducer → recede"
PRICES = Prices(output=0)
CACHE = CACHES["anthropic"]
AT_MOST = {"same": 0.3, "copied": 2.0, "loaded": 2.0}  # milliseconds that an adapter may add
SHARE = 0.1  # of the framework's own reducer
NAMES = {"langchain": "LangChain", "openai_agents": "OpenAI Agents SDK", "pydantic_ai": "Pydantic AI"}


class Framework(Protocol):
    """A framework, as it is measured."""

    reducer_name: str
    reducer: Callable[[], Any]
    adapter: Callable[[], Any]

    def messages(self, turns: list[Turn]) -> list[Any]:
        """The request that follows these turns."""

    def passing(self) -> Any:
        """A hook that changes nothing: its time is that of the measurement."""

    def sent(self, hook: Any, messages: list[Any]) -> list[Any]:
        """What a hook sends for these messages: all that it does for a call, with the usage of the answer."""

    def run(self, hook: Any, messages: list[Any], turns: list[Turn], called: Callable[[], None]) -> None:
        """The framework's own agent, from these messages on; its fake model plays the turns, and tells each call."""


class LangChain:
    """`create_agent`."""

    reducer_name = "ClearToolUsesEdit(trigger=1_000, keep=10)"

    def __init__(self) -> None:
        import case_langchain as case
        from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware

        self.case = case
        edit = ClearToolUsesEdit(trigger=1_000, keep=KEEP)
        self.reducer = lambda: ContextEditingMiddleware(edits=[edit])
        self.adapter = lambda: case.masking(keep=KEEP)

    def messages(self, turns: list[Turn]) -> list[Any]:
        made = (message for part in asked(turns) for message in self.case.history(part))
        return [message.model_copy(update={"id": f"m{place}"}) for place, message in enumerate(made)]

    def passing(self) -> Any:
        from langchain.agents.middleware import AgentMiddleware

        class Passing(AgentMiddleware[Any, Any]):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                return handler(request)

        return Passing()

    def sent(self, hook: Any, messages: list[Any]) -> list[Any]:
        from langchain.agents.middleware import ModelRequest, ModelResponse

        answer = ModelResponse(result=[self.case._said(LAST)])
        requests: list[Any] = []

        def handler(request: Any) -> Any:
            requests.append(request.messages)
            return answer

        hook.wrap_model_call(ModelRequest(model=None, messages=messages), handler)  # type: ignore[arg-type]
        found: list[Any] = requests[0]
        return found

    def run(self, hook: Any, messages: list[Any], turns: list[Turn], called: Callable[[], None]) -> None:
        from langchain_core.language_models.chat_models import BaseChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, ChatResult

        case = self.case

        class Scripted(BaseChatModel):
            """Plays the turn whose number is that of its own messages in the request."""

            @property
            def _llm_type(self) -> str:
                return "scripted"

            def bind_tools(self, tools: Any, **_: Any) -> Any:
                return self

            def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
                called()
                said = case._said(turns[sum(isinstance(message, AIMessage) for message in messages)])
                return ChatResult(generations=[ChatGeneration(message=said)])

        tools = [case.tool_of(results_of(turns))]
        agent = case.create_agent(Scripted(), tools, middleware=[hook] if hook else [])
        agent.invoke({"messages": messages}, {"recursion_limit": 1_000})


class OpenAIAgents:
    """`Runner`."""

    reducer_name = "ToolOutputTrimmer()"

    def __init__(self) -> None:
        import case_openai_agents as case
        from agents.extensions import ToolOutputTrimmer

        self.case = case
        self.reducer = ToolOutputTrimmer
        self.adapter = lambda: case.masking(keep=KEEP)

    def messages(self, turns: list[Turn]) -> list[Any]:
        return [message for part in asked(turns) for message in self.case.history(part)]

    def passing(self) -> Any:
        return lambda data: data.model_data

    def sent(self, hook: Any, messages: list[Any]) -> list[Any]:
        from agents import ModelResponse
        from agents import Usage as Counted
        from agents.run import CallModelData, ModelInputData
        from openai.types.responses.response_usage import InputTokensDetails

        given = ModelInputData(input=messages, instructions=None)
        data: Any = CallModelData(given, agent=self.case.Agent(name="a", model="m"), context=None)
        sent = hook(data)
        view: list[Any] = (finished(sent) if asyncio.iscoroutine(sent) else sent).input  # the adapter's is async
        if hasattr(hook, "on_llm_end"):
            details = InputTokensDetails.model_construct(cached_tokens=8_900)
            usage = Counted(requests=1, input_tokens=9_000, output_tokens=10, input_tokens_details=details)
            finished(hook.on_llm_end(None, None, ModelResponse([], usage, None)))
        return view

    def run(self, hook: Any, messages: list[Any], turns: list[Turn], called: Callable[[], None]) -> None:
        from agents import Model, ModelResponse
        from agents import Usage as Counted

        case, after = self.case, {name: place + 1 for place, turn in enumerate(turns) for name in turn.results}

        class Scripted(Model):
            """Plays the turn that follows the last output in the input."""

            async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:
                called()
                last = case.results(input)[-1:]
                return ModelResponse(case._said(turns[after[last[0][0]] if last else 0]), Counted(), None)

            async def stream_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

        agent = self.case.Agent(name="a", model=Scripted(), tools=[self.case.tool_of(results_of(turns))])
        config = self.case.RunConfig(call_model_input_filter=hook, tracing_disabled=True)
        hooks = hook if hasattr(hook, "on_llm_end") else None
        asyncio.run(self.case.Runner.run(agent, messages, max_turns=1_000, hooks=hooks, run_config=config))


class PydanticAI:
    """`Agent`."""

    reducer_name = "ClearToolResults(max_tokens=1_000, keep_pairs=10)"

    def __init__(self) -> None:
        import case_pydantic_ai as case
        from pydantic_ai_harness.compaction import ClearToolResults

        self.case = case
        self.reducer = lambda: ClearToolResults(max_tokens=1_000, keep_pairs=KEEP)
        self.adapter = lambda: case.masking(keep=KEEP)

    def messages(self, turns: list[Turn]) -> list[Any]:
        return [message for part in asked(turns) for message in self.case.history(part)]

    def passing(self) -> Any:
        from pydantic_ai.capabilities import AbstractCapability

        class Passing(AbstractCapability[Any]):
            pass

        return Passing()

    def sent(self, hook: Any, messages: list[Any]) -> list[Any]:
        from pydantic_ai import RunContext
        from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
        from pydantic_ai.models.test import TestModel
        from pydantic_ai.usage import RunUsage

        model = TestModel()
        context: Any = RunContext(deps=None, model=model, usage=RunUsage())
        request = ModelRequestContext(
            model=model, messages=messages, model_settings=None, model_request_parameters=ModelRequestParameters()
        )
        requests: list[Any] = []

        async def handler(given: Any) -> Any:
            requests.append(given.messages)
            return self.case._said(LAST)

        async def call() -> None:  # as the framework does
            async def prepared(given: Any) -> Any:
                if hasattr(hook, "prepare_model_request"):
                    given = await hook.prepare_model_request(context, given)
                return await handler(given)

            before = await hook.before_model_request(context, request)
            await hook.wrap_model_request(context, request_context=before, handler=prepared)

        finished(call())
        found: list[Any] = requests[0]
        return found

    def run(self, hook: Any, messages: list[Any], turns: list[Turn], called: Callable[[], None]) -> None:
        from pydantic_ai.models.function import FunctionModel

        results = results_of(turns)

        def answer(given: list[Any], info: Any) -> Any:
            called()
            return self.case._said(turns[sum(isinstance(one, self.case.ModelResponse) for one in given)])

        agent = self.case.Agent(FunctionModel(answer), capabilities=[hook] if hook else [])

        def run(ctx: Any, command: str, place: int, quiet: bool) -> Any:
            return self.case._content(results[str(ctx.tool_call_id)])

        run.__annotations__["ctx"] = self.case.RunContext[Any]
        agent.tool(run)
        limits = self.case.UsageLimits(request_limit=None)
        asyncio.run(agent.run(message_history=messages, usage_limits=limits))


class Inspect:
    """The compaction of Inspect's agents, for its costs alone."""

    def __init__(self) -> None:
        import case_inspect_ai as case
        from inspect_ai.model import CompactionEdit, compaction, get_model

        async def count_text_tokens(text: str) -> int:  # without the tables that a tokenizer downloads
            return len(text) // 4

        model = get_model("mockllm/m")
        model.api.count_text_tokens = count_text_tokens  # type: ignore[method-assign]
        self.case = case
        made = [message for part in asked(conversation(LONG)) for message in case.history(part)]
        # Compaction knows messages by their ids.
        self._made = [message.model_copy(update={"id": f"m{place}"}) for place, message in enumerate(made)]
        edit = CompactionEdit(threshold=30_000, keep_tool_uses=KEEP)
        self.reducer = lambda: compaction(edit, prefix=self._made[:1], model=model)
        self.adapter = lambda: case.masking(keep=KEEP)

    def messages(self, turns: list[Turn]) -> list[Any]:
        return self._made[: sum(len(self.case.history(part)) for part in asked(turns))]

    def sent(self, hook: Any, messages: list[Any]) -> list[Any]:
        if hasattr(hook, "masker"):
            data = SimpleNamespace(input=list(messages), model_name="m", tools=[])
            asyncio.run(hook.on_before_model_generate(data))
            return list(data.input)
        compacted: list[Any] = asyncio.run(hook.compact_input(messages))[0]
        return compacted


FRAMEWORKS: dict[str, type[Any]] = {
    "langchain": LangChain,
    "openai_agents": OpenAIAgents,
    "pydantic_ai": PydanticAI,
}
COSTED = FRAMEWORKS | {"inspect_ai": Inspect}
# The rows of the page's table; the other frameworks have no reducer, or one that drops messages.
ROWS = {
    "langchain": "LangChain, LangGraph, deepagents",
    "openai_agents": "OpenAI Agents SDK",
    "pydantic_ai": "Pydantic AI",
    "inspect_ai": "Inspect",
}


# The conversation: as that of the contract, with a message of the user after each 20 turns


def conversation(turns: int) -> list[Turn]:
    return [LAST if number % ASKED == STEPS else turn for number, turn in enumerate(session(turns))]


def asked(turns: list[Turn]) -> Iterator[list[Turn]]:
    """The turns from one message of the user to the next."""
    part: list[Turn] = []
    for turn in turns:
        part.append(turn)
        if turn is LAST:
            yield part
            part = []
    yield part


def dicts(turns: list[Turn]) -> list[dict[str, Any]]:
    return [message for part in asked(turns) for message in as_dicts(part)]


def results_of(turns: list[Turn]) -> dict[str, Any]:
    return {name: result for turn in turns for name, result in turn.results.items()}


def finished(coroutine: Any) -> Any:
    """The value of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise SystemExit("a hook waits")


# Answers


def checked_requests(framework: Any, hook: Any, turns: list[Turn]) -> list[list[dict[str, Any]]]:
    """What is sent before each turn, in the form of dicts; that of the adapter is as `reduce` plans it."""
    requests = []
    for count in range(len(turns)):
        given = framework.messages(turns[:count])
        view = framework.case.results(given if hook is None else framework.sent(hook, given))
        if hasattr(hook, "masker"):
            check(framework, turns[:count], view)
        requests.append(mapped(dicts(turns[:count]), dict(view)))
    return requests


def check(framework: Any, turns: list[Turn], view: list[tuple[str, str]]) -> None:
    is_read = hasattr(framework.case, "dicts")  # recede reads these messages itself; others have no marks, as chats
    history = framework.messages(turns) if is_read else [message for part in asked(turns) for message in as_chat(part)]
    plan = recede.reduce(history, keep=KEEP).messages
    if view != (framework.case.results if is_read else shown_in_chat)(plan):
        raise SystemExit(f"an adapter sends another view than reduce after {len(turns)} turns")


def mapped(messages: list[dict[str, Any]], texts: dict[str, str]) -> list[dict[str, Any]]:
    """The dicts with these texts in place of those of their results."""
    raw = dict(shown(messages))
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else []:
            name = block.get("tool_use_id")
            if name is not None and texts[name] != raw[name]:
                block["content"] = texts[name]
    return messages


# Costs


def changes(requests: Sequence[list[Any]]) -> int:
    """The requests that do not begin with all of the one before."""
    return sum(after[: len(before)] != before for before, after in pairwise(requests))


def cost_units(requests: Sequence[list[Any]]) -> float:
    """What requests cost by the rule of `CACHE`, in thousands of tokens that no cache knows.

    The system prompt, the newest message and the newest of the request before are marked. A request reads the longest
    entry that ends few blocks before a mark of its own, and writes the rest.
    """
    entries: dict[int, int] = {}  # characters, by blocks
    before: list[Any] = []
    usages = []
    for request in requests:
        places = [(SYSTEM_CHARS, 1)]
        for message in request:
            chars, blocks = places[-1]
            content = message["content"]
            places.append((chars + recede.count_chars([message]), blocks + (isinstance(content, str) or len(content))))
        same = next(
            (at for at, pair in enumerate(zip(before, request, strict=False)) if pair[0] != pair[1]), len(before)
        )
        entries = {blocks: chars for blocks, chars in entries.items() if chars <= places[same][0]}
        marks = [places[0], places[len(before)], places[-1]]
        marks = [mark for mark in marks if mark[0] >= PRICES.min_cached_tokens * 4]
        found = [
            (chars, blocks)
            for blocks, chars in entries.items()
            if any(0 <= mark - blocks < CACHE.lookback_blocks for _, mark in marks)
        ]
        read, _ = max(found, default=(0, 0))
        entries |= {blocks: chars for chars, blocks in marks}
        sent = places[-1][0]
        usages.append(Usage(1, sent, read, sent - read, 0))
        before = request
    return round(Usage.total(usages).cost(PRICES) / PRICES.input * 1_000, 1)


def requests_by_way(framework: Any, turns: int) -> dict[str, list[list[dict[str, Any]]]]:
    """The requests of the history as it is, with the framework's own reducer and with recede."""
    whole = conversation(turns)
    hooks = {"alone": None, "reducer": framework.reducer(), "recede": framework.adapter()}
    return {way: checked_requests(framework, hook, whole) for way, hook in hooks.items()}


def costs(requests: dict[str, list[list[dict[str, Any]]]]) -> dict[str, float]:
    return {way: cost_units(sent) for way, sent in requests.items()}


def of_raw(name: str) -> dict[str, list[str]]:
    """The costs of both as shares of the raw history's, after so many turns: in the environment of the framework."""
    warnings.simplefilter("ignore")
    found = [costs(requests_by_way(COSTED[name](), turns)) for turns in (SHORT, LONG)]
    return {way: [f"{one[way] / one['alone']:.2f}".removeprefix("0") for one in found] for way in ("reducer", "recede")}


# Times, in milliseconds of CPU


def steps(framework: Any, hook: Any, turns: list[Turn], start: int) -> float:
    """The framework's own agent, from one call of the model to the next: the best of several."""
    stamps: list[float] = []
    framework.run(hook, framework.messages(turns[:start]), turns, lambda: stamps.append(process_time()))
    return min(after - before for before, after in pairwise(stamps)) * 1_000


def calls(framework: Any, hook: Any, given: Callable[[int], list[Any]], start: int) -> float:
    """A hook alone, one turn after the other: the best of several.

    The lists stay: a masker remembers the last one, so that freeing it would be counted here and not for the framework.
    """
    best = float("inf")
    lists = []
    for count in range(start, start + STEPS + 1):
        messages = given(count)
        lists.append(messages)
        begin = process_time()
        view = framework.sent(hook, messages)
        seconds = process_time() - begin
        if count > start:  # the first is the first sight
            best = min(best, seconds)
    if hasattr(hook, "masker"):
        check(framework, conversation(start + STEPS), framework.case.results(view))
    return best * 1_000


class Figures(NamedTuple):
    """Milliseconds of steps and of hooks, requests with another prefix, and cost units, by way."""

    version: str
    reducer: str
    steps: dict[str, float]
    hooks: dict[str, float]
    changes: dict[str, int]
    costs: dict[str, float]


def measure(name: str, start: int) -> Figures:
    """In the environment of the framework."""
    warnings.simplefilter("ignore")
    framework = FRAMEWORKS[name]()
    hooks: dict[str, Callable[[], Any]] = {
        "alone": lambda: None,
        "reducer": framework.reducer,
        "recede": framework.adapter,
    }
    short = conversation(SHORT)
    requests = requests_by_way(framework, SHORT)
    units = costs(requests)
    replayed = replay(dicts(short), [], prices=PRICES, cache=CACHE, system_chars=SYSTEM_CHARS).costs[0].cost
    if abs(replayed / PRICES.input * 1_000 - units["alone"]) > 0.1:
        raise SystemExit(f"the raw history costs {units['alone']}, by recede.costs.replay {replayed}")
    turns = conversation(start + STEPS + 1)
    whole = framework.messages(turns)
    ends = [len(framework.messages(turns[:count])) for count in range(start, start + STEPS + 1)]
    ways: dict[str, Callable[[int], list[Any]]] = {
        "same": lambda count: whole[: ends[count - start]],
        "copied": lambda count: copy.deepcopy(whole[: ends[count - start]]),
        "loaded": lambda count: framework.case.reloaded(whole[: ends[count - start]]),
    }
    gc.disable()
    nothing = calls(framework, framework.passing(), ways["same"], start)
    timed = {way: calls(framework, framework.adapter(), given, start) - nothing for way, given in ways.items()}
    timed["reducer"] = calls(framework, framework.reducer(), ways["same"], start) - nothing
    gc.enable()
    return Figures(
        version=version(name),
        reducer=framework.reducer_name,
        steps={way: steps(framework, make(), turns, start) for way, make in hooks.items()},
        hooks=timed,
        changes={way: changes(sent) for way, sent in requests.items()},
        costs=units,
    )


def version(name: str) -> str:
    package = {"openai_agents": "openai-agents", "pydantic_ai": "pydantic-ai-slim"}.get(name, name)
    return importlib.import_module("importlib.metadata").version(package)


def main() -> None:
    """Measure in each environment, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="some frameworks, with commas between")
    parser.add_argument(
        "--turns", type=int, default=TURNS, help="at so many turns; those of 10, 30, 50, ... end a task"
    )
    parser.add_argument("--costs", action="store_true", help="only the costs, as shares of the raw history's")
    parser.add_argument("--here", choices=COSTED, help="measure this one in this environment, and print JSON")
    given = parser.parse_args()
    if given.here:
        print(json.dumps(of_raw(given.here) if given.costs else measure(given.here, given.turns)))
        return
    from integrations import TESTS, environment

    from formatting import measured_here  # not where a framework is measured, whose environment has less

    found = {}
    for name in [name for name in given.only.split(",") if name] or (COSTED if given.costs else FRAMEWORKS):
        python = environment(TESTS / "requirements" / f"{name}-newest.txt", time.monotonic() + 600)
        command = [python, __file__, "--here", name, "--turns", str(given.turns), *["--costs"] * given.costs]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[name] = json.loads(done.stdout.splitlines()[-1])
    if given.costs:
        print(f"| framework | {COST} |\n|---|---|")
        for name, ways in found.items():
            print(f"| {ROWS[name]} | {', '.join(ways['reducer'])} → {', '.join(ways['recede'])} |")
        return
    print(f"{measured_here()}\n\n{report({name: Figures(*one) for name, one in found.items()}, given.turns)}")


def report(found: dict[str, Figures], turns: int) -> str:
    """The tables, as Markdown."""
    lines = [
        f"| at {turns:,} turns | | a model call / alone | in its own agent, ms | of that the hook, ms | "
        f"changed prefixes in {SHORT} requests | cost units |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    targets = ["| | what | measured / target | measured | target | |", "|---|---|--:|--:|--:|---|"]
    for name, one in found.items():
        title = f"{NAMES[name]} {one.version}"
        for way, label in {"alone": "alone", "reducer": f"`{one.reducer}`", "recede": "recede"}.items():
            hook = {"alone": "", "reducer": f"{one.hooks['reducer']:.2f}", "recede": f"{one.hooks['same']:.2f}"}[way]
            times = f"{one.steps[way] / one.steps['alone']:.1f} | {one.steps[way]:.1f} | {hook}"
            figures = f"{times} | {one.changes[way]} | {one.costs[way]:,.0f}"
            lines.append(f"| {title if way == 'alone' else ''} | {label} | {figures} |")
        what = {
            "same": "objects the same",
            "copied": "objects made again",
            "loaded": "stored and loaded by the framework",
        }
        for way, most in AT_MOST.items():
            verdict = "met" if one.hooks[way] <= most else "**missed**"
            figures = f"{one.hooks[way] / most:.2f} | {one.hooks[way]:.2f} ms | {most:g} ms"
            targets.append(f"| {NAMES[name]} | {what[way]} | {figures} | {verdict} |")
        share = one.hooks["same"] / one.hooks["reducer"]
        verdict = "not set" if name == "openai_agents" else "met" if share <= SHARE else "**missed**"
        figures = f"{share / SHARE:.2f} | {share:.3f} | {SHARE:g}"
        targets.append(f"| {NAMES[name]} | of the framework's own reducer | {figures} | {verdict} |")
    return "\n".join([*lines, "", *targets])


if __name__ == "__main__":
    main()
