"""An agent of CrewAI whose old tool results are masked: `pip install "recede[crewai]"`, then run this file.

A server on this machine plays a script, so that no key is needed; without `base_url` and `api_key` OpenAI answers.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

from recede.integrations.crewai import RecedeInterceptor


def chars(messages: list[Any]) -> int:
    """The characters of the tool messages."""
    return sum(len(message["content"]) for message in messages if message["role"] == "tool")


class Scripted(BaseHTTPRequestHandler):
    """Reads forty pages, and prints how much it was sent."""

    page = 0

    def do_POST(self) -> None:
        """Answer a request."""
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        if Scripted.page % 10 == 0:
            print(f"{len(messages):3} messages, {chars(messages):7,} characters sent")
        Scripted.page += 1
        message: dict[str, Any] = {"role": "assistant", "content": "It is on page 7."}
        if Scripted.page <= 40:
            function = {"name": "read_log", "arguments": f'{{"page": {Scripted.page}}}'}
            calls = [{"id": f"call_{Scripted.page}", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *arguments: Any) -> None:
        """Nothing."""


@tool("read_log")
def read_log(page: int) -> str:
    """Read a page of the log."""
    return f"page {page}: a line of the log\n" * 80


server = HTTPServer(("127.0.0.1", 0), Scripted)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1"
llm = LLM(model="m", provider="openai", base_url=url, api_key="none", interceptor=RecedeInterceptor(keep=10))
# CrewAI summarizes by the size of what it stores, not of what is sent.
agent = Agent(
    role="Debugger",
    goal="Find bugs.",
    backstory="You read logs.",
    tools=[read_log],
    llm=llm,
    respect_context_window=False,
    max_iter=100,
)
task = Task(description="Find the bug.", expected_output="The page.", agent=agent)
messages = Crew(agents=[agent], tasks=[task]).kickoff().tasks_output[0].messages
server.shutdown()
print(f"{len(messages):3} messages, {chars(messages):7,} characters stored")
