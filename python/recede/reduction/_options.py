"""Every option, declared once: its values, default, and help.

`OPTIONS` is the one set that every door of recede takes. `DESIGN_OPTIONS` has those of the published designs by their
own words, each with the functions that take it. Both make the checks and their errors, what `help` shows, and the
options of the command line; `recede.types` has them for type checkers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from recede.reduction import _kinds as kinds

BUDGETS = ("max_input_chars", "max_input_tokens")

SESSION_DEFAULTS = {"fill": 0.5, "clip_results": 4_000}
"""How a view over its limit degrades: results are cut first, and what hides messages leaves room for what comes."""


class Option:
    """An option. `parameter` is its default as the engines take it, `flag` its name on the command line."""

    __slots__ = ("check", "default", "flag", "goals", "help", "kind", "parameter")

    def __init__(
        self, name: str, kind: kinds.Kind, default: Any, help: str, flag: str | None = "", goals: Iterable[str] = ()
    ) -> None:
        self.kind = kind
        self.check: Callable[[str, Any], Any] = kind.check
        self.default = default
        self.help = help
        self.flag = "--" + name.replace("_", "-") if flag == "" else flag
        self.goals = goals
        self.parameter = kind.check(name, default)


# fmt: off
_DECLARED: tuple[tuple[Any, ...], ...] = (
    # name, kind, default, help; the name on the command line if it differs, or None
    ("keep", kinds.whole(), 10,
     "the newest N results stay raw, and always those that no request has shown yet"),
    ("keep_by_tool", kinds.WINDOWS, None,
     "tool or pattern (`*`, `?`) -> N: its newest N results stay raw, whatever the window; None: all"),
    ("exclude_tools", kinds.TOOLS, (),
     "results of these tools (names or patterns) are never masked", "--exclude-tool"),
    ("keep_errors", kinds.FLAG, False,
     "results flagged as errors are never masked"),
    ("keep_matching", kinds.TEXTS, (),
     "results whose text begins with one of these, or matches one with a `*`, are never masked"),
    ("provider", kinds.PROVIDER, "auto",
     "whose prompt cache and prices decide when masking pays: a known name, a model's name, or a Provider"),
    ("boundary", kinds.BOUNDARY, "break_even",
     "when older results become masked: when it pays, at every request (sliding), or in steps of N results"),
    ("max_overcost", kinds.OPTIONAL_PRICE, 0.1,
     "the cost so far never exceeds that of the raw history by more than this share; None: no limit"),
    ("cold", kinds.COLD, False,
     "the cache has expired: True, or the number of messages before each such request", None),
    ("trigger_tokens", kinds.whole(), 0,
     "below this size of the raw history nothing is masked"),
    ("max_input_tokens", kinds.LIMIT, None,
     "a limit in tokens that no view should exceed; a number below 1 is a share of the model's window"),
    ("max_result_chars", kinds.CLIP, None,
     "results of more than N characters are cut when they arrive, keeping both ends"),
    ("placeholder", kinds.TEMPLATE, None,
     "a template with {chars}, {lines}, {images}, {turn}, {tool}, {id}, {number}, {handle}"),
    ("token_counter", kinds.TOKEN_COUNTER, None,
     "`text -> tokens`; without it tokens count by the bytes of texts, as the model does", None),
)

# Which functions of the designs take an option: the reducer, `mask_observations`, `summarize_history`,
# `truncate_history`, and the block masker.
_REDUCE = ("reduce",)
_MASK, _BLOCK = (*_REDUCE, "mask"), (*_REDUCE, "mask", "block")
_SUMMARY, _DROP = (*_REDUCE, "summarize"), (*_REDUCE, "summarize", "truncate")
_STAGES = (*_REDUCE, "mask", "summarize", "truncate")

_OF_DESIGNS: tuple[tuple[Any, ...], ...] = (
    # name, kind, default, functions, help; the name on the command line if it differs, or None
    ("max_input_chars", kinds.COUNT, None, _REDUCE,
     "the budget in characters (Unicode code points); this or the next is required"),
    ("max_input_tokens", kinds.COUNT, None, _REDUCE,
     "the budget in tokens, of about four characters each"),
    ("fill", kinds.FRACTION, None, _REDUCE,
     "if messages must be dropped, fill the view to this share of the budget; None: keep the window alone"),
    ("clip_results", kinds.CLIP, None, _REDUCE,
     "results in the window are cut to N characters, largest first, before anything is dropped"),
    ("enabled", kinds.FLAG, True, _REDUCE,
     "False returns the history unchanged", None),
    ("preserve_recent_raw_turns", kinds.whole(), 4, _DROP,
     "`keep_messages` under its published name; the larger of the two counts", None),
    ("keep_messages", kinds.COUNT, None, _STAGES,
     "window: the last N messages stay raw, system messages not counted"),
    ("keep_turns", kinds.COUNT, None, _STAGES,
     "window: the last N turns stay raw"),
    ("keep_results", kinds.COUNT, None, _STAGES,
     "window: the newest N results stay raw", "--keep"),
    ("keep", kinds.whole(kinds.MIN_KEEP), 4, ("block",),
     "`keep_results` under its published name, at least 3", None),
    ("keep_by_tool", kinds.WINDOWS, None, _BLOCK,
     "tool or pattern (`*`, `?`) -> N: its newest N results stay raw, whatever the window; None: all", None),
    ("exclude_tools", kinds.TOOLS, (), _BLOCK,
     "results of these tools (names or patterns) are never masked", "--exclude-tool"),
    ("keep_errors", kinds.FLAG, False, _BLOCK,
     "results flagged as errors are never masked"),
    ("keep_matching", kinds.TEXTS, (), _BLOCK,
     "results whose text begins with one of these, or matches one with a `*`, are never masked", None),
    ("mask_chunk", kinds.STEP, None, _BLOCK,
     "the boundary moves in steps of N results, which preserves prompt caches"),
    ("boundary", kinds.choice(*kinds.BOUNDARIES), "sliding", _BLOCK,
     "when older results become masked: at every request, every `mask_chunk` results, or only when that pays"),
    ("provider", kinds.PROVIDER, "ideal", _BLOCK,
     "for break_even: whose prompt cache and prices are assumed: a known name, a model's name, or a Provider"),
    ("cold", kinds.COLD, False, _BLOCK,
     "for break_even: True if the cache has expired; or the number of messages before each such request", None),
    ("max_overcost", kinds.OPTIONAL_PRICE, 0.1, _BLOCK,
     "for break_even: the cost so far never exceeds that of the raw history by more than this share; None: no limit"),
    ("observation_masking", kinds.FLAG, True, _REDUCE,
     "False skips masking and goes straight to the summary", "--no-mask"),
    ("max_observation_chars", kinds.COUNT, None, _MASK,
     "old observations are cut to N characters instead of replaced"),
    ("placeholder", kinds.TEMPLATE, None, _MASK,
     "a template with {chars}, {lines}, {images}, {turn}, {tool}, {id}, {number}, {handle}"),
    ("min_masked_chars", kinds.whole(), 0, _MASK,
     "nothing is masked if that removes fewer than N characters"),
    ("image_chars", kinds.IMAGE, 6_400, _STAGES,
     "characters that an image or a document counts"),
    ("strict_pairs", kinds.FLAG, False, _REDUCE,
     "any call without result, or result without call, rules a stage out"),
    ("summarizer", kinds.SUMMARIZER, None, _SUMMARY,
     "`(messages, previous_summary) -> str`, instead of the built-in summary", None),
    ("summary_max_chars", kinds.SUMMARY, 1_400, _SUMMARY,
     "the summary is clipped at N characters"),
    ("summary_role", kinds.ROLE, None, _SUMMARY,
     "the role of the summary's message; by default one that the provider accepts"),
    ("token_counter", kinds.TOKEN_COUNTER, None, _REDUCE,
     "`text -> tokens`; without it four characters are a token", None),
)
# fmt: on
OPTIONS = {name: Option(name, *declared) for name, *declared in _DECLARED}
DESIGN_OPTIONS = {
    name: Option(name, kind, default, help, flag[0] if flag else "", goals)
    for name, kind, default, goals, help, *flag in _OF_DESIGNS
}
