"""The budget of the Anthropic kit: mask a history only when it is over a threshold."""

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

# What Anthropic's own editing of histories calls its edit, so that what reads that telemetry reads ours.
_EDIT = "clear_tool_uses_20250919"


class Budget:
    """A threshold in tokens: below it a history is sent as it is, above it old observations are masked.

    It holds no history. The view of a history over the threshold is that of `mask_old_observations`.

    Args:
        threshold_tokens: a history of at most so many tokens is sent raw.
        keep: how many of the newest results stay raw, at least 3.
        mask_chunk: move the boundary by this many observations at once; 1 and None slide it.
        boundary: when the boundary moves, as in `reduce`; by default as `mask_chunk` says. A `Conversation` takes
            ``"break_even"`` where neither was given.
        token_counter: ``text -> tokens``; without it four characters are a token.

    The other options are those of `mask_old_observations`.

    Raises:
        TypeError, ValueError: an option is unknown, of the wrong type, or out of range.

    Each call is linear in the text of the history; a `History` does the work of a message once.

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
        # A boundary that slides is one that moves by 1, so 1 stands in the way of no other.
        chunk = None if self.mask_chunk == 1 and self.boundary in ("break_even", "sliding") else self.mask_chunk
        return block_policy(_engine.engine, self.keep, chunk, options)

    def tokens(self, messages: list[Any]) -> int:
        """How many tokens the history has, by `token_counter` or at four characters each.

        Raises:
            TranscriptError: the input is no history.
            TypeError: `token_counter` gave no whole number.
        """
        return history_tokens(messages, self.token_counter)

    def is_over(self, messages: list[Any]) -> bool:
        """Whether the history has more tokens than the threshold.

        Raises:
            TranscriptError: the input is no history.
        """
        return self.tokens(messages) > self.threshold_tokens

    def view(self, messages: list[Any]) -> list[Any]:
        """What is to be sent: the history itself where it is not over the threshold, or nothing is old.

        Raises:
            TranscriptError: the input is no history.
        """
        return self._masked(messages).messages if self.is_over(messages) else messages

    def report(self, messages: list[Any]) -> dict[str, Any]:
        """What `view` does to the history, in the form in which Anthropic reports its own edits of a request.

        Returns:
            ``{"applied_edits": [...]}``, the list empty where nothing is masked; else with one edit:
            ``cleared_tool_uses`` observations were masked, which took out ``cleared_input_tokens``.

        Raises:
            TranscriptError: the input is no history.
        """
        raw_tokens = self.tokens(messages)
        masked = self._masked(messages) if raw_tokens > self.threshold_tokens else None
        if masked is None or not masked.masked_count:
            return {"applied_edits": []}
        # The form knows no number below 0, which a counter that finds placeholders dear would give.
        cleared = max(0, raw_tokens - self.tokens(masked.messages))
        edit = {"type": _EDIT, "cleared_tool_uses": masked.masked_count, "cleared_input_tokens": cleared}
        return {"applied_edits": [edit]}

    def history(self) -> History:
        """A `History` without messages whose views this budget decides.

        Where neither `boundary` nor a `mask_chunk` was given, it moves its boundary when that has paid for itself.
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
        return reduced(messages, self._policy())

    def __repr__(self) -> str:
        return f"<Budget: {self.threshold_tokens:,} tokens, keep {self.keep}>"
