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
    return Own(found_of(made), lambda to: Replacement(variables={name: to(made)} if made else {}), tuple(notes))


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

    def replace(to: Callable[[Address], str]) -> Replacement:
        changed = [{**providers[name][1], "api_base": to(one)} for name, one in found.items()]
        return Replacement(variables={"VIBE_PROVIDERS": json.dumps(changed)})

    return Own(tuple(found.values()), replace, tuple(notes))


# Cline


def cline(agent: Agent, place: Place) -> Own:
    layers = layers_of(agent, place)
    chosen = place.option("-P", "--provider") or first(layers, "lastUsedProvider")
    found = chosen and first(layers, "providers", str(chosen[1]), "settings", "baseUrl")
    if found is None:
        return Own()
    how = f"type `cline auth -p {chosen[1] if chosen else ''} -b {{url}}/v1 -k KEY -m MODEL`, which stays"
    where = f"its address is in {found[0].source}, which no variable goes before"
    return Own(notes=(f"{where}: start `recede proxy --upstream {found[1]}`, and {how}",))
