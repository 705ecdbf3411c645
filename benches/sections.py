"""The sections of the table. Each measures, and gives its claims, to be judged against their targets, and its details.

The lines are those of what recede means to reach: 1 bytes to bytes, 2 nothing to do, 3 dicts, 4 threads, 5 memory,
6 cost in proportion, 7 small histories, 8 the boundary that pays for itself.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import contenders
import formatting
import histories
import measuring
from formatting import megabytes, ratio, time
from histories import Shape, Style
from measuring import in_child


class Claim(NamedTuple):
    """A line of what is to be reached. Met is None where it has no target, or was not measured."""

    line: str
    what: str
    figure: str
    target: str = ""
    is_met: bool | None = None


class Section(NamedTuple):
    """What a part of the run found."""

    claims: list[Claim]
    details: str


class Plan(NamedTuple):
    """How much is measured."""

    seconds: float  # for each table and size
    byte_sizes: dict[str, int]  # messages of compact OpenAI chat of about such a size
    dict_sizes: tuple[int, ...]
    form_share: float  # of the 20 MB of the other forms
    copies: dict[str, int]
    hostile_scale: float
    memory: dict[str, int]  # pieces of 20 MB
    instruction_sizes: tuple[int, ...]
    starts: int
    builds_wheel: bool


FULL = Plan(
    seconds=8.0,
    byte_sizes={"0.1 MB": 44, "2 MB": 870, "20 MB": 9_200, "200 MB": 92_000},
    dict_sizes=(100, 1_000, 10_000, 100_000),
    form_share=1.0,
    copies={"1 MB": 450, "256 MB": 117_000},
    hostile_scale=1.0,
    memory={"20 MB": 1, "200 MB": 10, "1 GB": 50},
    instruction_sizes=(1_000, 10_000, 100_000),
    starts=60,
    builds_wheel=True,
)
QUICK = FULL._replace(
    seconds=1.0,
    byte_sizes={"0.1 MB": 44, "2 MB": 870, "20 MB": 9_200},
    dict_sizes=(1_000, 10_000),
    form_share=0.2,
    copies={"1 MB": 450, "32 MB": 14_700},
    hostile_scale=0.1,
    memory={"20 MB": 1, "200 MB": 10},
    instruction_sizes=(1_000, 10_000),
    starts=15,
    builds_wheel=False,
)

# About 20 MB each.
FORMS: list[tuple[str, int, Shape, Style, float | None]] = [
    ("OpenAI chat, `json.dumps` defaults", 8_550, "openai", "ascii", 10),
    ("Anthropic", 6_300, "anthropic", "compact", 15),
    ("ChatMessage", 12_600, "chat_message", "compact", 15),
    ("OpenAI Responses", 15_300, "responses", "compact", None),
]
RECORD_BYTES = 150  # that a message, call or result may take while a history is reduced
RECORD_SECONDS = 200e-9
WHEEL_LIMIT = 1 << 20


def _at_least(line: str, what: str, found: float, wanted: float, against: str, hoped: str = "") -> Claim:
    return Claim(line, what, f"{ratio(found)} ({against})", f"at least {wanted:g}x{hoped}", found >= wanted)


def _times(times: dict[str, float], ours: str, theirs: str) -> str:
    return f"{time(times[ours])} against {time(times[theirs])}"


def bytes_to_bytes(plan: Plan) -> Section:
    """Line 1: `reduce_json` against its rivals at all sizes, in all forms, and without vector instructions."""
    columns: dict[str, dict[str, float]] = {}
    rates: dict[str, Callable[[float], str]] = {}
    claims: list[Claim] = []
    ours, tuned = contenders.REDUCE_JSON, contenders.ORJSON_TUNED
    for size, messages in plan.byte_sizes.items():
        found = in_child(
            "from_bytes", messages=messages, shape="openai", style="compact", seconds=plan.seconds, names=None
        )
        times = found["times"]
        title = f"{size}: {messages:,} messages"
        columns[title], rates[title] = times, partial(formatting.rate, found["bytes"])
        if size != "20 MB":
            what = f"reduce_json, {size}: orjson + tuned loop + orjson.dumps"
            claims.append(_at_least("1", what, times[tuned] / times[ours], 8, _times(times, ours, tuned)))
            continue
        wanted = [
            ("orjson + tuned loop + orjson.dumps", tuned, 18.0, ", hoped for 30x"),
            ("json, the same", contenders.JSON_TUNED, 45.0, ""),
            ("msgspec + loop + encode, characters counted", contenders.MSGSPEC_COUNTING, 5.0, ""),
            ("msgspec + loop + encode, nothing counted", contenders.MSGSPEC_BYTES, 5.0, ""),
        ]
        first = []
        for who, name, least, hope in wanted:
            what = f"reduce_json, 20 MB: {who}"
            first.append(_at_least("1", what, times[name] / times[ours], least, _times(times, ours, name), hope))
        share = times[contenders.WARM_COPY] / times[ours]
        against = _times(times, ours, contenders.WARM_COPY)
        what = "reduce_json, 20 MB: speed of a copy into warm memory"
        first.append(Claim("1", what, f"{share:.0%} ({against})", "at least 33 %", share >= 1 / 3))
        claims = first + claims
    form_rows = []
    for name, full_size, shape, style, least in FORMS:
        row, claim = _form(plan, name, int(full_size * plan.form_share), shape, style, least)
        form_rows.append(row)
        claims += claim
    found = in_child(
        "from_bytes",
        environment={"RECEDE_SCANNER": "word"},
        messages=plan.byte_sizes["20 MB"],
        shape="openai",
        style="compact",
        seconds=plan.seconds,
        names=[ours, tuned],
    )
    times = found["times"]
    what = "reduce_json, 20 MB, portable path: orjson + tuned loop + orjson.dumps"
    claims.append(_at_least("1", what, times[tuned] / times[ours], 4, _times(times, ours, tuned)))
    header = ["", "size", "reduce_json", "rate", "orjson + tuned", "/ recede", "orjson + simplest", "/ recede"]
    header += ["reduce", "tuned loop", "/ recede"]
    details = (
        f"## Bytes to bytes\n\n{formatting.comparison(columns, rates)}\n\n"
        f"The portable path (`RECEDE_SCANNER=word`) takes {time(times[ours])} at 20 MB,"
        f" {formatting.rate(found['bytes'], times[ours])}; the searches of memchr and the check of UTF-8 by simdutf8"
        f" still choose their instructions themselves.\n\n## Other forms\n\n{formatting.markdown(header, form_rows)}"
    )
    return Section(claims, details)


def _form(
    plan: Plan, name: str, messages: int, shape: Shape, style: Style, least: float | None
) -> tuple[list[str], list[Claim]]:
    """One form of history: its row, and its claim if it has a target."""
    ours, tuned, simplest = contenders.REDUCE_JSON, contenders.ORJSON_TUNED, contenders.ORJSON_SIMPLEST
    names = [ours, *([tuned] if least else []), simplest]
    seconds = plan.seconds / 2
    found = in_child("from_bytes", messages=messages, shape=shape, style=style, seconds=seconds, names=names)
    times, size = found["times"], found["bytes"]
    row = [name, megabytes(size), time(times[ours]), formatting.rate(size, times[ours])]
    for rival in (tuned, simplest):
        row += [time(times[rival]), ratio(times[rival] / times[ours])] if rival in times else ["", ""]
    dicts = in_child("from_dicts", messages=messages, shape=shape, seconds=seconds)["times"]
    row.append(time(dicts[contenders.REDUCE]))
    if contenders.TUNED in dicts:
        row += [time(dicts[contenders.TUNED]), ratio(dicts[contenders.TUNED] / dicts[contenders.REDUCE])]
    else:
        row += ["", ""]
    if least is None:
        return row, []
    what = f"reduce_json, {megabytes(size)} of {name}: orjson + tuned loop + orjson.dumps"
    return row, [_at_least("1", what, times[tuned] / times[ours], least, _times(times, ours, tuned))]


def untouched(plan: Plan) -> Section:
    """Line 2: where nothing is masked, the input object comes back, at the speed of the scan."""
    messages = plan.byte_sizes["20 MB"]
    found = in_child("untouched", messages=messages, seconds=plan.seconds)
    times, size = found["times"], found["bytes"]
    binary = measuring.core_binary()
    scan = None
    if binary is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "history.json")
            path.write_bytes(histories.serialized(messages))
            scan = in_child("core_times", binary=str(binary), path=str(path), seconds=plan.seconds / 4)["scan"]
    claims = []
    for name in ("reduce_json, within the budget", "mask_observations_json, nothing to mask"):
        figure = f"the same object, {time(times[name])}, {formatting.rate(size, times[name])}"
        if scan is None:
            claims.append(Claim("2", name, figure, "speed of the scan (no cargo here to measure it)"))
            continue
        target = f"at most 1.1 times the core's scan alone ({time(scan)})"
        claims.append(Claim("2", name, figure, target, times[name] <= 1.1 * scan))
    for name in ("reduce, within the budget", "mask_observations, nothing to mask"):
        figure = f"the same object, {formatting.per_message(messages, times[name])}"
        claims.append(Claim("2", name, figure, "the same object", True))
    return Section(claims, "")


def dicts_to_dicts(plan: Plan) -> Section:
    """Line 3: `reduce` against Python loops."""
    columns: dict[str, dict[str, float]] = {}
    rates: dict[str, Callable[[float], str]] = {}
    claims = []
    ours = contenders.REDUCE
    for size in plan.dict_sizes:
        times = in_child("from_dicts", messages=size, shape="openai", seconds=plan.seconds)["times"]
        title = f"{size:,} messages"
        columns[title], rates[title] = times, partial(formatting.per_message, size)
        if size in (1_000, 10_000):
            for rival, who, least in (
                (contenders.TUNED, "tuned loop, same telemetry", 2.0),
                (contenders.SIMPLEST_DISPATCH, "plain loop that looks for dispatch blocks", 1.0),
            ):
                what = f"reduce, {size:,} messages: {who}"
                claims.append(_at_least("3", what, times[rival] / times[ours], least, _times(times, ours, rival)))
    details = f"## Dicts to dicts\n\nEach size in a fresh process.\n\n{formatting.comparison(columns, rates)}"
    return Section(claims, details)


def two_threads(plan: Plan) -> Section:
    """Line 4: two threads on two inputs against one thread."""
    claims = []
    if (os.cpu_count() or 1) < 2:
        return Section([Claim("4", "two threads", "not measured: one core")], "")
    for size in ("2 MB", "20 MB"):
        messages = plan.byte_sizes[size]
        times = in_child("two_threads", is_pinned=False, messages=messages, seconds=plan.seconds)["times"]
        one, two = times["recede"]
        other = times["orjson"][0] / times["orjson"][1]
        against = f"{time(one)} against {time(two)}; orjson + tuned loop {ratio(other)}"
        what = f"reduce_json, two threads on two inputs of {size}"
        claims.append(Claim("4", what, f"{one / two:.2f}x ({against})", "at least 1.8x", one / two >= 1.8))
    return Section(claims, "")


def memory(plan: Plan) -> Section:
    """Line 5: the most memory at once, in a process that has nothing else."""
    if not measuring.can_measure_memory():
        return Section([Claim("5", "peak memory", "not measured: this system does not tell it")], "")
    claims, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "history.json"))
        for size, pieces in plan.memory.items():
            for style in ("compact", "ascii"):
                if style == "ascii" and size != "20 MB":
                    continue
                told = in_child("write_history", path=path, pieces=pieces, messages=9_200, style=style)
                for form in ("bytes", "str", "bytearray"):
                    if form != "bytes" and size == "1 GB":
                        continue
                    found = in_child("peak_memory", path=path, form=form, budget=told["budget"])
                    claim, row = _peak(f"{size}, {style}, {form}", form, found, told["records"])
                    rows.append(row)
                    if style == "compact":
                        claims.append(claim)
    header = ["input", "input object", "copy", "output", "messages, calls, results", "peak", "limit", "peak / limit"]
    return Section(claims, f"## Peak memory of reduce_json\n\n{formatting.markdown(header, rows)}")


def _peak(name: str, form: str, found: dict[str, int], records: int) -> tuple[Claim, list[str]]:
    copy = 0 if form == "bytes" else found["utf8"]
    limit = 1.05 * (found["input"] + copy + found["output"]) + RECORD_BYTES * records
    peak = found["peak"]
    over = peak - found["input"] - copy - found["output"]
    figure = f"{megabytes(peak)}: {over / records:.0f} bytes a record above input, {'copy, ' if copy else ''}output"
    target = f"at most {megabytes(limit)}"
    row = [name, megabytes(found["input"]), megabytes(copy), megabytes(found["output"]), f"{records:,}"]
    row += [megabytes(peak), megabytes(limit), f"{peak / limit:.2f}"]
    return Claim("5", f"peak memory, {name}", figure, target, peak <= limit), row


# The three inputs whose instructions are kept: changes are compared by them, so they stay as they are.
FIXED: list[tuple[str, Shape, Style]] = [
    ("OpenAI chat, compact", "openai", "compact"),
    ("OpenAI chat, `json.dumps` defaults", "openai", "ascii"),
    ("Anthropic, compact", "anthropic", "compact"),
]


def instructions(plan: Plan) -> Section:
    """Line 6: instructions grow as the history does; and those of three inputs, to see what a change costs."""
    binary = measuring.core_binary() if measuring.has_callgrind() else None
    if binary is None:
        reason = "no valgrind here" if not measuring.has_callgrind() else "no cargo here"
        claim = Claim("6", "instructions, ten times the messages", f"not measured: {reason}", "at most 11x")
        return Section([claim], f"## Instructions\n\nNot counted: {reason}.")
    claims, rows, before, scanner = [], [], 0, ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.json")
        for size in plan.instruction_sizes:
            path.write_bytes(histories.serialized(size))
            count, scanner = measuring.instructions(binary, path)
            if before:
                what = f"instructions of {size:,} messages against those of {size // 10:,}"
                figure = f"{count / before:.2f}x ({count:,} against {before:,})"
                claims.append(Claim("6", what, figure, "at most 11x", count <= 11 * before))
            before = count
        for name, shape, style in FIXED:
            data = histories.serialized(1_000, shape=shape, style=style)
            path.write_bytes(data)
            count, scanner = measuring.instructions(binary, path)
            rows.append([name, f"{len(data):,}", f"{count:,}", f"{count / len(data):.2f}", f"{count / 1_000:,.0f}"])
    header = ["1,000 messages, seed 0", "bytes", "instructions", "a byte", "a message"]
    details = (
        f"## Instructions\n\nOf one masking of the core, bytes to bytes, as callgrind counts them (scanner {scanner};"
        f" valgrind knows no AVX-512); the same in every run of a build.\n\n"
        f"{formatting.markdown(header, rows)}"
    )
    return Section(claims, details)


def against_copies(plan: Plan) -> Section:
    """Line 6: time relative to a plain copy, at a small and a large size."""
    shares: dict[str, list[float]] = {contenders.WARM_COPY: [], contenders.FRESH_COPY: []}
    rows = []
    for size, messages in plan.copies.items():
        found = in_child("against_copies", messages=messages, seconds=plan.seconds)
        times = found["times"]
        ours = times[contenders.REDUCE_JSON]
        row = [size, time(ours), formatting.rate(found["bytes"], ours)]
        for copy, ratios in shares.items():
            ratios.append(ours / times[copy])
            row += [time(times[copy]), ratio(ours / times[copy])]
        rows.append(row)
    first, last = plan.copies
    claims = []
    for copy, (small, large) in shares.items():
        apart = max(small, large) / min(small, large)
        what = f"reduce_json / {copy.strip('()')}, {first} against {last}"
        figure = f"{apart:.2f} apart ({ratio(small)} at {first}, {ratio(large)} at {last})"
        is_met = apart <= 1.5 if copy == contenders.WARM_COPY else None
        claims.append(Claim("6", what, figure, "within 1.5" if is_met is not None else "", is_met))
    header = ["", "reduce_json", "rate", "warm copy", "reduce_json / it", "fresh copy", "reduce_json / it"]
    return Section(claims, f"## Beside plain copies\n\n{formatting.markdown(header, rows)}")


def hostile(plan: Plan) -> Section:
    """Line 6: no shape costs much more than the mix, by the byte, or a fixed time by the message."""
    shapes = in_child("hostile", scale=plan.hostile_scale, seconds=plan.seconds / 8)
    mix = shapes.pop("the mix")
    claims, rows = [], []
    means = {way: mix[way] / mix["bytes"] for way in ("mask", "stages")}

    def judge(found: dict[str, Any], way: str) -> tuple[bool, float, float]:
        times_mean = found[way] / found["bytes"] / means[way]
        record = found[way] / found["records"]
        return times_mean <= 12 or record <= RECORD_SECONDS, times_mean, record

    target = f"at most 12 times the mean of {means['mask'] * 1e9:.3f} ns/byte, or under 200 ns a record"
    for name, found in shapes.items():
        row = [name, megabytes(found["bytes"]), f"{found['records']:,}"]
        for way in ("mask", "stages"):
            is_met, times_mean, record = judge(found, way)
            by_byte = f"{found[way] / found['bytes'] * 1e9:.2f} ns/byte"
            row += [time(found[way]), by_byte, f"{times_mean:.1f}", f"{record * 1e9:,.0f} ns"]
            if way == "mask":
                figure = f"{by_byte}, {times_mean:.1f} times the mean; {record * 1e9:,.0f} ns a record"
                claims.append(Claim("6", f"hostile: {name}", figure, target, is_met))
        rows.append(row)
    slow = [name for name, found in shapes.items() if not judge(found, "stages")[0]]
    figure = f"all but {', '.join(slow)}" if slow else "all of them"
    claims.append(
        Claim(
            "6",
            "hostile, through all three stages",
            figure,
            f"the same, of a mean of {means['stages'] * 1e9:.2f} ns/byte",
            not slow,
        )
    )
    header = ["", "size", "records", "masking", "", "times the mean", "a record"]
    header += ["three stages", "", "times the mean", "a record"]
    details = (
        f"## Hostile shapes\n\n`mask_observations_json(keep_results=1)`, and `reduce_json(max_input_chars=100)`, which"
        f" goes through all three stages. A record is a message, a call or a result. The mean is that of the mix,"
        f" {megabytes(mix['bytes'])}.\n\n{formatting.markdown(header, rows)}"
    )
    return Section(claims, details)


def small(plan: Plan) -> Section:
    """Line 7: what an agent sends most, what an import costs, and how large the package is."""
    found = in_child("small", seconds=plan.seconds)
    times, size = found["times"], f"20 messages, {found['bytes'] / 1e3:.1f} KB"
    ours, tuned, simplest = contenders.REDUCE_JSON, contenders.ORJSON_TUNED, contenders.ORJSON_SIMPLEST
    claims = [
        Claim("7", f"reduce_json, {size}", time(times[ours]), "about 5 µs", times[ours] < 5.5e-6),
        _at_least(
            "7", f"reduce_json, {size}: orjson + tuned loop", times[tuned] / times[ours], 5, _times(times, ours, tuned)
        ),
        Claim("7", f"reduce_json, {size}: orjson + simplest loop", ratio(times[simplest] / times[ours])),
    ]
    dicts, loop = f"dicts: {contenders.REDUCE}", f"dicts: {contenders.TUNED}"
    claims.append(
        Claim("7", f"reduce, {size}: tuned loop", f"{ratio(times[loop] / times[dicts])} ({_times(times, dicts, loop)})")
    )
    bare, with_us = in_child("start_times", codes=["pass", "import recede"], rounds=plan.starts)
    figure = f"{time(with_us - bare)} (Python alone {time(bare)})"
    claims.append(Claim("7", "import recede", figure, "at most 15 ms", with_us - bare <= 0.015))
    claims.append(_wheel(plan))
    return Section(claims, "")


def _wheel(plan: Plan) -> Claim:
    """The size of the wheel; of the extension in it, where none is built."""
    target = "at most 1 MiB"
    if plan.builds_wheel:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "maturin", "build", "--release", "--quiet", "--out", folder]
            built = subprocess.run(command, cwd=measuring.HERE.parent, capture_output=True, text=True)
            wheels = list(Path(folder).glob("*.whl"))
            if wheels:
                size = wheels[0].stat().st_size
                return Claim("7", "size of the wheel", f"{size:,} bytes", target, size <= WHEEL_LIMIT)
            print(f"no wheel: {built.stderr.strip()}", file=sys.stderr)
    extension = importlib.util.find_spec("recede._core")
    if extension is None or extension.origin is None:
        return Claim("7", "size of the wheel", "not measured: the core is not built", target)
    size = Path(extension.origin).stat().st_size
    what = "size of the extension, uncompressed (no wheel was built)"
    return Claim("7", what, f"{size:,} bytes", target, size <= WHEEL_LIMIT)


def break_even(plan: Plan) -> Section:
    """Line 8: a boundary that pays for itself costs little more than one that slides."""
    times = in_child("break_even", messages=10_000, seconds=plan.seconds)["times"]
    claims = []
    for form, name in (("bytes", "mask_observations_json"), ("dicts", "mask_observations")):
        pays, slides = f"{form}, break-even", f"{form}, sliding"
        what = f"{name}, 10,000 messages, keep_results=10: break_even / sliding"
        found = times[pays] / times[slides]
        claims.append(Claim("8", what, f"{found:.2f} ({_times(times, pays, slides)})", "at most 1.2", found <= 1.2))
    return Section(claims, "")


SECTIONS: list[Callable[[Plan], Section]] = [
    bytes_to_bytes,
    untouched,
    dicts_to_dicts,
    two_threads,
    memory,
    instructions,
    against_copies,
    hostile,
    small,
    break_even,
]
