"""What each agent's settings, variables and arguments say of its addresses, and how they are replaced for one run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from recede._agents import Agent
from recede._serving import host_name
from recede.proxy import _other_readers
from recede.proxy._addresses import (
    VARIABLES,
    Address,
    Own,
    Replacement,
    address,
    env_file,
    found_of,
    has_secrets,
    kept_variables,
    layers_of,
)
from recede.proxy._settings import Layer, Place, first, table, within

# Claude Code

_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE")


def _claude(agent: Agent, place: Place) -> Own:
    name, notes = "ANTHROPIC_BASE_URL", list[str]()
    layers, typed = layers_of(agent, place), place.option("--settings")
    of_typed: list[Layer] = []
    if typed is not None:
        is_inline = typed[1].lstrip().startswith("{")
        of_typed = _inline(typed[1], place) if is_inline else list(place.read(place.folder / typed[1]))
    managed = [one for one in layers if one.is_managed]
    layers = [*managed, *of_typed, *layers[len(managed) :]]
    cloud = next(
        (one for one in _CLOUDS if (found := first([*layers, _variables(place)], "env", one)) and found[1]), None
    )
    if cloud is not None:
        return Own(notes=(f"{cloud} is set: its requests do not come to the proxy",))
    found = first(layers, "env", name)
    if found is None:
        return Own()
    layer, url = found
    if layer.is_managed:
        return Own(notes=(f"the managed settings {layer.source} name its address, and win: set {name} there",))
    one = address(place, name, layer, url, "anthropic", notes, layers)
    settings = of_typed[0].data if of_typed else {}
    if typed is not None and (not of_typed or (not is_inline and has_secrets(settings))):
        notes.append(
            f"--settings {typed[1] if not is_inline else ''} has keys, or cannot be read: take {name} out of it"
        )
        return Own(notes=tuple(notes))

    def replace(to: Callable[[Address], str]) -> Replacement:
        assert one is not None
        merged = {**settings, "env": {**table(settings, "env"), name: to(one)}}
        if typed is None:
            return Replacement(arguments=("--settings", json.dumps(merged)))
        words = list(place.words)
        is_one_word = words[typed[0]].startswith("--settings=")
        words[typed[0]] = ("--settings=" if is_one_word else "") + json.dumps(merged)
        return Replacement(words=tuple(words))

    return Own(found_of(one), replace if one else Own().replace, tuple(notes))


def _inline(text: str, place: Place) -> list[Layer]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        return [Layer("--settings", data)]
    place.unread.append("--settings")
    return []


def _variables(place: Place) -> Layer:
    return Layer("the environment", {"env": place.environment})


# Codex

_CODEX_KEY = re.compile(r"openai_base_url|model_providers\.[\w-]+\.base_url")


def _codex(agent: Agent, place: Place) -> Own:
    notes: list[str] = []
    layers, words = layers_of(agent, place), list(place.words)
    found: dict[str, Address | None] = {}
    for layer in layers:
        urls = {f"model_providers.{name}.base_url": within(one, "base_url") for name, one in _providers(layer)}
        for name, url in {"openai_base_url": layer.data.get("openai_base_url"), **urls}.items():
            if url is not None and not _CODEX_KEY.fullmatch(name):
                notes.append(f"{name} of {layer.source} has a name that -c cannot have: its requests do not come")
            elif url is not None and name not in found:
                found[name] = address(place, name, layer, url, "openai", notes, layers)
    typed: dict[str, int] = {}
    for at, word in enumerate(words):
        pair = re.fullmatch(rf"(?:--config=|-c)?({_CODEX_KEY.pattern})=(.*)", word)
        if pair is not None and (word.startswith("-") or words[at - 1 : at] in (["-c"], ["--config"])):
            typed[pair[1]] = at
            layer = Layer("the command line", {})
            found[pair[1]] = address(place, pair[1], layer, pair[2].strip("\"'"), "openai", notes)
    provider = place.option("--local-provider") or first(layers, "model_provider")
    if provider is not None and provider[1] in ("amazon-bedrock", "ollama", "lmstudio"):
        notes.append(f"its model_provider is {provider[1]}: its requests do not come to the proxy")

    def replace(to: Callable[[Address], str]) -> Replacement:
        arguments: list[str] = []
        for name, one in found.items():
            if one is not None and name in typed:
                start = re.match(r"(?:--config=|-c)?", words[typed[name]])
                words[typed[name]] = f'{start[0] if start else ""}{name}="{to(one)}"'
            elif one is not None:
                arguments += ["-c", f'{name}="{to(one)}"']
        return Replacement(tuple(arguments), words=tuple(words))

    return Own(found_of(*found.values()), replace, tuple(notes))


def _providers(layer: Layer) -> list[tuple[str, Any]]:
    return list(table(layer.data, "model_providers").items())


# Qwen Code, Gemini CLI


def _by_variables(place: Place, layers: list[Layer], notes: list[str]) -> list[Address]:
    """Addresses that variables of files name, which those of the environment go before."""
    found = []
    for name, form in VARIABLES.items():
        known = None if place.environment.get(name) else first(layers, name)
        if known is not None:
            found.append(address(place, name, known[0], known[1], form, notes, layers))
    return [one for one in found if one is not None]


def _gemini(agent: Agent, place: Place) -> Own:
    notes: list[str] = []
    found = _by_variables(place, env_file(place, ".gemini"), notes)

    def replace(to: Callable[[Address], str]) -> Replacement:
        return Replacement(variables={one.name: to(one) for one in found})

    return Own(tuple(found), replace, tuple(notes), is_alone=bool(notes))


_QWEN_FORMS = {"anthropic": "anthropic", "gemini": "gemini", "vertex-ai": "gemini"}
_DASHSCOPE = "https://dashscope.aliyuncs.com/compatible-mode/v1"
# To these it sends cache marks, and to the host that DASHSCOPE_PROXY_BASE_URL names.
_MARKED = re.compile(
    r"((.+\.)?dashscope(-intl|-us)?\.aliyuncs|token-plan\..+\.maas\.aliyuncs|.+\.(alibaba-inc|aliyun-inc|alicloudapi))\.com"
)


def _qwen(agent: Agent, place: Place) -> Own:
    notes: list[str] = []
    layers = layers_of(agent, place)
    set_by = [*env_file(place, ".qwen"), *(one._replace(data=table(one.data, "env")) for one in layers)]
    variables = [one for one in _by_variables(place, set_by, notes) if one.name != "OPENAI_BASE_URL"]
    name, typed = "OPENAI_BASE_URL", place.option("--openai-base-url")
    given = place.environment.get(name, "")
    found: tuple[Layer, Any] | None = None
    if typed is not None:
        found = Layer("the command line", {}), typed[1]
    elif _MARKED.fullmatch(host_name(given)):
        found = Layer(name, {}), given
    elif not given:
        found = first(set_by, name) or first(layers, "security", "auth", "baseUrl")
    base = found and address(place, name, found[0], found[1], "openai", notes, [*set_by, *layers])
    is_alone = bool(notes)
    models: dict[str, list[Any]] = {}
    entries: dict[tuple[str, int], Address] = {}
    providers = {kind: layer for layer in reversed(layers) for kind in table(layer.data, "modelProviders")}
    for kind, layer in providers.items():
        listed = within(layer.data, "modelProviders", kind)
        models[kind] = listed if isinstance(listed, list) else []
        form = _QWEN_FORMS.get(kind, "openai")
        for number, one in enumerate(models[kind]):
            made = address(place, f"modelProviders.{kind}", layer, within(one, "baseUrl"), form, notes, layers)
            if made is not None:
                entries[kind, number] = made
    is_taken = any(layer.is_managed for layer in layers)
    if entries and (is_taken or has_secrets(models)):
        why = "system settings win" if is_taken else "an entry has headers or a key"
        notes.append(f"addresses in modelProviders do not come to the proxy, since {why}")
        entries = {}
    login = place.option("--auth-type") or first(layers, "security", "auth", "selectedType")
    api = login[1] if login else ""
    of_openai = [one for kind, listed in models.items() if kind not in _QWEN_FORMS for one in listed]
    if base is None and not given and not all(within(one, "baseUrl") for one in of_openai):
        notes.append("models in modelProviders without a baseUrl do not come to the proxy")
    elif base is None and not given and api == "openai":
        base = Address(name, _DASHSCOPE, "its default", "openai")
    # By these it would choose a login.
    choosing = ["ANTHROPIC_BASE_URL"] if api == "openai-responses" else ["ANTHROPIC_BASE_URL", name]
    unset = tuple(one for one in choosing if not place.environment.get(one))
    marked = base is not None and _MARKED.fullmatch(host_name(base.url))

    def replace(to: Callable[[Address], str]) -> Replacement:
        arguments, words, files = tuple[str, ...](), list(place.words), {}
        if base is not None and typed is not None:
            is_one_word = words[typed[0]].startswith("--openai-base-url=")
            words[typed[0]] = ("--openai-base-url=" if is_one_word else "") + to(base)
        elif base is not None:
            arguments = ("--openai-base-url", to(base))
        if entries:
            changed = {
                kind: [
                    {**one, "baseUrl": to(entries[kind, at])} if (kind, at) in entries else one
                    for at, one in enumerate(listed)
                ]
                for kind, listed in models.items()
            }
            files = {"QWEN_CODE_SYSTEM_SETTINGS_PATH": {"modelProviders": changed}}
        more = {one.name: to(one) for one in variables}
        if base is not None and marked and "/@" in to(base):  # not where an upstream was typed
            more["DASHSCOPE_PROXY_BASE_URL"] = to(base)
        return Replacement(arguments, more, files, words=tuple(words))

    addresses = found_of(base, *variables, *entries.values())
    return Own(addresses, replace, tuple(notes), is_alone=is_alone, unset=unset)


# OpenCode


def _opencode(agent: Agent, place: Place) -> Own:
    notes: list[str] = []
    layers = layers_of(agent, place)
    content = place.environment.get("OPENCODE_CONFIG_CONTENT", "")
    if content:
        layers = [*(_content(content, place)), *layers]
    logins = {
        name
        for layer in place.read(place.file("{XDG_DATA_HOME:~/.local/share}/opencode/auth.json"))
        for name in layer.data
    }
    model = place.option("-m", "--model") or first(layers, "model")
    chosen = str(model[1]).partition("/")[0] if model else ""
    found: dict[str, Address] = {}
    named = {name for layer in layers for name in table(layer.data, "provider")}
    for name in sorted(named):
        own = first(layers, "provider", name, "options", "baseURL") or first(layers, "provider", name, "api")
        made = own and address(place, name, own[0], own[1], _form_of_sdk(layers, name), notes, layers)
        if made is not None:
            found[name] = made
    for name, url, variable in agent.providers:
        has_key = bool(place.environment.get(variable)) or name in {*logins, chosen, *named}
        if has_key and first(layers, "provider", name, "options", "baseURL") is None:
            found[name] = Address(name, url, "its own table", "anthropic" if url.endswith("/anthropic") else "openai")
    if chosen and chosen not in (*found, "anthropic", "openai", "google"):
        notes.append(f"the address of its provider {chosen} is not known: set its baseURL, or --upstream")

    def replace(to: Callable[[Address], str]) -> Replacement:
        return Replacement(variables={"OPENCODE_CONFIG_CONTENT": json.dumps(
            {"provider": {name: {"options": {"baseURL": to(one)}} for name, one in found.items()}})})  # fmt: skip

    return Own(tuple(found.values()), replace, tuple(notes))


def _content(text: str, place: Place) -> list[Layer]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        place.unread.append("OPENCODE_CONFIG_CONTENT")
        return []
    return [Layer("OPENCODE_CONFIG_CONTENT", data)]


def _form_of_sdk(layers: list[Layer], name: str) -> str:
    found = first(layers, "provider", name, "npm")
    sdk = str(found[1]) if found else name
    return "anthropic" if "anthropic" in sdk else "gemini" if "google" in sdk else "openai"


_READERS: dict[str, Callable[[Agent, Place], Own]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "opencode": _opencode,
    "pi": _other_readers.pi,
    "kimi": _other_readers.kimi,
    "grok": _other_readers.grok,
    "vibe": _other_readers.vibe,
    "cline": _other_readers.cline,
}


def own_addresses(key: str, agent: Agent, place: Place) -> Own:
    """Find the addresses of an agent of this key in `AGENTS`; most agents have none."""
    found = _READERS[key](agent, place) if key in _READERS else Own()
    if key not in ("qwen", "gemini", "claude"):
        found = found._replace(kept=kept_variables(place))
    unread = (f"{path} cannot be read, so an address in it is not known" for path in place.unread)
    return found._replace(notes=(*found.notes, *unread), is_alone=found.is_alone or bool(place.unread))
