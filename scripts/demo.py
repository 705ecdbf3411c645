"""Reduces a recorded session and shows what happened. `make demo`, or `make demo FILE=history.json`."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click

import recede
from recede.cli.files import read
from recede.cli.reading import Reading

SESSION = Path(__file__).parent.parent / "examples" / "session.json"
BAR = 32


def raw_messages(data: bytes) -> list[str]:
    """The text of each message as it stands in the array."""
    text, decode = data.decode("utf-8", "surrogatepass"), json.JSONDecoder().raw_decode
    found, at = [], text.index("[") + 1
    while text[at] != "]":
        if text[at] in ", \t\r\n":
            at += 1
            continue
        end = decode(text, at)[1]
        found.append(text[at:end])
        at = end
    return found


def shown(message: Any) -> list[str]:
    """The beginning of what a message says, and its calls."""
    text = message.get("content", message.get("output")) or ""
    if isinstance(text, list):
        text = next((block.get("content") or block.get("text") for block in text), "")
    text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line.expandtabs(4), 100)]
    if len(lines) > 6:
        lines[6:] = [f"… {len(text):,} characters in all"]
    calls = [call["function"] for call in message.get("tool_calls") or () if "function" in call]
    return lines + [f"→ {call['name']} {call['arguments']}"[:92] for call in calls]


def print_sizes(before: list[str], after: list[str], result: recede.types.JsonReduction) -> None:
    old, new = result.chars_before, result.chars_after
    rows = [("messages", len(before), len(after)), ("characters", old, new)]
    rows.append(("tokens, about", recede.designs.approx_tokens(old), recede.designs.approx_tokens(new)))
    print(f"\n{'':22}{'before':>10}{'after':>10}")
    for name, first, second in rows:
        print(f"{name:22}{first:>10,}{second:>10,}{second / max(first, 1):>7.0%}")
    print("\nCharacters by tool, kept █ and masked ░")
    tools = {name or "(unknown)": (tool.chars, tool.removed_chars) for name, tool in result.tools.items()}
    tools["all but tool outputs"] = (old - sum(chars for chars, _ in tools.values()), 0)
    largest = max(chars for chars, _ in tools.values()) or 1
    for name, (chars, removed) in sorted(tools.items(), key=lambda item: -item[1][0]):
        kept, total = (round(BAR * size / largest) for size in (chars - removed, chars))
        print(f"{name[:21]:22}{chars:>10,}{chars - removed:>10,}  {'█' * kept}{'░' * (total - kept)}")


def print_turn(before: list[Any], after: list[Any]) -> None:
    """The largest output that became one line, with what was said and called before it."""
    pairs = list(zip(before, after, strict=False))
    masked = [i for i, (old, new) in enumerate(pairs) if old != new and len(shown(new)) == 1]
    if not masked or len(before) != len(after):
        return
    index = max(masked, key=lambda i: len(json.dumps(before[i])))
    start = max((i for i in range(index) if before[i].get("role") == "assistant"), default=index)
    for title, messages in (("One old turn before", before), ("The same turn after", after)):
        print(f"\n{title}")
        for message in [messages[i] for i in sorted({start, index})]:
            lines = textwrap.indent("\n".join(shown(message)), " " * 12)
            print(f"  {str(message.get('role') or message.get('type'))[:9]:10}{lines[12:]}")


def print_proof(before: list[str], after: list[str], result: recede.types.JsonReduction, budget: int) -> None:
    fits = "fits" if result.within_limit is not False else "does NOT fit"
    print(f"\nBudget  {budget:,} characters, half of it: the view {fits}, by {result.reduction_stage or 'no stage'}.")
    old, new = (recede.check_pairs([json.loads(message) for message in messages]) for messages in (before, after))
    is_broken = len(new.orphans) > len(old.orphans)
    print(f"Pairs   {'BROKEN' if is_broken else 'whole: every call still has its result, and every result its call'}.")
    same = sum((Counter(before) & Counter(after)).values())
    print(
        f"Bytes   {same} messages are the same byte for byte, {len(after) - same} have a placeholder or are a summary."
    )


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else str(SESSION)
    try:
        data = read(path, Reading())[0].json
    except click.ClickException as error:
        sys.exit(f"recede: {error.message}")
    if isinstance(body := json.loads(data), dict):
        data = json.dumps(body.get("messages") or body["input"]).encode()
    before = raw_messages(data)
    messages = [json.loads(message) for message in before]
    budget = recede.count_chars(messages) // 2
    start = time.perf_counter()
    result = recede.designs.HistoryReducer(fill=0.9, max_input_chars=budget).reduce_json(data)
    milliseconds = (time.perf_counter() - start) * 1_000
    after = raw_messages(result.json)
    print("recede puts one line in the place of each old tool output. Calls, answers and the newest outputs stay.\n")
    outputs = sum(tool.observations for tool in result.tools.values())
    print(f"{Path(path).name}: {result.turns} turns of an agent, {outputs} tool outputs. The task:")
    task = next((" ".join(shown(message)) for message in messages if message.get("role") == "user"), "none")
    print(
        textwrap.fill(textwrap.shorten(task, 200, placeholder=" …"), 100, initial_indent="  ", subsequent_indent="  ")
    )
    print(f"Reduced to half its size or less, in {milliseconds:.2f} ms, by the Rust core.")
    print_sizes(before, after, result)
    print_turn(messages, [json.loads(message) for message in after])
    print_proof(before, after, result, budget)


if __name__ == "__main__":
    main()
