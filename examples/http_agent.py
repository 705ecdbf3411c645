"""An agent whose HTTP client masks old tool results; `pip install recede openai` first.

A server on this machine plays a script, so that no key is needed; leave `base_url` out, and OpenAI answers.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from openai import DefaultHttpxClient, OpenAI

from recede.integrations.http import recede_client


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


def read_log(page: str) -> str:
    """Read a page of the log."""
    return f"page {page}: a line of the log\n" * 80


server = HTTPServer(("127.0.0.1", 0), Scripted)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1"
http_client = recede_client(DefaultHttpxClient(), keep=10)
messages: list[Any] = [{"role": "user", "content": "Find the bug."}]
with OpenAI(api_key="none", base_url=url, http_client=http_client) as client:
    while True:
        answer = client.chat.completions.create(model="m", messages=messages).choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            break
        for call in answer.tool_calls:
            text = read_log(call.function.arguments)  # type: ignore[union-attr]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
server.shutdown()
print(f"{len(messages):3} messages, {chars(messages):7,} characters stored")
