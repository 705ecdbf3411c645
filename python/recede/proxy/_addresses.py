"""Addresses that agents have by themselves: in their settings, variables and arguments, and how each is replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from recede._agents import Agent
from recede.proxy._routes import checked_upstream
from recede.proxy._settings import Layer, Place, filled, first


class Address(NamedTuple):
    """An address of an agent's own."""

    name: str  # how its settings call it
    url: str
    source: str  # the file, variable or argument that names it
    form: str  # of its requests, as `UPSTREAMS` names it
    is_of_project: bool = False  # nothing but files of the project names it


class Replacement(NamedTuple):
    """What an agent gets for one run; `secrets` are variables with keys of its own files."""

    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    files: Mapping[str, Any] = {}  # the JSON of throw-away files, by the variable that gets the path
    words: tuple[str, ...] | None = None  # instead of those that were typed after the command
    secrets: Mapping[str, str] = {}


Replace = Callable[[Callable[[Address], str]], Replacement]


class Own(NamedTuple):
    """The addresses of an agent, how they are replaced for one run, and what has to be said."""

    addresses: tuple[Address, ...] = ()
    replace: Replace = lambda _: Replacement()
    notes: tuple[str, ...] = ()  # what cannot be replaced, and what to set instead
    kept: tuple[str, ...] = ()  # variables that are not set, since a file names an address in them
    unset: tuple[str, ...] = ()  # variables that are not set either: without one the agent sends nothing by itself
    is_alone: bool = False  # it is started as without the proxy: an address that nobody can read would be overridden


# What may have a key in it, so that it is never copied.
_SECRET = re.compile(r"(?i)key$|api_?key(?!_?env)|token(?!s)|secret|password|headers|auth(?!ors?$)|credential|helper")
_PLAIN = re.compile(r"(?i)env_?key|_env_var|key_?env|max_|keep")


def has_secrets(value: Any) -> bool:
    """Whether settings have something that may be a key, by its name."""
    if isinstance(value, Mapping):
        return any(
            (_SECRET.search(name) and not _PLAIN.search(name) and one not in (None, "", {})) or has_secrets(one)
            for name, one in value.items()
        )
    return isinstance(value, list) and any(map(has_secrets, value))


def address(
    place: Place, name: str, layer: Layer, url: Any, form: str, notes: list[str], others: Iterable[Layer] = ()
) -> Address | None:
    """Make an address of what a layer says; None if it is none, which is noted.

    It is of the project alone unless one of the other layers, of which none is of the project, has it too.
    """
    text = filled(url, place.environment) if isinstance(url, str) else None
    try:
        checked_upstream(text or "")
    except ValueError:
        if url not in (None, ""):
            notes.append(f"{name} of {layer.source} is no plain URL: its requests do not come to the proxy")
        return None
    assert text is not None
    is_known = any(text.rstrip("/") in _texts(one.data) for one in others if not one.is_of_project)
    return Address(name, text, layer.source, form, layer.is_of_project and not is_known)


def found_of(*given: Address | None) -> tuple[Address, ...]:
    """Return those that there are."""
    return tuple(one for one in given if one is not None)


def _texts(value: Any) -> set[str]:
    """Return all texts in settings, without a final slash."""
    if isinstance(value, str):
        return {value.rstrip("/")}
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return {text for one in parts for text in _texts(one)}


def layers_of(agent: Agent, place: Place) -> list[Layer]:
    """Read the settings files of an agent, in the order of its row."""
    found: list[Layer] = []
    for kind, text in agent.files:
        if kind == "above":
            for folder in place.above():
                found += place.read(folder / text, is_of_project=True)
        elif kind == "project":
            found += place.read(place.folder / text, is_of_project=True)
        else:
            found += place.read(place.file(text), is_managed=kind == "managed")
    return found


VARIABLES = {
    "ANTHROPIC_BASE_URL": "anthropic",
    "OPENAI_BASE_URL": "openai",
    "OPENAI_API_BASE": "openai",
    "GOOGLE_GEMINI_BASE_URL": "gemini",
}
"""The variables by which clients find a provider, and its name in `UPSTREAMS`."""


def env_file(place: Place, folder: str = "") -> list[Layer]:
    """Read the file of variables that a program finds first, from the working folder upwards, then in the home."""
    names = [f"{folder}/.env", ".env"] if folder else [".env"]
    files = [*((above / name, True) for above in place.above() for name in names),
             *((place.home / name, False) for name in names if folder)]  # fmt: skip
    return next((found for path, is_of_project in files if (found := list(place.read(path, is_of_project)))), [])


def kept_variables(place: Place) -> tuple[str, ...]:
    """List the variables in which a file beside a program, or above it, names an address: many programs read that."""
    return tuple(name for name in VARIABLES if not place.environment.get(name) and first(env_file(place), name))
