"""The tools that `recede chat` offers for files: list, read and search under one folder, which they never leave."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_MOST_ENTRIES = 500
_MOST_LINES = 400
_MOST_CHARS = 40_000
_MOST_MATCHES = 100
_MOST_LINE_CHARS = 300
# What is larger is hardly text that someone wrote.
_MOST_BYTES = 5_000_000
_SEARCH_SECONDS = 10.0

_PATH = {"type": "string", "description": "Relative to the folder; '.' is the folder itself."}
_TOOLS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "list_files": ("List a folder: names, those of folders with a slash, and sizes in bytes.", {"path": _PATH}, []),
    "read_file": (
        f"Read lines of a text file, {_MOST_LINES} at most.",
        {"path": _PATH, "first_line": {"type": "integer", "minimum": 1, "description": "1 by default."}},
        ["path"],
    ),
    "search_files": (
        f"Search the text files under a folder for a regular expression; {_MOST_MATCHES} lines and "
        f"{_SEARCH_SECONDS:.0f} seconds at most. "
        "Names that begin with a dot are passed over.",
        {"pattern": {"type": "string", "description": "A regular expression of Python."}, "path": _PATH},
        ["pattern"],
    ),
}


class Folder:
    """A folder and the tools for it. A path that leads out of it, also by a symbolic link, is refused."""

    def __init__(self, path: str | os.PathLike[str], *, search_seconds: float = _SEARCH_SECONDS) -> None:
        """Take the folder, or the one that a link leads to, and how long a search may take."""
        self._root = Path(path).resolve(strict=True)
        self._search_seconds = search_seconds
        if not self._root.is_dir():
            raise NotADirectoryError(f"{path} is no folder")

    def definitions(self, shape: str) -> list[dict[str, Any]]:
        """The schemas of the tools, as the provider takes them."""
        found = []
        for name, (description, properties, required) in _TOOLS.items():
            schema = {"type": "object", "properties": properties, "required": required}
            if shape == "anthropic":
                found.append({"name": name, "description": description, "input_schema": schema})
            else:
                function = {"name": name, "description": description, "parameters": schema}
                found.append({"type": "function", "function": function})
        return found

    def run(self, name: str, arguments: Any) -> str:
        """Run a tool.

        Raises:
            LookupError: there is no such tool.
            OSError: the path is not there, or not in the folder.
            TypeError, ValueError: an argument is missing or wrong.
        """
        tools: dict[str, Callable[..., str]] = {
            "list_files": self.list_files,
            "read_file": self.read_file,
            "search_files": self.search_files,
        }
        if name not in tools:
            raise LookupError(f"there is no tool {name!r}; there are {', '.join(tools)}")
        if not isinstance(arguments, dict):
            raise TypeError("the arguments must be an object")
        return tools[name](**arguments)

    def list_files(self, path: str = ".") -> str:
        """The entries of a folder, sorted, one a line."""
        folder = self._inside(path)
        lines = []
        for entry in sorted(folder.iterdir()):
            kind = "/" if entry.is_dir() else f" {entry.lstat().st_size}"
            lines.append(f"{entry.name}{kind}")
        if len(lines) > _MOST_ENTRIES:
            lines[_MOST_ENTRIES:] = [f"… {len(lines) - _MOST_ENTRIES} more"]
        return "\n".join(lines) or "(empty)"

    def read_file(self, path: str, first_line: int = 1) -> str:
        """Lines of a text file from `first_line` on, with a note where there are more."""
        if not isinstance(first_line, int) or first_line < 1:
            raise ValueError("first_line must be a whole number from 1")
        lines = self._text(self._inside(path)).splitlines(keepends=True)
        shown = "".join(lines[first_line - 1 : first_line - 1 + _MOST_LINES])
        last = min(len(lines), first_line - 1 + _MOST_LINES)
        if len(shown) > _MOST_CHARS:
            return f"{shown[:_MOST_CHARS]}\n… cut after {_MOST_CHARS} characters"
        return shown if last >= len(lines) else f"{shown}… {len(lines) - last} lines more, from line {last + 1}"

    def search_files(self, pattern: str, path: str = ".") -> str:
        """The lines that match, each with its file and number; those found in time, where the search takes long.

        A regular expression can take hours for one line, and nothing in a thread can stop it. So another process
        searches, which can be killed.
        """
        if not isinstance(pattern, str):
            raise TypeError("pattern must be a string")
        self._inside(path)
        search = json.dumps({"root": str(self._root), "pattern": pattern, "path": path})
        # On its own (-I), so that no module of the folder is taken for one of Python's.
        command = [sys.executable, "-I", __file__]
        notes = []
        try:
            done = subprocess.run(
                command,
                input=search.encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self._search_seconds,
            )
        except subprocess.TimeoutExpired as late:
            said = late.stdout or b""
            seconds = f"{self._search_seconds:g} seconds"
            notes = [f"… stopped after {seconds}: a simpler pattern, or a smaller folder, may take less"]
        else:
            said = done.stdout
            if done.returncode:
                raise OSError(f"the search failed, with exit code {done.returncode}")
        # The line that was written when the time was over may be cut.
        lines = [json.loads(line) for line in said.splitlines(keepends=True) if line.endswith(b"\n")]
        for line in lines:
            if isinstance(line, dict):
                raise ValueError(line["error"])
        return "\n".join([*lines, *notes]) or "(no line matches)"

    def matches(self, pattern: str, path: str) -> Iterator[str]:
        """The lines that match, however long it takes."""
        wanted = re.compile(pattern)
        count = 0
        for file in self._files(self._inside(path)):
            try:
                text = self._text(file)
            except (OSError, ValueError):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if wanted.search(line):
                    yield f"{file.relative_to(self._root)}:{number}: {line[:_MOST_LINE_CHARS]}"
                    count += 1
                    if count == _MOST_MATCHES:
                        yield f"… stopped after {_MOST_MATCHES} lines"
                        return

    def _inside(self, path: str) -> Path:
        if not isinstance(path, str):
            raise TypeError("path must be a string")
        real = Path(os.path.realpath(self._root / path))
        if real != self._root and self._root not in real.parents:
            raise PermissionError(f"{path} is not in the folder")
        if not real.exists():
            raise FileNotFoundError(f"{path} is not there")
        return real

    def _text(self, file: Path) -> str:
        if not file.is_file():  # a pipe or a device would be waited for
            raise IsADirectoryError(f"{file.name} is no file")
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError(f"{file.name} has more than {_MOST_BYTES:,} bytes")
        data = file.read_bytes()
        if b"\0" in data:
            raise ValueError(f"{file.name} is no text")
        return data.decode("utf-8", "replace")

    def _files(self, start: Path) -> Iterator[Path]:
        """Every file below, without those that links lead to elsewhere."""
        if start.is_file():
            yield start
            return
        for folder, names, files in os.walk(start):  # which follows no links to folders
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in sorted(files):
                file = Path(folder, name)
                if not name.startswith(".") and self._root in Path(os.path.realpath(file)).parents:
                    yield file


def _search(root: str, pattern: str, path: str) -> None:
    """What the process of `search_files` does: a line of JSON for each that matches, at once."""
    try:
        for line in Folder(root).matches(pattern, path):
            print(json.dumps(line), flush=True)
    except (re.error, OverflowError, RecursionError) as error:
        print(json.dumps({"error": f"the pattern is no regular expression: {error}"}), flush=True)


if __name__ == "__main__":
    _search(**json.load(sys.stdin))
