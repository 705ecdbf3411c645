"""Answers of a provider, damaged at random: what a gateway, a proxy or a fault of the provider may make of them."""

from __future__ import annotations

import json
import random
from typing import Any

from provider_server import Answer, Block, Event, call, thought

_TEXTS = ["I look.", "Well, é 😀 ", " ", "", "It is long. " * 9, "a\\u0000\n"]
_INPUTS: list[dict[str, Any]] = [{}, {"path": "é"}, {"n": [1, {"x": None}], "q": 'a"\\'}, {"text": "line\n" * 30}]
_STOPS = ["end_turn", "end_turn", "tool_use", "tool_use", "max_tokens", "pause_turn", "refusal"]
_LONE = ["\ud800", "\udfff", "a\ud83d", "\ude00b", "\ud83d\ude00", "caf\udce9"]
# Written in place of a text: what json writes of no value.
_RAW = {
    "@huge": "1e999",
    "@nan": "NaN",
    "@deep": "[" * 20_000 + "]" * 20_000,
    "@twice": '{"a": 1, "a": 2}',
    "@lone": '"\\ud800"',
    "@digits": "9" * 5_000,
}
_BODIES = ["", "null", "5", "[]", "{}", '"text"', "{", "<html></html>", "[null]"]
# A change of it that is a text again is seen by the provider alone.
_SIGNED = ("thinking", "signature")


def _deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": [value]}
    return value


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


class Damage:
    """Answers, and what is done to them; the same for the same `random.Random`."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.done: list[str] = []

    def answer(self, is_anthropic: bool) -> Answer:
        """An answer that is damaged when it is sent."""
        rng = self._rng
        blocks: list[Block] = [thought("hm\n é")] if rng.random() < 0.4 else []
        if rng.random() < 0.8:
            blocks.append({"type": "text", "text": rng.choice(_TEXTS)})
        for _ in range(rng.choice((0, 0, 1, 2, 3))):
            blocks.append(call("run", _copy(rng.choice(_INPUTS))))
        self.done.clear()
        stop = rng.choice(_STOPS)
        if stop == "pause_turn" and not is_anthropic:
            stop = "tool_use"
        drop_after = rng.randrange(30) if rng.random() < 0.1 else None
        self.done.append(f"{[block['type'] for block in blocks]} {stop} drop_after={drop_after}")
        return Answer(blocks, stop, drop_after=drop_after, damage=self)

    def __call__(self, sent: Any) -> Any:
        if isinstance(sent, list):
            return self._stream(_copy(sent))
        if self._rng.random() < 0.05:
            return self._noted(self._rng.choice(_BODIES), "body")
        return self._written(self._changed(_copy(sent)))

    # Streams

    def _stream(self, events: list[Event]) -> list[Event]:
        rng = self._rng
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            places = [place for place, event in enumerate(events) if not _is_signed(event)]
            at, other = rng.choice(places), rng.choice(places)
            name, data = events[at]
            way = rng.choice(("change",) * 5 + ("leave out", "twice", "swap", "replace"))
            self.done.append(f"{way} event {at} {json.dumps(data)[:200]} ({other})")
            if way == "change":
                # One event of any kind, also of those that are signed.
                at = rng.randrange(len(events))
                name, data = events[at]
                self.done[-1] = f"change event {at} {json.dumps(data)[:200]}"
                is_signed = _is_signed(events[at])
                if not isinstance(data, str):
                    events[at] = name, self._changed(data, 1)
                if is_signed:  # it may not look so any more, and must not be left out after all
                    break
            elif way == "leave out":
                del events[at]
            elif way == "twice":
                events.insert(other, events[at])
            elif way == "swap":
                events[at], events[other] = events[other], events[at]
            else:
                events[at] = name, rng.choice(_BODIES)
            if not events:
                break
        return [(name, data if isinstance(data, str) else self._written(data)) for name, data in events]

    # Values

    def _changed(self, tree: Any, times: int | None = None) -> Any:
        rng = self._rng
        root = [tree]
        for _ in range(times or rng.choice((1, 1, 2, 3, 5))):
            places = list(_places(root[0])) or [(root, 0)]
            holder, key = rng.choice(places) if rng.random() < 0.97 else (root, 0)
            value = holder[key]
            way = rng.choice(("value",) * 4 + ("leave out", "wrap", "unwrap", "text", "text", "twice"))
            self.done.append(f"{way} at {key!r}: {ascii(value)[:80]}")
            if way == "leave out" and holder is not root:
                del holder[key]
            elif way == "wrap":
                holder[key] = rng.choice(([value], {"x": value}, [value, value], [None, value]))
            elif way == "unwrap" and value and isinstance(value, (list, dict)):
                holder[key] = value[0] if isinstance(value, list) else next(iter(value.values()))
            elif way == "twice" and isinstance(holder, list) and holder is not root:
                holder.insert(rng.randrange(len(holder) + 1), _copy(value))
            elif way == "text" and isinstance(value, str) and key not in _SIGNED:
                holder[key] = self._text(value)
            else:
                holder[key] = self._value(key)
            self.done[-1] += f" -> {ascii(holder)[:80]}"
        return root[0]

    def _text(self, text: str) -> str:
        rng = self._rng
        at = rng.randrange(len(text) + 1)
        return rng.choice(
            (
                text[:at] + rng.choice(_LONE) + text[at:],
                text[:at],
                text + rng.choice(_LONE),
                text + text,
                "",
                " ",
                "[" * 20_000,
                "x y.z",
                text + '"}',
            )
        )

    def _value(self, key: Any) -> Any:
        rng = self._rng
        values: list[Any] = [None, True, False, 0, 1, 7, -1, 0.5, [], {}, [1], [None], [[]], {"x": 1}, {"type": "text"}]
        values += [{"type": 5}, _deep(3), _deep(150), _deep(400), 10**30, "@huge", "@nan", "@deep", "@twice", "@digits"]
        if key not in _SIGNED:
            values += ["", "x", "@lone", *_LONE, "5", "null", "[1]", '{"a": 1}', "toolu_1", "max_tokens"]
        return _copy(rng.choice(values))

    def _written(self, tree: Any) -> str:
        text = json.dumps(tree)
        for name, raw in _RAW.items():
            text = text.replace(f'"{name}"', raw)
        return text

    def _noted(self, value: Any, what: str) -> Any:
        self.done.append(f"{what}: {value!r}")
        return value


def _is_signed(event: Event) -> bool:
    """Whether a provider alone sees that this event was left out, or came twice."""
    return any(f"{name}_delta" in json.dumps(event[1]) for name in _SIGNED)


def _places(tree: Any, level: int = 0) -> Any:
    """Each place of a value within the tree: what holds it, and where."""
    if isinstance(tree, (dict, list)) and level < 50:
        for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
            yield tree, key
            yield from _places(tree[key], level + 1)
