"""Where `recede chat` reads lines from and writes to: a terminal with line editing, or a pipe."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recede.cli.files import state_folder

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_PROMPT = "> "


class Terminal:
    """Reads lines, with editing and a history of them on a terminal, and says what is to be said."""

    def __init__(self) -> None:
        """Take standard input; on a terminal, prompt_toolkit edits its lines."""
        self._session: PromptSession[str] | None = None
        for stream in (sys.stdin, sys.stdout):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
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
            hint: the placeholder shown before anything is typed.

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

    def ask(self, question: str) -> str | None:
        """The answer to a question, read in the plainest way; None where nobody is there.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        if self._session is None:
            return None
        self.say(question, end="")
        return sys.stdin.readline() or None

    def say(self, text: str, end: str = "\n") -> None:
        """Write a text."""
        click.echo(text + end, nl=False)


def spare_file() -> Path:
    """A new file for a session that would be lost, in a folder that only its owner can open."""
    try:
        state_folder().mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="session-", dir=state_folder())
    except OSError:
        folder = tempfile.mkdtemp(prefix="recede-session-")
    return Path(folder, "session.json")


def _lines_typed() -> Any:
    """The input history of earlier sessions, readable only by its owner; in memory if it cannot be stored."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    file = state_folder() / "chat_history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
