"""The reasoning of a model that is stored with its message, in the spellings of those who send it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from vivavoce.messages import AIMessage, AnyMessage

_KEYS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Keys next to the content: DeepSeek, vLLM and Letta; OpenRouter; Ollama."""
_TEXTS = ("thinking", "text", "reasoning", "reasoning_text", "summary")
_BLOCKS = ("thinking", "reasoning")
_BEFORE = re.compile(r"\s*<(think|thinking)>(.*?)</\1>\s*", re.DOTALL)
"""Reasoning that open models write before their answer."""
_DEEPEST = 6


def reasoning(message: AnyMessage) -> str:
    """Return the reasoning that stands next to the content of a message, empty if there is none."""
    if not isinstance(message, AIMessage):
        return ""
    beside = message.model_extra or {}
    found = next((text for key in _KEYS if (text := "\n\n".join(_texts(beside.get(key), _DEEPEST)))), "")
    return found or "\n\n".join(_kept_blocks(message.metadata, _DEEPEST))


def without_reasoning(text: str) -> tuple[str, str]:
    """Return the reasoning at the beginning of a text, empty if there is none, and the rest of the text."""
    found = _BEFORE.match(text) if text.lstrip()[:6] == "<think" else None
    return ("", text) if found is None else (found[2].strip(), text[found.end() :])


def _texts(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, Mapping) and depth:
        fields = cast("Mapping[str, Any]", value)
        yield from next((found for key in _TEXTS if (found := list(_texts(fields.get(key), depth - 1)))), ())
    elif isinstance(value, Sequence) and depth:
        for one in cast("Sequence[object]", value):
            yield from _texts(one, depth - 1)


def _kept_blocks(value: object, depth: int) -> Iterator[str]:
    """Yield the texts of blocks of reasoning in what an exchange format keeps aside of a message."""
    if isinstance(value, Mapping) and depth:
        fields = cast("Mapping[str, object]", value)
        if fields.get("type") in _BLOCKS:
            yield from _texts(fields, _DEEPEST)
            return
        for one in fields.values():
            yield from _kept_blocks(one, depth - 1)
    elif isinstance(value, list) and depth:
        for one in cast("list[object]", value):
            yield from _kept_blocks(one, depth - 1)
