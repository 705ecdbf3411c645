"""What the requests of a session with a budget send, by a `History` of its own."""

from __future__ import annotations

import json
from typing import Any

import published
from answers import numbered

import recede
from definitions.cache import Block, Seen, Sent, served
from oracle.apply import built
from oracle.outline import Message
from oracle.placeholder import Masked
from oracle.shape import PLAIN
from oracle.turns import Turns
from oracle.value import Changed, Member, NewText
from oracle.walk import walk
from recede._recall import PLACEHOLDER
from recede.costs import CACHES, Cache, Prices
from recede.costs._prices import cache_facts
from recede.reduction._policy import LEAST_REMOVED, SUMMARY_CHARS, SUMMARY_PROMPT_CHARS
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
    fill: float,
    cache: Cache = CACHES["ideal"],
) -> int:
    """Compares each request of a replay under a budget with a `History`. Returns how many summaries that asked for."""
    [raw, policy] = recede.costs.replay(
        history,
        [f"budget:{unit}={budget},fill={fill}"],
        prices=prices,
        cache=cache,
        system_chars=SYSTEM,
        summary_chars=summary_chars,
    ).policies
    outline, history = walk(history), numbered(history)
    turns, calls = Turns(outline), list[int]()
    is_exact = summary_chars == 0 or summary_chars > 22  # the first line is there in any case

    def summarizer(messages: list[Any], previous: str | None) -> str:
        calls.append(recede.count_chars(messages) + len(previous or "") + SUMMARY_PROMPT_CHARS)
        return (f"Conversation summary:\n{len(calls)}" + "x" * summary_chars)[:summary_chars]

    options: dict[str, Any] = {f"max_input_{unit}": budget, "fill": fill}
    options |= {"placeholder": PLACEHOLDER, "least_removed": LEAST_REMOVED}
    if summary_chars:
        options |= {"summarizer": summarizer, "summary_max_chars": SUMMARY_CHARS}
    options["keeps_dispatch"] = False
    session = published.History(provider=priced("ideal", float(prices.cached), float(prices.write)), **options)
    sent: list[Sent] = []
    for turn, whole in zip(policy.turns, raw.turns, strict=True):
        session.extend(history[len(session) : turn.messages])
        made = len(calls)
        view, stats = session.view(), session.stats()
        sent.append(Sent(_seen(view, turn.messages, outline.messages), turn.messages))
        if is_exact:
            assert turn.view_chars == SYSTEM + recede.count_chars(view) == SYSTEM + stats.view_chars
        assert turn.masked_count == stats.masked_count
        assert not is_exact or turn.summary_input_chars == sum(calls[made:])
        assert turn.summary_output_chars == summary_chars * len(calls[made:])
        assert turn.answer_chars == whole.answer_chars
        places = [message["place"] for message in view if "place" in message]
        shown = {turns.begun[place] for place in places if outline.messages[place].is_agent_made}
        assert turn.summarized_turns == stats.turns - len(shown)
    if is_exact:
        read = served(cache_facts(cache, prices, None, SYSTEM), sent, is_pinned=False)
        for turn, (view_chars, cached_chars, written_chars) in zip(policy.turns, read, strict=True):
            assert turn.view_chars == view_chars
            if cache.rule == "breakpoints" and turn.needed in ("summary", "truncation"):
                break  # where the request before ended is not known of a view that drops messages
            # Of two built-in summaries with one text the replay takes the second for another one.
            is_less = summary_chars == 0 and turn.needed == "summary" and turn.cached_chars < cached_chars
            assert is_less or (turn.cached_chars, turn.written_chars) == (cached_chars, written_chars)
    return len(calls)


def _seen(view: list[Any], end: int, raw: list[Message]) -> list[Seen]:
    """The messages of a view. The newest are the newest of the history, which has so many."""
    messages = [(source, raw[source["place"]].blocks if "place" in source else 0) for source in view]
    return [
        Seen(end - len(view) + place, _blocks(source, message, blocks))
        for place, ((source, blocks), message) in enumerate(zip(messages, walk(view).messages, strict=True))
    ]


def _blocks(source: Any, message: Message, blocks: int) -> tuple[Block, ...]:
    """The content blocks, no fewer than it came with. All but the observations counts for the first one."""
    count = max(blocks, message.blocks, len(message.calls), len(message.results), 1)
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
