"""The options of the command line: those of the library, as the one declaration has them, and how files are read."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from recede import transcripts
from recede.reduction._kinds import BOUNDARY, TEXTS, WINDOWS, Kind
from recede.reduction._options import DESIGN_OPTIONS, OPTIONS, Option

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
        return {"multiple": True, "metavar": "TEXT" if kind is TEXTS else "NAME"}
    return {"metavar": "TEXT"}


class _ChoiceOrNumber(click.Choice[str]):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value.isdecimal() and int(value) > 0:
            return int(value)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message.rstrip('.')}, and no number of results from 1", param, ctx)


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


def given(options: dict[str, Any], table: Mapping[str, Option] = OPTIONS) -> dict[str, Any]:
    """The options that were given, as the library takes them: a flag is the other one of its two values."""
    found = {name: None if value is _NONE else value for name, value in options.items() if not _is_unset(value)}
    found |= {name: not table[name].default for name, value in found.items() if value is True}
    if "keep_by_tool" in options and found.get("keep_by_tool"):
        found["keep_by_tool"] = dict(options["keep_by_tool"])
    # A window of one's own replaces the default one of the designs.
    return {"preserve_recent_raw_turns": 0, **found} if any(name in found for name in _WINDOWS) else found


def usage_error(error: Exception) -> click.UsageError:
    """An error of the library, with the options as they are typed."""
    message = str(error)
    for parameter in click.get_current_context().command.params:
        message = message.replace(str(parameter.name), parameter.opts[-1])
    return click.UsageError(message)


policy_options = all_of(*(policy_option(name) for name, option in OPTIONS.items() if option.flag is not None))
design_options = all_of(
    *(
        policy_option(name, table=DESIGN_OPTIONS)
        for name, option in DESIGN_OPTIONS.items()
        if "reduce" in option.goals and option.flag is not None
    )
)


# What is held in memory: a line, or a file that is one value. --max-bytes sets it, too.
_LINE_BYTES = 1_000_000_000
_FOUND_LINE_BYTES = 256_000_000  # of a file that was found, not named
_MOST_PACKED = 64  # times its size: sessions are packed to a fifth or a tenth

max_bytes_option = click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    default=transcripts.MAX_BYTES,
    show_default=True,
    metavar="N",
    help="Read at most N bytes of text from a file, unpacked.",
)


class Reading(NamedTuple):
    """How a file is read: the arguments of `recede.transcripts.read_all`."""

    format: str | None = None
    path: str | None = None
    text_mode: bool = False
    max_bytes: int = transcripts.MAX_BYTES
    max_line_bytes: int = _LINE_BYTES
    keep_texts: bool = True

    def of_found(self, size: int) -> Reading:
        """The limits for a file of this size that was found, not named: anybody may have put it there."""
        most = max(_FOUND_LINE_BYTES, _MOST_PACKED * size)
        return self._replace(
            max_bytes=min(self.max_bytes, most), max_line_bytes=min(self.max_line_bytes, _FOUND_LINE_BYTES)
        )


def reading_options(command: Any) -> Any:
    """Give a command these options, as one argument `reading`."""

    @functools.wraps(command)
    def collected(format_name: str | None, path: str | None, text_mode: bool, max_bytes: int, **options: Any) -> Any:
        given = click.get_current_context().get_parameter_source("max_bytes") is not ParameterSource.DEFAULT
        lines = max_bytes if given else _LINE_BYTES
        return command(reading=Reading(format_name, path, text_mode, max_bytes, lines), **options)

    return all_of(
        click.option(
            "--format",
            "format_name",
            type=click.Choice(transcripts.FORMATS),
            metavar="NAME",
            help="Read the files as this format instead of detecting it from the content.",
        ),
        click.option(
            "--path",
            metavar="NAME.NAME",
            help="Where the history is in the file, or in each line: messages, body.messages.",
        ),
        click.option(
            "--text-mode",
            is_flag=True,
            help="Take a user message that follows one of the agent without calls as its result.",
        ),
        max_bytes_option,
    )(collected)
