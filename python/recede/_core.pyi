"""The extension made of src/py. Plain data in and out; the words stand at the public functions."""

from typing import Any, Literal, TypeAlias, final

__all__ = [
    "History",
    "Policy",
    "TurnLog",
    "check_pairs",
    "count_chars",
    "mask_observation",
    "reduce",
    "reduce_json",
    "repairs",
    "replay",
    "replay_json",
    "texts",
]

_ToolFigures: TypeAlias = tuple[int, int, int, int]
_Costs: TypeAlias = tuple[list[int], list[tuple[int, int]]]
_MessageCosts: TypeAlias = tuple[int, list[tuple[int, int]]]
_Summary: TypeAlias = tuple[str, int | None] | Literal[False]
_Stage: TypeAlias = Literal["masking", "summarization", "fallback"]

# The fields of `Reduction` and of `JsonReduction`, in their order.
_Answer: TypeAlias = tuple[
    list[Any],
    bool,
    int,
    Literal["ok", "fallback"],
    _Stage | None,
    int,
    int,
    dict[str, _ToolFigures],
    int,
    int,
    bool,
    tuple[int, ...],
    int | None,
    int,
    None,
    int,
    tuple[tuple[int, int, int, int], ...],
]
_JsonAnswer: TypeAlias = tuple[
    bytes,
    bool,
    int,
    Literal["ok", "fallback"],
    _Stage | None,
    int,
    int,
    dict[str, _ToolFigures],
    int,
    int,
    bool,
    tuple[int, ...],
    int | None,
    int,
    None,
    int,
    tuple[tuple[int, int, int, int], ...],
]

# Stage 2 wants a summary: the messages to be summarized, the earlier summary, the built-in one.
_Request: TypeAlias = tuple[list[int], str | None, str]
_JsonRequest: TypeAlias = tuple[list[tuple[int, int]], str | None, str]

# Of each request (messages before it, chars of its answer); by policy, of each request (chars, cached chars, masked,
# summarized turns, chars that a summary was made of, its own).
_Replay: TypeAlias = tuple[list[tuple[int, int]], list[list[tuple[int, int, int, int, int, int]]]]

# When they are due: by turns (the first, every), or by prices (read, write, input, output); the tail; of a model, chars
# of its summary and of its prompt.
_Summaries: TypeAlias = tuple[
    tuple[int, int] | None, tuple[float, float, float, float] | None, int, tuple[int, int] | None
]

@final
class Policy:
    def __new__(
        cls,
        *,
        goal: Literal["reduce", "mask", "summarize", "truncate"],
        max_cost: int | None,
        enabled: bool,
        recent_messages: int | None,
        recent_turns: int | None,
        recent_results: int | None,
        keep_by_tool: tuple[tuple[str, int | None], ...],
        exclude_tools: tuple[str, ...],
        keep_errors: bool,
        boundary: tuple[str, float, float],
        cold_requests: tuple[int, ...],
        observation_masking: bool,
        max_observation_chars: int | None,
        placeholder: tuple[tuple[str, str], ...] | None,
        lines_form: bool,
        min_masked_chars: int,
        image_chars: int,
        strict_pairs: bool,
        summary_max_chars: int,
        summary_role: str | None,
        ask_summary: bool,
        summaries: _Summaries | None = None,
    ) -> Policy: ...

@final
class History:
    def __new__(cls, policy: Policy, raw_cost_at_most: int) -> History: ...
    def __len__(self) -> int: ...
    def masked_texts(self, message: bytes, surrogates: bool) -> list[str | None]: ...
    def append(self, message: bytes, surrogates: bool, costs: _MessageCosts | None = None) -> None: ...
    def anew(self) -> tuple[list[bytes], list[int]]: ...
    def begin_anew(self, costs: _Costs | None = None) -> None: ...
    def look(self, summary: _Summary | None = None) -> tuple[Any, ...] | None: ...
    def chunks(self) -> list[bytes]: ...
    def changes(self) -> tuple[int, list[tuple[int, bytes]]] | None: ...
    def restore(self, past: list[bytes], session: list[bytes], numbers: list[int]) -> None: ...
    def counts(self) -> tuple[int, int, int]: ...
    def totals(self) -> tuple[int, int, int]: ...
    def changed(self) -> tuple[int, int] | None: ...
    def moves(self) -> list[tuple[int, int, int, int]]: ...
    def message(self, message: int) -> bytes: ...
    def session_message(self, message: int) -> bytes: ...
    def number_of(self, id: str) -> int | None: ...
    def recall(self, number: int) -> str | None: ...

@final
class TurnLog:
    def __new__(cls, policy: Policy) -> TurnLog: ...
    def __len__(self) -> int: ...
    def masked_text(self, observation: str) -> str | None: ...
    def add(
        self, reasoning: str, action: str, observation: str, tokens: tuple[int, int, int] | None = None
    ) -> None: ...
    def summary_due(self) -> int | None: ...
    def summarize_through(self, turn: int, chars: int, tokens: int) -> None: ...
    def context(self, before: str) -> str: ...
    def masked(self, start: int) -> list[tuple[int, str]]: ...
    def turn(self, turn: int) -> tuple[str, str, str] | None: ...
    def figures(self) -> tuple[int, int, int, int]: ...
    def requests(self) -> list[tuple[int, int]]: ...

def reduce(
    messages: list[Any], policy: Policy, costs: _Costs | None = None, summary: _Summary | None = None
) -> _Answer | _Request: ...
def reduce_json(
    data: bytes, surrogates: bool, policy: Policy, costs: _Costs | None = None, summary: _Summary | None = None
) -> _JsonAnswer | _JsonRequest: ...
def replay(messages: list[Any], policies: list[Policy], image_chars: int) -> _Replay: ...
def replay_json(data: bytes, surrogates: bool, policies: list[Policy], image_chars: int) -> _Replay: ...
def texts(
    messages: list[Any], policy: Policy, numbers: list[int] | None = None
) -> list[tuple[str, int, int, list[tuple[str, int, str | None]]]]: ...
def check_pairs(messages: list[Any]) -> list[tuple[str, int, str | None]]: ...
def repairs(messages: list[Any]) -> list[tuple[Any, ...]]: ...
def count_chars(messages: list[Any], image_chars: int) -> int: ...
def mask_observation(text: str, policy: Policy) -> str: ...
