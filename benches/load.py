"""What `recede proxy` takes under load: time to the first event, CPU, memory; direct, and beside other proxies.

`python benches/load.py [--streams 1 64] [--seconds 20] [--megabytes 0.1]` starts an upstream on this machine that
answers each request with a stream of events, and the proxies before it, each in its own process; they take turns,
three each. `--mitmdump PROGRAM`, `--litellm PROGRAM` and `--headroom PROGRAM` measure these proxies too. Of several
sizes each stream takes one, in turn: with `--seconds 600 --megabytes 0.1 0.5 1 5` the resident memory over time shows
whether it grows. `--table bodies` and `--table proxies` print the tables of docs/proxy.md, the second with such
programs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import formatting
from formatting import markdown, measured_here

ROUNDS = 3
MODEL = "claude-opus-5"
KEY = "sk-load"
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [], "stop_reason": None}
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}}
EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, "usage": {"input_tokens": 9, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *[DELTA] * 5,
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def body(megabytes: float, turns: int = 60) -> bytes:
    """A request of an agent of about so many megabytes."""
    text = 'a line of the output of a tool, "quoted"\n'
    each = text * max(1, int(megabytes * 1e6 / turns / (len(text) + 3)))
    messages: list[object] = [{"role": "user", "content": "Go."}]
    for number in range(turns):
        use = {"type": "tool_use", "id": f"toolu_{number:020}", "name": "run", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number:020}", "content": each}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return json.dumps({"model": MODEL, "max_tokens": 99, "stream": True, "messages": messages}).encode()


async def upstream(port: int) -> None:
    """Answer each request with events, ten milliseconds apart."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"(?i)content-length: *(\d+)", head)
                await reader.readexactly(int(found[1]) if found else 0)
                writer.write(HEAD)
                for event in EVENTS:
                    data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
                    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                    await writer.drain()
                    await asyncio.sleep(0.01)
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port, limit=1 << 20) as server:
        await server.serve_forever()


async def stream(port: int, data: bytes, until: float, first: list[float]) -> None:
    """One client that asks again and again on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(data)}\r\nAuthorization: Bearer {KEY}\r\nAnthropic-Version: 2023-06-01\r\n\r\n"
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(head.encode() + data)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in answer, answer
        await reader.readuntil(b"\n\n")
        first.append(time.perf_counter() - began)
        await reader.readuntil(b"0\r\n\r\n")
    writer.close()


async def load(
    port: int, bodies: list[bytes], streams: int, seconds: float, resident: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """Seconds to the first event of all requests, and four readings of the resident memory over time."""
    first: list[float] = []
    readings: list[float] = []
    until = time.perf_counter() + seconds

    async def read() -> None:
        for _ in range(4):
            await asyncio.sleep(seconds / 4 - 0.01)
            readings.append(resident())

    await asyncio.gather(read(), *(stream(port, bodies[n % len(bodies)], until, first) for n in range(streams)))
    return first, readings


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def process(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that listens on this port, in a home of its own, and reaches no other machine."""
    dark = "http://127.0.0.1:9"
    with tempfile.TemporaryDirectory() as home:
        variables = {
            "HOME": home, "HTTPS_PROXY": dark, "HTTP_PROXY": dark, "NO_PROXY": "127.0.0.1",
            "LITELLM_MASTER_KEY": KEY, "HF_HUB_OFFLINE": "1",
        }  # fmt: skip
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, env={**os.environ, **variables}, **quiet) as child:
            try:
                for _ in range(2_400):
                    try:
                        socket.create_connection(("127.0.0.1", port)).close()
                        break
                    except OSError:
                        time.sleep(0.1)
                yield child
            finally:
                child.send_signal(signal.SIGKILL)


def resident_megabytes(pid: int, name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1_000 if found else 0.0


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[64])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[0.1])
    for name in PEERS:
        parser.add_argument(f"--{name}", metavar="PROGRAM")
    parser.add_argument("--table", choices=["bodies", "proxies"], help="one of docs/proxy.md, as Markdown")
    parser.add_argument("--upstream", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.upstream:
        asyncio.run(upstream(given.upstream))
        return
    programs = {name: program for name in PEERS if (program := getattr(given, name))}
    if given.table:
        table = table_of_bodies() if given.table == "bodies" else table_of_proxies(programs)
        print(f"{measured_here()}\n\n{table}")
        return
    for streams, runs in played(programs, given.megabytes, given.streams, given.seconds):
        sizes = ", ".join(f"{size:.1f}" for size in given.megabytes)
        print(f"{streams} streams, {sizes} MB, {given.seconds:.0f} s", flush=True)
        for name, run in runs.items():
            print(f"{name:10} {run.said()}", flush=True)


def played(
    programs: dict[str, str], megabytes: list[float], streams: list[int], seconds: float
) -> Iterator[tuple[int, dict[str, Run]]]:
    """The upstream, `recede proxy` and these proxies under load, for each number of streams."""
    bodies = [body(size) for size in megabytes]
    target = free_port()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        runs = {"direct": Run(target, stack, [sys.executable, __file__, "--upstream", str(target)])}
        for name, program in {"recede": "", **programs}.items():
            port = free_port()
            runs[name] = Run(port, stack, command_of(name, program, f"http://127.0.0.1:{target}", port, Path(folder)))
        for number in streams:
            for run in runs.values():
                run.forget()
            for _ in range(ROUNDS):
                for run in runs.values():
                    run.play(bodies, number, seconds / ROUNDS)
            yield number, runs


def table_of_bodies() -> str:
    """Times and memory by size and number of streams."""
    rows = []
    for megabytes, streams, seconds in BODIES:
        [runs] = (table_cells(runs, "direct") for _, runs in played({}, megabytes, [streams], seconds))
        sizes = " and ".join(filter(None, [", ".join(f"{size:g}" for size in megabytes[:-1]), f"{megabytes[-1]:g}"]))
        direct, proxied = runs["direct"], runs["recede"]
        times = [proxied["ratio"], direct["first"], proxied["first"]]
        rows.append([f"{sizes} MB, {streams}", *times, proxied["at most"]])
    header = ["body, streams", "through / direct", "first event, direct", "through `recede proxy`", "resident at most"]
    return markdown(header, rows)


def table_of_proxies(programs: dict[str, str]) -> str:
    """Proxies with bodies of 0.1 MB, one stream and many."""
    one, many = (table_cells(runs, "recede") for _, runs in played(programs, [0.1], [1, 64], 12))
    columns = {"ratio": "first event / recede", "first": "first event", "CPU": "CPU a request"}
    header = [f"{title}, {number}" for title in columns.values() for number in ("1 stream", "64 streams")]
    rows = [
        [
            name,
            *(cells[name][key] for key in columns for cells in (one, many)),
            many[name]["idle"],
            many[name]["at most"],
        ]
        for name in one
    ]
    return markdown(["", *header, "resident, idle", "at most"], rows)


def table_cells(runs: dict[str, Run], base: str) -> dict[str, dict[str, str]]:
    """What was measured until now; the ratio is that of the first event to this one's."""
    first = {name: statistics.median(run.first) for name, run in runs.items()}
    return {
        name: {
            "ratio": formatting.ratio(first[name] / first[base]),
            "first": formatting.time(first[name]),
            "CPU": formatting.time(run.cpu / len(run.first)),
            "idle": f"{run.idle:.0f} MB",
            "at most": f"{run.resident('VmHWM'):.0f} MB",
        }
        for name, run in runs.items()
    }


PEERS = ("mitmdump", "litellm", "headroom")
# Megabytes, streams, seconds.
BODIES: list[tuple[list[float], int, float]] = [
    ([0.1], 1, 12),
    ([0.1], 64, 12),
    ([1], 64, 12),
    ([5], 1, 12),
    ([0.1, 0.5, 1, 5], 64, 600),
]


def command_of(name: str, program: str, url: str, port: int, folder: Path) -> list[str]:
    """What starts a proxy before an upstream."""
    if name == "recede":
        own = [sys.executable, "-m", "recede.cli", "proxy", "--state", "none"]
        return [*own, "--upstream", url, "--port", str(port)]
    if name == "mitmdump":
        reverse = ["--mode", f"reverse:{url}", "--set", "stream_large_bodies=1"]
        return [program, "-q", *reverse, "--listen-port", str(port)]
    if name == "headroom":
        reverse = ["--anthropic-api-url", url, "--no-rate-limit", "--no-telemetry"]
        return [program, "proxy", *reverse, "--port", str(port)]
    model = {"model": f"anthropic/{MODEL}", "api_base": url, "api_key": "none"}
    config = folder / "litellm.yaml"  # JSON is YAML too
    config.write_text(json.dumps({"model_list": [{"model_name": MODEL, "litellm_params": model}]}))
    return [program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]


class Run:
    """A process under load, and what was measured of it."""

    def __init__(self, port: int, stack: ExitStack, command: list[str]) -> None:
        self.port = port
        self.pid = stack.enter_context(process(command, port)).pid
        self.idle = self.resident()
        self.forget()

    def forget(self) -> None:
        self.first: list[float] = []
        self.readings: list[float] = []
        self.cpu = 0.0

    def resident(self, name: str = "VmRSS") -> float:
        return resident_megabytes(self.pid, name)

    def play(self, bodies: list[bytes], streams: int, seconds: float) -> None:
        began = cpu_seconds(self.pid)
        first, readings = asyncio.run(load(self.port, bodies, streams, seconds, self.resident))
        self.cpu += cpu_seconds(self.pid) - began
        self.first += first
        self.readings += readings

    def said(self) -> str:
        cuts = statistics.quantiles(self.first, n=100)
        over_time = " ".join(f"{reading:.0f}" for reading in self.readings)
        return (
            f"{len(self.first):6} requests, first event p50 {1e3 * cuts[49]:.1f} ms, p99 {1e3 * cuts[98]:.1f} ms, "
            f"{1e3 * self.cpu / len(self.first):.1f} ms CPU a request, {self.idle:.0f} MB idle, {over_time} over time, "
            f"{self.resident('VmHWM'):.0f} at most"
        )


if __name__ == "__main__":
    main()
