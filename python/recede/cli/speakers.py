"""The other side of `recede chat`: a model, or a recording that is played."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from recede import Conversation, History
from recede.agent import Answer
from recede.cli.folder import Folder
from recede.cli.spoken import clipped, harmless, spoken
from recede.cli.terminal import Terminal

_ENDED = ("end_turn", "stop", "stop_sequence")


class Speaker(Protocol):
    """The other side of the chat."""

    hint: str
    is_recorded: bool
    """Whether what is said is in a file already."""
    sent_tokens: int
    raw_tokens: int

    @property
    def history(self) -> History:
        """What is kept."""

    @history.setter
    def history(self, history: History) -> None: ...

    def view(self) -> list[Any]:
        """What would be sent now."""

    def answer(self, line: str) -> None:
        """Answer a line that is no command; it may be empty."""

    def retry(self) -> None:
        """Ask again."""


class Talk:
    """A model, through a `Conversation`. A failed request is reported and does not end the session."""

    hint = "say something, or /help"
    is_recorded = False
    conversation: Conversation

    def __init__(self, terminal: Terminal, files: Folder | None) -> None:
        """Take the folder whose files the tools may read, if there are tools."""
        self._terminal = terminal
        self._files = files
        self._is_within_line = False
        self.sent_tokens = self.raw_tokens = 0

    @property
    def history(self) -> History:
        """What is kept."""
        return self.conversation.history

    @history.setter
    def history(self, history: History) -> None:
        self.conversation.history = history

    def view(self) -> list[Any]:
        """What would be sent now."""
        return self.conversation.view()

    def answer(self, line: str) -> None:
        """Say the line to the model."""
        if line.strip():
            self._asked(lambda: self.conversation.turn(line))

    def retry(self) -> None:
        """Ask again with what there is."""
        self._asked(self.conversation.resume)

    def counted(self, create: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with each request counted."""

        def counting(**request: Any) -> Any:
            stats = self.history.stats()
            self.raw_tokens += stats.raw_tokens
            self.sent_tokens += stats.view_tokens
            return create(**request)

        return counting

    def hear(self, text: str) -> None:
        """Show a piece of an answer."""
        self._terminal.say(harmless(text), end="")
        self._is_within_line = not text.endswith("\n")

    def note(self, text: str) -> None:
        """Show a line that is not of the model."""
        self._end_line()
        self._terminal.say(f"[{harmless(text)}]")

    def run_tool(self, name: str, value: Any) -> str:
        """Run a tool of the folder, or fetch what was masked."""
        self._end_line()
        self._terminal.say(f"  → {clipped(f'{name} {value}')}")
        try:
            if name == "recall":
                result = self.history.recall(value["number"])
            elif self._files is None:
                raise LookupError(f"there is no tool {name!r}")
            else:
                result = self._files.run(name, value)
        except Exception as error:
            self._terminal.say(f"  ← {clipped(str(error))}")
            raise
        self._terminal.say(f"  ← {len(result):,} chars")
        return result

    def _asked(self, ask: Callable[[], Answer]) -> None:
        try:
            answer = ask()
        except KeyboardInterrupt:
            self._end_line()
            self._terminal.say("[interrupted; what arrived is kept. /retry continues, or say something else]")
        except Exception as error:  # of the client, whose kinds are its own
            self._end_line()
            said = harmless(f"{type(error).__name__}: {error}")
            self._terminal.say(f"[{said}]\n[nothing is lost: /retry asks again, or say something else]")
        else:
            self._end_line()
            if answer.error is not None:
                self._terminal.say(f"[not continued: {harmless(str(answer.error))}; /retry does]")
            elif answer.stop_reason not in _ENDED:
                self._terminal.say(f"[ended by {answer.stop_reason}]")

    def _end_line(self) -> None:
        if self._is_within_line:
            self._terminal.say("")
            self._is_within_line = False


class Played:
    """A recorded session, played turn by turn into a history."""

    hint = "Enter plays the next turn, a number that many; /help"
    is_recorded = True

    def __init__(self, terminal: Terminal, history: History, messages: list[Any]) -> None:
        """Take what is to be played, and a history that is empty or holds the beginning of it."""
        self._terminal = terminal
        self._turns = list(_turns(messages))
        self._played = 0
        there = len(history)
        while there and self._played < len(self._turns):
            turn = self._turns[self._played]
            played, turn[:] = turn[:there], turn[there:]
            there -= len(played)
            self._played += not turn
        self._masked = 0
        self.history = history
        self.sent_tokens = self.raw_tokens = 0

    def view(self) -> list[Any]:
        """What would be sent now."""
        return self.history.view()

    def answer(self, line: str) -> None:
        """Play the next turn, or as many as the line says."""
        line = line.strip()
        if line and not line.isdecimal():
            self._terminal.say("[nobody answers: this is a recording. Enter plays its next turn; /help lists commands]")
            return
        count = number_in(line or "1")
        for _ in range(sys.maxsize if count is None else count):
            if not self._next():
                return

    def retry(self) -> None:
        """A recording has no requests that could fail."""
        self._terminal.say("[this is a recording: Enter plays its next turn]")

    def _next(self) -> bool:
        if self._played == len(self._turns):
            self._terminal.say("[the recording has ended: /view, /history and /recall still work]")
            return False
        turn = self._turns[self._played]
        while turn:
            message = turn.pop(0)  # so that an interruption plays nothing twice
            if _is_agents(message) and (not len(self.history) or not _is_agents(self.history[-1])):
                self._count_request()
            self.history.append(message)
            for who, text in spoken(message):
                self._terminal.say(_in_short(who, text))
        self._played += 1
        if self._played == len(self._turns):
            self._say_total()
        return True

    def _count_request(self) -> None:
        stats = self.history.stats()
        self.raw_tokens += stats.raw_tokens
        self.sent_tokens += stats.view_tokens
        if stats.masked_count > self._masked:
            count, self._masked = stats.masked_count, stats.masked_count
            self._terminal.say(
                f"[{count} old outputs are one line each from this request on: {stats.view_tokens:,} tokens instead of "
                f"{stats.raw_tokens:,}. /view shows them, /recall 1 fetches the first again]"
            )

    def _say_total(self) -> None:
        less = percent_less(self.sent_tokens, self.raw_tokens)
        self._terminal.say(
            f"[the recording ends. Its {self._played} requests had {self.sent_tokens:,} tokens instead of "
            f"{self.raw_tokens:,}, {less} less; every call still has its result, and all is kept]"
        )


def _is_agents(message: Any) -> bool:
    kind = str(message.get("type") or "")
    return message.get("role") == "assistant" or kind.endswith("_call") or kind == "reasoning"


def _turns(messages: list[Any]) -> Iterator[list[Any]]:
    """The messages turn by turn: what was said before a run, the run, and its results."""
    turn: list[Any] = []
    has_run = False
    for place, message in enumerate(messages):
        is_new = _is_agents(message) and not (place and _is_agents(messages[place - 1]))
        is_said = message.get("role") in ("user", "system", "developer") and not any(
            who == "result" for who, _ in spoken(message)
        )
        if has_run and (is_new or is_said):
            yield turn
            turn, has_run = [], False
        turn.append(message)
        has_run = has_run or _is_agents(message)
    if turn:
        yield turn


def _in_short(who: str, text: str) -> str:
    """A line of a recording as it is played: outputs by their length, the rest in brief."""
    if who == "result":
        first = next((line for line in text.splitlines() if line.strip()), "")
        return f"  ← {len(text):,} chars: {clipped(first)}"
    if who == "call":
        return f"  → {clipped(text)}"
    return textwrap.fill(f"{who}: {' '.join(harmless(text).split())}", 100)


def number_in(text: str) -> int | None:
    """The number in a text; None if it is not a number or is out of range."""
    return int(text) if text.isdecimal() and len(text) < 20 else None


def percent_less(sent: int, raw: int) -> str:
    """How much less was sent; nothing where nothing was."""
    return f"{1 - sent / raw if raw else 0:.0%}"
