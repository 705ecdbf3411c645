"""Lists the rules of providers and the facts of models that nobody has read again for 60 days; the oldest first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from recede._models import MODEL_ROWS

PAGE = Path(__file__).parent.parent / "docs" / "provider-rules.md"
DAYS = 60
_ROW = re.compile(r"^\| `([\w.]+)` \|.*\| (\S[^|]*) \| (\d{4}-\d\d-\d\d) \|", re.MULTILINE)


def read() -> Iterator[tuple[date, str, str]]:
    """When each rule and each fact of a model was read last, its name, and where."""
    for name, source, day in _ROW.findall(PAGE.read_text(encoding="utf-8")):
        yield date.fromisoformat(day), name, source
    for name, row in MODEL_ROWS.items():
        yield _end_of(row.date), f"prices of {name}", row.source
        if row.reasoning.date:
            yield _end_of(row.reasoning.date), f"reasoning of {name}", row.reasoning.source


def _end_of(day: str) -> date:
    """A day; of a month its last one."""
    if len(day) > len("2026-11"):
        return date.fromisoformat(day)
    year, month = map(int, day.split("-"))
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def main() -> None:
    """Prints a line for each."""
    old = sorted(one for one in read() if date.today() - one[0] > timedelta(days=DAYS))
    for day, name, source in old:
        print(f"{day}  {name}: {source}")
    print(f"{len(old)} of {len(list(read()))} were not read again for {DAYS} days")


if __name__ == "__main__":
    main()
