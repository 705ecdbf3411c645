"""Pictures of what is sent: the characters of each tool request by request, and one request before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recede.cli.anatomy import KINDS, Anatomy, Block, Sample
from recede.cli.chart import TEXT, at, compact, element, hint, label, level, picture, shortened, stretched, ticks
from recede.cli.lines import hover_columns, turn_ticks
from recede.designs import approx_tokens
from recede.reduction._kinds import CHARS_PER_TOKEN

_HEIGHT = 200
_MOST_LAYERS = 5
_STRIP_WIDTH = 1_000


def layers(samples: Sequence[Sample]) -> list[tuple[str, list[int]]]:
    """The characters of text and of the largest tools in each sample, the lowest layer first."""
    tools = Counter(samples[-1].tools)
    names = [name for name, _ in tools.most_common(_MOST_LAYERS)]
    found = [(TEXT, [max(0, sample.chars - sum(sample.tools.values())) for sample in samples])]
    found += [(name or "(unknown)", [sample.tools.get(name, 0) for sample in samples]) for name in names]
    others = [sum(sample.tools.values()) - sum(sample.tools.get(name, 0) for name in names) for sample in samples]
    if any(others):
        found.append(("other tools", others))
    return found


def tools_chart(key: str, samples: Sequence[Sample]) -> str:
    """A layer for each tool over the requests, its name beside its end or in the titles."""
    found = layers(samples)
    top = max(1, *(approx_tokens(sample.chars) for sample in samples))
    rows = ticks(top, 4)
    turns = samples[-1].turn + 1

    def across(turn: int) -> int:
        return round(1000 * turn / (turns - 1)) if turns > 1 else 1000

    def down(chars: float) -> int:
        return round(10 * _HEIGHT * (1 - chars / CHARS_PER_TOKEN / rows[-1]))

    areas, lower = [], [0] * len(samples)
    for place, (name, chars) in enumerate(found):
        upper = [below + count for below, count in zip(lower, chars, strict=True)]
        edge = [f"{across(sample.turn)} {down(count)}" for sample, count in zip(samples, upper, strict=True)]
        back = [f"{across(sample.turn)} {down(count)}" for sample, count in zip(samples, lower, strict=True)]
        if len(samples) == 1:
            edge, back = [f"0 {down(upper[0])}", *edge], [f"0 {down(lower[0])}", *back]
        at_the_end = hint(f"{shortened(name)}: about {approx_tokens(chars[-1]):,} tokens")
        path = f"M{'L'.join([*edge, *reversed(back)])}Z"
        areas.append(element("path", at_the_end, class_=f"layer layer-{place}", d=path))
        lower = upper

    def words(place: int) -> str:
        sample = samples[place]
        parts = (f"{shortened(name)} {approx_tokens(chars[place]):,}" for name, chars in reversed(found))
        return f"turn {sample.turn + 1:,}: about {approx_tokens(sample.chars):,} tokens; {', '.join(parts)}"

    description = "; ".join(f"{shortened(name)}: about {approx_tokens(chars[-1]):,} tokens" for name, chars in found)
    return picture(
        key,
        "The raw history by tool, turn by turn",
        f"At the end, {description}.",
        _HEIGHT,
        "lines areas",
        *(level(_HEIGHT * (1 - row / rows[-1]), compact(row)) for row in rows),
        stretched(1000, 10 * _HEIGHT, *areas, height=_HEIGHT),
        *(
            at(f"{across(turn - 1) / 10:.4g}%", label(f"{turn:,}", 0, _HEIGHT + 19, "middle"))
            for turn in turn_ticks(turns)
        ),
        hover_columns(len(samples), _HEIGHT, words),
        label("tokens", -44, -14),
        at("100%", label("turn", 30, _HEIGHT + 19)),
    )


def strips_chart(key: str, found: Anatomy) -> str:
    """The last request as one bar of its messages, raw and as it is sent."""
    thick, row = 34, 74
    whole = sum(block.before for block in found.blocks) or 1
    drawn = []
    for place, (name, sizes) in enumerate(
        (("raw", [block.before for block in found.blocks]), ("sent", [block.after for block in found.blocks]))
    ):
        y = row * place + 20
        tokens = f"{name}: about {approx_tokens(sum(sizes)):,} tokens"
        drawn.append(label(tokens, 0, y - 7, "name"))
        drawn.append(_strip(found.blocks, sizes, whole, y, thick))
    chars = [sum(sizes) for sizes in zip(*((block.before, block.after) for block in found.blocks), strict=True)]
    before, after = map(approx_tokens, chars or (0, 0))
    return picture(
        key,
        "The last request before and after",
        f"Of about {before:,} tokens, about {after:,} are sent.",
        2 * row - 18,
        "bars",
        *drawn,
    )


def _strip(blocks: Sequence[Block], sizes: Sequence[int], whole: int, y: int, thick: int) -> str:
    """The messages from left to right, those of a kind as one path."""
    unit = _STRIP_WIDTH / whole
    paths: dict[str, list[str]] = {}
    start = 0
    for block, size in zip(blocks, sizes, strict=True):
        left, right = round(start * unit), round((start + size) * unit)
        if right > left:
            paths.setdefault(block.kind, []).append(f"M{left} 0H{right}V10H{left}Z")
        start += size
    drawn = []
    for kind, pieces in paths.items():
        before, after = (
            sum(column) for column in zip(*((one.before, one.after) for one in blocks if one.kind == kind), strict=True)
        )
        words = f"{KINDS[kind]}: {before:,} characters, of which {after:,} are sent"
        drawn.append(element("path", hint(words), class_=f"block {kind}", d="".join(pieces)))
    return stretched(_STRIP_WIDTH, 10, *drawn, y=y, width="100%", height=thick)
