"""Histories to measure and to test with: a realistic mix by seed, and hostile ones. Standard library only.

The mix is that of docs/design.md: system and user, then turns of an assistant message (short text, one to three tool
calls with JSON in a string) and the results. Result sizes are log-normal with a median of 1.5 KB and at most 60 KB;
about 85 % of the characters are in results; an escape comes about every 26 bytes; 16 % of the texts are mixed with
non-ASCII, 2 % are Chinese. 20 MB are about 9,400 messages. `python benches/histories.py` prints what it really is.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal

Shape = Literal["openai", "anthropic", "chat_message", "responses"]
Style = Literal["compact", "ascii"]
Message = dict[str, Any]

SHAPES: tuple[Shape, ...] = ("openai", "anthropic", "chat_message", "responses")
MEDIAN_BYTES = 1_500
SPREAD = 1.01  # sigma of the log-normal sizes: it gives 20 MB to 9,400 messages
MAX_BYTES = 60_000

# What stands around a word, by kind of text, with weights: the escapes come from here.
_FRAMES = {
    "listing": {"{}/": 38, "{} ": 22, "{}.py\n": 18, "{}: ": 17, '"{}" ': 1, "{}\t": 7, "{}\\": 1},
    "code": {"{} ": 40, "{}(": 14, "{}_": 12, "{}.": 14, "\n    {} = ": 10, "\n\t{} ": 3, '"{}", ': 5, "\\{} ": 2},
    "test_output": {"{} ": 48, "{}::": 16, "{}... ok\n": 13, "E   {} ": 7, '"{}" ': 3, "\t{}": 4, "{}\n": 7, "\\{}": 1},
    "prose": {"{} ": 82, "{}, ": 8, "{}. ": 5, '"{}" ': 2, "{}.\n\n": 2},
}
_RESULT_KINDS = ("listing", "code", "test_output")
_TOOLS = ("bash", "read_file", "search", "edit_file", "run_tests", "list_files", "web_fetch")


def _word(rng: random.Random) -> str:
    return "".join(
        rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))
    )


@cache
def _lexicon(kind: str, script: str) -> tuple[list[str], float]:
    """Some thousand words in their frames, and how many UTF-8 bytes one has on average."""
    rng = random.Random(f"{kind} {script}")
    if script == "chinese":
        frames = {"{}": 80, "{}，": 10, "{}。\n": 6, "{}\t": 2, '"{}"': 2}
        words = ["".join(chr(rng.randint(0x4E00, 0x9FA5)) for _ in range(rng.randint(1, 4))) for _ in range(4_000)]
    else:
        frames = _FRAMES[kind]
        words = [_word(rng) for _ in range(4_000)]
        if script == "mixed":
            accents = str.maketrans("aeiou", "äéîøü")
            greek = str.maketrans("abdeglmnopst", "αβδεγλμνοπστ")
            foreign = [word.translate(rng.choice((accents, greek))) for word in words[:900]]
            words[:1_000] = foreign + rng.choices(("→", "✓", "…", "—", "😀", "│"), k=100)
    chosen = rng.choices(list(frames), list(frames.values()), k=len(words))
    lexicon = [frame.format(word) for frame, word in zip(chosen, words, strict=True)]
    return lexicon, sum(len(entry.encode()) for entry in lexicon) / len(lexicon)


def text(rng: random.Random, kind: str, size: int) -> str:
    """A text of about `size` UTF-8 bytes: random words, so it has no period."""
    luck = rng.random()
    script = "chinese" if luck < 0.02 else "mixed" if luck < 0.18 else "plain"
    lexicon, mean = _lexicon(kind, script)
    words = "".join(rng.choices(lexicon, k=int(size / mean * 1.1) + 8))
    per_char = 1.0 if script == "plain" else len(words.encode()) / len(words)
    return words[: int(size / per_char)]


def _size(rng: random.Random) -> int:
    return min(int(rng.lognormvariate(math.log(MEDIAN_BYTES), SPREAD)), MAX_BYTES)


def _arguments(rng: random.Random) -> dict[str, Any]:
    arguments: dict[str, Any] = {"path": text(rng, "listing", 24), "query": text(rng, "code", rng.randint(20, 260))}
    if rng.random() < 0.3:
        arguments["limit"] = rng.randint(1, 500)
    return arguments


class _Call:
    __slots__ = ("arguments", "id", "name")

    def __init__(self, rng: random.Random) -> None:
        self.id = f"call_{rng.getrandbits(64):016x}"
        self.name = rng.choice(_TOOLS)
        self.arguments = _arguments(rng)


def _openai(said: str, calls: list[_Call], results: list[str]) -> Iterator[Message]:
    message: Message = {"role": "assistant", "content": said}
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in calls
        ]
    yield message
    for call, result in zip(calls, results, strict=True):
        yield {"role": "tool", "tool_call_id": call.id, "content": result}


def _anthropic(said: str, calls: list[_Call], results: list[str]) -> Iterator[Message]:
    uses = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in calls]
    yield {"role": "assistant", "content": [{"type": "text", "text": said}, *uses]}
    if calls:
        blocks = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}
            for call, result in zip(calls, results, strict=True)
        ]
        yield {"role": "user", "content": blocks}


def _chat_message(said: str, calls: list[_Call], results: list[str]) -> Iterator[Message]:
    if not calls:
        yield {"role": "assistant", "content": said}
    for call in calls:
        # This shape has no field for a call, so name and arguments are part of the text.
        asked = f"{said}\n{call.name}({json.dumps(call.arguments, ensure_ascii=False)})"
        yield {"role": "assistant", "content": asked, "pairRole": "call", "pairId": call.id}
        said = ""
    for call, result in zip(calls, results, strict=True):
        yield {"role": "tool", "content": result, "pairRole": "result", "pairId": call.id}


def _responses(said: str, calls: list[_Call], results: list[str]) -> Iterator[Message]:
    yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}
    for call in calls:
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}
    for call, result in zip(calls, results, strict=True):
        yield {"type": "function_call_output", "call_id": call.id, "output": result}


_TURNS: dict[Shape, Callable[[str, list[_Call], list[str]], Iterator[Message]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "chat_message": _chat_message,
    "responses": _responses,
}
# Messages that a turn of k calls takes, so that a history can end with a whole turn.
_TURN_LENGTH: dict[Shape, Callable[[int], int]] = {
    "openai": lambda calls: 1 + calls,
    "anthropic": lambda calls: 2,
    "chat_message": lambda calls: 2 * calls,
    "responses": lambda calls: 1 + 2 * calls,
}


def history(messages: int, *, shape: Shape = "openai", seed: int = 0) -> list[Message]:
    """So many messages: system (none in the Anthropic shape), user, then whole turns; every call has its result."""
    rng = random.Random(f"{shape} {seed}")
    view: list[Message] = [{"role": "user", "content": text(rng, "prose", 1_200)}]
    if shape != "anthropic":
        view.insert(0, {"role": "system", "content": text(rng, "prose", 3_000)})
    del view[messages:]
    turn, length = _TURNS[shape], _TURN_LENGTH[shape]
    while (room := messages - len(view)) > 0:
        count = rng.randint(1, 3)
        while count and length(count) > room:
            count -= 1
        calls = [_Call(rng) for _ in range(count)]
        results = [text(rng, rng.choice(_RESULT_KINDS), _size(rng)) for _ in calls]
        view.extend(turn(text(rng, "prose", rng.randint(40, 800)), calls, results))
    return view


def encoded(messages: list[Message], style: Style = "compact") -> bytes:
    """The history as JSON: compact UTF-8, or as `json.dumps` writes by default."""
    if style == "ascii":
        return json.dumps(messages).encode()
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode()


def serialized(messages: int, *, shape: Shape = "openai", seed: int = 0, style: Style = "compact") -> bytes:
    """`history` as JSON."""
    return encoded(history(messages, shape=shape, seed=seed), style)


# Hostile histories. Each is of size O(n) and must be reduced in O(n).


def _asks(ids: list[str | None]) -> Message:
    function = {"name": "bash", "arguments": "{}"}
    calls = [
        {"type": "function", "function": function} if id is None else {"id": id, "function": function} for id in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _answers(id: str | None) -> Message:
    message = {"role": "tool", "content": "x" * 100}
    return message if id is None else message | {"tool_call_id": id}


def parallel_calls(n: int) -> list[Message]:
    """One message with n calls, then their results, the last one first."""
    ids: list[str | None] = [f"call_{index}" for index in range(n)]
    return [{"role": "user", "content": "go"}, _asks(ids), *map(_answers, reversed(ids))]


def open_calls(n: int) -> list[Message]:
    """n calls, none of them answered, and a user message behind them."""
    return [*(_asks([f"call_{index}"]) for index in range(n)), {"role": "user", "content": "well?"}]


def one_id(n: int) -> list[Message]:
    """n turns that all use the same id."""
    return [message for _ in range(n) for message in (_asks(["call_0"]), _answers("call_0"))]


def one_id_parallel(n: int) -> list[Message]:
    """n calls of the same id in one message, then n results."""
    return [_asks(["call_0"] * n), *(_answers("call_0") for _ in range(n))]


def no_ids(n: int) -> list[Message]:
    """n turns without any id."""
    return [message for _ in range(n) for message in (_asks([None]), _answers(None))]


def empty_messages(n: int) -> list[Message]:
    """n times `{}`."""
    return [{} for _ in range(n)]


def _around(content: bytes) -> bytes:
    """Two pairs, so that the first result, which holds `content`, is old."""
    tail = encoded([_asks(["b"]), _answers("b"), *({"role": "user", "content": "on"} for _ in range(4))])
    return encoded([_asks(["a"])])[:-1] + b',{"role":"tool","tool_call_id":"a","content":' + content + b"}," + tail[1:]


def one_message(n: int) -> bytes:
    """One result of n plain characters."""
    return _around(b'"' + b"x" * n + b'"')


def only_escapes(n: int) -> bytes:
    """One result of n bytes of two-byte escapes."""
    return _around(b'"' + rb"\n\"\\\t\/" * (n // 10) + b'"')


def only_unicode_escapes(n: int) -> bytes:
    """One result of n bytes of six-byte escapes, every third pair a surrogate pair."""
    return _around(b'"' + rb"\u00e9\u4e2d\ud83d\ude00" * (n // 24) + b'"')


def only_backslashes(n: int) -> bytes:
    """One result of n backslashes: each block begins inside an escape or not."""
    return _around(b'"x' + rb"\\" * (n // 2) + b'"')


def only_cjk(n: int) -> bytes:
    """One result of n bytes of three-byte characters."""
    rng = random.Random(0)
    return _around(b'"' + "".join(chr(rng.randint(0x4E00, 0x9FA5)) for _ in range(n // 3)).encode() + b'"')


def deep_nesting(levels: int) -> bytes:
    """A field that nobody reads, nested so deep; over 1,024 in all is an error."""
    return b'[{"role":"user","content":"x","metadata":' + b"[" * levels + b"]" * levels + b"}]"


def open_brackets(n: int) -> bytes:
    """n brackets that never close: an error at byte 1,024."""
    return b"[" * n


def observations(messages: list[Message]) -> list[str]:
    """The texts of all results, in order."""
    found: list[str] = []
    for message in messages:
        content = message.get("content")
        if message.get("role") == "tool":
            found.append(message["content"])
        elif "output" in message:
            found.append(message["output"])
        elif isinstance(content, list):
            found += [block["content"] for block in content if block["type"] == "tool_result"]
    return found


def _counted(messages: list[Message]) -> int:
    """All texts, names and arguments: about what recede counts."""
    structure = {"role", "type", "id", "tool_call_id", "tool_use_id", "call_id", "pairId", "pairRole"}

    def chars(value: object) -> int:
        if isinstance(value, dict):
            return sum(chars(inner) for key, inner in value.items() if key not in structure)
        return sum(map(chars, value)) if isinstance(value, list) else len(str(value))

    return chars(messages)


def statistics_of(messages: list[Message]) -> str:
    """What a mix really is, in one line."""
    data = encoded(messages)
    results = observations(messages)
    sizes = [len(result.encode()) for result in results]
    foreign = [sum(char > "\x7f" for char in result) / max(len(result), 1) for result in results]
    backslashes = data.count(b"\\")
    escapes = backslashes - data.count(b"\\\\")
    facts = {
        "messages": f"{len(messages):,}",
        "MB": f"{len(data) / 1e6:.1f}",
        "MB in ascii style": f"{len(encoded(messages, 'ascii')) / 1e6:.1f}",
        "results": f"{len(results):,}",
        "median bytes": f"{statistics.median(sizes):,.0f}",
        "mean": f"{statistics.mean(sizes):,.0f}",
        "largest": f"{max(sizes):,}",
        "share of all counted characters": f"{sum(map(len, results)) / _counted(messages):.1%}",
        "backslashes": f"{backslashes / len(data):.2%}",
        "bytes per escape": f"{len(data) / escapes:.1f}",
        "non-ASCII bytes": f"{len(data.translate(None, bytes(range(128)))) / len(data):.1%}",
        "mixed texts": f"{sum(0 < share < 0.5 for share in foreign) / len(foreign):.1%}",
        "Chinese": f"{sum(share >= 0.5 for share in foreign) / len(foreign):.1%}",
    }
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def main() -> None:
    """Print the statistics of each shape."""
    for shape in SHAPES:
        print(f"{shape}: {statistics_of(history(9_400, shape=shape))}")


if __name__ == "__main__":
    main()
