"""Records that the core makes: tuples with names, as users unpack, print, pickle and store them."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import recede


def session(results: int) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for number in range(results):
        call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        history.append({"role": "assistant", "content": "I look. " * 5, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": str(number), "content": "x" * 3_000})
    return history


def figures_of_a_history() -> Any:
    history = recede.History(keep=3, max_input_tokens=10_000_000)
    for message in session(30):
        history.append(message)
        history.view()
    return history.stats()


def failed_summary() -> Any:
    def fails(dropped: Any, previous: Any) -> str:
        raise ValueError("no model")

    return recede.reduce(session(60), keep=3, max_input_tokens=1_000, summarizer=fails)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    reduction = recede.reduce(session(60), keep=3)
    masker = recede.masker.Masker(keep=3, boundary="sliding")
    path: Path = tmp_path_factory.mktemp("records") / "session.store"
    with recede.store.TurnStore(path) as store:
        store.append("Look around.", "ls", "README.md")
        (turn,) = store
        stats, report = store.stats(), store.verify()
    figures = figures_of_a_history()
    made = [
        reduction,
        recede.reduce(json.dumps(session(60)).encode(), keep=3),
        reduction.tools["run"],
        reduction.unmasked,
        reduction.boundary_moves[0],
        figures,
        figures.reported,
        figures.over_limit,
        recede.check_pairs([{"role": "tool", "content": "?"}]),
        recede.check_pairs([{"role": "tool", "content": "?"}]).findings[0],
        masker.masks(session(60)),
        masker.masks(session(60)).masks[0],
        turn,
        stats,
        report,
        recede.store.StoreFault(7, "its checksum is wrong"),
        recede.costs.replay(session(60), ["sliding:window=3"]).policies[1].turns[-1],
    ]
    return {type(one).__name__: one for one in made}


NAMES = """Reduction JsonReduction ToolReport Unmasked BoundaryMove HistoryStats ReportedUsage OverLimit PairReport
Finding Masks Mask StoredTurn StoreStats StoreReport StoreFault ReplayedTurn""".split()


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_a_tuple_with_names_that_is_copied_pickled_and_written_as_json(
    records: dict[str, Any], name: str
) -> None:
    record = records[name]
    assert (*record,) == record[:] == tuple(record) and record._fields == record.__match_args__
    for other in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record)), record._replace()):
        assert type(other) is type(record) and other == record and repr(other) == repr(record)
    assert [*json.loads(json.dumps(record._asdict()))] == [*record._fields]
    with pytest.raises(AttributeError):
        setattr(record, record._fields[0], None)


def test_the_dict_of_a_reduction_has_places_in_pairs_the_view_as_text_and_the_words_of_an_error() -> None:
    failed = failed_summary()
    assert "no model" in json.loads(json.dumps(failed._asdict()))["summarizer_error"]
    masked = recede.reduce(json.dumps(session(60)).encode(), keep=3)
    facts = json.loads(json.dumps(masked._asdict()))
    assert (facts["mask_places"], facts["json"]) == ([*map(list, masked.masks)], masked.json.decode())


def test_the_figures_of_a_history_fit_a_screen_however_many_moves_it_made(records: dict[str, Any]) -> None:
    figures = records["HistoryStats"]
    first, *_ = figures.boundary_moves
    long, short = (figures._replace(boundary_moves=(first,) * count) for count in (900, 3))
    assert len(repr(long)) < 24 * 80 and repr(long).count("BoundaryMove(") == 3
    assert "boundary_moves=(<897 earlier>, BoundaryMove(" in repr(long)
    assert f"boundary_moves={short.boundary_moves!r}, " in repr(short)
