"""Public functions with an explicit signature, whose body takes the options as a dict."""

from __future__ import annotations

from functools import update_wrapper

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = ["runs"]


def runs(body: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Decorate a declaration (signature and docstring); calls go to `body`.

    `help` and editors show every option with its type and default, and a call pays only for the options it passes.
    """
    return lambda declared: update_wrapper(body, declared)  # type: ignore[return-value]
