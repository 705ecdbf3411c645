"""`recede models`: what is assumed of a model at a host, and why."""

from __future__ import annotations

import click

from recede.cli.files import write, write_json
from recede.cli.tables import table
from recede.costs import MODELS, AssumedModel, assumed_model

_FORMS = ("openai", "anthropic", "gemini", "bedrock")


@click.command(short_help="Print what is assumed of a model at a host, and why.")
@click.argument("name", required=False)
@click.option("--host", default="", metavar="HOST", help="The host or base URL that requests go to.")
@click.option(
    "--form",
    type=click.Choice(_FORMS),
    default="openai",
    help="The form of requests, which decides where neither host nor model is known.  [default: openai]",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def models(name: str | None, host: str, form: str, as_json: bool) -> None:
    """Print what recede assumes of model NAME at a host: whose prompt cache, at which price, for how long, and why.

    Without NAME, of all known models.

    \b
    Example:
      recede models claude-opus-5-5
      recede models kimi-k2.7-code --host api.moonshot.ai
    """
    found = {one: assumed_model(one, host, form) for one in ([name] if name is not None else MODELS)}
    if as_json:
        write_json({one: _plain(facts) for one, facts in found.items()})
        return
    if name is not None:
        write(None, _of_one(found[name]).encode())
        return
    headings = ["model", "provider", "cache", "read", "write", "cached from", "an entry lives", "window", "reasoning"]
    write(None, table(headings, [_row(one, facts) for one, facts in found.items()]).encode())


def _plain(facts: AssumedModel) -> dict[str, object]:
    prices = None if facts.prices is None else facts.prices.prices._asdict()
    provider = facts.provider._asdict()
    if provider["ttl_seconds"] == float("inf"):
        provider["ttl_seconds"] = None  # JSON has no infinity
    return {**facts._asdict(), "provider": provider, "prices": prices}


def _row(name: str, facts: AssumedModel) -> list[str]:
    one = facts.provider
    seconds = one.ttl_seconds
    lives = "never cold" if seconds is None or seconds == float("inf") else f"{seconds:,.0f} s"
    prices = f"{one.read:.3g}", f"{one.write:.3g}", f"{one.min_tokens or 0:,} tokens"
    return [name, one.name, one.cache, *prices, lives, f"{facts.window_tokens:,}", facts.kept_reasoning or ""]


def _of_one(facts: AssumedModel) -> str:
    lines = [facts.why]
    if facts.provider.verifies_reasoning:
        lines.append("The provider verifies reasoning: an edit before it makes it void.")
    if facts.prices is None:
        lines.append("Its prices in dollars are not known.")
    else:
        prices, row = facts.prices.prices, facts.prices
        lines.append(
            f"A million tokens cost ${prices.input:g}, ${prices.cached:g} from the cache, ${prices.write:g} written to "
            f"it, ${prices.output:g} of an answer ({row.source}, {row.date})."
        )
    if facts.window_tokens:
        lines.append(f"A request has at most {facts.window_tokens:,} tokens. Reasoning kept: {facts.kept_reasoning}.")
    if facts.small is not None:
        lines.append(f"A small model of the same maker: {facts.small}.")
    return "\n".join([*lines, ""])
