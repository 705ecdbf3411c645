"""The append-only session: what it stores, what it gives, and that it does no work twice."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import published
import pytest
from published import History

import recede
from recede._question import UnfinishedError
from support import assistant, call, contents, dumps, handle_of, result, system, tool_result, tool_use, turns, user

SESSION = [system("Be brief."), user("Go."), *turns(40, chars=900)]


def grown(messages: list[dict[str, Any]], **options: Any) -> History:
    return History.from_messages(messages, **options)


def test_it_stores_what_was_appended_and_gives_it_back() -> None:
    history = grown(SESSION)
    assert len(history) == len(SESSION)
    assert history.messages == list(history) == history[:] == SESSION
    assert history[0] is SESSION[0]
    assert history[-1] is SESSION[-1]
    assert history[1:3] == SESSION[1:3]
    with pytest.raises(IndexError):
        history[len(SESSION)]
    assert json.loads(history.to_json()) == SESSION
    assert History().view() == []
    assert History().view_json() == History().to_json() == b"[]"


def test_bytes_are_kept_as_they_were_written() -> None:
    written = [b'{"role" : "user", "content":"caf\\u00e9", "n": 1.50}', b' {"role":"assistant","content":"\xc3\xa9"}\n']
    history = History()
    for line in written:
        history.append_json(line)
    history.append_json('{"role": "user", "content": "\ud83d"}')
    history.append_json(bytearray(b'{"role": "user", "content": "x"}'))
    joined = b",".join(line.strip() for line in written)
    rest = b'{"role": "user", "content": "\xed\xa0\xbd"},{"role": "user", "content": "x"}'
    assert history.view_json() == history.to_json() == b"[" + joined + b"," + rest + b"]"
    assert history[0] == history.view()[0] == {"role": "user", "content": "café", "n": 1.5}


def test_unmasked_messages_of_a_view_are_those_that_were_appended() -> None:
    history = grown(SESSION, keep=4)
    view = history.view()
    assert [one is two for one, two in zip(view, SESSION, strict=True)].count(False) == history.stats().masked_count
    view.clear()
    assert len(history.view()) == len(SESSION)


def test_without_a_budget_it_is_the_block_masker() -> None:
    for options in ({}, {"keep": 3, "boundary": "sliding"}, {"mask_chunk": 5}, {"exclude_tools": ["run"]}):
        expected = dict(options)
        if not {"boundary", "mask_chunk"} & set(options):
            expected["boundary"] = "break_even"
        assert grown(SESSION, **options).view() == recede.designs.mask_old_observations(SESSION, **expected)


def test_what_was_masked_for_a_cold_cache_goes_back_where_nobody_says_so_again() -> None:
    for count in range(5, len(SESSION), 6):
        history = grown(SESSION[:count], keep=3, cold=True)
        for length in range(count, min(count + 4, len(SESSION))):
            if length > count:
                history.append(SESSION[length - 1])
            expected = recede.designs.mask_old_observations(SESSION[:length], 3, boundary="break_even", cold=True)
            assert json.loads(b"".join(history.view_chunks())) == history.view() == expected


def test_below_its_threshold_a_history_is_sent_raw() -> None:
    history = History(threshold_tokens=recede.designs.approx_tokens(SESSION) - 1)
    history.extend(SESSION[:-1])
    assert history.view() == SESSION[:-1]
    history.append(SESSION[-1])
    assert history.view() == recede.designs.mask_old_observations(SESSION, boundary="break_even")


def test_with_a_budget_it_is_the_reducer() -> None:
    for options in (
        {"max_input_tokens": 2_250},
        {"max_input_tokens": 3_000, "boundary": "sliding", "keep": 9},
        {"max_input_tokens": 2_000, "boundary": 7},
        {"max_input_tokens": 1_500, "token_counter": len},
        {"max_input_tokens": 10**6, "placeholder": "[{tool}: {lines} lines, turn {turn}]"},
    ):
        history = recede.History(**options)
        for count, message in enumerate(SESSION, 1):
            history.append(message)
            assert history.view() == recede.reduce(SESSION[:count], **options).messages


@pytest.mark.parametrize("window", ["preserve_recent_raw_turns", "keep_messages", "keep_results"])
def test_an_open_call_is_never_dropped(window: str) -> None:
    """Its result is appended after the view; a window of 0 and a limit that is too small leave nothing else."""
    history = History(max_input_chars=3_000, **{window: 0})
    history.append(call("never answered"))
    for number in range(9):
        history.extend([user("Go on."), call(f"a{number}", f"b{number}", arguments="z" * 700)])
        assert history.view()[-1] == history[-1]
        history.append(result(f"b{number}", "y" * 900))
        assert history.view()[-1]["tool_call_id"] == f"b{number}", "its sibling is still open"
        history.append(result(f"a{number}", "x" * 900))
        assert recede.check_pairs(history.view()).is_whole
    view = history.view()
    assert "never answered" not in str(view), "its answer can no longer come"
    assert "'a8'" in str(view), "no request has shown its result"


def test_what_is_new_since_a_failure_stays_new_after_messages_are_dropped() -> None:
    asked: list[int] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        asked.append(len(history))
        raise ValueError("no summary")

    history = History(max_input_chars=4_000, fill=0.9, preserve_recent_raw_turns=34, summarizer=summarizer)
    for _ in range(50):
        history.extend([user("?"), assistant("a" * 200)])
        history.view()
    # A quarter of the budget is new after ten messages, of 1,005 characters; then eight turns are waited for.
    assert asked == [40, 50, 60, 70, 86]


def test_a_summary_stands_until_the_view_no_longer_fits() -> None:
    asked: list[tuple[int, str | None]] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        asked.append((len(messages), previous))
        return f"summary {len(asked)}"

    history = History(max_input_chars=4_000, preserve_recent_raw_turns=2, summarizer=summarizer, boundary="sliding")
    seen = []
    for count in range(1, len(turns(200)), 2):
        history.extend(turns(200, chars=900)[count - 1 : count + 1])
        view = history.view()
        seen.append(view[0]["content"])
        assert recede.count_chars(view) <= 4_000
        assert history.view() == view
    assert len(asked) == len({text for text in seen if text and text.startswith("Conversation summary:")})
    assert 2 < len(asked) < 20
    assert [previous for _, previous in asked] == [None, *(f"summary {number}" for number in range(1, len(asked)))]
    # Never the same messages twice: what was asked for adds up to what left the window.
    assert sum(count for count, _ in asked) <= 400
    assert len(history) == 400
    assert history.messages == turns(200, chars=900)[: len(history)]


def test_a_summary_takes_the_shape_that_a_later_message_names() -> None:
    """Anthropic has no system messages among the others; until a tool is called, nothing says that it is asked."""
    history = History(max_input_chars=900, preserve_recent_raw_turns=1)
    history.extend([user("Go."), *(message for _ in range(9) for message in (assistant("a" * 99), user("u" * 99)))])
    assert history.view()[0]["role"] == "system"
    history.append(tool_use("1", "run"))
    history.append(user([tool_result("1", "x")]))
    assert history.view()[0]["role"] == "user"
    assert json.loads(history.view_json()) == json.loads(b"".join(history.view_chunks())) == history.view()


def test_a_summarizer_that_fails_loses_nothing() -> None:
    failures: list[int] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        if len(failures) < 3:
            failures.append(1)
            raise RuntimeError("no model")
        return "at last"

    history = History(max_input_chars=2_500, preserve_recent_raw_turns=2, summarizer=summarizer)
    for message in [user("Go."), *turns(200, chars=900)]:
        history.append(message)
        history.view()
        if len(failures) == 1:
            assert isinstance(history.summarizer_error, RuntimeError)
    assert history.view()[0]["content"] == "Conversation summary:\nat last"
    assert history.summarizer_error is None
    assert len(history) == 401


def test_a_failed_append_names_the_byte_and_changes_nothing() -> None:
    history = grown(SESSION)
    before = history.view_json(), history.stats()
    with pytest.raises(recede.TranscriptError) as caught:
        history.append_json(b'  {"role": "user"; "content": ""}')
    assert (caught.value.kind, caught.value.offset, caught.value.message_index) == ("syntax", 17, len(SESSION))
    with pytest.raises(recede.TranscriptError) as caught:
        history.append_json(b'{"role": "user", "content": 5}')
    assert (caught.value.kind, caught.value.field, caught.value.offset) == ("content", "content", 28)
    with pytest.raises(recede.TranscriptError, match="a message that is not an object"):
        history.append(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        history.append({"role": "user", "content": {1, 2}})
    with pytest.raises(ValueError, match=r"NaN|nan|Out of range"):
        history.append({"role": "user", "content": "", "n": float("nan")})
    with pytest.raises(recede.TranscriptError, match="data after the end"):
        history.append_json(b'{"role": "user", "content": ""} {}')
    assert (history.view_json(), history.stats()) == before
    assert len(history) == len(SESSION)


def test_no_door_of_recede_itself_looks_for_dispatch_blocks() -> None:
    blocks = "BEGIN_DISPATCH_RESULT\nok\nEND_DISPATCH_RESULT"
    for text in ("x" * 200 + blocks, blocks * 3):
        messages = [user("Go."), call("1"), result("1", text), call("2"), result("2", "y"), user("On.")]
        history = recede.History(keep=0, boundary="sliding")
        history.extend(messages)
        views = history.view(), recede.masker.Masker(keep=0, boundary="sliding").view(messages)
        assert [view[2]["content"] for view in views] == ["[old tool output cleared to save context]"] * 2


def test_recall_gives_the_full_text_by_number_or_id() -> None:
    history = grown(SESSION, keep=3)
    history.append(call("5"))
    history.append(result("5", "the newest of this id"))
    history.view()
    assert history.recall(1) == "x" * 900
    assert history.recall("5") == history.recall(41) == "the newest of this id"
    assert history.recall(6) == "x" * 900
    for wrong in (0, -1, 42, 2**63, 2**64, 10**30, 10**5_000, -(10**30), "nobody's"):
        with pytest.raises(LookupError, match="there is no observation"):
            history.recall(wrong)


def test_recall_reads_parts_and_survives_summaries() -> None:
    history = History(max_input_chars=2_000, preserve_recent_raw_turns=2, boundary="sliding")
    parts = [{"type": "text", "text": "one "}, {"type": "image_url"}, {"type": "text", "text": "two"}]
    history.extend([user("Go."), call("a"), result("a", parts), *turns(20, chars=900)])
    assert history.view()[0]["content"].startswith("Conversation summary:")
    assert history.recall("a") == history.recall(1) == "one two"
    assert history.recall(21) == "x" * 900


def test_placeholders_name_the_handle_that_recalls_them() -> None:
    history = grown(SESSION, keep=3, recall=True)
    first = handle_of(SESSION[3]["tool_call_id"], SESSION[3]["content"])
    assert history.view()[3]["content"] == f"[old tool output cleared to save context, recall {first}]"
    fourth = handle_of(SESSION[9]["tool_call_id"], SESSION[9]["content"])
    assert history.view()[9]["content"].endswith(f"recall {fourth}]")
    assert history.recall(fourth) == SESSION[9]["content"]
    budget = grown(SESSION, max_input_chars=9_000, recall=True)
    assert budget.view()[3]["content"] == f"[old tool output cleared to save context, recall {first}]"
    # The answer is a new result; what stands before stays.
    for shape, name in (("openai", "function"), ("anthropic", "input_schema"), ("responses", "parameters")):
        assert name in history.tool_definition(shape)
    with pytest.raises(ValueError, match="shape must be"):
        history.tool_definition("gemini")
    before = history.view_json()
    history.append(call("r1", name="recall", arguments=json.dumps({"handle": first})))
    history.append(result("r1", history.recall(first)))
    assert history.view_json().startswith(before[:-1])
    assert history.recall(41) == history.recall(1)


def test_placeholders_that_name_a_handle_recall_the_text_beside_images() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    history = History(keep=0, recall=True)
    budget = History(max_input_chars=9_000, keep_results=0, preserve_recent_raw_turns=0, recall=True)
    for one in (history, budget):
        one.extend([call("1"), result("1", [{"type": "text", "text": "x" * 4_000}, image]), *turns(9, chars=700)])
    handle = handle_of("1", "x" * 4_000)
    assert history.view()[1]["content"] == f"[old tool output cleared to save context, recall {handle}]"
    assert budget.view()[1]["content"] == f"[old tool output cleared to save context, recall {handle}]"
    handle = handle_of(budget[3]["tool_call_id"], budget[3]["content"])
    assert budget.view()[3]["content"] == f"[old tool output cleared to save context, recall {handle}]"


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_fewer_than_three_results_stay_where_no_design_has_a_bound(keep: int) -> None:
    history = grown(SESSION, keep=keep)
    by_chars = published.mask_observations(SESSION, keep_results=keep, boundary="break_even").messages
    masked = [shown is not given for shown, given in zip(by_chars, SESSION, strict=True)]
    assert [shown is not given for shown, given in zip(history.view(), SESSION, strict=True)] == masked
    assert any(masked)


def test_a_clip_names_the_handle_that_recalls_its_result() -> None:
    history = History(max_input_chars=2_500, clip_results=300, recall=True)
    history.extend([user("task"), *turns(40, chars=90)])
    assert len(history.view()) < 70, "there was a compaction"
    history.extend([call("long"), result("long", "b" + "x" * 9_000 + "e")])
    handle = handle_of("long", "b" + "x" * 9_000 + "e")
    for _ in range(3):
        [shown] = [text for text in map(str, contents(history.view())) if f"recall {handle}" in text]
        beginning, _, end = shown.partition("[… ")
        assert (len(shown), beginning[0], end[-1]) == (300, "b", "e")
        assert end.partition(" …]")[0] == f"{9_000 - shown.count('x')} chars omitted, recall {handle}"
        assert history.recall(handle) == history.recall(41) == "b" + "x" * 9_000 + "e"
        history.append(assistant("ok"))


def test_handles_recall_from_the_whole_history_also_after_summaries(tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_input_chars": 6_000, "preserve_recent_raw_turns": 2, "boundary": "sliding"}
    history = History(**options, recall=True)
    seen = set()
    turns = 150
    for number in range(turns):
        # Each text is as long as its number says, so a wrong one would be seen.
        history.append(call(str(number)))
        history.append(result(str(number), "x" * (800 + number)))
        if number == turns - 30:
            history.save(tmp_path / "session.json")
            history = History.load(tmp_path / "session.json")
        for message in history.view():
            text = str(message.get("content"))
            if ", recall " in text:
                chars = len(history.recall(text[-13:-1]))
                assert history.recall(str(chars - 800)) == history.recall(chars - 799) == "x" * chars
                assert message["tool_call_id"] == str(chars - 800)
                seen.add(chars - 799)
    assert max(seen) > turns - 10
    assert history.view()[0]["content"].startswith("Conversation summary:")


def test_stats_tell_sizes_and_where_the_view_changed() -> None:
    history = grown(SESSION, keep=4)
    stats = history.stats()
    assert (stats.messages, stats.turns, stats.raw_chars) == (82, 40, recede.count_chars(SESSION))
    assert stats.view_chars == recede.count_chars(history.view())
    assert stats.masked_count == sum("masked" in str(message["content"]) for message in history.view())
    assert (stats.view_messages, stats.orphans) == (82, 0)
    assert History().stats().changed_byte is None
    before, changes = history.view_json(), 0
    for message in turns(30, chars=900):
        history.append(message)
        now, stats = history.view_json(), history.stats()
        if not now.startswith(before[:-1]):
            changes += 1
            assert stats.changed_byte is not None
            assert now[: stats.changed_byte] == before[: stats.changed_byte]
            assert now[stats.changed_byte :].startswith(b'{"role":"tool"')
            assert json.loads(now)[stats.changed_message] != json.loads(before)[stats.changed_message]
        before = now
    assert changes > 2
    orphaned = grown([*SESSION, result("never called", "x"), call("unanswered"), user("And?")])
    assert orphaned.stats().orphans == 2


def test_chunks_are_the_same_objects_until_the_boundary_moves() -> None:
    history = History(keep=3)
    kept: list[bytes] = []
    renewed = 0
    for message in [user("Go."), *turns(600, chars=3_000)]:
        history.append(message)
        chunks = history.view_chunks()
        assert b"".join(chunks) == history.view_json()
        same = sum(one is two for one, two in zip(kept, chunks, strict=False))
        renewed += max(0, len(kept) - 1 - same)
        kept = chunks
    assert len(kept) > 1
    assert renewed < 600
    assert history.view() == recede.designs.mask_old_observations(history.messages, 3, boundary="break_even")


def test_a_session_goes_on_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    for options in ({"keep": 3}, {"max_input_chars": 3_000, "preserve_recent_raw_turns": 2, "exclude_tools": {"read"}}):
        history = grown(SESSION, **options)
        history.view()
        history.append(assistant("é \ud83d"))
        history.save(path)
        again = History.load(path)
        assert again.view() == history.view()
        assert again.to_json() == history.to_json()
        for message in turns(9, chars=900):
            history.append(message)
            again.append(message)
            assert again.view_json() == history.view_json()
        counted = {"changed_message": None, "changed_byte": None, "over_limit": None}  # by each object
        assert again.stats()._replace(**counted) == history.stats()._replace(**counted)
        assert again.recall(3) == "x" * 900
        assert again.messages == history.messages
    assert [file.name for file in tmp_path.iterdir()] == ["session.json"]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    grown(SESSION[:4]).save(path)
    whole = path.read_bytes()
    for damaged, kind in (
        (b"", recede.TranscriptError),
        (b"[]", recede.TranscriptError),
        (b"{}", recede.TranscriptError),
        (whole[:-20], recede.StoreError),
        (whole.replace(b"recede_history", b"recede_mystery"), recede.StoreError),
    ):
        path.write_bytes(damaged)
        with pytest.raises(kind, match=re.escape(str(path))):
            History.load(path)
    with recede.store.TurnStore(tmp_path / "turns.store") as store:
        recede.designs.ObservationMaskingContextManager(store=store).add_turn("r", "a", "o")
    with pytest.raises(recede.TranscriptError) as other:
        History.load(tmp_path / "turns.store")
    assert other.value.source == str(tmp_path / "turns.store")
    with pytest.raises(FileNotFoundError):
        History.load(tmp_path / "missing")
    with pytest.raises(OSError):  # noqa: PT011 - what the system says
        grown(SESSION).save(tmp_path / "no" / "folder")


@pytest.mark.skipif(not hasattr(os, "fchown"), reason="no modes on this system")
def test_a_saved_session_is_its_owners_alone_or_keeps_the_mode_it_had(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    umask = os.umask(0)
    try:
        grown(SESSION).save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for mode in (0o640, 0o600, 0o666):
            path.chmod(mode)
            grown(SESSION).save(path)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(umask)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.mkdir()
    (path / "keep").write_text("kept")
    with pytest.raises(OSError):  # noqa: PT011 - what the system says
        grown(SESSION).save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["session.json"]
    assert (path / "keep").read_text() == "kept"


def test_from_json_keeps_the_bytes_of_each_message() -> None:
    array = b'[ {"role": "user", "content" : "a"} ,\n{"role":"assistant","content":"b, ]"}\n]'
    history = recede.History.from_json(array)
    assert history.to_json() == b'[{"role": "user", "content" : "a"},{"role":"assistant","content":"b, ]"}]'
    with pytest.raises(recede.TranscriptError):
        recede.History.from_json(array[:-3])
    with pytest.raises(recede.TranscriptError, match="not a history"):
        recede.History.from_json(b'{"messages": []}')


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_copy_would_share_the_session_and_is_refused(copied: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"save\(path\) it, and History.load"):
        copied(recede.History())


def test_several_threads_do_not_corrupt_it() -> None:
    history = History(keep=3)

    def work(name: str) -> None:
        for number in range(60):
            history.append(call(f"{name}{number}"))
            history.append(result(f"{name}{number}", "y" * 300))
            assert isinstance(history.view(), list)
            b"".join(history.view_chunks())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, "abcd"))
    assert len(history) == 480
    assert history.view() == recede.designs.mask_old_observations(history.messages, 3, boundary="break_even")
    assert sorted(message["content"] for message in history.messages if message["role"] == "tool") == ["y" * 300] * 240


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"token_counter": 5}, TypeError, "token_counter must be callable or None, not int"),
        ({"threshold_tokens": 8}, TypeError, "no option 'threshold_tokens'"),
        ({"keep": -1}, ValueError, "keep must be at least 0"),
        ({"keep": None}, TypeError, "keep must be a whole number"),
        ({"kept": 4}, TypeError, "did you mean 'keep"),
        ({"keep_results": 4}, TypeError, "did you mean 'keep'"),
        ({"max_input_chars": 5}, TypeError, "the limit is max_input_tokens, of about four"),
        ({"mask_chunk": 5}, TypeError, "did you mean 'boundary=N'"),
        ({"boundary": 0}, ValueError, "boundary must be at least 1"),
        ({"boundary": "stepped"}, ValueError, "boundary must be 'break_even', 'sliding' or a number of results"),
        ({"calibrate": True}, TypeError, "calibrate is for a limit or a trigger: give max_input_tokens"),
        ({"calibrate": 1}, TypeError, "calibrate must be True or False"),
        ({"recall": 1}, TypeError, "recall must be True or False"),
        ({"summarizer": 5}, TypeError, "summarizer must be callable"),
    ],
)
def test_options_that_are_wrong_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        recede.History(**options)


def words(text: str) -> int:
    return len(text.split())


def test_a_token_counter_counts_each_text_once() -> None:
    counted: list[str] = []

    def counter(text: str) -> int:
        counted.append(text)
        return words(text)

    history = History(keep=3, token_counter=counter, threshold_tokens=200)
    session = [user("Go."), *turns(20, chars=900)]
    for message in session:
        history.append(message)
        history.view()
    # The 900 letters of an observation are one word.
    assert history.stats().masked_count == 0
    assert counted.count("Go.") == 1
    assert counted.count("x" * 900) == 20
    history.append(user("word " * 100))
    assert history.view() == recede.designs.mask_old_observations(history.messages, 3, boundary="break_even")
    assert history.stats().masked_count > 10


@pytest.mark.parametrize("place", ["message", "observation", "placeholder"])
def test_a_counter_that_fails_leaves_the_history_as_it_was(place: str) -> None:
    faulty = {"message": "run", "observation": "x" * 900, "placeholder": "[observation masked — 900 chars]"}[place]
    is_faulty = False

    def counter(text: str) -> int:
        if is_faulty and faulty in text:
            raise OSError("no tokenizer")
        return words(text)

    history, other = (History(max_input_tokens=60, token_counter=counter) for _ in range(2))
    for message in [user("Go."), *turns(20, chars=900)]:
        is_faulty = True
        with suppress(OSError):
            history.append(message)
            other.append(message)
            continue
        is_faulty = False
        assert len(history) == len(other)
        history.append(message)
        other.append(message)
    is_faulty = False
    assert history.view() == other.view()
    assert history.stats() == other.stats()
    assert len(history) == 41


def test_a_counter_that_fails_when_a_summary_was_made_is_asked_again() -> None:
    asked: list[int] = []
    is_faulty = False

    def counter(text: str) -> int:
        if is_faulty and text.startswith("Conversation summary:"):
            raise OSError("no tokenizer")
        return words(text)

    def summarizer(messages: list[Any], previous: str | None) -> str:
        asked.append(len(messages))
        return "Done."

    options: dict[str, Any] = {"max_input_tokens": 60, "preserve_recent_raw_turns": 4}
    history = History(**options, token_counter=counter, summarizer=summarizer)
    without = History(**options, token_counter=words, summarizer=lambda messages, previous: "")
    messages = [user("Go."), *(message for _ in range(15) for message in (assistant("so many words"), user("more")))]
    for one in (history, without):
        one.extend(messages)
    is_faulty = True
    with pytest.raises(OSError, match="no tokenizer"):
        history.view()
    is_faulty = False
    assert history.view() == without.view(), "nobody pays twice for a summary of the same"
    assert len(asked) == 1
    history.extend(messages[1:])
    assert system("Conversation summary:\nDone.") in history.view()
    assert len(asked) == 2 and asked[1] > asked[0]


def test_a_counter_is_given_again_when_a_session_is_loaded(tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_input_tokens": 60, "preserve_recent_raw_turns": 4}
    history = History(**options, token_counter=words)
    history.extend([assistant("so many words"), user("and some more")] * 15)
    history.view()
    history.save(tmp_path / "session.json")
    loaded = History.load(tmp_path / "session.json", token_counter=words)
    for session in (history, loaded):
        session.extend([assistant("so many words"), user("and some more")] * 5)
    assert history.view() == loaded.view()
    assert history.stats().view_messages < 20


def test_a_loaded_history_reports_the_moves_after_its_first_view_or_masks(tmp_path: Path) -> None:
    def messages(numbers: range) -> list[Any]:
        return [message for number in numbers for message in (call(f"c{number}"), result(f"c{number}", "x" * 2_000))]

    History.from_messages(messages(range(30))).save(tmp_path / "session.store")
    for look in (History.view, History.masks):
        told: list[Any] = []
        loaded = History.load(tmp_path / "session.store", on_move=told.append)
        look(loaded)
        assert told == []
        for number in range(30, 90):
            loaded.extend(messages(range(number, number + 1)))
            look(loaded)
        assert told == list(loaded.stats().boundary_moves)[-len(told) :] != []
    with pytest.raises(TypeError, match="on_move must be callable"):
        History.load(tmp_path / "session.store", on_move=3)  # type: ignore[arg-type]


def test_json_of_a_message_is_that_of_its_dict() -> None:
    by_dict, by_bytes = History(keep=3), History(keep=3)
    for message in SESSION:
        by_dict.append(message)
        by_bytes.append_json(dumps(message))
    assert by_dict.view() == by_bytes.view()
    assert json.loads(by_dict.view_json()) == json.loads(by_bytes.view_json())


class Dumped:
    """An object such as pydantic makes."""

    def __init__(self, fields: Any) -> None:
        self.fields = fields

    def model_dump(self, **options: Any) -> Any:
        return self.fields


class Step(Dumped):
    pass


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"thought": "Look.", "action": "ls"},
        {"content": "a text of nobody"},
        {"role": None, "content": "x"},
        {"object": "response", "output": [{"role": "user"}, {"text": "x"}]},
        {"choices": [{"message": {"content": "x"}}]},
        ["role"],
        "role",
        5,
        None,
    ],
    ids=str,
)
def test_an_object_that_is_no_message_is_named(fields: Any) -> None:
    history = grown(SESSION[:4])
    with pytest.raises(TypeError, match="a history takes messages, not a Step: what its model_dump gives has neither"):
        history.append(Step(fields))
    assert history.messages == SESSION[:4]


@pytest.mark.parametrize(
    "fields", [{"role": "user", "content": "x"}, {"type": "function_call_output", "call_id": "1", "output": "x"}]
)
def test_an_object_with_a_role_or_a_type_is_a_message(fields: dict[str, Any]) -> None:
    history, step = History(), Step(fields)
    history.append(step)
    assert history[0] is step
    assert json.loads(history.view_json()) == [fields]


def compacted(turns: int, says: int, **options: Any) -> Iterator[tuple[History, list[dict[str, Any]]]]:
    """A session with a budget and its views: calls with long results, and what the user says between them."""
    session = History(max_input_chars=6_000, boundary="sliding", summary_max_chars=100, **options)
    session.append(user("Find the bug. " * 30))
    for turn in range(turns):
        name = str(turn)
        session.extend([call(name), result(name, "a line of the log " * 60)])
        session.append(user(f"And this one, {turn}. " * says))
        yield session, session.view()


def test_the_task_of_a_session_is_what_came_before_its_first_turn() -> None:
    compactions = before = 0
    for session, view in compacted(60, says=25):
        messages = len(view)
        compactions += messages < before
        before = messages
        said = [message["content"] for message in view if message["role"] == "user"]
        assert any(text.startswith("Find the bug.") for text in said), "later messages do not displace it"
        assert session.messages[0] == user("Find the bug. " * 30)
    assert compactions > 3


def test_masked_observations_are_counted_after_compactions_too() -> None:
    dropped = before = 0
    for session, view in compacted(400, says=1, fill=0.95):
        masked = [one for one in view if str(one["content"]).startswith("[observation masked")]
        assert session.stats().masked_count == len(masked)
        dropped += len(view) < before and len(masked) > 1
        before = len(view)
    assert dropped > 1, "placeholders outlived a compaction"


def test_results_that_a_compaction_cut_are_not_counted_as_masked() -> None:
    cut = before = 0
    for session, view in compacted(200, says=5, clip_results=300):
        contents = [str(message["content"]) for message in view]
        assert session.stats().masked_count == sum(one.startswith("[observation masked") for one in contents)
        cut += len(view) < before and any(" chars omitted" in one for one in contents)
        before = len(view)
    assert cut > 1


def test_a_window_that_is_larger_than_what_is_filled_gives_way_in_a_session() -> None:
    session, before, compacted_to = History(max_input_chars=4_000), 0, list[int]()
    session.append(user("Find the bug."))
    for turn in range(30):
        session.extend([assistant("a" * 1_100), user(f"{turn}" * 50)])
        chars = session.stats().view_chars
        if chars < before:
            compacted_to.append(chars)
        before = chars
    assert len(compacted_to) > 5
    assert max(compacted_to) <= 2_000, "four messages of the window have 2,400"


def test_a_window_with_the_task_last_gives_way_to_the_newest_turn() -> None:
    session = History(max_input_chars=4_000, clip_results=None)
    newest = [call("2"), result("2", "y" * 3_000)]
    session.extend([{**call("1"), "content": "x" * 3_000}, result("1", "x"), *newest, user("Find the bug.")])
    assert session.view()[-3:] == [*newest, user("Find the bug.")]


def test_what_the_user_says_after_a_late_task_does_not_join_it() -> None:
    """It has a share of its own, of 666 characters: the shortest messages of the first view that was too long stay."""
    session = History(max_input_chars=4_000, fill=0.5)
    session.extend([assistant("Hello."), user("Find the bug.")])
    for turn in range(40):
        session.extend([assistant("a" * 400), user(f"{turn}." + "u" * 100)])
        session.view()
    task, *later = [message["content"] for message in session.view() if message["role"] == "user"]
    turns = [int(text.partition(".")[0]) for text in later]
    assert task == "Find the bug."
    assert turns == [*range(4, 10), *range(turns[6], 40)] and turns[6] > 20


@pytest.mark.parametrize(("error", "calls"), [(OSError("no model"), 8), (UnfinishedError("it was cut"), 2)])
def test_where_a_summary_fails_the_built_in_one_stands(error: Exception, calls: int, tmp_path: Path) -> None:
    asked: list[tuple[int, str | None]] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        asked.append((len(messages), previous))
        raise error

    store = recede.store.TurnStore(tmp_path / "session.store")
    history = recede.History(store=store, summarizer=summarizer, max_input_tokens=4_000, keep=4)
    for number in range(300):
        said = {**call(str(number)), "content": "I look. " * 60}
        history.extend([user("Go."), said] if number == 0 else [said])
        history.append(result(str(number), "a line of the log\n" * 60))
        view = history.view()
        assert len(view) == len(history) or any("Conversation summary:\n- o" in str(one["content"]) for one in view)
    assert len(asked) == calls and all(before is None for _, before in asked), "none was ever told"
    assert asked == sorted(asked) and asked[-1][0] > asked[0][0], "each is asked for all that is hidden"
    store.close()
    with recede.store.TurnStore(tmp_path / "session.store") as store:
        again = recede.History(store=store, summarizer=summarizer, max_input_tokens=4_000, keep=4)
        assert again.view() == view and len(asked) == calls
