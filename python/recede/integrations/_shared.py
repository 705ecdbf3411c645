"""What adapters have in common: reading contents, a placeholder that names the call, usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recede.masker import Masker

__all__ = [
    "RECALL_DESCRIPTION",
    "RECALL_PARAMETERS",
    "content_facts",
    "content_text",
    "json_chars",
    "masked_content",
    "masker_of",
    "missing",
    "recalled",
    "sent_usage",
]

# A call is named by its id: its number would change where a framework cuts or summarizes the history that it sends.
_RECALL_PLACEHOLDER = "[observation masked — {chars} chars, recall {id}]"
RECALL_DESCRIPTION = "Fetch the full text of a masked observation again, by the id after `recall` in its placeholder."
RECALL_PARAMETERS = {
    "type": "object",
    "properties": {"id": {"type": "string", "description": "The id after `recall` in the placeholder."}},
    "required": ["id"],
    "additionalProperties": False,
}

_TEXTS = {"text", "input_text", "output_text"}
_IMAGES = {"image", "image_url", "input_image", "document", "file", "input_file"}
_SCALAR_CHARS = 4


def missing(module: str, needs: str) -> ImportError:
    """The error of a module whose framework is not installed."""
    return ImportError(f'recede.integrations.{module} needs {needs}: pip install "recede[{module}]"')


def masker_of(options: dict[str, Any], *, recall: bool, adapter: Any = None) -> Masker[Any]:
    """The masker of an adapter; with `recall` its placeholders name the id of the call."""
    if recall:
        options.setdefault("placeholder", _RECALL_PLACEHOLDER)
    return Masker(adapter, **options)


def recalled(masker: Masker[Any], messages: Sequence[Any], id: str) -> str:
    """What the tool answers: the text of the observation, or words for the model that there is none."""
    try:
        return masker.recall(list(messages), id)
    except LookupError as error:
        return str(error)


def json_chars(value: Any) -> int:
    """The approximate length of a value as compact JSON, as the core counts arguments; that of a string is its own."""
    if value is None or isinstance(value, str):
        return len(value or "")
    chars = 0
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            chars += len(value) + 2
        elif value is False:
            chars += len("false")
        elif isinstance(value, dict):
            chars += 2 + max(0, len(value) - 1) + sum(len(str(key)) + 3 for key in value)
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            chars += 2 + max(0, len(value) - 1)
            waiting += value
        else:
            chars += _SCALAR_CHARS
    return chars


def content_text(content: Any) -> str:
    """The text of a content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else _text(part) for part in content or ())


def _text(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) and part.get("type", "text") in _TEXTS else None
    return text if isinstance(text, str) else ""


def content_facts(content: Any) -> tuple[int, int]:
    """The characters of a content's text, and how many images and documents it has."""
    if isinstance(content, str):
        return len(content), 0
    parts = [part for part in content or () if isinstance(part, dict)]
    return len(content_text(content)), sum(part.get("type") in _IMAGES for part in parts)


def masked_content(content: Any, text: str) -> Any:
    """A text in place of a content; a cache mark of its parts stays."""
    for part in reversed(content if isinstance(content, list) else []):
        if isinstance(part, dict) and part.get("cache_control") is not None:
            return [{"type": "text", "text": text, "cache_control": part["cache_control"]}]
    return text


def sent_usage(sent: int, output: int, cached: int | None, written: int = 0) -> dict[str, Any]:
    """Usage in the form that `Masker.reported` takes; `cached` is None where the provider does not say."""
    details = None if cached is None else {"cached_tokens": cached}
    usage = {"prompt_tokens": sent, "completion_tokens": output, "prompt_tokens_details": details}
    return {**usage, "cache_creation_input_tokens": written} if written else usage
