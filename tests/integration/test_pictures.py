"""The page of a replay: the first screen and its pictures, as figures and as a browser shows them."""

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

from recede import costs
from recede.cli.page import page, session_rows, thinned, ticks
from recede.cli.played import Session
from recede.cli.record import Asked, record_of
from recede.cli.screen import screen
from recede.cli.tables import money
from recede.costs._policies import MASKED
from recede.designs import mask_observations

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "source", "wbr"})
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


def session(messages: list[Any], name: str = "session.json") -> Session:
    replayed = costs.replay(messages, [MASKED], with_misses=True)
    raw = mask_observations(messages, keep_results=1 << 40)
    return Session(name, "messages", replayed, raw.tools)


class Document(HTMLParser):
    """Reads a page strictly: each element is closed where it must be, and only elements of SVG close themselves."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"
        self.charts = {
            str(svg.get("aria-labelledby")).removesuffix("-title"): svg
            for svg in map(
                ElementTree.fromstring, re.findall(r"<svg [^>]*class=\"chart.*?</svg>(?=</figure>)", text, re.S)
            )
        }

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of {tag} is there twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.open, f"{tag} closes itself outside of SVG"
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> where {self.open[-1:]} is open"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        assert self.open or not data.strip(), "text outside of the page"
        if self.open:
            self.texts.append((self.open[-1], data))


def checked(text: str) -> Document:
    """The page, read with every rule that it must obey wherever its figures come from."""
    text.encode("utf-8")
    assert not re.search(r"[^\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text), "a character that no page may hold"
    document = Document(text)
    tags = {tag for tag, _ in document.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "image", "base", "form"}
    assert text.startswith("<!DOCTYPE html>\n") and dict(document.elements)["html"] == {"lang": "en"}
    # Nothing comes from elsewhere; what is addressed there is the proxy of this machine, as words.
    assert "://" not in text and "@import" not in text and "url(" not in text
    names = [attributes["id"] for _, attributes in document.elements if "id" in attributes]
    assert len(set(names)) == len(names), "an id is there twice"
    for tag, attributes in document.elements:
        assert not any(name.startswith("on") or name == "src" for name in attributes), (tag, attributes)
        if "href" in attributes:
            assert str(attributes["href"]).removeprefix("#") in names
    for svg in document.charts.values():
        title, description = svg[0], svg[1]
        assert svg.get("role") == "img" and title.text and description.text
        assert (svg.get("aria-labelledby"), svg.get("aria-describedby")) == (title.get("id"), description.get("id"))
    return document


def words_of(svg: ElementTree.Element) -> list[str]:
    return [found.text or "" for found in svg.iter("text")]


# What the page shows


def rows_of(document: Document) -> list[str]:
    """The first row of each session: its name, and its cells."""
    return [data for tag, data in document.texts if tag in ("th", "td")]


@pytest.mark.parametrize("is_plan", [False, True])
def test_the_page_has_each_word_of_the_screen_and_does_not_name_itself(is_plan: bool) -> None:
    sessions, asked = (
        [session(history(70)), session(history(12), "other.json")],
        Asked(notes=("one", "two", "three"), is_plan=is_plan),
    )
    document = checked(page(record_of(sessions, asked)))
    lines = screen(record_of(sessions, asked), names_html=False)
    shown = [word for tag, data in document.texts if tag in ("p", "td", "code", "h2") for word in data.split()]
    said = " ".join(lines).split()
    assert (
        sorted(said) == sorted(shown[: len(said)]) and "--html" in " ".join(screen(record_of(sessions, asked))).split()
    )
    assert "--html" not in shown
    paid = [data for tag, data in document.texts if tag == "td"][: 9 if is_plan else 6]
    assert "masked when it pays" in paid and any(cell.endswith(" % less") for cell in paid), paid
    assert list(document.charts) == ["growth"]
    assert [tag for tag, _ in document.elements if tag in ("h1", "table", "section")][:2] == ["h1", "table"]


def test_growth_is_that_of_the_session_that_saves_most_and_shows_each_move() -> None:
    small, large = session(history(20), "small.json"), session(history(90, lines=200), "large.json")
    assert [one.name for one in session_rows(record_of([small, large], Asked()))] == ["large.json", "small.json"]
    document = checked(page(record_of([small, large], Asked())))
    svg = document.charts["growth"]
    raw, sent = (next(one.turns for one in large.replay.policies if one.policy == policy) for policy in ("raw", MASKED))
    counts = [0, *(turn.masked_count for turn in sent)]
    moves = sum(after > before for before, after in pairwise(counts))
    assert moves and len([path for path in svg.iter("path") if path.get("class") == "move"]) == moves
    assert any("large.json, 90 requests" in data for tag, data in document.texts if tag == "p")
    lines = {line.get("class"): (line.get("points") or "").split() for line in svg.iter("polyline")}
    assert {name: len(points) for name, points in lines.items()} == {"line-raw": 90, "line-sent": 90}
    heights = {name: int(points[-1].partition(",")[2]) for name, points in lines.items()}
    assert 2400 - heights["line-raw"] == pytest.approx(
        (2400 - heights["line-sent"]) * raw[-1].view_tokens / sent[-1].view_tokens, rel=0.02
    )


def test_each_session_is_a_row_and_of_many_the_others_are_one() -> None:
    played = session(history(20))
    sessions = [played._replace(name=f"{number}.json") for number in range(45)]
    rows = session_rows(record_of(sessions, Asked()))
    assert len(rows) == 41 and rows[-1].name == "5 others"
    assert sum(row.paid for row in rows) == pytest.approx(45 * played.cost("raw"))
    words = rows_of(checked(page(record_of(sessions, Asked()))))
    first = words.index("0.json")
    assert words[first - 4 : first] == ["session", "paid", "masked", "quoted"]
    assert words[first + 1 : first + 4] == [money(rows[0].paid), "no less", "0.0 %"]


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": "hi"}], history(1), history(4, []), history(20)])
def test_a_picture_of_nothing_is_left_out(messages: list[Any]) -> None:
    document = checked(page(record_of([session(messages)], Asked())))
    assert document.charts == {} and not any(tag == "section" for tag, _ in document.elements)


def test_hostile_names_are_words_on_the_page() -> None:
    document = checked(page(record_of([session(history(30, HOSTILE), name) for name in HOSTILE], Asked())))
    said = " ".join(data for _, data in document.texts)
    assert "<script>alert(1)</script>" in said and "\x1b" not in said and "\u202e" not in said


def test_thousands_of_requests_keep_the_page_small() -> None:
    text = page(record_of([session(history(2_000, lines=2))], Asked()))
    assert len(text) < 80_000
    checked(text)


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
def test_a_browser_draws_every_picture_and_asks_for_nothing(tmp_path: Path) -> None:
    sessions = [session(history(70)), session(history(25, HOSTILE), "<b>hostile</b>")]
    # The browser itself writes down what it loaded.
    script = (
        "<p id=loaded></p><script>onload = () => { document.getElementById('loaded').textContent = "
        "performance.getEntriesByType('resource').length + ' loaded, ' + document.scripts.length + ' script' }</script>"
    )
    file = tmp_path / "page.html"
    file.write_text(page(record_of(sessions, Asked())).replace("</body>", script + "</body>"), encoding="utf-8")
    dom = browse(file, "--dump-dom")
    assert '<p id="loaded">0 loaded, 1 script</p>' in dom
    assert dom.count("<polyline") == 2 and dom.count('role="img"') == 1
    assert "&lt;b&gt;hostile&lt;/b&gt;" in dom and "<b>hostile" not in dom


# In a frame, because a window is never as narrow as a phone.
FRAME = '<iframe style="border: 0; width: %dpx; height: 900px" srcdoc="%s"></iframe>'
MEASURE = """<!DOCTYPE html><meta charset="utf-8"><p id="answer"></p>%s<script>
onload = () => {
  const measured = [...document.querySelectorAll("iframe")].map(frame => {
    const inner = frame.contentDocument, width = frame.clientWidth;
    const drawn = "svg text, svg rect.bar, h1, h2, p, li, td, th";
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
    inner.querySelectorAll("tr").forEach(row => {
      const [first, ...others] = [...row.children].map(cell => cell.getBoundingClientRect());
      if (others.some(cell => cell.top !== first.top)) outside.push({textContent: "no row: " + row.textContent});
    });
    const line = inner.querySelector("polyline.line-raw");
    const isDrawn = !line || line.getBoundingClientRect().width > width / 3;
    return [inner.documentElement.scrollWidth, isDrawn, ...outside.map(found => found.textContent)];
  });
  document.getElementById("answer").textContent = JSON.stringify(measured);
}</script>"""


@browser
@pytest.mark.parametrize("width", [390, *(pytest.param(width, marks=pytest.mark.slow) for width in (360, 800, 1200))])
def test_nothing_is_wider_than_the_screen_and_no_words_lie_on_others(width: int, tmp_path: Path) -> None:
    pages = [
        page(record_of([session(history(50))], Asked())),
        page(record_of([session(history(25, HOSTILE), "a/very/long/name/" * 30), session(history(30))], Asked())),
        page(record_of([session(history(1))], Asked())),
        page(record_of([session(history(310))], Asked(notes=("one", "two", "three")))),
        page(record_of([session(history(60)), session(history(9))], Asked(is_plan=True))),
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
    file.write_text(page(record_of([session(history(60)), session(history(30))], Asked())), encoding="utf-8")
    grounds = []
    for scheme in (1, 0):
        image = tmp_path / f"{scheme}.png"
        browse(
            file,
            f"--screenshot={image}",
            "--window-size=1000,1100",
            f"--blink-settings=preferredColorScheme={scheme}",
        )
        pixels = pytest.importorskip("matplotlib.image").imread(image)
        assert pixels.shape[:2] == (1100, 1000)
        grounds.append(float(pixels[2, 2, :3].mean()))
        # Words, bars and lines: much of it is ground, but not all, nor is any large band of the page empty.
        drawn = abs(pixels[:, :, :3] - pixels[2, 2, :3]).max(axis=2) > 0.2
        assert 0.02 < drawn.mean() < 0.4
        assert all(drawn[start : start + 250].any() for start in range(0, 1000, 250))
    assert grounds[0] > 0.9 and grounds[1] < 0.2


@browser
@pytest.mark.slow
def test_the_page_prints_on_few_sheets(tmp_path: Path) -> None:
    file, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    sessions = [session(history(60 + number), f"{number}.jsonl") for number in range(12)]
    file.write_text(page(record_of(sessions, Asked())), encoding="utf-8")
    browse(file, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    assert 2 <= len(re.findall(rb"/Type ?/Page\b", paper.read_bytes())) <= 4
