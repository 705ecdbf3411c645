"""A response that comes event by event: at any moment it can be put together of what has come."""

from __future__ import annotations

import json
from typing import Any

from recede._response import plain, read

__all__ = ["Streamed"]


class Streamed:
    """The response that the events of a stream make, of Anthropic or of OpenAI, as a dict.

    It is told by its events which of the two it is.
    """

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}  # of Anthropic, or the message of OpenAI's first choice
        self._inputs: dict[int, list[str]] = {}  # of the calls of Anthropic, as they are written
        self._rest: dict[str, Any] = {}  # of OpenAI, what stands beside the choices
        self._is_openai = False
        self._reason: str | None = None

    def add(self, event: Any) -> str:
        """Take an event; gives the text in it, which may be none."""
        kind = read(event, "type")
        if isinstance(kind, str):
            return self._add_event(kind, event)
        self._is_openai = True
        return self._add_chunk(plain(event))

    @property
    def is_whole(self) -> bool:
        """Whether the answer has come to its end."""
        return self._reason is not None

    def response(self) -> dict[str, Any]:
        """The whole response.

        Raises:
            ConnectionError: the stream ended before it.
        """
        if not self.is_whole:
            raise ConnectionError("the stream ended before the answer was whole")
        return self._response(self._reason)

    def partial(self) -> dict[str, Any] | None:
        """What has come, as an answer that was cut; None where nothing has."""
        if not self._message:
            return None
        return self._response(self._reason or ("length" if self._is_openai else "max_tokens"))

    def _response(self, reason: str | None) -> dict[str, Any]:
        if self._is_openai:
            message = {"role": "assistant", "content": None, **self._message}
            return {**self._rest, "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        content = [
            {**block, "input": _input("".join(self._inputs[index]))} if index in self._inputs else block
            for index, block in enumerate(self._message["content"])
        ]
        return {**self._message, "content": content, "stop_reason": reason}

    # Anthropic

    def _add_event(self, kind: str, event: Any) -> str:
        if kind == "message_start":
            self._message = plain(read(event, "message"))
        elif kind == "content_block_start":
            self._message["content"].append(plain(read(event, "content_block")))
        elif kind == "content_block_delta":
            return self._add_delta(read(event, "index"), plain(read(event, "delta")))
        elif kind == "message_delta":
            ended = plain(read(event, "delta"))
            self._reason = ended.pop("stop_reason", None) or self._reason
            self._message.update(ended)
            # These are totals, and not all of them are said again.
            told = {name: value for name, value in plain(read(event, "usage") or {}).items() if value is not None}
            self._message["usage"] = {**(self._message.get("usage") or {}), **told}
        return ""

    def _add_delta(self, index: int, delta: dict[str, Any]) -> str:
        block = self._message["content"][index]
        match delta["type"]:
            case "text_delta":
                block["text"] += delta["text"]
                return str(delta["text"])
            case "thinking_delta":
                block["thinking"] += delta["thinking"]
            case "signature_delta":
                block["signature"] = delta["signature"]
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            case "input_json_delta":
                self._inputs.setdefault(index, []).append(delta["partial_json"])
        return ""

    # OpenAI

    def _add_chunk(self, chunk: dict[str, Any]) -> str:
        choices = chunk.pop("choices", None) or []
        self._rest.update({name: value for name, value in chunk.items() if value is not None})
        said = ""
        for choice in choices:
            if choice.get("index", 0) != 0:
                continue
            self._reason = choice.get("finish_reason") or self._reason
            for name, value in (choice.get("delta") or {}).items():
                if name == "tool_calls":
                    self._add_calls(value or [])
                elif isinstance(value, str) and name != "role":
                    self._message[name] = self._message.get(name, "") + value
                    said += value if name == "content" else ""
                elif value is not None:
                    self._message[name] = value
        return said

    def _add_calls(self, deltas: list[dict[str, Any]]) -> None:
        calls = self._message.setdefault("tool_calls", [])
        for delta in deltas:
            index = delta.pop("index", None)
            if index is None or index >= len(calls):
                calls.append({})
                index = len(calls) - 1
            _merge(calls[index], delta)


def _merge(call: dict[str, Any], delta: dict[str, Any]) -> None:
    """What is written in pieces is put together; ids, types and names come whole."""
    for name, value in delta.items():
        if isinstance(value, dict):
            _merge(call.setdefault(name, {}), value)
        elif name in ("arguments", "input") and value is not None:
            call[name] = call.get(name, "") + value
        elif value is not None:
            call[name] = value


def _input(written: str) -> Any:
    """The input of a call. What is no JSON is handed on under a name that says so, as Anthropic advises."""
    if not written.strip():
        return {}
    try:
        value = json.loads(written)
    except ValueError:
        return {"INVALID_JSON": written}
    return value
