"""What recorded sessions cost with headroom's `compress` before each request, by the rule of Anthropic's cache.

`python benches/headroom_cost.py` prints the table of docs/alternatives.md. It installs headroom in an environment of
its own, .engines/headroom, and exits with 77 where that cannot be done. Sessions of 30 observations or more. Each run
of answers is one request. Pauses and logged tokens are ignored, so that break-even and a sliding mask are measured
alike. The optional text model of headroom is not used.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from economy import CORPUS, PRICES, is_long
from figures import NOT_HERE
from replayed import percent

import recede
from definitions.cache import Seen, Sent, seen, served
from formatting import markdown
from oracle.walk import walk
from recede import transcripts
from recede.costs._prices import cache_facts, named_cache

ROOT = Path(__file__).resolve().parents[1]
VERSION = "0.42.0"
HOME = ROOT / ".engines" / "headroom"
PACKAGES = (f"headroom-ai=={VERSION}", "httpx", "onnxruntime")

Messages = list[Any]
FACTS = cache_facts(named_cache("anthropic"), PRICES, None, 12_000)
RULES = {"recede, break-even": "break_even", "a sliding mask": "sliding"}


def main() -> None:
    """Print the table."""
    import headroom

    def compressed(messages: Messages) -> Messages:
        return headroom.compress(messages, model="claude-sonnet-4-5-20250929").messages  # type: ignore[no-any-return]

    print(table({**{name: _masked(rule) for name, rule in RULES.items()}, f"headroom {VERSION}": compressed}))


def table(ways: dict[str, Callable[[Messages], Messages]]) -> str:
    """What the sessions cost with each way to make the messages of a request from its history."""
    costs = []
    for transcript in _sessions():
        costs.append(_costs(transcript, {"raw": list, **ways}))
        print(Path(transcript.source).name, costs[-1], file=sys.stderr, flush=True)
    total = sum(one["raw"] for one in costs)
    rows = []
    for name in ways:
        shares = [one[name] / one["raw"] for one in costs]
        sums = sum(one[name] for one in costs) / total, sum(shares) / len(shares), max(shares)
        rows.append([name, *map(percent, sums), f"{sum(share > 1 for share in shares)} of {len(shares)}"])
    header = ["", "cost, of raw", "mean of the sessions", "worst session", "sessions that cost more than raw"]
    return markdown(header, rows)


def _masked(rule: str) -> Callable[[Messages], Messages]:
    def view(messages: Messages) -> Messages:
        return recede.reduce(messages, boundary=rule, provider="anthropic").messages

    return view


def _costs(transcript: transcripts.Transcript, ways: dict[str, Callable[[Messages], Messages]]) -> dict[str, float]:
    costs = dict.fromkeys(ways, 0.0)
    for context in transcript.contexts:
        messages = _chat(context.messages) if transcript.format == "codex" else context.messages
        requests = [messages[:end] for end in range(1, len(messages)) if _begins_an_answer(messages, end)]
        for name, view in ways.items():
            costs[name] += _cost([view(request) for request in requests])
    return costs


def _in_its_environment() -> int:
    """Runs this script where headroom is installed, which is made if it is not there; its exit code."""
    python = HOME / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    steps = [pip]
    if not python.is_file():
        steps.insert(0, [sys.executable, "-m", "venv", "--clear", HOME])
    for step in steps:
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            *_, why = done.stdout.strip().splitlines() or ["no reason was given"]
            print(f"headroom-ai cannot be installed here: {why}", file=sys.stderr)
            return NOT_HERE
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run([python, __file__], env=environment).returncode


def _sessions() -> Iterator[transcripts.Transcript]:
    for path in sorted(path for path in CORPUS.glob("*/*") if path.is_file()):
        try:
            found = transcripts.read_all(path)
        except (ValueError, OSError):
            continue  # no history
        for one in found:
            if is_long(one.messages):
                yield one


def _chat(items: Messages) -> Messages:
    """Responses items as chat messages, which is what headroom reads."""
    messages = []
    for item in items:
        if "role" in item:
            content = item["content"]
            text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
            messages.append({"role": item["role"].replace("developer", "system"), "content": text})
        elif item["type"] in ("function_call", "custom_tool_call"):
            function = {"name": item["name"], "arguments": item.get("arguments", item.get("input"))}
            call = {"id": item["call_id"], "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif item["type"] in ("function_call_output", "custom_tool_call_output"):
            output = item["output"]
            text = output if isinstance(output, str) else json.dumps(output)
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": text})
    return messages


def _begins_an_answer(messages: Messages, place: int) -> bool:
    return messages[place].get("role") == "assistant" != messages[place - 1].get("role")


def _cost(views: list[Messages]) -> float:
    shown: dict[str, Any] = {}
    sent = [Sent([_seen(shown, message, at) for at, message in enumerate(view)], len(view)) for view in views]
    return sum(
        read * PRICES.cached + written * PRICES.write + (chars - read - written) * PRICES.input
        for chars, read, written in served(FACTS, sent, False)
    )


def _seen(shown: dict[str, Any], message: Any, place: int) -> Seen:
    text = json.dumps(message, sort_keys=True)
    if text not in shown:
        blocks = seen(walk([message]).messages[0], {}, 0).blocks
        shown[text] = tuple(((hash(text), at), chars) for at, (_, chars) in enumerate(blocks))
    return Seen(place, shown[text])


if __name__ == "__main__":
    if importlib.util.find_spec("headroom") is None:
        sys.exit(_in_its_environment())
    main()
