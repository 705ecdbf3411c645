"""`recede proxy`: masks the requests of agents whose code is not yours; what is not typed is in `recede.toml`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import re
import shlex
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from recede import StoreError
from recede._errors import printable
from recede.cli.notices import BadFile, log_shown, say
from recede.cli.options import Whole, given, policy_options, usage_error
from recede.cli.settings import ConfiguredCommand, hosts_of, settings_file, user_folder
from recede.proxy import RequestMasker
from recede.proxy._routes import UPSTREAMS, checked_upstream
from recede.proxy.launch import (
    Plan,
    always,
    destinations,
    given_urls,
    host_of,
    nothing_sent,
    of_project,
    planned,
    pointed,
    started,
    upstreams_of,
)

_PORT = 8787
_MOST_LINES = 10_000  # of the log while a command runs
_FORWARDED = ("SIGUSR1", "SIGUSR2", "SIGWINCH")
_ENDING = ("SIGTERM", "SIGHUP", "SIGQUIT")  # sent to the whole group, the command has them as well
_GROUP_SECONDS = 1.0  # in which a command that has one ends, so that it is not sent a second one


@click.command(
    cls=ConfiguredCommand,
    short_help="Mask the requests of agents whose code is not yours.",
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--port", type=Whole(0, 65_535), metavar="N",
    help="Where to listen; 0 is any free port.  [default: 8787; with a command any free one]",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen on.")
@click.option(
    "--upstream", "upstream", multiple=True, metavar="[NAME=]URL",
    help="Where all requests go, by default to Anthropic, OpenAI or Gemini; with a NAME (anthropic, openai, gemini, "
    "chatgpt) where those of its form go. May be repeated.",
)  # fmt: skip
@policy_options
@click.option(
    "--state", metavar="FILE",
    help="What is known of requests that were sent, up to 72 bytes each, so that a restart changes none; the texts of "
    "--summaries are in a second file beside it. `none`: in memory.  "
    "[default: ~/.local/state/recede/requests]",
)  # fmt: skip
@click.option(
    "--summaries", is_flag=False, flag_value="", metavar="[MODEL]",
    help="Replace old turns by a summary when that pays: of the model of the conversation, or of this one, with the "
    "same key. Not for the login of a subscription.",
)  # fmt: skip
@click.option("--observe", is_flag=True, help="Send requests raw, and estimate what masking would have saved.")
@click.option(
    "--dry-run", is_flag=True, help="Start nothing: say what a COMMAND would get, and where its requests would go."
)
@click.option("-v", "--verbose", is_flag=True, help="A line for each request.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
def proxy(
    port: int | None,
    host: str,
    upstream: tuple[str, ...],
    state: str | None,
    summaries: str | None,
    observe: bool,
    dry_run: bool,
    verbose: bool,
    command: tuple[str, ...],
    **options: Any,
) -> None:
    """Mask old tool outputs in the requests of Claude Code, Codex, Gemini CLI, or any other client.

    The client is pointed at this proxy by its base URL, and the proxy sends on what it gets, with the same
    key. With a COMMAND it sets that for the command alone, and ends when it does, with its exit
    code. http://127.0.0.1:8787/recede/ shows what is saved. Nothing of a request is stored but 72
    bytes: hashes, counts and a time; with --summaries also their texts. What you always want goes
    in the table [proxy] of recede.toml in ~/.config: a line such as keep = 20 for each option;
    --no-keep takes it back for a run.

    \b
    Example:
      recede proxy -- claude
      recede proxy --port 8787
      recede proxy --observe -- gemini
    """
    try:
        from recede.proxy.server import Proxy
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("aiohttp", "multidict", "yarl"):
            raise
        raise click.UsageError("this needs aiohttp: pip install 'recede[cli]'") from None
    if observe or summaries == "none":
        summaries = None
    environment = dict(os.environ)
    try:
        of_all, typed_upstreams = _typed_upstreams(upstream)
        upstreams = upstreams_of(given_urls(environment)) if command and of_all is None else {}
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    plan = planned(command, environment, Path.cwd(), [*UPSTREAMS] if of_all is not None else [*typed_upstreams])
    try:
        own = {"summaries": summaries is not None, "hosts": hosts_of(settings_file()), **given(options)}
        if dry_run:
            RequestMasker(**own)  # it raises what a start would
            _show(command, environment, plan, of_all, {**upstreams, **typed_upstreams})
            return
        _ask_for(plan)
        masker = _masker(state, has_command=bool(command), **own)
    except ValueError as error:
        raise usage_error(error) from None
    if port is None:
        port = 0 if command else _PORT
    try:
        server = Proxy(
            masker,
            upstream=of_all,
            upstreams={**upstreams, **typed_upstreams},
            host=host,
            port=port,
            observe=observe,
            of_command=bool(command),
            agent=started(command).agent,
            addresses={word: one.url for one, word in plan.words.items()},
            command=shlex.join(command[: started(command).place + 1]),
            folder=Path.cwd().name if command else "",
            summaries=summaries or "",
        )
        if summaries is not None:
            writer = summaries or "the model of each conversation"
            say(f"old turns become summaries by {writer} when that pays; not with the login of a subscription")
        if host not in ("127.0.0.1", "::1", "localhost"):
            say(f"anyone who reaches {host} can use this proxy, and see what it saves")
        typed: tuple[str, ...] = click.get_current_context().meta["typed"]
        options_typed = typed[: len(typed) - len(command)]
        with _logged(verbose, held=bool(command)):
            code = asyncio.run(_run(server, command, environment, plan, options_typed))
    except (OSError, ValueError) as error:
        said = str(error)
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            said = f"port {port} of {host} is taken, perhaps by another recede proxy: give --port N, 0 for any free one"
        raise click.UsageError(said) from None
    finally:
        masker.close()
    click.get_current_context().exit(code)


def _typed_upstreams(typed: tuple[str, ...]) -> tuple[str | None, dict[str, str]]:
    """Return the upstream of all requests, if one was typed, and those that were typed with a name."""
    pairs = [re.fullmatch(r"(?:(\w+)=)?(.*)", one, re.DOTALL) for one in typed]
    named = [(found[1], checked_upstream(found[2])) for found in pairs if found]
    unknown = next((name for name, _ in named if name not in (None, *UPSTREAMS)), None)
    if unknown is not None:
        raise ValueError(f"--upstream: no requests are called {unknown!r}; the names are {', '.join(UPSTREAMS)}")
    if len({name for name, _ in named}) < len(named):
        raise ValueError("--upstream: two URLs are for the same requests; NAME=URL names those of one form")
    urls = dict(named)
    return urls.pop(None, None), {name: url for name, url in urls.items() if name is not None}


def _masker(state: str | None, has_command: bool, **options: Any) -> RequestMasker:
    """A masker with this state; an agent starts without one where that cannot be used."""
    try:
        return RequestMasker(state=_state(state), **options)
    except (StoreError, OSError) as error:
        if not has_command:
            raise BadFile(str(error)) from None
        say(f"{error}; pauses between requests are noted in memory alone")
        return RequestMasker(**options)


def _state(given: str | None) -> str | None:
    if given is not None:
        return None if given == "none" else given
    folder = user_folder("XDG_STATE_HOME", ".local/state")
    if folder is None:
        raise OSError("no folder of the user is known: set HOME to a whole path, or give --state FILE")
    folder /= "recede"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder / "requests")


def _ask_for(plan: Plan) -> None:
    """Ask for a typed yes to each address that files of the project alone name: whoever wrote them would get the key.

    Without a terminal nothing is started.
    """
    for one in of_project(plan):
        where = (
            f"{printable(one.source)}, a file of this project, says that requests go to {printable(host_of(one.url))}"
        )
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise click.UsageError(
                f"{where}: type yes to that in a terminal, or give --upstream with the address that you want"
            )
        if click.prompt(f"recede: {where}, and with them the key. Type yes for that", err=True, default="no") != "yes":
            raise click.UsageError("nothing was started: --upstream URL gives another address")


def _show(
    command: tuple[str, ...], environment: dict[str, str], plan: Plan, of_all: str | None, given: dict[str, str]
) -> None:
    """Print what a command would get, and where its requests would go."""
    if not command:
        raise click.UsageError("--dry-run is for a COMMAND: recede proxy --dry-run -- claude")
    done = pointed(command, "http://127.0.0.1:PORT", environment, plan)
    lines = [printable(done.said), *(f"  {printable(one)}" for one in done.added), "requests go to"]
    lines += [f"  {printable(one)}" for one in destinations(plan)]
    for name, url in UPSTREAMS.items():
        by = "as you typed, or a variable says" if name in given else "by --upstream" if of_all else "by default"
        lines.append(f"  {name}: {given.get(name) or of_all or url}, {by}, without an address above")
    lines += [
        f"before it starts, {printable(one.source)} needs a typed yes: the project names {printable(host_of(one.url))}"
        for one in of_project(plan)
    ]
    click.echo("\n".join(lines))


@contextlib.contextmanager
def _throw_away(files: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The paths of files with these texts, by the same names, which its owner alone can read; they are removed."""
    if not files:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="recede-") as folder:
        paths = {}
        for name, text in files.items():
            path = Path(folder, f"{name}.json")
            path.touch(mode=0o600, exist_ok=False)
            path.write_text(text, encoding="utf-8")
            paths[name] = str(path)
        yield paths


async def _run(
    server: Any, command: tuple[str, ...], environment: dict[str, str], plan: Plan, typed: tuple[str, ...]
) -> int:
    await server.start()
    has_started = True
    try:
        if not command:
            say(f"listening on {server.url}, figures at {server.url}/recede/")
            asked = asyncio.Event()
            _at_signals(("SIGTERM", "SIGINT"), lambda _: asked.set())
            await asked.wait()
            say("stopping; running requests may end")
            return 0
        done = pointed(command, server.url, environment, plan)
        say(f"{done.said}; figures at {server.url}/recede/")
        with _throw_away(done.files) as paths:
            return await _child(done.command, {**done.environment, **paths})
    except NotStartedError as error:
        said, code = error.args
        say(said)
        has_started = False
        return int(code)
    finally:
        _at_signals(("SIGTERM", "SIGINT"), lambda _: server.break_off())
        await server.stop()
        if server.has_requests or not command:
            say(server.totals.sentence())
        elif has_started and nothing_sent(command):
            say(nothing_sent(command))
        if server.totals.has_saved and always(command, typed):
            say(always(command, typed))


class NotStartedError(Exception):
    """A command could not be started: what to say, and the exit code that shells give then."""


def _at_signals(names: Iterable[str], call: Callable[[int], object]) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C is a KeyboardInterrupt
        for name in names:
            if hasattr(signal, name):
                loop.add_signal_handler(getattr(signal, name), call, getattr(signal, name))


async def _child(command: tuple[str, ...], environment: dict[str, str]) -> int:
    """The exit code of a command with this terminal; signals to this process are passed on to it."""
    process: asyncio.subprocess.Process | None = None
    loop = asyncio.get_running_loop()
    early: list[int] = []

    def pass_on(number: int) -> None:
        if process is None:
            early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    def pass_on_later(number: int) -> None:
        loop.call_later(_GROUP_SECONDS if process is not None else 0, pass_on, number)

    # Before it starts: a signal that comes at once would end the proxy alone.
    _at_signals(["SIGINT"], lambda _: None)  # the terminal sends it to the command as well
    _at_signals(_FORWARDED, pass_on)
    _at_signals(_ENDING, pass_on_later)
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environment)
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        is_name = code == 127 and os.sep not in command[0]
        why = "no such command: install it, or give its path" if is_name else error.strerror or error
        raise NotStartedError(f"{command[0]}: {why}", code) from None
    for number in early:
        pass_on(number)
    code = await process.wait()
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _logged(verbose: bool, held: bool) -> Iterator[None]:
    """The log on standard error in it; with a command only after it, which has the terminal until then."""
    lines: deque[str] = deque(maxlen=_MOST_LINES)
    count = 0

    def hold(line: str) -> None:
        nonlocal count
        count += 1
        lines.append(line)

    try:
        with log_shown(hold if held else say, logging.INFO if verbose else logging.WARNING):
            yield
    finally:
        if count > len(lines):
            say(f"{count - len(lines):,} earlier lines of the log are dropped")
        for line in lines:
            say(line)
