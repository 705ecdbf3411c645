"""Generated histories: Hypothesis strategies with the oddities of real logs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies
from hypothesis.strategies import SearchStrategy

from generated.shapes import SHAPES, Shape, Shapes

__all__ = ["Shape", "histories"]


def histories(
    shape: Shape | None = None,
    *,
    max_turns: int = 5,
    max_parallel_calls: int = 17,
    whole: bool = False,
) -> SearchStrategy[list[dict[str, Any]]]:
    """A hypothesis strategy for histories with the oddities of real logs.

    Reused ids, parallel calls, results that are missing, doubled or without a call, null, missing and empty content,
    lists of parts, images, errors, existing placeholders, open and closed dispatch blocks, tags, summaries of an
    earlier reduction, lone surrogates.

    Args:
        shape: the shape of the messages; "mixed" changes it from turn to turn, None draws any of these.
        max_turns: the maximum number of turns.
        max_parallel_calls: the maximum number of calls in one turn.
        whole: True generates valid pairs only: every call has a unique id, or in Gemini perhaps none, and one
            result, right after its turn. Texts and contents keep their oddities.

    Returns:
        The strategy. Its histories contain JSON values only.
    """
    if shape not in (None, "mixed", *SHAPES):
        raise ValueError(f"shape must be one of {', '.join(map(repr, SHAPES))}, 'mixed' or None, not {shape!r}")

    @strategies.composite
    def history(draw: Any) -> list[dict[str, Any]]:
        return _Histories(draw, strategies, whole, max_parallel_calls).history(shape, max_turns)

    return history()


class _Histories(Shapes):
    """Draws one history."""

    def history(self, shape: Shape | None, max_turns: int) -> list[dict[str, Any]]:
        """Draw a whole history: a head, then turns."""
        shape = shape or self._one_of(*SHAPES, "mixed")
        messages = self._head()
        for _ in range(self._number(0, max_turns)):
            turn_shape = self._one_of(*SHAPES) if shape == "mixed" else shape
            if self._chance(3):
                messages.append(self._user(turn_shape))
            messages += self._turn(turn_shape)
        if self._chance(4):
            messages.append(self._user("openai"))
        if self._chance(6):
            messages.insert(self._number(0, len(messages)) if not self._whole else 0, self._system())
        return messages

    def _head(self) -> list[dict[str, Any]]:
        messages = [self._system() for _ in range(self._one_of(0, 0, 1, 1, 2))]
        if self._chance(8):
            text = self._one_of(
                "Conversation summary:",
                "Conversation summary:\n- objective: the old task\n- outcome: bash: ok\nand more",
                "Conversation summary: no, this is talk",
            )
            messages.append({"role": self._one_of("system", "user"), "content": text})
        if not self._chance(5):
            messages.append(self._user("openai"))
        return messages

    def _system(self) -> dict[str, Any]:
        return {"role": self._one_of("system", "developer"), "content": self._text()}
