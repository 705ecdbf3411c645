"""The recorded sessions in a `History` with a store: the views of one without, also where it is opened again."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

from shared_data import CORPUS, each_file, need

import recede
from recede import History, transcripts
from support import recalled

OPTIONS: list[dict[str, Any]] = [
    {"keep": 3},
    {"keep": 3, "boundary": 2, "recall": True, "keep_errors": True},
    {"max_input_tokens": 5_000},
]


@each_file()
def test_a_store_changes_no_view(path: Path, tmp_path: Path) -> None:
    need(CORPUS)
    for number, transcript in enumerate(transcripts.read_all(path)):
        if number == 40:
            break
        for options in OPTIONS:
            file = tmp_path / "session.store"
            store = recede.store.TurnStore(file)
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
                    store = recede.store.TurnStore(file)
                    stored = History(store=store, **options)
            observations = 0
            while (text := recalled(plain, observations + 1)) is not None:
                observations += 1
                assert recalled(stored, observations) == text
            assert recalled(stored, observations + 1) is None
            assert stored.to_json() == plain.to_json()
            store.close()
            file.unlink()


@each_file()
def test_a_rewound_session_is_one_of_its_first_messages(path: Path, tmp_path: Path) -> None:
    need(CORPUS)
    for transcript in itertools.islice(transcripts.read_all(path), 10):
        messages = transcript.messages[:400]
        for options in OPTIONS:
            chance = random.Random(len(messages))
            with recede.store.TurnStore(tmp_path / "session.store") as store:
                for history in (History(**options), History(store=store, **options)):
                    looked: set[int] = set()
                    count = 0
                    for _ in range(6):
                        for message in messages[count : (count := chance.randint(count, len(messages)))]:
                            history.append(message)
                        history.view_json()
                        looked.add(count)
                        count = max(0, count - chance.choice((1, 2, 7, 60)))
                        history.rewind(count)
                        looked = {one for one in looked if one <= count}
                        plain = History(**options)
                        for place, message in enumerate(messages[:count], 1):
                            plain.append(message)
                            if place in looked:
                                plain.view_json()
                        assert history.view_json() == plain.view_json()
                        looked.add(count)
                        assert history.view() == plain.view()
                        assert history.stats()[:7] == plain.stats()[:7]
                        assert tuple(history.stats().boundary_moves) == tuple(plain.stats().boundary_moves)
                        assert recalled(history, 1) == recalled(plain, 1)
            (tmp_path / "session.store").unlink()
