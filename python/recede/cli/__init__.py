"""The command line, `recede`. It needs the extra: click for its options, rich for its tables, aiohttp for the proxy."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; without the extra, one line says how to get it."""
    try:
        _run()
    except KeyboardInterrupt:  # also while modules are imported
        sys.exit(130)


def _run() -> None:
    try:
        import logging

        from recede.cli.commands import recede

        # Commands warn of a file themselves, with its name.
        logging.getLogger("recede").addHandler(logging.NullHandler())
        sys.setrecursionlimit(5_000)  # recede reads 1,024 levels of nesting, where json stops below 1,000
        recede(prog_name="recede")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        from recede.cli.about import ABOUT

        if sys.argv[1:] == ["--version"]:
            print(ABOUT)
            return
        print(
            "recede: the command line needs its extra: pip install 'recede[cli]', or uvx --from 'recede[cli]' recede "
            "(until there is a release, in a checkout: '.[cli]')",
            file=sys.stderr,
        )
        sys.exit(2)
