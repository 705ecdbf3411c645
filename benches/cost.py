"""The sections of the table that say what a reduction costs, and how the cost grows: line 5, memory; line 6, time."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import contenders
import formatting
import histories
import measuring
from claims import Claim, Plan, Section
from formatting import megabytes, ratio, time
from histories import Shape, Style
from measuring import in_child

RECORD_BYTES = 150  # that a message, call or result may take while a history is reduced
RECORD_SECONDS = 200e-9


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
                    found = in_child("peak_memory", path=path, form=form)
                    claim, row = _peak(f"{size}, {style}, {form}", form, found, told["records"])
                    rows.append(row)
                    if style == "compact":
                        claims.append(claim)
    header = ["input", "input object", "copy", "output", "messages, calls, results", "peak", "limit", "peak / limit"]
    return Section(claims, f"## Peak memory of `reduce`\n\n{formatting.markdown(header, rows)}")


def session_memory(plan: Plan) -> Section:
    """Line 9: a session holds its text once."""
    turns = plan.turns[-1]
    what = f"memory held by a History of {turns:,} turns, a view at each / its raw bytes"
    if not measuring.can_measure_memory():
        return Section([Claim("9", what, "not measured: this system does not tell it")], "")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "messages.jsonl"))
        raw = in_child("write_messages", path=path, messages=2 * turns)["bytes"]
        held = in_child("session_memory", path=path)["held"]
    figure = f"{held / raw:.2f} ({megabytes(held)} for {megabytes(raw)})"
    return Section([Claim("9", what, figure, "at most 1.5", held <= 1.5 * raw)], "")


def stored_turns(plan: Plan) -> Section:
    """Line 9: with a store, a session is not held at all."""
    turns = plan.stored_marks[-1]
    what = f"most memory at once for {turns:,} turns of a `History` with a store: added, reopened, 1,000 recalled"
    if not measuring.can_measure_memory():
        return Section([Claim("9", what, "not measured: this system does not tell it")], "")
    with tempfile.TemporaryDirectory() as folder:
        found = in_child("stored_history", path=str(Path(folder, "session.store")), turns=turns)
    figure = f"{megabytes(found['peak'])} ({megabytes(found['file'])} on disk)"
    return Section([Claim("9", what, figure, "at most 64 MiB", found["peak"] <= 64 << 20)], "")


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
        f"## Instructions\n\nOf one masking of the core, bytes to bytes, as callgrind counts them (scanner {scanner});"
        f" the same in every run of a build.\n\n"
        f"{formatting.markdown(header, rows)}"
    )
    return Section(claims, details)


def against_copies(plan: Plan) -> Section:
    """Line 6: time relative to a plain copy, at a small and a large size."""
    shares: dict[str, list[float]] = {contenders.WARM_COPY: [], contenders.FRESH_COPY: []}
    rows, rates = [], []
    for size, messages in plan.copies.items():
        found = in_child("against_copies", messages=messages, seconds=plan.seconds)
        times = found["times"]
        ours = times[contenders.REDUCE]
        rates.append(found["bytes"] / ours)
        row = [size, time(ours), formatting.rate(found["bytes"], ours)]
        for copy, ratios in shares.items():
            ratios.append(ours / times[copy])
            row += [time(times[copy]), ratio(ours / times[copy])]
        rows.append(row)
    first, last = plan.copies
    claims = []
    for copy, (small, large) in shares.items():
        apart = max(small, large) / min(small, large)
        what = f"reduce / {copy.strip('()')}, {first} against {last}"
        figure = f"{apart:.2f} apart ({ratio(small)} at {first}, {ratio(large)} at {last})"
        is_met = apart <= 1.5 if copy == contenders.WARM_COPY else None
        claims.append(Claim("6", what, figure, "within 1.5" if is_met is not None else "", is_met))
    own = max(rates) / min(rates)
    claims.append(Claim("6", f"reduce a byte, {first} against {last}", f"{own:.2f} apart"))
    header = ["", "reduce", "rate", "warm copy", "reduce / it", "fresh copy", "reduce / it"]
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
        f'## Hostile shapes\n\n`reduce(data, keep=1, boundary="sliding")`, and `reduce(data, max_input_tokens=25)`,'
        f" which goes through all three stages. A record is a message, a call or a result. The mean is that of the mix,"
        f" {megabytes(mix['bytes'])}.\n\n{formatting.markdown(header, rows)}"
    )
    return Section(claims, details)
