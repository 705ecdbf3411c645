"""The group of all commands. Each command is a file of its own."""

from __future__ import annotations

import click

from recede import __version__
from recede._printable import printable
from recede.cli.about import ABOUT
from recede.cli.prices import prices
from recede.cli.proxy import proxy
from recede.cli.reduce import reduce
from recede.cli.replay import replay
from recede.cli.stats import stats
from recede.cli.store import store


class _Group(click.Group):
    """Without a command it is `recede replay`; Ctrl-C ends every command with 130, as shells have it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help", "--version")):
            args = ["replay", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(130)
        except click.ClickException as error:
            error.message = printable(error.message)  # type: ignore[misc]  # it may name a file of others
            raise


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message=ABOUT, help="Print the version, the engine and the scanner, and exit.")
def recede() -> None:
    """Keep the history of a long-running LLM agent small.

    Replaces old tool outputs with a one-line placeholder; calls and results stay paired.

    FILES are histories as agents write them: sessions of Claude Code, Codex, pi and Gemini CLI,
    trajectories of SWE-agent, mini-SWE-agent and OpenHands, logs of inspect_ai and tau-bench, traces
    of OpenTelemetry, OpenInference and LangSmith, rows of datasets, JSON arrays of messages, request
    bodies, JSON Lines; each may be gzipped. The format is detected from the content. `-` is standard
    input. `recede` alone is `recede replay`: what your own sessions have cost, and what they would
    have.

    Exit codes: 0, 1 for bad input (a line on standard error for each file says what and where), 2 for wrong
    usage, 130 for Ctrl-C.
    """


recede.add_command(prices)
recede.add_command(proxy)
recede.add_command(reduce)
recede.add_command(replay)
recede.add_command(stats)
recede.add_command(store)
