"""Trajectories of steps: the Agent Trajectory Interchange Format, Pydantic AI, turns of text, (mini-)SWE-agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from recede.transcripts._draft import Conversation, Draft, at, fields, kept, objects, renamed, result, text, texts
from recede.transcripts._source import Record

# ATIF

_STEP = frozenset(
    """extra is_copied_context llm_call_count message metrics model_name observation reasoning_content
    reasoning_effort source step_id timestamp tool_calls""".split()
)
_OBSERVATION = frozenset(["extra", "results"])
_RESULT = frozenset(["content", "extra", "source_call_id", "subagent_trajectory_ref"])


def is_atif(value: Any) -> bool:
    row = fields(value)
    return text(row.get("schema_version")).startswith("ATIF-") and isinstance(row.get("steps"), list)


def read_atif(value: Any, context: str | None = None) -> Iterator[Draft]:
    """Read the steps, in the shape of Chat Completions; then the trajectories of subagents in the same file."""
    one = Conversation(context)
    one.model = fields(value.get("agent")).get("model_name")
    for step in objects(value["steps"]):
        one.draft.records += 1
        source = text(step.get("source"))
        if source == "agent":
            metrics = fields(step.get("metrics"))
            places = "prompt_tokens", "completion_tokens", "cached_tokens", "extra.cache_creation_input_tokens"
            usage = renamed(metrics or None, *places)
            one.begin(usage=usage, model=step.get("model_name"), time=step.get("timestamp"))
            if step.get("is_copied_context") is True:  # it is counted where it was copied from
                one.draft.requests.pop()
            one.say(step.get("message"))
        elif step.get("message"):
            one.message(source, step["message"])
        calls, observation = objects(step.get("tool_calls")), fields(step.get("observation"))
        one.draft.beside(step, _STEP)
        one.draft.beside(observation, _OBSERVATION)
        for made in calls:
            one.call(made.get("tool_call_id"), made.get("function_name"), made.get("arguments"))
        _observe(one, objects(observation.get("results")), [c.get("tool_call_id") for c in calls])
    yield one.draft
    for inner in objects(value.get("subagent_trajectories")):
        if isinstance(inner.get("steps"), list):
            name = text(inner.get("trajectory_id")) or text(fields(inner.get("agent")).get("name")) or "agent"
            yield from read_atif(inner, name)


def _observe(one: Conversation, results: list[dict[str, Any]], calls: list[Any]) -> None:
    """Add results: of the call that they name, in the order of the calls, or of an answer whose calls are text."""
    named = [found.get("source_call_id") for found in results]
    free = [call for call in calls if call not in named]
    for found, name in zip(results, named, strict=True):
        content = found.get("content")
        one.draft.beside(found, _RESULT)
        call = name if name is not None or not free else free.pop(0)
        if call is not None:
            one.result(call, content)
        elif content is not None and not one.answer(content):
            one.message("user", content)


# Pydantic AI


def is_pydantic_ai(value: Any) -> bool:
    """Whether the value is what `all_messages_json` gives."""
    messages = objects(fields(value).get("messages", value))
    return bool(messages) and all(
        message.get("kind") in ("request", "response")
        and isinstance(message.get("parts"), list)
        and all("part_kind" in part for part in objects(message["parts"]))
        for message in messages
    )


def read_pydantic_ai(value: Any) -> Iterator[Draft]:
    one = Conversation()
    instructions = None
    for message in objects(fields(value).get("messages", value)):
        one.draft.records += 1
        parts = objects(message["parts"])
        if message["kind"] == "response":
            # Tools of the provider have their results in the answer.
            parts.sort(key=lambda part: text(part["part_kind"]).endswith("tool-return"))
            usage, model, time = (message.get(name) for name in ("usage", "model_name", "timestamp"))
            pairs = ("input_tokens", "request_tokens"), ("output_tokens", "response_tokens")  # now, and before
            places = (now if now in fields(usage) else before for now, before in pairs)
            usage = renamed(usage, *places, "cache_read_tokens", "cache_write_tokens")
            one.begin(usage=usage, model=model, time=time)
        elif message.get("instructions") not in (None, instructions):
            instructions = message["instructions"]
            one.message("system", instructions)
        for part in parts:
            _part(one, part)
    yield one.draft


def _part(one: Conversation, part: dict[str, Any]) -> None:
    kind, content = text(part["part_kind"]), part.get("content")
    if kind == "system-prompt":
        one.message("system", content)
    elif kind == "user-prompt" or (kind == "retry-prompt" and part.get("tool_name") is None):
        said = list(map(_said, content if isinstance(content, list) else ()))
        one.message("user", texts(content) if isinstance(content, str) or kind == "retry-prompt" else said)
    elif kind.endswith("tool-return") or kind == "retry-prompt":
        one.result(part.get("tool_call_id"), content)
    elif kind.endswith("tool-call"):
        one.call(part.get("tool_call_id"), part.get("tool_name"), part.get("args"))
    elif kind == "text":
        one.say(content)
    elif kind not in ("thinking", "file"):
        one.draft.unknown("part", "kind", kind, part)


def _said(part: Any) -> dict[str, Any]:
    """A text, which may have fields of its own; a picture or a document as an image."""
    said = part.get("content") if isinstance(part, dict) else part
    return {"type": "text", "text": said} if isinstance(said, str) else {"type": "image", "kind": at(part, "kind")}


# Turns of text

_LISTS = ("trajectory", "turns", "steps", "history")
_TURN = frozenset(["action", "observation", "reasoning", "thought", "turn"])


def is_turn(record: dict[str, Any]) -> bool:
    """Whether a line is a turn: what an agent thought and did, and what it saw then. An event has a source."""
    thinks = not record.keys().isdisjoint(("reasoning", "thought", "turn"))
    acts = not record.keys().isdisjoint(("action", "observation"))
    return thinks and acts and record.keys().isdisjoint(("args", "kind", "role", "source"))


def is_turns(value: Any) -> bool:
    """Whether the value has a list of turns, between which there may be other objects."""
    turns = _turns(value)
    return any(map(is_turn, turns)) and not any(
        not is_turn(turn) and ("action" in turn or "observation" in turn or "role" in turn) for turn in turns
    )


def _turns(value: Any) -> list[dict[str, Any]]:
    row = fields(value)
    return objects(value) or next((found for name in _LISTS if (found := objects(row.get(name)))), [])


def read_turns(value: Any) -> Iterator[Draft]:
    """Read each turn as an answer and its observation, which are a pair."""
    for draft in read_turn_lines(Record(turn, 0) for turn in _turns(value)):
        draft.beside(fields(value), frozenset(_LISTS))
        yield draft


def read_turn_lines(records: Iterable[Record]) -> Iterator[Draft]:
    draft = Draft()
    for value, line in records:
        draft.records += 1
        if not is_turn(value):
            draft.add(value, line)
            continue
        said = [value.get("reasoning", value.get("thought")), value.get("action")]
        content = "\n".join(texts(one) for one in said if one)
        draft.add({"role": "assistant", "content": content}, line)
        draft.beside(value, _TURN, line)
        if value.get("observation") is not None:
            draft.answer(texts(value["observation"]), line)
    yield draft


# SWE-agent (`.traj`) and mini-SWE-agent, which may work without tool calls


# The other fields repeat the content in pieces, or are notes of the program.
_OF_SWE_AGENT = frozenset(["content", "name", "role", "tool_call_id", "tool_calls"])


def is_swe_agent(value: Any) -> bool:
    history = objects(value.get("history")) if isinstance(value, dict) else []
    return bool(history) and all("role" in message for message in history)


def read_swe_agent(value: Any) -> Iterator[Draft]:
    """Read the messages sent to the model; `trajectory` repeats them step by step."""
    yield _swe_draft(value["history"])


def is_mini(value: Any) -> bool:
    """Whether the value names the format, or a shell block is answered by a return code."""
    if isinstance(value, dict):
        is_named = text(value.get("trajectory_format")).startswith("mini-swe-agent")
        return is_named and isinstance(value.get("messages"), list)
    return any(
        call.get("role") == "assistant"
        and "```" in text(call.get("content"))
        and answer.get("role") == "user"
        and text(answer.get("content")).startswith("<returncode>")
        for call, answer in pairwise(objects(value))
    )


def read_mini(value: Any) -> Iterator[Draft]:
    """Read the messages; an entry with the role `exit` is for the user."""
    yield _swe_draft(value["messages"] if isinstance(value, dict) else value)


def _swe_draft(history: list[Any]) -> Draft:
    draft = Draft()
    for message in history:
        draft.records += 1
        if not isinstance(message, dict):
            draft.note("entry of the history left out, since it is no object")
        elif isinstance(message.get("output"), list) and message.get("object") == "response":  # of the Responses API
            time = fields(message.get("extra")).get("timestamp", message.get("created_at"))
            draft.request(message.get("usage"), message.get("model"), time)
            for item in objects(message["output"]):
                draft.add(item)
        elif message.get("role") != "exit":
            _add(message, draft)
    return draft


def _add(message: dict[str, Any], draft: Draft) -> None:
    role, content = message.get("role"), message.get("content")
    if text(message.get("type")).endswith("_output"):  # of the Responses API
        draft.add({name: held for name, held in message.items() if name != "extra"})
        return
    known = {name: value for name, value in message.items() if name in _OF_SWE_AGENT}
    ids = message.get("tool_call_ids")
    last = draft.messages[-1] if draft.messages else {}
    extra = message.get("extra")
    if role == "assistant" and isinstance(extra, dict) and isinstance(response := extra.get("response"), dict):
        draft.request(response.get("usage"), response.get("model"), extra.get("timestamp", response.get("created")))
    if role == "tool" and isinstance(ids, list) and ids:
        # One text answers all calls of the turn, but every call needs its own result.
        for index, call_id in enumerate(ids):
            draft.add(result(call_id, "" if index else content))
    elif role == "user" and last.get("role") == "assistant" and not last.get("tool_calls"):
        draft.answer(content)  # without tool calls the environment answers with a user message
    else:
        draft.add(kept(known, message))
