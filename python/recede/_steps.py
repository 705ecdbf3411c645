"""Steps that are written once, as a generator of what is to be done, and driven for sync and async callers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

__all__ = ["AsyncFunctionError", "awaited", "drive", "drive_async", "not_awaited"]

_Step = TypeVar("_Step")
_Result = TypeVar("_Result")


class AsyncFunctionError(TypeError):
    """A function that a sync caller gave is async."""


def drive(steps: Generator[_Step, Any, _Result], run: Callable[[_Step], Any]) -> _Result:
    """Run each step, send its result or error to the steps, and return what these return."""
    try:
        step = next(steps)
        while True:
            try:
                done = run(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(done)
    except StopIteration as end:
        result: _Result = end.value
        return result


async def drive_async(steps: Generator[_Step, Any, _Result], run: Callable[[_Step], Awaitable[Any]]) -> _Result:
    """`drive` for steps that are awaited."""
    try:
        step = next(steps)
        while True:
            try:
                done = await run(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(done)
    except StopIteration as end:
        result: _Result = end.value
        return result


def not_awaited(value: Any, name: str, instead: str = "turn_async") -> Any:
    """Return the value; raise AsyncFunctionError if it is awaitable."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise AsyncFunctionError(f"{name} is async: use {instead}")
    return value


async def awaited(value: Awaitable[Any] | Any) -> Any:
    """Return the value, awaited if it is awaitable."""
    return await value if inspect.isawaitable(value) else value
