"""What to type for the sessions of an agent, a framework, or a loop of one's own."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from recede.proxy.launch import started
from recede.transcripts._places import COMMANDS_OF_FORMATS, PROGRAMS_OF_FORMATS


class Advice(NamedTuple):
    """What to type for an agent, a framework or "your own loop": a command or Python, and what else is to be done."""

    title: str
    line: str
    note: str = ""


def title_of(format: str) -> str:
    """Name the agent whose sessions have this format."""
    agent = started((COMMANDS_OF_FORMATS[format],)).agent if format in COMMANDS_OF_FORMATS else None
    if agent is not None:
        return agent.title
    return PROGRAMS_OF_FORMATS.get(format) or ("LangChain" if format == "langsmith" else "your own loop")


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
    if format in COMMANDS_OF_FORMATS:
        return Advice(title, f"{proxy} -- {COMMANDS_OF_FORMATS[format]}")
    if format in PROGRAMS_OF_FORMATS and is_textual:
        return Advice(title, own, "in its loop; no tool calls")
    if format in PROGRAMS_OF_FORMATS:
        return Advice(title, proxy, "and set its base URL to that address")
    if format == "langsmith":
        middleware = f"RecedeMiddleware({options})"
        return Advice(title, middleware if summarizes else f"create_agent(..., middleware=[{middleware}])")
    return Advice(title, own, "append(...), send view()")
