"""What the requests of a session with a budget send, by a `History` of its own."""

from __future__ import annotations

import json
from typing import Any

import published

import recede
from definitions.cache import Block, Seen, Sent, served
from oracle.apply import built
from oracle.outline import Message
from oracle.placeholder import Masked
from oracle.shape import PLAIN
from oracle.value import Changed, Member, NewText
from oracle.walk import walk
from recede._recall import PLACEHOLDER
from recede.costs import CACHES, Cache, Prices
from recede.costs._cache import cache_facts
from recede.costs._prices import SUMMARY_PROMPT_CHARS
from recede.reduction._policy import LEAST_REMOVED
from support import priced

SYSTEM = 500
IMAGE_CHARS = 6_400
NO_TEXT = NewText(Masked((), ""), [])


def check_replay(
    history: list[Any],
    summary_chars: int,
    prices: Prices,
    *,
    unit: str,
    budget: int,
    fill: float | None,
    cache: Cache = CACHES["ideal"],
) -> int:
    """Compares each request of a replay under a budget with a `History`. Returns how many summaries that asked for."""
    spelled = "none" if fill is None else fill
    [raw, policy] = recede.costs.replay(
        history,
        [f"budget:{unit}={budget},fill={spelled}"],
        prices=prices,
        cache=cache,
        system_chars=SYSTEM,
        summary_chars=summary_chars,
    ).policies
    calls: list[int] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        calls.append(recede.count_chars(messages) + len(previous or "") + SUMMARY_PROMPT_CHARS)
        return "x" * summary_chars

    options: dict[str, Any] = {f"max_input_{unit}": budget, "fill": fill}
    if fill is not None:  # as recede's own doors
        options |= {"placeholder": PLACEHOLDER, "least_removed": LEAST_REMOVED}
    options["summarizer"] = summarizer if summary_chars else None
    session = published.History(provider=priced("ideal", float(prices.cached), float(prices.write)), **options)
    sent: list[Sent] = []
    for turn, whole in zip(policy.turns, raw.turns, strict=True):
        session.extend(history[len(session) : turn.messages])
        made = len(calls)
        view, stats = session.view(), session.stats()
        sent.append(Sent(_seen(view, turn.messages), turn.messages))
        assert turn.view_chars == SYSTEM + recede.count_chars(view) == SYSTEM + stats.view_chars
        assert turn.masked_count == stats.masked_count
        assert turn.summary_input_chars == sum(calls[made:])
        assert turn.summary_output_chars == summary_chars * len(calls[made:])
        assert turn.answer_chars == whole.answer_chars
        shown = published.reduce(view, max_input_chars=0, enabled=False).turns
        assert turn.summarized_turns == stats.turns - shown
    read = served(cache_facts(cache, prices, None, SYSTEM), sent, is_pinned=False)
    assert [(turn.view_chars, turn.cached_chars, turn.written_chars) for turn in policy.turns] == read
    return len(calls)


def _seen(view: list[Any], end: int) -> list[Seen]:
    """The messages of a view. The newest are the newest of the history, which has so many."""
    messages = walk(view).messages
    return [
        Seen(end - len(view) + place, _blocks(source, message))
        for place, (source, message) in enumerate(zip(view, messages, strict=True))
    ]


def _blocks(source: Any, message: Message) -> tuple[Block, ...]:
    """The content blocks. All but the observations counts for the first one."""
    count = max(message.blocks, len(message.calls), len(message.results), 1)
    # A result without a response shows nothing that could be hidden.
    no_texts = {one.block: NO_TEXT for one in message.results if one.text.joined or one.text.images or one.text.json}
    change = Changed(Member([source], 0))
    if no_texts:
        (message.shape or PLAIN).mask(change, no_texts)
    texts, chars = [[json.dumps(built(change))], *([] for _ in range(count - 1))], [0] * count
    chars[0] = message.own_chars(IMAGE_CHARS)
    for result in message.results:
        block = min(result.block, count - 1)
        shown = result.text
        texts[block] += [shown.joined, json.dumps(shown.json and shown.json.value), str(shown.images)]
        chars[block] += shown.chars(IMAGE_CHARS)
    return tuple((tuple(text), size) for text, size in zip(texts, chars, strict=True))
