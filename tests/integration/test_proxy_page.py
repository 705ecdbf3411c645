"""The page of the proxy as a real browser shows it, live, with words of requests that are no markup."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

import aiohttp
from proxied import Answer, Request, answer_of, ask, proxying, recording

from recede.proxy import server as server_module

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">&amp;"
PAGE = Path(server_module.__file__).with_name("page.html")


def body(turns: int, name: str) -> bytes:
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    for number in range(turns):
        use = {"type": "tool_use", "id": f"toolu_{name}{number}", "name": "run", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{name}{number}", "content": "x" * 4_000}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return json.dumps({"model": HOSTILE, "messages": messages}).encode()


def answer(request: Request) -> Answer:
    tokens = len(request.body) // 4
    written = tokens if b"toolu_" not in request.body else min(tokens, 1_050)
    usage = {"input_tokens": 9, "cache_read_input_tokens": tokens - written, "cache_creation_input_tokens": written}
    found = {"model": HOSTILE, "usage": {**usage, "output_tokens": 50}}
    return [answer_of(json.dumps(found).encode(), "200 OK", "Content-Type: application/json")]


def test_the_page_loads_nothing_from_elsewhere_and_makes_no_markup_of_words() -> None:
    page = PAGE.read_text("utf-8")
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|<link|src=|@import|url\(", page)
    assert re.findall(r"https?://[^\"]*", page) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme: dark" in page and 'name="viewport"' in page


def test_the_events_are_the_figures_and_come_as_they_change() -> None:
    with recording(answer) as upstream, proxying(upstream.url) as proxy:
        connection = http.client.HTTPConnection(proxy.url.partition("://")[2], timeout=20)
        try:
            connection.request("GET", "/recede/events")
            with connection.getresponse() as response:
                first = response.readline()
                threading.Timer(0.1, lambda: ask(proxy.url, "POST", "/v1/messages", body(3, "a"))).start()
                line = b"\n"
                while not line.startswith(b"data:"):
                    line = response.readline()
        finally:
            connection.close()
        before, after = (json.loads(one.removeprefix(b"data: ")) for one in (first, line))
        assert before["totals"]["requests"] == 0 and after["totals"]["requests"] == 1
        assert ask(proxy.url, "GET", "/recede").named("location") == "/recede/"
        page = ask(proxy.url, "GET", "/recede/")
        assert "default-src 'none'" in (page.named("content-security-policy") or "")
        assert ask(proxy.url, "POST", "/recede/stats", b"").status == 405
        assert ask(proxy.url, "GET", "/recede/other").status == 404


@pytest.mark.skipif(BROWSER is None, reason="no Chromium to look at the page with")
@pytest.mark.parametrize(
    "width", [pytest.param(1_200, marks=pytest.mark.slow), 500]
)  # the narrowest window that Chromium makes
def test_a_browser_shows_the_figures(width: int, tmp_path: Path) -> None:
    assert BROWSER is not None
    with recording(answer) as upstream, proxying(upstream.url) as proxy:
        for turns in range(2, 42):
            for name in ("a", "b")[: 1 + turns % 2]:
                ask(proxy.url, "POST", "/v1/messages", body(turns, name))
        while proxy.totals.sums.requests < 60:  # counted when the answer has passed
            time.sleep(0.01)
        totals = proxy.totals.shown()["totals"]
        profile = f"--user-data-dir={tmp_path / 'browser'}"
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            profile,
            "--timeout=2000",
            f"--window-size={width},900",
        ]
        done = subprocess.run(
            [BROWSER, *flags, "--dump-dom", f"{proxy.url}/recede/"], capture_output=True, text=True, timeout=60
        )
        dom = done.stdout
        assert ">Masking old tool outputs.<" in dom, (dom[-500:], done.stderr[-500:])
        assert "<title>recede proxy</title>" in dom
        assert "&lt;script&gt;document.title='run'" in dom and "<script>document.title" not in dom
        assert (
            f">{totals['requests']}<" in dom and f">${totals['saved_usd']:.2f}<" in dom and totals["saved_usd"] > 0.01
        )
        assert dom.count("<tr>") == 1 + 2 and dom.count('stroke="var(--sent)"') == 1
        assert f">${totals['paid_usd']:.2f}</b><span>you paid<" in dom and 'fill="var(--move)"' in dom
        # As wide as the window: what is wider scrolls in its own frame.
        assert int(re.search(r'x2="(\d+)', dom)[1]) < width  # type: ignore[index]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium to look at the page with")
def test_a_conversation_of_one_request_is_a_sentence_and_no_empty_chart(tmp_path: Path) -> None:
    with recording(answer) as upstream, proxying(upstream.url) as proxy:
        ask(proxy.url, "POST", "/v1/messages", body(3, "a"))
        while not proxy.totals.sums.requests:  # counted when the answer has passed
            time.sleep(0.01)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--timeout=2000"]
        command = [str(BROWSER), *flags, "--dump-dom", f"{proxy.url}/recede/"]
        dom = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert re.search(r">One request so far, of [\d,]+ tokens\.<", dom)
    assert 'stroke="var(--sent)"' not in dom and "<line" not in dom


async def seen(url: str, width: int, script: str, folder: Path) -> Any:
    """What a script finds on a page of a phone: a window cannot be so narrow."""
    flags = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder}",
        "--remote-debugging-port=0",
    ]
    process = subprocess.Popen([str(BROWSER), *flags], stderr=subprocess.DEVNULL)
    try:
        while (
            len((folder / "DevToolsActivePort").read_text().split() if (folder / "DevToolsActivePort").exists() else [])
            < 2
        ):
            await asyncio.sleep(0.05)
        port = (folder / "DevToolsActivePort").read_text().split()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                page = next(one for one in await answer.json() if one["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:

                async def ask_browser(method: str, **arguments: Any) -> Any:
                    await socket.send_json({"id": 1, "method": method, "params": arguments})
                    while True:
                        found = await socket.receive_json()
                        if found.get("id") == 1:
                            return found["result"]

                size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": True}
                await ask_browser("Emulation.setDeviceMetricsOverride", **size)
                await ask_browser("Page.navigate", url=url)
                while True:
                    value = (await ask_browser("Runtime.evaluate", expression=script, returnByValue=True))["result"]
                    if value.get("value"):
                        return value["value"]
                    await asyncio.sleep(0.05)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


OUTSIDE = """document.querySelectorAll("#rows td").length > 6 && {
  outside: [...document.querySelectorAll("main *")].filter((one) => {
    const {left, right, width} = one.getBoundingClientRect();
    const isShown = width && getComputedStyle(one.closest("thead") || one).clipPath == "none";
    return isShown && (left < 0 || right > innerWidth);
  }).map((one) => one.tagName),
  rows: [...document.querySelectorAll("#rows tr")].map((one) => one.innerText),
}"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium to look at the page with")
def test_a_phone_shows_all_figures_of_each_conversation_by_its_name(tmp_path: Path) -> None:
    with recording(answer) as upstream, proxying(upstream.url, folder="shop") as proxy:
        for turns in range(30, 42):
            for name in ("a", "b"):
                ask(proxy.url, "POST", "/v1/messages", body(turns, name))
        while proxy.totals.sums.requests < 24:  # counted when the answer has passed
            time.sleep(0.01)
        found = asyncio.run(seen(f"{proxy.url}/recede/", 390, OUTSIDE, tmp_path))
    assert found["outside"] == []
    for row in found["rows"]:
        assert re.match(r"shop, \d\d:\d\d: ", row), row
        for words in ("12", "$"):
            assert words in row
