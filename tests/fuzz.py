"""The core against its oracle, on histories made and damaged at random, and on pieces of the corpus where it is there.

`make fuzz SECONDS=600 SEED=7` runs it for so long, beside the fuzzing of the scanner in tests/core/fuzz.rs. Every
difference is told with its seed and cut to a short input; `make fuzz SEED=… CASES=1` repeats it. A short run belongs
to the tests (tests/differential/test_fuzz.py).
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import published

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent / folder) for folder in (".", "data", "integration")]

from shared_data import corpus_files, sources

from support import (
    Message,
    assistant,
    call,
    chat_call,
    chat_result,
    elements,
    function_call,
    function_call_output,
    outcome,
    priced,
    result,
    system,
    tool_result,
    tool_use,
    user,
    using,
)

CORPUS_SHARE = 0.2  # of the cases, where there is a corpus
CORPUS_BYTES = 3_000_000  # larger files would take all the time to cut up
PIECE_CHARS = 6_000  # of the corpus, for one case

_TEXTS = (
    "a",
    "words of plain text, one after the other",
    "\n",
    '"',
    "\\",
    "\\\\\\",
    "\t\b/\x00\x1f\x7f",
    "é",
    "中文字",
    "😀",
    "\u2028",
    "\ud83d",
    "\ude00",
    "BEGIN_DISPATCH_RESULT",
    "END_DISPATCH_RESULT",
    "BEGIN_DISPATCH_RESULT kept END_DISPATCH_RESULT",
    "[observation masked — 9 chars]",
    "[dispatch output masked — 9 chars]\n",
    '{"a": [1, 2]}',
    "Conversation summary:\n",
)
_LENGTHS = (0, 1, 15, 16, 17, 31, 32, 33, 62, 63, 64, 65, 66, 127, 128, 129, 300)
_NAMES = ("bash", "read_file", "é", "", "a" * 40)
_PIECES = (
    *(bytes([byte]) for byte in b',]}[{":0-.eE+\\\xff\xc3\x00\x1f\n t/x9'),
    b"\\u",
    b"\\x",
    b"\\ud800",
    b"\\udc00",
    b"1e",
    b"00",
    b"\xe2\x82",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"null",
    b"NaN",
    b'"role":1,',
    b'"role":"tool",',
    b'"content":5,',
    b"[" * 1_020,
    b" " * 60,
)


class Case(NamedTuple):
    """One input, and what is asked of it."""

    raw: bytes
    function: str
    options: dict[str, Any]


def _text(rng: random.Random) -> str:
    parts = (
        rng.choice(_TEXTS) if rng.random() < 0.7 else "x" * rng.choice(_LENGTHS)
        for _ in range(rng.choice((0, 1, 1, 3)))
    )
    return "".join(parts)


def _content(rng: random.Random) -> Any:
    if rng.random() < 0.7:
        return _text(rng)
    parts = [{"type": "text", "text": _text(rng)}, {"type": "image"}, {"text": _text(rng), "tags": ["error"]}, {}]
    return rng.sample(parts, rng.randint(0, 3))


def _turn(rng: random.Random, ids: list[str]) -> list[Message]:
    """Calls and their results, in one of the shapes; some results are missing, doubled or of another id."""
    answers = [id for id in ids if rng.random() < 0.9] + rng.choices(ids, k=rng.random() < 0.1)
    name = rng.choice(_NAMES)
    shape = rng.randrange(7)
    if shape == 0:
        return [call(*ids, name=name, arguments=_text(rng)), *(result(id, _content(rng)) for id in answers)]
    if shape == 1:
        flag = {"is_error": True} if rng.random() < 0.3 else {}
        blocks = [tool_result(id, _content(rng), **flag) for id in answers]
        return [tool_use(*ids, name=name, value={"q": [_text(rng), -1.5, None, {}]}), user(blocks)]
    if shape == 2:
        outputs = [function_call_output(id, _content(rng)) for id in answers]
        return [*(function_call(id, name, _text(rng)) for id in ids), *outputs]
    if shape == 3:
        return [*(chat_call(id, _text(rng)) for id in ids), *(chat_result(id, _content(rng)) for id in answers)]
    if shape == 4:
        return _steps(rng, ids, answers, name)
    if shape == 5:
        return [_unknown(rng) for _ in ids]
    return [assistant(_content(rng)), {"type": "reasoning", "summary": []}]


def _thinking(rng: random.Random, message: Message) -> Message:
    """The message, now and then with reasoning that its provider may verify, in one of the forms of that."""
    if rng.random() < 0.6:
        return message
    text, content = _text(rng), message.get("content")
    block = rng.choice(
        (
            {"type": "thinking", "thinking": text, "signature": "s"},
            {"type": "redacted_thinking", "data": text},
            {"reasoningContent": {"reasoningText": {"text": text, "signature": "s"}}},
        )
    )
    if isinstance(content, list) and rng.random() < 0.8:
        blocks = [*content[: rng.choice((0, 0, 9))], block]
        return {**message, "content": [*blocks, *content][: rng.choice((1, 99, 99))]}
    detail = {"format": rng.choice(("anthropic-claude-v1", "openai-responses-v1")), "text": text}
    field = rng.choice(({"thinking_blocks": [block]}, {"thinking_blocks": []}, {"reasoning_details": [detail]}))
    items = [*message.items(), *field.items()]
    return dict(items if rng.random() < 0.5 else reversed(items))


def _steps(rng: random.Random, ids: list[str], answers: list[str], name: str) -> list[Message]:
    """Steps of Gemini's Interactions."""
    arguments = {"q": _text(rng)} if rng.random() < 0.9 else _text(rng)
    calls = [{"type": "function_call", "id": id, "name": name, "arguments": arguments} for id in ids]
    used = rng.choice("abc")
    by_google = [{"type": "url_context_call", "id": used}, {"type": "url_context_result", "call_id": used}]
    values = [_content(rng), {"a": _text(rng)}, [{"type": "function", "name": "f"}], 5, None]
    results = [{"type": "function_result", "call_id": id, "name": name, "result": rng.choice(values)} for id in answers]
    if results and rng.random() < 0.4:
        results = [{"type": "user_input", "content": [*results, {"type": "text", "text": _text(rng)}]}]
    said = {"type": rng.choice(("user_input", "model_output")), "content": _content(rng)}
    return [{"type": "thought"}, *by_google[: rng.randrange(3)], *calls, *results, said]


def _unknown(rng: random.Random) -> Message:
    """A message of no known shape, or nearly one of a known one."""
    kinds = ("of_tomorrow", "foo_result", "foo_call", "file_search_call", "user_input", "compaction", "program")
    fields: Message = {"type": rng.choice(kinds), "role": rng.choice(("function", "user", "ai", "assistant"))}
    fields |= {"text": _text(rng), "content": _content(rng), "id": rng.choice("ab"), "status": "completed"}
    return {name: fields[name] for name in rng.sample([*fields], rng.randint(1, 4))}


def _history(rng: random.Random) -> list[Message]:
    history = [system(_text(rng))] if rng.random() < 0.5 else []
    for number in range(rng.randint(0, 5)):
        ids = [f"call_{number}_{place}" for place in range(rng.randint(1, 3))]
        if rng.random() < 0.2:
            ids = rng.choices(("é\n", "call_0_0", ""), k=len(ids))
        history += [_thinking(rng, message) for message in _turn(rng, ids)]
        if rng.random() < 0.3:
            history.append(user(_content(rng)))
    return history


def _spelled(rng: random.Random, history: list[Message]) -> bytes:
    separators = rng.choice((None, (",", ":"), (",", ":"), (" ,\r\n", " : "), (", ", ":\t")))
    indent = rng.choice((None, None, None, 1))
    text = json.dumps(history, ensure_ascii=rng.random() < 0.5, indent=indent, separators=separators)
    return text.encode("utf-8", "surrogatepass")


def _options(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A function, and options that it takes."""
    options: dict[str, Any] = {}
    maybe: dict[str, Callable[[], Any]] = {
        "keep_by_tool": lambda: {rng.choice(("bash", "r*", "*")): rng.choice((None, 0, 1))},
        "exclude_tools": lambda: [rng.choice(("bash", "?", "é*"))],
        "keep_errors": lambda: True,
        "max_observation_chars": lambda: rng.randint(0, 90),
        "placeholder": lambda: rng.choice(("gone", "<{tool} {id}: {chars}, {lines}, {images}, {turn}>")),
        "min_masked_chars": lambda: rng.choice((1, 100)),
        "image_chars": lambda: rng.choice((0, 40)),
    }
    for name, value in maybe.items():
        if rng.random() < 0.1:
            options[name] = value()
    if rng.random() < 0.2 and "max_observation_chars" not in options:
        options["max_result_chars"] = rng.randint(60, 130)
    luck = rng.random()
    if luck < 0.1:
        options["mask_chunk"] = rng.randint(1, 3)
    elif luck < 0.6:
        options["boundary"] = "sliding"
    elif luck < 0.8:
        options |= {"boundary": "break_even", "provider": priced(write=rng.choice((0.1, 1.25)))}
        options["cold"] = rng.random() < 0.3
    if rng.random() < 0.6:
        verifies = {"verifies_reasoning": rng.random() < 0.6}  # published designs send all of it
        return "mask_observations_json", options | verifies | {"keep_results": rng.randint(0, 4)}
    budget = {
        "max_input_chars": rng.choice((0, 60, 300, 1_500, 1 << 40)),
        "preserve_recent_raw_turns": rng.randint(0, 6),
    }
    return "reduce_json", options | budget


@functools.cache
def _corpus() -> list[Path]:
    return [path for path in corpus_files() if path.stat().st_size < CORPUS_BYTES]


@functools.lru_cache(maxsize=2)
def _messages_of(path: Path) -> list[str]:
    """The raw text of each message of a corpus file."""
    texts = (source.text for source in sources(path) if source.text.lstrip()[:1] == "[")
    return [text[start:end] for text in texts for start, end in elements(text)]


def _corpus_piece(rng: random.Random, path: Path) -> bytes:
    """Some messages in a row of a file, in its own bytes."""
    messages = _messages_of(path)
    start = rng.randrange(len(messages) + 1)
    taken: list[str] = []
    for message in messages[start : start + rng.randint(1, 12)]:
        if sum(map(len, taken)) + len(message) > PIECE_CHARS:
            break
        taken.append(message)
    return ("[" + rng.choice((",", ",\n", " , ")).join(taken) + "]").encode("utf-8", "surrogatepass")


def _damaged(rng: random.Random, raw: bytes) -> bytes:
    data = bytearray(raw)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        start = rng.randint(0, len(data))
        end = min(len(data), start + rng.choice((0, 0, 1, 1, 2, 8, 70)))
        how = rng.random()
        if how < 0.6:
            data[start:end] = rng.choice(_PIECES)
        elif how < 0.7:
            del data[start:]
        elif how < 0.8:
            del data[start:end]
        elif how < 0.9:
            data[start:start] = data[start:end]
        elif start < len(data):
            data[start] ^= 1 << rng.randrange(8)
    return bytes(data)


def case(seed: int) -> Case:
    """The case of a seed, the same on every machine that has the same corpus."""
    rng = random.Random(seed)
    raw = _spelled(rng, _history(rng))
    files = _corpus()
    if files and rng.random() < CORPUS_SHARE:
        # Many cases in a row take the same file: to cut one up takes longer than to compare.
        raw = _corpus_piece(rng, files[seed // 200 % len(files)])
    if rng.random() < 0.15:
        raw = b'{"model":"m","%s":%s,"n":1}' % (rng.choice((b"messages", b"input")), raw)
    return Case(_damaged(rng, raw), *_options(rng))


def difference(case: Case) -> tuple[Any, Any] | None:
    """The answers of core and oracle, where they differ."""
    answers = []
    for engine in ("core", "oracle"):
        with using(engine):
            try:
                answers.append(outcome(getattr(published, case.function), case.raw, **case.options))
            except BaseException as error:  # a panic of the core is none of Exception
                if isinstance(error, KeyboardInterrupt):
                    raise
                answers.append(("failed", type(error).__name__, str(error)))
    core, oracle = answers
    # The oracle fails alike only if both are wrong.
    return None if core == oracle and core[0] != "failed" else (core, oracle)


def shrunk(case: Case) -> Case:
    """The shortest input that still differs, by leaving out pieces of it."""
    size = len(case.raw)
    while size:
        at = 0
        while at < len(case.raw):
            shorter = case._replace(raw=case.raw[:at] + case.raw[at + size :])
            if difference(shorter) is not None:
                case = shorter
            else:
                at += size
        size //= 2
    return case


class Found(NamedTuple):
    """What a run found."""

    cases: int
    accepted: int
    differences: list[str]


def run(seeds: Iterator[int]) -> Found:
    """Compare the cases of these seeds, until twenty differ."""
    cases = accepted = 0
    differences: list[str] = []
    for seed in seeds:
        one = case(seed)
        cases += 1
        if difference(one) is not None:
            short = shrunk(one)
            core, oracle = difference(short) or ("", "")
            differences.append(f"seed {seed}: {short}\n    core   {core}\n    oracle {oracle}")
            if len(differences) == 20:
                break
            continue
        with using("core"):
            accepted += outcome(getattr(published, one.function), one.raw, **one.options)[0] != "refused"
    return Found(cases, accepted, differences)


def _seeds(first: int, cases: int | None, seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    seed = first
    while (cases is None or seed < first + cases) and time.monotonic() < end:
        yield seed
        seed += 1


def main() -> None:
    """Run, and tell what was found."""
    parser = argparse.ArgumentParser(description="Compare the core with its oracle on random histories.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int)
    arguments = parser.parse_args()
    start = time.monotonic()
    found = run(_seeds(arguments.seed, arguments.cases, arguments.seconds))
    corpus = f"{len(_corpus())} files of the corpus" if _corpus() else "no corpus"
    print(
        f"core and oracle: {found.cases} cases from seed {arguments.seed} in {time.monotonic() - start:.0f} s, "
        f"{found.accepted} accepted; {corpus}; {len(found.differences)} differences"
    )
    for line in found.differences:
        print(line)
    sys.exit(bool(found.differences))


if __name__ == "__main__":
    main()
