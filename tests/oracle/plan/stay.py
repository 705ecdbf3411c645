"""Why a result stays as it is: the one answer that all writers of a view ask for.

An exemption is for good, and says by which option. In its window a result stays until a limit goes past that; a summary
of old turns leaves both alone, and what no request has shown.
"""

from __future__ import annotations

from oracle.outline import Result
from oracle.patterns import fits, matches
from oracle.plan.facts import Facts
from oracle.plan.window import ages_of

EVERYTHING = 1 << 60
"""The `keep` of a replay that masks nothing."""


def exemptions(facts: Facts) -> list[str | None]:
    """The option that exempts an observation, for each."""
    policy, excluded = facts.policy, matches(facts.tools, facts.policy.exclude_tools)

    def option(tool: str | None, result: Result) -> str | None:
        if result.is_pinned:
            return "its shape"
        if tool in excluded:
            return "exclude_tools"
        if policy.keep_errors and result.is_error:
            return "keep_errors"
        return "keep_matching" if any(fits(text, result.text.joined) for text in policy.keep_matching) else None

    return [option(tool, result) for tool, result in zip(facts.tools, facts.given.results, strict=True)]


def exempt(facts: Facts) -> list[bool]:
    """Whether an observation is exempt, for each."""
    return [option is not None for option in exemptions(facts)]


def for_good(facts: Facts) -> list[bool]:
    """Whether an observation stays at every request, for each: exempt, or in a window of its tool that has no end."""
    windows = dict(facts.policy.keep_by_tool)
    pattern_of = matches(facts.tools, tuple(windows))
    endless = [tool in pattern_of and windows[pattern_of[tool]] is None for tool in facts.tools]
    return [any(both) for both in zip(exempt(facts), endless, strict=True)]


def in_own_window(facts: Facts, end: int) -> list[bool]:
    """Whether an observation is in the window of its own tool after so many messages, for each that has come."""
    pattern_of = matches(facts.tools, tuple(dict(facts.policy.keep_by_tool)))
    here = zip(facts.tools, ages_of(facts), facts.outline.results, strict=True)
    return [tool in pattern_of and age > end > result.message for tool, age, result in here]


def first_in_window(facts: Facts, end: int) -> int | None:
    """The first observation in the window of all tools without an own one, after so many messages.

    None where a replay masks nothing.
    """
    if facts.policy.keep_results == EVERYTHING:
        return None
    pattern_of = matches(facts.tools, tuple(dict(facts.policy.keep_by_tool)))
    here = zip(facts.tools, ages_of(facts), facts.outline.results, strict=True)
    return next((one.index for tool, age, one in here if tool not in pattern_of and age > end > one.message), None)
