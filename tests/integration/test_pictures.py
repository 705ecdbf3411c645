"""The pictures of a replay: the page as a browser shows it, and the image as a decoder reads it."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import recede
from recede.cli.anatomy import anatomy
from recede.cli.chart import thinned, ticks
from recede.cli.page import page
from recede.cli.timeline import changes, columns, extents, moves, shown, summaries
from recede.cli.verdict import PASTE, Session, money, notes, percent, price_line, verdict

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
VOID = frozenset({"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'&amp;&lt;]]>--><!--",
    "$a_{b}$ \\$ %s {0}",
    "$\\wrong{$",
    "tab\tline\nbell\x07null\x00escape\x1b[31m",
    "lone \ud800 and \udfff",
    "turned \u202eround\u2066",
    "not a character \ufffe\uffff",
    "長い名前" * 30,
    "x" * 20_000,
    "",
    "مرحبا",
    "🙂 &#0; &nbsp;",
]


def history(requests: int, tools: Sequence[str] = ("run", "read_file"), lines: int = 40) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Find the bug."}]
    for number in range(requests):
        tool = tools[number % len(tools)] if tools else ""
        if not tools:
            messages += [{"role": "assistant", "content": f"Number {number}."}, {"role": "user", "content": "More."}]
            continue
        call = {"id": str(number), "type": "function", "function": {"name": tool, "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
        output = "a line of output\n" * (lines + number * 7 % 90)
        messages.append({"role": "tool", "tool_call_id": str(number), "content": output})
        messages.append({"role": "user", "content": "Go on."})
    return messages


def session(messages: list[Any], name: str = "session.json", policies: Sequence[str] | None = None) -> Session:
    replayed = recede.costs.replay(messages) if policies is None else recede.costs.replay(messages, policies)
    raw = recede.reduce(messages, keep=len(messages))
    return Session(name, "messages", replayed, raw.tools, raw.chars_before, anatomy(messages, replayed))


class Document(HTMLParser):
    """Reads a page strictly: each element is closed where it must be, and only elements of SVG close themselves."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.svgs: list[str] = []
        self.cells: list[tuple[str, str, str]] = []
        self.texts: list[tuple[str, str]] = []
        self._text = self.source = text
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._start = 0
        self._table = ""
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def _at(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def names(self) -> list[str]:
        return [name for name, _ in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of {tag} is there twice"
        self.elements.append((tag, dict(attrs)))
        if tag == "svg" and "svg" not in self.names():
            self._start = self._at()
        if tag == "caption":
            self._table = dict(attrs)["id"] or ""
        if tag in ("td", "th"):
            self.cells.append((self._table, tag, ""))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.names(), f"{tag} closes itself outside of SVG"
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1][0] == tag, f"</{tag}> where {self.names()[-1:]} is open"
        self.open.pop()
        if tag == "svg" and "svg" not in self.names():
            self.svgs.append(self._text[self._start : self._at() + len("</svg>")])

    def handle_data(self, data: str) -> None:
        names = self.names()
        assert names or not data.strip(), "text outside of the page"
        if names:
            self.texts.append((names[-1], data))
        if {"td", "th"} & set(names):
            table, tag, text = self.cells[-1]
            self.cells[-1] = (table, tag, text + data)

    def rows(self, table: str) -> list[list[str]]:
        """The rows of a table below its headings."""
        rows: list[list[str]] = []
        for number, (found, tag, text) in enumerate(self.cells):
            following = self.cells[number + 1 : number + 2]
            if found == table and tag == "th" and following and following[0][:2] == (table, "td"):
                rows.append([text])
            elif found == table and tag == "td":
                rows[-1].append(text)
        return rows

    def charts(self, class_: str) -> list[ElementTree.Element]:
        found = [ElementTree.fromstring(svg) for svg in self.svgs]
        return [svg for svg in found if class_ in (svg.get("class") or "").split()]


def checked(text: str) -> Document:
    """The page, read with every rule that it must obey wherever its figures come from."""
    text.encode("utf-8")
    assert not re.search(r"[^\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text), "a character that no page may hold"
    document = Document(text)
    tags = {tag for tag, _ in document.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "image", "base", "form"}
    assert text.startswith("<!DOCTYPE html>\n") and dict(document.elements)["html"] == {"lang": "en"}
    # Nothing comes from elsewhere.
    assert "://" not in text and "@import" not in text
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {"#hatch"}
    for tag, attributes in document.elements:
        assert not any(name.startswith("on") or name in ("href", "src") for name in attributes), (tag, attributes)
    names = [attributes["id"] for _, attributes in document.elements if "id" in attributes]
    assert len(set(names)) == len(names), "an id is there twice"
    for svg in document.svgs:
        drawn = ElementTree.fromstring(svg)
        if drawn.get("aria-hidden") == "true":
            continue
        assert drawn.get("role") == "img"
        title, description = drawn[0], drawn[1]
        assert (title.tag, description.tag) == ("title", "desc") and title.text and description.text
        assert (drawn.get("aria-labelledby"), drawn.get("aria-describedby")) == (title.get("id"), description.get("id"))
    for tag, attributes in document.elements:
        if tag == "th":
            assert attributes.get("scope") in ("row", "col")
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in names
    return document


def points(line: ElementTree.Element) -> list[tuple[int, int]]:
    pairs = (point.split(",") for point in (line.get("points") or "").split())
    return [(int(x), int(y)) for x, y in pairs]


def steps(chart: ElementTree.Element, class_: str, rows: Sequence[int]) -> list[tuple[float, float, float]]:
    """The columns of an area of a timeline: where each begins and ends, and how many tokens high it is."""
    (found,) = (path for path in chart.iter("path") if path.get("class") == class_)
    start, moved = re.fullmatch(r"M0 (\d+)((?:v-?\d+h\d+)+)V\1z", found.get("d") or "", re.ASCII).groups()  # type: ignore[union-attr]
    bottom = y = int(start)
    x, places = 0, []
    for down, right in re.findall(r"v(-?\d+)h(\d+)", moved):
        y += int(down)
        places.append((x / 3_000, (x + int(right)) / 3_000, rows[-1] * (bottom - y) / bottom))
        x += int(right)
    return places


def rug(chart: ElementTree.Element) -> list[tuple[int, int]]:
    """Where the marks of a timeline stand, and how long they are."""
    found = [path.get("d") or "" for path in chart.iter("path") if path.get("class") == "move"]
    return [(int(x), int(long)) for x, long in re.findall(r"M(\d+) \d+v(\d+)", "".join(found))]


def captions(document: Document) -> list[str]:
    text = re.findall(r"<figcaption>(.*?)</figcaption>", document.source, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", caption)) for caption in text]


def lines_of(chart: ElementTree.Element) -> dict[str, list[tuple[int, int]]]:
    return {line[0].text or "": points(line) for line in chart.iter("polyline")}


# The page and its figures


def test_the_table_and_the_bars_hold_the_costs() -> None:
    sessions = [session(history(60)), session(history(25), "other.json")]
    costs = recede.costs.compare_costs(each.replay for each in sessions)
    document = checked(page(sessions))
    rows = document.rows("costs-table")
    assert [row[0] for row in rows] == [cost.policy for cost in costs]
    for row, cost in zip(rows, costs, strict=True):
        figures = [0 if cell == "-" else float(re.sub(r"[$,% ]", "", cell)) for cell in row[1:]]
        assert figures == [
            recede.designs.approx_tokens(cost.usage.sent_chars),
            pytest.approx(100 * cost.usage.cached_chars / cost.usage.sent_chars, abs=0.5),
            pytest.approx(cost.cost, abs=0.005),
            pytest.approx(100 * cost.of_raw, abs=0.51),
            pytest.approx(cost.cost_uncached, abs=0.005),
            pytest.approx(100 * cost.of_raw_uncached, abs=0.51),
            pytest.approx(cost.summary_cost, abs=0.005),
            cost.loss_count,
        ]
    # Each has a picture of its own: what 100 % is of is another amount without a cache.
    bars, uncached = document.charts("bars")[:2]
    for chart, kind, shares in (
        (bars, "cached", [cost.of_raw for cost in costs]),
        (uncached, "uncached", [cost.of_raw_uncached for cost in costs]),
    ):
        drawn = [(bar.get("class") or "", bar) for bar in chart.iter("rect") if "bar" in (bar.get("class") or "")]
        assert all(kind in class_.split() for class_, _ in drawn)
        widths = [float((bar.get("width") or "").rstrip("%")) for _, bar in drawn]
        assert widths == pytest.approx([share * widths[0] for share in shares], abs=0.02)
        for (_, bar), cost in zip(drawn, costs, strict=True):
            assert (bar[0].text or "").startswith(f"{cost.policy}: $")
    assert max(cost.of_raw for cost in costs) > 1, "this comparison has a policy that costs more than raw"
    costlier = [bar for bar in bars.iter("rect") if "costlier" in (bar.get("class") or "")]
    assert len(costlier) == sum(cost.of_raw > 1 for cost in costs)


def test_the_sentences_are_those_of_the_command() -> None:
    sessions = [session(history(30)), session(history(3), "short.json")]
    document = checked(page(sessions))
    text = "".join(data for _, data in document.texts)
    costs = recede.costs.compare_costs(each.replay for each in sessions)
    for line in [
        *verdict(costs, sessions),
        *notes(costs, 2),
        price_line([sessions[0].replay]),
    ]:
        assert line.replace(PASTE, "") in text
    assert text.count(PASTE.rstrip()) == 1


def test_each_line_shows_its_tokens() -> None:
    one = session(history(80))
    (chart,) = checked(page([one])).charts("growth")
    labels = [text.text or "" for text in chart.iter("text") if text.get("class") == "left"]
    assert labels[0] == "0" and labels[-1].endswith("k")
    top = float(labels[-1].rstrip("k")) * 1000
    lines = lines_of(chart)
    assert len(lines) == len(one.replay.policies) == len(recede.costs.replay([]).policies)
    for replayed in one.replay.policies:
        shown = [top * (1 - y / 2800) for _, y in lines[replayed.policy]]
        assert shown == pytest.approx([turn.view_tokens for turn in replayed.turns], abs=top / 2800)
    assert [x for x, _ in lines["raw"]][::79] == [0, 1000]
    # Strong are raw and the best of each kind, the cheapest first; of kinds, no more than can be told apart.
    best: dict[str, recede.costs.PolicyCost] = {}
    for cost in sorted(one.replay.costs, key=lambda cost: cost.cost):
        best.setdefault(cost.policy.partition(":")[0], cost)
    raw = best.pop("raw").policy
    strong = [raw, *(cost.policy for cost in sorted(best.values(), key=lambda cost: cost.cost))][:5]
    styles = {line.get("class"): line[0].text for line in chart.iter("polyline")}
    assert [styles[f"line-{rank}"] for rank in range(len(strong))] == strong
    assert sum(line.get("class") == "thin" for line in chart.iter("polyline")) == len(lines) - len(strong)
    ends = [text.text for text in chart.iter("text") if "end" in (text.get("class") or "").split()]
    assert sorted(filter(None, ends)) == sorted(policy.partition(":")[0] for policy in strong)


def test_the_names_of_the_lines_do_not_cover_each_other() -> None:
    policies = [f"sliding:window={window}" for window in (100, 101, 102, 103)]
    (chart,) = checked(page([session(history(20), policies=policies)])).charts("growth")
    ends = [text for text in chart.iter("text") if "end" in (text.get("class") or "").split()]
    assert [text.text for text in ends] == ["raw", *(f"sliding {window}" for window in (100, 101, 102, 103))]
    heights = sorted(float(text.get("y") or "") for text in ends)
    assert all(after - before >= 15 for before, after in pairwise(heights))
    assert heights[0] >= 0 and heights[-1] <= 290


def test_few_sources_are_named_and_the_others_added_up() -> None:
    one = session(history(36, [f"tool_{number}" for number in range(12)]))
    document = checked(page([one]))
    chart = document.charts("bars")[-1]
    names = [text.text for text in chart.iter("text") if "name" in (text.get("class") or "").split()]
    assert len(names) == 12 and names[-2:] == ["other tools (2)", "text, reasoning and calls"]
    figures = [re.match(r"[\d,]+(?=, \d+ %$)", text.text or "") for text in chart.iter("text")]
    assert sum(int(found[0].replace(",", "")) for found in figures if found) == one.chars
    rows = document.rows("session-1-tools")
    assert {row[0]: int(row[2].replace(",", "")) for row in rows[:-1]} == {
        name: tool.chars for name, tool in one.tools.items()
    }
    assert sum(int(row[2].replace(",", "")) for row in rows) == one.chars


def test_the_dearest_sessions_are_shown_and_the_others_counted() -> None:
    sessions = [session(history(3 + number), f"number-{number}.json") for number in range(14)]
    document = checked(page(sessions))
    shown = [data for tag, data in document.texts if tag == "h3" and data.startswith("number")]
    assert shown == [f"number-{number}.json" for number in range(13, 1, -1)]
    assert len(document.charts("growth")) == 12
    assert any(
        "12 most expensive sessions" in data and "2 cheaper ones are left out" in data for _, data in document.texts
    )
    assert "left out" not in "".join(data for tag, data in checked(page(sessions[:12])).texts if tag == "p")


# The optimum


def test_the_optimum_is_a_reference_and_never_the_cheapest() -> None:
    kinds = ("sliding", "break_even", "optimum")
    policies = [*(f"{kind}:window={window}" for window in (3, 8) for kind in kinds), "keep_last:messages=90"]
    sessions = [session(history(90), policies=policies), session(history(30), "other.json", policies)]
    costs = recede.costs.compare_costs(each.replay for each in sessions)
    assert min(costs, key=lambda cost: cost.cost).is_optimum, "here the optimum costs least of all"
    document = checked(page(sessions))
    column = [row[-2] for row in document.rows("costs-table")]
    assert column == ["-" if cost.of_optimum is None else percent(cost.of_optimum) for cost in costs]
    assert {"-", "100 %"} < set(column)
    bars = document.charts("bars")[0]
    for class_, wanted in (("reference", 2), ("costlier", sum(cost.of_raw > 1 for cost in costs))):
        assert sum(class_ in (bar.get("class") or "").split() for bar in bars.iter("rect")) == wanted
    best = recede.costs.cheapest_policy(costs).policy
    names = [text.text or "" for text in bars.iter("text") if "name" in (text.get("class") or "").split()]
    assert [name for name in names if "cheapest" in name] == [f"{best} — cheapest"]
    assert not re.search(r"optimum[^.;]{0,20}cheapest|cheapest: optimum", "".join(data for _, data in document.texts))
    rows = [attributes.get("class") for tag, attributes in document.elements if tag == "tr" and "class" in attributes]
    assert rows[:3].count("reference") == 2 and rows[:3].count("best") == 1
    for chart in document.charts("growth"):
        drawn = {line[0].text or "": line.get("class") for line in chart.iter("polyline")}
        assert len(drawn) == len(costs) and drawn["optimum:window=3"] == drawn["optimum:window=8"] == "thin"
        assert drawn[best] == "line-1"
    assert not any("optimum" in (chart[0].text or "") for chart in document.charts("timeline"))
    assert "of optimum" not in page([session(history(9))])


# The timeline


def test_the_timeline_shows_what_each_request_wrote_and_was_served() -> None:
    kinds = ("sliding", "break_even", "optimum")
    one = session(history(120), policies=[f"{kind}:window={window}" for window in (20, 5) for kind in kinds])
    document = checked(page([one]))
    charts = document.charts("timeline")
    panels = shown(one.replay)
    assert [panel.policy for panel in panels] == ["raw", "break_even:window=5", "sliding:window=5"]
    counts = []
    for chart, panel, (height, rows), words in zip(charts, panels, extents(panels), captions(document), strict=True):
        assert (chart[0].text or "").startswith(f"{panel.policy}: ")
        unit = rows[-1] / height / 10  # a tenth of a pixel
        for class_, chars in (
            ("written", [turn.cached_chars + turn.written_chars for turn in panel.turns]),
            ("served", [turn.cached_chars for turn in panel.turns]),
        ):
            found = steps(chart, class_, rows)
            assert [column[0] for column in found] == pytest.approx([place / 120 for place in range(120)], abs=0.001)
            assert [column[2] for column in found] == pytest.approx([count / 4 for count in chars], abs=1.5 * unit)
        pairs = pairwise((0, *(turn.masked_count for turn in panel.turns)))
        rises = [place for place, (before, after) in enumerate(pairs) if after > before]
        assert [x for x, _ in rug(chart)] == pytest.approx([25 * (place + 0.5) for place in rises], abs=1)
        counts.append(len(rises))
        usage, prices = panel.usage, one.replay.prices
        for sent, price, verb in (
            (usage.written_chars, prices.write, "rote"),
            (usage.cached_chars, prices.cached, "read"),
        ):
            figure = f"{verb} {recede.designs.approx_tokens(sent):,} tokens for {money(sent / 4_000_000 * price)}"
            assert figure in words and figure in (chart[1].text or "")
        assert money(usage.cost(prices)) in words
        assert ("oved" in words) == (panel.policy != "raw")
        assert f"oved {len(rises)} times; " in words or not rises
    assert counts[0] == 0 < counts[1] < counts[2] / 2
    # The masks are on one scale, so that they can be compared.
    scales = [rows[-1] / height for height, rows in extents(panels)]
    assert scales[1] == pytest.approx(scales[2])
    assert ["smaller scale" in words for words in captions(document)] == [scales[0] > 1.01 * scales[1], False, False]


def test_the_timeline_of_short_requests_shows_what_no_cache_took() -> None:
    replayed = recede.costs.replay(history(12), ["sliding:window=3"], system_chars=0)
    document = checked(page([Session("short.json", "messages", replayed, {}, 0)]))
    panels = shown(replayed)
    assert [panel.policy for panel in panels] == ["raw", "sliding:window=3"]
    for chart, panel, (_, rows) in zip(document.charts("timeline"), panels, extents(panels), strict=True):
        plain = [column[2] for column in steps(chart, "plain", rows)]
        assert plain == pytest.approx([turn.view_chars / 4 for turn in panel.turns], abs=rows[-1] / 500)
    assert any("uncached" in words for words in captions(document))
    assert "read nothing" in captions(document)[1]
    assert "sent uncached" not in page([session(history(12))])


def test_a_raw_history_has_the_scale_of_the_masks_unless_it_is_far_higher() -> None:
    def high(chars: int) -> recede.costs.PolicyReplay:
        return recede.costs.PolicyReplay("raw", (recede.costs.ReplayedTurn(1, chars, 0, chars, 0, 0),))

    for raw, is_shared in ((110_000, True), (900_000, False)):
        first, second, third = (rows[-1] / height for height, rows in extents([high(raw), high(90_000), high(40_000)]))
        assert second == pytest.approx(third) and (first == pytest.approx(second)) == is_shared
        assert first >= second


def test_a_cheapest_policy_that_leaves_out_messages_is_compared_with_masks() -> None:
    policies = ["sliding:window=5", "sliding:window=9", "break_even:window=9", "keep_last:messages=1"]
    one = session(history(200, lines=200), policies=policies)
    assert one.replay.cheapest.policy == "keep_last:messages=1"
    names = ["raw", "keep_last:messages=1", "break_even:window=9", "sliding:window=9"]
    assert [panel.policy for panel in shown(one.replay)] == names
    document = checked(page([one]))
    assert [words.partition(":")[0] for words in captions(document)] == [name.partition(":")[0] for name in names]
    assert ["oved" in words for words in captions(document)] == [False, False, True, True]
    assert [row[-1] == "-" for row in document.rows("session-1-tokens")] == [True, False, False, False, True]
    # Where nothing moves there is nothing to compare.
    assert [panel.policy for panel in shown(session(history(3)).replay)] == ["raw"]


def test_each_session_has_a_timeline_and_the_dearest_is_open() -> None:
    document = checked(page([session(history(9), "small.json"), session(history(60), "large.json")]))
    keys = [(chart[0].get("id") or "").rpartition("-timeline-")[0] for chart in document.charts("timeline")]
    assert set(keys) == {"session-1", "session-2"}
    large, small = document.source.split("<article>")[1:]
    title = "Request by request, with a cache"
    assert f"<h4>{title}</h4>" in large and f"<summary>{title}</summary>" in small


def test_columns_of_many_requests_keep_the_most_and_the_least_written() -> None:
    turns = [recede.costs.ReplayedTurn(1, 9_999, 0, (place * 7919) % 1009, 0, 0) for place in range(4_000)]
    kept = columns(turns, 50)
    assert len(kept) <= 100 and kept[0].start == 0 and kept[-1].end == 1
    assert all(before.end == pytest.approx(after.start) for before, after in pairwise(kept))
    for part in range(50):
        written = [turn.written_chars for turn in turns[part * 80 : part * 80 + 80]]
        here = [column.turn.written_chars for column in kept if part <= 50 * column.start + 1e-9 < part + 1]
        assert sorted(here) == [min(written), max(written)]
    assert [column.turn for column in columns(turns[:100], 50)] == turns[:100]


# Odd sessions


@pytest.mark.parametrize(
    "messages",
    [[], [{"role": "user", "content": "hi"}], history(1), history(1, []), history(2), history(9, [])],
    ids=["empty", "no request", "one request", "one request without tools", "two requests", "no tools"],
)
def test_small_sessions_have_a_page(messages: list[Any]) -> None:
    one = session(messages)
    requests = len(one.replay.policies[0].turns)
    document = checked(page([one]))
    assert len(document.charts("growth")) == (1 if requests else 0)
    strips = sum("last request before" in (chart[0].text or "") for chart in document.charts("bars"))
    assert len(document.charts("bars")) == (3 + strips if requests else 1)
    assert len(document.charts("dollars")) == len(document.charts("areas")) == (1 if requests else 0)
    assert strips == len(document.charts("columns")) == bool(one.anatomy and one.anatomy.sizes)
    assert bool(document.charts("timeline")) == (requests > 1)
    if requests == 1:
        assert all(
            len(line) == 2 and line[0][1] == line[1][1] for line in lines_of(document.charts("growth")[0]).values()
        )
    if not requests:
        assert "No request was made" in "".join(data for _, data in document.texts)
    checked(page([one, session(history(12))]))


def test_raw_alone_and_prices_of_nothing_have_a_page() -> None:
    replayed = recede.costs.replay(history(8), [], prices=recede.costs.Prices(0, 0, 0, 0))
    one = Session("free.json", "messages", replayed, {}, 0)
    (chart,) = checked(page([one])).charts("growth")
    assert list(lines_of(chart)) == ["raw"]


def test_hostile_names_are_words_on_the_page() -> None:
    one = session(history(2 * len(HOSTILE), HOSTILE), "<img src=x onerror=alert(2)>\ud800.json")
    assert len(one.tools) == len(HOSTILE)
    document = checked(page([one, session(history(3), '"><b>')]))
    texts = [data for _, data in document.texts]
    assert "<img src=x onerror=alert(2)>\\ud800.json" in texts and '"><b>' in texts
    cells = [text for _, _, text in document.cells]
    for name in ("<script>alert(1)</script>", "\"'&amp;&lt;]]>--><!--", "lone \\ud800 and \\udfff", "(unknown)"):
        assert name in cells
    names = [
        text.text or ""
        for chart in document.charts("bars")
        for text in chart.iter("text")
        if "tool" in (text.get("class") or "").split()
    ]
    assert max(map(len, names)) <= 40 and any(name.endswith("x…") for name in names)


def test_summaries_are_counted_priced_and_marked() -> None:
    talk = [{**message, "content": "a long thought " * 200} for message in history(90)]
    name = "hybrid:window=5,at=30,tail=10,boundary=stepped,chunk=30"
    one = session(talk, policies=[name])
    assert one.replay.cheapest.policy == name
    usage = one.replay.policies[1].usage
    document = checked(page([one]))
    [caption] = [caption for caption in captions(document) if caption.startswith(name)]
    assert (
        f"Made 2 summaries for ${usage.summary_cost(one.replay.prices):.2f}" in caption or "made 2 summaries" in caption
    )
    assert "the boundary moved, or a summary was made" in "".join(data for _, data in document.texts)
    turns = one.replay.policies[1].turns
    assert [place for place in (30, 60) if place in changes(turns)] == summaries(turns) == [30, 60]
    chart = document.charts("timeline")[-1]
    assert len(rug(chart)) == len(changes(turns))


def test_thousands_of_turns_keep_the_page_small_and_their_teeth() -> None:
    one = session(history(5_000, lines=3), policies=["stepped:window=10,chunk=50", "keep_last:messages=20"])
    assert len(one.replay.policies[0].turns) == 5_000
    text = page([one])
    assert len(text) < 130_000
    (chart,) = checked(text).charts("growth")
    rows = ticks(max(turn.view_tokens for replayed in one.replay.policies for turn in replayed.turns), 5)
    lines = lines_of(chart)
    for replayed in one.replay.policies:
        tokens = [turn.view_tokens for turn in replayed.turns]
        shown = [rows[-1] * (1 - y / 2800) for _, y in lines[replayed.policy]]
        assert 300 < len(shown) <= 602
        assert (max(shown), min(shown)) == pytest.approx((max(tokens), min(tokens)), abs=rows[-1] / 2800)
        # Every tenth of the session has its own extremes.
        columns = lines[replayed.policy]
        for part in range(10):
            values = tokens[part * 500 : part * 500 + 500]
            ys = [y for x, y in columns if part * 100 <= x <= part * 100 + 100]
            assert rows[-1] * (1 - min(ys) / 2800) >= max(values) - rows[-1] / 2000


def test_the_timeline_of_thousands_of_turns_stays_small() -> None:
    policies = ["sliding:window=10", "break_even:window=10", "keep_last:messages=20"]
    sizes = []
    for requests in (1_000, 2_000):
        one = session(history(requests, lines=3), policies=policies)
        text = page([one])
        sizes.append(len(text))
    assert max(sizes) < 160_000 and sizes[1] < 1.1 * sizes[0]
    document = checked(text)
    panels = shown(one.replay)
    marks = {}
    for chart, panel, (height, rows) in zip(document.charts("timeline"), panels, extents(panels), strict=True):
        whole, served = (steps(chart, class_, rows) for class_ in ("written", "served"))
        assert len(whole) == len(served) <= 300 and whole[-1][1] == 1
        written = [above[2] - below[2] for above, below in zip(whole, served, strict=True)]
        most = max(turn.written_chars for turn in panel.turns) / 4
        assert max(written) == pytest.approx(most, abs=rows[-1] / height / 5)
        marks[panel.policy] = rug(chart)
    # Both move in each part of the session, one of them at nearly each request.
    rests, slides = marks["break_even:window=10"], marks["sliding:window=10"]
    assert len(rests) <= len(slides) == 150 and all(long > 80 for _, long in slides[1:])
    assert all(long < 30 for _, long in rests[10:])
    assert f"oved {len(moves(panels[-1].turns)):,} times" in captions(document)[-1]


def test_thinning_keeps_the_extremes_of_each_column() -> None:
    values = [(number * 7919) % 1009 for number in range(4_000)]
    kept = thinned(values, 50)
    assert kept[0] == (0, values[0]) and kept[-1] == (3_999, values[-1])
    assert kept == sorted(set(kept)) and len(kept) <= 102
    assert all(values[place] == value for place, value in kept)
    for start in range(0, 4_000, 80):
        column = values[start : start + 80]
        assert {min(column), max(column)} <= {value for place, value in kept if start <= place < start + 80}
    assert thinned([5, 6, 7], 50) == [(0, 5), (1, 6), (2, 7)]


@pytest.mark.parametrize("largest", [0, 1, 2, 9, 10, 86_578, 99_999, 100_000, 1_000_001, 10**12])
def test_ticks_are_round_and_reach_the_largest(largest: int) -> None:
    found = ticks(largest, 5)
    step = found[1]
    assert found == list(range(0, found[-1] + 1, step)) and 2 <= len(found) <= 8
    assert str(step).rstrip("0") in ("1", "2", "5")
    assert found[-1] >= largest and (found[-2] < largest or largest == 0)


# The page in a browser


def browse(file: Path, *options: str) -> str:
    assert BROWSER is not None
    command = [
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={file.parent / 'profile'}",
        "--virtual-time-budget=5000",
        *options,
        file.as_uri(),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=True)
    return done.stdout.decode()


browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")


@browser
def test_a_browser_draws_every_line_and_asks_for_nothing(tmp_path: Path) -> None:
    sessions = [session(history(40)), session(history(25, HOSTILE), "<b>hostile</b>")]
    # The browser itself writes down what it loaded.
    script = (
        "<p id=loaded></p><script>onload = () => { document.getElementById('loaded').textContent = "
        "performance.getEntriesByType('resource').length + ' loaded, ' + document.scripts.length + ' script' }</script>"
    )
    file = tmp_path / "page.html"
    file.write_text(page(sessions).replace("</body>", script + "</body>"), encoding="utf-8")
    dom = browse(file, "--dump-dom")
    assert '<p id="loaded">0 loaded, 1 script</p>' in dom
    assert dom.count("<polyline") == 2 * (len(sessions[0].replay.policies) + 5), "of these, five by dollars"
    assert dom.count("<article") == 2 and "&lt;b&gt;hostile&lt;/b&gt;" in dom and "<b>hostile" not in dom
    best = min(recede.costs.compare_costs(each.replay for each in sessions), key=lambda cost: cost.cost)
    assert f"{best.policy} — cheapest</text>" in dom


# In a frame, because a window is never as narrow as a phone.
FRAME = '<iframe style="border: 0; width: %dpx; height: 900px" srcdoc="%s"></iframe>'
MEASURE = """<!DOCTYPE html><meta charset="utf-8"><p id="answer"></p>%s<script>
onload = () => {
  const measured = [...document.querySelectorAll("iframe")].map(frame => {
    const inner = frame.contentDocument, width = frame.clientWidth;
    inner.querySelectorAll("details").forEach(found => { found.open = true; });
    const drawn = "svg text, svg rect.bar, svg path.served, h1, h3, p, li, figcaption";
    const outside = [...inner.querySelectorAll(drawn)].filter(found => {
      const box = found.getBoundingClientRect();
      return box.left < -0.5 || box.right > width + 0.5 || (!found.closest("svg") && found.scrollWidth > width);
    });
    inner.querySelectorAll("svg.chart").forEach(chart => {
      const frame = chart.closest("figure").getBoundingClientRect();
      const found = [...chart.querySelectorAll("text")];
      const texts = found.map(text => [text.textContent, text.getBoundingClientRect()]);
      texts.forEach(([words, box], place) => {
        if (box.top < frame.top - 1 || box.bottom > frame.bottom + 1) outside.push({textContent: "cut: " + words});
        texts.slice(place + 1).forEach(([others, other]) => {
          const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
          const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
          if (across > 1 && down > 3) outside.push({textContent: words + " lies on " + others});
        });
      });
    });
    const line = inner.querySelector("polyline").getBoundingClientRect();
    return [inner.documentElement.scrollWidth, line.width > width / 3, ...outside.map(found => found.textContent)];
  });
  document.getElementById("answer").textContent = JSON.stringify(measured);
}</script>"""


@browser
@pytest.mark.parametrize("width", [360, *(pytest.param(width, marks=pytest.mark.slow) for width in (400, 800, 1200))])
def test_nothing_is_wider_than_the_screen(width: int, tmp_path: Path) -> None:
    policies = [
        "sliding:window=58",
        "stepped:window=58,chunk=10",
        "stepped:window=5,chunk=100",
        "keep_last:messages=20",
    ]
    pages = [
        page([session(history(50))]),
        page([session(history(25, HOSTILE), "a/very/long/name/" * 30), session(history(30))]),
        page([session(history(120), policies=policies)]),
        page([session(history(1), policies=[])]),
        page([session(history(310), policies=[*policies, "break_even:window=5", "optimum:window=5"])]),
        page([session(history(60)), session(history(9))]),
    ]
    file = tmp_path / "frames.html"
    frames = "".join(FRAME % (width, html.escape(text)) for text in pages)
    file.write_text(MEASURE.replace("%s", frames), encoding="utf-8")
    dom = browse(file, "--dump-dom", "--window-size=1300,900")
    found = re.search(r'<p id="answer">(.*?)</p>', dom, re.DOTALL)
    assert found and json.loads(html.unescape(found[1])) == [[width, True]] * len(pages)


@browser
def test_the_page_is_drawn_in_light_and_in_dark(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page([session(history(60))]), encoding="utf-8")
    grounds = []
    for scheme in (1, 0):
        image = tmp_path / f"{scheme}.png"
        browse(
            file,
            f"--screenshot={image}",
            "--window-size=1000,2600",
            f"--blink-settings=preferredColorScheme={scheme}",
        )
        pixels = pytest.importorskip("matplotlib.image").imread(image)
        assert pixels.shape[:2] == (2600, 1000)
        grounds.append(float(pixels[2, 2, :3].mean()))
        # Words, bars and lines: much of it is ground, but not all, nor is any large band of the page empty.
        drawn = abs(pixels[:, :, :3] - pixels[2, 2, :3]).max(axis=2) > 0.2
        assert 0.02 < drawn.mean() < 0.4
        assert all(drawn[start : start + 250].any() for start in range(0, 2000, 250))
    assert grounds[0] > 0.9 and grounds[1] < 0.2


@browser
@pytest.mark.slow
def test_the_page_prints_on_few_sheets(tmp_path: Path) -> None:
    file, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    file.write_text(page([session(history(60 + number), f"{number}.jsonl") for number in range(12)]), encoding="utf-8")
    browse(file, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    sheets = len(re.findall(rb"/Type ?/Page\b", paper.read_bytes()))
    assert 3 <= sheets <= 9, "of twelve sessions only the first is printed, where all would take 23"
