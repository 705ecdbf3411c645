"""A test helper for code that handles histories: a check of their pairs."""

from __future__ import annotations

from typing import Any

from recede import check_pairs

__all__ = ["assert_pairs_valid"]


def assert_pairs_valid(messages: list[Any]) -> None:
    """Assert that every call has its result, so that no provider refuses the history for its pairs.

    Calls at the end that may still be answered are allowed.

    Args:
        messages: the history, as for `recede.reduce`.

    Raises:
        AssertionError: pairs are broken; the message has one line per fault.
        TranscriptError: the input is not a history.

    Example:
        >>> from recede.testing import assert_pairs_valid
        >>> assert_pairs_valid([{"role": "user", "content": "hello"}])
        >>> assert_pairs_valid([{"role": "tool", "tool_call_id": "9", "content": "?"}])
        Traceback (most recent call last):
        ...
        AssertionError: the pairs of this history are not valid:
          message 0: result_without_call, id '9'
    """
    faults = [finding for finding in check_pairs(messages).findings if finding.kind != "open_call"]
    if faults:
        lines = [f"  message {fault.message_index}: {fault.kind}, id {fault.id!r}" for fault in faults]
        raise AssertionError("\n".join(["the pairs of this history are not valid:", *lines]))
