"""An agent of the OpenAI Agents SDK whose old tool outputs are masked; `pip install "recede[openai-agents]"` first.

The model plays a script, so that no key is needed; leave `model` out, and OpenAI answers.
"""

import asyncio
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from recede.integrations.openai_agents import RecedeInputFilter


def chars(items: Any) -> int:
    """The characters of the outputs."""
    return sum(len(item.get("output", "")) for item in items if isinstance(item, dict))


class Scripted(Model):
    """Reads forty pages, and prints how much it was sent."""

    page = 0

    async def get_response(
        self, system_instructions: Any, input: Any, *arguments: Any, **options: Any
    ) -> ModelResponse:
        if self.page % 10 == 0:
            print(f"{len(input):3} items, {chars(input):7,} characters sent")
        self.page += 1
        answer: Any
        if self.page <= 40:
            given = {"call_id": f"call_{self.page}", "arguments": f'{{"page": {self.page}}}'}
            answer = ResponseFunctionToolCall(name="read_log", type="function_call", **given)
        else:
            text = ResponseOutputText(text="It is on page 7.", type="output_text", annotations=[])
            answer = ResponseOutputMessage(
                id="msg_1", role="assistant", status="completed", type="message", content=[text]
            )
        return ModelResponse([answer], Usage(), None)

    def stream_response(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError


@function_tool
def read_log(page: int) -> str:
    """Read a page of the log."""
    return f"page {page}: a line of the log\n" * 80


agent: Any = Agent(name="reader", model=Scripted(), tools=[read_log])
config = RunConfig(call_model_input_filter=RecedeInputFilter(keep=10), tracing_disabled=True)
items = asyncio.run(Runner.run(agent, "Find the bug.", max_turns=50, run_config=config)).to_input_list()
print(f"{len(items):3} items, {chars(items):7,} characters stored")
