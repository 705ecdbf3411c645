"""A session in no framework's form: turns with parallel calls, errors, an image; each case builds it in its own."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

TASK = "Find the bug."
IMAGE = "iVBORw0KGgo="


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Result:
    id: str
    text: str
    is_error: bool = False
    has_image: bool = False


@dataclass(frozen=True)
class Turn:
    """What the model says and calls, and the results, by id."""

    said: str
    calls: list[Call] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)


LAST = Turn("Done.")


def session(turns: int = 60, seed: int = 1) -> list[Turn]:
    """Turns with a call each or three at once; every ninth result an error, one an image."""
    chance = random.Random(seed)
    made: list[Turn] = []
    for number in range(turns):
        calls, results = [], {}
        for place in range(3 if number % 7 == 3 else 1):
            name = f"call_{seed}_{number}_{place}"
            calls.append(Call(name, "run", {"command": f"step {number}", "place": place, "quiet": number % 2 == 0}))
            line = f"seed {seed}, turn {number}, call {place}: " + "ä line of the log" * chance.randint(1, 4)
            text = "\n".join([line] * chance.randint(2, 60))
            results[name] = Result(name, text, is_error=number % 9 == 4, has_image=number == 5)
        made.append(Turn(f"Step {number}." if number % 3 else "", calls, results))
    return made


def asked_for(turns: list[Turn], requests: list[Any], *, is_failing: bool = False) -> Turn:
    """The turn that the newest of these requests is answered with; every other one fails, if they do."""
    number = (len(requests) - 1) // (2 if is_failing else 1)
    return turns[min(number, len(turns) - 1)]  # who asks on has the last one again


def numbered_from_zero(turns: list[Turn]) -> list[Turn]:
    """The turns with ids that every session has."""
    return [
        Turn(
            turn.said,
            [replace(call, id=f"call_{number}_{place}") for place, call in enumerate(turn.calls)],
            {
                f"call_{number}_{place}": replace(one, id=f"call_{number}_{place}")
                for place, one in enumerate(turn.results.values())
            },
        )
        for number, turn in enumerate(turns)
    ]


def results_by_arguments(turns: list[Turn]) -> dict[Any, list[Result]]:
    """The results by command and place of their calls, in order, for a tool that is not told the id of its call."""
    left: dict[Any, list[Result]] = {}
    for turn in turns:
        for call in turn.calls:
            if call.id in turn.results:
                left.setdefault((call.args.get("command"), call.args.get("place")), []).append(turn.results[call.id])
    return left


def as_dicts(turns: list[Turn]) -> list[dict[str, Any]]:
    """The session as recede reads it: Anthropic's blocks, a message for each result."""
    history: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
    for turn in turns:
        said = [{"type": "text", "text": turn.said}] if turn.said else []
        calls = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.args} for call in turn.calls]
        history.append({"role": "assistant", "content": [*said, *calls]})
        for result in turn.results.values():
            parts: list[Any] = [{"type": "text", "text": result.text}]
            if result.has_image:
                source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
                parts.append({"type": "image", "source": source})
            block = {"type": "tool_result", "tool_use_id": result.id, "content": parts, "is_error": result.is_error}
            history.append({"role": "user", "content": [block]})
    return history


def as_chat(turns: list[Turn]) -> list[dict[str, Any]]:
    """The session as messages of chat completions, which have no place for marks; arguments as adapters see them."""
    history: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
    for turn in turns:
        functions = [(call.id, {"name": call.name, "arguments": call.args}) for call in turn.calls]
        calls = [{"id": call_id, "type": "function", "function": function} for call_id, function in functions]
        history.append({"role": "assistant", "content": turn.said, "tool_calls": calls})
        for result in turn.results.values():
            parts: list[Any] = [{"type": "text", "text": result.text}]
            if result.has_image:
                parts.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}})
            history.append({"role": "tool", "tool_call_id": result.id, "content": parts})
    return history


def shown(history: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The results of `as_dicts`, or of a view of it: ids and texts."""
    blocks = (block for message in history if isinstance(message["content"], list) for block in message["content"])
    return [(one["tool_use_id"], _text_of(one["content"])) for one in blocks if one["type"] == "tool_result"]


def shown_in_chat(history: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The same of `as_chat`."""
    return [(one["tool_call_id"], _text_of(one["content"])) for one in history if one["role"] == "tool"]


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class Case(Protocol):
    """A framework, as the contract asks it. A message for the task, one for each answer, and the results in order."""

    def history(self, turns: list[Turn]) -> list[Any]:
        """The session in the framework's own messages."""

    def masking(self, **options: Any) -> Any:
        """The adapter, as users make it."""

    def view(self, masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
        """What the adapter sends for these messages to a model of this name."""

    def results(self, messages: list[Any]) -> list[tuple[str, str]]:
        """The results in them, in order: ids and texts."""

    def contents(self, messages: list[Any]) -> dict[str, Any]:
        """The contents of the results in them, by id, as the framework has them."""

    def calls(self, messages: list[Any]) -> list[str]:
        """The ids of the calls in them, in order."""

    def typed_results(self) -> dict[str, list[Any]]:
        """The task, a call ``"1"`` and its result, for each type of content that the framework takes in a result."""

    def typed_messages(self) -> dict[str, list[Any]]:
        """The task and a message, for each other type of message or content that the framework takes."""

    def reloaded(self, messages: list[Any]) -> list[Any]:
        """The messages after they were stored and loaded by the framework."""

    def body(self, messages: list[Any]) -> tuple[str, dict[str, Any]]:
        """A provider, and the body in which the framework sends it these messages.

        Where a request goes to the played server, which refuses it itself, there is none.
        """

    def run(self, masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
        """Run the framework's own agent with what plays the turns: its requests, and what is stored.

        `way` is ``"sync"``, ``"async"``, ``"stream"`` or ``"failing"``: then the model fails once and is retried.
        """
