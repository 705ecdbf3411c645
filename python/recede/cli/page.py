"""A replay as one self-contained HTML page: no scripts, readable without color, on paper and on a phone."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from recede import approx_tokens
from recede.cli.chart import (
    breakable,
    cost_chart,
    element,
    emphasized,
    growth_chart,
    kind_of,
    printable,
    sample,
    sources,
    sources_chart,
)
from recede.cli.suggestion import curve_chart, curves, rows, sentences
from recede.cli.tables import cost_table, share
from recede.cli.timeline import moved, timeline
from recede.cli.verdict import Session, money, notes, percent, price_line, verdict
from recede.costs import PolicyCost, Suggestion, cheapest_policy, compare_costs

__all__ = ["page"]

_MOST_SESSIONS = 12
_NO_MARKS: Mapping[str, str] = {}

_TIMELINE = "Request by request, with a cache"

_KINDS = {
    "raw": "everything is sent, at every turn",
    "sliding": "the newest tool results stay, all older ones are masked; the boundary moves at every turn",
    "stepped": "the same, but the boundary moves only now and then, so that the cache keeps serving what is before it",
    "break_even": "the same, but the boundary moves when that breaks even at these prices",
    "high_water": "the same, but the boundary moves when the view is larger than a number of characters",
    "optimum": "the offline lower bound: the boundary moves when that costs least, knowing the future",
    "summary": "now and then all but the newest turns become one summary, which a model writes; nothing is masked",
    "hybrid": "the tool results of the newest turns stay, older ones are masked; now and then all but the newest turns "
    "become one summary, which a model writes",
    "keep_last": "the system messages, the first of the user and the newest are sent, the rest is left out",
}

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1a1d21; --soft: #5a626b; --grid: #dfe3e8; --panel: #f5f7f9;
  --one: #0a5fb0; --two: #b3450b; --three: #2c7a3f; --four: #7a3fa0; --thin: #98a1ab; --pale: #c3dbf2; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e9ecef; --soft: #a3acb5; --grid: #333a41;
  --panel: #1d2125; --one: #6cb2f7; --two: #f2995c; --three: #74c98a; --four: #c79bea; --thin: #727c86;
  --pale: #1f4468; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --grid: #ccc; --panel: #fff;
  --one: #0a5fb0; --two: #b3450b; --three: #2c7a3f; --four: #7a3fa0; --thin: #888; --pale: #c3dbf2; } }
@media (forced-colors: active) { :root { --paper: Canvas; --ink: CanvasText; --soft: CanvasText; --grid: GrayText;
  --panel: Canvas; --one: LinkText; --two: CanvasText; --three: CanvasText; --four: CanvasText; --thin: GrayText;
  --pale: Canvas; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1rem 3rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 .25rem; }
h3 { font-size: 1.05rem; line-height: 1.3; margin: 0 0 .25rem; }
h4 { font-size: .95rem; margin: 1.75rem 0 .75rem; }
p { margin: 0 0 .75rem; max-width: 46rem; }
.note, .legend, dl, footer, details, caption { color: var(--soft); font-size: .9rem; }
.verdict { margin: 1.25rem 0; padding: 1rem 1.25rem; list-style: none; background: var(--panel);
  border-left: .3rem solid var(--one); }
.verdict li { margin: .5rem 0 0; }
.verdict li::first-letter { text-transform: uppercase; }
.verdict li:first-child { margin: 0; font-size: 1.2rem; font-weight: 600; line-height: 1.35; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 1rem 0; }
dt { font-weight: 600; color: var(--ink); }
dd { margin: 0; }
article { margin: 1.5rem 0 0; padding: 1.5rem 0 0; border-top: 1px solid var(--grid); }
figure { display: flow-root; margin: 1rem 0; overflow: clip; break-inside: avoid; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; margin: 0 0 .75rem; padding: 0; list-style: none; }
.legend li { display: flex; align-items: center; gap: .5rem; }
.legend b { color: var(--ink); font-weight: 600; }
.legend svg { flex: none; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .875rem; line-height: 1.35; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 0 0 .5rem; }
th, td { padding: .3rem .75rem; border-bottom: 1px solid var(--grid); text-align: right; vertical-align: bottom;
  color: var(--ink); }
td { white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; min-width: 12.75rem; }
thead th + th { overflow-wrap: normal; }
thead th { border-bottom-color: var(--soft); }
tbody th { font-weight: 400; }
tr.best > * { font-weight: 700; }
summary { cursor: pointer; }
.chart { display: block; font-size: 13px; }
.chart text { fill: var(--ink); }
.ground { fill: var(--paper); }
.growth { margin: 28px var(--right) 30px 46px; width: calc(100% - 46px - var(--right)); }
.bars { margin: 0 128px 0 1px; width: calc(100% - 129px); }
.panel { margin: 1.25rem 0 0; }
figcaption { max-width: 46rem; }
.timeline { margin: 32px 52px 22px 54px; width: calc(100% - 106px); }
.timeline.last { margin-bottom: 42px; }
.timeline text { fill: var(--soft); }
.chart .left { text-anchor: end; }
.chart .middle { text-anchor: middle; }
.growth text { fill: var(--soft); }
.growth .end { font-weight: 600; }
.chart .name { font-weight: 500; }
.chart .best { font-weight: 700; }
.chart .tool { font-family: ui-monospace, "SFMono-Regular", Consolas, "Liberation Mono", monospace; }
.grid { stroke: var(--grid); }
.tick { stroke: var(--soft); }
.leader { stroke: var(--thin); fill: none; }
polyline, .sample line { fill: none; stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.thin { stroke: var(--thin); stroke-width: 1; opacity: .75; }
.line-0 { stroke: var(--ink); stroke-width: 2.5; }
.line-1 { stroke: var(--one); stroke-width: 2.5; }
.line-2 { stroke: var(--two); stroke-dasharray: 7 4; }
.line-3 { stroke: var(--three); stroke-dasharray: 2 3; }
.line-4 { stroke: var(--four); stroke-dasharray: 10 3 2 3; }
.mark-1, .mark-2, .mark-3, .mark-4 { stroke: var(--paper); stroke-width: 1; }
.mark-1 { fill: var(--one); }
.mark-2 { fill: var(--two); }
.mark-3 { fill: var(--three); }
.mark-4 { fill: var(--four); }
.growth .end-0 { fill: var(--ink); }
.growth .end-1 { fill: var(--one); }
.growth .end-2 { fill: var(--two); }
.growth .end-3 { fill: var(--three); }
.growth .end-4 { fill: var(--four); }
.bar { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.cached, .source { fill: var(--one); }
.cached.costlier { fill: var(--two); }
.uncached { fill: url(#hatch); stroke: var(--soft); }
.cached.reference, .uncached.reference { fill: var(--paper); stroke: var(--soft); stroke-width: 1.5; }
.cached.reference { stroke: var(--one); stroke-dasharray: 5 3; }
.chart .aside, tr.reference > * { font-style: italic; color: var(--soft); }
.written, .served, .plain, .move { vector-effect: non-scaling-stroke; print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
.written { fill: var(--two); }
.served { fill: var(--pale); stroke: var(--one); stroke-width: .75; }
.plain { fill: var(--paper); stroke: var(--soft); stroke-dasharray: 3 2; }
.move { fill: none; stroke: var(--ink); stroke-width: 1.5; }
.hatch { stroke: var(--soft); stroke-width: 1.5; }
.rest { fill: none; stroke: var(--soft); }
.raw-mark { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 4 3; }
.key { flex: none; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--grid); }
@media print { body { max-width: none; padding: 0; } .scroll { overflow: visible; }
  h2, h3, h4, section > p, article > p { break-after: avoid; } tr { break-inside: avoid; }
  details::details-content { content-visibility: visible; } }
"""


def page(sessions: Sequence[Session], suggestion: Suggestion | None = None) -> str:
    """The verdict, the costs as a chart and a table, then the most expensive sessions one by one.

    Args:
        sessions: replayed under the same policies and prices; at least one.
        suggestion: the cheapest window, chunk and summaries, if requested.

    Returns:
        A page that can be encoded as UTF-8, whatever the names of files and tools are.
    """
    costs = compare_costs(session.replay for session in sessions)
    requests = costs[0].usage.requests
    counts = f"{_count(requests, 'request')} of {_count(len(sessions), 'session')}, {_count(len(costs), 'policy')}"
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="recede replay">\n'
        f"<title>What masking would have cost — {counts}</title>\n<style>{_STYLE}</style>\n"
    )
    body = [
        element("header", element("h1", "What masking would have cost"), element("p", counts, class_="note")),
        _verdict(costs, sessions),
        _costs(costs, len(sessions)) if requests else "",
        _suggestion(suggestion) if requests and suggestion is not None else "",
        _sources_of_all(sessions) if len(sessions) > 1 else "",
        _dearest(sessions, emphasized(costs)),
        _footer(sessions),
    ]
    main = "\n".join(filter(None, body))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n<main>\n{main}\n</main>\n</body>\n</html>\n'
    )


def _verdict(costs: Sequence[PolicyCost], sessions: Sequence[Session]) -> str:
    lines = [*verdict(costs, len(sessions), sessions[0].replay.prices), *notes(costs, len(sessions))]
    kinds = dict.fromkeys(kind_of(cost.policy) for cost in costs)
    items = (element("li", breakable(line)) for line in lines)
    terms = "".join(element("dt", _text(kind)) + element("dd", _text(_KINDS[kind])) for kind in kinds if kind in _KINDS)
    return element("ul", *items, class_="verdict") + element("dl", terms)


def _costs(costs: Sequence[PolicyCost], sessions: int) -> str:
    keys = [("cached", "with a prompt cache"), ("uncached", "without a cache")]
    if any(cost.of_raw > 1 and not cost.is_optimum for cost in costs):
        keys.insert(1, ("cached costlier", "the same, more than raw"))
    if any(cost.is_optimum for cost in costs):
        keys.append(("cached reference", "the optimum knows the future: what a rule can be measured by"))
    legend = element("ul", *(element("li", _swatch(class_), words) for class_, words in keys), class_="legend")
    return element(
        "section",
        element("h2", "Cost by policy"),
        element(
            "p",
            "As a share of what it costs to send the raw history. A prompt cache serves the beginning of a request "
            "that is the same as in the previous request; everything after the first change is written to it again. "
            "So a mask that moves at every turn can cost more than none.",
        ),
        element("figure", legend, cost_chart("costs", costs)),
        _costs_table("costs-table", "All requests added up", costs, sessions),
    )


def _swatch(class_: str) -> str:
    box = element("rect", class_=f"bar {class_}", x=1, y=2, width=26, height=12)
    return element("svg", box, class_="key", width=28, height=16, aria_hidden="true")


def _costs_table(key: str, caption: str, costs: Sequence[PolicyCost], sessions: int) -> str:
    headings, rows = cost_table(costs, "cost without cache")
    if sessions > 1:
        headings.append("sessions over raw")
        rows = [[*row, f"{cost.dearer_count:,}"] for row, cost in zip(rows, costs, strict=True)]
    marks = {cost.policy: "reference" for cost in costs if cost.is_optimum} | {cheapest_policy(costs).policy: "best"}
    return _table(key, caption, headings, rows, marks)


def _suggestion(suggestion: Suggestion) -> str:
    found = curves(suggestion)
    widest = max(choice.cost.of_raw for curve in found for choice in curve.choices)
    parts = [element("ul", *(element("li", breakable(line)) for line in sentences(suggestion)), class_="verdict")]
    for curve in found:
        key, caption = f"curve-{curve.name}", f"{curve.name}: {curve.meaning}"
        details = _table(f"{key}-table", caption, *rows(curve))
        heading = element("h3", _text(caption[0].upper() + caption[1:]))
        chart = element("figure", curve_chart(key, curve, widest))
        parts.append(element("article", heading, chart, element("details", element("summary", "Figures"), details)))
    words = (
        "Each bar is a value at its best, whatever the other two are, as a share of what the raw history costs. Those "
        "that cost hardly more than the least are filled. A larger window forgets less."
    )
    return element("section", element("h2", "Which window, chunk and summaries"), element("p", words), *parts)


def _table(
    key: str, caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]], marks: Mapping[str, str] = _NO_MARKS
) -> str:
    """A table with a name and figures in each row; some rows have a CSS class.

    A wide table scrolls by itself, also with the keyboard.
    """
    head = "".join(element("th", _text(heading), scope="col") for heading in headings)
    lines = []
    for name, *figures in rows:
        cells = element("th", breakable(name), scope="row") + "".join(
            element("td", _text(figure)) for figure in figures
        )
        lines.append(element("tr", cells, **({"class_": marks[name]} if name in marks else {})))
    drawn = element(
        "table",
        element("caption", _text(caption), id=key),
        element("thead", element("tr", head)),
        element("tbody", "\n".join(lines) or " "),
    )
    return element("div", drawn, class_="scroll", role="region", aria_labelledby=key, tabindex=0)


def _sources_of_all(sessions: Sequence[Session]) -> str:
    return element(
        "section",
        element("h2", "Where the characters come from"),
        element("p", _observations(sessions)),
        element("figure", sources_chart("sources", sources(sessions))),
    )


def _observations(sessions: Sequence[Session]) -> str:
    chars = sum(session.chars for session in sessions)
    results = sum(tool.chars for session in sessions for tool in session.tools.values())
    return f"Of {_count(chars, 'character')} tools gave {share(results, chars)}: this is what masking can take away."


def _dearest(sessions: Sequence[Session], strong: Sequence[int]) -> str:
    ranked = sorted(sessions, key=lambda session: -session.replay.costs[0].cost)
    shown = ranked[:_MOST_SESSIONS]
    left = len(ranked) - len(shown)
    words = "What each request sends. A raw history only grows; a mask cuts it down again."
    if left:
        words += f" These are the {len(shown)} most expensive sessions by raw cost; {left:,} cheaper ones are left out."
    articles = [_session(place, session, strong, len(sessions)) for place, session in enumerate(shown, 1)]
    title = "Growth by turn" if len(sessions) == 1 else "Growth by turn, session by session"
    return element("section", element("h2", title), element("p", words), *articles)


def _session(place: int, session: Session, strong: Sequence[int], sessions: int) -> str:
    key = f"session-{place}"
    parts = [element("h3", _text(session.name))]
    costs = session.replay.costs
    raw, best = costs[0], cheapest_policy(costs)
    if raw.usage.requests:
        words = f"{_count(raw.usage.requests, 'request')}, format {session.format}. Raw costs {money(raw.cost)}; "
        gain = f"{best.policy} is the cheapest: {money(best.cost)}, {percent(best.of_raw)} of raw."
        parts += [
            element("p", breakable(words + ("nothing is cheaper." if best is raw else gain))),
            element(
                "figure",
                growth_chart(key, session.replay, strong),
                _legend([costs[place].policy for place in strong], len(costs) - len(strong)),
            ),
        ]
        drawn = timeline(f"{key}-timeline", session.replay)
        if drawn and place == 1:
            parts += [element("h4", _TIMELINE), drawn]
        elif drawn:  # the most expensive one explains the result; the others are collapsed
            parts.append(element("details", element("summary", _TIMELINE), drawn))
    else:
        parts.append(element("p", _text(f"No request was made (format {session.format}).")))
    found = sources([session])
    if sessions == 1 or session.tools:
        parts += [
            element("h4", "Where the characters come from"),
            element("p", _observations([session])),
            element("figure", sources_chart(f"{key}-sources", found)),
        ]
    parts.append(_figures(key, session, is_open=sessions == 1))
    return element("article", *parts)


def _legend(policies: Sequence[str], thin: int) -> str:
    lines = [element("li", sample(rank), element("b", breakable(policy))) for rank, policy in enumerate(policies)]
    if thin:
        lines.append(element("li", sample(None), f"the {_count(thin, 'other')}, see the figures"))
    return element("ul", *lines, class_="legend")


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
            parts.append(_costs_table(f"{key}-costs", "Costs of this session", costs, 1))
        parts.append(_table(f"{key}-tokens", "Tokens of the requests", headings, rows))
    rows = [
        [name or "(unknown)", f"{tool.observations:,}", f"{tool.chars:,}", share(tool.chars, session.chars)]
        for name, tool in session.tools.items()
    ]
    rest = max(0, session.chars - sum(tool.chars for tool in session.tools.values()))
    rows.append(["text, reasoning and calls", "", f"{rest:,}", share(rest, session.chars)])
    parts.append(_table(f"{key}-tools", "Characters by tool", ["tool", "results", "characters", "of all"], rows))
    return element("details", *parts, **({"open": ""} if is_open else {}))


def _footer(sessions: Sequence[Session]) -> str:
    words = (
        "Characters are code points; a token is about four of them. Without a cache each request pays for all of its "
        "input; with one, what it shares with the beginning of the request before is read from the cache, and the "
        "rest is written to it. Answers cost the same under every policy: they are those of the recorded session. What "
        "a model takes for summaries is part of the costs."
    )
    return element(
        "footer", element("p", _text(price_line([session.replay for session in sessions]))), element("p", words)
    )


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def _text(words: str) -> str:
    return html.escape(printable(words))
