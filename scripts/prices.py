"""`make prices`: hold the table of models against the package genai-prices, and list what differs.

The package is pinned in pyproject.toml; a newer one may know more. It fetches nothing.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

from genai_prices.data_snapshot import get_snapshot

from recede._models import EARLIER_ROWS, LATER_ROWS, MODEL_ROWS, Model, model_row

PROVIDERS = {"gemini": "google"}
FIELDS = {
    "input": "input_mtok",
    "cached": "cache_read_mtok",
    "write": "cache_write_mtok",
    "write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
}


def quoted(name: str, row: Model, time: datetime) -> dict[str, float] | None:
    """The package's prices of a model at a moment; None if it has none. Of fast ones it has no prices."""
    model: Any = None
    for theirs in (name, f"{name}-preview"):
        with suppress(LookupError):
            _, model = get_snapshot().find_provider_model(theirs, None, PROVIDERS.get(row.provider, row.provider), None)
            break
    if model is None or (name.endswith("-fast") and not model.id.endswith("-fast")):
        return None
    prices: Any = model.get_prices(time)
    found = {field: getattr(prices, theirs, None) for field, theirs in FIELDS.items()}
    return {field: float(getattr(price, "base", price)) for field, price in found.items() if price is not None}


def differences(time: datetime) -> tuple[int, list[str]]:
    """How many rows agree at a moment, and a line for each other one."""
    agreed, lines = 0, []
    for name in MODEL_ROWS:
        row = model_row(name, time.timestamp())
        assert row is not None
        theirs = quoted(name, row, time)
        if theirs is None:
            lines.append(f"{name}: not in the package")
            continue
        other = {field: price for field, price in theirs.items() if abs(price - getattr(row, field)) > 1e-9}
        agreed += not other
        if other:
            words = (f"{field} {getattr(row, field):g} here, {price:g} there" for field, price in other.items())
            lines.append(f"{name}: {', '.join(words)}")
    return agreed, lines


def main() -> None:
    """Compare today's prices, and those of each day on which one changes."""
    days = {day for rows in (EARLIER_ROWS, LATER_ROWS) for changes in rows.values() for day, _ in changes}
    times = [datetime.now(timezone.utc), *(datetime.fromisoformat(f"{day}T12:00+00:00") for day in sorted(days))]
    known: set[str] = set()
    for time in times:
        agreed, lines = differences(time)
        print(f"{time:%Y-%m-%d}: {agreed} of {len(MODEL_ROWS)} rows agree with genai-prices {version('genai-prices')}")
        for line in lines:
            if line not in known:
                print(f"  {line}")
        known |= {*lines}


if __name__ == "__main__":
    main()
