"""Where the recorded sessions are that tests and documents measure."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MANIFEST: dict[str, Any] = json.loads(Path(__file__).with_name("corpus.json").read_text(encoding="utf-8"))


def corpus() -> Path:
    """What `make corpus` has fetched, if it is whole; else ../shared/corpus, which need not be there."""
    fetched = ROOT / ".corpus"
    if all((fetched / one["file"]).exists() for one in MANIFEST["files"]):
        return fetched
    return Path(os.environ.get("RECEDE_SHARED") or ROOT.parent / "shared") / "corpus"


def files() -> list[Path]:
    """Each file of the corpus that is there."""
    return sorted(corpus().glob("*/*"))
