"""For the site: pages outside of docs/, where GitHub looks for them, links to them, and decisions in the navigation."""

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
_PROMPTS = re.compile(r"^```python\n>>>", re.MULTILINE)
_LINK = re.compile(r"\]\(((?:\.\./)*)([^)#:\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds each decision to the navigation, after their list."""
    listed = "decisions/README.md"
    pages = sorted(
        path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir, "decisions").glob("0*")
    )
    for section in config.nav or []:
        for entry in next(iter(section.values())):
            if entry == {"Decisions": listed}:
                entry["Decisions"] = [listed, *pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_LINK.sub(_from_root, text)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turns links out of docs/ into links to these pages, and names blocks with prompts for what they are."""
    up = "../" * page.file.src_uri.count("/")

    def mend(link: re.Match[str]) -> str:
        back, path, anchor = link[1], link[2], link[3] or ""
        return f"]({up}{PAGES[path]}{anchor})" if back == f"../{up}" and path in PAGES else link[0]

    return _PROMPTS.sub("```pycon\n>>>", _LINK.sub(mend, markdown))


def _from_root(link: re.Match[str]) -> str:
    path = PAGES.get(link[2], link[2]).removeprefix("docs/")
    return f"]({path}{link[3] or ''})"
