"""The text put in place of an observation: built-in forms, templates, cutting, and what counts as one already."""

from __future__ import annotations

import json
from typing import Any

import published
import pytest

from recede.designs import mask_observation
from support import block_mask, call, function_call_output, handle_of, mask, masked, result, tool_result, turns, user

IMAGE = {"type": "image", "source": {"type": "base64", "data": "x" * 1_000}}
FILLER = "." * 60


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def observation(view: list[Any]) -> Any:
    return view[-1]["content"]


# Rule 3: the built-in forms


@pytest.mark.parametrize("value", ["x" * 4_200, "é" * 700, "😀" * 99, "\ud800" * 40, "a\n" * 50])
def test_built_in_placeholder_names_the_characters(value: str) -> None:
    assert mask_observation(value) == f"[observation masked — {len(value)} chars]"


def test_block_masker_names_the_lines_newlines_plus_one() -> None:
    for value, lines in (("x" * 90, 1), ("line\n" * 50, 51), ("a\r\nb" * 30, 31), ("\r" * 90, 1), ("\u2028" * 90, 1)):
        history = [result("0", value), *turns(3)]
        assert block_mask(history, keep=3)[0]["content"] == f"[observation masked — {lines} lines omitted]"


def test_the_handle_is_the_beginning_of_the_hash_of_id_and_text() -> None:
    for size in (*range(40, 200), 10_000):  # every place in the blocks of the hash
        text = "é" * (size // 2) + "x" * (size % 2)
        history = [call("a"), result("a", text)]
        view = mask(history, keep_results=0, placeholder="[{handle}]").messages
        assert view[1]["content"] == f"[{handle_of('a', text)}]", size
        assert mask_observation(text, placeholder="[{handle}]") == f"[{handle_of('', text)}]"
    assert handle_of("a", "1:b") != handle_of("a:1", "b")


def test_equal_handles_are_equal_texts_whatever_ids_repeat() -> None:
    history = [*turns(3), call("0"), result("0", "a" * 99), call("0"), result("0", "b" * 99)]
    view = mask(history, keep_results=0, placeholder="[{handle}]").messages
    shown = [message["content"] for message in view if message["role"] == "tool"]
    assert shown[-2:] == [f"[{handle_of('0', 'a' * 99)}]", f"[{handle_of('0', 'b' * 99)}]"]


def test_json_results_of_one_id_have_handles_of_their_own() -> None:
    def gemini(value: int) -> list[Any]:
        called = {"functionCall": {"name": "run", "args": {}}}
        answer = {"functionResponse": {"name": "run", "response": {"rows": ["x" * 99], "count": value}}}
        said = {"role": "model", "parts": [{"text": "Seen."}]}  # what no request has shown is not masked
        return [{"role": "model", "parts": [called]}, {"role": "user", "parts": [answer]}, said]

    def shown(messages: list[Any]) -> list[str]:
        options: dict[str, Any] = {"keep_results": 0, "boundary": "sliding", "placeholder": "[gone, recall {handle}]"}
        view = published.mask_observations(messages, **options).messages
        compact = json.dumps(messages, separators=(",", ":"))  # bytes are hashed as they are
        assert json.loads(published.mask_observations_json(compact, **options).json) == view
        return [one["parts"][0]["functionResponse"]["response"]["output"] for one in view[1::3]]

    value = json.dumps(gemini(1)[1]["parts"][0]["functionResponse"]["response"], separators=(",", ":"))
    assert shown([*gemini(1), *gemini(2)])[0] == shown(gemini(1))[0] == f"[gone, recall {handle_of('', value)}]"
    assert shown(gemini(2)) != shown(gemini(1))


def test_images_are_named() -> None:
    content = [text("x" * 20), IMAGE, text("y\n"), IMAGE]
    assert (
        observation(mask([result("1", content)], keep_results=0).messages)
        == "[observation masked — 22 chars, 2 images]"
    )
    view = block_mask([result("0", content), *turns(3)], keep=3)
    assert view[0]["content"] == "[observation masked — 2 lines, 2 images omitted]"


def test_one_image_is_worded_like_several() -> None:
    view = mask([user([tool_result("1", [IMAGE])])], keep_results=0).messages
    assert view[0]["content"][0]["content"] == "[observation masked — 0 chars, 1 images]"
    view = mask([function_call_output("1", [{"type": "input_image"}])], keep_results=0).messages
    assert view[0]["output"] == "[observation masked — 0 chars, 1 images]"


def test_built_in_placeholders_stay_within_80_chars() -> None:
    assert len(mask_observation("x" * 10_000_000)) <= 80
    content = [text("\n" * 999_999), *[IMAGE] * 100]
    assert len(observation(mask([result("1", content)], keep_results=0).messages)) <= 80
    assert len(block_mask([result("0", content), *turns(3)], keep=3)[0]["content"]) <= 80


# Rule 3: templates


def test_template_has_six_fields() -> None:
    template = "<{tool} {id} {turn}: {chars} {lines} {images}>"
    history = [call("a", name="bash"), result("a", "x"), call("b", name="grep"), result("b", [text("x\n" * 40), IMAGE])]
    view = mask(history, keep_results=0, placeholder=template).messages
    assert observation(view) == "<grep b 2: 80 41 1>"


@pytest.mark.parametrize(
    ("content", "template", "expected"),
    [
        ("x" * 90, "{chars}, {chars}!", "90, 90!"),
        ("x" * 90, "gone", "gone"),
        ("x" * 90, "{{{chars}}}: {{tool}}", "{90}: {tool}"),
        ("x" * 90, "<{turn}|{tool}|{id}>", "<0||>"),  # of a result that is all there is
        ([text("x" * 5), IMAGE], "{chars} gone", "5 gone"),  # of the text alone
    ],
)
def test_template_fields_may_repeat_be_absent_and_be_empty(content: Any, template: str, expected: str) -> None:
    assert observation(mask([result(None, content)], keep_results=0, placeholder=template).messages) == expected
    if isinstance(content, str):
        assert mask_observation(content, placeholder=template) == expected


def test_template_turn_is_that_of_the_call() -> None:
    history = [call("a"), call("b"), result("b", FILLER), call("c"), result("a", FILLER), result("orphan", FILLER)]
    view = mask(history, keep_results=0, placeholder="t{turn}").messages
    assert [message["content"] for message in view if message["role"] == "tool"] == ["t1", "t1", "t2"]


def test_block_masker_takes_no_template() -> None:
    with pytest.raises(TypeError, match="placeholder"):
        block_mask(turns(5), placeholder="x")


# Rule 1: what is a placeholder already stays


@pytest.mark.parametrize(
    "value",
    [
        "[observation masked — 42 chars]",
        "[observation masked — 0042 chars]",
        "[observation masked — 51 lines omitted]",
        "[observation masked — 5 chars, 2 images]",
        "[observation masked — 5 lines, 2 images omitted]",
        "[dispatch output masked — 5 chars]\nBEGIN_DISPATCH_RESULT" + FILLER + "END_DISPATCH_RESULT",
        "[observation masked — " + "9" * 90 + " chars]",
    ],
)
@pytest.mark.parametrize("template", [None, "<{chars}>"])
def test_built_in_forms_stay_whatever_the_template(value: str, template: str | None) -> None:
    assert mask_observation(value, placeholder=template) == value
    assert mask_observation(value, placeholder=template, max_observation_chars=3) == value


def test_placeholders_stay_in_every_mode() -> None:
    history = [result("0", masked(5)), result("1", [text("[observation masked — "), text("7 lines omitted]")])]
    assert mask(history, keep_results=0).messages is history
    assert block_mask([*history, *turns(3)], keep=3)[:2] == history


@pytest.mark.parametrize(
    "value",
    [
        "[observation masked — x chars]",
        "[observation masked — -5 chars]",
        "[observation masked —  chars]",
        "[observation masked — 5 chars",
        "[observation masked — 5 chars]\n",
        " [observation masked — 5 chars]",
        "[observation masked - 5 chars]",
        "[observation masked — 5 lines]",
        "[observation masked — 5 chars omitted]",
        "[observation masked — ٣ chars]",
        "[Observation masked — 5 chars]",
    ],
)
def test_what_only_looks_like_a_placeholder_is_masked(value: str) -> None:
    assert mask_observation(value, placeholder="<gone>") == "<gone>"


def test_the_whole_of_a_text_must_match() -> None:
    value = masked(5) + masked(5)
    assert mask_observation(value) == masked(len(value))


def test_the_template_in_force_is_recognised() -> None:
    template = "<{tool}: {chars} of {lines}>" + FILLER
    for value in (f"<bash: 12 of 3>{FILLER}", f"<: 0 of 1>{FILLER}", f"<a\nb: 7 of 08>{FILLER}"):
        assert mask_observation(value, placeholder=template) == value
        assert mask_observation(value) == masked(len(value)), "another template is not in force"
    for value in (
        f"<bash: x of 3>{FILLER}",
        f"<bash: ٣ of 3>{FILLER}",
        f"<bash: 12 of 3>{FILLER}!",
        f"<bash:  of >{FILLER}",
    ):
        masked_text = mask_observation(value * 3, placeholder=template)
        assert masked_text == f"<: {len(value) * 3} of 1>{FILLER}"


def test_a_template_is_matched_literally() -> None:
    template = "(.*)[a-z]+ {chars}? $^\\" + FILLER
    value = "(.*)[a-z]+ 17? $^\\" + FILLER
    assert mask_observation(value, placeholder=template) == value
    other = "(xx)[a-z]+ 17? $^\\" + FILLER + "longer"
    assert mask_observation(other, placeholder=template) == f"(.*)[a-z]+ {len(other)}? $^\\" + FILLER


def test_wildcards_of_a_template_may_have_to_give_back() -> None:
    template = "<{tool}-{id}>" + FILLER
    value = "<a-b-c>>-" + ">" * 5 + FILLER
    assert mask_observation(value, placeholder=template) == value
    template = "{chars}{lines}" + FILLER + "!"
    assert mask_observation("12" + FILLER + "!", placeholder=template) == "12" + FILLER + "!"
    value = "1" + FILLER + "!" + FILLER
    assert mask_observation(value, placeholder=template) == f"{len(value)}1" + FILLER + "!"


def test_numbers_at_the_ends_of_a_template_may_have_many_digits() -> None:
    for template, value in (
        ("{chars} gone {tool}" + FILLER, "1234 gone bash" + FILLER),
        (FILLER + "{tool} {chars}", FILLER + "bash 1234"),
        (FILLER + "{tool}{chars}{lines}x{images}{id}", FILLER + "1234x567"),
        (FILLER + "{chars}{lines}", FILLER + "12"),
    ):
        assert mask_observation(value, placeholder=template) == value
    for template, value in (
        ("{chars} gone {tool}" + FILLER, "x1 gone bash" + FILLER),
        (FILLER + "{chars}{lines}", FILLER + "1"),
        (FILLER + "{tool}{chars}{lines}x", FILLER + "bash 1x"),
    ):
        assert mask_observation(value * 2, placeholder=template) != value * 2


def test_masking_twice_changes_nothing_more() -> None:
    history = [call("1"), result("1", "a\nb" * 99), call("2"), result("2", [text("y" * 500), IMAGE])]
    for options in (
        {},
        {"placeholder": "<{tool} {chars} {images}>"},
        {"max_observation_chars": 50},
        {"max_observation_chars": 3},
        {"max_observation_chars": 0},
    ):
        once = mask(history, keep_results=0, **options)
        assert once.masked_count == 2
        twice = mask(once.messages, keep_results=0, **options)
        assert twice.messages is once.messages
        assert twice.masked_count == twice.masked_chars == 0


# Rule 4: cutting


HAN = "".join(chr(0x4E00 + number) for number in range(700))


@pytest.mark.parametrize(
    ("value", "chars", "expected"),
    [
        # The placeholder has 22 + 3 + 7 = 32 characters: behind the beginning, and clipped where there is no room.
        (HAN, 100, HAN[:68] + masked(700)),
        (HAN, 33, HAN[:1] + masked(700)),
        (HAN, 699, HAN[:667] + masked(700)),
        (HAN, 32, masked(700)),
        (HAN, 31, masked(700)[:31]),
        (HAN, 10, "[observati"),
        (HAN, 0, ""),
        # What is no longer stays.
        ("x" * 100, 100, "x" * 100),
        ("x" * 50, 100, "x" * 50),
        ("x" * 101, 100, "x" * 68 + masked(101)),
        ("xyz", 2, "[o"),
        ("", 0, ""),
    ],
)
def test_a_cut_keeps_the_beginning_and_ends_with_the_placeholder(value: str, chars: int, expected: str) -> None:
    assert mask_observation(value, max_observation_chars=chars) == expected


def test_cut_of_parts_takes_their_joined_text() -> None:
    history = [result("1", [text("a" * 30), IMAGE, text("b" * 30)])]
    view = mask(history, keep_results=0, max_observation_chars=80).messages
    # "[observation masked — 60 chars, 1 images]" has 41 characters; 39 remain.
    assert observation(view) == "a" * 30 + "b" * 9 + "[observation masked — 60 chars, 1 images]"


def test_cut_of_parts_longer_than_the_text_takes_all_of_it() -> None:
    history = [result("1", [text("abc"), IMAGE])]
    view = mask(history, keep_results=0, max_observation_chars=80).messages
    assert observation(view) == "abc[observation masked — 3 chars, 1 images]"


def test_cut_uses_the_template() -> None:
    assert mask_observation("x" * 90, max_observation_chars=20, placeholder="…{chars} gone") == "x" * 12 + "…90 gone"


# Rule 5: never larger


def test_an_observation_that_would_not_get_fewer_chars_stays() -> None:
    # "[observation masked — 31 chars]" has 31 characters.
    for stays in ("", "x" * 30, "x" * 31, "é" * 31):
        assert mask_observation(stays) == stays
    assert mask_observation("x" * 32) == mask_observation("😀" * 32) == masked(32)
    assert (mask_observation("x", placeholder="p"), mask_observation("xy", placeholder="p")) == ("x", "p")


def test_images_count_for_the_comparison() -> None:
    # "[observation masked — 0 chars, 1 images]" has 40 characters.
    history = [result("1", [IMAGE])]
    assert mask(history, keep_results=0, image_chars=40).messages is history
    assert mask(history, keep_results=0, image_chars=41).masked_count == 1


def test_only_a_str_is_a_text() -> None:
    for value in (None, b"bytes", 5, ["list"]):
        with pytest.raises(TypeError, match="text"):
            mask_observation(value)  # type: ignore[arg-type]
