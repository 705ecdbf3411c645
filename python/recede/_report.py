"""The result classes. Named tuples, since they are made on every request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from recede._off import is_off

Stage = Literal["masking", "summarization", "fallback"]
Invariant = Literal["ok", "fallback"]
FindingKind = Literal[
    "call_without_result",
    "result_without_call",
    "open_call",
    "missing_id",
    "id_open_twice",
    "second_result",
    "id_used_again",
    "other_kind",
    "not_adjacent",
    "split_results",
    "not_leading",
    "reasoning_alone",
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
        >>> history = [{"role": "tool", "tool_call_id": "1", "content": "x" * 900}, {"role": "assistant"}]
        >>> recede.reduce(history, keep=0, boundary="sliding").tools
        {'': ToolReport(observations=1, masked=1, chars=900, removed_chars=859)}
    """

    observations: int
    masked: int
    chars: int
    removed_chars: int


class BoundaryMove(NamedTuple):
    """A move of the boundary between masked and raw observations.

    Attributes:
        request: the request of the session before which it moved, from 0; there is one before each run.
        masked_count: observations that it masked.
        removed_chars: characters that it removed.
        written_chars: characters after the first change that the previous request had sent, and that were written to
            the prompt cache again.
        reasoning_dropped: messages that are sent without their signed reasoning since: for a model that verifies it.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "Go."}]
        >>> for number in range(12):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "x" * 9_000})
        >>> recede.reduce(history, keep=3, provider="openai").boundary_moves
        (BoundaryMove(request=11, masked_count=8, removed_chars=71672, written_chars=18553, reasoning_dropped=0),)
    """

    request: int
    masked_count: int
    removed_chars: int
    written_chars: int
    reasoning_dropped: int = 0


class Unmasked(NamedTuple):
    """The results that could be masked in a view in which nothing is; zeros in other views."""

    outside_window: int
    maskable: int  # of these: a mask would make them shorter, and may replace them
    is_below_trigger: bool  # the history is below `trigger_tokens`, or the budget above which masks begin
    is_below_step: bool  # the boundary moves in steps of results, and the first is not full

    @property
    def does_not_pay(self) -> bool:
        """Whether they wait since a mask does not pay yet under the prompt cache."""
        return bool(self.maskable) and not self.is_below_trigger and not self.is_below_step


class OverLimit(NamedTuple):
    """Requests whose raw history is over the trigger, or over the limit without one, by what that forced."""

    masks: int = 0  # alone
    cuts: int = 0  # of long results, too
    summary: int = 0  # of messages
    truncation: int = 0  # without a summary


class Reduction(NamedTuple):
    """The view of a history, and what was done to get it.

    Attributes:
        messages: the view. Unchanged messages are the caller's objects; if nothing changed, this is the
            caller's list.
        request: of a whole request: the request with the view in it; if nothing changed, the caller's. None of a list.
        reduced: whether anything was masked or dropped.
        dropped_count: dropped messages.
        dropped: indices of the input's messages that are not in the view.
        invariant_status: ``"ok"``, or ``"fallback"`` if stage 3 gave the answer.
        reduction_stage: ``"masking"``, ``"summarization"``, ``"fallback"``, or None.
        masked_count: masked observations; with a `HistoryReducer` without `fill` also those that a later stage dropped.
        masked_chars: characters that stage 1 removed.
        clipped_count: results in the window that were cut, and messages of the task.
        clipped_chars: characters that this removed.
        mask_places, cut_places: what `masks` and `clipped` read.
        unmasked: what could be masked, if nothing is.
        tools: the same by tool name, in order of first use; ``""`` for unknown tools.
        chars_before: characters of the history.
        chars_after: characters of the view.
        within_limit: whether the view is within the limit; None without one.
        orphans: indices of input messages that have a call without result or a result without call.
        first_changed: index of the first message of the view that differs from the input; the prefix
            before it can still be in a prompt cache. None if nothing differs.
        boundary: observations before this place in the sequence of all observations are masked.
        boundary_message: index of the message of the view that has the last masked result; None if nothing is masked.
        summarizer_error: the exception of the summarizer, if it failed.
        turns: turns of the history (runs of agent messages).
        boundary_moves: a `BoundaryMove` for each move of the boundary, oldest first; only with
            ``boundary="break_even"``, since the others do not depend on earlier requests.
        provider: the name of the provider whose prompt cache was assumed.
        reasoning_dropped: messages that are shown without their signed reasoning, where the model verifies it.

    Example:
        >>> import recede
        >>> result = recede.reduce([{"role": "user", "content": "hello"}], max_input_tokens=10)
        >>> result
        <Reduction: 1 messages, stage=None, chars 5 -> 5, masked 0, dropped 0>
        >>> result.reason
        'nothing masked: there are no tool results'
        >>> result.within_limit, result.first_changed, result.provider
        (True, None, 'anthropic')
    """

    messages: list[Any]
    reduced: bool
    dropped_count: int
    dropped: tuple[int, ...]
    invariant_status: Invariant
    reduction_stage: Stage | None
    masked_count: int
    masked_chars: int
    clipped_count: int
    clipped_chars: int
    mask_places: bytes
    cut_places: bytes
    unmasked: Unmasked
    tools: dict[str, ToolReport]
    chars_before: int
    chars_after: int
    within_limit: bool | None
    orphans: tuple[int, ...]
    first_changed: int | None
    boundary: int
    boundary_message: int | None
    summarizer_error: Exception | None
    turns: int
    boundary_moves: tuple[BoundaryMove, ...]
    provider: str
    reasoning_dropped: int = 0
    request: dict[str, Any] | None = None
    json: bytes | None = None

    @property
    def masks(self) -> tuple[tuple[int, int], ...]:
        """The masked results, each by the index of its message and its place among the results of that."""
        return _places(self.mask_places)

    @property
    def clipped(self) -> tuple[tuple[int, int], ...]:
        """The results that were cut, likewise."""
        return _places(self.cut_places)

    @property
    def reason(self) -> str:
        """A sentence that says what was masked, cut and dropped; or why nothing was, and what would change that."""
        results = sum(tool.observations for tool in self.tools.values())
        request = self.boundary_moves[-1].request if self.boundary_moves else None
        done = changes_of(self.masked_count, results, request, self.clipped_count, self.dropped_count)
        said = done or "nothing masked: " + why_unmasked(results, self.unmasked, self.provider)
        return said + ("; still over the limit" if self.within_limit is False else "")

    def __repr__(self) -> str:
        return _describe("Reduction", f"{len(self.messages)} messages", self)


class JsonReduction(Reduction):
    """The view of a serialized history, and what was done to get it.

    Attributes:
        json: the view as bytes. Every byte that was not replaced is unchanged; if the input was ``bytes``
            and nothing changed, this is the same object.
        messages: its messages, parsed at each access.

    The other attributes are those of `Reduction`.

    Example:
        >>> import recede
        >>> reduction = recede.reduce(b'[{"role":"user","content":"hello"}]', max_input_tokens=1)
        >>> reduction
        <JsonReduction: 35 bytes, stage=None, chars 5 -> 5, masked 0, dropped 0, OVER LIMIT>
        >>> reduction.json, reduction.messages
        (b'[{"role":"user","content":"hello"}]', [{'role': 'user', 'content': 'hello'}])
    """

    __slots__ = ()

    if TYPE_CHECKING:
        json: bytes
    else:

        @property
        def messages(self) -> list[Any]:
            from recede._bodies import history_of

            return history_of(self.json)

    def __repr__(self) -> str:
        return _describe("JsonReduction", f"{len(self.json)} bytes", self)


def _asdict(self: Reduction) -> dict[str, Any]:
    """The fields as `json.dumps` takes them: places in pairs, the view as text, an error as its words."""
    fields = dict(zip(self._fields, self, strict=True), mask_places=self.masks, cut_places=self.clipped)
    if fields["json"] is not None:
        fields["json"] = self.json.decode("utf-8", "surrogatepass")  # type: ignore[union-attr]
    fields["summarizer_error"] = self.summarizer_error and repr(self.summarizer_error)
    return fields


Reduction._asdict = _asdict  # type: ignore[assignment, method-assign]  # the body of a named tuple may not define it


def _places(packed: bytes) -> tuple[tuple[int, int], ...]:
    numbers = [int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4)]
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def changes_of(masked: int, results: int, request: int | None, cut: int, dropped: int) -> str:
    """Describe what a view does not show; empty if it shows all."""
    since = "" if request is None else f" since request {request + 1}"
    parts = [f"{masked} of {results} results masked{since}"] * bool(masked)
    parts += [f"{cut} cut"] * bool(cut)
    parts += [f"{dropped} messages dropped or summarized"] * bool(dropped)
    return ", ".join(parts)


def why_unmasked(results: int, unmasked: Unmasked, provider: str) -> str:
    """Why no result is masked, and what would change that."""
    if not results:
        return "there are no tool results"
    if is_off():
        return "RECEDE_OFF is set"
    if unmasked.is_below_trigger:
        return "the history is below trigger_tokens or its budget (a smaller one masks sooner)"
    outside = unmasked.outside_window
    if not outside:
        which = f"all {results} results are" if results > 1 else "the only result is"
        return f"{which} in the window, or not shown yet (a smaller keep masks sooner)"
    if not unmasked.maskable:
        return f"the {outside} results outside of the window are exempt, or too short for a mask to save anything"
    if unmasked.is_below_step:
        step = "a step of boundary (a smaller one masks sooner), or the 10 where reasoning is verified"
        return f"{unmasked.maskable} could be, less than {step}"
    cache = f" with the prompt cache of {provider}" if provider else ""
    return f'{unmasked.maskable} could be, it does not pay yet{cache} (boundary="sliding" masks now)'


def masked_words(masked: int, results: int, unmasked: Unmasked) -> str:
    """How many results are masked, as a `repr` has it; and why none is."""
    why = "" if masked or not results else ": " + why_unmasked(results, unmasked, "")
    return f"masked {masked}{why}"


def _describe(name: str, size: str, result: Reduction) -> str:
    results = sum(tool.observations for tool in result.tools.values())
    facts = [
        size,
        f"stage={result.reduction_stage!r}",
        f"chars {result.chars_before} -> {result.chars_after}",
        masked_words(result.masked_count, 0 if result.dropped_count else results, result.unmasked),
        f"dropped {result.dropped_count}",
    ]
    if result.within_limit is False:
        facts.append("OVER LIMIT")
    if result.orphans:
        facts.append(f"orphans {len(result.orphans)}")
    if result.summarizer_error is not None:
        facts.append(f"summarizer_error={result.summarizer_error!r}")
    return f"<{name}: {', '.join(facts)}>"


class Finding(NamedTuple):
    """A finding of `check_pairs`.

    Attributes:
        kind: its kind; see `PairReport`.
        message_index: the message of the call or result.
        id: its id, or None if that is no string.

    Example:
        >>> import recede
        >>> recede.check_pairs([{"role": "tool", "content": "?"}]).findings[0]
        Finding(kind='missing_id', message_index=0, id=None)
    """

    kind: FindingKind
    message_index: int
    id: str | None


class PairReport(NamedTuple):
    """The findings of `check_pairs`, in the order of the messages.

    Attributes:
        findings: a `Finding` each. Its kind is one of ``call_without_result`` and
            ``result_without_call`` (orphans); ``open_call`` (it may still be answered: no violation);
            ``missing_id`` (without a string id, which the provider demands); ``id_open_twice`` (called again before
            the first call was answered); and what providers refuse although the pairs are whole:
            ``second_result``, ``id_used_again`` (Anthropic, Converse: an earlier turn has it),
            ``other_kind`` (the result is of another kind than its call), ``not_adjacent`` (a result that
            does not follow its call's turn), ``split_results`` (results of one turn in several messages),
            ``not_leading`` (results after other blocks of their message), ``reasoning_alone`` (of
            OpenAI's Responses, without the item after it).

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
        """Whether there are no findings but open calls."""
        return all(finding.kind == "open_call" for finding in self.findings)

    @property
    def orphans(self) -> tuple[Finding, ...]:
        """The calls without result, except open ones, and the results without call."""
        return tuple(f for f in self.findings if f.kind in ("call_without_result", "result_without_call"))
