"""Public functions whose signature is spelled out, and whose body takes options as a dict."""

from __future__ import annotations

from functools import update_wrapper

TYPE_CHECKING = False  # to type checkers that of typing, whose import would take longer than all of ours
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = ["runs"]


def runs(body: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """A public function whose text is a signature and a docstring; a call goes to `body`.

    So `help` and editors show every option with its type and its default, and a call costs what the options cost that
    were given.
    """
    return lambda declared: update_wrapper(body, declared)  # type: ignore[return-value]
