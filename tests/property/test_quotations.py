"""What sessions quote from old results, against its definition: sets of grams, as strings."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import recede
from definitions.misses import quotations
from oracle.turns import Turns
from oracle.walk import walk
from support import priced

History = list[dict[str, Any]]

WORDS = "total rows float list return value índice λόγος 名前 if else def class self for in not None path test".split()
SHAPES = ("anthropic", "openai", "responses")


def lines_of(random: Random) -> list[str]:
    """Lines that differ little, of which a session is made."""
    said = [" ".join(random.choice(WORDS) for _ in range(random.randint(1, 12))) for _ in range(30)]
    return [*said, "=" * 60, "a" * 40, *(f"{line}\t# {number}" for number, line in enumerate(said[:10]))]


def printed(lines: list[str], random: Random) -> str:
    """Lines as tools print them."""
    style = random.choice(["plain", "cat", "arrow", "grep", "diff", "colored", "escaped"])
    number = random.randint(1, 200)
    starts = {
        "cat": "  {}\t",
        "arrow": "{}→",
        "grep": "src/a.go:{}:",
        "diff": random.choice("+- "),
        "colored": "\x1b[31m",
    }
    text = "\n".join(starts.get(style, "").format(number + at) + line for at, line in enumerate(lines))
    return json.dumps(text)[1:-1] if style == "escaped" else text


def session(random: Random) -> History:
    """A session whose agent repeats parts of what it was shown, and of what it was not."""
    lines, shape = lines_of(random), random.choice(SHAPES)
    shown: list[str] = []

    def said() -> str:
        source = random.choice([*shown[-20:], *random.sample(lines, 3)])
        start = random.randint(0, max(0, len(source) - 40))
        part = source[start : start + random.choice([20, 31, 32, 40, 200])]
        return random.choice(["", "So: ", "  "]) + part.replace(" ", random.choice([" ", "  ", "\n"]))

    history: History = [{"role": "user", "content": " ".join(random.sample(lines, 2))}]
    for turn in range(random.randint(2, 12)):
        count = random.choice([1, 1, 1, 2, 3])
        texts = [printed(random.choices(lines, k=random.randint(0, 8)), random) for _ in range(count)]
        arguments = [random.choice([{"text": said()}, {"edits": [{"old": said()}], "id": said()}]) for _ in texts]
        history += turn_of(shape, turn, said(), arguments, texts, random)
        shown += texts
        if random.random() < 0.2:
            history.append({"role": "user", "content": random.choice([said(), [{"type": "text", "text": said()}]])})
    return history


def turn_of(shape: str, turn: int, said: str, arguments: list[Any], texts: list[str], random: Random) -> History:
    ids = [f"call-{turn}-{place}" for place in range(len(texts))]
    if shape == "anthropic":
        blocks: list[Any] = [{"type": "thinking", "thinking": said, "signature": said}, {"type": "text", "text": said}]
        calls = zip(ids, arguments, strict=True)
        blocks += [{"type": "tool_use", "id": id, "name": "run", "input": given} for id, given in calls]
        contents = [random.choice([text, [{"type": "text", "text": text}]]) for text in texts]
        results = [
            {"type": "tool_result", "tool_use_id": id, "content": content}
            for id, content in zip(ids, contents, strict=True)
        ]
        return [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    dumped = [random.choice([json.dumps, str])(given) for given in arguments]
    if shape == "openai":
        functions = [{"name": "run", "arguments": given} for given in dumped]
        made = [{"id": id, "type": "function", "function": one} for id, one in zip(ids, functions, strict=True)]
        answers = [{"role": "tool", "tool_call_id": id, "content": text} for id, text in zip(ids, texts, strict=True)]
        return [{"role": "assistant", "content": said, "tool_calls": made}, *answers]
    items: History = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": said}]}]
    items += [
        {"type": "function_call", "call_id": id, "name": "run", "arguments": given}
        for id, given in zip(ids, dumped, strict=True)
    ]
    items += [{"type": "function_call_output", "call_id": id, "output": t} for id, t in zip(ids, texts, strict=True)]
    return items


def never_masked(history: History) -> set[int]:
    """The results that are too short to be masked."""
    results = walk(history).results
    placeholder = recede.designs.mask_observation
    return {result.index for result in results if placeholder(result.text.joined) == result.text.joined}


@given(st.randoms(use_true_random=False))
def test_a_session_quotes_what_the_definition_says(random: Random) -> None:
    history = session(random)
    outline = walk(history)
    starts = Turns(outline).starts
    expected = []
    for quotation in quotations(history, kept=never_masked(history)):
        before = sum(result.message < starts[quotation.request] for result in outline.results)
        earlier = starts[quotation.request - 1] if quotation.request else 0
        if outline.results[quotation.result].message < earlier:
            distance = before - 1 - quotation.result
            expected.append((quotation.request, quotation.result, "run", distance, quotation.text))
    found = recede.costs.misses(history)
    assert [tuple(quotation) for quotation in found.quoted] == expected
    assert (found.requests, found.examined, found.results) == (len(starts), len(starts), len(outline.results))


def hidden_in(view: History, history: History) -> set[int]:
    """The results of a history that a view does not have raw."""
    results = walk(history).results
    if len(view) < len(history):
        kept = {id(message) for message in view}
        return {result.index for result in results if id(history[result.message]) not in kept}
    pairs = zip(walk(view).results, results, strict=True)
    return {result.index for now, result in pairs if now.text.joined != result.text.joined}


@given(random=st.randoms(use_true_random=False), window=st.integers(0, 4), messages=st.integers(0, 6))
def test_a_policy_misses_what_it_had_hidden(random: Random, window: int, messages: int) -> None:
    history = session(random)
    prices = recede.costs.Prices(min_cached_tokens=0)
    provider = priced("ideal", float(prices.cached), float(prices.write))

    def masked(**options: Any) -> Callable[[History], History]:
        return lambda first: recede.reduce(first, keep=window, **options).messages

    def truncated(first: History) -> History:
        return recede.designs.truncate_history(first, preserve_recent_raw_turns=messages).messages

    views: dict[str, Callable[[History], History]] = {
        "raw": lambda first: first,
        f"sliding:window={window}": masked(boundary="sliding"),
        f"stepped:window={window},chunk=2": masked(boundary=2),
        f"break_even:window={window}": masked(boundary="break_even", provider=provider),
        f"keep_last:messages={messages}": truncated,
    }
    found = recede.costs.replay(history, list(views), prices=prices, cache="ideal", with_misses=True).misses
    assert found is not None
    starts = Turns(walk(history)).starts
    quoted = quotations(history, kept=never_masked(history))
    for policy, view_of in views.items():
        hidden = [hidden_in(view_of(history[:start]), history[:start]) for start in starts]
        assert found.by_policy[policy] == {one.request for one in quoted if one.is_hidden(hidden[one.request])}, policy


def test_sessions_have_quotations_of_every_kind() -> None:
    found = [recede.costs.misses(session(Random(seed))) for seed in range(40)]
    assert sum(one.share(window=2) > 0 for one in found) > 10
    assert any(not one.quoted for one in found)
