"""Files that are written whole or not at all, and whether two paths lead to one file."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

__all__ = ["identity", "is_same_file", "write_whole"]

_PRIVATE = 0o600


def write_whole(path: str | os.PathLike[str], pieces: Iterable[bytes], mode: int = _PRIVATE) -> None:
    """Write a file whole or not at all: a new one beside it, which then takes its place.

    It has the owner, the group and the mode of the old one before a byte is written. Where there is no old one, it has
    what the umask leaves of `mode`, by default its owner's rights alone.
    """
    target = Path(os.path.realpath(path))
    try:
        old = target.stat()
    except (FileNotFoundError, NotADirectoryError):
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        # A pipe or a device cannot be replaced; a directory is an error.
        target.write_bytes(b"".join(pieces))
        return
    temporary = target.with_name(f".recede-{secrets.token_hex(8)}")
    granted = _PRIVATE if old is not None else mode & 0o666 | _PRIVATE
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, granted)) as file:
            if old is not None:
                _give(file.fileno(), old)
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _give(file: int, old: os.stat_result) -> None:
    """Give a file the owner, the group and the mode of another, as far as they are ours to give, and in no case more.

    `src/store/file.rs` has the same rule.
    """
    if not hasattr(os, "fchown"):
        return  # this system has no such modes
    new = os.fstat(file)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(file, old.st_uid, old.st_gid)
        except OSError:
            # Only root can give a file away; others can at most give it to another of their groups.
            with contextlib.suppress(OSError):
                os.fchown(file, -1, old.st_gid)
        new = os.fstat(file)
    mode = old.st_mode & 0o777
    if new.st_gid != old.st_gid:
        mode &= 0o707 | (mode & 0o007) << 3  # another group may only do what everybody may
    if new.st_mode & 0o777 != mode:
        try:
            os.fchmod(file, mode)
        except OSError:
            if new.st_mode & 0o777 & ~mode:
                raise


def identity(path: str | os.PathLike[str] | int) -> tuple[int, int] | None:
    """Device and number of a regular file, the same by whatever name or link; None where there is none."""
    try:
        facts = os.fstat(path) if isinstance(path, int) else Path(path).stat()
    except (OSError, ValueError):
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISREG(facts.st_mode) else None


def is_same_file(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to one regular file, or would, where there is none yet."""
    found = identity(path)
    if found is None and not Path(path).exists():
        return os.path.realpath(path) == os.path.realpath(other)
    return found is not None and found == identity(other)
