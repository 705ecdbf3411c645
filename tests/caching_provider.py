"""A provider on this machine that keeps its prompt cache by Anthropic's rules, and counts what that served.

An entry is a whole prefix of blocks that ends at a mark of an earlier request. A request reads the longest one that
ends at a mark of its own or fewer than 20 blocks before one, and writes the rest up to its last mark. Below the minimum
nothing is cached; an entry that is not used lives for five minutes. Nothing here is shared with the package.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MOST_MARKS = 4
LOOKBACK_BLOCKS = 20
MIN_TOKENS = 2_048
TTL_SECONDS = 300.0
CHARS_PER_TOKEN = 4

Block = dict[str, Any]


@dataclass
class CachingProvider:
    """Its cache, its clock, and what it has counted."""

    url: str
    seconds: float = 0.0  # now
    entries: dict[bytes, float] = field(default_factory=dict)  # when each prefix was last used
    requests: int = 0
    read: int = 0  # tokens
    written: int = 0
    plain: int = 0
    answers: list[list[Block]] = field(default_factory=list)  # the contents of those to come; then a dot

    def count(self, body: dict[str, Any]) -> dict[str, int] | str:
        """The usage of a request, or why it is refused."""
        chars, digest, marks = 0, hashlib.blake2b(), []
        ends: list[tuple[int, bytes]] = []  # of each block: the chars up to it, and the prefix
        for role, block in _blocks(body):
            plain, is_marked = _unmarked(block)
            digest.update(json.dumps([role, plain]).encode())
            chars += _chars(plain)
            if is_marked:
                marks.append(len(ends))
            ends.append((chars // CHARS_PER_TOKEN, digest.digest()))
        if len(marks) > MOST_MARKS:
            return f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {len(marks)}."
        marks = [mark for mark in marks if ends[mark][0] >= MIN_TOKENS]
        hit = max((self._hit(ends, mark) for mark in marks), default=-1)
        read = ends[hit][0] if hit >= 0 else 0
        for place in {hit, *marks} - {-1}:
            self.entries[ends[place][1]] = self.seconds
        whole, written = ends[-1][0], max(0, ends[marks[-1]][0] - read) if marks else 0
        plain = whole - read - written
        self.requests += 1
        self.read, self.written, self.plain = self.read + read, self.written + written, self.plain + plain
        return {
            "input_tokens": plain,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": 1,
        }

    def _hit(self, ends: list[tuple[int, bytes]], mark: int) -> int:
        """The block at which the longest living entry ends that a mark finds; -1 if there is none."""
        for place in range(mark, max(-1, mark - LOOKBACK_BLOCKS), -1):
            if self.seconds - self.entries.get(ends[place][1], -1e9) <= TTL_SECONDS:
                return place
        return -1


def _blocks(body: dict[str, Any]) -> Iterator[tuple[str, Block]]:
    """What a request has, in the order of its prefixes."""
    for tool in body.get("tools", ()):
        yield "tools", tool
    for role, content in [("system", body.get("system", ())), *((m["role"], m["content"]) for m in body["messages"])]:
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield role, block


def _unmarked(block: Block) -> tuple[Block, bool]:
    """A block without marks, its parts' included, and whether it has one."""
    plain = {name: value for name, value in block.items() if name != "cache_control"}
    is_marked = block.get("cache_control") is not None
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        parts = [_unmarked(part) for part in block["content"]]
        plain["content"] = [part for part, _ in parts]
        is_marked = is_marked or any(marked for _, marked in parts)
    return plain, is_marked


def _chars(block: Block) -> int:
    """About how long a block is for the model."""
    if block.get("type") == "tool_use":
        return len(block["name"]) + len(json.dumps(block["input"], ensure_ascii=False, separators=(",", ":")))
    if block.get("type") == "tool_result":
        content = block.get("content") or ""
        return len(content) if isinstance(content, str) else sum(map(_chars, content))
    return len(block.get("text") or block.get("thinking") or "")


@contextlib.contextmanager
def caching() -> Iterator[CachingProvider]:
    """A provider with an empty cache, until the block ends."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    httpd.daemon_threads = True
    provider = CachingProvider(f"http://127.0.0.1:{httpd.server_address[1]}")
    httpd.provider = provider  # type: ignore[attr-defined]
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        usage = self.server.provider.count(body)  # type: ignore[attr-defined]
        is_refused = isinstance(usage, str)
        answers = self.server.provider.answers  # type: ignore[attr-defined]
        content = answers.pop(0) if answers else [{"type": "text", "text": "."}]
        is_call = any(block["type"] == "tool_use" for block in content)
        answer: dict[str, Any] = {
            "id": "msg",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if is_call else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        if is_refused:
            answer = {"type": "error", "error": {"type": "invalid_request_error", "message": usage}}
        data = json.dumps(answer).encode()
        self.send_response(400 if is_refused else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
