"""Atomic file writes, and whether two paths are the same file."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

_PRIVATE = 0o600


def write_whole(path: str | os.PathLike[str], pieces: Iterable[bytes], mode: int = _PRIVATE) -> None:
    """Write a file atomically: write a temporary file next to it, then rename.

    The new file gets the owner, group and mode of the old one before the first byte is written. Without an old file it
    gets `mode` minus the umask; by default only the owner has access.
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
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename == str(temporary):
            error.filename = os.fspath(path)  # that which was given
        raise


def _give(file: int, old: os.stat_result) -> None:
    """Copy the owner, group and mode of another file as far as permitted; never grant more.

    `src/store/file.rs` has the same rule.
    """
    if not hasattr(os, "fchown"):
        return  # the platform has no such modes
    new = os.fstat(file)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(file, old.st_uid, old.st_gid)
        except OSError:
            # Only root can change the owner; others can at most change the group to another of theirs.
            with contextlib.suppress(OSError):
                os.fchown(file, -1, old.st_gid)
        new = os.fstat(file)
    mode = old.st_mode & 0o777
    if new.st_gid != old.st_gid:
        mode &= 0o707 | (mode & 0o007) << 3  # a different group gets no more than everybody
    if new.st_mode & 0o777 != mode:
        try:
            os.fchmod(file, mode)
        except OSError:
            if new.st_mode & 0o777 & ~mode:
                raise


def identity(path: str | os.PathLike[str] | int) -> tuple[int, int] | None:
    """Return device and inode of a regular file, equal for all of its names and links; None if it is missing."""
    try:
        facts = os.fstat(path) if isinstance(path, int) else Path(path).stat()
    except (OSError, ValueError):
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISREG(facts.st_mode) else None


def is_same_file(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths are the same regular file, or would be once it is created."""
    found = identity(path)
    if found is None and not Path(path).exists():
        return os.path.realpath(path) == os.path.realpath(other)
    return found is not None and found == identity(other)
