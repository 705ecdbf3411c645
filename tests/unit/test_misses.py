"""What sessions quote from old results: the rule, piece by piece."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import recede
from recede import _engine, transcripts
from recede._agents import USER_TOOLS
from recede.costs import Misses, Quotation, misses
from recede.reduction._policy import replay_policy
from support import user

LINE = "def total(rows: list[Row]) -> float:"
FILLER = 9 * " # how to sum up what is in it"
History = list[dict[str, Any]]


def turn(number: int, result: str, said: str = "Next.", tool: str = "run", **arguments: str) -> History:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": str(number), "type": "function", "function": function}
    asked = {"role": "assistant", "content": said, "tool_calls": [call]}
    return [asked, {"role": "tool", "tool_call_id": str(number), "content": result}]


def session(result: str, said: str, *, others: int = 3, tool: str = "run") -> History:
    """A result, some others, and an answer."""
    between = [message for number in range(1, 1 + others) for message in turn(number, "passed " * 20)]
    return [user("Fix it."), *turn(0, result, tool=tool), *between, {"role": "assistant", "content": said}]


def quoted(result: str, said: str) -> list[str]:
    return [one.text for one in misses(session(result, said)).quoted]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (LINE + FILLER, LINE),
        (f"  12\t{LINE}\n  13\t    return 0{FILLER}", f"{LINE}\n    return 0"),
        (f"  12→{LINE}\n  13→    return 0{FILLER}", f"{LINE}\n    return 0"),
        (f"12:{LINE}{FILLER}", LINE),
        (f"src/sums.py:12:{LINE}{FILLER}", LINE),
        (f"+{LINE}\n-    return 0{FILLER}", f"{LINE}\n    return 0"),
        (f"\x1b[1;31mdef total\x1b[0m{LINE[9:]}{FILLER}", LINE),
        (json.dumps({"out": f"{LINE}\n\treturn \"0\" + '1'{FILLER}"}), f"{LINE}\n  return \"0\" + '1'"),
    ],
    ids=["plain", "cat", "arrow", "number", "grep", "diff", "colors", "escapes"],
)
def test_a_text_is_quoted_whatever_surrounds_it_in_the_result(result: str, said: str) -> None:
    assert quoted(result, said) == [" ".join(said.split())]


@pytest.mark.parametrize(("length", "is_quoted"), [(30, False), (31, True)])
def test_a_quotation_has_at_least_31_characters(length: int, is_quoted: bool) -> None:
    assert bool(quoted(LINE + FILLER, LINE[:length])) is is_quoted


def test_a_divider_is_no_quotation() -> None:
    assert quoted("=" * 300, "=" * 60) == []


def test_what_a_user_said_is_no_quotation() -> None:
    history = session(LINE + FILLER, LINE)
    assert misses([user(LINE), *history]).quoted == []


def test_a_text_counts_once_since_it_stays_visible() -> None:
    history = session(LINE + FILLER, LINE)
    assert misses([*history, *turn(8, "ok"), {"role": "assistant", "content": LINE}]).share(1) == 1 / 6


def test_a_result_is_at_the_distance_of_those_that_are_newer() -> None:
    [one] = misses(session(LINE + FILLER, f"The code is {LINE}", others=5, tool="Read")).quoted
    assert one == Quotation(request=6, result=0, tool="Read", distance=5, text=LINE)


def test_the_newest_copy_of_a_text_is_its_source() -> None:
    history = session(LINE + FILLER, LINE)
    history[-1:-1] = turn(7, f"again: {LINE}{FILLER}")
    history[-1:-1] = turn(8, "passed " * 20)
    assert [one.distance for one in misses(history).quoted] == [1]


def test_what_no_request_has_shown_is_not_hidden() -> None:
    assert misses(session(LINE + FILLER, LINE, others=0)).quoted == []


@pytest.mark.parametrize("tool", sorted(USER_TOOLS))
def test_the_users_own_words_are_visible(tool: str) -> None:
    assert misses(session(LINE + FILLER, LINE, tool=tool)).quoted == []


def test_arguments_of_calls_are_read_as_what_they_say() -> None:
    history = session(f"{LINE}\n    return 0{FILLER}", "Edit.")
    history[-1:] = turn(9, "ok", tool="edit", id=f"{LINE}\n    return 0")
    assert [one.text for one in misses(history).quoted] == [f"{LINE} return 0"]


def test_a_history_is_read_in_each_form() -> None:
    history = session(LINE + FILLER, LINE)
    found = misses(history)
    assert found.quoted
    assert misses(json.dumps(history)) == misses({"messages": history}) == misses(json.dumps(history).encode()) == found


def test_contexts_count_alone_and_are_added_up() -> None:
    def record(message: dict[str, Any]) -> bytes:
        return json.dumps({"type": "message", "message": message}).encode()

    def entries(start: int) -> list[bytes]:
        found = []
        for number in range(start, start + 4):
            call = {"type": "toolCall", "id": str(number), "name": "Read", "arguments": {}}
            found.append(record({"role": "assistant", "content": [call]}))
            text = [{"type": "text", "text": f"{LINE}{FILLER}" if number == start else "passed " * 20}]
            found.append(record({"role": "toolResult", "toolCallId": str(number), "content": text}))
        return [*found, record({"role": "assistant", "content": [{"type": "text", "text": LINE}]})]

    compaction = b'{"type": "compaction", "summary": "Read it."}'
    session = transcripts.read(b"\n".join([record(user("Go.")), *entries(0), compaction, *entries(4)]))
    found = misses(session)
    assert [(one.request, one.result, one.distance) for one in found.quoted] == [(4, 0, 3), (9, 4, 3)]
    assert (found.requests, found.results) == (10, 8)
    shown = b'{"type": "compaction", "summary": "Said ' + LINE.encode() + b'"}'
    again = transcripts.read(b"\n".join([record(user("Go.")), *entries(0), shown, *entries(4)]))
    assert [one.request for one in misses(again).quoted] == [4]


def test_texts_that_were_left_out_are_an_error() -> None:
    line = b'{"type": "response_item", "payload": {"type": "message", "role": "user", "content": "hello"}}'
    [session] = transcripts.read_all(line, keep_texts=False)
    with pytest.raises(ValueError, match="keep_texts=True"):
        misses(session)


@pytest.mark.parametrize(
    ("policy", "is_missed"),
    [
        ("raw", False),
        ("sliding:window=4", True),
        ("sliding:window=5", False),
        ("clear_tool_uses:trigger=1,keep=3", True),
        ("keep_last:messages=2", True),
        ("clip:chars=100", False),  # its beginning stays
        ("clip:chars=60", True),
        ("hybrid:window=3,at=never", True),
        ("summary:every=3,tail=1", True),
    ],
)
def test_each_policy_misses_what_it_had_hidden(policy: str, is_missed: bool) -> None:
    history = session(LINE + FILLER, LINE, others=4)
    played = recede.costs.replay(history, [policy], summary_chars=100, with_misses=True)
    assert played.misses is not None
    assert played.misses.share_under(played.policies[-1].policy) == (1 / 6 if is_missed else 0)


def test_a_summary_that_is_known_is_visible() -> None:
    history = session(LINE + FILLER, LINE, others=6)
    history[1]["content"] = f"This is a decision: {LINE}"
    shares = []
    for said in ("Look.", LINE):
        history[1]["content"] = said
        played = recede.costs.replay(history, ["summary:every=3,tail=1"], summary_chars=0, with_misses=True).misses
        assert played is not None
        shares.append(played.share_under("summary:every=3,tail=1"))
    assert shares[1] == 0


@pytest.mark.parametrize(("chars", "share"), [(1_000, 0), (400, 1 / 5)])
def test_a_budget_that_masks_hides_what_is_quoted(chars: int, share: float) -> None:
    played = recede.costs.replay(session(LINE + FILLER, LINE), [f"budget:chars={chars}"], with_misses=True).misses
    assert played is not None
    assert played.share_under(f"budget:chars={chars},fill=0.5") == share


def found_in(history: History, most_grams: int | None = None) -> Any:
    everything = replay_policy(_engine.engine, "mask", {"keep_results": 0}, masks_unseen=True)
    return _engine.engine.quoted(json.dumps(history).encode(), False, everything, [], 0, most_grams)


def test_above_a_limit_every_nth_request_is_examined() -> None:
    history = session(LINE + FILLER, LINE, others=19)
    every = found_in(history)
    assert (every[0], every[2], len(every[3])) == (21, 21, 1)
    some = found_in(history, most_grams=70)
    assert some[2] in range(5, 21)
    assert {request for request, *_ in some[3]} <= {request for request, *_ in every[3]}


HOSTILE = {
    "one": "a",
    "two": "ab",
    "codes": "\x1b[1",
    "numbers": "1:",
    "escapes": "\\",
    "spaces": " \t",
    "lines": "a.go:1:+-\n",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_take_linear_time(unit: str) -> None:  # else they end at the limit of a test
    text = unit * (3_000_000 // len(unit))
    assert misses([user("Go."), *session(text, text), *turn(8, text, text)]).quoted == []


def test_equal_results_take_linear_time() -> None:
    history = [message for number in range(2_000) for message in turn(number, LINE + FILLER, LINE)]
    assert misses([user("Go."), *history]).quoted == []  # the first answer is written before any result


def test_misses_are_told_without_some_requests() -> None:
    found = Misses(3, 3, 3, [Quotation(1, 0, None, 2, LINE)], {"raw": frozenset({1})})
    assert found.without({1}) == Misses(2, 3, 2, [], {"raw": frozenset()})


def test_every_process_finds_the_same_quotations() -> None:
    """The base of the fingerprints is drawn in each, so that no text can be made whose grams collide."""
    code = "import json, sys, recede.costs; print(recede.costs.misses(json.load(sys.stdin)).quoted)"
    history = json.dumps(session(LINE + FILLER, LINE))
    command = [sys.executable, "-c", code]
    runs = {subprocess.run(command, input=history, capture_output=True, text=True, check=True).stdout for _ in range(3)}
    assert len(runs) == 1 and LINE in runs.pop()
