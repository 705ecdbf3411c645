"""Advice on what to type: for the agent whose logs these are, for a framework that is recognized, for a plain loop."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from recede.proxy.launch import started

_COMMANDS = {  # formats of known agents
    "claude_code": "claude",
    "codex": "codex",
    "codex_exec": "codex",
    "gemini": "gemini",
    "gemini_stream": "gemini",
    "opencode": "opencode",
    "pi": "pi",
    "qwen_code": "qwen",
}
# Programs with a setting for the address of their provider.
_PROGRAMS = {
    "cline": "Cline",
    "openhands": "OpenHands",
    "openhands_v1": "OpenHands",
    "swe_agent": "SWE-agent",
    "mini_swe": "mini-SWE-agent",
}


class Advice(NamedTuple):
    """What to type for an agent, a framework or "your own loop": a command or Python, and what else is to be done."""

    title: str
    line: str
    note: str = ""


def title_of(format: str) -> str:
    """Name the agent whose sessions have this format."""
    agent = started((_COMMANDS[format],)).agent if format in _COMMANDS else None
    if agent is not None:
        return agent.title
    return _PROGRAMS.get(format) or ("LangChain" if format == "langsmith" else "your own loop")


def advice(
    formats: Iterable[str], textual: Container[str] = (), keep: int = 10, *, summarizes: bool = False
) -> list[Advice]:
    """A line for each origin, in order; agents of the `textual` ones call tools in texts, which a proxy cannot see.

    With `summarizes` it is the line that has summaries of old turns too; `f` in it is a summarizer.
    """
    found = (_advice(format, format in textual, keep, summarizes) for format in formats)
    return list(dict.fromkeys(one._replace(note="") if summarizes else one for one in found))


def _advice(format: str, is_textual: bool, keep: int, summarizes: bool) -> Advice:
    options = f"keep={keep}, summarizer=f" if summarizes else f"keep={keep}"
    title, own = title_of(format), f"recede.History({options})"
    proxy = "recede proxy" if keep == 10 else f"recede proxy --keep {keep}"
    proxy += " --summaries" if summarizes else ""
    if format in _COMMANDS:
        return Advice(title, f"{proxy} -- {_COMMANDS[format]}")
    if format in _PROGRAMS and is_textual:
        return Advice(title, own, "in its loop; no tool calls")
    if format in _PROGRAMS:
        return Advice(title, proxy, "and set its base URL to that address")
    if format == "langsmith":
        middleware = f"RecedeMiddleware({options})"
        return Advice(title, middleware if summarizes else f"create_agent(..., middleware=[{middleware}])")
    return Advice(title, own, "append(...), send view()")
