"""How `recede proxy -- COMMAND` points the command at the proxy, for this run alone, without changing settings."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from recede._agents import AGENTS, Agent
from recede.proxy._upstreams import UPSTREAMS

__all__ = ["Pointed", "agent_of", "given_urls", "nothing_sent", "pointed", "upstreams_of"]

# The variables by which clients find a provider.
_VARIABLES = {
    "ANTHROPIC_BASE_URL": "anthropic",
    "OPENAI_BASE_URL": "openai",
    "OPENAI_API_BASE": "openai",
    "GOOGLE_GEMINI_BASE_URL": "gemini",
}
_SUFFIXES = {"openai": "/v1"}  # what their base URL has after the host, unless it is given without


class Pointed(NamedTuple):
    """A command whose requests go to the proxy.

    Attributes:
        command: the command and its arguments.
        environment: its environment.
        said: what was done, in one sentence.
    """

    command: tuple[str, ...]
    environment: dict[str, str]
    said: str


def agent_of(command: tuple[str, ...]) -> Agent | None:
    """Find the agent that a command starts, by its name."""
    return AGENTS.get(Path(command[0]).stem.lower()) if command else None


def given_urls(environment: Mapping[str, str]) -> dict[str, str]:
    """Find the base URLs that a command would have used by itself, by provider."""
    found: dict[str, str] = {}
    for name, provider in _VARIABLES.items():
        url = environment.get(name, "").rstrip("/")
        if url:
            found.setdefault(provider, url)
    return found


def upstreams_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return the upstreams of requests for these base URLs."""
    return {provider: url.removesuffix(_SUFFIXES.get(provider, "")) for provider, url in given.items()}


def pointed(
    command: tuple[str, ...], url: str, environment: Mapping[str, str], upstreams: Mapping[str, str]
) -> Pointed:
    """Point a command at the proxy of this URL.

    Args:
        command: the command and its arguments.
        url: where the proxy listens.
        environment: what the command would have had.
        upstreams: where the proxy sends its requests, by provider.
    """
    agent = agent_of(command)
    variables = {**environment, **_addresses(url, environment)}
    names = ["ANTHROPIC_BASE_URL, OPENAI_BASE_URL and GOOGLE_GEMINI_BASE_URL"]
    if agent is None:
        return Pointed(command, variables, f"{command[0]} has the proxy in {names[0]} for this run")
    folder = Path(__file__).parent
    arguments = tuple(one.format(url=url, folder=folder) for one in agent.arguments)
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
        said = f"{agent.title} is not pointed at the proxy: {agent.otherwise.format(url=url)}"
    if not agent.sends_results:
        said = f"{agent.title} sends no tool results, so nothing of its requests can be masked"
    return Pointed((command[0], *arguments, *command[1:]), variables, said)


def nothing_sent(command: tuple[str, ...], url: str) -> str:
    """A sentence on what to do about a command that has sent nothing to the proxy of this URL."""
    agent = agent_of(command)
    if agent is None or not agent.otherwise:
        return (
            f"{command[0]} has sent nothing to the proxy: it may take its address from its settings; set the base URL "
            f"of its provider there to {url} (OpenAI's to {url}/v1)"
        )
    return f"{agent.title} has sent nothing to the proxy; if it has worked, {agent.otherwise.format(url=url)}"


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
    """Merge settings over given JSON settings; given text that is no JSON object is dropped."""

    def over(below: Any, above: Any) -> Any:
        if not isinstance(below, dict) or not isinstance(above, dict):
            return above
        return {**below, **{name: over(below.get(name), one) for name, one in above.items()}}

    try:
        return json.dumps(over(json.loads(given or "{}"), settings))
    except ValueError:
        return json.dumps(settings)
