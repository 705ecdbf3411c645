"""A plugin of pytest: every agent of Strands has the plugin."""

from typing import Any

from strands import Agent

from recede.integrations.strands import RecedePlugin

_init = Agent.__init__


def _with_plugin(self: Agent, *arguments: Any, plugins: Any = None, **options: Any) -> None:
    _init(self, *arguments, plugins=[*(plugins or ()), RecedePlugin(keep=1, boundary="sliding")], **options)


Agent.__init__ = _with_plugin  # type: ignore[method-assign]
