"""The part of the page for one session: its requests, its dollars, and what they consist of."""

from __future__ import annotations

from collections.abc import Sequence

from recede.cli.anatomy import KINDS, Anatomy
from recede.cli.bars import sizes_chart, sources_chart
from recede.cli.chart import TEXT, breakable, element, shortened, sources, text
from recede.cli.lines import dollars_chart, growth_chart, has_limit, sample
from recede.cli.markup import costs_table, legend, observations, swatch, table
from recede.cli.notices import counted
from recede.cli.request import layers, strips_chart, tools_chart
from recede.cli.tables import share
from recede.cli.timeline import moved, timeline
from recede.cli.verdict import Session, money, percent
from recede.costs import cheapest_policy
from recede.designs import approx_tokens

_TIMELINE = "Request by request, with a cache"


def session_article(place: int, session: Session, strong: Sequence[int], sessions: int, context_window: int) -> str:
    """The pictures of a session; those of the first are open, which explains the result."""
    key = f"session-{place}"
    parts = [element("h3", text(session.name))]
    costs = session.replay.costs
    raw, best = costs[0], cheapest_policy(costs)
    if raw.usage.requests:
        words = f"{counted(raw.usage.requests, 'request')}, format {session.format}. Raw costs {money(raw.cost)}; "
        gain = f"{best.policy} is the cheapest: {money(best.cost)}, {percent(best.of_raw)} of raw."
        parts.append(element("p", breakable(words + ("nothing is cheaper." if best is raw else gain))))
        parts += _lines(key, session, strong, context_window)
    else:
        parts.append(element("p", text(f"No request was made (format {session.format}).")))
    inner = []
    drawn = timeline(f"{key}-timeline", session.replay)
    if drawn and place == 1:
        inner += [element("h4", _TIMELINE), drawn]
    elif drawn:
        inner.append(element("details", element("summary", _TIMELINE), drawn))
    if session.anatomy is not None and session.anatomy.samples:
        found = _anatomy(key, session.anatomy)
        inner += found if place == 1 else [element("details", element("summary", "What is sent"), *found)]
    if sessions == 1 or session.tools:
        inner += [
            element("h4", "Where the characters come from"),
            element("p", observations([session])),
            element("figure", sources_chart(f"{key}-sources", sources([session]))),
        ]
    return element("article", *parts, *inner, _figures(key, session, is_open=sessions == 1))


def _lines(key: str, session: Session, strong: Sequence[int], context_window: int) -> list[str]:
    replay = session.replay
    thin = len(replay.policies) - len(strong)
    keys = [(sample(rank), replay.policies[place].policy) for rank, place in enumerate(strong)]
    if thin:
        keys.append((sample(None), f"the {counted(thin, 'other')}, see the figures"))
    limit = f"the context window of {context_window:,} tokens"
    if has_limit(replay, context_window):
        line = element("line", class_="raw-mark", x1=1, x2=39, y1=8, y2=8)
        keys.append((element("svg", line, class_="sample", width=40, height=16, aria_hidden="true"), limit))
    note = [] if has_limit(replay, context_window) else [element("p", f"Far below {limit}.", class_="note")]
    return [
        element("figure", growth_chart(key, replay, strong, context_window), legend(keys), *note),
        element("h4", "Dollars up to each request"),
        element("figure", dollars_chart(f"{key}-dollars", replay, strong)),
    ]


def _anatomy(key: str, found: Anatomy) -> list[str]:
    names = layers(found.samples)
    parts = [
        element("h4", "The raw history by tool"),
        element(
            "figure",
            tools_chart(f"{key}-layers", found.samples),
            legend(
                (swatch(f"layer layer-{place}"), shortened(name))
                for place, (name, _) in reversed(list(enumerate(names)))
            ),
        ),
    ]
    if found.policy is None or not found.sizes:
        return parts
    sizes = f"How many results have so many characters, their share of all, and which {found.policy} masks."
    keys = [("bar written", "masked at the end"), ("bar rest", "raw at the end")]
    return [
        *parts,
        element("h4", "Results by size"),
        element("p", breakable(sizes)),
        element(
            "figure", legend((swatch(class_), words) for class_, words in keys), sizes_chart(f"{key}-sizes", found)
        ),
        element("h4", "The last request before and after"),
        element("p", breakable(f"Its messages from left to right, under {found.policy}. Nothing else of it changes.")),
        element(
            "figure",
            legend((swatch(f"block {kind}"), words) for kind, words in KINDS.items()),
            strips_chart(f"{key}-strips", found),
        ),
    ]


def _figures(key: str, session: Session, is_open: bool) -> str:
    costs = session.replay.costs
    parts = [element("summary", "Figures of this session")]
    if costs[0].usage.requests:
        views = [[turn.view_tokens for turn in replayed.turns] for replayed in session.replay.policies]
        rows = [
            [
                replayed.policy,
                *(f"{figure:,}" for figure in (tokens[0], max(tokens), tokens[-1])),
                f"{approx_tokens(replayed.usage.written_chars):,}",
                f"{approx_tokens(replayed.usage.cached_chars):,}",
                "-" if (count := moved(replayed)) is None else f"{count:,}",
            ]
            for replayed, tokens in zip(session.replay.policies, views, strict=True)
        ]
        headings = ["policy", "first request", "largest", "last", "all written", "all from cache", "boundary moved"]
        if not is_open:
            parts.append(costs_table(f"{key}-costs", "Costs of this session", costs, 1))
        parts.append(table(f"{key}-tokens", "Tokens of the requests", headings, rows))
    rows = [
        [name or "(unknown)", f"{tool.observations:,}", f"{tool.chars:,}", share(tool.chars, session.chars)]
        for name, tool in session.tools.items()
    ]
    rest = max(0, session.chars - sum(tool.chars for tool in session.tools.values()))
    rows.append([TEXT, "", f"{rest:,}", share(rest, session.chars)])
    parts.append(table(f"{key}-tools", "Characters by tool", ["tool", "results", "characters", "of all"], rows))
    return element("details", *parts, **({"open": ""} if is_open else {}))
