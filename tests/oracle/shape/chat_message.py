"""ChatMessage: calls and results are messages with `pairRole` and `pairId`."""

from __future__ import annotations

from typing import Any

from oracle.shape.base import Shape
from oracle.shape.words import BLOCK_KEYS, NO_RESULT, is_flagged, string
from oracle.value import Member


class ChatMessage(Shape):
    name = "chat_message"
    is_one_call = True
    id_path = ("pairId",)

    def fits(self, message: dict[str, Any]) -> bool:
        pair_role, role = string(message.get("pairRole")), string(message.get("role"))
        return pair_role == "call" or (pair_role == "result" and role not in ("system", "user", "assistant"))

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        if message["pairRole"] == "call":
            walk.content(message)
            walk.call(message.get("pairId"))
        else:
            text = walk.observation(Member(message, "content"), "content", BLOCK_KEYS)
            walk.result(message.get("pairId"), text, is_error=is_flagged(message))

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        ((message, _),) = calls
        return {"role": "tool", "pairRole": "result", "pairId": message["pairId"], "content": NO_RESULT}
