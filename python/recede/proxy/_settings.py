"""Settings files of agents, read as the agents do: JSON with comments, TOML, variables in lines."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

_MOST_BYTES = 1 << 20
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')
_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$")
_VARIABLE = re.compile(r"\{env:([^}]+)\}|\$\{(\w+)\}|\$(\w+)")
_LATER = re.compile(r"[{}$`]")


class Layer(NamedTuple):
    """What one settings file says, or the variables, or an argument."""

    source: str  # how people call it: a path, or a name
    data: Mapping[str, Any]
    is_of_project: bool = False
    is_managed: bool = False  # nothing that a user sets goes before it


class Place(NamedTuple):
    """Where an agent is started, and what with."""

    words: tuple[str, ...]  # of its command line, after the command
    environment: Mapping[str, str]
    home: Path
    folder: Path  # the working folder
    unread: list[str]  # files that could not be read, which are told

    def file(self, text: str) -> Path:
        """Return the path of a file of the user: ``{VARIABLE:~/folder}/name``."""
        found = re.fullmatch(r"\{(\w+):([^}]*)\}(.*)", text)
        if found is None:
            return Path(text.replace("~", str(self.home), 1) if text.startswith("~") else text)
        folder = self.environment.get(found[1]) or found[2].replace("~", str(self.home), 1)
        return Path(folder + found[3])

    def above(self) -> list[Path]:
        """List the working folder and those above it, up to that of a repository, or before the user's own."""
        found = []
        for folder in (self.folder, *self.folder.parents):
            if folder == self.home:
                break
            found.append(folder)
            if (folder / ".git").exists():
                break
        return found

    def read(self, path: Path, is_of_project: bool = False, is_managed: bool = False) -> Iterator[Layer]:
        """Yield the layer of a file, if there is one."""
        try:
            if not path.is_file():
                return
            with path.open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise ValueError
            yield Layer(str(path), parsed(path.name, data.decode("utf-8-sig")), is_of_project, is_managed)
        except (OSError, ValueError, RecursionError):
            self.unread.append(str(path))

    def option(self, *names: str) -> tuple[int, str] | None:
        """Find the value of the last such option in the words, and the place of the word that has it."""
        found = None
        for place, word in enumerate(self.words):
            if word == "--":
                break
            if word in names and place + 1 < len(self.words):
                found = place + 1, self.words[place + 1]
            elif word.startswith(tuple(f"{name}=" for name in names if name.startswith("--"))):
                found = place, word.partition("=")[2]
        return found


def parsed(name: str, text: str) -> dict[str, Any]:
    """Parse the text of a settings file by its name; raise ValueError unless it is a table."""
    if name.endswith(".toml"):
        found = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)
    elif name.endswith(".env"):
        pairs = filter(None, map(_LINE.match, text.splitlines()))
        found = {pair[1]: re.sub(r"^(['\"])(.*)\1.*$", r"\2", pair[2]) for pair in pairs}
    else:
        plain = _TRAILING.sub(lambda match: match[1] or "", _COMMENT.sub(lambda match: match[1] or " ", text))
        found = json.loads(plain or "{}")
    if not isinstance(found, dict):
        raise ValueError("no table")
    return found


def within(data: Any, *keys: str) -> Any:
    """Return what stands under these keys; None if nothing does."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def table(data: Any, *keys: str) -> Mapping[str, Any]:
    found = within(data, *keys)
    return found if isinstance(found, Mapping) else {}


def first(layers: Iterable[Layer], *keys: str) -> tuple[Layer, Any] | None:
    """Find the first layer in which something stands under these keys, and what."""
    return next(((layer, found) for layer in layers if (found := within(layer.data, *keys)) not in (None, "")), None)


def filled(text: str, environment: Mapping[str, str]) -> str | None:
    """Put in the variables that a text names; None if something is left that only the agent can read."""
    found = _VARIABLE.sub(lambda match: environment.get(match[1] or match[2] or match[3], match[0]), text)
    return None if _LATER.search(found) else found
