"""An agent of Strands whose old tool results are masked: `pip install "recede[strands]"`, then run this file.

The model is a script, so that no key is needed; put a `BedrockModel()` or another one in its place.
"""

import json
from collections.abc import AsyncGenerator
from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models import Model

from recede.integrations.strands import RecedePlugin


def chars(messages: Any) -> int:
    """The characters of the tool results."""
    blocks = [block["toolResult"] for message in messages for block in message["content"] if "toolResult" in block]
    return sum(len(part.get("text", "")) for block in blocks for part in block["content"])


class Script(Model):
    """Reads 48 pages, and prints how much it was sent."""

    def update_config(self, **_: Any) -> None:
        """It has no configuration."""

    def get_config(self) -> Any:
        """It has none."""
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        """It has none."""
        yield {}

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        """Answer as a model of Converse does."""
        page = len(messages) // 2
        if page % 12 == 0:
            print(f"{len(messages):3} messages, {chars(messages):7,} characters sent")
        yield {"messageStart": {"role": "assistant"}}
        if page < 48:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"call_{page}", "name": "read_log"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({"page": page})}}}}
        else:
            yield {"contentBlockDelta": {"delta": {"text": "It is on page 7."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if page < 48 else "end_turn"}}


@tool
def read_log(page: int) -> str:
    """Read a page of the log."""
    return f"page {page}: a line of the log\n" * 80


# Without the conversation manager of Strands, which drops old messages.
agent = Agent(
    Script(),
    tools=[read_log],
    plugins=[RecedePlugin(keep=10)],
    callback_handler=None,
    conversation_manager=NullConversationManager(),
)
agent("Find the bug.")
print(f"{len(agent.messages):3} messages, {chars(agent.messages):7,} characters stored")
