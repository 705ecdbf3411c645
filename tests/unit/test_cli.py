"""The command line, as a person runs it: exit codes, streams and real files."""

from __future__ import annotations

import gzip
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import published
import pytest
from children import recede_command

import recede
import recede.cli.commands
from support import dumps, result, turns, user

HISTORY = [user("Fix the test."), *turns(8, chars=500)]
BUDGET = ("--design", "--fill", "0.9", "--max-input-chars", "3000")
LINE = b'{"role": "user"}\n'


def run(*arguments: str | Path, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return recede_command(*arguments, stdin=stdin, columns=80, **environment)


def ok(*arguments: str | Path, **options: Any) -> bytes:
    """Standard output of a run that must succeed."""
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def refused(*arguments: str | Path, code: int = 1, **options: Any) -> str:
    """Standard error of a run that must fail; for bad input it is one line and nothing is printed."""
    done = run(*arguments, **options)
    assert done.returncode == code, done.stderr.decode()
    assert done.stdout == b""
    error = done.stderr.decode()
    assert code == 2 or (error.startswith("recede: ") and error.find("\n") == len(error) - 1), error
    return error


def lines_of(messages: list[Any]) -> bytes:
    return b"".join(dumps(message) + b"\n" for message in messages)


@pytest.fixture
def array(tmp_path: Path) -> Path:
    path = tmp_path / "history.json"
    path.write_bytes(dumps(HISTORY))
    return path


# The forms of files


def test_an_array_becomes_what_reduce_json_gives(array: Path) -> None:
    assert ok("reduce", array, *BUDGET) == published.reduce_json(dumps(HISTORY), max_input_chars=3000).json


def test_a_request_body_stays_one(tmp_path: Path) -> None:
    body = {"model": "m", "messages": HISTORY, "temperature": 1.0}
    for data in (dumps(body), json.dumps(body, indent=2).encode()):
        path = tmp_path / "body.json"
        path.write_bytes(data)
        view = ok("reduce", path, *BUDGET)
        assert view == published.reduce_json(data, max_input_chars=3000).json != data


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_json_lines_stay_json_lines(tmp_path: Path, line_end: bytes) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(lines_of(HISTORY).replace(b"\n", line_end))
    view = ok("reduce", path, *BUDGET)
    assert [json.loads(line) for line in view.splitlines()] == published.reduce(HISTORY, max_input_chars=3000).messages
    assert view.count(line_end) == view.count(b"\n")


@pytest.mark.parametrize("first", [user("Port it. " * 200), {"role": "system", "content": "Be brief."}])
@pytest.mark.parametrize("keep", ["0", "1", "4", "12"])
def test_a_summary_gets_a_line_of_its_own(tmp_path: Path, first: Any, keep: str) -> None:
    history = [first, *HISTORY]
    path = tmp_path / "history.jsonl"
    path.write_bytes(lines_of(history))
    arguments = ("--design", "--max-input-chars", "100000", "--no-mask", "--keep-messages", keep)
    assert ok("reduce", path, *arguments) == path.read_bytes()
    arguments = (
        "--design",
        "--fill",
        "0.9",
        "--max-input-chars",
        "2000",
        "--no-mask",
        "--keep-messages",
        keep,
        "--summary-max-chars",
        "400",
    )
    view = [json.loads(line) for line in ok("reduce", path, *arguments).splitlines()]
    expected = published.reduce(
        history,
        max_input_chars=2000,
        observation_masking=False,
        preserve_recent_raw_turns=int(keep),
        summary_max_chars=400,
    )
    assert view == expected.messages


def test_what_is_within_the_budget_comes_back_byte_for_byte(tmp_path: Path) -> None:
    for number, data in enumerate(
        (b'\n[ {"role":"user"} ]\n\n', b'{"role":"user"}\n\n{"role":"user"}', b'{"role":"user"}')
    ):
        path = tmp_path / str(number)
        path.write_bytes(data)
        assert ok("reduce", path, *BUDGET) == data


def test_standard_input_and_gzip_are_read(array: Path) -> None:
    view = ok("reduce", array, *BUDGET)
    assert ok("reduce", "-", *BUDGET, stdin=array.read_bytes()) == view
    packed = gzip.compress(array.read_bytes())
    assert ok("reduce", "-", *BUDGET, stdin=packed) == view
    array.write_bytes(packed)  # known by its content, not by its name
    assert ok("reduce", array, *BUDGET) == view


@pytest.mark.parametrize("command", [("reduce", "-", *BUDGET), ("store", "import", "new.store")])
def test_damaged_gzip_data_is_one_line(array: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    packed = gzip.compress(array.read_bytes())
    for damaged in (packed[:-9], packed[:30] + bytes(20) + packed[50:]):
        done = run(*(tmp_path / word if word == "new.store" else word for word in command), stdin=damaged)
        said = b"recede: standard input: the gzip data is truncated or damaged: pass the whole file\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, b"", said)


# Writing


def test_output_is_written_with_the_mode_it_had(array: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("old")
    out.chmod(0o640)
    assert ok("reduce", array, *BUDGET, "-o", out) == b""
    assert out.read_bytes() == ok("reduce", array, *BUDGET)
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history.json", "out.json"]


LINKS = [
    pytest.param(lambda path, link: link.symlink_to(path), id="symbolic"),
    pytest.param(lambda path, link: link.hardlink_to(path), id="hard"),
]


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege there")
@pytest.mark.parametrize("linked", LINKS)
def test_no_input_is_written_over_by_whatever_name(array: Path, tmp_path: Path, linked: Any) -> None:
    link = tmp_path / "link.json"
    linked(array, link)
    for source, out in ((array, array), (array, link), (link, array), (array, array.parent / "." / array.name)):
        said = refused("reduce", source, *BUDGET, "-o", out, code=2)
        assert f"--output would write over {source}, which is read" in said.replace("\n", "")
        assert "--in-place" in said
    with array.open("rb") as opened:
        command = [sys.executable, "-m", "recede.cli", "reduce", "-", *BUDGET, "-o", str(link)]
        done = subprocess.run(command, stdin=opened, capture_output=True)
    assert done.returncode == 2 and b"would write over -" in done.stderr
    assert array.read_bytes() == dumps(HISTORY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history.json", "link.json"]


@pytest.mark.parametrize("name", ["history.json", "history.jsonl", "body", "plain.gz", "packed.gz", "packed"])
def test_in_place_a_view_takes_the_form_and_the_mode_of_its_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = {"history.jsonl": lines_of(HISTORY), "body": dumps({"messages": HISTORY})}.get(name, dumps(HISTORY))
    path.write_bytes(gzip.compress(data) if name.startswith("packed") else data)
    path.chmod(0o640)
    view = ok("reduce", path, *BUDGET)
    assert view != data
    done = run("reduce", path, *BUDGET, "--in-place")
    assert (done.returncode, done.stdout) == (0, b"") and done.stderr.startswith(b"stage: masking")
    written = path.read_bytes()
    assert (gzip.decompress(written) if name.startswith("packed") else written) == view
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    # What is within the budget is not written again.
    before = path.stat()
    ok("reduce", path, "--design", "--max-input-chars", "99999", "--in-place")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege there")
def test_in_place_through_a_link_keeps_the_link(array: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(array)
    [report] = json.loads(ok("reduce", link, *BUDGET, "--in-place", "--json"))["histories"]
    assert report["masked_count"] and link.is_symlink()
    assert array.read_bytes() == published.reduce_json(dumps(HISTORY), max_input_chars=3000).json


def test_in_place_needs_files_and_no_output(array: Path, tmp_path: Path) -> None:
    for arguments in ((array, "-o", tmp_path / "out.json"), (array, "-o", "-"), ("-",), (array, "-")):
        assert "--in-place" in refused("reduce", *arguments, *BUDGET, "--in-place", code=2)
    assert array.read_bytes() == dumps(HISTORY)


@pytest.mark.skipif(not hasattr(os, "fchown"), reason="no modes on this system")
@pytest.mark.parametrize(("mode", "wanted"), [(0o600, 0o600), (0o640, 0o640), (0o666, 0o644), (0o755, 0o644)])
def test_a_new_file_can_be_read_by_those_who_may_read_its_source(
    array: Path, tmp_path: Path, mode: int, wanted: int
) -> None:
    array.chmod(mode)
    umask = os.umask(0o022)
    try:
        for name, packed in (("out.json", False), ("out.json.gz", True)):
            ok("reduce", array, *BUDGET, "-o", tmp_path / name)
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == wanted, packed
        ok("reduce", "-", *BUDGET, "-o", tmp_path / "piped.json", stdin=array.read_bytes())
        assert stat.S_IMODE((tmp_path / "piped.json").stat().st_mode) == 0o600
    finally:
        os.umask(umask)


def test_a_folder_that_is_missing_is_named_by_the_path_that_was_given() -> None:
    from recede._files import write_whole

    with pytest.raises(FileNotFoundError, match=r": 'no/folder/x'$"):
        write_whole("no/folder/x", [b""])


def test_a_file_is_written_whole_or_not_at_all_by_one_function_that_gives_nothing_away(tmp_path: Path) -> None:
    """What stands beside the old file has its mode before the first byte comes."""
    from recede._files import write_whole

    old = tmp_path / "old"
    modes = []

    def pieces() -> Iterator[bytes]:
        [new] = set(tmp_path.iterdir()) - {old}
        modes.append((stat.S_IMODE(new.stat().st_mode), new.stat().st_size))
        yield b"one"
        if len(modes) == 3:
            raise ZeroDivisionError

    umask = os.umask(0)
    try:
        write_whole(old, pieces())
        old.chmod(0o660)
        write_whole(old, pieces())
        with pytest.raises(ZeroDivisionError):
            write_whole(old, pieces())
    finally:
        os.umask(umask)
    assert modes == [(0o600, 0), (0o660, 0), (0o660, 0)] or not hasattr(os, "fchown")
    assert old.read_bytes() == b"one" and list(tmp_path.iterdir()) == [old]


def test_output_that_ends_in_gz_is_gzipped(array: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json.gz"
    ok("reduce", array, *BUDGET, "-o", out)
    assert gzip.decompress(out.read_bytes()) == ok("reduce", array, *BUDGET)


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege there")
def test_output_through_a_link_keeps_the_link(array: Path, tmp_path: Path) -> None:
    link, out = tmp_path / "link.json", tmp_path / "out.json"
    link.symlink_to(out)  # which is not there yet
    for _ in range(2):
        ok("reduce", array, *BUDGET, "-o", link)
        assert link.is_symlink()
        assert out.read_bytes() == published.reduce_json(dumps(HISTORY), max_input_chars=3000).json
        out.write_bytes(b"old")


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no /dev/null")
def test_a_device_is_not_replaced(array: Path) -> None:
    ok("reduce", array, *BUDGET, "-o", "/dev/null")
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_one_line(array: Path) -> None:
    for command in (("reduce", array, *BUDGET), ("stats", array)):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "recede.cli", *map(str, command)], stdout=full, stderr=subprocess.PIPE
            )
        assert done.returncode == 1
        assert done.stderr == b"recede: standard output: cannot be written: No space left on device\n"


def test_a_broken_pipe_is_quiet(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_bytes(dumps([user("x" * 3_000_000)]))
    command = [sys.executable, "-m", "recede.cli", "reduce", str(path), "--design", "--max-input-chars", "9999999"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""


# Bad input


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (gzip.compress(dumps(HISTORY), mtime=0)[:-9], "the gzip data is truncated or damaged"),
        (gzip.compress(dumps(HISTORY), mtime=0)[:30] + b"garbage" * 9, "the gzip data is truncated or damaged"),
        (b"\xef\xbb\xbf[]", "it looks like text with a byte order mark: save it as UTF-8 without one"),
        (b"\xef\xbb\xbf" + lines_of(HISTORY), "it looks like text with a byte order mark"),
        (b"[] []", "data after the end of the value at byte 3"),
        (b'[{"role": "user", "content": 5}]', "at byte 29, message 0, field content"),
        (b'{"trajectory": []}', "not a history"),
        (b'{\n  "trajectory": []\n}', "not a history"),
        (b"null", "not a history"),
        (b'{"role": "us\n{"role": "us\n', "line 1: the input ends in the middle of a value at byte 12"),
        (LINE + b'\n{"role": "user", "content": 5}', "line 3: a content of the wrong type at byte 28, message 1"),
        (LINE + b'{"role": "a", "role": "b"}', "line 2: a duplicate field at byte 14, message 1, field role"),
    ],
)
@pytest.mark.parametrize("command", ["reduce", "stats"])
def test_bad_input_is_one_line_that_names_the_place(tmp_path: Path, data: bytes, said: str, command: str) -> None:
    path = tmp_path / "bad input.json"
    path.write_bytes(data)
    out = tmp_path / "out.json"
    out.write_bytes(b"as it was")
    error = refused(command, path, *((*BUDGET, "-o", out) if command == "reduce" else ()))
    assert str(path) in error
    assert said in error
    assert out.read_bytes() == b"as it was"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "No such file" in refused("stats", tmp_path / "missing.json")
    assert "no files that may hold sessions" in refused("reduce", tmp_path, *BUDGET, "-o", tmp_path / "out")
    assert "standard input: the file is empty" in refused("stats", "-")
    assert "recede: a\\nb: " in refused("stats", "a\nb")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="for root every file is readable")
def test_a_file_without_permission_is_named(array: Path) -> None:
    array.chmod(0)
    assert "Permission denied" in refused("stats", array)


def test_output_that_cannot_be_written_is_named(array: Path, tmp_path: Path) -> None:
    before = array.read_bytes()
    for out in (tmp_path / "missing" / "out.json", tmp_path):
        assert f"recede: {out}: cannot be written" in refused("reduce", array, *BUDGET, "-o", out)
    assert array.read_bytes() == before
    assert list(tmp_path.iterdir()) == [array]


@pytest.mark.parametrize("form", ["array", "json_lines", "codex"])
def test_more_text_than_max_bytes_is_one_line_that_names_the_option(tmp_path: Path, form: str) -> None:
    codex = [{"type": "response_item", "payload": {"type": "message", **message}} for message in HISTORY]
    data = {"array": dumps(HISTORY), "json_lines": lines_of(HISTORY), "codex": lines_of(codex)}[form]
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    least = ("--max-bytes", str(len(data)))
    less = ("--max-bytes", str(len(data) - 1))
    said = f"the text, or a line of it, is longer than is read at byte {len(data) - 1}: raise max_bytes (--max"
    for path in (plain, packed):
        assert refused("stats", path, *less).startswith(f"recede: {path}: {said}")
        ok("stats", path, *least)
    assert refused("reduce", packed, *BUDGET, *less).startswith(f"recede: {packed}: {said}")
    assert refused("replay", packed, *less).startswith(f"recede: {packed}: {said}")
    for stdin in (data, packed.read_bytes()):
        assert refused("stats", "-", *less, stdin=stdin).startswith(f"recede: standard input: {said}")
        ok("stats", "-", *least, stdin=stdin)


def test_deep_nesting_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_bytes(b'{"role":"user","extra":' + b"[" * 1_022 + b"]" * 1_022 + b"}")
    ok("stats", path)
    path.write_bytes(b'[{"role":"user","extra":' + b"[" * 1_022 + b"]" * 1_022 + b"}]")
    ok("stats", path)
    path.write_bytes(b"[" * 1_000_000)
    assert "nesting deeper than 1,024 levels at byte 1024" in refused("stats", path)


# Options


def test_wrong_usage_ends_with_2(array: Path) -> None:
    assert "give --max-input-chars or --max-input-tokens" in refused("reduce", "--design", array, code=2)
    assert "not both" in refused("reduce", array, *BUDGET, "--max-input-tokens", "9", code=2)
    assert "{color}" in refused("reduce", array, *BUDGET, "--placeholder", "[{color}]", code=2)
    assert "--keep" in refused("reduce", array, *BUDGET, "--keep", "-1", code=2)
    assert "x>=30" in refused("reduce", array, *BUDGET, "--summary-max-chars", "29", code=2)
    assert "--json" in refused("reduce", array, *BUDGET, "--json", "-o", "-", code=2)
    assert "No such command" in refused("compress", array, code=2)
    assert f"type recede replay {array}" in refused(array, code=2)
    assert "a folder: -o OUT" in refused("reduce", array.parent, *BUDGET, code=2)
    assert "has no option '--frobnicate'" in refused("--frobnicate", code=2)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--keep-messages", "10"], {"preserve_recent_raw_turns": 10}),
        (["--keep", "0"], {"preserve_recent_raw_turns": 0, "keep_results": 0}),
        (["--keep", "2"], {"preserve_recent_raw_turns": 0, "keep_results": 2}),
        (["--keep-turns", "2"], {"preserve_recent_raw_turns": 0, "keep_turns": 2}),
        (["--keep-errors", "--min-masked-chars", "1"], {"keep_errors": True, "min_masked_chars": 1}),
        (["--exclude-tool", "run"], {"exclude_tools": ["run"]}),
        (["--exclude-tool", "x*", "--exclude-tool", "r?n"], {"exclude_tools": ["x*", "r?n"]}),
        (["--mask-chunk", "3"], {"mask_chunk": 3}),
        (
            ["--boundary", "break_even", "--keep-messages", "9"],
            {"boundary": "break_even", "preserve_recent_raw_turns": 9},
        ),
        (
            ["--boundary", "break_even", "--keep-messages", "9", "--provider", "openai"],
            {"boundary": "break_even", "preserve_recent_raw_turns": 9, "provider": "openai"},
        ),
        (["--max-observation-chars", "100"], {"max_observation_chars": 100}),
        (["--placeholder", "[{chars} gone]"], {"placeholder": "[{chars} gone]"}),
        (["--no-mask"], {"observation_masking": False}),
        (["--no-mask", "--fill", "none"], {"observation_masking": False, "fill": None}),
        (["--no-mask", "--fill", "0.5"], {"observation_masking": False, "fill": 0.5}),
        (["--no-mask", "--summary-role", "user"], {"observation_masking": False, "summary_role": "user"}),
        (["--no-mask", "--summary-max-chars", "90"], {"observation_masking": False, "summary_max_chars": 90}),
    ],
)
def test_options_are_those_of_reduce(array: Path, arguments: list[str], options: dict[str, Any]) -> None:
    view = ok("reduce", array, "--design", "--max-input-tokens", "750", *arguments)
    assert json.loads(view) == published.reduce(HISTORY, max_input_tokens=750, **{"fill": None, **options}).messages


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (["--keep", "0"], {"keep": 0}),
        (["--keep-by-tool", "r*=1", "--keep-by-tool", "x=all"], {"keep_by_tool": {"r*": 1, "x": None}}),
        (["--exclude-tool", "run"], {"exclude_tools": ["run"]}),
        (["--keep-errors"], {"keep_errors": True}),
        (["--keep-matching", "xx"], {"keep_matching": ["xx"]}),
        (["--provider", "openai"], {"provider": "openai"}),
        (["--boundary", "break_even"], {"boundary": "break_even"}),
        (["--boundary", "3"], {"boundary": 3}),
        (["--max-overcost", "none"], {"max_overcost": None}),
        (["--max-input-tokens", "500"], {"max_input_tokens": 500}),
        (["--max-input-tokens", "none", "--max-result-chars", "none"], {}),
        (["--placeholder", "[{chars} gone]"], {"placeholder": "[{chars} gone]"}),
    ],
)
def test_the_one_set_of_options_is_that_of_reduce(array: Path, arguments: list[str], options: dict[str, Any]) -> None:
    own: dict[str, Any] = {"keep": 1, "boundary": "sliding", **options}
    given = ["--keep", "1", "--boundary", "sliding", *arguments]
    assert json.loads(ok("reduce", array, *given)) == recede.reduce(HISTORY, **own).messages


def test_a_window_by_tool_that_is_none_is_told_its_form(array: Path) -> None:
    for wrong in ("Read", "=3", "Read=x"):
        assert "is not TOOL=N, such as Read=20" in refused("reduce", array, "--keep-by-tool", wrong, code=2)


def test_a_wrong_fill_is_told_what_else_it_may_be(array: Path) -> None:
    for fill in ("some", "0", "1.5"):
        assert "it may also be none" in refused("reduce", array, *BUDGET, "--fill", fill, code=2)


# Reports


def test_the_report_as_json_is_that_of_reduce(array: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    [report] = json.loads(ok("reduce", array, *BUDGET, "--json", "-o", out))["histories"]
    expected = published.reduce_json(dumps(HISTORY), max_input_chars=3000)
    assert out.read_bytes() == expected.json
    assert report.pop("tools") == {"run": expected.tools["run"]._asdict()}
    assert report.pop("orphans") == list(expected.orphans)
    assert report.pop("boundary_moves") == []
    assert [report.pop(name) for name in ("masks", "clipped")] == [[list(one) for one in expected.masks], []]
    assert (report.pop("reason"), report.pop("unmasked")) == (expected.reason, expected.unmasked._asdict())
    assert report.pop("dropped") == list(expected.dropped)
    assert [report.pop(name) for name in ("file", "index", "format", "warnings")] == [str(array), 0, "messages", []]
    assert report == {name: value for name, value in expected._asdict().items() if name in report}
    [report] = json.loads(ok("reduce", array, *BUDGET, "--boundary", "break_even", "--json"))["histories"]
    moves = published.reduce_json(dumps(HISTORY), max_input_chars=3000, boundary="break_even").boundary_moves
    assert report["boundary_moves"] == [move._asdict() for move in moves] != []
    total = json.loads(ok("reduce", array, *BUDGET, "--json"))["total"]
    assert total["histories"] == 1
    assert total["masked_count"] == expected.masked_count


def test_the_report_for_people_goes_to_standard_error(array: Path) -> None:
    done = run("reduce", array, "--design", "--max-input-chars", "10")
    assert done.stdout.startswith(b"[")
    for fact in (b"stage: fallback\n", b"OVER THE LIMIT", b"run "):
        assert fact in done.stderr


def test_the_report_says_why_nothing_is_masked(array: Path) -> None:
    done = run("reduce", array, "--keep", "1000")
    assert b"nothing masked: all 8 results are in the window" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_written_for_each_shell(shell: str) -> None:
    written = run(_RECEDE_COMPLETE=f"{shell}_source").stdout
    assert b"recede" in written and b"complet" in written
    assert f"_RECEDE_COMPLETE={shell}_source recede" in Path(__file__).parents[2].joinpath("docs/cli.md").read_text()


def test_stats_count_the_history_and_its_masked_view(array: Path, tmp_path: Path) -> None:
    expected = recede.reduce(HISTORY, keep=4, boundary="sliding")
    total = {
        "records": len(HISTORY),
        "messages": len(HISTORY),
        "turns": 8,
        "raw_chars": expected.chars_before,
        "observation_chars": 4000,
        "masked_view_chars": expected.chars_after,
        "masked_count": 4,
        "raw_tokens": recede.designs.approx_tokens(HISTORY),
        "masked_view_tokens": recede.designs.approx_tokens(expected.messages),
    }
    report = json.loads(ok("stats", array, "--keep", "4", "--json"))
    assert report["total"] == {"histories": 1, **total}
    assert report["failed"] == []
    [figures] = report["histories"]
    assert figures == {
        "file": str(array),
        "index": 0,
        "format": "messages",
        **total,
        "warnings": [],
        "orphans": [],
        "tools": {"run": {"observations": 8, "masked": 4, "chars": 4000, "removed_chars": expected.masked_chars}},
    }
    bodies = [("body", dumps({key: HISTORY})) for key in ("messages", "input", "contents")]
    for name, data in [*bodies, ("json_lines", lines_of(HISTORY))]:
        path = tmp_path / name
        path.write_bytes(data)
        [same] = json.loads(ok("stats", path, "--keep", "4", "--json"))["histories"]
        assert same == {**figures, "file": str(path), "format": name}
    assert json.loads(ok("stats", array, "--json", "--keep", "0"))["total"]["masked_count"] == 7  # the last one is new


def test_tool_names_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    names = ["\x1b[31mred", "[bold]markup", "\ud800", "a\nb", ""]
    history = [message for number, name in enumerate(names) for message in turns(1, name=name)]
    path.write_bytes(dumps([*history, result("nobody", "orphan")]))
    shown = ok("stats", path).decode()
    for name in ("\n\\u001b[31mred ", "[bold]markup", "\n\\ud800 ", "\na\\nb ", "(unknown)"):
        assert name in shown
    assert "\x1b" not in shown
    assert "orphans: in message 10\n" in shown


def test_version_and_help() -> None:
    python = sys.version.split()[0]
    scanner = recede.reduction.scanner()
    assert ok("--version").decode() == f"recede {recede.__version__} ({scanner}), Python {python}\n"
    for command in ((), ("reduce",), ("stats",)):
        assert b"Usage: recede" in ok(*command, "--help")
    for command in ("reduce", "stats", "store"):
        done = run(command)
        assert b"\nOptions:\n" in done.stdout + done.stderr


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_one_line_says_how_to_get_it(tmp_path: Path, missing: str) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError(name={missing!r})")
    without = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    assert run("--version", **without).stdout.decode().startswith(f"recede {recede.__version__} (")
    done = run("stats", **without)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"pip install 'recede[cli]'" in done.stderr


@pytest.mark.parametrize("wrong", ["now", "0", "-1", "1.5"])
def test_a_boundary_that_does_not_exist_names_all_that_do(wrong: str) -> None:
    said = refused("reduce", "-", "--boundary", wrong, code=2)
    assert f"'{wrong}' is not one of 'break_even', 'sliding', and no number of results from 1" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("reduce", "--placeholder", "{foo}"), "--placeholder has an unknown field {foo}; its fields are {chars}"),
        (("reduce", "--placeholder", "gone {"), "--placeholder is no template (Single '{' encountered in format"),
        (("reduce", "--max-input-tokens", "128k"), "'128k' is no whole number: write 128000"),
        (("reduce", "--max-input-tokens", "8,000"), "'8,000' is no whole number: write 8000"),
        (("stats", "--keep", "ten"), "'ten' is no whole number"),
        (("stats", "--keep", "-1"), "-1 is not in the range x>=0"),
        (("replay", "--curve", "--all"), "--curve and --all are tables of their own: ask for one at a time"),
        (("replay", "--misses", "--study"), "--misses and --study are tables of their own"),
    ],
)
def test_wrong_usage_says_what_is_taken(array: Path, arguments: tuple[str, ...], said: str) -> None:
    done = recede_command(*arguments, array, columns=200)
    assert done.returncode == 2 and said in done.stderr.decode()


def test_the_repr_of_python_is_told_from_json(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text(repr([user("Go.")]))
    assert "it looks like the repr of Python objects: write them with json.dump" in run("stats", path).stderr.decode()
