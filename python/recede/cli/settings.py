"""`recede.toml` in the user's configuration folder: what an option of a command is where it is not typed.

Never one of the working folder, which may be a repository of someone else.
"""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from recede.cli.notices import errors_of

_MOST_BYTES = 1 << 20
_MOST_NUMBER = 1 << 63


def user_folder(variable: str, usual: str) -> Path | None:
    """The folder that a variable has, else the usual one in the home of the user; None if its path is not a whole one.

    So it is never one of the working folder.
    """
    given = Path(os.environ.get(variable, ""))
    with contextlib.suppress(RuntimeError):  # nobody knows the home
        folder = given if given.is_absolute() else Path.home() / usual
        return folder if folder.is_absolute() else None
    return None


def settings_file() -> Path | None:
    """The path of the settings, whether there are any or not; None without a folder of the user."""
    is_windows = sys.platform == "win32"
    folder = user_folder("APPDATA", "AppData/Roaming") if is_windows else user_folder("XDG_CONFIG_HOME", ".config")
    return folder and folder / "recede.toml"


class ConfiguredCommand(click.Command):
    """A command that takes what is not typed from its table in `recede.toml`; the keys are names of options.

    The words that were typed are in `typed` of the context's ``meta``.
    """

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **more: Any) -> click.Context:
        typed = tuple(args)
        made = super().make_context(info_name, args, *rest, **{"default_map": self._settings(), **more})
        made.meta["typed"] = typed
        return made

    def _settings(self) -> dict[str, Any]:
        path, flags = settings_file(), {flag: one for one in self.params for flag in one.opts if flag.startswith("--")}
        found = {}
        for key, value in _table(path, self.name or "").items():
            option = flags.get(f"--{key}")
            if option is None:
                known = ", ".join(flag[2:] for flag in flags)
                raise click.UsageError(f"{path}: [{self.name}] has no option {key!r}; it takes {known}")
            values = value if isinstance(value, list) else [value]
            if any(type(one) is int and abs(one) > _MOST_NUMBER for one in values):
                raise click.UsageError(f"{path}: [{self.name}] {key} is too large a number")
            is_switch = getattr(option, "is_flag", False)
            is_plain = all(type(one) in ((bool,) if is_switch else (str, int, float)) for one in values)
            if not is_plain or isinstance(value, list) != option.multiple:
                wanted = "true or false" if is_switch else "a list" if option.multiple else "one value"
                raise click.UsageError(f"{path}: [{self.name}] {key} must be {wanted}, not {value!r}")
            typed = values if is_switch else list(map(str, values))
            try:
                for one in typed:
                    option.type(one, option)
            except click.BadParameter as error:
                raise click.UsageError(f"{path}: [{self.name}] {key}: {error.message}") from None
            found[option.name or ""] = typed if option.multiple else typed[0]
        return found


def _table(path: Path | None, name: str) -> dict[str, Any]:
    """The table of this name; empty if there is none."""
    if path is None or not path.is_file():
        return {}
    if sys.version_info < (3, 11):
        raise click.UsageError(f"{path} is read by Python 3.11 and later alone: remove it, or use a later Python")
    tomllib = import_module("tomllib")
    with errors_of(str(path)), path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise click.UsageError(f"{path}: it is larger than {_MOST_BYTES:,} bytes")
    try:
        table = tomllib.loads(data.decode("utf-8-sig", "replace")).get(name, {})
    except RecursionError:
        raise click.UsageError(f"{path}: it is nested too deeply") from None
    except ValueError as error:  # of TOML, or an integer of over 4,300 digits
        raise click.UsageError(f"{path}: {error}") from None
    if not isinstance(table, dict):
        raise click.UsageError(f"{path}: {name} must be a table: [{name}]")
    return table
