"""Looks for paths of the machine in wheels, archives and libraries: `python scripts/check_dist.py FILE...`.

Each file of an archive is read, also the list of crates of a wheel. It fails where one has a home, the checkout, or the
folder of cargo.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Homes, and where the builders of releases work; those of these names are made up.
_HOMES = rb"(?:/home/|/Users/|[A-Z]:\\+Users\\+)(?!you\b|me\b|user\b|x\b)[\w.-]+[/\\]|/root/\.|/__w/|/github/workspace"
_TEXTS = (".py", ".pyi", ".md", ".rs", ".json", ".js", ".html", ".css", ".toml", ".lock")


def own_paths() -> list[bytes]:
    """The folders of this machine that nothing may name."""
    cargo = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    return [os.fsencode(path) for path in (str(ROOT), cargo)]


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """What an archive holds, or the file itself."""
    if path.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(path) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())
    elif path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            for entry in archive:
                file = archive.extractfile(entry)
                if file is not None:
                    yield entry.name, file.read()
    else:
        yield path.name, path.read_bytes()


def paths_in(name: str, content: bytes) -> list[bytes]:
    """The paths of a machine in a file. A text of ours may name a home; a library and a list of crates may not."""
    found = [path for path in own_paths() if path in content]
    is_text = name.endswith(_TEXTS) and "/sboms/" not in name
    return found if is_text else found + re.findall(_HOMES, content)


def main() -> None:
    """Check the files, and say what was found where."""
    files = [Path(name) for name in sys.argv[1:]]
    wrong = [
        f"{path.name}: {name} has {found[0].decode(errors='replace')}"
        for path in files
        for name, content in members(path)
        if (found := paths_in(name, content))
    ]
    sys.exit("\n".join(wrong) if wrong or not files else 0)


if __name__ == "__main__":
    main()
