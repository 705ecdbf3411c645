"""A model of Inspect whose old tool results are masked: `pip install "recede[inspect-ai]"`, then run this file.

The model is a script, so that no key is needed; put the name of another one in its place.
"""

import asyncio
from typing import Any

from inspect_ai.model import ChatMessageUser, ModelAPI, ModelOutput, get_model, modelapi
from inspect_ai.tool import Tool, tool

from recede.integrations.inspect_ai import RecedeHooks


def chars(messages: Any) -> int:
    """The characters of the tool results."""
    return sum(len(message.text) for message in messages if message.role == "tool")


@modelapi(name="script")
class Script(ModelAPI):
    """Reads 48 pages, and prints how much it was sent."""

    async def generate(self, input: Any, **_: Any) -> ModelOutput:
        """Answer as a model does."""
        page = len(input) // 2
        if page % 12 == 0:
            print(f"{len(input):3} messages, {chars(input):7,} characters sent")
        if page < 48:
            return ModelOutput.for_tool_call("script", "read_log", {"page": page})
        return ModelOutput.from_content("script", "It is on page 7.")


@tool
def read_log() -> Tool:
    """Make the tool."""

    async def execute(page: int) -> str:
        """Read a page of the log.

        Args:
            page: The number of the page.
        """
        return f"page {page}: a line of the log\n" * 80

    return execute


RecedeHooks(keep=10).register()
task: list[Any] = [ChatMessageUser(content="Find the bug.")]
messages, _ = asyncio.run(get_model("script/m").generate_loop(task, tools=[read_log()]))
print(f"{len(messages):3} messages, {chars(messages):7,} characters stored")
