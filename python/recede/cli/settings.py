"""What is not typed: tables of `recede.toml`, in the folder of the user."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from recede._errors import meant
from recede.cli.notices import errors_of
from recede.reduction._kinds import PROVIDER
from recede.reduction._policy import MEANT

_MOST_BYTES = 1 << 20
_MOST_NUMBER = 1 << 63
_HOSTS = "hosts"
_TABLES = ("proxy", _HOSTS)


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

    ``--no-NAME`` takes a setting back for a run. The words that were typed are in `typed` of the context's ``meta``.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._flags = {flag: one for one in self.params for flag in one.opts if flag.startswith("--")}
        for flag, option in self._flags.items():
            self.params.append(_taken_back(flag, option.name or ""))

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **more: Any) -> click.Context:
        typed = tuple(args)
        made = super().make_context(info_name, args, *rest, **{"default_map": self._settings(), **more})
        made.meta["typed"] = typed
        return made

    def _settings(self) -> dict[str, Any]:
        path, found = settings_file(), {}
        for key, value in _table(path, self.name or "").items():
            option = self._flags.get(f"--{key}")
            if option is None:
                raise click.UsageError(f"{path}: [{self.name}] has no option {key!r}{self._hint(key)}")
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

    def _hint(self, key: str) -> str:
        """The end of an error that names the right key: the library has other names for some options."""
        by_name = {option.name: flag[2:] for flag, option in self._flags.items()}
        names = [flag[2:] for flag in self._flags]
        right = by_name.get(MEANT.get(key, key).replace("-", "_"))
        return f"; did you mean {right!r}?" if right else meant(key, names) or f"; it takes {', '.join(names)}"


def _taken_back(flag: str, name: str) -> click.Option:
    """The flag that takes back the setting of an option; it is read before that."""

    def take_back(context: click.Context, _: click.Parameter, is_typed: bool) -> None:
        if is_typed and context.default_map is not None:
            context.default_map.pop(name, None)

    settings: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "hidden": True}
    return click.Option([f"--no-{flag[2:]}", f"no_{name}"], callback=take_back, **settings)


def _table(path: Path | None, name: str) -> dict[str, Any]:
    """The table of this name; empty if there is none. Whatever else is in the file is an error."""
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
        settings = tomllib.loads(data.decode("utf-8-sig", "replace"))
    except RecursionError:
        raise click.UsageError(f"{path}: it is nested too deeply") from None
    except ValueError as error:  # of TOML, or an integer of over 4,300 digits
        raise click.UsageError(f"{path}: {error}") from None
    for key, value in settings.items():
        if not isinstance(value, dict):
            is_name = key == name
            where = f"{name} must be a table: [{name}]" if is_name else f"{key!r} is in no table: put it under [{name}]"
            raise click.UsageError(f"{path}: {where}")
        if key not in (name, *_TABLES):
            raise click.UsageError(f"{path}: there is no table [{key}]; what `recede {name}` takes is in [{name}]")
    table: dict[str, Any] = settings.get(name, {})
    return table


def hosts_of(path: Path | None) -> dict[str, str]:
    """The hosts of one's own, each with the provider or model that it serves as."""
    found = {}
    for host, table in _table(path, _HOSTS).items():
        if not isinstance(table, dict) or list(table) != ["provider"] or not isinstance(table["provider"], str):
            raise click.UsageError(f'{path}: [{_HOSTS}."{host}"] must have one line: provider = "NAME"')
        try:
            PROVIDER.check("provider", table["provider"])
        except ValueError as error:
            raise click.UsageError(f'{path}: [{_HOSTS}."{host}"]: {error}') from None
        found[host.lower()] = table["provider"]
    return found
