"""Budget: mask a history only when it exceeds a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from recede import _engine
from recede.reduction._api import history_tokens, reduced
from recede.reduction._policy import block_policy, optional_function, whole_number
from recede.reduction._signature import runs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from recede.reduction._report import Reduction
    from recede.session._history import History
    from recede.types import TokenCounter

__all__ = ["Budget"]

# The name that Anthropic's context editing uses, so that existing telemetry reads our reports.
_EDIT = "clear_tool_uses_20250919"


class Budget:
    """A threshold in tokens: up to it a history is sent raw, above it old observations are masked.

    It stores no history. The view of a history over the threshold is that of `mask_old_observations`.

    Args:
        threshold_tokens: a history of at most this many tokens is sent raw.
        keep: how many of the newest results stay raw, at least 3.
        mask_chunk: move the boundary by this many observations at once; 1 or None slides it.
        boundary: when the boundary moves, as in `reduce`; by default `mask_chunk` decides. A `Conversation` uses
            ``"break_even"`` if neither is given.
        token_counter: ``text -> tokens``; by default four characters count as one token.

    The other options are those of `mask_old_observations`.

    Raises:
        TypeError, ValueError: an option is unknown, of the wrong type, or out of range.

    Each call is linear in the text of the history; a `History` processes each message once.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "Find the bug."}]
        >>> for number in range(9):
        ...     call = {"type": "tool_use", "id": f"toolu_{number}", "name": "run", "input": {}}
        ...     history.append({"role": "assistant", "content": [call]})
        ...     answer = {"type": "tool_result", "tool_use_id": call["id"], "content": "a line of the log\\n" * 300}
        ...     history.append({"role": "user", "content": [answer]})
        >>> budget = recede.Budget(threshold_tokens=8_000)
        >>> budget.is_over(history)
        True
        >>> budget.view(history)[2]["content"][0]["content"]
        '[observation masked — 301 lines omitted]'
        >>> budget.report(history)["applied_edits"]
        [{'type': 'clear_tool_uses_20250919', 'cleared_tool_uses': 5, 'cleared_input_tokens': 6700}]
        >>> budget.view(history[:5]) == history[:5], budget.report(history[:5])
        (True, {'applied_edits': []})
    """

    @runs(lambda self, *window, **options: self._begin(*window, **options))
    def __init__(
        self, threshold_tokens: int = 8_000, keep: int = 4, mask_chunk: int | None = 1, *,
        boundary: Literal["sliding", "stepped", "break_even"] | None = None, token_counter: TokenCounter | None = None,
        keep_by_tool: Mapping[str, int | None] | None = None, exclude_tools: Collection[str] = (),
        keep_errors: bool = False, cache_read: float = 0.1, cache_write: float = 1.25,
        cache_cold: bool | Collection[int] = False,
    ) -> None:  # fmt: skip
        """See the class."""

    def _begin(
        self,
        threshold_tokens: int = 8_000,
        keep: int = 4,
        mask_chunk: int | None = 1,
        *,
        boundary: str | None = None,
        token_counter: TokenCounter | None = None,
        **options: Any,
    ) -> None:
        whole_number()("threshold_tokens", threshold_tokens)
        optional_function("token_counter", token_counter)
        self.threshold_tokens = threshold_tokens
        self.keep = keep
        self.mask_chunk = mask_chunk
        self.boundary = boundary
        self.token_counter = token_counter
        self.options = options
        self._policy()

    def _policy(self) -> Any:
        options = dict(self.options)
        if self.boundary is not None:
            options["boundary"] = self.boundary
        # Sliding is moving by 1, so a chunk of 1 is compatible with every boundary.
        chunk = None if self.mask_chunk == 1 and self.boundary in ("break_even", "sliding") else self.mask_chunk
        return block_policy(_engine.engine, self.keep, chunk, options)

    def tokens(self, messages: list[Any]) -> int:
        """Count the tokens of the history, with `token_counter` or at four characters each.

        Raises:
            TranscriptError: the input is not a history.
            TypeError: `token_counter` did not return a whole number.
        """
        return history_tokens(messages, self.token_counter)

    def is_over(self, messages: list[Any]) -> bool:
        """Whether the history has more tokens than the threshold.

        Raises:
            TranscriptError: the input is not a history.
        """
        return self.tokens(messages) > self.threshold_tokens

    def view(self, messages: list[Any]) -> list[Any]:
        """The messages to send: the history itself unless it is over the threshold and has old observations.

        Raises:
            TranscriptError: the input is not a history.
        """
        return self._masked(messages).messages if self.is_over(messages) else messages

    def report(self, messages: list[Any]) -> dict[str, Any]:
        """Report what `view` does to the history, in the format of Anthropic's context editing.

        Returns:
            ``{"applied_edits": [...]}``. The list is empty if nothing is masked; otherwise its one edit has
            ``cleared_tool_uses``, the number of masked observations, and ``cleared_input_tokens``, the tokens saved.

        Raises:
            TranscriptError: the input is not a history.
        """
        raw_tokens = self.tokens(messages)
        masked = self._masked(messages) if raw_tokens > self.threshold_tokens else None
        if masked is None or not masked.masked_count:
            return {"applied_edits": []}
        # The format has no negative numbers, which a counter that charges placeholders heavily would produce.
        cleared = max(0, raw_tokens - self.tokens(masked.messages))
        edit = {"type": _EDIT, "cleared_tool_uses": masked.masked_count, "cleared_input_tokens": cleared}
        return {"applied_edits": [edit]}

    def history(self) -> History:
        """An empty `History` that masks by this budget.

        Without `boundary` and `mask_chunk`, its boundary moves when that breaks even.
        """
        from recede.session._history import History

        options = dict(self.options)
        if self.boundary is not None:
            options["boundary"] = self.boundary
        if self.mask_chunk not in (None, 1) or self.boundary == "stepped":
            options["mask_chunk"] = self.mask_chunk
        if self.token_counter is not None:
            options["token_counter"] = self.token_counter
        return History(keep=self.keep, threshold_tokens=self.threshold_tokens, **options)

    def _masked(self, messages: list[Any]) -> Reduction:
        reduction: Reduction = reduced(messages, self._policy())
        return reduction

    def __repr__(self) -> str:
        return f"<Budget: {self.threshold_tokens:,} tokens, keep {self.keep}>"
