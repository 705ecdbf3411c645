"""The group of all commands. Each command is a file of its own."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from recede import __version__
from recede._errors import meant, printable
from recede.cli.about import ABOUT


class _Group(click.Group):
    """Imports a command when it is asked for. None is `recede replay`; Ctrl-C ends each with 130, as in shells."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return getattr(import_module(f"recede.cli.{cmd_name}"), cmd_name) if cmd_name in self.commands else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help", "--version")):
            args = ["replay", *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and Path(args[0]).exists():
            ctx.fail(f"no such command: to read {args[0]!r} type recede replay {args[0]}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(130)
        except click.ClickException as error:
            if isinstance(error, click.NoSuchOption) and error.ctx is not None:
                options = [one.opts[-1] for one in error.ctx.command.params if isinstance(one, click.Option)]
                said = meant(error.option_name, options) or f"; it takes {', '.join(options)}"
                error = click.UsageError(
                    f"{error.ctx.command_path} has no option {error.option_name!r}{said}", error.ctx
                )
            if not isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
                error.message = printable(error.message)  # type: ignore[misc]  # it may name a file of others
            raise error from None


@click.group(
    cls=_Group,
    commands=dict.fromkeys(("models", "prices", "proxy", "reduce", "replay", "stats", "store")),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
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
