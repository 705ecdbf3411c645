"""The options of the library on the command line: names, types and help follow from the one declaration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import click

from recede.reduction._kinds import BOUNDARY, LIMIT, PROVIDER, TEXTS, WINDOWS, Kind
from recede.reduction._options import OPTIONS, Option

_NONE = object()  # None as typed; None itself means that nothing was typed
_WINDOWS = ("keep_messages", "keep_turns", "keep_results")


def all_of(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator; the help lists them in this order."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def policy_option(name: str, table: Mapping[str, Option] = OPTIONS, **settings: Any) -> Callable[[Any], Any]:
    """A flag for an option of the table; `settings` are those of click, such as another default."""
    option = table[name]
    words = re.sub(r"`(\w+)`", lambda found: table[found[1]].flag or found[0], option.help)
    words = words.replace("; None:", "; none:") if _may_be_none(option.kind) else words.partition("; None:")[0]
    default = option.default
    if name == "observation_masking":
        words = words.removeprefix("False ")
    elif not _is_unset(default) and "default" not in settings:
        words += f".  [default: {default}]"
    words = words[0].upper() + words[1:]
    words += "" if words.endswith("]") else "."
    return click.option(option.flag or "", name, **{"help": words, **_type_of(option.kind), **settings})


def _type_of(kind: Kind) -> dict[str, Any]:
    if kind is BOUNDARY:
        return {"type": _ChoiceOrNumber(kind.choices), "metavar": "|".join((*kind.choices, "N"))}
    if kind is WINDOWS:
        return {"type": _ToolWindow(), "multiple": True, "metavar": "TOOL=N"}
    if kind is PROVIDER:
        return {"type": _ChoiceOrModel(kind.choices), "metavar": f"[{'|'.join((*kind.choices, 'MODEL'))}]"}
    if kind.choices:
        return {"type": click.Choice(kind.choices)}
    if kind is LIMIT:
        return {"type": _Limit(min=int(kind.least)), "metavar": "N"}
    if kind.annotation == "bool":
        return {"is_flag": True}
    if kind.annotation.startswith("int"):
        whole = _WholeOrNone if _may_be_none(kind) else Whole
        return {"type": whole(min=int(kind.least)), "metavar": "N"}
    if kind.annotation.startswith("float"):
        type_ = _NumberOrNone if _may_be_none(kind) else click.FloatRange
        return {"type": type_(min=kind.least, max=kind.most, min_open=kind.most is not None), "metavar": "N"}
    if kind.annotation.startswith("Collection"):
        return {"multiple": True, "metavar": "TEXT" if kind is TEXTS else "NAME"}
    return {"metavar": "TEXT"}


class Whole(click.IntRange):
    """A whole number; what is none is named with what was probably meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            int(value)
        except ValueError:
            short = re.fullmatch(r"(\d+)[kK]", str(value))
            plain = str(value).replace(",", "").replace("_", "")
            meant = f"{short[1]}000" if short else plain if plain.isdecimal() else ""
            self.fail(f"{value!r} is no whole number{f': write {meant}' if meant else ''}", param, ctx)
        return super().convert(value, param, ctx)


class _WholeOrNone(Whole):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return _NONE if value == "none" else super().convert(value, param, ctx)


class _Limit(_WholeOrNone):
    """A number of tokens, or a share of the model's window."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not re.fullmatch(r"\d*\.\d+", str(value)):
            return super().convert(value, param, ctx)
        try:
            return LIMIT.check("the limit", float(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _ChoiceOrNumber(click.Choice[str]):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value.isdecimal() and int(value) > 0:
            return int(value)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message.rstrip('.')}, and no number of results from 1", param, ctx)


class _ChoiceOrModel(click.Choice[str]):
    """A provider or a model by its name; the library knows which there are."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            PROVIDER.check("provider", value)
        except (TypeError, ValueError) as error:
            self.fail(str(error), param, ctx)
        return value


class _ToolWindow(click.ParamType):  # type: ignore[type-arg]
    """A tool or a pattern, and how many of its newest results stay raw; ``all`` for all."""

    name = "tool=n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        tool, _, count = value.rpartition("=")
        if not tool or not (count == "all" or count.isdecimal()):
            self.fail(f"{value!r} is not TOOL=N, such as Read=20, or TOOL=all", param, ctx)
        return tool, None if count == "all" else int(count)


def _may_be_none(kind: Kind) -> bool:
    """Whether ``none`` can be typed, which also takes back a setting."""
    return kind.annotation in ("float | None", "int | None")


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


def given(options: dict[str, Any], table: Mapping[str, Option] = OPTIONS) -> dict[str, Any]:
    """The options that were given, as the library takes them: a flag is the other one of its two values."""
    found = {name: None if value is _NONE else value for name, value in options.items() if not _is_unset(value)}
    found |= {name: not table[name].default for name, value in found.items() if value is True}
    if "keep_by_tool" in options and found.get("keep_by_tool"):
        found["keep_by_tool"] = dict(options["keep_by_tool"])
    # A window of one's own replaces the default one of the designs.
    has_window = any(found.get(name) is not None for name in _WINDOWS)
    return {"preserve_recent_raw_turns": 0, **found} if has_window else found


def usage_error(error: Exception) -> click.UsageError:
    """An error of the library, with the options as they are typed."""
    message = str(error)
    for parameter in click.get_current_context().command.params:
        name = str(parameter.name)
        pattern = name if "_" in name else rf"^{name}\b"  # elsewhere it may be a word
        message = re.sub(pattern, parameter.opts[-1], message)
    return click.UsageError(message)


policy_options = all_of(*(policy_option(name) for name, option in OPTIONS.items() if option.flag is not None))
