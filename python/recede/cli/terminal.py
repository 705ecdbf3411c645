"""Where `recede chat` reads lines from and writes to: a terminal with line editing, or a pipe."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

__all__ = ["Terminal"]

_PROMPT = "> "


class Terminal:
    """Reads lines, with editing and a history of them on a terminal, and says what is to be said."""

    def __init__(self) -> None:
        """Take standard input; on a terminal, prompt_toolkit edits its lines."""
        self._session: PromptSession[str] | None = None
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        if sys.stdin.isatty() and sys.stdout.isatty():
            try:
                from prompt_toolkit import PromptSession
            except ModuleNotFoundError:
                raise click.UsageError("line editing needs prompt_toolkit: pip install 'recede[chat]'") from None
            self._session = PromptSession(history=_lines_typed(), enable_open_in_editor=False)

    def read(self, status: Callable[[], str], hint: str) -> str:
        """A line without its end.

        Args:
            status: what the status line says.
            hint: what stands where nothing is typed yet.

        Raises:
            EOFError: there is no further line.
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        if self._session is None:
            self.say(status())
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            self.say(_PROMPT + line.rstrip("\r\n"))
            return line.rstrip("\r\n")
        return self._session.prompt(_PROMPT, bottom_toolbar=status, placeholder=hint, reserve_space_for_menu=0)

    def say(self, text: str, end: str = "\n") -> None:
        """Write a text."""
        click.echo(text + end, nl=False)


def _lines_typed() -> Any:
    """The lines of earlier sessions, readable by their owner alone; of this one where there is no place for them."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    file = Path(state) / "recede" / "chat_history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
