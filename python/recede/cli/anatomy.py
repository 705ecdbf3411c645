"""What a session consists of: characters by tool over time, sizes of results, and one request before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recede import History, count_chars
from recede.cli.paste import mask_options
from recede.costs import PolicyCost, Replay
from recede.designs import mask_observation, mask_observations

KINDS = {"masked": "results that are masked", "result": "results in the window", "text": "text, reasoning and calls"}
"""What a block can be."""

_SAMPLES = 40
_EVERYTHING = 1 << 60
_EDGES = (
    (100, "< 100"),
    (1_000, "100 +"),
    (4_000, "1k +"),
    (10_000, "4k +"),
    (30_000, "10k +"),
    (_EVERYTHING, "30k +"),
)


class Sample(NamedTuple):
    """The raw history before a request.

    Attributes:
        turn: the request, from 0.
        tools: characters of results by tool.
        chars: of the whole history.
    """

    turn: int
    tools: Mapping[str, int]
    chars: int


class Block(NamedTuple):
    """Messages in a row that are treated alike.

    Attributes:
        kind: one of `KINDS`.
        before: their characters in the raw history.
        after: what of these is sent.
    """

    kind: str
    before: int
    after: int


class Bin(NamedTuple):
    """The results of about one size.

    Attributes:
        name: what sizes these are.
        sizes: the characters of each.
        are_masked: whether each is masked at the end.
    """

    name: str
    sizes: Sequence[int]
    are_masked: Sequence[bool]


class Anatomy(NamedTuple):
    """What is drawn of the text of a session, without the text.

    Attributes:
        samples: some of the requests, in order.
        sizes: the characters of each result.
        are_masked: whether each is masked in the last request.
        policy: the cheapest mask, which decides that; None if none was replayed.
        blocks: the last request.
    """

    samples: tuple[Sample, ...]
    sizes: tuple[int, ...]
    are_masked: tuple[bool, ...]
    policy: str | None
    blocks: tuple[Block, ...]

    def bins(self) -> list[Bin]:
        """The results by size."""
        found: list[list[tuple[int, bool]]] = [[] for _ in _EDGES]
        for size, is_masked in zip(self.sizes, self.are_masked, strict=True):
            found[next(place for place, (edge, _) in enumerate(_EDGES) if size < edge)].append((size, is_masked))
        return [
            Bin(name, [size for size, _ in one], [is_masked for _, is_masked in one])
            for (_, name), one in zip(_EDGES, found, strict=True)
        ]


def anatomy(messages: Sequence[Any], replay: Replay) -> Anatomy:
    """Read a session for its pictures; the time is that of some reductions of it."""
    messages = list(messages)
    turns = replay.policies[0].turns
    picked = sorted({place * (len(turns) - 1) // (_SAMPLES - 1) for place in range(_SAMPLES)}) if turns else []
    best = _cheapest_mask(replay)
    last = messages[: turns[-1].messages] if turns else []
    options = None if best is None else mask_options(best.policy, replay.prices, replay.cache)
    texts = _results(last)
    blocks = _blocks(last, options or {"keep_results": _EVERYTHING})
    count = 0 if options is None else mask_observations(last, **options).masked_count
    return Anatomy(
        tuple(_sample(place, messages[: turns[place].messages]) for place in picked),
        tuple(map(len, texts)),
        tuple(_masked(texts, count)),
        None if best is None else best.policy,
        tuple(blocks),
    )


def _cheapest_mask(replay: Replay) -> PolicyCost | None:
    masks = [
        cost
        for cost in replay.costs
        if mask_options(cost.policy, replay.prices, replay.cache) is not None and cost.usage.requests
    ]
    return min(masks, key=lambda cost: cost.cost, default=None)


def _sample(turn: int, messages: list[Any]) -> Sample:
    raw = mask_observations(messages, keep_results=_EVERYTHING)
    return Sample(turn, {name: tool.chars for name, tool in raw.tools.items()}, raw.chars_before)


def _results(messages: list[Any]) -> list[str]:
    """The texts of the results, in order."""
    history = History.from_messages(messages)
    count = sum(tool.observations for tool in mask_observations(messages, keep_results=_EVERYTHING).tools.values())
    return [history.recall(number) for number in range(1, count + 1)]


def _masked(texts: Sequence[str], count: int) -> list[bool]:
    """Which results are masked, if this many are: the oldest for which the placeholder is shorter."""
    found = []
    for text in texts:
        is_masked = count > 0 and mask_observation(text) != text
        count -= is_masked
        found.append(is_masked)
    return found


def _blocks(messages: list[Any], options: dict[str, Any]) -> list[Block]:
    sent = mask_observations(messages, **options).messages
    masked = mask_observations(messages, keep_results=0, boundary="sliding").messages
    found: list[Block] = []
    for message, view, least in zip(messages, sent, masked, strict=True):
        kind = "masked" if view != message else "result" if least != message else "text"
        before, after = count_chars([message]), count_chars([view])
        if found and found[-1].kind == kind:
            _, others_before, others_after = found.pop()
            before, after = before + others_before, after + others_after
        found.append(Block(kind, before, after))
    return found
