"""An agent of Pydantic AI whose old tool returns are masked: `pip install "recede[pydantic-ai]"`, then run this file.

The model is a function, so that no key is needed; put `"openai:gpt-5.5"` or another one in its place.
"""

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from recede.integrations.pydantic_ai import RecedeCapability


def chars(messages: list[ModelMessage]) -> int:
    """The characters of the tool returns."""
    parts = [part for message in messages for part in message.parts]
    return sum(len(str(part.content)) for part in parts if isinstance(part, ToolReturnPart))


def model(messages: list[ModelMessage], info: Any) -> ModelResponse:
    """Reads 48 pages, and prints how much it was sent."""
    page = len(messages) // 2
    if page % 12 == 0:
        print(f"{len(messages):3} messages, {chars(messages):7,} characters sent")
    if page < 48:
        return ModelResponse(parts=[ToolCallPart("read_log", {"page": page}, f"call_{page}")])
    return ModelResponse(parts=[TextPart("It is on page 7.")])


agent = Agent(FunctionModel(model), capabilities=[RecedeCapability(keep=10)])


@agent.tool_plain
def read_log(page: int) -> str:
    """Read a page of the log."""
    return f"page {page}: a line of the log\n" * 80


stored = asyncio.run(agent.run("Find the bug.")).all_messages()
print(f"{len(stored):3} messages, {chars(stored):7,} characters stored")
