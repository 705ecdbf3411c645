"""A `History` that is given the whole list again is one to which these messages were appended."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from published import History
from test_sessions import masked_options, session_options

import recede
from recede.masker import Mask


def edited(messages: list[Any], edit: str, part: list[Any], number: int) -> list[Any]:
    messages = list(messages)
    if edit == "append":
        return messages + part
    if edit == "cut":
        return messages[: max(0, len(messages) - number)]
    if edit == "copy":
        return copy.deepcopy(messages)
    if edit == "other":
        return part
    if messages and part:
        place = -1 - number % min(16, len(messages))
        if edit == "replace":
            messages[place] = part[-1]
        else:
            messages[place].clear()
            messages[place].update(part[-1])
    return messages


@given(
    options=session_options() | masked_options(),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["append"] * 4 + ["cut", "copy", "replace", "in place", "other"]),
            histories(),
            st.integers(0, 12),
        ),
        min_size=1,
        max_size=8,
    ),
    is_stored=st.booleans(),
)
def test_a_synced_history_has_the_messages_of_the_last_call(
    options: dict[str, Any], steps: list[tuple[str, list[Any], int]], is_stored: bool
) -> None:
    options = {name: value for name, value in options.items() if name != "summarizer"}
    has_budget = any(name.startswith("max_input") for name in options)
    with tempfile.TemporaryDirectory() as folder:
        store = recede.store.TurnStore(Path(folder, "session.store")) if is_stored else None
        synced, messages = History(store=store, **options), []
        masks: list[Mask] = []
        for edit, part, number in steps:
            before, messages = messages, edited(messages, edit, copy.deepcopy(part), number)
            known = synced.sync(messages)
            assert messages[:known] == before[:known]
            appended = History.from_messages(messages, **options)
            assert len(synced) == len(messages)
            assert synced.to_json() == appended.to_json()
            assert synced.messages == messages
            view = synced.view()
            assert view == appended.view()
            assert synced.view_json() == appended.view_json()
            if has_budget:
                continue  # it may drop messages, so there are no masks
            own = {id(message) for message in messages}
            unmasked = [one for one, message in zip(view, messages, strict=True) if one == message]
            assert is_stored or all(id(one) in own for one in unmasked)
            new = synced.masks(since=len(before))
            stayed = [mask for mask in masks if mask.message_index < min(new.first_changed, len(before))]
            masks = [*stayed, *new.masks]
            assert masks == appended.masks().masks == synced.masks().masks
        if store is not None:
            store.close()
