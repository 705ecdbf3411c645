"""The calls of an answer: parse them, run them, build the messages with their results."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Literal

from recede._answer import INVALID_JSON, NO_NAME
from recede._encodable import encodable, parsed
from recede._objects import plain
from recede._steps import AsyncFunctionError, Call, Step, drive, drive_async

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


class Tools:
    """The function that runs the tools, and which tools may run concurrently."""

    def __init__(self, run_tool: Callable[[str, Any], Any] | None, parallel: bool | Collection[str]) -> None:
        if isinstance(parallel, str) or not isinstance(parallel, (bool, Collection)):
            words = "must be True, False or a list of tool names"
            raise TypeError(f"parallel_tools {words}, not {type(parallel).__name__}")
        self._run_tool = run_tool
        self.is_async = inspect.iscoroutinefunction(run_tool)
        self._parallel = parallel

    def groups(self, calls: Sequence[ToolCall]) -> Iterator[list[int]]:
        """The indices of calls that may run concurrently, in groups."""

        def is_parallel(place: int) -> bool:
            return self._parallel if isinstance(self._parallel, bool) else calls[place].name in self._parallel

        for together, places in itertools.groupby(range(len(calls)), is_parallel):
            if together:
                yield list(places)
            else:
                yield from ([place] for place in places)

    def steps(self, call: ToolCall) -> Generator[Step, Any, ToolResult]:
        """The steps of a call; an exception becomes the result."""
        if call.fault is not None or self._run_tool is None:
            return ToolResult(call.fault or f"there is no tool {call.name!r}", is_error=True)
        try:
            value = yield Call("run_tool", self._run_tool, (call.name, call.input), in_thread=not self.is_async)
        except AsyncFunctionError:
            raise
        except Exception as error:
            return ToolResult(_words(error), is_error=True)
        return ToolResult.of(value)


class Round:
    """A step: run the calls of one answer. Their results are there by position as they arrive."""

    def __init__(self, tools: Tools, calls: list[ToolCall]) -> None:
        self._tools = tools
        self.calls = calls
        self.results: list[ToolResult | None] = [None] * len(calls)

    def run(self) -> None:
        """Run the calls, in threads where they are concurrent."""

        def finish(place: int) -> None:
            self.results[place] = drive(self._tools.steps(self.calls[place]))

        for places in self._tools.groups(self.calls):
            if len(places) == 1:
                finish(places[0])
                continue
            pool = ThreadPoolExecutor(len(places), thread_name_prefix="recede-tool")
            try:
                for done in as_completed([pool.submit(finish, place) for place in places]):
                    done.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    async def run_async(self) -> None:
        """Run the calls for an async caller; a sync function runs in threads."""

        async def finish(place: int) -> None:
            self.results[place] = await drive_async(self._tools.steps(self.calls[place]))

        for places in self._tools.groups(self.calls):
            tasks = [asyncio.ensure_future(finish(place)) for place in places]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


def _is_part(value: Any) -> bool:
    """Whether a provider accepts the value as a part of a result. A list of anything else is data."""
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(value.get("text"), str) if kind == "text" else isinstance(kind, str) and kind in _PARTS


def _words(error: Exception) -> str:
    name = type(error).__name__
    try:
        said = encodable(str(error))
    except Exception:  # its __str__ fails
        said = ""
    return f"{name}: {said}" if said else name


def calls_of(message: dict[str, Any]) -> list[ToolCall]:
    """Find the calls of an assistant message, in order; calls without an id, or a blank one, are skipped."""
    calls = [_anthropic_call(block) for block in _dicts(message.get("content")) if block.get("type") == "tool_use"]
    calls += map(_openai_call, _dicts(message.get("tool_calls")))
    return [call for call in calls if isinstance(call.id, str) and call.id.strip()]


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
    answered: Counter[Any] = Counter()
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
    left = []
    for call in calls:
        answered[call.id] -= 1
        left += [call] if answered[call.id] < 0 else []
    return left


def result_messages(shape: Shape, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[dict[str, Any]]:
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
