"""Named tuples without the import of typing, which takes longer than all other imports."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False  # to type checkers it is that of typing
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _NamedTupleMeta(type):
        """A metaclass that turns a class body into a named tuple, as `typing.NamedTuple` does."""

        def __new__(cls, name, _, body):
            fields = body["__annotations__"]
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for key in body.keys() - {"__module__", "__qualname__", *fields}:
                setattr(made, key, body[key])
            return made

    NamedTuple = type.__new__(_NamedTupleMeta, "NamedTuple", (), {})

__all__ = ["NamedTuple"]
