"""The loop of `recede chat`: runs commands, sends other lines to a model or plays a recording."""

from __future__ import annotations

import contextlib
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from recede import Conversation, History, StoreError, TranscriptError, approx_tokens, mask_old_observations
from recede._files import is_same_file
from recede.agent import Answer
from recede.cli.folder import Folder
from recede.cli.spoken import harmless, spoken
from recede.cli.terminal import Terminal, spare_file

__all__ = ["Played", "Repl", "Talk"]

# The number of characters that /history and /view show without `all`.
_FIRST_CHARS = 2_000
_ENDED = ("end_turn", "stop", "stop_sequence")
# Of an error.
_MOST_CHARS = 300
_OFFER = "[a file to save the session in; Enter for one of ours, Ctrl-C for none] "

_COMMANDS = {
    "/stats": ("", "turns, messages, tokens raw, masked and sent"),
    "/history": ("[all]", "what is kept: its first 2,000 characters, or all"),
    "/view": ("[all]", "what would be sent now, likewise"),
    "/recall": ("ID", "the full text of an observation, by its number or the id of its call"),
    "/retry": ("", "ask again after a request that failed or was interrupted"),
    "/save": ("FILE", "write the session to a file"),
    "/load": ("FILE", "resume a saved session"),
    "/help": ("", "this list"),
    "/quit": ("", "end the session; so does Ctrl-D"),
}


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
        self._terminal.say(f"  → {_clipped(f'{name} {value}')}")
        try:
            if name == "recall":
                result = self.history.recall(value["number"])
            elif self._files is None:
                raise LookupError(f"there is no tool {name!r}")
            else:
                result = self._files.run(name, value)
        except Exception as error:
            self._terminal.say(f"  ← {_clipped(str(error))}")
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

    hint = "Enter plays the next turn, a number so many; /help"
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
        count = _number(line or "1")
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
        less = _less(self.sent_tokens, self.raw_tokens)
        self._terminal.say(
            f"[the recording ends. Its {self._played} requests had {self.sent_tokens:,} tokens instead of "
            f"{self.raw_tokens:,}, {less} less; every call still has its result, and all is kept]"
        )


class Repl:
    """The loop."""

    def __init__(
        self,
        terminal: Terminal,
        speaker: Talk | Played,
        keep: int,
        *,
        has_store: bool = False,
        recording: str | None = None,
    ) -> None:
        """Take where lines come from, who answers, how many results a mask keeps, and the file that is played."""
        self._terminal = terminal
        self._keep = keep
        self._speaker: Speaker = speaker
        self._has_store = has_store
        self._recording = recording

    def run(self, greeting: str) -> None:
        """Read and answer until the end. On an unexpected end, what is only in memory can be saved first."""
        with _ends_raised():
            try:
                self._run(greeting)
            except BaseException as error:
                with contextlib.suppress(Exception):
                    self._rescue(error)
                raise

    def _run(self, greeting: str) -> None:
        self._terminal.say(f"{harmless(greeting)}\n{self._speaker.hint}")
        while True:
            try:
                line = self._terminal.read(self._status, self._speaker.hint)
            except EOFError:
                return
            except KeyboardInterrupt:
                self._terminal.say("[/quit or Ctrl-D ends the session]")
                continue
            try:
                if not line.lstrip().startswith("/"):
                    self._speaker.answer(line)
                elif not self._obey(*line.strip().partition(" ")[::2]):
                    return
            except KeyboardInterrupt:
                self._terminal.say("[interrupted]")
            except StoreError as error:
                self._terminal.say(f"[not in the store yet: {harmless(str(error))}]")
            except Exception as error:  # no line may end the session
                self._terminal.say(f"[{_line_of(error)}]")

    def _rescue(self, error: BaseException) -> None:
        """Save what is only in memory to the file that the user names, or to one that only its owner can read."""
        if self._has_store or self._speaker.is_recorded or not len(self._speaker.history):
            return
        name = ""
        if not isinstance(error, SystemExit):  # after a signal there is nobody to answer
            try:
                name = (self._terminal.ask(f"\n[ended by {_line_of(error)}]\n{_OFFER}") or "").strip()
            except KeyboardInterrupt:
                return
            except Exception:  # there may be no terminal any more
                name = ""
        if not (name and self._is_saved(name)):
            self._is_saved(spare_file())

    def _is_saved(self, file: str | Path) -> bool:
        said, is_saved = f"[saved: {file}; /load resumes it]", True
        try:
            self._speaker.history.save(file)
        except Exception as error:
            said, is_saved = f"[{file}: not saved: {_line_of(error)}]", False
        with contextlib.suppress(Exception):
            self._terminal.say(harmless(said))
        return is_saved

    def _status(self) -> str:
        try:
            return self._figures()
        except Exception as error:  # it is shown at each prompt
            return _line_of(error)

    def _figures(self) -> str:
        stats = self._speaker.history.stats()
        share = stats.view_tokens / max(1, stats.raw_tokens)
        return (
            f"turns {stats.turns} · messages {stats.messages} · raw {stats.raw_tokens:,} tokens · "
            f"sent {stats.view_tokens:,} ({share:.0%}) · masked {stats.masked_count}"
        )

    # Commands

    def _obey(self, command: str, argument: str) -> bool:
        """Do a command; False where it ends the session."""
        argument = argument.strip()
        if command == "/quit":
            return False
        if command not in _COMMANDS:
            self._terminal.say(f"[there is no {harmless(command)}; /help lists the commands]")
        elif _COMMANDS[command][0].isupper() and not argument:
            self._terminal.say(f"[{command} needs {_COMMANDS[command][0]}: {_COMMANDS[command][1]}]")
        else:
            getattr(self, f"_{command[1:]}")(argument)
        return True

    def _help(self, _: str) -> None:
        rows = [(f"{name} {argument}".strip(), what) for name, (argument, what) in _COMMANDS.items()]
        self._terminal.say("\n".join(f"{usage:16}{what}" for usage, what in rows))

    def _stats(self, _: str) -> None:
        history, sent, raw = self._speaker.history, self._speaker.sent_tokens, self._speaker.raw_tokens
        stats = history.stats()
        masked = approx_tokens(mask_old_observations(history.messages, self._keep))
        self._terminal.say(
            f"turns: {stats.turns}, messages: {stats.messages}\n"
            f"raw: {stats.raw_chars:,} chars, about {stats.raw_tokens:,} tokens\n"
            f"masked, all but the newest {self._keep} results: about {masked:,} tokens\n"
            f"sent: {stats.view_chars:,} chars, about {stats.view_tokens:,} tokens, "
            f"{stats.masked_count} observations masked\n"
            f"all requests so far: {sent:,} tokens instead of {raw:,}, {_less(sent, raw)} less"
        )

    def _history(self, argument: str) -> None:
        self._show(self._speaker.history, argument, "/history all")

    def _view(self, argument: str) -> None:
        self._show(self._speaker.view(), argument, "/view all")

    def _show(self, messages: Any, argument: str, command: str) -> None:
        text = "\n".join(f"{who}: {said}" for message in messages for who, said in spoken(message))
        if argument == "all" or len(text) <= _FIRST_CHARS:
            self._terminal.say(harmless(text) or "[nothing yet]")
        else:
            self._terminal.say(f"{harmless(text[:_FIRST_CHARS])}\n[{len(text) - _FIRST_CHARS:,} chars more: {command}]")

    def _recall(self, argument: str) -> None:
        number = _number(argument.removeprefix("#"))
        try:
            text = self._speaker.history.recall(argument if number is None else number)
        except LookupError as error:
            self._terminal.say(f"[{_clipped(str(error.args[0]), _MOST_CHARS)}]")
        else:
            self._terminal.say(harmless(text))

    def _retry(self, _: str) -> None:
        self._speaker.retry()

    def _save(self, argument: str) -> None:
        try:
            if self._recording is not None and is_same_file(argument, self._recording):
                raise ValueError(f"{argument!r} is the recording that is played: save to another file")
            self._speaker.history.save(argument)
        except OSError as error:
            self._terminal.say(f"[{harmless(argument)}: not saved: {error.strerror or error}]")
        except ValueError as error:
            self._terminal.say(f"[not saved: {harmless(str(error))}]")
        else:
            self._terminal.say(f"[saved: {len(self._speaker.history)} messages]")

    def _load(self, argument: str) -> None:
        if self._has_store:
            self._terminal.say("[this session is kept in its store: end it, and load that one without --store]")
            return
        try:
            loaded = History.load(argument)
            loaded.view(), loaded.stats()  # what it cannot do is seen before it takes the place of another
            self._speaker.history = loaded
        except TranscriptError as error:
            self._terminal.say(f"[{harmless(str(error))}]")
        except OSError as error:
            self._terminal.say(f"[{harmless(argument)}: not loaded: {error.strerror or error}]")
        else:
            self._terminal.say(f"[loaded: {len(self._speaker.history)} messages]")


def _less(sent: int, raw: int) -> str:
    """How much less was sent; nothing where nothing was."""
    return f"{1 - sent / raw if raw else 0:.0%}"


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


@contextlib.contextmanager
def _ends_raised() -> Iterator[None]:
    """In it, the signals that end a program and the terminal's going away are a SystemExit."""

    def end(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    before: dict[int, Any] = {}
    try:
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # An ignored signal, as under nohup, stays ignored; and only the main thread may set handlers.
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                with contextlib.suppress(ValueError):
                    before[number] = signal.signal(number, end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _number(text: str) -> int | None:
    """The number in a text; None if it is not a number or is out of range."""
    return int(text) if text.isdecimal() and len(text) < 20 else None


def _line_of(error: BaseException) -> str:
    """An error on one line."""
    return _clipped(f"{type(error).__name__}: {error}", _MOST_CHARS)


def _clipped(text: str, most: int = 100) -> str:
    line = " ".join(harmless(text).split())
    return line if len(line) <= most else f"{line[: most - 2]} …"


def _in_short(who: str, text: str) -> str:
    """A line of a recording as it is played: outputs by their length, the rest in brief."""
    if who == "result":
        first = next((line for line in text.splitlines() if line.strip()), "")
        return f"  ← {len(text):,} chars: {_clipped(first)}"
    if who == "call":
        return f"  → {_clipped(text)}"
    return textwrap.fill(f"{who}: {' '.join(harmless(text).split())}", 100)
