"""OpenAI Agents SDK: the filter of a `RunConfig`, which sees the input of each model call."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from recede._recall import RECALL_DESCRIPTION, RECALL_PARAMETERS
from recede.integrations._shared import Masking, base_url, missing, running, say

try:
    from agents import FunctionTool, RunHooks
    from agents.models import get_default_model
    from agents.run import CallModelData, ModelInputData
except ImportError as error:
    raise missing("openai_agents", "openai-agents 0.4 or newer") from error

__all__ = ["RecedeInputFilter"]


class RecedeInputFilter(Masking, RunHooks[Any]):
    """Masks old tool outputs in the input of each model call; sessions and results keep all of them.

    Input that continues a response or conversation stored by OpenAI is only what is new, and is left as it is.

    Args:
        recall: placeholders name the handle of the output, with which `recall_tool` fetches it.

    The other options are those of its `masker`, a `recede.masker.Masker`; wrong ones are a TypeError or ValueError.
    One object serves any number of runs and sessions.

    Attributes:
        recall_tool: a tool for the agent: ``Agent(tools=[..., masking.recall_tool])``.

    Given as ``hooks=`` too, it reports the usage of the answers.

    Example::

        masking = RecedeInputFilter(keep=10)
        Runner.run(agent, "Go.", hooks=masking, run_config=RunConfig(call_model_input_filter=masking))
    """

    def _begin(self, **options: Any) -> None:
        super()._begin(**options)
        self.recall_tool = FunctionTool(
            name="recall",
            description=RECALL_DESCRIPTION,
            params_json_schema=RECALL_PARAMETERS,
            on_invoke_tool=self._recall,
        )

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Filter the input of a model call: return its view."""
        given: list[Any] = data.model_data.input
        running.set(None)
        if _is_continuation(given):
            say("input that continues a stored response or conversation is sent as it is: OpenAI keeps the rest")
            return data.model_data
        view = await self._asent(given, _model_of(data.agent), partial(_around, data), base_url(data.agent.model))
        return ModelInputData(input=view, instructions=data.model_data.instructions)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Report the usage of an answer."""
        usage = response.usage
        cached = getattr(usage.input_tokens_details, "cached_tokens", None)
        self._report_tokens(running.get(), usage.input_tokens, usage.output_tokens, cached, None)

    async def _recall(self, context: Any, arguments: str) -> Any:
        content = self.recalled(running.get() or [], str(json.loads(arguments).get("handle")))
        if isinstance(content, str):
            return content
        # A tool returns its parts under other names than those of the input.
        return [{**part, "type": str(part.get("type")).removeprefix("input_")} for part in content]


def _around(data: CallModelData[Any]) -> dict[str, Any]:
    """The instructions and the tools of a model call; those of servers and handoffs are not known here."""
    tools = [one for one in data.agent.tools if isinstance(one, FunctionTool)]
    described = [(one.name, one.description, one.params_json_schema) for one in tools]
    return {"instructions": data.model_data.instructions, "tools": described or None}


def _model_of(agent: Any) -> str:
    """Return the name of an agent's model; a run's configuration is not visible to its filter."""
    model = get_default_model() if agent.model is None else agent.model
    return model if isinstance(model, str) else str(getattr(model, "model", ""))


def _is_continuation(items: list[Any]) -> bool:
    """Whether an output comes before its call, so that OpenAI keeps the rest of the history."""
    calls = set()
    for item in items:
        if "call_id" not in item:
            continue
        if str(item.get("type")).endswith("_output"):
            return item["call_id"] not in calls
        calls.add(item["call_id"])
    return False
