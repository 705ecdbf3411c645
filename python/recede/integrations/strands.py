"""Strands Agents: a plugin, whose middleware changes the messages of a model call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from recede._recall import RECALL_DESCRIPTION
from recede.integrations._shared import Masking, base_url, missing

try:
    from strands import Agent, ToolContext, tool
    from strands.middleware import InvokeModelStage
    from strands.plugins import Plugin
except ImportError as error:
    raise missing("strands", "strands-agents 1.62 or newer") from error

__all__ = ["RecedePlugin"]


class RecedePlugin(Masking, Plugin):
    """Masks old tool results in what is sent to the model; the messages of the agent keep all of them.

    Args:
        recall: adds a tool `recall` to the agent, with which it can fetch a masked result; placeholders then name the
            handle of the result.

    The other options are those of its `masker`, a `recede.masker.Masker`; wrong ones are a TypeError or ValueError.
    One object serves any number of agents and conversations.

    Example::

        agent = Agent(model, plugins=[RecedePlugin(keep=10)])
    """

    name = "recede"

    def _begin(self, **options: Any) -> None:
        Plugin.__init__(self)
        super()._begin(**options)
        if options.get("recall"):
            self._tools = [tool(name="recall", description=RECALL_DESCRIPTION, context=True)(self._recall)]

    def init_agent(self, agent: Agent) -> None:
        """Add the middleware to an agent."""
        agent.add_middleware(InvokeModelStage, self._masked)

    async def _masked(self, context: Any, next_fn: Any) -> AsyncGenerator[Any, None]:
        """Send the view, and report the usage of the answer."""
        given = list(context.messages)
        configured: Any = getattr(context.model, "get_config", dict)()  # models of one's own may have none
        model = (configured or {}).get("model_id")
        around = {"system": context.system_prompt, "tools": context.tool_specs}
        view = await self._asent(given, model, lambda: around, base_url(context.model))
        async for event in next_fn(context.replace(messages=view)):
            usage = getattr(event, "usage", None) or {}
            if plain := usage.get("inputTokens"):
                read, written = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens") or 0
                self._report_tokens(given, plain + (read or 0) + written, usage["outputTokens"], read, written)
            yield event

    def _recall(self, handle: str, tool_context: ToolContext[Any]) -> Any:
        content = self.recalled(tool_context.agent.messages, handle)
        return {"status": "success", "content": content if isinstance(content, list) else [{"text": content}]}

    def _content(self, message: Any, place: int) -> Any:
        results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
        return results[place]["content"]
