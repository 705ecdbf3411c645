"""Evaluation logs with many histories: inspect_ai and tau-bench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recede.transcripts._datasets import read_messages
from recede.transcripts._draft import Draft, call, fields, kept, objects, result, text

_FIELDS = frozenset(["content", "role", "tool_call_id"])


def is_inspect(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("eval"), dict) and "version" in value and "status" in value


def read_inspect(value: Any) -> Iterator[Draft]:
    """Read the messages of each sample, in the shape of Chat Completions; events repeat them."""
    for sample in objects(value.get("samples")):
        draft = Draft()
        if not isinstance(sample.get("messages"), list):
            draft.left_out("sample without messages", "field messages", sample)
        for message in objects(sample.get("messages")):
            draft.records += 1
            draft.add(_inspect_message(message, fields(sample.get("attachments")), draft))
        _requests(sample, draft)
        yield draft


def _requests(sample: dict[str, Any], draft: Draft) -> None:
    """Find the model calls that answer in the sample; the others belong to a scorer or a tool."""
    messages = objects(sample.get("messages"))
    transcript = sample["transcript"] if isinstance(sample.get("transcript"), dict) else sample
    for event in objects(transcript.get("events")):
        output = event.get("output")
        if event.get("event") != "model" or not isinstance(output, dict):
            continue
        choices = objects(output.get("choices"))
        answer = choices[0].get("message") if choices else None
        place = _place(answer, event.get("input"), messages) if isinstance(answer, dict) else None
        if place is not None:
            time = event.get("completed", event.get("timestamp"))
            draft.request(_usage(output.get("usage")), output.get("model"), time, messages=place)


def _place(answer: dict[str, Any], input: Any, messages: list[dict[str, Any]]) -> int | None:
    """The index of the answer: by its identifier, or in early logs, which have none, by its content."""
    if answer.get("id") is not None:
        return next((index for index, one in enumerate(messages) if one.get("id") == answer["id"]), None)
    place = len(input) if isinstance(input, list) else len(messages)
    same = place < len(messages) and messages[place].get("content") == answer.get("content")
    return place if same else None


def _usage(usage: Any) -> Any:
    """Rename usage as Anthropic does, if its total shows that it counts cached tokens apart."""
    if not isinstance(usage, dict):
        return usage
    read, written = usage.get("input_tokens_cache_read"), usage.get("input_tokens_cache_write")
    parts = [usage.get("input_tokens"), usage.get("output_tokens"), read, written]
    if usage.get("total_tokens") != sum(part for part in parts if isinstance(part, int)):
        return usage
    return {**usage, "cache_read_input_tokens": read, "cache_creation_input_tokens": written}


def _inspect_message(message: dict[str, Any], attachments: dict[str, Any], draft: Draft) -> dict[str, Any]:
    known = {name: value for name, value in message.items() if name in _FIELDS}
    error = message.get("error")
    if isinstance(error, dict) and not message.get("content"):
        known["content"] = text(error.get("message"))
    calls = objects(message.get("tool_calls"))
    if calls:
        known["tool_calls"] = [call(made.get("id"), made.get("function"), made.get("arguments")) for made in calls]
    attached: dict[str, Any] = _attached(known, attachments, draft)
    return kept(attached, message)


def _attached(value: Any, attachments: dict[str, Any], draft: Draft) -> Any:
    """Restore the long texts that the log stores separately."""
    if isinstance(value, str) and value.startswith("attachment://"):
        held = attachments.get(value.removeprefix("attachment://"))
        if held is None:
            draft.note("text left out, since the log does not have its attachment")
        return value if held is None else held
    if isinstance(value, list):
        return [_attached(element, attachments, draft) for element in value]
    if isinstance(value, dict):
        return {name: _attached(element, attachments, draft) for name, element in value.items()}
    return value


def is_tau_bench(value: Any) -> bool:
    """Whether the value is a run or a list of runs of tau-bench or tau2-bench."""
    if isinstance(value, dict):
        return _is_run(value) or any(map(_is_run, objects(value.get("simulations"))))
    return isinstance(value, list) and bool(value) and all(isinstance(run, dict) and _is_run(run) for run in value)


def _is_run(value: dict[str, Any]) -> bool:
    return isinstance(value.get("traj"), list) or (
        isinstance(value.get("messages"), list) and {"task_id", "reward_info"} <= value.keys()
    )


def read_tau_bench(value: Any) -> Iterator[Draft]:
    runs = value if isinstance(value, list) else [value] if _is_run(value) else objects(value["simulations"])
    for run in filter(_is_run, runs):
        if isinstance(run.get("traj"), list):
            yield from read_messages(run["traj"])
            continue
        draft = Draft()
        for message in run["messages"]:
            draft.records += 1
            if fields(message).get("role") == "assistant" and message.get("usage") is not None:
                draft.request(message["usage"], None, message.get("timestamp"))
            for one in _tau_messages(message):
                draft.add(one)
        yield draft


def _tau_messages(message: Any) -> list[dict[str, Any]]:
    """Convert a message of tau2-bench, whose calls have no `function` and whose results may be grouped."""
    if not isinstance(message, dict):
        return [message]  # an error that says where
    if message.get("role") == "tool":
        return [result(one.get("id"), one.get("content")) for one in objects(message.get("tool_messages")) or [message]]
    known = {name: value for name, value in message.items() if name in _FIELDS}
    calls = [
        call(made.get("id"), made.get("name"), made.get("arguments")) for made in objects(message.get("tool_calls"))
    ]
    return [{**known, "tool_calls": calls} if calls else kept(known, message)]
