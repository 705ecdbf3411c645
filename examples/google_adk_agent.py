"""An agent of Google's ADK whose old tool results are masked: `pip install "recede[google-adk]"`, then run this file.

The model is a script, so that no key is needed; put `"gemini-3.5-flash"` or another name in its place.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import LlmResponse
from google.adk.models.base_llm import BaseLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

from recede.integrations.google_adk import RecedePlugin


def chars(contents: list[types.Content]) -> int:
    """The characters of the function responses."""
    parts = [part.function_response for content in contents for part in content.parts or ()]
    return sum(len(str((part.response or {}).get("result"))) for part in parts if part)


class Script(BaseLlm):
    """Reads 96 pages, and prints how much it was sent."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        """Answer as a model does."""
        contents = llm_request.contents
        page = len(contents) // 2
        if page % 24 == 0:
            print(f"{len(contents):3} messages, {chars(contents):7,} characters sent")
        call = types.FunctionCall(id=f"call_{page}", name="read_log", args={"page": page})
        part = types.Part(function_call=call) if page < 96 else types.Part(text="It is on page 7.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def read_log(page: int) -> str:
    """Read a page of the log."""
    return f"page {page}: a line of the log\n" * 80


async def main() -> None:
    """Run the agent, and print what its session has."""
    agent = LlmAgent(name="reader", model=Script(model="scripted"), tools=[read_log])
    runner = InMemoryRunner(agent=agent, app_name="app", plugins=[RecedePlugin(keep=10)])
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    given = types.Content(role="user", parts=[types.Part(text="Find the bug.")])
    async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=given):
        pass
    stored = await runner.session_service.get_session(app_name="app", user_id="u", session_id=session.id)
    contents = [event.content for event in stored.events if event.content] if stored else []
    print(f"{len(contents):3} messages, {chars(contents):7,} characters stored")


asyncio.run(main())
