"""A `History` that was rewound is a history of which only the first messages came."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st
from published import History
from test_sessions import HISTORIES, masked_options, session_options
from test_stored_sessions import all_recalled, identities

import recede
from recede._report import OverLimit
from support import recalled

MESSAGES = st.lists(HISTORIES, min_size=1, max_size=6).map(
    lambda parts: [message for part in parts for message in part]
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append"] * 5 + ["look", "look", "stats", "cold", "rewind", "rewind", "restart", "crash", "load"]
        ),
        st.integers(0, 12),
    ),
    min_size=6,
    max_size=40,
)


class Summarizer:
    """One that fails, or says too much, depending on what it is asked, and remembers nothing."""

    def __call__(self, messages: list[Any], previous: str | None) -> str:
        if len(messages) % 3 == 0:
            raise RuntimeError("it is down")
        return f"{len(messages)} messages, {len(previous or '')}" * (40 if len(messages) % 7 == 5 else 1)


def figures(history: History) -> recede.HistoryStats:
    """Without which view was shown before, and how often this object's summarizer failed, which stays."""
    unknown = {"changed_message": None, "changed_byte": None, "summary_failures": 0, "over_limit": OverLimit()}
    return history.stats()._replace(**unknown)


def assert_same(rewound: History, plain: History, own: list[Any]) -> None:
    """Everything that can be asked of a history, but its view, which may be another one for having been asked for."""
    assert len(rewound) == len(plain)
    assert rewound.cold_requests == plain.cold_requests
    assert rewound.to_json() == plain.to_json()
    assert rewound.messages == plain.messages
    assert all_recalled(rewound) == all_recalled(plain)
    for identity in identities(own):
        assert recalled(rewound, identity) == recalled(plain, identity)


@given(
    messages=MESSAGES,
    options=session_options() | masked_options(),
    fails=st.booleans(),
    steps=STEPS,
    is_stored=st.booleans(),
)
def test_a_rewound_history_is_one_of_the_first_messages(
    messages: list[dict[str, Any]],
    options: dict[str, Any],
    fails: bool,
    steps: list[tuple[str, int]],
    is_stored: bool,
) -> None:
    if fails and options.get("summarizer") is not None:
        options = {**options, "summarizer": Summarizer()}
    functions = {name: options[name] for name in ("summarizer", "token_counter") if options.get(name) is not None}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.store")
        store = recede.store.TurnStore(path) if is_stored else None
        rewound = History(store=store, **options)
        done: list[Any] = []  # what came, and the views that were taken, as far as they were not rewound
        own: list[Any] = []
        # The caller's objects are in the views of the history that they were given to, where no later stage made these.
        is_own = not is_stored and not any(option.startswith("max_input") for option in options)
        to_come = list(messages)

        def plain() -> History:
            """A history of which only these messages came."""
            history = History(**options)
            for one in done:
                if one == "look":
                    history.view_json()
                elif one == "cold":
                    history.cache_is_cold()
                else:
                    history.append(one)
            return history

        for step, number in [*steps, ("look", 0), ("rewind", 3), ("look", 0)]:
            if step == "append":
                for message in to_come[:number]:
                    rewound.append(message)
                    own.append(message)
                    done.append(message)
                del to_come[:number]
            elif step in ("look", "stats"):
                expected = plain()
                if step == "stats":
                    assert figures(rewound) == figures(expected)
                assert rewound.view_json() == expected.view_json()
                view = rewound.view()
                assert view == expected.view()
                if is_own and len(view) == len(own):
                    assert all(one is message for one, message in zip(view, own, strict=True) if one == message)
                assert b"".join(rewound.view_chunks()) == expected.view_json()
                assert figures(rewound) == figures(expected)
                done.append("look")
            elif step == "cold":
                rewound.cache_is_cold()
                done.append("cold")
            elif step == "rewind":
                count = max(0, len(own) - number)
                event(f"rewound: {len(own) - count > 0}, stored: {is_stored}")
                to_come[:0] = own[count:]
                rewound.rewind(count)
                del own[count:]
                while sum(one not in ("look", "cold") for one in done) > count:
                    done.pop()
                assert_same(rewound, plain(), messages)
            elif store is not None and step != "load":
                store.close() if step == "restart" else store.close(sync=False)
                store = recede.store.TurnStore(path)
                rewound = History(store=store, **options)
                assert len(rewound) == len(own)
            elif store is None:
                file = Path(folder, "saved")
                rewound.save(file)
                rewound, is_own = History.load(file, **functions), False
        assert_same(rewound, plain(), messages)
        if store is not None:
            assert store.verify().is_sound
            store.close()
