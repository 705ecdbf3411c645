"""The facts of a message of any type, and the protocol by which a `Masker` reads and masks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

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


class Adapter(Protocol[_M]):
    """How a `Masker` reads and masks messages of a type of your own.

    `facts` and `masked` are required. Four more methods are used if the object has them:

    - ``text(message, result_index) -> str``: the text of a result. Without it nothing is taken
      for a placeholder, texts cannot be cut, and `Masker.recall` does not work.
    - ``summary(text) -> message``: a message of the user with this text. A `summarizer` needs it.
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
