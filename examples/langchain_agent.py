"""A LangChain agent whose old tool results are masked: `pip install "recede[langchain]"`, then run this file.

The model plays a script, so that no key is needed; put `init_chat_model("...")` in its place.
"""

from typing import Any

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage

from recede.integrations.langchain import RecedeMiddleware


class Model(FakeMessagesListChatModel):
    """Reads sixty pages, and prints how much it was sent."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> Any:
        if len(messages) % 20 == 1:
            print(f"{len(messages):3} messages, {sum(len(message.text) for message in messages):7,} characters sent")
        return super()._generate(messages, *arguments, **options)


@tool
def read_log(page: int) -> str:
    """Read a page of the log."""
    return f"page {page}: a line of the log\n" * 80


calls: list[BaseMessage] = [
    AIMessage("", tool_calls=[{"id": f"call_{page}", "name": "read_log", "args": {"page": page}}]) for page in range(60)
]
agent = create_agent(
    Model(responses=[*calls, AIMessage("It is on page 7.")]),
    [read_log],
    middleware=[RecedeMiddleware(keep=10)],
)
state = agent.invoke({"messages": [("user", "Find the bug.")]}, {"recursion_limit": 200})
print(f"{len(state['messages']):3} messages, {sum(len(one.text) for one in state['messages']):7,} characters stored")
