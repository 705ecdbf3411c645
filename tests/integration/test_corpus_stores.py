"""The recorded sessions in a `History` with a store: the views of one without, also where it is opened again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shared_data import CORPUS, corpus_files, need

import recede
from recede import History, transcripts
from support import engine_module

FILES = corpus_files()
OPTIONS: list[dict[str, Any]] = [
    {"keep": 3},
    {"keep": 3, "mask_chunk": 2, "recall_handles": True, "keep_errors": True},
    {"max_input_chars": 20_000},
]


@pytest.mark.parametrize("path", FILES or [CORPUS], ids=lambda path: f"{path.parent.name}-{path.name[-30:]}")
def test_a_store_changes_no_view(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    need(CORPUS)
    engine_module("rust")
    monkeypatch.setattr("recede.session._history._EVICT_AFTER", (16, 1 << 30))
    for number, transcript in enumerate(transcripts.read_all(path)):
        if number == 40:
            break
        for options in OPTIONS:
            file = tmp_path / "session.store"
            store = recede.TurnStore(file)
            stored, plain = History(store=store, **options), History(**options)
            every = max(1, len(transcript.messages) // 6)
            for count, message in enumerate(transcript.messages, 1):
                stored.append(message)
                plain.append(message)
                if count % every == 0:
                    assert stored.view_json() == plain.view_json()
                    assert stored.view() == plain.view()
                    assert stored.stats()[:7] == plain.stats()[:7]
                if count % every == every // 2:
                    store.close()
                    store = recede.TurnStore(file)
                    stored = History(store=store, **options)
            observations = 0
            while (text := recalled(plain, observations + 1)) is not None:
                observations += 1
                assert recalled(stored, observations) == text
            assert recalled(stored, observations + 1) is None
            assert stored.to_json() == plain.to_json()
            if stored._session.first_here():
                record_property("read: let go with a store", 1)
            store.close()
            file.unlink()


def recalled(history: History, number: int) -> str | None:
    try:
        return history.recall(number)
    except LookupError:
        return None
