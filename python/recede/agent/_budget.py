"""Budget: mask a history only when it exceeds a threshold."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from recede import _engine
from recede.agent._given import newest_mark_only
from recede.reduction._counting import costs_of, history_tokens
from recede.reduction._input import ask_engine
from recede.reduction._kinds import optional_function, whole_number
from recede.reduction._masks import report_move
from recede.reduction._options import DESIGN_OPTIONS
from recede.reduction._planning import reduced
from recede.reduction._policy import block_policy, image_chars_of
from recede.reduction._signature import takes

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from recede._report import BoundaryMove, Reduction
    from recede.session._history import History
    from recede.session._options import HistoryOptions
    from recede.types import BlockOptions, TokenCounter

_log = logging.getLogger("recede")

# The name that Anthropic's context editing uses, so that existing telemetry reads our reports.
_EDIT = "clear_tool_uses_20250919"


class Budget:
    """A threshold in tokens: above it old observations are masked, by default with a sliding boundary.

    It stores no history. The view of a history over the threshold is that of `mask_old_observations`, alone and in a
    `Conversation`.

    Args:
        threshold_tokens: a history of at most this many tokens is sent raw.
        keep: how many of the newest results stay raw, at least 3.
        mask_chunk: move the boundary by this many observations at once.
        max_input_tokens: the boundary moves to the window where the view would have more tokens. A view that is still
            over, as with one large result, is sent, with a warning in the log: `recede.History` with `max_input_tokens`
            or `max_result_chars` holds it. It counts messages only: leave room for system prompt, tools and answer.
        token_counter: ``text -> tokens``; by default four characters count as one token.
        on_move: called with a `BoundaryMove` by each `view` of a request before which a break-even boundary moves; the
            log gets a line in any case. What it raises is logged.
        **options: those of `mask_old_observations`. With ``boundary="break_even"`` results are masked when that pays
            off under a prompt cache, which sends more and costs less. With a `provider` whose cache has marks, a view
            keeps only the newest of the marks in the messages, besides the one at the boundary.

    Each call is linear in the text of the history; what is none is a `TranscriptError`. A `History` processes each
    message once.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "Find the bug."}]
        >>> for number in range(9):
        ...     call = {"type": "tool_use", "id": f"toolu_{number}", "name": "run", "input": {}}
        ...     history.append({"role": "assistant", "content": [call]})
        ...     answer = {"type": "tool_result", "tool_use_id": call["id"], "content": "a line of the log\\n" * 300}
        ...     history.append({"role": "user", "content": [answer]})
        >>> budget = recede.designs.Budget(threshold_tokens=8_000)
        >>> budget.is_over(history)
        True
        >>> budget.view(history)[2]["content"][0]["content"]
        '[observation masked — 301 lines omitted]'
        >>> budget.report(history)["applied_edits"]
        [{'type': 'clear_tool_uses_20250919', 'cleared_tool_uses': 5, 'cleared_input_tokens': 6700}]
        >>> budget.view(history[:5]) == history[:5], budget.report(history[:5])
        (True, {'applied_edits': []})
    """

    @takes(DESIGN_OPTIONS, "block")
    def __init__(
        self,
        threshold_tokens: int = 8_000,
        keep: int = 4,
        mask_chunk: int | None = None,
        *,
        max_input_tokens: int | None = None,
        token_counter: TokenCounter | None = None,
        on_move: Callable[[BoundaryMove], Any] | None = None,
        **options: Unpack[BlockOptions],
    ) -> None:
        whole_number()("threshold_tokens", threshold_tokens)
        whole_number(optional=True)("max_input_tokens", max_input_tokens)
        optional_function("token_counter", token_counter)
        self.threshold_tokens = threshold_tokens
        self.keep = keep
        self.mask_chunk = mask_chunk
        self.max_input_tokens = max_input_tokens
        self.token_counter = token_counter
        self.on_move = optional_function("on_move", on_move)
        self.options = options
        self._policy()

    def _policy(self) -> Any:
        return block_policy(_engine.engine, self.keep, self.mask_chunk, self.options, max_tokens=self.max_input_tokens)

    def tokens(self, messages: list[Any]) -> int:
        """Count the tokens of the history, with `token_counter` or at four characters each."""
        if not isinstance(messages, list):
            raise TypeError(f"a budget takes a list of messages, not {type(messages).__name__}")
        return history_tokens(messages, self.token_counter)

    def is_over(self, messages: list[Any]) -> bool:
        """Whether the history has more tokens than the threshold, or than `max_input_tokens`."""
        return self._is_over(self.tokens(messages))

    def _is_over(self, tokens: int) -> bool:
        limit = self.threshold_tokens if self.max_input_tokens is None else self.max_input_tokens
        return tokens > min(self.threshold_tokens, limit)

    def view(self, messages: list[Any]) -> list[Any]:
        """The messages to send: the history itself unless it is over the threshold and has old observations."""
        is_over = self.is_over(messages)
        if self._history_options().pins:  # as a `History` does
            messages = newest_mark_only(messages)
        if not is_over:
            return messages
        masked = self._masked(messages)
        # The request of this view comes after as many others as there are turns.
        if masked.boundary_moves and masked.boundary_moves[-1].request == masked.turns:
            report_move(masked.boundary_moves[-1], self.on_move)
        self.warn_if_over(masked.messages)
        return masked.messages

    def warn_if_over(self, view: list[Any]) -> None:
        """Log a warning if the view has more than `max_input_tokens`."""
        if self.max_input_tokens is None:
            return
        tokens = self.tokens(view)
        if tokens > self.max_input_tokens:
            _log.warning(
                "a view of about %s tokens is over max_input_tokens=%s though all but the newest %s results are masked"
                ": recede.History(max_input_tokens=%s) cuts and summarizes until a view fits, and its max_result_chars "
                "cuts a long result when it arrives",
                f"{tokens:,}",
                f"{self.max_input_tokens:,}",
                self.keep,
                self.max_input_tokens,
            )

    def report(self, messages: list[Any]) -> dict[str, Any]:
        """Report what `view` does to the history, in the format of Anthropic's context editing.

        Returns:
            ``{"applied_edits": [...]}``. The list is empty if nothing is masked; otherwise its one edit has
            ``cleared_tool_uses``, the number of masked observations, and ``cleared_input_tokens``, the tokens saved.
        """
        raw_tokens = self.tokens(messages)
        masked = self._masked(messages) if self._is_over(raw_tokens) else None
        if masked is None or not masked.masked_count:
            return {"applied_edits": []}
        # The format has no negative numbers, which a counter that charges placeholders heavily would produce.
        cleared = max(0, raw_tokens - self.tokens(masked.messages))
        edit = {"type": _EDIT, "cleared_tool_uses": masked.masked_count, "cleared_input_tokens": cleared}
        return {"applied_edits": [edit]}

    def history(self) -> History:
        """An empty `History` that masks by this budget: its views are those of `view`."""
        from recede.session._history import History

        return History._of(self._history_options(), on_move=self.on_move)

    def _history_options(self) -> HistoryOptions:
        from recede.session._options import HistoryOptions

        chunk = {} if self.mask_chunk is None else {"mask_chunk": self.mask_chunk}
        return HistoryOptions.of_budget(
            keep=self.keep,
            threshold_tokens=self.threshold_tokens,
            max_input_tokens=self.max_input_tokens,
            token_counter=self.token_counter,
            **chunk,
            **self.options,
        )

    def _masked(self, messages: list[Any]) -> Reduction:
        policy = self._policy()
        costs: Any = None  # of messages, of observations, and of new texts: there are none
        if self.max_input_tokens is not None and self.token_counter is not None:
            texts, _ = ask_engine("texts", messages, policy)
            costs = (*costs_of(texts, self.token_counter, image_chars_of({})), {})
        reduction: Reduction = reduced(messages, policy, costs)
        return reduction

    def __repr__(self) -> str:
        return f"<Budget: {self.threshold_tokens:,} tokens, keep {self.keep}>"
