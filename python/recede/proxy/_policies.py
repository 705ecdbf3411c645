"""The compiled policies of a masker, which differ by provider, agent and prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recede import _engine
from recede._agents import Agent, texts_of
from recede.providers import Provider
from recede.reduction._policy import own_policy
from recede.reduction._share import in_tokens, unlimited

_MOST_POLICIES = 256


class Policies:
    """Compiles the policy of a request, and remembers it.

    Args:
        options: those of the masker.
        summarizes: whether requests may get summaries.
    """

    def __init__(self, options: Mapping[str, Any], *, summarizes: bool) -> None:
        self._options, self._summarizes = options, summarizes
        self._compiled: dict[tuple[Provider, int, str | None, bool, int | None], Any] = {}

    def of(
        self,
        provider: Provider,
        static: int = 0,
        agent: Agent | None = None,
        whose: str | None = None,
        is_off: bool = False,
        model: str | None = None,
        is_found: bool = True,
    ) -> Any:
        """Compile the policy for a provider. It knows the texts of the agent, or of all that use the path `whose`.

        A share of a window is one of the window of `model` at the provider, if that `is_found`; else it is left out.
        """
        own = {**self._options, "provider": provider} if is_found else self._options
        limited = unlimited(self._options) if whose is None else in_tokens(own, model, is_request=True)
        key = provider, static, agent.title if agent else whose, is_off, limited.get("max_input_tokens")
        if key not in self._compiled:
            if len(self._compiled) > _MOST_POLICIES:
                self._compiled.clear()
            kept, markers, stubs = texts_of(agent, whose)
            named = {"provider": provider, "keep_matching": (*kept, *self._options["keep_matching"])}
            self._compiled[key] = own_policy(
                _engine.engine,
                {**limited, **named},
                reduces=False,
                summarizer=str if self._summarizes else None,
                static=static,
                markers=markers,
                stubs=stubs,
                off=is_off,
            )
        return self._compiled[key]
