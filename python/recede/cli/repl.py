"""The loop of `recede chat`: runs commands, and gives other lines to the other side."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recede import History, StoreError, TranscriptError, approx_tokens, mask_old_observations
from recede._files import is_same_file
from recede.cli.speakers import Speaker, number_in, percent_less
from recede.cli.spoken import clipped, harmless, spoken
from recede.cli.terminal import Terminal, spare_file

# The number of characters that /history and /view show without `all`.
_FIRST_CHARS = 2_000
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


class Repl:
    """The loop."""

    def __init__(
        self,
        terminal: Terminal,
        speaker: Speaker,
        keep: int,
        *,
        has_store: bool = False,
        recording: str | None = None,
    ) -> None:
        """Take where lines come from, who answers, how many results a mask keeps, and the file that is played."""
        self._terminal = terminal
        self._keep = keep
        self._speaker = speaker
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
            f"all requests so far: {sent:,} tokens instead of {raw:,}, {percent_less(sent, raw)} less"
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
        number = number_in(argument.removeprefix("#"))
        try:
            text = self._speaker.history.recall(argument if number is None else number)
        except LookupError as error:
            self._terminal.say(f"[{clipped(str(error.args[0]), _MOST_CHARS)}]")
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


def _line_of(error: BaseException) -> str:
    """An error on one line."""
    return clipped(f"{type(error).__name__}: {error}", _MOST_CHARS)
