"""Fields by which a provider keeps the history itself: such a request sends the rest, and is not masked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

KEPT_BY_PROVIDER = ("previous_response_id", "conversation", "thread")


def kept_words(request: Mapping[str, Any], fields: Iterable[str] = KEPT_BY_PROVIDER) -> str | None:
    """Word the warning for a request whose history the provider keeps, as one of these fields says; else None."""
    kept = next((name for name in fields if request.get(name)), None)
    return kept and f"requests with {kept!r} are sent as they are, since the provider keeps their history"
