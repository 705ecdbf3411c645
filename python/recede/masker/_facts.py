"""How messages are read, compared and masked: dicts, and those of any type by the protocol of an adapter."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from recede import _engine
from recede._bodies import loads
from recede._errors import TranscriptError
from recede._objects import plain_message, restored
from recede.reduction._counting import all_costs, costs_of, cut_costs
from recede.reduction._input import forms_of
from recede.reduction._policy import compiled, image_chars_of
from recede.reduction._unrecognized import AGENTS, is_signed
from recede.session._known import DictComparison

if TYPE_CHECKING:
    from recede.types import TokenCounter


_M = TypeVar("_M")


class CallFacts(NamedTuple):
    """The facts of a tool call.

    Attributes:
        id: what its result refers to; None where calls have none, and pair with results by their place.
        name: the tool.
        chars: characters of its arguments.

    Example:
        >>> from recede.masker import CallFacts
        >>> CallFacts("call_1", "bash", 27)
        CallFacts(id='call_1', name='bash', chars=27)
    """

    id: str | None = None
    name: str | None = None
    chars: int = 0


class ResultFacts(NamedTuple):
    """The facts of a tool result.

    Attributes:
        id: that of its call; None where results have none.
        name: the tool, for shapes that name it here; otherwise it is that of the call.
        chars: characters of its text.
        lines: lines of its text; used only if the placeholder names them.
        images: images and documents in it.
        is_error: whether it is flagged as an error, for `keep_errors`.
        pinned: whether it is never masked.

    Example:
        >>> from recede.masker import ResultFacts
        >>> ResultFacts("call_1", chars=4_200).pinned
        False
    """

    id: str | None = None
    name: str | None = None
    chars: int = 0
    lines: int = 1
    images: int = 0
    is_error: bool = False
    pinned: bool = False


class Facts(NamedTuple):
    """The facts of a message: all that masking must know of it.

    Attributes:
        role: ``"assistant"`` or ``"model"`` if the model made it; else any.
        chars: characters of its text, without those of its calls and results.
        calls: its tool calls, each a `CallFacts` or the beginning of such a tuple.
        results: its tool results, each a `ResultFacts` or the beginning of such a tuple.
        images: images and documents in it, without those of its results.
        signed: whether it has reasoning of the model that its provider may verify (docs/reasoning.md).

    Example:
        >>> from recede.masker import Facts
        >>> Facts("tool", results=[("call_1", None, 4_200)]).results
        [('call_1', None, 4200)]
    """

    role: str
    chars: int = 0
    calls: Sequence[tuple[Any, ...]] = ()
    results: Sequence[tuple[Any, ...]] = ()
    images: int = 0
    signed: bool = False


class Adapter(Protocol[_M]):
    """How a `Masker` reads and masks messages of a type of your own.

    `facts` and `masked` are required. Six more methods are used if the object has them:

    - ``text(message, result_index) -> str``: the text of a result. Without it nothing is taken
      for a placeholder, texts cannot be cut, and `recall` and `keep_matching` are refused.
    - ``summary(text) -> message``: a message of the user with this text. A `summarizer` needs it.
    - ``plain(message) -> dict``: the message as a dict that `reduce` reads, without its reasoning, for the questions
      of `recede.summarizers`. Without it they have ``str(message)``.
    - ``unsigned(message) -> message``: a copy without its signed reasoning, or with a short text if it has nothing
      else. Messages that are ``signed`` need it.
    - ``same(old, new) -> bool``: whether two messages are equal, where ``==`` does not say so.
    - ``key(messages) -> Hashable``: what conversations have in common that may be the same; by default the facts of
      their first user message.

    They are called while the masker is locked, so they must not use it.

    Example:
        >>> from recede.masker import Facts
        >>> class OfPairs:
        ...     def facts(self, message):
        ...         role, text = message
        ...         return Facts(role, results=[(None, None, len(text))]) if role == "tool" else Facts(role, len(text))
        ...     def masked(self, message, texts):
        ...         return "tool", texts[0]
        >>> import recede
        >>> masker = recede.masker.Masker(OfPairs(), keep=0, boundary="sliding")
        >>> masker.view([("user", "Go."), ("assistant", "ls"), ("tool", "x" * 900), ("assistant", "ok")])[2]
        ('tool', '[old tool output cleared to save context]')
    """

    def facts(self, message: _M, /) -> Facts:
        """The facts of a message."""

    def masked(self, message: _M, texts: Mapping[int, str], /) -> _M:
        """A copy of a message with these texts in place of those of its results, by their place among them."""


# Conversations are distinguished by their first user message, if it is one of so many.
_FIRST_MESSAGES = 8
_SIGNED = Facts._fields.index("signed")
NEEDS = "{} needs an adapter with a method {!r}"
_CALL_CHARS = 20  # of a call besides its name and arguments


class DictReader(DictComparison):
    """Dicts in any shape that `reduce` reads, and objects of clients."""

    is_signed = staticmethod(is_signed)

    plain = None  # a question reads them as they are

    def extend(self, session: Any, messages: list[Any], first: int) -> bool:
        """Append the messages from this one on to a session. Returns whether all are plain dicts."""
        new = messages[first:]
        try:
            session.extend_dicts(new, first)
        except TranscriptError as fault:
            session.extend_dicts(forms_of(new, fault).messages, first)
            return False
        return True

    def costs(self, policy: Any, counter: TokenCounter, messages: list[Any]) -> Any:
        """The costs of messages, and of their long results as a limit cuts them."""
        return all_costs(_engine.engine.texts(list(map(plain_message, messages)), policy), counter, image_chars_of({}))

    def masked(self, message: Any, texts: Mapping[int, str]) -> Any:
        """A copy of a message with these texts for its results."""
        return self._changed(message, texts, False)

    def unsigned(self, message: Any, texts: Mapping[int, str]) -> Any:
        """The same without the signed reasoning of the message."""
        return self._changed(message, texts, True)

    def _changed(self, message: Any, texts: Mapping[int, str], drops_reasoning: bool) -> Any:
        change = sorted(texts.items()), drops_reasoning
        if isinstance(message, dict):
            try:
                return _engine.engine.masked_message(message, *change)
            except TranscriptError:
                pass  # it holds objects of a client
        form = plain_message(message)
        return restored(message, form, _engine.engine.masked_message(form, *change))

    def summary(self, text: str, message: bytes) -> Any:
        """The message of a summary, which the core has written."""
        return loads(message)

    def joined(self, message: Any, summary: dict[str, Any]) -> Any:
        """A copy of a message that has the content of a summary as its last block."""
        [field] = summary.keys() - {"role"}
        return {**message, field: [*message[field], *summary[field]]}

    def text(self, message: Any, place: int) -> str:
        return self.read(message, place)[0]

    def read(self, message: Any, place: int) -> tuple[str, int]:
        """The text of a result, and how many images it has."""
        (texts,) = _engine.engine.texts([plain_message(message)], compiled(_engine.engine, "truncate", {}))
        observation = texts.observations[place]
        return str(observation.text), int(observation.images)

    def key(self, messages: list[Any]) -> Hashable:
        """A key that conversations that begin alike have in common."""
        for message in messages[:_FIRST_MESSAGES]:
            if isinstance(message, dict) and (message.get("role") == "user" or message.get("type") == "user_input"):
                return _content_of(message)
        return None


class AdapterReader:
    copies = False

    def __init__(self, adapter: Any) -> None:
        self._facts = adapter.facts
        self.masked: Callable[[Any, Mapping[int, str]], Any] = adapter.masked
        self.text: Callable[[Any, int], str] | None = getattr(adapter, "text", None)
        self._unsigned: Callable[[Any], Any] | None = getattr(adapter, "unsigned", None)
        self.plain: Callable[[Any], dict[str, Any]] | None = getattr(adapter, "plain", None)
        self.summary: Callable[[str, bytes], Any] | None = None
        if callable(getattr(adapter, "summary", None)):
            self.summary = lambda text, message: adapter.summary(text)
        self._same: Callable[[Any, Any], bool] | None = getattr(adapter, "same", None)
        self._key: Callable[[list[Any]], Hashable] | None = getattr(adapter, "key", None)

    def extend(self, session: Any, messages: list[Any], first: int) -> bool:
        """Append the messages from this one on to a session. Texts are read only where masking depends on them."""
        facts = list(map(self._facts, messages[first:]))
        needed = session.extend_facts(facts)
        if self._unsigned is None and any(any(one[_SIGNED:]) for one in facts):
            raise TypeError(NEEDS.format("signed reasoning", "unsigned"))
        if self.text is not None:
            session.give_texts([((index, place), self.text(messages[index], place)) for index, place in needed])
        return False

    def unsigned(self, message: Any, texts: Mapping[int, str]) -> Any:
        """A copy of a message without its signed reasoning, and with these texts for its results."""
        assert self._unsigned is not None, "extend refuses signed messages without it"
        return self._unsigned(self.masked(message, texts) if texts else message)

    def is_signed(self, message: Any) -> bool | None:
        facts = Facts(*self._facts(message))
        return facts.signed if facts.role in AGENTS else None

    def costs(self, policy: Any, counter: TokenCounter, messages: list[Any]) -> Any:
        """The costs of messages: of results by their texts, if the adapter has them, and of all else by characters."""
        own, observations, cuts = [], [], {}
        for message in messages:
            facts = Facts(*self._facts(message))
            calls = [CallFacts(*call) for call in facts.calls]
            chars = sum(len(call.name or "") + call.chars + _CALL_CHARS for call in calls)
            own.append((facts.chars + chars + facts.images * image_chars_of({}), 0))
            for place, result in enumerate(ResultFacts(*one) for one in facts.results):
                if self.text is None:
                    observations.append(
                        (result.chars, min(result.chars, len(_engine.engine.mask_observation("x" * 999, policy))))
                    )
                    continue
                form = {"role": "tool", "tool_call_id": result.id, "content": self.text(message, place)}
                texts = _engine.engine.texts([form], policy)
                observations += costs_of(texts, counter, image_chars_of({}))[1]
                cuts.update(cut_costs(texts, counter))
        return own, observations, cuts

    def read(self, message: Any, place: int) -> tuple[str, int]:
        text = self.text(message, place) if self.text else ""
        return text, ResultFacts(*Facts(*self._facts(message)).results[place]).images

    def prefix(self, old: list[Any], new: list[Any]) -> tuple[int, list[int]]:
        return _engine.engine.common_prefix(old, new, self._same)[0], []

    def snapshots(self, messages: list[Any]) -> list[Any]:
        return list(map(self._facts, messages))

    def unchanged(self, snapshots: list[Any], messages: list[Any]) -> tuple[int, list[int]]:
        pairs = enumerate(zip(snapshots, messages, strict=False))
        changed = (index for index, (facts, message) in pairs if facts != self._facts(message))
        return next(changed, min(len(snapshots), len(messages))), []

    def key(self, messages: list[Any]) -> Hashable:
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


def said_around(request: Mapping[str, Any]) -> bytes:
    """Return a key of system prompt and tools, as a provider compares them that verifies reasoning."""
    around = {name: request[name] for name in ("system", "tools") if request.get(name) is not None}
    written = json.dumps({**around, "messages": []}, default=str).encode()
    try:
        return _engine.engine.said_around(written)
    except TranscriptError:  # it has NaN, or is very deep: compared as it is written
        return written
