"""What each agent's settings, variables and arguments say of its addresses, and how they are replaced for one run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from recede._agents import Agent
from recede.proxy._addresses import (
    VARIABLES,
    Address,
    Own,
    Replacement,
    address,
    env_file,
    has_secrets,
    kept_variables,
    layers_of,
)
from recede.proxy._settings import Layer, Place, first, table, within


def _found(*given: Address | None) -> tuple[Address, ...]:
    return tuple(one for one in given if one is not None)


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

    return Own(_found(one), replace if one else Own().replace, tuple(notes))


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

    return Own(_found(*found.values()), replace, tuple(notes))


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


def _qwen(agent: Agent, place: Place) -> Own:
    notes: list[str] = []
    layers = layers_of(agent, place)
    set_by = [*env_file(place, ".qwen"), *(one._replace(data=table(one.data, "env")) for one in layers)]
    variables = [one for one in _by_variables(place, set_by, notes) if one.name != "OPENAI_BASE_URL"]
    name, typed = "OPENAI_BASE_URL", place.option("--openai-base-url")
    found: tuple[Layer, Any] | None = None
    if typed is not None:
        found = Layer("the command line", {}), typed[1]
    elif not place.environment.get(name):
        found = first(set_by, name) or first(layers, "security", "auth", "baseUrl")
    base = found and address(place, name, found[0], found[1], "openai", notes, [*set_by, *layers])
    is_alone = bool(notes)
    models: dict[str, list[Any]] = {}
    entries: dict[tuple[str, int], Address] = {}
    providers = {kind: layer for layer in reversed(layers) for kind in table(layer.data, "modelProviders")}
    for kind, layer in providers.items():
        listed = within(layer.data, "modelProviders", kind)
        models[kind] = listed if isinstance(listed, list) else []
        form = {"anthropic": "anthropic", "gemini": "gemini", "vertex-ai": "gemini"}.get(kind, "openai")
        for number, one in enumerate(models[kind]):
            made = address(place, f"modelProviders.{kind}", layer, within(one, "baseUrl"), form, notes, layers)
            if made is not None:
                entries[kind, number] = made
    is_taken = any(layer.is_managed for layer in layers)
    if entries and (is_taken or has_secrets(models)):
        why = "system settings win" if is_taken else "an entry has headers or a key"
        notes.append(f"addresses in modelProviders do not come to the proxy, since {why}")
        entries = {}

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
        return Replacement(arguments, more, files, words=tuple(words))

    return Own(_found(base, *variables, *entries.values()), replace, tuple(notes), is_alone=is_alone)


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


# pi


def _pi(agent: Agent, place: Place) -> Own:
    notes: list[str] = []
    layers = layers_of(agent, place)
    found = {name: Address(name, url, "its own table", "openai") for name, url, _ in agent.providers}
    for layer in layers:
        for name, one in table(layer.data, "providers").items():
            form = {"anthropic-messages": "anthropic", "google-generative-ai": "gemini"}.get(
                str(within(one, "api")), "openai"
            )
            made = address(place, name, layer, within(one, "baseUrl"), form, notes)
            if made is not None:
                found[name] = made
            if any(within(model, "baseUrl") for model in within(one, "models") or [] if isinstance(model, Mapping)):
                notes.append(f"models of {name} in {layer.source} have addresses of their own: theirs are not replaced")

    def replace(to: Callable[[Address], str]) -> Replacement:
        return Replacement(
            variables={"RECEDE_PI_ADDRESSES": json.dumps({name: to(one) for name, one in found.items()})}
        )

    return Own(tuple(found.values()), replace, tuple(notes))


# Kimi Code

_KIMI_FORMS = {"kimi": "openai", "openai": "openai", "anthropic": "anthropic"}


def _kimi(agent: Agent, place: Place) -> Own:
    notes: list[str] = []
    given = place.environment
    usual = {"kimi": "https://api.moonshot.ai/v1", "openai": "https://api.openai.com/v1"}
    if given.get("KIMI_MODEL_NAME"):
        kind = given.get("KIMI_MODEL_PROVIDER_TYPE") or "kimi"
        url = given.get("KIMI_MODEL_BASE_URL") or usual.get(kind, "https://api.anthropic.com")
        layer = Layer("KIMI_MODEL_BASE_URL", {})
        made = address(place, "KIMI_MODEL_BASE_URL", layer, url, _KIMI_FORMS.get(kind, "openai"), notes)
        secrets, variables = dict[str, str](), dict[str, str]()
    else:
        layers = layers_of(agent, place)
        alias = place.option("-m", "--model") or first(layers, "default_model")
        model = alias and first(layers, "models", str(alias[1]))
        provider = model and first(layers, "providers", str(within(model[1], "provider")))
        if not layers or model is None or provider is None:
            return Own(notes=("no model is in its config.toml: start `recede proxy`, and set KIMI_MODEL_BASE_URL",))
        layer, one = provider
        kind = str(within(one, "type") or "kimi")
        key = within(one, "api_key") or given.get(str(within(one, "api_key_env") or ""), "")
        if not isinstance(key, str) or not key or kind not in _KIMI_FORMS or place.option("-m", "--model"):
            why = "its model is chosen by --model" if key else "it has a login, and no key"
            return Own(notes=(f"requests do not come to the proxy: {why}",))
        url = str(within(one, "base_url") or usual.get(kind) or "")
        made = address(place, "KIMI_MODEL_BASE_URL", layer, url, _KIMI_FORMS[kind], notes)
        size = within(model[1], "max_context_size")
        variables = {"KIMI_MODEL_NAME": str(within(model[1], "model")), "KIMI_MODEL_PROVIDER_TYPE": kind}
        variables |= {"KIMI_MODEL_MAX_CONTEXT_SIZE": str(size)} if size else {}
        secrets = {"KIMI_MODEL_API_KEY": key}
        notes.append(f"it takes an address only with a key: it gets that of {layer.source} as KIMI_MODEL_API_KEY")

    def replace(to: Callable[[Address], str]) -> Replacement:
        assert made is not None
        return Replacement(variables={**variables, "KIMI_MODEL_BASE_URL": to(made)}, secrets=secrets)

    return Own(_found(made), replace, tuple(notes)) if made else Own(notes=tuple(notes))


# Grok Build


def _grok(agent: Agent, place: Place) -> Own:
    notes: list[str] = []
    layers = layers_of(agent, place)
    model = place.option("-m", "--model") or first(layers, "models", "default")
    fixed = first(layers, "endpoints", "models_base_url")
    fixed = fixed or (model and first(layers, "model", str(model[1]), "base_url"))
    if fixed is not None:
        why = "no variable goes before it: set it there to the address of `recede proxy`, and give that --upstream"
        return Own(notes=(f"its address is in {fixed[0].source}, and {why} {fixed[1]}",))
    if not (place.environment.get("XAI_API_KEY") or place.environment.get("GROK_CODE_XAI_API_KEY")):
        return Own(notes=("with a login it takes no address: requests come to the proxy with XAI_API_KEY alone",))
    name = "GROK_MODELS_BASE_URL"
    url, source = place.environment.get(name) or "https://api.x.ai/v1", name if name in place.environment else "its own"
    made = address(place, name, Layer(source, {}), url, "openai", notes)
    return Own(_found(made), lambda to: Replacement(variables={name: to(made)} if made else {}), tuple(notes))


# Vibe


def _vibe(agent: Agent, place: Place) -> Own:
    notes: list[str] = []
    layers = layers_of(agent, place)
    usual = {
        "name": "mistral",
        "api_base": "https://api.mistral.ai/v1",
        "api_key_env_var": "MISTRAL_API_KEY",
        "backend": "mistral",
    }
    providers: dict[str, tuple[Layer, Any]] = {"mistral": (Layer("its own table", {}), usual)}
    for layer in reversed(layers):
        listed = layer.data.get("providers")
        for one in listed if isinstance(listed, list) else []:
            providers[str(within(one, "name"))] = layer, one
    found: dict[str, Address] = {}
    for name, (layer, one) in providers.items():
        made = address(place, name, layer, within(one, "api_base"), "openai", notes, layers)
        if made is not None and has_secrets(one):
            notes.append(f"the provider {name} of {layer.source} has a key or headers: its requests do not come")
        elif made is not None:
            found[name] = made
    if place.environment.get("VIBE_PROVIDERS"):
        return Own(notes=("VIBE_PROVIDERS is set: its requests do not come to the proxy",))

    def replace(to: Callable[[Address], str]) -> Replacement:
        changed = [{**providers[name][1], "api_base": to(one)} for name, one in found.items()]
        return Replacement(variables={"VIBE_PROVIDERS": json.dumps(changed)})

    return Own(tuple(found.values()), replace, tuple(notes))


# Cline


def _cline(agent: Agent, place: Place) -> Own:
    layers = layers_of(agent, place)
    chosen = place.option("-P", "--provider") or first(layers, "lastUsedProvider")
    found = chosen and first(layers, "providers", str(chosen[1]), "settings", "baseUrl")
    if found is None:
        return Own()
    how = f"type `cline auth -p {chosen[1] if chosen else ''} -b {{url}}/v1 -k KEY -m MODEL`, which stays"
    where = f"its address is in {found[0].source}, which no variable goes before"
    return Own(notes=(f"{where}: start `recede proxy --upstream {found[1]}`, and {how}",))


_READERS: dict[str, Callable[[Agent, Place], Own]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "opencode": _opencode,
    "pi": _pi,
    "kimi": _kimi,
    "grok": _grok,
    "vibe": _vibe,
    "cline": _cline,
}


def own_addresses(key: str, agent: Agent, place: Place) -> Own:
    """Find the addresses of an agent of this key in `AGENTS`; most agents have none."""
    found = _READERS[key](agent, place) if key in _READERS else Own()
    if key not in ("qwen", "gemini", "claude"):
        found = found._replace(kept=kept_variables(place))
    unread = (f"{path} cannot be read, so an address in it is not known" for path in place.unread)
    return found._replace(notes=(*found.notes, *unread), is_alone=found.is_alone or bool(place.unread))
