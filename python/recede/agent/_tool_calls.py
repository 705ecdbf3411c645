"""The calls of an answer: parse them, run them, build the messages with their results."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Literal

from recede._answer import INVALID_JSON, NO_NAME
from recede._encodable import encodable, parsed
from recede._objects import plain
from recede._steps import awaited, not_awaited

__all__ = [
    "Round",
    "Shape",
    "ToolCall",
    "ToolResult",
    "Tools",
    "calls_of",
    "open_calls",
    "result_messages",
]

Shape = Literal["anthropic", "openai"]
# The part types allowed in results, over all providers.
_PARTS = frozenset({"text", "image", "image_url", "document", "search_result", "tool_reference", "input_audio"})


@dataclass(frozen=True)
class ToolCall:
    """A tool call to run; `fault` says why it cannot be run."""

    id: str
    name: str
    input: Any
    fault: str | None = None


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool: a text or a list of content parts."""

    content: Any
    is_error: bool = False

    @classmethod
    def of(cls, value: Any) -> ToolResult:
        """Convert the return value of the caller's function to a result; an error if it cannot be sent."""
        try:
            if value is None:
                return cls("")
            if isinstance(value, str):
                return cls(encodable(value))
            if isinstance(value, list) and value:
                parts = [plain(part) if hasattr(part, "model_dump") else part for part in value]
                if all(map(_is_part, parts)):
                    said = [part for part in parts if part["type"] != "text" or part["text"].strip()]
                    return cls(encodable(said) or "")
            return cls(encodable(json.dumps(value, ensure_ascii=False, default=str)))
        except Exception as error:
            return cls(f"the result cannot be sent: {_words(error)}", is_error=True)


class Round:
    """The calls of one answer, and their results by position as they arrive."""

    def __init__(self, calls: list[ToolCall]) -> None:
        self.calls = calls
        self.results: list[ToolResult | None] = [None] * len(calls)


class Tools:
    """The function that runs the tools, and which tools may run concurrently."""

    def __init__(self, run_tool: Callable[[str, Any], Any] | None, parallel: bool | Collection[str]) -> None:
        if isinstance(parallel, str) or not isinstance(parallel, (bool, Collection)):
            words = "must be True, False or a list of tool names"
            raise TypeError(f"parallel_tools {words}, not {type(parallel).__name__}")
        self._run_tool = run_tool
        self._parallel = parallel

    def demand_plain(self) -> None:
        """Raise TypeError where the function can only be awaited."""
        if inspect.iscoroutinefunction(self._run_tool):
            raise TypeError("run_tool is async: use turn_async")

    def run(self, tool_round: Round) -> None:
        """Run the calls; an exception becomes the result."""

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
        """`run` for a function that may be async; a sync one runs in threads."""

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
        """The indices of calls that may run concurrently, in groups."""

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


def _is_part(value: Any) -> bool:
    """Whether a provider accepts the value as a part of a result. A list of anything else is data."""
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(value.get("text"), str) if kind == "text" else isinstance(kind, str) and kind in _PARTS


def _failure(error: Exception) -> ToolResult:
    return ToolResult(_words(error), is_error=True)


def _words(error: Exception) -> str:
    name = type(error).__name__
    try:
        said = encodable(str(error))
    except Exception:  # its __str__ fails
        said = ""
    return f"{name}: {said}" if said else name


def calls_of(message: dict[str, Any]) -> list[ToolCall]:
    """Find the calls of an assistant message, in order; calls without an id cannot be answered, and are skipped."""
    calls = [_anthropic_call(block) for block in _dicts(message.get("content")) if block.get("type") == "tool_use"]
    calls += map(_openai_call, _dicts(message.get("tool_calls")))
    return [call for call in calls if isinstance(call.id, str)]


def _dicts(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _anthropic_call(block: dict[str, Any]) -> ToolCall:
    value = block.get("input")
    is_read = isinstance(value, dict) and list(value) != [INVALID_JSON]
    return _call(block.get("id"), block.get("name"), value, None if is_read else "the input is not a JSON object")


def _openai_call(call: dict[str, Any]) -> ToolCall:
    custom, function = call.get("custom"), call.get("function")
    if isinstance(custom, dict):
        return _call(call.get("id"), custom.get("name"), custom.get("input"), None)
    function = function if isinstance(function, dict) else {}
    fault = None
    try:
        value = parsed(function.get("arguments") or "")
        if list(value) == [INVALID_JSON]:
            raise ValueError("a part was lost")
    except (TypeError, ValueError) as error:
        value, fault = {}, f"the arguments are not a JSON object: {error}"
    return _call(call.get("id"), function.get("name"), value, fault)


def _call(call_id: Any, name: Any, value: Any, fault: str | None) -> ToolCall:
    return ToolCall(call_id, str(name), value, "the call names no tool" if name in (None, NO_NAME) else fault)


def open_calls(newest_first: Iterable[Any]) -> list[ToolCall]:
    """Find the open calls at the end of a history."""
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
    """Build the messages with the results of these calls, in order."""
    if shape == "anthropic":
        blocks = []
        for call, result in zip(calls, results, strict=True):
            block = {"type": "tool_result", "tool_use_id": call.id, "content": result.content}
            blocks.append({**block, "is_error": True} if result.is_error else block)
        return [{"role": "user", "content": blocks}]
    return [
        # OpenAI has no error flag.
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": f"Error: {result.content}" if result.is_error else result.content,
        }
        for call, result in zip(calls, results, strict=True)
    ]
