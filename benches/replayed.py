"""What recorded sessions cost, as the documents have it: `python benches/replayed.py managers`.

`formats` is of docs/measured.md, `managers` of docs/managers.md, `others` of docs/alternatives.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from statistics import mean, median
from typing import Any

from figures import cells
from recorded import ROOT, files

from formatting import markdown

Costs = dict[str, dict[str, Any]]

SUMMARY = "summary:every=21,tail=10"
HYBRID = "hybrid:window=10,at=43,tail=10"
_COSTS = ("cost", "cost_uncached")
CLEARING = "clear_tool_uses:trigger=100000,keep=3"


def replayed(*policies: str) -> list[Costs]:
    """What each policy costs by Anthropic's prices and cache: over all long sessions, then of each, with its format."""
    options = [part for policy in policies for part in ("--policy", policy)]
    options += ["--price", "anthropic,output=0,summary=anthropic", "--set", "min_results=30"]
    command = [sys.executable, "-m", "recede.cli", "replay", "--json", *options]
    done = subprocess.run([*command, *map(str, files())], stdout=subprocess.PIPE, check=True)
    report = json.loads(done.stdout)
    return [
        {one["policy"]: {**one, "format": part.get("format")} for one in part["policies"]}
        for part in (report["total"], *report["histories"])
    ]


def percent(share: float) -> str:
    """A share as the commands write it."""
    return f"{share:.0%}".replace("%", " %")


def formats() -> str:
    """What masks of the long sessions cost, by format."""
    policies = (
        "sliding:window=10",
        "stepped:window=10,chunk=10",
        "high_water:window=10,chars=200000",
        "break_even:window=10",
        "break_even:window=10,cache_breakpoint=boundary",
    )
    _, *sessions = replayed(*policies)
    groups: dict[str, list[Costs]] = {}
    for session in sessions:
        groups.setdefault(session["raw"]["format"], []).append(session)
    rows = []
    for name, group in [*groups.items(), ("total", sessions)]:
        for policy in list(group[0])[1:]:
            raw, found = [one["raw"] for one in group], [one[policy] for one in group]
            whole, uncached = (sum(one[key] for one in found) / sum(one[key] for one in raw) for key in _COSTS)
            single = [one["of_raw"] for one in found]
            shares = [percent(share) for share in (whole, mean(single), median(single), max(single))]
            losses = [str(sum(share > 1 for share in single)), percent(uncached)]
            requests = sum(one["usage"]["requests"] for one in raw)
            rows.append([name, f"`{policy}`", f"{len(group):,}", f"{requests:,}", *shares, *losses])
    header = ["format", "policy", "sessions", "requests", "of raw", "mean", "median", "worst", "losses", "no cache"]
    return markdown(header, rows)


def managers() -> str:
    """The columns of the managers that are not the research's."""
    pairs = {
        "masking, M = 10": ("sliding:window=10", "break_even:window=10"),
        "summary, every 21 turns": (SUMMARY, None),
        "hybrid, 10 / 43 / 10": (HYBRID, f"{HYBRID},boundary=break_even"),
    }
    found, *_ = replayed(*(policy for pair in pairs.values() for policy in pair if policy))
    header = [
        "policy",
        "measured, no cache: of raw",
        "under Anthropic's cache: of raw",
        'the same, boundary="break_even"',
    ]
    rows = [
        [
            name,
            percent(found[sliding]["of_raw_uncached"]),
            percent(found[sliding]["of_raw"]),
            percent(found[paying]["of_raw"]) if paying else "",
        ]
        for name, (sliding, paying) in pairs.items()
    ]
    return markdown(header, rows)


def _others() -> Callable[[str], str]:
    policies = (
        "break_even:window=10",
        "break_even:window=3",
        "clear_tool_uses",
        "clear_tool_uses:at_least=20000",
        "clip:chars=4000",
        "summary",
    )
    found, *_ = replayed(*policies)
    return lambda policy: percent(found[policy]["of_raw"])


def _measured(page: str, section: str) -> dict[str, list[str]]:
    """The figures in a section of a page, which slower commands have written, by the first cell of their row."""
    below = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(f"\n## {section}\n")[2]
    rows = [cells(line) for line in below.splitlines() if line.startswith("|")]
    return {"headroom" if name.startswith("headroom") else name: figures for name, *figures in rows[2:]}


def others() -> str:
    """What people use instead: its cost."""
    of_raw = _others()
    headroom, _, _, above = _measured("alternatives.md", "headroom")["headroom"]
    rows = [
        ["recede", f"{of_raw('break_even:window=10')} ({of_raw('break_even:window=3')} with a window of 3)"],
        [
            "Anthropic context editing",
            f"{of_raw(CLEARING)}; {of_raw(f'{CLEARING},at_least=20000')} with `clear_at_least` 20,000",
        ],
        [
            "LangChain ContextEditingMiddleware",
            _measured("measured.md", "What others clear")["LangChain, above 100,000 tokens"][0],
        ],
        ["results that are cut on arrival", f"{of_raw('clip:chars=4000')} (cut at 4,000 characters)"],
        [
            "summarizers of frameworks, such as LangChain's SummarizationMiddleware",
            f"{of_raw(SUMMARY)}, calls included, with one every 21 turns ([summaries.md](summaries.md#measured))",
        ],
        ["headroom", f"{headroom}, {above} sessions above raw: [below](#headroom)"],
    ]
    return markdown(["", "cost"], rows)


TABLES = {one.__name__: one for one in (formats, managers, others)}

if __name__ == "__main__":
    print(TABLES[sys.argv[1]]())
