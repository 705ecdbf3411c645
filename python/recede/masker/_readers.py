"""How messages are read, compared and masked: dicts, and those of an adapter."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from recede._errors import TranscriptError
from recede._objects import plain_message, restored
from recede.masker._facts import Facts, ResultFacts
from recede.reduction._input import forms_of
from recede.reduction._policy import compiled
from recede.session._known import DictComparison

__all__ = ["AdapterReader", "DictReader"]

# Conversations are distinguished by their first user message, if it is one of so many.
_FIRST_MESSAGES = 8


class DictReader(DictComparison):
    """Dicts in any shape that `reduce` reads, and objects of clients."""

    def extend(self, session: Any, messages: list[Any], first: int) -> bool:
        """Append the messages from this one on to a session. Returns whether all are plain dicts."""
        new = messages[first:]
        try:
            session.extend_dicts(new, first)
        except TranscriptError as fault:
            session.extend_dicts(forms_of(new, fault).messages, first)
            return False
        return True

    def masked(self, message: Any, texts: Mapping[int, str]) -> Any:
        """A copy of a message with these texts for its results."""
        pairs = sorted(texts.items())
        if isinstance(message, dict):
            try:
                return self._core.masked_message(message, pairs)
            except TranscriptError:
                pass  # it holds objects of a client
        form = plain_message(message)
        return restored(message, form, self._core.masked_message(form, pairs))

    def text(self, message: Any, place: int) -> str:
        """The text of a result."""
        return self.read(message, place)[0]

    def read(self, message: Any, place: int) -> tuple[str, int]:
        """The text of a result, and how many images it has."""
        (texts,) = self._core.texts([plain_message(message)], compiled(self._core, "truncate", {}))
        observation = texts.observations[place]
        return str(observation.text), int(observation.images)

    def key(self, messages: list[Any]) -> Hashable:
        """What conversations that begin alike have in common."""
        for message in messages[:_FIRST_MESSAGES]:
            if isinstance(message, dict) and message.get("role") == "user":
                return _content_of(message)
        return None


class AdapterReader:
    """Messages that an adapter reads."""

    copies = False

    def __init__(self, core: Any, adapter: Any) -> None:
        self._core = core
        self._facts = adapter.facts
        self.masked: Callable[[Any, Mapping[int, str]], Any] = adapter.masked
        self.text: Callable[[Any, int], str] | None = getattr(adapter, "text", None)
        self._same: Callable[[Any, Any], bool] | None = getattr(adapter, "same", None)
        self._key: Callable[[list[Any]], Hashable] | None = getattr(adapter, "key", None)

    def extend(self, session: Any, messages: list[Any], first: int) -> bool:
        """Append the messages from this one on to a session. Texts are read only where masking depends on them."""
        needed = session.extend_facts(list(map(self._facts, messages[first:])))
        if self.text is not None:
            session.give_texts([((index, place), self.text(messages[index], place)) for index, place in needed])
        return False

    def read(self, message: Any, place: int) -> tuple[str, int]:
        """The text of a result, and how many images it has."""
        text = self.text(message, place) if self.text else ""
        return text, ResultFacts(*Facts(*self._facts(message)).results[place]).images

    def prefix(self, old: list[Any], new: list[Any]) -> tuple[int, list[int]]:
        """How many of the first messages are the same."""
        found: tuple[int, list[int]] = self._core.common_prefix(old, new, self._same)
        return found[0], []

    def snapshots(self, messages: list[Any]) -> list[Any]:
        """The facts of messages."""
        return list(map(self._facts, messages))

    def unchanged(self, snapshots: list[Any], messages: list[Any]) -> tuple[int, list[int]]:
        """How many of the first messages have the facts that they had."""
        pairs = enumerate(zip(snapshots, messages, strict=False))
        changed = (index for index, (facts, message) in pairs if facts != self._facts(message))
        return next(changed, min(len(snapshots), len(messages))), []

    def key(self, messages: list[Any]) -> Hashable:
        """What conversations that begin alike have in common."""
        if self._key is not None:
            return self._key(messages)
        for message in messages[:_FIRST_MESSAGES]:
            facts = Facts(*self._facts(message))
            if facts.role == "user":
                return facts.chars, facts.images
        return None


def _content_of(message: dict[str, Any]) -> Hashable:
    """The texts of a message, hashed: of a string, or of parts."""
    content = message.get("content", message.get("parts"))
    if isinstance(content, list):
        return hash(tuple(str(part.get("text")) if isinstance(part, dict) else "" for part in content))
    return hash(str(content))
