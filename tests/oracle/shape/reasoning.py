"""The model's reasoning that a request sends back: no text of the history, and counted only to limits."""

from __future__ import annotations

from typing import Any

from oracle.shape.words import is_repeated, items

_TEXTS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
_LISTS = ("reasoning_details", "thinking_blocks")
_READABLE = ("thinking", "text", "summary")
_SEALED = ("signature", "data", "encrypted_content", "thoughtSignature", "thought_signature")
_KEYS = (*_TEXTS, *_LISTS, *_READABLE, *_SEALED, "reasoningText", "redactedContent")


def read_reasoning(message: Any, source: dict[str, Any]) -> None:
    """Read what a message of the model has beside its content, or as an item of Responses."""
    is_item = message.type == "reasoning"
    if is_repeated(source, *_KEYS) or not (message.role == "assistant" or is_item):
        return
    if is_item:
        return read_item(message, source)
    if any(_text(message, source, key) for key in _TEXTS):
        return
    lists = (source.get(key) for key in _LISTS)
    for block in next((one for one in lists if isinstance(one, list)), []):
        if isinstance(block, dict):
            read_block(message, block)


def read_item(message: Any, source: dict[str, Any]) -> None:
    """Read an item of Responses, or a step: its text; else what is encrypted; else its summary."""
    if is_repeated(source, *_KEYS):
        return
    if not _texts(message, source.get("content")) and not read_sealed(message, source):
        _texts(message, source.get("summary"))


def read_block(message: Any, block: dict[str, Any]) -> None:
    """Read a block: what can be read of it; else its signature."""
    if not any(_text(message, block, key) for key in _READABLE):
        read_sealed(message, block)


def read_converse(message: Any, reasoning: Any) -> None:
    """Read Converse's block: a text with its signature, or what is encrypted."""
    if not isinstance(reasoning, dict) or is_repeated(reasoning, *_KEYS):
        return
    if reasoning.get("reasoningText") is not None:
        if isinstance(reasoning["reasoningText"], dict):
            read_block(message, reasoning["reasoningText"])
    elif isinstance(reasoning.get("redactedContent"), str):
        message.sealed_chars += _sealed_chars(reasoning["redactedContent"])


def read_sealed(message: Any, source: dict[str, Any]) -> bool:
    """Read what only the provider reads. Returns whether there is some."""
    sealed = (source.get(key) for key in _SEALED)
    first = next((one for one in sealed if isinstance(one, str)), None)
    if first is None or is_repeated(source, *_KEYS):
        return False
    message.sealed_chars += _sealed_chars(first)
    return True


def _sealed_chars(signature: str) -> int:
    """Quarter tokens: .28 tokens for each character of a signature, less 60."""
    return max(0, len(signature) * 112 // 100 - 240)


def _texts(message: Any, parts: Any) -> bool:
    read = [isinstance(part, dict) and _text(message, part, "text") for part in items(parts)]
    return any(read)


def _text(message: Any, source: dict[str, Any], key: str) -> bool:
    """Read a text. Returns whether it says something."""
    text = source.get(key)
    if not isinstance(text, str) or not text or is_repeated(source, *_KEYS):
        return False
    message.reasoning.append(text)
    return True
