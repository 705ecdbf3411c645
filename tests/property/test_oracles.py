"""Naive oracles, written from the page alone: slow, short, and independent of both engines."""

from __future__ import annotations

import json
import re
from typing import Any

import published
import pytest
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values, mutated, spelled
from test_pairs_by_place import paired

import recede
from support import ENGINES, MALFORMED, using

ENGINES = pytest.mark.parametrize("engine_name", ENGINES)
History = list[dict[str, Any]]

TEXT_TYPES = ("text", "input_text", "output_text")
IMAGE_TYPES = ("image", "image_url", "input_image", "file", "input_file")  # documents here have text


def text_and_images(content: Any) -> tuple[str, int]:
    if isinstance(content, str):
        return content, 0
    parts = content or []
    texts = [p["text"] for p in parts if p.get("type") in TEXT_TYPES and isinstance(p.get("text"), str)]
    return "".join(texts), sum(p.get("type") in IMAGE_TYPES for p in parts)


def masked_text(text: str, images: int) -> str:
    """What the built-in rules put in place of an observation; the text itself where it stays."""
    done = r"\[observation masked — [0-9]+ (chars|chars, [0-9]+ images|lines omitted|lines, [0-9]+ images omitted)\]"
    block = "BEGIN_DISPATCH_RESULT(?:(?!END_DISPATCH_RESULT).)*END_DISPATCH_RESULT"
    if re.fullmatch(done, text) or re.fullmatch(
        rf"\[dispatch output masked — [0-9]+ chars\](\n{block})+", text, re.DOTALL
    ):
        return text
    size = len(text) + 6_400 * images
    blocks = re.findall(block, text, re.DOTALL)
    if blocks:
        outside = len(text) - sum(map(len, blocks))
        candidates = ["\n".join([f"[dispatch output masked — {outside} chars]", *blocks]), "\n".join(blocks)]
    else:
        candidates = [f"[observation masked — {len(text)} chars{f', {images} images' if images else ''}]"]
    return next((candidate for candidate in candidates if len(candidate) < size), text)


@ENGINES
@given(history=histories("openai"), newest=st.integers(0, 8))
def test_sliding_masking_of_openai_histories(engine_name: str, history: History, newest: int) -> None:
    results = [index for index, message in enumerate(history) if message["role"] == "tool"]
    answered = max((index for index, message in enumerate(history) if message["role"] == "assistant"), default=0)
    expected = list(history)
    for index in (index for index in results[: max(0, len(results) - newest)] if index < answered):
        text, images = text_and_images(history[index].get("content"))
        found = unknown_in(history[index].get("content"))
        references = [part for part in found if part.get("type") == "tool_reference"]
        unknown = [part for part in found if part not in references]
        if unknown:  # it is no text then, but all of it counts
            text = "j" * (len(text) + sum(map(compact, unknown)))
        replaced = masked_text(text, images)
        if len(replaced) < len(text) + 6_400 * images and (replaced != text or images):
            parts = history[index].get("content")
            marks = (
                [part["cache_control"] for part in parts if "cache_control" in part] if isinstance(parts, list) else []
            )
            # A mark inside of the observation stays, on the one part that is left.
            part = {"type": "text", "text": replaced, **({"cache_control": marks[-1]} if marks else {})}
            content = [part, *references] if marks or references else replaced
            expected[index] = {**history[index], "content": content}
    # A placeholder that is there already, in parts beside an image, stays as it is.
    for index in results:
        text, _ = text_and_images(history[index].get("content"))
        if [one for one in unknown_in(history[index].get("content")) if one.get("type") != "tool_reference"]:
            continue
        if masked_text(text, 0) == text and re.match(r"\[(observation|dispatch output) masked — [0-9]", text):
            expected[index] = history[index] if masked_text(text, 99) == text else expected[index]
    with using(engine_name):
        assert published.mask_observations(history, keep_results=newest, boundary="sliding").messages == expected


@ENGINES
@given(history=histories("openai"), last=st.integers(0, 12))
def test_truncation_by_repeated_passes(engine_name: str, history: History, last: int) -> None:
    """The keep set, its closure found by going over the history until nothing is added."""
    talk = [index for index, message in enumerate(history) if message["role"] not in ("system", "developer")]
    keep = {index for index, message in enumerate(history) if message["role"] in ("system", "developer")}
    keep |= set(range(talk[-last] if 0 < last < len(talk) else (0 if last else len(history)), len(history)))
    pairs = [(call[0], result[0]) for result, call in paired(history).items()]
    # Two neighbors that the assistant made are of one run.
    made = [message["role"] == "assistant" for message in history]
    pairs += [(index - 1, index) for index in range(1, len(history)) if made[index - 1] and made[index]]
    grew = True
    while grew:
        grew = False
        for pair in pairs:
            if len(keep & set(pair)) == 1:
                keep |= set(pair)
                grew = True
    leading = next((i for i, m in enumerate(history) if m["role"] not in ("system", "developer")), len(history))
    earlier_summaries = {
        index
        for index, message in enumerate(history[: leading + 1])
        if message["role"] in ("system", "developer", "user")
        and re.match("Conversation summary:(\n|$)", text_and_images(message.get("content"))[0])
        and text_and_images(message.get("content"))[0].split("\n")[0] == "Conversation summary:"
    }
    keep |= earlier_summaries
    first = [i for i, message in enumerate(history) if message["role"] == "user" and i not in earlier_summaries]
    keep |= set(first[:1])
    with using(engine_name):
        view = recede.designs.truncate_history(history, preserve_recent_raw_turns=last).messages
    assert view == [history[index] for index in sorted(keep)]


def is_unknown_item(message: dict[str, Any]) -> bool:
    """Whether it has a type, but neither content nor a call or a result."""
    kind = message.get("type")
    if not isinstance(kind, str) or kind == "reasoning" or message.get("content") is not None or "pairRole" in message:
        return False
    is_call = kind.endswith("_call") and message.get("call_id") is not None
    return not is_call and not kind.endswith("_call_output")


def unknown_in(blocks: Any) -> list[Any]:
    """Parts of unknown types, which count as JSON."""
    known = {"text", "input_text", "output_text", "image", "image_url", "input_image", "file", "input_file"}
    known |= {"tool_use", "tool_result", "thinking", "redacted_thinking", "input_audio", "computer_screenshot"}
    known |= {"audio", "video", "video_url"}
    return [one for one in blocks if one.get("type") not in known] if isinstance(blocks, list) else []


@ENGINES
# What the shapes without `content` blocks of these forms count is in test_untyped_shapes.py.
@given(history=st.sampled_from(("openai", "anthropic", "responses", "chat_message")).flatmap(histories))
def test_counts_of_text_are_len(engine_name: str, history: History) -> None:
    total = 0
    for message in history:
        if is_unknown_item(message):
            total += compact(message)
            continue
        for field in ("content", "output"):
            value = message.get(field)
            untyped = isinstance(value, list) and any("type" not in part for part in value)
            if field == "output" and (isinstance(value, dict) or untyped):
                total += compact(value)
                continue
            blocks = value if isinstance(value, list) else [{"type": "text", "text": value}]
            for block in blocks:
                nested = block.get("content") if block.get("type") == "tool_result" else [block]
                text, images = text_and_images(nested)
                total += len(text) + 6_400 * images + sum(map(compact, unknown_in(nested)))
        arguments: list[tuple[Any, Any]] = []
        if message.get("pairRole") == "call":
            arguments.append(("", None))
        for call in message.get("tool_calls") or []:
            source = call.get("function") or call.get("custom")
            arguments.append((source["name"], source.get("arguments", source.get("input"))))
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_use":
                arguments.append((block["name"], block["input"]))
        if str(message.get("type")).endswith("_call") and message.get("call_id") is not None:
            values = (message.get(name) for name in ("arguments", "input", "action"))
            arguments.append((message.get("name") or "", next((v for v in values if v is not None), None)))
        total += sum(20 + len(name) + compact(value) for name, value in arguments)
    with using(engine_name):
        assert recede.count_chars(history) == total


def compact(value: Any) -> int:
    """The length of the compact JSON, with every number four and no escapes."""
    if value is None or isinstance(value, str):
        return len(value or "")
    return len(_written(value))


def _written(value: Any) -> str:
    if isinstance(value, str):
        return '"' + "s" * len(value) + '"'
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_written(key)}:{_written(inner)}" for key, inner in value.items()) + "}"
    return "1234"


@ENGINES
@given(value=json_values())
def test_arguments_of_any_kind(engine_name: str, value: Any) -> None:
    item = {"type": "function_call", "call_id": "1", "arguments": value}
    with using(engine_name):
        assert recede.count_chars([item]) == 20 + compact(value)
        raw = json.dumps([item])
        assert published.reduce_json(raw, max_input_chars=1 << 40).chars_before == 20 + compact(value)


# Acceptance, held to the standard library's json


def _refuse(name: str) -> None:
    raise ValueError(name)


def library_accepts(data: bytes) -> bool:
    try:
        json.loads(data.decode(), parse_constant=_refuse, parse_int=str)
    except ValueError:
        return False
    return True


def kind_of(data: Any) -> str | None:
    try:
        published.reduce_json(data, max_input_chars=1 << 40)
    except recede.TranscriptError as error:
        if error.offset is None or not 0 <= error.offset <= len(data):
            raise
        return error.kind
    return None


@ENGINES
@given(data=st.data())
def test_acceptance_is_that_of_the_standard_library(engine_name: str, data: Any) -> None:
    value = data.draw(json_values() | histories(max_turns=2, max_parallel_calls=2))
    raw = data.draw(spelled([{"x": value}, value])).encode("utf-8", "backslashreplace")
    raw = data.draw(mutated(raw))
    with using(engine_name):
        assert (kind_of(raw) not in MALFORMED) is library_accepts(raw), raw


@ENGINES
@given(
    raw=st.binary(max_size=30) | st.text(alphabet='[]{}",:\\u0123456789-+.eEtrufalsn \n', max_size=30).map(str.encode)
)
def test_acceptance_of_random_bytes(engine_name: str, raw: bytes) -> None:
    with using(engine_name):
        assert (kind_of(raw) not in MALFORMED) is library_accepts(raw)


@ENGINES
@given(value=st.text(max_size=60) | st.text(alphabet="\ud800\udbff\udc00\udfffaé😀", max_size=9))
def test_strings_are_decoded_as_the_standard_library_does(engine_name: str, value: str) -> None:
    raw = json.dumps([{"role": "user", "content": value}])
    decoded = json.loads(raw)[0]["content"]
    with using(engine_name):
        assert published.reduce_json(raw, max_input_chars=1 << 40).chars_before == len(decoded)
        text = json.dumps([{"role": "user", "content": decoded}], ensure_ascii=False)
        assert published.reduce_json(text, max_input_chars=1 << 40).chars_before == len(decoded)
