"""What a mask would have hidden: texts that an agent wrote again, and that nothing in its context had but tool results.

Grams are strings here, and kept in sets; the core has fingerprints of them in one table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from oracle.outline import Message
from oracle.turns import Turns
from oracle.walk import walk

GRAM = 16
"""Code points of a gram, and grams of a stretch."""
HALF = 131_072
"""Code points of each end of a long text; what is between them is not read."""
FEWEST_CHARS = 12
"""Different characters of a quotation; a divider has fewer."""

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_LITERAL = re.compile(r"""\\([nt"'])""")
_LINE_START = re.compile(r"^(?:[ \t]*[0-9]+[→:\t]|[^\s:]+:[0-9]+:)?[+-]?", re.MULTILINE)
_SPACE = re.compile(r"\s+")
# Of what an agent sends, these are no texts; arguments of calls may have any key.
_NOT_READ = frozenset(
    """id type role name data status call_id tool_call_id tool_use_id signature encrypted_content
    thoughtSignature""".split()
)
_ARGUMENTS = ("arguments", "input", "args", "action")


class Quotation(NamedTuple):
    """A text that the answer to one request quotes.

    Attributes:
        request: its number among all of the context, from 0.
        sources: of each gram, the results that have it.
        text: the normalized text of all grams.
    """

    request: int
    sources: list[frozenset[int]]
    text: str

    @property
    def stretches(self) -> list[frozenset[int]]:
        """The sources of each of its stretches."""
        starts = range(len(self.sources) - GRAM + 1)
        return [frozenset().union(*self.sources[at : at + GRAM]) for at in starts]

    @property
    def result(self) -> int:
        """The newest source of the stretch whose newest source is oldest."""
        return min(max(sources) for sources in self.stretches)

    def is_hidden(self, hidden: Collection[int]) -> bool:
        """Whether all sources of some stretch are hidden."""
        return any(sources <= set(hidden) for sources in self.stretches)


def normalized(text: str, is_numbered: bool = False) -> str:
    """A text as it is compared; `is_numbered`: without line numbers and marks of differences at line starts."""
    text = _ANSI.sub("", text)
    text = _LITERAL.sub(lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)
    return _SPACE.sub(" ", _LINE_START.sub("", text) if is_numbered else text)


def grams(text: str, is_numbered: bool = False) -> Iterator[list[str]]:
    """The grams of each end of a text, in order."""
    for part in [text] if len(text) <= 2 * HALF else [text[:HALF], text[-HALF:]]:
        plain = normalized(part, is_numbered)
        yield [plain[at : at + GRAM] for at in range(len(plain) - GRAM + 1)]


def quotations(messages: Sequence[dict[str, Any]], shown: int = 0, kept: Collection[int] = ()) -> list[Quotation]:
    """What the answers of a context quote.

    Args:
        messages: the context.
        shown: how many of its first messages are those of an earlier one; they are visible.
        kept: the results that are never hidden; they are visible too.
    """
    outline = walk(list(messages))
    starts = Turns(outline).starts
    visible: set[str] = set()
    sources: dict[str, set[int]] = {}
    found: list[Quotation] = []
    for message, source in zip(outline.messages, messages, strict=True):
        request = sum(start <= message.index for start in starts) - 1
        is_answer = message.is_agent_made and starts[request] >= shown
        for text in own_texts(source, message):
            for part in grams(text) if is_answer else ():
                found += quoted(part, request, visible, sources)
            for form in [False] if message.is_agent_made else [False, True]:
                visible.update(*grams(text, form))
        for result in message.results:
            text = result.text.joined
            if message.index < shown or result.index in kept:
                visible.update(*grams(text), *grams(text, True))
            else:
                for gram in {gram for part in grams(text, True) for gram in part}:
                    sources.setdefault(gram, set()).add(result.index)
    return found


def quoted(text: list[str], request: int, visible: set[str], sources: dict[str, set[int]]) -> Iterator[Quotation]:
    """The runs of enough grams that results have and that are not visible."""
    start = 0
    while start < len(text):
        end = start
        while end < len(text) and text[end] in sources and text[end] not in visible:
            end += 1
        run = text[start:end]
        said = "".join(gram[0] for gram in run) + "".join(gram[1:] for gram in run[-1:])
        if len(run) >= GRAM and len(set(said)) >= FEWEST_CHARS:
            yield Quotation(request, [frozenset(sources[gram]) for gram in run], said)
        start = end + 1


def own_texts(source: dict[str, Any], message: Message) -> Iterator[str]:
    """The texts of a message besides its results, in order."""
    of_results = {(id(piece.holder), piece.key) for result in message.results for piece in result.text.pieces}
    of_results |= {(id(r.text.json.holder), r.text.json.key) for r in message.results if r.text.json}

    def texts(value: Any, is_argument: bool) -> Iterator[str]:
        pairs: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in pairs:
            if (id(value), key) in of_results or (key in _NOT_READ and not is_argument):
                continue
            is_of_call = is_argument or key in _ARGUMENTS
            if isinstance(child, str):
                inner = parsed(child) if is_of_call and not is_argument else None
                if inner is None:
                    yield child
                else:
                    yield from texts(inner, True)
            elif isinstance(child, (dict, list)):
                yield from texts(child, is_of_call)

    return texts(source, False)


def parsed(text: str) -> Any:
    """The object or list that a text has as JSON; None if it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None
