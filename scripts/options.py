"""Write what follows from the table of options: signatures, the docstring of `reduce`, the table of docs/semantics.md.

`--check` only names the files that are not up to date.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "recede"
# The file alone: a signature that is out of date may be no Python.
_OPTIONS = runpy.run_path(str(PACKAGE / "reduction" / "_options.py"))
OPTIONS = _OPTIONS["OPTIONS"]
_WIDTH = 120

# A `Masker` and what is made of one have `keep` and another default of `boundary`.
_OF_MASKER = frozenset({"keep_results", "boundary"})

# File, function -> the goal whose options it takes, and those that it takes in another way.
SIGNATURES: dict[tuple[str, str], tuple[str, frozenset[str]]] = {
    ("reduction/_reduce.py", "reduce"): ("reduce", frozenset()),
    ("reduction/_reduce.py", "reduce_json"): ("reduce", frozenset()),
    ("reduction/_reduce.py", "HistoryReducer.__init__"): ("reduce", frozenset()),
    ("reduction/_reduce.py", "HistoryReducer.reduce"): ("reduce", frozenset()),
    ("reduction/_reduce.py", "HistoryReducer.reduce_json"): ("reduce", frozenset()),
    ("reduction/_stages.py", "mask_observations"): ("mask", frozenset()),
    ("reduction/_stages.py", "mask_observations_json"): ("mask", frozenset()),
    ("reduction/_stages.py", "summarize_history"): ("summarize", frozenset()),
    ("reduction/_stages.py", "truncate_history"): ("truncate", frozenset()),
    ("reduction/_stages.py", "mask_old_observations"): ("block", frozenset({"keep", "mask_chunk"})),
    ("reduction/_stages.py", "mask_old_observations_json"): ("block", frozenset({"keep", "mask_chunk"})),
    ("agent/_budget.py", "Budget.__init__"): ("block", frozenset({"keep", "mask_chunk", "boundary"})),
    ("masker/_masker.py", "Masker.__init__"): ("mask", _OF_MASKER),
    ("clients/_wrap.py", "wrap"): ("mask", frozenset({"keep_results", "boundary", "provider", "cache_breakpoint"})),
    ("integrations/_shared.py", "Masking.__init__"): (
        "mask",
        _OF_MASKER | {"provider", "cache_breakpoint"},
    ),
    ("session/_history.py", "History.__init__"): ("reduce", frozenset({"token_counter"})),
    ("session/_history.py", "History.from_messages"): ("reduce", frozenset({"token_counter"})),
    ("session/_history.py", "History.from_json"): ("reduce", frozenset({"token_counter"})),
    ("arrow/_reducer.py", "Reducer.__init__"): ("reduce", frozenset({"summarizer", "token_counter"})),
}
# Defaults that are others for a class.
_DEFAULTS = {
    name: {"boundary": boundary, **fills}
    for names, boundary, fills, _ in _OPTIONS["ENTRANCES"]
    for name in names.split(", ")
}
# A `History` takes what these do.
_TAKEN_BY = {
    "reduce": "`reduce`",
    "mask": "`mask_observations`",
    "summarize": "`summarize_history`",
    "truncate": "`truncate_history`",
    "block": "`mask_old_observations`",
}
# The type of `boundary`, also where that has another default and is written by hand.
_ANY_BOUNDARY = re.compile(r'Literal\["sliding", "stepped", [^]]*\]')


def parameters(function: str, goal: str, but: frozenset[str], indent: str) -> str:
    """The options of a goal as keyword parameters, in lines of the width that the project has."""
    defaults = _DEFAULTS.get(function.partition(".")[0], {})
    lines = [indent]
    for name, option in OPTIONS.items():
        if goal in option.goals and name not in but:
            default = repr(defaults.get(name, option.default)).replace("'", '"')
            text = f"{name}: {option.kind.annotation} = {default}, "
            if len(lines[-1]) + len(text) > _WIDTH and lines[-1] != indent:
                lines.append(indent)
            lines[-1] += text
    return "\n".join(line.rstrip() for line in lines)


def with_signature(source: str, function: str, goal: str, but: frozenset[str]) -> str:
    """The source with the parameters of one function after its `*,`."""
    start = source.index(f"\nclass {function.partition('.')[0]}") if "." in function else 0
    # What the function has besides comes first, in lines of its own.
    first = next(name for name, option in OPTIONS.items() if goal in option.goals and name not in but)
    pattern = re.compile(rf"( *)def {function.rpartition('.')[2]}\(\n((?:.*\n)*?.*,)\n( *{first}: (?:.*\n)*?) *\) ->")
    found = pattern.search(source, start)
    assert found is not None, function
    return source[: found.start(3)] + parameters(function, goal, but, found[1] + "    ") + "\n" + source[found.end(3) :]


def documented() -> str:
    """The options in the docstring of `reduce`."""
    return "".join(f"        {name}: {option.help}.\n" for name, option in OPTIONS.items() if "reduce" in option.goals)


def table() -> str:
    """The table of docs/semantics.md."""
    rows = ["| option | default | taken by | what it does |", "|---|---|---|---|"]
    for name, option in OPTIONS.items():
        goals = ", ".join(_TAKEN_BY[goal] for goal in option.goals if goal in _TAKEN_BY)
        rows.append(f"| `{name}` | `{option.default!r}` | {goals} | {option.help} |")
    return "\n".join(rows)


def entry_points() -> str:
    """The table of defaults of docs/semantics.md."""
    rows = ["| entry point | boundary | fill | clip_results | keeps at least |", "|---|---|---|---|---|"]
    for names, boundary, fills, least in _OPTIONS["ENTRANCES"]:
        listed = ", ".join(f"`{name}`" for name in names.split(", "))
        shown = [f"`{fills[name]}`" if name in fills else "" for name in ("fill", "clip_results")]
        rows.append(f"| {listed} | `{boundary}` | {' | '.join(shown)} | {least} |")
    return "\n".join(rows)


def written() -> dict[Path, str]:
    """Each file as it is to be."""
    texts: dict[Path, str] = {}
    for (file, function), (goal, but) in SIGNATURES.items():
        path = PACKAGE / file
        source = texts.get(path) or path.read_text(encoding="utf-8")
        texts[path] = with_signature(source, function, goal, but)
        texts[path] = _ANY_BOUNDARY.sub(OPTIONS["boundary"].kind.annotation, texts[path])
    api, page = PACKAGE / "reduction/_reduce.py", ROOT / "docs" / "semantics.md"
    texts[api] = re.sub(
        r"(?<=        max_input_chars: )(?:.*\n)*?(?=\n    Returns:)",
        lambda _: documented().partition("max_input_chars: ")[2],
        texts[api],
        count=1,
    )
    texts[page] = re.sub(
        r"\| option \| default \| taken by \|.*\n(?:\|.*\n)*",
        lambda _: table() + "\n",
        page.read_text(encoding="utf-8"),
        count=1,
    )
    texts[page] = re.sub(
        r"\| entry point \| boundary \|.*\n(?:\|.*\n)*", lambda _: entry_points() + "\n", texts[page], count=1
    )
    return texts


def main() -> int:
    stale = {path: text for path, text in written().items() if path.read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        print(path.relative_to(ROOT))
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
