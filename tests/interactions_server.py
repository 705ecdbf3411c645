"""Gemini's Interactions on this machine: each request is checked, and answered by the next turn of an agent's loop."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from local_server import listening
from provider_rules import fault
from provider_rules.interactions import signature_of
from support import SUMMARY

Step = dict[str, Any]


@dataclass
class Interactions:
    """What is answered, and what was asked."""

    url: str = ""
    turns: int = 0  # with calls; then an answer
    parallel: int = 1
    continues_at: frozenset[int] = frozenset()  # the answers that stop, and go on with a token
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    answered: int = 0

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        number, is_continued = self.answered, "continuation_token" in body
        tokens = len(json.dumps(body.get("input"))) // 4
        usage = {"total_input_tokens": tokens, "total_output_tokens": 20, "total_tokens": tokens + 20}
        interaction = {"id": f"v1_{len(self.requests)}", "object": "interaction", "usage": usage}
        interaction |= {"created": "2026-11-28T00:00:00Z", "updated": "2026-11-28T00:00:00Z", "model": "gemini-3-pro"}
        if body.get("system_instruction", "").startswith("You"):  # a summary is asked for
            return {**interaction, "status": "completed", "steps": [_said("It went on.")]}
        if number in self.continues_at and not is_continued:
            return {**interaction, "status": "requires_continuation", "steps": [], "continuation_token": f"t{number}"}
        self.answered += 1
        if number >= self.turns:
            return {**interaction, "status": "completed", "steps": [_said("Done.")]}
        steps: list[Step] = [{"type": "thought", "signature": signature_of(f"thought {number}")}]
        for place in range(self.parallel):
            call = {"id": f"c{number}_{place}", "name": "read", "arguments": {"path": f"{number}"}}
            steps.append({"type": "function_call", **call})
        return {**interaction, "status": "requires_action", "steps": steps}


def _said(text: str) -> Step:
    return {"type": "model_output", "content": [{"type": "text", "text": text}]}


def events_of(interaction: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a stream: calls begin without arguments, and the last event has no steps."""
    without = {name: value for name, value in interaction.items() if name not in ("steps", "usage")}
    events: list[dict[str, Any]] = [
        {"event_type": "interaction.created", "interaction": {**without, "status": "in_progress"}}
    ]
    for index, step in enumerate(interaction["steps"]):
        begun = {**step, "arguments": {}} if step["type"] == "function_call" else {**step}
        deltas: list[dict[str, Any]] = []
        if step["type"] == "function_call":
            deltas = [{"type": "arguments_delta", "arguments": json.dumps(step["arguments"])}]
        elif step["type"] == "thought":
            begun, deltas = {"type": "thought"}, [{"type": "thought_signature", "signature": step["signature"]}]
        else:
            begun, deltas = {"type": "model_output", "content": []}, [dict(part) for part in step["content"]]
        events.append({"event_type": "step.start", "index": index, "step": begun})
        events += [{"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"event_type": "step.stop", "index": index})
    completed = {**without, "usage": interaction["usage"]}
    return [*events, {"event_type": "interaction.completed", "interaction": completed}]


@contextlib.contextmanager
def serving_interactions(**how: Any) -> Iterator[Interactions]:
    with listening(_Handler) as httpd:
        played = httpd.played = Interactions(httpd.url, **how)
        yield played


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(200, "application/json", b'{"id":"v1_1","status":"completed","steps":[]}')

    def do_POST(self) -> None:
        played: Interactions = self.server.played  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        played.paths.append(self.path)
        if "generateContent" in self.path:  # for a summary
            said = {"content": {"role": "model", "parts": [{"text": f"{SUMMARY}It went on."}]}, "finishReason": "STOP"}
            self._send(200, "application/json", json.dumps({"candidates": [said]}).encode())
            return
        if not self.path.partition("?")[0].endswith("/interactions"):
            self._send(200, "application/json", b'{"id":"v1_1","status":"cancelled","steps":[]}')
            return
        played.requests.append(body)
        words = fault("interactions", body)
        if words is not None:
            played.refusals.append(words)
            error = {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}
            self._send(400, "application/json", json.dumps(error).encode())
            return
        answer = played.answer(body)
        if not body.get("stream"):
            self._send(200, "application/json", json.dumps(answer).encode())
            return
        events = events_of(answer)
        if "continuation_token" in answer:
            events[-1]["interaction"]["continuation_token"] = answer["continuation_token"]
        lines = [f"event: {one['event_type']}\ndata: {json.dumps(one)}\n\n" for one in events]
        self._send(200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass
