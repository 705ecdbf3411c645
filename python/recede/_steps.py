"""Work that is written once, as a generator of steps, and driven for sync and for async callers.

A step is what a caller's function or client does: a call, the next event of a stream, a round of tools. The generator
yields it and is given its result or its error; it does not know whether the step was awaited.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, Protocol, TypeVar

_Result = TypeVar("_Result")


class Step(Protocol):
    """What a generator of steps yields."""

    def run(self) -> Any:
        """Do it for a sync caller."""

    async def run_async(self) -> Any:
        """Do it for an async caller."""


class AsyncFunctionError(TypeError):
    """A function that a sync caller gave is async."""


class Call(NamedTuple):
    """A call of a function that was given, by its name; `instead` is the method that awaits it."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    instead: str = "turn_async"
    in_thread: bool = False  # of async callers

    def run(self) -> Any:
        """The result; AsyncFunctionError if the function is async."""
        value = self.function(*self.arguments)
        if inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            raise AsyncFunctionError(f"{self.name} is async: use {self.instead}")
        return value

    def _called(self) -> Any:
        """The result, in a thread: a future takes no StopIteration, and would be waited for without end."""
        try:
            return self.function(*self.arguments)
        except StopIteration as error:
            raise RuntimeError(f"{self.name} raised StopIteration") from error

    async def run_async(self) -> Any:
        if self.in_thread:
            import asyncio  # lazily: it takes as long to import as a History

            value = await asyncio.to_thread(self._called)
        else:
            value = self.function(*self.arguments)
        return await value if inspect.isawaitable(value) else value


def drive(steps: Generator[Step, Any, _Result]) -> _Result:
    """Run each step, send its result or error to the steps, and return what these return."""
    try:
        step = next(steps)
        while True:
            try:
                done = step.run()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(done)
    except StopIteration as end:
        result: _Result = end.value
        return result


async def drive_async(steps: Generator[Step, Any, _Result]) -> _Result:
    """`drive` for an async caller."""
    try:
        step = next(steps)
        while True:
            try:
                done = await step.run_async()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(done)
    except StopIteration as end:
        result: _Result = end.value
        return result
