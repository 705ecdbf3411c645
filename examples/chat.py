"""A chat that keeps everything and sends old tool outputs as one line each: `recede.designs.Conversation`.

    python examples/chat.py         # plays the recorded session beside this file; needs no key
    python examples/chat.py MODEL   # talks with a model, by the key in ANTHROPIC_API_KEY or OPENAI_API_KEY
    python examples/chat.py MODEL --limit 24000  # no request has more tokens in its messages: cut and summarized, too

The second needs the client: `pip install anthropic`, or `openai`. The model can read the files of the folder that the
chat was started in. ANTHROPIC_BASE_URL or OPENAI_BASE_URL names another server. /help lists the commands.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import recede

with contextlib.suppress(ImportError):
    import readline  # noqa: F401 - lines are edited and remembered

KEEP = 4
FIRST_CHARS = 2_000
MOST_CHARS = 40_000
SESSION = Path(__file__).with_name("session.json")
FOLDER = Path.cwd().resolve()
PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = {
    "list_files": "List the entries of a folder, one a line; '.' is the folder of the chat.",
    "read_file": f"Read the first {MOST_CHARS:,} characters of a text file.",
}
HELP = """\
/stats          turns, and the tokens of the history: raw, masked and sent
/history [all]  what is kept: its first 2,000 characters, or all
/recall ID      the full text of a tool output, by its number, from 1, or the id of its call
/help           this list
/quit           end the chat; so does Ctrl-D
Ctrl-C ends a request; Enter alone asks again, and plays the next turn of a recording."""


# Printing


def show(text: str, end: str = "\n") -> None:
    """Print a text that others wrote, with what a terminal would obey as escapes."""
    print("".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text), end=end, flush=True)


def show_call(name: str, arguments: str) -> None:
    """Print that a tool is called."""
    show(f"[tool] {name}({arguments if len(arguments) <= 200 else f'{arguments[:199]}…'})")


# Who answers: a model or a recording


def talk(model: str, history: recede.History) -> Callable[[str], None]:
    """What says a line to a model, and prints the answer as it arrives."""
    request: dict[str, Any] = {"model": model}
    create: Callable[..., Any]
    if os.environ.get("ANTHROPIC_API_KEY"):
        import anthropic

        shape, create, request["max_tokens"] = "anthropic", anthropic.Anthropic().messages.create, 4_096
    elif os.environ.get("OPENAI_API_KEY"):
        import openai

        shape, create, request["max_completion_tokens"] = "openai", openai.OpenAI().chat.completions.create, 4_096
    else:
        sys.exit("set ANTHROPIC_API_KEY or OPENAI_API_KEY; without a model's name a recorded session is played")
    tools = [history.tool_definition(shape)]
    for name, description in TOOLS.items():
        tool = {"name": name, "description": description}
        if shape == "anthropic":
            tools.append({**tool, "input_schema": PATH})
        else:
            tools.append({"type": "function", "function": {**tool, "parameters": PATH}})

    def run_tool(name: str, arguments: Any) -> str:
        show("")  # what the model says has no line end of its own
        show_call(name, json.dumps(arguments, ensure_ascii=False))
        return history.recall(arguments["handle"]) if name == "recall" else read(name, arguments["path"])

    conversation = recede.designs.Conversation(
        create, tools=tools, run_tool=run_tool, history=history, on_text=lambda text: show(text, end=""), **request
    )

    def say(line: str) -> None:
        answer = conversation.turn(line) if line else conversation.resume()
        show("" if answer.error is None else f"\n[cut: {answer.error}; Enter goes on]")

    return say


def read(tool: str, name: str) -> str:
    """What a tool gives for a path, which must not lead out of the folder, by a link either."""
    path = (FOLDER / name).resolve()
    if not path.is_relative_to(FOLDER):
        raise PermissionError(f"{name} is not in the folder")
    if tool == "list_files":
        return "\n".join(sorted(entry.name + "/" * entry.is_dir() for entry in path.iterdir()))
    if not path.is_file():  # a pipe or a device would be waited for
        raise FileNotFoundError(f"{name} is not a file")
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(MOST_CHARS)


def play(history: recede.History) -> Callable[[str], None]:
    """What plays the next turn of the recording, or as many as a line says."""
    turns = turns_of(json.loads(SESSION.read_text(encoding="utf-8")))

    def say(line: str) -> None:
        if line and not line.isdecimal():
            show("[nobody answers: this is a recording. Enter plays its next turn, a number that many]")
            return
        for _ in range(int(line or 1)):
            turn = next(turns, None)
            if turn is None:
                show("[the recording has ended]")
                return
            for message in turn:
                history.append(message)
                if message["role"] == "tool":
                    show(f"[{len(message['content']):,} characters]")
                    continue
                show(f"{message['role']}: {message['content']}")
                for call in message.get("tool_calls", ()):
                    show_call(call["function"]["name"], call["function"]["arguments"])

    return say


def turns_of(messages: list[Any]) -> Iterator[list[Any]]:
    """The messages up to the results of each answer."""
    places = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    for begin, end in itertools.pairwise([0, *places[1:], len(messages)]):
        yield messages[begin:end]


# The commands


def stats(history: recede.History, _: str) -> None:
    """Print how large the history is, and what masking makes of it, also below the threshold."""
    now = history.stats()
    masked = recede.designs.approx_tokens(recede.designs.mask_old_observations(history.messages, KEEP))
    less = 1 - masked / now.raw_tokens if now.raw_tokens else 0
    show(f"turns: {now.turns}, messages: {now.messages}")
    show(f"raw: about {now.raw_tokens:,} tokens")
    show(f"masked, all but the newest {KEEP} tool outputs: about {masked:,} tokens, {less:.0%} less")
    show(f"sent: about {now.view_tokens:,} tokens, {now.masked_count} tool outputs masked")


def print_history(history: recede.History, argument: str) -> None:
    """Print what is kept."""
    text = json.dumps(json.loads(history.to_json()), ensure_ascii=False, indent=1)
    show(text if argument == "all" else text[:FIRST_CHARS])
    if argument != "all" and len(text) > FIRST_CHARS:
        show(f"[{len(text) - FIRST_CHARS:,} characters more: /history all]")


def recall(history: recede.History, argument: str) -> None:
    """Print a tool output in full."""
    try:
        show(history.recall(argument))
    except LookupError:
        if not argument.removeprefix("#").isdecimal():
            raise
        show(history.recall(int(argument.removeprefix("#"))))


COMMANDS: dict[str, Callable[[recede.History, str], None]] = {
    "/stats": stats,
    "/history": print_history,
    "/recall": recall,
    "/help": lambda history, argument: show(HELP),
}


def arguments() -> argparse.Namespace:
    """What was typed after the name of this file."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("model", nargs="?", help="who answers; without it a recorded session is played")
    parser.add_argument("--limit", type=int, metavar="TOKENS", help="what the messages of a request should not exceed")
    given = parser.parse_args()
    if given.limit is not None and given.limit < 1:
        parser.error(f"--limit is a number of tokens, at least 1, not {given.limit}")
    return given


def main() -> None:
    """Read lines and answer them; none of them ends the chat but /quit."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = arguments()
    if given.limit is None:
        history = recede.designs.Budget(threshold_tokens=8_000, keep=KEEP).history()
    else:
        history = recede.History(keep=KEEP, max_input_tokens=given.limit)
    if given.model:
        say = talk(given.model, history)
        show(f"{given.model}. Say something, or /help.")
    else:
        say = play(history)
        show("No model is named: a recorded session is played. Enter plays a turn, a number that many; /help.")
    while True:
        try:
            line = input("> ").strip()
            command, _, argument = line.partition(" ")
            if command == "/quit":
                return
            if command in COMMANDS:
                COMMANDS[command](history, argument.strip())
            elif command.startswith("/"):
                show(f"[there is no {command}; /help lists the commands]")
            else:
                say(line)
                now = history.stats()
                show(f"[raw {now.raw_tokens:,} tokens, sent {now.view_tokens:,}, {now.masked_count} outputs masked]")
        except EOFError:
            show("")
            return
        except KeyboardInterrupt:
            show("\n[interrupted: what arrived is kept. Enter goes on, /quit ends]")
        except Exception as error:
            show(f"\n[{type(error).__name__}: {error}]")


if __name__ == "__main__":
    main()
