"""Evaluation logs with many histories: inspect_ai and tau-bench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recede.transcripts._chat import read_messages
from recede.transcripts._draft import Draft, call, objects, text

__all__ = ["is_inspect", "is_tau_bench", "read_inspect", "read_tau_bench"]

_FIELDS = frozenset(["content", "role", "tool_call_id"])


def is_inspect(value: Any) -> bool:
    """Whether it is an inspect_ai log."""
    return isinstance(value, dict) and isinstance(value.get("eval"), dict) and "version" in value and "status" in value


def read_inspect(value: Any) -> Iterator[Draft]:
    """The messages of each sample, in the shape of Chat Completions; its events repeat them."""
    for sample in objects(value.get("samples")):
        draft = Draft()
        attachments = sample.get("attachments")
        for message in objects(sample.get("messages")):
            draft.records += 1
            draft.add(_inspect_message(message, attachments if isinstance(attachments, dict) else {}))
        yield draft


def _inspect_message(message: dict[str, Any], attachments: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in message.items() if name in _FIELDS}
    error = message.get("error")
    if isinstance(error, dict) and not message.get("content"):
        kept["content"] = text(error.get("message"))
    calls = objects(message.get("tool_calls"))
    if calls:
        kept["tool_calls"] = [call(made.get("id"), made.get("function"), made.get("arguments")) for made in calls]
    attached: dict[str, Any] = _attached(kept, attachments)
    return attached


def _attached(value: Any, attachments: dict[str, Any]) -> Any:
    """Restore the long texts that the log stores separately."""
    if isinstance(value, str) and value.startswith("attachment://"):
        return attachments.get(value.removeprefix("attachment://"), value)
    if isinstance(value, list):
        return [_attached(element, attachments) for element in value]
    if isinstance(value, dict):
        return {name: _attached(element, attachments) for name, element in value.items()}
    return value


def is_tau_bench(value: Any) -> bool:
    """Whether it is a list of runs."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(run, dict) and isinstance(run.get("traj"), list) for run in value)
    )


def read_tau_bench(value: Any) -> Iterator[Draft]:
    """The messages of each run."""
    for run in value:
        yield from read_messages(run["traj"])
