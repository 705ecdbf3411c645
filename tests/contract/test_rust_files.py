"""Files of the core use each other in no circle: read off their `use` declarations and paths.

A file may use what its own ancestors declare, as a part of them. A re-export leads to the file that declares the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from test_imports import circles, code_of

from support import ROOT

Name = tuple[str, ...]
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:.])\w+(?:::\w+)+")


def names_of(tree: str, before: Name = ()) -> Iterator[Name]:
    """The paths of a tree of `use`."""
    group = re.fullmatch(r"((?:\w+::)*)\{(.*)\}", tree.strip(), re.DOTALL)
    if not group:
        yield (*before, *re.sub(r"\s+as\s+\w+$", "", tree.strip()).split("::"))
        return
    for part in re.findall(r"(?:[^{},]|\{(?:[^{}]|\{[^{}]*\})*\})+", group[2]):
        if part.strip():
            yield from names_of(part, (*before, *filter(None, group[1].split("::"))))


class Files:
    """The modules below a folder, by their paths."""

    def __init__(self, folder: Path) -> None:
        self.code: dict[Name, str] = {}
        for path in folder.rglob("*.rs"):
            parts = path.relative_to(folder).with_suffix("").parts
            self.code[parts[:-1] if parts[-1] in ("mod", "lib") else parts] = code_of(path)
        self.declared: dict[Name, dict[str, Name]] = {}
        self.used: dict[Name, list[Name]] = {}
        for module, code in self.code.items():
            uses = [(name, bool(public)) for public, tree in USE.findall(code) for name in names_of(tree)]
            known = {name[-1]: self.absolute(module, name) for name, _ in uses}
            self.declared[module] = {last: name for last, name in known.items() if name}
            self.used[module] = [name for name, is_public in uses if not is_public]
            for path in PATH.findall(USE.sub("", code)):
                first, *rest = path.split("::")
                self.used[module].append(
                    ("crate", *(known.get(first) or ("",)), *rest) if first in known else (first, *rest)
                )

    def absolute(self, module: Name, name: Name) -> Name | None:
        first, rest = name[0], name[1:]
        if first == "crate":
            return rest
        if first == "self":
            return module + rest
        while name[0] == "super":
            module, name = module[:-1], name[1:]
        return module + name if first == "super" or (*module, first) in self.code else None

    def file_of(self, name: Name, seen: frozenset[Name] = frozenset()) -> Name:
        """The module that declares a name."""
        module = next(name[:end] for end in range(len(name), -1, -1) if name[:end] in self.code)
        rest = name[len(module) :]
        target = self.declared[module].get(rest[0]) if rest else None
        if target is None or target in seen or target == name:
            return module
        return self.file_of(target + rest[1:], seen | {target})

    def edges(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {"/".join(module): set() for module in self.code}
        for module, names in self.used.items():
            for name in names:
                absolute = self.absolute(module, name)
                if absolute is None or absolute in self.code:
                    continue
                other = self.file_of(absolute)
                if other != module[: len(other)]:
                    found["/".join(module)].add("/".join(other))
        return found


def test_files_of_the_core_use_each_other_in_no_circle() -> None:
    assert circles(Files(ROOT / "src").edges()) == []


def test_a_circle_of_files_is_seen(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    for name, code in {
        "lib.rs": "mod room; mod other;",
        "other.rs": "use crate::room::{Inner, deep::{self, Deep}}; fn f() { deep::g() }",
        "room/mod.rs": "mod inner; mod deep; pub use inner::Inner; pub struct Room;",
        "room/inner.rs": "use super::Room; pub struct Inner;",
        "room/deep.rs": "pub struct Deep; fn g() { super::inner::h() }",
    }.items():
        (tmp_path / name).write_text(code)
    edges = Files(tmp_path).edges()
    assert edges["other"] == {"room/inner", "room/deep"}
    assert edges["room/deep"] == {"room/inner"}
    assert edges["room/inner"] == set(), "a file is a part of its ancestors"
    assert circles(edges) == []
    (tmp_path / "room/inner.rs").write_text("fn h() { crate::other::f() }")
    assert circles(Files(tmp_path).edges()) == ["other", "room/deep", "room/inner"]
