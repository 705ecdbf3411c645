"""Values that an engine and the package exchange, apart from the results: `import recede` needs none of them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


class SummaryRequest(NamedTuple):
    """An engine's request for a summary; it is then called again with one.

    Attributes:
        dropped: the messages to summarize: their indices; in bytes their spans; of a session themselves.
        previous: the summary of an earlier reduction, or None.
        built_in: the built-in summary.
        key: that of the summary, in a session.
    """

    dropped: list[Any]
    previous: str | None
    built_in: str
    key: int = 0


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
        field: the field that has the blocks; None for whole messages.
        answer: the JSON of the block or the message that is added, or nothing.
        source: the message and the place of a block that is added here, and dropped there; or None.
    """

    kind: Literal["drop_message", "drop_block", "add_block", "add_message"]
    message: int
    block: int | None
    field: str | None
    answer: bytes
    source: tuple[int, int] | None = None


class ObservationTexts(NamedTuple):
    """Texts of an observation that a token counter counts.

    Attributes:
        text: the text.
        images: the number of its images.
        masked: what masking would put in its place; None if it stays.
        cut: what a limit leaves of it, if it is long; None without a limit.
    """

    text: str
    images: int
    masked: str | None
    cut: str | None = None


class MessageTexts(NamedTuple):
    """Texts of a message that a token counter counts.

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


class FactsUpdate(NamedTuple):
    """Changes of the view of a session of facts, and its sizes.

    Attributes:
        first_changed: the first message that changed.
        message_indices, result_indices, text_sizes, texts: the masks from there on, for `MaskColumns.replaced`.
        settled_moves: how many moves the boundary made before the current request.
        view_chars: characters of the view.
        raw_chars: characters of the messages.
        pins_boundary: whether views have cache marks at the boundary.
        within_limit: whether the view is within the limit.
        hidden_count: how many messages it hides.
        summary_key: equal for equal messages of its summary, if it has one.
    """

    first_changed: int
    message_indices: bytes
    result_indices: bytes
    text_sizes: bytes
    texts: bytes
    settled_moves: int
    view_chars: int
    raw_chars: int
    pins_boundary: bool
    within_limit: bool
    hidden_count: int
    summary_key: int | None
