"""The site as a browser shows it, at the width of a desk and of a phone. `make test-site` builds it and runs this."""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import ROOT

SITE = ROOT / "site"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PAGES = sorted(str(path.parent.relative_to(SITE)) for path in SITE.rglob("index.html"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # every page, in a browser
    pytest.mark.skipif(not PAGES, reason="`make docs` builds the site"),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed"),
]

# Shows each page in a frame of the given width, and says what would scroll sideways, and what came from elsewhere.
HARNESS = """<!doctype html><pre id="found"></pre><script>
async function look() {
  const found = [];
  for (const page of %s) {
    const frame = document.createElement("iframe");
    frame.style.cssText = "border:0;height:900px;width:%dpx";
    frame.src = "/" + page + "/";
    const loaded = new Promise(done => frame.onload = done);
    document.body.append(frame);
    await loaded;
    const inside = frame.contentDocument;
    found.push({
      page, title: inside.title, headings: inside.querySelectorAll("h1").length,
      width: inside.documentElement.scrollWidth,
      elsewhere: frame.contentWindow.performance.getEntriesByType("resource")
        .map(entry => entry.name).filter(name => !name.startsWith(location.origin)),
    });
    frame.remove();
  }
  document.getElementById("found").textContent = JSON.stringify(found);
  document.title = "done";
}
look();
</script>"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("site") / "site"
    shutil.copytree(SITE, folder)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_fits_and_loads_nothing_from_elsewhere(
    width: int, address: tuple[str, Path], tmp_path: Path
) -> None:
    url, folder = address
    (folder / "harness.html").write_text(HARNESS % (json.dumps(PAGES), width))
    assert BROWSER
    shown = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            f"--user-data-dir={tmp_path}", "--window-size=1400,1000", "--virtual-time-budget=100000",
            "--dump-dom", f"{url}/harness.html",
        ],
        capture_output=True, text=True, timeout=500, check=True,
    ).stdout  # fmt: skip
    text = re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    assert text and text[1], shown[:2_000]
    found: list[dict[str, Any]] = json.loads(text[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
    assert [page["page"] for page in found] == PAGES
    assert [page for page in found if page["headings"] != 1 or not page["title"]] == []
    assert [(page["page"], page["width"]) for page in found if page["width"] > width] == []
    assert [(page["page"], page["elsewhere"]) for page in found if page["elsewhere"]] == []
