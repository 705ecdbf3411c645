"""The keys and the model of a request: whose they are, and why a host must not get them."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Mapping

from recede._hosts import TITLES, Host, base_urls, key_maker, model_maker, takes_key

_KEY = re.compile(r"[?&]key=([^&]*)")
_KEYS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_MAY_HAVE_KEY = re.compile(r"(?i)key|auth|token")  # names of headers, and of parts of a query
# How bearers begin that are no keys: logins of Claude, tokens of OAuth, of Google, of GitHub and its Copilot.
_LOGINS = ("sk-ant-oat", "eyJ", "ya29.", "gho_", "ghu_", "ghs_", "tid=")


class RefusedError(Exception):
    """A request must not be sent: its text says why, and what to type."""


def gemini_key(path: str) -> str | None:
    """Return the key in a path's query, where clients of Gemini have it; None without one."""
    found = _KEY.search(path)
    return found[1] if found else None


def credentials(path: str, headers: Mapping[str, str]) -> list[str]:
    """Return what identifies the client of a request; names of headers are in small letters."""
    return [*(headers.get(name, "") for name in _KEYS), gemini_key(path) or ""]


def has_login(headers: Mapping[str, str]) -> bool:
    """Whether a request has the login of a subscription, which belongs to its agent, instead of a key of an API.

    Names of headers are in small letters.
    """
    is_oauth = "oauth" in headers.get("anthropic-beta", "")
    keys = (_bare(headers.get(name, "")) for name in _KEYS)
    return "chatgpt-account-id" in headers or is_oauth or any(key.startswith(_LOGINS) for key in keys)


def _bare(value: str) -> str:
    """Return a key without the word before it, which is "Bearer"."""
    return (value.split() or [""])[-1]


def _given(path: str, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """List whatever may be a key: parts of headers and of the query, with their names."""
    query = urllib.parse.parse_qsl(path.partition("?")[2])
    return [(name.lower(), _bare(value)) for name, value in (*headers, *query) if _MAY_HAVE_KEY.search(name)]


def refused_key(
    row: Host | None, is_usual: bool, form: str, path: str, headers: Iterable[tuple[str, str]], command: str
) -> str | None:
    """Say why a host must not have the keys of a request; None if it may.

    A host that is not in the table may have any key: somebody chose it. `is_usual` says that nobody did.
    """
    if row is None:
        return None
    given = _given(path, headers)
    for _, key in given:
        if not takes_key(row, key):
            return _instead(f"its key is {{}}'s, not {TITLES[row.maker]}'s", key_maker(key) or "", form, command)
    names = {name for name, _ in given}
    if is_usual and "api-key" in names and "authorization" not in names:
        return _instead(f"its key is {{}}'s, not {TITLES[row.maker]}'s", "azure", form, command)
    return None


def refused_model(row: Host, form: str, model: str | None, command: str) -> str | None:
    """Say why a maker to which requests go by default must not have one for a model; None if it may."""
    maker = model_maker(model or "")
    if maker in (None, row.maker):
        return None
    return _instead(f"its model is {{}}'s, and nobody said that it goes to {TITLES[row.maker]}", maker, form, command)


def _instead(why: str, maker: str, form: str, command: str) -> str:
    """End a refusal with the line to type: with each base URL of the maker for this form of requests."""
    after = f" -- {command}" if command else ""
    lines = [f"`recede proxy --upstream {url}{after}`" for url in base_urls(maker, form)]
    what = " or ".join(lines) or f"`recede proxy --upstream URL{after}`, with the address that it is for"
    return f"this request is not sent: {why.format(TITLES[maker])}. Type {what}"


def is_switched_off(headers: Mapping[str, str]) -> bool:
    """Whether a request asks not to be masked."""
    return headers.get("x-recede", "").strip().lower() == "off"
