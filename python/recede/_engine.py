"""The Rust core. The only module that imports the extension."""

from __future__ import annotations

import os

try:
    from recede import _core
except ImportError as error:
    # Two wordings: the core's own, and Python's where each interpreter has its own GIL.
    if any(words in str(error) for words in ("another interpreter", "in subinterpreters")):
        raise ImportError(
            "recede's Rust core serves one interpreter of a process, the first that imports it, and this is another "
            "one. Under mod_wsgi, `WSGIApplicationGroup %{GLOBAL}` runs the program in the main one."
        ) from error
    raise ImportError(
        "recede's Rust core is not built, or was built for another Python. In a checkout, `make build` builds it (it "
        "needs a Rust toolchain); elsewhere reinstall recede."
    ) from error

engine = _core
"""The core; tests put the oracle in its place."""

wait_after = _core.wait_after
"""After so many failed summaries in a row, for how many turns or requests no other one is asked for."""

__version__: str = engine.__version__


def scanner() -> str:
    """The instruction set with which the core reads strings, such as ``"avx2"``.

    The best that this CPU has, or what ``RECEDE_SCANNER`` selects.

    Example:
        >>> import recede
        >>> recede.reduction.scanner() in ("word", "sse2", "avx2", "neon")
        True
    """
    return os.environ.get("RECEDE_SCANNER") or _core.scanners()[-1]


if scanner() not in _core.scanners():
    known = ", ".join(map(repr, _core.scanners()))
    raise ImportError(f"RECEDE_SCANNER is {scanner()!r}; on this CPU it can be {known}; unset, it is the last of these")
