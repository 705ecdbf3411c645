"""A request of the messages API, as its rules read it."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from provider_rules.base import OLD, Account, demand, version

Block = dict[str, Any]

NEWEST = "claude-opus-5-5"
THINKING = ("thinking", "redacted_thinking")
ROLES = ("user", "assistant", "system")
_FAMILIES = ("fable", "mythos", "opus", "sonnet", "haiku")


class Request:
    """A body, who asks, the blocks of its messages, and what the provider takes out of them.

    A model that is none of Anthropic's is played as the newest one.
    """

    def __init__(self, body: dict[str, Any], account: Account = OLD, betas: frozenset[str] | None = None) -> None:
        self.body, self.account, self.betas = body, account, betas
        for field in ("model", "max_tokens"):
            demand(body.get(field), f"{field}: Field required")
        messages = body.get("messages")
        demand(isinstance(messages, list) and messages, "messages: at least one message is required")
        self.messages: list[dict[str, Any]] = list(messages or ())
        self.blocks = [self._blocks_of(at) for at in range(len(self.messages))]
        self.dropped: list[dict[str, Any]] = []  # the report
        self.left_out: set[tuple[int, int]] = set()  # places of blocks that the model is not shown

    def _blocks_of(self, at: int) -> list[Block]:
        message = self.messages[at]
        demand(isinstance(message, dict), f"messages.{at}: Input should be an object")
        role, content = message.get("role"), message.get("content")
        demand(role in ROLES, f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant"')
        if isinstance(content, str):
            return [{"type": "text", "text": content}] if content else []
        demand(isinstance(content, list), f"messages.{at}.content: Input should be a valid list")
        for place, block in enumerate(content or ()):
            demand(isinstance(block, dict), f"messages.{at}.content.{place}: Input should be an object")
        return list(content or ())

    @cached_property
    def model(self) -> str:
        model = re.sub(r"claude-3-(\d)-(\w+)", r"claude-\2-3-\1", str(self.body["model"]))
        return model if any(version(model, family) for family in _FAMILIES) else NEWEST

    @cached_property
    def family(self) -> str:
        return next(family for family in _FAMILIES if version(self.model, family))

    @cached_property
    def version(self) -> tuple[int, int]:
        return version(self.model, self.family) or (0, 0)

    @cached_property
    def thinks(self) -> bool:
        return any(block.get("type") in THINKING for _, _, block in self.each)

    @cached_property
    def each(self) -> list[tuple[int, int, Block]]:
        """The blocks with their places."""
        return [(at, place, block) for at, blocks in enumerate(self.blocks) for place, block in enumerate(blocks)]

    @cached_property
    def turns(self) -> list[tuple[str, list[Block]]]:
        """Messages of one role in a row are taken as one."""
        turns: list[tuple[str, list[Block]]] = []
        for message, blocks in zip(self.messages, self.blocks, strict=True):
            if message["role"] == "system":
                continue
            if turns and turns[-1][0] == message["role"]:
                turns[-1][1].extend(blocks)
            else:
                turns.append((message["role"], list(blocks)))
        return turns
