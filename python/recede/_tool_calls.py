"""The calls of an answer: reading them, running them, and the messages that answer them."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "Round",
    "Shape",
    "ToolCall",
    "ToolResult",
    "Tools",
    "awaited",
    "calls_of",
    "not_awaited",
    "open_calls",
    "result_messages",
]

Shape = Literal["anthropic", "openai"]


@dataclass(frozen=True)
class ToolCall:
    """A call that a tool is to be run for; `fault` says why it cannot be."""

    id: str
    name: str
    input: Any
    fault: str | None = None


@dataclass(frozen=True)
class ToolResult:
    """What a tool gave: a text or a list of content parts."""

    content: Any
    is_error: bool = False

    @classmethod
    def of(cls, value: Any) -> ToolResult:
        """The result that a function of the caller returned."""
        if value is None:
            return cls("")
        if isinstance(value, (str, list)):
            return cls(value)
        return cls(json.dumps(value, ensure_ascii=False, default=str))


class Round:
    """The calls of one answer; the result of each stands in its place as soon as it is there."""

    def __init__(self, calls: list[ToolCall]) -> None:
        self.calls = calls
        self.results: list[ToolResult | None] = [None] * len(calls)


class Tools:
    """The function that runs the tools, and which of them may run at the same time."""

    def __init__(self, run_tool: Callable[[str, Any], Any] | None, parallel: bool | Collection[str]) -> None:
        if isinstance(parallel, str):
            raise TypeError("parallel_tools must be True, False or a list of tool names, not str")
        self._run_tool = run_tool
        self._parallel = parallel

    def demand_plain(self) -> None:
        """Raise TypeError where the function can only be awaited."""
        if inspect.iscoroutinefunction(self._run_tool):
            raise TypeError("run_tool is async: use turn_async")

    def run(self, tool_round: Round) -> None:
        """Run the calls; what a tool raises is its result."""

        def finish(place: int) -> None:
            tool_round.results[place] = self._result(tool_round.calls[place])

        for places in self._groups(tool_round.calls):
            if len(places) == 1:
                finish(places[0])
                continue
            pool = ThreadPoolExecutor(len(places), thread_name_prefix="recede-tool")
            try:
                for done in as_completed([pool.submit(finish, place) for place in places]):
                    done.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    async def run_async(self, tool_round: Round) -> None:
        """`run` for a function that may be async; one that is not runs in threads."""

        async def finish(place: int) -> None:
            tool_round.results[place] = await self._result_async(tool_round.calls[place])

        for places in self._groups(tool_round.calls):
            tasks = [asyncio.ensure_future(finish(place)) for place in places]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _groups(self, calls: Sequence[ToolCall]) -> Iterator[list[int]]:
        """The places of calls that may run at the same time, one group after the other."""

        def is_parallel(place: int) -> bool:
            return self._parallel if isinstance(self._parallel, bool) else calls[place].name in self._parallel

        for together, places in itertools.groupby(range(len(calls)), is_parallel):
            if together:
                yield list(places)
            else:
                yield from ([place] for place in places)

    def _result(self, call: ToolCall) -> ToolResult:
        if call.fault is not None or self._run_tool is None:
            return ToolResult(call.fault or f"there is no tool {call.name!r}", is_error=True)
        try:
            value = self._run_tool(call.name, call.input)
        except Exception as error:
            return _failure(error)
        return ToolResult.of(not_awaited(value, "run_tool"))

    async def _result_async(self, call: ToolCall) -> ToolResult:
        if call.fault is not None or self._run_tool is None:
            return ToolResult(call.fault or f"there is no tool {call.name!r}", is_error=True)
        try:
            if inspect.iscoroutinefunction(self._run_tool):
                return ToolResult.of(await self._run_tool(call.name, call.input))
            return ToolResult.of(await awaited(await asyncio.to_thread(self._run_tool, call.name, call.input)))
        except Exception as error:
            return _failure(error)


def _failure(error: Exception) -> ToolResult:
    said = str(error)
    return ToolResult(f"{type(error).__name__}: {said}" if said else type(error).__name__, is_error=True)


def calls_of(message: dict[str, Any]) -> list[ToolCall]:
    """The calls of an assistant's message, in their order."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    calls = [ToolCall(b["id"], b["name"], b["input"]) for b in blocks if b.get("type") == "tool_use"]
    for call in message.get("tool_calls") or ():
        calls.append(_openai_call(call))
    return calls


def _openai_call(call: dict[str, Any]) -> ToolCall:
    if "custom" in call:
        return ToolCall(call["id"], call["custom"]["name"], call["custom"]["input"])
    name, arguments = call["function"]["name"], call["function"].get("arguments")
    try:
        return ToolCall(call["id"], name, json.loads(arguments or "{}"))
    except ValueError as error:
        return ToolCall(call["id"], name, None, fault=f"the arguments are no JSON: {error}")


def open_calls(newest_first: Iterable[Any]) -> list[ToolCall]:
    """The calls at the end of a history that have no result yet."""
    answered: set[Any] = set()
    calls: list[ToolCall] = []
    in_run = False
    for message in newest_first:
        if message.get("role") == "assistant":
            in_run = True
            calls[:0] = calls_of(message)
            continue
        content = message.get("content")
        results = [message.get("tool_call_id")] if message.get("role") == "tool" else []
        if isinstance(content, list):
            results += [block.get("tool_use_id") for block in content if block.get("type") == "tool_result"]
        if in_run or not results:
            break
        answered.update(results)
    return [call for call in calls if call.id not in answered]


def result_messages(shape: Shape, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """The messages that answer these calls, in their order."""
    if shape == "anthropic":
        blocks = []
        for call, result in zip(calls, results, strict=True):
            block = {"type": "tool_result", "tool_use_id": call.id, "content": result.content}
            blocks.append({**block, "is_error": True} if result.is_error else block)
        return [{"role": "user", "content": blocks}]
    return [
        # It has no flag for errors.
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": f"Error: {result.content}" if result.is_error else result.content,
        }
        for call, result in zip(calls, results, strict=True)
    ]


def not_awaited(value: Any, name: str) -> Any:
    """The value; TypeError where it was to be awaited."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(f"{name} is async: use turn_async")
    return value


async def awaited(value: Awaitable[Any] | Any) -> Any:
    """The value, awaited where it is to be."""
    return await value if inspect.isawaitable(value) else value
