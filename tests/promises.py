"""What options promise of each writer of a view: one table of predicates, each with the sentence that promises it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from everywhere import EXEMPT_TEXT, EXEMPT_TOOL, Request, Result, messages_of, quarters_of, shown_in

from recede._recall import PLACEHOLDER

# Writers, and the options at which each of them writes: `of_raw` is the limit as a part of the raw history.
BOUNDARY, MOVE, CUT, ARRIVAL, SUMMARY, HIDDEN = "boundary", "move", "cut", "arrival", "summary", "hidden"
FILLED = "filled"  # a reference with the text of an earlier result: only of agents, with tests of its own


class Setting(NamedTuple):
    """A history and the options at which a writer writes."""

    options: dict[str, Any]
    results: tuple[int, int] = (200, 2_500)  # characters
    words: int = 4  # of an answer, times three
    exempt: float = 0.15
    of_raw: float | None = None  # the limit


SLIDING: dict[str, Any] = {"keep": 4, "boundary": "sliding", "provider": "none"}
WRITERS: dict[str, Setting] = {
    BOUNDARY: Setting(SLIDING),
    MOVE: Setting({**SLIDING, "keep": 30}, of_raw=0.6),
    CUT: Setting(SLIDING, results=(4_500, 12_000), exempt=0.05, of_raw=0.08),
    ARRIVAL: Setting({**SLIDING, "max_result_chars": 700}),
    SUMMARY: Setting({"keep": 2, "provider": "none", "summarizer": True}, words=220, exempt=0.1),
    HIDDEN: Setting(SLIDING, results=(100, 900), words=30, exempt=0.1, of_raw=0.25),
}


# What of the core writes: the forms of a result, and the rows of "What stays raw".
FORMS: dict[str, tuple[str, ...]] = {
    "Placeholder": (BOUNDARY, MOVE, ARRIVAL),
    "Clip": (CUT,),
    "Arrival": (ARRIVAL,),
    "Restored": (FILLED,),
    "Cut": (),  # of the published designs alone
    "Dispatch": (),
}
ROWS: dict[str, tuple[str, ...]] = {
    "masked by the boundary": (BOUNDARY,),
    "masked past the window, for a limit": (MOVE,),
    "cut on arrival, or for a limit": (ARRIVAL, CUT, FILLED),
    "in a turn that a summary stands for because it pays": (SUMMARY,),
    "hidden for a limit": (HIDDEN,),
}


class Seen(NamedTuple):
    """A request, and the options with which it was made."""

    request: Request
    options: dict[str, Any]
    hides: bool  # a door that hides messages for a limit
    shape: str

    @property
    def results(self) -> list[Result]:
        return [one for step in self.request.steps for one in step.results]

    def missing(self, results: list[Result]) -> str:
        """The results that are not shown whole."""
        shown = shown_in(self.request.view)
        return ", ".join(f"<r{one.number}> of {one.tool}" for one in results if one.text not in shown)

    def is_exempt(self, one: Result) -> bool:
        tools, texts = self.options.get("exclude_tools", ()), self.options.get("keep_matching", ())
        by_error = bool(self.options.get("keep_errors")) and one.is_exempt
        return one.tool in tools or by_error or any(one.text.startswith(text) for text in texts)

    def is_own(self, one: Result) -> bool:
        """Whether its tool has a window of its own."""
        return one.tool in self.options.get("keep_by_tool", {})


class Promise(NamedTuple):
    """What an option promises where these writers write; `holds` returns what is wrong."""

    option: str
    value: Any
    writers: tuple[str, ...]
    page: str
    sentence: str
    holds: Callable[[Seen], str]


def exempt_are_shown(seen: Seen) -> str:
    if seen.hides and "max_input_tokens" in seen.options and len(seen.request.view) < len(seen.request.history):
        return ""  # they have a share: see `EQUAL`
    return seen.missing([one for one in seen.results if seen.is_exempt(one)])


def newest_are_shown(seen: Seen) -> str:
    return seen.missing([one for one in seen.results[-seen.options["keep"] :] if not seen.is_own(one)])


def own_windows_are_shown(seen: Seen) -> str:
    wrong = ""
    for tool, count in seen.options["keep_by_tool"].items():
        of_tool = [one for one in seen.results if one.tool == tool]
        wrong += seen.missing(of_tool if count is None else of_tool[len(of_tool) - min(count, len(of_tool)) :])
    return wrong


def unseen_are_shown(seen: Seen) -> str:
    return seen.missing(list(seen.request.steps[-1].results))


def old_are_masked(seen: Seen) -> str:
    """A sliding boundary masks all that is old, and not exempt."""
    raw = [*seen.results[-seen.options["keep"] :], *seen.request.steps[-1].results]
    shown = shown_in(seen.request.view)
    old = [one for one in seen.results if one not in raw and not seen.is_own(one)]
    return ", ".join(f"<r{one.number}>" for one in old if not seen.is_exempt(one) and one.text in shown)


def nothing_happens(seen: Seen) -> str:
    same = seen.request.view == seen.request.history
    return "" if same and not seen.request.asked else f"changed: {not same}, asked: {seen.request.asked}"


def is_within_limit(seen: Seen) -> str:
    """It fits whenever what no request has shown, with its answer, and the least of the task fit."""
    last = quarters_of(messages_of(seen.request.steps[-1:], seen.shape)) + 220
    most = 4 * seen.options["max_input_tokens"]
    chars = quarters_of(seen.request.view)
    return f"{chars} of {most}" if seen.hides and last <= most < chars else ""


def is_within_limit_or_all_is_done(seen: Seen) -> str:
    """A door that masks is over the limit only where no result is left that it could mask or cut."""
    most = 4 * seen.options["max_input_tokens"]
    if quarters_of(seen.request.view) <= most:
        return ""
    shown = shown_in(seen.request.view)
    unseen = seen.request.steps[-1].results
    long = [one for one in unseen if len(one.text) > 4_000 and one.text in shown and not seen.is_exempt(one)]
    return "" if seen.hides else ", ".join(f"<r{one.number}> is whole" for one in long)


def long_are_cut(seen: Seen) -> str:
    shown, most = shown_in(seen.request.view), seen.options["max_result_chars"]
    return ", ".join(
        f"<r{one.number}>"
        for one in seen.results
        if len(one.text) > most and not seen.is_exempt(one) and one.text in shown
    )


def own_placeholder_stands(seen: Seen) -> str:
    return "the built-in placeholder is shown" if PLACEHOLDER in shown_in(seen.request.view) else ""


PAGE = "options.md"
STAY = (BOUNDARY, MOVE, CUT, ARRIVAL, SUMMARY)
_EXEMPT = "**Exempt results** stay raw at any age: those of `exclude_tools`, errors with `keep_errors`, and texts of"
_SAME = "One set of options serves every door"
_SHARE = "Over a limit exempt results have"
PROMISES: tuple[Promise, ...] = (
    Promise("keep", 5, (BOUNDARY, SUMMARY), PAGE, "- **The newest `keep` results** stay raw.", newest_are_shown),
    Promise("keep", 3, (BOUNDARY, MOVE, SUMMARY), PAGE, "- **What no request has shown** stays raw", unseen_are_shown),
    Promise(
        "keep_by_tool",
        {"todo": 1, "read": 2},
        (BOUNDARY, SUMMARY),
        PAGE,
        "A tool in `keep_by_tool` has its own number instead",
        own_windows_are_shown,
    ),
    Promise(
        "keep_by_tool",
        {"todo": None},
        (BOUNDARY, SUMMARY),
        PAGE,
        "`None` keeps all of its results",
        own_windows_are_shown,
    ),
    Promise(
        "keep_by_tool",
        {"run": 0},
        (BOUNDARY, SUMMARY),
        PAGE,
        "**A tool's own window replaces `keep`**",
        newest_are_shown,
    ),
    Promise("exclude_tools", [EXEMPT_TOOL], STAY, PAGE, _EXEMPT, exempt_are_shown),
    Promise("keep_errors", True, STAY, PAGE, _EXEMPT, exempt_are_shown),
    Promise("keep_matching", [EXEMPT_TEXT], STAY, PAGE, _EXEMPT, exempt_are_shown),
    Promise(
        "trigger_tokens",
        "above",
        (BOUNDARY, SUMMARY),
        "budgets.md",
        "below it nothing is masked or hidden, and no model is asked",
        nothing_happens,
    ),
    Promise("max_input_tokens", None, (HIDDEN,), "budgets.md", "- **It fits whenever it can**", is_within_limit),
    Promise(
        "max_input_tokens",
        None,
        (MOVE, CUT),
        "budgets.md",
        "mask, cut long results to 4,000 characters, and never hide a message",
        is_within_limit_or_all_is_done,
    ),
    Promise(
        "max_result_chars", 900, (ARRIVAL,), PAGE, "a result of more characters is cut when it arrives", long_are_cut
    ),
    Promise(
        "placeholder",
        "[gone: {tool}]",
        (BOUNDARY, MOVE),
        PAGE,
        "a template with {chars}, {lines}",
        own_placeholder_stands,
    ),
    Promise(
        "boundary",
        "sliding",
        (BOUNDARY,),
        "semantics.md",
        '`boundary="sliding"` moves the boundary at each request',
        old_are_masked,
    ),
)

ALIKE: dict[str, tuple[Any, str, str]] = {
    # Options that only say when something is masked: every door has the view of `reduce`.
    "provider": ("openai", PAGE, _SAME),
    "boundary": (5, PAGE, _SAME),
    "max_overcost": (None, PAGE, _SAME),
    "cold": ([9], PAGE, _SAME),
    "token_counter": (len, PAGE, _SAME),
}

# Exempt by any of these, the same results have the same view: over a limit, too.
EQUAL: tuple[dict[str, Any], ...] = (
    {"exclude_tools": [EXEMPT_TOOL]},
    {"keep_errors": True},
    {"keep_matching": [EXEMPT_TEXT]},
)
EQUAL_SENTENCE = (PAGE, _SHARE)
