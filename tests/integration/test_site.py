"""The site as a browser shows it, at the width of a desk and of a phone. `make test-site` builds it and runs this.

One browser visits the pages one after the other, and is told what to do over its debugging protocol.
(Frames in one page under a virtual clock took minutes: the clock stops at each request of each frame.)
"""

from __future__ import annotations

import asyncio
import functools
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from support import ROOT

SITE = ROOT / "site"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PAGES = sorted(path.parent.relative_to(SITE).as_posix() for path in SITE.rglob("index.html"))
WIDTHS = (390, 1280)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PAGES, reason="`make docs` builds the site"),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed"),
]

LOOK = """({
  title: document.title,
  headings: document.querySelectorAll("h1").length,
  width: document.documentElement.scrollWidth,
  words: document.querySelector("article").innerText.split(/\\s+/).length,
})"""


# Else a width would be measured while the drawer of the navigation slides to its place.
STILL = """document.addEventListener("DOMContentLoaded", () => {
  const style = document.createElement("style");
  style.textContent = "* { transition: none !important; animation: none !important }";
  document.head.append(style);
})"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Tab:
    """A tab of the browser: commands, and the events that came meanwhile."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.events: list[dict[str, Any]] = []

    async def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = await self._socket.receive_json(timeout=60)
        if "method" in message:
            self.events.append(message)
        return message

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while (answer := await self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def visit(self, url: str) -> None:
        self.events.clear()
        await self.ask("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            await self._next()

    async def evaluate(self, expression: str) -> Any:
        found = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"]["value"]


@asynccontextmanager
async def opened(profile: Path) -> AsyncIterator[Tab]:
    """A browser with one tab."""
    assert BROWSER
    command = [
        BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
        f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        said = profile / "DevToolsActivePort"
        for _ in range(600):
            if said.exists() and said.read_text().count("\n"):
                break
            assert browser.poll() is None, "the browser ended"
            await asyncio.sleep(0.1)
        port = said.read_text().split()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                [page] = [tab for tab in await answer.json(content_type=None) if tab["type"] == "page"]
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Network", "Runtime"):
                    await tab.ask(f"{domain}.enable")
                await tab.ask("Page.addScriptToEvaluateOnNewDocument", source=STILL)
                yield tab
    finally:
        browser.terminate()
        browser.wait(30)


def test_every_page_fits_and_loads_nothing_from_elsewhere(address: str, tmp_path: Path) -> None:
    wrong: list[str] = []

    async def look() -> None:
        async with opened(tmp_path) as tab:
            for page in PAGES:
                await tab.visit(f"{address}/{page}/")
                for width in WIDTHS:
                    await tab.ask(
                        "Emulation.setDeviceMetricsOverride",
                        width=width, height=900, deviceScaleFactor=1, mobile=False,
                    )  # fmt: skip
                    found = await tab.evaluate(LOOK)
                    if found["width"] > width:
                        wrong.append(f"{page}: {found['width']} pixels wide in a window of {width}")
                if found["headings"] != 1 or not found["title"] or found["words"] < 20:
                    wrong.append(f"{page}: {found}")
                wrong.extend(f"{page}: {fault}" for fault in faults(tab.events, address))

    asyncio.run(look())
    assert wrong == []


def faults(events: list[dict[str, Any]], address: str) -> Iterator[str]:
    """Requests to elsewhere or without an answer, and errors of scripts."""
    for event in events:
        method, params = event["method"], event["params"]
        if method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith((address, "data:", "blob:")):
                yield f"asks {url}"
        elif method == "Network.responseReceived" and params["response"]["status"] >= 400:
            yield f"{params['response']['status']} for {params['response']['url']}"
        elif method == "Runtime.exceptionThrown":
            yield json.dumps(params["exceptionDetails"])[:300]


# What the site hands to the clipboard, of each block of a page; there is none without a person who clicks.
COPY = """(() => {
  const copied = [];
  document.execCommand = () => copied.push(document.activeElement.value);
  document.querySelectorAll("[data-clipboard-target]").forEach(button => button.click());
  return copied;
})()"""


def test_a_block_is_copied_without_prompts_and_outputs(address: str, tmp_path: Path) -> None:
    async def copied(page: str) -> list[str]:
        async with opened(tmp_path / page) as tab:
            await tab.visit(f"{address}/{page}/")
            blocks = await tab.evaluate("document.querySelectorAll('pre > code').length")
            texts: list[str] = await tab.evaluate(COPY)
            assert blocks == len(texts) > 3
            return texts

    start, cli = (asyncio.run(copied(page)) for page in ("start", "cli"))
    assert not [text for text in start + cli if text.startswith((">>> ", "$ ", "... "))]
    assert start[1].startswith("import recede\nhistory = [{") and "\n    call = {" in start[1]
    for code in start[1:]:
        compile(code, "copied", "exec")
    assert "(46, 271521, 66407)" not in start[1] and start[1].splitlines()[-1].startswith("view.messages[120]")
    assert cli[0] == "recede --help" and "recede stats missing.json" in cli[1].splitlines()


CONTRAST = """(() => {
  const light = color => {
    const [r, g, b] = color.match(/[\\d.]+/g).map(one => one / 255)
      .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = one => {
    const color = getComputedStyle(one).backgroundColor;
    return /rgba.* 0\\)/.test(color) ? ground(one.parentElement) : light(color);
  };
  return [...document.querySelectorAll("article a[href]:not(.headerlink), .md-nav__link--active")]
    .filter(one => one.offsetWidth)
    .map(one => [one.innerText, light(getComputedStyle(one).color), ground(one)].sort((a, b) => b - a))
    .map(([words, most, least]) => [words, (most + 0.05) / (least + 0.05)])
    .filter(([, contrast]) => contrast < 4.5);
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_links_have_a_contrast_of_four_and_a_half(scheme: str, address: str, tmp_path: Path) -> None:
    async def faint() -> Any:
        async with opened(tmp_path) as tab:
            await tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            await tab.visit(f"{address}/start/")
            shown = await tab.evaluate("document.body.getAttribute('data-md-color-scheme')")
            assert shown == {"light": "default", "dark": "slate"}[scheme]
            return await tab.evaluate(CONTRAST)

    assert asyncio.run(faint()) == []


SEARCH = """(() => {
  const field = document.querySelector(".md-search__input");
  field.focus();
  if (field.value !== WORD) {
    field.value = WORD;
    field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
    return [];
  }
  return [...document.querySelectorAll(".md-search-result__link")].map(one => new URL(one.href).pathname);
})()"""


def test_search_finds_the_words_of_users_and_the_first_picture_is_the_screen(address: str, tmp_path: Path) -> None:
    found: dict[str, list[str]] = {}

    async def search() -> str:
        async with opened(tmp_path) as tab:
            await tab.visit(f"{address}/")
            for word in ("128k", "ollama", "subscription"):
                for _ in range(300):
                    if pages := await tab.evaluate(SEARCH.replace("WORD", json.dumps(word))):
                        found[word] = pages
                        break
                    await asyncio.sleep(0.1)
            picture: str = await tab.evaluate("document.querySelector('article img').src")
            return picture

    assert asyncio.run(search()).endswith("/report.svg")
    assert found.keys() == {"128k", "ollama", "subscription"}, found
    assert "/budgets/" in found["128k"] and "/budgets/" in found["ollama"] and "/proxy/" in found["subscription"], found
