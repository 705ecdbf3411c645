"""What texts weigh: the same in bytes and in dicts, however JSON writes them, and as the oracle says."""

from __future__ import annotations

import json
import random
from typing import Any

from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from tokens_counted import tokens_of

import recede
from oracle.size import weight
from recede import _core

CHARS = st.sampled_from([*'a \n\t"\\/0@?u\x00\x7féß中😀\u2028'])
LONE = st.sampled_from(["\ud83d", "\udc00", "a", "\\", "u", '"'])
TEXTS = st.text(CHARS | st.characters(exclude_categories=["Cs"]), max_size=80)
LENGTHS = st.sampled_from([1, 31, 32, 33, 64, 2_719, 2_720, 2_721, 5_441])


def written(value: Any, chance: random.Random) -> str:
    """JSON with escapes of every kind, and spaces, where they may be."""
    if isinstance(value, str):
        return '"' + "".join(_escaped(one, chance) for one in value) + '"'
    if isinstance(value, dict):
        return "{ " + ",".join(f"{json.dumps(key)} : {written(one, chance)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + " ,\n".join(written(one, chance) for one in value) + "]"
    return json.dumps(value)


def _escaped(char: str, chance: random.Random) -> str:
    """A character itself, by its short escape, or by its number."""
    if chance.random() < 0.2:
        return json.dumps(char)[1:-1] if ord(char) > 0xFFFF else f"\\u{ord(char):04X}"
    return "\\/" if char == "/" and chance.random() < 0.5 else json.dumps(char, ensure_ascii=False)[1:-1]


def counted(messages: list[str] | list[dict[str, Any]]) -> int:
    """What a history counts to its limit."""
    history = recede.History(max_input_tokens=1 << 40, keep=1 << 40)
    for message in messages:
        history.append_json(message) if isinstance(message, str) else history.append(message)
    history.view()
    _, _, cost = history._live.core.view_identity()
    return int(cost)


@given(TEXTS | st.text(LONE), LENGTHS)
def test_a_text_weighs_its_bytes(text: str, length: int) -> None:
    for one in (text, (text * length)[:length]):
        assert _core.weight(one) == weight(one)


@given(TEXTS, LENGTHS, st.randoms(use_true_random=False))
def test_escapes_weigh_what_they_stand_for(text: str, length: int, chance: random.Random) -> None:
    message = {"role": "user", "content": (text * length)[:length]}
    assert counted([written(message, chance)]) == counted([message]) == 4 * tokens_of([message])


@given(histories(max_turns=4, max_parallel_calls=3), TEXTS, st.randoms(use_true_random=False))
def test_bytes_count_what_dicts_and_the_oracle_count(
    history: list[dict[str, Any]], text: str, chance: random.Random
) -> None:
    messages = json.loads(json.dumps([*history, {"role": "user", "content": text}]))
    assert counted([written(one, chance) for one in messages]) == counted(messages) == 4 * tokens_of(messages)
