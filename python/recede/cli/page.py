"""A replay as one self-contained HTML page: no scripts, readable without color, on paper and on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recede.cli.bars import cost_chart, sources_chart, uncached_chart
from recede.cli.chart import breakable, element, emphasized, kind_of, sources, text
from recede.cli.markup import costs_table, legend, observations, swatch
from recede.cli.notices import counted
from recede.cli.savings import of_sessions, savings_chart, scatter_chart
from recede.cli.session_page import session_article
from recede.cli.verdict import PASTE, Session, notes, price_line, verdict
from recede.costs import PolicyCost, cheapest_policy, compare_costs

CONTEXT_WINDOW = 200_000
"""The tokens that a model takes, if nothing else is said."""

_TITLE = "What was paid, and what masking would have cost"
_STYLE = Path(__file__).with_name("page.css")
_MOST_SESSIONS = 12

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
    "clear_tool_uses": "Anthropic's context editing: above a number of tokens all results but the newest are cleared",
    "langchain_clear": "LangChain's: above a number of tokens all results but the newest are cleared, at every turn",
    "clip": "long tool results are cut from their first request on",
    "keep_last": "the system messages, the first of the user and the newest are sent, the rest is left out",
}


def page(sessions: Sequence[Session], context_window: int = CONTEXT_WINDOW) -> str:
    """The verdict, the costs, what is saved in each session, then the most expensive sessions one by one.

    Args:
        sessions: replayed under the same policies and prices; at least one.
        context_window: the tokens that the model takes.

    Returns:
        A page that can be encoded as UTF-8, whatever the names of files and tools are.
    """
    costs = compare_costs(session.replay for session in sessions)
    requests = costs[0].usage.requests
    counts = f"{counted(requests, 'request')} of {counted(len(sessions), 'session')}, {counted(len(costs), 'policy')}"
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="recede replay">\n'
        f"<title>{_TITLE} — {counts}</title>\n<style>\n{_STYLE.read_text('utf-8')}</style>\n"
    )
    body = [
        element("header", element("h1", _TITLE), element("p", counts, class_="note")),
        _verdict(costs, sessions),
        _costs(costs, len(sessions)) if requests else "",
        _savings(sessions, cheapest_policy(costs)) if len(sessions) > 1 and requests else "",
        _sources_of_all(sessions) if len(sessions) > 1 else "",
        _most_expensive(sessions, emphasized(costs), context_window),
        _footer(sessions),
    ]
    main = "\n".join(filter(None, body))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n<main>\n{main}\n</main>\n</body>\n</html>\n'
    )


def _verdict(costs: Sequence[PolicyCost], sessions: Sequence[Session]) -> str:
    items = [
        element("li", text(PASTE.rstrip()), element("pre", element("code", text(line.removeprefix(PASTE)))))
        if line.startswith(PASTE)
        else element("li", breakable(line))
        for line in verdict(costs, sessions)
    ]
    others = [element("li", breakable(line)) for line in notes(costs, len(sessions))]
    kinds = dict.fromkeys(kind_of(cost.policy) for cost in costs)
    terms = "".join(element("dt", text(kind)) + element("dd", text(_KINDS[kind])) for kind in kinds if kind in _KINDS)
    return "".join(
        [
            element("ul", *items, class_="verdict"),
            element("ul", *others, class_="notes") if others else "",
            element("dl", terms),
        ]
    )


def _costs(costs: Sequence[PolicyCost], sessions: int) -> str:
    keys = [("bar cached", "less than raw, or as much")]
    if any(cost.of_raw > 1 and not cost.is_optimum for cost in costs):
        keys.append(("bar cached costlier", "more than raw"))
    if any(cost.is_optimum for cost in costs):
        keys.append(("bar cached reference", "the optimum knows the future: what a rule can be measured by"))
    return element(
        "section",
        element("h2", "Cost by policy"),
        element(
            "p",
            "As a share of what it costs to send the raw history. A prompt cache serves the beginning of a request "
            "that is the same as in the previous request; everything after the first change is written to it again, "
            "and with Anthropic's breakpoints nearly the whole conversation. So a mask that moves at every turn can "
            "cost several times as much as none.",
        ),
        element("figure", legend((swatch(class_), words) for class_, words in keys), cost_chart("costs", costs)),
        costs_table("costs-table", "All requests added up", costs, sessions),
        element("h3", "Where nothing is cached"),
        element(
            "p", "Each request then pays for all of its input. The scale is its own: here 100 % is another amount."
        ),
        element("figure", uncached_chart("uncached", costs)),
    )


def _savings(sessions: Sequence[Session], best: PolicyCost) -> str:
    savings = of_sessions(sessions, best.policy)
    words = (
        f"What {best.policy} would have saved in each session, as a share of what the raw history costs: sorted, then "
        "by the number of requests. A short session has little to mask."
    )
    if best.policy == "raw":
        return ""
    return element(
        "section",
        element("h2", "Saved in each session"),
        element("p", breakable(words)),
        element("figure", savings_chart("savings", savings)),
        element("h3", "Saved by length of the session"),
        element("figure", scatter_chart("scatter", savings)),
    )


def _sources_of_all(sessions: Sequence[Session]) -> str:
    return element(
        "section",
        element("h2", "Where the characters come from"),
        element("p", observations(sessions)),
        element("figure", sources_chart("sources", sources(sessions))),
    )


def _most_expensive(sessions: Sequence[Session], strong: Sequence[int], context_window: int) -> str:
    ranked = sorted(sessions, key=lambda session: -session.replay.costs[0].cost)
    shown = ranked[:_MOST_SESSIONS]
    left = len(ranked) - len(shown)
    words = "What each request sends, and what that costs. A raw history only grows; a mask cuts it down again."
    if left:
        words += f" These are the {len(shown)} most expensive sessions by raw cost; {left:,} cheaper ones are left out."
    articles = [
        session_article(place, session, strong, len(sessions), context_window) for place, session in enumerate(shown, 1)
    ]
    on_paper = "Printed is only the first of these sessions; the others are on the screen."
    note = [element("p", on_paper, class_="note printed")] if len(shown) > 1 else []
    title = "Growth by turn" if len(sessions) == 1 else "Growth by turn, session by session"
    return element("section", element("h2", title), element("p", words), *note, *articles, class_="sessions")


def _footer(sessions: Sequence[Session]) -> str:
    words = (
        "Characters are code points; a token is about four of them. Without a cache each request pays for all of its "
        "input; with one, what the cache has of its beginning is read from the cache, and the "
        "rest is written to it. Answers cost the same under every policy: they are those of the recorded session. What "
        "a model takes for summaries is part of the costs."
    )
    prices = text(price_line([session.replay for session in sessions]))
    return element("footer", element("p", prices), element("p", words))
