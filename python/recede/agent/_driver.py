"""Drivers that make the steps of a turn with a sync or an async client."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recede._forks import lock_of
from recede._steps import awaited, drive, drive_async, not_awaited
from recede.agent._stream import Streamed
from recede.agent._tool_calls import Round, Tools

__all__ = ["Ask", "Driver"]

_Result = TypeVar("_Result")
_OnText = Callable[[str], Any] | None


@dataclass
class Ask:
    """A step of a turn: make this request."""

    request: dict[str, Any]
    streamed: Streamed = field(default_factory=Streamed)


class Driver:
    """Makes requests and runs tools; one turn at a time."""

    def __init__(self, create: Callable[..., Any], tools: Tools) -> None:
        self._create = create
        self._tools = tools
        self._lock = lock_of(self, threading.Lock)

    def _after_fork(self, *, was_changing: bool) -> None:
        """The turn of a thread of the parent is not in progress in a child."""

    def drive(self, steps: Generator[Ask | Round, Any, _Result], on_text: _OnText) -> _Result:
        """Make the steps, and return their result."""
        self._tools.demand_plain()
        with self._one_turn():
            return drive(
                steps, lambda step: self._ask(step, on_text) if isinstance(step, Ask) else self._tools.run(step)
            )

    async def drive_async(self, steps: Generator[Ask | Round, Any, _Result], on_text: _OnText) -> _Result:
        """Make the steps with an async client, and return their result."""

        def run(step: Ask | Round) -> Awaitable[Any]:
            return self._ask_async(step, on_text) if isinstance(step, Ask) else self._tools.run_async(step)

        with self._one_turn():
            return await drive_async(steps, run)

    @contextmanager
    def _one_turn(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("a turn of this conversation is in progress: wait until it ends")
        try:
            yield
        finally:
            self._lock.release()

    def _ask(self, ask: Ask, on_text: _OnText) -> Any:
        if on_text is None:
            return not_awaited(self._create(**ask.request), "create")
        stream = not_awaited(self._create(**ask.request, stream=True), "create")
        try:
            for event in stream:
                text = ask.streamed.add(event)
                if text:
                    not_awaited(on_text(text), "on_text")
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()
        return ask.streamed.response()

    async def _ask_async(self, ask: Ask, on_text: _OnText) -> Any:
        if on_text is None:
            return await awaited(self._create(**ask.request))
        stream = await awaited(self._create(**ask.request, stream=True))
        if not hasattr(stream, "__aiter__"):
            raise TypeError("create gives a stream that is not async: use turn")
        try:
            async for event in stream:
                text = ask.streamed.add(event)
                if text:
                    await awaited(on_text(text))
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                await awaited(close())
        return ask.streamed.response()
