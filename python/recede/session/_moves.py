"""The moves of the boundary of a long session, read from its store on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from recede._report import BoundaryMove

__all__ = ["StoredMoves"]

_MOVES_AT_ONCE = 1_024


class StoredMoves(Sequence[BoundaryMove]):
    """Moves of a boundary, of which all but the newest are read from a store on demand."""

    def __init__(self, session: Any, stored: int, newest: tuple[BoundaryMove, ...]) -> None:
        self._session, self._stored, self._newest = session, stored, newest

    def _read(self, start: int, end: int) -> Iterator[BoundaryMove]:
        return iter(self._session.moves(start, end))

    def __len__(self) -> int:
        return self._stored + len(self._newest)

    @overload
    def __getitem__(self, index: int) -> BoundaryMove: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[BoundaryMove, ...]: ...
    def __getitem__(self, index: int | slice) -> BoundaryMove | tuple[BoundaryMove, ...]:
        places = range(len(self))[index]
        if not isinstance(places, int):
            return tuple(self[place] for place in places)
        if places >= self._stored:
            return self._newest[places - self._stored]
        (move,) = self._read(places, places + 1)
        return move

    def __iter__(self) -> Iterator[BoundaryMove]:
        for start in range(0, self._stored, _MOVES_AT_ONCE):
            yield from self._read(start, min(start + _MOVES_AT_ONCE, self._stored))
        yield from self._newest

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, StoredMoves)):
            return NotImplemented
        return len(self) == len(other) and all(one == another for one, another in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self):,} moves, of which {self._stored:,} are in a store>"
