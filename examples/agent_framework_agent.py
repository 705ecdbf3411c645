"""An agent of Agent Framework whose old tool results are masked: `pip install "recede[agent-framework]"`, then run.

The client is a script, so that no key is needed; put an `OpenAIChatClient()` or another one in its place.
"""

import asyncio
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    tool,
)

from recede.integrations.agent_framework import RecedeMiddleware


def chars(messages: list[Message]) -> int:
    """The characters of the function results."""
    parts = [part for message in messages for part in message.contents if part.type == "function_result"]
    return sum(len(str(part.result)) for part in parts)


class Script(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[misc]
    """Reads 48 pages, and prints how much it was sent."""

    def _inner_get_response(self, *, messages: list[Message], **_: Any) -> Any:
        page = len(messages) // 2
        if page % 12 == 0:
            print(f"{len(messages):3} messages, {chars(messages):7,} characters sent")
        call = Content.from_function_call(f"call_{page}", "read_log", arguments={"page": page})

        async def answer() -> Any:
            part = call if page < 48 else Content.from_text("It is on page 7.")
            return ChatResponse(messages=[Message("assistant", [part])])

        return answer()


@tool(approval_mode="never_require")
def read_log(page: int) -> str:
    """Read a page of the log."""
    return f"page {page}: a line of the log\n" * 80


async def main() -> None:
    """Run the agent, and print what its session has."""
    client = Script(function_invocation_configuration={"max_iterations": 100})
    agent: Any = Agent(
        client,
        tools=[read_log],
        middleware=[RecedeMiddleware(keep=10)],
        context_providers=[InMemoryHistoryProvider()],
    )
    session = agent.create_session()
    await agent.run("Find the bug.", session=session)
    stored = session.state["in_memory"]["messages"]
    print(f"{len(stored):3} messages, {chars(stored):7,} characters stored")


asyncio.run(main())
