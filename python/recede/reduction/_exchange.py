"""What an engine and the package exchange, apart from the results: `import recede` needs none of it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

__all__ = [
    "CountRequest",
    "MessageTexts",
    "ObservationTexts",
    "Repair",
    "ReplayedRequest",
    "SentView",
    "SummaryRequest",
]


class SummaryRequest(NamedTuple):
    """An engine's request for a summary; it is then called again with one.

    Attributes:
        dropped: the messages to summarize: their indices, or in bytes their spans.
        previous: the summary of an earlier reduction, or None.
        built_in: the built-in summary.
    """

    dropped: list[Any]
    previous: str | None
    built_in: str


class CountRequest(NamedTuple):
    """An engine's request for the costs of texts; it is then called again with them.

    Attributes:
        texts: new texts, such as cut observations.
    """

    texts: list[str]


class Repair(NamedTuple):
    """A step that repairs orphans.

    Attributes:
        kind: what it does.
        message: the message that is dropped or changed, or before which one is added.
        block: the block that is dropped, or before which one is added; None for whole messages.
        calls: the calls that are answered, each by its message and its block.
    """

    kind: Literal["drop_message", "drop_block", "add_block", "add_message"]
    message: int
    block: int | None
    calls: list[tuple[int, int]]


class ObservationTexts(NamedTuple):
    """What a token counter counts of an observation.

    Attributes:
        text: the text.
        images: the number of its images.
        masked: what masking would put in its place; None if it stays.
    """

    text: str
    images: int
    masked: str | None


class MessageTexts(NamedTuple):
    """What a token counter counts of a message.

    Attributes:
        text: its own texts and calls.
        constant_chars: the characters that its calls count besides.
        images: the number of its own images.
        observations: its observations.
    """

    text: str
    constant_chars: int
    images: int
    observations: list[ObservationTexts]


class ReplayedRequest(NamedTuple):
    """A request of a session that is replayed.

    Attributes:
        messages: the number of messages before it.
        answer_chars: characters of its answer.
    """

    messages: int
    answer_chars: int


class SentView(NamedTuple):
    """What a policy would have sent at a request; see `recede.costs.ReplayedTurn`."""

    view_chars: int
    cached_chars: int
    written_chars: int
    masked_count: int
    summarized_turns: int
    summary_input_chars: int
    summary_output_chars: int
