"""Public functions that take options as keywords, with the signature that `help` and editors show."""

from __future__ import annotations

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from recede.reduction._options import Option

    _Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = ["takes"]


def takes(options: Mapping[str, Option], goal: str | None = None, **defaults: Any) -> Callable[[_Function], _Function]:
    """Decorate a function whose ``**options`` are these, or those of them that a goal has, some with other defaults.

    What it shows replaces ``**options`` by each option with its type and default; a call costs nothing more.
    """

    def decorate(function: _Function) -> _Function:
        function.__signature__ = _Signature(function, options, goal, defaults)  # type: ignore[attr-defined]
        return function

    return decorate


class _Signature:
    """An `inspect.Signature` that is made when it is first read: that module takes as long to import as the reducer."""

    def __init__(self, *declared: Any) -> None:
        self._declared = declared

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # `inspect` asks for its type
        import inspect

        return inspect.Signature

    def __getattr__(self, name: str) -> Any:
        if name == "_signature":
            self._signature = _signature_of(*self._declared)
            return self._signature
        return getattr(self._signature, name)

    def __str__(self) -> str:
        return str(self._signature)

    def __eq__(self, other: object) -> bool:
        return bool(self._signature == other)

    __hash__ = None  # type: ignore[assignment]


class _Annotation(str):
    """An annotation that is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _signature_of(function: Any, options: Mapping[str, Option], goal: str | None, defaults: dict[str, Any]) -> Any:
    import inspect

    declared = inspect.signature(_without_signature(function))
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
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults.get(name, option.default),
            annotation=_Annotation(option.kind.annotation),
        )
        for name, option in options.items()
        if name not in names and (goal is None or goal in option.goals)
    ]
    return declared.replace(parameters=[*own, *added], return_annotation=_Annotation(declared.return_annotation))


def _without_signature(function: Any) -> Any:
    """A copy of a function, whose own signature `inspect` reads."""
    from types import FunctionType

    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    return copy
