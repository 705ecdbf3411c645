"""`recede replay` on sessions that log their requests: what was paid, prices, pauses, the check; `recede prices`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from children import recede_command
from transcript_files import claude, lines

from recede import costs, transcripts
from support import dumps, tool_result, tool_use, user

OPUS = "claude-opus-4-5-20251101"


def log(steps: int = 30, *, model: str = OPUS, cold: tuple[int, ...] = (), seconds: int = 20) -> bytes:
    """A session of Claude Code: 20,000 tokens of prefix, half a token a character."""
    records: list[Any] = [claude("user", user("x" * 400))]
    chars, before = 400, 0
    for step in range(steps):
        sent = 20_000 + chars // 2
        read = 0 if step in (0, *cold) else before
        usage = {"input_tokens": 0, "cache_read_input_tokens": read, "cache_creation_input_tokens": sent - read}
        call = tool_use(str(step), name="Bash", value={"command": "c" * 80})
        message = {"id": f"m{step}", "role": "assistant", "content": [call], "model": model}
        message["usage"] = {**usage, "output_tokens": 50}
        at = f"2026-05-14T{10 + step * seconds // 3600:02}:{step * seconds // 60 % 60:02}:{step * seconds % 60:02}Z"
        records += [claude("assistant", message, timestamp=at)]
        records += [claude("user", user([tool_result(str(step), "r" * 3_000)]))]
        chars, before = chars + 3_000 + len("Bash") + len('{"command":"') + 80 + len('"}'), sent
    return lines(*records)


def shown(*arguments: str | Path) -> list[str]:
    done = recede_command("replay", *arguments, columns=200)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(log(cold=(20,)))
    return path


def test_a_logged_session_is_estimated_in_its_tokens_and_prices(path: Path) -> None:
    session = transcripts.read(path)
    report = json.loads("\n".join(shown(path, "--policy", "sliding:window=5", "--json")))
    expected = costs.replay_transcript(session, ["sliding:window=5"]).costs
    assert [policy["cost"] for policy in report["total"]["policies"]] == [cost.cost for cost in expected]
    paid = costs.logged_bill(session.requests)
    assert report["total"]["policies"][0]["cost"] == pytest.approx(paid.cost, rel=0.01)
    said = shown(path, "--policy", "sliding:window=5")
    [line] = [line for line in said if line.startswith("logged: ")]
    assert line.startswith(f"logged: ${paid.cost:.2f} for 30 requests, tokens: {paid.cached_tokens:,} read")
    assert line.endswith(f"({OPUS})")
    assert not any(line.startswith("assumed: ") for line in said)
    assert said[-1].endswith("cache: anthropic")


def test_what_no_log_says_is_a_line_of_the_report(tmp_path: Path, path: Path) -> None:
    plain, unknown = tmp_path / "plain.json", tmp_path / "unknown.jsonl"
    plain.write_bytes(dumps(transcripts.read(path).messages))
    unknown.write_bytes(log(model="mystery-1"))
    table = ("--policy", "raw")
    said = [line for line in shown(plain, unknown, path, *table) if line.startswith("assumed: ")]
    assert said == [
        "assumed: 1 session without usage: four characters a token, 3,000 tokens of system prompt and tools unless "
        "--set system_chars=N",
        "assumed: 1 session: the model mystery-1 has no known price: shares are at the prices of anthropic",
    ]
    [said] = [
        line for line in shown(plain, *table, "--set", "system_chars=800") if line.startswith("assumed: 1 session")
    ]
    assert said.endswith("four characters a token, 200 tokens of system prompt and tools")
    said = [line for line in shown(plain, unknown, "--price", "openai", *table) if line.startswith("assumed: ")]
    assert len(said) == 1, "given prices ask for no model"


def test_sessions_of_several_models_have_prices_of_their_own(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(log(model="claude-haiku-4-5"))
    report = json.loads("\n".join(shown(path, other, "--policy", "raw", "--json")))
    first, second = (one["policies"][0]["cost"] for one in report["histories"])
    assert report["total"]["policies"][0]["cost"] == pytest.approx(first + second)
    assert second < first / 4
    assert shown(path, other, "--policy", "raw")[-1].startswith(
        "prices for a million tokens: by the models of each session"
    )


def test_own_prices_come_before_the_known_ones(tmp_path: Path, path: Path) -> None:
    prices = tmp_path / "prices.json"
    row = {"input": 0, "cached": 0, "write": 0, "write_1h": 0, "output": 2_000, "provider": "anthropic"}
    prices.write_text(json.dumps({"claude-opus-4-5": row}))
    report = json.loads("\n".join(shown(path, "--policy", "raw", "--prices", prices, "--json")))
    assert report["total"]["policies"][0]["cost"] == pytest.approx(30 * 50 * 2_000 / 1e6, rel=0.001)
    prices.write_text("{}}")
    for wrong, words in ((prices, b"prices cannot be read"), (tmp_path / "none", b"No such file")):
        done = recede_command("replay", path, "--prices", wrong)
        assert done.returncode == 2
        assert b"--prices" in done.stderr and words in done.stderr.replace(b"\n", b" ")


def test_without_pauses_the_cache_never_grows_cold(path: Path) -> None:
    def read(*options: str) -> int:
        report = json.loads("\n".join(shown(path, "--policy", "raw", "--json", *options)))
        chars: int = report["total"]["policies"][0]["usage"]["cached_chars"]
        return chars

    usage = transcripts.read(path).requests[19].usage
    assert usage is not None
    assert read("--set", "pauses=none") - read() == pytest.approx(4 * usage.sent_tokens, rel=0.01)


def test_the_check_has_a_row_for_each_session_that_logs_usage(tmp_path: Path, path: Path) -> None:
    late = tmp_path / "late.jsonl"
    late.write_bytes(log(10, cold=(3,), seconds=400))
    (tmp_path / "plain.json").write_bytes(dumps([user("Hi.")]))
    said = shown(path, late, tmp_path / "plain.json", "--check")
    assert said[0].split()[:3] == ["session", "requests", "input"]
    rows = {line.split()[0]: line.split()[1:] for line in said[1:4]}
    assert rows["session.jsonl"][0] == "30"
    assert rows["late.jsonl"][0] == "10"
    assert rows["2"][:2] == ["sessions", "40"]
    assert float(rows["session.jsonl"][1]) < 0.2
    assert said[-2:] == [
        "session.jsonl: requests that found less in the cache than the request before had sent, without a pause: 1",
        "late.jsonl: pauses longer than the cache is kept, after which it was kept: 8",
    ]
    assert shown(tmp_path / "plain.json", "--check") == ["no session has logged usage"]


def test_prices_are_printed_and_can_be_read_again(tmp_path: Path) -> None:
    table = recede_command("prices").stdout.decode()
    for name in costs.MODELS:
        assert f"\n{name} " in table
    assert "anthropic: platform.claude.com/docs" in table
    path = tmp_path / "prices.json"
    path.write_bytes(recede_command("prices", "--json").stdout)
    assert costs.read_prices(path) == dict(costs.MODELS)
    path.write_text('{"our-model": {"input": 1, "output": 2}}')
    again = recede_command("prices", "--prices", str(path)).stdout.decode()
    assert again.splitlines()[1].startswith("our-model ")
