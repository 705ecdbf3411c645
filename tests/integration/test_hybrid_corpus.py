"""The recorded sessions through a `History` with a summarizer: each request is the one that its replay priced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared_data import each_file

import recede
from recede.costs import PRESETS
from recede.reduction._policy import SUMMARY_CHARS

HYBRID = "hybrid:at=break_even,boundary=break_even"


def _has_blocks(messages: list[Any]) -> bool:
    contents = (message.get("content") for message in messages if isinstance(message.get("content"), list))
    return any(block.get("type") == "tool_use" for content in contents for block in content if isinstance(block, dict))


@each_file("claude_code", "codex", "pi", "openhands")
def test_each_request_is_the_one_that_the_replay_priced(path: Path) -> None:
    for transcript in recede.transcripts.read_all(path):
        messages, asked = transcript.messages, 0

        def summarizer(hidden: list[Any], previous: str | None) -> str:
            nonlocal asked
            asked += 1
            return ("Conversation summary:\n" + "x" * SUMMARY_CHARS)[:SUMMARY_CHARS]

        # A history of Anthropic's has marks of ours at the boundary.
        name = HYBRID + (",cache_breakpoint=boundary" if _has_blocks(messages) else "")
        prices = {"prices": PRESETS["anthropic"], "summary_prices": PRESETS["anthropic"], "cache": "anthropic"}
        played = recede.costs.replay(messages, [name], system_chars=0, **prices).policies[1]
        history = recede.History(provider="anthropic", summarizer=summarizer)
        for turn in played.turns:
            history.extend(messages[len(history) : turn.messages])
            assert history.stats().view_chars == turn.view_chars
        assert asked == sum(turn.summary_output_chars > 0 for turn in played.turns)
