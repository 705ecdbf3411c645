"""The question to a model that writes a summary, which fits it and has no reasoning; and what counts as its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from recede import _engine
from recede._encodable import encodable
from recede._models import model_row
from recede._objects import plain_message

PROMPT = """\
You keep the memory of a software agent whose history grows too long. Write the summary that takes the place of the
turns below, so that the agent can continue as if it still had them. Use these headings; omit those without content:

Goal: what was asked for, with every constraint, in the words of the user where they matter.
State: what is done, what is being done, and what was observed last.
Decisions: what was decided, and why; what was tried and given up.
Open points: what is still to do, and what is not understood.
Files: each file that matters, by its path, with what was changed or found in it.
Errors: each error that is not solved, word for word.

Keep names, paths, numbers, commands and messages exactly as they are. Carry on what the summary so far says, where it
still holds. Do not invent anything, and do not address anybody: give the summary alone."""
"""The default system prompt of `anthropic` and `openai`, and the beginning of what ``.generate`` is given."""

SUMMARY_TOKENS = 2_000
"""Tokens that the text of an answer may have."""

_UNKNOWN_WINDOW = 32_000  # tokens of a request to a model that is not known
_RESULT_CHARS = 2_000
_LAST_CHARS = 600  # of a result that is cut
_SHORT_CHARS = 200  # of other parts, where masked results are not enough
# Few texts have fewer characters in a token: of code, of digits. Outside of ASCII it may be one.
_ASCII_CHARS_PER_TOKEN = 2.5
_ROLES = ("user", "assistant", "system", "call", "result")
_INDENTED = tuple(f"\n[{role}" for role in _ROLES)


class _Part(NamedTuple):
    kind: str  # "said", "call" or "result"
    head: str
    text: str

    @property
    def tokens(self) -> float:
        return tokens_of(self.head) + tokens_of(self.text)


def plain(message: Any) -> dict[str, Any]:
    """Convert a message to a dict: that of a client as it is sent, one of an unknown type by its text."""
    form = plain_message(message)
    return form if isinstance(form, dict) else {"role": "user", "content": str(message)}


reading: ContextVar[Callable[[Any], dict[str, Any]]] = ContextVar("recede_reading", default=plain)
"""How the door that asks converts its messages; set while a summarizer runs."""


def tokens_of(text: str) -> float:
    """Estimate the tokens of a text, rather too many than too few."""
    ascii_chars = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return ascii_chars / _ASCII_CHARS_PER_TOKEN + len(text) - ascii_chars


def room_for_question(model: str, answer_tokens: int, prompt: str, window_tokens: int | None = None) -> float:
    """Count the tokens that a question to a `model` may have besides its prompt and answer.

    The window is that of the model, up to where its input costs more; `window_tokens` says what is not known.
    """
    row = model_row(model)
    if window_tokens is None:
        window_tokens = _UNKNOWN_WINDOW if row is None else min(row.window_tokens, row.long[0])
    return window_tokens - answer_tokens - tokens_of(prompt)


def question(items: Sequence[Any], previous: str | None, most_tokens: float) -> str:
    """Write what a model is asked: the previous summary, and what messages or turns say, in order.

    Results are cut to 2,000 characters. If the whole exceeds `most_tokens`, results are masked from the oldest on; then
    arguments of calls and other texts are cut, then the oldest parts left out. Complexity: linear.
    """
    if any(hasattr(item, "observation") for item in items):
        parts = [part for item in items for part in _of_turn(item)]
    else:
        forms, names = list(map(reading.get(), items)), dict[str, str]()
        said = zip(forms, _engine.engine.said(forms), strict=True)
        parts = [part for form, one in said for part in _of_message(form, one, names)]
    before = "" if previous is None else f"The summary so far:\n\n{previous}"
    fitted = _fitted(parts, most_tokens - tokens_of(before))
    text: str = encodable((before + "".join(part.head + part.text for part in fitted)).lstrip("\n"))
    return text  # lone surrogates cannot be sent


def _of_turn(turn: Any) -> list[_Part]:
    acted = f"Reasoning: {turn.reasoning}\nAction: {turn.action}"
    return [
        _Part("said", f"\n\nTurn {turn.turn}:\n", acted),
        _Part("result", "\nObservation: ", _cut(str(turn.observation))),
    ]


def _of_message(form: dict[str, Any], said: list[Any], names: dict[str, str]) -> list[_Part]:
    """The parts of a message; `names` are those of the tools of earlier calls, by their ids."""
    parts: list[_Part] = []
    role = form.get("role") or ("user" if form.get("type") == "user_input" else "assistant")
    role = {"model": "assistant", "developer": "system"}.get(role, role)
    for kind, name, call_id, value in said:
        text = value if isinstance(value, str) else "" if value is None else _compact(value)
        if kind == "call":
            if call_id is not None:
                names[call_id] = str(name)
            parts.append(_Part(kind, f"\n\n[call {name}] ", _own(text)))
        elif kind == "result":
            tool = name or names.get(call_id)
            parts.append(_Part(kind, f"\n\n[result of {tool}] " if tool else "\n\n[result] ", _cut(_own(text))))
        elif text.strip():
            is_next = bool(parts) and parts[-1].kind == "said"
            parts.append(_Part(kind, "\n" if is_next else f"\n\n[{role}] ", _own(text)))
    return parts


def _own(text: str) -> str:
    """Indent lines of a text that begin as a part does: a result must not speak as the user."""
    for begin in _INDENTED:
        text = text.replace(begin, f"\n {begin[1:]}")
    return text


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _cut(text: str) -> str:
    if len(text) <= _RESULT_CHARS:
        return text
    note = f"\n[... {len(text):,} characters in all ...]\n"
    first = _RESULT_CHARS - _LAST_CHARS - len(note)
    return f"{text[:first]}{note}{text[-_LAST_CHARS:]}"


def _masked(text: str) -> str:
    return f"[{len(text):,} characters]"


def _short(text: str) -> str:
    return f"{text[:_SHORT_CHARS]} [... {len(text):,} characters in all]"


_STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (("result", _masked), ("call", _short), ("said", _short))


def _fitted(parts: list[_Part], most_tokens: float) -> list[_Part]:
    """The parts as far as they fit, each step from the oldest on."""
    fitted, total = list(parts), sum(part.tokens for part in parts)
    for kind, shorter in _STEPS:
        for place, part in enumerate(fitted):
            if total <= most_tokens:
                return fitted
            if part.kind == kind and len(text := shorter(part.text)) < len(part.text):
                fitted[place] = part._replace(text=text)
                total += fitted[place].tokens - part.tokens
    first = 0
    while total > most_tokens and first < len(fitted):
        total -= fitted[first].tokens
        first += 1
    return fitted[first:]


# What counts as an answer

_FINISHED = frozenset({"end_turn", "stop", "STOP", "completed"})
_LEAST_CHARS = 200
_LEAST_HEADINGS = 2
_REASONING_TOKENS = 6_000  # of an answer, besides its text, at the lowest effort
# By the form of a request: the makers whose models name their efforts alike in it, and the fields that have one.
_EFFORTS: dict[str, tuple[Collection[str], tuple[str, ...]]] = {
    "anthropic": (("anthropic",), ("output_config", "effort")),
    "chat": (("openai", "xai", "mistral"), ("reasoning_effort",)),
    "responses": (("openai", "xai"), ("reasoning", "effort")),
    "gemini": (("gemini",), ("thinkingConfig", "thinkingLevel")),
    "genai": (("gemini",), ("thinking_config", "thinking_level")),
    "interactions": (("gemini",), ("thinking_level",)),
}

_HEADING = re.compile(r"^(\w[\w ]*):", re.MULTILINE)


class UnfinishedError(ValueError):
    """An answer of a model that is no summary: cut, refused, empty, or without what the prompt asks for."""


def answer_tokens(model: str, text_tokens: int) -> int:
    """Count the tokens to allow for an answer: its text, and the reasoning that a `model` may need before it."""
    row = model_row(model)
    reasons = row is None or (
        row.reasoning.kept != "none"
        and row.reasoning.lowest_effort != "none"
        and not (row.provider == "anthropic" and row.reasoning.lowest_effort is None)  # only if it is asked to
    )
    return text_tokens + _REASONING_TOKENS * reasons


def lowest_effort(model: str, makers: Collection[str]) -> str | None:
    """Find the lowest effort of a `model`, if one of these makers has it; None: say nothing of effort."""
    row = model_row(model)
    return row.reasoning.lowest_effort if row is not None and row.provider in makers else None


def effort_field(model: str, form: str) -> dict[str, Any]:
    """Return the field of a request that asks a `model` for its lowest effort; empty if none is known in this form."""
    makers, names = _EFFORTS[form]
    found: Any = lowest_effort(model, makers)
    for name in reversed(names) if found is not None else ():
        found = {name: found}
    return found or {}


def read_answer(answer: Any) -> tuple[str, Any]:
    """Return the text of an answer of Anthropic, OpenAI or Gemini, and why it ended.

    Raises:
        TypeError, AttributeError, KeyError, IndexError: it is no answer.
    """
    if "candidates" in answer:
        candidate = answer["candidates"][0]
        parts = (candidate.get("content") or {}).get("parts") or ()
        text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
        return text, candidate.get("finishReason")
    if "steps" in answer:
        said = [step for step in answer["steps"] if step.get("type") == "model_output"]
        return "".join(_text(step["content"]) for step in said), answer["status"]
    if "output" in answer:
        messages = [item for item in answer["output"] if item.get("type") == "message"]
        return "".join(_text(item["content"]) for item in messages), answer.get("status")
    if "choices" in answer:
        choice = answer["choices"][0]
        return _text(choice["message"]["content"] or ""), choice.get("finish_reason")
    return _text(answer["content"]), answer.get("stop_reason")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if part.get("type") in ("text", "output_text"))


def checked_answer(text: str, finish: Any, prompt: str) -> str:
    """Return the text of an answer that ended with `finish`, if it is the summary that a `prompt` asks for.

    Raises:
        UnfinishedError: it is not finished, or lacks two of the prompt's headings or 200 characters.
    """
    if finish not in _FINISHED:
        raise UnfinishedError(f"the answer is not finished: it ended with {str(finish)[:40]!r}")
    if not text.strip():
        raise UnfinishedError("the answer has no text")
    headings = _HEADING.findall(prompt)
    found = sum(bool(re.search(rf"(?im)^[\W\d_]*{re.escape(heading)}\b", text)) for heading in headings)
    if len(text) < _LEAST_CHARS or found < min(_LEAST_HEADINGS, len(headings)):
        raise UnfinishedError(f"the answer is no summary: {len(text)} characters, {found} of the prompt's headings")
    summary: str = encodable(text)  # without lone surrogates, as it is sent again
    return summary
