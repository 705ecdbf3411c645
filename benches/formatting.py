"""Numbers as people read them, tables as Markdown, and where and when it was measured."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path

import recede


def time(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:#.3g} {unit}".replace(". ", " ")
    return f"{seconds * 1e9:.0f} ns"


def ratio(number: float) -> str:
    """How many times as much."""
    return f"{number:.0f}x" if number >= 20 else f"{number:.1f}x" if number >= 0.1 else f"{number:.2f}x"


def rate(size: int, seconds: float) -> str:
    """Bytes a second."""
    return f"{size / seconds / 1e9:.2f} GB/s"


def per_message(messages: int, seconds: float) -> str:
    """Time for each message."""
    return f"{seconds / messages * 1e9:,.0f} ns/message"


def megabytes(size: float) -> str:
    """Size in millions of bytes."""
    return f"{size / 1e6:,.3g} MB" if size < 1e9 else f"{size / 1e6:,.0f} MB"


def markdown(header: list[str], rows: Iterable[list[str]]) -> str:
    """A table; the first column is text, the others are numbers."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def comparison(columns: dict[str, dict[str, float]], rates: dict[str, Callable[[float], str]]) -> str:
    """Contenders down, sizes across; each time beside its ratio to the first contender, which is recede."""
    header = ["", *(part for title in columns for part in (title, "rate", "/ recede"))]
    names = dict.fromkeys(name for times in columns.values() for name in times)
    rows = []
    for name in names:
        row = [name]
        for title, times in columns.items():
            seconds = times.get(name)
            ours = next(iter(times.values()))
            row += [time(seconds), rates[title](seconds), ratio(seconds / ours)] if seconds else ["", "", ""]
        rows.append(row)
    return markdown(header, rows)


def processor() -> tuple[str, str]:
    """Its name, and the vector instructions that the scanner uses on it."""
    try:
        cpuinfo = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    except OSError:
        return platform.processor() or platform.machine(), ""
    facts = {key.strip(): value.strip() for key, value in cpuinfo.items()}
    vectors = "avx2" if "avx2" in facts.get("flags", "").split() else ""
    return facts.get("model name", platform.processor()), vectors


def measured_here() -> str:
    """What stands above times in a document: date and machine."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return f"Measured on {now:%Y-%m-%d}: {processor()[0]}, {os.cpu_count()} cores."


def surroundings() -> str:
    """Date, machine and versions."""
    model, vectors = processor()
    try:
        rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        rustc = "no rustc here"
    optimized = "with" if "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "") else "without"
    now = datetime.datetime.now(datetime.timezone.utc)
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("orjson", "msgspec"))
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    pinned = "" if hasattr(os, "sched_setaffinity") else "not "
    return (
        f"- {now:%Y-%m-%d %H:%M} UTC; recede {recede.__version__}, {rustc}\n"
        f"- {model}{f' ({vectors})' if vectors else ''}, {os.cpu_count()} cores, {pinned}pinned to one{load};"
        f" {platform.system()} {platform.release()}\n"
        f"- {platform.python_implementation()} {platform.python_version()}, built {optimized} profile-guided"
        f" optimization; {packages}"
    )
