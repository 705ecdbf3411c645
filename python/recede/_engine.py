"""Engine selection: the Rust core, or with ``RECEDE_ENGINE=python`` the plain-Python mirror.

The only module that imports the extension. There is no silent fallback: a missing core is an ImportError that says how
to build it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ENGINE", "__version__", "core", "engine", "scanner"]


def _load(name: str) -> Any:
    if name == "python":
        from recede import _pure

        return _pure
    if name != "rust":
        raise ImportError(f"RECEDE_ENGINE is {name!r}; it can be 'rust' (the default) or 'python'")
    try:
        from recede import _core
    except ImportError as error:
        # Two wordings: the core's own, and Python's where each interpreter has its own GIL.
        if any(words in str(error) for words in ("another interpreter", "in subinterpreters")):
            raise ImportError(
                "recede's Rust core serves one interpreter of a process, the first that imports it, and this is "
                "another one. Under mod_wsgi, `WSGIApplicationGroup %{GLOBAL}` runs the program in the main one. "
                "RECEDE_ENGINE=python runs the slow plain-Python mirror, which serves any number of them."
            ) from error
        raise ImportError(
            "recede's Rust core is not built, or was built for another Python. In a checkout, `make build` "
            "builds it (it needs a Rust toolchain); elsewhere reinstall recede. "
            "RECEDE_ENGINE=python runs the slow plain-Python mirror instead."
        ) from error
    scanner = os.environ.get("RECEDE_SCANNER")
    if scanner and scanner not in _core.scanners():
        names = ", ".join(map(repr, _core.scanners()))
        raise ImportError(
            f"RECEDE_SCANNER is {scanner!r}; on this CPU it can be {names}; unset, it is the last of these"
        )
    return _core


def scanner() -> str | None:
    """The instruction set with which the core reads strings, such as ``"avx2"``; None in the mirror.

    The best that this CPU has, or what ``RECEDE_SCANNER`` selects.

    Example:
        >>> import recede
        >>> recede.reduction.scanner() in (None, "word", "sse2", "avx2", "avx512", "neon")
        True
    """
    if not hasattr(engine, "scanners"):
        return None
    return os.environ.get("RECEDE_SCANNER") or engine.scanners()[-1]


ENGINE: str = os.environ.get("RECEDE_ENGINE") or "rust"
"""The engine in use: ``"rust"``, or ``"python"`` where ``RECEDE_ENGINE=python`` was set at import."""

engine: Any = _load(ENGINE)

__version__: str = engine.__version__
"""That of the core, whose Cargo.toml has it; the mirror asks the installed package."""


def core(name: str) -> Any:
    """The Rust core, for features that the mirror lacks."""
    if not hasattr(engine, "Session"):
        raise ImportError(f"{name} needs recede's Rust core: the plain-Python mirror has only the reducer")
    return engine
