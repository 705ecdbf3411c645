"""What `recede proxy` takes under load: time to the first event, CPU, memory; direct, and beside other proxies.

`python benches/load.py [--streams 64] [--seconds 20] [--megabytes 0.1]` starts an upstream on this machine that
answers each request with a stream of events, and the proxies before it, one after the other, each in its own process.
`--mitmdump PROGRAM` measures that of mitmproxy too. Of several sizes each stream takes one, in turn: with
`--seconds 600 --megabytes 0.1 0.5 1 5` the resident memory over time shows whether it grows.
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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

EVENTS = 10
EVENT = b"event: ping\ndata: {}\n\n"
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
    return json.dumps({"model": "claude-opus-5", "stream": True, "messages": messages}).encode()


async def upstream(port: int) -> None:
    """Answer each request with events, ten milliseconds apart."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"(?i)content-length: *(\d+)", head)
                await reader.readexactly(int(found[1]) if found else 0)
                writer.write(HEAD)
                for _ in range(EVENTS):
                    writer.write(b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
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
    head += f"Content-Length: {len(data)}\r\n\r\n"
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(head.encode() + data)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in answer, answer
        await reader.readuntil(EVENT)
        first.append(time.perf_counter() - began)
        await reader.readuntil(b"0\r\n\r\n")
    writer.close()


async def load(
    port: int, bodies: list[bytes], streams: int, seconds: float, resident: Callable[[], float] | None = None
) -> tuple[list[float], list[float]]:
    """Seconds to the first event of all requests, and ten readings of the resident memory over time."""
    first: list[float] = []
    readings: list[float] = []
    until = time.perf_counter() + seconds

    async def read() -> None:
        for _ in range(10 if resident else 0):
            await asyncio.sleep(seconds / 10 - 0.01)
            readings.append(resident())

    await asyncio.gather(read(), *(stream(port, bodies[n % len(bodies)], until, first) for n in range(streams)))
    return first, readings


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def process(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that listens on this port."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            for _ in range(600):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.05)
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
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[0.1])
    parser.add_argument("--mitmdump")
    parser.add_argument("--upstream", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.upstream:
        asyncio.run(upstream(given.upstream))
        return
    target, bodies = free_port(), [body(size) for size in given.megabytes]
    sizes = ", ".join(f"{len(one) / 1e6:.1f}" for one in bodies)
    print(f"{given.streams} streams, {sizes} MB, {given.seconds:.0f} s", flush=True)
    with process([sys.executable, __file__, "--upstream", str(target)], target):
        contenders: dict[str, list[str]] = {"direct": []}
        url = f"http://127.0.0.1:{target}"
        recede = [sys.executable, "-m", "recede.cli", "proxy", "--state", "none", "--upstream", url]
        contenders["recede"] = [*recede, "--port"]
        if given.mitmdump:
            contenders["mitmproxy"] = [
                given.mitmdump,
                "-q",
                "--set",
                "stream_large_bodies=1",
                "--mode",
                f"reverse:{url}",
                "--listen-port",
            ]
        for name, command in contenders.items():
            port = free_port() if command else target
            if not command:
                first, _ = asyncio.run(load(port, bodies, given.streams, min(30.0, given.seconds)))
                print(said(name, first), flush=True)
                continue
            with process([*command, str(port)], port) as child:
                idle = resident_megabytes(child.pid, "VmRSS")
                began = cpu_seconds(child.pid)
                resident = partial(resident_megabytes, child.pid, "VmRSS")
                first, readings = asyncio.run(load(port, bodies, given.streams, given.seconds, resident))
                spent = (cpu_seconds(child.pid) - began) / len(first)
                most = resident_megabytes(child.pid, "VmHWM")
                over_time = " ".join(f"{reading:.0f}" for reading in readings)
                memory = f"{idle:.0f} MB idle, {over_time} over time, {most:.0f} at most"
                print(f"{said(name, first)}, {1e3 * spent:.1f} ms CPU a request, {memory}", flush=True)


def said(name: str, first: list[float]) -> str:
    cuts = statistics.quantiles(first, n=100)
    return f"{name:10} {len(first):6} requests, first event p50 {1e3 * cuts[49]:.1f} ms, p99 {1e3 * cuts[98]:.1f} ms"


if __name__ == "__main__":
    main()
