"""What recorded sessions cost with headroom's `compress` before each request, by the rule of Anthropic's cache.

    pip install headroom-ai httpx onnxruntime && python benches/headroom_cost.py

Sessions of 30 observations or more. Each run of answers is one request. Pauses and logged tokens are ignored, so that
break-even and a sliding mask are measured alike. The optional text model of headroom is not used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import headroom
import product
from economy import CORPUS, MIN_OBSERVATIONS, PRICES

from definitions.cache import Seen, Sent, seen, served
from oracle.walk import walk
from recede import transcripts
from recede.costs._cache import cache_facts, named_cache

Messages = list[Any]
FACTS = cache_facts(named_cache("anthropic"), PRICES, None, 12_000)
POLICIES: dict[str, Callable[[Messages], Messages]] = {
    "raw": lambda messages: messages,
    "headroom": lambda messages: headroom.compress(messages, model="claude-sonnet-4-5-20250929").messages,
    "break_even:window=10": lambda messages: (
        product.mask_observations(messages, keep_results=10, boundary="break_even", provider="anthropic").messages
    ),
    "sliding:window=10": lambda messages: (
        product.mask_observations(messages, keep_results=10, boundary="sliding").messages
    ),
}


def main() -> None:
    sums, sessions = dict.fromkeys(POLICIES, 0.0), 0
    for transcript in _sessions():
        sessions += 1
        costs = dict.fromkeys(POLICIES, 0.0)
        for context in transcript.contexts:
            messages = _chat(context.messages) if transcript.format == "codex" else context.messages
            requests = [messages[:end] for end in range(1, len(messages)) if _begins_an_answer(messages, end)]
            for name, view in POLICIES.items():
                costs[name] += _cost([view(request) for request in requests])
        sums = {name: sums[name] + cost for name, cost in costs.items()}
        print(Path(transcript.source).name, *(f"{name} {cost / costs['raw']:.3f}" for name, cost in costs.items()))
    print(f"{sessions} sessions:", *(f"{name} {cost / sums['raw']:.3f}" for name, cost in sums.items()))


def _sessions() -> Iterator[transcripts.Transcript]:
    for path in sorted(path for path in CORPUS.glob("*/*") if path.is_file()):
        try:
            found = transcripts.read_all(path)
        except (ValueError, OSError):
            continue  # no history
        for one in found:
            tools = product.mask_observations(one.messages, keep_results=0, boundary="sliding").tools.values()
            if sum(tool.observations for tool in tools) >= MIN_OBSERVATIONS:
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
    sent = [Sent([_seen(shown, message, at) for at, message in enumerate(view)], at) for at, view in enumerate(views)]
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
    main()
