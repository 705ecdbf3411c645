"""`recede prices`: the known prices of models."""

from __future__ import annotations

from collections.abc import Mapping

import click

from recede.cli.files import write, write_json
from recede.cli.tables import prose, table
from recede.cli.terms import prices_option
from recede.costs import MODELS, ModelPrices


@click.command(short_help="Print the known prices of models, with their dates and sources.")
@prices_option
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON, in the form that --prices reads.")
def prices(own_prices: Mapping[str, ModelPrices], as_json: bool) -> None:
    """Print the prices of models that replays take: US dollars for a million tokens.

    Standard requests; batches, priority and regions have prices of their own.

    \b
    Example:
      recede prices
      recede prices --json > prices.json
      recede replay --prices prices.json
    """
    rows = {**own_prices, **{model: row for model, row in MODELS.items() if model not in own_prices}}
    if as_json:
        figures = {model: {**row.prices._asdict(), **row._asdict()} for model, row in rows.items()}
        for row_figures in figures.values():
            del row_figures["prices"]
        write_json(figures)
        return
    headings = ["model", "input", "cached", "write", "write 1h", "output", "cached from", "date"]
    cells = [
        [
            model,
            *(f"{price:g}" for price in (*row.prices[:3], row.write_1h, row.prices.output)),
            f"{row.prices.min_cached_tokens:,} tokens",
            row.date,
        ]
        for model, row in rows.items()
    ]
    sources = dict.fromkeys(f"{row.provider}: {row.source}" for row in rows.values() if row.source)
    write(None, "\n".join([table(headings, cells), prose([*sources, ""])]).encode())
