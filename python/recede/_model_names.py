"""Names of models: what logs and routers write around them, the families, and the versions that verify reasoning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from recede._hosts import model_maker
from recede._usage import IN_ONE_REGION

# Where a model is served from (as in "bedrock:us.anthropic.claude-opus-5"), and what a log writes after its name: a
# date, a version, a variant, how a router chooses who serves it.
_BEFORE = re.compile(r"^(?:.*/)?(?:[a-z_-]+:)?(?:(?:[a-z-]{2,6}\.)?anthropic\.)?")
_AFTER = re.compile(
    r"(?:-v\d+(?::\d+)?|[-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest|-preview|\[1m\]|:(?:thinking|beta|exacto|floor|nitro))+$"
)
_SWAPPED = re.compile(r"^claude-([\d.-]+)-(opus|sonnet|haiku|fable|mythos)$")  # as OpenRouter's names with a date
_CLAUDE = re.compile(r"^claude-(?:([a-z]+)-)?(\d{1,2})(?:-(\d{1,2}))?(?!\d)")
_GPT = re.compile(r"(?:^|[/.:])gpt-(\d|1\d)(?:\.(\d{1,3}))?(?![\d.])")  # Azure has gpt-35

# Makers whose names are those of their providers, too.
_WITH_CACHES = frozenset({"deepseek", "moonshot", "zai", "alibaba", "minimax", "xai", "mistral"})

Version = tuple[int, int]


class Family(NamedTuple):
    """Models of one maker: how their names begin, and from which version on they verify reasoning.

    `verifies_from` has a version by the second word of a name, and "" for all others; None: none verifies.
    """

    pattern: re.Pattern[str]
    verifies_from: Mapping[str, Version | None]
    date: str
    source: str


_ANTHROPIC_FLOORS = {"fable": (5, 1), "mythos": (5, 1), "": (5, 5)}
FAMILIES = {
    "anthropic": Family(
        re.compile(r"(?:^|[/.:])claude-"),
        _ANTHROPIC_FLOORS,
        "2026-11",
        "platform.claude.com/docs: preserved thinking, prefix checks",
    ),
    "openai": Family(
        re.compile(r"(?:^|[/.:])(?:gpt-\d|chatgpt-|codex-|o\d(?:-|$))"),
        {"": (6, 2)},
        "2026-11",
        "developers.openai.com/api/docs: keep the prefix unchanged, using GPT-6.2",
    ),
    "gemini": Family(
        re.compile(r"(?:^|[/.:])gemini-\d"),
        {"": None},  # a signature of the current turn must come back, but is bound to no earlier result
        "2026-11",
        "ai.google.dev/gemini-api/docs: thought signatures",
    ),
}
"""The families of models by provider."""


class Tokenizer(NamedTuple):
    """How models of a family count what a request has.

    `scale` is of quarter tokens by the bytes of a text (docs/budgets.md). `call` are tokens of a call with its result
    beside its name and arguments, `tools` those of all tools beside their JSON.
    """

    scale: float
    call: int
    tools: int = 0


# Medians over 1,974 results of tools by each tokenizer, and over 49 sessions whose usage was logged (2026-11-28).
TOKENIZERS = {
    "claude": Tokenizer(1.08, 80, 270),
    "claude-4.7": Tokenizer(1.41, 80, 270),
    "openai": Tokenizer(0.87, 11),
    "qwen": Tokenizer(0.98, 11),
    "deepseek": Tokenizer(0.93, 11),
    "gemini": Tokenizer(1.05, 0),
    "llama": Tokenizer(0.87, 11),
    "": Tokenizer(1.05, 11),
}
"""Tokenizers by family; "" is that of unknown models."""

TOKENIZERS_BY_SHAPE = {
    "anthropic": "claude-4.7",
    "converse": "",
    "gemini": "gemini",
    "interactions": "gemini",
    "responses": "openai",
}
"""Those of messages whose model is not known, by their shape."""

_CLAUDE_NEW = 4, 7
_FAMILY_NAMES = (
    ("gemini", re.compile(r"(?:^|[/.:])(?:gemini|gemma)")),
    ("openai", re.compile(r"(?:^|[/.:])(?:gpt-|chatgpt-|codex-|o\d(?:-|$))")),
    ("qwen", re.compile(r"(?:^|[/.:])(?:qwen|qwq)")),
    ("deepseek", re.compile(r"(?:^|[/.:])deepseek")),
    ("llama", re.compile(r"(?:^|[/.:]|meta-)llama")),
)


def tokenizer_of(model: str) -> str:
    """Return the name of a model's tokenizer in `TOKENIZERS`, by the family and version in the model's name."""
    name = model_names(model)[-1]
    claude = _CLAUDE.match(name)
    if claude is not None:
        return "claude-4.7" if (int(claude[2]), int(claude[3] or 0)) >= _CLAUDE_NEW else "claude"
    return next((family for family, pattern in _FAMILY_NAMES if pattern.search(model.lower())), "")


_IN_REGION = re.compile(r"(?:^|[/:])(?:us|eu|apac|jp|au)\.anthropic\.claude-")  # of Bedrock; "global." is none
_REGIONAL_FROM = (4, 5)


def served_as(model: str, tier: str | None) -> tuple[str | None, bool]:
    """Split how a request was served: its tier, and whether in one region alone, which costs a tenth more.

    Anthropic prices so what `inference_geo` keeps in the United States, and Bedrock's regional profiles of Claude from
    4.5 on (platform.claude.com/docs: pricing, data residency, 2026-11).
    """
    if tier is not None and tier.split()[-1] == IN_ONE_REGION:
        return tier.removesuffix(IN_ONE_REGION).strip() or None, True
    found = _CLAUDE.match(model_names(model)[-1]) if _IN_REGION.search(model) else None
    return tier, found is not None and (int(found[2]), int(found[3] or 0)) >= _REGIONAL_FROM


def model_names(model: str, tier: str | None = None) -> tuple[str, ...]:
    """List the names under which a table may have the model that a log names, served as the tier says."""
    dated = _BEFORE.sub("", model.strip().lower())
    name = _AFTER.sub("", dated)
    names = [model, dated, name]
    if name.startswith("claude"):
        name = name.replace(".", "-")
        # Anthropic's names for the first of a family end in a zero.
        names += [name, name.removesuffix("-0"), _SWAPPED.sub(r"claude-\2-\1", name)]
    return tuple(dict.fromkeys(names if tier is None else (f"{name}-{tier}" for name in names)))


def model_provider(model: str) -> str | None:
    """Find the provider of a model by its name; None if its maker is not known, or publishes nothing of its cache."""
    name = model.lower()
    found = next((provider for provider, family in FAMILIES.items() if family.pattern.search(name)), None)
    maker = model_maker(model_names(model)[-1]) if found is None else None
    return maker if maker in _WITH_CACHES else found


def gpt_version(model: str) -> Version | None:
    """Return the version that a name of OpenAI's GPT has; None for any other name."""
    found = _GPT.search(model.lower())
    return None if found is None else (int(found[1]), int(found[2] or 0))


def verifies_reasoning(model: str) -> bool:
    """Whether a provider refuses or drops the model's reasoning after an edit before it, by the version in its name."""
    if (version := gpt_version(model)) is not None:
        family, kind = FAMILIES["openai"], ""
    else:
        found = _CLAUDE.match(model_names(model)[-1])
        if found is None:
            return False
        family, kind, version = FAMILIES["anthropic"], found[1] or "", (int(found[2]), int(found[3] or 0))
    floor = family.verifies_from.get(kind, family.verifies_from[""])
    return floor is not None and version >= floor
