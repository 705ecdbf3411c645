"""Warnings of what is not understood: messages of unknown shapes and roles, and results that therefore stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from recede import _engine
from recede._bodies import history_of
from recede._errors import TranscriptError, meant

_MOST_REQUESTS = 40
_WITHOUT_RESULTS = (
    "%d requests had no tool result that recede recognizes, so nothing was masked: send the outputs of tools as "
    "results of calls, not as text of the user, or name them in an adapter of recede.masker.Masker"
)
_CONTENTS = frozenset({"text", "image", "audio", "document", "video"})
_KNOWN_SHAPES = (
    "they stay; recede reads role and content, and other messages of OpenAI, Responses, Anthropic, Converse, Gemini, "
    "Interactions: convert them"
)
_FEW_MESSAGES = 3  # fewer are no conversation
_ROLES = ("system", "developer", "user", "assistant", "model", "tool")
_MAX_FIELDS, _MAX_FIELD_CHARS = 12, 40
AGENTS = ("assistant", "model")
_MOST_AFTER_ANSWER = 16  # messages among which the newest answer is
_UNNAMED = (
    "results are masked before reasoning that is signed, and nothing names the model: one that verifies its reasoning "
    "refuses that (docs/reasoning.md). Give provider=, such as 'claude-opus-5-5', or the request that names the model"
)


def unrecognized(messages: list[Any]) -> str | None:
    """Word the warning about a history in which nothing is of a known shape; None if something is, or all is empty."""
    objects = [message for message in messages if isinstance(message, dict)]
    try:
        return _words(objects) if _engine.engine.is_unrecognized(objects) else None
    except TranscriptError:
        return None


def _words(messages: list[Any]) -> str | None:
    """Word the same, where nothing is; None for the contents of one message, which clients make of them."""
    objects = [message for message in messages if isinstance(message, dict)]
    types = [message["type"] for message in objects if isinstance(message.get("type"), str)]
    if len(types) == len(objects) and _CONTENTS.issuperset(types):
        return None
    fields = _shown(field for message in objects for field in message)
    of_types = f" and the types {_shown(types)}" if types else ""
    return f"nothing was recognized in messages with the fields {fields}{of_types}: {_KNOWN_SHAPES}"


def _shown(words: Iterable[Any]) -> str:
    names = [str(word)[:_MAX_FIELD_CHARS] for word in dict.fromkeys(words)]
    shown = ", ".join(names[:_MAX_FIELDS]) + (", …" if len(names) > _MAX_FIELDS else "")
    return shown.encode(errors="backslashreplace").decode()


def warn(history: list[Any] | bytes, is_unrecognized: bool, types: list[str], roles: list[str]) -> None:
    """Log warnings, each once, of what is not understood.

    Args:
        history: what was reduced.
        is_unrecognized: whether nothing in it was: its view would silently be the history.
        types: those of results that stay, since their text is in an unknown place.
        roles: those that no shape has, of messages without calls and results.
    """
    try:
        read = history_of(history) if is_unrecognized and isinstance(history, bytes) else history
        said = _words(read) if is_unrecognized and isinstance(read, list) else None
    except (RecursionError, ValueError):  # the core reads JSON that Python does not: deeper levels, longer numbers
        said = None
    if types:
        named = ", ".join(kind[:_MAX_FIELD_CHARS] for kind in types).encode(errors="backslashreplace").decode()
        said = f"results of type {named} stay as they are, and are counted: where their text is, is unknown"
    if said is not None:
        from recede._encodable import warn_once  # lazily: logging takes longer to import than all of recede

        warn_once(said)
    warn_of_roles(roles)


def warn_of_roles(roles: list[str]) -> None:
    """Log a warning, once, of each role that no shape has."""
    if roles:
        from recede._encodable import warn_once

        for role in roles:
            warn_once(_of_role(role))


@lru_cache(maxsize=64)
def _of_role(role: str) -> str:
    hint = meant(role, _ROLES) or ": the result of a tool has the role 'tool'"
    return f"messages of the role {role[:_MAX_FIELD_CHARS]!r} are never masked{hint}"


def is_signed(message: Any) -> bool | None:
    """Whether an answer has signed reasoning; None of any other message."""
    from recede._objects import plain_message

    form = plain_message(message)
    if form.get("role") not in AGENTS:
        return None
    left = _engine.engine.masked_message(form, [], True)
    is_left_out = any(form.get(name) and form[name] != left[name] for name in ("content", "parts"))
    return (len(left) < len(form) or is_left_out) and _may_verify(form)


def _may_verify(answer: dict[str, Any]) -> bool:
    """Whether no signature of an answer names a model that does not verify it, as many do in clear."""
    import re
    from base64 import b64decode

    from recede.providers import model_verifies

    signatures = re.findall(r"'(?:signature|data)': '([A-Za-z0-9+/]{16,160})", str(answer))
    begun = b" ".join(b64decode(one[: len(one) // 4 * 4]) for one in signatures)
    named = [name.decode() for name in re.findall(rb"claude-[a-z0-9-]+", begun)]
    return not named or any(map(model_verifies, named))


def warn_of_unnamed_model(messages: Sequence[Any], is_signed: Callable[[Any], bool | None] = is_signed) -> None:
    """Warn once where masks precede signed reasoning of a model that nothing names."""
    answers = map(is_signed, islice(reversed(messages), _MOST_AFTER_ANSWER))
    if next((one for one in answers if one is not None), False):
        from recede._encodable import warn_once

        warn_once(_UNNAMED)


class RequestsWithoutResults:
    """Counts requests until one has a tool result that is recognized, or a line says that none had any."""

    def __init__(self) -> None:
        self._count = 0
        self._is_settled = self._is_said = False

    def read(self, is_unrecognized: bool, messages: Callable[[], list[Any]]) -> None:
        """Say once that nothing in a request is of a known shape."""
        if not is_unrecognized or self._is_said:
            return
        from recede._encodable import warn_once
        from recede._objects import plain_message

        if (said := _words(list(map(plain_message, messages())))) is not None:
            self._is_said = True
            warn_once(said)

    def note(self, messages: Callable[[], int], has_results: Callable[[], bool]) -> None:
        """Count a request with so many messages; one without an answer of the model is no reason for a line."""
        if self._is_settled:
            return
        self._count += 1
        self._is_settled = has_results()
        if not self._is_settled and self._count >= _MOST_REQUESTS and messages() >= _FEW_MESSAGES:
            import logging  # lazily: it takes longer to import than all of recede

            self._is_settled = True
            logging.getLogger("recede").warning(_WITHOUT_RESULTS, self._count)
