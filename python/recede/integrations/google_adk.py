"""Google's Agent Development Kit: a plugin, whose callback changes the contents of a model request."""

from __future__ import annotations

import json
from typing import Any

from recede.integrations._shared import Masking, base_url, field_of, is_kept, missing, running

try:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.function_tool import FunctionTool
    from google.genai.types import Content
except ImportError as error:
    raise missing("google_adk", "google-adk 1.16 or newer") from error

__all__ = ["RecedePlugin"]

_USAGE = ("prompt_token_count", "candidates_token_count", "cached_content_token_count", "")


def _validated(one: Any) -> Content:
    """The content of a dict, such as a summary; a part of one may be a dict, too."""
    if isinstance(one, dict):
        return Content.model_validate(one)
    return Content(role=one.role, parts=one.parts) if any(isinstance(part, dict) for part in one.parts or ()) else one


def _url(context: Any) -> str:
    """Find the base URL of the model that the agent of a `context` has, or inherits; "" if it has none."""
    agent = field_of(field_of(context, "_invocation_context"), "agent")
    while agent is not None and not field_of(agent, "model"):
        agent = field_of(agent, "parent_agent")
    return base_url(field_of(agent, "model"))


class RecedePlugin(Masking, BasePlugin):
    """Masks old function responses in what is sent to the model; the events of the session keep all of them.

    Args:
        recall: adds a tool `recall` to the agents, with which they can fetch a masked response; placeholders then name
            the handle of the response.

    The other options are those of its `masker`, a `recede.masker.Masker`; wrong ones are a TypeError or ValueError.
    One object serves any number of agents and sessions.

    Example::

        runner = Runner(agent=agent, plugins=[RecedePlugin(keep=10)], ...)
    """

    def _begin(self, **options: Any) -> None:
        BasePlugin.__init__(self, name="recede")
        super()._begin(**options)
        self._tools = [FunctionTool(self.recall)] if options.get("recall") else []

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Send the view."""
        given, config = list(llm_request.contents), llm_request.config
        running.set(None)
        if is_kept(vars(llm_request), ("previous_interaction_id",)):
            return
        around = {"system": config.system_instruction, "tools": config.tools}
        view = await self._asent(given, llm_request.model, lambda: around, _url(callback_context))
        llm_request.contents = list(map(_validated, view))
        llm_request.append_tools(self._tools)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Report the usage of an answer."""
        if llm_response.usage_metadata is not None and not llm_response.partial:
            self._report_usage(running.get(), vars(llm_response.usage_metadata), _USAGE)

    def _content(self, message: Any, place: int) -> Any:
        responses = [part.function_response for part in message.parts if part.function_response]
        response = responses[place].response or {}
        texts = [text for text in response.values() if isinstance(text, str)]
        return texts[0] if len(texts) == len(response) == 1 else json.dumps(response, ensure_ascii=False)
