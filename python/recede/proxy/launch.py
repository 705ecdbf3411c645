"""How `recede proxy -- COMMAND` points the command at the proxy, for this run alone, without changing settings."""

from __future__ import annotations

import json
import re
import secrets
import shlex
import shutil
import urllib.parse
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from recede._agents import AGENTS, Agent
from recede._serving import host_name
from recede.proxy._addresses import VARIABLES, Address, Own, Replacement, kept_variables
from recede.proxy._readers import own_addresses
from recede.proxy._routes import checked_upstream
from recede.proxy._settings import Place

__all__ = [
    "Plan",
    "Pointed",
    "Started",
    "always",
    "destinations",
    "given_urls",
    "host_of",
    "nothing_sent",
    "of_project",
    "planned",
    "pointed",
    "started",
    "upstreams_of",
]

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
_FORMER = {"@mariozechner/pi-coding-agent": "@earendil-works/pi-coding-agent"}  # names of packages
_FOLDERS = ("node_modules", "tools", "venvs")  # in which npm, uv and pipx have a folder for each package
_WITH_VALUE = ("-p", "--package", "--from", "--python", "--with", "--spec")

_SUFFIXES = {"openai": "/v1"}  # what their base URL has after the host, unless it is given without


class Pointed(NamedTuple):
    """A command whose requests go to the proxy."""

    command: tuple[str, ...]  # with its arguments
    environment: dict[str, str]
    said: str  # what was done, in one sentence
    added: tuple[str, ...] = ()  # what was added, a line each, without keys
    files: Mapping[str, str] = {}  # texts of throw-away files, by the variable that gets the path


class Plan(NamedTuple):
    """What is known before a command is started."""

    own: Own = Own()
    words: Mapping[Address, str] = {}  # by each address that is used, a word for its paths at the proxy


_NOTHING = Plan()


def planned(
    command: tuple[str, ...], environment: Mapping[str, str], folder: Path, typed: Collection[str] = ()
) -> Plan:
    """Find the addresses of a command's own; requests of the forms that are `typed` go elsewhere, as somebody typed."""
    agent, place, converses = started(command)
    key = next((key for key, one in AGENTS.items() if one is agent), "")
    home = Path(environment.get("HOME") or environment.get("USERPROFILE") or Path.home())
    read = Place(command[_first(command, place) :], environment, home, folder, [])
    if agent is None or not converses:
        return Plan(Own(kept=kept_variables(read)))
    own = own_addresses(key, agent, read)
    own = own._replace(unset=tuple(name for name in own.unset if VARIABLES[name] not in typed))
    return Plan(own, {one: secrets.token_hex(8) for one in own.addresses if one.form not in typed})


def _first(command: tuple[str, ...], place: int) -> int:
    """The place of the first word after a command, and after the ``--`` of a runner of packages."""
    return place + 1 + (place > 0 and command[place + 1 : place + 2] == ("--",))


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
    package = _FORMER.get(package, package)
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
    for name, provider in VARIABLES.items():
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


def pointed(command: tuple[str, ...], url: str, environment: Mapping[str, str], plan: Plan = _NOTHING) -> Pointed:
    """Point a command at the proxy of this URL."""
    agent, place, converses = started(command)
    own = plan.own
    title = agent.title if agent else Path(command[0]).name
    if own.is_alone:
        return Pointed(command, dict(environment), f"{title} is not pointed at the proxy: {_said(own.notes)}")
    kept = (*own.kept, *own.unset)
    variables = {**environment, **_addresses(url, environment, kept)}
    names = [name for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL") if name not in kept]
    given = own.replace(lambda one: _proxied(one, url, plan.words.get(one))) if own.addresses else Replacement()
    added = [f"{name}={variables[name]}" for name in VARIABLES if name not in (*kept, *given.variables)]
    folder, first = Path(__file__).parent, _first(command, place)
    arguments, words = given.arguments, command[first:] if given.words is None else given.words
    if agent is not None and converses:
        text = " ".join(agent.arguments)
        if not any(f"{one.name}=" in text for one in own.addresses):
            arguments = (*(one.format(url=url, folder=folder) for one in agent.arguments), *arguments)
    told = [shlex.join(arguments)] if arguments else []
    settings = [
        json.loads(given.variables[name])
        for name in (agent.config[:1] if agent and agent.config else ())
        if name in given.variables
    ]
    if agent is not None and agent.config is not None:
        name, usual = agent.config
        ours = _merged(json.dumps(_filled(usual, url)), *settings)
        variables[name] = _merged(environment.get(name, ""), json.loads(ours))
        told.append(name)
        added.append(f"{name}={ours}")
    for name, value in given.variables.items():
        if agent is None or agent.config is None or name != agent.config[0]:
            variables[name] = value
            told.append(name)
            added.append(f"{name}={value}")
    for name, value in given.secrets.items():
        variables[name] = value
        told.append(name)
        added.append(f"{name}=(a key of its own files)")
    files = {name: json.dumps(data, indent=1) for name, data in given.files.items()}
    told += files
    added += [f"{name}=(a file with {json.dumps(data)})" for name, data in given.files.items()]
    if given.words is not None and given.words != command[first:]:
        told.append("its own arguments")
        added.append("its own arguments name the proxy instead")  # they may have keys
    notes = own.notes
    if own.kept:
        notes = (
            *notes,
            f"{', '.join(own.kept)} stand in a file .env, so they are not set: requests by them do not come",
        )
    is_pointed = agent is None or agent.is_pointed or bool(own.addresses)
    said = f"{title} has the proxy in {', '.join(dict.fromkeys([*names, *told]))} for this run"
    if agent is not None and not is_pointed:
        said = f"{title} is not pointed at the proxy: {_said(notes) or _otherwise(agent)}"
    elif notes:
        said += f"; {_said(notes)}"
    if agent is not None and not agent.sends_results:
        said = f"{title} sends no tool results, so nothing of its requests can be masked"
    added += [shlex.join(arguments)] if arguments else []
    return Pointed((*command[:first], *arguments, *words), variables, said, tuple(added), files)


def host_of(url: str) -> str:
    """Return the host of an address, with its port."""
    return urllib.parse.urlsplit(url).netloc


def _said(notes: Iterable[str]) -> str:
    return "; ".join(notes).replace("{url}", _LASTING)


def _proxied(one: Address, url: str, word: str | None) -> str:
    """The address that stands for one of the agent's own: with a word, its path is as it is without the proxy."""
    path = urllib.parse.urlsplit(one.url).path
    if word is not None:
        return f"{url}/@{word}{path}"
    version = re.search(r"/v\d\w*$", path.rstrip("/"))
    return url + (_SUFFIXES.get(one.form) or (version[0] if version else ""))


def destinations(plan: Plan) -> list[str]:
    """List where requests go by the addresses of a command's own, and who says so."""
    return [f"{one.name}: {one.url}, by {one.source}" for one in plan.words]


def of_project(plan: Plan) -> list[Address]:
    """List the addresses that files of the project alone name."""
    return [one for one in plan.words if one.is_of_project]


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


def _addresses(url: str, environment: Mapping[str, str], kept: Collection[str]) -> dict[str, str]:
    """Return the variables that send requests to the proxy, and directly to it."""
    found, given = {}, given_urls(environment)
    for name, provider in VARIABLES.items():
        if name in kept:
            continue
        suffix = _SUFFIXES.get(provider, "")
        found[name] = url + suffix if given.get(provider, suffix).endswith(suffix) else url
    host = host_name(url)
    without = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    for name in ("NO_PROXY", "no_proxy"):
        kept = environment.get(name) or without
        found[name] = kept if kept == "*" else ",".join(filter(None, (kept, host)))
    return found


def _filled(value: Any, url: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(one, url) for name, one in value.items()}
    return value.format(url=url)


def _merged(given: str, *settings: Any) -> str:
    """Merge settings over given JSON settings; given text that cannot be read as an object is dropped."""

    def over(below: Any, above: Any) -> Any:
        if not isinstance(below, dict) or not isinstance(above, dict):
            return above
        return {**below, **{name: over(below.get(name), one) for name, one in above.items()}}

    try:
        found = json.loads(given or "{}")
        for one in settings:
            found = over(found, one)
        return json.dumps(found)
    except (ValueError, RecursionError):
        return json.dumps(settings[-1])
