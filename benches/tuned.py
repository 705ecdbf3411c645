"""Python loops that tell what `recede.reduce` tells: the same view and telemetry.

Each answers with a tuple in the order of `recede.Reduction`, and trusts that the history is of the one shape it is
written for. They are the fastest we know; benches/test_answers.py holds them against recede on odd histories too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from histories import Message, Shape

KEEP = 4
PLACEHOLDER = "[old tool output cleared to save context]"
LEAST = len(PLACEHOLDER) + 64  # a shorter text stays


def masked_text(text: str) -> str:
    """The text that masking leaves."""
    return PLACEHOLDER if len(text) >= LEAST else text


# The clear form of the whole answer: what the tuned loops fall back to, and are checked against.

Answer = tuple[Any, ...]


def compact_chars(value: object) -> int:
    """What arguments that are no string count: about their compact JSON, every number 4."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        members = sum(compact_chars(key) + 1 + compact_chars(inner) for key, inner in value.items())
        return members + 2 + max(len(value) - 1, 0)
    if isinstance(value, list):
        return sum(map(compact_chars, value)) + 2 + max(len(value) - 1, 0)
    return 5 if value is False else 4


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] in ("text", "output_text"))
    return content or ""


def _calls(message: Message) -> list[tuple[str, str, int]]:
    """Id, name and chars of each call."""
    if message.get("type") == "function_call":
        return [(message["call_id"], message["name"], 20 + len(message["name"]) + len(message["arguments"]))]
    if message.get("pairRole") == "call":
        return [(message["pairId"], "", 20)]
    calls = []
    for call in message.get("tool_calls") or ():
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        calls.append((call["id"], name, 20 + len(name) + len(arguments)))
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if block["type"] == "tool_use":
            calls.append((block["id"], block["name"], 20 + len(block["name"]) + compact_chars(block["input"])))
    return calls


def _results(message: Message) -> list[tuple[str, str]]:
    """Id and observation of each result."""
    if message.get("type") == "function_call_output":
        return [(message["call_id"], _text(message["output"]))]
    content = message.get("content")
    if message.get("role") == "tool":
        return [(message.get("pairId") or message["tool_call_id"], _text(content))]
    blocks = content if isinstance(content, list) else ()
    return [(block["tool_use_id"], _text(block["content"])) for block in blocks if block["type"] == "tool_result"]


def _masked(message: Message, count: int) -> Message:
    """The message with the first `count` of its results masked."""
    if "output" in message:
        return {**message, "output": masked_text(_text(message["output"]))}
    content = message["content"]
    if message["role"] == "tool":
        return {**message, "content": masked_text(_text(content))}
    blocks = []
    for block in content:
        if block["type"] == "tool_result" and count:
            count -= 1
            block = {**block, "content": masked_text(_text(block["content"]))}
        blocks.append(block)
    return {**message, "content": blocks}


def _is_agent(message: Message) -> bool:
    return message.get("role") == "assistant" or message.get("type") == "function_call"


def _window_start(messages: list[Message], keep: int) -> tuple[int, int]:
    """Index of the message with the oldest of the last `keep` results, and how many results in it are older."""
    for index in reversed(range(len(messages))):
        results = len(_results(messages[index]))
        if results >= keep:
            return index, results - keep
        keep -= results
    return 0, 0


def clear(messages: list[Message], keep: int = KEEP) -> Answer:
    """The answer of recede."""
    start, older = _window_start(messages, keep)
    view = messages.copy()
    tools: dict[str, list[int]] = {}
    nearest: dict[str, tuple[int, str, list[int]]] = {}
    calls: list[tuple[int, str, list[int]]] = []  # index, name, results
    orphans: set[int] = set()
    chars = turns = boundary = 0
    was_agent = False
    for index, message in enumerate(messages):
        chars += len(_text(message.get("content"))) if message.get("role") != "tool" else 0
        turns += _is_agent(message) and not was_agent
        was_agent = _is_agent(message)
        for id, name, size in _calls(message):
            call: tuple[int, str, list[int]] = (index, name, [])
            nearest[id] = call
            calls.append(call)
            chars += size
        results = _results(message)
        for place, (id, text) in enumerate(results):
            _, name, answers = nearest.get(id, (index, "", []))
            answers.append(index)
            if id not in nearest:
                orphans.add(index)
            is_old = index < start or (index == start and place < older)
            boundary += is_old
            left = masked_text(text) if is_old else text
            tool = tools.setdefault(name, [0, 0, 0, 0])
            for field, value in enumerate((1, left is not text, len(text), len(text) - len(left))):
                tool[field] += value
            chars += len(text)
            if left is not text:
                view[index] = _masked(message, older if index == start else len(results))
    end = len(messages)
    while end and _results(messages[end - 1]):
        end -= 1
    while end and _is_agent(messages[end - 1]):  # the last run: its calls are open
        end -= 1
    orphans.update(index for index, _, answers in calls if not answers and index < end)
    return _answer(messages, view, chars, tools, boundary, turns, tuple(sorted(orphans)))


def _answer(
    messages: list[Message],
    view: list[Message],
    chars: int,
    tools: dict[str, Any],
    boundary: int,
    turns: int,
    orphans: tuple[int, ...] = (),
) -> Answer:
    """The fields in the order of `recede.Reduction`; tools: (observations, masked, chars, removed chars)."""
    masked = sum(tool[1] for tool in tools.values())
    gone = sum(tool[3] for tool in tools.values())
    report = {name: tuple(tool) for name, tool in tools.items()}
    stage = first_changed = None
    if masked:
        stage = "masking"
        first_changed = next(index for index, message in enumerate(view) if message is not messages[index])
    return (view if masked else messages, masked > 0, 0, "ok", stage, masked, gone, report, chars, chars - gone, None,
            orphans, first_changed, boundary, None, turns, ())  # fmt: skip


# The tuned loops: the same in one pass, and nothing called in the loop that can be left out. Whatever is unusual, such
# as an orphan, an id that is open twice, or a content that is no string, goes to the clear form.

# Of one tool: sizes of masked observations, and of the others.
_Tool = tuple[list[int], list[int]]


def _sums(tools: dict[str, _Tool]) -> dict[str, tuple[int, int, int, int]]:
    return {
        name: (len(sizes) + len(raw), len(sizes), sum(sizes) + sum(raw), sum(sizes) - len(PLACEHOLDER) * len(sizes))
        for name, (sizes, raw) in tools.items()
        if sizes or raw
    }


def tuned(messages: list[Message], keep: int = KEEP) -> Answer:
    """OpenAI chat."""
    start, _ = _window_start(messages, keep)
    view = messages.copy()
    tools: dict[str, _Tool] = {}
    open_calls: dict[str, _Tool] = {}
    answer = open_calls.pop
    chars = turns = boundary = 0
    agent_before = False
    for index, message in enumerate(messages):
        role = message["role"]
        content = message["content"]
        if role == "tool":
            agent_before = False
            try:
                tool = answer(message["tool_call_id"])
            except KeyError:
                break
            if type(content) is not str:
                break
            size = len(content)
            if index < start:
                boundary += 1
                if size >= LEAST:
                    tool[0].append(size)
                    view[index] = masked = message.copy()
                    masked["content"] = PLACEHOLDER
                    continue
            tool[1].append(size)
        else:
            if type(content) is str:
                chars += len(content)
            elif content is not None:
                break
            if role == "assistant":
                if not agent_before:
                    turns += 1
                    agent_before = True
                if "tool_calls" in message:
                    if open_calls:
                        break
                    calls = message["tool_calls"]
                    for call in calls:
                        function = call["function"]
                        name = function["name"]
                        chars += len(name) + len(function["arguments"])
                        try:
                            open_calls[call["id"]] = tools[name]
                        except KeyError:
                            open_calls[call["id"]] = tools[name] = ([], [])
                    count = len(calls)
                    if len(open_calls) != count:
                        break
                    chars += 20 * count
            else:
                agent_before = False
    else:
        if not open_calls:
            report = _sums(tools)
            chars += sum(tool[2] for tool in report.values())
            return _answer(messages, view, chars, report, boundary, turns)
    return clear(messages, keep)


def tuned_chat_message(messages: list[Message], keep: int = KEEP) -> Answer:
    """ChatMessage: calls have no names, so one tool holds all observations."""
    start, _ = _window_start(messages, keep)
    view = messages.copy()
    sizes: list[int] = []
    raw: list[int] = []
    open_calls: set[str] = set()
    answer = open_calls.remove
    chars = turns = boundary = 0
    agent_before = False
    for index, message in enumerate(messages):
        role = message["role"]
        content = message["content"]
        if type(content) is not str:
            break
        size = len(content)
        if role == "tool":
            agent_before = False
            try:
                answer(message["pairId"])
            except KeyError:
                break
            if index < start:
                boundary += 1
                if size >= LEAST:
                    sizes.append(size)
                    view[index] = masked = message.copy()
                    masked["content"] = PLACEHOLDER
                    continue
            raw.append(size)
        else:
            chars += size
            if role == "assistant":
                if not agent_before:
                    turns += 1
                    agent_before = True
                    if open_calls:
                        break
                if "pairRole" in message:
                    chars += 20
                    id = message["pairId"]
                    if id in open_calls:
                        break
                    open_calls.add(id)
            else:
                agent_before = False
    else:
        if not open_calls:
            report = _sums({"": (sizes, raw)})
            chars += sum(tool[2] for tool in report.values())
            return _answer(messages, view, chars, report, boundary, turns)
    return clear(messages, keep)


def tuned_anthropic(messages: list[Message], keep: int = KEEP) -> Answer:
    """Anthropic messages whose results have strings."""
    start, older = _window_start(messages, keep)
    view = messages.copy()
    tools: dict[str, _Tool] = {}
    open_calls: dict[str, _Tool] = {}
    answer = open_calls.pop
    chars = turns = boundary = 0
    agent_before = usual = True
    for index, message in enumerate(messages):
        blocks = message["content"]
        agent = message["role"] == "assistant"
        if agent is not agent_before or not index:
            turns += agent
            agent_before = agent
        if type(blocks) is str:
            chars += len(blocks)
            continue
        if agent and open_calls:
            break
        masked_blocks = None
        for position, block in enumerate(blocks):
            kind = block["type"]
            if kind == "tool_result":
                content = block["content"]
                tool = answer(block["tool_use_id"], None)
                if tool is None or type(content) is not str:
                    usual = False
                    break
                size = len(content)
                if index < start or (index == start and older > 0):
                    older -= index == start
                    boundary += 1
                    if size >= LEAST:
                        tool[0].append(size)
                        if masked_blocks is None:
                            view[index] = masked = message.copy()
                            masked["content"] = masked_blocks = blocks.copy()
                        masked_blocks[position] = block = block.copy()
                        block["content"] = PLACEHOLDER
                        continue
                tool[1].append(size)
            elif kind == "tool_use":
                name = block["name"]
                id = block["id"]
                if id in open_calls:
                    usual = False
                    break
                chars += 20 + len(name) + compact_chars(block["input"])
                try:
                    open_calls[id] = tools[name]
                except KeyError:
                    open_calls[id] = tools[name] = ([], [])
            elif kind == "text":
                chars += len(block["text"])
        if not usual:
            break
    else:
        if not open_calls:
            report = _sums(tools)
            chars += sum(tool[2] for tool in report.values())
            return _answer(messages, view, chars, report, boundary, turns)
    return clear(messages, keep)


def tuned_responses(messages: list[Message], keep: int = KEEP) -> Answer:
    """OpenAI Responses whose outputs are strings."""
    start, _ = _window_start(messages, keep)
    view = messages.copy()
    tools: dict[str, _Tool] = {}
    open_calls: dict[str, _Tool] = {}
    answer = open_calls.pop
    chars = turns = boundary = 0
    agent_before = False
    for index, item in enumerate(messages):
        kind = item.get("type")
        if kind == "function_call_output":
            agent_before = False
            output = item["output"]
            try:
                tool = answer(item["call_id"])
            except KeyError:
                break
            if type(output) is not str:
                break
            size = len(output)
            if index < start:
                boundary += 1
                if size >= LEAST:
                    tool[0].append(size)
                    view[index] = masked = item.copy()
                    masked["output"] = PLACEHOLDER
                    continue
            tool[1].append(size)
            continue
        if kind == "function_call":
            name = item["name"]
            id = item["call_id"]
            if id in open_calls:
                break
            chars += 20 + len(name) + len(item["arguments"])
            try:
                open_calls[id] = tools[name]
            except KeyError:
                open_calls[id] = tools[name] = ([], [])
            is_agent = True
        else:
            content = item["content"]
            if type(content) is str:
                chars += len(content)
            else:
                for part in content:
                    chars += len(part["text"])
            is_agent = item["role"] == "assistant"
        if is_agent and not agent_before:
            turns += 1
            if len(open_calls) > (kind == "function_call"):
                break
        agent_before = is_agent
    else:
        if not open_calls:
            report = _sums(tools)
            chars += sum(tool[2] for tool in report.values())
            return _answer(messages, view, chars, report, boundary, turns)
    return clear(messages, keep)


TUNED: dict[Shape, Callable[..., Answer]] = {
    "openai": tuned,
    "anthropic": tuned_anthropic,
    "chat_message": tuned_chat_message,
    "responses": tuned_responses,
}
