"""The group of all commands. Each command is a file of its own."""

from __future__ import annotations

import click

from recede import __version__
from recede.cli.chat import chat
from recede.cli.reduce import reduce
from recede.cli.replay import replay
from recede.cli.stats import stats
from recede.cli.store import store

__all__ = ["recede"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="recede %(version)s", help="Print the version and exit.")
def recede() -> None:
    """Keep the history of a long-running LLM agent small.

    Replaces old tool outputs with a one-line placeholder; calls and results stay paired.

    FILES are histories as agents write them: sessions of Claude Code, Codex, pi and Gemini CLI,
    trajectories of SWE-agent, mini-SWE-agent and OpenHands, logs of inspect_ai and tau-bench, JSON
    arrays of messages, request bodies, JSON Lines; each may be gzipped. The format is detected from
    the content. `-` is standard input.

    Exit codes: 0, 1 for bad input (a line on standard error for each file says what and where), 2 for wrong
    usage.
    """


recede.add_command(chat)
recede.add_command(reduce)
recede.add_command(replay)
recede.add_command(stats)
recede.add_command(store)
