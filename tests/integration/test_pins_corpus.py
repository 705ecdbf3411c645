"""Each request of recorded sessions, as a client of Anthropic marks it, has a pin and at most four marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import published
import pytest
from marks import marks_of
from shared_data import each_file

from recede import transcripts
from sound import as_anthropic
from support import dumps, loads, unmarked

MARK = {"cache_control": {"type": "ephemeral"}}
BODIES_EVERY = 25
PINNED: Any = {"cache_breakpoint": "boundary"}


def marked(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The request with marks on the last blocks of its two newest user messages, as Claude Code writes them."""
    view = list(history)
    users = [index for index, message in enumerate(view) if message["role"] == "user"]
    for index in users[-2:]:
        content = view[index]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        view[index] = {**view[index], "content": [*blocks[:-1], {**blocks[-1], **MARK}]}
    return view


@each_file()
@pytest.mark.parametrize("rule", ["sliding", "break_even"])
def test_each_request(path: Path, rule: Any) -> None:
    pins = 0
    for transcript in transcripts.read_all(path):
        history = as_anthropic(transcript.messages)
        ends = [end for end in range(1, len(history) + 1) if history[end - 1]["role"] == "user"]
        for number, end in enumerate(ends if rule == "break_even" else ends[::5]):
            request = marked(history[:end])
            options: dict[str, Any] = {"keep_results": 10, "boundary": rule}
            plain = published.mask_observations(request, **options)
            pinned = published.mask_observations(request, **options, **PINNED)
            for one, other in zip(plain.messages, pinned.messages, strict=True):
                assert one is other or unmarked(one) == unmarked(other)
            added = marks_of(pinned.messages).keys() - marks_of(plain.messages).keys()
            assert len(marks_of(pinned.messages)) <= 2
            assert len(added) <= 1
            assert pinned.boundary_message is None or all(place <= pinned.boundary_message for place, _ in added)
            pins += len(added)
            if number % BODIES_EVERY == BODIES_EVERY - 1:
                body = {"system": [{"type": "text", "text": "s", **MARK}], "messages": request, "tools": [MARK]}
                view = loads(published.mask_observations_json(dumps(body), **options, **PINNED).json)
                assert unmarked(view["messages"]) == unmarked(plain.messages)
                assert len(marks_of(view["messages"])) + sum(map(len, view["tools"])) + 1 <= 4
    if len(ends) > 20 and sum(pinned.tools[name].masked for name in pinned.tools) > 5:
        assert pins
