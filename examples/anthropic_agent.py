"""An agent whose client masks old tool results: `pip install "recede[anthropic]"`, then run this file.

A server on this machine plays a script, so that no key is needed; leave `base_url` out, and Anthropic answers.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from anthropic import Anthropic

from recede.integrations.anthropic import RecedeMiddleware


def chars(messages: list[Any]) -> int:
    """The characters of the tool results."""
    results = [message["content"] for message in messages if message["role"] == "user"][1:]
    return sum(len(block["content"]) for blocks in results for block in blocks)


class Scripted(BaseHTTPRequestHandler):
    """Reads sixty pages, and prints how much it was sent."""

    page = 0

    def do_POST(self) -> None:
        """Answer a request."""
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        if Scripted.page % 10 == 0:
            print(f"{len(messages):3} messages, {chars(messages):7,} characters sent")
        Scripted.page += 1
        content: list[Any] = [{"type": "text", "text": "It is on page 7."}]
        if Scripted.page <= 60:
            call = {"id": f"toolu_{Scripted.page}", "name": "read_log", "input": {"page": Scripted.page}}
            content = [{"type": "tool_use", **call}]
        answer = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": content}
        answer["stop_reason"] = "tool_use" if Scripted.page <= 60 else "end_turn"
        answer["usage"] = {"input_tokens": 9, "output_tokens": 9}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *arguments: Any) -> None:
        """Nothing."""


def read_log(page: int) -> str:
    """Read a page of the log."""
    return f"page {page}: a line of the log\n" * 80


server = HTTPServer(("127.0.0.1", 0), Scripted)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
messages: list[Any] = [{"role": "user", "content": "Find the bug."}]
with Anthropic(api_key="none", base_url=url, middleware=[RecedeMiddleware(keep=10)]) as client:
    while True:
        answer = client.messages.create(model="m", max_tokens=99, messages=messages)
        messages.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            break
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": read_log(**call.input)} for call in calls]
        messages.append({"role": "user", "content": results})
server.shutdown()
print(f"{len(messages):3} messages, {chars(messages):7,} characters stored")
