"""How `recede proxy -- COMMAND` points the command at the proxy, for this run alone, without changing settings."""

from __future__ import annotations

import json
import shlex
import shutil
import urllib.parse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from recede._agents import AGENTS, Agent
from recede.proxy._routes import UPSTREAMS, checked_upstream

__all__ = ["Pointed", "Started", "always", "given_urls", "nothing_sent", "pointed", "started", "upstreams_of"]

_LASTING = "http://127.0.0.1:8787"  # of `recede proxy` alone; the port of a run with a command ends with it
# Programs that run a package, and their own words before its name.
_RUNNERS: dict[str, tuple[str, ...]] = {
    "npx": (),
    "bunx": (),
    "pnpx": (),
    "uvx": (),
    "bun": ("x",),
    "npm": ("exec", "x"),
    "pipx": ("run",),
    "pnpm": ("dlx", "exec"),
    "uv": ("tool", "run"),
    "yarn": ("dlx", "exec"),
}
_FOLDERS = ("node_modules", "tools", "venvs")  # in which npm, uv and pipx have a folder for each package
_WITH_VALUE = ("-p", "--package", "--from", "--python", "--with", "--spec")

# The variables by which clients find a provider.
_VARIABLES = {
    "ANTHROPIC_BASE_URL": "anthropic",
    "OPENAI_BASE_URL": "openai",
    "OPENAI_API_BASE": "openai",
    "GOOGLE_GEMINI_BASE_URL": "gemini",
}
_SUFFIXES = {"openai": "/v1"}  # what their base URL has after the host, unless it is given without


class Pointed(NamedTuple):
    """A command whose requests go to the proxy."""

    command: tuple[str, ...]  # with its arguments
    environment: dict[str, str]
    said: str  # what was done, in one sentence


class Started(NamedTuple):
    """What a command starts."""

    agent: Agent | None  # None if it is not known
    place: int = 0  # in the command: the first word, or what a runner of packages is given
    converses: bool = True  # sends requests to a model; with some words an agent lists its extensions, or the like


def started(command: tuple[str, ...]) -> Started:
    """Find the agent that a command starts: by its package, also that in which it is installed, or by its name.

    Example:
        >>> from recede.proxy.launch import started
        >>> started(("npx", "-y", "@openai/codex@latest", "exec")).agent.title
        'Codex'
    """
    if not command:
        return Started(None)
    place = _place_in(command)
    name = command[place].lower()
    package = name[: name.find("@", 1)] if "@" in name[1:] else name  # without its version
    agent = _agent_in([package]) or _agent_in(_installed(command[place])) or AGENTS.get(Path(name).stem)
    if place and agent is None:
        place = 0
    following = command[place + 1 : place + 2]
    return Started(
        agent, place, agent is not None and not {*following} & {*agent.subcommands, "--version", "--help", "-h"}
    )


def _agent_in(packages: Iterable[str]) -> Agent | None:
    return next((one for one in AGENTS.values() if one.package and one.package in packages), None)


def _installed(program: str) -> list[str]:
    """List the package that a program is installed in by npm, uv or pipx, with and without its scope."""
    found = shutil.which(program)
    names = Path(found).resolve().parts if found else ()
    place = max((place for place, name in enumerate(names) if name in _FOLDERS), default=None)
    return [] if place is None else ["/".join(names[place + 1 : end]) for end in (place + 2, place + 3)]


def _place_in(command: tuple[str, ...]) -> int:
    """The place of what a runner of packages runs; 0 if the command is no runner."""
    own = _RUNNERS.get(Path(command[0]).stem.lower())
    place = 1
    while own is not None and place < len(command):
        word = command[place]
        if word in _WITH_VALUE:
            place += 2
        elif word.startswith("-") or word in own:
            place += 1
        else:
            return place
    return 0


def given_urls(environment: Mapping[str, str]) -> dict[str, str]:
    """Find the base URLs that a command would have used by itself, by provider; raise ValueError for none."""
    found: dict[str, str] = {}
    for name, provider in _VARIABLES.items():
        url = environment.get(name, "").rstrip("/")
        if url:
            try:
                found.setdefault(provider, checked_upstream(url))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
    return found


def upstreams_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return the upstreams of requests for these base URLs."""
    return {provider: url.removesuffix(_SUFFIXES.get(provider, "")) for provider, url in given.items()}


def pointed(
    command: tuple[str, ...], url: str, environment: Mapping[str, str], upstreams: Mapping[str, str]
) -> Pointed:
    """Point a command at the proxy of this URL, which has these upstreams."""
    agent, place, converses = started(command)
    variables = {**environment, **_addresses(url, environment)}
    names = ["ANTHROPIC_BASE_URL, OPENAI_BASE_URL and GOOGLE_GEMINI_BASE_URL"]
    if agent is None:
        return Pointed(command, variables, f"{command[0]} has the proxy in {names[0]} for this run")
    folder = Path(__file__).parent
    arguments = tuple(one.format(url=url, folder=folder) for one in agent.arguments if converses)
    if arguments:
        names.append(" ".join(arguments))
    if agent.config is not None:
        name, settings = agent.config
        variables[name] = _merged(environment.get(name, ""), _filled(settings, url))
        names.append(name)
    is_usual = agent.provider is not None and upstreams[agent.provider] == UPSTREAMS[agent.provider]
    for name, value in agent.variables if is_usual else ():
        if name not in environment:
            variables[name] = value
            names.append(f"{name}={value}")
    said = f"{agent.title} has the proxy in {', '.join(names)} for this run"
    if not agent.is_pointed:
        said = f"{agent.title} is not pointed at the proxy: {_otherwise(agent)}"
    if not agent.sends_results:
        said = f"{agent.title} sends no tool results, so nothing of its requests can be masked"
    first = place + 1 + (place > 0 and command[place + 1 : place + 2] == ("--",))
    return Pointed((*command[:first], *arguments, *command[first:]), variables, said)


def nothing_sent(command: tuple[str, ...]) -> str:
    """A sentence on what to do about a command that has sent nothing to the proxy; empty if that is as it should be."""
    agent, place, converses = started(command)
    if agent is not None and converses:
        return f"{agent.title} has sent nothing to the proxy; if it has worked, {_otherwise(agent)}"
    if agent is not None or not command:
        return ""
    why = "its address is in its code, or in settings of its own"
    setting = f"set its base URL to {_LASTING} ({_LASTING}/v1 for OpenAI's API)"
    return (
        f"{Path(command[place]).name} has sent nothing to the proxy; if it has asked a model, {_lasting(why, setting)}"
    )


def _otherwise(agent: Agent) -> str:
    """Why the requests of an agent may not come, and what lasts."""
    if not agent.setting:
        return agent.otherwise or "it takes its address from elsewhere"
    return _lasting(agent.otherwise, agent.setting.format(url=_LASTING))


def _lasting(why: str, setting: str) -> str:
    service = "start `recede proxy` (with `--upstream URL` if its provider is not Anthropic, OpenAI or Google)"
    return f"{why}: {service}, and {setting}"


def always(command: tuple[str, ...], options: tuple[str, ...] = ()) -> str:
    """A line for the settings of a shell, by which an agent always has the proxy; empty if the agent is not known.

    The proxy has these options: without its ``--upstream``, keys would go to another provider.
    """
    agent, place, converses = started(command)
    if agent is None or not agent.is_pointed or not converses:
        return ""
    name = Path(command[0]).stem if not place else next(name for name, one in AGENTS.items() if one is agent)
    own = options[:-1] if options[-1:] == ("--",) else options
    run = shlex.join(("recede", "proxy", *own, "--", *(command[: place + 1] if place else (name,))))
    return f"to always do so: alias {name}={shlex.quote(run)}"


def _addresses(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that send requests to the proxy, and directly to it."""
    found, given = {}, given_urls(environment)
    for name, provider in _VARIABLES.items():
        suffix = _SUFFIXES.get(provider, "")
        found[name] = url + suffix if given.get(provider, suffix).endswith(suffix) else url
    host = urllib.parse.urlsplit(url).hostname or ""
    without = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    for name in ("NO_PROXY", "no_proxy"):
        kept = environment.get(name) or without
        found[name] = kept if kept == "*" else ",".join(filter(None, (kept, host)))
    return found


def _filled(value: Any, url: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(one, url) for name, one in value.items()}
    return value.format(url=url)


def _merged(given: str, settings: Any) -> str:
    """Merge settings over given JSON settings; given text that cannot be read as an object is dropped."""

    def over(below: Any, above: Any) -> Any:
        if not isinstance(below, dict) or not isinstance(above, dict):
            return above
        return {**below, **{name: over(below.get(name), one) for name, one in above.items()}}

    try:
        return json.dumps(over(json.loads(given or "{}"), settings))
    except (ValueError, RecursionError):
        return json.dumps(settings)
