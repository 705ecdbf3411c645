"""Public functions that take options as keywords, with the signature that `help` and editors show."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from recede.reduction._options import Option

    _Function = TypeVar("_Function", bound=Callable[..., Any])


def takes(options: Mapping[str, Option], goal: str | None = None) -> Callable[[_Function], _Function]:
    """Decorate a function whose ``**options`` are these, or those of them that a goal has.

    What it shows replaces ``**options`` by each option with its type and default; a call costs nothing more.
    """

    def decorate(function: _Function) -> _Function:
        function.__signature__ = _signature_of(function, options, goal)  # type: ignore[attr-defined]
        return function

    return decorate


class _Annotation(str):
    """An annotation that is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _signature_of(function: Any, options: Mapping[str, Option], goal: str | None) -> Any:
    declared = inspect.signature(function)
    own = [
        one.replace(
            annotation=one.annotation if one.annotation is one.empty else _Annotation(one.annotation),
            default=one.empty if type(one.default) is object else one.default,  # missing is refused with advice
        )
        for one in declared.parameters.values()
        if one.kind is not inspect.Parameter.VAR_KEYWORD and one.name != "more"  # what is refused with advice
    ]
    names = {one.name for one in own}
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=_Annotation(option.kind.annotation)
        )
        for name, option in options.items()
        if name not in names and (goal is None or goal in option.goals)
    ]
    return declared.replace(parameters=[*own, *added], return_annotation=_Annotation(declared.return_annotation))
