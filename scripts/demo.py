"""Reduces a recorded session and shows what happened. `make demo`, or `make demo FILE=history.json`."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import click

import recede
from recede.cli.files import read
from recede.cli.sessions import Reading

SESSION = Path(__file__).parent.parent / "examples" / "session.json"
BAR = 32


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


def print_sizes(view: recede.Reduction) -> None:
    """What one request is before and after, and of which tools."""
    old, new = view.chars_before, view.chars_after
    print(f"\nThe last request: {old:,} characters before, {new:,} after ({new / max(old, 1):.0%}).")
    print("By tool, kept █ and masked ░")
    tools = {name or "(unknown)": (tool.chars, tool.removed_chars) for name, tool in view.tools.items()}
    tools["all but tool outputs"] = (old - sum(chars for chars, _ in tools.values()), 0)
    largest = max(chars for chars, _ in tools.values()) or 1
    for name, (chars, removed) in sorted(tools.items(), key=lambda item: -item[1][0]):
        kept, total = (round(BAR * size / largest) for size in (chars - removed, chars))
        print(f"  {name[:21]:22}{chars:>10,}{chars - removed:>10,}  {'█' * kept}{'░' * (total - kept)}")


def print_costs(messages: list[Any]) -> None:
    """What all requests of the session cost."""
    replay = recede.costs.replay(messages, ["break_even:window=10"])
    raw, masked = replay.costs
    prices = f"${replay.prices.input:g} per million tokens in and ${replay.prices.output:g} out, with a prompt cache"
    print(f"\nAll {raw.usage.requests} requests, at {prices}:")
    print(f"${raw.cost:.2f} raw, ${masked.cost:.2f} masked when it pays ({masked.of_raw:.0%}).")


def print_turn(before: list[Any], after: list[Any]) -> None:
    """The largest output that became one line, with what was said and called before it."""
    masked = [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new and len(shown(new)) == 1]
    if not masked:
        return
    index = max(masked, key=lambda i: len(json.dumps(before[i])))
    start = max((i for i in range(index) if before[i].get("role") == "assistant"), default=index)
    for title, messages in (("One old turn before", before), ("The same turn after", after)):
        print(f"\n{title}")
        for message in [messages[i] for i in sorted({start, index})]:
            lines = textwrap.indent("\n".join(shown(message)), " " * 12)
            print(f"  {str(message.get('role') or message.get('type'))[:9]:10}{lines[12:]}")


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else str(SESSION)
    try:
        messages = json.loads(read(path, Reading())[0].json)
    except click.ClickException as error:
        sys.exit(f"recede: {error.message}")
    if isinstance(messages, dict):
        messages = messages.get("messages") or messages["input"]
    view = recede.reduce(messages)
    outputs = sum(tool.observations for tool in view.tools.values())
    print("recede puts one line in the place of each old tool output. Calls, answers and the newest outputs stay.")
    print(f"\n  history = json.load(...)       # {Path(path).name}: {view.turns} turns, {outputs} tool outputs")
    print("  view = recede.reduce(history)  # send view.messages; keep the history")
    print_sizes(view)
    print_costs(messages)
    print_turn(messages, view.messages)
    print("\nNext: `.venv/bin/recede` shows what masking saves in your own sessions.")


if __name__ == "__main__":
    main()
