"""Turns and user messages in each shape of messages."""

from __future__ import annotations

from typing import Any, Literal, get_args

from generated.draws import Draws

__all__ = ["SHAPES", "Shape", "Shapes"]

Shape = Literal["openai", "anthropic", "responses", "chat_message", "gemini", "converse", "interactions", "mixed"]

SHAPES = get_args(Shape)[:-1]

_TOOLS = ("bash", "read_file", "search", "écrire", "")
_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
_IMAGE_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
_INPUT_IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
_INLINE_DATA = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
_DATA_IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png"}
_PROVIDER = ("code_execution", "google_search", "tool_search", "file_search", "mcp_server_tool")
_CONVERSE_IMAGE = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}


class Shapes(Draws):
    """Shapes: each makes the messages of a run with calls of these ids, and the messages with their results."""

    def _user(self, shape: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "user", "content": self._text()}
        if shape == "responses":
            message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": self._text()}]}
        elif shape == "gemini":
            message = {"role": "user", "parts": self._untyped(_INLINE_DATA)}
        elif shape == "interactions":
            message = {"type": "user_input", "content": self._parts("text", _DATA_IMAGE)}
        elif shape == "converse":
            message["content"] = self._untyped(_CONVERSE_IMAGE)
        elif self._chance(5):
            message["content"] = self._parts("text", _IMAGE if shape == "anthropic" else _IMAGE_URL)
        return self._with_extras(message)

    def _turn(self, shape: str) -> list[dict[str, Any]]:
        most = self._max_parallel_calls
        count = self._number(1, most) if self._chance(10) else min(most, self._one_of(0, 1, 1, 1, 2, 3))
        ids = [self._id(place) for place in range(count)]
        if self._whole and shape in ("anthropic", "converse"):  # there no two calls may have the same id
            ids = [f"{call_id}_{self._calls}" for call_id in ids]
        answered = ids if self._whole else self._wounded(ids)
        run = getattr(self, f"_{shape}_run")(ids)
        results = getattr(self, f"_{shape}_results")(answered)
        if not self._whole and self._chance(12):
            results.insert(0, self._user(shape))
        return [*run, *results]

    def _wounded(self, ids: list[Any]) -> list[Any]:
        answered = list(ids)
        if answered and self._chance(5):
            answered.pop(self._number(0, len(answered) - 1))
        if answered and self._chance(10):
            answered.append(self._one_of(*answered))
        if self._chance(12):
            answered.append("nobody")
        if self._chance(8):
            answered.reverse()
        return answered

    def _openai_run(self, ids: list[Any]) -> list[dict[str, Any]]:
        messages = []
        if self._chance(6):
            messages.append({"role": "assistant", "content": self._text()})
        calls: list[Any] = []
        for call_id in ids:
            arguments = self._one_of("{}", '{"cmd": "ls é"}', "", None, {"cmd": "as an object"})
            call: dict[str, Any] = {"id": call_id, "type": "function"}
            if self._chance(8):
                call = {"id": call_id, "type": "custom", "custom": {"name": "sql", "input": "SELECT 'é'"}}
            else:
                call["function"] = {"name": self._one_of(*_TOOLS), "arguments": arguments}
            calls.append(call)
        message: dict[str, Any] = {"role": "assistant", "content": self._one_of(None, "", "I look.")}
        if calls:
            message["tool_calls"] = calls
        messages.append(self._with_extras(message))
        return messages

    def _openai_results(self, ids: list[Any]) -> list[dict[str, Any]]:
        messages = []
        for call_id in ids:
            message: dict[str, Any] = {"role": "tool", "tool_call_id": call_id}
            self._set_observation(message, "content", "text", _IMAGE_URL)
            messages.append(self._with_extras(message))
        return messages

    def _anthropic_run(self, ids: list[Any]) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if self._chance(4):
            blocks.append({"type": "thinking", "thinking": "hm", "signature": "c2ln"})
        if self._chance(2) or not ids:
            blocks.append({"type": "text", "text": self._text()})
        used, self._used = self._used, None
        if self._chance(10):
            blocks.insert(0, {"type": "compaction", "content": self._text()})
        if used is not None and not self._chance(6):
            blocks.insert(self._number(0, len(blocks)), _searched(used))
        for call_id in ids:
            block = {"type": "tool_use", "id": call_id, "name": self._one_of(*_TOOLS), "input": self._value()}
            blocks.append(block)
        if self._chance(8):  # beside calls, the result comes with the next answer
            used = f"srv_{self._calls if self._whole else self._number(1, 3)}"
            use = {"type": "server_tool_use", "id": used, "name": "web_search", "input": {"query": "é"}}
            place = self._number(0, len(blocks))
            blocks[place:place] = [use, _searched(used)] if self._whole else [use]
            self._used = None if self._whole else used
        if self._chance(4):
            return [{"role": "assistant", "content": [block]} for block in blocks]
        return [self._with_extras({"role": "assistant", "content": blocks})]

    def _anthropic_results(self, ids: list[Any]) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        for call_id in ids:
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
            self._set_observation(block, "content", "text", _IMAGE)
            if self._chance(4):
                block["is_error"] = self._one_of(True, True, False, None)
            blocks.append(block)
        if not blocks:
            return []
        if self._chance(5):
            return [{"role": "user", "content": [block]} for block in blocks]
        if self._chance(5):
            text = {"type": "text", "text": self._text()}
            blocks = [text, *blocks] if not self._whole and self._chance(3) else [*blocks, text]
        return [self._with_extras({"role": "user", "content": blocks})]

    def _responses_run(self, ids: list[Any]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if self._chance(10):
            items.append({"type": "compaction", "encrypted_content": "Z2VoZWlt"})
        if self._chance(3):
            items.append({"type": "reasoning", "summary": [], "encrypted_content": "Z2VoZWlt"})
        if self._chance(3) or not ids:
            content = [{"type": "output_text", "text": self._text()}]
            items.append({"type": "message", "role": "assistant", "content": content})
        for call_id in ids:
            kind = self._number(0, 5)
            item: dict[str, Any] = {"type": "function_call", "call_id": call_id, "name": self._one_of(*_TOOLS)}
            if kind == 0:
                item = {"type": "local_shell_call", "call_id": call_id, "action": {"type": "exec", "command": ["ls"]}}
            elif kind == 1:
                item = {"type": "custom_tool_call", "call_id": call_id, "name": "apply_patch", "input": "*** é"}
            elif kind == 2 and not self._whole and self._chance(2):
                item = {"type": f"{self._one_of('tool_search', 'shell', 'apply_patch', 'computer')}_call"}
                item["call_id"] = call_id
            else:
                item["arguments"] = self._one_of("{}", '{"cmd":"ls"}', "")
            items.append(item)
            self._call_types[repr(call_id)] = item["type"]
        if not self._whole and self._chance(8):
            items.append({"type": "web_search_call", "id": "ws_1", "status": "completed"})
        return items

    def _responses_results(self, ids: list[Any]) -> list[dict[str, Any]]:
        items = []
        for call_id in ids:
            kind = self._one_of("function_call_output", "function_call_output", "custom_tool_call_output")
            if self._whole:  # a provider refuses an output of another kind than its call
                kind = self._call_types[repr(call_id)] + "_output"
            item: dict[str, Any] = {"type": kind, "call_id": call_id}
            if self._chance(10):
                item["output"] = {"exit_code": 0, "stdout": "left alone"}
            else:
                self._set_observation(item, "output", self._one_of("input_text", "output_text"), _INPUT_IMAGE)
            items.append(item)
        return items

    def _chat_message_run(self, ids: list[Any]) -> list[dict[str, Any]]:
        if not ids:
            return [{"role": "assistant", "content": self._text()}]
        return [
            self._with_extras({"role": "assistant", "content": self._text(), "pairRole": "call", "pairId": call_id})
            for call_id in ids
        ]

    def _chat_message_results(self, ids: list[Any]) -> list[dict[str, Any]]:
        messages = []
        for call_id in ids:
            role = self._one_of("tool", "tool", "toolResult")
            message: dict[str, Any] = {"role": role, "pairRole": "result", "pairId": call_id}
            self._set_observation(message, "content", "text", _IMAGE_URL)
            messages.append(self._with_extras(message))
        return messages

    def _untyped(self, image: dict[str, Any]) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = [{"text": self._text()}]
        if self._chance(5):
            parts.append(dict(image))
        if self._chance(8):
            parts.append(self._one_of({}, {"text": None}, {"cachePoint": {"type": "default"}}, {"text": "tail"}))
        return parts

    def _gemini_run(self, ids: list[Any]) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        if self._chance(5):
            parts.append({"text": "hm", "thought": True})
        if self._chance(2) or not ids:
            parts.append({"text": self._text()})
        for call_id in ids:
            call: dict[str, Any] = {"name": self._name_of(call_id), "args": self._value()}
            if self._has_id(call_id):
                call["id"] = call_id
            part = {self._one_of("functionCall", "functionCall", "function_call"): call}
            parts.append({**part, "thoughtSignature": "c2ln"} if self._chance(6) else part)
        return [self._with_extras({"role": "model", "parts": parts})]

    def _gemini_results(self, ids: list[Any]) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for call_id in ids:
            result: dict[str, Any] = {"name": self._name_of(call_id)}
            # Some have no id though their call has one, or the other way around: these pair by their place.
            if (self._has_id(call_id) or self._whole) != self._chance(4):
                result["id"] = call_id
            kind = self._number(0, 9)
            if kind <= 5:
                result["response"] = {self._one_of("output", "result", "error", "é"): self._text()}
            elif kind == 6:
                result["response"] = {"error": {"code": 404, "message": self._text()}}
            elif kind == 7:
                result["response"] = {"stdout": self._text(), "exit_code": 0, "deep": self._value()}
            elif kind == 8:
                result["response"] = self._one_of({}, None, {"output": 5})
            parts.append({self._one_of("functionResponse", "functionResponse", "function_response"): result})
        return [self._with_extras({"role": "user", "parts": parts})] if parts else []

    def _has_id(self, call_id: Any) -> bool:
        """Decide by its id whether a content gets an id at all."""
        return len(str(call_id)) % 3 > 0

    def _name_of(self, call_id: Any) -> str:
        """Name a call: without ids, calls and results pair by their names."""
        return str(_TOOLS[len(str(call_id)) % len(_TOOLS)])

    def _converse_run(self, ids: list[Any]) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if self._chance(5):
            blocks.append({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}})
        if self._chance(2) or not ids:
            blocks.append({"text": self._text()})
        for call_id in ids:
            call = {"toolUseId": call_id, "name": self._one_of(*_TOOLS), "input": self._value()}
            blocks.append({"toolUse": call})
        if self._chance(8):  # of a tool that the provider runs
            self._calls += 1
            name = f"srv_{self._calls if self._whole else self._number(1, 3)}"
            halves = [
                {"toolUse": {"toolUseId": name, "name": "ground", "input": {}, "type": "server_tool_use"}},
                {"toolResult": {"toolUseId": name, "content": [{"text": self._text()}], "type": "ground_result"}},
            ]
            place = self._number(0, len(blocks))
            blocks[place:place] = halves if self._whole else halves[: self._number(0, 2)]
        return [self._with_extras({"role": "assistant", "content": blocks})]

    def _converse_results(self, ids: list[Any]) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        for call_id in ids:
            content: list[dict[str, Any]] = []
            for _ in range(self._one_of(0, 1, 1, 1, 2)):
                kind = self._number(0, 5)
                text: dict[str, Any] = {"text": self._text()}
                content.append({"json": self._value()} if kind == 0 else dict(_CONVERSE_IMAGE) if kind == 1 else text)
            result: dict[str, Any] = {"toolUseId": call_id, "content": content}
            if self._chance(4):
                result["status"] = self._one_of("error", "error", "success", None)
            blocks.append({"toolResult": result})
        if not blocks:
            return []
        if self._chance(5):
            text = {"text": self._text()}
            blocks = [text, *blocks] if not self._whole and self._chance(3) else [*blocks, text]
        return [self._with_extras({"role": "user", "content": blocks})]

    def _interactions_run(self, ids: list[Any]) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = []
        if self._chance(2):
            steps.append({"type": "thought", "signature": "c2ln"})
        if self._chance(8):
            steps += self._run_by_the_provider()
        if self._chance(3) or not ids:
            steps.append({"type": "model_output", "content": self._parts("text", _DATA_IMAGE)})
        for call_id in ids:
            step = {"type": "function_call", "id": call_id, "name": self._name_of(call_id), "arguments": {"é": "ls"}}
            if not self._whole and self._chance(10):
                step["arguments"] = self._value()
            steps.append({**step, "signature": ""} if self._chance(3) else step)
        return steps

    def _run_by_the_provider(self) -> list[dict[str, Any]]:
        self._calls += 1
        used = f"srv_{self._calls if self._whole else self._number(1, 3)}"
        name = self._one_of(*_PROVIDER)
        halves: list[dict[str, Any]] = [
            {"type": f"{name}_call", "id": used, "arguments": {"query": "é"}},
            {"type": f"{name}_result", "call_id": used, "result": self._text(), "signature": "c2ln"},
        ]
        return halves if self._whole else halves[self._one_of(0, 0, 1) : self._one_of(2, 2, 1)]

    def _interactions_results(self, ids: list[Any]) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        for call_id in ids:
            result: dict[str, Any] = {"type": "function_result", "call_id": call_id}
            if self._whole or not self._chance(6):
                result["name"] = self._name_of(call_id)
            if self._chance(4):
                result["is_error"] = self._one_of(True, True, False, None)
            kind = self._number(0, 9)
            if kind <= 6:
                self._set_observation(result, "result", "text", _DATA_IMAGE)
            elif kind == 7:
                result["result"] = [{"type": "text", "text": self._text()}, {"type": "function", "name": "f"}]
            else:
                result["result"] = self._one_of({}, {"rows": [self._text()]}, {"text": "x" * 90}, 5, True)
            results.append(result)
        if results and self._chance(3):
            extra = [{"type": "text", "text": self._text()}] if self._chance(4) else []
            return [{"type": "user_input", "content": [*results, *extra]}]
        return results


def _searched(used: str) -> dict[str, Any]:
    """The result of a search that the provider has made."""
    return {
        "type": "web_search_tool_result",
        "tool_use_id": used,
        "content": [{"title": "é", "encrypted_content": "x"}],
    }
