"""An agent with LiteLLM whose old tool messages are masked; `pip install "recede[litellm]"` first.

The provider plays a script, so that no key is needed; name a model of another one, and that answers.
"""

import asyncio
import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # prices are not loaded

import litellm
from litellm.utils import custom_llm_setup

from recede.integrations.litellm import RecedeCallback


def chars(messages: list[Any]) -> int:
    """The characters of the tool messages."""
    return sum(len(message["content"]) for message in messages if message["role"] == "tool")


class Scripted(litellm.CustomLLM):
    """Reads forty pages, and prints how much it was sent."""

    page = 0

    async def acompletion(self, model: str, messages: list[Any], *arguments: Any, **options: Any) -> Any:
        if self.page % 10 == 0:
            print(f"{len(messages):3} messages, {chars(messages):7,} characters sent")
        self.page += 1
        answer: dict[str, Any] = {"content": "It is on page 7."}
        if self.page <= 40:
            function = {"name": "read_log", "arguments": f'{{"page": {self.page}}}'}
            answer = {"tool_calls": [{"id": f"call_{self.page}", "type": "function", "function": function}]}
        return litellm.ModelResponse(choices=[litellm.Choices(message=litellm.Message(**answer))])


def read_log(page: str) -> str:
    """Read a page of the log."""
    return f"page {page}: a line of the log\n" * 80


async def run(messages: list[Any]) -> None:
    """The loop of the agent."""
    while True:
        response: Any = await litellm.acompletion(model="scripted/reader", messages=messages)
        answer = response.choices[0].message
        messages.append(answer.model_dump())
        if not answer.tool_calls:
            return
        for call in answer.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": read_log(call.function.arguments)})


litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": Scripted()}]
custom_llm_setup()
litellm.callbacks = [RecedeCallback(keep=10)]
messages: list[Any] = [{"role": "user", "content": "Find the bug."}]
asyncio.run(run(messages))
print(f"{len(messages):3} messages, {chars(messages):7,} characters stored")
