"""What providers refuse, drop and bill, as functions of a request's body.

They know no more of a request than a provider does. The words are those of the real errors where these are known.
docs/provider-rules.md has a row for each rule. A module for each provider has `take`; where answers are signed,
`answered` signs them, and `reads` says what a model has of a history beside its text. A provider that is to be added is
one more module and a line of `PROVIDERS`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from provider_rules import anthropic, chat, converse, deepseek, gemini, interactions, responses, templates
from provider_rules.base import LATER, NEW, OLD, RULES, Account, RefusedError, Taken, demand
from provider_rules.signatures import signed

__all__ = [
    "LATER", "NEW", "OLD", "PROVIDERS", "RULES", "Account", "RefusedError", "Taken", "demand", "fault", "signed",
]  # fmt: skip

PROVIDERS: dict[str, ModuleType] = {
    "anthropic": anthropic,
    "responses": responses,
    "chat": chat,
    "gemini": gemini,
    "interactions": interactions,
    "converse": converse,
    "deepseek": deepseek,
    "templates": templates,
}


def fault(provider: str, body: dict[str, Any], account: Account = OLD) -> str | None:
    """Why the provider refuses a request; None if it does not."""
    words: str | None = PROVIDERS[provider].take(body, account).fault
    return words
