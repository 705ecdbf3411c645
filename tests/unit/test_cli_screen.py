"""The first screen: its rules, for each mix of sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from children import recede_command
from rich.cells import cell_len
from transcript_files import claude, lines

from recede import costs, transcripts
from recede.cli.played import Session
from recede.cli.record import Asked, record_of
from recede.cli.screen import screen
from recede.cli.tables import compact, gain, middle, span_of, words_of
from recede.proxy._played import PlayedProxy
from support import dumps, put, tool_result, tool_use, turns, turns_of, user

LONG = [user("Fix the test."), *turns(60, chars=4_000)]
SHORT = [user("Hello."), *turns(3, chars=50)]
MASKED = "break_even:window=10"
VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "FILE_STORE_PATH", "XDG_CONFIG_HOME")


def claude_log(
    steps: int,
    *,
    chars: int = 4_000,
    said: int = 0,
    model: str = "claude-sonnet-4-5",
    name: str = "m",
    cold: Collection[int] = (),
) -> bytes:
    """A session of Claude Code that logs its tokens, a quarter of its characters."""
    records, sent, before = [claude("user", user("Go."))], 3_000, 0
    for step in range(steps):
        read = 0 if step in cold else before
        usage = {"input_tokens": 0, "cache_read_input_tokens": read, "cache_creation_input_tokens": sent - read}
        content = [{"type": "text", "text": "w" * said}, *tool_use(str(step), name="Bash")["content"]]
        message = {"id": f"{name}{step}", "role": "assistant", "content": content, "model": model}
        message["usage"] = {**usage, "output_tokens": 10 + said // 4}
        at = f"2026-11-02T{10 + step // 60}:{step % 60:02}:{sum(map(ord, name)) % 60:02}Z"
        records += [claude("assistant", message, timestamp=at)]
        records += [claude("user", user([tool_result(str(step), f"{step} " + "r" * chars)]))]
        sent, before = sent + (chars + said) // 4, sent
    return lines(*records)


def codex_log(steps: int, *, chars: int = 4_000, plan: str | None = None) -> bytes:
    records: list[Any] = [{"type": "session_meta", "payload": {"id": "1"}}]
    records.append({"type": "response_item", "payload": {"type": "message", **user("Go.")}})
    for step in range(steps):
        call = {"type": "function_call", "call_id": str(step), "name": "run", "arguments": "{}"}
        result = {"type": "function_call_output", "call_id": str(step), "output": f"{step} " + "r" * chars}
        usage = {"input_tokens": 3_000 + step * chars // 4, "cached_input_tokens": 0, "output_tokens": 9}
        info = {"total_token_usage": {"total_tokens": step}, "last_token_usage": usage}
        limits = {"plan_type": plan} if plan else None
        records += [{"type": "response_item", "payload": item} for item in (call, result)]
        records.append({"type": "event_msg", "payload": {"type": "token_count", "info": info, "rate_limits": limits}})
    return lines(*records)


GEMINI = dumps(
    {"sessionId": "1", "messages": [{"type": "user", "content": "Go."}, {"type": "gemini", "content": "Ok"}]}
)


PI = [
    {"type": "message", "message": {"role": role, "content": [{"type": "text", "text": "Go."}]}}
    for role in ("user", "assistant")
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


@pytest.fixture
def four(home: Path) -> Path:
    """A home with sessions of four agents."""
    put(home / ".claude/projects/a/one.jsonl", claude_log(60))
    put(home / ".codex/sessions/rollout-1.jsonl", codex_log(45))
    put(home / ".gemini/tmp/a/chats/session-1.json", GEMINI)
    for number, event in enumerate(({"source": "user", "action": "message", "args": {"content": "Go."}},) * 2):
        put(home / f".openhands/sessions/s1/events/{number}.json", dumps({"id": number, **event}))
    event = {"id": 2, "source": "agent", "action": "message", "args": {"content": "Done."}}
    put(home / ".openhands/sessions/s1/events/2.json", dumps(event))
    return home


def shown(*arguments: object, code: int = 0, stdin: bytes = b"") -> list[str]:
    done = recede_command(*arguments, stdin=stdin)
    assert done.returncode == code, done.stderr.decode()
    found = done.stdout.decode().splitlines()
    if not {"-v", "--verbose"} & set(map(str, arguments)):
        assert len(found) <= 24 and all(len(line) <= 80 for line in found), "\n".join(found)
    return found


def amounts(found: list[str]) -> dict[str, float]:
    """The dollars of each line that has any at its end, by its words."""
    rows = (re.match(r"  (\S.*?) {2,}\$([\d,.]+)(?:  |$)", line) for line in found)
    return {row[1]: float(row[2].replace(",", "")) for row in rows if row}


def test_four_agents_have_the_four_answers_within_fifteen_lines(four: Path) -> None:
    found = shown()
    assert found[0] == "4 sessions of Claude Code, Codex, Gemini CLI, OpenHands; 107 requests, Nov 2"
    first = "\n".join(found[:15])
    assert list(amounts(found)) == ["you paid", "you paid, as estimated", "together", "masked when it pays"]
    logged, estimated, together, _ = amounts(found).values()
    assert logged + estimated == pytest.approx(together, abs=0.011)
    assert (
        f"you paid: ${logged:.2f} logged, ${estimated:.2g} estimated;"
        in recede_command("replay", "--all").stdout.decode()
    )
    assert "  quoted     none of 107 requests" in first and "quoted in 0.0 %" in first
    assert re.search(r"  saved by   2 long sessions: \$[\d.]+; 2 short ones: nothing", first)
    typed = found[found.index("  to get it  Claude Code    recede proxy -- claude") :][:2]
    assert typed[1].split() == "Codex recede proxy -- codex".split() and found.index(typed[1]) < 15
    assert not [line for line in found[1:] if "Gemini" in line or "OpenHands" in line], "of which nothing is saved"
    page = recede_command("replay", "--html", "-").stdout.decode()
    for command in ("recede proxy -- claude", "recede proxy -- codex"):
        assert f"<code>{command}</code>" in page


def test_the_amounts_are_shares_of_what_was_paid(home: Path) -> None:
    """Also where the replay of the raw history costs something else: here without the requests that were cold."""
    path = put(home / ".claude/projects/a/one.jsonl", claude_log(60, cold=range(40, 60)))
    session = transcripts.read(path)
    paid = costs.logged_bill(session.requests).cost
    [_, masked] = costs.replay_transcript(session, [MASKED], pauses="none", door=PlayedProxy(session)).costs
    assert masked.cost < 0.5 * paid * masked.of_raw, "they differ much"
    found = amounts(shown("replay", "--set", "pauses=none"))
    assert found["you paid"] == pytest.approx(paid, abs=0.006)
    assert found["masked when it pays"] == pytest.approx(paid * masked.of_raw, abs=0.006)


def test_it_is_the_same_for_files_and_says_which_option_to_add(tmp_path: Path) -> None:
    path = put(tmp_path / "a-long-name-of-a-session.json", dumps(LONG))
    found = shown("replay", path)
    assert found[0] == "1 session; 60 requests"
    assert "  to get it  your own loop  recede.History(keep=10)   append(...), send view()" in found
    assert "  pictures: the same with --html report.html       all choices: recede replay -h" in found
    assert "  all choices: recede replay -h" in shown("replay", path, "--html", tmp_path / "page.html")
    assert next(iter(amounts(found))) == "you paid, as estimated"
    assert shown("replay", "-", stdin=dumps(LONG))[-2].startswith("  pictures: recede replay - --html report.html")


def test_notes_are_one_line_and_all_of_them_with_v(home: Path) -> None:
    put(home / ".claude/projects/a/one.jsonl", claude_log(60, model="mystery-1"))
    put(home / ".claude/projects/a/two.jsonl", claude_log(3, name="n") + b'{"type": "assistant", "mess')
    found = shown()
    assert found[-1] == "  2 notes: recede -v"
    done = recede_command("-v")
    said = done.stdout.decode() + done.stderr.decode()
    assert "the model mystery-1 has no known price: shares are at the prices of anthropic" in said
    assert "two.jsonl: warning: its last line is being written, or was never finished: left out" in said
    assert " notes" not in said
    assert not recede_command().stderr and "notes" not in "\n".join(shown("-q"))


def test_a_log_that_is_being_written_is_read_to_its_last_whole_line(home: Path) -> None:
    put(home / ".codex/sessions/rollout-1.jsonl", codex_log(45)[:-40])
    found = shown()
    assert found[0] == "1 session of Codex; 45 requests" and found[-1] == "  2 notes: recede -v"
    assert found[-2] == "  1 damaged line was skipped"
    named = recede_command("replay", home / ".codex/sessions/rollout-1.jsonl")
    assert b"1 damaged line was skipped" in named.stdout


def test_only_short_sessions_say_so_first(home: Path) -> None:
    put(home / ".claude/projects/a/one.jsonl", claude_log(6))
    found = shown()
    assert found[:2] == [
        "nothing would be saved: your sessions are short: 6 tool results at the median;",
        "masking begins to pay after about 30",
    ]
    assert not any("to get it" in line or "saved by" in line for line in found)
    tiny = shown("replay", "-", stdin=dumps([user("Go."), *turns(60, chars=9)]))
    assert tiny[0].startswith("nothing would be saved: your tool results are too small")
    ended = shown("replay", "-", stdin=dumps([user("Go."), *turns(34, chars=10_000)]))
    assert ended[0] == "nothing would be saved: your sessions ended before their masks had paid;"
    assert any("% more" in line for line in ended)
    told = [message for number in range(50) for message in (user("?"), {"role": "assistant", "content": f"{number}"})]
    assert shown("replay", "-", stdin=dumps(told))[0].endswith("your sessions have no tool results to mask")


def test_an_empty_home_says_where_was_looked_and_how_to_begin(home: Path) -> None:
    done = recede_command()
    said = done.stderr.decode().splitlines()
    assert done.returncode == 1 and done.stdout == b""
    assert said[0] == "recede: no sessions of agents are in their usual places"
    assert "  Codex          ~/.codex/sessions" in said
    assert said[-1] == "sessions elsewhere: recede replay FILES...   from now on: recede proxy -- claude"
    assert all(len(line) <= 80 for line in said)


def test_nothing_asked_is_no_crash() -> None:
    assert "no request was made: nothing here is an answer of an agent" in shown(
        "replay", "-", stdin=dumps([user("hi")])
    )


def test_those_who_pay_a_subscription_see_tokens_first(home: Path) -> None:
    put(home / ".codex/sessions/rollout-1.jsonl", codex_log(45, plan="plus"))
    found = shown()
    assert found[2].split() == ["tokens", "fullest,", "of", "200k", "quoted"]
    sent = sum(3_000 + step * 1_000 for step in range(45))  # 1.125 million
    assert found[3].split() in (["you", "sent", compact(sent + more), "24", "%"] for more in (0, 1_000))
    assert any(line.startswith("  at API prices: $") for line in found)
    tried = "             recede proxy was not tried with a subscription"
    assert found[found.index(tried) - 1].endswith("recede proxy -- codex")
    assert any(line.endswith(" tokens") for line in found if line.startswith("  saved by"))
    assert not amounts(found)
    put(home / ".claude/projects/a/one.jsonl", claude_log(60))
    assert tried not in shown()
    found_amounts = amounts(shown())  # one paid by the token, so dollars come first
    own, plan, together, _ = found_amounts.values()
    assert list(found_amounts)[:3] == ["you paid", "subscription, at API prices", "together, at API prices"]
    assert own + plan == pytest.approx(together, abs=0.011)
    assert f"${plan:.2f} of a subscription, at API prices" in recede_command("replay", "--all").stdout.decode()
    assert "assumed: 1 session paid by a subscription: priced as the API" in shown("-v")
    put(home / ".claude.json", dumps({"oauthAccount": {"billingType": "stripe_subscription"}}))
    assert not amounts(shown())
    put(home / ".claude.json", dumps({"oauthAccount": {"billingType": "prepaid"}}))
    assert amounts(shown())
    assert not amounts(shown("--subscription"))


def test_summaries_are_shown_where_they_save_more_and_can_be_had(home: Path) -> None:
    """With the line that has them, what a model takes for them, and with more turns; not for subscriptions."""
    put(home / ".claude/projects/a/one.jsonl", claude_log(300, chars=2_000, said=6_000))
    found = shown()
    dollars = amounts(found)
    paid, masked, more = dollars.values()
    assert list(dollars)[2] == "with summaries of old turns too" and more < masked - 0.05 * paid
    place = found.index("  summaries  Claude Code    recede proxy --summaries -- claude")
    said = " ".join(line.strip() for line in found[place + 1 : place + 3])
    priced = re.fullmatch(
        r"With an API key; \$([\d.]+) of it is for the model that reads old turns\. "
        r"15 % more turns, as in research, make it \$([\d.]+), \d+ % less\.",
        said,
    )
    assert priced and 0 < float(priced[1]) < more and float(priced[2]) == pytest.approx(1.15 * more, abs=0.02)
    assert "50 % more turns" in "\n".join(shown("replay", "--set", "elongation=0.5"))
    assert not [line for line in shown("--subscription") if "summar" in line]
    put(home / ".codex/sessions/rollout-1.jsonl", codex_log(45, plan="plus"))
    found = shown()
    with_codex = amounts(found)
    assert with_codex["masked when it pays"] - with_codex["with summaries of old turns too"] == pytest.approx(
        masked - more, abs=0.02
    ), "a subscription's own turns are masked alone"
    assert [line for line in found if "--summaries" in line] == [found[place + 3]]
    put(home / ".claude.json", dumps({"oauthAccount": {"billingType": "stripe_subscription"}}))
    assert not [line for line in shown() if "summar" in line]


def test_summaries_may_save_where_masks_do_not(home: Path) -> None:
    put(home / "one.json", dumps(turns_of([(6_000, 60)] * 300)))
    found = shown("replay", home / "one.json")
    assert found[0] == "masks save nothing: your tool results are too small for masking to pay"
    assert "  summaries  your own loop  recede.History(keep=10, summarizer=f)" in found
    assert "             f is one of recede.summarizers, or your own function." in found


def test_of_many_agents_summaries_have_one_line(four: Path) -> None:
    """So that the screen has 24 lines."""
    put(four / ".claude/projects/a/two.jsonl", claude_log(300, chars=2_000, said=6_000, name="n"))
    assert sum("--summaries" in line for line in shown()) == 4
    put(four / ".codex/sessions/rollout-1.jsonl", codex_log(45)[:-40])
    put(four / ".pi/agent/sessions/one.jsonl", lines({"type": "session", "id": "1"}, *PI))
    put(four / "own.json", dumps(turns_of([(60, 60)] * 3)))
    found = shown("replay", four)
    place = found.index("  summaries  add --summaries to recede proxy, summarizer=f to a line of Python")
    assert found[place + 1].startswith("             With an API key; $") and found[place + 2].endswith(" % less.")


@pytest.mark.parametrize(
    "policy",
    ["raw", *costs.replay_policies(), "clear_tool_uses", "clip:chars=4000"],
)
def test_words_of_a_policy_have_no_code(policy: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9', ]+", words_of(policy)) and len(words_of(policy)) <= 60


def test_words_for_figures() -> None:
    assert [gain(share) for share in (0.997, 1.003, 0.5, 1.5, 2, 11.04)] == [
        "no less", "no less", "50 % less", "50 % more", "2.0 times", "11.0 times",
    ]  # fmt: skip
    assert [compact(number) for number in (0, 999, 1_000, 65_432, 999_600, 3.4e8)] == [
        "0", "999", "1k", "65.4k", "1M", "340M",
    ]  # fmt: skip
    assert middle("abcdefghij", 10) == "abcdefghij" and middle("abcdefghijk", 7) == "abc…ijk"
    assert cell_len(middle("長い名前の記録", 7)) <= 7
    day = 86_400.0
    assert span_of([]) == "" and span_of([1.6e9, 1.6e9]) == "Sep 13, 2020"
    assert span_of([1.6e9, 1.6e9 + 3 * day]) == "Sep 13 to 16, 2020"
    assert span_of([1.6e9, 1.6e9 + 40 * day]) == "Sep 13 to Oct 23, 2020"
    assert span_of([1.6e9, 1.6e9 + 400 * day]) == "Sep 13, 2020 to Oct 18, 2021"


def test_the_function_takes_sessions_that_were_never_asked() -> None:
    found = costs.replay([user("hi")], [MASKED])
    assert len(screen(record_of([Session("a", "messages", found, {})], Asked()))) == 2


def test_sessions_of_agents_are_named_by_project_and_day_not_by_id(home: Path) -> None:
    for name, folder in (("0d9f7c1e", "/work/git-sync"), ("77aa", "/work/other"), ("77ab", "/work/other")):
        first, rest = claude_log(20, name=name).split(b"\n", 1)
        placed = json.dumps({**json.loads(first), "cwd": folder}).encode()
        put(home / f".claude/projects/a/{name}.jsonl", placed + b"\n" + rest)
    began = datetime(2026, 11, 2, 10, tzinfo=timezone.utc).astimezone()
    day = f"{began:%b} {began.day} {began:%H:%M}"
    report = json.loads(recede_command("replay", "--json").stdout)
    names = [one["name"] for one in report["histories"]]
    assert names == [f"git-sync, {day}", f"other, {day}, 77aa.jsonl", f"other, {day}, 77ab.jsonl"]
    assert f"git-sync, {day}" in recede_command("replay", "--html", "-").stdout.decode()
    put(home / ".claude/projects/b/x.jsonl", claude_log(20, name="x"))
    names = [one["name"] for one in json.loads(recede_command("replay", "--json").stdout)["histories"]]
    assert names[-1] == f"Go., {day}", "its first words, since no folder is known"
    path = home / ".claude/projects/a/77aa.jsonl"
    [one] = json.loads(recede_command("replay", path, "--json").stdout)["histories"]
    assert one["name"] == "77aa.jsonl", "a file that was named"
