"""The options of the library on the command line: names, types and help follow from the one declaration."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from recede.reduction._options import OPTIONS, Kind

_NONE = object()  # None as typed; None itself means that nothing was typed
_WINDOWS = ("keep_messages", "keep_turns", "keep_results")


def all_of(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator; the help lists them in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def policy_options(goal: str) -> Callable[[Any], Any]:
    """All options that a goal has on the command line."""
    names = (name for name, option in OPTIONS.items() if goal in option.goals and option.flag is not None)
    return all_of(*map(policy_option, names))


def policy_option(name: str, flag: str | None = None, **settings: Any) -> Callable[[Any], Any]:
    """One option, if need be under another name, or with another default."""
    option = OPTIONS[name]
    words = re.sub(r"`(\w+)`", lambda found: OPTIONS[found[1]].flag or found[0], option.help)
    words = words.replace("; None:", "; none:") if _may_be_none(option.kind) else words.partition("; None:")[0]
    default = option.default
    if name == "observation_masking":
        words = words.removeprefix("False ")
    elif not _is_unset(default) and "default" not in settings:
        words += f".  [default: {default}]"
    words = words[0].upper() + words[1:]
    words += "" if words.endswith("]") else "."
    return click.option(flag or option.flag or "", name, **{"help": words, **_type_of(option.kind), **settings})


def _type_of(kind: Kind) -> dict[str, Any]:
    if kind.choices:
        return {"type": click.Choice(kind.choices)}
    if kind.annotation == "bool":
        return {"is_flag": True}
    if kind.annotation.startswith("int"):
        return {"type": click.IntRange(min=int(kind.least)), "metavar": "N"}
    if kind.annotation.startswith("float"):
        type_ = _NumberOrNone if _may_be_none(kind) else click.FloatRange
        return {"type": type_(min=kind.least, max=kind.most, min_open=kind.most is not None), "metavar": "N"}
    if kind.annotation.startswith("Collection"):
        return {"multiple": True, "metavar": "NAME"}
    return {"metavar": "TEXT"}


def _may_be_none(kind: Kind) -> bool:
    """Whether ``none`` can be typed; other options that may be None are None by default."""
    return kind.annotation == "float | None"


class _NumberOrNone(click.FloatRange):
    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "none":
            return _NONE
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message.rstrip('.')}; it may also be none", param, ctx)


def _is_unset(value: Any) -> bool:
    return value is None or value is False or value == ()


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Those that were given, as the library takes them: a flag is the other one of its two values."""
    found = {name: None if value is _NONE else value for name, value in options.items() if not _is_unset(value)}
    found |= {name: not OPTIONS[name].default for name, value in found.items() if value is True}
    # A window of one's own replaces the default one.
    return {"preserve_recent_raw_turns": 0, **found} if any(name in found for name in _WINDOWS) else found


def usage_error(error: Exception) -> click.UsageError:
    """An error of the library, with the options as they are typed."""
    message = str(error)
    for parameter in click.get_current_context().command.params:
        message = message.replace(str(parameter.name), parameter.opts[-1])
    return click.UsageError(message)
