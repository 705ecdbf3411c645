"""What recorded agents quote from old results: tables of docs/quality.md and README.md, a control by permutation.

python benches/misses.py                    share of requests by window, and cost and share where masking breaks even
python benches/misses.py --table short      cost and share of long and short sessions, where masking breaks even
python benches/misses.py --table control    the same rule where each result is one of another session: false positives
python benches/misses.py --write OUT        the texts of each context, for `cargo bench --bench misses`
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from recorded import files

from recede import transcripts
from recede.costs import Misses, Prices, SessionPrices, misses, quoted_share, replay_transcript

WINDOWS = (1, 3, 5, 10, 20, 50)
BREAK_EVEN = (3, 10, 20, 43)
LONG = 30
_OLD = 10
_FORMATS = {"claude_code": "Claude Code", "codex": "Codex", "pi": "pi"}


class Recorded(NamedTuple):
    """A recorded session, and what it quotes."""

    project: str
    session: transcripts.Transcript
    misses: Misses

    @property
    def is_long(self) -> bool:
        """Whether it has as many results as advice needs."""
        return self.misses.results >= LONG


def recorded() -> list[Recorded]:
    """The sessions of the corpus. Their project is what the name of the file begins with."""
    found = [(path, session) for path in files() for session in transcripts.read_all(path)]
    return [Recorded(path.name.partition("_")[0], session, misses(session)) for path, session in found]


def share_of(parts: Iterable[Misses], window: int) -> float:
    """The share of requests of several sessions."""
    parts = list(parts)
    return sum(one.share(window) * one.examined for one in parts) / sum(one.examined for one in parts)


def windows_table(sessions: Sequence[Recorded]) -> list[str]:
    """A row for all sessions, for the long ones, and for agents with long ones."""
    groups = {f"all {len(sessions)} sessions": [one.misses for one in sessions]}
    long = [one.misses for one in sessions if one.is_long]
    groups[f"the {len(long)} with {LONG} results or more"] = long
    for format, title in _FORMATS.items():
        groups[title] = [one.misses for one in sessions if one.session.format == format]
    lines = [f"| | requests | {' | '.join(map(str, WINDOWS))} |", f"|---|--:|{'--:|' * len(WINDOWS)}"]
    for title, group in groups.items():
        shares = " | ".join(f"{100 * share_of(group, window):.1f} %" for window in WINDOWS)
        lines.append(f"| {title} | {sum(one.requests for one in group):,} | {shares} |")
    return lines


def break_even(sessions: Sequence[Recorded], *windows: int) -> Iterator[tuple[str, str]]:
    """Cost of raw and quoted share by window where masking breaks even, at the default prices without output."""
    names = [f"break_even:window={window}" for window in windows]
    options: dict[str, Any] = {"prices": SessionPrices(Prices(output=0), "anthropic"), "cache": "anthropic"}
    replays = [replay_transcript(one.session, names, with_misses=True, **options) for one in sessions]
    for name in names:
        costs = [{cost.policy: cost.cost for cost in one.costs} for one in replays]
        of_raw = sum(one[name] for one in costs) / sum(one["raw"] for one in costs)
        quoted = quoted_share(replays, name)
        assert quoted is not None
        yield f"{100 * of_raw:.0f} %", f"{100 * quoted:.1f} %"


def break_even_table(sessions: Sequence[Recorded]) -> list[str]:
    """The long sessions by window."""
    found = break_even([one for one in sessions if one.is_long], *BREAK_EVEN)
    rows = (f"| {window} | {cost} | {quoted} |" for window, (cost, quoted) in zip(BREAK_EVEN, found, strict=True))
    return ["| window | of raw | quoted |", "|---|--:|--:|", *rows]


def short_table(sessions: Sequence[Recorded]) -> list[str]:
    """The long sessions, and the short ones."""
    lines = [
        f"| {len(sessions)} public sessions | cost of raw | requests that quoted what was masked |",
        "|---|--:|--:|",
    ]
    for is_long, words in ((True, f"with {LONG} results or more"), (False, "shorter ones")):
        group = [one for one in sessions if one.is_long is is_long]
        [(cost, quoted)] = break_even(group, _OLD)
        lines.append(f"| the {len(group)} {words} | {cost} | {quoted} |")
    return lines


def control_table(sessions: Sequence[Recorded]) -> list[str]:
    """Requests that quote old results which their agent never saw: each result is that of another session in its place.

    Of the same project only those requests count that quote nothing of their own results, since these may be alike.
    """
    long = [one for one in sessions if one.is_long and one.session.format in _FORMATS]
    rows: dict[str, tuple[int, int]] = {"another project": (0, 0), "the same project": (0, 0)}
    for one in long:
        own = {quotation.request for quotation in one.misses.quoted}
        for title, (quoted, requests) in rows.items():
            is_same = title == "the same project"
            others = [other for other in long if other is not one and (other.project == one.project) is is_same]
            if not others:
                continue
            texts = [text for other in others for text in result_texts(other.session.messages)]
            found = misses(with_results(one.session, texts))
            old = {quotation.request for quotation in found.quoted if quotation.distance >= _OLD}
            strange = old - (own if is_same else set())
            rows[title] = (quoted + len(strange), requests + found.examined)
    lines = ["| results of | requests | quoted |", "|---|--:|--:|"]
    for title, (quoted, requests) in rows.items():
        lines.append(f"| {title} | {requests:,} | {100 * quoted / max(1, requests):.2f} % |")
    return lines


def places(messages: Sequence[Any]) -> list[tuple[Any, str]]:
    """Where the results of messages are, as holder and key."""
    found: list[tuple[Any, str]] = []
    for message in messages:
        if str(message.get("type", "")).endswith("_call_output"):
            found.append((message, "output"))
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        found += [(block, "content") for block in blocks if block.get("type") == "tool_result"]
    return found


def result_texts(messages: Sequence[Any]) -> list[Any]:
    """What the results say."""
    return [holder.get(key) for holder, key in places(messages)]


def with_results(session: transcripts.Transcript, texts: Sequence[Any]) -> transcripts.Transcript:
    """A session whose results are these, one after the other."""
    other = copy.deepcopy(session)
    shown = [message for compaction in other.compactions for message in compaction.shown]
    for number, (holder, key) in enumerate(places([*other.messages, *shown])):
        holder[key] = texts[number % len(texts)]
    return other


def main() -> None:
    """Print a table, or write the contexts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--table", choices=["windows", "break_even", "short", "control"], default="windows")
    parser.add_argument("--write", metavar="OUT", help="write each context as a line of JSON here")
    given = parser.parse_args()
    sessions = recorded()
    if given.write:
        contexts = [context.messages for one in sessions for context in one.session.contexts]
        lines = "".join(json.dumps(messages, ensure_ascii=False) + "\n" for messages in contexts)
        Path(given.write).write_text(lines, encoding="utf-8")
        return
    tables = {"windows": windows_table, "break_even": break_even_table, "short": short_table, "control": control_table}
    print("\n".join(tables[given.table](sessions)))


if __name__ == "__main__":
    main()
