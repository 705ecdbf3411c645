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
