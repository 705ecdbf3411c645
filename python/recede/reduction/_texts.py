"""The texts that summarizers gave to `reduce`, which asks for the same ones again while a list grows."""

from __future__ import annotations

import hashlib
import json
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from recede._summarizer import bound, is_async, text_of_summary

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 64
"""So many texts of each summarizer are remembered."""

_known: dict[int, tuple[weakref.ref[Any], OrderedDict[Any, str]]] = {}
"""Of each summarizer, by its id: whether it still lives, and its texts, by what they tell of."""


def remembering(summarizer: Any) -> Callable[[list[Any], str | None], Any]:
    """The summarizer, which is not asked for a text that it gave last; as long as it lives.

    Threads may share it: each step is one of the dict, and what two ask at once is asked twice.
    """
    if is_async(summarizer):
        raise TypeError("the summarizer is async, and reduce is not: give a sync one, or use a History and its aview")

    def text_of(messages: list[Any], previous: str | None) -> Any:
        # A bound method is another object each time: what it is bound to lives, and its function says which it is.
        owner, function = getattr(summarizer, "__self__", summarizer), getattr(summarizer, "__func__", None)
        try:
            texts = _texts_of(owner)
            key = function, hashlib.sha256(json.dumps([messages, previous]).encode()).digest()
        except (TypeError, ValueError, RecursionError):  # nothing can refer to it weakly, or they are no JSON
            return bound("summarizer", summarizer)(messages, previous)
        text = texts.pop(key, None)
        if text is None:
            text = text_of_summary(bound("summarizer", summarizer)(messages, previous))
            if not isinstance(text, str) or not text.strip():
                return text  # it failed
        texts[key] = text  # the newest is the last
        if len(texts) > _MOST:
            texts.popitem(last=False)
        return text

    return text_of


def _texts_of(owner: Any) -> OrderedDict[Any, str]:
    place = id(owner)
    known = _known.get(place)
    if known is None or known[0]() is not owner:
        known = weakref.ref(owner, lambda _: _known.pop(place, None)), OrderedDict()
        _known[place] = known
    return known[1]
