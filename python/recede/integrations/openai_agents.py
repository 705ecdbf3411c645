"""OpenAI Agents SDK: the filter of a `RunConfig`, which sees the input of each model call."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from typing import Any, Literal

from recede.integrations._shared import (
    RECALL_DESCRIPTION,
    RECALL_PARAMETERS,
    masker_of,
    missing,
    sent_usage,
)
from recede.reduction._report import BoundaryMove
from recede.reduction._signature import runs

try:
    from agents import FunctionTool, RunHooks
    from agents.run import CallModelData, ModelInputData
except ImportError as error:
    raise missing("openai_agents", "openai-agents 0.4 or newer") from error

__all__ = ["MaskToolOutputs"]

# The input of the model call that is running.
_running: ContextVar[list[Any] | None] = ContextVar("recede_running", default=None)


class MaskToolOutputs(RunHooks[Any]):
    """Masks old tool outputs in the input of each model call; sessions and results keep all of them.

    Input that continues a response or conversation stored by OpenAI is only what is new, and is left as it is.

    Args:
        recall: placeholders name the id of the call, with which `recall_tool` fetches the output.

    The other options are those of a `recede.Masker`.

    Raises:
        TypeError, ValueError: an option is unknown, of the wrong type, or out of range.

    Attributes:
        masker: the `recede.Masker`, for its `masks` and `stats`.
        recall_tool: a tool for the agent: ``Agent(tools=[..., masking.recall_tool])``.

    One object serves any number of runs and sessions. Given as ``hooks=`` too, it reports the usage of the answers.

    Example::

        masking = MaskToolOutputs(keep=10)
        Runner.run(agent, "Go.", hooks=masking, run_config=RunConfig(call_model_input_filter=masking))
    """

    @runs(lambda self, **options: self._begin(**options))
    def __init__(
        self, *, recall: bool = False, keep: int | None = 10,
        boundary: Literal["sliding", "stepped", "break_even"] = "break_even", most: int = 128, check: bool = False,
        dispatch: bool = True, on_move: Callable[[BoundaryMove], Any] | None = None,
        keep_messages: int | None = None, keep_turns: int | None = None,
        keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
        keep_errors: bool = False, keep_matching: Collection[str] = (), mask_chunk: int | None = None,
        cache_read: float = 0.1, cache_write: float = 1.25, cache_cold: bool | Collection[int] = False,
        cache: Literal["ideal", "prefix", "breakpoints"] = "ideal", break_even_at: float = 0.5,
        warranty: float | None = 0.1, cache_breakpoint: Literal["keep", "boundary"] = "keep", marks_elsewhere: int = 2,
        max_observation_chars: int | None = None, placeholder: str | None = None, min_masked_chars: int = 0,
        image_chars: int = 6400,
    ) -> None:  # fmt: skip
        """See the class."""

    def _begin(self, *, recall: bool = False, **options: Any) -> None:
        self.masker = masker_of(options, recall=recall)
        self.recall_tool = FunctionTool(
            name="recall",
            description=RECALL_DESCRIPTION,
            params_json_schema=RECALL_PARAMETERS,
            on_invoke_tool=self._recall,
        )
        # Tools are not given the history: the newest input of each conversation, by the id of its first call.
        self._inputs: dict[str, list[Any]] = {}
        self._most = options.get("most", 128)

    def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """The filter: the view of the input."""
        given: list[Any] = data.model_data.input
        _running.set(None)
        if _is_continuation(given):
            return data.model_data
        _running.set(given)
        first = next((item["call_id"] for item in given if _is_call(item)), None)
        if first is not None:
            self._inputs.pop(first, None)
            self._inputs[first] = given
            if len(self._inputs) > self._most:
                self._inputs.pop(next(iter(self._inputs)), None)
        return ModelInputData(input=self.masker.view(given), instructions=data.model_data.instructions)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Report the usage of an answer."""
        given, usage = _running.get(), response.usage
        if given is not None and usage.input_tokens:
            details = getattr(usage.input_tokens_details, "cached_tokens", None)
            self.masker.reported(sent_usage(usage.input_tokens, usage.output_tokens, details), given)

    async def _recall(self, context: Any, arguments: str) -> str:
        name = str(json.loads(arguments).get("id"))
        for given in reversed(list(self._inputs.values())):
            if any(_is_call(item) and item["call_id"] == name for item in given):
                return self.masker.recall(given, name)
        return f"there is no observation {name!r}"


def _is_call(item: Any) -> bool:
    return "call_id" in item and not str(item.get("type")).endswith("_output")


def _is_continuation(items: list[Any]) -> bool:
    """Whether an output comes before its call, which then is where OpenAI keeps the rest."""
    calls = set()
    for item in items:
        if _is_call(item):
            calls.add(item["call_id"])
        elif "call_id" in item:
            return item["call_id"] not in calls
    return False
