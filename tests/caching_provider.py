"""Providers on this machine that keep their prompt caches by the rules, and count what these served.

With Anthropic, an entry is a whole prefix of blocks that ends at a mark of an earlier request. A request reads the
longest one that ends at a mark of its own or fewer than 20 positions before one, and writes the rest up to its last
mark; a run of calls is one position, and so is one of results. A mark of the body is for the last block.
With others each prefix of an earlier request is an entry, and some serve it in steps. From GPT-5.6 on an entry of
OpenAI ends at the newest message of the user or of a tool, and at marks; a request looks for one at up to 20 earlier
such messages, and reads it whole. DeepSeek's end with requests, with answers, and where two requests part. Below the
minimum nothing is cached. Nothing here is shared with the package.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

import orjson

from local_server import listening

MOST_MARKS = 4
LOOKBACK_BLOCKS = 20
MIN_TOKENS = 2_048
# The least tokens that OpenAI and Gemini cache, and the steps in which they serve them.
PREFIXES = {"/v1/chat/completions": (1_024, 128), "/v1/responses": (1_024, 128), ":generateContent": (4_096, 1)}
IMAGE_CHARS = 6_400
TTL_SECONDS = 300.0
CHARS_PER_TOKEN = 4

Block = dict[str, Any]


class Rule(NamedTuple):
    """What a cache that needs no marks serves.

    With ``"prefix"`` any prefix from `least` tokens on, in steps; with ``"entries"`` an earlier request, whole, that
    ended at the newest message of the user or of a tool, one of the last `lookback`. If it `shares_prefixes`, also one
    with its answer, and from the third time on what two requests share.
    """

    kind: str = "prefix"
    least: int = 0
    step: int = 1
    ttl_seconds: float = TTL_SECONDS
    lookback: int = 20
    shares_prefixes: bool = False


_FOREVER = float("inf")
# By provider, as their pages say it in November 2026; what they do not say is no minimum, no step, and no end.
RULES = {
    "openai": Rule("prefix", 1_024, 128),
    "openai since GPT-5.6": Rule("entries", 1_024, ttl_seconds=1_800.0),
    "gemini": Rule("prefix", 4_096),
    "deepseek": Rule("entries", 64, ttl_seconds=_FOREVER, lookback=1 << 30, shares_prefixes=True),
    "moonshot": Rule("prefix", 256, 256),
    "moonshot_1h": Rule("prefix", 256, 256, ttl_seconds=3_600.0),
    "zai": Rule(ttl_seconds=_FOREVER),
    "alibaba": Rule("prefix", 1_024, ttl_seconds=_FOREVER),
    "minimax": Rule("prefix", 512, ttl_seconds=_FOREVER),
    "xai": Rule("prefix", 0, 128, ttl_seconds=_FOREVER),
    "mistral": Rule(ttl_seconds=_FOREVER),
    "groq": Rule(ttl_seconds=7_200.0),
    "fireworks": Rule(ttl_seconds=_FOREVER),
}


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
    body: dict[str, Any] = field(default_factory=dict)  # of the last request
    least: int = MIN_TOKENS  # tokens that are cached where marks are needed
    seen: set[bytes] = field(default_factory=set)  # the prefixes of all requests
    asked: set[bytes] = field(default_factory=set)  # those that were whole requests

    def count(self, body: dict[str, Any]) -> dict[str, int] | str:
        """The usage of a request to Anthropic, or why it is refused."""
        chars, digest, marks = 0, hashlib.blake2b(), []
        ends: list[tuple[int, bytes]] = []  # of each block: the chars up to it, and the prefix
        runs: list[bool] = []
        before = None
        for role, block in _blocks(body):
            plain, is_marked = _unmarked(block)
            kind = block.get("type")
            runs.append(kind == before and kind in ("tool_use", "tool_result"))
            before = kind
            digest.update(orjson.dumps([role, plain]))
            chars += _chars(plain)
            if is_marked:
                marks.append(len(ends))
            ends.append((chars // CHARS_PER_TOKEN, digest.digest()))
        if body.get("cache_control") is not None and len(ends) - 1 not in marks:
            marks.append(len(ends) - 1)
        if len(marks) > MOST_MARKS:
            return f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {len(marks)}."
        marks = [mark for mark in marks if ends[mark][0] >= self.least]
        hit = max((self._hit(ends, runs, mark) for mark in marks), default=-1)
        read = ends[hit][0] if hit >= 0 else 0
        for place in {hit, *marks} - {-1}:
            self.entries[ends[place][1]] = self.seconds
        whole, written = ends[-1][0], max(0, ends[marks[-1]][0] - read) if marks else 0
        self._add(read, written, whole - read - written)
        return {
            "input_tokens": whole - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": 1,
        }

    def count_prefix(self, body: dict[str, Any], least: int, step: int) -> tuple[int, int]:
        """The tokens of a request to OpenAI before GPT-5.6 or to Gemini, and those that the cache served."""
        whole, read, _ = self.count_by(Rule("prefix", least, step), body)
        return whole, read

    def count_by(self, rule: Rule, body: dict[str, Any]) -> tuple[int, int, int]:
        """The tokens of a request by this rule, those that the cache served, and those that were written to it."""
        ends = list(_ends(body))
        alive = {place for place, (_, prefix) in enumerate(ends) if self._lives(prefix, rule.ttl_seconds)}
        history = history_of(body)
        if rule.kind == "prefix":
            found, new = alive, set(range(len(ends)))
        else:
            if rule.shares_prefixes:
                alive |= self._answered(ends, alive, history)
            eligible = range(len(ends)) if rule.shares_prefixes else _eligible(history)
            marked = [place for place, message in enumerate(history) if message != _without_marks(message)]
            looked = {*eligible[-rule.lookback - 1 :], *marked[:2], *marked[-50:]}
            found, new = alive & looked, {*eligible[-1:], *(() if rule.shares_prefixes else marked[-3:])}
        hit = max(found, default=-1)
        read = ends[hit][0] if hit >= 0 else 0
        read = 0 if read < rule.least else read - (read - rule.least) % rule.step
        if rule.shares_prefixes:
            shared = max((place for place, (_, prefix) in enumerate(ends) if prefix in self.seen), default=-1)
            new |= {shared} - {-1}
            self.seen |= {prefix for _, prefix in ends}
            self.asked.add(ends[-1][1])
        new = {place for place in new if ends[place][0] >= rule.least}
        for place in new | ({hit} - {-1}):
            self.entries[ends[place][1]] = self.seconds
        whole, end = ends[-1][0], max((ends[place][0] for place in new), default=0)
        written = max(0, end - read)
        billed = written if rule.kind == "entries" else 0  # others bill writes as input
        self._add(read, billed, whole - read - billed)
        return whole, read, written

    def _answered(self, ends: list[tuple[int, bytes]], alive: set[int], history: list[dict[str, Any]]) -> set[int]:
        """The ends of answers to earlier requests: entries as well."""
        return {
            place + 1
            for place in alive
            if ends[place][1] in self.asked and place + 1 < len(ends) and history[place + 1]["role"] == "assistant"
        }

    def _add(self, read: int, written: int, plain: int) -> None:
        self.requests += 1
        self.read, self.written, self.plain = self.read + read, self.written + written, self.plain + plain

    def _lives(self, prefix: bytes, seconds: float = TTL_SECONDS) -> bool:
        return prefix in self.entries and self.seconds - self.entries[prefix] <= seconds

    def _hit(self, ends: list[tuple[int, bytes]], runs: list[bool], mark: int) -> int:
        """The block at which the longest living entry ends that a mark finds; -1 if there is none.

        `runs` says of each block whether it continues a run.
        """
        positions = LOOKBACK_BLOCKS
        for place in range(mark, -1, -1):
            if self._lives(ends[place][1]):
                return place
            positions -= not runs[place]
            if not positions:
                break
        return -1


def history_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of a request."""
    return next(body[name] for name in ("messages", "input", "contents") if name in body)  # type: ignore[no-any-return]


def _blocks(body: dict[str, Any]) -> Iterator[tuple[str, Block]]:
    """What a request has, in the order of its prefixes."""
    for tool in body.get("tools", ()):
        yield "tools", tool
    for role, content in [("system", body.get("system", ())), *((m["role"], m["content"]) for m in body["messages"])]:
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield role, block


def _ends(body: dict[str, Any]) -> Iterator[tuple[int, bytes]]:
    """Of each message the tokens up to its end, and the prefix."""
    fields = [body.get(name) for name in ("tools", "system", "instructions")]
    chars = sum(map(_head_chars, fields))
    digest = hashlib.blake2b(orjson.dumps(_without_marks(fields)))
    for message in history_of(body):
        chars += _chars(message)
        digest.update(orjson.dumps(_without_marks(message)))
        yield chars // CHARS_PER_TOKEN, digest.digest()


def _head_chars(value: Any) -> int:
    """About how long tools or a system prompt are."""
    if isinstance(value, str) or not value:
        return len(value or "")
    return sum(len(one.get("description", one.get("text", ""))) for one in value)


def _eligible(history: list[dict[str, Any]]) -> list[int]:
    """The messages of users, and the last one of results in a row."""
    followers = [*history[1:], {}]
    return [
        place
        for place, (message, after) in enumerate(zip(history, followers, strict=True))
        if message.get("role") == "user" or (_is_result(message) and not _is_result(after))
    ]


def _is_result(message: dict[str, Any]) -> bool:
    return message.get("role") == "tool" or str(message.get("type")).endswith("_call_output")


def _without_marks(value: Any) -> Any:
    """A message without the marks of Anthropic and OpenAI."""
    if isinstance(value, dict):
        names = ("prompt_cache_breakpoint", "cache_control")
        return {name: _without_marks(one) for name, one in value.items() if name not in names}
    return list(map(_without_marks, value)) if isinstance(value, list) else value


def _unmarked(block: Block) -> tuple[Block, bool]:
    """A block without marks, its parts' included, and whether it has one."""
    plain = {name: value for name, value in block.items() if name != "cache_control"}
    is_marked = block.get("cache_control") is not None
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        parts = [_unmarked(part) for part in block["content"]]
        plain["content"] = [part for part, _ in parts]
        is_marked = is_marked or any(marked for _, marked in parts)
    return plain, is_marked


def _chars(value: Any) -> int:
    """About how long a message, an item or a block of it is for the model."""
    if not isinstance(value, dict):
        return len(value) if isinstance(value, str) else sum(map(_chars, value or ()))
    kind = value.get("type")
    if kind == "image":
        return IMAGE_CHARS
    call = value.get("functionCall") or value.get("function") or value
    if "functionCall" in value or kind in ("tool_use", "function", "function_call", "custom_tool_call"):
        given = next(call[name] for name in ("input", "args", "arguments") if name in call)
        return len(call["name"]) + len(given if isinstance(given, str) else orjson.dumps(given).decode())
    if "functionResponse" in value:
        return len(orjson.dumps(value["functionResponse"]["response"]).decode())
    names = ("text", "thinking", "content", "tool_calls", "output", "parts")
    return sum(_chars(value[name]) for name in names if value.get(name))


@contextlib.contextmanager
def caching() -> Iterator[CachingProvider]:
    """A provider with an empty cache, until the block ends."""
    with listening(_Handler) as httpd:
        provider = httpd.provider = CachingProvider(httpd.url)
        yield provider


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        provider: CachingProvider = self.server.provider  # type: ignore[attr-defined]
        body = provider.body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answering = self._with_prefixes if self.path.endswith(tuple(PREFIXES)) else self._anthropic
        status, answer = answering(provider, body)
        data = orjson.dumps(answer)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _anthropic(self, provider: CachingProvider, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        usage = provider.count(body)
        if isinstance(usage, str):
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": usage}}
        content = provider.answers.pop(0) if provider.answers else [{"type": "text", "text": "."}]
        is_call = any(block["type"] == "tool_use" for block in content)
        return 200, {
            "id": "msg",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if is_call else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }

    def _with_prefixes(self, provider: CachingProvider, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        end = next(end for end in PREFIXES if self.path.endswith(end))
        tokens, read = provider.count_prefix(body, *PREFIXES[end])
        if "contents" in body:
            return 200, {"usageMetadata": {"promptTokenCount": tokens, "cachedContentTokenCount": read}}
        kind = "prompt" if "messages" in body else "input"
        return 200, {"usage": {f"{kind}_tokens": tokens, f"{kind}_tokens_details": {"cached_tokens": read}}}
