"""Test helpers for code that handles histories: generated histories, and a check of their pairs.

`histories` needs hypothesis, which recede does not install: ``pip install hypothesis``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from recede import check_pairs

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["Shape", "assert_pairs_valid", "histories"]

Shape = Literal["openai", "anthropic", "responses", "chat_message", "gemini", "converse", "mixed"]

_SHAPES = ("openai", "anthropic", "responses", "chat_message", "gemini", "converse")

# A high surrogate is followed by a plain character, so that no text contains a surrogate pair as two code points,
# which JSON cannot represent.
_UNITS = (
    "a",
    "word ",
    "\n",
    "\r\n",
    "\t",
    "é",
    "—",
    "日本",
    "😀",
    "\ud83dx",
    "\udc80",
    "\x00",
    "\x1b[31m",
    '"',
    "\\",
    "/",
    "\x7f",
    "\u2028",
    "\u00a0",
)

_PLACEHOLDERS = (
    "[observation masked — 4200 chars]",
    "[observation masked — 51 lines omitted]",
    "[observation masked — 5 chars, 2 images]",
    "[observation masked — 3 lines, 1 images omitted]",
    "[dispatch output masked — 90 chars]\nBEGIN_DISPATCH_RESULT\nok\nEND_DISPATCH_RESULT",
    "[observation masked — many chars]",
)

_DISPATCH_PIECES = (
    "BEGIN_DISPATCH_RESULT",
    "END_DISPATCH_RESULT",
    "BEGIN_DISPATCH_RESULT\nstatus: done\nEND_DISPATCH_RESULT",
    "log line\n",
    "." * 90,
    "é",
)

_TOOLS = ("bash", "read_file", "search", "écrire", "")
_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
_IMAGE_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
_INPUT_IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
_INLINE_DATA = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
_CONVERSE_IMAGE = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}
_DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "never counted"}}


def assert_pairs_valid(messages: list[Any]) -> None:
    """Assert that every call has its result, so that no provider refuses the history for its pairs.

    Calls at the end that may still be answered are allowed.

    Args:
        messages: the history, as for `recede.reduce`.

    Raises:
        AssertionError: pairs are broken; the message has one line per fault.
        TranscriptError: the input is not a history.

    Example:
        >>> from recede.testing import assert_pairs_valid
        >>> assert_pairs_valid([{"role": "user", "content": "hello"}])
        >>> assert_pairs_valid([{"role": "tool", "tool_call_id": "9", "content": "?"}])
        Traceback (most recent call last):
        ...
        AssertionError: the pairs of this history are not valid:
          message 0: result_without_call, id '9'
    """
    faults = [finding for finding in check_pairs(messages).findings if finding.kind != "open_call"]
    if faults:
        lines = [f"  message {fault.message_index}: {fault.kind}, id {fault.id!r}" for fault in faults]
        raise AssertionError("\n".join(["the pairs of this history are not valid:", *lines]))


def histories(
    shape: Shape | None = None,
    *,
    max_turns: int = 5,
    max_parallel_calls: int = 17,
    whole: bool = False,
) -> SearchStrategy[list[dict[str, Any]]]:
    """A hypothesis strategy for histories with the oddities of real logs.

    Reused ids, parallel calls, results that are missing, doubled or without a call, null, missing and empty content,
    lists of parts, images, errors, existing placeholders, open and closed dispatch blocks, tags, summaries of an
    earlier reduction, lone surrogates.

    Args:
        shape: the shape of the messages; "mixed" changes it from turn to turn, None draws any of these.
        max_turns: the maximum number of turns.
        max_parallel_calls: the maximum number of calls in one turn.
        whole: True generates valid pairs only: every call has a unique id, or in Gemini none, and one result, right after its turn. Texts
            and contents keep their oddities.

    Returns:
        The strategy. Its histories contain JSON values only.

    Raises:
        ImportError: hypothesis is not installed.
        ValueError: there is no such shape.

    Example:
        >>> from hypothesis import given, settings
        >>> import recede
        >>> from recede.testing import assert_pairs_valid, histories
        >>> @settings(max_examples=20, database=None)
        ... @given(histories("anthropic", whole=True))
        ... def masking_leaves_pairs_whole(history):
        ...     assert_pairs_valid(recede.mask_observations(history, keep_turns=1).messages)
        >>> masking_leaves_pairs_whole()
    """
    if shape not in (None, "mixed", *_SHAPES):
        raise ValueError(f"shape must be one of {', '.join(map(repr, _SHAPES))}, 'mixed' or None, not {shape!r}")
    try:
        from hypothesis import strategies
    except ImportError as error:
        raise ImportError("recede.testing.histories needs hypothesis: pip install hypothesis") from error

    @strategies.composite
    def history(draw: Any) -> list[dict[str, Any]]:
        return _Maker(draw, strategies, whole, max_parallel_calls).history(shape, max_turns)

    return history()


class _Maker:
    """Draws one history; one method a noun."""

    def __init__(self, draw: Any, strategies: Any, whole: bool, max_parallel_calls: int) -> None:
        self._draw = draw
        self._strategies = strategies
        self._whole = whole
        self._max_parallel_calls = max_parallel_calls
        self._calls = 0
        self._id_style = "fresh" if whole else self._one_of("fresh", "numbered", "same", "odd")

    def history(self, shape: Shape | None, max_turns: int) -> list[dict[str, Any]]:
        """A whole history: a head, then turns."""
        shape = shape or self._one_of(*_SHAPES, "mixed")
        messages = self._head()
        for _ in range(self._number(0, max_turns)):
            turn_shape = self._one_of(*_SHAPES) if shape == "mixed" else shape
            if self._chance(3):
                messages.append(self._user(turn_shape))
            messages += self._turn(turn_shape)
        if self._chance(4):
            messages.append(self._user("openai"))
        if self._chance(6):
            messages.insert(self._number(0, len(messages)) if not self._whole else 0, self._system())
        return messages

    # Chances and texts

    def _one_of(self, *choices: Any) -> Any:
        return self._draw(self._strategies.sampled_from(choices))

    def _number(self, least: int, most: int) -> int:
        return int(self._draw(self._strategies.integers(least, most)))

    def _chance(self, one_in: int) -> bool:
        return self._number(1, one_in) == one_in

    def _text(self) -> str:
        kind = self._number(0, 9)
        if kind <= 1:
            return str(self._one_of("", "ok", "done."))
        if kind <= 4:
            units = self._draw(self._strategies.lists(self._strategies.sampled_from(_UNITS), max_size=12))
            return "".join(units)
        if kind <= 7:
            return str(self._one_of("line\n", "x", "é—", "FAILED tests/test_é.py ", "😀\n")) * self._number(1, 90)
        if kind == 8:
            return str(self._one_of(*_PLACEHOLDERS))
        pieces = self._draw(self._strategies.lists(self._strategies.sampled_from(_DISPATCH_PIECES), max_size=6))
        return "".join(pieces)

    def _value(self) -> Any:
        return self._one_of(
            {},
            {"path": "src/é.py", "line": 3},
            {"query": 'a"b\\c', "deep": [[1.5, None, True], {"x": {"y": []}}]},
            [1, "two", False],
            -12,
            None,
        )

    def _id(self, place: int) -> Any:
        self._calls += 1
        if self._id_style == "fresh":
            return f"call_{self._calls}"
        if self._id_style == "numbered":
            return f"functions.bash:{place}"
        if self._id_style == "same":
            return "x"
        return self._one_of("", "a", "b", "é\n", None, 7)

    # Messages of any shape

    def _head(self) -> list[dict[str, Any]]:
        messages = [self._system() for _ in range(self._one_of(0, 0, 1, 1, 2))]
        if self._chance(8):
            text = self._one_of(
                "Conversation summary:",
                "Conversation summary:\n- objective: the old task\n- outcome: bash: ok\nand more",
                "Conversation summary: no, this is talk",
            )
            messages.append({"role": self._one_of("system", "user"), "content": text})
        if not self._chance(5):
            messages.append(self._user("openai"))
        return messages

    def _system(self) -> dict[str, Any]:
        return {"role": self._one_of("system", "developer"), "content": self._text()}

    def _user(self, shape: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "user", "content": self._text()}
        if shape == "responses":
            message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": self._text()}]}
        elif shape == "gemini":
            message = {"role": "user", "parts": self._untyped(_INLINE_DATA)}
        elif shape == "converse":
            message["content"] = self._untyped(_CONVERSE_IMAGE)
        elif self._chance(5):
            message["content"] = self._parts("text", _IMAGE if shape == "anthropic" else _IMAGE_URL)
        return self._with_extras(message)

    def _with_extras(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._chance(8):
            message["tags"] = self._one_of(["unresolved"], ["constraint"], ["constraint", "unresolved"], [1, None], [])
        if self._chance(8):
            message["timestamp"] = self._one_of(1.5e3, "2025-01-01", {"content": "not ours", "tool_calls": [1]}, None)
        return message

    def _parts(self, text_type: str, image: dict[str, Any]) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for _ in range(self._number(0, 3)):
            kind = self._number(0, 5)
            if kind <= 2:
                parts.append({"type": text_type, "text": self._text()})
            elif kind == 3:
                parts.append(dict(image))
            elif kind == 4:
                parts.append(self._one_of({"type": "tool_reference", "name": "x"}, {"type": text_type}, {}, _DOCUMENT))
            else:
                parts.append({"type": text_type, "text": "tail", "cache_control": {"type": "ephemeral"}})
        return parts

    def _set_observation(self, holder: dict[str, Any], field: str, text_type: str, image: dict[str, Any]) -> None:
        kind = self._number(0, 8)
        if kind <= 4:
            holder[field] = self._text()
        elif kind <= 6:
            holder[field] = self._parts(text_type, image)
        elif kind == 7:
            holder[field] = None
        # else: the field is missing

    # Turns

    def _turn(self, shape: str) -> list[dict[str, Any]]:
        most = self._max_parallel_calls
        count = self._number(1, most) if self._chance(10) else min(most, self._one_of(0, 1, 1, 1, 2, 3))
        ids = [self._id(place) for place in range(count)]
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
        for call_id in ids:
            block = {"type": "tool_use", "id": call_id, "name": self._one_of(*_TOOLS), "input": self._value()}
            blocks.append(block)
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
            else:
                item["arguments"] = self._one_of("{}", '{"cmd":"ls"}', "")
            items.append(item)
        if not self._whole and self._chance(8):
            items.append({"type": "web_search_call", "id": "ws_1", "status": "completed"})
        return items

    def _responses_results(self, ids: list[Any]) -> list[dict[str, Any]]:
        items = []
        for call_id in ids:
            kind = self._one_of("function_call_output", "function_call_output", "custom_tool_call_output")
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
        """Contents have ids or not; here the id decides."""
        return len(str(call_id)) % 3 > 0

    def _name_of(self, call_id: Any) -> str:
        """Without ids, calls and results pair by their names."""
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
