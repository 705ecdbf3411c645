"""For the site: pages whose files stand outside of docs/, where GitHub looks for them, and the links to them."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "benches/RESULTS.md": "benchmarks.md",
}
_LINK = re.compile(r"\]\(((?:\.\./)*)([^)#:\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_LINK.sub(_from_root, text)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turns links out of docs/ into links to these pages."""
    up = "../" * page.file.src_uri.count("/")

    def mend(link: re.Match[str]) -> str:
        back, path, anchor = link[1], link[2], link[3] or ""
        return f"]({up}{PAGES[path]}{anchor})" if back == f"../{up}" and path in PAGES else link[0]

    return _LINK.sub(mend, markdown)


def _from_root(link: re.Match[str]) -> str:
    path = PAGES.get(link[2], link[2]).removeprefix("docs/")
    return f"]({path}{link[3] or ''})"
