"""Who may import whom: the rule of docs/design.md, read off the sources themselves."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import recede
from support import ROOT

PACKAGE = ROOT / "python" / "recede"
CORE = ROOT / "src"

# What knows nothing of the rest of recede, but for the errors.
LEAVES = {
    "_bodies",
    "_errors",
    "_files",
    "_forks",
    "_objects",
    "_off",
    "_recall",
    "_report",
    "_steps",
    "providers",
    "types",
}
# A room of the package (a folder, or a module of the root) -> the rooms that it may import.
PYTHON: dict[str, set[str]] = {
    "_agents": {"_hosts"},
    "_errors": set(),
    "_files": set(),
    "_forks": set(),
    "_hosts": set(),
    "_objects": set(),
    "types": {"_report", "providers"},
    "_steps": set(),
    "_usage": set(),
    "_off": set(),
    "_model_names": {"_hosts", "_usage"},
    "_models": {"_model_names"},
    "_report": {"_bodies", "_off"},
    "_bodies": {"_errors"},
    "_serving": {"_hosts", "_models", "providers"},
    "providers": {"_errors", "_model_names", "_models"},
    "_recall": set(),
    "_engine": {"_core"},
    "_encodable": {"_objects"},
    "_answer": {"_encodable", "_objects"},
    "_question": {"_encodable", "_engine", "_models", "_objects"},
    "_summarizer": {"_engine", "_question", "_steps"},
    "reduction": LEAVES | {"_encodable", "_engine", "_summarizer"},
    "store": LEAVES | {"_engine", "reduction"},
    "session": LEAVES | {"_engine", "_summarizer", "_usage", "reduction", "store"},
    "masker": LEAVES | {"_engine", "_summarizer", "_usage", "reduction", "session"},
    "integrations": LEAVES | {"_encodable", "_summarizer", "clients", "masker", "proxy", "reduction"},
    "clients": LEAVES | {"_encodable", "_hosts", "_models", "_serving", "masker", "reduction", "summarizers"},
    "agent": LEAVES | {"_answer", "_encodable", "_engine", "reduction", "session"},
    "costs": LEAVES | {"_agents", "_engine", "_model_names", "_models", "_serving", "reduction", "transcripts"},
    "proxy": LEAVES
    | {"_agents", "_encodable", "_engine", "_hosts", "_models", "_question", "_serving", "_summarizer", "_usage"}
    | {"costs", "reduction", "transcripts"},
    "turns": LEAVES | {"_engine", "_summarizer", "costs", "reduction", "store"},
    "summarizers": LEAVES | {"_engine", "_models", "_question", "_serving", "reduction", "turns"},
    "transcripts": LEAVES | {"_usage", "reduction"},
    "designs": {"agent", "reduction", "turns"},
    "arrow": {"types", "_bodies", "_engine", "_errors", "_report", "costs", "providers", "reduction"},
}
PUBLIC_MODULES = {*recede._MODULES}
ONLY_PUBLIC_NAMES = {"testing", "cli"}
# An adapter -> what it may import of others.
FRAMEWORKS = {
    "agent_framework": {"agent_framework"},
    "anthropic": {"anthropic"},
    "crewai": {"crewai", "httpx"},
    "google_adk": {"google"},
    "http": set[str](),
    "inspect_ai": {"inspect_ai"},
    "langchain": {"deepagents", "langchain", "langchain_core"},
    "litellm": {"litellm"},
    "openai_agents": {"agents"},
    "pydantic_ai": {"pydantic_ai"},
    "strands": {"strands"},
}

# A module of the core -> the modules that it may use.
RUST: dict[str, set[str]] = {
    "lib": set(),
    "error": set(),
    "fingerprint": set(),
    "handle": set(),
    "stop": set(),
    "text": set(),
    "shape": {"error", "text"},
    "json": {"error", "text"},
    "outline": {"clip", "json", "shape", "text"},
    "dispatch": {"json", "text"},
    "scan": {"error", "outline", "json", "shape", "dispatch", "text"},
    "source": {"clip", "fingerprint", "handle", "outline", "json", "dispatch", "scan", "text"},
    "marks": {"json", "outline", "scan", "shape"},
    "turns": {"outline"},
    "pairs": {"outline", "text", "turns"},
    "patterns": set(),
    "provider": set(),
    "policy": {"outline", "patterns", "provider", "shape"},
    "clip": {"handle", "text"},
    "raw_text": {"clip", "dispatch", "json", "outline", "text"},
    "template": {"handle", "policy", "text"},
    "placeholder": {"clip", "handle", "outline", "shape", "template", "text", "policy", "dispatch", "source"},
    "plan": {
        "clip",
        "dispatch",
        "fingerprint",
        "handle",
        "json",
        "marks",
        "outline",
        "patterns",
        "shape",
        "stop",
        "text",
        "pairs",
        "turns",
        "policy",
        "provider",
        "placeholder",
        "source",
    },
    "splice": {
        "scan",
        "shape",
        "clip",
        "outline",
        "text",
        "marks",
        "pairs",
        "raw_text",
        "turns",
        "policy",
        "placeholder",
        "plan",
        "source",
    },
    "repaired": {"error", "outline", "pairs", "scan", "shape"},
    "report": {"outline", "pairs", "turns", "policy", "placeholder", "plan"},
    "points": {"dispatch", "fingerprint", "json", "outline", "scan", "turns"},
    "misses": {"clip", "dispatch", "json", "outline", "source", "stop", "text", "turns"},
    "quoted": {"misses", "outline", "pairs", "plan", "policy", "source", "turns"},
    "reduce": {"error", "marks", "outline", "scan", "session", "source", "policy", "plan", "splice", "report"},
    "session": {
        "json",
        "stop",
        "clip",
        "dispatch",
        "error",
        "handle",
        "marks",
        "outline",
        "scan",
        "shape",
        "source",
        "pairs",
        "turns",
        "policy",
        "placeholder",
        "plan",
        "splice",
        "store",
        "text",
    },
    "store": {"error"},
}

PYTHON_FILES = sorted(PACKAGE.rglob("*.py"))
RUST_FILES = sorted(CORE.rglob("*.rs"))


@functools.cache
def imports_of(path: Path) -> set[tuple[str, str]]:
    """(module, name) of each import, also of those for type checkers and of those inside functions."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {(node.module or "", alias.name) for alias in node.names}
    return found


def ours(path: Path) -> set[str]:
    """The rooms that the file imports; `recede` for names of the root itself."""
    found = set()
    for module, name in imports_of(path):
        if module == "recede":
            is_module = (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file() or name == "_core"
            found.add(name if is_module else "recede")
        elif module.startswith("recede."):
            found.add(module.split(".")[1])
    return found


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_python_modules_import_only_what_they_may(path: Path) -> None:
    room = room_of(path)
    used = ours(path) - {room}
    if room == "__init__":
        assert used <= PUBLIC_MODULES | {"_engine", "_errors", "_report"}, "the root is made of its packages"
    elif room in ONLY_PUBLIC_NAMES:
        # One function writes files, one makes text printable, and `reduction` has the table of the options, for the
        # library and the command line.
        shared = {"_files", "_errors"} if room == "cli" else set()
        assert used <= {"recede"} | PUBLIC_MODULES | shared, f"{room} imports only what recede exports"
        for module, name in imports_of(path):
            if module.split(".")[0] == "recede" and not module.startswith(
                ("recede.cli", "recede.testing", "recede._files", "recede._errors", "recede.reduction._")
            ):
                public = getattr(import_module(module), "__all__", ()) or [name] * (name[0] != "_")
                assert name in [*public, *PUBLIC_MODULES], f"{name} of {module} is not public"
    elif room == "__main__":
        assert used == {"cli"}
    else:
        assert room in PYTHON, f"{room} needs a row in this test"
        assert used <= PYTHON[room]


def test_the_package_and_its_oracle_need_the_standard_library_alone() -> None:
    # Type checkers bring typing_extensions along; nothing imports it when it runs.
    allowed = set(sys.stdlib_module_names) | {"recede", "__future__", "typing_extensions"}
    for path in PYTHON_FILES:
        modules = {module.split(".")[0] for module, _ in imports_of(path)} - allowed
        room = room_of(path)
        if room == "cli":
            assert modules <= {"click", "rich"}, path
        elif room == "proxy":
            is_server = path.name in ("server.py", "_http.py", "_page.py", "_summary_calls.py")
            assert modules <= ({"aiohttp", "multidict", "yarl"} if is_server else set()), path
        elif room == "arrow":
            assert modules <= {"pyarrow"}, path
        elif path == PACKAGE / "costs" / "_models.py":
            assert modules <= {"genai_prices"}, path  # if it is installed
        elif room == "integrations":
            assert modules <= FRAMEWORKS.get(path.stem, set()), path
        else:
            assert not modules, path


def test_what_only_posix_has_is_asked_for_first() -> None:
    """Modules are imported with a fallback, and signals are looked up by name: the rest of a module runs on Windows."""
    modules = {"curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "termios", "tty"}
    for path in PYTHON_FILES:
        tree = ast.parse(path.read_text("utf-8"))
        caught = {
            line
            for node in ast.walk(tree)
            if isinstance(node, ast.Try) and "ImportError" in ast.unparse(node)
            for one in node.body
            for line in (one.lineno,)
        }
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {getattr(node, "module", None), *(alias.name for alias in node.names)}
                assert not names & modules or node.lineno in caught, (path, node.lineno)
            if (
                isinstance(node, ast.Attribute)
                and ast.unparse(node.value) == "signal"
                and re.match("SIG[A-Z]", node.attr)
            ):
                assert node.attr in ("SIGINT", "SIGTERM"), (path, node.lineno)


def test_only_the_engine_imports_the_extension() -> None:
    assert {room_of(path) for path in PYTHON_FILES if "_core" in ours(path)} <= {"_engine"}


# The core


def code_of(path: Path) -> str:
    """The source without comments."""
    return re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))


def rust_room_of(path: Path) -> str:
    return path.relative_to(CORE).parts[0].removesuffix(".rs")


def used_by(path: Path) -> set[str]:
    code = code_of(path)
    found = set(re.findall(r"\bcrate::(\w+)", code))
    for group in re.findall(r"\bcrate::\{(.*?)\};", code, re.DOTALL):
        found |= set(re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", group)))
    if len(path.relative_to(CORE).parts) == 1:
        found |= set(re.findall(r"\bsuper::(\w+)", code)) & {rust_room_of(other) for other in RUST_FILES}
    return found


@pytest.mark.parametrize("path", RUST_FILES, ids=lambda path: str(path.relative_to(CORE)))
def test_rust_modules_use_only_what_they_may(path: Path) -> None:
    room = rust_room_of(path)
    if room == "py":
        return
    assert room in RUST, f"{room} needs a row in this test"
    modules = {rust_room_of(other) for other in RUST_FILES}
    assert (used_by(path) & modules) - {room} <= RUST[room]


def test_only_py_knows_python() -> None:
    knowing = {
        rust_room_of(path) for path in RUST_FILES if re.search(r"\bpyo3\b|\bPython\b|\bPy[A-Z]\w+", code_of(path))
    }
    assert knowing <= {"py"}
    assert "py" in {rust_room_of(path) for path in RUST_FILES}


def test_json_knows_no_rule_of_masking() -> None:
    """It is given the word that begins a dispatch block, as a needle."""
    for path in (CORE / "json").rglob("*.rs"):
        assert "dispatch" not in path.read_text(encoding="utf-8").lower(), path


def test_only_the_shapes_name_a_shape() -> None:
    """All others ask it questions, so that a new shape is a new file."""
    for path in RUST_FILES:
        if rust_room_of(path) != "shape":
            assert not re.findall(r"\bShape::[A-Z]\w*", code_of(path)), f"{path} names a variant of Shape"


def test_rust_edges_go_one_way() -> None:
    """The table itself has no circle, so neither has what obeys it."""
    assert circles(RUST) == []


# Files


def circles(edges: dict[str, set[str]]) -> list[str]:
    """What is left when all that imports nothing that is left is taken away, again and again."""
    left = dict(edges)
    while free := [name for name, used in left.items() if not used & left.keys() - {name}]:
        for name in free:
            del left[name]
    return sorted(left)


def tower(page: str, heading: str) -> dict[str, str]:
    """The rooms of a table of docs/design.md, from top to bottom, with what each does."""
    table = page.partition(f"| `{heading}` | what it does |\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[1:]]
    rooms = [(room, job) for names, job in rows for room in re.findall(r"`(\w+)`", names)]
    assert len(dict(rooms)) == len(rooms), "a room has one row"
    return dict(rooms)


@pytest.mark.parametrize(
    ("heading", "may_use", "files", "room"),
    [("src", RUST, RUST_FILES, rust_room_of), ("python/recede", PYTHON, PYTHON_FILES, room_of)],
    ids=["core", "package"],
)
def test_the_design_shows_a_tower(
    heading: str, may_use: dict[str, set[str]], files: list[Path], room: Callable[[Path], str]
) -> None:
    """Each room has a job that can be said in ten words, and uses rooms above it alone."""
    rooms = tower((ROOT / "docs" / "design.md").read_text(encoding="utf-8"), heading)
    assert rooms.keys() == {room(path) for path in files}
    assert [job for job in rooms.values() if len(job.split()) > 10] == []
    above: set[str] = set()
    for name in rooms:
        assert may_use.get(name, set()) - {name, "_core"} <= above, f"{name} uses a room below it"
        above.add(name)


def test_the_design_names_files_that_exist() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    for path in re.findall(r"\b(?:src|tests|python)/[\w/.]*\w", page):
        assert (ROOT / path).exists(), path


def test_a_circle_is_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) == ["a", "b", "c"]


def test_files_of_the_package_import_each_other_in_no_circle() -> None:
    """A package is its `__init__`; what is imported of the extension is no file of Python."""
    names = {
        ".".join(("recede", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in PYTHON_FILES
    }
    edges = {}
    for file, path in names.items():
        found = {(f"{module}.{name}", module) for module, name in imports_of(path) if name != "_core"}
        edges[file] = {module if module in names else package for module, package in found} & names.keys()
    assert circles(edges) == []


# What an import costs


_LARGE = {"asyncio", "email", "http", "multiprocessing", "rich.console", "ssl", "recede.agent", "recede.turns"}


def loaded_by(code: str) -> set[str]:
    code = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("module", ["recede", "recede.designs", "recede.cli"])
def test_an_import_loads_the_core_alone(module: str) -> None:
    """Even typing takes twenty times as long; what needs more imports it then."""
    ours = {name for name in loaded_by(f"import {module}") - loaded_by("pass") if name.startswith("recede")}
    assert ours == {"recede", "recede._engine", "recede._core", module}
    assert not {"typing", "re", "inspect", "logging"} & loaded_by(f"import {module}")


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--version"], _LARGE | {"rich", "recede.costs", "recede.session", "recede.transcripts"}),
        (["prices"], _LARGE),
        (["reduce", "FILE"], _LARGE),
        (["stats", "FILE"], _LARGE),
        (["replay", "FILE"], _LARGE),
        (["proxy", "--port", "x"], {"recede.session", "recede.transcripts"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_loads_what_it_needs(arguments: list[str], unwanted: set[str], tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    file.write_text('[{"role": "user", "content": "Find the bug."}]')
    typed = ["recede", *(str(file) if one == "FILE" else one for one in arguments)]
    loaded = loaded_by(f"sys.argv = {typed!r}; import recede.cli; recede.cli.main()")
    assert "click" in loaded
    assert not unwanted & loaded


@pytest.mark.parametrize("module", ["recede", "recede.designs"])
def test_stubs_have_what_is_imported_on_first_use(module: str) -> None:
    """Under the names of the module, from where it takes them itself."""
    real = import_module(module)
    path = Path(real.__file__ or "").with_suffix(".pyi")
    found = {name: home for home, name in imports_of(path) if home != "recede"}
    assert found.keys() == {*real.__all__}
    for name, home in found.items():
        assert getattr(import_module(home), name) is getattr(real, name)
    modules = {name for home, name in imports_of(path) if home == "recede"}
    assert {name for name in modules if import_module(f"recede.{name}") is not getattr(recede, name)} == set()


def test_types_of_messages_come_when_they_are_asked_for() -> None:
    code = "import recede; assert 'types' in dir(recede); print(recede.types.ChatMessage)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "ChatMessage" in shown
    with pytest.raises(AttributeError, match="no attribute 'Summarizer'"):
        _ = recede.Summarizer


# Names of the root


def test_the_root_has_few_names_each_of_which_a_package_has() -> None:
    assert len(recede.__all__) <= 15
    public = [import_module(f"recede.{module}") for module in PUBLIC_MODULES]
    for name in set(recede.__all__) - {"__version__", "RecedeError", "StoreError", "TranscriptError"}:
        assert any(getattr(module, name, None) is getattr(recede, name) for module in public), name
