"""Values that an engine and the package exchange, apart from the results: `import recede` needs none of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple


class SummaryRequest(NamedTuple):
    """An engine's request for a summary; it is then called again with one."""

    dropped: list[Any]  # the messages to summarize: their indices; in bytes their spans; of a session themselves
    previous: str | None  # the summary of an earlier reduction
    built_in: str
    key: int = 0  # that of the summary, in a session
    told: bytes | None = None  # the fingerprint of what it has to tell, where texts are remembered


class CountRequest(NamedTuple):
    """An engine's request for the costs of new texts, such as cut observations; it is then called again with them."""

    texts: list[str]


class Repair(NamedTuple):
    """A step that repairs orphans."""

    kind: Literal["drop_message", "drop_block", "add_block", "add_message", "set_id"]
    message: int  # that is dropped or changed, or before which one is added
    block: int | None  # that is dropped, or before which one is added; None for whole messages
    field: str | None  # that has the blocks; None for whole messages
    answer: bytes  # the JSON of the block, message or id that is added, or nothing
    source: tuple[int, int] | None = None  # the message, or the block in it, that is added here, and dropped there
    path: Sequence[str] = ()  # from the message or block to its id


class ObservationTexts(NamedTuple):
    """Texts of an observation that a token counter counts."""

    text: str
    images: int
    masked: str | None  # what masking would put in its place; None if it stays
    cut: str | None = None  # what a limit leaves of it, if it is long


class MessageTexts(NamedTuple):
    """Texts of a message that a token counter counts."""

    text: str  # of itself and its calls
    constant_chars: int  # that its calls count besides
    images: int  # without those of its observations
    observations: list[ObservationTexts]
    reasoning: str  # that requests send back, if it counts
    sealed_chars: int  # of reasoning that only the provider reads


class FactsUpdate(NamedTuple):
    """Changes of the view of a session of facts, and its sizes."""

    first_changed: int  # the first message that changed
    message_indices: bytes  # of the masks from there on, as the next three, for `MaskColumns.replaced`
    result_indices: bytes
    text_sizes: bytes
    texts: bytes
    settled_moves: int  # of the boundary, before the current request
    view_chars: int
    view_cost: int  # what it counts to limits
    raw_chars: int
    pins_boundary: bool  # whether views have cache marks at the boundary
    within_limit: bool
    hidden_count: int  # messages that the view hides
    summary_key: int | None  # equal for equal messages of its summary, if it has one
    reasoning_from: int = 0  # earlier messages are shown without their signed reasoning
