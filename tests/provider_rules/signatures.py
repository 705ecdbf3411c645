"""Signatures of reasoning: an HMAC over the model, the prefix, the block before, and the text.

They begin with the names of the model and the account in clear, as real ones do. A model that does not verify its
reasoning signs the text alone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

_SECRET = b"the provider's"
_MARKS = ("cache_control", "prompt_cache_breakpoint")


class Signed(NamedTuple):
    """What a signature says of its block; `prefix` and `before` are empty if the model does not verify."""

    model: str
    account: str
    prefix: str
    before: str


UNBOUND = Signed("", "", "", "")


def signature_of(text: str, said: Signed = UNBOUND) -> str:
    """The signature that the provider gives to reasoning."""
    clear = "|".join(said)
    mac = hmac.new(_SECRET, f"{clear}|{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:24]
    return base64.b64encode(f"{clear}|{mac}".encode()).decode()


def read(signature: Any, text: str) -> Signed | None:
    """What a signature says; None if the provider has not given it to this text."""
    try:
        *clear, _ = base64.b64decode(str(signature), validate=True).decode().split("|")
        said = Signed(*clear)
    except (ValueError, TypeError):
        return None
    return said if signature_of(text, said) == signature else None


def signed(thinking: str) -> str:
    """The signature of a model that does not verify its reasoning."""
    return signature_of(thinking)


class Prefix:
    """A digest over the parts of a request, in order, that is independent of cache marks and the order of keys."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=12)

    def add(self, *parts: Any) -> None:
        self._digest.update(canonical(parts))

    def hex(self) -> str:
        return self._digest.hexdigest()


def canonical(value: Any) -> bytes:
    """A value as JSON without cache marks, with its keys in order."""
    written = _written(value)
    return (_written(_unmarked(value)) if any(mark in written for mark in _MARKS) else written).encode()


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unmarked(one) for name, one in value.items() if name not in _MARKS}
    return [_unmarked(one) for one in value] if isinstance(value, (list, tuple)) else value


def tools_in_order(tools: Iterable[Any]) -> list[Any]:
    """Tools by name, without those that are loaded later."""
    return sorted((one for one in tools if not one.get("defer_loading")), key=lambda one: json.dumps(one.get("name")))
