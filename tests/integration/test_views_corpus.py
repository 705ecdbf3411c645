"""The recorded sessions in the form of each provider: no view of one is refused, in any stage, at any request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import published
import pytest
from answers import numbered, torn
from published import History
from shared_data import CORPUS, corpus_files, each_file, need

import recede
from provider_rules import fault
from provider_server import serving, text
from recede import transcripts
from recede.designs import Budget
from sound import as_anthropic, as_openai, has_tool_blocks

Messages = list[dict[str, Any]]

FORMS: dict[str, Callable[[Messages], Messages]] = {"anthropic": as_anthropic, "chat": as_openai}
BUDGETS: list[dict[str, Any]] = [
    {},
    {"boundary": "break_even"},
    {"observation_masking": False},
    {"preserve_recent_raw_turns": 0},
    {"preserve_recent_raw_turns": 13, "summary_max_chars": 60},
]


def refused(form: str, messages: Messages) -> str | None:
    return fault(form, {"model": "m", "max_tokens": 9, "messages": messages})


def ready(history: Messages) -> Messages:
    """The history at its last request."""
    end = len(history)
    while end and history[end - 1]["role"] == "assistant":
        end -= 1
    return history[:end]


@each_file()
@pytest.mark.parametrize("form", FORMS)
def test_views_of_recorded_sessions_are_taken(path: Path, form: str, record_property: Any) -> None:
    convert = FORMS[form]
    for transcript in transcripts.read_all(path):
        history = ready(convert(transcript.messages))
        if len(history) < 2:
            continue
        assert refused(form, history) is None
        chars = recede.count_chars(history)
        # Without tool blocks a history could be of any provider: then it is said whose it is.
        said = {"summary_role": "user"} if form == "anthropic" and not has_tool_blocks(history) else {}
        for share in (2, 8, 40, 1_000_000):
            for options in BUDGETS:
                reduction = published.reduce(history, max_input_chars=chars // share, **options, **said)
                assert refused(form, reduction.messages) is None, (share, options)
                record_property(f"read: {form} by {reduction.reduction_stage}", 1)
        assert refused(form, Budget(chars // 20).view(history)) is None
        role = {"summary_role": "user"} if form == "anthropic" else {}
        sessions = [History(keep=3), History(max_input_chars=max(2_000, chars // 6), **role)]
        every = max(1, len(history) // 25)
        for count, message in enumerate(history, 1):
            for session in sessions:
                session.append(message)
            if count % every == 0 and message["role"] != "assistant" and refused(form, history[:count]) is None:
                for session in sessions:
                    assert refused(form, session.view()) is None, count
        record_property(f"read: {path.parent.name} as {form}", 1)


@each_file()
def test_views_of_recorded_sessions_hold_an_answer_whole_or_not_at_all(path: Path, record_property: Any) -> None:
    for transcript in transcripts.read_all(path):
        history = numbered(transcript.messages)
        chars = recede.count_chars(history)
        for share in (2, 8, 40):
            for options in BUDGETS:
                reduction = published.reduce(history, max_input_chars=chars // share, **options)
                assert torn(history, reduction.messages) == [], (share, options)
                record_property(f"read: whole answers by {reduction.reduction_stage}", 1)


def test_some_of_them_over_the_wire(record_property: Any) -> None:
    need(CORPUS)
    folders: dict[str, Path] = {}
    for path in corpus_files():
        folders.setdefault(path.parent.name, path)
    with (
        serving() as server,
        anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as ours,
        openai.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as others,
    ):
        for name, path in folders.items():
            messages = max((one.messages for one in transcripts.read_all(path)), key=len)
            for convert in (as_anthropic, as_openai):
                history = ready(convert(messages))
                for options in ({"max_input_tokens": 5_000}, {"max_input_tokens": 50}):
                    server.script.append(text("Done."))
                    view: Any = published.reduce(history, **options).messages
                    if convert is as_anthropic:
                        ours.messages.create(model="m", max_tokens=9, messages=view)
                    else:
                        others.chat.completions.create(model="m", messages=view)
            record_property(f"read: {name} over the wire", 1)
        assert len(server.requests) == 4 * len(folders)
        assert server.refusals == []
