"""Locks in the child of a fork: a thread of the parent that held one is not there to release it."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, Protocol


class _Owner(Protocol):
    _lock: Any

    def _after_fork(self, *, was_changing: bool) -> None:
        """Called in the child; `was_changing`: another thread held the lock, and may have changed half of it."""


_kinds: weakref.WeakKeyDictionary[_Owner, Callable[[], Any]] = weakref.WeakKeyDictionary()


def lock_of(owner: _Owner, kind: Callable[[], Any] = threading.RLock) -> Any:
    """A lock for the field `_lock` of an object, which is free in each child of a fork."""
    _kinds[owner] = kind
    return kind()


def _renew() -> None:
    for owner, kind in list(_kinds.items()):
        lock = getattr(owner, "_lock", None)  # None: it was being made
        if lock is None or isinstance(lock, RefusingLock):  # of a fork of a fork
            continue
        was_changing = not lock.acquire(blocking=False)
        if was_changing:
            owner._lock = kind()
        else:
            lock.release()
        with contextlib.suppress(OSError):  # of a file that is closed: the others are renewed in any case
            owner._after_fork(was_changing=was_changing)


class RefusingLock:
    """The lock of an object that another thread was changing when the process forked: half of that may be done."""

    def acquire(self, blocking: bool = True) -> NoReturn:
        raise RuntimeError(
            "another thread was changing this object when the process forked, so this child has no whole copy of it: "
            "make it again from its messages, or fork while no thread uses it"
        )

    def __enter__(self) -> NoReturn:
        self.acquire()

    def __exit__(self, *failure: object) -> None:
        """Nothing is held."""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
