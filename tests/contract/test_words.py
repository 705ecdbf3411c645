"""Code and pages use plain technical English: each of these words has a standard term."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

# word -> what to write instead
_INSTEAD = {
    r"behind\b": "after, following",
    r"in front of\b": "before, preceding",
    r"anew\b": "again, from scratch, rebuild",
    r"(?:dearer|dearest)\b": "costs more than, the most expensive",
    r"(?:lets? go|letting go)\b": "evict, drop from memory, release",
    r"(?:go(?:es)? on|going on|went on|gone on)\b": "resume, continue",
    r"(?:(?:shown|shows?) otherwise)\b": "rendered, changed",
    r"otherwise than\b": "differently from",
    r"(?:worth its while|(?:pays?|paid) for (?:itself|themselves))\b": "pays off, breaks even",
    r"some (?=[0-9])": "about",
    r"some (?=microseconds|milliseconds)": "a few",
    r"(?:tells?|telling|told)\b": "report, detect, return",
    r"(?:stands?|stood)\b": "is, is stored in, represents",
    r"looked at\b": "read, parsed, validated",
}

# (file, text of the line) -> why the word is right there
_ALLOWED: dict[tuple[str, str], str] = {}

# Paths whose words have not been revised yet.
_TO_DO: tuple[str, ...] = ()

_WORD = re.compile("|".join(rf"(?P<w{n}>\b(?:{word}))" for n, word in enumerate(_INSTEAD)), re.IGNORECASE)


def _files() -> list[str]:
    found = [
        path
        for pattern in ("src/**/*.rs", "python/**/*.py", "python/**/*.pyi", "docs/**/*.md")
        for path in ROOT.glob(pattern)
    ]
    found += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def _findings(name: str, text: str) -> list[str]:
    instead = list(_INSTEAD.values())
    return [
        f"{name}:{number}: {match[0]!r}, write: {instead[int(str(match.lastgroup)[1:])]}"
        for number, line in enumerate(text.splitlines(), 1)
        for match in _WORD.finditer(line)
        if not any(name == file and part in line for file, part in _ALLOWED)
    ]


def test_words_replaced_by_standard_terms_are_not_used() -> None:
    found = [
        finding
        for name in _files()
        if not name.startswith(_TO_DO)
        for finding in _findings(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_findings_name_line_and_replacement() -> None:
    text = "all good\nA retold story, standing behind it; it pays for itself in some 20 µs"
    assert [finding.partition(", write: ")[0] for finding in _findings("a.md", text)] == [
        "a.md:2: 'behind'",
        "a.md:2: 'pays for itself'",
        "a.md:2: 'some '",
    ]


def test_exceptions_are_few_and_needed() -> None:
    assert len(_ALLOWED) <= 10
    for (name, part), reason in _ALLOWED.items():
        lines = [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if part in line]
        assert any(_WORD.search(line) for line in lines), f"{name}: {part!r} needs no exception ({reason})"


def test_paths_to_do_have_findings() -> None:
    """A path that is done leaves the list."""
    for prefix in _TO_DO:
        names = [name for name in _files() if name.startswith(prefix)]
        assert any(_findings(name, (ROOT / name).read_text(encoding="utf-8")) for name in names), prefix


_PRONOUN = re.compile("(?:What|Which|Where|Whose|Of|Its|Their|Those|That|The same|It|They|Some|Them) ")
_RUST_DOC = re.compile(r"\s*//[/!] (.*)")


def _first_lines(path: Path) -> list[str]:
    """The first line of each docstring, and of each run of doc comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return re.findall(r'^[ ]*"""(.+)', text, re.MULTILINE)
    lines = text.splitlines()
    runs = [line for before, line in zip(["", *lines], lines, strict=False) if not before.lstrip().startswith("//")]
    return [found[1] for found in map(_RUST_DOC.match, runs) if found]


def test_first_lines_name_their_noun() -> None:
    paths = [*(ROOT / "src").rglob("*.rs"), *(ROOT / "python").rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {line}" for path in paths for line in _first_lines(path) if _PRONOUN.match(line)
    ]
    assert not found, "begin with the noun, or with a verb:\n" + "\n".join(found)
