"""A plugin of pytest: every run of the OpenAI Agents SDK has the filter, but for those with one of their own."""

from typing import Any

from agents import RunConfig

from recede.integrations.openai_agents import RecedeInputFilter

_init = RunConfig.__init__


def _with_filter(self: RunConfig, *arguments: Any, **options: Any) -> None:
    _init(self, *arguments, **options)
    if self.call_model_input_filter is None:
        self.call_model_input_filter = RecedeInputFilter(keep=10)


RunConfig.__init__ = _with_filter  # type: ignore[method-assign]
