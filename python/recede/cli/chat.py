"""`recede chat`: chat with a model or play a recorded session, and see what is masked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click

from recede import Conversation, History, TurnStore, transcripts
from recede.cli.errors import errors_of
from recede.cli.folder import Folder
from recede.cli.notices import log_shown
from recede.cli.options import policy_option
from recede.cli.reading import max_bytes_option
from recede.cli.repl import Repl
from recede.cli.speakers import Played, Talk
from recede.cli.terminal import Terminal

Boundary = Literal["sliding", "break_even"]

_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_TOUR = Path(__file__).with_name("tour.json")
# A recording is shorter than the sessions that budgets are for.
_TOUR_TOKENS = 2_000
_TOKENS = 8_000


@click.command(short_help="Chat with a model or play a recorded session, and see what is masked.")
@click.option(
    "--provider",
    type=click.Choice(tuple(_KEYS)),
    metavar="NAME",
    help="anthropic or openai; by default whose key is set.",
)
@click.option("--model", metavar="NAME", help="The model, as the provider names it.")
@click.option("--base-url", metavar="URL", help="Another server that speaks as the provider does.")
@click.option("--system", metavar="TEXT", help="The system prompt.")
@click.option(
    "--max-tokens", type=click.IntRange(min=1), default=4_096, show_default=True, metavar="N", help="Of one answer."
)
@click.option(
    "--tools", type=click.Choice(["files"]), metavar="files", help="Offer tools to list, read and search files."
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    show_default=True,
    metavar="DIR",
    help="The folder that the tools never leave.",
)
@policy_option("keep", "--keep", help="The newest N results stay raw.", default=4, show_default=True)
@click.option(
    "--threshold-tokens",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"A history of at most this many tokens is sent raw.  [default: {_TOKENS}; of a recording {_TOUR_TOKENS}]",
)
@click.option(
    "--boundary",
    type=click.Choice(["sliding", "break_even"]),
    metavar="WHEN",
    help="When old results are masked: sliding, at each request; break_even, when a prompt cache makes it pay.  "
    "[default: sliding; of a recording break_even]",
)
@click.option("--store", metavar="FILE", help="Keep the session in this turn store, and resume what it has.")
@click.option("--replay", metavar="FILE", help="Play this session turn by turn instead of talking with a model.")
@max_bytes_option
@click.option("--tour", is_flag=True, help="Play the recorded session that comes with recede, also where a key is set.")
def chat(
    provider: str | None,
    model: str | None,
    base_url: str | None,
    system: str | None,
    max_tokens: int,
    tools: str | None,
    folder: str,
    keep: int,
    threshold_tokens: int | None,
    boundary: Boundary | None,
    store: str | None,
    replay: str | None,
    max_bytes: int,
    tour: bool,
) -> None:
    """Chat with a model, and see what is kept and what is sent.

    The key is taken from ANTHROPIC_API_KEY or OPENAI_API_KEY. Without one a recorded session is
    played turn by turn: a tour of what masking does, which needs no network. /help lists the
    commands. Ctrl-C ends a request, Ctrl-D the session.

    \b
    Example:
      recede chat
      recede chat --model claude-sonnet-4-5 --tools files
      recede chat --provider openai --base-url http://localhost:11434/v1 --model qwen3
      recede chat --model claude-sonnet-4-5 --store session.store
    """
    terminal = Terminal()
    if provider is None:
        provider = next((name for name, key in _KEYS.items() if os.environ.get(key)), "anthropic")
    key = os.environ.get(_KEYS[provider])
    is_played = bool(replay or tour or not (key or base_url))
    if not is_played and model is None:
        raise click.UsageError(f"give --model, the name of a model of {provider}; or --tour, which needs none")
    if threshold_tokens is None:
        threshold_tokens = _TOUR_TOKENS if is_played else _TOKENS
    history = _history(keep, threshold_tokens, boundary or ("break_even" if is_played else "sliding"), store)
    if is_played:
        recording = replay or str(_TOUR)
        with errors_of(recording):
            messages = transcripts.read(recording, max_bytes=max_bytes).messages
        if history.messages != messages[: len(history)]:
            raise click.UsageError("the store holds another session than the one that is to be played")
        if replay:
            greeting = f"{replay} is played turn by turn."
        elif tour:
            greeting = "A recorded session is played turn by turn."
        else:
            greeting = f"No key is set ({' or '.join(_KEYS.values())}): a recorded session is played instead."
        played = Played(terminal, history, messages)
        Repl(terminal, played, keep, has_store=store is not None, recording=recording).run(greeting)
        return
    files = Folder(folder) if tools else None
    with _client(provider, key, base_url) as client:
        talk = Talk(terminal, files)
        click.get_current_context().with_resource(log_shown(talk.note))  # such as that an answer was cut
        request: dict[str, Any] = {"model": model}
        if provider == "anthropic":
            create, request["max_tokens"] = client.messages.create, max_tokens
        else:
            create, request["max_completion_tokens"] = client.chat.completions.create, max_tokens
        definitions = [*files.definitions(provider), history.tool_definition(provider)] if files else []
        talk.conversation = Conversation(
            talk.counted(create),
            tools=definitions,
            run_tool=talk.run_tool,
            system=system,
            history=history,
            shape=provider,  # type: ignore[arg-type]
            on_text=talk.hear,
            **request,
        )
        Repl(terminal, talk, keep, has_store=store is not None).run(
            f"{provider}, {model}{f', files of {folder}' if files else ''}."
        )


def _history(keep: int, threshold_tokens: int, boundary: Boundary, path: str | None) -> History:
    """An empty history, or one that resumes from a store. The store is closed with the command."""
    with errors_of(path or ""):
        store = None if path is None else click.get_current_context().with_resource(_opened(path))
        return History(
            keep=keep, threshold_tokens=threshold_tokens, boundary=boundary, recall_handles=True, store=store
        )


@contextmanager
def _opened(path: str) -> Iterator[TurnStore]:
    """The store of a session; errors on closing it are reported as a line, too."""
    with errors_of(path), TurnStore(path, sync_every=1) as store:
        yield store


def _client(provider: str, key: str | None, base_url: str | None) -> Any:
    # A local server may not need a key, but the clients do.
    options: dict[str, Any] = {"api_key": key or "none", "base_url": base_url}
    try:
        if provider == "anthropic":
            from anthropic import Anthropic

            return Anthropic(**options)
        from openai import OpenAI

        return OpenAI(**options)
    except ModuleNotFoundError:
        raise click.UsageError(f"this needs the client of {provider}: pip install 'recede[chat]'") from None
