"""Addresses of pi, Kimi Code, Grok Build, Vibe and Cline, as `_readers` has those of others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from recede._agents import Agent
from recede.proxy._addresses import Address, Own, Replacement, address, found_of, has_secrets, layers_of
from recede.proxy._settings import Layer, Place, first, table, within

# pi


def pi(agent: Agent, place: Place) -> Own:
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


def kimi(agent: Agent, place: Place) -> Own:
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

    return Own(found_of(made), replace, tuple(notes)) if made else Own(notes=tuple(notes))


# Grok Build


def grok(agent: Agent, place: Place) -> Own:
    """Find what its variable replaces: addresses of its files go before that.

    Of its two variables the one for models has it use another API, so that it is set where it is given alone.
    """
    notes: list[str] = []
    layers, given = layers_of(agent, place), place.environment
    name = "GROK_MODELS_BASE_URL" if given.get("GROK_MODELS_BASE_URL") else "GROK_XAI_API_BASE_URL"
    typed = place.option("-m", "--model")
    model = typed[1] if typed else given.get("GROK_DEFAULT_MODEL") or _text(first(layers, "models", "default"))
    maker = _text(first(layers, "model", model, "model_provider"))
    places = (
        ("model", model, "base_url"),
        ("model", model, "api_base_url"),
        ("model_providers", maker, "base_url"),
        ("endpoints", "models_base_url"),
        ("endpoints", "xai_api_base_url"),
    )
    fixed = next((found for keys in places if (found := first(layers, *keys)) is not None), None)
    if fixed is not None:
        why = "no variable goes before it: set it there to the address of `recede proxy`, and give that --upstream"
        return Own(notes=(f"its address is in {fixed[0].source}, and {why} {fixed[1]}",))
    if not (given.get("XAI_API_KEY") or given.get("GROK_CODE_XAI_API_KEY")):
        return Own(notes=("with a login it takes no address: requests come to the proxy with XAI_API_KEY alone",))
    url, source = given.get(name) or "https://api.x.ai/v1", name if given.get(name) else "its own"
    made = address(place, name, Layer(source, {}), url, "openai", notes)
    return Own(found_of(made), lambda to: Replacement(variables={name: to(made)} if made else {}), tuple(notes))


def _text(found: tuple[Layer, Any] | None) -> str:
    return str(found[1]) if found else ""


# Vibe


def vibe(agent: Agent, place: Place) -> Own:
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
    notes.append("its telemetry is off, since that would leave the path of its address out")

    def replace(to: Callable[[Address], str]) -> Replacement:
        changed = [{**providers[name][1], "api_base": to(one)} for name, one in found.items()]
        return Replacement(variables={"VIBE_PROVIDERS": json.dumps(changed), "VIBE_ENABLE_TELEMETRY": "false"})

    return Own(tuple(found.values()), replace, tuple(notes))


# Cline

_BY_HUB = ("connect", "dashboard", "hub", "kanban", "schedule")


def cline(agent: Agent, place: Place) -> Own:
    """Find the address of the chosen provider: a throw-away file replaces the one that has its key."""
    notes: list[str] = []
    layers, given = layers_of(agent, place), place.environment
    if {*place.words} & {"-z", "--zen"} or {*place.words[:1]} & {*_BY_HUB}:
        return Own(notes=("its hub sends its requests, with settings of its own: they do not come to the proxy",))
    if place.option("--config", "--data-dir") or given.get("CLINE_SANDBOX"):
        return Own(notes=("its settings are in a folder that is typed: its requests do not come to the proxy",))
    typed = place.option("-P", "--provider")
    name = typed[1] if typed else _text(first(layers, "lastUsedProvider"))
    layer, settings = first(layers, "providers", name, "settings") or (Layer("its own table", {}), {})
    usual = {one: (url, variable) for one, url, variable in agent.providers}
    own, variable = usual.get(name, ("", ""))
    url = within(settings, "baseUrl") or ("" if within(settings, "apiLine") else own)
    if not name or not url:
        return Own()
    form = "anthropic" if "anthropic" in f"{name} {url}" else "gemini" if name == "gemini" else "openai"
    key, plain = within(settings, "apiKey"), {key: one for key, one in table(settings).items() if key != "apiKey"}
    made = address(place, name, layer, url, form, notes)
    is_other = bool(key) and given.get(variable, key) != key  # a key of the same name, for other programs
    if made is not None and (has_secrets(plain) or is_other or (key and not variable)):
        how = f"type `cline auth -p {name} -b {{url}}/v1 -k KEY -m MODEL`, which stays"
        where = f"its address is in {layer.source}, which no variable goes before"
        return Own(notes=(f"{where}: start `recede proxy --upstream {url}`, and {how}",))
    if key:
        notes.append(f"it takes an address only with a key: it gets that of {layer.source} as {variable}")
    notes.append("what is changed in its settings during this run is lost")

    def replace(to: Callable[[Address], str]) -> Replacement:
        assert made is not None
        entry = {"settings": {"provider": name, **plain, "baseUrl": to(made)}, "updatedAt": _LONG_AGO}
        return Replacement(
            # A hub that runs already has settings of its own. Programs that Cline starts send the key where it belongs.
            variables={"CLINE_SESSION_BACKEND_MODE": "local", **(_beside(variable, to(made)) if key else {})},
            files={"CLINE_PROVIDER_SETTINGS_PATH": {
                "version": 1, "lastUsedProvider": name, "providers": {name: {**entry, "tokenSource": "manual"}},
            }},
            secrets={variable: key} if key else {},
        )  # fmt: skip

    return Own(found_of(made), replace, tuple(notes)) if made else Own(notes=tuple(notes))


def _beside(variable: str, url: str) -> dict[str, str]:
    """Return the base URLs that programs use with the key of a variable."""
    if variable == "ANTHROPIC_API_KEY":
        return {"ANTHROPIC_BASE_URL": url.removesuffix("/v1")}
    return dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), url) if variable == "OPENAI_API_KEY" else {}


_LONG_AGO = "2000-01-01T00:00:00.000Z"  # its file must say when it was changed
