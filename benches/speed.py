"""The sections of the table that say how fast recede is. Each measures, and gives claims and details.

The lines are those of what recede means to reach: 1 bytes to bytes, 2 nothing to do, 3 dicts, 4 threads, 7 small
histories, 8 the boundary that pays for itself. Lines 5 and 6 are those of `cost`.
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

import contenders
import formatting
import histories
import measuring
from claims import Claim, Plan, Section, at_least, both_times
from formatting import megabytes, ratio, time
from histories import Shape, Style
from measuring import in_child

# About 20 MB each.
FORMS: list[tuple[str, int, Shape, Style, float | None]] = [
    ("OpenAI chat, `json.dumps` defaults", 8_550, "openai", "ascii", 10),
    ("Anthropic", 6_300, "anthropic", "compact", 15),
    ("ChatMessage", 12_600, "chat_message", "compact", 15),
    ("OpenAI Responses", 15_300, "responses", "compact", None),
]
WHEEL_LIMIT = 1 << 20


def bytes_to_bytes(plan: Plan) -> Section:
    """Line 1: `reduce` of bytes against its rivals at all sizes, in all forms, and without vector instructions."""
    columns: dict[str, dict[str, float]] = {}
    rates: dict[str, Callable[[float], str]] = {}
    claims: list[Claim] = []
    ours, tuned = contenders.REDUCE, contenders.ORJSON_TUNED
    for size, messages in plan.byte_sizes.items():
        found = in_child(
            "from_bytes", messages=messages, shape="openai", style="compact", seconds=plan.seconds, names=None
        )
        times = found["times"]
        title = f"{size}: {messages:,} messages"
        columns[title], rates[title] = times, partial(formatting.rate, found["bytes"])
        if size != "20 MB":
            what = f"bytes, {size}: orjson + tuned loop + orjson.dumps"
            claims.append(at_least("1", what, times[tuned] / times[ours], 8, both_times(times, ours, tuned)))
            continue
        wanted = [
            ("orjson + tuned loop + orjson.dumps", tuned, 18.0, ", hoped for 30x"),
            ("json, the same", contenders.JSON_TUNED, 45.0, ""),
            ("msgspec + loop + encode", contenders.MSGSPEC, 5.0, ""),
        ]
        first = []
        for who, name, least, hope in wanted:
            what = f"bytes, 20 MB: {who}"
            first.append(at_least("1", what, times[name] / times[ours], least, both_times(times, ours, name), hope))
        share = times[contenders.WARM_COPY] / times[ours]
        against = both_times(times, ours, contenders.WARM_COPY)
        what = "bytes, 20 MB: speed of a copy into warm memory"
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
    what = "bytes, 20 MB, portable path: orjson + tuned loop + orjson.dumps"
    claims.append(at_least("1", what, times[tuned] / times[ours], 4, both_times(times, ours, tuned)))
    header = ["", "size", "bytes", "rate", "orjson + tuned", "/ recede", "orjson + simplest", "/ recede"]
    header += ["dicts", "tuned loop", "/ recede"]
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
    ours, tuned, simplest = contenders.REDUCE, contenders.ORJSON_TUNED, contenders.ORJSON_SIMPLEST
    names = [ours, tuned, simplest]
    seconds = plan.seconds / 2
    found = in_child("from_bytes", messages=messages, shape=shape, style=style, seconds=seconds, names=names)
    times, size = found["times"], found["bytes"]
    row = [name, megabytes(size), time(times[ours]), formatting.rate(size, times[ours])]
    for rival in (tuned, simplest):
        row += [time(times[rival]), ratio(times[rival] / times[ours])]
    dicts = in_child("from_dicts", messages=messages, shape=shape, seconds=seconds)["times"]
    row += [time(dicts[name]) for name in (contenders.REDUCE, contenders.TUNED)]
    row.append(ratio(dicts[contenders.TUNED] / dicts[contenders.REDUCE]))
    if least is None:
        return row, []
    what = f"bytes, {name}, {megabytes(size)}: orjson + tuned loop + orjson.dumps"
    return row, [at_least("1", what, times[tuned] / times[ours], least, both_times(times, ours, tuned))]


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
    name, figure = (
        "bytes, nothing to mask",
        f"the same object, {time(times['bytes'])}, {formatting.rate(size, times['bytes'])}",
    )
    if scan is None:
        claims.append(Claim("2", name, figure, "speed of the scan (no cargo here to measure it)"))
    else:
        target = f"at most 1.1 times the core's scan alone ({time(scan)})"
        claims.append(Claim("2", name, figure, target, times["bytes"] <= 1.1 * scan))
    figure = f"the same object, {formatting.per_message(messages, times['dicts'])}"
    claims.append(Claim("2", "dicts, nothing to mask", figure, "the same object", True))
    return Section(claims, "")


def dicts_to_dicts(plan: Plan) -> Section:
    """Line 3: `reduce` of dicts against Python loops."""
    columns: dict[str, dict[str, float]] = {}
    rates: dict[str, Callable[[float], str]] = {}
    claims = []
    ours = contenders.REDUCE
    for size in plan.dict_sizes:
        times = in_child("from_dicts", messages=size, shape="openai", seconds=plan.seconds)["times"]
        title = f"{size:,} messages"
        columns[title], rates[title] = times, partial(formatting.per_message, size)
        if size in (1_000, 10_000):
            rival = contenders.TUNED
            what = f"dicts, {size:,} messages: {rival}"
            claims.append(at_least("3", what, times[rival] / times[ours], 2.0, both_times(times, ours, rival)))
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
        what = f"bytes, two threads on two inputs of {size}"
        claims.append(Claim("4", what, f"{one / two:.2f}x ({against})", "at least 1.8x", one / two >= 1.8))
    return Section(claims, "")


def small(plan: Plan) -> Section:
    """Line 7: what an agent sends most, what an import costs, and how large the package is."""
    found = in_child("small", seconds=plan.seconds)
    times, size = found["times"], f"20 messages, {found['bytes'] / 1e3:.1f} KB"
    ours, tuned, simplest = contenders.REDUCE, contenders.ORJSON_TUNED, contenders.ORJSON_SIMPLEST
    what, against_tuned = f"bytes, {size}", times[tuned] / times[ours]
    claims = [
        Claim("7", what, time(times[ours]), "about 5 µs", times[ours] < 5.5e-6),
        at_least("7", f"{what}: orjson + tuned loop", against_tuned, 5, both_times(times, ours, tuned)),
        Claim("7", f"{what}: orjson + simplest loop", ratio(times[simplest] / times[ours])),
    ]
    dicts, loop = f"dicts: {contenders.REDUCE}", f"dicts: {contenders.TUNED}"
    figure = f"{ratio(times[loop] / times[dicts])} ({both_times(times, dicts, loop)})"
    claims.append(Claim("7", f"dicts, {size}: tuned loop", figure))
    bare, with_us = in_child("start_times", codes=["pass", "import recede; recede.reduce"], rounds=plan.starts)
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


def sessions(plan: Plan) -> Section:
    """A turn of a `History` costs the same at any length."""
    found = in_child("turns", marks=plan.turns, oracle_until=1_000)
    claims = []
    for mark in plan.turns:
        for mode, name in (("bytes", "append_json twice, view_chunks"), ("dicts", "append twice, view")):
            turn = found[f"{mode} {mark}"]
            seconds = turn["append"] + turn["view"]
            figure = f"{time(seconds)}, of which appending {time(turn['append'])}"
            is_met = seconds <= 20e-6 if (mode, mark) == ("bytes", 10_000) else None
            target = "at most about 20 µs" if is_met is not None else ""
            claims.append(Claim("9", f"a turn at turn {mark:,} ({mode}): {name}", figure, target, is_met))
            if "oracle" in turn:
                figure = f"{ratio(turn['oracle'] / seconds)} ({time(turn['oracle'])})"
                claims.append(Claim("9", f"the same, against reducing anew with the oracle ({mode})", figure))
            wanted = 200 if (mode, mark) == ("bytes", 10_000) else None
            figure = f"{ratio(turn['core'] / seconds)} ({time(turn['core'])})"
            what = f"the same, against reducing anew with the core ({mode})"
            is_met = None if wanted is None else turn["core"] / seconds >= wanted
            claims.append(Claim("9", what, figure, f"at least {wanted}x" if wanted else "", is_met))
    first, last = (found[f"bytes {mark}"]["append"] for mark in (plan.turns[0], 10_000))
    grown = last / first
    claims.append(Claim("9", "appending at turn 10,000 / at turn 100", f"{grown:.1f}", "at most 4", grown <= 4))
    whole = found["bytes whole"]
    times = found["oracle whole"] / whole
    figure = f"{ratio(times)} ({time(whole)} against {time(found['oracle whole'])})"
    what = "a whole session of 2,000 turns, a view at each (bytes), against the oracle at every turn"
    claims.append(Claim("9", what, figure, "at least 100x", times >= 100))
    return Section(claims, "")


def contexts(plan: Plan) -> Section:
    """A manager of turns renders each turn once, and a context joins the texts."""
    found = in_child("contexts", turns=10_000, rounds=5)
    claims = []
    for name, what in (("manager", "masking manager"), ("hybrid", "hybrid before its first summary")):
        turn, context, join = found[f"{name}, a turn"], found[f"{name}, a context"], found["a join"]
        figure = f"{time(turn)}; in a plain loop, which renders when it is asked, {time(found['loop, a turn'])}"
        claims.append(Claim("10", f"adding a turn, {what}", figure, "at most 2 µs", turn <= 2e-6))
        figure = f"{context / join:.2f} ({time(context)}; a plain loop {time(found['loop, a context'])})"
        what = f"a context of 10,000 turns / joining its parts, {what}"
        claims.append(Claim("10", what, figure, "at most 2", context <= 2 * join))
    return Section(claims, "")


def break_even(plan: Plan) -> Section:
    """Line 8: a boundary that pays for itself costs little more than one that slides."""
    measured = in_child("break_even", messages=10_000, seconds=plan.seconds)
    times, ratios = measured["times"], measured["ratios"]
    claims = []
    for form in ("bytes", "dicts"):
        for ours, words in (("break-even", "break_even"), ("pinned", "break_even, marked at the boundary")):
            pays, slides = f"{form}, {ours}", f"{form}, {ours}: sliding"
            what = f"{form}, 10,000 messages, keep=10: {words} / sliding"
            figure = f"{ratios[pays]:.2f} of CPU time; the best: {both_times(times, pays, slides)}"
            claims.append(Claim("8", what, figure, "at most 1.2", ratios[pays] <= 1.2))
    return Section(claims, "")
