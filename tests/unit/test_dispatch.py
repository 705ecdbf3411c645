"""Dispatch blocks stay whole where the published reducer masks an observation; no other door looks for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import recede
from recede.designs import mask_observation
from support import block_mask, call, mask, masked, result, turns, user

BEGIN, END = "BEGIN_DISPATCH_RESULT", "END_DISPATCH_RESULT"
BLOCK = f"{BEGIN}\nstatus: done\n{END}"
OTHER = f"{BEGIN}\nstatus: failed\n{END}"


def header(chars: int) -> str:
    return f"[dispatch output masked — {chars} chars]"


ODD = f'{BEGIN} é\ud800\x00\r\n\t\\" {END}'
UNCLOSED = "x" * 50 + BEGIN + "status"
MASKED: dict[str, list[tuple[str, str]]] = {
    "blocks stay, and the rest becomes a header": [
        ("log\n" * 50 + BLOCK + "more" * 25, f"{header(300)}\n{BLOCK}"),
        ("a" * 80 + BLOCK + "b" * 10 + OTHER + "c" * 10, f"{header(100)}\n{BLOCK}\n{OTHER}"),
        ("x" * 99 + ODD, f"{header(99)}\n{ODD}"),
    ],
    "a header and its newline have 36 characters, and are left out where they make it no shorter": [
        ("x" * 36 + BLOCK, BLOCK),
        ("x" * 37 + BLOCK, f"{header(37)}\n{BLOCK}"),
        ("x" + BLOCK, BLOCK),
        (f"{BLOCK}ab{OTHER}", f"{BLOCK}\n{OTHER}"),
    ],
    "it stays where the blocks alone are no shorter": [
        (BLOCK, BLOCK),
        *((BLOCK + between + OTHER, BLOCK + between + OTHER) for between in ("", " ", "\n")),
    ],
    "a block runs to the next end, and an end before a begin is text": [
        ("x" * 50 + f"{BEGIN}{BEGIN}one{END}two{END}" + "y" * 50, f"{header(122)}\n{BEGIN}{BEGIN}one{END}"),
        (END + "x" * 50 + BLOCK, f"{header(69)}\n{BLOCK}"),
        ("x" * 60 + f"a{BEGIN}{END}b", f"{header(62)}\n{BEGIN}{END}"),
    ],
    "an unclosed block is none, and the delimiters are exact": [
        (UNCLOSED, masked(77)),
        (END + UNCLOSED, masked(96)),
        ("x" * 50 + BLOCK + BEGIN, f"{header(71)}\n{BLOCK}"),
        ("begin_dispatch_result end_dispatch_result", masked(41)),
        ("BEGIN DISPATCH RESULT END DISPATCH RESULT", masked(41)),
        (header(5), masked(34)),
    ],
}


@pytest.mark.parametrize("cases", MASKED.values(), ids=MASKED)
def test_blocks_stay(cases: list[tuple[str, str]]) -> None:
    for value, expected in cases:
        assert mask_observation(value) == expected


def test_the_other_rules_do_not_apply_then() -> None:
    value = "x" * 100 + BLOCK
    expected = f"{header(100)}\n{BLOCK}"
    assert mask_observation(value, placeholder="<gone>") == expected
    assert mask_observation(value, max_observation_chars=5) == expected
    assert mask_observation(BLOCK, max_observation_chars=5, placeholder="-") == BLOCK


def test_the_form_is_a_placeholder_already() -> None:
    for value in ("x" * 100 + BLOCK, "x" * 99 + BLOCK + OTHER + "y", "x" * 90 + BLOCK * 9):
        once = mask_observation(value)
        assert once.startswith("[dispatch output masked — ")
        assert mask_observation(once) == once


@pytest.mark.parametrize(
    "value",
    [
        f"{header(5)}\n{BLOCK}\n",
        f"{header(5)}\n{BLOCK}{OTHER} and something more",
        f"{header(5)}\n\n{BLOCK}",
        f"{header(5)}{BLOCK}",
        f"[dispatch output masked — x chars]\n{BLOCK}",
        f"{header(5)}\n{BLOCK}\n{BEGIN}",
    ],
)
def test_what_only_looks_like_the_form_is_masked(value: str) -> None:
    blocks = [block for block in (BLOCK, OTHER) if block in value]
    outside = len(value) - sum(map(len, blocks))
    expected = "\n".join([header(outside), *blocks])
    assert mask_observation(value) == (expected if len(expected) < len(value) else "\n".join(blocks))


def test_in_every_mode_and_in_parts() -> None:
    content = [{"type": "text", "text": "x" * 90 + BEGIN}, {"type": "image"}, {"type": "text", "text": "ok" + END}]
    expected = f"{header(90)}\n{BEGIN}ok{END}"
    assert mask([result("1", content)], keep_results=0).messages == [result("1", expected)]


PLACEHOLDER = "[old tool output cleared to save context]"
DOORS: dict[str, Callable[[list[Any]], Any]] = {
    "reduce": lambda history: recede.reduce(history, keep=0, boundary="sliding").messages,
    "reduce of JSON": lambda history: json.loads(
        recede.reduce(json.dumps(history).encode(), keep=0, boundary="sliding").json
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("text", ["x" * 200 + BLOCK, f"{header(5)}\n{BLOCK}" + "\n" + OTHER, BLOCK * 3])
def test_doors_of_recede_itself_do_not_look_for_blocks(door: str, text: str) -> None:
    history = [user("Go."), call("1"), result("1", text), call("2"), result("2", "y"), user("On.")]
    assert DOORS[door](history)[2]["content"] == PLACEHOLDER
    cut = recede.reduce([*history[:3], call("2")], max_result_chars=100).messages[2]["content"]
    assert "chars omitted" in cut


def test_the_block_masker_does_not_look_for_blocks() -> None:
    masked = block_mask([result("1", "x" * 90 + BLOCK), *turns(3)], keep=3)[0]["content"]
    assert masked == "[observation masked — 3 lines omitted]"


def test_images_are_counted_for_no_shorter() -> None:
    content = [{"type": "text", "text": BLOCK}, {"type": "image"}]
    assert mask([result("1", content)], keep_results=0).messages == [result("1", f"{header(0)}\n{BLOCK}")]
    # A header of 34 characters and a newline: with 35 for the image it is no shorter, but the block alone is.
    assert mask([result("1", content)], keep_results=0, image_chars=35).messages == [result("1", BLOCK)]
    assert mask([result("1", content)], keep_results=0, image_chars=0).masked_count == 0
