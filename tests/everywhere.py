"""Histories in every shape, and the doors that make views of them: what tests of the options' promises try."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from tokens_counted import tokens_of

import recede
from oracle.size import opaque_weight
from recede.masker import Facts, Masker
from recede.proxy import RequestMasker

Messages = list[Any]

EXEMPT_TOOL, EXEMPT_TEXT = "ask", "KEEP "
"""What marks a result that is exempt: its tool, its flag as an error, and the beginning of its text."""


class Result(NamedTuple):
    """A result of a step."""

    number: int
    tool: str
    text: str
    is_exempt: bool


class Step(NamedTuple):
    """An answer of the agent, and the results of its calls."""

    text: str
    results: tuple[Result, ...]


Steps = list[Step]
TASK = "Find the bug, and never push to main."


def steps(random: Random, *, results: tuple[int, int], words: int, exempt: float) -> Steps:
    """A random history: results of so many characters, and answers of so many words. Results of `todo` are rare."""
    made: Steps = []
    number = 0
    for _ in range(random.randint(12, 22)):
        own: list[Result] = []
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            number += 1
            is_exempt = random.random() < exempt
            tool = EXEMPT_TOOL if is_exempt else random.choice(("run", "run", "read", "read", "todo"))
            text = f"{EXEMPT_TEXT if is_exempt else ''}<r{number}> " + "line of it " * (random.randint(*results) // 11)
            own.append(Result(number, tool, text, is_exempt))
        made.append(Step("Next I look. " * words, tuple(own)))
    return made


# Shapes: the messages of an answer, and of its results


def _chat(step: Step) -> Iterator[Any]:
    calls = [{"id": f"c{one.number}", "type": "function", "function": _named(one)} for one in step.results]
    yield {"role": "assistant", "content": step.text, "tool_calls": calls}
    for one in step.results:
        error = {"status": "error"} if one.is_exempt else {}
        yield {"role": "tool", "tool_call_id": f"c{one.number}", "content": one.text, **error}


def _anthropic(step: Step) -> Iterator[Any]:
    uses = [{"type": "tool_use", "id": f"c{one.number}", "name": one.tool, "input": {}} for one in step.results]
    yield {"role": "assistant", "content": [{"type": "text", "text": step.text}, *uses]}
    results = [
        {"type": "tool_result", "tool_use_id": f"c{one.number}", "content": one.text, "is_error": one.is_exempt}
        for one in step.results
    ]
    yield {"role": "user", "content": results}


def _responses(step: Step) -> Iterator[Any]:
    yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": step.text}]}
    for one in step.results:
        yield {"type": "function_call", "call_id": f"c{one.number}", **_named(one)}
    for one in step.results:
        error = {"status": "failed"} if one.is_exempt else {}
        yield {"type": "function_call_output", "call_id": f"c{one.number}", "output": one.text, **error}


def _gemini(step: Step) -> Iterator[Any]:
    calls = [{"functionCall": {"id": f"c{one.number}", "name": one.tool, "args": {}}} for one in step.results]
    yield {"role": "model", "parts": [{"text": step.text}, *calls]}
    parts = []
    for one in step.results:
        response = {"error" if one.is_exempt else "output": one.text}
        parts.append({"functionResponse": {"id": f"c{one.number}", "name": one.tool, "response": response}})
    yield {"role": "user", "parts": parts}


def _converse(step: Step) -> Iterator[Any]:
    uses = [{"toolUse": {"toolUseId": f"c{one.number}", "name": one.tool, "input": {}}} for one in step.results]
    yield {"role": "assistant", "content": [{"text": step.text}, *uses]}
    results = []
    for one in step.results:
        status = "error" if one.is_exempt else "success"
        content = {"toolUseId": f"c{one.number}", "content": [{"text": one.text}], "status": status}
        results.append({"toolResult": content})
    yield {"role": "user", "content": results}


def _interactions(step: Step) -> Iterator[Any]:
    yield {"type": "thought", "signature": "c2ln"}
    yield {"type": "model_output", "content": [{"type": "text", "text": step.text}]}
    for one in step.results:
        yield {"type": "function_call", "id": f"c{one.number}", "name": one.tool, "arguments": {}}
    for one in step.results:
        fields = {"name": one.tool, "result": one.text, "is_error": one.is_exempt}
        yield {"type": "function_result", "call_id": f"c{one.number}", **fields}


class Said(NamedTuple):
    """A message of a framework, which an adapter reads."""

    role: str
    text: str
    calls: tuple[tuple[str, str, int], ...] = ()
    of: str | None = None
    is_error: bool = False


def _own(step: Step) -> Iterator[Said]:
    yield Said("assistant", step.text, tuple((f"c{one.number}", one.tool, 2) for one in step.results))
    for one in step.results:
        yield Said("tool", one.text, of=f"c{one.number}", is_error=one.is_exempt)


def _named(one: Result) -> dict[str, str]:
    return {"name": one.tool, "arguments": "{}"}


class Adapter:
    """The adapter of `Said`."""

    def facts(self, one: Said) -> Facts:
        if one.of is not None:
            return Facts("tool", results=[(one.of, None, len(one.text), 1, 0, one.is_error)])
        return Facts(one.role, len(one.text), calls=one.calls)

    def masked(self, one: Said, texts: Any) -> Said:
        return one._replace(text=texts[0])

    def text(self, one: Said, place: int) -> str:
        return one.text

    def summary(self, text: str) -> Said:
        return Said("user", text)


SHAPES: dict[str, tuple[Callable[[Step], Iterator[Any]], Any]] = {
    "chat": (_chat, {"role": "user", "content": TASK}),
    "anthropic": (_anthropic, {"role": "user", "content": [{"type": "text", "text": TASK}]}),
    "responses": (_responses, {"type": "message", "role": "user", "content": TASK}),
    "gemini": (_gemini, {"role": "user", "parts": [{"text": TASK}]}),
    "converse": (_converse, {"role": "user", "content": [{"text": TASK}]}),
    "interactions": (_interactions, {"type": "user_input", "content": [{"type": "text", "text": TASK}]}),
    "own": (_own, Said("user", TASK)),
}


def messages_of(made: Steps, shape: str) -> Messages:
    """A history in a shape."""
    of_step, task = SHAPES[shape]
    return [task, *(message for step in made for message in of_step(step))]


# Doors: the views at requests of a history, and how often each has asked for a summary


class Request(NamedTuple):
    """A request of a door: its steps, the history before it, the view, and how many summaries were asked for."""

    steps: Steps
    history: Messages
    view: Messages
    asked: int


class Told:
    """A summarizer that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: Any, previous: Any) -> str:
        self.calls += 1
        return "What was done so far. " * 12


def _summarizer(options: dict[str, Any]) -> tuple[dict[str, Any], Told]:
    told = Told()
    return {**options, **({"summarizer": told} if options.get("summarizer") else {})}, told


def by_reduce(made: Steps, shape: str, options: dict[str, Any]) -> Iterator[Request]:
    given, told = _summarizer(options)
    history = messages_of(made, shape)
    yield Request(made, history, recede.reduce(history, **given).messages, told.calls)


def by_bytes(made: Steps, shape: str, options: dict[str, Any]) -> Iterator[Request]:
    given, told = _summarizer(options)
    history = messages_of(made, shape)
    yield Request(made, history, json.loads(recede.reduce(json.dumps(history).encode(), **given).json), told.calls)


def by_history(made: Steps, shape: str, options: dict[str, Any]) -> Iterator[Request]:
    given, told = _summarizer(options)
    session, history = recede.History(**given), messages_of([], shape)
    session.extend(history)
    for count, step in enumerate(made, 1):
        session.view()
        new = list(SHAPES[shape][0](step))
        session.extend(new)
        history = [*history, *new]
        yield Request(made[:count], history, session.view(), told.calls)


def by_masker(made: Steps, shape: str, options: dict[str, Any]) -> Iterator[Request]:
    given, told = _summarizer(options)
    masker: Masker[Any] = Masker(Adapter() if shape == "own" else None, **given)
    for count in range(len(made) + 1):
        history = messages_of(made[:count], shape)
        view = masker.view(history)
        if count:
            yield Request(made[:count], history, view, told.calls)


PATHS = {
    "chat": ("/v1/chat/completions", "messages"),
    "anthropic": ("/v1/messages", "messages"),
    "responses": ("/v1/responses", "input"),
    "gemini": ("/v1beta/models/gemini-3-pro:generateContent", "contents"),
    "interactions": ("/v1beta/interactions", "input"),
}


def by_request_masker(made: Steps, shape: str, options: dict[str, Any]) -> Iterator[Request]:
    given = {name: value for name, value in options.items() if name != "summarizer"}
    masker, asked = RequestMasker(summaries=bool(options.get("summarizer")), clock=float, **given), 0
    path, key = PATHS[shape]
    for count in range(len(made) + 1):
        history = messages_of(made[:count], shape)
        done = masker.mask("POST", path, {}, json.dumps({key: history}).encode())
        assert done.fault is None, done.fault
        if done.asked is not None:
            asked += 1
            masker.give(done.asked, "What was done so far. " * 12)
        if count:
            yield Request(made[:count], history, json.loads(done.body)[key], asked)


Door = Callable[[Steps, str, dict[str, Any]], Iterator[Request]]
OF_DICTS = tuple(name for name in SHAPES if name != "own")
DOORS: dict[str, tuple[Door, tuple[str, ...], bool]] = {
    # name: the door, its shapes, and whether it hides messages for a limit
    "reduce": (by_reduce, OF_DICTS, True),
    "reduce bytes": (by_bytes, OF_DICTS, True),
    "History": (by_history, OF_DICTS, True),
    "Masker": (by_masker, tuple(SHAPES), False),
    "RequestMasker": (by_request_masker, tuple(PATHS), False),
}


def shown_in(view: Messages) -> str:
    """The text of a view, in which each result can be looked for."""
    return json.dumps([one.text if isinstance(one, Said) else one for one in view])


def chars_of(messages: Messages) -> int:
    """Characters of messages; those of an adapter have their texts alone."""
    if messages and isinstance(messages[0], Said):
        return sum(len(one.text) for one in messages)
    return recede.count_chars(messages)


def quarters_of(messages: Messages) -> int:
    """Quarter tokens of messages, as a limit counts them."""
    if messages and isinstance(messages[0], Said):  # an adapter gives characters
        names = sum(len(name) + chars for one in messages for _, name, chars in one.calls)
        calls = sum(len(one.calls) for one in messages)
        return int(1.05 * opaque_weight(names + sum(len(one.text) for one in messages))) + 44 * calls
    return round(4 * tokens_of(messages))
