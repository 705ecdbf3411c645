"""What a reduction did: the result classes. Named tuples, since they are made on every request."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False  # to type checkers that of typing, whose import would take longer than all of ours
if TYPE_CHECKING:
    from typing import Any, Literal, NamedTuple

    Stage = Literal["masking", "summarization", "fallback"]
    Invariant = Literal["ok", "fallback"]
    FindingKind = Literal[
        "call_without_result",
        "result_without_call",
        "open_call",
        "missing_id",
        "id_open_twice",
        "second_result",
        "not_adjacent",
        "not_leading",
    ]
else:

    class _NamedTupleMeta(type):
        """Makes of a class body what `typing.NamedTuple` makes of it."""

        def __new__(cls, name, _, body):
            made = namedtuple(name, body["__annotations__"], module=body["__module__"])
            for key in body.keys() - {"__module__", "__qualname__"}:
                setattr(made, key, body[key])
            return made

    NamedTuple = type.__new__(_NamedTupleMeta, "NamedTuple", (), {})

__all__ = [
    "BoundaryMove",
    "ContextReport",
    "CountRequest",
    "Finding",
    "JsonReduction",
    "PairReport",
    "Reduction",
    "SummaryRequest",
    "ToolReport",
    "TurnTokens",
]


class ToolReport(NamedTuple):
    """The observations of one tool, as stage 1 (masking) left them.

    Attributes:
        observations: how many observations of the tool the history holds.
        masked: how many of them were masked.
        chars: their characters before masking (Unicode code points; images at `image_chars`).
        removed_chars: the characters that masking removed.

    Example:
        >>> import recede
        >>> history = [{"role": "tool", "tool_call_id": "1", "content": "x" * 90}]
        >>> recede.mask_observations(history, keep_results=0).tools
        {'': ToolReport(observations=1, masked=1, chars=90, removed_chars=59)}
    """

    observations: int
    masked: int
    chars: int
    removed_chars: int


class BoundaryMove(NamedTuple):
    """One move of the boundary between masked and raw observations.

    Attributes:
        request: before which request of the session, from 0; a request stands before each run of agent messages.
        masked_count: observations that it masked.
        removed_chars: characters that it removed.
        written_chars: characters behind the first change that the request before had sent, and that a prompt cache
            had to be given again.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "Go."}]
        >>> for number in range(12):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "x" * 900})
        >>> recede.mask_observations(history, keep_results=3, boundary="break_even").boundary_moves
        (BoundaryMove(request=11, masked_count=8, removed_chars=6944, written_chars=2281),)
    """

    request: int
    masked_count: int
    removed_chars: int
    written_chars: int


class Reduction(NamedTuple):
    """The view of a history, and what was done to get it.

    Attributes:
        messages: the view. Messages that are unchanged are the caller's own objects; where nothing
            changed, this is the caller's own list.
        reduced: whether anything was masked or dropped.
        dropped_count: messages left out of the view.
        invariant_status: ``"ok"``, or ``"fallback"`` where stage 3 gave the answer.
        reduction_stage: ``"masking"``, ``"summarization"``, ``"fallback"``, or None.
        masked_count: observations that stage 1 masked, also where a later stage gave the answer.
        masked_chars: characters that stage 1 removed.
        clipped_count: results in the window that `clip_results` cut.
        clipped_chars: characters that this removed.
        tools: the same per tool name, in order of first use; ``""`` where the tool is unknown.
        chars_before: characters of the history.
        chars_after: characters of the view.
        within_budget: whether the view fits the budget; True where there is none.
        orphans: indices of input messages that hold a call without result or a result without call.
        first_changed: index of the first message of the view that differs from the input: what
            stands before it a prompt cache can still serve. None when nothing differs.
        boundary: observations before this place in the sequence of all observations are masked.
        summarizer_error: what the summarizer raised, if it did.
        turns: turns of the history (runs of agent messages).
        boundary_moves: a `BoundaryMove` for each time that the boundary moved, oldest first; with
            ``boundary="break_even"`` alone, since the others do not depend on earlier requests.

    Example:
        >>> import recede
        >>> result = recede.reduce([{"role": "user", "content": "hello"}], max_input_tokens=10)
        >>> result
        <Reduction: 1 messages, stage=None, chars 5 -> 5, masked 0, dropped 0>
        >>> result.within_budget, result.first_changed
        (True, None)
    """

    messages: list[Any]
    reduced: bool
    dropped_count: int
    invariant_status: Invariant
    reduction_stage: Stage | None
    masked_count: int
    masked_chars: int
    clipped_count: int
    clipped_chars: int
    tools: dict[str, ToolReport]
    chars_before: int
    chars_after: int
    within_budget: bool
    orphans: tuple[int, ...]
    first_changed: int | None
    boundary: int
    summarizer_error: Exception | None
    turns: int
    boundary_moves: tuple[BoundaryMove, ...]

    def __repr__(self) -> str:
        return _describe("Reduction", f"{len(self.messages)} messages", self)


class JsonReduction(NamedTuple):
    """The view of a serialized history, and what was done to get it.

    Attributes:
        json: the view as bytes. Every byte that was not replaced is the input's own; where ``bytes``
            came in and nothing changed, this is the same object.

    The other attributes are those of `Reduction`.

    Example:
        >>> import recede
        >>> recede.reduce_json(b'[{"role":"user","content":"hello"}]', max_input_tokens=1)
        <JsonReduction: 35 bytes, stage='fallback', chars 5 -> 5, masked 0, dropped 0, OVER BUDGET>
    """

    json: bytes
    reduced: bool
    dropped_count: int
    invariant_status: Invariant
    reduction_stage: Stage | None
    masked_count: int
    masked_chars: int
    clipped_count: int
    clipped_chars: int
    tools: dict[str, ToolReport]
    chars_before: int
    chars_after: int
    within_budget: bool
    orphans: tuple[int, ...]
    first_changed: int | None
    boundary: int
    summarizer_error: Exception | None
    turns: int
    boundary_moves: tuple[BoundaryMove, ...]

    def __repr__(self) -> str:
        return _describe("JsonReduction", f"{len(self.json)} bytes", self)


def _describe(name: str, size: str, result: Reduction | JsonReduction) -> str:
    facts = [
        size,
        f"stage={result.reduction_stage!r}",
        f"chars {result.chars_before} -> {result.chars_after}",
        f"masked {result.masked_count}",
        f"dropped {result.dropped_count}",
    ]
    if not result.within_budget:
        facts.append("OVER BUDGET")
    if result.orphans:
        facts.append(f"orphans {len(result.orphans)}")
    if result.summarizer_error is not None:
        facts.append(f"summarizer_error={result.summarizer_error!r}")
    return f"<{name}: {', '.join(facts)}>"


class SummaryRequest(NamedTuple):
    """What an engine answers where stage 2 wants a summary: it is asked again with one.

    Attributes:
        dropped: the messages that the summary is to stand for: their indices, or in bytes their spans.
        previous: the summary that an earlier reduction left, or None.
        built_in: the summary that needs no model.
    """

    dropped: list[Any]
    previous: str | None
    built_in: str


class CountRequest(NamedTuple):
    """What an engine answers that does not know what some texts cost: it is asked again with that.

    Attributes:
        texts: the texts, which are no message's or observation's own.
    """

    texts: list[str]


class Finding(NamedTuple):
    """One thing that `check_pairs` found.

    Attributes:
        kind: what it is; see `PairReport`.
        message_index: the message that holds the call or the result.
        id: its id, or None where it has no string id.

    Example:
        >>> import recede
        >>> recede.check_pairs([{"role": "tool", "content": "?"}]).findings[0]
        Finding(kind='missing_id', message_index=0, id=None)
    """

    kind: FindingKind
    message_index: int
    id: str | None


class PairReport(NamedTuple):
    """What `check_pairs` found, in the order of the messages.

    Attributes:
        findings: a `Finding` each. Its kind is one of ``call_without_result`` and
            ``result_without_call`` (orphans); ``open_call`` (its answer may still come: no violation);
            ``missing_id`` (without a string id nothing pairs); ``id_open_twice`` (called again before
            the first call was answered); and what providers refuse although the pairs are whole:
            ``second_result``, ``not_adjacent`` (a result that does not follow its call's turn),
            ``not_leading`` (Anthropic results that are not the leading blocks of their message).

    Example:
        >>> import recede
        >>> call = {"id": "1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        >>> report = recede.check_pairs([{"role": "assistant", "content": None, "tool_calls": [call]}])
        >>> report.findings, report.is_whole, report.orphans
        ((Finding(kind='open_call', message_index=0, id='1'),), True, ())
    """

    findings: tuple[Finding, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing was found but open calls."""
        return all(finding.kind == "open_call" for finding in self.findings)

    @property
    def orphans(self) -> tuple[Finding, ...]:
        """The calls without result and the results without call; open calls are none."""
        return tuple(f for f in self.findings if f.kind in ("call_without_result", "result_without_call"))


class TurnTokens(NamedTuple):
    """What the request for one turn sent.

    Attributes:
        turn: the turn that was taken, from 1.
        raw_tokens: tokens of all turns before it, unmasked.
        sent_tokens: tokens that were sent for them: of a summary, if there was one, and of the turns shown.

    Example:
        >>> import recede
        >>> recede.turns.TurnTokens(3, raw_tokens=100, sent_tokens=30).saved_tokens
        70
    """

    turn: int
    raw_tokens: int
    sent_tokens: int

    @property
    def saved_tokens(self) -> int:
        """The difference; below 0 where placeholders have more tokens than what they stand for."""
        return self.raw_tokens - self.sent_tokens


class ContextReport(NamedTuple):
    """What the requests of a session sent, and what masking and summaries saved. Prompts are not counted.

    Attributes:
        turns: each request.
        summarizer_tokens: tokens that summarizers were given, and that they wrote.
        price_per_token: of each of these tokens.

    Example:
        >>> import recede
        >>> manager = recede.ObservationMaskingContextManager(window_size_m=1)
        >>> for number in range(4):
        ...     number = manager.add_turn("Think.", "act", "a word " * 50)
        >>> manager.report()
        <ContextReport: 4 turns, 642 tokens raw, 354 sent, 288 saved (45 %), cost 0.0035 instead of 0.0064>
    """

    turns: tuple[TurnTokens, ...]
    summarizer_tokens: int
    price_per_token: float

    @property
    def raw_tokens(self) -> int:
        """Tokens that all requests would have sent without masking."""
        return sum(turn.raw_tokens for turn in self.turns)

    @property
    def sent_tokens(self) -> int:
        """Tokens that they sent."""
        return sum(turn.sent_tokens for turn in self.turns)

    @property
    def saved_tokens(self) -> int:
        """The difference."""
        return self.raw_tokens - self.sent_tokens

    @property
    def efficiency_score(self) -> float:
        """Saved tokens as a part of the raw ones; 0.0 where there are none."""
        return self.saved_tokens / self.raw_tokens if self.raw_tokens else 0.0

    @property
    def raw_cost(self) -> float:
        """What it would have cost without masking."""
        return self.raw_tokens * self.price_per_token

    @property
    def cost(self) -> float:
        """What it cost, the calls of the summarizer included."""
        return (self.sent_tokens + self.summarizer_tokens) * self.price_per_token

    def as_dict(self) -> dict[str, Any]:
        """Every figure, for JSON."""
        names = ("raw_tokens", "sent_tokens", "saved_tokens", "efficiency_score", "raw_cost", "cost")
        turns = [{**turn._asdict(), "saved_tokens": turn.saved_tokens} for turn in self.turns]
        return {**self._asdict(), **{name: getattr(self, name) for name in names}, "turns": turns}

    def __repr__(self) -> str:
        """The figures in a line."""
        return (
            f"<ContextReport: {len(self.turns):,} turns, {self.raw_tokens:,} tokens raw, {self.sent_tokens:,} sent, "
            f"{self.saved_tokens:,} saved ({self.efficiency_score:.0%}), "
            f"cost {self.cost:.2g} instead of {self.raw_cost:.2g}>"
        ).replace("%)", " %)")
