"""Measures recede against its rivals in one run of one process, and prints the table: `python benches/table.py`.

The answers are compared first. Contenders of one table take turns, on one core where the system allows it, with the
garbage collector off; what counts is the best of many.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib.metadata
import json
import os
import platform
import subprocess
import sysconfig
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import orjson

import histories
import recede
import rivals
from histories import Message, Shape, Style
from recede import _pure
from recede._policy import compiled

Contender = Callable[[], Any]

HEADLINE_SIZE = 10_000
MIRROR_LIMIT = 100_000  # beyond, the mirror is too slow to be worth the wait
TURN_SECONDS = 0.02  # a short contender runs so long at a stretch, so that it finds its own data in the cache
NAMES: dict[Shape, str] = {
    "openai": "OpenAI chat",
    "anthropic": "Anthropic",
    "chat_message": "ChatMessage",
    "responses": "OpenAI Responses",
}


class Case(NamedTuple):
    """A history in both forms, and a budget that only masking meets."""

    data: bytes
    messages: list[Message]
    budget: int


def make_case(size: int, shape: Shape = "openai", style: Style = "compact") -> Case:
    """The messages are parsed from the bytes, as an agent would hold them."""
    data = histories.serialized(size, shape=shape, style=style)
    messages = orjson.loads(data)
    return Case(data, messages, recede.count_chars(messages) - 1)


def mirror_reduce(case: Case) -> Any:
    """`recede.reduce` by the mirror."""
    return _pure.reduce(case.messages, compiled(_pure, "reduce", {"max_input_chars": case.budget}))


def mirror_reduce_json(case: Case) -> Any:
    """`recede.reduce_json` by the mirror."""
    return _pure.reduce_json(case.data, False, compiled(_pure, "reduce", {"max_input_chars": case.budget}))


def compare_answers(case: Case, shape: Shape = "openai") -> None:
    """Every rival gives the view of recede, the tuned ones its telemetry too; else there is nothing to measure."""
    ours = recede.reduce(case.messages, max_input_chars=case.budget)
    ours_json = recede.reduce_json(case.data, max_input_chars=case.budget)
    _agree("reduce_json and reduce", (json.loads(ours_json.json), *ours_json[1:]), tuple(ours))
    _agree("simplest", rivals.SIMPLEST[shape](case.messages), ours.messages)
    if shape in rivals.TUNED:
        _agree("tuned", rivals.TUNED[shape](case.messages, max_input_chars=case.budget), tuple(ours))
    if shape != "openai":
        return
    careless = rivals.tuned(case.messages, max_input_chars=case.budget, dispatch=False)
    _agree("tuned without dispatch", careless, tuple(ours))
    _agree("simplest with dispatch", rivals.simplest_dispatch(case.messages), ours.messages)
    for rival in (rivals.orjson_simplest, rivals.orjson_simplest_dispatch, rivals.json_simplest):
        _agree(rival.__name__, json.loads(rival(case.data)), ours.messages)
    counted = rivals.msgspec_counting(case.data)
    _agree("msgspec_counting", json.loads(counted), ours.messages)
    _agree("msgspec_bytes", rivals.same_but_for_sizes(rivals.msgspec_bytes(case.data), counted), True)
    answer = rivals.orjson_tuned(case.data, max_input_chars=case.budget)
    _agree("orjson_tuned", (json.loads(answer[0]), *answer[1:]), tuple(ours))
    if len(case.messages) <= MIRROR_LIMIT:
        _agree("mirror", tuple(mirror_reduce(case)), tuple(ours))
        _agree("mirror of reduce_json", tuple(mirror_reduce_json(case)), tuple(ours_json))


def _agree(name: str, theirs: object, ours: object) -> None:
    if theirs != ours:
        raise SystemExit(f"{name} gives another answer than recede, so the times would mean nothing")


def bytes_contenders(case: Case) -> dict[str, Contender]:
    """Bytes in, bytes out."""
    data, budget = case.data, case.budget
    contenders: dict[str, Contender] = {
        "**recede.reduce_json**": lambda: recede.reduce_json(data, max_input_chars=budget),
        "orjson + simplest loop": lambda: rivals.orjson_simplest(data),
        "orjson + simplest loop, dispatch blocks kept": lambda: rivals.orjson_simplest_dispatch(data),
        "orjson + tuned loop, same telemetry": lambda: rivals.orjson_tuned(data, max_input_chars=budget),
        "msgspec, raw contents, characters counted": lambda: rivals.msgspec_counting(data),
        "msgspec, raw contents, bytes instead of characters": lambda: rivals.msgspec_bytes(data),
        "json + simplest loop": lambda: rivals.json_simplest(data),
        "(orjson.loads alone)": lambda: orjson.loads(data),
        "(copy into warm memory)": rivals.warm_copy(data),
        "(copy into new memory)": lambda: rivals.fresh_copy(data),
    }
    if len(case.messages) <= MIRROR_LIMIT:
        contenders["recede's pure-Python mirror"] = lambda: mirror_reduce_json(case)
    return contenders


def dict_contenders(case: Case) -> dict[str, Contender]:
    """List of dicts in, list of dicts out."""
    messages, budget = case.messages, case.budget
    contenders: dict[str, Contender] = {
        "**recede.reduce**": lambda: recede.reduce(messages, max_input_chars=budget),
        "tuned loop, same telemetry": lambda: rivals.tuned(messages, max_input_chars=budget),
        "tuned loop, no look for dispatch blocks": lambda: rivals.tuned(
            messages, max_input_chars=budget, dispatch=False
        ),
        "simplest loop: no telemetry, no check": lambda: rivals.simplest(messages),
        "simplest loop, dispatch blocks kept": lambda: rivals.simplest_dispatch(messages),
        "(copy of the list)": messages.copy,
    }
    if len(messages) <= MIRROR_LIMIT:
        contenders["recede's pure-Python mirror"] = lambda: mirror_reduce(case)
    return contenders


def best_times(contenders: dict[str, Contender], seconds: float) -> dict[str, float]:
    """Seconds of the best run of each. They take turns, at least three; one that is slow is out after its first."""
    best = dict.fromkeys(contenders, float("inf"))
    racing = dict(contenders)
    gc.collect()
    gc.disable()
    end = perf_counter() + seconds
    turns = 0
    while turns < 3 or perf_counter() < end:
        turns += 1
        for name, contender in list(racing.items()):
            turn_end = perf_counter() + TURN_SECONDS
            start = stop = 0.0
            while stop < turn_end:
                start = perf_counter()
                contender()
                stop = perf_counter()
                best[name] = min(best[name], stop - start)
            if best[name] > seconds / 3:
                del racing[name]
    gc.enable()
    return best


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:#.3g} {unit}".replace(". ", " ")
    return f"{seconds * 1e9:.0f} ns"


def _ratio(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 20 else f"{ratio:.1f}x" if ratio >= 0.1 else f"{ratio:.2f}x"


def _rate(size: int, seconds: float) -> str:
    return f"{size / seconds / 1e9:.2f} GB/s"


def _per_message(messages: int, seconds: float) -> str:
    return f"{seconds / messages * 1e9:,.0f} ns/message"


def markdown(header: list[str], rows: Iterable[list[str]]) -> str:
    """A table; the first column is text, the others are numbers."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def comparison(columns: dict[str, dict[str, float]], rates: dict[str, Callable[[float], str]]) -> str:
    """Contenders down, sizes across; each time beside its ratio to the first contender, which is recede."""
    header = ["", *(part for title in columns for part in (title, "rate", "/ recede"))]
    names = next(iter(columns.values()))
    rows = []
    for name in names:
        row = [name]
        for title, times in columns.items():
            seconds = times.get(name)
            ours = next(iter(times.values()))
            row += [_time(seconds), rates[title](seconds), _ratio(seconds / ours)] if seconds else ["", "", ""]
        rows.append(row)
    return markdown(header, rows)


def other_form(size: int, shape: Shape, style: Style, seconds: float) -> list[str]:
    """A row: recede in both ways against the simplest loop from bytes, and against the tuned loop from dicts."""
    case = make_case(size, shape, style)
    compare_answers(case, shape)
    data, messages, budget = case
    simplest, tuned = rivals.SIMPLEST[shape], rivals.TUNED.get(shape)
    from_bytes: dict[str, Contender] = {
        "recede": lambda: recede.reduce_json(data, max_input_chars=budget),
        "rival": lambda: orjson.dumps(simplest(orjson.loads(data))),
    }
    from_dicts: dict[str, Contender] = {"recede": lambda: recede.reduce(messages, max_input_chars=budget)}
    if tuned is not None:
        from_dicts["rival"] = lambda: tuned(messages, max_input_chars=budget)
    row = [f"{NAMES[shape]}{', `json.dumps` defaults' if style == 'ascii' else ''}", f"{len(data) / 1e6:.1f} MB"]
    for contenders in from_bytes, from_dicts:
        times = best_times(contenders, seconds / 2)
        ours, theirs = times["recede"], times.get("rival")
        row += [_time(ours), _time(theirs), _ratio(theirs / ours)] if theirs else [_time(ours), "", ""]
        if contenders is from_bytes:
            row.insert(3, _rate(len(data), ours))
    return row


def other_forms(size: int, seconds: float) -> str:
    """One row for each other shape and spelling."""
    forms: list[tuple[Shape, Style]] = [
        ("openai", "ascii"),
        ("anthropic", "compact"),
        ("chat_message", "compact"),
        ("responses", "compact"),
    ]
    header = ["", "size", "reduce_json", "rate", "orjson + simplest", "/ recede", "reduce", "tuned loop", "/ recede"]
    return markdown(header, [other_form(size, shape, style, seconds) for shape, style in forms])


def surroundings(pinned: bool) -> str:
    """Date, machine and versions."""
    try:
        cpuinfo = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
        facts = {key.strip(): value.strip() for key, value in cpuinfo.items()}
        model = facts.get("model name", platform.processor())
        vectors = next((name for name in ("avx512bw", "avx2") if name in facts.get("flags", "").split()), "")
    except OSError:
        model, vectors = platform.processor() or platform.machine(), ""
    try:
        rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        rustc = "no rustc here"
    optimized = "with" if "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "") else "without"
    now = datetime.datetime.now(datetime.timezone.utc)
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("orjson", "msgspec"))
    return (
        f"- {now:%Y-%m-%d %H:%M} UTC; recede {recede.__version__} ({recede.ENGINE}), {rustc}\n"
        f"- {model}{f' ({vectors})' if vectors else ''}, {os.cpu_count()} cores, {'' if pinned else 'not '}pinned to"
        f" one; {platform.system()} {platform.release()}\n"
        f"- {platform.python_implementation()} {platform.python_version()}, built {optimized} profile-guided"
        f" optimization; {packages}"
    )


def headline(bytes_times: dict[str, float], dict_times: dict[str, float], megabytes: float) -> str:
    """The two promises."""
    lines = []
    for what, times, rival, target in (
        ("bytes to bytes against orjson + simplest loop", bytes_times, "orjson + simplest loop", 8.0),
        ("dicts to dicts against the tuned loop", dict_times, "tuned loop, same telemetry", 1.3),
    ):
        ours, theirs = next(iter(times.values())), times[rival]
        verdict = f"target {target:g}x: {'met' if theirs >= target * ours else 'MISSED'}"
        lines.append(f"- {what}: {_time(ours)} against {_time(theirs)}, **{_ratio(theirs / ours)}** ({verdict})")
    return f"At {HEADLINE_SIZE:,} messages, {megabytes:.1f} MB of compact OpenAI chat:\n\n" + "\n".join(lines)


def report(sizes: list[int], seconds: float, pinned: bool) -> str:
    """Everything, as Markdown."""
    bytes_columns: dict[str, dict[str, float]] = {}
    dict_columns: dict[str, dict[str, float]] = {}
    bytes_rates: dict[str, Callable[[float], str]] = {}
    dict_rates: dict[str, Callable[[float], str]] = {}
    first = ""
    # The size that counts comes first, while the heap is fresh; the table keeps the order that was asked for.
    measured = {}
    for size in sorted(sizes, key=lambda size: size != HEADLINE_SIZE):
        case = make_case(size)
        compare_answers(case)
        times = best_times(bytes_contenders(case), seconds), best_times(dict_contenders(case), seconds)
        measured[size] = len(case.data), *times
        del case
    for size in sizes:
        length, bytes_times, dict_times = measured[size]
        title = f"{size:,} messages, {length / 1e6:.3g} MB"
        bytes_columns[title] = bytes_times
        dict_columns[title] = dict_times
        bytes_rates[title] = partial(_rate, length)
        dict_rates[title] = partial(_per_message, size)
        if size == HEADLINE_SIZE:
            first = headline(bytes_times, dict_times, length / 1e6) + "\n"
    parts = [
        "# Results of `python benches/table.py`",
        surroundings(pinned),
        first,
        "Synthetic histories of `benches/histories.py`; everything older than the last 4 messages is masked. Best of"
        f" many runs (of one, where it takes over {seconds / 3:.2g} s), contenders in turns, garbage collector off."
        " Answers were compared first: all views are equal (with msgspec and bytes but for the sizes told), and the"
        " tuned loops tell what recede tells. Neither the simplest loops nor msgspec check pairs, count, or decide by a"
        " budget.",
        "## Bytes to bytes",
        comparison(bytes_columns, bytes_rates),
        "## Dicts to dicts",
        comparison(dict_columns, dict_rates),
    ]
    form_size = max((size for size in sizes if size <= HEADLINE_SIZE), default=min(sizes))
    parts += [f"## Other forms, {form_size:,} messages", other_forms(form_size, seconds)]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def pin() -> bool:
    """Stay on one core, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return True


def main() -> None:
    """Measure, print, and write if asked."""
    parser = argparse.ArgumentParser(description="Measure recede against what one would write without it.")
    parser.add_argument("--sizes", default="100,1000,10000,100000", help="messages, with commas between")
    parser.add_argument("--seconds", type=float, default=6.0, help="time for each table and size")
    parser.add_argument("--write", action="store_true", help="write benches/RESULTS.md too")
    arguments = parser.parse_args()
    text = report([int(size) for size in arguments.sizes.split(",")], arguments.seconds, pin())
    print(text, end="")
    if arguments.write:
        Path(__file__).with_name("RESULTS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
